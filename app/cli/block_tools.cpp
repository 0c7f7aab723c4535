// The tools of `headscope-cli read` about blocks and whole models: residual stream, norms, MLP, the path of a token,
// the loss per token.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/cli/read_report.h"
#include "app/render/block_pictures.h"
#include "app/render/expert_pictures.h"
#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/model/parameter_parts.h"
#include "core/trace/hook_names.h"
#include "viz/scene/compose.h"
#include "viz/scene/framed.h"
#include "viz/scene/map_cells.h"

namespace headscope::cli {

namespace {
constexpr double picture_width = 1120, picture_height = 560;

template <class Build>
std::function<Scene(const Style&)> framed_picture(std::string title, const Trace& trace, Build build) {
  return [title = std::move(title), run = describe_run(trace), build = std::move(build)](const Style& style) {
    return framed(build(style), {title, {}, run, {}}, style);
  };
}

Scene chart_scene(LineChart chart, const Style& style) {
  chart.width = picture_width;
  chart.height = picture_height;
  return line_chart_scene(chart, style);
}

/// These sites without any maps.
CaptureSpec only_sites(std::set<SiteKind> sites) {
  CaptureSpec spec;
  spec.maps = MapStorage::none;
  spec.sites = std::move(sites);
  return spec;
}

class Residual final : public ReadTool {
 public:
  Residual()
      : ReadTool("residual",
                 "Residual stream: its norm through depth and what each part adds; norm before against behind") {}
  void add_options(Command& command) override {
    position_.add_to(command);
    command.add_flag("--placement", placement_,
                     "The same weights with every norm moved behind its sum: loss, KL, norms by depth");
    command.add_flag("--stack", stack_, "Blocks with random weights, both ways: norms and gradients by depth");
    command.add_option("--layers", layers_, "Of the random blocks").show_default();
    command.add_option("--stack-width", stack_width_, "Width of the random blocks").show_default();
    command.add_option("--seed", seed_, "Of the random weights and tokens").show_default();
  }
  CaptureSpec capture(const Model& model) const override { return only_sites(residual_stream_sites(model)); }
  Report read(const ReadRun& run) const override;

