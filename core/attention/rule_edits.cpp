#include "core/attention/rule_edits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

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
  std::string describe() const override { return fmt::format("{}, {}", base_->describe(), name_); }

 private:
  RulePtr base_;
  std::function<float(Index, Index)> bias_;
  std::string name_;
};

class WithoutFirst final : public AttentionRule {
 public:
  WithoutFirst(RulePtr base, Index count) : base_(std::move(base)), count_(count) {}
  KeyRange keys(Index query, Index n_key) const override {
    const KeyRange keys = base_->keys(query, n_key);
    const Index begin = std::max(keys.begin, count_);
    return {begin, std::max(begin, keys.end)};
  }
  bool plain() const override { return base_->plain(); }
  void apply(Index query, Index first_key, std::span<float> scores) const override {
    base_->apply(query, first_key, scores);
  }
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

class At final : public AttentionRule {
 public:
  At(Index first, Index last, RulePtr inside, RulePtr outside)
      : first_(first), last_(last), inside_(std::move(inside)), outside_(std::move(outside)) {}
  KeyRange keys(Index query, Index n_key) const override { return rule(query).keys(query, n_key); }
  bool plain() const override { return inside_->plain() && outside_->plain(); }
  void apply(Index query, Index first_key, std::span<float> scores) const override {
    if (!rule(query).plain()) rule(query).apply(query, first_key, scores);
  }
  std::string describe() const override {
    return fmt::format("{} at {}..{}, else {}", inside_->describe(), first_, last_, outside_->describe());
  }

 private:
  const AttentionRule& rule(Index query) const { return query >= first_ && query <= last_ ? *inside_ : *outside_; }
  Index first_, last_;
  RulePtr inside_, outside_;
};

}  // namespace

RulePtr scaled_rule(RulePtr base, std::function<float(Index query)> factor, std::string name) {
  return std::make_shared<Scaled>(std::move(base), std::move(factor), std::move(name));
}
RulePtr biased_rule(RulePtr base, std::function<float(Index query, Index key)> bias, std::string name) {
  return std::make_shared<Biased>(std::move(base), std::move(bias), std::move(name));
}
RulePtr without_first(RulePtr base, Index count) {
  return std::make_shared<WithoutFirst>(std::move(base), count);
}
RulePtr one_key_rule(RulePtr base, std::function<Index(Index query)> of, std::string name) {
  return std::make_shared<OneKey>(std::move(base), std::move(of), std::move(name));
}
RulePtr rule_at(Index first, Index last, RulePtr inside, RulePtr outside) {
  return std::make_shared<At>(first, last, std::move(inside), std::move(outside));
}

}  // namespace headscope
