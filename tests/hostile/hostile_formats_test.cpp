// Model files of every format with numbers and pieces changed at random: read, or refused with one Error.

#include <doctest/doctest.h>

#include <fstream>

#include "core/base/file.h"
#include "core/io/model_location.h"
#include "core/model/formats/model_files.h"
#include "core/model/model.h"
#include "core/text/tokenizer.h"
#include "tests/support/mutants.h"
#include "tests/support/paths.h"

namespace headscope::hostile_formats_test {

using testing::as_file;
using testing::mutated_numbers;
using testing::reference;
using testing::refused;
namespace fs = std::filesystem;

namespace {

/// All that inspecting and opening a model does but the packing of its matrices.
void read_model(const fs::path& path) {
  const ModelLocation place = locate_model(path);
  const TensorFile file = open_tensors(place);
  for (const auto& [name, entry] : file.tensors())
    if (dtype_info(entry.dtype).decode && entry.shape.size() <= 4) file.tensor(name);
  if (place.self_contained()) {
    const ModelFiles files = ModelFiles::open(place);
    read_weights(*files.weights, load_config(path));
  }
}

}  // namespace

TEST_CASE("mutants of GGUF files are read or refused") {
  for (const char* name : {"gpt2.gguf", "llama-grids.gguf", "blocks.gguf"}) {
    const bool model = std::string(name) != "blocks.gguf";
    CHECK(refused(name, read_file(reference(std::string("formats/") + name)), 2000,
                  as_file("m.gguf",
                          [model](const fs::path& path) {
                            if (model) return read_model(path);
                            const TensorFile file = open_tensors(locate_model(path));
                            for (const auto& [tensor, entry] : file.tensors())
                              if (dtype_info(entry.dtype).decode) file.tensor(tensor);
                          }),
                  mutated_numbers) > 400);
  }
  for (const char* name : {"gpt2-tokenizer.gguf", "llama-tokenizer.gguf"})
    CHECK(refused(name, read_file(reference(std::string("formats/") + name)), 600,
                  as_file("t.gguf",
                          [](const fs::path& path) {
                            if (const auto tokenizer = load_tokenizer(path))
                              tokenizer->encode("It's 12 o'clock, é灯\n ");
                          }),
                  mutated_numbers) > 100);
}

TEST_CASE("mutants of GGUF files whose rows are sorted anew are read or refused") {
  for (const char* name : {"falcon-new.gguf", "gemma3.gguf", "phi2-old.gguf"})
    CHECK(refused(name, read_file(reference(std::string("formats/gguf/") + name)), 100, as_file("m.gguf", read_model),
                  mutated_numbers) > 50);
  for (const char* name : {"falcon-new.gguf", "granite.gguf"})
    CHECK(refused(name, read_file(reference(std::string("formats/gguf/") + name)), 600, as_file("m.gguf", read_model),
                  mutated_numbers) > 20);
}

TEST_CASE("mutants of TransformerLens' files and configurations are read or refused") {
  const auto read = [](const fs::path& path) {
    const ModelFiles files = ModelFiles::open(locate_model(path));
    read_weights(*files.weights, load_config(path));
  };
  for (const char* name : {"lens-dict.pt", "lens-class.pt"})
    CHECK(refused(name, read_file(reference(std::string("formats/") + name)), 800, as_file("m.pt", read),
                  mutated_numbers) > 50);
  for (const char* name : {"transformer_lens-gated", "transformer_lens-folded"}) {
    const fs::path folder = testing::scratch_dir("mutants-lens");
    fs::copy(reference(std::string("families/") + name), folder);
    CHECK(refused(name, read_file(folder / "config.json"), 400, [&](const std::string& bytes) {
            std::ofstream(folder / "config.json", std::ios::binary | std::ios::trunc) << bytes;
            read(folder);
          }) > 100);
  }
}

TEST_CASE("mutants of adapters are merged or refused") {
  const fs::path folder = testing::scratch_dir("mutants-adapter");
  fs::copy(reference("adapters/qwen2"), folder);
  const fs::path whole = with_adapter(reference("families/qwen2"), folder);
  for (const char* name : {"adapter_config.json", "adapter_model.safetensors"}) {
    CAPTURE(name);
    const std::string bytes = read_file(folder / name);
    CHECK(refused(name, bytes, 400, [&](const std::string& changed) {
            std::ofstream(folder / name, std::ios::binary | std::ios::trunc) << changed;
            const ModelFiles files = ModelFiles::open(locate_model(whole));
            read_weights(*files.weights, load_config(whole));
          }) > 50);
    std::ofstream(folder / name, std::ios::binary | std::ios::trunc) << bytes;
  }
}

TEST_CASE("mutants of PyTorch's files are read or refused") {
  for (const char* name : {"state.pt", "old.pt"})
    CHECK(refused(name, read_file(reference(std::string("formats/") + name)), 3000, as_file("m.pt", read_model),
                  mutated_numbers) > 1000);
}

TEST_CASE("mutants of llama2.c's files are read or refused") {
  const std::string model = read_file(reference("formats/llama2c/model.bin"));
  CHECK(refused("llama2.c", model, 200, as_file("m.bin", read_model), [](std::string bytes, Random& random) {
          // Changed weights are as good as others: the header is what matters.
          return mutated_numbers(bytes.substr(0, 28), random) + bytes.substr(28);
        }) > 150);
  CHECK(refused(
            "tokenizer.bin", read_file(reference("formats/llama2c/tokenizer.bin")), 400,
            [&, folder = testing::scratch_dir("mutants-llama2c")](const std::string& bytes) {
              std::ofstream(folder / "model.bin", std::ios::binary | std::ios::trunc) << model;
              std::ofstream(folder / "tokenizer.bin", std::ios::binary | std::ios::trunc) << bytes;
              load_tokenizer(folder)->encode("It's 12 o'clock, é灯\n ");
            },
            mutated_numbers) > 50);
}

TEST_CASE("mutants of F8 and sharded files are read or refused") {
  CHECK(refused("F8", read_file(reference("formats/f8.safetensors")), 500, as_file("m.safetensors", read_model)) > 50);
  const fs::path folder = testing::scratch_dir("mutants-sharded");
  fs::copy(reference("formats/sharded"), folder, fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  CHECK(refused("index", read_file(folder / "pytorch_model.bin.index.json"), 500, [&](const std::string& bytes) {
          std::ofstream(folder / "pytorch_model.bin.index.json", std::ios::binary | std::ios::trunc) << bytes;
          read_model(folder);
        }) > 300);
}

}  // namespace headscope::hostile_formats_test
