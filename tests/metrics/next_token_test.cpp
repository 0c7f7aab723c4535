#include "core/metrics/next_token.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/metrics/next_token_change.h"

namespace headscope::next_token_test {

using doctest::Approx;

namespace {
Trace trace_of(Tensor logits, std::initializer_list<std::int32_t> ids) {
  Trace trace;
  trace.logits = std::move(logits);
  for (const std::int32_t id : ids) trace.tokens.emplace_back().id = id;
  return trace;
}
const float ln2 = std::log(2.0f), ln3 = std::log(3.0f);
}  // namespace

TEST_CASE("losses and perplexity by hand: three tokens over a vocabulary of three") {
  // Row 0 has probabilities 1/6 2/6 3/6, row 1 has 1/2 1/4 1/4, row 2 predicts what comes after the text.
  const Trace trace = trace_of(Tensor::from({3, 3}, std::vector<float>{0, ln2, ln3, ln2, 0, 0, 5, 5, 5}), {0, 1, 2});
  const std::vector<double> losses = token_losses(trace);
  REQUIRE(losses.size() == 2);
  CHECK(losses[0] == Approx(-std::log(2.0 / 6)).epsilon(1e-7));
  CHECK(losses[1] == Approx(-std::log(1.0 / 4)).epsilon(1e-7));
  CHECK(mean_loss(trace) == Approx((std::log(3.0) + std::log(4.0)) / 2).epsilon(1e-7));
  CHECK(std::exp(mean_loss(trace)) == Approx(std::sqrt(12.0)).epsilon(1e-7));
}

TEST_CASE("huge logits neither overflow nor vanish") {
  const Trace trace = trace_of(Tensor::from({2, 2}, std::vector<float>{1e4f, -1e4f, 0, 0}), {0, 1});
  CHECK(token_losses(trace)[0] == Approx(2e4));
  CHECK(top_next(trace, 1, 0)[0].probability == Approx(1));
}

TEST_CASE("a row's sum of exponentials is that of its numbers, whatever lies between them") {
  Tensor both = Tensor::full({1000, 2}, 1e30f);
  for (Index i = 0; i < 1000; ++i) both.ref(i, 0) = static_cast<float>(40 * std::sin(3.7 * static_cast<double>(i + 1)));
  const Tensor column = both.transpose(0, 1).select(0, 0);
  CHECK(log_sum_exp(column) < 50);
  CHECK(log_sum_exp(column.copy()) == log_sum_exp(column));
}

TEST_CASE("top next tokens: in order of probability, ties by id, probabilities over the whole vocabulary") {
  const Trace trace = trace_of(Tensor::from({2, 4}, std::vector<float>{0, ln2, ln3, ln2, ln3, 0, ln3, 0}), {0, 1});
  const auto first = top_next(trace, 3, 0);
  REQUIRE(first.size() == 3);
  CHECK(first[0].id == 2);
  CHECK(first[1].id == 1);  // equal to 3, and smaller
  CHECK(first[2].id == 3);
  CHECK(first[0].probability == Approx(3.0 / 8).epsilon(1e-6));
  CHECK(first[0].logit == ln3);
  const auto last = top_next(trace, 10);
  REQUIRE(last.size() == 4);
  CHECK(last[0].id == 0);
  CHECK(last[1].id == 2);
  CHECK(last[0].probability == Approx(3.0 / 8).epsilon(1e-6));
  CHECK(top_next(trace, 0).empty());
}

TEST_CASE("a trace with the last logits only gives no losses, and next tokens for the last position alone") {
  const Trace trace = trace_of(Tensor::from({1, 2}, std::vector<float>{0, 1}), {0, 1, 0});
  CHECK(token_losses(trace).empty());
  CHECK(std::isnan(mean_loss(trace)));
  CHECK(top_next(trace, 1)[0].id == 1);
  CHECK(top_next(trace, 1, 2)[0].id == 1);
  CHECK_THROWS_AS(top_next(trace, 1, 0), Error);
  CHECK(top_next(Trace{}, 3).empty());
}

TEST_CASE("a position or a token outside the logits is an error with its number") {
  const Trace trace = trace_of(Tensor::zeros({2, 3}), {0, 7});
  CHECK_THROWS_AS(top_next(trace, 1, 2), Error);
  CHECK_THROWS_AS(top_next(trace, 1, -2), Error);
  try {
    token_losses(trace);
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.where == "token 1");
    CHECK(error.found == "7");
  }
}

TEST_CASE("where a model answers: behind the text, at its first masked token, at a picture's CLS") {
  Trace trace = trace_of(Tensor::zeros({4, 3}), {0, 1, 2, 0});
  const Tensor square = Tensor::full({4, 4}, 0.25f), one_row = Tensor::full({1, 4}, 0.25f);
  const auto map_of = [](const Tensor& weights) {
    return AttentionMap::dense({}, weights, full_rule(), stats_of_weights(weights, nullptr));
  };
  const AttentionMap map = map_of(square);
  CHECK(answer_position(trace) == 3);
  CHECK(usual_query(trace, map) == 3);
  CHECK(target_positions(trace) == std::vector<double>{1, 2, 3});
  trace.model.objective = Objective::masked_token;
  CHECK_FALSE(answer_position(trace));
  CHECK(usual_query(trace, map) == 3);  // nothing is asked for: the last row
  CHECK(targets(trace).empty());
  CHECK(top_next(trace, 2).empty());
  CHECK(std::isnan(next_token_change(trace, trace, 2).kl));
  CHECK(std::isnan(logit_difference(trace, 0, 1)));
  trace.tokens[1].masked = trace.tokens[2].masked = true;
  trace.tokens[1].original = -1, trace.tokens[2].original = 2;
  CHECK(answer_position(trace) == 1);
  CHECK(usual_query(trace, map) == 1);
  CHECK(usual_query(trace, map_of(one_row)) == 0);
  CHECK(target_positions(trace) == std::vector<double>{2});
  trace.model.objective = Objective::image_class;
  CHECK(answer_position(trace) == 0);
  CHECK(usual_query(trace, map) == 0);
}

