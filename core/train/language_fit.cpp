#include "core/train/language_fit.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "core/base/error.h"
#include "core/base/nearest_names.h"
#include "core/base/nth.h"
#include "core/train/derivation.h"

namespace headscope {

namespace {

constexpr std::size_t beginnings = 150;   // kept of each number of words
constexpr std::size_t spellings = 4;      // tried where a list has no word of the text
constexpr std::size_t window = 4;         // words to both sides in which the text is looked at for one of a list
constexpr std::size_t longer = 6;         // words that a nearest text may be longer by
constexpr std::size_t longest_word = 40;  // bytes: no word of a language is longer, whatever somebody pastes
constexpr double capitals = 0.1, skipped = 0.9, exchanged = 0.4, spelled = 0.4;  // what a change costs

bool in_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80;
}
bool is_gap(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}
std::string lowered(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}
void check(const std::stop_token& stop) {
  if (stop.stop_requested()) throw Cancelled();
}

/// The word or mark that begins at or behind `at`; empty at the end.
TextSpan next_word(std::string_view text, std::size_t at) {
  while (at < text.size() && is_gap(text[at])) ++at;
  std::size_t end = at;
  while (end < text.size() && in_word(text[end])) ++end;
  if (end == at && at < text.size()) ++end;
  return {at, end};
}
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> out;
  for (TextSpan word = next_word(text, 0); word.begin < word.end; word = next_word(text, word.end))
    out.emplace_back(text.substr(word.begin, word.end - word.begin));
  return out;
}

double cost_of_exchange(const std::string& a, const std::string& b) {
  if (a == b) return 0;
  const std::string low = lowered(a), other = lowered(b);
  if (low == other) return capitals;
  if (!in_word(a.front()) || !in_word(b.front())) return 2 * skipped;  // a mark is no word
  if (std::max(a.size(), b.size()) > longest_word) return exchanged + spelled;
  const double length = static_cast<double>(std::max(a.size(), b.size()));
  return exchanged + spelled * static_cast<double>(edit_distance(low, other)) / length;
}

/// A derivation on its way with no target, and how far its words are from those of the text: a row of the table of
/// Levenshtein (1966).
struct Beginning {
  Derivation derivation;
  std::size_t read = 0;   // bytes of what it wrote that are cut into words
  std::size_t words = 0;  // so many
  std::vector<double> row;
  double least() const { return *std::ranges::min_element(row); }
  std::size_t place() const { return static_cast<std::size_t>(std::ranges::min_element(row) - row.begin()); }
};

class NearestSearch {
 public:
  NearestSearch(const Grammar& grammar, std::string_view text, const std::stop_token& stop)
      : words_(words_of(text)), stop_(stop) {
    for (const std::string& word : words_) low_.push_back(lowered(word));
    Beginning first{Derivation(grammar, grammar.rule("story"), nullptr), 0, 0, {}};
    for (std::size_t j = 0; j <= words_.size(); ++j) first.row.push_back(static_cast<double>(j) * skipped);
    levels_.resize(words_.size() + longer + 1);
    levels_.front().push_back(std::move(first));
  }

  std::string run() {
    for (std::size_t level = 0; level < levels_.size(); ++level) {
      std::vector<Beginning> all = std::move(levels_[level]);
      std::vector<std::pair<double, std::size_t>> order;
      for (std::size_t i = 0; i < all.size(); ++i)
        order.emplace_back(all[i].least() - 0.01 * all[i].derivation.story().log_probability, i);
      std::ranges::sort(order);
      if (order.size() > beginnings) order.resize(beginnings);
      for (const auto& [cost, i] : order) {
        check(stop_);
        if (all[i].least() < best_ || best_text_.empty()) go_on(std::move(all[i]));
      }
    }
    return best_text_;
  }

 private:
  /// Through every choice up to the next word.
  void go_on(Beginning from) {
    std::vector<Beginning> open;
    const std::size_t words = from.words;
    open.push_back(std::move(from));
    while (!open.empty()) {
      Beginning at = std::move(open.back());
      open.pop_back();
      const bool more = at.derivation.advance();
      read_words(at, !more);
      if (!more || at.words >= levels_.size()) continue;
      if (at.words > words) {
        levels_[at.words].push_back(std::move(at));
        continue;
      }
      const std::vector<double> options = at.derivation.options();
      for (const std::size_t i : worth_trying(at, options)) {
        Beginning next = at;
        next.derivation.choose(i, options[i]);
        open.push_back(std::move(next));
      }
    }
  }

