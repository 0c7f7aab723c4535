#include "core/attention/rule_edits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <utility>

#include "core/base/nth.h"

namespace headscope {
namespace {

class Scaled final : public AttentionRule {
 public:
  Scaled(RulePtr base, std::function<float(Index)> factor, std::string name)
      : base_(std::move(base)), factor_(std::move(factor)), name_(std::move(name)) {}
  KeyRange keys(Index query, Index n_key) const override { return base_->keys(query, n_key); }
  bool plain() const override { return false; }
  void apply(Index query, Index first_key, std::span<float> scores) const override {
    if (!base_->plain()) base_->apply(query, first_key, scores);
    const float factor = factor_(query);
    for (float& score : scores)
      if (std::isfinite(score)) score *= factor;  // 0 · −infinity would open a masked cell as NaN
  }
  float factor(Index query) const override { return base_->factor(query) * factor_(query); }
  float cap(Index query) const override { return base_->cap(query); }
  float sink(Index query) const override {
    const float own = base_->sink(query);
    return std::isfinite(own) ? own * factor_(query) : own;
  }
  std::string describe() const override { return fmt::format("{}, {}", base_->describe(), name_); }

 private:
  RulePtr base_;
  std::function<float(Index)> factor_;
  std::string name_;
};

class Biased final : public AttentionRule {
 public:
  Biased(RulePtr base, std::function<float(Index, Index)> bias, std::string name)
      : base_(std::move(base)), bias_(std::move(bias)), name_(std::move(name)) {}
  KeyRange keys(Index query, Index n_key) const override { return base_->keys(query, n_key); }
  bool plain() const override { return false; }
  void apply(Index query, Index first_key, std::span<float> scores) const override {
    if (!base_->plain()) base_->apply(query, first_key, scores);
    for (std::size_t c = 0; c < scores.size(); ++c) scores[c] += bias_(query, first_key + static_cast<Index>(c));
  }
  float factor(Index query) const override { return base_->factor(query); }
  float cap(Index query) const override { return base_->cap(query); }
  float sink(Index query) const override { return base_->sink(query); }
  std::string describe() const override { return fmt::format("{}, {}", base_->describe(), name_); }

 private:
  RulePtr base_;
  std::function<float(Index, Index)> bias_;
  std::string name_;
};

class Capped final : public AttentionRule {
 public:
  Capped(RulePtr base, float cap) : base_(std::move(base)), cap_(cap) {}
  KeyRange keys(Index query, Index n_key) const override { return base_->keys(query, n_key); }
  bool plain() const override { return false; }
  void apply(Index query, Index first_key, std::span<float> scores) const override {
    for (float& score : scores) score = cap_ * std::tanh(score / cap_);
    if (!base_->plain()) base_->apply(query, first_key, scores);
  }
  float factor(Index query) const override { return base_->factor(query); }
  float cap(Index) const override { return cap_; }
  float sink(Index query) const override { return base_->sink(query); }
  std::string describe() const override { return fmt::format("{}, soft cap {}", base_->describe(), cap_); }

 private:
  RulePtr base_;
  float cap_;
};

class WithSink final : public AttentionRule {
 public:
  WithSink(RulePtr base, float sink) : base_(std::move(base)), sink_(sink) {}
  KeyRange keys(Index query, Index n_key) const override { return base_->keys(query, n_key); }
  bool plain() const override { return base_->plain(); }
  void apply(Index query, Index first_key, std::span<float> scores) const override {
    base_->apply(query, first_key, scores);
  }
  float factor(Index query) const override { return base_->factor(query); }
  float cap(Index query) const override { return base_->cap(query); }
  float sink(Index) const override { return sink_; }
  std::string describe() const override { return fmt::format("{}, learned sink {:.4g}", base_->describe(), sink_); }

 private:
  RulePtr base_;
  float sink_;
};

class WithoutFirst final : public AttentionRule {
 public:
  WithoutFirst(RulePtr base, Index count) : base_(std::move(base)), count_(count) {}
  KeyRange keys(Index query, Index n_key) const override {
    const KeyRange keys = base_->keys(query, n_key);
    const Index end = std::max(keys.begin, keys.end);  // of none, a range that lies among the keys
    return {std::clamp(count_, keys.begin, end), end};
  }
  bool plain() const override { return base_->plain(); }
  void apply(Index query, Index first_key, std::span<float> scores) const override {
    base_->apply(query, first_key, scores);
  }
  float factor(Index query) const override { return base_->factor(query); }
  float cap(Index query) const override { return base_->cap(query); }
  float sink(Index query) const override { return base_->sink(query); }
  std::string describe() const override { return fmt::format("{}, without the first {}", base_->describe(), count_); }

