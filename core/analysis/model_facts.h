#pragma once
// What a model is, as its files say and as they are read: extents, what it does that others do not, parameters, stored
// types, tokenizer, keys of its configuration. The same for `inspect` and for the window's page about a model.

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/io/tensor_file.h"
#include "core/model/config.h"
#include "core/model/config_reader.h"

namespace headscope {

class LoraAdapter;

/// What a file of tensors holds.
struct StoredTensors {
  std::string format;  ///< "safetensors", "GGUF v3", "PyTorch, 2 files"
  std::size_t count = 0;
  std::uint64_t bytes = 0;
  std::map<std::string, int> types;  ///< how many tensors of each
  std::string in_words() const;      ///< "28 F32, 3 Q4_K"
};
StoredTensors stored_tensors(const TensorFile& file);

struct ModelFacts {
  struct Part {
    std::string name;
    std::int64_t parameters = 0;
    std::string words = {};  ///< how it is shown, where that is not its name
    const std::string& shown() const { return words.empty() ? name : words; }
  };
  struct Reader {  ///< of its texts
    std::string kind;
    int vocab = 0;
    bool adds_bos = false;
  };
  std::filesystem::path path;
  ModelConfig config;
  std::string summary;              ///< of the family
  std::vector<ConfigKey> keys;      ///< of its configuration: used, or changing nothing
  std::vector<Part> parts;          ///< where the parameters are; tied unembeddings count once, with the embedding
  std::int64_t parameters = 0;      ///< that the model uses
  std::string dtype;                ///< stored types of what it uses
  bool untied = false;              ///< the file has an unembedding of its own, though its configuration ties it
  std::vector<std::string> unused;  ///< tensors outside the blocks that it does not use
  StoredTensors stored;
  std::optional<Reader> tokenizer;
  std::shared_ptr<const TensorFile> tensors;
  std::shared_ptr<const LoraAdapter> adapter;  ///< null: none
};
/// Reads all weights. Throws Error as the model's reader does.
ModelFacts model_facts(const std::filesystem::path& path);

const char* name_of(NormKind kind);
const char* name_of(PositionKind kind);
/// The same of a model, by what tells it positions where that is nothing of these.
const char* positions_of(const ModelConfig& config);
const char* name_of(Activation activation);
/// What this model does that GPT-2 and Llama do not, in words, with commas between; "" = nothing.
std::string switches(const ModelConfig& config);

}  // namespace headscope
