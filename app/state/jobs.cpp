#include "app/state/jobs.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <vector>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/utf8.h"
#include "core/generate/generation.h"
#include "core/metrics/trace_difference.h"
#include "core/trace/map_kinds.h"

namespace headscope {

int HeadFacts::row(HeadId head) const {
  for (std::size_t i = 0; i < trace->maps.size(); ++i)
    if (trace->maps[i].layer() == head.layer && trace->maps[i].head() == head.head) return static_cast<int>(i);
  return -1;
}

const std::vector<HeadVerdict>& HeadFacts::told(int row) const {
  static const std::vector<HeadVerdict> none;
  if (!nth(verdicts, row).empty()) return nth(verdicts, row);
  return nearest.empty() ? none : nth(nearest, row);
}

const AttentionMap* Results::map(HeadId head) const {
  if (!run) return nullptr;
  for (const AttentionMap& each : run->trace->maps)
    if (each.layer() == head.layer && each.head() == head.head) return &each;
  return nullptr;
}

std::shared_ptr<const TextLosses> Results::current_losses() const {
  return losses && run && losses->trace == run->whole ? losses : nullptr;
}

bool asks_for_tokens(const Results& results) {
  return results.run && !results.capture && results.model.tokenizer && results.model.tokenizer->mask() &&
         results.run->trace->model.objective == Objective::masked_token;
}

bool reads_pictures(const Results& results) {
  return results.model.model && !results.capture && results.model.model->config().vision;
}

bool holds_state(const Results& results) {
  return results.model.model && !results.capture && !results.model.model->config().dims.any_attends();
}

bool holds_state(const Results& results, int layer) {
  if (!results.model.model || results.capture) return false;
  const ModelDims& dims = results.model.model->config().dims;
  return layer >= 0 && layer < dims.layers && !dims.attends(layer);
}

bool can_mask(const Document& document, const Results& results, Index position) {
  if (!asks_for_tokens(results)) return false;
  const std::vector<Token>& tokens = results.run->trace->tokens;
  if (position < 0 || position >= static_cast<Index>(tokens.size())) return false;
  return !nth(tokens, position).masked ||
         std::ranges::count(document.masked, static_cast<int>(position), &MaskedPosition::position) > 0;
}

std::optional<std::pair<std::int32_t, std::int32_t>> contrast_of(const AppState& state, const Results& results) {
  if (!results.run || !results.run->whole->logits.defined()) return std::nullopt;
  const auto known = [&](std::int32_t id) { return id < results.run->whole->logits.dim(1); };
  if (const auto& chosen = state.view.contrast; chosen && known(chosen->first) && known(chosen->second)) return chosen;
  // Asked for in every frame: what was computed already is enough.
  std::vector<std::pair<double, std::int32_t>> top;  // (−probability, token)
  if (results.effect)
    for (const NextTokenChange::Token& token : results.effect->change.tokens) top.emplace_back(-token.before, token.id);
  else
    for (const NextToken& token : results.run->next) top.emplace_back(-token.probability, token.id);
  if (top.size() < 2) return std::nullopt;
  std::ranges::partial_sort(top, top.begin() + 2);
  return std::pair{top[0].second, top[1].second};
}

namespace jobs {

namespace {
constexpr int next_tokens = 20;
constexpr int longest_target = 512;  // tokens, where a model would go on for ever
constexpr Index compared_rows = 128, curve_rows = 256;
constexpr double coldest = 0.05, hottest = 20;
constexpr int curve_points = 49;

}  // namespace

std::shared_ptr<const Trace> part_of(const std::shared_ptr<const Trace>& whole, Stack stack) {
  if (stack == Stack::encoder && whole->encoder) return whole->encoder;
  return stack == Stack::cross && whole->cross ? whole->cross : whole;
}

std::shared_ptr<const Trace> at_home(std::shared_ptr<const Trace> trace) {
  std::vector<Tensor> all{trace->logits, trace->patches};
  for (const auto& [site, tensor] : trace->sites) all.push_back(tensor);
  for (const AttentionMap& map : trace->maps)
    for (const Tensor& factor : {map.q(), map.k()}) all.push_back(factor);
  std::erase_if(all, [](const Tensor& tensor) { return !tensor.defined() || !tensor.remote(); });
  for (const Tensor& tensor : all) tensor.remote()->send();
  for (const Tensor& tensor : all) tensor.remote()->arrive();
  for (const AttentionMap& map : trace->maps)
    if (map.is_dense() && map.n_query() > 0 && map.n_key() > 0) map.weight(0, 0);
  for (const auto& part : {trace->encoder, trace->cross})
    if (part) at_home(part);
  return trace;
}

namespace {
/// What the panels show of the stack that is looked at, beside its trace.
void take_part(TracedRun& run, Stack stack) {
  run.trace = part_of(run.whole, stack);
  run.stack = run.trace->model.stack;
  run.words = {};
  run.word_tokens.reset();
  // Patches and stretches of a sound are no words.
  if (run.trace->between_texts() || !run.request.image.empty() || run.trace->sound) return;
  run.words = word_groups(run.trace->tokens);
  run.word_tokens = std::make_shared<Trace>(in_words(*run.trace, run.words, [](HeadId) { return false; }));
}

}  // namespace

std::shared_ptr<const TracedRun> trace(const LoadedModel& model, const RunRequest& request, Stack stack, const Ctx& ctx,
                                       PassMemory& memory) {
  auto result = std::make_shared<TracedRun>();
  result->request = request;
  result->whole = at_home(headscope::run(model, request, ctx, memory));
  result->next = top_next(*result->whole, next_tokens);
  result->masked = masked_answers(*result->whole);
  take_part(*result, stack);
  return result;
}

namespace {
/// Without what is no UTF-8: a model may stop in the middle of a character.
std::string valid_part(const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto character = valid_code_point_at(text, at);
    if (character) out += text.substr(at, static_cast<std::size_t>(character->length));
    at += character ? static_cast<std::size_t>(character->length) : 1;
  }
  return out;
}
}  // namespace

WrittenTarget written_target(const LoadedModel& model, const RunRequest& request, const Ctx& ctx) {
  const ModelConfig& config = model.model->config();
  const std::optional<std::int32_t> end =
      model.tokenizer && model.tokenizer->eos() ? model.tokenizer->eos() : config.eos;
  Generator generator(model, request, false);
  RunRequest bare = request;
  bare.text.clear();
  bare.ids.clear();
  std::vector<std::int32_t> ids;
  for (const Token& token : tokenize(model, bare, ctx.stop)) ids.push_back(token.id);
  const std::size_t begun = ids.size();
  const auto most =
      static_cast<std::size_t>(config.context > 0 ? std::min(config.context, longest_target) : longest_target);
  while (ids.size() < most) {
    if (ctx.progress) *ctx.progress = static_cast<float>(ids.size()) / static_cast<float>(most);
    const auto step = generator.step(ctx, ids, ids.size() - begun, {.settings = {.temperature = 0}});
    if (step->token == end) break;
    ids.push_back(step->token);
  }
  WrittenTarget out;
  out.ids.assign(ids.begin() + static_cast<std::ptrdiff_t>(begun), ids.end());
  if (model.tokenizer) out.text = valid_part(model.tokenizer->decode(out.ids));
  return out;
}

std::shared_ptr<const TracedRun> looked_at(const TracedRun& run, Stack stack) {
  auto result = std::make_shared<TracedRun>(run);
  take_part(*result, stack);
  return result;
}

namespace {
/// Rows of the window are queries from 0 on: where they follow cached tokens, these are the queries' own text.
std::shared_ptr<const Trace> with_queries_of_their_own(std::shared_ptr<const Trace> trace) {
  if (trace->maps.empty() || trace->maps.front().place().offset == 0) return trace;
  auto out = std::make_shared<Trace>(*trace);
  const auto offset = static_cast<std::ptrdiff_t>(trace->maps.front().place().offset);
  out->query_tokens.assign(trace->tokens.begin() + offset, trace->tokens.end());
  for (AttentionMap& map : out->maps) {
    AttentionMap::Place place = map.place();
    place.offset = 0;
    place.between_texts = true;
    const Tensor weights = map.to_dense();
    map = AttentionMap::dense(place, weights, nullptr, stats_of_weights(weights, nullptr));
  }
  return out;
}
}  // namespace

std::shared_ptr<const TracedRun> captured(std::shared_ptr<const Trace> trace, const std::filesystem::path& file) {
  auto result = std::make_shared<TracedRun>();
  result->request.model = file;
  result->whole = with_queries_of_their_own(std::move(trace));
  take_part(*result, result->whole->model.stack);
  return result;
}

std::shared_ptr<const HeadFacts> facts(std::shared_ptr<const Trace> trace, const std::stop_token& stop) {
  const auto start = std::chrono::steady_clock::now();
  auto result = std::make_shared<HeadFacts>();
  result->trace = std::move(trace);
  const TextMarks text = TextMarks::of(result->trace->tokens);
  result->table = head_table(*result->trace, text, stop);
  for (HeadClasses& head : head_classes(*result->trace, text, result->table, default_class_rules(), stop)) {
    result->verdicts.push_back(std::move(head.met));
    std::vector<HeadVerdict>& nearest = result->nearest.emplace_back();
    if (head.nearest) nearest.push_back(std::move(*head.nearest));
  }
  if (!result->trace->maps.empty() && result->trace->maps.front().n_query() > 0)
    result->not_measurable = not_measurable({first_of_shares(result->trace->maps), text}, default_class_rules());
  result->milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return result;
}

std::shared_ptr<const HeadDetail> detail(const LoadedModel& model, const TracedRun& run, HeadId head, const Ctx& ctx,
                                         const PassMemory& memory) {
  auto result = std::make_shared<HeadDetail>();
  result->head = head;
  result->of_trace = run.trace;
  result->trace = run.trace;
  if (!run.trace->map(head).is_factored() && run.trace->model.dims.attends(head.layer)) {
    RunRequest factors = run.request;
    factors.capture.maps = MapStorage::factored;
    factors.capture.sites.clear();
    result->trace = run.trace == run.whole ? run_layer(model, factors, head.layer, ctx, memory)
                                           : part_of(run_beside(model, factors, ctx, memory), run.stack);
  }
  at_home(result->trace);
  const AttentionMap& map = result->map();
  // The scores of the map are already divided by its temperature, so the curve is asked for relative ones.
  result->temperature = temperature_of(edits_of(run.request.edits, run.stack), head);
  const std::vector<double> taus = temperatures(coldest, hottest, curve_points);
  std::vector<double> relative{1.0};
  for (const double tau : taus) relative.push_back(tau / result->temperature);
  result->curve = temperature_curve(map, relative, curve_rows, ctx.stop);
  result->entropy = result->curve.entropy.front();
  result->curve.tau = taus;
  result->curve.entropy.erase(result->curve.entropy.begin());
  return result;
}

std::shared_ptr<const TextLosses> losses(const LoadedModel& model, const TracedRun& run, std::vector<double> before,
                                         const Ctx& ctx, const PassMemory& memory) {
  auto result = std::make_shared<TextLosses>();
  result->trace = run.whole;
  result->now = token_losses(*with_all_logits(model, run.request, run.whole, ctx, memory));
  result->before = std::move(before);
  if (!result->before.empty() || std::ranges::none_of(run.request.edits, &Intervention::enabled)) return result;
  RunRequest plain = run.request;
  plain.edits.clear();
  plain.capture = {.maps = MapStorage::none, .byte_budget = run.request.capture.byte_budget};
  try {
    result->before = token_losses(*run_beside(model, plain, ctx, memory));
  } catch (const TextTooLong&) {  // which only the edits let the model read: there is no before
  }
  return result;
}

std::shared_ptr<const EditEffect> effect(std::shared_ptr<const Trace> before, std::shared_ptr<const Trace> after,
                                         Stack stack, const std::stop_token& stop) {
  auto result = std::make_shared<EditEffect>();
  result->before = part_of(before, stack);
  result->after = part_of(after, stack);
  result->whole_before = std::move(before);
  result->whole_after = std::move(after);
  result->change = next_token_change(*result->whole_before, *result->whole_after, next_tokens);
  result->masked_before = masked_answers(*result->whole_before);
  std::vector<int> same(result->before->tokens.size());
  std::iota(same.begin(), same.end(), 0);
  for (const HeadDifference& head : head_differences(*result->before, *result->after, same, compared_rows, stop))
    result->moved.push_back(head.total_variation);
  return result;
}

}  // namespace jobs
}  // namespace headscope
