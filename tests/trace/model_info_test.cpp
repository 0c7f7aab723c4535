// Which stack is meant, and what a model without logits says of it.

#include "core/trace/model_info.h"

#include "core/trace/layer_kinds.h"

#include <doctest/doctest.h>

namespace headscope::model_info_test {

TEST_CASE("a model without logits says where there are some: a file with a head, or the decoder beside an encoder") {
  ModelInfo model;
  model.name = "a model";
  model.objective = Objective::next_token;
  CHECK_NOTHROW(need_logits(model));
  model.objective = Objective::nothing;
  CHECK_THROWS_WITH_AS(need_logits(model), doctest::Contains("ForMaskedLM"), Error);
  model.pictures = true;
  CHECK_THROWS_WITH_AS(need_logits(model), doctest::Contains("(…ForImageClassification)"), Error);
  CHECK_THROWS_WITH_AS(need_logits(model), doctest::Contains("what a picture shows"), Error);
  model.stack = Stack::encoder;
  CHECK_THROWS_WITH_AS(need_logits(model), doctest::Contains("the decoder alone has logits"), Error);
  CHECK_THROWS_WITH_AS(need_logits(model), doctest::Contains("--part dec"), Error);
}

TEST_CASE("a number that layers differ in is told as a range, of the layers that have it") {
  ModelDims dims{.layers = 4, .heads = 8, .kv_heads = 4, .d_head = 256, .d_mlp = 6144};
  CHECK(across_layers(dims, &LayerWidths::d_head) == "256");
  dims.widths = {{4, 256, 6144}, {1, 512, 6144}, {4, 256, 12288}, {1, 512, 3}};
  CHECK(across_layers(dims, &LayerWidths::d_head) == "256–512");
  CHECK(across_layers(dims, &LayerWidths::kv_heads) == "1–4");
  CHECK(across_layers(dims, &LayerWidths::d_mlp) == "3–12288");
  dims.bare = {false, false, false, true};
  CHECK(across_layers(dims, &LayerWidths::d_mlp, [](int value) { return std::to_string(value / 6144) + "k"; }) ==
        "1k–2k");
  dims.widths = {{4, 256, 1}, {4, 256, 1}, {4, 256, 1}, {4, 256, 2}};
  CHECK(across_layers(dims, &LayerWidths::d_head) == "256");
}

}  // namespace headscope::model_info_test
