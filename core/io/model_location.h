#pragma once
// What a person means by a path to a model: a folder, a file of weights, or an entry of the Hugging Face cache. The one
// place that knows the names of files; nothing is read but the first bytes of a file.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/base/folder.h"
#include "core/io/tensor_file.h"

namespace headscope {

struct ModelLocation {
  enum class Format {
    none,         ///< no weights were found, or more files than one that could be meant
    safetensors,  ///< these two have config.json and the tokenizer beside them
    pytorch,
    gguf,  ///< these two say themselves what they are
    llama2c
  };
  std::filesystem::path folder;   ///< with config.json and the tokenizer
  std::filesystem::path weights;  ///< the file, or the index of its shards; empty when there is none
  Format format = Format::none;
  std::filesystem::path adapter;  ///< the folder of a LoRA adapter that is merged into them; empty = none
  std::string name;               ///< for people: the folder's, the file's, "org/name" of a cache entry
  std::string trouble;            ///< with no format: what was found instead, for an Error

  /// Whether config.json is not asked.
  bool self_contained() const { return format == Format::gguf || format == Format::llama2c; }
};

/// Never throws for what is not there: opening it will say so. A folder "models--org--name" leads to the snapshot that
/// its refs/main names, or to its only one. In a folder the first of these is meant: model.safetensors, its index, one
/// *.safetensors, pytorch_model.bin, its index, one *.gguf, one *.bin, *.pt or *.pth.
ModelLocation locate_model(const std::filesystem::path& path);

/// A model with an adapter, as one path: "MODEL?adapter=FOLDER". A folder of an adapter alone leads to the model that
/// its adapter_config.json names, where that lies on this machine.
std::filesystem::path with_adapter(const std::filesystem::path& model, const std::filesystem::path& adapter);
/// The parts of such a path; `adapter` is empty where there is none.
struct AdaptedPath {
  std::filesystem::path model, adapter;
};
AdaptedPath adapted_path(const std::filesystem::path& path);
/// Whether the folder holds an adapter.
bool is_adapter(const std::filesystem::path& folder);

/// The files that a model is read from, as they look now: the one file that says everything itself, or those of its
/// folder. Of nothing where there are none.
FilesStamp stamp_of(const ModelLocation& model);

/// Where Hugging Face's tools keep what is theirs, the first to be asked first: HF_HOME, XDG_CACHE_HOME/huggingface and
/// ~/.cache/huggingface. They need not exist.
std::vector<std::filesystem::path> hugging_face_homes();
/// … and the models that they fetched: HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE and "hub" in each of those.
std::vector<std::filesystem::path> cache_folders();
/// The folder of "org/name" in a cache: "models--org--name".
std::string cache_entry_name(const std::string& name);
/// The entry of "org/name" in the first of these that has one; of "org/name@revision" the snapshot of that revision.
std::optional<std::filesystem::path> find_in_cache(const std::string& name);

/// The tensors of a located model, or of any file of tensors. Throws Error as the reader of its format does.
TensorFile open_tensors(const ModelLocation& model);

}  // namespace headscope
