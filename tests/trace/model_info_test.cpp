// Which stack is meant, and what a model without logits says of it.

#include "core/trace/model_info.h"

#include <doctest/doctest.h>

namespace headscope::model_info_test {

TEST_CASE("a model without logits says where there are some: a file with a head, or the decoder beside an encoder") {
  ModelInfo model;
  model.name = "a model";
  model.objective = Objective::next_token;
  CHECK_NOTHROW(need_logits(model));
  model.objective = Objective::nothing;
  CHECK_THROWS_WITH_AS(need_logits(model), doctest::Contains("ForMaskedLM"), Error);
  model.stack = Stack::encoder;
  CHECK_THROWS_WITH_AS(need_logits(model), doctest::Contains("the decoder alone has logits"), Error);
  CHECK_THROWS_WITH_AS(need_logits(model), doctest::Contains("--part dec"), Error);
}

}  // namespace headscope::model_info_test