  /// Of a long list of words those that stand in the text about here, else those spelled most like what does.
  std::vector<std::size_t> worth_trying(const Beginning& at, const std::vector<double>& options) const {
    const auto& alternatives = at.derivation.choice().alternatives;
    std::vector<std::size_t> kept;
    std::vector<std::pair<double, std::size_t>> others;
    const std::size_t place = at.place(), first = place > window ? place - window : 0,
                      end = std::min(place + window, low_.size());
    const std::string begun = lowered(std::string_view(at.derivation.story().text).substr(at.read));
    for (std::size_t i = 0; i < alternatives.size(); ++i) {
      if (options[i] <= 0) continue;
      const std::string& plain = alternatives[i].plain;
      if (plain.empty() || alternatives.size() <= spellings) {
        kept.push_back(i);
        continue;
      }
      const std::string all = begun + lowered(plain);
      const TextSpan span = next_word(all, 0);
      const std::string word = all.substr(span.begin, span.end - span.begin);
      const bool whole = span.end < all.size() || begun.empty();
      bool found = false;
      for (std::size_t j = first; j < end && !found; ++j)
        found = low_[j] == word || (!whole && low_[j].starts_with(word));
      if (found)
        kept.push_back(i);
      else
        others.emplace_back(
            place < low_.size() ? cost_of_exchange(word, low_[place]) - 0.01 * std::log(options[i]) : -options[i], i);
    }
    std::ranges::sort(others);
    for (std::size_t i = 0; i < std::min(spellings, others.size()); ++i) kept.push_back(others[i].second);
    return kept;
  }

  void read_words(Beginning& at, bool ended) {
    const std::string& text = at.derivation.story().text;
    while (true) {
      const TextSpan span = next_word(text, at.read);
      if (span.begin == span.end || (span.end == text.size() && in_word(text.back()) && !ended)) return;
      const std::string word = text.substr(span.begin, span.end - span.begin);
      at.read = span.end;
      ++at.words;
      std::vector<double> row{at.row.front() + skipped};
      for (std::size_t j = 0; j < words_.size(); ++j)
        row.push_back(
            std::min({at.row[j] + cost_of_exchange(word, words_[j]), at.row[j + 1] + skipped, row[j] + skipped}));
      at.row = std::move(row);
      if (at.row.back() >= best_) continue;
      best_ = at.row.back();
      best_text_ = text.substr(0, span.end);
    }
  }

  std::vector<std::string> words_, low_;
  std::stop_token stop_;
  std::vector<std::vector<Beginning>> levels_;  // by the number of words
  double best_ = 1e9;
  std::string best_text_;
};

}  // namespace

bool knows_word(const Grammar& grammar, std::string_view word) {
  std::set<std::string, std::less<>> pieces;
  bool makes_names = false;
  for (const Grammar::Rule& rule : grammar.rules())
    for (const auto& alternative : rule.alternatives)
      for (const Grammar::Item& item : alternative.items) {
        makes_names |= item.kind == Grammar::ItemKind::capital;
        if (item.kind == Grammar::ItemKind::article) pieces.insert({"a", "an"});
        for (std::string& each : words_of(item.text)) pieces.insert(lowered(each));
      }
  const std::string wanted = lowered(word);
  if (pieces.contains(wanted) || !makes_names) return pieces.contains(wanted);
  std::vector<bool> reached(wanted.size() + 1);
  reached[0] = true;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    for (std::size_t n = 1; reached[i] && i + n <= wanted.size(); ++n)
      if (pieces.contains(std::string_view(wanted).substr(i, n))) reached[i + n] = true;
  return reached.back();
}

std::size_t longest_beginning(const Grammar& grammar, std::string_view text, const std::stop_token& stop) {
  std::vector<Derivation> open{Derivation(grammar, grammar.rule("story"), &text)};
  std::size_t longest = 0;
  while (!open.empty() && longest < text.size()) {
    check(stop);
    Derivation derivation = std::move(open.back());
    open.pop_back();
    const bool more = derivation.advance();
    longest = std::max(longest, derivation.matched());
    if (!more) continue;
    const std::vector<double> options = derivation.options();
    for (std::size_t i = options.size(); i-- > 0;)
      if (options[i] > 0) open.emplace_back(derivation).choose(i, options[i]);
  }
  return std::min(longest, text.size());
}

std::string nearest_beginning(const Grammar& grammar, std::string_view text, const std::stop_token& stop,
                              std::size_t most_words) {
  if (words_of(text).size() > most_words) return "";
  return NearestSearch(grammar, text, stop).run();
}

LanguageFit fit_to_language(const Grammar& grammar, std::string_view text, const std::stop_token& stop) {
  while (!text.empty() && is_gap(text.back())) text.remove_suffix(1);
  LanguageFit fit;
  std::size_t at = longest_beginning(grammar, text, stop);
  if (at == text.size()) return fit;
  fit.inside = false;
  const auto begin_of_word = [&](std::size_t i) {
    while (i > 0 && in_word(text[i]) && in_word(text[i - 1])) --i;
    return i;
  };
  // Before a blank, what came so far may have been the beginning of a longer word: "I" of "Ida".
  if (at > 0 && !in_word(text[at]) && in_word(text[at - 1]))
    if (const std::size_t begin = begin_of_word(at - 1); !knows_word(grammar, text.substr(begin, at - begin)))
      at = begin;
  at = begin_of_word(at);
  fit.word = next_word(text, at);
  fit.known = knows_word(grammar, text.substr(fit.word.begin, fit.word.end - fit.word.begin));
  fit.nearest = nearest_beginning(grammar, text, stop);
  return fit;
}

}  // namespace headscope
