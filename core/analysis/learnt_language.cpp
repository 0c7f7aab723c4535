#include "core/analysis/learnt_language.h"

#include "core/train/recipe.h"

namespace headscope {

std::optional<std::string> learnt_grammar_name(const std::filesystem::path& folder) {
  std::error_code ignored;
  const auto file = folder / "recipe.json";
  if (!std::filesystem::exists(file, ignored)) return std::nullopt;
  const TaskSettings task = load_recipe(file).task;
  return task.tells_stories() ? std::optional(task.grammar) : std::nullopt;
}

const Grammar* learnt_grammar(const std::filesystem::path& folder) {
  const auto name = learnt_grammar_name(folder);
  return name ? &Grammar::named(*name, (folder / "recipe.json").string()) : nullptr;
}

}  // namespace headscope
