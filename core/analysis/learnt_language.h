#pragma once
// The language that a model of this project learnt, read off the recipe in its folder.

#include <filesystem>
#include <optional>
#include <string>

#include "core/train/grammar.h"

namespace headscope {

/// Its name (Grammar::named). nullopt where the folder has no recipe.json, or one of a task that has no grammar. Throws
/// Error on a recipe.json that is none.
std::optional<std::string> learnt_grammar_name(const std::filesystem::path& folder);
/// The same; nullptr in place of nullopt.
const Grammar* learnt_grammar(const std::filesystem::path& folder);

}  // namespace headscope
