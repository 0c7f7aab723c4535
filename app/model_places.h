#pragma once
// Where models are looked for on this machine, by the command line and by the window alike.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace headscope {

struct ModelPlace {
  std::string kind;  ///< "folder", "bundled", "cache"
  std::filesystem::path folder;
};
/// The named folders, the bundled models, and the caches of Hugging Face's tools; of each what is there, and once.
std::vector<ModelPlace> model_places(const std::vector<std::filesystem::path>& named);

/// The list of models worth beginning with (core/hub/manifest.h); nullopt when it was not installed.
std::optional<std::filesystem::path> manifest_file();

/// What of "org/name" lies in the cache: nothing, less than its weights, or a model.
enum class InCache { none, part, model };
InCache in_cache(const std::string& name);

}  // namespace headscope
