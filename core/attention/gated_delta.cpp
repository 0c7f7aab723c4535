#include "core/attention/gated_delta.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <vector>

#include "core/attention/delta_lanes.h"
#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/tensor/over_rows.h"

namespace headscope {
namespace {

namespace lanes = delta_lanes;

// A pass that is recorded keeps the state before each stretch of so many tokens; the way back runs a stretch once more.
constexpr Index stretch_tokens = 32;

/// The numbers of each row of x from `place` on.
lanes::Rows numbers_from(const Tensor& x, Index row, Index place) {
  return {x.data() + row * x.stride(0) + place, x.stride(0)};
}
lanes::WritableRows numbers_from(Tensor& x, Index row, Index place) {
  return {x.mutable_data() + row * x.stride(0) + place, x.stride(0)};
}

/// The op's inputs, head by head and in stretches of the tokens of a text.
class Deltas {
 public:
  explicit Deltas(const GatedDelta& in)
      : in_(in), rows(in.v.dim(0)), heads(in.v.dim(1)), values(in.v.dim(2)), groups(in.k.dim(1)), keys(in.k.dim(2)) {
    assert(in.q.shape() == Shape({rows, groups, keys}) && in.k.shape() == in.q.shape() && heads % groups == 0);
    assert(in.delta.shape() == Shape({rows, heads}) && in.beta.shape() == in.delta.shape() && in.a.size() == heads);
    const std::span<const Index> lengths = in.lengths.empty() ? std::span(&rows, 1) : in.lengths;
    for (const Index length : lengths) {
      begin.push_back(begin.back() + length);
      stretches.push_back(stretches.back() + (length + stretch_tokens - 1) / stretch_tokens);
    }
    assert(begin.back() == rows);
    in_.lengths = {};
    keeps_ = Tensor::uninitialized({heads, rows});
    for (Index head = 0; head < heads; ++head)
      for (Index t = 0; t < rows; ++t) keeps_.ref(head, t) = std::exp(in.delta.at(t, head) * pace(head));
  }

  const GatedDelta& in() const { return in_; }
  Index texts() const { return std::ssize(begin) - 1; }
  Index state_size() const { return keys * values; }
  Index group(Index head) const { return head / (heads / groups); }
  float pace(Index head) const { return in_.a.data()[head]; }
  /// From row `row` on.
  lanes::Head head(Index head, Index row) const {
    return {keys,
            values,
            numbers_from(in_.q, row, group(head) * keys),
            numbers_from(in_.k, row, group(head) * keys),
            numbers_from(in_.v, row, head * values),
            numbers_from(in_.beta, row, head),
            keeps_.data() + head * rows + row};
  }
  /// body(row, n, stretch) for the stretches of a text, first to last or last to first.
  template <class Body>
  void over_stretches(Index text, bool backwards, Body body) const {
    const Index first = nth(stretches, text), end = nth(stretches, text + 1);
    for (Index i = 0; i < end - first; ++i) {
      const Index stretch = backwards ? end - 1 - i : first + i,
                  row = nth(begin, text) + (stretch - first) * stretch_tokens;
      body(row, std::min(stretch_tokens, nth(begin, text + 1) - row), stretch);
    }
  }

 private:
  GatedDelta in_;  // without lengths

 public:
  Index rows, heads, values, groups, keys;
  std::vector<Index> begin{0};      ///< row of every text, then their number
  std::vector<Index> stretches{0};  ///< first stretch of every text, then their number

