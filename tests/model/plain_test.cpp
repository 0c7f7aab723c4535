// The plain definition against what transformers computes in float64, for every family; and the engine against it.

#include "core/model/plain.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/io/safetensors.h"
#include "core/model/formats/model_files.h"
#include "tests/model/parity.h"
#include "tests/support/paths.h"

namespace headscope::plain_test {

using namespace testing;

namespace {

plain::Pass plainly(const std::filesystem::path& folder, std::span<const std::int32_t> ids) {
  const ModelConfig config = load_config(folder);
  const ModelFiles files = ModelFiles::open(locate_model(folder));
  return plain::forward(config, read_weights(*files.weights, config), ids);
}

/// Largest |table − truth| over (query, …) of a tensor of the same numbers.
double gap(const plain::Table& table, const Tensor& truth) {
  REQUIRE(truth.size() == table.rows * table.columns);
  const Tensor flat = truth.reshape({table.rows, table.columns});
  double worst = 0;
  for (Index row = 0; row < table.rows; ++row)
    for (Index column = 0; column < table.columns; ++column)
      worst = std::max(worst, std::abs(table.at(row, column) - static_cast<double>(flat.at(row, column))));
  return worst;
}

}  // namespace

TEST_CASE("the plain definition is what transformers says in float64, for every family") {
  int families = 0;
  for (const auto& entry : std::filesystem::directory_iterator(reference("families"))) {
    const std::string family = entry.path().filename().string();
    CAPTURE(family);
    const SafetensorsFile expected = SafetensorsFile::open(entry.path() / "expected.safetensors");
    const auto ids = expected.entry("tokens").items<std::int32_t>();
    const plain::Pass pass = plainly(entry.path(), ids);
    const Subject engine(entry.path());
    const auto trace = engine.trace(ids, MapStorage::dense, false);
    for (const auto& [label, tensor] : expected.tensors()) {
      const std::optional<Site> site = parse_site(label);
      if (!site) continue;
      CAPTURE(label);
      const Tensor truth = expected.tensor(label);  // angles there are of float32 frequencies
      if (site->kind == SiteKind::pattern)
        for (Index head = 0; head < truth.dim(0); ++head)
          CHECK(gap(nth(nth(pass.patterns, site->layer), head), truth.select(0, head)) < 1e-6);
      if (site->kind == SiteKind::resid_post) CHECK(gap(nth(pass.resid_post, site->layer), truth) < 2e-5);
      if (site->kind == SiteKind::logits) CHECK(gap(pass.logits, truth) < 1e-5);
    }
    CHECK(gap(pass.logits, expected.tensor("logits")) < 1e-5);
    CHECK(gap(pass.logits, trace->logits) < 1e-4);
    for (const AttentionMap& map : trace->maps)
      CHECK(gap(nth(nth(pass.patterns, map.layer()), map.head()), map.to_dense()) < map_tolerance);
    ++families;
  }
  CHECK(families >= 31);
}

TEST_CASE("losses of the plain definition are −ln of a softmax, and a pass can be stopped") {
  plain::Table logits(3, 2);
  logits.at(0, 0) = std::log(3.0);  // 3/4, 1/4
  logits.at(1, 1) = 700;            // nothing overflows
  const std::vector<std::int32_t> ids{0, 1, 0};
  const std::vector<double> losses = plain::losses(logits, ids);
  REQUIRE(losses.size() == 2);
  CHECK(losses[0] == doctest::Approx(std::log(4.0)));
  CHECK(losses[1] == doctest::Approx(700));
  const std::filesystem::path folder = reference("gpt2-random");
  const ModelConfig config = load_config(folder);
  const ModelFiles files = ModelFiles::open(locate_model(folder));
  std::stop_source stop;
  stop.request_stop();
  CHECK_THROWS_AS(plain::forward(config, read_weights(*files.weights, config), ids, stop.get_token()), Cancelled);
}

}  // namespace headscope::plain_test
