#include "core/attention/masks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>
#include <limits>
#include <vector>

#include "core/attention/lsh.h"
#include "core/attention/mask_algebra.h"
#include "core/attention/mask_shapes.h"
#include "core/base/error.h"
#include "core/base/nearest_names.h"

namespace headscope {
namespace {

using namespace mask_shapes;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr double largest = 1e9;  // of any number in a spec, so that products of two stay far inside 64 bits
constexpr std::size_t most_parts = 16, deepest = 16, most_listed = 4096;
constexpr double most_hashes = 1024;

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
  Mask(Shape shape, std::string spec) : shape_(std::move(shape)), spec_(std::move(spec)) {}
  KeyRange keys(Index query, Index n_key) const override {
    const KeyRange range = cut(shape_.bounds(query, n_key), n_key);
    if constexpr (Shape::solid)
      return range;
    else
      return shrunk(range, seeing(query));
  }
  bool plain() const override { return Shape::solid; }
  void apply(Index query, Index first_key, std::span<float> scores) const override {
    if constexpr (!Shape::solid) {
      const auto sees = seeing(query);
      for (std::size_t c = 0; c < scores.size(); ++c)
        if (!sees(first_key + static_cast<Index>(c))) scores[c] = -infinity;
    }
  }
  std::string describe() const override { return spec_; }

 private:
  /// Whether the query sees a key.
  auto seeing(Index query) const {
    if constexpr (requires { shape_.row(query); })
      return [row = shape_.row(query)](Index key) { return row.sees(key); };
    else
      return [this, query](Index key) { return shape_.sees(query, key); };
  }

