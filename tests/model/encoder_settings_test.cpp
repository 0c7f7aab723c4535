// Keys of encoders that change what is computed: what is read of them, and what is refused.

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/attention/rotary.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/model/config_reader.h"
#include "core/model/family.h"
#include "core/model/parameter_parts.h"
#include "core/model/weights.h"
#include "core/run/pass_memory.h"
#include "tests/model/parity.h"
#include "tests/support/paths.h"

namespace headscope::encoder_settings_test {

using namespace testing;

TEST_CASE("what these families would compute otherwise is refused by the name of its key") {
  struct Key {
    const char *family, *json, *says;
  };
  for (const auto& [family, json, says] :
       {Key{"albert", R"("inner_group_num": 2)", "inner_group_num"},
        Key{"mpnet", R"("relative_attention_num_buckets": 16)", "32 buckets"},
        Key{"electra", R"("position_embedding_type": "relative_key")", "position_embedding_type"},
        Key{"ernie", R"("is_decoder": true)", "is_decoder"},
        Key{"bert", R"("use_task_id": true)", "use_task_id"},
        Key{"longformer", R"("num_hidden_layers": 2)", "attention_window"},
        Key{"deberta", R"("talking_head": true)", "talking_head"},
        Key{"deberta", R"("embedding_size": 12)", "embedding_size"},
        Key{"deberta_v2-convolution", R"("conv_kernel_size": 4)", "conv_kernel_size"},
        Key{"deberta_v2-convolution", R"("conv_act": "mish")", "conv_act"},
        Key{"deberta_v2-convolution", R"("conv_groups": 4)", "conv_groups"},
        Key{"deberta_v2", R"("attention_head_size": 8)", "attention_head_size"},
        Key{"deberta_v2", R"("position_buckets": 38)", "position_buckets"},
        Key{"deberta", R"("pos_att_type": "p2p")", "pos_att_type"},
        Key{"gte", R"("logn_attention_scale": true)", "logn_attention_scale"},
        Key{"new", R"("position_embedding_type": "absolute")", "position_embedding_type"},
        Key{"new", R"("layer_norm_type": "rms_norm")", "layer_norm_type"},
        Key{"new", R"("rope_scaling": {"type": "ntk", "factor": 3.0, "mixed_b": 2.0}, "rest": {)", "mixed_b"},
        Key{"big_bird", R"("attention_type": "random")", "attention_type"},
        Key{"big_bird", R"("is_decoder": true)", "is_decoder"},
        Key{"rembert", R"("is_decoder": true)", "is_decoder"},
        Key{"mimo_v2_flash", R"("swa_num_key_value_heads": 2)", "swa_num_key_value_heads"},
        Key{"mimo_v2_flash", R"("num_attention_heads": 2)", "num_key_value_heads"},
        Key{"mimo_v2_flash", R"("add_full_attention_sink_bias": true)", "add_full_attention_sink_bias"},
        Key{"mimo_v2_flash", R"("scoring_func": "softmax")", "scoring_func"},
        Key{"mimo_v2_flash", R"("hybrid_layer_pattern": [0, 1])", "hybrid_layer_pattern"},
        Key{"mimo_v2_flash", R"("partial_rotary_factor": 0.1)", "partial_rotary_factor: expected an even number"},
        Key{"falcon_h1", R"("mamba_d_head": 4)", "mamba_d_head"},
        Key{"falcon_h1-bare", R"("mamba_n_heads": 4)", "mamba_n_heads"},
        Key{"falcon_h1", R"("layers_block_type": ["hybrid", "mamba"])", "layers_block_type"},
        Key{"squeezebert", R"("k_groups": 5)", "k_groups"},
        Key{"squeezebert", R"("embedding_size": 12)", "embedding_size"},
        Key{"squeezebert", R"("layer_norm_eps": 0.01)", "layer_norm_eps"},
        Key{"bert_generation", R"("add_cross_attention": true)", "add_cross_attention"},
        Key{"nomic_bert-published", R"("prenorm": true)", "prenorm"},
        Key{"nomic_bert-published", R"("rotary_scaling_factor": 2)", "rotary_scaling_factor"},
        Key{"nomic_bert-published", R"("activation_function": "gelu")", "activation_function"}}) {
    CAPTURE(std::string(json));
    std::string config = read_file(reference("families") / family / "config.json");
    const std::string key(json, std::string(json).find(':') + 1);
    if (const std::size_t there = config.find(key); there != std::string::npos) {  // a key twice is an error by itself
      const std::size_t end = config.find('\n', there);
      const bool comma = config[end - 1] == ',';
      config.replace(there, end - there, std::string(json) + (comma ? "," : ""));
    } else {
      config.replace(config.find('{'), 1, "{" + std::string(json) + ",");
    }
    const std::filesystem::path folder = scratch_dir("refused");
    write_file_atomically(folder / "config.json", config);
    CHECK_THROWS_WITH_AS(load_config(folder), doctest::Contains(says), Error);
  }
}

TEST_CASE("texts are read up to where BigBird would see blocks of them only, and longer ones where it never does") {
  Backend backend(2);
  const LoadedModel sparse = load_model(reference("families/big_bird-sparse"), backend);
  CHECK(sparse.model->config().context == 33);  // (5 + 2 · 3) · 3 of 40
  RunRequest request;
  request.ids.assign(34, 7);
  request.ids_are_whole = true;
  CHECK_THROWS_WITH_AS(run(sparse, request, Ctx{backend}), doctest::Contains("33"), Error);
  request.ids.resize(33);
  CHECK(run(sparse, request, Ctx{backend})->tokens.size() == 33);
  const LoadedModel whole = load_model(reference("families/big_bird"), backend);
  CHECK(whole.model->config().context == 40);
}

TEST_CASE("rotations begin where each family's do, and NTK-aware scaling turns pairs as its makers' code does") {
  const auto rotation = [](const std::string& type, const std::string& keys) {
    const std::string json = R"({"vocab_size": 43, "num_hidden_layers": 1, "hidden_size": 16, "num_attention_heads": 2,
      "intermediate_size": 8, "max_position_embeddings": 40)" +
                             keys + "}";
    return family(type, "test").read_config(ConfigReader::parse(json, "test")).rotary;
  };
  CHECK(rotation("gte", "").base == 160000);
  CHECK(rotation("new", "").base == 10000);
  CHECK(rotation("jina_embeddings_v3", "").base == 20000);
  CHECK(rotation("gte", R"(, "rope_theta": 20000)").base == 20000);
  // (20000 · 8)^(−2i/8) ÷ 8^(2/8)
  const RotaryConfig ntk = rotation("new", R"(, "rope_theta": 20000, "rope_scaling": {"type": "ntk", "factor": 8.0})");
  const std::vector<double> found = rotary_frequencies(ntk, 8);
  REQUIRE(found.size() == 4);
  for (int i = 0; i < 4; ++i)
    CHECK(found[static_cast<std::size_t>(i)] ==
          doctest::Approx(std::pow(160000.0, -i / 4.0) / std::pow(8.0, 0.25)).epsilon(1e-9));
}

TEST_CASE("products in groups keep nothing between the groups, and count as they are stored") {
  Backend backend(1);
  const auto model = Model::load(reference("families/squeezebert"), backend);
  const ModelWeights weights = model->weights();
  const BlockWeights& block = weights.blocks[0];  // 24 inputs; queries in 4 groups of 6, values in 3 of 8
  const auto q = [&](Index in, Index out) { return block.heads[static_cast<std::size_t>(out / 8)].q.at(in, out % 8); };
  const auto v = [&](Index in, Index out) { return block.heads[static_cast<std::size_t>(out / 8)].v.at(in, out % 8); };
  for (Index in = 0; in < 24; ++in)
    for (Index out = 0; out < 24; ++out) {
      CHECK((q(in, out) != 0) == (in / 6 == out / 6));
      CHECK((v(in, out) != 0) == (in / 8 == out / 8));
      if (out < 36) CHECK((block.up.at(in, out) != 0) == (in / 4 == out / 6));
    }
}

}  // namespace headscope::encoder_settings_test
