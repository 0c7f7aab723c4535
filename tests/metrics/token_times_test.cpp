// When the tokens of a target were said, by a path through cross-attention whose weights are known.

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "core/metrics/token_times.h"
#include "core/trace/trace.h"

namespace headscope::token_times_test {

TEST_CASE("a path through three tokens comes to each where its weight stands") {
  const SoundFrames frames{Tensor::zeros({24, 2}), 0.01, 12, 0.24};
  Trace cross;
  cross.sound = std::make_shared<const SoundFrames>(frames);
  cross.tokens.resize(12);
  cross.query_tokens.resize(4);  // one before the text
  Tensor weights = Tensor::full({4, 12}, 0.01f);
  const Index where[] = {0, 1, 5, 9};
  for (Index r = 0; r < 4; ++r)
    for (Index c = 0; c < 3; ++c) weights.ref(r, std::min<Index>(where[r] + c, 11)) = 0.3f;
  cross.maps.push_back(
      AttentionMap::dense({.between_texts = true}, weights, nullptr, stats_of_weights(weights, nullptr)));
  const HeadId head{0, 0};
  const std::vector<double> times = token_times(cross, std::span(&head, 1), 1, 3);
  REQUIRE(times.size() == 3);
  CHECK(times[0] == doctest::Approx(0));  // a path begins at the beginning
  CHECK(times[1] == doctest::Approx(5 * 0.02));
  CHECK(times[2] == doctest::Approx(9 * 0.02));
  SoundFrames later = frames;
  later.from = 61.5;
  cross.sound = std::make_shared<const SoundFrames>(later);
  const std::vector<double> of_file = token_times(cross, std::span(&head, 1), 1, 3);
  for (std::size_t i = 0; i < 3; ++i) CHECK(of_file[i] == doctest::Approx(61.5 + times[i]));
}

}  // namespace headscope::token_times_test