 private:
  PositionOption position_;
  bool placement_ = false, stack_ = false;
  int layers_ = 12, stack_width_ = 64;
  std::uint64_t seed_ = 1;
};

Report Residual::read(const ReadRun& run) const {
  Report out;
  if (stack_) {
    RandomStack stack;
    stack.layers = layers_;
    stack.width = stack_width_;
    stack.mlp = 4 * stack.width;
    stack.seed = seed_;
    RandomStacks found;
    run.console.with_progress("random stacks", [&](const Ctx& ctx) { found = random_stacks(stack, ctx); });
    out.facts({{"loss_pre", "loss, norm before each part", found.pre.loss},
               {"loss_post", "loss, norm behind each sum", found.post.loss},
               {"seed", "seed of the random weights", stack.seed}});
    auto& rows = out.table("rows", {"block", "norm_pre", "norm_post", "stream_gradient_pre", "stream_gradient_post",
                                    "weight_gradient_pre", "weight_gradient_post"});
    for (std::size_t i = 0; i < found.pre.residual.size(); ++i)
      rows.add({i, found.pre.residual[i], found.post.residual[i], found.pre.residual_gradient[i],
                found.post.residual_gradient[i], found.pre.weight_gradient[i], found.post.weight_gradient[i]});
    out.picture = [found](const Style& style) {
      const std::string words =
          fmt::format("{} random blocks of width {}, seed {}", found.stack.layers, found.stack.width, found.stack.seed);
      return framed(chart_scene(stack_chart(found, StackNumber::weight_gradient, style), style),
                    {"Norm before and behind, untrained", {}, words, {}}, style);
    };
    return out;
  }
  ResidualStream found;
  if (placement_) {
    NormPlacement both;
    run.console.with_progress("norms moved",
                              [&](const Ctx& ctx) { both = compare_norm_placement(run.loaded, run.request, ctx); });
    out.facts({{"loss_pre", "loss as the model is", both.pre.loss},
               {"loss_post", "loss with every norm behind its sum (not trained so)", both.post.loss},
               {"kl_last", "KL of the next token after the last position", both.kl.back()}});
    auto& rows = out.table("rows", {"stage", "norm_pre", "norm_post"});
    for (std::size_t s = 0; s < both.pre.stream.stages.size(); ++s)
      rows.add({both.pre.stream.stages[s].name, ResidualStream::mean(both.pre.stream.norm, static_cast<Index>(s)),
                ResidualStream::mean(both.post.stream.norm, static_cast<Index>(s))});
    out.picture = framed_picture("Norm before and behind, the same weights", *run.trace, [both](const Style& style) {
      return chart_scene(placement_chart(both, style), style);
    });
    return out;
  }
  found = read_residual_stream(*run.trace);
  const auto position = position_.given ? std::optional<Index>(position_.in(*run.trace)) : std::nullopt;
  const auto of = [&](const Tensor& values, Index row) {
    return position ? static_cast<double>(values.at(row, *position)) : ResidualStream::mean(values, row);
  };
  out.facts({{"of", "of", position ? fmt::format("position {}", *position) : "mean over positions"}});
  if (run.loaded.model->config().dims.stream_scales)
    out.fact({"left_of_embedding", "left of the embedding, which a learned number multiplies behind every block",
              found.factors(position.value_or(0))});
  auto& rows = out.table("rows", {"stage", "norm", "added", "cosine"});
  for (std::size_t s = 0; s < found.stages.size(); ++s) {
    const auto stage = static_cast<Index>(s);
    const std::vector<std::size_t> parts = found.parts_of(stage);
    const bool one = parts.size() == 1;  // else lines of their own, before that of the stream
    for (const std::size_t part : parts)
      rows.add({one ? found.stages[s].name : found.parts[part].name, one ? of(found.norm, stage) : std::nan(""),
                of(found.added, static_cast<Index>(part)), of(found.cosine, static_cast<Index>(part))});
    if (!one) rows.add({found.stages[s].name, of(found.norm, stage), std::nan(""), std::nan("")});
  }
  out.picture = framed_picture("Residual stream", *run.trace, [found, position](const Style& style) {
    return chart_scene(stream_chart(found, position, style), style);
  });
  return out;
}

class Norms final : public ReadTool {
 public:
  Norms() : ReadTool("norms", "LayerNorm, RMSNorm, BatchNorm on rows you give, or a norm of the model at work") {}
  void add_options(Command& command) override {
    position_.add_to(command);
    command.add_option("--layer", layer_, "Of which block").show_default();
    command.add_option("--row", rows_, "A row of numbers instead of the model's own; once for each")
        .type_name("\"4 6 0 0\"");
    command.add_option("--epsilon", epsilon_, "Of the norms of such rows").check(range(0.0, 1.0)).show_default();
    command.add_option("--norm", norm_, "ln1 (before attention), ln2 (before the MLP) or last")
        .check(one_of({"ln1", "ln2", "last"}))
        .show_default();
  }
  CaptureSpec capture(const Model& model) const override { return only_sites(model_norm_sites(model)); }
  Report read(const ReadRun& run) const override;

