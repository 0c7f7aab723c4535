#include "core/model/formats/found_models.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>

#include "core/base/error.h"
#include "core/model/config.h"
#include "tests/support/paths.h"

namespace headscope::found_models_test {

using testing::reference;
using testing::scratch_dir;
namespace fs = std::filesystem;

namespace {

const FoundModel& named(const FoundModels& found, const std::string& name) {
  const auto at = std::ranges::find(found.models, name, &FoundModel::name);
  REQUIRE_MESSAGE(at != found.models.end(), name);
  return *at;
}

bool refused(const FoundModel& model, const std::string& because) {
  CAPTURE(model.refusal);
  return model.refusal.find(because) != std::string::npos;
}

}  // namespace

TEST_CASE("models are found in folders, single files and cache entries, each with why it does not open") {
  const fs::path root = scratch_dir("found-models");
  const auto whole = [](const fs::path& folder) {
    fs::create_directories(folder.parent_path());
    fs::copy(reference("gpt2-random"), folder, fs::copy_options::recursive);
  };
  const auto write = [](const fs::path& file, const std::string& text) {
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
  };
  whole(root / "one");
  whole(root / "one" / "checkpoint-5");  // of a model: not looked into
  whole(root / ".hidden" / "two");
  whole(root / "a" / "b" / "deep");
  whole(root / "hub" / "models--org--tiny" / "snapshots" / "abc");
  write(root / "hub" / "models--org--tiny" / "refs" / "main", "abc\n");
  write(root / "hub" / "models--org--halfway" / "refs" / "main", "abc\n");
  whole(root / "hub" / "datasets--org--texts" / "snapshots" / "abc");
  for (const char* name : {"first.gguf", "second.gguf"}) {
    fs::create_directories(root / "quantized");
    fs::copy(reference("formats/gpt2.gguf"), root / "quantized" / name);
  }
  fs::copy(reference("formats/gpt2.gguf"), root / "quantized" / "cut.gguf");
  fs::resize_file(root / "quantized" / "cut.gguf", 300);
  whole(root / "strange");
  write(root / "strange" / "config.json", R"({"model_type": "rwkv"})");
  whole(root / "broken");
  write(root / "broken" / "config.json", "{");
  write(root / "notes" / "weights.bin", "no model, no configuration beside it");
  fs::create_directory_symlink(root, root / "a" / "back");

  const FoundModels found = find_models(root);
  std::vector<std::string> names;
  for (const FoundModel& model : found.models) names.push_back(model.name);
  CHECK(names == std::vector<std::string>{"broken", "cut", "deep", "first", "one", "org/halfway", "org/tiny", "second",
                                          "strange"});
  CHECK(found.remark == "");

  const FoundModel& one = named(found, "one");
  CHECK(one.refusal == "");
  CHECK(one.path == root / "one");
  CHECK(one.family == "gpt2");
  CHECK(one.format == "safetensors");
  CHECK(one.dims.layers == load_config(root / "one").dims.layers);
  CHECK(one.bytes == 4 * static_cast<std::uint64_t>(one.parameters));  // F32
  CHECK(one.bytes < fs::file_size(root / "one" / "model.safetensors"));
  CHECK(one.bytes > fs::file_size(root / "one" / "model.safetensors") - 8192);  // its header
  CHECK(named(found, "org/tiny").refusal == "");
  CHECK(named(found, "org/tiny").path == root / "hub" / "models--org--tiny");
  CHECK(named(found, "second").path == root / "quantized" / "second.gguf");
  CHECK(named(found, "second").format == "GGUF v3");
  CHECK(refused(named(found, "cut"), "cut.gguf"));
  CHECK(refused(named(found, "org/halfway"), "models--org--halfway"));
  CHECK(named(found, "strange").family == "rwkv");
  CHECK(named(found, "strange").dims.layers == 0);
  CHECK(refused(named(found, "strange"), "expected one of"));
  CHECK(refused(named(found, "broken"), "config.json"));
  CHECK(find_models(root / "nowhere").models.empty());
  std::stop_source stop;
  stop.request_stop();
  CHECK_THROWS_AS(find_models(root, stop.get_token()), Cancelled);
}

}  // namespace headscope::found_models_test
