// Attention's gradients against central differences of its definition in float64.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/attention/masks.h"
#include "core/attention/positions/alibi.h"
#include "core/attention/positions/disentangled.h"
#include "core/attention/rule_edits.h"
#include "core/attention/softmax_attention.h"
#include "tests/support/gradient_check.h"
#include "tests/support/random_tensor.h"

namespace headscope::attention_gradients_test {

using namespace testing;

namespace {

struct Case {
  std::vector<Index> lengths;
  Index heads, kv_heads, d;
  std::vector<HeadRule> rules;  // one per head
  // What the rule of this head multiplies the scores of odd rows by.
  Index scaled_head = -1;
  double factor = 1;
};

/// z of every text from q, k, v in row-major order; `patterns` (may be null) receives every text's, head by head.
Numbers attention(const Case& c, const Numbers& q, const Numbers& k, const Numbers& v) {
  Numbers z(q.size());
  Index begin = 0;
  for (const Index n : c.lengths) {
    for (Index h = 0; h < c.heads; ++h) {
      const HeadRule& rule = c.rules[static_cast<std::size_t>(h)];
      const Index kv = h * c.kv_heads / c.heads;
      const auto q_at = [&](Index i, Index e) {
        return static_cast<std::size_t>(((begin + i) * c.heads + h) * c.d + e);
      };
      const auto kv_at = [&](Index j, Index e) {
        return static_cast<std::size_t>(((begin + j) * c.kv_heads + kv) * c.d + e);
      };
      for (Index i = 0; i < n; ++i) {
        Numbers weight(static_cast<std::size_t>(n));
        double sum = 0;
        for (Index j = 0; j < n; ++j) {
          if (masked(*rule.rule, i, j, n)) continue;
          float bias = 0;
          rule.rule->apply(i, j, {&bias, 1});
          double score = 0;
          for (Index e = 0; e < c.d; ++e) score += q[q_at(i, e)] * k[kv_at(j, e)];
          const auto held = [i](const KeyRange& rows) { return i >= rows.begin && i < rows.end; };
          if (const auto& own = rule.distances; own && std::ranges::none_of(rule.without_distances, held))
            for (Index e = 0; e < c.d; ++e) {
              const Index row = distance_row(i - j, own->span, own->max_distance);
              score += q[q_at(i, e)] * static_cast<double>(own->keys.at(row, e)) +
                       k[kv_at(j, e)] * static_cast<double>(own->queries.at(row, e));
            }
          if (h == c.scaled_head && i % 2) score *= c.factor;
          score *= static_cast<double>(rule.scale);
          if (const auto cap = static_cast<double>(rule.cap > 0 ? rule.cap : rule.rule->cap(i)); cap > 0)
            score = cap * std::tanh(score / cap);
          score -= rule.slope * static_cast<double>(i - j);
          weight[static_cast<std::size_t>(j)] = std::exp(score + static_cast<double>(bias));
          sum += weight[static_cast<std::size_t>(j)];
        }
        for (Index j = 0; j < n; ++j)
          for (Index e = 0; e < c.d; ++e) z[q_at(i, e)] += weight[static_cast<std::size_t>(j)] / sum * v[kv_at(j, e)];
      }
    }
    begin += n;
  }
  return z;
}

AttentionInput input(const Tensor& q, const Tensor& k, const Tensor& v) {
  AttentionInput in;
  in.q = q;
  in.k = k;
  in.v = v;
  in.rule = causal_rule();
  return in;
}

/// Odd rows' scores, with what `base` adds, times `factor`.
RulePtr odd_rows(RulePtr base, float factor) {
  return scaled_rule(
      std::move(base), [factor](Index query) { return query % 2 ? factor : 1.0f; }, "odd rows");
}

HeadRule with_distances(HeadRule rule, Index d, std::uint64_t seed, std::vector<KeyRange> without) {
  rule.distances = std::make_shared<const DistanceVectors>(
      DistanceVectors{random_tensor({10, d}, seed), random_tensor({10, d}, seed + 1), 5, 9});
  rule.without_distances = std::move(without);
  return rule;
}

/// Gives every head its own rule and scale.
class Rules final : public Tap {
 public:
  explicit Rules(std::vector<HeadRule> rules) : rules_(std::move(rules)) {}
  HeadRule head_rule(HeadId id, HeadRule) const override { return rules_[static_cast<std::size_t>(id.head)]; }
  bool wants(Site) const override { return false; }
  Tensor at(Site, const Tensor& value) override { return value; }

