// Small tasks: changes of texts by hand, drawn tasks that follow from their seed, tasks of somebody's own lines.

#include "core/train/task_texts.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "core/base/error.h"

namespace headscope::task_texts_test {

using Texts = std::vector<std::string>;

namespace {
int word_count(const std::string& text) {
  return static_cast<int>(std::ranges::count(text, ' ')) + 1;
}
}  // namespace

TEST_CASE("the changes that make a task of a language, by hand") {
  const Grammar& everyday = Grammar::named("everyday", "test");
  CHECK(without_determiners("Tom saw a dog. The dog ran to his house.", everyday) == "Tom saw dog. Dog ran to house.");
  CHECK(without_determiners("Is it his? The three hens", everyday) == "Is it his? Hens");
  CHECK(said_twice("Tom saw a dog. Why?") == "Tom Tom saw saw a a dog dog. Why Why?");
  // a 3, the 2, dog 2, ran 1, saw 1: of equals the first in the alphabet. Tom is never written small.
  const Texts texts = {"Tom saw a dog and a a.", "The the dog the ran."};
  const auto pairs = frequent_pairs(texts, 2);
  REQUIRE(pairs.size() == 2);
  CHECK(pairs[0] == std::pair<std::string, std::string>{"a", "dog"});
  CHECK(pairs[1] == std::pair<std::string, std::string>{"the", "and"});
  CHECK(frequent_pairs(texts, 100).size() == 3);
  CHECK(with_exchanged("The dog and a cat, Dog.", pairs) == "And a the dog cat, A.");
  CHECK(with_exchanged("Tom saw it.", pairs) == "Tom saw it.");
}

TEST_CASE("drawn tasks: as many texts as asked for, none twice, of the kind they say, the same from the same seed") {
  const Grammar& everyday = Grammar::named("everyday", "test");
  const TaskCounts counts{10, 3, 5};
  int asked = 0;
  const auto any = [&](const std::string&) { return ++asked, true; };
  const auto tasks = drawn_tasks(everyday, counts, 7, any);
  REQUIRE(tasks.size() == 4);
  CHECK(asked >= 4 * 18);
  CHECK(tasks == drawn_tasks(everyday, counts, 7, any));
  CHECK_FALSE(tasks == drawn_tasks(everyday, counts, 8, any));
  const Language language(everyday);
  for (const TaskTexts& task : tasks) {
    CAPTURE(task.name);
    CHECK(task.learn.size() == 10);
    CHECK(task.shots.size() == 3);
    CHECK(task.test.size() == 5);
    std::set<std::string> all;
    for (const Texts* list : {&task.learn, &task.shots, &task.test}) all.insert(list->begin(), list->end());
    CHECK(all.size() == 18);
    for (const std::string& text : all) {
      CHECK(word_count(text) <= (task.name == "twice" ? 44 : 22));
      if (task.name == "bare") CHECK((" " + text).find(" the ") == std::string::npos);
      if (task.name == "questions") CHECK(text.find('?') != std::string::npos);
      if (task.name == "twice") {
        const std::size_t space = text.find(' ');
        CHECK(text.substr(0, space) == text.substr(space + 1, space));
      }
    }
  }
  CHECK(tasks[2].name == "exchanged");
  CHECK(tasks[2].about.find("4 pairs of frequent words exchanged: the ↔ and") == 0);
  // Stories ask nothing.
  CHECK(drawn_tasks(Grammar::stories(), {2, 1, 1}, 1, any).size() == 3);
  int short_ones = 0;
  const auto brief =
      drawn_tasks(everyday, counts, 7, [&](const std::string& text) { return text.size() < 60 && ++short_ones; });
  for (const std::string& text : brief[0].learn) CHECK(text.size() < 60);
  try {
    drawn_tasks(everyday, counts, 7, [](const std::string&) { return false; });
    FAIL("texts that none fits");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find("task bare: expected 18 different texts, found 0 in 3601 draws") !=
          std::string::npos);
  }
}

TEST_CASE("a task of somebody's own: a text in each line, of every four two learnt, one a shot, one measured") {
  const TaskTexts task = task_of_lines("mine", "one\n\ntwo \r\nthree\nfour\nfive\n", "mine.txt");
  CHECK(task.name == "mine");
  CHECK(task.learn == Texts{"one", "two", "five"});
  CHECK(task.shots == Texts{"three"});
  CHECK(task.test == Texts{"four"});
  CHECK_THROWS_AS(task_of_lines("mine", "one\ntwo\nthree", "mine.txt"), Error);
  CHECK_THROWS_AS(task_of_lines("mine", "", "mine.txt"), Error);
  CHECK_THROWS_WITH(task_of_lines("mine", "one\n\ntwo\xFF\nthree\nfour", "mine.txt"),
                    doctest::Contains("mine.txt, line 3: expected valid UTF-8, found an invalid byte at offset 3"));
}

}  // namespace headscope::task_texts_test