 private:
  Tensor keeps_;  // (heads, rows)
};

/// A gradient's place, or, where nobody asks for it, one that nobody reads.
Tape::Slot asked_or_spare(Backend& backend, Tape& tape, const Tensor& x) {
  return tape.active(x) ? tape.into(x) : Tape::Slot{backend.empty(x.shape()), false};
}

/// The way back. Each task takes a head of one text; what heads and texts share is then summed in their order.
void way_back(Backend& backend, Tape& tape, const Deltas& m, const Tensor& before, const Tensor& d_o) {
  const GatedDelta& in = m.in();
  Tape::Slot v = asked_or_spare(backend, tape, in.v), beta = asked_or_spare(backend, tape, in.beta);
  Tensor q = backend.empty({m.rows, m.heads, m.keys}), k = backend.empty({m.rows, m.heads, m.keys}),
         decay = backend.empty({m.heads, m.rows});
  over_rows(backend.pool(), m.texts() * m.heads, m.rows / m.texts() * m.state_size(), 8, [&](Index begin, Index end) {
    const Index size = m.state_size();
    Tensor scratch = backend.empty({(stretch_tokens + 1) * size + (stretch_tokens + 2) * m.values});
    float *const g = scratch.mutable_data(), *const more = g + (stretch_tokens + 1) * size;
    const lanes::WritableRows s{g + size, size}, o{more + 2 * m.values, m.values};
    for (Index task = begin; task < end; ++task) {
      const Index text = task / m.heads, head = task % m.heads;
      std::fill_n(g, size, 0.0f);
      m.over_stretches(text, true, [&](Index row, Index n, Index stretch) {
        const lanes::Head own = m.head(head, row);
        const float* const from = before.data() + (stretch * m.heads + head) * size;
        lanes::mix(own, n, from, s, o);
        lanes::HeadGradients out;
        out.q = numbers_from(q, row, head * m.keys);
        out.k = numbers_from(k, row, head * m.keys);
        out.v = numbers_from(v.values, row, head * m.values);
        out.beta = numbers_from(beta.values, row, head);
        out.add_v = v.add, out.add_beta = beta.add;
        out.decay = &decay.ref(head, row);
        lanes::back(own, n, from, {s.data, s.step}, numbers_from(d_o, row, head * m.values), g, more, out);
      });
    }
  });
  // What the heads of a group found for its query, or key.
  for (const auto& [x, by_head] : {std::pair(&in.q, &q), std::pair(&in.k, &k)}) {
    if (!tape.active(*x)) continue;
    Tape::Slot to = tape.into(*x);
    for (Index row = 0; row < m.rows; ++row)
      for (Index head = 0; head < m.heads; ++head) {
        const bool add = to.add || head % (m.heads / m.groups) > 0;
        for (Index i = 0; i < m.keys; ++i) {
          float& sum = to.values.ref(row, m.group(head), i);
          sum = by_head->at(row, head, i) + (add ? sum : 0.0f);
        }
      }
  }
  // The decay is e^(Δ a).
  if (tape.active(in.delta)) {
    Tape::Slot to = tape.into(in.delta);
    for (Index row = 0; row < m.rows; ++row)
      for (Index head = 0; head < m.heads; ++head) {
        float& sum = to.values.ref(row, head);
        sum = decay.at(head, row) * m.pace(head) + (to.add ? sum : 0.0f);
      }
  }
  if (tape.active(in.a)) {
    Tape::Slot to = tape.into(in.a);
    for (Index head = 0; head < m.heads; ++head) {
      float sum = 0;
      for (Index row = 0; row < m.rows; ++row) sum += decay.at(head, row) * in.delta.at(row, head);
      float& here = to.values.mutable_data()[head];
      here = sum + (to.add ? here : 0.0f);
    }
  }
}

}  // namespace

Tensor mix_delta(Backend& backend, const GatedDelta& in, Tensor* state, const std::stop_token& stop) {
  const Deltas m(in);
  Tape* const tape = backend.tape();
  bool recorded = false;
  for (const Tensor* each : {&in.q, &in.k, &in.v, &in.delta, &in.a, &in.beta})
    recorded = recorded || (tape && tape->active(*each));
  assert(!state || (!tape && m.texts() == 1));
  const Index size = m.state_size();
  Tensor o = backend.empty({m.rows, m.heads, m.values});
  Tensor before = recorded ? backend.empty({m.stretches.back(), m.heads, size}) : Tensor();
  Tensor after = state ? backend.empty({m.heads, m.keys, m.values}) : Tensor();
  over_rows(backend.pool(), m.texts() * m.heads, m.rows / std::max<Index>(1, m.texts()) * size, 4,
            [&](Index begin, Index end) {
              Tensor scratch = backend.empty({size});
              float* const s = scratch.mutable_data();
              for (Index task = begin; task < end; ++task) {
                const Index text = task / m.heads, head = task % m.heads;
                if (state && state->defined())
                  std::copy_n(state->data() + head * size, size, s);
                else
                  std::fill_n(s, size, 0.0f);
                m.over_stretches(text, false, [&](Index row, Index n, Index stretch) {
                  if (stop.stop_requested()) return;
                  if (recorded) std::copy_n(s, size, &before.ref(stretch, head, 0));
                  lanes::mix(m.head(head, row), n, s, {s, 0}, numbers_from(o, row, head * m.values));
                });
                if (state) std::copy_n(s, size, &after.ref(head, 0, 0));
              }
            });
  if (stop.stop_requested()) throw Cancelled();
  if (state) *state = after;
  if (recorded)
    tape->record(o, [&backend, &tape = *tape, m, before](const Tensor& d_o) {
      way_back(backend, tape, m, before, d_o.reshape({m.rows, m.heads * m.values}));
    });
  return o;
}

Tensor implied_attention(const GatedDelta& in, Index head, Index first, const std::stop_token& stop) {
  assert(in.lengths.size() < 2);
  const Deltas m(in);
  const lanes::Head own = m.head(head, 0);
  std::vector<float> reach(static_cast<std::size_t>(m.keys));
  Tensor weights = Tensor::zeros({m.rows - first, m.rows});
  for (Index t = first; t < m.rows; ++t) {
    if (stop.stop_requested()) throw Cancelled();
    lanes::implied(own, t, reach.data(), &weights.ref(t - first, 0));
  }
  return weights;
}

Tensor sigmoids(Backend& backend, const Tensor& x, float factor) {
  const Index rows = x.dim(0), channels = x.dim(1);
  assert(x.stride(1) == 1);
  Tensor out = backend.empty({rows, channels});
  over_rows(backend.pool(), rows, channels, 8, [&](Index begin, Index end) {
    for (Index t = begin; t < end; ++t) lanes::sigmoid(x.data() + t * x.stride(0), channels, factor, &out.ref(t, 0));
  });
  Tape* const tape = backend.tape();
  if (tape && tape->active(x))
    tape->record(out, [x, out, factor, &tape = *tape](const Tensor& d_out) {
      Tape::Slot to = tape.into(x);
      for (Index t = 0; t < out.dim(0); ++t)
        for (Index c = 0; c < out.dim(1); ++c) {
          const float y = out.at(t, c);  // d/dx f σ = f σ (1 − σ)
          float& sum = to.values.ref(t, c);
          sum = d_out.at(t, c) * y * (1 - y / factor) + (to.add ? sum : 0.0f);
        }
    });
  return out;
}

Tensor unit_rows(Backend& backend, const Tensor& x, double epsilon, float factor) {
  const auto width = x.dim(x.rank() - 1);
  const double root = std::sqrt(static_cast<double>(width));  // x ÷ √(mean x² + ε ÷ d) is √d times too long
  return backend.rms_norm(x, Tensor::full({width}, static_cast<float>(factor / root)),
                          epsilon / static_cast<double>(width));
}

}  // namespace headscope