TEST_CASE("masked tokens: what was there, how likely it is, and the likeliest; nothing is known of a bare mask") {
  // Of row 1 ½ ¼ ¼, of row 2 ¼ ¼ ½.
  Trace trace =
      trace_of(Tensor::from({4, 3}, std::vector<float>{9, 0, 0, ln2, 0, 0, 0, 0, ln2, 0, 9, 0}), {0, 1, 1, 2});
  trace.model.objective = Objective::masked_token;
  trace.tokens[1].masked = trace.tokens[2].masked = true;
  trace.tokens[1].original = 0, trace.tokens[2].original = 2;
  trace.tokens[3].original = 1;  // not masked
  auto answers = masked_answers(trace);
  REQUIRE(answers.size() == 2);
  CHECK(answers[0].position == 1);
  CHECK(answers[0].original == 0);
  CHECK(answers[0].original_probability == Approx(0.5));
  CHECK(answers[0].best.id == 0);
  CHECK(answers[1].position == 2);
  CHECK(answers[1].original == 2);
  CHECK(answers[1].original_probability == Approx(0.5));
  CHECK(mean_loss(trace) == Approx(std::log(2.0)));
  trace.tokens[1].original = -1, trace.tokens[2].original = 3;  // unknown, and of another vocabulary
  answers = masked_answers(trace);
  REQUIRE(answers.size() == 2);
  for (const MaskedAnswer& answer : answers) {
    CHECK(answer.original == -1);
    CHECK(std::isnan(answer.original_probability));
  }
  trace.model.objective = Objective::next_token;
  CHECK(masked_answers(trace).empty());
}

TEST_CASE("a picture has one row of scores, read at CLS") {
  Trace trace = trace_of(Tensor::from({1, 2}, std::vector<float>{0, 1}), {0, 0, 0});
  trace.model.objective = Objective::image_class;
  CHECK(top_next(trace, 1)[0].id == 1);
  CHECK(top_next(trace, 1, 0)[0].id == 1);
  CHECK_THROWS_WITH_AS(top_next(trace, 1, 1), doctest::Contains("the position of CLS, 0, where they are read, found 1"),
                       Error);
  CHECK(logit_difference(trace, 1, 0) == 1);
  CHECK(logit_difference(trace, 1, 0, 0) == 1);
  CHECK(std::isnan(logit_difference(trace, 1, 0, 1)));
}

TEST_CASE("what changes between two runs: each token once, the most probable of either first, and the KL by hand") {
  // ½ ¼ ¼ and ¼ ¼ ½: KL = ½ ln 2 + 0 − ¼ ln 2.
  const Trace before = trace_of(Tensor::from({2, 3}, std::vector<float>{5, 0, 0, ln2, 0, 0}), {0, 1}),
              after = trace_of(Tensor::from({1, 3}, std::vector<float>{0, 0, ln2}), {0, 1});
  const NextTokenChange change = next_token_change(before, after, 2);
  CHECK(change.kl == Approx(0.25 * std::log(2.0)).epsilon(1e-6));
  REQUIRE(change.tokens.size() == 3);  // {0, 1} of the one, {2, 0} of the other
  CHECK(change.tokens[0].id == 0);
  CHECK(change.tokens[0].before == Approx(0.5));
  CHECK(change.tokens[0].after == Approx(0.25));
  CHECK(change.tokens[1].id == 2);
  CHECK(change.tokens[1].after == Approx(0.5));
  CHECK(change.tokens[2].id == 1);
  // Of the last logits alone nothing is known of a row before.
  CHECK(std::isnan(next_token_change(before, after, 2, 0).kl));
  CHECK(next_token_change(before, after, 2, 1).kl == change.kl);
  CHECK(std::isnan(next_token_change(before, after, 2, 2).kl));
  CHECK(next_token_change(before, before, 2, 0).kl == 0);
  // e⁵, 1, 1 over their sum beside ½ ¼ ¼.
  const double most = std::exp(5.0) / (std::exp(5.0) + 2), rest = 1 / (std::exp(5.0) + 2);
  CHECK(next_token_change(before, before, 2, 0, 1).kl ==
        Approx(most * std::log(most / 0.5) + 2 * rest * std::log(rest / 0.25)));
  CHECK(logit_difference(after, 2, 0) == Approx(std::log(2.0)));
  CHECK(std::isnan(logit_difference(after, 2, 0, 0)));
  CHECK(logit_difference(before, 0, 1, 0) == 5);
}

TEST_CASE("a model without logits is asked for nothing") {
  Trace trace = trace_of(Tensor::zeros({2, 3}), {0, 1});
  trace.model.name = "m", trace.model.objective = Objective::masked_token;
  CHECK_THROWS_WITH_AS(most_probable(trace), doctest::Contains("a masked token that is asked for"), Error);
  trace.logits = Tensor();
  CHECK_THROWS_WITH_AS(most_probable(trace), doctest::Contains("a trace with logits"), Error);
  CHECK(prediction_words(Objective::next_token).token == std::string("next token"));
}

}  // namespace headscope::next_token_test
