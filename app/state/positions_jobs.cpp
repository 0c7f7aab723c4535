#include "app/state/positions_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "app/state/jobs.h"
#include "core/attention/positions/t5_bias.h"
#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/random.h"
#include "core/base/words.h"
#include "core/model/weights.h"
#include "core/trace/mixer_words.h"

namespace headscope::jobs {

namespace {

constexpr int permuted_tokens = 12;

Tensor head_of(const Tensor& x, Index head) {
  return x.select(1, head).copy();
}

RunRequest without_maps(const TracedRun& run) {
  RunRequest request = run.request;
  request.capture.maps = MapStorage::none;
  request.capture.sites.clear();
  request.capture.layers.clear();
  request.capture.all_logits = false;
  return request;
}

Tensor rows_of(const std::vector<double>& vector, Index count) {
  Tensor rows = Tensor::uninitialized({count, static_cast<Index>(vector.size())});
  for (Index i = 0; i < count; ++i)
    for (std::size_t c = 0; c < vector.size(); ++c) rows.ref(i, static_cast<Index>(c)) = static_cast<float>(vector[c]);
  return rows;
}

std::vector<double> numbers_of(const std::string& text, const std::string& where) {
  std::vector<double> numbers;
  const char *at = text.data(), *end = at + text.size();
  while (at != end) {
    if (*at == ' ' || *at == ',' || *at == '\t' || *at == ';') {
      ++at;
      continue;
    }
    double value = 0;
    const auto [stop, error] = std::from_chars(at, end, value);
    if (error != std::errc() || !std::isfinite(value))
      throw Error(where, "numbers such as 1 0 0.5 -2", fmt::format("\"{}\"", text.substr(0, 60)));
    numbers.push_back(value);
    at = stop;
  }
  if (numbers.empty() || numbers.size() % 2 != 0 || numbers.size() > 512)
    throw Error(where, "an even number of numbers, at most 512, since rotary positions turn pairs",
                std::to_string(numbers.size()));
  return numbers;
}

}  // namespace

const char* beyond_distances(const ModelConfig& config, int layer, std::int64_t tokens) {
  if (config.position != PositionKind::rotary) return nullptr;
  if (!config.turns(layer)) return to_say("a layer that does not rotate");
  if (config.told_by_distance(tokens)) return nullptr;
  return config.vision            ? to_say("patches, turned by their row and their column")
         : config.normed_turned() ? to_say("a norm between the rotation and where queries and keys meet")
                                  : to_say("queries that grow along the text");
}

std::shared_ptr<const HeadVectors> head_vectors(const LoadedModel& model, const TracedRun& run, HeadId head,
                                                const Ctx& ctx) {
  const ModelConfig& config = model.model->config();
  const bool rotary = config.position == PositionKind::rotary;
  RunRequest request = without_maps(run);
  if (!config.dims.attends(head.layer))
    throw Error(config.name, "a layer that attends",
                fmt::format("layer {}, {}", head.layer, mixer_words(config.dims, head.layer)));
  if (const char* const why = beyond_distances(config, head.layer, static_cast<std::int64_t>(run.trace->tokens.size())))
    throw Error(config.name, "scores that depend on distances alone", why);
  const SiteKind q_site = unturned_site(config, false), k_site = unturned_site(config, true);
  request.capture.sites = {q_site, k_site};
  if (rotary) request.capture.sites.insert({SiteKind::rot_q, SiteKind::rot_k});
  request.capture.layers = {head.layer};
  if (config.distances) request.capture.maps = MapStorage::factored;
  const auto trace = at_home(headscope::run(model, request, ctx));
  auto result = std::make_shared<HeadVectors>();
  const Index kv = config.dims.kv_of(head.head, head.layer);
  result->head = head;
  result->of = run.trace;
  const auto of = [&](SiteKind kind, Index which) {
    return turning_part(head_of(trace->sites.at({kind, head.layer}), which), config.rotary_of(head.layer));
  };
  result->q = of(q_site, head.head);
  result->k = of(k_site, kv);
  if (rotary) {
    result->turned_q = of(SiteKind::rot_q, head.head);
    result->turned_k = of(SiteKind::rot_k, kv);
  }
  result->scale = static_cast<double>(score_scale(config, head.layer));
  result->source = fmt::format(
      "{}[:, {}, :] · {}[:, {}, :], f32{}", name({q_site, head.layer}), head.head,
      name({k_site, head.layer}).substr(name({k_site, head.layer}).find("attn.") + 5), kv,
      result->q.dim(1) < config.dims.widths_of(head.layer).d_head
          ? say(", the {} of {} dimensions that turn", result->q.dim(1), config.dims.widths_of(head.layer).d_head)
          : "");
  if (const AttentionMap* map = config.distances ? &trace->map(head) : nullptr; map && map->is_factored())
    result->disentangled =
        std::make_shared<const DisentangledScores>(disentangled_scores(*map, result->scale, result->source));
  return result;
}

std::shared_ptr<const HeadVectors> random_vectors(const TracedRun& run, int d_head, std::uint64_t seed) {
  auto result = std::make_shared<HeadVectors>();
  const auto n = static_cast<Index>(run.trace->tokens.size());
  Random random(seed);
  result->of = run.trace;
  for (Tensor* x : {&result->q, &result->k}) {
    *x = Tensor::uninitialized({n, d_head});
    for (float& value : x->mutable_values()) value = random.normal();
  }
  result->scale = 1 / std::sqrt(static_cast<double>(d_head));
  result->source = say("independent N(0, 1) numbers, seed {}", seed);
  return result;
}

std::shared_ptr<const HeadVectors> typed_vectors(const TracedRun& run, const std::string& query,
                                                 const std::string& key) {
  const std::vector<double> q = numbers_of(query, "query"), k = numbers_of(key, "key");
  if (q.size() != k.size())
    throw Error("key", fmt::format("{} numbers, as many as the query has", q.size()), std::to_string(k.size()));
  auto result = std::make_shared<HeadVectors>();
  const auto n = static_cast<Index>(run.trace->tokens.size());
  result->of = run.trace;
  result->q = rows_of(q, n);
  result->k = rows_of(k, n);
  result->scale = 1 / std::sqrt(static_cast<double>(q.size()));
  result->source = said("numbers typed on the left, the same at every token");
  return result;
}

std::shared_ptr<const PositionsEffect> positions_effect(const LoadedModel& model, const TracedRun& run,
                                                        const SetPositions& edit, const Ctx& ctx) {
  RunRequest request = without_maps(run);
  request.capture.all_logits = true;
  request.edits.push_back({{}, edit});
  const auto after = headscope::run(model, request, ctx);
  auto result = std::make_shared<PositionsEffect>();
  result->words = text_of(edit);
  result->of = run.trace;
  result->after = token_losses(*after);
  result->kl = next_token_change(*run.trace, *after, 1).kl;
  return result;
}

std::shared_ptr<const PermutedRun> permuted(const LoadedModel& model, const TracedRun& run, const Ctx& ctx) {
  auto result = std::make_shared<PermutedRun>();
  // Of an encoder a separator at the front would begin another segment: what is turned round are tokens of one.
  const bool encoder = !model.model->config().causal;
  std::vector<std::int32_t> ids;
  for (const Token& token : run.trace->tokens) {
    if (ids.size() == permuted_tokens) break;
    if (encoder && (token.segment > 0 || is_separator(token))) continue;
    ids.push_back(token.id);
    result->labels.push_back(token.label);
  }
  if (ids.empty()) {  // nothing but separators
    ids.push_back(run.trace->tokens.front().id);
    result->labels.push_back(run.trace->tokens.front().label);
  }
  const auto n = static_cast<int>(ids.size());
  std::vector<std::int32_t> turned(ids.size());
  for (int i = 0; i < n; ++i) {
    result->order.push_back(n - 1 - i);  // "man bites dog"
    nth(turned, i) = nth(ids, n - 1 - i);
  }
  const int last = model.model->config().dims.layers - 1;
  const auto outputs = [&](const std::vector<std::int32_t>& tokens, std::vector<const char*> edits) {
    RunRequest request = without_maps(run);
    request.text.clear();
    request.masked.clear();  // the tokens are as they stand on screen
    request.ids = tokens;
    request.ids_are_whole = true;
    request.edits.clear();
    for (const char* edit : edits) request.edits.push_back(parse_intervention(edit, "permutation"));
    request.capture.sites = {SiteKind::resid_post};
    request.capture.layers = {last};
    return headscope::run(model, request, ctx)->sites.at({SiteKind::resid_post, last});
  };
  const auto differences = [&](std::vector<const char*> edits) {
    const Tensor a = outputs(ids, edits), b = outputs(turned, edits);
    std::vector<double> most(ids.size());
    for (int i = 0; i < n; ++i)
      for (Index c = 0; c < a.dim(1); ++c) {
        nth(most, i) =
            std::max(nth(most, i), std::abs(static_cast<double>(a.at(i, c)) - static_cast<double>(b.at(n - 1 - i, c))));
        result->size = std::max(result->size, std::abs(static_cast<double>(a.at(i, c))));
      }
    return most;
  };
  result->open = differences({"*: position none", "*: mask full"});
  result->causal = differences({"*: position none", "*: mask causal"});
  result->placed = differences({"*: mask full"});
  return result;
}

std::vector<float> fitted_bias(const HeadVectors& vectors, int buckets, int max_distance) {
  const Tensor& q = vectors.turned_q.defined() ? vectors.turned_q : vectors.q;
  const Tensor& k = vectors.turned_k.defined() ? vectors.turned_k : vectors.k;
  const Index n = std::min<Index>(q.dim(0), 512);
  Tensor scores = Tensor::zeros({n, n});
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j <= i; ++j) {
      double sum = 0;
      for (Index c = 0; c < q.dim(1); ++c) sum += static_cast<double>(q.at(i, c)) * static_cast<double>(k.at(j, c));
      scores.ref(i, j) = static_cast<float>(vectors.scale * sum);
    }
  return t5_fit(scores, *causal_rule(), buckets, max_distance);
}

}  // namespace headscope::jobs
