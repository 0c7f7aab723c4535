// A model in every format gives the same trace, to the bit, as its Hugging Face folder does. The files are of
// make_formats.py.

#include <doctest/doctest.h>

#include <cstring>
#include <fstream>
#include <limits>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/io/gguf.h"
#include "core/io/llama2c.h"
#include "core/io/safetensors.h"
#include "core/model/formats/gguf_dialect.h"
#include "core/model/formats/model_files.h"
#include "core/model/weight_reader.h"
#include "tests/model/parity.h"
#include "tests/support/paths.h"

namespace headscope::formats_test {

using namespace testing;
namespace fs = std::filesystem;

namespace {

bool same_bits(const Tensor& a, const Tensor& b) {
  const Tensor x = a.packed(), y = b.packed();
  return x.shape() == y.shape() && std::memcmp(x.data(), y.data(), x.bytes()) == 0;
}

/// Logits, every map and every site of both, compared to the bit.
void check_same_trace(const fs::path& one, const fs::path& other, const std::vector<std::int32_t>& ids) {
  const Subject a(one), b(other);
  CHECK(a.loaded.model->config().dims.layers == b.loaded.model->config().dims.layers);
  const auto x = a.trace(ids, MapStorage::dense, true), y = b.trace(ids, MapStorage::dense, true);
  CHECK(same_bits(x->logits, y->logits));
  const ModelDims& dims = x->model.dims;
  for (int layer = 0; layer < dims.layers; ++layer)
    for (int head = 0; head < dims.heads; ++head)
      CHECK(same_bits(x->map({layer, head}).to_dense(), y->map({layer, head}).to_dense()));
  REQUIRE(x->sites.size() == y->sites.size());
  for (const auto& [site, tensor] : x->sites) CHECK(same_bits(tensor, y->sites.at(site)));
  CHECK(x->model.parameters == y->model.parameters);
}

const std::vector<std::int32_t> short_ids{1, 5, 2, 5, 1, 3};

/// A folder with `config` and, under `name`, the file `weights`.
fs::path folder_with(const std::string& title, const fs::path& config, const fs::path& weights,
                     const std::string& name) {
  const fs::path folder = scratch_dir(title);
  fs::copy_file(config, folder / "config.json");
  fs::copy_file(weights, folder / name);
  return folder;
}

const fs::path formats = reference("formats"), gpt2 = reference("training-gpt2"), llama = reference("llama-gqa");

}  // namespace

TEST_CASE("a GPT-2 gives the same trace from safetensors, PyTorch's files in both forms, shards, a checkpoint, GGUF") {
  for (const auto& [file, name] : std::initializer_list<std::pair<const char*, const char*>>{
           {"gpt2.bin", "pytorch_model.bin"}, {"gpt2-old.bin", "pytorch_model.bin"}, {"checkpoint.pt", "any.pt"}}) {
    CAPTURE(file);
    const fs::path folder = folder_with("in-formats", gpt2 / "config.json", formats / file, name);
    check_same_trace(gpt2, folder, short_ids);
    check_same_trace(gpt2, folder / name, short_ids);  // the file alone, config.json beside it
  }
  check_same_trace(gpt2, formats / "sharded", short_ids);
  check_same_trace(gpt2, formats / "sharded/pytorch_model.bin.index.json", short_ids);
  check_same_trace(gpt2, formats / "gpt2.gguf", short_ids);
  check_same_trace(gpt2, gpt2 / "model.safetensors", short_ids);
  check_same_trace(gpt2, gpt2 / "config.json", short_ids);
}

TEST_CASE("a Llama gives the same trace from GGUF, whose rows of q and k lie in pairs") {
  check_same_trace(llama, formats / "llama-gqa.gguf", short_ids);
  const fs::path folder = scratch_dir("one-gguf");
  fs::copy_file(formats / "llama-gqa.gguf", folder / "some.Q8.gguf");
  check_same_trace(llama, folder, short_ids);
  CHECK(load_config(folder / "some.Q8.gguf").name == "some.Q8");
}

TEST_CASE("a Llama gives the same trace from llama2.c's file") {
  // run.c knows one epsilon, 1e-5.
  const fs::path folder = scratch_dir("llama2c");
  fs::copy(llama, folder, fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  std::string config = read_file(llama / "config.json");
  const std::size_t at = config.find("1e-06");
  REQUIRE(at != std::string::npos);
  config.replace(at, 5, "1e-05");
  write_file_atomically(folder / "config.json", config);
  check_same_trace(folder, formats / "llama2c/model.bin", short_ids);
  check_same_trace(folder, formats / "llama2c", short_ids);
  const ModelConfig read = load_config(formats / "llama2c/model.bin");
  CHECK(read.dims.kv_heads == 2);
  CHECK(!read.tied_embeddings);
  // The lowest number of words there can be has no positive twin.
  std::string bytes = read_file(formats / "llama2c/model.bin");
  const std::int32_t lowest = std::numeric_limits<std::int32_t>::min();
  std::memcpy(bytes.data() + 20, &lowest, sizeof lowest);
  write_file_atomically(folder / "lowest.bin", bytes);
  CHECK_THROWS_WITH_AS(open_llama2c(folder / "lowest.bin"), doctest::Contains("vocab_size"), Error);
}

TEST_CASE("a Hugging Face cache entry opens by its folder, by the snapshot and by the name of a file in it") {
  const fs::path entry = scratch_dir("cache") / "models--some-org--tiny-gpt2";
  const fs::path snapshot = entry / "snapshots" / "0123abcd";
  fs::create_directories(entry / "blobs");
  fs::create_directories(entry / "refs");
  fs::create_directories(snapshot);
  fs::create_directories(entry / "snapshots" / "older");
  write_file_atomically(entry / "refs" / "main", "0123abcd");
  for (const char* name : {"config.json", "model.safetensors"}) {  // links to blobs, as huggingface_hub makes them
    fs::copy_file(gpt2 / name, entry / "blobs" / name);
    fs::create_symlink(fs::path("../../blobs") / name, snapshot / name);
  }
  check_same_trace(gpt2, entry, short_ids);
  check_same_trace(gpt2, snapshot, short_ids);
  check_same_trace(gpt2, snapshot / "model.safetensors", short_ids);
  CHECK(load_config(entry).name == "some-org/tiny-gpt2");
  CHECK(load_config(snapshot).name == "some-org/tiny-gpt2");

  write_file_atomically(entry / "refs" / "main", "../../../etc");
  CHECK(locate_model(entry).folder == entry);  // no name of a snapshot, and two that could be meant
  fs::remove_all(entry / "snapshots" / "older");
  CHECK(locate_model(entry).folder == snapshot);
  ::setenv("HF_HUB_CACHE", entry.parent_path().c_str(), 1);
  CHECK(find_in_cache("some-org/tiny-gpt2") == entry);
  CHECK(!find_in_cache("some-org/other"));
  CHECK(!find_in_cache("../tiny-gpt2"));
  ::unsetenv("HF_HUB_CACHE");
}

TEST_CASE("a folder of two files that could be meant asks for one of them") {
  const fs::path folder = scratch_dir("two-gguf");
  fs::copy_file(formats / "gpt2.gguf", folder / "a.gguf");
  fs::copy_file(formats / "gpt2.gguf", folder / "b.gguf");
  CHECK_THROWS_WITH_AS(ModelFiles::open(locate_model(folder)), doctest::Contains("found 2 files *.gguf"), Error);
  check_same_trace(gpt2, folder / "b.gguf", short_ids);
  CHECK_THROWS_WITH_AS(ModelFiles::open(locate_model(scratch_dir("nothing"))), doctest::Contains("found none"), Error);
}

TEST_CASE("F8 numbers are what PyTorch reads in them, times the scale that is told") {
  const SafetensorsFile file = SafetensorsFile::open(formats / "f8.safetensors");
  for (const char* name : {"e4m3", "e5m2"}) {
    CAPTURE(name);
    const Tensor found = file.tensor(name), expected = file.tensor(std::string(name) + ".expected");
    for (Index i = 0; i < 256; ++i) {
      CAPTURE(i);
      if (std::isnan(expected.at(i)))
        CHECK(std::isnan(found.at(i)));
      else
        CHECK(std::bit_cast<std::uint32_t>(found.at(i)) == std::bit_cast<std::uint32_t>(expected.at(i)));
    }
  }
  const FileWeights weights(file);
  for (const char* name : {"one", "rows", "blocks"}) {
    CAPTURE(name);
    const Tensor expected = file.tensor(std::string(name) + ".expected");
    CHECK(same_bits(weights.take(name, expected.shape()), expected));
  }
  const auto names = weights.names();
  CHECK(std::ranges::find(names, "one_scale") == names.end());
  CHECK_THROWS_WITH_AS(weights.take("e4m3", {256}), doctest::Contains("F8_E4M3 without a scale"), Error);
}

TEST_CASE("GGUF keys are read under their own names, and those that change numbers and are not known are refused") {
  const std::string whole = read_file(formats / "llama-gqa.gguf");
  const auto changed = [&](const std::string& from, const std::string& to) -> std::string {
    REQUIRE(from.size() == to.size());
    std::string bytes = whole;
    const std::size_t at = bytes.find(from);
    REQUIRE(at != std::string::npos);
    bytes.replace(at, from.size(), to);
    const fs::path path = scratch_dir("gguf-keys") / "m.gguf";
    write_file_atomically(path, bytes);
    try {
      Backend backend(1);
      Model::load(path, backend);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const auto says = [](const std::string& message, const std::string& part) {
    if (message.find(part) != std::string::npos) return true;
    MESSAGE("said: " << message);
    return false;
  };
  const auto u32 = [](std::uint32_t value) {
    std::string bytes(4, '\0');
    std::memcpy(bytes.data(), &value, 4);
    return bytes;
  };
  const std::string number = u32(4);
  CHECK(says(changed("llama.attention.head_count" + number + u32(4), "llama.attention.head_count" + number + u32(0)),
             "m.gguf: llama.attention.head_count: expected"));
  CHECK(says(changed("llama.rope.dimension_count" + number + u32(8), "llama.rope.dimension_count" + number + u32(4)),
             "m.gguf: llama.rope.dimension_count: expected 8, the whole width of a head, found 4"));
  CHECK(says(changed("llama.vocab_size", "llama.other_size"), "m.gguf: llama.other_size: expected only keys"));
  CHECK(says(changed("llama.block_count", "llama.block_kount"), "llama.block_kount"));
  CHECK(says(changed(std::string("\5\0\0\0\0\0\0\0llama", 13), std::string("\5\0\0\0\0\0\0\0lambs", 13)),
             "general.architecture: expected one of llama, qwen2, qwen3, gpt2, gemma, gemma2"));
  CHECK(says(changed("blk.1.ffn_gate.weight", "blk.1.ffn_gote.weight"), "blk.1.ffn_gote.weight"));
  CHECK(says(changed("blk.1.ffn_gate.weight", "blk.9.ffn_gate.weight"), "model.layers.1.mlp.gate_proj.weight"));
}

TEST_CASE("Llama 3's rotary scaling is known by its factors, and factors of another rule are refused") {
  const ModelConfig config = load_config(formats / "rope.gguf");
  CHECK(config.rotary.scaling == RotaryConfig::Scaling::llama3);
  CHECK(config.rotary.factor == 32);
  CHECK(config.rotary.low_frequency_factor == 1);
  CHECK(config.rotary.high_frequency_factor == 4);
  CHECK(config.rotary.original_context == 8192);
  CHECK(config.rotary.base == 500000);
  CHECK(config.dims.vocab == 7);
  CHECK(config.tied_embeddings);
  std::string bytes = read_file(formats / "rope.gguf");
  const TensorEntry entry = GgufFile::open(formats / "rope.gguf").entry("rope_freqs.weight");
  const float other = 3;
  std::memcpy(bytes.data() + entry.offset + 4, &other, sizeof other);  // the second factor, 1
  const fs::path path = scratch_dir("rope") / "m.gguf";
  write_file_atomically(path, bytes);
  CHECK_THROWS_WITH_AS(load_config(path), doctest::Contains("rope_freqs.weight: expected 1 at 1"), Error);
}

TEST_CASE("rows of a head in pairs become its halves") {
  Tensor rows = Tensor::uninitialized({8, 1});  // two heads of four
  for (Index i = 0; i < 8; ++i) rows.ref(i, 0) = static_cast<float>(i);
  const Tensor halves = halves_from_pairs(rows, 2);
  const float expected[] = {0, 2, 1, 3, 4, 6, 5, 7};
  for (Index i = 0; i < 8; ++i) CHECK(halves.at(i, 0) == expected[i]);
}

TEST_CASE("files of every format that are cut short while open are an Error with the place") {
  for (const char* name : {"gpt2.gguf", "gpt2.bin", "gpt2-old.bin"}) {
    CAPTURE(name);
    const fs::path folder = folder_with("cut-short", gpt2 / "config.json", formats / name, name);
    const ModelConfig config = load_config(folder / name);
    const ModelFiles files = ModelFiles::open(locate_model(folder / name));
    fs::resize_file(folder / name, 3000);
    CHECK_THROWS_WITH_AS(read_weights(*files.weights, config), doctest::Contains("its end at byte"), Error);
  }
}

}  // namespace headscope::formats_test
