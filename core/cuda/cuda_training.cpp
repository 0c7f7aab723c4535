#include "core/cuda/cuda_training.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <utility>

namespace headscope::cuda {

/// A matrix as a product reads it; `keeps` its numbers, where they are others.
struct Products::Side {
  Device::Laid laid;
  Tensor tensor;
  std::shared_ptr<float> halves;
};

Products::Side Products::side(const Tensor& x) const {
  Side out{{nullptr, 0, false}, x, nullptr};
  if (x.stride(1) != 1 && x.stride(0) != 1) out.tensor = card_.without_gaps(x);
  const bool transposed = out.tensor.stride(1) != 1;
  const int row = transposed ? 1 : 0;  // the axis whose neighbours lie apart
  const Index rows = x.dim(row), width = x.dim(1 - row);
  // Of a single row nobody asks where the next one would be.
  const Index stride = rows == 1 ? width : out.tensor.stride(row);
  const float* const first = CardTensors::place(out.tensor);
  out.laid = {first, stride, transposed};
  if (precision_ != Precision::bf16) return out;
  out.halves = card_.device()->take(static_cast<std::size_t>(x.size()) * 2);
  to_bfloat(first, rows, width, stride, out.halves.get(), card_.stream());
  out.laid = {out.halves.get(), width, transposed};
  return out;
}

void Products::multiply(const Tensor& a, const Tensor& b, const float* bias, const Tensor& c, bool add) const {
  assert(a.dim(1) == b.dim(0) && c.dim(0) == a.dim(0) && c.dim(1) == b.dim(1) && c.stride(1) == 1);
  const Side left = side(a), right = side(b);
  card_.write(c, [&](float* to) {
    const Index rows = c.dim(0), out = c.dim(1);
    card_.device()->multiply({kind_of(precision_), compute_of(precision_), left.laid, right.laid, rows, a.dim(1), out,
                              to, rows == 1 ? out : c.stride(0), bias, add});
  });
}

template <class... Inputs>
Tape* Recorder::tape_for(const Inputs&... inputs) const {
  Tape* const tape = backend_.tape();
  return tape && (tape->active(inputs) || ...) ? tape : nullptr;
}

/// kernel(where, add) writes the gradient of x, or adds it; through a copy where it has gaps.
template <class Kernel>
void Recorder::write(Tape& tape, const Tensor& x, Kernel kernel) const {
  const Tape::Slot slot = tape.into(x);
  if (slot.values.contiguous()) return card_.write(slot.values, [&](float* to) { kernel(to, slot.add); });
  card_.accumulate(card_.made(x.shape(), [&](float* to) { kernel(to, false); }), slot.values, slot.add);
}

void Recorder::of_one(const Tensor& out, const Tensor& x, Back back) {
  if (Tape* const tape = tape_for(x))
    tape->record(out, [this, tape, x, back = std::move(back)](const Tensor& d_out) {
      const Operand d = card_.on_card(d_out);
      write(*tape, x, [&](float* dx, bool add) { back(d.data, dx, add); });
    });
}

void Recorder::scale(const Tensor& out, const Tensor& x, float factor) {
  of_one(out, x, [this, factor, n = x.size()](const float* d, float* dx, bool add) {
    scale_back(d, factor, n, add, dx, card_.stream());
  });
}

void Recorder::multiply(const Tensor& out, const Tensor& a, const Operand& left, const Tensor& b,
                        const Operand& right) {
  Tape* const tape = tape_for(a, b);
  if (!tape) return;
  tape->record(out, [this, tape, a, left, b, right](const Tensor& d_out) {
    const Operand d = card_.on_card(d_out);
    for (const auto& [x, other] : {std::pair(&a, &right), std::pair(&b, &left)})
      if (tape->active(*x))
        write(*tape, *x, [&, by = other->data](float* dx, bool add) {
          multiply_back(d.data, by, d_out.size(), add, dx, card_.stream());
        });
  });
}

void Recorder::activate(const Tensor& out, Curve f, const Tensor& x, const Operand& in) {
  of_one(out, x, [this, f, in, n = x.size()](const float* d, float* dx, bool add) {
    activate_back(f, in.data, d, n, add, dx, card_.stream());
  });
}

void Recorder::norm(const Tensor& out, const Tensor& x, const Operand& in, const Tensor& gain, const Operand& by,
                    const Tensor& bias, double epsilon) {
  Tape* const tape = tape_for(x, gain, bias);
  if (!tape) return;
  tape->record(out, [this, tape, x, in, gain, by, bias, epsilon](const Tensor& d_out) {
    const Index width = x.dim(-1), rows = x.size() / width, sets = gain.size() / width;
    const Operand d = card_.on_card(d_out);
    const std::shared_ptr<float> of_rows = card_.device()->take(2 * sizeof(float) * static_cast<std::size_t>(rows));
    const auto to_x = [&](float* dx, bool add) {
      norm_back(in.data, by.data, bias.defined(), d.data, rows, width, sets, static_cast<float>(epsilon), of_rows.get(),
                add, dx, card_.stream());
    };
    if (tape->active(x))
      write(*tape, x, to_x);
    else
      to_x(nullptr, false);
    Tape::Slot slots[2];
    Into into[2];
    for (int i = 0; i < 2; ++i) {
      const Tensor& weight = i == 0 ? gain : bias;
      if (!tape->active(weight)) continue;
      slots[i] = tape->into(weight);
      into[i] = {CardTensors::place(slots[i].values), slots[i].add};
    }
    if (!into[0].to && !into[1].to) return;
    norm_weights_back(in.data, of_rows.get(), d.data, rows, width, sets, into[0], into[1], card_.stream());
    check(cudaGetLastError(), "starting a kernel");
    for (const Tape::Slot& slot : slots)
      if (slot.values.defined()) CardTensors::storage(slot.values)->written_on_card();
  });
}

void Recorder::rotate(const Tensor& out, const Tensor& x, const Operand& cosine, const Operand& sine, bool adjacent) {
  Tape* const tape = tape_for(x);
  if (!tape) return;
  tape->record(out, [this, tape, x, cosine, sine, adjacent](const Tensor& d_out) {
    const Operand d = card_.heads_on_card(d_out);
    const Tape::Slot slot = tape->into(x);
    card_.write(slot.values, [&](float* dx) {
      turn(CardTensors::heads(d), cosine.data, sine.data, cosine.keeps.dim(1), adjacent, -1, dx, slot.values.stride(0),
           slot.values.stride(1), slot.add, card_.stream());
    });
  });
}

void Recorder::gather(const Tensor& out, const Tensor& table, std::span<const std::int32_t> ids) {
  Tape* const tape = tape_for(table);
  if (!tape) return;
  // Rows that were picked several times are summed one after another, by one block each: sorted by what they picked.
  std::vector<std::int32_t> next(static_cast<std::size_t>(table.dim(0)) + 1), order(ids.size()), begin, which;
  for (const std::int32_t id : ids) ++next[static_cast<std::size_t>(id) + 1];
  for (std::size_t id = 0; id + 1 < next.size(); ++id) {
    if (next[id + 1] > 0) {
      begin.push_back(next[id]);
      which.push_back(static_cast<std::int32_t>(id));
    }
    next[id + 1] += next[id];
  }
  const auto count = static_cast<Index>(which.size());
  for (std::size_t i = 0; i < ids.size(); ++i)
    order[static_cast<std::size_t>(next[static_cast<std::size_t>(ids[i])]++)] = static_cast<std::int32_t>(i);
  begin.push_back(static_cast<std::int32_t>(ids.size()));
  order.insert(order.end(), begin.begin(), begin.end());
  order.insert(order.end(), which.begin(), which.end());
  const std::shared_ptr<float> sent = card_.device()->upload(order.data(), order.size() * sizeof order[0]);
  tape->record(out, [this, tape, table, sent, count, picked = static_cast<Index>(ids.size())](const Tensor& d_out) {
    const Operand d = card_.on_card(d_out);
    const Tape::Slot slot = tape->into(table);
    if (!slot.add) backend_.clear(slot.values);
    const auto* const lists = reinterpret_cast<const std::int32_t*>(sent.get());
    card_.write(slot.values, [&](float* sum) {
      gather_back(d.data, {lists, lists + picked, lists + picked + count + 1, count}, table.dim(1),
                  slot.values.stride(0), sum, card_.stream());
    });
  });
}

Tensor Recorder::linear(const Tensor& x, const Linear& w) {
  assert(x.rank() == 2 && x.dim(1) == w.in() && !w.packed);
  const Tensor rows = here(x);
  Tensor out = card_.room({x.dim(0), w.out()});
  std::vector<Tensor> parts;
  Index column = 0;
  bool active = false;
  for (std::size_t i = 0; i < w.parts.size(); ++i) {
    const Index width = w.parts[i].dim(1);
    parts.push_back(here(w.parts[i]));
    const Operand bias = w.biases[i].defined() ? card_.on_card(w.biases[i]) : Operand{};
    products_.multiply(rows, parts.back(), bias.data, out.slice(1, column, column + width), false);
    column += width;
    active = active || tape_for(w.parts[i], w.biases[i]);
  }
  if (active || tape_for(x))
    backend_.tape()->record(out, [this, &tape = *backend_.tape(), x, rows, w, parts = std::move(parts)](
                                     const Tensor& d_out) { linear_back(tape, x, rows, w, parts, d_out); });
  return out;
}

// y = x W + b:  dx = dy Wᵀ,  dW = xᵀ dy,  db = Σ rows of dy.
void Recorder::linear_back(Tape& tape, const Tensor& x, const Tensor& rows, const Linear& w,
                           const std::vector<Tensor>& parts, const Tensor& d_out) const {
  const Tensor all = here(d_out);
  Tape::Slot to_x{};
  Tensor dx;  // to_x, or a place for what goes there
  if (tape.active(x)) {
    to_x = tape.into(x);
    dx = to_x.values.stride(1) == 1 ? to_x.values : card_.room(x.shape());
  }
  const bool direct = dx.defined() && to_x.values.stride(1) == 1;
  Index column = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Tensor dy = all.slice(1, column, column + parts[i].dim(1));
    column += dy.dim(1);
    if (tape.active(w.parts[i])) {
      const Tape::Slot slot = tape.into(w.parts[i]);
      if (slot.values.stride(1) == 1)
        products_.multiply(rows.transpose(0, 1), dy, nullptr, slot.values, slot.add);
      else  // stored (out, in)
        products_.multiply(dy.transpose(0, 1), rows, nullptr, slot.values.transpose(0, 1), slot.add);
    }
    if (tape.active(w.biases[i])) {
      const Tape::Slot slot = tape.into(w.biases[i]);
      card_.write(slot.values, [&](float* sum) {
        column_sums(CardTensors::place(dy), dy.stride(0), dy.dim(0), dy.dim(1), slot.add, sum, card_.stream());
      });
    }
    if (dx.defined()) products_.multiply(dy, parts[i].transpose(0, 1), nullptr, dx, i > 0 || (direct && to_x.add));
  }
  if (dx.defined() && !direct) card_.accumulate(dx, to_x.values, to_x.add);
}

