#include "core/analysis/state_steps.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/base/error.h"
#include "core/model/weights.h"
#include "tests/analysis/subjects.h"

using namespace headscope;
using namespace headscope::testing;

namespace headscope::state_steps_test {

TEST_CASE("state steps: shares kept and amounts written by their definition") {
  for (const char* folder : {"families/mamba", "families/mamba2"}) {
    CAPTURE(folder);
    const ReadSubject s(folder);
    const auto found = read_state_steps(s.model(), *s.trace);
    REQUIRE(found.size() == static_cast<std::size_t>(s.model().config().dims.layers));
    const Tensor &delta = s.site(SiteKind::mixer_delta, 1), &x = s.site(SiteKind::mixer_x, 1),
                 &b = s.site(SiteKind::mixer_b, 1);
    const Tensor log = s.model().weights().blocks[1].decay_log;
    const Index lane = 3, t = 4, width = x.dim(1) / delta.dim(1);
    double kept = 0;
    for (Index i = 0; i < log.dim(1); ++i)
      kept += std::exp(static_cast<double>(delta.at(t, lane)) * -std::exp(static_cast<double>(log.at(lane, i))));
    CHECK(found[1].kept.at(t, lane) == doctest::Approx(kept / static_cast<double>(log.dim(1))));
    double square = 0;
    for (Index i = 0; i < width; ++i) square += std::pow(static_cast<double>(x.at(t, lane * width + i)), 2);
    CHECK(found[1].written.at(t, lane) ==
          doctest::Approx(static_cast<double>(delta.at(t, lane)) * std::sqrt(square / static_cast<double>(width))));
    double norm = 0;
    for (Index g = 0; g < b.dim(1); ++g)
      for (Index i = 0; i < b.dim(2); ++i) norm += std::pow(static_cast<double>(b.at(t, g, i)), 2);
    CHECK(found[1].b[4] == doctest::Approx(std::sqrt(norm)));
    double mean = 0;
    for (Index l = 0; l < delta.dim(1); ++l)
      mean += static_cast<double>(delta.at(t, l)) / static_cast<double>(delta.dim(1));
    CHECK(lane_mean(found[1].delta, t) == doctest::Approx(mean));
  }
  const ReadSubject other("families/mistral");
  CHECK_THROWS_WITH_AS(read_state_steps(other.model(), *other.trace), doctest::Contains("mamba2"), Error);
}

}  // namespace headscope::state_steps_test
