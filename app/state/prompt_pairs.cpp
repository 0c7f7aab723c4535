#include "app/state/prompt_pairs.h"

#include "app/assets.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/io/json_view.h"
#include "core/io/strict_json.h"

namespace headscope {

namespace {
using nlohmann::json;
constexpr std::size_t pairs_limit = std::size_t{1} << 20;
constexpr std::string_view asked_here = "[MASK]";
}  // namespace

std::vector<PromptPair> load_prompt_pairs() {
  const auto file = find_asset("examples/prompt_pairs.json");
  if (!file) return {};
  const std::string where = file->string();
  const json parsed = parse_strict_json(read_file(*file, pairs_limit), where);
  JsonFields fields(parsed, where);
  std::vector<PromptPair> pairs;
  for (const JsonView& each : fields.value().at("pairs").elements("pairs")) {
    JsonFields entry(each);
    PromptPair pair;
    entry.read("title", pair.title);
    entry.read("clean", pair.clean);
    entry.read("corrupted", pair.corrupted);
    entry.read("right", pair.right);
    entry.read("wrong", pair.wrong);
    entry.read("target", pair.target);
    if (const auto models = entry.find("models"))
      for (const JsonView& model : models->elements("names")) pair.models.push_back(model.text());
    if (pair.clean.empty() || pair.corrupted.empty())
      each.refuse("a clean and a corrupted prompt", "an empty one", "in \"" + pair.title + "\"");
    pair.masked = pair.clean.find(asked_here) != std::string::npos;
    if (pair.masked != (pair.corrupted.find(asked_here) != std::string::npos))
      each.refuse("[MASK] in both prompts or in none", "in one", "in \"" + pair.title + "\"");
    pairs.push_back(std::move(pair));
  }
  return pairs;
}

PromptPair masked_by(PromptPair pair, const std::string& token) {
  for (std::string* text : {&pair.clean, &pair.corrupted})
    if (const auto at = text->find(asked_here); at != std::string::npos) text->replace(at, asked_here.size(), token);
  return pair;
}

}  // namespace headscope
