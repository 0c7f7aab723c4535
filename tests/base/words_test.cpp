// Tables of words: what is taken and what is refused, forms whose fields stand in another order, and many threads.

#include "core/base/words.h"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/base/file.h"
#include "tests/support/paths.h"

namespace headscope::base_words_test {

using namespace testing;

namespace {
/// Says by no table again, whatever becomes of the test.
struct Saying {
  explicit Saying(const WordTable::Entries& entries, const std::string& language = "xx") {
    use_words(WordTable(entries), language);
  }
  ~Saying() { use_words({}); }
};

/// What a table of one entry says of it: nullptr and why not.
std::pair<bool, std::string> taken(const std::string& english, const std::string& text) {
  const WordTable table(WordTable::Entries{{english, text}});
  if (!table.refused().empty()) CHECK(table.refused().front().english == english);
  return {table.find(english) != nullptr, table.refused().empty() ? "" : table.refused().front().why};
}

std::string refusal(const std::string& content) {
  const auto file = scratch_dir("words") / "xx.json";
  write_file_atomically(file, content);
  try {
    WordTable::read(file);
    return "";
  } catch (const Error& error) {
    CHECK(error.where.ends_with("xx.json"));
    return error.expected + " / " + error.found;
  }
}
}  // namespace

TEST_CASE("an entry is taken that has the fields of its English, in any order") {
  CHECK(taken("Layer", "Schicht").first);
  CHECK(taken("step {} of {}", "Schritt {} von {}").first);
  CHECK(taken("step {} of {}", "von {1} der {0}").first);
  CHECK(taken("step {} of {}", "{0}, {1}, noch einmal {0}").first);  // a language may say something twice
  CHECK(taken("{:.2f} nats", "{0:.2f} Nats").first);
  CHECK(taken("{:.{}f} of {}", "{2}: {0:.{1}f}").first);
  CHECK(taken("{:.{}f} of {}", "{:.{}f} von {}").first);
  CHECK(taken("in {{braces}} {}", "{} in {{Klammern}}").first);
}

TEST_CASE("an entry with other fields is refused, by its text and both lists of fields") {
  CHECK(taken("step {} of {}", "Schritt {}") ==
        std::pair{false, std::string("expected the fields {0} {1}, found {0}")});
  CHECK(taken("Layer", "Schicht {}") == std::pair{false, std::string("expected the fields none, found {0}")});
  CHECK(taken("{} heads", "Köpfe") == std::pair{false, std::string("expected the fields {0}, found none")});
  CHECK(taken("{:.2f} nats", "{:.3f} Nats") ==
        std::pair{false, std::string("expected the fields {0:.2f}, found {0:.3f}")});
  CHECK(taken("step {} of {}", "{2} von {0}").second == "expected the fields {0} {1}, found {0} {2}");
  for (const char* broken : {"{", "}", "a { b", "{} }", "{:.{}", "{0", "{ {} }", "{} {0}", "{0:.{}f}"})
    CHECK(taken("{} heads", broken).second ==
          "expected the fields {0}, found braces that do not match, or numbered fields beside others");
}

TEST_CASE("an empty text is nobody's: English stands in its place, and nothing is refused") {
  CHECK(taken("Layer", "") == std::pair{false, std::string()});
  const Saying saying(WordTable::Entries{{"Layer", ""}, {"Head", "Kopf"}});
  CHECK(std::string(said("Layer")) == "Layer");
  CHECK(std::string(said("Head")) == "Kopf");
}

TEST_CASE("a file that is no table is one error, which names it") {
  CHECK(refusal("[1, 2]").starts_with("a table of words"));
  CHECK(refusal("{\"a\": ").starts_with("a table of words"));
  CHECK(refusal("").starts_with("a table of words"));
  CHECK(refusal("{\"Layer\": \"Schicht\", \"Head\": 3}") == "a text for “Head” / number");
  CHECK(refusal("{\"Layer\": null}") == "a text for “Layer” / null");
  CHECK_THROWS_AS(WordTable::read(scratch_dir("no-words") / "none.json"), Error);
  CHECK(refusal("{}") == "");
  const auto file = scratch_dir("good-words") / "de.json";
  write_file_atomically(file, "{\"Layer\": \"Schicht\", \"{} heads\": \"Köpfe\"}");
  const WordTable table = WordTable::read(file);
  CHECK(table.entries() == WordTable::Entries{{"Layer", "Schicht"}});
  CHECK(table.refused().size() == 1);
}

TEST_CASE("texts are said by the table in use, with their fields where that language has them") {
  CHECK(language_of_words() == "");
  CHECK(say("{} of {}: {:.2f}", 1, std::string("two"), 3.0) == "1 of two: 3.00");
  {
    const Saying saying(WordTable::Entries{{"{} of {}: {:.2f}", "{2:.2f} bei {1} von {0}"}, {"Layer", "Schicht"}},
                        "de");
    CHECK(language_of_words() == "de");
    CHECK(say("{} of {}: {:.2f}", 1, std::string("two"), 3.0) == "3.00 bei two von 1");
    CHECK(std::string(said("Layer")) == "Schicht");
    CHECK(said(std::string("Layer")) == "Schicht");
    CHECK(said_view("Layer") == "Schicht");
    CHECK(said_view("Layers") == "Layers");
    CHECK(say("{} layers", 2) == "2 layers");
    const char* kept = said("Layer");
    use_words(WordTable(WordTable::Entries{{"Layer", "Couche"}}), "fr");
    CHECK(std::string(kept) == "Schicht");  // what was said stays valid
    CHECK(std::string(said("Layer")) == "Couche");
    CHECK(language_of_words() == "fr");
  }
  CHECK(std::string(said("Layer")) == "Layer");
  CHECK(language_of_words() == "");
  use_words({}, "de");
  CHECK(language_of_words() == "");  // a table that says nothing is none
}

TEST_CASE("many threads say while the table changes: each text is whole, of one table or the other") {
  std::atomic<bool> done = false;
  std::atomic<int> wrong = 0, says = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i)
    threads.emplace_back([&, i] {
      while (!done) {
        const std::string text = say("{} of {}", i, "all"), layer = said("Layer"), language = language_of_words();
        if (text != fmt::format("{} of all", i) && text != fmt::format("all: {}", i)) ++wrong;
        if (layer != "Layer" && layer != "Schicht") ++wrong;
        if (!language.empty() && language != "de") ++wrong;
        ++says;
      }
    });
  for (int i = 0; i < 200 || says < 1000; ++i) {
    use_words(i % 2 ? WordTable() : WordTable(WordTable::Entries{{"{} of {}", "{1}: {0}"}, {"Layer", "Schicht"}}),
              "de");
    std::this_thread::yield();
  }
  done = true;
  for (std::thread& each : threads) each.join();
  use_words({});
  CHECK(wrong == 0);
}

