#include "core/attention/seq2seq_ops.h"

#include <Eigen/Core>

#include <algorithm>
#include <cassert>
#include <memory>

#include "core/base/nth.h"
#include "core/tensor/over_rows.h"

namespace headscope {

namespace {
using RowNumbers = Eigen::Map<Eigen::ArrayXf>;
using ConstRowNumbers = Eigen::Map<const Eigen::ArrayXf>;

ConstRowNumbers numbers_at(const Tensor& x, Index row, Index column, Index count) {
  return {x.data() + row * x.stride(0) + column, count};
}
RowNumbers numbers_at(Tensor& x, Index row, Index column, Index count) {
  return {x.mutable_data() + row * x.stride(0) + column, count};
}

/// A gradient that is written once, or added to.
template <class Values>
void put_gradient(Tape::Slot& slot, Index row, Index column, const Values& values) {
  auto to = numbers_at(slot.values, row, column, values.size());
  if (slot.add)
    to += values;
  else
    to = values;
}

/// Slots of what a gradient is asked for; the others have no values.
Tape::Slot slot_of(Tape& tape, const Tensor& x) {
  return tape.active(x) ? tape.into(x) : Tape::Slot{};
}

bool any_active(const Tape* tape, std::initializer_list<const Tensor*> inputs) {
  return tape && std::ranges::any_of(inputs, [&](const Tensor* each) { return tape->active(*each); });
}
}  // namespace

Tensor gru_step(Backend& backend, const Tensor& x, const Tensor& u, const Tensor& state,
                std::span<const std::uint8_t> alive) {
  const Index rows = state.dim(0), h = state.dim(1);
  assert(x.shape() == Shape({rows, 3 * h}) && u.shape() == x.shape() && x.stride(1) == 1 && u.stride(1) == 1 &&
         state.stride(1) == 1 && (alive.empty() || std::ssize(alive) == rows));
  Tape* const tape = backend.tape();
  const bool recorded = any_active(tape, {&x, &u, &state});
  Tensor out = backend.empty({rows, h});
  Tensor gates = backend.empty({rows, 3 * h});  // z, r, n
  const std::vector<std::uint8_t> reads(alive.begin(), alive.end());
  const auto over = [reads](Index row) { return !reads.empty() && nth(reads, row) == 0; };
  over_rows(backend.pool(), rows, 3 * h, 8, [&](Index begin, Index end) {
    for (Index row = begin; row < end; ++row) {
      const auto before = numbers_at(state, row, 0, h);
      auto after = numbers_at(out, row, 0, h);
      if (over(row)) {
        after = before;
        continue;
      }
      auto z = numbers_at(gates, row, 0, h), r = numbers_at(gates, row, h, h), n = numbers_at(gates, row, 2 * h, h);
      z = (numbers_at(x, row, 0, h) + numbers_at(u, row, 0, h)).logistic();
      r = (numbers_at(x, row, h, h) + numbers_at(u, row, h, h)).logistic();
      n = (numbers_at(x, row, 2 * h, h) + r * numbers_at(u, row, 2 * h, h)).tanh();
      after = z * before + (1 - z) * n;
    }
  });
  if (!recorded) return out;
  tape->record(out, [=, &backend, &tape = *tape](const Tensor& d_out) {
    Tape::Slot dx = slot_of(tape, x), du = slot_of(tape, u), dh = slot_of(tape, state);
    over_rows(backend.pool(), rows, 3 * h, 6, [&](Index begin, Index end) {
      Tensor spare = Tensor::uninitialized({1, 3 * h});
      auto dz = numbers_at(spare, 0, 0, h), dr = numbers_at(spare, 0, h, h), dn = numbers_at(spare, 0, 2 * h, h);
      for (Index row = begin; row < end; ++row) {
        const auto d = numbers_at(d_out, row, 0, h);
        if (over(row)) {
          std::fill_n(spare.mutable_data(), 3 * h, 0.0f);
          if (dx.values.defined()) put_gradient(dx, row, 0, numbers_at(std::as_const(spare), 0, 0, 3 * h));
          if (du.values.defined()) put_gradient(du, row, 0, numbers_at(std::as_const(spare), 0, 0, 3 * h));
          if (dh.values.defined()) put_gradient(dh, row, 0, d);
          continue;
        }
        const auto z = numbers_at(gates, row, 0, h), r = numbers_at(gates, row, h, h),
                   n = numbers_at(gates, row, 2 * h, h), before = numbers_at(state, row, 0, h),
                   u_n = numbers_at(u, row, 2 * h, h);
        dn = d * (1 - z) * (1 - n * n);
        dz = d * (before - n) * z * (1 - z);
        dr = dn * u_n * r * (1 - r);
        if (dx.values.defined()) put_gradient(dx, row, 0, numbers_at(std::as_const(spare), 0, 0, 3 * h));
        if (du.values.defined()) {
          put_gradient(du, row, 0, numbers_at(std::as_const(spare), 0, 0, 2 * h));
          put_gradient(du, row, 2 * h, (dn * r).eval());
        }
        if (dh.values.defined()) put_gradient(dh, row, 0, (d * z).eval());
      }
    });
  });
  return out;
}

Tensor additive_context(Backend& backend, const Tensor& query, const Tensor& keys, const Tensor& w,
                        const Tensor& values, std::span<const Index> lengths, Tensor* weights) {
  const Index texts = query.dim(0), a = query.dim(1), h = values.dim(1), states = keys.dim(0) / texts;
  assert(std::ssize(lengths) == texts && keys.shape() == Shape({states * texts, a}) && w.shape() == Shape({a}) &&
         values.dim(0) == keys.dim(0) && w.contiguous());
  assert(std::ranges::all_of(lengths, [&](Index n) { return n > 0 && n <= states; }));
  Tape* const tape = backend.tape();
  const bool recorded = any_active(tape, {&query, &keys, &w, &values});
  Tensor out = backend.empty({texts, h}), alpha = backend.empty({texts, states});
  Tensor bent = backend.empty({texts * states, a});  // tanh(query + key), text by text, for the way back
  const std::vector<Index> own(lengths.begin(), lengths.end());
  over_rows(backend.pool(), texts, states * a, 8, [&](Index begin, Index end) {
    for (Index b = begin; b < end; ++b) {
      const Index n = nth(own, b);
      auto share = numbers_at(alpha, b, 0, states);
      for (Index j = 0; j < n; ++j) {
        auto t = numbers_at(bent, b * states + j, 0, a);
        t = (numbers_at(query, b, 0, a) + numbers_at(keys, j * texts + b, 0, a)).tanh();
        share(j) = (t * ConstRowNumbers(w.data(), a)).sum();
      }
      auto seen = share.head(n);
      seen = (seen - seen.maxCoeff()).exp();
      seen /= seen.sum();
      share.tail(states - n) = 0;
      auto sum = numbers_at(out, b, 0, h);
      sum = share(0) * numbers_at(values, b, 0, h);
      for (Index j = 1; j < n; ++j) sum += share(j) * numbers_at(values, j * texts + b, 0, h);
    }
  });
  if (weights) *weights = alpha;
  if (!recorded) return out;
  tape->record(out, [=, &backend, &tape = *tape](const Tensor& d_out) {
    Tape::Slot dq = slot_of(tape, query), dk = slot_of(tape, keys), dv = slot_of(tape, values);
    const bool to_w = tape.active(w);
    Tensor dw = Tensor::zeros({texts, a});  // by text: their sum must not depend on who was first
    over_rows(backend.pool(), texts, states * a, 6, [&](Index begin, Index end) {
      Eigen::ArrayXf de(states), at_query(a), at_pair(a);
      for (Index b = begin; b < end; ++b) {
        const Index n = nth(own, b);
        const auto d = numbers_at(d_out, b, 0, h);
        const auto share = numbers_at(alpha, b, 0, states);
        for (Index j = 0; j < n; ++j) de(j) = (d * numbers_at(values, j * texts + b, 0, h)).sum();
        const float mean = (share.head(n) * de.head(n)).sum();
        at_query.setZero();
        auto of_w = numbers_at(dw, b, 0, a);
        for (Index j = 0; j < states; ++j) {
          // Rows behind a text's end are written too: nobody else does.
          if (j < n) {
            const float slope = share(j) * (de(j) - mean);
            const auto t = numbers_at(bent, b * states + j, 0, a);
            of_w += slope * t;
            at_pair = slope * ConstRowNumbers(w.data(), a) * (1 - t * t);
            at_query += at_pair;
          } else {
            at_pair.setZero();
          }
          if (dk.values.defined()) put_gradient(dk, j * texts + b, 0, at_pair);
          if (dv.values.defined()) put_gradient(dv, j * texts + b, 0, (share(j) * d).eval());
        }
        if (dq.values.defined()) put_gradient(dq, b, 0, at_query);
      }
    });
    if (!to_w) return;
    Tape::Slot into = tape.into(w);
    auto sum = RowNumbers(into.values.mutable_data(), a);
    if (!into.add) sum.setZero();
    for (Index b = 0; b < texts; ++b) sum += numbers_at(dw, b, 0, a);
  });
  return out;
}

Tensor stack_rows(Backend& backend, const std::vector<Tensor>& parts) {
  Index rows = 0;
  const Index width = parts.front().dim(1);
  for (const Tensor& part : parts) rows += part.dim(0);
  Tensor out = backend.empty({rows, width});
  Index at = 0;
  for (const Tensor& part : parts) {
    assert(part.dim(1) == width && part.stride(1) == 1);
    for (Index row = 0; row < part.dim(0); ++row, ++at) numbers_at(out, at, 0, width) = numbers_at(part, row, 0, width);
  }
  Tape* const tape = backend.tape();
  if (!tape || std::ranges::none_of(parts, [&](const Tensor& each) { return tape->active(each); })) return out;
  tape->record(out, [parts, &backend, &tape = *tape](const Tensor& d_out) {
    Index from = 0;
    for (const Tensor& part : parts) {
      if (tape.active(part)) backend.accumulate(d_out.slice(0, from, from + part.dim(0)), tape.into(part));
      from += part.dim(0);
    }
  });
  return out;
}

}  // namespace headscope
