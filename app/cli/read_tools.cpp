// The tools of `headscope-cli read`: what each records, computes and lists.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <span>

#include "app/cli/reading.h"
#include "app/render/reading_pictures.h"
#include "core/attention/mechanisms/spectrum.h"
#include "core/base/error.h"
#include "core/base/median.h"
#include "core/engine/edit_probe.h"
#include "core/engine/edited_weights.h"
#include "core/metrics/next_token.h"
#include "core/metrics/rollout.h"
#include "core/reading/alternatives.h"
#include "core/reading/saliency.h"
#include "core/reading/whatif.h"
#include "core/tensor/singular.h"
#include "viz/scene/framed.h"
#include "viz/scene/map_cells.h"

namespace headscope::cli {

TokenName namer(const LoadedModel& loaded) {
  return [tokenizer = loaded.tokenizer](std::int32_t id) {
    return tokenizer && id < tokenizer->vocab_size() ? tokenizer->token(id).label : std::to_string(id);
  };
}

Index position_in(const Trace& trace, std::optional<int> given) {
  const auto n = static_cast<Index>(trace.tokens.size());
  const Index at = !given ? n - 1 : *given < 0 ? n + *given : *given;
  if (at < 0 || at >= n)
    throw Error("--position", fmt::format("a position from 0 to {} (or -{} to -1)", n - 1, n), std::to_string(*given));
  return at;
}

std::int32_t token_or_likely(const LoadedModel& loaded, const Trace& trace, const std::string& given, Index position) {
  return given.empty() ? top_next(trace, 1, static_cast<int>(position))[0].id : answer_token(loaded, given, "--token");
}

namespace {
using TracePtr = std::shared_ptr<const Trace>;
constexpr double picture_width = 1120, picture_height = 720;

std::int64_t integer(Index value) {
  return static_cast<std::int64_t>(value);
}

std::pair<int, int> head_of(const ReadOptions& options, const Trace& trace) {
  if (options.head.empty()) throw UsageError("--head is required: LAYER.HEAD such as 1.0");
  int layer = -1, head = -1;
  const char* end = options.head.data() + options.head.size();
  const auto first = std::from_chars(options.head.data(), end, layer);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '.' ||
      std::from_chars(first.ptr + 1, end, head).ptr != end)
    throw UsageError(fmt::format("--head: expected LAYER.HEAD such as 1.0, found \"{}\"", options.head));
  (void)trace.map({layer, head});  // or an Error that says which there are
  return {layer, head};
}

std::function<Scene(const Look&)> picture_of(Matrix matrix, const Trace& trace, double cell = 0) {
  matrix.width = std::max(picture_width, cell * static_cast<double>(trace.tokens.size()));
  matrix.height = picture_height;
  return [matrix = std::move(matrix), run = describe_run(trace)](const Look& look) {
    return framed(matrix_scene(matrix, look), {matrix.unit, {}, run, {}}, look);
  };
}

Reading lens(Shell& shell, const ReadOptions& options, const LoadedModel& loaded, const RunRequest&, TracePtr trace) {
  const Index position = position_in(*trace, options.position);
  const std::int32_t token = options.token.empty() ? -1 : answer_token(loaded, options.token, "--token");
  LogitLens found;
  shell.with_progress("logit lens", [&](const Ctx& ctx) {
    found = logit_lens(*loaded.model, ctx, *trace, follow(*trace, token), std::min(options.top, 10));
  });
  Reading out;
  const TokenName name = namer(loaded);
  out.facts.push_back({"follows", "follows", token >= 0 ? name(token) : std::string("the text's next token")});
  const bool all = (options.csv || options.json) && !options.position;
  out.columns = {"position",      "stage",    "top", "probability", "entropy", "kl_to_answer", "followed_probability",
                 "followed_rank", "next_best"};
  for (Index i = all ? 0 : position; i <= (all ? found.positions - 1 : position); ++i)
    for (Index s = 0; s < static_cast<Index>(found.stages.size()); ++s) {
      const auto cell = found.cell(s, i);
      std::string rest;
      for (std::size_t k = 1; k < cell.size() && k < 4; ++k)
        rest += fmt::format("{}{} {:.3f}", k > 1 ? "  " : "", name(cell[k].id), cell[k].probability);
      const bool followed = found.rank(s, i) > 0;
      out.rows.push_back({integer(i), found.stages[static_cast<std::size_t>(s)].name, name(cell[0].id),
                          cell[0].probability, static_cast<double>(found.entropy.at(s, i)),
                          static_cast<double>(found.kl.at(s, i)),
                          static_cast<double>(found.followed_probability.at(s, i)),
                          followed ? ReadingCell(std::int64_t{found.rank(s, i)}) : ReadingCell(std::nan("")), rest});
    }
  out.picture = picture_of(lens_matrix(found, trace, LensColor::probability, name), *trace, 46);
  return out;
}

/// What the heads of this run wrote with.
ModelWeights weights_of_run(const LoadedModel& loaded, const RunRequest& request, const Trace& trace) {
  return weights_written_with(*loaded.model, request.edits, static_cast<int>(trace.tokens.size()));
}

Reading attribution(Shell&, const ReadOptions& options, const LoadedModel& loaded, const RunRequest& request,
                    TracePtr trace) {
  AttributionOf of;
  of.position = position_in(*trace, options.position);
  of.token = token_or_likely(loaded, *trace, options.token, of.position);
  if (!options.against.empty()) of.against = answer_token(loaded, options.against, "--against");
  const LogitAttribution found = logit_attribution(*loaded.model, *trace, of, request.edits);
  const TokenName name = namer(loaded);
  Reading out;
  out.facts = {{"position", "position", integer(of.position)},
               {"token", "token", name(of.token)},
               {"against", "against", of.against ? name(*of.against) : std::string("–")},
               {"logit", of.against ? "logit difference" : "logit", found.logit},
               {"sum_of_parts", "sum of parts", found.sum()},
               {"norm_scale", "final norm's scale, frozen", found.scale}};
  if (!options.head.empty()) {
    const auto [layer, head] = head_of(options, *trace);
    out.columns = {"key", "token", "part"};
    for (Index key = 0; key <= found.of.position; ++key)
      out.rows.push_back({integer(key), token_label(*trace, key),
                          static_cast<double>(found.by_source.at(Index{layer} * trace->model.dims.heads + head, key))});
    out.picture = picture_of(source_matrix(found, trace, {{layer, head}}), *trace);
    return out;
  }
  out.columns = {"part", "value", "share"};
  std::vector<AttributionPart> parts = found.parts;
  if (!options.csv && !options.json) {
    std::ranges::stable_sort(parts, std::ranges::greater{}, [](const AttributionPart& p) { return std::abs(p.value); });
    parts.resize(std::min(parts.size(), static_cast<std::size_t>(options.top)));
  }
  for (const AttributionPart& part : parts)
    out.rows.push_back({headscope::name(part), part.value, part.value / found.logit});
  out.picture = picture_of(attribution_matrix(found, trace->model.dims), *trace);
  return out;
}

Reading weighted(Shell&, const ReadOptions& options, const LoadedModel& loaded, const RunRequest& request,
                 TracePtr trace) {
  const ModelWeights weights = weights_of_run(loaded, request, *trace);
  Reading out;
  if (options.head.empty()) {
    if (!options.out.empty()) throw UsageError("-o needs --head: the head whose map is drawn");
    out.columns = {"head", "first_by_attention", "first_by_value", "first_by_output", "same_strongest_key"};
    for (const WeightedHead& head : weighted_heads(*trace, weights))
      out.rows.push_back({to_string(HeadId{head.layer, head.head}), head.first_attention, head.first_value,
                          head.first_output, head.same_top});
    return out;
  }
  const auto [layer, head] = head_of(options, *trace);
  Weighting weighting = Weighting::output;
  for (const Weighting each : {Weighting::attention, Weighting::value, Weighting::output})
    if (headscope::name(each) == options.weighting) weighting = each;
  const AttentionMap map = weighted_map(*trace, weights, {layer, head}, weighting);
  const std::vector<float> norms = key_norms(*trace, weights, {layer, head}, weighting);
  out.facts.push_back({"weighting", "weighting", std::string(formula(weighting))});
  out.columns = {"key", "token", "norm", "received", "received_by_attention"};
  const AttentionMap& plain = trace->map({layer, head});
  for (Index key = 0; key < map.n_key(); ++key)
    out.rows.push_back({integer(key), token_label(*trace, key),
                        static_cast<double>(norms[static_cast<std::size_t>(key)]),
                        map.stats().column_mass[static_cast<std::size_t>(key)],
                        plain.stats().column_mass[static_cast<std::size_t>(key)]});
  out.picture = [trace, weights, layer = layer, head = head, weighting](const Look& look) {
    return weighted_scene(*trace, weights, {layer, head}, weighting, 640, std::nullopt, look);
  };
  return out;
}

Reading circuits(Shell& shell, const ReadOptions& options, const LoadedModel& loaded, const RunRequest&,
                 TracePtr trace) {
  const auto [layer, head] = head_of(options, *trace);
  const CircuitOf of{{layer, head}, options.distance};
  const TokenName name = namer(loaded);
  const CopyingScore score = copying_score(*loaded.model, shell.backend(), {layer, head});
  Reading out;
  out.facts = {{"copying", "copying score (OV eigenvalues)", score.copying},
               {"matching", "matching score (QK eigenvalues)", score.matching}};
  if (options.full) {
    FullCircuits found;
    shell.with_progress("circuits",
                        [&](const Ctx& ctx) { found = full_circuits(*loaded.model, ctx, of, options.top); });
    out.facts.push_back({"copies_first", "tokens that raise themselves most", found.copies_first});
    out.facts.push_back({"copies_ten", "… or among the ten they raise most", found.copies_ten});
    out.facts.push_back({"matches_first", "tokens that look at themselves most", found.matches_first});
    out.columns = {"circuit", "from", "to", "value"};
    for (const TokenPair& pair : found.ov)
      out.rows.push_back({std::string("OV"), name(pair.from), name(pair.to), static_cast<double>(pair.value)});
    for (const TokenPair& pair : found.qk)
      out.rows.push_back({std::string("QK"), name(pair.from), name(pair.to), static_cast<double>(pair.value)});
    return out;
  }
  const TokenCircuits found =
      token_circuits(*loaded.model, shell.backend(), of, trace->ids(), std::min(options.top, 10));
  out.columns = {"looked_at", "raises", "strongest_key", "score"};
  for (std::size_t i = 0; i < found.tokens.size(); ++i) {
    std::string raised;
    for (int k = 0; k < std::min(found.kept, 5); ++k) {
      const TokenPair& pair = found.raises[i * static_cast<std::size_t>(found.kept) + static_cast<std::size_t>(k)];
      raised += fmt::format("{}{} {:+.2f}", k ? "  " : "", name(pair.to), pair.value);
    }
    std::size_t best = 0;
    for (std::size_t j = 1; j < found.tokens.size(); ++j)
      if (found.qk.at(static_cast<Index>(i), static_cast<Index>(j)) >
          found.qk.at(static_cast<Index>(i), static_cast<Index>(best)))
        best = j;
    out.rows.push_back({name(found.tokens[i]), raised, name(found.tokens[best]),
                        static_cast<double>(found.qk.at(static_cast<Index>(i), static_cast<Index>(best)))});
  }
  out.picture = picture_of(circuit_matrix(found, options.circuit == "qk" ? Circuit::qk : Circuit::ov, name), *trace);
  return out;
}

Reading rollout(Shell&, const ReadOptions& options, const LoadedModel&, const RunRequest&, TracePtr trace) {
  const Tensor found = attention_rollout(mixing_matrices(*trace, options.residual));
  const Tensor relative = relative_to(found, attention_rollout(mixing_matrices(*trace, options.residual, true)));
  Reading out;
  out.columns = {"query", "key", "token", "rollout", "relative"};
  const Index n = found.dim(0);
  for (Index i = options.csv || options.json ? 0 : n - 1; i < n; ++i)
    for (Index j = 0; j <= i; ++j)
      out.rows.push_back({integer(i), integer(j), token_label(*trace, j), static_cast<double>(found.at(i, j)),
                          static_cast<double>(relative.at(i, j))});
  out.picture =
      picture_of(token_matrix(options.relative ? relative : found, trace,
                              options.relative ? "attention rollout ÷ that of even heads" : "attention rollout"),
                 *trace);
  return out;
}

Reading flow(Shell& shell, const ReadOptions& options, const LoadedModel&, const RunRequest&, TracePtr trace) {
  const Index query = position_in(*trace, options.position);
  std::vector<double> found, even;
  shell.with_progress("attention flow", [&](const Ctx& ctx) {
    found = attention_flow(mixing_matrices(*trace, options.residual), query, ctx.stop);
    even = attention_flow(mixing_matrices(*trace, options.residual, true), query, ctx.stop);
  });
  Reading out;
  out.facts.push_back({"query", "from position", integer(query)});
  out.columns = {"key", "token", "flow", "relative"};
  std::vector<double> shown;
  for (std::size_t j = 0; j < found.size(); ++j) {
    const double relative = even[j] > 0 ? found[j] / even[j] : std::nan("");
    shown.push_back(options.relative ? relative : found[j]);
    if (static_cast<Index>(j) <= query)
      out.rows.push_back(
          {integer(static_cast<Index>(j)), token_label(*trace, static_cast<Index>(j)), found[j], relative});
  }
  out.picture = picture_of(
      token_row(shown, trace, options.relative ? "attention flow ÷ that of even heads" : "attention flow, capacity"),
      *trace);
  return out;
}

Reading gradients(Shell& shell, const ReadOptions& options, const LoadedModel& loaded, const RunRequest& request,
                  TracePtr trace) {
  GradientOf of;
  of.position = static_cast<int>(position_in(*trace, options.position));
  of.token = token_or_likely(loaded, *trace, options.token, of.position);
  if (!options.against.empty()) {
    of.kind = GradientOf::Kind::logit_difference;
    of.other = answer_token(loaded, options.against, "--against");
  }
  Saliency found;
  shell.with_progress("gradients", [&](const Ctx& ctx) { found = read_saliency(loaded, request, ctx, *trace, of); });
  Reading out;
  out.facts = {{"position", "position", std::int64_t{of.position}},
               {"token", "token", namer(loaded)(of.token)},
               {"value", "value", found.gradients.value}};
  out.columns = {"what", "token", "gradient_times_input", "importance", "reach"};
  std::vector<double> shown;
  for (std::size_t i = 0; i < trace->tokens.size(); ++i) {
    shown.push_back(static_cast<double>(found.gradients.gradient_times_input[i]));
    out.rows.push_back({fmt::format("position {}", i), token_label(*trace, static_cast<Index>(i)), shown.back(),
                        std::nan(""), std::nan("")});
  }
  for (Index layer = 0; layer < found.importance.dim(0); ++layer)
    for (Index head = 0; head < found.importance.dim(1); ++head)
      out.rows.push_back({fmt::format("head {}.{}", layer, head), std::string(), std::nan(""),
                          static_cast<double>(found.importance.at(layer, head)),
                          static_cast<double>(found.reach.at(layer, head))});
  Matrix row = token_row(shown, trace, "gradient × input of the logit, per token");
  row.diverging = true;
  out.picture = picture_of(std::move(row), *trace);
  return out;
}

Reading composition(Shell& shell, const ReadOptions& options, const LoadedModel& loaded, const RunRequest&,
                    TracePtr trace) {
  Composition found;
  shell.with_progress("composition",
                      [&](const Ctx& ctx) { found = head_composition(*loaded.model, ctx, 32, options.seed); });
  Reading out;
  out.facts = {{"chance", "by chance", found.chance.mean}, {"chance_deviation", "± ", found.chance.deviation}};
  out.columns = {"writes", "reads", "q", "k", "v"};
  const auto label = [&](Index i) { return to_string(found.heads[static_cast<std::size_t>(i)]); };
  for (Index a = 0; a < found.q.dim(0); ++a)
    for (Index b = 0; b < found.q.dim(1); ++b)
      if (!std::isnan(found.q.at(a, b)))
        out.rows.push_back({label(a), label(b), static_cast<double>(found.q.at(a, b)),
                            static_cast<double>(found.k.at(a, b)), static_cast<double>(found.v.at(a, b))});
  const auto kind = options.kind == "q"   ? CompositionKind::q
                    : options.kind == "k" ? CompositionKind::k
                                          : CompositionKind::v;
  out.picture = picture_of(composition_matrix(found, kind), *trace);
  return out;
}

Reading singular(Shell&, const ReadOptions& options, const LoadedModel& loaded, const RunRequest&, TracePtr) {
  Reading out;
  out.columns = options.full ? std::vector<std::string>{"layer", "matrix", "i", "sigma"}
                             : std::vector<std::string>{"layer", "matrix", "in", "out", "largest", "median", "rank90"};
  for (int layer = 0; layer < loaded.model->config().dims.layers; ++layer)
    for (int each = 0; each < weight_matrix_count; ++each) {
      const auto matrix = static_cast<WeightMatrix>(each);
      const auto found = loaded.model->singular(layer, matrix);
      if (!found) continue;
      const Tensor weight = loaded.model->projection(layer, matrix).weight;
      const std::vector<double>& sigma = found->values;
      const std::string name(name_of(matrix));
      if (!options.full)
        out.rows.push_back({std::int64_t{layer}, name, std::int64_t{weight.dim(0)}, std::int64_t{weight.dim(1)},
                            sigma.front(), median(sigma), std::int64_t{energy_rank(sigma, 0.9)}});
      for (std::size_t i = 0; options.full && i < sigma.size(); ++i)
        out.rows.push_back({std::int64_t{layer}, name, static_cast<std::int64_t>(i + 1), sigma[i]});
    }
  return out;
}

Reading sinks(Shell&, const ReadOptions&, const LoadedModel& loaded, const RunRequest& request, TracePtr trace) {
  const SinkReport found = read_sinks(*trace, weights_of_run(loaded, request, *trace));
  Reading out;
  for (std::size_t layer = 0; layer < found.layers.size(); ++layer)
    out.facts.push_back({fmt::format("v_depth_{}", layer), fmt::format("layer {}: ends ÷ middle (V shape)", layer),
                         found.layers[layer].v_depth});
  out.columns = {"head",        "mass",          "chance",  "value_norm", "median",
                 "output_norm", "output_median", "carried", "entropy",    "without_first"};
  for (const SinkHead& h : found.heads)
    out.rows.push_back({to_string(HeadId{h.layer, h.head}), h.mass, h.chance, h.value_norm, h.value_median,
                        h.output_norm, h.output_median, h.carried, h.entropy, h.entropy_without});
  out.picture = [found, run = describe_run(*trace)](const Look& look) {
    return framed(v_shape_chart(found, 720, 300, look), {"V shape of the layers", {}, run, {}}, look);
  };
  return out;
}

Reading massive(Shell& shell, const ReadOptions& options, const LoadedModel& loaded, const RunRequest& request,
                TracePtr trace) {
  const MassiveActivations found =
      massive_activations(*trace, options.paper ? massive_by_sun : MassiveRule{options.threshold, options.magnitude});
  Index by_sun = 0;
  for (const MassiveLayer& line : found.layers) by_sun += line.count_by_sun;
  const auto rule = [](const MassiveRule& r) {
    return fmt::format("at least {:g} times the layer's median magnitude{}", r.ratio,
                       r.magnitude > 0 ? fmt::format(" and above {:g}", r.magnitude) : "");
  };
  Reading out;
  out.facts = {{"massive", rule(found.rule), integer(static_cast<Index>(found.found.size()))},
               {"massive_by_paper", rule(massive_by_sun) + " (Sun et al. 2024)", integer(by_sun)}};
  for (std::size_t layer = 0; layer < found.layers.size(); ++layer) {
    const MassiveLayer& line = found.layers[layer];
    out.facts.push_back({fmt::format("largest_{}", layer),
                         fmt::format("layer {}: median {:.4g}, {} massive, largest ratio (position {}, dimension {})",
                                     layer, line.median, line.count, line.largest.position, line.largest.dimension),
                         line.largest.ratio});
  }
  if (options.zero && !found.found.empty()) {
    ZeroedActivations zeroed;
    shell.with_progress("zeroed",
                        [&](const Ctx& ctx) { zeroed = zero_activations(loaded, request, ctx, found.found); });
    out.facts.push_back({"zeroed", "set to 0", integer(static_cast<Index>(zeroed.zeroed.size()))});
    out.facts.push_back({"loss_before", "loss before", zeroed.loss_before});
    out.facts.push_back({"loss_after", "loss with them at 0", zeroed.loss_after});
    out.facts.push_back({"kl", "KL(before ‖ after) of the next token", zeroed.kl});
    for (std::size_t layer = 0; layer < zeroed.sink_before.size(); ++layer) {
      out.facts.push_back({fmt::format("sink_before_{}", layer),
                           fmt::format("layer {}: weight on the first token before", layer),
                           zeroed.sink_before[layer]});
      out.facts.push_back({fmt::format("sink_after_{}", layer), "  … and after", zeroed.sink_after[layer]});
    }
  }
  out.columns = {"layer", "position", "token", "dimension", "value", "ratio"};
  for (const HiddenActivation& a :
       std::span(found.found).first(std::min<std::size_t>(found.found.size(), static_cast<std::size_t>(options.top))))
    out.rows.push_back({std::int64_t{a.layer}, integer(a.position), token_label(*trace, a.position),
                        integer(a.dimension), static_cast<double>(a.value), a.ratio});
  return out;
}

Reading alternatives(Shell& shell, const ReadOptions& options, const LoadedModel& loaded, const RunRequest& request,
                     TracePtr trace) {
  const auto [layer, head] = head_of(options, *trace);
  const Index query = position_in(*trace, options.position);
  Alternatives found;
  RowReplaced replaced, naive;
  std::vector<double> other;
  shell.with_progress("other weights", [&](const Ctx& ctx) {
    found = find_alternatives(*trace, {layer, head}, query, options.key.value_or(-1), options.tolerance, ctx.stop);
    other = found.at(options.share);
    replaced = replace_row(loaded, request, ctx, *trace, {layer, head}, query, other);
    const double moved = row_difference(found.values, found.weights, other).variation;
    naive =
        replace_row(loaded, request, ctx, *trace, {layer, head}, query, naive_shift(found.weights, found.key, moved));
  });
  const RowDifference difference = row_difference(found.values, found.weights, other);
  Reading out;
  out.facts = {{"free", "free directions", integer(found.free)},
               {"key", "key that loses weight", integer(found.key)},
               {"variation", "total variation of the weights", difference.variation},
               {"divergence", "Jensen–Shannon divergence, nats", difference.divergence},
               {"output", "relative change of the head's output", difference.output},
               {"kl", "KL of the next token at this row, nats", replaced.kl},
               {"kl_last", "KL at the end of the text, nats", replaced.kl_last},
               {"kl_naive", "KL when as much weight is moved blindly", naive.kl}};
  out.columns = {"key", "token", "weight", "other"};
  for (std::size_t j = 0; j < found.weights.size(); ++j)
    out.rows.push_back(
        {integer(static_cast<Index>(j)), token_label(*trace, static_cast<Index>(j)), found.weights[j], other[j]});
  return out;
}

CaptureSpec maps_only(const Model&) {
  return {};
}
CaptureSpec of_sites(std::set<SiteKind> sites) {
  CaptureSpec spec;
  spec.sites = std::move(sites);
  return spec;
}
}  // namespace

