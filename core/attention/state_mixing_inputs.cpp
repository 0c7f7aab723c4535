// What the state of a layer gets: its inputs by a short convolution, its steps, its decays.

#include <algorithm>
#include <cassert>
#include <memory>
#include <vector>

#include "core/attention/state_lanes.h"
#include "core/attention/state_mixing.h"
#include "core/base/nth.h"
#include "core/tensor/over_rows.h"

namespace headscope {
namespace {

// Sums over rows are taken by one thread for so many columns: none depends on the threads.
constexpr Index block_columns = 64;

/// body(begin, end) for blocks of columns.
template <class Body>
void over_columns(ThreadPool& pool, Index columns, Body body) {
  pool.parallel(static_cast<int>((columns + block_columns - 1) / block_columns),
                [&](int block, int) { body(block * block_columns, std::min(columns, (block + 1) * block_columns)); });
}

/// A gradient's place, or, where nobody asks for it, one that nobody reads.
Tape::Slot slot(Backend& backend, Tape& tape, const Tensor& x) {
  return tape.active(x) ? tape.into(x) : Tape::Slot{backend.empty(x.shape()), false};
}

/// sum += a · b
void add_product(const float* a, const float* b, Index n, float* sum) {
  for (Index i = 0; i < n; ++i) sum[i] += a[i] * b[i];
}

std::vector<Index> beginnings(std::span<const Index> lengths, Index rows) {
  std::vector<Index> of_row;  // where the text of each row begins
  if (lengths.empty()) return std::vector<Index>(static_cast<std::size_t>(rows), 0);
  for (const Index length : lengths) of_row.insert(of_row.end(), static_cast<std::size_t>(length), std::ssize(of_row));
  assert(std::ssize(of_row) == rows);
  return of_row;
}

}  // namespace

Tensor causal_convolution(Backend& backend, const Tensor& x, const Tensor& weight, const Tensor& bias,
                          const Tensor& before, std::span<const Index> lengths) {
  const Index rows = x.dim(0), channels = x.dim(1), taps = weight.dim(1);
  assert(x.stride(1) == 1 && weight.dim(0) == channels && (!bias.defined() || bias.contiguous()));
  assert(!before.defined() ||
         (before.shape() == Shape({taps - 1, channels}) && before.contiguous() && lengths.size() < 2));
  const Tensor by_tap = weight.transpose(0, 1).copy();  // (taps, channels): channels are what loops run along
  const auto begin_of = std::make_shared<const std::vector<Index>>(beginnings(lengths, rows));
  Tensor out = backend.empty({rows, channels});
  over_rows(backend.pool(), rows, channels, taps, [&](Index begin, Index end) {
    for (Index t = begin; t < end; ++t) {
      float* const to = &out.ref(t, 0);
      if (bias.defined())
        std::copy_n(bias.data(), channels, to);
      else
        std::fill_n(to, channels, 0.0f);
      for (Index j = 0; j < taps; ++j) {
        const Index from = t - taps + 1 + j;
        if (from >= nth(*begin_of, t))
          add_product(by_tap.data() + j * channels, x.data() + from * x.stride(0), channels, to);
        else if (before.defined())
          add_product(by_tap.data() + j * channels, before.data() + (from + taps - 1) * channels, channels, to);
      }
    }
  });
  Tape* const tape = backend.tape();
  if (!tape || !(tape->active(x) || tape->active(weight) || tape->active(bias))) return out;
  assert(!before.defined());
  tape->record(out, [=, &backend, &tape = *tape](const Tensor& d_out) {
    const Tape::Slot to_x = slot(backend, tape, x), to_weight = slot(backend, tape, weight);
    const Tape::Slot to_bias = bias.defined() ? slot(backend, tape, bias) : Tape::Slot{};
    Tensor dx = to_x.values, d_weight = to_weight.values, d_bias = to_bias.values;
    over_columns(backend.pool(), channels, [&](Index begin, Index end) {
      const Index width = end - begin;
      std::vector<float> sums(static_cast<std::size_t>((taps + 1) * width), 0.0f);  // of every tap, then of the bias
      if (!to_x.add)
        for (Index t = 0; t < rows; ++t) std::fill_n(&dx.ref(t, begin), width, 0.0f);
      for (Index t = 0; t < rows; ++t) {
        const float* const dy = d_out.data() + t * channels + begin;
        for (Index j = std::max<Index>(0, nth(*begin_of, t) - t + taps - 1); j < taps; ++j) {
          const Index from = t - taps + 1 + j;
          add_product(dy, x.data() + from * x.stride(0) + begin, width, sums.data() + j * width);
          add_product(dy, by_tap.data() + j * channels + begin, width, &dx.ref(from, begin));
        }
        for (Index c = 0; c < width; ++c) nth(sums, taps * width + c) += dy[c];
      }
      for (Index c = 0; c < width; ++c) {
        for (Index j = 0; j < taps; ++j) {
          float& to = d_weight.ref(begin + c, j);
          to = nth(sums, j * width + c) + (to_weight.add ? to : 0.0f);
        }
        if (!d_bias.defined()) continue;
        float& to = d_bias.ref(begin + c);
        to = nth(sums, taps * width + c) + (to_bias.add ? to : 0.0f);
      }
    });
  });
  return out;
}

Tensor softplus(Backend& backend, const Tensor& x, const Tensor& bias) {
  const Index rows = x.dim(0), channels = x.dim(1);
  assert(x.stride(1) == 1 && (!bias.defined() || (bias.contiguous() && bias.dim(0) == channels)));
  Tensor out = backend.empty({rows, channels});
  over_rows(backend.pool(), rows, channels, 8, [&](Index begin, Index end) {
    for (Index t = begin; t < end; ++t)
      state_lanes::softplus(x.data() + t * x.stride(0), bias.defined() ? bias.data() : nullptr, channels,
                            &out.ref(t, 0));
  });
  Tape* const tape = backend.tape();
  if (!tape || !(tape->active(x) || tape->active(bias))) return out;
  tape->record(out, [=, &backend, &tape = *tape](const Tensor& d_out) {
    const Tape::Slot to_x = slot(backend, tape, x);
    const Tape::Slot to_bias = bias.defined() ? slot(backend, tape, bias) : Tape::Slot{};
    Tensor dx = to_x.values, d_bias = to_bias.values;
    over_columns(backend.pool(), channels, [&](Index begin, Index end) {
      const Index width = end - begin;
      float slopes[block_columns], sums[block_columns] = {};
      for (Index t = 0; t < rows; ++t) {
        state_lanes::softplus_back(x.data() + t * x.stride(0) + begin, bias.defined() ? bias.data() + begin : nullptr,
                                   d_out.data() + t * channels + begin, width, slopes);
        float* const to = &dx.ref(t, begin);
        for (Index c = 0; c < width; ++c) {
          sums[c] += slopes[c];
          to[c] = slopes[c] + (to_x.add ? to[c] : 0.0f);
        }
      }
      if (d_bias.defined())
        for (Index c = 0; c < width; ++c) d_bias.ref(begin + c) = sums[c] + (to_bias.add ? d_bias.at(begin + c) : 0.0f);
    });
  });
  return out;
}

Tensor decay_rates(Backend& backend, const Tensor& x) {
  assert(x.contiguous());
  Tensor out = backend.empty(x.shape());
  over_rows(backend.pool(), x.size(), 1, 4, [&](Index begin, Index end) {
    state_lanes::minus_exp(x.data() + begin, end - begin, out.mutable_data() + begin);
  });
  Tape* const tape = backend.tape();
  if (tape && tape->active(x))
    tape->record(out, [=, &backend, &tape = *tape](const Tensor& d_out) {
      Tape::Slot to = tape.into(x);
      float* const dx = to.values.mutable_data();
      over_rows(backend.pool(), x.size(), 1, 1, [&](Index begin, Index end) {
        for (Index i = begin; i < end; ++i) dx[i] = d_out.data()[i] * out.data()[i] + (to.add ? dx[i] : 0.0f);
      });
    });
  return out;
}

}  // namespace headscope
