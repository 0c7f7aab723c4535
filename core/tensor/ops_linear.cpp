// Products with weights, and rows of tables.

#include <algorithm>
#include <cassert>
#include <cstring>
#include <vector>

#include "core/tensor/backend.h"
#include "core/tensor/over_rows.h"
#include "core/tensor/products.h"
#include "core/tensor/row_gradients.h"
#include "core/tensor/row_queue.h"

namespace headscope {

Index Linear::out() const {
  Index sum = 0;
  for (const Tensor& part : parts) sum += part.dim(1);
  return sum;
}

std::shared_ptr<const PackedMatrix> Backend::pack(std::span<const Tensor> weights) {
  return PackedMatrix::pack(weights, pool_);
}

Linear Backend::linear_weights(std::vector<Tensor> weights, const std::vector<Tensor>& biases, bool changing) {
  Linear linear;
  linear.biases = biases;
  linear.biases.resize(weights.size());
  if (changing) {
    // Slices of one stored matrix (GPT-2's q, k and v) are one product.
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (i > 0) {
        Tensor& last_bias = linear.biases[linear.parts.size() - 1];
        const Tensor wide = Tensor::joined(linear.parts.back(), weights[i], 1);
        const bool plain = !last_bias.defined() && !linear.biases[i].defined();
        const Tensor long_bias = last_bias.defined() && linear.biases[i].defined()
                                     ? Tensor::joined(last_bias, linear.biases[i], 0)
                                     : Tensor();
        if (wide.defined() && (plain || long_bias.defined())) {
          linear.parts.back() = wide;
          last_bias = long_bias;
          continue;
        }
      }
      linear.biases[linear.parts.size()] = linear.biases[i];
      linear.parts.push_back(weights[i]);
    }
    linear.biases.resize(linear.parts.size());
    return linear;
  }
  linear.packed = pack(weights);
  if (std::ranges::any_of(biases, [](const Tensor& b) { return b.defined(); })) {
    linear.bias = Tensor::zeros({linear.packed->out()});
    Index column = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (i < biases.size() && biases[i].defined())
        for (Index j = 0; j < biases[i].dim(0); ++j) linear.bias.ref(column + j) = biases[i].at(j);
      column += weights[i].dim(1);
    }
  }
  linear.parts = std::move(weights);
  return linear;
}

Tensor Backend::linear(const Tensor& x, const Linear& w, RowQueue* later) {
  assert(x.rank() == 2 && x.dim(1) == w.in() && !(later && tape_));
  const bool noted = later && w.packed && w.packed->by_rows() && later->pays(x.dim(0));
  if (later && (!noted || x.stride(1) != 1)) later->run();
  const Tensor rows = x.stride(1) == 1 ? x : x.copy();
  Tensor out = empty({x.dim(0), w.out()});
  if (noted) {
    later->add(x.dim(0), w.in() * w.out(),
               [rows, packed = w.packed, bias = w.bias, out](Index begin, Index end) mutable {
                 packed->multiply_rows(rows, bias.data(), out, begin, end);
               });
  } else if (w.packed) {
    w.packed->multiply(rows, w.bias.defined() ? w.bias.data() : nullptr, out, pool_);
  } else {
    std::vector<Product> products;
    Index column = 0;
    for (std::size_t i = 0; i < w.parts.size(); ++i) {
      const Index width = w.parts[i].dim(1);
      products.push_back({rows, w.parts[i], w.biases[i], out.slice(1, column, column + width)});
      column += width;
    }
    headscope::multiply(products, pool_);
  }
  if (tape_) {
    bool active = tape_->active(x);
    for (const auto* tensors : {&w.parts, &w.biases})
      for (const Tensor& t : *tensors) active = active || tape_->active(t);
    if (active)
      tape_->record(out, [this, &tape = *tape_, x, w](const Tensor& d_out) { linear_backward(tape, x, w, d_out); });
  }
  return out;
}

