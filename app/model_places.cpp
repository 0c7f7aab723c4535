#include "app/model_places.h"

#include <set>

#include "app/assets.h"
#include "core/io/model_location.h"

namespace headscope {

namespace fs = std::filesystem;

std::vector<ModelPlace> model_places(const std::vector<fs::path>& named) {
  std::vector<ModelPlace> all;
  std::set<fs::path> seen;
  const auto add = [&](const char* kind, const fs::path& folder) {
    std::error_code gone;
    const fs::path real = fs::canonical(folder, gone);
    if (!gone && seen.insert(real).second) all.push_back({kind, folder});
  };
  for (const fs::path& folder : named) add("folder", folder);
  if (const auto models = find_bundled_model("tiny-gpt2")) add("bundled", models->parent_path());
  for (const fs::path& cache : cache_folders()) add("cache", cache);
  return all;
}

std::optional<fs::path> manifest_file() {
  for (const char* place : {"models/manifest.json", "../models/manifest.json"})
    if (const auto found = find_asset(place)) return found->lexically_normal();
  return std::nullopt;
}

InCache in_cache(const std::string& name) {
  const auto entry = find_in_cache(name);
  if (!entry) return InCache::none;
  return locate_model(*entry).format == ModelLocation::Format::none ? InCache::part : InCache::model;
}

}  // namespace headscope