TEST_CASE("what is kept is said by the table in use, of the values that it was kept with") {
  std::string token = "pies";
  const Worded answer = say_later("“{}”", token);
  const Worded kept = say_later("{} falls from {:.2f} to {}", answer, 0.5, Worded(to_say("below 0.001"))) +
                      say_later(" in {} of {}", 2, to_say("layers")) + std::string(" layers") +
                      Worded::entry("! " + token);
  token = "milk";
  const char* const english = "“pies” falls from 0.50 to below 0.001 in 2 of layers layers! pies";
  CHECK(kept.text() == english);
  {
    const Saying german({{"“{}”", "„{}“"},
                         {"{} falls from {:.2f} to {}", "von {1:.2f} auf {2}: {0}"},
                         {"below 0.001", "unter 0,001"},
                         {" in {} of {}", " in {} der {}"},
                         {"layers", "Schichten"},
                         {"! pies", "!"}});
    CHECK(kept.text() == "von 0.50 auf unter 0,001: „pies“ in 2 der Schichten layers!");
    CHECK(fmt::format("<{}>", answer) == "<„pies“>");
    CHECK(answer == "„pies“");
  }
  CHECK(kept.text() == english);
  CHECK(std::string(Worded()) == "");
  CHECK(Worded().empty());
  CHECK(Worded(std::string()).empty());
  CHECK(Worded(to_say("")).empty());
  CHECK_FALSE(kept.empty());
}

TEST_CASE("what composed texts before sees by a number that another table is in use") {
  const std::uint64_t before = words_generation();
  CHECK(words_generation() == before);
  {
    const Saying german(WordTable::Entries{{"Layer", "Schicht"}});
    CHECK(words_generation() != before);
  }
  const std::uint64_t after = words_generation();
  CHECK(after != before);  // English again, perhaps another English
  const Saying german(WordTable::Entries{{"Layer", "Schicht"}});
  CHECK(words_generation() != after);
}

}  // namespace headscope::base_words_test
