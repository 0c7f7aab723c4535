#include "core/attention/attention_backward.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <memory>

#include "core/attention/positions/disentangled.h"
#include "core/base/nth.h"
#include "core/tensor/panels.h"
#include "core/tensor/row_gradients.h"

namespace headscope {
namespace {

constexpr Index backward_rows = 64;

/// Where the gradients of one text go; undefined where nobody asks.
struct Gradients {
  Tape::Slot q{}, k{}, v{}, pattern{}, scores{};
  std::vector<double>* sinks = nullptr;  // (head), added to
};

float* at(const Tensor& x, Index row, Index head) {
  return const_cast<float*>(x.data()) + row * x.stride(0) + head * x.stride(1);
}

void clear(const Tape::Slot& slot, Index head) {
  if (!slot.values.defined() || slot.add) return;
  for (Index row = 0; row < slot.values.dim(0); ++row)
    std::fill_n(at(slot.values, row, head), slot.values.dim(2), 0.0f);
}

/// The heads of one text that share one key and value head.
class Group {
 public:
  Group(const AttentionSteps& steps, const Gradients& out, const std::vector<HeadRule>& rules, const Tensor& d_z,
        Index kv, Tensor& scratch)
      : s_(steps),
        out_(out),
        rules_(rules),
        d_z_(d_z),
        kv_(kv),
        share_(s_.q.dim(1) / s_.k.dim(1)),
        n_query_(s_.q.dim(0)),
        n_key_(s_.k.dim(0)),
        d_(s_.q.dim(2)),
        d_value_(s_.v.dim(2)),
        width_(panels::width()) {
    const Index across = panels::packed_size(d_value_, n_key_), down = panels::packed_size(n_key_, d_),
                block = backward_rows * panels::padded(n_key_), rows = panels::packed_size(backward_rows, d_),
                need = across + down + rows + panels::packed_size(backward_rows, d_value_) + block;
    if (!scratch.defined() || scratch.size() < need) scratch = Tensor::uninitialized({need});
    values_ = scratch.mutable_data();
    keys_ = values_ + across;
    q_rows_ = keys_ + down;
    z_rows_ = q_rows_ + rows;
    d_scores_ = z_rows_ + panels::packed_size(backward_rows, d_value_);
  }

  void run() {
    panels::pack(s_.v.select(1, kv_).transpose(0, 1), values_);
    if (out_.q.values.defined()) panels::pack(s_.k.select(1, kv_), keys_);
    clear(out_.k, kv_);
    clear(out_.v, kv_);
    for (Index head = kv_ * share_; head < (kv_ + 1) * share_; ++head) {
      clear(out_.q, head);
      for (Index first = 0; first < n_query_; first += backward_rows)
        run(head, first, std::min(backward_rows, n_query_ - first));
    }
  }