 private:
  PositionOption position_;
  int layer_ = 0;
  std::vector<std::string> rows_;
  double epsilon_ = 1e-5;
  std::string norm_ = "ln1";
};

Report Norms::read(const ReadRun& run) const {
  Report out;
  if (!rows_.empty()) {
    std::vector<std::vector<float>> given;
    for (const std::string& row : rows_) given.push_back(understood([&] { return parse_row(row, "--row"); }));
    const NormTable table = norm_table(run.console.backend(), matrix_of_rows(given, "--row"), epsilon_);
    for (std::size_t m = 0; m < table.after.size(); ++m) {
      const OrderKept order = order_kept(table.rows, table.after[m]);
      out.fact({fmt::format("turned_{}", m),
                fmt::format("{}: pairs within a row whose order changed, of {}", title(norm_methods[m]), order.pairs),
                order.turned});
    }
    auto& rows = out.table("rows", {"norm", "row", "feature", "before", "after"});
    for (std::size_t m = 0; m < table.after.size(); ++m)
      for (Index i = 0; i < table.rows.dim(0); ++i)
        for (Index j = 0; j < table.rows.dim(1); ++j)
          rows.add({title(norm_methods[m]), i, j, table.rows.at(i, j), table.after[m].at(i, j)});
    out.picture = [table](const Style& style) {
      return framed(norm_table_scene(table, picture_width, style), {"Norms of the same rows", {}, "", {}}, style);
    };
    return out;
  }
  const Index position = position_.in(*run.trace);
  const WhichNorm which = norm_ == "ln1"   ? WhichNorm::before_attention
                          : norm_ == "ln2" ? WhichNorm::before_mlp
                                           : WhichNorm::last;
  const ModelNorm found = read_model_norm(*run.loaded.model, run.console.backend(), *run.trace, which, layer_);
  const LineStatistics before = statistics(found.before.select(0, position).packed().values()),
                       after = statistics(found.after.select(0, position).packed().values());
  out.facts({{"norm", "norm", title(found.method)},
             {"position", "position", position},
             {"mean", "mean before", before.mean},
             {"variance", "variance before", before.variance},
             {"mean_after", "mean after", after.mean},
             {"variance_after", "variance after", after.variance},
             {"difference", "largest difference from the norm computed anew", found.difference}});
  auto& rows = out.table("rows", {"feature", "before", "normalised", "gain", "bias", "after"});
  for (Index d = 0; d < found.before.dim(1); ++d)
    rows.add({d, found.before.at(position, d), found.bare.at(position, d), found.weights.gain.at(d),
              found.weights.bias.defined() ? found.weights.bias.at(d) : std::nan(""), found.after.at(position, d)});
  out.picture = framed_picture("A norm of the model", *run.trace, [found, position](const Style& style) {
    NumberStrips strips = model_norm_strips(found, position);
    strips.width = picture_width;
    return number_strips_scene(strips, style);
  });
  return out;
}

void add_parts(Report& out, const ParameterParts& parts) {
  const auto total = static_cast<double>(parts.total());
  out.facts({{"parameters", "parameters", parts.total()},
             {"tied", "saved by tying the unembedding to the embedding", parts.tied}});
  if (parts.idle > 0)
    out.fact({"used_per_token", "of them, those that a token passes through", parts.total() - parts.idle});
  auto& rows = out.table("rows", {"part", "parameters", "share"});
  const std::pair<const char*, std::int64_t> lines[] = {{"token embedding", parts.embedding},
                                                        {"positions", parts.positions},
                                                        {"attention", parts.attention},
                                                        {"MLP", parts.mlp},
                                                        {"norms", parts.norms},
                                                        {"unembedding", parts.unembedding}};
  for (const auto& [name, count] : lines) rows.add({name, count, count / total});
  if (parts.convolution > 0)
    rows.add({"convolution beside the first block", parts.convolution, static_cast<double>(parts.convolution) / total});
  if (parts.layer_inputs > 0)
    rows.add({"inputs of every layer's own", parts.layer_inputs, static_cast<double>(parts.layer_inputs) / total});
}

class Mlp final : public ReadTool {
 public:
  Mlp() : ReadTool("ffn", "The MLP of a layer, neuron by neuron; shares of parameters") {}
  void add_options(Command& command) override {
    position_.add_to(command);
    token_.add_to(command);
    top_.add_to(command);
    command.add_option("--layer", layer_, "Of which block").show_default();
    command.add_flag("--parameters", parameters_, "Where the model's parameters sit, instead");
    command.add_option("--shape", shape_, "Where those of another model would, given by its shape")
        .type_name("\"gpt2 layers=12 width=768 heads=12 vocab=50257 context=1024\"");
  }
  CaptureSpec capture(const Model& model) const override {
    return only_sites(has_neurons(model.config()) ? feed_forward_sites(model) : std::set<SiteKind>{});
  }
  Report read(const ReadRun& run) const override;

