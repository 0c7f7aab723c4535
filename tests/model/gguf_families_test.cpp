// GGUF files of every architecture beside the folders that they were made from: tests/reference/formats/gguf, written
// by make_gguf_families.py with the format's own package.

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/io/strict_json.h"
#include "core/model/formats/gguf_architectures.h"
#include "core/model/formats/renamed_weights.h"
#include "tests/model/parity.h"
#include "tests/support/largest_difference.h"
#include "tests/support/paths.h"

namespace headscope::gguf_families_test {

using namespace testing;
namespace fs = std::filesystem;

namespace {

const std::vector<std::int32_t> ids{3, 17, 8, 21, 40, 3, 17, 9, 33, 12, 40, 5, 3};

/// The folder that NAME.json describes: a configuration, and weights of another folder.
fs::path folder_of(const fs::path& description) {
  const auto json = parse_strict_json(read_file(description, 1 << 20), description.string());
  const fs::path folder = scratch_dir("gguf-" + description.stem().string());
  write_file_atomically(folder / "config.json", json.at("config").dump());
  fs::copy_file(reference(json.at("weights").get<std::string>()) / "model.safetensors", folder / "model.safetensors");
  return folder;
}

}  // namespace

TEST_CASE("a GGUF file of every architecture gives the trace of the folder that it was made from") {
  std::set<std::string> seen;
  for (const auto& entry : fs::directory_iterator(reference("formats/gguf"))) {
    if (entry.path().extension() != ".gguf") continue;
    const std::string file = entry.path().filename().string();
    CAPTURE(file);
    fs::path description = entry.path();
    description.replace_extension(".json");
    const Subject folder(folder_of(description)), gguf(entry.path());
    CHECK(gguf.loaded.model->config().family == folder.loaded.model->config().family);
    const auto expected = folder.trace(ids, MapStorage::dense, true), found = gguf.trace(ids, MapStorage::dense, true);
    CHECK(relative(found->logits, expected->logits) < 1e-5);
    REQUIRE(found->sites.size() == expected->sites.size());
    for (const auto& [site, tensor] : expected->sites) CHECK(relative(found->sites.at(site), tensor) < 1e-5);
    for (const AttentionMap& map : expected->maps)
      CHECK(largest_difference(found->map({map.layer(), map.head()}).to_dense(), map.to_dense()) < map_tolerance);
    seen.insert(*GgufFile::open(entry.path()).find<std::string>("general.architecture"));
  }
  // Those of formats_test beside these.
  for (const char* other : {"llama", "qwen2", "qwen3", "gpt2"}) seen.insert(other);
  for (const GgufArchitecture& each : gguf_architectures()) {
    CAPTURE(each.name);
    CHECK(seen.contains(std::string(each.name)));
  }
}

TEST_CASE("rows by kind become rows by key head") {
  Tensor rows = Tensor::uninitialized({8, 1});  // four query heads of one row on two key heads
  for (Index i = 0; i < 8; ++i) rows.ref(i, 0) = static_cast<float>(i);
  const Tensor groups = groups_from_kinds(rows, 4, 2);
  const float expected[] = {0, 1, 4, 6, 2, 3, 5, 7};
  for (Index i = 0; i < 8; ++i) CHECK(groups.at(i, 0) == expected[i]);
}

}  // namespace headscope::gguf_families_test
