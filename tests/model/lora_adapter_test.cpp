// LoRA adapters beside models that were merged in NumPy float64 (tests/reference/adapters, made by make_adapters.py):
// whole, by half, and switched off by an edit; and what is refused.

#include <doctest/doctest.h>

#include <filesystem>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/edits/adapter_edit.h"
#include "core/edits/singular_edit.h"
#include "core/io/json_view.h"
#include "core/io/safetensors.h"
#include "core/model/formats/lora_adapter.h"
#include "core/model/formats/model_files.h"
#include "tests/model/parity.h"
#include "tests/support/largest_difference.h"
#include "tests/support/paths.h"
#include "tests/support/random_tensor.h"

namespace headscope::lora_adapter_test {

using namespace testing;
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

const std::vector<std::int32_t> ids{3, 7, 8, 2, 7, 3};

/// The base model's folder with the tensors of one file in place of its own.
fs::path changed_base(const fs::path& adapter, const char* tensors) {
  const fs::path base = locate_model(adapter).folder, folder = scratch_dir("adapter-base");
  fs::copy_file(base / "config.json", folder / "config.json");
  const SafetensorsFile own = SafetensorsFile::open(base / "model.safetensors"),
                        other = SafetensorsFile::open(adapter / tensors);
  SafetensorsWriter writer;
  for (const auto& [name, entry] : own.tensors()) writer.add(name, (other.contains(name) ? other : own).tensor(name));
  writer.write(folder / "model.safetensors");
  return folder;
}

Tensor logits_of(const fs::path& model) {
  return Subject(model).trace(ids, MapStorage::none, false)->logits;
}

struct Case {
  std::string name;
  fs::path folder;
  Subject subject;
  Tensor merged, half, base;  ///< logits of the models that NumPy made, and of the base model
  explicit Case(const fs::path& at)
      : name(at.filename().string()),
        folder(at),
        subject(at),
        merged(logits_of(changed_base(at, "merged.safetensors"))),
        half(logits_of(changed_base(at, "half.safetensors"))),
        base(logits_of(locate_model(at).folder)) {}

