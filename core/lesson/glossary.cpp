#include "core/lesson/glossary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <set>

#include "core/base/error.h"
#include "core/lesson/fields.h"

namespace headscope {

namespace {
const GlossaryEntry* with_term(const std::vector<GlossaryEntry>& all, const std::string& term) {
  const auto found = std::ranges::find(all, term, &GlossaryEntry::term);
  return found == all.end() ? nullptr : &*found;
}

/// What is left of a formula without its words: signs and numbers.
std::string signs_of(const std::string& formula) {
  constexpr char latin = '\xC3';  // begins ä, ö, ü and the like in UTF-8, and × and ÷, which count as well
  std::string signs;
  for (std::size_t i = 0; i < formula.size(); ++i)
    if (formula[i] == latin && i + 1 < formula.size() && formula[i + 1] != '\x97' && formula[i + 1] != '\xB7')
      ++i;
    else if (formula[i] != ' ' && !std::isalpha(static_cast<unsigned char>(formula[i])))
      signs += formula[i];
  return signs;
}
}  // namespace

std::vector<GlossaryEntry> parse_glossary(const std::string& text, const std::string& where) {
  FieldLines in(text, where);
  std::vector<GlossaryEntry> all;
  std::set<std::string> terms;
  const auto says_nothing = [&] { return trimmed(in.line()).empty() || in.line().starts_with('#'); };
  for (;;) {
    while (!in.at_end() && says_nothing()) ++in.at;
    if (in.at_end()) return all;
    const std::string place = in.here();
    GlossaryEntry entry;
    const auto into = [](std::string& field) { return [&field](const std::string& value) { field = value; }; };
    read_fields(in, "",
                {{"term", into(entry.term)},
                 {"title", into(entry.title)},
                 {"words", [&](const std::string& value) { entry.words = listed_in(value, ','); }},
                 {"text", into(entry.text)},
                 {"formula", into(entry.formula)},
                 {"lesson", into(entry.lesson)},
                 {"page", into(entry.page)}});
    if (entry.term.empty() || entry.text.empty()) throw Error(place, "a term and its text", "an entry without one");
    if (!terms.insert(entry.term).second) throw Error(place, "every term once", "\"" + entry.term + "\" again");
    if (entry.title.empty()) entry.title = entry.term;
    all.push_back(std::move(entry));
  }
}

std::vector<GlossaryEntry> translated_glossary(const std::vector<GlossaryEntry>& original,
                                               const std::vector<GlossaryEntry>& translation) {
  std::vector<GlossaryEntry> all;
  for (const GlossaryEntry& said : translation) {
    const GlossaryEntry* const own = with_term(original, said.term);
    if (!own) continue;
    GlossaryEntry entry = *own;
    entry.title = said.title;
    entry.text = said.text;
    if (!said.formula.empty()) entry.formula = said.formula;
    entry.words = said.words;
    const auto further = [&entry](const std::string& word) {
      if (word != entry.title && std::ranges::find(entry.words, word) == entry.words.end()) entry.words.push_back(word);
    };
    further(own->term);
    std::ranges::for_each(own->words, further);
    all.push_back(std::move(entry));
  }
  std::ranges::copy_if(original, std::back_inserter(all),
                       [&](const GlossaryEntry& each) { return !with_term(translation, each.term); });
  return all;
}

std::vector<std::string> glossary_faults(const std::vector<GlossaryEntry>& original,
                                         const std::vector<GlossaryEntry>& translation) {
  std::vector<std::string> faults;
  for (const GlossaryEntry& own : original)
    if (!with_term(translation, own.term)) faults.push_back(fmt::format("“{}” is not translated", own.term));
  for (const GlossaryEntry& said : translation) {
    const GlossaryEntry* const own = with_term(original, said.term);
    if (!own) {
      faults.push_back(fmt::format("“{}” is no term of the glossary", said.term));
      continue;
    }
    if (!said.lesson.empty() || !said.page.empty())
      faults.push_back(fmt::format("“{}”: its lesson and page are those of the glossary", said.term));
    if (!said.formula.empty() && (own->formula.empty() || signs_of(said.formula) != signs_of(own->formula)))
      faults.push_back(
          fmt::format("“{}”: expected the formula “{}”, found “{}”", said.term, own->formula, said.formula));
  }
  return faults;
}

}  // namespace headscope
