// The language of bigram-backcopy: what may follow what, by hand; its entropy, told twice; rows that a model learns.

#include "core/train/backcopy_task.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "core/train/recipe.h"

namespace headscope::backcopy_task_test {

namespace {
const TaskSettings settings{.kind = "backcopy", .seed = 3, .letters = 6, .mark_share = 0.25};
}  // namespace

TEST_CASE("behind a mark stands the letter before it; behind a letter one of four, or a mark, as often as is said") {
  const Backcopy language(settings);
  Random random(1);
  constexpr int n = 200'000;
  const std::string text = language.sample(random, n);
  REQUIRE(text.size() == n);
  std::map<char, std::map<char, double>> after;
  std::map<char, double> letters;
  double marks = 0, free = 0;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i - 1] == Backcopy::mark) {
      REQUIRE(text[i] == text[i - 2]);
      continue;
    }
    ++free;
    marks += text[i] == Backcopy::mark;
    if (text[i] != Backcopy::mark) ++after[text[i - 1]][text[i]], ++letters[text[i - 1]];
  }
  CHECK(marks / free == doctest::Approx(0.25).epsilon(0.02));
  CHECK(after.size() == 6);
  for (const auto& [letter, next] : after) {
    CHECK(next.size() == 4);
    CHECK(!next.contains(letter));
    std::multiset<double> shares;
    for (const auto& [_, count] : next) shares.insert(count / letters[letter]);
    double at = 0;
    for (const double expected : {0.08, 0.12, 0.2, 0.6})
      CHECK(*std::next(shares.begin(), static_cast<std::ptrdiff_t>(at++)) == doctest::Approx(expected).epsilon(0.08));
  }
}

TEST_CASE("how likely a text of it is, multiplied out, and nats of a character by the definition") {
  const Backcopy language(settings);
  Random random(7);
  // The followers of 'a', read off: the likeliest stands behind it most often.
  const std::string long_text = language.sample(random, 50'000);
  std::map<char, int> behind;
  for (std::size_t i = 1; i < long_text.size(); ++i)
    if (long_text[i - 1] == 'a' && long_text[i] != '=') ++behind[long_text[i]];
  const char next =
      std::max_element(behind.begin(), behind.end(), [](auto& a, auto& b) { return a.second < b.second; })->first;
  const auto text = [&](const char* pattern) {  // 'N' is that letter
    std::string out = pattern;
    for (char& c : out)
      if (c == 'N') c = next;
    return out;
  };
  CHECK(language.log_probability("a") == doctest::Approx(std::log(1.0 / 6)));
  CHECK(language.log_probability(text("aN")) == doctest::Approx(std::log(1.0 / 6 * 0.75 * 0.6)));
  CHECK(language.log_probability(text("a=aN")) == doctest::Approx(std::log(1.0 / 6 * 0.25 * 0.75 * 0.6)));
  CHECK(language.log_probability(text("a=N")) == -std::numeric_limits<double>::infinity());
  CHECK(language.log_probability("=a") == -std::numeric_limits<double>::infinity());
  CHECK(language.log_probability("aa") == -std::numeric_limits<double>::infinity());
  CHECK(language.log_probability("az") == -std::numeric_limits<double>::infinity());
  // Of every 5 characters 4 stand behind a letter; each a mark (¼) or one of four followers.
  double nats = -0.25 * std::log(0.25);
  for (const double p : {0.6, 0.2, 0.12, 0.08}) nats -= 0.75 * p * std::log(0.75 * p);
  CHECK(language.entropy() == doctest::Approx(nats / 1.25));
  CHECK(-language.log_probability(long_text) / 50'000 == doctest::Approx(language.entropy()).epsilon(0.02));
}

TEST_CASE("the task: rows of characters behind the end-of-text, the same at every call, held out what is not trained") {
  const auto task = make_task(settings);
  const Batch batch = task->batch(4, 3, 10);
  CHECK(batch.sequences == 3);
  CHECK(batch.length == 10);
  CHECK(batch.tokens == task->batch(4, 3, 10).tokens);
  CHECK(batch.tokens != task->batch(5, 3, 10).tokens);
  for (int row = 0; row < 3; ++row) {
    const auto at = static_cast<std::size_t>(row) * 10;
    CHECK(batch.tokens[at] == task->vocabulary().end_of_text_id());
    for (std::size_t i = 1; i < 10; ++i) CHECK(batch.tokens[at + i] == batch.targets[at + i - 1]);
  }
  const HeldOut data = task->held_out(200, 10, 40);
  CHECK(data.targets == 200 * 40);
  // The first letter of a row can be any of six, which costs more than one behind another.
  CHECK(data.floor > Backcopy(settings).entropy());
  CHECK(data.floor == doctest::Approx(Backcopy(settings).entropy() + std::log(6.0) / 40).epsilon(0.03));
  CHECK(task->probe_text(40).size() == 39);
  const Recipe recipe = parse_recipe(
      R"({"name": "a", "task": {"kind": "backcopy", "letters": 7, "mark_share": 0.1}, "model": {"family": "llama"}})",
      "here");
  CHECK(recipe.task.letters == 7);
  CHECK(parse_recipe(recipe_json(recipe), "again").task == recipe.task);
  CHECK_THROWS(
      parse_recipe(R"({"name": "a", "task": {"kind": "backcopy", "letters": 4}, "model": {"family": "llama"}})", "x"));
  CHECK_THROWS(parse_recipe(
      R"({"name": "a", "task": {"kind": "backcopy", "mark_share": 1}, "model": {"family": "llama"}})", "x"));
}

}  // namespace headscope::backcopy_task_test
