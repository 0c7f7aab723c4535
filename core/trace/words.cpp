#include "core/trace/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/scripts.h"
#include "core/base/utf8.h"

namespace headscope {

namespace {

enum class CharacterKind { none, space, line, word, apostrophe, alone, other };

CharacterKind kind_of(std::int32_t c) {
  if (c == '\n' || c == '\r' || c == 0x2028 || c == 0x2029) return CharacterKind::line;
  if (is_white_space(c)) return CharacterKind::space;
  if (c == '\'' || c == 0x2019) return CharacterKind::apostrophe;
  if (is_han_or_kana(c)) return CharacterKind::alone;
  return is_word(c) ? CharacterKind::word : CharacterKind::other;
}

/// Whether a word begins at `here`, between the characters `before` and `here`; `next` comes after.
bool begins(CharacterKind before_that, CharacterKind before, CharacterKind here, CharacterKind next) {
  if (before == CharacterKind::none) return true;
  if (here == CharacterKind::line || before == CharacterKind::line) return here != before;
  if (here == CharacterKind::space) return before != CharacterKind::space;
  if (before == CharacterKind::space) return false;
  if (here == CharacterKind::alone || before == CharacterKind::alone) return true;
  if (here == CharacterKind::apostrophe) return before == CharacterKind::word && next != CharacterKind::word;
  if (before == CharacterKind::apostrophe) return here == CharacterKind::word && before_that != CharacterKind::word;
  return here != before;
}

/// Whether a word begins at each byte of a text that may hold broken UTF-8: such bytes count as punctuation, and a byte
/// in the middle of a character never begins anything.
std::vector<bool> word_begins(const std::string& bytes) {
  std::vector<std::size_t> at;
  std::vector<CharacterKind> kinds;
  for (std::size_t i = 0; i < bytes.size();) {
    const auto length = static_cast<std::size_t>(utf8_length(bytes[i]));
    const std::string_view character = std::string_view(bytes).substr(i, length);
    const bool whole = character.size() == length && !first_invalid_utf8(character);
    at.push_back(i);
    kinds.push_back(whole ? kind_of(code_point_at(character, 0).value) : CharacterKind::other);
    i += whole ? length : 1;
  }
  std::vector<bool> out(bytes.size(), false);
  const auto kind = [&](std::size_t i) { return i < kinds.size() ? kinds[i] : CharacterKind::none; };
  for (std::size_t i = 0; i < at.size(); ++i)
    out[at[i]] = begins(i >= 2 ? kinds[i - 2] : CharacterKind::none, i >= 1 ? kinds[i - 1] : CharacterKind::none,
                        kinds[i], kind(i + 1));
  return out;
}

/// What a word may see: what any of its tokens may.
class WordRule final : public AttentionRule {
 public:
  WordRule(AttentionMap source, WordGroups words) : source_(std::move(source)), words_(std::move(words)) {}

  KeyRange keys(Index word, Index n_key) const override {
    if (word < 0 || word >= words_.words()) return {0, 0};
    KeyRange seen{std::numeric_limits<Index>::max(), 0};
    for (Index token = rows(word).begin; token < rows(word).end; ++token) {
      const KeyRange keys = rule().keys(token, words_.tokens());
      if (keys.size() <= 0) continue;
      seen.begin = std::min(seen.begin, keys.begin);
      seen.end = std::max(seen.end, keys.end);
    }
    if (seen.end == 0) return {0, 0};
    return {words_.word_of(seen.begin), std::min(words_.word_of(seen.end - 1) + 1, n_key)};
  }
  bool plain() const override { return rule().plain(); }
  void apply(Index word, Index first_word, std::span<float> scores) const override {
    for (std::size_t i = 0; i < scores.size(); ++i)
      if (!sees(word, first_word + static_cast<Index>(i))) scores[i] = -std::numeric_limits<float>::infinity();
  }
  std::string describe() const override { return rule().describe() + ", of words"; }

 private:
  const AttentionRule& rule() const { return *source_.rule(); }
  KeyRange rows(Index word) const {
    const KeyRange all = words_.tokens_of(word);
    return {std::max(all.begin, source_.place().offset), all.end};
  }
  bool sees(Index word, Index key_word) const {
    const KeyRange keys = words_.tokens_of(key_word);
    for (Index q = rows(word).begin; q < rows(word).end; ++q)
      for (Index k = keys.begin; k < keys.end; ++k)
        if (!masked(rule(), q, k, words_.tokens())) return true;
    return false;
  }
  AttentionMap source_;  // owns the rule
  WordGroups words_;
};

// Tokens read at a time: a band of a factored map's rows.
constexpr Index band_rows = 64;

}  // namespace

Index WordGroups::word_of(Index token) const {
  return std::upper_bound(begin.begin(), begin.end(), token) - begin.begin() - 1;
}

WordGroups word_groups(std::span<const Token> tokens) {
  std::string bytes;
  for (const Token& token : tokens) bytes += token.bytes;
  const std::vector<bool> begins = word_begins(bytes);
  WordGroups groups;
  std::size_t at = 0;
  bool after_special = true;  // the first token begins a word too
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const bool special = tokens[i].bytes.empty();
    if (special || after_special || begins[at]) groups.begin.push_back(static_cast<Index>(i));
    after_special = special;
    at += tokens[i].bytes.size();
  }
  groups.begin.push_back(static_cast<Index>(tokens.size()));
  return groups;
}

bool maps_in_reach(const Trace& trace) {
  constexpr double stored = 1 << 28, in_factors = 1 << 25;
  double weights = 0;
  for (const AttentionMap& map : trace.maps)
    weights += static_cast<double>(map.n_query()) * static_cast<double>(map.n_key()) *
               (map.is_dense() ? 1 : stored / in_factors);
  return weights <= stored;
}