Backend::Loss Recorder::cross_entropy(const Tensor& logits, std::span<const std::int32_t> targets) {
  const Index rows = logits.dim(0), vocab = logits.dim(1);
  assert(logits.rank() == 2 && static_cast<Index>(targets.size()) == rows);
  const auto counted = std::ranges::count_if(targets, [](std::int32_t target) { return target >= 0; });
  assert(counted > 0);
  const std::shared_ptr<Device>& device = card_.device();
  const Operand in = card_.on_card(logits);
  const std::size_t bytes = targets.size() * sizeof(double);
  const std::shared_ptr<float> sent = device->upload(targets.data(), targets.size_bytes()),
                               of_rows = device->take(2 * sizeof(float) * targets.size()), nats = device->take(bytes),
                               home = device->pinned(bytes);
  const auto* const goals = reinterpret_cast<const std::int32_t*>(sent.get());
  cuda::cross_entropy(in.data, goals, rows, vocab, of_rows.get(), reinterpret_cast<double*>(nats.get()),
                      card_.stream());
  check(cudaMemcpyAsync(home.get(), nats.get(), bytes, cudaMemcpyDeviceToHost, card_.stream()), "copying the loss");
  device->synchronize();
  Backend::Loss loss;
  for (std::size_t i = 0; i < targets.size(); ++i) loss.nats += reinterpret_cast<const double*>(home.get())[i];
  loss.nats /= static_cast<double>(counted);
  loss.mean = Tensor::full({1}, static_cast<float>(loss.nats));
  if (Tape* const tape = tape_for(logits))
    tape->record(loss.mean, [this, tape, logits, in, sent, of_rows, rows, vocab, goals,
                             share = static_cast<float>(1.0 / static_cast<double>(counted))](const Tensor& d_loss) {
      const Operand d = card_.on_card(d_loss);
      write(*tape, logits, [&](float* to, bool add) {
        cross_entropy_back(in.data, goals, of_rows.get(), d.data, share, rows, vocab, add, to, card_.stream());
      });
    });
  return loss;
}

