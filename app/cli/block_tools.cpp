// The tools of `headscope-cli read` about blocks and whole models: residual stream, norms, MLP, the path of a token,
// the loss per token.

#include <fmt/format.h>

#include <cmath>

#include "app/cli/reading.h"
#include "app/cli/report.h"
#include "app/render/block_pictures.h"
#include "core/base/error.h"
#include "core/model/parameter_parts.h"
#include "viz/scene/compose.h"
#include "viz/scene/framed.h"
#include "viz/scene/map_cells.h"

namespace headscope::cli {

namespace {
using TracePtr = std::shared_ptr<const Trace>;
constexpr double picture_width = 1120, picture_height = 560;

template <class Build>
std::function<Scene(const Look&)> framed_picture(std::string title, const Trace& trace, Build build) {
  return [title = std::move(title), run = describe_run(trace), build = std::move(build)](const Look& look) {
    return framed(build(look), {title, {}, run, {}}, look);
  };
}

Scene chart_scene(LineChart chart, const Look& look) {
  chart.width = picture_width;
  chart.height = picture_height;
  return line_chart_scene(chart, look);
}

std::string site_name(const LogitLens::Stage& stage) {
  return stage.name;
}

Reading residual(Shell& shell, const ReadOptions& options, const LoadedModel& loaded, const RunRequest& request,
                 TracePtr trace) {
  Reading out;
  if (options.stack) {
    RandomStack stack;
    stack.layers = options.layers;
    stack.width = options.stack_width;
    stack.mlp = 4 * stack.width;
    stack.seed = options.seed;
    RandomStacks found;
    shell.with_progress("random stacks", [&](const Ctx& ctx) { found = random_stacks(stack, ctx); });
    out.facts = {{"loss_pre", "loss, norm before each part", found.pre.loss},
                 {"loss_post", "loss, norm behind each sum", found.post.loss},
                 {"seed", "seed of the random weights", static_cast<std::int64_t>(stack.seed)}};
    out.columns = {"block",
                   "norm_pre",
                   "norm_post",
                   "stream_gradient_pre",
                   "stream_gradient_post",
                   "weight_gradient_pre",
                   "weight_gradient_post"};
    for (std::size_t i = 0; i < found.pre.residual.size(); ++i)
      out.rows.push_back({static_cast<std::int64_t>(i), found.pre.residual[i], found.post.residual[i],
                          found.pre.residual_gradient[i], found.post.residual_gradient[i], found.pre.weight_gradient[i],
                          found.post.weight_gradient[i]});
    out.picture = [found](const Look& look) {
      const std::string words =
          fmt::format("{} random blocks of width {}, seed {}", found.stack.layers, found.stack.width, found.stack.seed);
      return framed(chart_scene(stack_chart(found, StackNumber::weight_gradient, look), look),
                    {"Norm before and behind, untrained", {}, words, {}}, look);
    };
    return out;
  }
  ResidualStream found;
  if (options.placement) {
    NormPlacement both;
    shell.with_progress("norms moved", [&](const Ctx& ctx) { both = compare_norm_placement(loaded, request, ctx); });
    out.facts = {{"loss_pre", "loss as the model is", both.pre.loss},
                 {"loss_post", "loss with every norm behind its sum (not trained so)", both.post.loss},
                 {"kl_last", "KL of the next token after the last position", both.kl.back()}};
    out.columns = {"stage", "norm_pre", "norm_post"};
    for (std::size_t s = 0; s < both.pre.stream.stages.size(); ++s)
      out.rows.push_back({site_name(both.pre.stream.stages[s]),
                          ResidualStream::mean(both.pre.stream.norm, static_cast<Index>(s)),
                          ResidualStream::mean(both.post.stream.norm, static_cast<Index>(s))});
    out.picture = framed_picture("Norm before and behind, the same weights", *trace,
                                 [both](const Look& look) { return chart_scene(placement_chart(both, look), look); });
    return out;
  }
  found = read_residual_stream(*trace);
  const auto position = options.position ? std::optional<Index>(position_in(*trace, options.position)) : std::nullopt;
  const auto of = [&](const Tensor& values, Index row) {
    return position ? static_cast<double>(values.at(row, *position)) : ResidualStream::mean(values, row);
  };
  out.facts = {{"of", "of", position ? fmt::format("position {}", *position) : std::string("mean over positions")}};
  out.columns = {"stage", "norm", "added", "cosine"};
  for (std::size_t s = 0; s < found.stages.size(); ++s) {
    const auto stage = static_cast<Index>(s);
    const bool part = s > 0;  // the parts lie between the stages
    out.rows.push_back({site_name(found.stages[s]), of(found.norm, stage),
                        part ? of(found.added, stage - 1) : std::nan(""),
                        part ? of(found.cosine, stage - 1) : std::nan("")});
  }
  out.picture = framed_picture("Residual stream", *trace, [found, position](const Look& look) {
    return chart_scene(stream_chart(found, position, look), look);
  });
  return out;
}

Reading norms(Shell& shell, const ReadOptions& options, const LoadedModel& loaded, const RunRequest&, TracePtr trace) {
  Reading out;
  if (!options.rows.empty()) {
    std::vector<std::vector<float>> rows;
    for (const std::string& row : options.rows) rows.push_back(parse_row(row, "--row"));
    const NormTable table = norm_table(shell.backend(), matrix_of_rows(rows, "--row"), options.epsilon);
    out.columns = {"norm", "row", "feature", "before", "after"};
    for (std::size_t m = 0; m < table.after.size(); ++m) {
      const OrderKept order = order_kept(table.rows, table.after[m]);
      out.facts.push_back(
          {fmt::format("turned_{}", m),
           fmt::format("{}: pairs within a row whose order changed, of {}", title(norm_methods[m]), order.pairs),
           static_cast<std::int64_t>(order.turned)});
      for (Index i = 0; i < table.rows.dim(0); ++i)
        for (Index j = 0; j < table.rows.dim(1); ++j)
          out.rows.push_back({std::string(title(norm_methods[m])), std::int64_t{i}, std::int64_t{j},
                              static_cast<double>(table.rows.at(i, j)), static_cast<double>(table.after[m].at(i, j))});
    }
    out.picture = [table](const Look& look) {
      return framed(norm_table_scene(table, picture_width, look), {"Norms of the same rows", {}, "", {}}, look);
    };
    return out;
  }
  const Index position = position_in(*trace, options.position);
  const WhichNorm which = options.norm == "ln1"   ? WhichNorm::before_attention
                          : options.norm == "ln2" ? WhichNorm::before_mlp
                                                  : WhichNorm::last;
  const ModelNorm found = read_model_norm(*loaded.model, shell.backend(), *trace, which, options.layer);
  const LineStatistics before = statistics(found.before.select(0, position).packed().values()),
                       after = statistics(found.after.select(0, position).packed().values());
  out.facts = {{"norm", "norm", std::string(title(found.method))},
               {"position", "position", std::int64_t{position}},
               {"mean", "mean before", before.mean},
               {"variance", "variance before", before.variance},
               {"mean_after", "mean after", after.mean},
               {"variance_after", "variance after", after.variance},
               {"difference", "largest difference from the norm computed anew", found.difference}};
  out.columns = {"feature", "before", "normalised", "gain", "bias", "after"};
  for (Index d = 0; d < found.before.dim(1); ++d)
    out.rows.push_back({std::int64_t{d}, static_cast<double>(found.before.at(position, d)),
                        static_cast<double>(found.bare.at(position, d)), static_cast<double>(found.weights.gain.at(d)),
                        found.weights.bias.defined() ? static_cast<double>(found.weights.bias.at(d)) : std::nan(""),
                        static_cast<double>(found.after.at(position, d))});
  out.picture = framed_picture("A norm of the model", *trace, [found, position](const Look& look) {
    NumberStrips strips = model_norm_strips(found, position);
    strips.width = picture_width;
    return number_strips_scene(strips, look);
  });
  return out;
}

void add_parts(Reading& out, const ParameterParts& parts) {
  const auto total = static_cast<double>(parts.total());
  out.columns = {"part", "parameters", "share"};
  const std::pair<const char*, std::int64_t> lines[] = {{"token embedding", parts.embedding},
                                                        {"positions", parts.positions},
                                                        {"attention", parts.attention},
                                                        {"MLP", parts.mlp},
                                                        {"norms", parts.norms},
                                                        {"unembedding", parts.unembedding}};
  for (const auto& [name, count] : lines)
    out.rows.push_back({std::string(name), count, static_cast<double>(count) / total});
  out.facts.push_back({"parameters", "parameters", parts.total()});
  out.facts.push_back({"tied", "saved by tying the unembedding to the embedding", parts.tied});
}

Reading mlp(Shell& shell, const ReadOptions& options, const LoadedModel& loaded, const RunRequest&, TracePtr trace) {
  Reading out;
  if (options.parameters || !options.shape.empty()) {
    const ModelConfig config = options.shape.empty() ? loaded.model->config() : parse_shape(options.shape, "--shape");
    out.facts.push_back({"shape", "shape", shape_words(config)});
    add_parts(out, parameter_parts(config));
    return out;
  }
  AttributionOf of;
  of.position = position_in(*trace, options.position);
  of.token = token_or_likely(loaded, *trace, options.token, of.position);
  const FeedForward found =
      read_feed_forward(*loaded.model, shell.backend(), *trace, options.layer, of, options.top, 3);
  const TokenName name = namer(loaded);
  out.facts = {
      {"position", "position", std::int64_t{found.of.position}},
      {"token", "token", name(of.token)},
      {"activation", "activation",
       std::string(title(loaded.model->config().activation)) + (loaded.model->config().gated_mlp ? ", gated" : "")},
      {"active", "share of neurons with pre > 0 here", found.active[static_cast<std::size_t>(found.of.position)]},
      {"ever_active", "share active at some position of the text", found.ever_active},
      {"half", "share of neurons that write half of Σ ‖a W_down‖ here", found.half},
      {"logit", "part of the whole MLP in the logit", found.logit},
      {"bias_logit", "of it, the output bias", found.bias_logit},
      {"edited_logit", "what edits behind the neurons add", found.edited_logit}};
  out.columns = {"neuron", "pre", "linear", "post", "norm_written", "logit", "raises"};
  const bool gated = loaded.model->config().gated_mlp;
  for (const Neuron& n : found.neurons) {
    std::string raises;
    for (const NextToken& t : n.raises)
      raises += fmt::format("{}{} {:+.2f}", raises.empty() ? "" : "  ", name(t.id), t.logit);
    out.rows.push_back(
        {std::int64_t{n.index}, n.pre, gated ? n.linear : std::nan(""), n.post, n.norm, n.logit, raises});
  }
  out.picture = framed_picture(fmt::format("MLP of layer {}", found.layer), *trace, [found](const Look& look) {
    Histogram histogram = neuron_histogram(found.post, "after the activation: hook_post", look.theme.accent);
    histogram.width = picture_width;
    histogram.height = 360;
    return histogram_scene(histogram, look);
  });
  return out;
}

Reading path(Shell&, const ReadOptions& options, const LoadedModel& loaded, const RunRequest&, TracePtr trace) {
  const TokenPath found = read_token_path(*loaded.model, *trace, position_in(*trace, options.position));
  const WeightTying tying = weight_tying(*loaded.model);
  const TokenName name = namer(loaded);
  Reading out;
  out.facts = {{"position", "position", std::int64_t{found.position}},
               {"token", "token", token_label(*trace, found.position)},
               {"tied", "unembedding is the embedding again", std::string(tying.tied ? "yes" : "no")},
               {"matrix_bytes", tying.tied ? "bytes saved by it" : "bytes that tying would save",
                static_cast<std::int64_t>(tying.matrix_bytes)}};
  for (std::size_t i = 0; i < found.answers.size(); ++i)
    out.facts.push_back(
        {fmt::format("answer_{}", i), "softmax: " + name(found.answers[i].id), found.answers[i].probability});
  out.columns = {"stage", "site", "shape", "formula", "norm", "mean", "low", "high"};
  for (const PathStage& s : found.stages)
    out.rows.push_back(
        {(s.adds ? "+ " : "") + s.name, headscope::name(s.site), s.shape, s.formula, s.norm, s.mean, s.low, s.high});
  out.picture =
      framed_picture(fmt::format("The path of position {}", found.position), *trace, [found](const Look& look) {
        NumberStrips strips = path_strips(found);
        strips.width = picture_width;
        return number_strips_scene(strips, look);
      });
  return out;
}

Reading loss(Shell& shell, const ReadOptions& options, const LoadedModel& loaded, const RunRequest& request,
             TracePtr trace) {
  const LossReport found = read_token_losses(*trace);
  const TokenName name = namer(loaded);
  Reading out;
  out.facts = {{"mean", "loss, nats per token", found.mean},
               {"perplexity", "perplexity", std::exp(found.mean)},
               {"uniform", "uniform baseline ln V", found.uniform},
               {"unigram", "unigram baseline, this text's own counts", found.unigram}};
  if (options.prefixes) {
    PrefixCheck check;
    shell.with_progress("beginnings alone",
                        [&](const Ctx& ctx) { check = check_prefixes(loaded, request, ctx, *trace); });
    out.facts.push_back({"prefixes", "beginnings run alone", static_cast<std::int64_t>(check.prefixes.size())});
    out.facts.push_back({"prefix_difference", "largest difference of a logit from the one pass", check.largest});
    out.facts.push_back({"prefix_magnitude", "largest logit compared", check.magnitude});
  }
  out.columns = {"position",         "target",       "probability",        "loss",        "rank", "best",
                 "best_probability", "running_mean", "running_perplexity", "unigram_loss"};
  for (const TokenLoss& t : found.tokens)
    out.rows.push_back({std::int64_t{t.position}, name(t.target), t.probability, t.loss, std::int64_t{t.rank},
                        name(t.best), t.best_probability, t.running_mean, std::exp(t.running_mean), t.unigram});
  out.picture = framed_picture("Loss per token", *trace, [found, trace, name](const Look& look) {
    TokenBars bars = loss_bars(found, trace, name);
    bars.width = picture_width;
    bars.height = picture_height;
    return token_bars_scene(bars, look);
  });
  return out;
}

CaptureSpec of_sites(std::set<SiteKind> sites) {
  CaptureSpec spec;
  spec.maps = MapStorage::none;
  spec.sites = std::move(sites);
  return spec;
}
}  // namespace

std::vector<ReadTool> block_tools() {
  return {
      {"residual", "Residual stream: its norm through depth and what each part adds; norm before against behind",
       [](const Model& m) { return of_sites(residual_stream_sites(m)); }, &residual},
      {"norms", "LayerNorm, RMSNorm, BatchNorm on rows you give, or a norm of the model at work",
       [](const Model& m) { return of_sites(model_norm_sites(m)); }, &norms},
      {"ffn", "The MLP of a layer, neuron by neuron; shares of parameters",
       [](const Model& m) {
         return of_sites(m.config().dims.d_mlp > 0 ? feed_forward_sites(m) : std::set<SiteKind>{});
       },
       &mlp},
      {"path", "The way of one token: embedding, blocks, last norm, unembedding, softmax",
       [](const Model& m) { return of_sites(token_path_sites(m)); }, &path},
      {"loss", "Cross-entropy and perplexity token by token, beside baselines",
       [](const Model&) { return of_sites({}); }, &loss},
  };
}

}  // namespace headscope::cli