 private:
  RulePtr base_;
  Index count_;
};

class OneKey final : public AttentionRule {
 public:
  OneKey(RulePtr base, std::function<Index(Index)> of, std::string name)
      : base_(std::move(base)), of_(std::move(of)), name_(std::move(name)) {}
  KeyRange keys(Index query, Index n_key) const override {
    const Index key = of_(query);
    if (key < 0 || key >= n_key || masked(*base_, query, key, n_key)) return {};
    return {key, key + 1};
  }
  std::string describe() const override { return fmt::format("{}, {}", base_->describe(), name_); }

 private:
  RulePtr base_;
  std::function<Index(Index)> of_;
  std::string name_;
};

class ByRows final : public AttentionRule {
 public:
  explicit ByRows(std::vector<RuleOfRows> parts) : parts_(std::move(parts)) {}
  KeyRange keys(Index query, Index n_key) const override { return rule(query).keys(query, n_key); }
  bool plain() const override {
    return std::ranges::all_of(parts_, [](const RuleOfRows& part) { return part.rule->plain(); });
  }
  void apply(Index query, Index first_key, std::span<float> scores) const override {
    if (!rule(query).plain()) rule(query).apply(query, first_key, scores);
  }
  float factor(Index query) const override { return rule(query).factor(query); }
  float cap(Index query) const override { return rule(query).cap(query); }
  float sink(Index query) const override { return rule(query).sink(query); }
  std::string describe() const override {
    std::string text;
    Index first = 0;
    for (const RuleOfRows& part : parts_) {
      text += fmt::format("{}{} at {}..{}", text.empty() ? "" : "; ", part.rule->describe(), first, part.end - 1);
      first = part.end;
    }
    return text;
  }

 private:
  const AttentionRule& rule(Index query) const {
    const auto part = std::ranges::upper_bound(parts_, query, {}, &RuleOfRows::end);
    return part == parts_.end() ? *parts_.back().rule : *part->rule;
  }
  std::vector<RuleOfRows> parts_;
};

}  // namespace

RulePtr scaled_rule(RulePtr base, std::function<float(Index query)> factor, std::string name) {
  return std::make_shared<Scaled>(std::move(base), std::move(factor), std::move(name));
}
RulePtr biased_rule(RulePtr base, std::function<float(Index query, Index key)> bias, std::string name) {
  return std::make_shared<Biased>(std::move(base), std::move(bias), std::move(name));
}
RulePtr capped_rule(RulePtr base, float cap) {
  return std::make_shared<Capped>(std::move(base), cap);
}
RulePtr sink_rule(RulePtr base, float sink) {
  return std::make_shared<WithSink>(std::move(base), sink);
}
RulePtr without_first(RulePtr base, Index count) {
  return std::make_shared<WithoutFirst>(std::move(base), count);
}
RulePtr one_key_rule(RulePtr base, std::function<Index(Index query)> of, std::string name) {
  return std::make_shared<OneKey>(std::move(base), std::move(of), std::move(name));
}
RulePtr rule_by_rows(std::vector<RuleOfRows> parts) {
  assert(!parts.empty());
  std::vector<RuleOfRows> merged;
  for (RuleOfRows& part : parts) {
    if (!merged.empty() && merged.back().rule == part.rule)
      merged.back().end = part.end;
    else
      merged.push_back(std::move(part));
  }
  parts = std::move(merged);
  return parts.size() == 1 ? parts.front().rule : std::make_shared<ByRows>(std::move(parts));
}

std::vector<Index> seen_keys(const AttentionRule& rule, Index n_query, Index n_key) {
  std::vector<Index> counts;
  std::vector<float> scores;
  for (Index query = 0; query < n_query; ++query) {
    const KeyRange keys = rule.keys(query, n_key);
    counts.push_back(std::max<Index>(keys.size(), 0));
    if (rule.plain() || keys.size() <= 0) continue;
    scores.assign(static_cast<std::size_t>(keys.size()), 0.0f);
    rule.apply(query, keys.begin, scores);
    counts.back() -= std::ranges::count(scores, -std::numeric_limits<float>::infinity());
  }
  return counts;
}

float length_factor(Index keys, double trained) {
  return keys > 0 ? static_cast<float>(std::log(static_cast<double>(keys)) / std::log(trained)) : 0;
}

RulePtr length_scaled_rule(RulePtr base, const std::vector<Index>& seen, double trained) {
  std::vector<float> factors;
  for (const Index n : seen) factors.push_back(length_factor(n, trained));
  return scaled_rule(
      std::move(base), [factors = std::move(factors)](Index query) { return nth(factors, query); },
      fmt::format("times ln n / ln {}", trained));
}

}  // namespace headscope