 private:
  void run(Index head, Index first, Index count) {
    const float* const pattern = s_.pattern.data() + (head * n_query_ + first) * n_key_;
    const KeyRange hull = keys_with_weight(head, first, count);
    if (hull.size() == 0) return;
    const float* const d_z = at(d_z_, first, head);
    if (out_.v.values.defined()) {
      panels::pack(d_z_.slice(0, first, first + count).select(1, head), z_rows_);
      transposed_product(pattern + hull.begin, n_key_, hull, count, z_rows_, d_value_, 1.0f, out_.v.values);
    }
    if (!out_.pattern.values.defined() && !past_pattern()) return;
    // The panels of Vᵀ run along the keys: a block may begin at a whole panel only.
    const KeyRange keys{hull.begin / width_ * width_, hull.end};
    const Index stride = panels::padded(n_key_);
    panels::multiply(d_z, d_z_.stride(0), count, d_value_, values_ + keys.begin * d_value_, d_value_ * width_,
                     keys.size(), 1.0f, nullptr, d_scores_ + keys.begin, stride);
    if (out_.pattern.values.defined()) put(out_.pattern, head, first, count, keys, stride);
    if (!past_pattern()) return;
    const float scale = nth(rules_, head).scale;
    if (s_.entropy_price != 0)
      for (Index r = 0, after_sink = std::max<Index>(keys.begin, 1); r < count; ++r)
        row_gradients::entropy(pattern + r * n_key_ + after_sink, std::max<Index>(keys.end - after_sink, 0),
                               s_.entropy_price, d_scores_ + r * stride + after_sink);
    if (out_.sinks)
      for (Index r = 0; r < count; ++r) to_sink(head, first + r, pattern + r * n_key_, d_scores_ + r * stride, keys);
    for (Index r = 0; r < count; ++r)
      row_gradients::softmax(pattern + r * n_key_ + keys.begin, keys.size(), 1.0f, d_scores_ + r * stride + keys.begin);
    if (out_.scores.values.defined()) put(out_.scores, head, first, count, keys, stride);
    if (s_.edited_scores) return;
    if (const AttentionRule& rule = *nth(rules_, head).rule; !rule.plain())
      for (Index r = 0; r < count; ++r) {
        if (const float factor = rule.factor(offset() + first + r); factor != 1)
          for (Index key = keys.begin; key < keys.end; ++key) d_scores_[r * stride + key] *= factor;
        if (const float cap = rule.cap(offset() + first + r); cap > 0)
          for (Index key = keys.begin; key < keys.end; ++key)
            d_scores_[r * stride + key] *= slope_under_cap(head, first + r, key, scale, cap);
      }
    if (nth(rules_, head).distances && (out_.q.values.defined() || out_.k.values.defined()))
      for (Index r = 0; r < count; ++r)
        add_distance_gradients(nth(rules_, head), offset() + first + r, keys.begin,
                               {d_scores_ + r * stride + keys.begin, static_cast<std::size_t>(keys.size())},
                               out_.q.values.defined() ? at(out_.q.values, first + r, head) : nullptr,
                               out_.k.values.defined() ? at(out_.k.values, 0, kv_) : nullptr,
                               out_.k.values.defined() ? out_.k.values.stride(0) : 0);
    if (out_.q.values.defined()) {
      float* const dq = at(out_.q.values, first, head);
      const Index row = out_.q.values.stride(0);
      panels::multiply({d_scores_ + keys.begin, stride}, count, keys.size(), keys_ + keys.begin * width_,
                       n_key_ * width_, d_, scale, {dq, row}, dq, row);
    }
    if (out_.k.values.defined()) {
      panels::pack(s_.q.slice(0, first, first + count).select(1, head), q_rows_);
      transposed_product(d_scores_ + hull.begin, stride, hull, count, q_rows_, d_, scale, out_.k.values);
    }
  }

  /// d (cap · tanh(s ÷ cap)) ÷ ds at s = scale · q·k, which nobody kept.
  float slope_under_cap(Index head, Index query, Index key, float scale, float cap) const {
    assert(!nth(rules_, head).distances);  // no model has both
    const float *const q = at(s_.q, query, head), *const k = at(s_.k, key, kv_);
    float score = 0;
    for (Index c = 0; c < d_; ++c) score += q[c * s_.q.stride(2)] * k[c * s_.k.stride(2)];
    const float bent = std::tanh(scale * score / cap);
    return 1 - bent * bent;
  }

  /// The sink's own row of the softmax, whose dP is 0.
  void to_sink(Index head, Index query, const float* pattern, const float* d_pattern, KeyRange keys) {
    const AttentionRule& rule = *nth(rules_, head).rule;
    if (!std::isfinite(rule.sink(offset() + query))) return;
    double kept = 0, inner = 0;
    for (Index key = keys.begin; key < keys.end; ++key) {
      kept += static_cast<double>(pattern[key]);
      inner += static_cast<double>(pattern[key]) * static_cast<double>(d_pattern[key]);
    }
    nth(*out_.sinks, head) -= (1 - kept) * inner * static_cast<double>(rule.factor(offset() + query));
  }

  bool past_pattern() const {
    return !s_.edited_pattern &&
           (out_.sinks || out_.q.values.defined() || out_.k.values.defined() || out_.scores.values.defined());
  }

  /// sum (key, d) += scale · aᵀ · b, where a (count, keys of hull) and b is packed (count, d).
  void transposed_product(const float* a, Index stride, KeyRange hull, Index count, const float* b, Index d,
                          float scale, const Tensor& sum) const {
    float* const c = at(sum, hull.begin, kv_);
    panels::multiply({a, 1, stride}, hull.size(), count, b, count * width_, d, scale, {c, sum.stride(0)}, c,
                     sum.stride(0));
  }

