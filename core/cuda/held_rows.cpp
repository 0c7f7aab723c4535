#include "core/cuda/held_rows.h"

#include <cassert>
#include <utility>

namespace headscope::cuda {
namespace {

constexpr std::size_t most_puts = 2;  // keys and values

/// Whether x is all of `whole`, in whatever shape.
bool same(const Tensor& x, const Tensor& whole) {
  return whole.defined() && x.remote() == whole.remote() && x.contiguous() && x.size() == whole.size() &&
         x.at_device() == whole.at_device();
}

}  // namespace

Tensor HeldRows::made(Shape shape) {
  thread_ = std::this_thread::get_id();
  Tensor out = card_.room(shape);
  CardTensors::storage(out)->wait_for(this);
  made_.push_back(out);
  return out;
}

const float* HeldRows::read(const Tensor& x) {
  const Operand in = card_.on_card(x);
  keeps_.push_back(in.keeps);
  return in.data;
}

Tensor HeldRows::norm(const Tensor& x, const Tensor& gain, const Tensor& shift, float epsilon) {
  start();
  RowsProduct task;
  task.rows = x.size() / x.dim(-1);
  task.in = task.row_stride = x.dim(-1);
  task.x = read(x);
  task.gain = read(gain);
  if (shift.defined()) task.shift = read(shift);
  task.epsilon = epsilon;
  normed_ = made(x.shape());
  task.normed = CardTensors::storage(normed_)->room();
  task_ = task;
  held_ = Held::norm;
  return normed_;
}

Tensor HeldRows::product(const Tensor& x, const void* w, bool half, Index columns, Index w_stride, const Tensor& bias) {
  if (!(held_ == Held::norm && same(x, normed_) && norm_goes_along(x.dim(0), x.dim(1)))) {
    start();
    task_ = {};
    const bool as_it_lies = card_.ours(x) && x.stride(1) == 1 && CardTensors::aligned(x);
    const Operand in = as_it_lies ? Operand{CardTensors::place(x), x} : card_.on_card(x);
    keeps_.push_back(in.keeps);
    task_.x = in.data;
    task_.row_stride = in.keeps.stride(0);
    task_.rows = x.dim(0);
    task_.in = x.dim(1);
  }
  task_.w = w;
  task_.half = half;
  task_.columns = columns;
  task_.w_stride = w_stride;
  task_.bias = bias.defined() ? read(bias) : nullptr;
  product_ = made({x.dim(0), columns});
  task_.out = CardTensors::storage(product_)->room();
  held_ = Held::product;
  return product_;
}

Tensor HeldRows::sum(const Tensor& a, const Tensor& b) {
  if (held_ != Held::product) return {};
  const bool first = same(a, product_), second = same(b, product_);
  if (first == second) return {};
  const Tensor& other = first ? b : a;
  if (card_.ours(other) && CardTensors::storage(other)->waits()) return {};
  task_.more = read(other);
  Tensor out = made(a.shape());
  task_.sum = CardTensors::storage(out)->room();
  start();
  return out;
}

Tensor HeldRows::curved(Curve f, const Tensor& x) {
  if (held_ != Held::product || !same(x, product_)) return {};
  task_.curve = f;
  Tensor out = made(x.shape());
  task_.curved = CardTensors::storage(out)->room();
  start();
  return out;
}

void HeldRows::put(const Tensor& all, Index at, const Tensor& rows) {
  if (held_ != Held::rows || puts_.size() == most_puts) start();
  Put put{all, at, card_.on_card(rows)};  // which starts what makes them
  if (held_ != Held::rows && held_ != Held::nothing) start();
  CardTensors::place(all);  // what was written here is sent before
  thread_ = std::this_thread::get_id();
  CardTensors::storage(all)->wait_for(this);
  CardTensors::storage(all)->written_on_card();  // whoever looks sees them
  puts_.push_back(std::move(put));
  held_ = Held::rows;
}

std::optional<HeldRows::Fresh> HeldRows::take(const Tensor& k, const Tensor& v) {
  if (held_ != Held::rows || puts_.size() != most_puts) return {};
  const Put &keys = puts_[0], &values = puts_[1];
  const auto ends_with = [](const Tensor& x, const Put& put) {
    return x.remote() == put.all.remote() && x.at_device() == put.all.at_device() && x.stride(2) == 1 &&
           x.dim(0) == put.at + put.rows.keeps.dim(0) && x.stride(0) == put.all.stride(0);
  };
  if (!ends_with(k, keys) || !ends_with(v, values) || keys.at != values.at) return {};
  held_ = Held::nothing;
  const auto place = [](const Put& put) {
    CardTensors::storage(put.all)->wait_for(nullptr);
    return put.all.slice(0, put.at, put.at + put.rows.keeps.dim(0));
  };
  Fresh fresh{keys.rows, values.rows, place(keys), place(values), static_cast<int>(keys.rows.keeps.dim(0))};
  puts_.clear();
  return fresh;
}

void HeldRows::put(const Put& put) {
  const Tensor& rows = put.rows.keeps;
  Tensor to = put.all.slice(0, put.at, put.at + rows.dim(0));
  CardTensors::storage(put.all)->wait_for(nullptr);
  check(cudaMemcpyAsync(CardTensors::place(to), put.rows.data, rows.bytes(), cudaMemcpyDeviceToDevice, card_.stream()),
        "copying rows");
  CardTensors::storage(put.all)->written_on_card();
}

void HeldRows::start() {
  const Held held = std::exchange(held_, Held::nothing);
  if (held == Held::nothing) return;
  card_.device()->choose();
  for (const Tensor& each : made_) CardTensors::storage(each)->wait_for(nullptr);
  switch (held) {
    case Held::norm:
      cuda::norm(task_.x, task_.gain, task_.shift, task_.rows, task_.in, 1, task_.epsilon, task_.normed,
                 card_.stream());
      break;
    case Held::product:
      rows_product(task_, card_.device()->starts_early(), card_.stream());
      break;
    case Held::rows:
      for (const Put& each : puts_) put(each);
      break;
    case Held::nothing:
      break;
  }
  check(cudaGetLastError(), "starting a kernel");
  forget();
}

void HeldRows::forget() {
  held_ = Held::nothing;
  for (const Tensor& each : made_) CardTensors::storage(each)->wait_for(nullptr);
  for (const Put& each : puts_) CardTensors::storage(each.all)->wait_for(nullptr);
  made_.clear();
  keeps_.clear();
  puts_.clear();
  normed_ = product_ = {};
}

}  // namespace headscope::cuda
