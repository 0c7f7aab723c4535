#include "core/attention/masks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>
#include <limits>
#include <vector>

#include "core/base/error.h"
#include "core/base/nearest_names.h"
#include "core/base/random.h"

namespace headscope {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr double largest = 1e9;  // of any number in a spec, so that products of two stay far inside 64 bits
constexpr std::size_t most_parts = 8;

// A shape says which keys can matter to a query (`bounds`, cut to the text by Mask) and, inside them, which it sees.
// `solid` shapes see all of them.

struct Causal {
  static constexpr bool solid = true;
  KeyRange bounds(Index i, Index) const { return {0, i + 1}; }
  bool sees(Index, Index) const { return true; }
};
struct Full {
  static constexpr bool solid = true;
  KeyRange bounds(Index, Index n) const { return {0, n}; }
  bool sees(Index, Index) const { return true; }
};
struct Window {
  static constexpr bool solid = true;
  Index width;
  KeyRange bounds(Index i, Index) const { return {i - width + 1, i + 1}; }
  bool sees(Index, Index) const { return true; }
};
struct Dilated {
  static constexpr bool solid = false;
  Index count, step;
  KeyRange bounds(Index i, Index) const { return {i - (count - 1) * step, i + 1}; }
  bool sees(Index i, Index j) const { return (i - j) % step == 0; }
};
struct Strided {
  static constexpr bool solid = false;
  Index stride;
  KeyRange bounds(Index i, Index) const { return {0, i + 1}; }
  bool sees(Index i, Index j) const { return i - j < stride || (i - j) % stride == 0; }
};
struct Global {
  static constexpr bool solid = false;
  Index tokens, width;
  KeyRange bounds(Index i, Index n) const {
    if (i < tokens) return {0, n};
    return {tokens > 0 ? 0 : i - width + 1, std::max(tokens, i + width)};
  }
  bool sees(Index i, Index j) const { return j < tokens || i < tokens || std::abs(i - j) < width; }
};
struct RandomKeys {
  static constexpr bool solid = false;
  double share;
  std::uint64_t seed;
  KeyRange bounds(Index i, Index) const { return {0, i + 1}; }
  bool sees(Index i, Index j) const {
    // One generator per cell, so that a cell's fate depends on nothing but its place.
    Random cell(Random(seed ^ static_cast<std::uint64_t>(i) << 32).next() ^ static_cast<std::uint64_t>(j));
    return i == j || cell.uniform() < share;
  }
};
struct Prefix {
  static constexpr bool solid = true;
  Index length;
  KeyRange bounds(Index i, Index) const { return {0, std::max(i + 1, length)}; }
  bool sees(Index, Index) const { return true; }
};
struct Sink {
  static constexpr bool solid = false;
  Index tokens, width;
  KeyRange bounds(Index i, Index) const { return {tokens > 0 ? 0 : i - width + 1, i + 1}; }
  bool sees(Index i, Index j) const { return j < tokens || i - j < width; }
};
struct Padding {
  static constexpr bool solid = true;
  Index tokens;
  KeyRange bounds(Index, Index n) const { return {0, n - tokens}; }
  bool sees(Index, Index) const { return true; }
};

KeyRange cut(KeyRange range, Index n) {
  const Index begin = std::clamp<Index>(range.begin, 0, n);
  return {begin, std::clamp(range.end, begin, n)};
}

/// The range without what `sees` says no to at its ends; {0, 0} when nothing is left.
template <class Sees>
KeyRange shrunk(KeyRange range, Sees sees) {
  while (range.begin < range.end && !sees(range.begin)) ++range.begin;
  while (range.begin < range.end && !sees(range.end - 1)) --range.end;
  return range.size() > 0 ? range : KeyRange{0, 0};
}

template <class Shape>
class Mask final : public AttentionRule {
 public:
  Mask(Shape shape, std::string spec) : shape_(shape), spec_(std::move(spec)) {}
  KeyRange keys(Index query, Index n_key) const override {
    const KeyRange range = cut(shape_.bounds(query, n_key), n_key);
    if constexpr (Shape::solid) return range;
    return shrunk(range, [&](Index key) { return shape_.sees(query, key); });
  }
  bool plain() const override { return Shape::solid; }
  void apply(Index query, Index first_key, std::span<float> scores) const override {
    if constexpr (Shape::solid) return;
    for (std::size_t c = 0; c < scores.size(); ++c)
      if (!shape_.sees(query, first_key + static_cast<Index>(c))) scores[c] = -infinity;
  }
  std::string describe() const override { return spec_; }

