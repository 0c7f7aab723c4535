#pragma once
// Models worth beginning with: models/manifest.json, which comes with the program. Nothing of it is fetched to be
// shown.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace headscope {

struct ManifestEntry {
  std::string name;         ///< "org/name"
  std::string family;       ///< the "model_type" of its config.json
  std::string parameters;   ///< "124M"
  std::uint64_t bytes = 0;  ///< about, of what pull() fetches
  std::string licence;
  bool gated = false;  ///< its terms have to be accepted on its page, and a token be sent
  std::string why;     ///< what is to be seen in it, a phrase
};

/// Throws Error naming file, entry and key.
std::vector<ManifestEntry> read_manifest(const std::filesystem::path& file);

}  // namespace headscope
