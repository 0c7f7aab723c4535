#include "core/analysis/past_context.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "core/base/nth.h"
#include "core/base/special_values.h"
#include "core/base/words.h"
#include "core/edits/position_edit.h"
#include "core/metrics/next_token.h"
#include "core/train/backcopy_task.h"
#include "core/train/recipe.h"

namespace headscope {

namespace {

constexpr int long_texts = 3;
constexpr std::uint64_t long_seed = 0x706F736974696F6Eull;  // stories that no recipe's streams draw

/// Token ids of long texts for this model, and where they come from; "" = none.
std::vector<std::vector<std::int32_t>> long_ids(const LoadedModel& model, const std::filesystem::path& folder,
                                                const std::vector<std::int32_t>& own_text, int tokens, Worded& source) {
  std::vector<std::vector<std::int32_t>> texts = learnt_texts(model, folder, long_texts, tokens);
  if (!texts.empty()) {
    source = say_later("{} texts in the language that the model learnt, {} tokens each", long_texts, tokens);
  } else if (static_cast<int>(own_text.size()) > model.model->config().context) {
    texts.push_back(own_text);
    source = say_later("your text, {} tokens", texts[0].size());
  }
  return texts;
}

struct Way {
  std::string title;
  std::optional<SetPositions> edit;  ///< absent: the model as it is
};

std::vector<Way> ways_of(const ModelConfig& config, const PastContextSettings& settings) {
  using Method = SetPositions::Method;
  std::vector<Way> ways;
  if (config.position == PositionKind::rotary) {
    for (const RotaryScalingInfo& scaling : rotary_scalings()) {
      SetPositions edit{.method = Method::rope};
      if (settings.base > 0) edit.base = settings.base;
      edit.scaling = scaling.scaling;
      edit.factor = settings.factor;
      if (scaling.scaling == RotaryConfig::Scaling::yarn) edit.ramp = settings.ramp;
      ways.push_back({std::string(scaling.title), edit});
    }
    SetPositions chunks{.method = Method::chunks};
    chunks.chunk =
        std::clamp(settings.chunk > 0 ? settings.chunk : config.context * 3 / 4, 1, std::max(config.context - 1, 1));
    ways.push_back({to_say("chunks"), chunks});
  } else {
    if (config.position == PositionKind::learned) ways.push_back({to_say("own table"), std::nullopt});
    ways.push_back({to_say("sinusoids"), SetPositions{.method = Method::sinusoidal}});
  }
  ways.push_back({"NoPE", SetPositions{.method = Method::none}});
  ways.push_back({"ALiBi", SetPositions{.method = Method::alibi}});
  return ways;
}

struct Means {
  std::vector<double> sum, count;
  explicit Means(std::size_t size) : sum(size), count(size) {}
  void add(std::size_t at, double value) {
    sum[at] += value;
    count[at] += 1;
  }
  std::vector<double> values() const {
    std::vector<double> out;
    for (std::size_t i = 0; i < sum.size(); ++i) out.push_back(count[i] > 0 ? sum[i] / count[i] : nan);
    return out;
  }
};

}  // namespace

int LongRun::best(std::size_t part) const {
  int best = -1;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const double loss = lines[i].by_part[part];
    if (std::isnan(loss)) continue;
    if (best < 0 || loss < nth(lines, best).by_part[part]) best = static_cast<int>(i);
  }
  return best;
}

std::vector<std::vector<std::int32_t>> learnt_texts(const LoadedModel& model, const std::filesystem::path& folder,
                                                    int count, int tokens) {
  std::vector<std::vector<std::int32_t>> texts;
  const auto eos = model.model->config().eos;
  std::error_code ignored;
  if (!model.tokenizer || !eos || !std::filesystem::exists(folder / "recipe.json", ignored)) return texts;
  const TaskSettings task = load_recipe(folder / "recipe.json").task;
  Random random(long_seed);
  if (task.kind == "backcopy") {
    const Backcopy language(task);
    for (int t = 0; t < count; ++t) {
      std::vector<std::int32_t>& ids = texts.emplace_back(1, *eos);
      for (const Token& token : model.tokenizer->encode(language.sample(random, tokens - 1), {}))
        ids.push_back(token.id);
    }
    return texts;
  }
  if (!task.tells_stories()) return texts;
  const Language language(Grammar::named(task.grammar, "recipe: task: grammar"));
  for (int t = 0; t < count; ++t) {
    std::vector<std::int32_t> ids;
    while (static_cast<int>(ids.size()) < tokens) {
      ids.push_back(*eos);
      for (const Token& token : model.tokenizer->encode(language.sample(random).text, {})) ids.push_back(token.id);
    }
    ids.resize(static_cast<std::size_t>(tokens));
    texts.push_back(std::move(ids));
  }
  return texts;
}

LongRun past_context(const LoadedModel& model, const std::filesystem::path& folder, const RunRequest& request,
                     const std::vector<std::int32_t>& own_text, const PastContextSettings& settings, const Ctx& ctx) {
  LongRun result;
  const ModelConfig& config = model.model->config();
  result.context = config.context;
  if (!config.causal || !config.dims.attends() || config.vision || model.model->encoder()) {
    result.refusal =
        say_later("{} does not write a text token by token with positions that could be carried on.", config.name);
    return result;
  }
  const auto texts = long_ids(model, folder, own_text, settings.times * config.context, result.source);
  if (texts.empty()) {
    result.refusal = say_later(
        "Open a text of more than {} tokens: {} did not learn the bundled stories, and past that length it was never "
        "trained.",
        config.context, config.name);
    return result;
  }
  result.texts = static_cast<int>(texts.size());
  result.tokens = static_cast<int>(texts[0].size());
  const auto bin = static_cast<std::size_t>(result.bin), context = static_cast<std::size_t>(config.context),
             losses = static_cast<std::size_t>(result.tokens - 1);
  const std::vector<Way> ways = ways_of(config, settings);
  std::size_t done = 0;
  for (const Way& way : ways) {
    Means bins((losses + bin - 1) / bin), parts((losses + context - 1) / context);
    for (const auto& ids : texts) {
      RunRequest asked = request;
      asked.capture = {};
      asked.capture.maps = MapStorage::none;
      asked.capture.all_logits = true;
      asked.text.clear();
      asked.masked.clear();  // positions of the text on screen
      asked.ids = ids;
      if (config.ends_at_context()) asked.ids.resize(std::min(asked.ids.size(), context));
      asked.ids_are_whole = true;
      if (way.edit) asked.edits.push_back({{}, *way.edit});
      const auto found = token_losses(*run(model, asked, Ctx{ctx.backend, nullptr, ctx.stop}));
      for (std::size_t i = 0; i < found.size(); ++i) {
        bins.add(i / bin, found[i]);
        parts.add(i / context, found[i]);
      }
      if (ctx.progress) *ctx.progress = static_cast<float>(++done) / static_cast<float>(ways.size() * texts.size());
    }
    result.lines.push_back({way.title, bins.values(), parts.values()});
  }
  return result;
}

}  // namespace headscope
