#include "core/train/task_texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "core/base/error.h"
#include "core/base/utf8.h"
#include "core/base/words.h"

namespace headscope {

namespace {

constexpr int most_words = 22, pairs_exchanged = 4;

bool ends_sentence(char c) {
  return c == '.' || c == '?' || c == '!';
}
bool letter(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0;
}
char small(char c) {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}
bool capital(char c) {
  return std::isupper(static_cast<unsigned char>(c)) != 0;
}

std::vector<std::string> words_in(std::string_view text) {
  std::vector<std::string> out;
  std::string word;
  for (const char c : text) {
    if (c != ' ') {
      word += c;
    } else if (!word.empty()) {
      out.push_back(std::move(word));
      word.clear();
    }
  }
  if (!word.empty()) out.push_back(std::move(word));
  return out;
}

/// The marks behind a word.
std::string tail_of(const std::string& word) {
  std::size_t end = word.size();
  while (end > 0 && !letter(word[end - 1])) --end;
  return word.substr(end);
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& each : words) out += (out.empty() ? "" : " ") + each;
  return out;
}

/// The first sentences of a text, as many as have so many words together; "" where the first has more.
std::string first_sentences(std::string_view text) {
  std::vector<std::string> kept, sentence;
  for (const std::string& word : words_in(text)) {
    sentence.push_back(word);
    if (kept.size() + sentence.size() > static_cast<std::size_t>(most_words)) break;
    if (!ends_sentence(word.back())) continue;
    kept.insert(kept.end(), sentence.begin(), sentence.end());
    sentence.clear();
  }
  return joined(kept);
}

}  // namespace

std::string without_determiners(std::string_view text, const Grammar& grammar) {
  std::vector<std::string> out;
  bool begins = true;  // a sentence
  for (std::string word : words_in(text)) {
    const std::string tail = tail_of(word);
    std::string bare = word.substr(0, word.size() - tail.size());
    std::ranges::transform(bare, bare.begin(), small);
    // A mark behind it would be lost: then it stands for something itself ("His is red, hers …").
    if (tail.empty() && grammar.determiner(bare)) continue;
    if (begins) word.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(word.front())));
    begins = ends_sentence(word.back());
    out.push_back(std::move(word));
  }
  return joined(out);
}

std::string said_twice(std::string_view text) {
  std::vector<std::string> out;
  for (const std::string& word : words_in(text)) {
    out.push_back(word.substr(0, word.size() - tail_of(word).size()));
    out.push_back(word);
  }
  return joined(out);
}

std::vector<std::pair<std::string, std::string>> frequent_pairs(const std::vector<std::string>& texts, int pairs) {
  std::map<std::string, int> counts;
  for (const std::string& text : texts)
    for (const std::string& word : words_in(text)) {
      const std::string bare = word.substr(0, word.size() - tail_of(word).size());
      if (!bare.empty() && std::ranges::all_of(bare, [](char c) { return letter(c) && !capital(c); })) ++counts[bare];
    }
  std::vector<std::pair<std::string, int>> ranked(counts.begin(), counts.end());
  std::ranges::stable_sort(ranked, [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::pair<std::string, std::string>> out;
  for (std::size_t i = 0; i + 1 < ranked.size() && out.size() < static_cast<std::size_t>(pairs); i += 2)
    out.emplace_back(ranked[i].first, ranked[i + 1].first);
  return out;
}

std::string with_exchanged(std::string_view text, const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::vector<std::string> out = words_in(text);
  for (std::string& word : out) {
    const std::string tail = tail_of(word);
    std::string bare = word.substr(0, word.size() - tail.size());
    if (bare.empty()) continue;
    const bool large = capital(bare.front());
    bare.front() = small(bare.front());
    for (const auto& [a, b] : pairs) {
      if (bare != a && bare != b) continue;
      std::string other = bare == a ? b : a;
      if (large) other.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(other.front())));
      word = other + tail;
      break;
    }
  }
  return joined(out);
}