 private:
  PositionOption position_;
  TokenOption token_;
  TopOption top_;
  int layer_ = 0;
  bool parameters_ = false;
  std::string shape_;
};

Report Mlp::read(const ReadRun& run) const {
  Report out;
  if (parameters_ || !shape_.empty()) {
    const ModelConfig config =
        shape_.empty() ? run.loaded.model->config() : understood([&] { return parse_shape(shape_, "--shape"); });
    out.fact({"shape", "shape", shape_words(config)});
    add_parts(out, parameter_parts(config));
    return out;
  }
  AttributionOf of;
  of.position = position_.in(*run.trace);
  of.token = token_.in(run.loaded, *run.trace, of.position);
  const FeedForward found =
      read_feed_forward(*run.loaded.model, run.console.backend(), *run.trace, layer_, of, top_.count, 3);
  const TokenName name = namer(run.loaded);
  out.facts({{"position", "position", found.of.position},
             {"token", "token", name(of.token)},
             {"activation", "activation",
              std::string(title(run.loaded.model->config().activation)) +
                  (run.loaded.model->config().gated_mlp ? ", gated" : "")},
             {"active", "share of neurons with pre > 0 here", nth(found.active, found.of.position)},
             {"ever_active", "share active at some position of the text", found.ever_active},
             {"half", "share of neurons that write half of Σ ‖a W_down‖ here", found.half},
             {"logit", "part of the whole MLP in the logit", found.logit},
             {"bias_logit", "of it, the output bias", found.bias_logit},
             {"edited_logit", "what edits behind the neurons add", found.edited_logit}});
  auto& rows = out.table("rows", {"neuron", "pre", "linear", "post", "norm_written", "logit", "raises"});
  const bool gated = run.loaded.model->config().gated_mlp;
  for (const Neuron& n : found.neurons) {
    std::string raises;
    for (const NextToken& t : n.raises)
      raises += fmt::format("{}{} {:+.2f}", raises.empty() ? "" : "  ", name(t.id), t.logit);
    rows.add({n.index, n.pre, gated ? n.linear : std::nan(""), n.post, n.norm, n.logit, raises});
  }
  out.picture = framed_picture(fmt::format("MLP of layer {}", found.layer), *run.trace, [found](const Style& style) {
    Histogram histogram = neuron_histogram(found.post, "after the activation: hook_post", style.theme.accent);
    histogram.width = picture_width;
    histogram.height = 360;
    return histogram_scene(histogram, style);
  });
  return out;
}

class Experts final : public ReadTool {
 public:
  Experts() : ReadTool("experts", "Which expert took which token, and the load of each beside an even share") {}
  void add_options(Command& command) override {
    command.add_option("--layer", layer_, "Of the picture (default: the first with experts)").type_name("N");
    command.add_option("--capacity", capacity_, "Capacity factor: which tokens experts would have no room for")
        .check(positive())
        .show_default();
    command.add_flag("--loads", loads_, "The load of every expert of every layer, in place of the tokens");
  }
  CaptureSpec capture(const Model& model) const override { return only_sites(expert_routing_sites(model)); }
  Report read(const ReadRun& run) const override;

 private:
  std::optional<int> layer_;
  double capacity_ = 1.25;
  bool loads_ = false;
};

Report Experts::read(const ReadRun& run) const {
  const RoutingReport found = read_expert_routing(*run.loaded.model, *run.trace);
  const auto chosen =
      std::ranges::find_if(found.layers, [&](const ExpertRouting& each) { return !layer_ || each.layer == *layer_; });
  if (chosen == found.layers.end())
    throw Error("--layer", "a layer that has experts", std::to_string(*layer_),
                fmt::format("the first is {}", found.layers.front().layer));
  Report out;
  out.facts({{"experts", "experts of a layer", found.experts},
             {"per_token", "of which take each token", found.per_token},
             {"chance", "even share", found.chance}});
  for (const ExpertRouting& each : found.layers) {
    out.fact({fmt::format("used_{}", each.layer),
              fmt::format("layer {}: as many experts as would do the same work evenly", each.layer), each.used});
    out.fact(
        {fmt::format("balance_{}", each.layer), "  … E Σ load · mean router probability, 1 where even", each.balance});
    out.fact({fmt::format("shared_same_{}", each.layer),
              "  … share of experts that a token has again when it comes again", each.shared.same});
    out.fact({fmt::format("shared_next_{}", each.layer), "  … that the next token has too", each.shared.next});
    out.fact(
        {fmt::format("shared_any_{}", each.layer), "  … that any two tokens have in common: chance", each.shared.any});
    const DroppedTokens dropped = dropped_tokens(each, capacity_);
    out.fact({fmt::format("dropped_{}", each.layer),
              fmt::format("  … places dropped, were there room for {} tokens an expert", dropped.capacity),
              dropped.places.size()});
    out.fact({fmt::format("dropped_whole_{}", each.layer), "  … tokens that no expert takes then", dropped.whole});
  }
  if (loads_) {
    auto& rows = out.table("rows", {"layer", "expert", "tokens", "load", "chance", "weight"});
    for (const ExpertRouting& each : found.layers)
      for (int e = 0; e < found.experts; ++e)
        rows.add({each.layer, e, nth(each.tokens, e), nth(each.load, e), found.chance, nth(each.weight, e)});
    out.picture = picture_of(load_matrix(found), *run.trace);
    return out;
  }
  auto& rows = out.table("rows", {"layer", "position", "token", "expert", "weight"});
  for (const ExpertRouting& each : found.layers)
    for (Index token = 0; token < each.weights.dim(0); ++token)
      for (const Index e : experts_of(each, token))
        rows.add({each.layer, token, token_label(*run.trace, token), e, each.weights.at(token, e)});
  out.picture = framed_picture(fmt::format("Experts of layer {}", chosen->layer), *run.trace,
                               [found, layer = *chosen, trace = run.trace](const Style& style) {
                                 return routing_scene(found, layer, trace, picture_width, picture_height, style);
                               });
  return out;
}

class Path final : public ReadTool {
 public:
  Path() : ReadTool("path", "The way of one token: embedding, blocks, last norm, unembedding, softmax") {}
  void add_options(Command& command) override { position_.add_to(command); }
  CaptureSpec capture(const Model& model) const override { return only_sites(token_path_sites(model)); }
  Report read(const ReadRun& run) const override;

