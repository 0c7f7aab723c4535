#include "core/lesson/glossary.h"

#include <set>

#include "core/base/error.h"
#include "core/lesson/fields.h"

namespace headscope {

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
                 {"words", [&](const std::string& value) { entry.words = listed_in(value, ','); }},
                 {"text", into(entry.text)},
                 {"formula", into(entry.formula)},
                 {"lesson", into(entry.lesson)},
                 {"page", into(entry.page)}});
    if (entry.term.empty() || entry.text.empty()) throw Error(place, "a term and its text", "an entry without one");
    if (!terms.insert(entry.term).second) throw Error(place, "every term once", "\"" + entry.term + "\" again");
    all.push_back(std::move(entry));
  }
}

}  // namespace headscope
