#include "core/run/target_rules.h"

#include <algorithm>
#include <optional>
#include <string>

#include "core/base/json.h"
#include "core/io/json_view.h"
#include "core/io/model_location.h"

namespace headscope {

namespace {
using MaybeToken = std::optional<std::int32_t>;

/// One of the files beside a model; without it nothing is said there.
class RuleFile {
 public:
  explicit RuleFile(const std::filesystem::path& file) : where_(file.string()) {
    std::error_code ignored;
    if (std::filesystem::exists(file, ignored)) json_ = read_json_file(file);
  }
  std::optional<JsonView> find(std::string_view key) const { return JsonView(json_, where_).find(key); }

 private:
  std::string where_;
  nlohmann::json json_ = nlohmann::json::object();
};

/// [[1, 50259], [2, null], …]: what stands at place 1, 2, … as long as they are named.
std::vector<MaybeToken> forced_tokens(const JsonView& list, int vocab) {
  std::vector<MaybeToken> out;
  for (const JsonView& pair : list.elements("pairs of place and token")) {
    const auto both = pair.elements("numbers", 2, 2);
    if (both[0].small(0, 1 << 20) != static_cast<int>(out.size()) + 1) break;
    out.push_back(both[1].json().is_null() ? MaybeToken() : both[1].small(0, vocab - 1));
  }
  return out;
}

std::vector<std::int32_t> suppressed(const std::optional<JsonView>& list, int vocab) {
  std::vector<std::int32_t> out;
  if (!list || !list->is_array()) return out;
  for (const JsonView& each : list->elements("token ids"))
    if (const int id = each.small(); id >= 0 && id < vocab) out.push_back(id);
  return out;
}
}  // namespace

std::shared_ptr<const TargetRules> load_target_rules(const std::filesystem::path& folder, const ModelConfig& decoder) {
  if (!decoder.encoder || !decoder.encoder->sound) return nullptr;
  const ModelLocation place = locate_model(folder);
  if (place.self_contained()) return std::make_shared<const TargetRules>();
  const RuleFile own(place.folder / "generation_config.json"), older(place.folder / "config.json");
  const auto find = [&](const char* key) {
    const auto found = own.find(key);
    return found ? found : older.find(key);
  };
  const int vocab = decoder.dims.vocab;
  TargetRules rules;
  rules.never = suppressed(find("suppress_tokens"), vocab);
  rules.never_first = suppressed(find("begin_suppress_tokens"), vocab);
  if (const auto heads = own.find("alignment_heads"))
    for (const JsonView& pair : heads->elements("pairs of layer and head")) {
      const auto both = pair.elements("numbers", 2, 2);
      rules.alignment_heads.push_back(
          {both[0].small(0, decoder.dims.layers - 1), both[1].small(0, decoder.dims.heads - 1)});
    }
  if (const auto width = find("median_filter_width")) {
    rules.smoothing = width->small(1, 1001);
    if (rules.smoothing % 2 == 0) width->refuse("an odd number", width->shown());
  }

  std::vector<MaybeToken> prompt;
  if (const auto forced = find("forced_decoder_ids")) prompt = forced_tokens(*forced, vocab);
  if (const auto languages = own.find("lang_to_id")) {
    if (prompt.empty()) prompt.emplace_back();
    std::string code = "en";
    if (const auto named = own.find("language")) code = named->text();
    if (!code.starts_with("<|")) code = "<|" + code + "|>";
    const auto given = languages->find(code);
    if (!prompt[0] && given) prompt[0] = given->small(0, vocab - 1);
  }
  if (const auto tasks = own.find("task_to_id")) {
    std::vector<std::int32_t> ids;
    for (const auto& [name, id] : tasks->members()) ids.push_back(id.small(0, vocab - 1));
    const auto known = std::ranges::any_of(
        prompt, [&](const MaybeToken& token) { return token && std::ranges::find(ids, *token) != ids.end(); });
    const auto asked = tasks->find(own.find("task") ? own.find("task")->text() : "transcribe");
    if (!known && asked) prompt.emplace_back(asked->small(0, vocab - 1));
  }
  for (const MaybeToken& token : prompt)
    if (token) rules.prompt.push_back(*token);
  if (const auto times = own.find("no_timestamps_token_id"))
    if (const int id = times->small(0, vocab - 1); rules.prompt.empty() || rules.prompt.back() != id)
      rules.prompt.push_back(id);
  return std::make_shared<const TargetRules>(std::move(rules));
}

}  // namespace headscope
