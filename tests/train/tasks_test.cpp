// Tasks: batches are what they say, held-out data is apart and its floor is the exact one.

#include "core/train/tasks.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/train/recipe.h"

namespace headscope::tasks_test {

namespace {
TaskSettings small_stories() {
  return {.kind = "stories", .seed = 3, .vocabulary = 1536, .vocabulary_stories = 1500};
}
std::vector<std::int32_t> row(const std::vector<std::int32_t>& ids, const Batch& batch, int i) {
  const auto begin = ids.begin() + std::ptrdiff_t{i} * batch.length;
  return {begin, begin + batch.length};
}
}  // namespace

TEST_CASE("task stories: rows begin with end-of-text and are stories one after another") {
  const auto task = make_task(small_stories());
  const std::int32_t end = task->vocabulary().end_of_text_id();
  const Batch batch = task->batch(5, 3, 320);
  REQUIRE(batch.tokens.size() == 960);
  REQUIRE(batch.targets.size() == 960);
  int whole = 0;
  for (int i = 0; i < 3; ++i) {
    const auto tokens = row(batch.tokens, batch, i), targets = row(batch.targets, batch, i);
    CHECK(tokens.front() == end);
    CHECK(std::equal(tokens.begin() + 1, tokens.end(), targets.begin()));
    CHECK(std::ranges::count(targets, -1) == 0);
    // Up to the second end-of-text it is one whole story, which the language knows.
    const auto second = std::find(tokens.begin() + 1, tokens.end(), end);
    if (second == tokens.end()) continue;
    ++whole;
    const std::string text = task->tokenizer()->decode(std::vector<std::int32_t>(tokens.begin() + 1, second));
    CHECK(std::isfinite(Language(Grammar::stories()).log_probability(text)));
  }
  CHECK(whole == 3);
  CHECK(task->batch(5, 3, 320).tokens == batch.tokens);
  CHECK(task->batch(6, 3, 320).tokens != batch.tokens);
  CHECK(make_task(small_stories())->batch(5, 3, 320).tokens == batch.tokens);
  TaskSettings other = small_stories();
  other.seed = 4;
  CHECK(make_task(other)->batch(5, 3, 320).tokens != batch.tokens);
}

TEST_CASE("task stories: with the settings a recipe has by itself, stories fit its context") {
  const Recipe recipe;
  const auto task = make_task(recipe.task);
  for (const Story& story : held_out_stories(*task, recipe.evaluate_rows))
    CHECK(task->tokenizer()->encode(story.text).size() < static_cast<std::size_t>(recipe.model.context));
}

TEST_CASE("task stories: held-out rows hold one story and its end; the floor is theirs") {
  const auto task = make_task(small_stories());
  const HeldOut data = task->held_out(5, 2, 256);
  const auto stories = held_out_stories(*task, 5);
  REQUIRE(data.batches.size() == 3);
  CHECK(data.batches[2].sequences == 1);
  double nats = 0;
  std::int64_t targets = 0;
  const std::int32_t end = task->vocabulary().end_of_text_id();
  for (int i = 0; i < 5; ++i) {
    const Batch& batch = data.batches[static_cast<std::size_t>(i / 2)];
    auto ids = row(batch.targets, batch, i % 2);
    std::erase(ids, -1);
    targets += static_cast<std::int64_t>(ids.size());
    REQUIRE(ids.back() == end);
    ids.pop_back();
    CHECK(task->tokenizer()->decode(ids) == stories[static_cast<std::size_t>(i)].text);
    CHECK(row(batch.tokens, batch, i % 2).front() == end);
    nats -= stories[static_cast<std::size_t>(i)].log_probability;
  }
  CHECK(data.targets == targets);
  CHECK(data.floor == doctest::Approx(nats / static_cast<double>(targets)).epsilon(1e-9));
  CHECK_THROWS_AS(task->held_out(5, 2, 64), Error);
  // Where some are longer than the context, the others are all that counts, for the floor too.
  const auto many = held_out_stories(*task, 20);
  std::vector<std::size_t> sizes;
  for (const Story& story : many) sizes.push_back(task->tokenizer()->encode(story.text).size() + 1);
  auto sorted = sizes;
  std::ranges::sort(sorted);
  const auto middle = static_cast<int>(sorted[9]);
  REQUIRE(sorted[9] < sorted[19]);
  const HeldOut short_ones = task->held_out_that_fit(20, 3, middle);
  double kept = 0;
  std::size_t counted = 0;
  int fit = 0;
  for (std::size_t i = 0; i < many.size(); ++i)
    if (sizes[i] <= sorted[9]) kept -= many[i].log_probability, counted += sizes[i], ++fit;
  CHECK(short_ones.left_out == 20 - fit);
  CHECK(short_ones.targets == static_cast<std::int64_t>(counted));
  CHECK(short_ones.floor == doctest::Approx(kept / static_cast<double>(counted)).epsilon(1e-9));
  CHECK(task->held_out_that_fit(20, 3, static_cast<int>(sorted[19])).left_out == 0);
  CHECK_NOTHROW(task->held_out(20, 3, static_cast<int>(sorted[19])));
  CHECK_THROWS_AS(task->held_out(20, 3, static_cast<int>(sorted[19]) - 1), Error);
  CHECK_THROWS_AS(task->held_out_that_fit(20, 3, static_cast<int>(sorted[0]) - 1), Error);
  CHECK(task->tokenizer()->encode(task->probe_text(256)).size() < 256);
  CHECK(task->probe_text(256) == task->probe_text(256));
  for (const int length : {16, 96}) {  // shorter than any story: the beginning of one
    const auto tokens = task->tokenizer()->encode(task->probe_text(length));
    CHECK(static_cast<int>(tokens.size()) < length);
    CHECK(static_cast<int>(tokens.size()) > length / 2);
  }
}

TEST_CASE("task repeated: the floor by hand") {
  // "abab" with a period of 1 to 4: 2 and 4 explain it (3 would need t3 = t0). p = ¼ (95⁻² + 95⁻⁴).
  const double expected = std::log(0.25 * (std::pow(95.0, -2) + std::pow(95.0, -4)));
  CHECK(repeated_log_probability("abab", 1, 4) == doctest::Approx(expected).epsilon(1e-12));
  CHECK(repeated_log_probability("abab", 2, 2) == doctest::Approx(-2 * std::log(95.0)).epsilon(1e-12));
  CHECK(std::isinf(repeated_log_probability("abcd", 1, 3)));
  CHECK(repeated_log_probability("abcd", 1, 9) ==
        doctest::Approx(std::log(6.0 / 9) - 4 * std::log(95.0)).epsilon(1e-12));
}

TEST_CASE("task repeated: rows repeat with a period of their own") {
  const auto task = make_task({.kind = "repeated", .seed = 1, .shortest_period = 5, .longest_period = 11});
  const Batch batch = task->batch(1, 40, 48);
  std::set<int> periods;
  for (int i = 0; i < 40; ++i) {
    const auto ids = row(batch.targets, batch, i);
    int period = 1;
    while (!std::equal(ids.begin() + period, ids.end(), ids.begin())) ++period;
    periods.insert(period);
    CHECK(row(batch.tokens, batch, i).front() == task->vocabulary().end_of_text_id());
  }
  CHECK(*periods.begin() >= 5);
  CHECK(*periods.rbegin() <= 11);
  CHECK(periods.size() >= 5);
  const HeldOut data = task->held_out(100, 10, 48);
  CHECK(data.targets == 4800);
  // About 8 free characters in a row, and which of 7 periods it is: (8 ln 95 + ln 7) / 48.
  CHECK(data.floor == doctest::Approx((8 * std::log(95.0) + std::log(7.0)) / 48).epsilon(0.06));
  CHECK_THROWS_AS(held_out_stories(*task, 1), Error);
  CHECK_THROWS_AS(make_task({.kind = "poems"}), Error);
}

}  // namespace headscope::tasks_test