  Shape shape_;
  std::string spec_;
};

/// What stands in a spec besides words: its numbers, its list of positions, and the vectors that it may hash.
struct Numbers {
  std::vector<double> all;
  std::vector<Index> list;
  const MaskVectors* vectors = nullptr;
  double operator[](std::size_t i) const { return all[i]; }
};

struct Entry {
  MaskForm form;
  std::vector<double> lowest;  ///< of the form's numbers, in order; the largest is 10⁹, of a share 1
  std::shared_ptr<const AttentionRule> (*make)(const Numbers& numbers, std::string spec);
};

Index whole(double number) {
  return static_cast<Index>(number);
}
template <class Shape>
std::shared_ptr<const AttentionRule> mask(Shape shape, std::string spec) {
  return std::make_shared<Mask<Shape>>(std::move(shape), std::move(spec));
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
      {{"around", "Window on both sides", "around W", "|i − j| < W",
        "Each token sees itself and W − 1 neighbours on either side.", "Warner et al., ModernBERT, 2024", "around 3"},
       {1},
       [](const Numbers& x, std::string spec) { return mask(Around{whole(x[0])}, std::move(spec)); }},
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
      {{"hidden", "Keys hidden at random", "hidden P seed S", "j is not hidden, which each is with probability P",
        "Some keys are hidden from every query, their own included. (Not BERT's masking, which puts [MASK] in a "
        "token's place and hides no key.)",
        "", "hidden 0.3 seed 2"},
       {0, 0},
       [](const Numbers& x, std::string spec) {
         return mask(Hidden{x[0], static_cast<std::uint64_t>(x[1])}, std::move(spec));
       }},
      {{"chosen", "Chosen global tokens", "chosen A,B,… window W", "i or j is listed, or |i − j| < W",
        "The listed tokens see all and are seen by all; the rest see W − 1 neighbours on either side.",
        "Beltagy et al., Longformer, 2020", "chosen 0,5 window 2"},
       {1},
       [](const Numbers& x, std::string spec) {
         return mask(Chosen{x.list, whole(x[0])}, std::move(spec));
       }},
      {{"bigbird", "BigBird blocks", "bigbird B window W global G random R seed S",
        "with I = ⌊i/B⌋, J = ⌊j/B⌋: |I − J| < W or I < G or J < G or J is one of R blocks drawn from G … I − W, each "
        "once",
        "Blocks of B tokens see neighbouring blocks, the first G, and R earlier ones outside both, drawn once per "
        "seed.",
        "Zaheer et al., Big Bird, 2020", "bigbird 2 window 1 global 1 random 1 seed 1"},
       {1, 1, 0, 0, 0},
       [](const Numbers& x, std::string spec) {
         return mask(Blocks{whole(x[0]), whole(x[1]), whole(x[2]), whole(x[3]), static_cast<std::uint64_t>(x[4])},
                     std::move(spec));
       }},
      {{"documents", "Documents", "documents A,B,…", "no document begins in (min(i, j), max(i, j)]",
        "Several texts in one row: each token sees its own document, which begins at one of the positions.",
        "Raffel et al., T5, 2020 (packing)", "documents 3,6"},
       {},
       [](const Numbers& x, std::string spec) { return mask(Documents{x.list}, std::move(spec)); }},
      {{"lsh", "Hash buckets", "lsh B rounds R seed S",
        "j = i, or j < i and the hashes of q_i and k_j are equal in one of R rounds; causal where there are no q, k",
        "Queries meet the keys that point the same way: both are hashed into B buckets (an even number), R times.",
        "Kitaev et al., Reformer, 2020", "lsh 4 rounds 2 seed 1"},
       {2, 1, 0},
       [](const Numbers& x, std::string spec) -> std::shared_ptr<const AttentionRule> {
         const LshSettings settings{static_cast<int>(x[0]), static_cast<int>(x[1]), static_cast<std::uint64_t>(x[2])};
         if (x.vectors) return lsh_rule(x.vectors->q, x.vectors->k, settings, std::move(spec));
         return mask(Causal{}, std::move(spec));
       }},
      {{"cells", "Painted", "cells QUERY:KEY …", "(i, j) is listed; either may be a range, as in 5-9:0-2",
        "Each token sees the cells that somebody painted.", "",
        "cells 0:0 1:0-1 2:0 2:2 3-4:0 3-4:2-3 5:0 5:3 5:5 6:0 6:3 6:5-6 7:0 7:5-7"},
       {},
       nullptr},
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

/// "A,B,…": positions, separated by commas.
bool is_list(std::string_view form_word) {
  return form_word.find(',') != std::string_view::npos;
}
bool is_number(std::string_view form_word) {
  return form_word.size() == 1 && form_word[0] >= 'A' && form_word[0] <= 'Z';
}

std::string shortened(std::string_view text) {
  return fmt::format("\"{}\"", text.size() > 60 ? std::string(text.substr(0, 57)) + "..." : std::string(text));
}

double number_of(std::string_view text, const Entry& entry, std::size_t which, const std::string& where) {
  const bool share = (entry.form.id == "random" || entry.form.id == "hidden") && which == 0;
  double value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool hashed = entry.form.id == "lsh" && which < 2;  // buckets and rounds are work
  const double lowest = entry.lowest[which], highest = share ? 1 : hashed ? most_hashes : largest;
  const bool paired = hashed && which == 0;  // a direction and its opposite are two buckets
  const bool read = error == std::errc() && end == text.data() + text.size();
  if (!read || !(value >= lowest && value <= highest) || (!share && value != std::floor(value)) ||
      (paired && std::fmod(value, 2) != 0))
    throw Error(where + ": " + std::string(entry.form.form),
                fmt::format("{} from {:.0f} to {:.0f}",
                            share    ? "a share"
                            : paired ? "an even number of buckets"
                                     : "a whole number",
                            lowest, highest),
                shortened(text));
  return value;
}

/// "0,5,9": sorted, each once.
std::vector<Index> list_of(std::string_view text, const Entry& entry, const std::string& where) {
  std::vector<Index> list;
  while (true) {
    const auto end = std::min(text.find(','), text.size());
    Index value = -1;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + end, value);
    if (error != std::errc() || stop != text.data() + end || value < 0 || value > static_cast<Index>(largest) ||
        list.size() == most_listed)
      throw Error(where + ": " + std::string(entry.form.form),
                  fmt::format("at most {} positions separated by commas, as in 0,5,9", most_listed), shortened(text));
    list.push_back(value);
    if (end == text.size()) break;
    text.remove_prefix(end + 1);
  }
  std::ranges::sort(list);
  list.erase(std::ranges::unique(list).begin(), list.end());
  return list;
}

/// A mask as it was read, and what printing it again needs to know.
struct Parsed {
  std::shared_ptr<const AttentionRule> rule;
  std::string text;
  enum class Joint { none, both, either } joint = Joint::none;
  bool from_end = false;  ///< counts keys from the end of the text
  std::string within(Joint outer) const { return outer < joint ? "(" + text + ")" : text; }
};

class MaskParser {
 public:
  MaskParser(std::string_view spec, const std::string& where, const MaskVectors* vectors)
      : rest_(spec), where_(where), vectors_(vectors) {}

