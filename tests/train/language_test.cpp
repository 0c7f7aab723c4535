// The language whose truth is known: small grammars by hand, and thousands of stories read back from their text alone.

#include "core/train/language.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace headscope::language_test {

namespace {
std::string word(const Story& story, const TextSpan& span) {
  return story.text.substr(span.begin, span.end - span.begin);
}
/// "verb→subject" … of one kind, in order.
std::vector<std::string> words_of(const Story& story, LinkKind kind) {
  std::vector<std::string> found;
  for (const TruthLink& link : story.links)
    if (link.kind == kind) found.push_back(word(story, link.from) + ">" + word(story, link.to));
  return found;
}
Story only(const std::string& grammar_text) {
  const Grammar grammar = Grammar::parse(grammar_text, "test");
  Random random(1);
  return Language(grammar).sample(random);
}
using Words = std::vector<std::string>;
}  // namespace

TEST_CASE("language: probabilities by hand, conditions and draws without repetition") {
  const Grammar grammar = Grammar::parse(
      "story = (3) <a:who> saw <b:who>. | (1) Nobody came.\n"
      "who = (2) Ann{f} | Bo{m} | Cy{m}\n",
      "test");
  const Language language(grammar);
  // Ann first: ¾ · ½; then Bo or Cy alike: ¾ · ½ · ½.
  CHECK(language.log_probability("Ann saw Bo.") == doctest::Approx(std::log(0.75 * 0.5 * 0.5)).epsilon(1e-12));
  // Bo first: ¾ · ¼; then Ann 2 of 3.
  CHECK(language.log_probability("Bo saw Ann.") == doctest::Approx(std::log(0.75 * 0.25 * 2 / 3)).epsilon(1e-12));
  CHECK(language.log_probability("Nobody came.") == doctest::Approx(std::log(0.25)).epsilon(1e-12));
  CHECK(std::isinf(language.log_probability("Ann saw Ann.")));
  CHECK(std::isinf(language.log_probability("Ann saw Bo")));
  CHECK(std::isinf(language.log_probability("Ann saw Bo. ")));
  double sum = 0;
  std::set<std::string> texts;
  language.all_derivations(
      [&](const Story& story) { sum += std::exp(story.log_probability), texts.insert(story.text); });
  CHECK(sum == doctest::Approx(1).epsilon(1e-12));
  CHECK(texts.size() == 7);
}

TEST_CASE("language: a text with two derivations has the sum of both") {
  const Grammar grammar = Grammar::parse("story = <left> | <right>\nleft = (3) aa | b\nright = aa | c\n", "test");
  const Language language(grammar);
  CHECK(language.log_probability("Aa") == doctest::Approx(std::log(0.5 * 0.75 + 0.5 * 0.5)).epsilon(1e-12));
}

TEST_CASE("language: links by hand") {
  const Story story = only(
      "determiners = the an a his\n"
      "story = @<a:man> $found <an> old #key. The #@<t:thing> that @2<he a> $2lost $was <his a> #<t>. \"Is <a> glad?\" "
      "asked <an> #@owl.\n"
      "man = <cap><syllable>do{m}\nsyllable = ba\nthing = key{s}\nhe x = [x=m] <pro x he>\nhis x = <pro x his>\n");
  CHECK(story.text == "Bado found an old key. The key that he lost was his key. \"Is Bado glad?\" asked an owl.");
  CHECK(story.log_probability == 0);
  CHECK(words_of(story, LinkKind::subject) == Words{"found>Bado", "lost>he", "was>key"});
  CHECK(words_of(story, LinkKind::antecedent) == Words{"he>Bado", "his>Bado", "his>he"});
  CHECK(words_of(story, LinkKind::determiner) == Words{"key>an", "key>The", "key>his", "owl>an"});
  CHECK(words_of(story, LinkKind::occurrence) == Words{"key>key", "Bado>Bado"});
}

TEST_CASE(
    "language: what is said of a word may depend on the word; nothing is said of one that none of the lists has") {
  const Grammar grammar = Grammar::parse(
      "story = The <a:beast> <does a>.\nbeast = (3) dog{s} | cats{p} | owl{s}\n"
      "does x = (2) [x is dog owl] waits | [x is dog] barks | [x is cats] [x=p] purr | [x is owl] [x=p] purrs\n",
      "test");
  const Language language(grammar);
  CHECK(language.log_probability("The dog barks.") == doctest::Approx(std::log(0.6 / 3)).epsilon(1e-12));
  CHECK(language.log_probability("The cats purr.") == doctest::Approx(std::log(0.2)).epsilon(1e-12));
  CHECK(language.log_probability("The owl waits.") == doctest::Approx(std::log(0.2)).epsilon(1e-12));
  CHECK(std::isinf(language.log_probability("The owl barks.")));
  CHECK(std::isinf(language.log_probability("The owl purrs.")));
}

