#include "app/state/training_sample.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/base/words.h"
#include "core/generate/generation.h"
#include "core/metrics/next_token.h"
#include "core/run/masked_tokens.h"
#include "core/train/translation_scores.h"

namespace headscope {

namespace {
constexpr int sample_tokens = 96;

std::string told(const TrainingProbe& probe, const Ctx& ctx) {
  const LoadedModel& model = probe.model;
  RunRequest request = probe.request;
  request.capture = {.maps = MapStorage::none};
  request.masked = draw_masked(tokenize(model, request), marks_of(model.tokenizer.get()),
                               model.model->config().dims.vocab, probe.seed);
  const auto trace = run(model, request, ctx);
  std::string out;
  for (std::size_t i = 0; i < trace->tokens.size(); ++i) {
    const Token& token = trace->tokens[i];
    if (!token.masked) {
      out += token.bytes;
      continue;
    }
    const std::int32_t best = most_probable(*trace, static_cast<int>(i)).id;
    const std::string found = model.tokenizer->token(best).label, was = model.tokenizer->token(token.original).label;
    out += best == token.original ? fmt::format("⟨{}⟩", found) : fmt::format("⟨{}|{}⟩", found, was);
  }
  return out;
}

Worded translated(const TrainingProbe& probe, const Ctx& ctx) {
  const Trace& right = probe.trace;
  const std::string found =
      probe.model.tokenizer->decode(greedy_translation(*probe.model.model, ctx, right.encoder->ids()));
  return fmt::format("{}\n→ {}\n", right.encoder->text, found) +
         (found == right.text ? Worded(to_say("which is right")) : say_later("should be: {}", right.text));
}

std::string seen(const TrainingProbe& probe) {
  std::string out;
  for (const NextToken& each : top_next(probe.trace, 3))
    out += fmt::format("{}{} {:.1f} %", out.empty() ? "" : ", ", probe.model.tokenizer->token(each.id).label,
                       100 * each.probability);
  return out;
}

std::string written(const TrainingProbe& probe, const Ctx& ctx) {
  const LoadedModel& model = probe.model;
  const std::int32_t end = probe.task.vocabulary().end_of_text_id();
  std::vector<std::int32_t> ids;
  sample_text(model, ctx, {end}, std::min(sample_tokens, model.model->config().context - 1),
              {{.temperature = 0.8}, probe.seed}, [&](std::int32_t id) {
                if (id == end) return false;
                ids.push_back(id);
                return true;
              });
  return model.tokenizer->decode(ids);
}
}  // namespace

Worded training_sample(const TrainingProbe& probe, const Ctx& ctx) {
  if (probe.trace.encoder) return translated(probe, ctx);
  if (probe.task.settings().draws()) return seen(probe);
  return probe.task.settings().kind == "masked" ? told(probe, ctx) : written(probe, ctx);
}

}  // namespace headscope
