#include "core/attention/lsh.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/base/nth.h"
#include "core/base/random.h"

namespace headscope {

namespace {

class LshRule final : public AttentionRule {
 public:
  LshRule(std::vector<int> query, std::vector<int> key, const LshSettings& settings, Index tokens, std::string name)
      : query_(std::move(query)),
        key_(std::move(key)),
        rounds_(settings.rounds),
        tokens_(tokens),
        name_(std::move(name)) {}
  /// The keys are the queries: no token sees itself that sees another.
  LshRule(std::vector<int> shared, const LshSettings& settings, Index tokens, std::string name)
      : LshRule(shared, shared, settings, tokens, std::move(name)) {
    for (Index i = 0; i < tokens; ++i) {
      bool other = false;
      for (Index j = 0; j < i && !other; ++j) other = meet(i, j);
      blind_.push_back(other);
    }
  }
  KeyRange keys(Index query, Index n_key) const override {
    Index begin = 0, end = std::min(query + 1, n_key);
    while (begin < end && !sees(query, begin)) ++begin;
    while (begin < end && !sees(query, end - 1)) --end;
    return begin < end ? KeyRange{begin, end} : KeyRange{};
  }
  bool plain() const override { return false; }
  void apply(Index query, Index first_key, std::span<float> scores) const override {
    for (std::size_t c = 0; c < scores.size(); ++c)
      if (!sees(query, first_key + static_cast<Index>(c))) scores[c] = -std::numeric_limits<float>::infinity();
  }
  std::string describe() const override { return name_; }

 private:
  bool sees(Index query, Index key) const {
    if (key == query) return query >= static_cast<Index>(blind_.size()) || !nth(blind_, query);
    return key < query && query < tokens_ && meet(query, key);
  }
  bool meet(Index query, Index key) const {
    for (int round = 0; round < rounds_; ++round)
      if (nth(query_, round * tokens_ + query) == nth(key_, round * tokens_ + key)) return true;
    return false;
  }
  std::vector<int> query_, key_;
  std::vector<bool> blind_;  // to itself; empty = none is
  int rounds_;
  Index tokens_;
  std::string name_;
};

}  // namespace

std::vector<int> lsh_buckets(const Tensor& x, const LshSettings& settings) {
  const Index n = x.dim(0), d = x.dim(1), half = std::max(settings.buckets / 2, 1);
  std::vector<int> buckets;
  Random random(settings.seed);
  for (int round = 0; round < settings.rounds; ++round) {
    std::vector<double> directions(static_cast<std::size_t>(d * half));
    for (double& each : directions) each = static_cast<double>(random.normal());
    for (Index i = 0; i < n; ++i) {
      int best = 0;
      double most = -1;
      for (Index b = 0; b < half; ++b) {
        double along = 0;
        for (Index c = 0; c < d; ++c) along += static_cast<double>(x.at(i, c)) * nth(directions, c * half + b);
        if (std::abs(along) > most) {
          most = std::abs(along);
          best = static_cast<int>(along >= 0 ? b : b + half);
        }
      }
      buckets.push_back(best);
    }
  }
  return buckets;
}

RulePtr lsh_rule(const Tensor& q, const Tensor& k, const LshSettings& settings, std::string name) {
  return std::make_shared<LshRule>(lsh_buckets(q, settings), lsh_buckets(k, settings), settings, q.dim(0),
                                   std::move(name));
}

RulePtr shared_lsh_rule(const Tensor& q, const LshSettings& settings, std::string name) {
  return std::make_shared<LshRule>(lsh_buckets(q, settings), settings, q.dim(0), std::move(name));
}

double recall_of_top(const Tensor& q, const Tensor& k, const AttentionRule& rule, int top) {
  double sum = 0, queries = 0;
  for (Index i = top - 1; i < q.dim(0); ++i) {
    std::vector<double> scores;
    for (Index j = 0; j <= i; ++j) {
      double dot = 0;
      for (Index c = 0; c < q.dim(1); ++c) dot += static_cast<double>(q.at(i, c)) * static_cast<double>(k.at(j, c));
      scores.push_back(dot);
    }
    std::vector<Index> order(scores.size());
    std::iota(order.begin(), order.end(), Index{0});
    std::ranges::stable_sort(order, [&](Index a, Index b) { return nth(scores, a) > nth(scores, b); });
    int seen = 0;
    for (int t = 0; t < top; ++t) seen += !masked(rule, i, nth(order, t), q.dim(0));
    sum += static_cast<double>(seen) / top;
    queries += 1;
  }
  return queries > 0 ? sum / queries : 0;
}

}  // namespace headscope
