// Where a text leaves a language, and what of the language is nearest: by hand on small grammars, and on the bundled
// ones.

#include "core/train/language_fit.h"

#include <doctest/doctest.h>

#include <string>

#include "core/analysis/learnt_language.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "tests/support/paths.h"

namespace headscope::language_fit_test {

namespace {
const Grammar& small() {
  static const Grammar grammar = Grammar::parse(
      "story = <a:who> saw <an> #<b:beast>.<more a b>\nwho = Ann{f} | Bo{m} | Ida{f}\n"
      "beast = dog{s} | cat{s} | owl{s} | goat{s} | fox{s} | frog{s}\nmore a b = (3) ^ | _<a> fed the #<b>.\n",
      "test");
  return grammar;
}
std::string word(const LanguageFit& fit, const std::string& text) {
  return text.substr(fit.word.begin, fit.word.end - fit.word.begin);
}
}  // namespace

TEST_CASE("language fit: the texts that bundled models open with lie in their languages") {
  for (const char* name : {"everyday-gpt2", "everyday-gpt2.first", "tiny-gpt2", "tiny-gpt2.first", "tiny-llama"}) {
    CAPTURE(name);
    const std::string text = read_file(testing::source_dir() / "assets/examples" / (std::string(name) + ".txt"));
    const std::string model = std::string(name).substr(0, std::string(name).find('.'));
    const Grammar* const grammar = learnt_grammar(testing::source_dir() / "models" / model);
    REQUIRE(grammar);
    const LanguageFit fit = fit_to_language(*grammar, text);
    CAPTURE(fit.nearest);
    CHECK(fit.inside);
  }
}

TEST_CASE("language fit: what somebody pastes may be one word of any length") {
  const std::string text = "Ann saw a " + std::string(std::size_t{1} << 20, 'x');
  const LanguageFit fit = fit_to_language(small(), text);
  CHECK_FALSE(fit.inside);
  CHECK_FALSE(fit.known);
  CHECK(fit.word.begin == 10);
  CHECK(fit.word.end == text.size());
  CHECK(fit.nearest.starts_with("Ann saw a"));
}

TEST_CASE("language fit: beginnings of texts are inside, to the letter") {
  for (const char* text : {"", "A", "Ann", "Ann saw", "Ann saw a", "Ann saw an owl", "Ann saw a dog.",
                           "Ann saw a dog. ", "Ann saw a dog. Ann fed the dog."})
    CHECK_MESSAGE(fit_to_language(small(), text).inside, text);
  CHECK(longest_beginning(small(), "Ann saw a dog") == 13);
  CHECK(longest_beginning(small(), "Ann saw a duck") == 11);
  CHECK(longest_beginning(small(), "Ann saw a dog. Ann fed the cat.") == 27);
  CHECK(longest_beginning(small(), "Ann saw a dog. Ann fed the dog. Bo") == 31);
  CHECK(longest_beginning(small(), "x") == 0);
}

TEST_CASE("language fit: the word at which it leaves, and whether the language has that word") {
  const auto check = [](const std::string& text, const std::string& left, bool known, const std::string& nearest) {
    CAPTURE(text);
    const LanguageFit fit = fit_to_language(small(), text);
    CHECK_FALSE(fit.inside);
    CHECK(word(fit, text) == left);
    CHECK(fit.known == known);
    CHECK(fit.nearest == nearest);
  };
  check("Ann saw a dig", "dig", false, "Ann saw a dog");
  check("Ann saw a doggy.", "doggy", false, "Ann saw a dog.");
  check("Ann saw a dog. Ann fed the cat.", "cat", true, "Ann saw a dog. Ann fed the dog.");
  check("Ann saw a owl", "owl", true, "Ann saw an owl");
  check("ann saw a dog", "ann", true, "Ann saw a dog");
  check("I saw a fox", "I", false, "Ida saw a fox");  // "I" alone is no beginning of "Ida"
  check("Bo saw really a goat.", "really", false, "Bo saw a goat.");
  check("Bo saw goat.", "goat", true, "Bo saw a goat.");
}

TEST_CASE("language fit: known are whole words, and of a grammar that makes names what its pieces give") {
  CHECK(knows_word(small(), "FED"));
  CHECK(knows_word(small(), "an"));
  CHECK_FALSE(knows_word(small(), "doga"));
  CHECK(knows_word(Grammar::stories(), "Zoziford"));
  CHECK_FALSE(knows_word(Grammar::stories(), "bicycle"));
  const Grammar& everyday = Grammar::named("everyday", "test");
  CHECK(knows_word(everyday, "bike"));
  CHECK_FALSE(knows_word(everyday, "bicycle"));
}

TEST_CASE("language fit: the bundled languages answer for what people type") {
  const Grammar& everyday = Grammar::named("everyday", "test");
  const std::string bicycle = "Anna saw a bicycle and she fed the bicycle.";
  const LanguageFit fit = fit_to_language(everyday, bicycle);
  CHECK(word(fit, bicycle) == "bicycle");
  CHECK_FALSE(fit.known);
  CHECK(fit.nearest.starts_with("Anna saw a"));
  CHECK(fit.nearest.ends_with("."));
  CHECK(fit_to_language(everyday, fit.nearest).inside);
  CHECK(fit_to_language(everyday, "Anna saw a dog and she fed the dog").inside);
  CHECK(fit_to_language(everyday, "Tom gave Anna a kite because she was unhappy").nearest ==
        "Tom gave Anna a kite because she was upset");
  const std::string number = "The dogs that chased the cat is tired.";
  CHECK(word(fit_to_language(everyday, number), number) == "is");
  CHECK(fit_to_language(everyday, number).nearest == "The dog that chased the cat is tired.");
  CHECK_FALSE(fit_to_language(Grammar::stories(), "Anna saw a dog").inside);
  const auto examples = testing::source_dir() / "assets/examples";
  CHECK(fit_to_language(Grammar::stories(), read_file(examples / "tiny-gpt2.txt")).inside);
  // Whatever is typed ends: with something, or with nothing where it is too long.
  for (const std::string& text :
       {std::string("!?.,"), std::string("\xff\x00\x80", 3), std::string(5000, 'x'), std::string("Grüße, Привет 你好")})
    CHECK_FALSE(fit_to_language(everyday, text).inside);
  std::string many;
  for (int i = 0; i < 400; ++i) many += "dog ";
  CHECK(fit_to_language(everyday, many).nearest.empty());
  std::stop_source stopped;
  stopped.request_stop();
  CHECK_THROWS_AS(fit_to_language(everyday, "dog", stopped.get_token()), Cancelled);
}

TEST_CASE("language fit: which language a model learnt is read off its recipe") {
  const auto models = testing::source_dir() / "models";
  CHECK(learnt_grammar(models / "tiny-gpt2") == &Grammar::stories());
  CHECK(learnt_grammar(models / "tiny-bert") == &Grammar::stories());
  CHECK(learnt_grammar(models / "everyday-gpt2") == &Grammar::named("everyday", "test"));
  CHECK(learnt_grammar(models / "induction-2l") == nullptr);
  CHECK(learnt_grammar(models) == nullptr);
}

}  // namespace headscope::language_fit_test
