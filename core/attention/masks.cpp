#include "core/attention/masks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>
#include <vector>

#include "core/attention/mask_algebra.h"
#include "core/attention/mask_entries.h"
#include "core/base/error.h"
#include "core/base/nearest_names.h"

namespace headscope {
namespace {

using namespace mask_entries;

constexpr double largest_number = 1e9;  // of any number in a spec, so that products of two stay far inside 64 bits
constexpr std::size_t most_parts = 16, deepest = 16, most_listed = 4096;
constexpr double most_hashes = 1024;

std::string shortened(std::string_view text) {
  return fmt::format("\"{}\"", text.size() > 60 ? std::string(text.substr(0, 57)) + "..." : std::string(text));
}

bool hashes(std::string_view id) {
  return id == "lsh" || id == "reformer";
}

double number_of(std::string_view text, const Entry& entry, std::size_t which, const std::string& where) {
  const bool share = (entry.form.id == "random" || entry.form.id == "hidden") && which == 0;
  double value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool hashed = hashes(entry.form.id) && which < 2;  // buckets and rounds are work
  const double lowest = entry.lowest[which], highest = share ? 1 : hashed ? most_hashes : largest_number;
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
    if (error != std::errc() || stop != text.data() + end || value < 0 || value > static_cast<Index>(largest_number) ||
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
    MaskNumbers numbers{{}, {}, vectors_};
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

bool hashes_vectors(std::string_view spec) {
  for (const std::string_view id : {"lsh", "reformer"})
    for (auto at = spec.find(id); at != std::string_view::npos; at = spec.find(id, at + 1))
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
