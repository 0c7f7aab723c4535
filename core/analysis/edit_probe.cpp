#include "core/analysis/edit_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/metrics/next_token.h"
#include "core/metrics/next_token_change.h"

namespace headscope {

namespace {
std::string with_spaces(std::string text) {
  constexpr std::string_view shown = "␣";
  for (std::size_t at = text.find(shown); at != std::string::npos; at = text.find(shown, at + 1))
    text.replace(at, shown.size(), " ");
  return text;
}
}  // namespace

std::int32_t answer_token(const LoadedModel& loaded, const std::string& text, const std::string& where) {
  if (!loaded.tokenizer) throw Error(where, "a model with a tokenizer", "none", "answers are written as tokens");
  const std::string plain = with_spaces(text);
  if (plain.empty()) throw Error(where, "a token", "nothing");
  std::vector<Token> tokens = loaded.tokenizer->encode(plain);
  // Tokenizers of sentences put a space in front of every text: "x" and " x" are then the same token.
  if (tokens.size() == 1) return tokens.front().id;
  std::string found;
  for (const Token& token : tokens) found += (found.empty() ? "" : " · ") + token.label;
  throw Error(where, "one token", fmt::format("{}: {}", tokens.size(), found),
              "a word within a text usually begins with a space: \" Mary\"");
}

AnswerPair likely_answers(const Trace& trace) {
  (void)most_probable(trace);  // says why where there is none
  const std::vector<NextToken> likely = top_next(trace, 2);
  if (likely.size() < 2) throw Error("answers", "a vocabulary of at least two tokens", std::to_string(likely.size()));
  return {likely[0].id, likely[1].id};
}

EditProbe::EditProbe(LoadedModel loaded, RunRequest request, bool losses, const Ctx& ctx)
    : loaded_(std::move(loaded)), request_(std::move(request)) {
  request_.capture = {};
  request_.capture.maps = MapStorage::none;
  request_.capture.all_logits = losses;
  before_ = headscope::run(loaded_, request_, Ctx{ctx.backend, nullptr, ctx.stop}, memory_);
}

void EditProbe::know_sources(const std::vector<Intervention>& edits, const Ctx& ctx) {
  RunRequest all = request_;
  all.edits.insert(all.edits.end(), edits.begin(), edits.end());
  sources_ = run_edit_sources(loaded_, all, Ctx{ctx.backend, nullptr, ctx.stop});
}

void EditProbe::move_to(const std::vector<Intervention>& more, const Ctx& ctx) {
  RunRequest edited = request_;
  edited.edits.insert(edited.edits.end(), more.begin(), more.end());
  headscope::run(loaded_, edited, Ctx{ctx.backend, nullptr, ctx.stop}, memory_);
}

std::shared_ptr<const Trace> EditProbe::run(const std::vector<Intervention>& more, const Ctx& ctx,
                                            const std::set<int>& map_layers) const {
  RunRequest edited = request_;
  edited.edits.insert(edited.edits.end(), more.begin(), more.end());
  if (!map_layers.empty()) {
    edited.capture.maps = MapStorage::automatic;
    edited.capture.layers = map_layers;
  }
  return run_beside(loaded_, edited, Ctx{ctx.backend, nullptr, ctx.stop}, memory_, sources_);
}

Outcome EditProbe::outcome(const Trace& trace) const {
  Outcome out;
  out.loss = mean_loss(trace);
  out.kl = next_token_change(*before_, trace, 1).kl;
  if (answers_) out.logit_difference = logit_difference(trace, answers_->right, answers_->wrong);
  return out;
}

int blocks_to_compute(const std::vector<Intervention>& edits, int layers) {
  int first = layers;
  for (const Intervention& edit : edits)
    if (edit.enabled) first = std::min(first, edit.target.stack == Stack::encoder ? 0 : edit.target.layer.value_or(0));
  return layers - first;
}

}  // namespace headscope