 private:
  std::vector<HeadRule> rules_;
};

}  // namespace

TEST_CASE("gradients: attention of several texts, shared keys, own rules and temperatures") {
  const auto causal = causal_rule(), full = full_rule();
  const Case cases[] = {
      {{5}, 1, 1, 4, {{causal, 0.5f}}},
      {{4, 1, 7}, 4, 2, 6, {{causal, 0.4f}, {full, 0.4f}, {causal, 1.3f}, {causal, 0.4f}}},
      {{70}, 2, 1, 3, {{causal, 0.6f}, {full, 0.2f}}},
      // A temperature of some rows, and one over a bias, of which the scores get their share.
      {{9}, 2, 1, 4, {{causal, 0.5f}, {odd_rows(causal, 2.5f), 0.5f}}, 1, 2.5},
      {{80}, 2, 2, 3, {{odd_rows(alibi_rule(causal, 0.25), 0.4f), 0.7f}, {full, 0.2f}}, 0, 0.4},
      {{9}, 1, 1, 4, {{alibi_rule(odd_rows(causal, 3.0f), 0.25), 0.5f}}, 0, 3},
      // Soft caps and slopes of the model's own, under windows.
      {{9, 4}, 2, 1, 4, {{causal, 0.9f, 0.8f}, {window_rule(3), 0.6f, 1.3f, 0.4}}},
      {{70}, 2, 2, 3, {{window_rule(20), 0.9f, 0.7f}, {causal, 0.5f, 0, 0.3}}},
      // Distances that have vectors of their own, with two texts, under a window, and but for some rows.
      {{9, 4}, 2, 2, 4, {with_distances({causal, 0.5f}, 4, 31, {}), with_distances({full, 0.3f}, 4, 41, {{2, 4}})}},
      {{70}, 2, 1, 3, {with_distances({window_rule(20), 0.6f}, 3, 51, {}), {causal, 0.5f}}},
      // A soft cap of some rows.
      {{70}, 1, 1, 3, {{rule_by_rows({{9, causal}, {50, capped_rule(causal, 0.8f)}, {70, causal}}), 0.9f}}}};
  std::uint64_t seed = 20;
  for (const Case& c : cases) {
    CAPTURE(c.lengths.size());
    Index rows = 0;
    for (const Index n : c.lengths) rows += n;
    // q, k and v as slices of one product, as the model has them.
    const Index q_end = c.heads * c.d, k_end = q_end + c.kv_heads * c.d, end = k_end + c.kv_heads * c.d;
    const Tensor all = random_tensor({rows, end}, ++seed);
    const Tensor q = all.slice(1, 0, q_end).reshape({rows, c.heads, c.d}),
                 k = all.slice(1, q_end, k_end).reshape({rows, c.kv_heads, c.d}),
                 v = all.slice(1, k_end, end).reshape({rows, c.kv_heads, c.d});
    Rules tap(c.rules);
    GradientCheck check;
    check.inputs = {q, k, v};
    check.op = [&](Backend& backend) {
      AttentionInput in = input(q, k, v);
      in.lengths = c.lengths;
      return softmax_attention(in, backend, &tap, {}).z;
    };
    check.definition = [&](const std::vector<Numbers>& x) { return attention(c, x[0], x[1], x[2]); };
    check_gradients(check, ++seed);
  }
}

TEST_CASE("gradients: the price of a pattern's entropy beside the first key") {
  const Index n = 7, heads = 2, d = 3;
  const float price = 0.3f;
  const std::vector<HeadRule> rules{{causal_rule(), 0.7f}, {full_rule(), 1.1f}};
  const Tensor q = random_tensor({n, heads, d}, 1), k = random_tensor({n, heads, d}, 2),
               v = random_tensor({n, heads, d}, 3);
  Backend backend(2);
  Tape tape(backend);
  tape.watch(q);
  tape.watch(k);
  Rules tap(rules);
  AttentionOutput out;
  {
    const Backend::Recording recording(backend, &tape);
    AttentionInput in = input(q, k, v);
    in.entropy_price = price;
    out = softmax_attention(in, backend, &tap, {});
  }
  tape.backward(out.z, Tensor::zeros({n, heads, d}));  // so that the entropy alone has a gradient
  const auto cost = [&](const Numbers& qs, const Numbers& ks) {
    double total = 0;
    for (Index h = 0; h < heads; ++h)
      for (Index i = 0; i < n; ++i) {
        Numbers e;
        double sum = 0;
        for (Index j = 0; j < (h == 0 ? i + 1 : n); ++j) {
          double score = 0;
          for (Index x = 0; x < d; ++x)
            score += qs[static_cast<std::size_t>((i * heads + h) * d + x)] *
                     ks[static_cast<std::size_t>((j * heads + h) * d + x)];
          e.push_back(std::exp(score * static_cast<double>(rules[static_cast<std::size_t>(h)].scale)));
          if (j > 0) sum += e.back();
        }
        for (std::size_t j = 1; j < e.size(); ++j) total -= e[j] / sum * std::log(e[j] / sum);
      }
    return static_cast<double>(price) * total;
  };
  Numbers at_q(q.values().begin(), q.values().end()), at_k(k.values().begin(), k.values().end());
  const Tensor dq = tape.gradient(q), dk = tape.gradient(k);
  double largest = 0;
  for (Numbers* of : {&at_q, &at_k})
    for (std::size_t i = 0; i < of->size(); ++i) {
      const double was = (*of)[i], step = 1e-5;
      (*of)[i] = was + step;
      const double up = cost(at_q, at_k);
      (*of)[i] = was - step;
      const double slope = (up - cost(at_q, at_k)) / (2 * step);
      (*of)[i] = was;
      const float found = (of == &at_q ? dq : dk).data()[i];
      CHECK(found == doctest::Approx(slope).epsilon(1e-4).scale(0.1));
      largest = std::max(largest, std::abs(slope));
    }
  CHECK(largest > 0.05);
}

namespace {

/// Watches the pattern (and lets it pass), or puts another in its place.
class PatternTap final : public Tap {
 public:
  PatternTap(Tape* tape, Tensor replacement) : tape_(tape), replacement_(std::move(replacement)) {}
  bool wants(Site site) const override { return site.kind == SiteKind::pattern; }
  Tensor at(Site, const Tensor& value) override {
    seen = replacement_.defined() ? replacement_ : value;
    tape_->watch(seen);
    return seen;
  }
  Tensor seen;