std::vector<TaskTexts> drawn_tasks(const Grammar& grammar, const TaskCounts& counts, std::uint64_t seed,
                                   const std::function<bool(const std::string&)>& fits) {
  const Language language(grammar);
  constexpr int looked_at = 300;
  std::vector<std::string> seen;
  int asking = 0;
  Random first(seed);
  for (int i = 0; i < looked_at; ++i) {
    seen.push_back(first_sentences(language.sample(first).text));
    asking += seen.back().find('?') != std::string::npos;
  }
  const auto pairs = frequent_pairs(seen, pairs_exchanged);
  struct Kind {
    const char *name, *about;
    std::function<std::string(const std::string&)> made;  // "" = no text of this task
  };
  std::string exchanged;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, pairs.size()); ++i)
    exchanged += fmt::format("{}{} ↔ {}", i ? ", " : "", pairs[i].first, pairs[i].second);
  const std::string about_exchanged =
      fmt::format("{} pairs of frequent words exchanged: {} …", pairs.size(), exchanged);
  std::vector<Kind> kinds = {
      {"bare", to_say("the language's texts without determiners (a, the, his, three …)"),
       [&](const std::string& text) {
         std::string made = without_determiners(text, grammar);
         return made == text ? std::string() : made;
       }},
      {"twice", to_say("every word said twice"), [](const std::string& text) { return said_twice(text); }},
      {"exchanged", about_exchanged.c_str(), [&](const std::string& text) { return with_exchanged(text, pairs); }}};
  if (asking * 20 >= looked_at)
    kinds.push_back(
        {"questions", to_say("texts of the language that ask a question, as it writes them"),
         [](const std::string& text) { return text.find('?') == std::string::npos ? std::string() : text; }});
  std::vector<TaskTexts> out;
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    TaskTexts task{kinds[k].name, kinds[k].about, {}, {}, {}};
    Random random(seed * 1000 + k + 1);
    std::set<std::string> drawn;
    const int wanted = counts.learn + counts.shots + counts.test;
    for (int tries = 0; static_cast<int>(drawn.size()) < wanted; ++tries) {
      if (tries > 200 * wanted)
        throw Error("task " + task.name, fmt::format("{} different texts", wanted),
                    fmt::format("{} in {} draws", drawn.size(), tries), "fewer texts may do");
      const std::string text = first_sentences(language.sample(random).text);
      if (text.empty()) continue;
      const std::string made = kinds[k].made(text);
      if (made.empty() || drawn.contains(made) || !fits(made)) continue;
      drawn.insert(made);
      auto& list = static_cast<int>(task.test.size()) < counts.test     ? task.test
                   : static_cast<int>(task.shots.size()) < counts.shots ? task.shots
                                                                        : task.learn;
      list.push_back(made);
    }
    out.push_back(std::move(task));
  }
  return out;
}

std::vector<std::string> text_lines(std::string_view lines, const std::string& where) {
  std::vector<std::string> out;
  int number = 0;
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t end = std::min(lines.find('\n', at), lines.size());
    std::string line(lines.substr(at, end - at));
    at = end + 1, ++number;
    if (const auto bad = first_invalid_utf8(line))
      throw Error(fmt::format("{}, line {}", where, number), "valid UTF-8",
                  fmt::format("an invalid byte at offset {} of the line", *bad));
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '\t')) line.pop_back();
    if (!line.empty()) out.push_back(std::move(line));
  }
  return out;
}

TaskTexts task_of_lines(const std::string& name, std::string_view lines, const std::string& where) {
  TaskTexts task{name, "the texts of " + where, {}, {}, {}};
  int count = 0;
  for (std::string& line : text_lines(lines, where)) {
    const int place = count++ % 4;
    (place < 2 ? task.learn : place == 2 ? task.shots : task.test).push_back(std::move(line));
  }
  if (count < 4) throw Error(where, "at least four texts, one in a line", std::to_string(count));
  return task;
}

}  // namespace headscope
