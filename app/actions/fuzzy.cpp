#include "app/actions/fuzzy.h"

#include <algorithm>
#include <limits>
#include <string>

namespace headscope {

namespace {
constexpr double letter = 1, word_start = 8, in_a_row = 9, per_gap = -0.2, per_byte = -0.02;
constexpr double impossible = -std::numeric_limits<double>::infinity();
constexpr std::size_t most_letters = 64, most_bytes = 512, counted_lead = 20;

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
bool is_letter(char c) {
  return (lower(c) >= 'a' && lower(c) <= 'z') || static_cast<unsigned char>(c) >= 0x80;
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// A word starts after what is neither letter nor digit, where letters and digits meet, and at a capital in a word.
bool starts_word(std::string_view text, std::size_t at) {
  if (at == 0) return is_letter(text[0]) || is_digit(text[0]);
  const char here = text[at], before = text[at - 1];
  if (is_digit(here)) return !is_digit(before);
  if (is_letter(here)) return !is_letter(before) || (lower(here) != here && lower(before) == before);
  return false;
}
}  // namespace

std::optional<FuzzyMatch> fuzzy_match(std::string_view query, std::string_view text) {
  std::string letters;
  for (const char c : query)
    if (c != ' ' && letters.size() < most_letters) letters += lower(c);
  FuzzyMatch match;
  if (letters.empty()) return match;
  text = text.substr(0, most_bytes);
  const std::size_t n = text.size(), m = letters.size();
  if (m > n) return std::nullopt;

  // best[q][t]: the best score of the first q + 1 letters with the last of them on byte t.
  std::vector<std::vector<double>> best(m, std::vector<double>(n, impossible));
  std::vector<std::vector<std::size_t>> from(m, std::vector<std::size_t>(n, 0));
  for (std::size_t q = 0; q < m; ++q) {
    double running = impossible;  // the best of best[q − 1][… t − 1], less what the gap up to t costs
    std::size_t running_at = 0;
    for (std::size_t t = 0; t < n; ++t) {
      if (lower(text[t]) == letters[q]) {
        const double own = letter + (starts_word(text, t) ? word_start : 0);
        if (q == 0) {
          best[q][t] = own + per_gap * static_cast<double>(std::min(t, counted_lead));
        } else if (t > 0) {
          const double run = best[q - 1][t - 1] + in_a_row;
          best[q][t] = own + std::max(run, running);
          from[q][t] = run >= running ? t - 1 : running_at;
        }
      }
      if (q == 0) continue;
      running += per_gap;
      if (best[q - 1][t] > running) {
        running = best[q - 1][t];
        running_at = t;
      }
    }
  }
  const auto last = std::ranges::max_element(best[m - 1]);
  if (*last == impossible) return std::nullopt;
  match.score = *last + per_byte * static_cast<double>(n);
  match.positions.resize(m);
  auto at = static_cast<std::size_t>(last - best[m - 1].begin());
  for (std::size_t q = m; q-- > 0;) {
    match.positions[q] = at;
    at = from[q][at];
  }
  return match;
}

}  // namespace headscope
