#include "app/actions/fuzzy.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

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

namespace {

/// In small letters. What is neither letter nor digit parts words, and so do × and ·.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> out;
  bool inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i).starts_with("×") || text.substr(i).starts_with("·")) {
      inside = false, ++i;
      continue;
    }
    const bool part = is_letter(text[i]) || is_digit(text[i]);
    if (part && !inside) out.emplace_back();
    if (part) out.back() += lower(text[i]);
    inside = part;
  }
  return out;
}

std::string_view singular(std::string_view word) {
  return word.size() > 3 && word.ends_with('s') && !word.ends_with("ss") ? word.substr(0, word.size() - 1) : word;
}

/// 1 = the same word, below that one that begins it; 0 = another.
double alike(std::string_view asked, std::string_view word) {
  if (asked == word || singular(asked) == singular(word)) return 1;
  if (asked.size() < 2 || !word.starts_with(asked)) return 0;
  return 0.35 + 0.4 * static_cast<double>(asked.size()) / static_cast<double>(word.size());
}

}  // namespace

double word_match(std::string_view query, std::string_view title, std::string_view others) {
  constexpr double elsewhere = 0.7, fading = 0.05, in_order = 0.25;
  const auto asked = words_of(query), named = words_of(title), further = words_of(others);
  if (asked.empty()) return 0;
  double sum = 0;
  for (const std::string& word : asked) {
    double best = 0;
    for (const std::string& each : named) best = std::max(best, alike(word, each));
    for (std::size_t i = 0; i < further.size(); ++i)  // what comes first says most
      best = std::max(best, (elsewhere - fading * static_cast<double>(i) / static_cast<double>(further.size())) *
                                alike(word, further[i]));
    if (best == 0) return 0;
    sum += best;
  }
  // One word alone has to be whole: an abbreviation goes before what only begins like it.
  const auto same = [&](const std::string& word, const std::string& asked_for) {
    return alike(asked_for, word) == 1 || (asked.size() > 1 && asked_for.size() > 2 && word.starts_with(asked_for));
  };
  double order = 0;
  if (const auto at = std::ranges::search(named, asked, same); !at.empty())
    order = asked.size() == named.size() ? 2 * in_order : in_order;
  return sum / static_cast<double>(asked.size()) + order;
}

}  // namespace headscope
