#pragma once
// Where the files that come with the program lie: beside the sources when it runs from a build folder, under the
// installation prefix when it is installed.

#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

namespace headscope {

/// The path of asset `name` ("examples/induction"), looked for in $HEADSCOPE_ASSETS, in PREFIX/share/headscope of the
/// running program's PREFIX/bin, and in `assets` of every folder above the program. nullopt when none has it.
std::optional<std::filesystem::path> find_asset(std::string_view name);
/// The folder of a bundled model by its name: "tiny-gpt2" (models/ beside the assets, or among them when installed), or
/// an example, "induction". nullopt when there is none.
std::optional<std::filesystem::path> find_bundled_model(std::string_view name);
/// Another program of this build or installation, by its name: "headscope". nullopt when there is none.
std::optional<std::filesystem::path> find_program(std::string_view name);
/// The folders find_asset looks in, for error messages.
std::vector<std::filesystem::path> asset_folders();

}  // namespace headscope