namespace {

/// part(first number, how many) for every part of so many numbers.
template <class Take>
void in_parts(Index size, Take take) {
  for (Index at = 0; at < size; at += part_size) take(at, static_cast<int>(std::min<Index>(part_size, size - at)));
}

std::shared_ptr<float> sent(const std::vector<Part>& parts, Device& device) {
  return device.upload(parts.data(), parts.size() * sizeof parts[0]);
}

const Part* parts_at(const std::shared_ptr<float>& place) {
  return reinterpret_cast<const Part*>(place.get());
}

}  // namespace

double Updates::gradient_norm(std::span<const Tensor> gradients) {
  const std::shared_ptr<Device>& device = card_.device();
  device->choose();
  std::vector<Operand> operands;
  std::vector<Part> parts;
  for (const Tensor& each : gradients) {
    operands.push_back(card_.on_card(each));
    in_parts(each.size(), [&](Index at, int count) {
      parts.push_back({operands.back().data + at, nullptr, nullptr, nullptr, 1, count});
    });
  }
  if (parts.empty()) return 0;
  const std::size_t bytes = parts.size() * sizeof(double);
  const std::shared_ptr<float> list = sent(parts, *device), sums = device->take(bytes), home = device->pinned(bytes);
  sums_of_squares(parts_at(list), static_cast<Index>(parts.size()), reinterpret_cast<double*>(sums.get()),
                  card_.stream());
  check(cudaGetLastError(), "starting a kernel");
  check(cudaMemcpyAsync(home.get(), sums.get(), bytes, cudaMemcpyDeviceToHost, card_.stream()),
        "copying the gradients' norm");
  device->synchronize();
  double sum = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) sum += reinterpret_cast<const double*>(home.get())[i];
  return std::sqrt(sum);
}

void Updates::adamw(const AdamWRow& row, std::span<const Update> updates) {
  const std::shared_ptr<Device>& device = card_.device();
  device->choose();
  std::vector<Operand> gradients;
  std::vector<Part> parts;
  for (const Update& each : updates) {
    assert(card_.ours(each.first) && card_.ours(each.second) && card_.ours(each.weight));
    gradients.push_back(card_.on_card(each.gradient));
    float *const first = CardTensors::place(each.first), *const second = CardTensors::place(each.second),
                 *const weight = CardTensors::place(each.weight);
    in_parts(each.weight.size(), [&](Index at, int count) {
      parts.push_back({gradients.back().data + at, first + at, second + at, weight + at, each.keep, count});
    });
  }
  if (parts.empty()) return;
  const std::shared_ptr<float> list = sent(parts, *device);
  cuda::adamw(row, parts_at(list), static_cast<Index>(parts.size()), card_.stream());
  check(cudaGetLastError(), "starting a kernel");
  for (const Update& each : updates)
    for (const Tensor* to : {&each.first, &each.second, &each.weight}) CardTensors::storage(*to)->written_on_card();
}

}  // namespace headscope::cuda
