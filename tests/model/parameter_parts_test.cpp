#include "core/model/parameter_parts.h"

#include <doctest/doctest.h>

#include "core/base/error.h"
#include "core/model/model.h"
#include "tests/support/paths.h"

namespace headscope::parameter_parts_test {

TEST_CASE("parameters of published shapes, as their authors count them") {
  const auto total = [](const char* words) { return parameter_parts(parse_shape(words, "shape")).total(); };
  CHECK(total("gpt2 layers=12 width=768 heads=12 vocab=50257 context=1024") == 124'439'808);
  CHECK(total("gpt2 layers=48 width=1600 heads=25 vocab=50257 context=1024") == 1'557'611'200);
  CHECK(total("llama layers=32 width=4096 heads=32 mlp=11008 vocab=32000") == 6'738'415'616);
  CHECK(total("llama layers=32 width=4096 heads=32 kv_heads=8 mlp=14336 vocab=128256") == 8'030'261'248);
}

TEST_CASE("one block of the first Transformer: attention 1,050,624 with biases, MLP 2,097,152 weights") {
  const ParameterParts parts =
      parameter_parts(parse_shape("gpt2 layers=1 width=512 heads=8 mlp=2048 vocab=1 context=1", "shape"));
  CHECK(parts.attention == 1'050'624);
  CHECK(parts.mlp - parts.mlp_biases == 2'097'152);
  CHECK(parts.mlp_biases == 2048 + 512);
  CHECK(parts.norms == 3 * 2 * 512);
}

TEST_CASE("the parts of a model add up to the numbers that its file holds") {
  Backend backend{1};
  for (const char* folder : {"gpt2-random", "gpt2-untied-erf", "llama-gqa", "llama-bias", "llama-rope3"}) {
    CAPTURE(folder);
    const auto model = Model::load(testing::reference(folder), backend);
    const ParameterParts parts = parameter_parts(model->config());
    CHECK(parts.total() == model->info().parameters);
    CHECK((parts.tied == 0) == !model->config().tied_embeddings);
  }
}

TEST_CASE("of Gemma 4 the inputs of every layer's own are counted with their table, and widths are told as ranges") {
  Backend backend{1};
  for (const char* folder : {"gemma4", "gemma4_text", "gemma4_text-keys", "gemma4_text-moe", "gemma4_unified_text"}) {
    CAPTURE(folder);
    const auto model = Model::load(testing::reference(std::string("families/") + folder), backend);
    CHECK(parameter_parts(model->config()).total() == model->info().parameters);
  }
  const ModelConfig c = Model::load(testing::reference("families/gemma4_text"), backend)->config();
  // 47 rows of 6 layers of 5 numbers; 18 into as many; 18 · 5 in and out of each layer.
  CHECK(parameter_parts(c).layer_inputs == 47 * 30 + 18 * 30 + 6 * 2 * 18 * 5);
  CHECK(parameter_parts(c).embedding == 43 * 18);
  CHECK(shape_words(c).find(" d_head=6–") != std::string::npos);
  CHECK(shape_words(c).find(" mlp=22–44 ") != std::string::npos);
}

TEST_CASE("a shape in words is read back, and a wrong one is refused with what would do") {
  for (const char* words : {"gpt2 layers=2 width=8 heads=2 mlp=0 vocab=9 context=7 tied=no",
                            "llama layers=2 width=8 heads=4 kv_heads=2 d_head=6 mlp=20 vocab=9 tied=yes"}) {
    CAPTURE(words);
    const ModelConfig config = parse_shape(words, "shape");
    CHECK(parameter_parts(parse_shape(shape_words(config), "shape")).total() == parameter_parts(config).total());
    CHECK(shape_words(config).find("vocab=9") != std::string::npos);
  }
  for (const char* wrong :
       {"", "bert layers=1", "gpt2 layers=1 width=8 heads=2 vocab=9", "gpt2 layers=1 width=8 heads=3 vocab=9 context=4",
        "gpt2 layers=x width=8 heads=2 vocab=9 context=4", "gpt2 layers=1 layers=2 width=8 heads=2 vocab=9 context=4",
        "llama layers=1 width=8 heads=4 kv_heads=3 vocab=9", "llama layers=1 width=8 heads=4 vocab=9 depth=3",
        "llama layers=99999999999 width=8 heads=4 vocab=9", "llama layers=1 width=8 heads=4 vocab=9 tied=perhaps"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(parse_shape(wrong, "shape"), Error);
  }
}

}  // namespace headscope::parameter_parts_test
