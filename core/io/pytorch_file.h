#pragma once
// What torch.save writes (pytorch_model.bin, .pt, .pth): a pickle (core/io/pickle.h) of a dict of tensors, and the
// tensors' storages as they lie in memory. In a zip archive since PyTorch 1.6; one after another in one file before.
// Nothing in the file is run: names that are not tensors, dicts, lists, strings or numbers are refused.

#include <filesystem>

#include "core/io/tensor_file.h"

namespace headscope {

/// True when the file begins as one of both forms does.
bool looks_like_pytorch(const InputFile& file);

/// The tensors of a state dict, or of the one that a checkpoint holds as "state_dict", "model_state_dict" or "model";
/// what it holds beside that as "cfg" or "config", a dict or a HookedTransformerConfig, is JSON in metadata's "config".
/// Throws Error naming file and tensor on code, a broken archive, storages that are missing, of another size than told,
/// or too short for a tensor, and files in which there is no state dict.
TensorFile open_pytorch(const std::filesystem::path& path);

}  // namespace headscope