 private:
  PositionOption position_;
};

Report Path::read(const ReadRun& run) const {
  const TokenPath found = read_token_path(*run.loaded.model, *run.trace, position_.in(*run.trace));
  const WeightTying tying = weight_tying(*run.loaded.model);
  const TokenName name = namer(run.loaded);
  Report out;
  out.facts({{"position", "position", found.position},
             {"token", "token", token_label(*run.trace, found.position)},
             {"tied", "unembedding is the embedding again", tying.tied ? "yes" : "no"},
             {"matrix_bytes", tying.tied ? "bytes saved by it" : "bytes that tying would save", tying.matrix_bytes}});
  for (std::size_t i = 0; i < found.answers.size(); ++i)
    out.fact({fmt::format("answer_{}", i), "softmax: " + name(found.answers[i].id), found.answers[i].probability});
  auto& rows = out.table("rows", {"stage", "site", "shape", "formula", "norm", "mean", "low", "high"});
  for (const PathStage& s : found.stages)
    rows.add({(s.adds ? "+ " : "") + s.name, headscope::name(s.site, s.stack, HookNames::transformer_lens), s.shape,
              s.formula, s.norm, s.mean, s.low, s.high});
  out.picture =
      framed_picture(fmt::format("The path of position {}", found.position), *run.trace, [found](const Style& style) {
        NumberStrips strips = path_strips(found);
        strips.width = picture_width;
        return number_strips_scene(strips, style);
      });
  return out;
}

class Loss final : public ReadTool {
 public:
  Loss() : ReadTool("loss", "Cross-entropy and perplexity token by token, beside baselines") {}
  void add_options(Command& command) override {
    command.add_flag("--prefixes", prefixes_,
                     "Beginnings of the text run alone: do they predict the same as the one pass?");
  }
  CaptureSpec capture(const Model&) const override { return only_sites({}); }
  Report read(const ReadRun& run) const override;

 private:
  bool prefixes_ = false;
};

Report Loss::read(const ReadRun& run) const {
  const LossReport found = read_token_losses(*run.trace);
  const TokenName name = namer(run.loaded);
  Report out;
  out.facts({{"mean", "loss", found.mean, "nats per token"},
             {"perplexity", "perplexity", std::exp(found.mean)},
             {"uniform", "uniform baseline ln V", found.uniform},
             {"unigram", "unigram baseline, this text's own counts", found.unigram}});
  if (prefixes_) {
    PrefixCheck check;
    run.console.with_progress(
        "beginnings alone", [&](const Ctx& ctx) { check = check_prefixes(run.loaded, run.request, ctx, *run.trace); });
    out.fact({"prefixes", "beginnings run alone", check.prefixes.size()});
    out.fact({"prefix_difference", "largest difference of a logit from the one pass", check.largest});
    out.fact({"prefix_magnitude", "largest logit compared", check.magnitude});
  }
  auto& rows = out.table("rows", {"position", "target", "probability", "loss", "rank", "best", "best_probability",
                                  "running_mean", "running_perplexity", "unigram_loss"});
  for (const TokenLoss& t : found.tokens)
    rows.add({t.position, name(t.target), t.probability, t.loss, t.rank, name(t.best), t.best_probability,
              t.running_mean, std::exp(t.running_mean), t.unigram});
  out.picture = framed_picture("Loss per token", *run.trace, [found, trace = run.trace, name](const Style& style) {
    TokenBars bars = loss_bars(found, trace, name);
    bars.width = picture_width;
    bars.height = picture_height;
    return token_bars_scene(bars, style);
  });
  return out;
}

}  // namespace

ReadTools block_tools() {
  return tools_of<Residual, Norms, Mlp, Experts, Path, Loss>();
}

}  // namespace headscope::cli
