#include "core/metrics/next_token.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/base/error.h"

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

}  // namespace headscope::next_token_test
