#include "tests/support/model_folder.h"

#include <fmt/format.h>

#include "core/base/file.h"
#include "core/base/random.h"
#include "core/io/safetensors.h"
#include "tests/support/paths.h"

namespace headscope::testing {

void write_random_gpt2(const std::filesystem::path& folder, int layers, int heads, int d_model, int context,
                       std::uint64_t seed) {
  constexpr int vocab = 257;
  std::filesystem::create_directories(folder);
  const std::filesystem::path example = source_dir() / "assets/examples/induction";
  for (const char* file : {"vocab.json", "merges.txt"})
    std::filesystem::copy_file(example / file, folder / file, std::filesystem::copy_options::overwrite_existing);
  write_file_atomically(
      folder / "config.json",
      fmt::format(R"({{"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "activation_function": "gelu_new",
 "n_embd": {}, "n_head": {}, "n_layer": {}, "n_positions": {}, "vocab_size": {}, "layer_norm_epsilon": 1e-05,
 "tie_word_embeddings": true, "bos_token_id": 256, "eos_token_id": 256}})",
                  d_model, heads, layers, context, vocab));
  Random random(seed);
  SafetensorsWriter writer;
  const auto add = [&](const std::string& name, std::initializer_list<Index> shape, double spread) {
    Tensor t = Tensor::uninitialized(Shape(shape));
    // Large enough for patterns with some life in them.
    for (float& v : t.mutable_values()) v = static_cast<float>((random.uniform() - 0.5) * spread);
    writer.add(name, t);
  };
  const auto ones = [&](const std::string& name) {
    writer.add(name + ".weight", Tensor::full({d_model}, 1.0f));
    writer.add(name + ".bias", Tensor::zeros({d_model}));
  };
  const auto linear = [&](const std::string& name, Index in, Index out) {
    add(name + ".weight", {in, out}, 0.35);
    writer.add(name + ".bias", Tensor::zeros({out}));
  };
  add("wte.weight", {vocab, d_model}, 1);
  add("wpe.weight", {context, d_model}, 1);
  for (int i = 0; i < layers; ++i) {
    const std::string h = fmt::format("h.{}.", i);
    ones(h + "ln_1");
    ones(h + "ln_2");
    linear(h + "attn.c_attn", d_model, Index{3} * d_model);
    linear(h + "attn.c_proj", d_model, d_model);
    linear(h + "mlp.c_fc", d_model, Index{4} * d_model);
    linear(h + "mlp.c_proj", Index{4} * d_model, d_model);
  }
  ones("ln_f");
  writer.write(folder / "model.safetensors");
}

}  // namespace headscope::testing