  Parsed whole_spec() {
    Parsed result = either_of();
    if (!next().empty()) throw Error(where_, "a mask, with a ( for every )", shortened(rest_));
    return result;
  }

 private:
  /// The next word, without taking it: "&", "|", "!", "(", ")", or what stands between blanks and those.
  std::string_view next() {
    const auto begin = rest_.find_first_not_of(" \t");
    rest_.remove_prefix(std::min(begin, rest_.size()));
    if (rest_.empty()) return rest_;
    constexpr std::string_view marks = "&|!()";
    if (marks.find(rest_.front()) != std::string_view::npos) return rest_.substr(0, 1);
    return rest_.substr(0, rest_.find_first_of(" \t&|!()"));
  }
  bool take(std::string_view mark, std::string_view word) {
    const std::string_view found = next();
    if (found.empty() || (found != mark && found != word)) return false;
    rest_.remove_prefix(found.size());
    return true;
  }

  Parsed joined(Parsed::Joint joint, std::string_view mark, std::string_view word, Parsed (MaskParser::*operand)()) {
    std::vector<Parsed> parts{(this->*operand)()};
    while (take(mark, word)) parts.push_back((this->*operand)());
    if (parts.size() == 1) return std::move(parts.front());
    Parsed result;
    MaskParts rules;
    for (Parsed& each : parts) {
      if (joint == Parsed::Joint::either) must_not_count_from_end(each, "\"|\"");
      result.from_end |= each.from_end;
      result.text += (result.text.empty() ? "" : " " + std::string(mark) + " ") + each.within(joint);
      rules.push_back(std::move(each.rule));
    }
    result.joint = joint;
    result.rule = (joint == Parsed::Joint::both ? both : either)(std::move(rules), result.text);
    return result;
  }
  Parsed either_of() { return joined(Parsed::Joint::either, "|", "or", &MaskParser::both_of); }
  Parsed both_of() { return joined(Parsed::Joint::both, "&", "and", &MaskParser::part); }

  Parsed part() {
    if (++depth_ > deepest) throw Error(where_, fmt::format("at most {} masks inside one another", deepest), "more");
    Parsed result;
    if (take("!", "not")) {
      const Parsed inner = part();
      must_not_count_from_end(inner, "\"not\"");
      result.text = "not " + inner.within(Parsed::Joint::none);
      result.rule = opposite(inner.rule, result.text);
    } else if (take("(", "(")) {
      result = either_of();
      if (!take(")", ")")) throw Error(where_, "\")\"", next().empty() ? "the end of the mask" : shortened(rest_));
    } else {
      result = atom();
    }
    --depth_;
    return result;
  }

  void must_not_count_from_end(const Parsed& part, const char* joint) const {
    if (part.from_end)
      throw Error(where_, "padding joined by \"&\" only, as in \"(A | B) & padding 3\"",
                  fmt::format("{} with \"{}\"", joint, part.text));
  }

  Parsed atom() {
    if (++parts_ > most_parts) throw Error(where_, fmt::format("at most {} masks joined", most_parts), "more");
    const std::string_view begin = rest_;
    std::vector<std::string_view> words;
    for (std::string_view word = next(); !word.empty(); word = next()) {
      if (std::string_view("&|!()").find(word.front()) != std::string_view::npos || word == "and" || word == "or" ||
          word == "not")
        break;
      words.push_back(word);
      rest_.remove_prefix(word.size());
    }
    const std::string_view spec = begin.substr(0, begin.size() - rest_.size());
    const auto known = std::ranges::find_if(
        entries(), [&](const Entry& each) { return !words.empty() && each.form.id == words.front(); });
    if (known == entries().end()) refuse(words, spec);
    Parsed result;
    result.text = known->form.id;
    result.from_end = known->form.id == "padding";
    if (!known->make) {
      const auto after = static_cast<std::size_t>(words.front().data() - spec.data()) + words.front().size();
      CellSet cells = CellSet::parse(spec.substr(after), where_ + ": cells");
      result.text += " " + cells.text();
      result.rule = only(std::move(cells), result.text);
      return result;
    }
    const std::vector<std::string_view> form = words_of(known->form.form);
    Numbers numbers{{}, {}, vectors_};
    for (std::size_t w = 1; w < std::max(form.size(), words.size()); ++w) {
      const bool fits =
          w < form.size() && w < words.size() && (is_number(form[w]) || is_list(form[w]) || form[w] == words[w]);
      if (!fits) throw Error(where_, fmt::format("\"{}\"", known->form.form), shortened(spec));
      if (is_list(form[w])) {
        numbers.list = list_of(words[w], *known, where_);
        result.text += fmt::format(" {}", fmt::join(numbers.list, ","));
      } else if (is_number(form[w])) {
        numbers.all.push_back(number_of(words[w], *known, numbers.all.size(), where_));
        result.text += fmt::format(" {}", numbers.all.back());
      } else {
        result.text += " " + std::string(form[w]);
      }
    }
    assert(numbers.all.size() == known->lowest.size());
    result.rule = known->make(numbers, result.text);
    return result;
  }

