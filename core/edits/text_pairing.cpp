#include "core/edits/text_pairing.h"

#include <fmt/format.h>

#include <charconv>
#include <set>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/edits/edit_words.h"
#include "core/trace/token_alignment.h"

namespace headscope {

namespace {
constexpr NamedValue<TextPairing::By> alignments[] = {
    {"start", TextPairing::By::start}, {"end", TextPairing::By::end}, {"tokens", TextPairing::By::tokens}};
}  // namespace

std::string text_of(const TextPairing& pairing) {
  if (pairing.by != TextPairing::By::hand) return std::string(name_in(alignments, pairing.by));
  if (pairing.pairs.empty()) return "none";
  std::string text;
  for (const auto& [here, there] : pairing.pairs) text += fmt::format("{}{}:{}", text.empty() ? "" : ",", here, there);
  return text;
}

TextPairing parse_pairing(std::string_view word, const std::string& where) {
  if (const auto by = value_in(alignments, word)) return *by;
  TextPairing pairing(TextPairing::By::hand);
  if (word == "none") return pairing;
  const auto fail = [&] {
    throw Error(where, "an alignment: start, end, tokens, none, or pairs of positions, \"0:0,3:4\"",
                fmt::format("\"{}\"", word));
  };
  const char *at = word.data(), *const end = at + word.size();
  const auto position = [&] {
    int value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc()) fail();
    at = next;
    return value;
  };
  for (;;) {
    const int here = position();
    if (at == end || *at++ != ':') fail();
    pairing.pairs.emplace_back(here, position());
    if (at == end) break;
    if (*at++ != ',') fail();
  }
  check(pairing, where);
  return pairing;
}

void check(const TextPairing& pairing, const std::string& where) {
  std::set<int> here, there;
  for (const auto& [a, b] : pairing.pairs)
    if (a < 0 || b < 0 || !here.insert(a).second || !there.insert(b).second)
      throw Error(where, "pairs of positions from 0, each position once", fmt::format("{}:{}", a, b));
}

std::string aligned_words(const TextPairing& pairing) {
  return pairing == TextPairing{} ? "" : " aligned " + text_of(pairing);
}

TextPairing read_aligned(EditWords& words) {
  return words.take("aligned") ? parse_pairing(words.next(), words.where()) : TextPairing{};
}

std::vector<int> align_positions(const TextPairing& pairing, const std::vector<std::int32_t>& ids,
                                 const std::vector<std::int32_t>& other) {
  using By = TextPairing::By;
  if (pairing.by == By::tokens) return align_tokens(ids, other);
  const int n = static_cast<int>(ids.size()), m = static_cast<int>(other.size());
  std::vector<int> result;
  if (pairing.by == By::hand) {
    result.assign(ids.size(), -1);
    for (const auto& [here, there] : pairing.pairs) {
      if (here < 0 || here >= n || there < 0 || there >= m)
        throw Error("aligned positions", fmt::format("pairs inside texts of {} and {} tokens", n, m),
                    fmt::format("{}:{}", here, there));
      nth(result, here) = there;
    }
    return result;
  }
  for (int i = 0; i < n; ++i) {
    const int j = pairing.by == By::start ? i : i + m - n;
    result.push_back(j >= 0 && j < m ? j : -1);
  }
  return result;
}

}  // namespace headscope
