#include <doctest/doctest.h>

#include "core/base/error.h"
#include "core/io/safetensors.h"
#include "core/model/family.h"
#include "tests/support/paths.h"

namespace headscope::weights_test {

using testing::reference;
using testing::scratch_dir;

namespace {

RawWeights load(const std::string& name) {
  return read_weights(SafetensorsFile::open(reference(name)), load_config(reference(name)));
}

using Tensors = std::map<std::string, Tensor>;

Tensors tensors_of(const std::string& name) {
  const SafetensorsFile file = SafetensorsFile::open(reference(name));
  Tensors all;
  for (const auto& [key, entry] : file.tensors()) {
    if (entry.dtype != DType::u8) all[key] = file.tensor(key);
  }
  return all;
}

/// What is said when `tensors` are offered as the weights of the model `name`; "" when they are taken.
std::string complaint(const std::string& name, const Tensors& tensors) {
  const auto path = scratch_dir("weights") / "model.safetensors";
  SafetensorsWriter writer;
  for (const auto& [key, tensor] : tensors) writer.add(key, tensor);
  writer.write(path);
  try {
    read_weights(SafetensorsFile::open(path), load_config(reference(name)));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("GPT-2's c_attn is cut into q, k and v without copying") {
  const RawWeights weights = load("gpt2-random");
  const Tensor qkv = SafetensorsFile::open(reference("gpt2-random")).tensor("transformer.h.1.attn.c_attn.weight");
  const RawLayer& layer = weights.layers.at(1);
  REQUIRE(layer.q_weight.shape() == Shape{32, 32});
  REQUIRE(layer.k_weight.shape() == Shape{32, 32});
  REQUIRE(layer.v_weight.shape() == Shape{32, 32});
  CHECK(layer.k_weight.data() == layer.q_weight.data() + 32);
  CHECK(layer.v_weight.data() == layer.q_weight.data() + 64);
  for (Index row : {0, 5, 31}) {
    for (Index column : {0, 7, 31}) {
      CHECK(layer.q_weight.at(row, column) == qkv.at(row, column));
      CHECK(layer.k_weight.at(row, column) == qkv.at(row, 32 + column));
      CHECK(layer.v_weight.at(row, column) == qkv.at(row, 64 + column));
    }
  }
  CHECK(layer.v_bias.shape() == Shape{32});
  CHECK(layer.v_bias.data() == layer.q_bias.data() + 64);
}

TEST_CASE("tied embeddings share storage, untied ones do not, and parameters are counted once") {
  const RawWeights tied = load("gpt2-random");
  CHECK(tied.unembedding.shape() == Shape{32, 257});
  CHECK(tied.unembedding.data() == tied.token_embedding.data());
  // wte + wpe + 2 blocks of (two norms, c_attn, c_proj, MLP) + last norm
  CHECK(tied.parameters ==
        257 * 32 + 48 * 32 + 2 * (4 * 32 + 32 * 96 + 96 + 32 * 32 + 32 + 32 * 128 + 128 + 128 * 32 + 32) + 64);
  CHECK(tied.dtype == "F32");

  const RawWeights untied = load("gpt2-untied-erf");
  CHECK(untied.unembedding.shape() == Shape{24, 61});
  CHECK(untied.unembedding.data() != untied.token_embedding.data());
  CHECK(untied.layers.at(2).up_weight.shape() == Shape{24, 40});
  CHECK(untied.layers.at(2).down_weight.shape() == Shape{40, 24});
}

TEST_CASE("half precision weights become exact floats, and stored mask buffers are passed over") {
  const RawWeights weights = load("gpt2-f16");  // names without "transformer."
  CHECK(weights.dtype == "F16+F32");
  CHECK(weights.layers.size() == 2);
  CHECK(weights.unused.empty());
  const SafetensorsFile file = SafetensorsFile::open(reference("gpt2-f16"));
  const TensorEntry& entry = file.entry("wte.weight");
  REQUIRE(entry.dtype == DType::f16);
  CHECK(weights.token_embedding.at(3, 5) == half_to_float(entry.items<std::uint16_t>()[3 * 16 + 5]));
}

TEST_CASE("Llama's matrices are stored (out, in) and seen as (in, out), also from shards") {
  const RawWeights weights = load("llama-gqa");
  const SafetensorsFile file = SafetensorsFile::open(reference("llama-gqa"));
  const RawLayer& layer = weights.layers.at(1);
  CHECK(layer.q_weight.shape() == Shape{32, 32});
  CHECK(layer.k_weight.shape() == Shape{32, 16});
  CHECK(layer.v_weight.shape() == Shape{32, 16});
  CHECK(layer.up_weight.shape() == Shape{32, 44});
  CHECK(layer.gate_weight.shape() == Shape{32, 44});
  CHECK(layer.down_weight.shape() == Shape{44, 32});
  CHECK_FALSE(layer.q_bias.defined());
  CHECK_FALSE(layer.up_bias.defined());
  CHECK_FALSE(layer.ln1_bias.defined());
  CHECK_FALSE(weights.position_embedding.defined());
  const Tensor gate = file.tensor("model.layers.1.mlp.gate_proj.weight");
  const Tensor up = file.tensor("model.layers.1.mlp.up_proj.weight");
  CHECK(layer.gate_weight.at(3, 40) == gate.at(40, 3));
  CHECK(layer.up_weight.at(3, 40) == up.at(40, 3));
  CHECK(weights.unembedding.at(31, 60) == file.tensor("lm_head.weight").at(60, 31));
  const RawWeights bias = load("llama-bias");
  CHECK(bias.dtype == "BF16+F32");
  CHECK(bias.layers.at(0).k_weight.shape() == Shape{24, 36});
  CHECK(bias.layers.at(0).o_weight.shape() == Shape{36, 24});
  CHECK(bias.layers.at(0).o_bias.shape() == Shape{24});
  CHECK(bias.layers.at(0).gate_bias.shape() == Shape{36});
}

TEST_CASE("missing tensors are all listed, with the number of layers on both sides") {
  Tensors tensors = tensors_of("gpt2-random");
  tensors.erase("transformer.h.0.ln_1.weight");
  tensors.erase("transformer.h.1.mlp.c_proj.bias");
  const std::string message = complaint("gpt2-random", tensors);
  CAPTURE(message);
  CHECK(has(message, "model.safetensors"));
  CHECK(has(message, "expected 28 tensors of a gpt2"));
  CHECK(has(message, "2 missing: transformer.h.0.ln_1.weight, transformer.h.1.mlp.c_proj.bias"));
  CHECK(has(message, "config.json says 2 layers, the file holds 2"));

  Tensors shallow;
  for (const auto& [name, tensor] : tensors_of("gpt2-random")) {
    if (!has(name, ".h.1.")) shallow[name] = tensor;
  }
  CHECK(has(complaint("gpt2-random", shallow), "12 missing"));
  CHECK(has(complaint("gpt2-random", shallow), "and 8 more"));
  CHECK(has(complaint("gpt2-random", shallow), "the file holds 1"));
}

TEST_CASE("a tensor of another shape is an error with both shapes, before anything is computed") {
  const auto with = [](const std::string& model, const std::string& name, const Shape& shape) {
    Tensors tensors = tensors_of(model);
    REQUIRE(tensors.count(name) == 1);
    tensors[name] = Tensor::zeros(shape);
    return complaint(model, tensors);
  };
  const std::string message = with("gpt2-random", "transformer.wte.weight", {256, 32});
  CHECK(has(message, "tensor transformer.wte.weight: expected shape [257, 32], found shape [256, 32]"));
  CHECK(has(with("gpt2-random", "transformer.wpe.weight", {47, 32}), "found shape [47, 32]"));
  CHECK(has(with("gpt2-random", "transformer.h.0.attn.c_attn.weight", {96, 32}), "expected shape [32, 96]"));
  CHECK(has(with("gpt2-random", "transformer.ln_f.bias", {32, 1}), "found shape [32, 1]"));
  CHECK(has(with("llama-gqa", "model.layers.0.self_attn.k_proj.weight", {32, 32}), "expected shape [16, 32]"));
  CHECK(has(with("llama-gqa", "lm_head.weight", {61, 31}), "expected shape [61, 32]"));
}

TEST_CASE("a block with tensors that this family does not know is refused, others are noted") {
  Tensors tensors = tensors_of("llama-gqa");
  tensors["model.layers.0.self_attn.q_norm.weight"] = Tensor::zeros({8});
  CHECK(has(complaint("llama-gqa", tensors), "1 others: model.layers.0.self_attn.q_norm.weight"));

  Tensors deeper = tensors_of("gpt2-random");
  deeper["transformer.h.2.ln_1.weight"] = Tensor::zeros({32});
  CHECK(has(complaint("gpt2-random", deeper), "config.json says 2 layers, the file holds 3"));

  Tensors biased = tensors_of("llama-gqa");  // attention_bias is false in its configuration
  biased["model.layers.1.self_attn.q_proj.bias"] = Tensor::zeros({32});
  CHECK(has(complaint("llama-gqa", biased), "q_proj.bias"));

  Tensors headed = tensors_of("gpt2-random");
  headed["score.weight"] = Tensor::zeros({2, 32});
  CHECK(complaint("gpt2-random", headed).empty());
}

TEST_CASE("weights of another family are told what is missing") {
  const std::string message = complaint("gpt2-random", tensors_of("llama-gqa"));
  CHECK(has(message, "28 missing: transformer.wte.weight"));
  CHECK(has(message, "the file holds 0"));
}

TEST_CASE("an integer tensor in the place of a weight is an error that names it") {
  const auto path = scratch_dir("weights") / "model.safetensors";
  SafetensorsWriter writer;
  for (const auto& [key, tensor] : tensors_of("gpt2-random")) {
    if (key != "transformer.ln_f.weight") writer.add(key, tensor);
  }
  const std::string zeros(32 * 4, '\0');
  writer.add("transformer.ln_f.weight", DType::i32, {32}, [&](std::ostream& out) { out << zeros; });
  writer.write(path);
  CHECK_THROWS_WITH_AS(read_weights(SafetensorsFile::open(path), load_config(reference("gpt2-random"))),
                       doctest::Contains("transformer.ln_f.weight"), Error);
}

}  // namespace headscope::weights_test
