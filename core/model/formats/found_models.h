#pragma once
// Which models lie in a folder, and whether they open: by the first bytes of files, config.json and the names of
// tensors. No weights are read and nothing is fetched.

#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

#include "core/trace/model_info.h"

namespace headscope {

struct FoundModel {
  std::string name;             ///< the folder's, the file's, "org/name" of a cache entry
  std::filesystem::path path;   ///< what opens it: a folder, or a file where its folder holds several
  std::string format;           ///< TensorFile::format(); "" while that is not known
  std::string family;           ///< "qwen2", as its config.json says, also where that is none of ours; "" = not said
  ModelDims dims;               ///< zeros while they are not known
  std::int64_t parameters = 0;  ///< items in its files, tied ones as often as they are written
  std::uint64_t bytes = 0;      ///< of its tensors
  std::string refusal;          ///< why it does not open; "" = configuration and tensors are understood
};

struct FoundModels {
  std::vector<FoundModel> models;  ///< by name
  std::string remark;              ///< what was not looked at, and why; "" = all was
};
/// All below `folder`, four folders deep, hidden ones left out; a folder that is a model is not looked into. Throws
/// Cancelled when it is stopped. A folder that is not there has none.
FoundModels find_models(const std::filesystem::path& folder, const std::stop_token& stop = {});

}  // namespace headscope