// y = x W + b:  dx = dy Wᵀ,  dW = xᵀ dy,  db = Σ rows of dy.
void Backend::linear_backward(Tape& tape, const Tensor& x, const Linear& w, const Tensor& d_out) {
  const Tensor rows = x.stride(1) == 1 ? x : x.copy();
  std::vector<Product> together, after;  // products that write into one sum run one after another
  Index column = 0;
  for (std::size_t i = 0; i < w.parts.size(); ++i) {
    const Tensor& weight = w.parts[i];
    const Tensor dy = d_out.slice(1, column, column + weight.dim(1));
    column += weight.dim(1);
    if (tape.active(weight)) {
      const Tape::Slot slot = tape.into(weight);
      if (slot.values.stride(1) == 1)
        together.push_back({rows.transpose(0, 1), dy, {}, slot.values, slot.add});
      else  // stored (out, in)
        together.push_back({dy.transpose(0, 1), rows, {}, slot.values.transpose(0, 1), slot.add});
    }
    if (tape.active(w.biases[i])) column_sums(dy, tape.into(w.biases[i]));
    if (tape.active(x)) {
      const Tape::Slot slot = tape.into(x);
      (i == 0 ? together : after).push_back({dy, weight.transpose(0, 1), {}, slot.values, slot.add});
    }
  }
  headscope::multiply(together, pool_);
  for (Product& product : after) {
    product.add = true;
    headscope::multiply(std::span(&product, 1), pool_);
  }
}

void Backend::column_sums(const Tensor& x, const Tape::Slot& into) {
  const Index rows = x.dim(0), width = x.dim(1), tiles = (rows + sum_tile_rows - 1) / sum_tile_rows;
  Tensor partial = empty({tiles, width});
  pool_.parallel(static_cast<int>(tiles), [&](int tile, int) {
    const Index begin = tile * sum_tile_rows, end = std::min(rows, begin + sum_tile_rows);
    for (Index r = begin; r < end; ++r)
      row_gradients::accumulate(x.data() + r * x.stride(0), width, r > begin, &partial.ref(tile, 0));
  });
  Tensor sum = into.values;
  for (Index tile = 0; tile < tiles; ++tile)
    row_gradients::accumulate(&partial.ref(tile, 0), width, into.add || tile > 0, sum.mutable_data());
}

Tensor Backend::gather(const Tensor& table, std::span<const std::int32_t> ids) {
  const Index width = table.dim(1);
  Tensor out = empty({static_cast<Index>(ids.size()), width});
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const Index id = ids[i];
    assert(id >= 0 && id < table.dim(0) && table.stride(1) == 1);
    float* const to = &out.ref(static_cast<Index>(i), 0);
    if (table.kind() == Stored::f32)
      std::memcpy(to, table.data() + id * table.stride(0), static_cast<std::size_t>(width) * sizeof(float));
    else
      stored::decode(table.kind(), table.stored(), table.first() + id * table.stride(0), width, to);
  }
  if (tape_ && tape_->active(table)) {
    tape_->record(out, [this, &tape = *tape_, table,
                        kept = std::vector<std::int32_t>(ids.begin(), ids.end())](const Tensor& d_out) {
      const Tape::Slot slot = tape.into(table);
      Tensor sum = slot.values;
      const Index columns = sum.dim(1);
      if (!slot.add) std::ranges::fill(sum.mutable_values(), 0.0f);
      // Each task has its own columns, so that rows picked twice are added in order.
      const Index strip = std::max<Index>(32, columns / (4 * pool_.threads()));
      pool_.parallel(static_cast<int>((columns + strip - 1) / strip), [&](int task, int) {
        const Index first = task * strip, count = std::min(strip, columns - first);
        for (std::size_t i = 0; i < kept.size(); ++i)
          row_gradients::accumulate(d_out.data() + static_cast<Index>(i) * columns + first, count, true,
                                    &sum.ref(kept[i], first));
      });
    });
  }
  return out;
}

}  // namespace headscope