  [[noreturn]] void refuse(const std::vector<std::string_view>& words, std::string_view spec) {
    std::vector<std::string> forms, ids;
    for (const Entry& each : entries()) {
      forms.emplace_back(each.form.form);
      ids.emplace_back(each.form.id);
    }
    throw Error(
        where_,
        fmt::format("a mask: {}; \"A & B\" for what both see, \"A | B\", \"not A\", \"( )\"", fmt::join(forms, ", ")),
        words.empty() ? (next().empty() ? "nothing" : shortened(rest_)) : shortened(spec),
        words.empty() ? "" : nearest_names_hint(words.front(), ids, 2));
  }

  std::string_view rest_;
  const std::string& where_;
  const MaskVectors* vectors_;
  std::size_t parts_ = 0, depth_ = 0;
};

}  // namespace

std::span<const MaskForm> mask_forms() {
  static const std::vector<MaskForm> forms = [] {
    std::vector<MaskForm> all;
    for (const Entry& each : entries()) all.push_back(each.form);
    return all;
  }();
  return forms;
}

std::shared_ptr<const AttentionRule> parse_mask(std::string_view spec, const std::string& where,
                                                const MaskVectors* vectors) {
  return MaskParser(spec, where, vectors).whole_spec().rule;
}

std::shared_ptr<const AttentionRule> window_rule(Index width) {
  return mask(Window{width}, fmt::format("window {}", width));
}

std::shared_ptr<const AttentionRule> around_rule(Index width) {
  return mask(Around{width}, fmt::format("around {}", width));
}

bool hashes_vectors(std::string_view spec) {
  for (auto at = spec.find("lsh"); at != std::string_view::npos; at = spec.find("lsh", at + 1))
    if (at == 0 || std::string_view(" \t&|!()").find(spec[at - 1]) != std::string_view::npos) return true;
  return false;
}

namespace {
/// Takes "… MARK cells LIST" off the end of a mask's text; the list is empty when it does not end so.
CellSet take_cells(std::string& text, std::string_view mark) {
  const std::string joint = std::string(mark) + "cells ";
  const auto at = text.rfind(joint);
  if (at == std::string::npos || text.find_first_not_of("0123456789:- ", at + joint.size()) != std::string::npos)
    return {};
  CellSet cells = CellSet::parse(std::string_view(text).substr(at + joint.size()), "mask");
  text.resize(at);
  return cells;
}
}  // namespace

std::string painted_mask(std::string_view spec, std::span<const MapCell> cells, bool visible, Index n_key) {
  std::string base = parse_mask(spec)->describe();
  CellSet open = take_cells(base, " | "), closed = take_cells(base, " & not ");
  const auto rule = parse_mask(base);
  for (const auto& [query, key] : cells) {
    const bool seen = !masked(*rule, query, key, n_key);
    open.erase(query, key);
    closed.erase(query, key);
    if (visible && !seen) open.insert(query, key);
    if (!visible && seen) closed.insert(query, key);
  }
  if (!closed.empty()) {
    // "A | B" has to stand in brackets before "& not"; parsing both puts them where they belong.
    base = parse_mask(fmt::format("({}) & not cells {}", base, closed.text()))->describe();
  }
  return open.empty() ? base : parse_mask(fmt::format("{} | cells {}", base, open.text()))->describe();
}

}  // namespace headscope