  Tensor with(const std::vector<std::string>& lines, std::set<SiteKind> sites = {}) const {
    RunRequest request;
    request.ids = ids;
    request.capture.sites = std::move(sites);
    for (const std::string& line : lines) request.edits.push_back(parse_intervention(line, "test"));
    return run(subject.loaded, request, Ctx{*subject.backend})->logits;
  }
  double gap(const std::string& line, const Tensor& truth, std::set<SiteKind> sites = {}) const {
    return largest_difference(with({line}, std::move(sites)), truth);
  }
};

template <class Check>
void for_each_adapter(Check check) {
  for (const auto& entry : fs::directory_iterator(reference("adapters"))) {
    const Case each(entry.path());
    CAPTURE(each.name);
    check(each);
  }
}

/// The adapter with its configuration changed, as an Error says what is wrong with it; "" = nothing.
std::string refusal(const std::string& name, const std::function<void(json&)>& change) {
  const fs::path folder = scratch_dir("adapter-" + name);
  fs::copy(reference("adapters/" + name), folder, fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  json config = read_json_file(folder / "adapter_config.json");
  change(config);
  write_file_atomically(folder / "adapter_config.json", config.dump());
  try {
    LoraAdapter::open(folder);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}
std::string refusal(const std::string& name, const char* key, const json& value) {
  return refusal(name, [&](json& config) { config[key] = value; });
}

bool says(const std::string& message, const std::string& part) {
  if (message.find(part) != std::string::npos) return true;
  MESSAGE("said: " << message);
  return false;
}

}  // namespace

TEST_CASE("an adapter that is merged gives the merged model's logits, by its own folder or beside its model's") {
  for_each_adapter([](const Case& c) {
    CHECK(c.subject.loaded.model->config().name.ends_with(" + " + c.name));
    CHECK(largest_difference(c.with({}), c.merged) < 1e-4);
    CHECK(largest_difference(c.base, c.merged) > 1e-2);
    const fs::path base = locate_model(c.folder).folder;
    const Subject beside(with_adapter(base, c.folder)), alone(base);
    CHECK(largest_difference(beside.trace(ids, MapStorage::none, false)->logits, c.with({})) == 0);
    CHECK(beside.loaded.model->info().parameters == alone.loaded.model->info().parameters);
  });
}

TEST_CASE("the edit takes an adapter away, or half of it, at every place that it was merged into") {
  int switched = 0;
  for_each_adapter([&](const Case& c) {
    if (!c.subject.loaded.model->adapted_elsewhere().empty()) {
      CHECK_THROWS_WITH_AS(c.with({"*: adapter off"}), doctest::Contains("one that also changed"), Error);
      return;
    }
    ++switched;
    CHECK(c.gap("*: adapter off", c.base) < 5e-4);
    CHECK(c.gap("*: adapter 0.5", c.half) < 5e-4);
    CHECK(c.gap("*: adapter 1", c.merged) < 1e-4);
    CHECK(c.gap("*: adapter 0.5", c.merged) > 1e-3);
    CHECK(c.gap("*: adapter off", c.base, {SiteKind::result}) < 5e-4);  // where heads add apart
    CHECK(c.gap("0.*: adapter off", c.base) > 1e-4);                    // of one layer alone
    const Tensor late = c.with({"*@3..: adapter off"});                 // of the last positions alone
    CHECK(largest_difference(late.slice(0, 0, 3), c.merged.slice(0, 0, 3)) < 1e-4);
    CHECK(largest_difference(late.slice(0, 3, 6), c.merged.slice(0, 3, 6)) > 1e-4);
  });
  CHECK(switched >= 4);
}

TEST_CASE("what heads write with, without the adapter, is the base model's") {
  const fs::path folder = reference("adapters/qwen2");
  const Subject adapted(folder), base(locate_model(folder).folder);
  const Model& model = *adapted.loaded.model;
  const ModelWeights off = weights_written_with(model, {parse_intervention("*: adapter off", "test")}, 6),
                     own = base.loaded.model->weights();
  for (std::size_t layer = 0; layer < own.blocks.size(); ++layer)
    for (std::size_t head = 0; head < own.blocks[layer].heads.size(); ++head) {
      CHECK(largest_difference(off.blocks[layer].heads[head].o, own.blocks[layer].heads[head].o) < 1e-5);
      CHECK(largest_difference(model.weights().blocks[layer].heads[head].o, own.blocks[layer].heads[head].o) > 1e-2);
    }
}

TEST_CASE("singular values are scaled of the merged matrix, and the adapter is taken from what that gives") {
  const Case c(reference("adapters/qwen2"));
  CHECK(largest_difference(c.with({"*: adapter off", "*: singular o 1..=1.0000001"}), c.base) < 1e-3);
}

TEST_CASE("an adapter goes onto a GGUF file of its model") {
  const Case c(reference("adapters/granite"));
  CHECK(largest_difference(logits_of(with_adapter(reference("formats/gguf/granite.gguf"), c.folder)), c.merged) < 1e-4);
}

TEST_CASE("adapters of other methods, models and settings are refused by name") {
  CHECK(refusal("qwen2", [](json&) {}).empty());
  CHECK(says(refusal("qwen2", "peft_type", "IA3"), "adapter_config.json: peft_type: expected LORA"));
  CHECK(says(refusal("qwen2", "use_dora", true), "use_dora"));
  CHECK(says(refusal("qwen2", "bias", "all"), "bias: expected \"none\""));
  CHECK(says(refusal("qwen2", "layer_replication", json::array({json::array({0, 1})})), "layer_replication"));
  CHECK(says(refusal("qwen2", "init_lora_weights", "pissa_niter_4"), "init_lora_weights"));
  CHECK(says(refusal("qwen2", "r", 4), "halves of rank 4, as adapter_config.json says"));
  CHECK(says(refusal("qwen2", "alpha_pattern", {{".*q_proj", 3}}), "alpha_pattern: expected names of modules"));
  const fs::path adapter = reference("adapters/qwen2");
  CHECK_THROWS_WITH_AS(Subject(with_adapter(reference("gpt2-random"), adapter)),
                       doctest::Contains("expected an adapter of this model's matrices, found"), Error);
  CHECK_THROWS_WITH_AS(Subject(with_adapter(reference("families/gemma2"), adapter)),
                       doctest::Contains("halves of 18 inputs and"), Error);
  const fs::path orphan = scratch_dir("adapter-orphan");
  fs::copy(adapter, orphan, fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  CHECK_THROWS_WITH_AS(Subject{orphan}, doctest::Contains("whose model is not on this machine"), Error);
  // One half alone.
  const SafetensorsFile file = SafetensorsFile::open(adapter / "adapter_model.safetensors");
  SafetensorsWriter writer;
  bool left_out = false;
  for (const auto& [name, entry] : file.tensors())
    if (left_out || name.find("lora_B") == std::string::npos)
      writer.add(name, file.tensor(name));
    else
      left_out = true;
  writer.write(orphan / "adapter_model.safetensors");
  CHECK_THROWS_WITH_AS(LoraAdapter::open(orphan), doctest::Contains("expected lora_A and lora_B, found lora_A alone"),
                       Error);
  const Subject plain(reference("gpt2-random"));
  RunRequest request;
  request.ids = {1, 2, 3};
  request.edits = {parse_intervention("*: adapter off", "test")};
  CHECK_THROWS_WITH_AS(run(plain.loaded, request, Ctx{*plain.backend}),
                       doctest::Contains("expected a model that was opened with an adapter"), Error);
}

TEST_CASE("a model with an adapter is one path, which parts again") {
  const fs::path whole = with_adapter("/models/gpt2", "/adapters/x/../mine");
  CHECK(whole == "/models/gpt2?adapter=/adapters/mine");
  CHECK(adapted_path(whole).model == "/models/gpt2");
  CHECK(adapted_path(whole).adapter == "/adapters/mine");
  CHECK(with_adapter(whole, "/other") == "/models/gpt2?adapter=/other");
  CHECK(adapted_path("/models/gpt2").adapter.empty());
}

TEST_CASE("an adapter of what is more than matrices of blocks is merged, and its edit says what would stay") {
  struct Case {
    const char *family, *module;
    Index in, out;
  };
  // A projection that also makes the gate of what heads put out; one that distances share.
  for (const auto& [family, module, in, out] :
       {Case{"families/qwen3_5_text", "model.layers.3.self_attn.q_proj", 18, 48},
        {"families/deberta_v2", "deberta.encoder.layer.0.attention.self.query_proj", 18, 18}}) {
    CAPTURE(family);
    const fs::path folder = scratch_dir("adapter-further");
    write_file_atomically(folder / "adapter_config.json",
                          R"({"peft_type": "LORA", "r": 2, "lora_alpha": 4, "bias": "none",
                          "target_modules": ["q_proj", "query_proj"], "base_model_name_or_path": "x"})");
    SafetensorsWriter writer;
    writer.add(std::string("base_model.model.") + module + ".lora_A.weight", random_tensor({2, in}, 1));
    writer.add(std::string("base_model.model.") + module + ".lora_B.weight", random_tensor({out, 2}, 2));
    writer.write(folder / "adapter_model.safetensors");
    const Subject changed(with_adapter(reference(family), folder)), base(reference(family));
    const Tensor with = changed.trace(ids, MapStorage::none, false)->logits;
    CHECK(largest_difference(with, base.trace(ids, MapStorage::none, false)->logits) > 1e-3);
    RunRequest request;
    request.ids = ids;
    request.edits.push_back(parse_intervention("*: adapter off", "test"));
    CHECK_THROWS_WITH_AS(run(changed.loaded, request, Ctx{*changed.backend}), doctest::Contains(module), Error);
  }
}

TEST_CASE("an adapter of matrices that the configuration multiplies is merged before that, and taken away behind it") {
  struct Case {
    const char *family, *module;
    Index in, out;
  };
  for (const auto& [family, module, in, out] :
       {Case{"families/falcon_h1", "model.layers.1.self_attn.k_proj", 20, 12},
        {"families/falcon_h1", "model.layers.0.feed_forward.gate_proj", 20, 22},
        {"families/falcon_h1", "model.layers.0.self_attn.o_proj", 24, 20},
        {"families/falcon_h1", "model.layers.1.mamba.out_proj", 24, 20},
        {"families/mimo_v2_flash", "model.layers.1.self_attn.v_proj", 18, 24}}) {
    CAPTURE(module);
    const fs::path folder = scratch_dir("adapter-multiplied"), base = reference(family);
    const Tensor a = random_tensor({2, in}, 1), b = random_tensor({out, 2}, 2);
    write_file_atomically(folder / "adapter_config.json",
                          R"({"peft_type": "LORA", "r": 2, "lora_alpha": 4, "bias": "none",
                          "target_modules": ["k_proj"], "base_model_name_or_path": "x"})");
    SafetensorsWriter writer;
    writer.add(std::string("base_model.model.") + module + ".lora_A.weight", a);
    writer.add(std::string("base_model.model.") + module + ".lora_B.weight", b);
    writer.write(folder / "adapter_model.safetensors");
    const fs::path merged = scratch_dir("adapter-multiplied-merged");
    fs::copy_file(base / "config.json", merged / "config.json");
    const SafetensorsFile own = SafetensorsFile::open(base / "model.safetensors");
    SafetensorsWriter all;
    for (const auto& [name, entry] : own.tensors()) {
      Tensor tensor = own.tensor(name).copy();
      if (name == std::string(module) + ".weight")
        for (Index i = 0; i < out; ++i)
          for (Index j = 0; j < in; ++j)
            for (Index r = 0; r < 2; ++r) tensor.ref(i, j) += 2 * b.at(i, r) * a.at(r, j);
      all.add(name, tensor);
    }
    all.write(merged / "model.safetensors");
    const Tensor with = logits_of(with_adapter(base, folder)), plain = logits_of(base);
    CHECK(largest_difference(with, logits_of(merged)) < 1e-4);
    CHECK(largest_difference(with, plain) > 1e-2);
    const Subject changed(with_adapter(base, folder));
    RunRequest request;
    request.ids = ids;
    request.edits.push_back(parse_intervention("*: adapter off", "test"));
    CHECK(largest_difference(run(changed.loaded, request, Ctx{*changed.backend})->logits, plain) < 1e-4);
  }
}

}  // namespace headscope::lora_adapter_test
