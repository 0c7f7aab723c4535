// Folders whose matrices were rounded by the libraries that people use, beside what these unpack and transformers
// computes with it. The files are of tests/reference/make_quantized.py, BitNet's of make_bitnet.py.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/io/safetensors.h"
#include "core/model/family.h"
#include "core/model/formats/few_bits.h"
#include "core/model/formats/model_files.h"
#include "core/model/plain.h"
#include "tests/model/parity.h"
#include "tests/support/paths.h"
#include "tests/support/random_tensor.h"

namespace headscope::quantized_folders_test {

using namespace testing;
namespace fs = std::filesystem;

namespace {

const fs::path folders = reference("quantized");
const std::string watched = "model.layers.0.mlp.down_proj";
const Shape watched_shape{32, 96};

/// A copy of a folder in which each of these texts of a file stands for the other.
fs::path changed(const std::string& name, const std::string& file, const std::string& from, const std::string& to) {
  const fs::path copy = scratch_dir("quantized") / "model";
  fs::remove_all(copy);
  fs::copy(folders / name, copy);
  std::string bytes = read_file(copy / file, 1'000'000);
  const std::size_t at = bytes.find(from);
  REQUIRE(at != std::string::npos);
  bytes.replace(at, from.size(), to);
  write_file_atomically(copy / file, bytes);
  return copy;
}

/// In the header of the weights: texts of one length.
fs::path renamed(const std::string& name, const std::string& from, const std::string& to) {
  REQUIRE(from.size() == to.size());
  return changed(name, "model.safetensors", from, to);
}

Tensor take(const fs::path& folder) {
  const ModelFiles files = ModelFiles::open(locate_model(folder));
  return files.weights->take(watched + ".weight", watched_shape);
}

/// The folder's numbers in float32.
fs::path unpacked(const std::string& name) {
  const fs::path twin = scratch_dir("unpacked") / name;
  fs::create_directories(twin);
  auto config = nlohmann::json::parse(read_file(folders / name / "config.json"));
  config.erase("quantization_config");
  config.erase("quantization");  // of MLX
  write_file_atomically(twin / "config.json", config.dump());
  const ModelFiles files = ModelFiles::open(locate_model(folders / name));
  SafetensorsWriter writer;
  for (const std::string& tensor : files.weights->names()) {
    const auto of = [&](const char* part) { return tensor.find(part) != std::string::npos; };
    const Shape shape = of("norm")                            ? Shape{32}
                        : of("down_proj")                     ? watched_shape
                        : of("gate_proj") || of("up_proj")    ? Shape{96, 32}
                        : of("embed_tokens") || of("lm_head") ? Shape{40, 32}
                                                              : Shape{32, 32};
    writer.add(tensor, files.weights->take(tensor, shape).floats());
  }
  writer.write(twin / "model.safetensors");
  return twin;
}

/// A LoRA adapter on queries and on the matrix out of the MLP.
fs::path some_adapter() {
  const fs::path folder = scratch_dir("adapter-of-few-bits");
  write_file_atomically(folder / "adapter_config.json",
                        R"({"peft_type": "LORA", "r": 4, "lora_alpha": 8, "bias": "none", "task_type": "CAUSAL_LM",
                            "base_model_name_or_path": "x", "target_modules": ["down_proj", "q_proj"]})");
  SafetensorsWriter writer;
  const auto add = [&](const std::string& module, Index in, std::uint64_t seed) {
    writer.add("base_model.model." + module + ".lora_A.weight", random_tensor({4, in}, seed));
    writer.add("base_model.model." + module + ".lora_B.weight", random_tensor({32, 4}, seed + 1));
  };
  add(watched, 96, 1);
  add("model.layers.0.self_attn.q_proj", 32, 3);
  writer.write(folder / "adapter_model.safetensors");
  return folder;
}

}  // namespace