const std::vector<ReadTool>& read_tools() {
  static const std::vector<ReadTool> tools = [] {
    std::vector<ReadTool> all = {
        {"lens", "Logit lens: what every residual stream would answer",
         [](const Model& m) { return of_sites(logit_lens_sites(m)); }, &lens},
        {"attribution", "Direct logit attribution: what each head and MLP wrote to a logit",
         [](const Model& m) { return of_sites(attribution_sites(m)); }, &attribution},
        {"weighted", "Attention weighted by the norms of what it carries",
         [](const Model&) { return of_sites({SiteKind::v}); }, &weighted},
        {"circuits", "QK and OV circuits of a head, and its copying score", &maps_only, &circuits},
        {"rollout", "Attention rollout through all layers", &maps_only, &rollout},
        {"flow", "Attention flow from one position to the tokens", &maps_only, &flow},
        {"gradients", "Gradient × input per token; per head |Σ A∘∂A| (importance) and Σ |A∘∂A| (reach)", &maps_only,
         &gradients},
        {"composition", "Q-, K- and V-composition of heads", &maps_only, &composition},
        {"singular", "Singular values of every weight matrix, which the edit \"singular\" scales", &maps_only,
         &singular},
        {"sinks", "Attention sinks: weight on the first token, and what it carries",
         [](const Model&) {
           return of_sites({SiteKind::v, SiteKind::resid_post});
         },
         &sinks},
        {"massive", "Massive activations, and what they do for the sink",
         [](const Model&) { return of_sites({SiteKind::resid_post}); }, &massive},
        {"alternatives", "Other weights of a row that give the same output",
         [](const Model&) { return of_sites({SiteKind::v}); }, &alternatives},
    };
    for (ReadTool& tool : block_tools()) all.push_back(std::move(tool));
    return all;
  }();
  return tools;
}

}  // namespace headscope::cli