 private:
  Tape* tape_;
  Tensor replacement_;
};

}  // namespace

TEST_CASE("gradients: of a pattern by hand, and none past one that was put in its place") {
  // z_i = Σ_j p_ij v_j, so of Σ w z: d p_ij = Σ_e w_ie v_je, and d v_je = Σ_i p_ij w_ie.
  const Index n = 3, d = 2;
  for (const bool replace : {false, true}) {
    CAPTURE(replace);
    Backend backend(2);
    Tape tape(backend);
    const Tensor q = random_tensor({n, 1, d}, 1), k = random_tensor({n, 1, d}, 2), v = random_tensor({n, 1, d}, 3),
                 w = random_tensor({n, 1, d}, 4);
    tape.watch(q);
    tape.watch(v);
    PatternTap tap(&tape, replace ? random_tensor({1, n, n}, 5) : Tensor());
    AttentionOutput out;
    {
      const Backend::Recording recording(backend, &tape);
      out = softmax_attention(input(q, k, v), backend, &tap, {});
    }
    tape.backward(out.z, w);
    const Tensor dp = tape.gradient(tap.seen), dv = tape.gradient(v), dq = tape.gradient(q);
    for (Index i = 0; i < n; ++i)
      for (Index j = 0; j < n; ++j)
        if (replace || j <= i)
          CHECK(dp.at(0, i, j) == doctest::Approx(w.at(i, 0, 0) * v.at(j, 0, 0) + w.at(i, 0, 1) * v.at(j, 0, 1)));
    for (Index j = 0; j < n; ++j)
      for (Index e = 0; e < d; ++e) {
        double sum = 0;
        for (Index i = 0; i < n; ++i) sum += static_cast<double>(tap.seen.at(0, i, j)) * w.at(i, 0, e);
        CHECK(dv.at(j, 0, e) == doctest::Approx(sum));
      }
    double moved = 0;
    for (const float g : dq.values()) moved += std::abs(g);
    CHECK((moved > 1e-3) == !replace);
  }
}

}  // namespace headscope::attention_gradients_test