AttentionMap map_in_words(const AttentionMap& map, const WordGroups& words, const TokenLinks* links) {
  AttentionMap::Place place = map.place();
  const Index offset = place.offset;
  if (place.between_texts)
    throw Error("attention of words", "a map within one text, whose tokens are joined",
                "queries and keys of two texts");
  if (words.tokens() != map.n_key() || offset + map.n_query() > words.tokens())
    throw Error("attention of words", fmt::format("words of {} tokens, as the map has", map.n_key()),
                fmt::format("words of {}", words.tokens()));
  if (words.words() > most_words)
    throw Error("attention of words", fmt::format("at most {} words", most_words), fmt::format("{}", words.words()),
                "look at tokens, or at a part of the text");
  const Index first = map.n_query() > 0 ? words.word_of(offset) : words.words();
  const Index rows = map.n_query() > 0 ? words.word_of(offset + map.n_query() - 1) + 1 - first : 0;
  Tensor weights = Tensor::zeros({rows, words.words()});
  std::vector<double> row(static_cast<std::size_t>(words.words()));
  for (Index band = 0; band < rows;) {
    // As many whole words as make up a band.
    const Index q0 = std::max(nth(words.begin, first + band) - offset, Index{0});
    Index end = band + 1;
    const auto row_of = [&](Index word) { return std::min(nth(words.begin, first + word) - offset, map.n_query()); };
    while (end < rows && row_of(end + 1) - q0 <= band_rows) ++end;
    const Index q1 = row_of(end);
    Index k1 = map.rule() ? 0 : map.n_key();
    for (Index q = q0; q < q1 && map.rule(); ++q) k1 = std::max(k1, map.rule()->keys(offset + q, map.n_key()).end);
    const Tensor tile = map.tile({q0, q1}, {0, k1});
    for (Index word = band; word < end; ++word) {
      std::ranges::fill(row, 0.0);
      const Index from = std::max(row_of(word), q0), to = row_of(word + 1);
      for (Index q = from; q < to; ++q)
        for (Index k = 0, at = 0; k < k1; ++k) {
          while (k >= words.begin[static_cast<std::size_t>(at) + 1]) ++at;
          nth(row, at) += static_cast<double>(tile.at(q - q0, k));
        }
      for (Index k = 0; k < words.words(); ++k)
        weights.ref(word, k) = static_cast<float>(nth(row, k) / static_cast<double>(to - from));
    }
    band = end;
  }
  place.offset = first;
  auto stats = stats_of_weights(weights, links, place.offset);
  auto rule = map.rule() ? std::make_shared<WordRule>(map, words) : nullptr;
  return AttentionMap::dense(place, std::move(weights), std::move(rule), std::move(stats));
}

float weight_in_words(const AttentionMap& map, const WordGroups& words, Index query_word, Index key_word) {
  const Index offset = map.place().offset;
  const KeyRange keys = words.tokens_of(key_word);
  const Index q0 = std::clamp<Index>(words.tokens_of(query_word).begin - offset, 0, map.n_query());
  const Index q1 = std::clamp<Index>(words.tokens_of(query_word).end - offset, 0, map.n_query());
  bool seen = false;
  for (Index q = q0; q < q1 && !seen; ++q)
    for (Index k = keys.begin; k < keys.end && !seen; ++k) seen = !map.masked(q, k);
  if (!seen) return std::numeric_limits<float>::quiet_NaN();
  const Tensor tile = map.tile({q0, q1}, keys);
  double sum = 0;
  for (Index q = 0; q < tile.dim(0); ++q)
    for (Index k = 0; k < tile.dim(1); ++k) sum += static_cast<double>(tile.at(q, k));
  return static_cast<float>(sum / static_cast<double>(q1 - q0));
}

Trace in_words(const Trace& trace, const WordGroups& words, const std::function<bool(HeadId)>& wanted) {
  Trace out;
  out.model = trace.model;
  out.text = trace.text;
  out.source = trace.source + (trace.source.empty() ? "" : ", ") + "words: sum over keys, mean over queries";
  out.plan = trace.plan;
  out.milliseconds = trace.milliseconds;
  out.whole_milliseconds = trace.whole_milliseconds;
  out.merged_tokens = words.tokens();
  std::map<std::string, std::int32_t> numbers;
  for (Index word = 0; word < words.words(); ++word) {
    const KeyRange range = words.tokens_of(word);
    Token joined;
    joined.begin = nth(trace.tokens, range.begin).begin;
    joined.end = trace.tokens[static_cast<std::size_t>(range.end) - 1].end;
    joined.segment = nth(trace.tokens, range.begin).segment;
    for (Index i = range.begin; i < range.end; ++i) {
      joined.bytes += nth(trace.tokens, i).bytes;
      joined.masked |= nth(trace.tokens, i).masked;
    }
    joined.label =
        joined.bytes.empty() || range.size() == 1 ? nth(trace.tokens, range.begin).label : visible_label(joined.bytes);
    const std::string key = joined.bytes.empty() ? "special " + joined.label : "bytes " + joined.bytes;
    joined.id = numbers.emplace(key, static_cast<std::int32_t>(numbers.size())).first->second;
    out.tokens.push_back(std::move(joined));
  }
  const TokenLinks links = TokenLinks::of(out.tokens);
  for (const AttentionMap& map : trace.maps)
    if (!wanted || wanted(map.id())) out.maps.push_back(map_in_words(map, words, &links));
  return out;
}

}  // namespace headscope