TEST_CASE("Folders of quantized weights give what their libraries unpack, and the logits of transformers") {
  const std::map<std::string, std::string> types{{"gptq-2", "GPTQ 2 bits"},
                                                 {"gptq-3", "GPTQ 3 bits"},
                                                 {"gptq-4", "GPTQ 4 bits"},
                                                 {"gptq-8", "GPTQ 8 bits"},
                                                 {"gptq-4-v2", "GPTQ 4 bits"},
                                                 {"awq", "AWQ 4 bits"},
                                                 {"nf4", "NF4"},
                                                 {"fp4", "FP4"},
                                                 {"int8", "INT8"},
                                                 {"w4a16", "INT4"},
                                                 {"w4a16-asymmetric", "INT4"},
                                                 {"w3a16", "INT3"},
                                                 {"w8a8", "INT8"},
                                                 {"nvfp4", "NVFP4"},
                                                 {"mxfp4", "MXFP4"},
                                                 {"modelopt", "NVFP4"},
                                                 {"f8", "F8_E4M3"},
                                                 {"bitnet-packed", "ternary"},
                                                 {"bitnet-online", "ternary"},
                                                 {"bitnet-llama", "ternary"},
                                                 {"mlx-3", "MLX 3 bits"},
                                                 {"mlx-4", "MLX 4 bits"},
                                                 {"mlx-6", "MLX 6 bits"},
                                                 {"mlx-mxfp4", "MXFP4"}};
  double worst_number = 0, worst_logit = 0;
  int seen = 0;
  for (const fs::directory_entry& folder : fs::directory_iterator(folders)) {
    const std::string name = folder.path().filename().string();
    CAPTURE(name);
    ++seen;
    const SafetensorsFile expected = SafetensorsFile::open(folder.path() / "expected.safetensors");
    const Tensor numbers = expected.tensor("down_proj");
    const double number = difference(take(folder.path()).packed().values(), numbers.values());
    CHECK(number <= 2e-7 * largest(numbers.values()));  // scales may be multiplied in another order
    worst_number = std::max(worst_number, number);

    const Subject subject(folder.path());
    const auto trace = subject.trace(expected.entry("ids").items<std::int32_t>(), MapStorage::dense, true);
    const std::string& type = types.at(name);
    CHECK(trace->model.dtype == (type < "F16" ? type + "+F16" : "F16+" + type));
    const Tensor logits = expected.tensor("logits");
    const double logit = difference(trace->logits.packed().values(), logits.values());
    CHECK(logit <= 1e-5 * largest(logits.values()));
    worst_logit = std::max(worst_logit, logit);
  }
  // In blocks that are multiplied as they are stored, where these say the same.
  const std::map<std::string, Stored> kinds{
      {"gptq-2", Stored::q4_0},    {"gptq-3", Stored::f32},      {"gptq-4", Stored::f32}, {"gptq-8", Stored::q8_0},
      {"gptq-4-v2", Stored::q8_0}, {"awq", Stored::q8_0},        {"w4a16", Stored::q4_0}, {"w8a8", Stored::q8_0},
      {"w3a16", Stored::f32},      {"mlx-3", Stored::q4_1},      {"mlx-4", Stored::q4_1}, {"mlx-6", Stored::f32},
      {"mxfp4", Stored::mxfp4},    {"mlx-mxfp4", Stored::mxfp4}, {"nf4", Stored::f32}};
  for (const auto& [name, kind] : kinds) {
    CAPTURE(name);
    CHECK(take(folders / name).kind() == kind);
  }
  CHECK(seen == static_cast<int>(types.size()));
  MESSAGE("numbers of few bits differ by at most " << worst_number << ", logits by " << worst_logit);
}

TEST_CASE("A folder of quantized weights that contradicts itself is refused by tensor and numbers") {
  CHECK_THROWS_WITH_AS(Subject(changed("gptq-4", "config.json", "\"gptq\"", "\"vptq\"")),
                       doctest::Contains("a quantized model: vptq"), Error);
  CHECK_THROWS_WITH_AS(
      Subject(changed("gptq-4", "config.json", "\"checkpoint_format\": \"gptq\"", "\"checkpoint_format\": \"marlin\"")),
      doctest::Contains("one of gptq, gptq_v2"), Error);
  CHECK_THROWS_WITH_AS(Subject(changed("awq", "config.json", "\"gemm\"", "\"gemv\"")), doctest::Contains("gemv"),
                       Error);
  CHECK_THROWS_WITH_AS(take(renamed("gptq-4", watched + ".scales", watched + ".scalez")),
                       doctest::Contains((watched + ".scales").c_str()), Error);
  CHECK_THROWS_WITH_AS(take(renamed("nf4", watched + ".weight.quant_state.bitsandbytes__nf4",
                                    watched + ".weight.quant_state.bitsandbytes__nf5")),
                       doctest::Contains("nobody knows"), Error);
  CHECK_THROWS_WITH_AS(take(renamed("mlx-4", watched + ".biases", watched + ".biasez")),
                       doctest::Contains((watched + ".scales").c_str()), Error);
  const ModelFiles files = ModelFiles::open(locate_model(folders / "gptq-4"));
  CHECK_THROWS_WITH_AS(files.weights->take(watched + ".weight", {96, 32}), doctest::Contains("down_proj.qweight"),
                       Error);
  CHECK_THROWS_WITH_AS(files.weights->take(watched + ".weight", {32, 90}), doctest::Contains("down_proj.g_idx"), Error);
}

