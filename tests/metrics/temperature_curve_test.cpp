#include "core/metrics/temperature_curve.h"

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

#include "core/base/error.h"
#include "core/edits/temperature_edit.h"
#include "core/run/run_request.h"
#include "tests/support/paths.h"

namespace headscope::temperature_curve_test {

using testing::reference;

namespace {
double mean_entropy(const AttentionMap& map) {
  const auto& rows = map.stats().entropy;
  return std::accumulate(rows.begin(), rows.end(), 0.0) / static_cast<double>(rows.size());
}

std::shared_ptr<const Trace> run_at(const LoadedModel& loaded, Backend& backend, double tau, MapStorage storage) {
  RunRequest request;
  request.model = reference("gpt2-random");
  request.ids = {3, 14, 15, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2};
  request.capture.maps = storage;
  // Only the head in question, so that its scores stay what they were in every layer.
  request.edits = {{{1, 1}, SetTemperature{tau}}};
  return run(loaded, request, Ctx{backend});
}
}  // namespace

TEST_CASE("the curve gives the entropy that the model has when it is run again at each temperature") {
  Backend backend(1);
  const LoadedModel loaded{Model::load(reference("gpt2-random"), backend), nullptr};
  const std::vector<double> taus{0.05, 0.3, 1, 2.5, 40};
  for (const MapStorage storage : {MapStorage::dense, MapStorage::factored}) {
    const auto plain = run_at(loaded, backend, 1, storage);
    REQUIRE(plain->map({1, 1}).is_factored() == (storage == MapStorage::factored));
    const TemperatureCurve curve = temperature_curve(plain->map({1, 1}), taus);
    CHECK(curve.rows == 20);
    for (std::size_t t = 0; t < taus.size(); ++t) {
      const double again = mean_entropy(run_at(loaded, backend, taus[t], storage)->map({1, 1}));
      CHECK(curve.entropy[t] == doctest::Approx(again).epsilon(1e-4));
    }
  }
}

TEST_CASE("scores of a factored map are those that its rule makes of q·k, where it multiplies as where it adds") {
  Backend backend(1);
  const LoadedModel loaded{Model::load(reference("gpt2-random"), backend), nullptr};
  RunRequest request;
  request.model = reference("gpt2-random");
  request.ids = {3, 14, 15, 9, 2, 6, 5, 3, 5, 8, 9, 7};
  request.capture.maps = MapStorage::factored;
  request.edits = {parse_intervention("1.1@3..: temperature 0.2", "test"),
                   parse_intervention("1.1: position alibi on top", "test")};
  const AttentionMap map = run(loaded, request, Ctx{backend})->map({1, 1});
  REQUIRE(map.is_factored());
  std::vector<double> scores(12);
  for (Index i = 1; i < 12; ++i) {
    row_scores(map, i, scores);
    for (std::size_t j = 0; j < static_cast<std::size_t>(i); ++j)  // ln of a ratio of weights is a difference of scores
      CHECK(scores[j] - scores[j + 1] ==
            doctest::Approx(std::log(static_cast<double>(map.weight(i, static_cast<Index>(j)))) -
                            std::log(static_cast<double>(map.weight(i, static_cast<Index>(j) + 1))))
                .epsilon(1e-3));
  }
}

TEST_CASE("two keys one nat apart: the entropy of a coin with odds e^(1/τ)") {
  const double p = 1 / (1 + std::exp(-1.0));
  const Tensor weights =
      Tensor::from({2, 2}, std::vector<float>{1, 0, static_cast<float>(p), static_cast<float>(1 - p)});
  const AttentionMap map = AttentionMap::dense({}, weights, causal_rule(), stats_of_weights(weights, nullptr));
  const std::vector<double> taus{0.5, 1, 4};
  const TemperatureCurve curve = temperature_curve(map, taus);
  for (std::size_t t = 0; t < taus.size(); ++t) {
    const double q = 1 / (1 + std::exp(-1 / taus[t]));
    // The first row sees itself alone and has entropy 0.
    CHECK(curve.entropy[t] == doctest::Approx((-q * std::log(q) - (1 - q) * std::log(1 - q)) / 2).epsilon(1e-6));
  }
  CHECK(temperature_curve(map, taus, 1).entropy[2] == doctest::Approx(2 * curve.entropy[2]));  // the last row alone
}

TEST_CASE("a map without any visible key has no curve, and a stop ends the work") {
  const Tensor nothing = Tensor::zeros({3, 3});
  const AttentionMap map = AttentionMap::dense({}, nothing, nullptr, stats_of_weights(nothing, nullptr));
  const std::vector<double> taus{1, 2};
  const TemperatureCurve curve = temperature_curve(map, taus);
  CHECK(curve.rows == 0);
  CHECK(std::isnan(curve.entropy[1]));
  std::stop_source stop;
  stop.request_stop();
  CHECK_THROWS_AS(temperature_curve(map, taus, 256, stop.get_token()), Cancelled);
}

TEST_CASE("temperatures are spaced evenly on a logarithmic axis") {
  const std::vector<double> taus = temperatures(0.01, 100, 5);
  const std::vector<double> wanted{0.01, 0.1, 1, 10, 100};
  REQUIRE(taus.size() == 5);
  for (std::size_t i = 0; i < 5; ++i) CHECK(taus[i] == doctest::Approx(wanted[i]));
}

TEST_CASE("scores of a row that does not begin at the first key stand at their own keys") {
  Backend backend(1);
  const LoadedModel loaded{Model::load(reference("gpt2-random"), backend), nullptr};
  RunRequest request;
  request.model = reference("gpt2-random");
  request.ids = {3, 14, 15, 9, 2, 6, 5, 3};
  request.capture.maps = MapStorage::factored;
  request.edits = {parse_intervention("1.1: mask window 3", "test")};
  const AttentionMap map = run(loaded, request, Ctx{backend})->map({1, 1});
  REQUIRE(map.is_factored());
  std::vector<double> scores(8);
  for (Index i = 0; i < 8; ++i) {
    row_scores(map, i, scores);
    double sum = 0;
    for (const double each : scores) sum += std::exp(each);
    for (Index j = 0; j < 8; ++j) {
      const double each = scores[static_cast<std::size_t>(j)];
      CHECK(std::isinf(each) == (j > i || j + 3 <= i));
      CHECK(std::exp(each) / sum == doctest::Approx(static_cast<double>(map.weight(i, j))).epsilon(1e-4));
    }
  }
}

}  // namespace headscope::temperature_curve_test
