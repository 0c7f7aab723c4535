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
    pairs.push_back(std::move(pair));
  }
  return pairs;
}

}  // namespace headscope
