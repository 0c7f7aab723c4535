#include "core/attention/mask_algebra.h"

#include <algorithm>

#include "core/base/nth.h"
#include "core/base/special_values.h"

namespace headscope {
namespace {

/// The range without the keys at its ends that `rule` masks; {0, 0} when nothing is left.
KeyRange shrunk(const AttentionRule& rule, Index query, KeyRange range) {
  const auto sees = [&](Index key) {
    float score = 0;
    rule.apply(query, key, {&score, 1});
    return score != -float_infinity;
  };
  while (range.begin < range.end && !sees(range.begin)) ++range.begin;
  while (range.begin < range.end && !sees(range.end - 1)) --range.end;
  return range.size() > 0 ? range : KeyRange{0, 0};
}

/// Calls `seen(index)` for every key of [first_key, first_key + count) that the rule lets `query` see.
template <class Seen>
void for_each_seen(const AttentionRule& rule, Index query, Index first_key, Index count, Seen seen) {
  const KeyRange keys = rule.keys(query, first_key + count);
  const Index begin = std::max(keys.begin, first_key), end = std::min(keys.end, first_key + count);
  if (begin >= end) return;
  std::vector<float> scores(static_cast<std::size_t>(end - begin), 0.0f);
  if (!rule.plain()) rule.apply(query, begin, scores);
  for (Index key = begin; key < end; ++key)
    if (nth(scores, key - begin) != -float_infinity) seen(static_cast<std::size_t>(key - first_key));
}

class Both final : public AttentionRule {
 public:
  Both(MaskParts parts, std::string text) : parts_(std::move(parts)), text_(std::move(text)) {}
  KeyRange keys(Index query, Index n_key) const override {
    KeyRange range{0, n_key};
    for (const auto& part : parts_) {
      const KeyRange keys = part->keys(query, n_key);
      range = {std::max(range.begin, keys.begin), std::min(range.end, keys.end)};
      if (range.size() <= 0) return {0, 0};
    }
    return plain() ? range : shrunk(*this, query, range);
  }
  bool plain() const override {
    return std::ranges::all_of(parts_, [](const auto& part) { return part->plain(); });
  }
  void apply(Index query, Index first_key, std::span<float> scores) const override {
    for (const auto& part : parts_)
      if (!part->plain()) part->apply(query, first_key, scores);
  }
  std::string describe() const override { return text_; }

 private:
  MaskParts parts_;
  std::string text_;
};

class Either final : public AttentionRule {
 public:
  Either(MaskParts parts, std::string text) : parts_(std::move(parts)), text_(std::move(text)) {}
  KeyRange keys(Index query, Index n_key) const override {
    KeyRange hull{n_key, 0};
    for (const auto& part : parts_)
      if (const KeyRange keys = part->keys(query, n_key); keys.size() > 0)
        hull = {std::min(hull.begin, keys.begin), std::max(hull.end, keys.end)};
    return hull.size() > 0 ? hull : KeyRange{0, 0};
  }
  bool plain() const override { return false; }  // ranges may leave a gap between them
  void apply(Index query, Index first_key, std::span<float> scores) const override {
    std::vector<char> seen(scores.size(), 0);
    for (const auto& part : parts_)
      for_each_seen(*part, query, first_key, static_cast<Index>(scores.size()), [&](std::size_t c) { seen[c] = 1; });
    for (std::size_t c = 0; c < scores.size(); ++c)
      if (!seen[c]) scores[c] = -float_infinity;
  }
  std::string describe() const override { return text_; }

 private:
  MaskParts parts_;
  std::string text_;
};

class Opposite final : public AttentionRule {
 public:
  Opposite(std::shared_ptr<const AttentionRule> part, std::string text)
      : part_(std::move(part)), text_(std::move(text)) {}
  KeyRange keys(Index query, Index n_key) const override { return shrunk(*this, query, {0, n_key}); }
  bool plain() const override { return false; }
  void apply(Index query, Index first_key, std::span<float> scores) const override {
    for_each_seen(*part_, query, first_key, static_cast<Index>(scores.size()),
                  [&](std::size_t c) { scores[c] = -float_infinity; });
  }
  std::string describe() const override { return text_; }

 private:
  std::shared_ptr<const AttentionRule> part_;
  std::string text_;
};

class Only final : public AttentionRule {
 public:
  Only(CellSet cells, std::string text) : cells_(std::move(cells)), text_(std::move(text)) {}
  KeyRange keys(Index query, Index n_key) const override { return shrunk(*this, query, {0, n_key}); }
  bool plain() const override { return false; }
  void apply(Index query, Index first_key, std::span<float> scores) const override {
    for (std::size_t c = 0; c < scores.size(); ++c)
      if (!cells_.contains(query, first_key + static_cast<Index>(c))) scores[c] = -float_infinity;
  }
  std::string describe() const override { return text_; }

 private:
  CellSet cells_;
  std::string text_;
};

}  // namespace

std::shared_ptr<const AttentionRule> both(MaskParts parts, std::string text) {
  return std::make_shared<Both>(std::move(parts), std::move(text));
}
std::shared_ptr<const AttentionRule> either(MaskParts parts, std::string text) {
  return std::make_shared<Either>(std::move(parts), std::move(text));
}
std::shared_ptr<const AttentionRule> opposite(std::shared_ptr<const AttentionRule> part, std::string text) {
  return std::make_shared<Opposite>(std::move(part), std::move(text));
}
std::shared_ptr<const AttentionRule> only(CellSet cells, std::string text) {
  return std::make_shared<Only>(std::move(cells), std::move(text));
}

}  // namespace headscope
