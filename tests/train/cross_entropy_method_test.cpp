// The cross-entropy method beside its definition, round by round, and on a loss whose least value is known.

#include "core/train/cross_entropy_method.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"

namespace headscope::cross_entropy_method_test {

using doctest::Approx;

TEST_CASE("every round is drawn about the mean of the best, as wide as they are") {
  CrossEntropySearch::Settings settings{.samples = 12, .elites = 3, .rounds = 3, .deviation = 0.5, .seed = 4};
  CrossEntropySearch search({1, -2}, settings);
  const auto loss = [](double x, double y) { return std::pow(x - 0.3, 2) + 4 * std::pow(y + 1, 2); };
  double least = std::numeric_limits<double>::infinity();
  for (int round = 0; round < 3; ++round) {
    std::vector<std::array<double, 3>> tried;  // loss, x, y
    const std::vector<double> mean = search.mean(), deviation = search.deviation();
    for (int i = 0; i < 12; ++i) {
      REQUIRE_FALSE(search.finished());
      const double x = search.next()[0], y = search.next()[1];
      if (round == 0 && i == 0) CHECK((x == 1 && y == -2));
      CHECK(std::abs(x - mean[0]) < 6 * deviation[0]);
      tried.push_back({loss(x, y), x, y});
      least = std::min(least, tried.back()[0]);
      search.tell(tried.back()[0]);
      CHECK(search.best_loss() == least);
    }
    std::ranges::sort(tried);
    for (std::size_t k : {1u, 2u}) {
      const double m = (tried[0][k] + tried[1][k] + tried[2][k]) / 3;
      double variance = 0;
      for (std::size_t i = 0; i < 3; ++i) variance += std::pow(tried[i][k] - m, 2) / 3;
      CHECK(search.mean()[k - 1] == Approx(m).epsilon(1e-12));
      CHECK(search.deviation()[k - 1] == Approx(std::max(0.01, std::sqrt(variance))).epsilon(1e-12));
    }
    REQUIRE(search.best_by_round().size() == static_cast<std::size_t>(round + 1));
    CHECK(search.best_by_round().back() == least);
    CHECK(loss(search.best()[0], search.best()[1]) == least);
  }
  CHECK(search.finished());
}

TEST_CASE("the least value is found, the seed decides the draws, and a loss that is no number is the worst") {
  CrossEntropySearch::Settings settings{.samples = 30, .elites = 6, .rounds = 25, .deviation = 1, .seed = 2};
  settings.least_deviation = 1e-6;
  const auto found = [&](std::uint64_t seed) {
    settings.seed = seed;
    CrossEntropySearch search({0, 0, 0}, settings);
    while (!search.finished()) {
      const auto at = search.next();
      search.tell(std::pow(at[0] - 0.7, 2) + std::pow(at[1] + 0.4, 2) + 0.5 * std::pow(at[2] - 0.1, 2));
    }
    return search.best();
  };
  const std::vector<double> best = found(2);
  CHECK(best[0] == Approx(0.7).epsilon(0.01));
  CHECK(best[1] == Approx(-0.4).epsilon(0.01));
  CHECK(best[2] == Approx(0.1).epsilon(0.05));
  CHECK(found(2) == best);
  CHECK_FALSE(found(3) == best);

  CrossEntropySearch search({0}, {.samples = 4, .elites = 1, .rounds = 1});
  search.tell(std::nan(""));
  const double second = search.next()[0];
  search.tell(5);
  search.tell(std::nan(""));
  search.tell(7);
  CHECK(search.best_loss() == 5);
  CHECK(search.best()[0] == second);
  CHECK(search.mean()[0] == second);
  CHECK(search.deviation()[0] == 0.01);
}

TEST_CASE("settings that make no sense are refused") {
  for (const CrossEntropySearch::Settings& wrong :
       {CrossEntropySearch::Settings{.samples = 3, .elites = 4}, CrossEntropySearch::Settings{.elites = 0},
        CrossEntropySearch::Settings{.rounds = 0}, CrossEntropySearch::Settings{.deviation = 0}})
    CHECK_THROWS_AS(CrossEntropySearch({1, 2}, wrong), Error);
  CHECK_THROWS_AS(CrossEntropySearch({}, {}), Error);
}

}  // namespace headscope::cross_entropy_method_test