  void put(const Tape::Slot& slot, Index head, Index first, Index count, KeyRange keys, Index stride) const {
    for (Index r = 0; r < count; ++r)
      row_gradients::accumulate(
          d_scores_ + r * stride + keys.begin, keys.size(), true,
          const_cast<float*>(slot.values.data()) + (head * n_query_ + first + r) * n_key_ + keys.begin);
  }

  /// An edit may have put weight on cells that the rule hides.
  KeyRange keys_with_weight(Index head, Index first, Index count) const {
    if (s_.edited_scores || s_.edited_pattern) return {0, n_key_};
    const AttentionRule& rule = *nth(rules_, head).rule;
    KeyRange hull{n_key_, 0};
    for (Index i = first; i < first + count; ++i) {
      const KeyRange keys = rule.keys(offset() + i, n_key_);
      if (keys.size() > 0) hull = {std::min(hull.begin, keys.begin), std::max(hull.end, keys.end)};
    }
    return hull.size() > 0 ? hull : KeyRange{};
  }
  Index offset() const { return s_.offset; }

  const AttentionSteps& s_;
  const Gradients& out_;
  const std::vector<HeadRule>& rules_;
  const Tensor& d_z_;
  const Index kv_, share_, n_query_, n_key_, d_, d_value_, width_;
  float *values_, *keys_, *q_rows_, *z_rows_, *d_scores_;
};

}  // namespace

void record_attention(Tape& tape, Backend& backend, const Tensor& z, std::vector<Index> begin,
                      std::vector<AttentionSteps> steps, std::vector<HeadRule> rules) {
  const auto active = [&](const AttentionSteps& s) {
    return tape.active(s.v) || tape.active(s.pattern) ||
           (!s.edited_pattern && (tape.active(s.sinks) || tape.active(s.scores) ||
                                  (!s.edited_scores && (tape.active(s.q) || tape.active(s.k)))));
  };
  if (!std::ranges::any_of(steps, active)) return;
  tape.record(z, [&tape, &backend, begin = std::move(begin), steps = std::move(steps),
                  rules = std::move(rules)](const Tensor& d_z) {
    std::vector<Gradients> gradients(steps.size());
    std::vector<std::vector<double>> sinks(steps.size());  // by text: heads are computed side by side
    for (std::size_t t = 0; t < steps.size(); ++t) {
      const AttentionSteps& s = steps[t];
      const bool to_scores = !s.edited_pattern, to_qk = to_scores && !s.edited_scores;
      const auto slot = [&](const Tensor& x, bool reached, Tape::Slot& into) {
        if (!reached || !tape.active(x)) return;
        into = tape.into(x);
        into.values.mutable_data();  // it may lie on a device, which then knows that it is written to here
      };
      slot(s.q, to_qk, gradients[t].q);
      slot(s.k, to_qk, gradients[t].k);
      slot(s.v, true, gradients[t].v);
      slot(s.pattern, true, gradients[t].pattern);
      slot(s.scores, to_scores, gradients[t].scores);
      if (to_scores && tape.active(s.sinks)) {
        sinks[t].assign(static_cast<std::size_t>(s.sinks.size()), 0.0);
        gradients[t].sinks = &sinks[t];
      }
      for (Tape::Slot* each : {&gradients[t].pattern, &gradients[t].scores})
        if (each->values.defined() && !each->add) std::ranges::fill(each->values.mutable_values(), 0.0f);
    }
    const Index kv_heads = steps[0].k.dim(1);
    std::vector<Tensor> scratch(static_cast<std::size_t>(backend.pool().threads()));
    backend.pool().parallel(static_cast<int>(static_cast<Index>(steps.size()) * kv_heads), [&](int task, int thread) {
      const auto text = static_cast<std::size_t>(task / kv_heads);
      Group(steps[text], gradients[text], rules, d_z.slice(0, begin[text], begin[text + 1]), task % kv_heads,
            nth(scratch, thread))
          .run();
    });
    for (std::size_t t = 0; t < steps.size(); ++t) {
      if (sinks[t].empty()) continue;
      const Tape::Slot slot = tape.into(steps[t].sinks);
      Tensor into = slot.values;
      for (Index head = 0; head < into.dim(0); ++head)
        into.ref(head) = static_cast<float>(nth(sinks[t], head)) + (slot.add ? into.at(head) : 0.0f);
    }
  });
}

}  // namespace headscope
