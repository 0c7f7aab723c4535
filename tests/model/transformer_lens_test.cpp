// TransformerLens' state dicts: what a file without a configuration tells and asks for, configurations inside a .pt,
// and keys that are refused. What such models compute, families_test holds them to (tests/reference/families/
// transformer_lens-*).

#include <doctest/doctest.h>

#include <filesystem>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/io/safetensors.h"
#include "core/io/strict_json.h"
#include "core/model/family.h"
#include "core/model/formats/model_files.h"
#include "tests/model/parity.h"
#include "tests/support/largest_difference.h"
#include "tests/support/paths.h"

namespace headscope::transformer_lens_test {

using namespace testing;
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

fs::path lens(const std::string& name) {
  return reference((name == "attn-only" ? "formats/transformer_lens-" : "families/transformer_lens-") + name);
}

json config_in(const fs::path& folder) {
  return parse_strict_json(read_file(folder / "config.json", 1 << 20), "config.json");
}

/// The weights of `name` alone, or with a configuration beside them.
fs::path folder_with(const std::string& name, const json* config) {
  const fs::path folder = scratch_dir("lens-" + name);
  fs::copy_file(lens(name) / "model.safetensors", folder / "model.safetensors");
  if (config) write_file_atomically(folder / "config.json", config->dump());
  return folder;
}

std::string refusal(const fs::path& path) {
  try {
    load_config(path);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

bool says(const std::string& message, const std::string& part) {
  if (message.find(part) != std::string::npos) return true;
  MESSAGE("said: " << message);
  return false;
}

const std::vector<std::int32_t> ids{3, 17, 8, 21, 40, 3, 17};

}  // namespace

TEST_CASE("a state dict without a configuration tells its extents and asks for the rest by name") {
  const std::string solu = refusal(folder_with("solu", nullptr));
  CHECK(solu.empty());  // mlp.ln tells SoLU, ln1 LayerNorm, W_pos learned positions
  const ModelConfig read = load_config(folder_with("solu", nullptr)), own = load_config(lens("solu"));
  CHECK(read.dims.layers == own.dims.layers);
  CHECK(read.dims.heads == own.dims.heads);
  CHECK(read.dims.d_head == own.dims.d_head);
  CHECK(read.dims.d_model == own.dims.d_model);
  CHECK(read.dims.d_mlp == own.dims.d_mlp);
  CHECK(read.dims.vocab == own.dims.vocab);
  CHECK(read.context == own.context);
  CHECK(read.mlp_norm);
  CHECK(read.final_rms);

  const std::string folded = refusal(folder_with("folded", nullptr));
  for (const char* part : {"config.json: act_fn (relu", "normalization_type (LNPre, RMSPre, or null for none)",
                           "rotary_base", "rotary_adjacent_pairs", "found no configuration", R"({"act_fn":"gelu_new")"})
    CHECK(says(folded, part));
  CHECK(refusal(folder_with("attn-only", nullptr)).empty());  // there is no MLP, and so no activation
  const std::string bare = refusal(folder_with("no-norms", nullptr));
  CHECK(says(bare, "act_fn (relu"));
  CHECK(says(bare, "normalization_type (LNPre"));
  const json some = {{"act_fn", "gelu"}};
  CHECK(says(refusal(folder_with("alibi", &some)), "positional_embedding_type (rotary or alibi)"));
  CHECK(says(refusal(folder_with("alibi", &some)), "found a configuration without"));
}

TEST_CASE("a model of attention alone computes what its definition in float64 does") {
  const SafetensorsFile expected = SafetensorsFile::open(lens("attn-only") / "expected.safetensors");
  const auto tokens = expected.entry("tokens").items<std::int32_t>();
  const Subject subject(lens("attn-only"));
  CHECK(subject.loaded.model->config().dims.d_mlp == 0);
  const auto trace = subject.trace(tokens, MapStorage::dense, true);
  CHECK(largest_difference(trace->logits, expected.tensor("logits")) < 1e-4);
  for (const AttentionMap& map : trace->maps)
    CHECK(largest_difference(map.to_dense(),
                             expected.tensor(name(Site{SiteKind::pattern, map.layer()})).select(0, map.head())) <
          map_tolerance);
  CHECK(subject.greedy(tokens, 6) == expected.entry("greedy").items<std::int32_t>());
}

TEST_CASE("weights folded after the configuration was written are known by their absence") {
  json config = config_in(lens("folded"));
  config["normalization_type"] = "LN";
  const Subject folded(folder_with("folded", &config)), own(lens("folded"));
  CHECK_FALSE(folded.loaded.model->config().norm_weights);
  CHECK(largest_difference(folded.trace(ids, MapStorage::none, false)->logits,
                           own.trace(ids, MapStorage::none, false)->logits) == 0);
}

TEST_CASE(
    "a configuration inside the file, as a dict or as its class, gives the folder's trace; the state dict alone too") {
  const auto expected = Subject(lens("solu")).trace(ids, MapStorage::none, false);
  for (const char* file : {"lens-dict.pt", "lens-class.pt"}) {
    CAPTURE(file);
    const fs::path folder = scratch_dir("lens-inside");
    fs::copy_file(reference("formats") / file, folder / "some.pt");
    const Subject found(folder / "some.pt");
    CHECK(found.loaded.model->config().family == "transformer_lens");
    CHECK(found.loaded.model->config().final_rms);
    CHECK(largest_difference(found.trace(ids, MapStorage::none, false)->logits, expected->logits) < 1e-6);
  }
  const fs::path folder = scratch_dir("lens-state");
  fs::copy_file(reference("formats/lens-state.pt"), folder / "some.pt");
  fs::copy_file(lens("solu") / "config.json", folder / "config.json");
  CHECK(largest_difference(Subject(folder).trace(ids, MapStorage::none, false)->logits, expected->logits) < 1e-6);
}

TEST_CASE("keys of a HookedTransformer that change numbers and are not followed are refused by name") {
  const json own = config_in(lens("solu"));
  const auto with = [&](const char* key, const json& value) {
    json changed = own;
    changed[key] = value;
    return refusal(folder_with("solu", &changed));
  };
  CHECK(says(with("attention_dir", "bidirectional"), "attention_dir: expected causal"));
  CHECK(
      says(with("positional_embedding_type", "shortformer"), "one of standard, rotary, alibi, found \"shortformer\""));
  CHECK(says(with("d_vocab_out", 7), "d_vocab_out: expected as many as d_vocab = 43"));
  CHECK(says(with("num_experts", 4), "num_experts"));
  CHECK(says(with("load_in_4bit", true), "load_in_4bit"));
  CHECK(says(with("act_fn", "xielu"), "act_fn: expected one of"));
  CHECK(says(with("normalization_type", "BN"), "one of LN, LNPre, RMS, RMSPre"));
  CHECK(says(with("use_qk_norm", true), "use_qk_norm: expected false, or true beside a normalization_type of RMS"));
  CHECK(says(with("n_key_value_heads", 2), "n_key_value_heads: expected a divisor of n_heads = 3"));
  CHECK(says(with("gated_mlp", true), "act_fn: expected an activation without a norm"));
  json local = own;
  local["use_local_attn"] = true;
  CHECK(says(refusal(folder_with("solu", &local)), "window_size"));
}

TEST_CASE("what b_in of a gated MLP adds behind the product of its branches is in the output's bias") {
  const ModelConfig config = load_config(lens("gated"));
  const ModelFiles files = ModelFiles::open(locate_model(lens("gated")));
  const RawWeights weights = read_weights(*files.weights, config);
  const RawLayer& raw = weights.layers.at(1);
  CHECK_FALSE(raw.up_bias.defined());
  const Tensor b_in = files.tensors->tensor("blocks.1.mlp.b_in"), b_out = files.tensors->tensor("blocks.1.mlp.b_out"),
               w_out = files.tensors->tensor("blocks.1.mlp.W_out");
  for (Index j = 0; j < b_out.size(); j += 5) {
    double sum = static_cast<double>(b_out.at(j));
    for (Index i = 0; i < b_in.size(); ++i)
      sum += static_cast<double>(b_in.at(i)) * static_cast<double>(w_out.at(i, j));
    CHECK(static_cast<double>(raw.down_bias.at(j)) == doctest::Approx(sum));
  }
}

}  // namespace headscope::transformer_lens_test