TEST_CASE("What the matrices of a BitNet folder read is rounded, and written so; what is not followed is refused") {
  const ModelConfig own = load_config(folders / "bitnet-packed");
  CHECK(own.input_bits == 8);
  CHECK(load_config(folders / "w8a8").input_bits == 0);
  CHECK(load_config(folders / "bitnet-llama").input_bits == 8);
  // Without the rounding of inputs, which is all that the twin lacks, logits are others.
  const std::vector<std::int32_t> ids =
      SafetensorsFile::open(folders / "bitnet-llama" / "expected.safetensors").entry("ids").items<std::int32_t>();
  const auto logits = [&](const fs::path& folder) {
    return Subject(folder).trace(ids, MapStorage::none, false)->logits.packed();
  };
  const fs::path twin = unpacked("bitnet-llama");
  const Tensor rounded = logits(folders / "bitnet-llama"), unrounded = logits(twin);
  CHECK(difference(rounded.values(), unrounded.values()) > 1e-3 * largest(rounded.values()));
  write_file_atomically(twin / "config.json", write_config(load_config(folders / "bitnet-llama")));
  CHECK(difference(rounded.values(), logits(twin).values()) <= 1e-6 * largest(rounded.values()));
  const auto refused = [](const std::string& folder, const std::string& from, const std::string& to, const char* what) {
    CHECK_THROWS_WITH_AS(Subject(changed(folder, "config.json", from, to)), doctest::Contains(what), Error);
  };
  refused("bitnet-packed", "\"quant_method\"", "\"use_rms_norm\": true, \"quant_method\"",
          "use_rms_norm: expected false");
  refused("bitnet-packed", "\"lm_head\"", "\"lm_head\", \"k_proj\"",
          "modules_to_not_convert: expected \"lm_head\" alone");
  refused("bitnet-packed", "\"offline\"", "\"eager\"", "quantization_mode: expected one of offline, online");
  refused("bitnet-packed", "\"autobitlinear\"", "\"linear\"", "linear_class: expected one of bitlinear, autobitlinear");
  const fs::path experts = scratch_dir("bitnet-experts");
  auto config = nlohmann::json::parse(read_file(reference("families/mixtral") / "config.json"));
  config["quantization_config"] = {{"quant_method", "bitnet"}};
  write_file_atomically(experts / "config.json", config.dump());
  CHECK_THROWS_WITH_AS(load_config(experts), doctest::Contains("bitnet of a BitNet or a Llama"), Error);
  CHECK_THROWS_WITH_AS(Subject(with_adapter(folders / "bitnet-packed", reference("formats/llama-grids"))),
                       doctest::Contains("rounded to 8 bits"), Error);
  CHECK_THROWS_WITH_AS(
      Subject(changed("bitnet-packed", "model.safetensors", watched + ".weight_scale", watched + ".weight_scalf")),
      doctest::Contains("weight_scale beside it"), Error);
  const ModelFiles files = ModelFiles::open(locate_model(folders / "bitnet-packed"));
  CHECK_THROWS_WITH_AS(files.weights->take(watched + ".weight", {30, 96}), doctest::Contains("packed four by four"),
                       Error);
}

TEST_CASE("The plain pass in doubles rounds what matrices read, too") {
  for (const char* name : {"bitnet-packed", "bitnet-online", "bitnet-llama"}) {
    CAPTURE(name);
    const SafetensorsFile expected = SafetensorsFile::open(folders / name / "expected.safetensors");
    const ModelConfig config = load_config(folders / name);
    const ModelFiles files = ModelFiles::open(locate_model(folders / name));
    const plain::Pass pass =
        plain::forward(config, read_weights(*files.weights, config), expected.entry("ids").items<std::int32_t>());
    const Tensor logits = expected.tensor("logits");
    double worst = 0;
    for (Index row = 0; row < logits.dim(0); ++row)
      for (Index i = 0; i < logits.dim(1); ++i)
        worst = std::max(worst, std::abs(pass.logits.at(row, i) - static_cast<double>(logits.at(row, i))));
    CHECK(worst <= 1e-6 * largest(logits.values()));
  }
}

TEST_CASE("An adapter changes a quantized model as it changes the same numbers in float32") {
  const fs::path adapter = some_adapter();
  for (const char* name : {"gptq-4", "awq", "nf4", "int8", "w4a16", "nvfp4", "mlx-4", "f8"}) {
    CAPTURE(name);
    const std::vector<std::int32_t> ids =
        SafetensorsFile::open(folders / name / "expected.safetensors").entry("ids").items<std::int32_t>();
    const auto logits = [&](const fs::path& folder) {
      return Subject(folder).trace(ids, MapStorage::none, false)->logits.packed();
    };
    const fs::path twin = unpacked(name);
    const Tensor plain = logits(folders / name), changed = logits(with_adapter(folders / name, adapter)),
                 expected = logits(with_adapter(twin, adapter));
    const double most = largest(expected.values());
    CHECK(difference(plain.values(), logits(twin).values()) <= 1e-5 * most);
    CHECK(difference(changed.values(), expected.values()) <= 1e-5 * most);
    CHECK(difference(changed.values(), plain.values()) > 0.1 * most);
  }
}

}  // namespace headscope::quantized_folders_test