 private:
  Shape shape_;
  std::string spec_;
};

/// What every part sees.
class Both final : public AttentionRule {
 public:
  explicit Both(std::vector<std::shared_ptr<const AttentionRule>> parts) : parts_(std::move(parts)) {}
  KeyRange keys(Index query, Index n_key) const override {
    KeyRange range{0, n_key};
    for (const auto& part : parts_) {
      const KeyRange keys = part->keys(query, n_key);
      range = {std::max(range.begin, keys.begin), std::min(range.end, keys.end)};
      if (range.size() <= 0) return {0, 0};
    }
    if (plain()) return range;
    return shrunk(range, [&](Index key) {
      float score = 0;
      apply(query, key, {&score, 1});
      return score != -infinity;
    });
  }
  bool plain() const override {
    return std::ranges::all_of(parts_, [](const auto& part) { return part->plain(); });
  }
  void apply(Index query, Index first_key, std::span<float> scores) const override {
    for (const auto& part : parts_)
      if (!part->plain()) part->apply(query, first_key, scores);
  }
  std::string describe() const override {
    std::string text;
    for (const auto& part : parts_) text += (text.empty() ? "" : " & ") + part->describe();
    return text;
  }

 private:
  std::vector<std::shared_ptr<const AttentionRule>> parts_;
};

using Numbers = std::vector<double>;

struct Entry {
  MaskForm form;
  Numbers lowest;  ///< of the form's numbers, in order; the largest is 10⁹, of a share 1
  std::shared_ptr<const AttentionRule> (*make)(const Numbers& numbers, std::string spec);
};

Index whole(double number) {
  return static_cast<Index>(number);
}
template <class Shape>
std::shared_ptr<const AttentionRule> mask(Shape shape, std::string spec) {
  return std::make_shared<Mask<Shape>>(shape, std::move(spec));
}

const std::vector<Entry>& entries() {
  static const std::vector<Entry> table{
      {{"causal", "Causal", "causal", "j ≤ i", "Each token sees itself and what came before.",
        "Vaswani et al., Attention Is All You Need, 2017", "causal"},
       {},
       [](const Numbers&, std::string spec) { return mask(Causal{}, std::move(spec)); }},
      {{"full", "Full", "full", "all", "Each token sees every token, later ones too.", "", "full"},
       {},
       [](const Numbers&, std::string spec) { return mask(Full{}, std::move(spec)); }},
      {{"window", "Sliding window", "window W", "0 ≤ i − j < W", "Each token sees the last W, itself among them.",
        "Beltagy et al., Longformer, 2020", "window 4"},
       {1},
       [](const Numbers& x, std::string spec) { return mask(Window{whole(x[0])}, std::move(spec)); }},
      {{"dilated", "Dilated window", "dilated W D", "0 ≤ i − j < W·D and (i − j) mod D = 0",
        "Each token sees W tokens that lie D apart.", "Beltagy et al., Longformer, 2020", "dilated 4 2"},
       {1, 1},
       [](const Numbers& x, std::string spec) {
         return mask(Dilated{whole(x[0]), whole(x[1])}, std::move(spec));
       }},
      {{"strided", "Strided", "strided S", "j ≤ i and (i − j < S or (i − j) mod S = 0)",
        "Each token sees the last S, and every S-th before.", "Child et al., Sparse Transformers, 2019", "strided 4"},
       {1},
       [](const Numbers& x, std::string spec) { return mask(Strided{whole(x[0])}, std::move(spec)); }},
      {{"global", "Global tokens", "global G window W", "j < G or i < G or |i − j| < W",
        "The first G tokens see all and are seen by all; the rest see W − 1 neighbours on either side.",
        "Beltagy et al., Longformer, 2020", "global 2 window 3"},
       {0, 1},
       [](const Numbers& x, std::string spec) {
         return mask(Global{whole(x[0]), whole(x[1])}, std::move(spec));
       }},
      {{"random", "Random", "random P seed S", "j = i, or j < i with probability P",
        "Each token sees itself and a share P of what came before, drawn once per seed.",
        "Zaheer et al., Big Bird, 2020", "random 0.3 seed 1"},
       {0, 0},
       [](const Numbers& x, std::string spec) {
         return mask(RandomKeys{x[0], static_cast<std::uint64_t>(x[1])}, std::move(spec));
       }},
      {{"prefix", "Prefix", "prefix P", "j ≤ i or j < P", "The first P tokens see one another; the rest is causal.",
        "Raffel et al., T5, 2020", "prefix 4"},
       {0},
       [](const Numbers& x, std::string spec) { return mask(Prefix{whole(x[0])}, std::move(spec)); }},
      {{"sink", "Sink and window", "sink K window W", "j ≤ i and (j < K or i − j < W)",
        "Each token sees the first K and the last W: what a streaming cache keeps.", "Xiao et al., StreamingLLM, 2023",
        "sink 1 window 4"},
       {0, 1},
       [](const Numbers& x, std::string spec) {
         return mask(Sink{whole(x[0]), whole(x[1])}, std::move(spec));
       }},
      {{"padding", "Padding", "padding N", "j < n − N", "The last N keys are padding, which nobody sees.", "",
        "padding 3"},
       {0},
       [](const Numbers& x, std::string spec) { return mask(Padding{whole(x[0])}, std::move(spec)); }},
  };
  return table;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (true) {
    const auto begin = text.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return words;
    const auto end = std::min(text.find_first_of(" \t", begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    text.remove_prefix(end);
  }
}

bool is_number(std::string_view form_word) {
  return form_word.size() == 1 && form_word[0] >= 'A' && form_word[0] <= 'Z';
}

std::string shortened(std::string_view text) {
  return fmt::format("\"{}\"", text.size() > 60 ? std::string(text.substr(0, 57)) + "..." : std::string(text));
}

double number_of(std::string_view text, const Entry& entry, std::size_t which, const std::string& where) {
  const bool share = entry.form.id == "random" && which == 0;
  double value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const double lowest = entry.lowest[which], highest = share ? 1 : largest;
  const bool read = error == std::errc() && end == text.data() + text.size();
  if (!read || !(value >= lowest && value <= highest) || (!share && value != std::floor(value)))
    throw Error(where + ": " + std::string(entry.form.form),
                fmt::format("a {} from {:.0f} to {:.0f}", share ? "share" : "whole number", lowest, highest),
                shortened(text));
  return value;
}

std::shared_ptr<const AttentionRule> parse_part(std::string_view spec, const std::string& where) {
  const std::vector<std::string_view> words = words_of(spec);
  const auto known = std::ranges::find_if(
      entries(), [&](const Entry& each) { return !words.empty() && each.form.id == words.front(); });
  if (known == entries().end()) {
    std::vector<std::string> forms, ids;
    for (const Entry& each : entries()) {
      forms.emplace_back(each.form.form);
      ids.emplace_back(each.form.id);
    }
    throw Error(where, fmt::format("a mask: {}; \"A & B\" for what both see", fmt::join(forms, ", ")),
                words.empty() ? "nothing" : shortened(spec),
                words.empty() ? "" : nearest_names_hint(words.front(), ids, 2));
  }
  const std::vector<std::string_view> form = words_of(known->form.form);
  Numbers numbers;
  std::string canonical(known->form.id);
  for (std::size_t w = 1; w < std::max(form.size(), words.size()); ++w) {
    const bool fits = w < form.size() && w < words.size() && (is_number(form[w]) || form[w] == words[w]);
    if (!fits) throw Error(where, fmt::format("\"{}\"", known->form.form), shortened(spec));
    if (is_number(form[w])) {
      numbers.push_back(number_of(words[w], *known, numbers.size(), where));
      canonical += fmt::format(" {}", numbers.back());
    } else {
      canonical += " " + std::string(form[w]);
    }
  }
  assert(numbers.size() == known->lowest.size());
  return known->make(numbers, std::move(canonical));
}

}  // namespace

std::span<const MaskForm> mask_forms() {
  static const std::vector<MaskForm> forms = [] {
    std::vector<MaskForm> all;
    for (const Entry& each : entries()) all.push_back(each.form);
    return all;
  }();
  return forms;
}

std::shared_ptr<const AttentionRule> parse_mask(std::string_view spec, const std::string& where) {
  std::vector<std::shared_ptr<const AttentionRule>> parts;
  while (true) {
    const auto cut_at = spec.find('&');
    parts.push_back(parse_part(spec.substr(0, cut_at), where));
    if (cut_at == std::string_view::npos) break;
    if (parts.size() == most_parts) throw Error(where, fmt::format("at most {} masks joined by &", most_parts), "more");
    spec.remove_prefix(cut_at + 1);
  }
  if (parts.size() == 1) return parts.front();
  return std::make_shared<Both>(std::move(parts));
}

}  // namespace headscope
