// The language of everyday English: how many words it has, that its probabilities are its own, that it links what
// belongs together, and that what people type first lies inside.

#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/train/language.h"
#include "core/train/recipe.h"
#include "core/train/tasks.h"
#include "tests/support/paths.h"

namespace headscope::everyday_test {

namespace {
const Grammar& everyday() {
  return Grammar::named("everyday", "test");
}
std::string word(const Story& story, const TextSpan& span) {
  return story.text.substr(span.begin, span.end - span.begin);
}
/// The derivation of `text`; the first one where there are several.
Story read(const std::string& text) {
  Story out;
  Language(everyday()).derivations(text, [&](const Story& story) {
    if (out.text.empty()) out = story;
  });
  REQUIRE(out.text == text);
  return out;
}
std::set<std::string> links(const Story& story, LinkKind kind) {
  std::set<std::string> out;
  for (const TruthLink& link : story.links)
    if (link.kind == kind) out.insert(word(story, link.from) + ">" + word(story, link.to));
  return out;
}
using Links = std::set<std::string>;
}  // namespace

TEST_CASE("everyday: 600 words and more, all of which are drawn") {
  const Language language(everyday());
  Random random(1);
  std::set<std::string> words;
  std::size_t longest = 0;
  for (int i = 0; i < 30'000; ++i) {
    const std::string text = language.sample(random).text;
    std::string each;
    std::size_t count = 0;
    for (const char c : text + " ") {
      if (std::isalpha(static_cast<unsigned char>(c))) {
        each += static_cast<char>(std::tolower(c));
      } else if (!each.empty()) {
        words.insert(each), ++count;
        each.clear();
      }
    }
    longest = std::max(longest, count);
  }
  CHECK(words.size() >= 750);
  CHECK(words.size() < 800);
  CHECK(longest >= 25);
  CHECK(longest <= 50);
  for (const char* each :
       {"she", "him", "they", "who", "that", "because", "but", "cat", "mat", "anna", "s", "yesterday"})
    CHECK(words.contains(each));
}

TEST_CASE("everyday: what people type first lies inside") {
  const Language language(everyday());
  for (const char* text :
       {"The cat sat on the mat.", "Anna saw a dog and she fed the dog.", "Tom gave Anna a book because she was sad.",
        "Anna has a ball and Tom has a kite. Who has the kite? Tom has the kite.",
        "The girls who fed the horse are happy. They laugh.", "The keys of the king are in the box.",
        "Anna's brother Tom is a doctor and he works in the hospital. Where does Tom work? He works in the hospital.",
        "It is rainy today, so Anna takes her umbrella.",
        "Anna is taller than Tom and Tom is taller than Max. Who is the tallest? Anna is the tallest."})
    CHECK_MESSAGE(std::isfinite(language.log_probability(text)), text);
  for (const char* text :
       {"The girls who fed the horse is happy.", "The keys of the king is in the box.", "Anna saw an dog.",
        "Anna's sister Tom is a doctor.", "Anna has a ball and Tom has a kite. Who has the kite? Anna has the kite.",
        "The cow barked.", "It is rainy today, so Anna takes his umbrella.",
        "Anna is taller than Tom. Who is shorter? Anna is shorter."})
    CHECK_MESSAGE(std::isinf(language.log_probability(text)), text);
}

TEST_CASE("everyday: links by hand") {
  const Story gift = read("Tom gave Anna a book because she was sad. She thanked him and read the book.");
  CHECK(links(gift, LinkKind::subject) == Links{"gave>Tom", "was>she", "thanked>She"});
  CHECK(links(gift, LinkKind::antecedent) == Links{"she>Anna", "She>Anna", "She>she", "him>Tom"});
  CHECK(links(gift, LinkKind::determiner) == Links{"book>a", "book>the"});
  CHECK(links(gift, LinkKind::occurrence) == Links{"book>book"});
  const Story riddle =
      read("Anna's hat is red and Tom's shoes are blue. What colour are Tom's shoes? His shoes are blue.");
  CHECK(links(riddle, LinkKind::subject) == Links{"is>hat", "are>shoes"});
  CHECK(links(riddle, LinkKind::antecedent) == Links{"His>Tom"});
  CHECK(links(riddle, LinkKind::determiner) == Links{"hat>s", "shoes>s", "shoes>His"});
  CHECK(links(riddle, LinkKind::occurrence) == Links{"Tom>Tom", "shoes>shoes", "blue>blue"});
  // Across a clause with another number in it the verb goes back to its own subject.
  CHECK(links(read("The girls who fed the horse are happy."), LinkKind::subject) == Links{"fed>girls", "are>girls"});
  const Story why = read("Ben was tired because he had worked all day. Why was Ben tired? He had worked all day.");
  CHECK(links(why, LinkKind::continuation) == Links{"worked>all", "all>day"});
}

TEST_CASE("everyday: read back from their text alone, texts have the probability they were drawn with, or more") {
  const Language language(everyday());
  Random random(2);
  std::map<LinkKind, int> count;
  int once = 0;
  double drawn = 0, all = 0;
  for (int i = 0; i < 500; ++i) {
    const Story story = language.sample(random);
    double sum = 0;
    int derivations = 0;
    bool same = false;
    language.derivations(story.text, [&](const Story& found) {
      ++derivations;
      sum += std::exp(found.log_probability);
      same |= found.links == story.links;
    });
    CHECK(same);
    CHECK(std::log(sum) >= story.log_probability - 1e-9);
    once += derivations == 1;
    drawn -= story.log_probability, all -= std::log(sum);
    for (const TruthLink& link : story.links) {
      ++count[link.kind];
      CHECK(link.to.end <= link.from.begin);
    }
  }
  // Where two derivations make one text, its probability is that of both: the floor takes that into account.
  CHECK(once > 425);
  CHECK(once < 500);
  CHECK(drawn - all > 0.01 * 500);
  CHECK(drawn - all < 0.1 * 500);
  CHECK(all / 500 > 17);
  CHECK(all / 500 < 21);
  for (const LinkKind kind : {LinkKind::subject, LinkKind::antecedent, LinkKind::determiner, LinkKind::occurrence})
    CHECK(count[kind] > 250);
  CHECK(count[LinkKind::continuation] > 5);
}

TEST_CASE("everyday: with the vocabulary of the bundled recipe every word is one token") {
  const Recipe recipe = load_recipe(testing::source_dir() / "models/everyday-gpt2/recipe.json");
  CHECK(recipe.task.grammar == "everyday");
  const auto task = make_task(recipe.task);
  int tokens = 0, texts = 0;
  for (const Story& story : held_out_stories(*task, 2000)) {
    for (const Token& token : task->tokenizer()->encode(story.text)) {
      ++tokens;
      if (token.begin == 0) continue;
      const auto letter = [&](std::int64_t i) {
        return std::isalpha(static_cast<unsigned char>(story.text[static_cast<std::size_t>(i)])) != 0;
      };
      CHECK_FALSE((letter(token.begin) && letter(token.begin - 1)));
    }
    ++texts;
  }
  CHECK(tokens / texts >= 15);
  CHECK(tokens / texts <= 20);
  const HeldOut data = task->held_out(400, 100, recipe.model.context);
  CHECK(data.floor > 1.0);
  CHECK(data.floor < 1.1);
}

TEST_CASE("everyday: a recipe names its grammar, an old one does not, and an unknown one is refused") {
  const auto recipe = [](const std::string& grammar) {
    return R"({"name": "a", "task": {"kind": "stories")" + grammar + R"(}, "model": {"family": "gpt2"}})";
  };
  const Recipe old = parse_recipe(recipe(""), "r.json"),
               now = parse_recipe(recipe(R"(, "grammar": "everyday")"), "r.json");
  CHECK(old.task.grammar == "stories");
  CHECK(recipe_json(old).find("grammar") == std::string::npos);
  CHECK(recipe_json(now).find("\"grammar\": \"everyday\"") != std::string::npos);
  CHECK(parse_recipe(recipe_json(now), "again").task == now.task);
  CHECK_THROWS_WITH_AS(parse_recipe(recipe(R"(, "grammar": "everyda")"), "r.json"),
                       doctest::Contains("expected one of the grammars stories, everyday, found \"everyda\"\n  hint: "
                                         "nearest names: everyday"),
                       Error);
  CHECK_THROWS_AS(parse_recipe(R"({"name": "a", "task": {"kind": "repeated", "grammar": "everyday"},
                                   "model": {"family": "gpt2"}})",
                               "r.json"),
                  Error);
}

}  // namespace headscope::everyday_test