TEST_CASE("language: of a song that is sung again, every syllable is linked to what followed it before") {
  const Story story = only("story = She sang: <s:line>, then: <s>.\nline = <tone> <tone> <tone>\ntone = la\n");
  CHECK(story.text == "She sang: la la la, then: la la la.");
  const auto at = [&](std::size_t i) {
    const std::size_t begin = std::string_view(story.text).find("la la la", i < 3 ? 0 : 12) + 3 * (i % 3);
    return TextSpan{begin, begin + 2};
  };
  CHECK(story.links ==
        std::vector<TruthLink>{{LinkKind::continuation, at(3), at(1)}, {LinkKind::continuation, at(4), at(2)}});
}

TEST_CASE("language: who was mentioned last decides what a pronoun may mean") {
  const std::string words = "who = Ann{f} | Eve{f} | Bo{m}\n";
  // After "Eve" no pronoun can mean Ann any more; Bo in between changes nothing.
  const auto text = [&](const std::string& body) {
    return only("story = " + body + "\nann = Ann{f}\neve = Eve{f}\nbo = Bo{m}\nsub x = [last x] she | <x>\n").text;
  };
  const Grammar grammar = Grammar::parse(
      "story = <a:ann> met <b:bo>. <sub a>.\nann = Ann{f}\nbo = Bo{m}\nsub x = (3) [last x] she | <x>\n", "test");
  CHECK(Language(grammar).log_probability("Ann met Bo. She.") == doctest::Approx(std::log(0.75)));
  CHECK(text("<a:ann> met <b:eve>. <sub a>") == "Ann met Eve. Ann");
}

TEST_CASE("language: every fault of a grammar is named") {
  for (const char* bad : {"story = <nobody>", "story = <a", "story = (0) a", "story = (x) a", "story = [a] b",
                          "story = [a is] b", "story = [ab is c] b", "story = <a:story>", "story = <pro a>", "s = a",
                          "story = a\nstory = b", " a", "story", "story = {mm}", "story = a > b",
                          "story = <one a>\none = b", "story = <a:two>\ntwo = <b:one>\none = c", "story q1 = a", ""})
    CHECK_THROWS_AS(Grammar::parse(bad, "test"), Error);
  const Grammar grammar = Grammar::parse("story x = <x>", "test");
  CHECK_THROWS_AS(Language{grammar}, Error);
  CHECK_THROWS_AS(Language(grammar, "tale"), Error);
}

TEST_CASE(
    "language: 2,000 stories are read back from their text alone: one derivation, the same probability and links") {
  const Language language(Grammar::stories());
  Random random(2026);
  std::map<LinkKind, int> links;
  double nats = 0;
  int read = 0, words = 0;
  std::set<std::string> distinct;
  for (int i = 0; i < 2000; ++i) {
    const Story story = language.sample(random);
    int derivations = 0;
    language.derivations(story.text, [&](const Story& found) {
      ++derivations;
      CHECK(found.text == story.text);
      CHECK(found.log_probability == doctest::Approx(story.log_probability).epsilon(1e-12));
      CHECK(found.links == story.links);
    });
    if (derivations == 1)
      ++read;
    else
      MESSAGE(derivations << " derivations: " << story.text);
    nats -= story.log_probability;
    words += 1 + static_cast<int>(std::ranges::count(story.text, ' '));
    distinct.insert(story.text);
    for (const TruthLink& link : story.links) {
      ++links[link.kind];
      CHECK(link.to.end <= link.from.begin);
      CHECK(link.from.end <= story.text.size());
    }
  }
  CHECK(read == 2000);
  CHECK(distinct.size() == 2000);
  // About 166 words and 126 nats a story, and plenty of every kind of link.
  CHECK(words / 2000 > 150);
  CHECK(words / 2000 < 185);
  CHECK(nats / 2000 > 110);
  CHECK(nats / 2000 < 140);
  for (const LinkKind kind :
       {LinkKind::subject, LinkKind::antecedent, LinkKind::determiner, LinkKind::occurrence, LinkKind::continuation})
    CHECK(links[kind] > 2000 * 5);
}

TEST_CASE("language: every step of a dance follows from the two before it, and from no one alone") {
  const Grammar& grammar = Grammar::stories();
  std::map<std::pair<std::string, std::string>, std::set<std::string>> after_two;
  std::map<std::string, std::set<std::string>> after_one;
  for (const Grammar::Alternative& verse :
       grammar.rules()[static_cast<std::size_t>(grammar.rule("steps"))].alternatives) {
    std::istringstream words(verse.plain);
    const std::vector<std::string> steps{std::istream_iterator<std::string>(words), {}};
    REQUIRE(steps.size() == 8);
    for (std::size_t i = 2; i < steps.size(); ++i) {
      after_two[{steps[i - 2], steps[i - 1]}].insert(steps[i]);
      after_one[steps[i - 1]].insert(steps[i]);
    }
  }
  CHECK(after_two.size() == 30);
  for (const auto& [two, next] : after_two) CHECK(next.size() == 1);
  CHECK(after_one.size() == 6);
  for (const auto& [one, next] : after_one) CHECK(next.size() == 5);
}

TEST_CASE("language: the same seed tells the same story") {
  const Language language(Grammar::stories());
  Random one(5), two(5), three(6);
  CHECK(language.sample(one).text == language.sample(two).text);
  CHECK(language.sample(one).text != language.sample(three).text);
}

}  // namespace headscope::language_test
