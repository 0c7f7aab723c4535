// The same pass on a card: logits and maps as on the CPU. Runs where the program was built with CUDA and has a card.

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "core/base/error.h"
#include "core/cuda/cuda_backend.h"
#include "core/model/model.h"
#include "tests/support/paths.h"

namespace headscope::cuda_test {

TEST_CASE("a pass on the card gives the CPU's logits and maps") {
  if (const std::string why = why_no_cuda(); !why.empty()) {
    CHECK_THROWS_AS(make_cuda_backend(), Error);
    MESSAGE("skipped: ", why);
    return;
  }
  const std::vector<std::int32_t> tokens{5, 17, 3, 17, 5, 40, 8};
  Backend cpu(2);
  const auto card = make_cuda_backend(2);
  for (const char* folder : {"gpt2-random", "llama-gqa"}) {
    CAPTURE(folder);
    const auto here = Model::load(testing::reference(folder), cpu)
                          ->forward({cpu}, tokens, nullptr, {MapStorage::dense, nullptr, nullptr});
    const auto there = Model::load(testing::reference(folder), *card)
                           ->forward({*card}, tokens, nullptr, {MapStorage::dense, nullptr, nullptr});
    for (Index i = 0; i < here.logits.dim(0); ++i)
      for (Index j = 0; j < here.logits.dim(1); ++j)
        REQUIRE(std::abs(here.logits.at(i, j) - there.logits.at(i, j)) < 1e-4);
    for (std::size_t m = 0; m < here.maps.size(); ++m)
      for (Index i = 0; i < 7; ++i)
        for (Index j = 0; j < 7; ++j) REQUIRE(std::abs(here.maps[m].weight(i, j) - there.maps[m].weight(i, j)) < 1e-5);
  }
}

}  // namespace headscope::cuda_test
