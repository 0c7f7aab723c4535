// The tools of `headscope-cli read` that go through all layers, and through all weight matrices.

#include <fmt/format.h>

#include <cmath>

#include "app/cli/read_report.h"
#include "app/render/reading_pictures.h"
#include "core/analysis/quantization.h"
#include "core/analysis/saliency.h"
#include "core/analysis/word_answer.h"
#include "core/attention/mechanisms/spectrum.h"
#include "core/base/median.h"
#include "core/base/nth.h"
#include "core/metrics/next_token.h"
#include "core/metrics/rollout.h"
#include "core/tensor/singular.h"
#include "core/trace/model_heads.h"
#include "viz/scene/map_cells.h"
#include "viz/scene/patch_map.h"

namespace headscope::cli {

namespace {
/// How the matrices of the layers are made and what is shown of what they say together.
struct MixingOptions {
  double residual = 0.5;
  bool relative = false;
  void add_to(Command& command) {
    command.add_option("--residual", residual, "Share of the residual stream in each layer")
        .check(range(0.0, 1.0))
        .show_default();
    command.add_flag("--relative", relative, "Divided by what heads that spread their weight evenly would give");
  }
};

/// --patches, --smooth: numbers laid over the picture whose patches the tokens are.
struct OverPicture {
  bool wanted = false, smooth = false;
  void add_to(Command& command) {
    const Option over = command.add_flag("--patches", wanted, "With -o: laid over the picture that the model read");
    command.add_flag("--smooth", smooth, "… and between the middles of patches interpolated").needs(over);
  }
  std::function<Scene(const Style&)> picture(const ReadRun& run, PatchValues values) const {
    return [trace = run.trace, values = std::move(values), even = smooth](const Style& style) {
      return patch_values_scene(*trace, values, {.smooth = even}, style);
    };
  }
};

std::vector<double> values_of(const Tensor& row) {
  std::vector<double> out;
  for (Index i = 0; i < row.dim(0); ++i) out.push_back(static_cast<double>(row.at(i)));
  return out;
}

class Rollout final : public ReadTool {
 public:
  Rollout() : ReadTool("rollout", "Attention rollout through all layers") {}
  void add_options(Command& command) override {
    mixing_.add_to(command);
    over_.add_to(command);
  }
  Report read(const ReadRun& run) const override;

 private:
  MixingOptions mixing_;
  OverPicture over_;
};

Report Rollout::read(const ReadRun& run) const {
  const Tensor found = attention_rollout(mixing_matrices(*run.trace, mixing_.residual));
  const Tensor relative = relative_to(found, attention_rollout(mixing_matrices(*run.trace, mixing_.residual, true)));
  Report out;
  auto& rows = out.table("rows", {"query", "key", "token", "rollout", "relative"});
  const Index n = found.dim(0);
  const bool causal = run.loaded.model->config().causal, ahead = run.trace->sees_later_keys();
  const Index query = causal ? n - 1 : answer_position(*run.trace).value_or(n - 1);
  for (Index i = run.for_scripts ? 0 : query; i < (run.for_scripts ? n : query + 1); ++i)
    for (Index j = 0; j < (ahead ? n : i + 1); ++j)
      rows.add({i, j, token_label(*run.trace, j), found.at(i, j), relative.at(i, j)});
  if (over_.wanted) {
    const Tensor& shown = mixing_.relative ? relative : found;
    out.picture = over_.picture(
        run, {values_of(shown.select(0, query)), fmt::format("Attention rollout of {}", query_label(*run.trace, query)),
              fmt::format("rollout[{}, :]", query), mixing_.relative ? "÷ that of even heads" : "share of the stream",
              query});
    return out;
  }
  Matrix picture = token_matrix(mixing_.relative ? relative : found, run.trace,
                                mixing_.relative ? "attention rollout ÷ that of even heads" : "attention rollout");
  picture.square = true;  // queries and keys are the same tokens
  out.picture = picture_of(std::move(picture), *run.trace);
  return out;
}

class Flow final : public ReadTool {
 public:
  Flow() : ReadTool("flow", "Attention flow from one position to the tokens") {}
  void add_options(Command& command) override {
    position_.add_to(command);
    mixing_.add_to(command);
    over_.add_to(command);
  }
  Report read(const ReadRun& run) const override;

 private:
  PositionOption position_;
  MixingOptions mixing_;
  OverPicture over_;
};

Report Flow::read(const ReadRun& run) const {
  const Index query = position_.in(*run.trace);
  std::vector<double> found, even;
  run.console.with_progress("attention flow", [&](const Ctx& ctx) {
    found = attention_flow(mixing_matrices(*run.trace, mixing_.residual), query, ctx.stop);
    even = attention_flow(mixing_matrices(*run.trace, mixing_.residual, true), query, ctx.stop);
  });
  Report out;
  out.fact({"query", "from position", query});
  auto& rows = out.table("rows", {"key", "token", "flow", "relative"});
  std::vector<double> shown;
  const bool ahead = run.trace->sees_later_keys();
  for (std::size_t j = 0; j < found.size(); ++j) {
    const double relative = even[j] > 0 ? found[j] / even[j] : std::nan("");
    shown.push_back(mixing_.relative ? relative : found[j]);
    if (ahead || static_cast<Index>(j) <= query)
      rows.add({j, token_label(*run.trace, static_cast<Index>(j)), found[j], relative});
  }
  if (over_.wanted) {
    out.picture = over_.picture(
        run, {shown, fmt::format("Attention flow from {}", query_label(*run.trace, query)),
              fmt::format("flow[{}, :]", query), mixing_.relative ? "÷ that of even heads" : "capacity", query});
    return out;
  }
  out.picture =
      picture_of(token_row(shown, run.trace,
                           mixing_.relative ? "attention flow ÷ that of even heads" : "attention flow, capacity"),
                 *run.trace);
  return out;
}

class Gradients final : public ReadTool {
 public:
  Gradients()
      : ReadTool("gradients", "Gradient × input per token; per head |Σ A∘∂A| (importance) and Σ |A∘∂A| (reach)") {}
  void add_options(Command& command) override {
    position_.add_to(command);
    token_.add_to(command);
    against_.add_to(command);
  }
  Report read(const ReadRun& run) const override;

 private:
  PositionOption position_;
  TokenOption token_;
  AgainstOption against_;
};

Report Gradients::read(const ReadRun& run) const {
  GradientOf of;
  of.position = static_cast<int>(position_.in(*run.trace));
  of.token = token_.in(run.loaded, *run.trace, of.position);
  if (const auto other = against_.in(run.loaded)) {
    of.kind = GradientOf::Kind::logit_difference;
    of.other = *other;
  }
  Saliency found;
  run.console.with_progress(
      "gradients", [&](const Ctx& ctx) { found = read_saliency(run.loaded, run.request, ctx, *run.trace, of); });
  Report out;
  out.facts({{"position", "position", of.position},
             {"token", "token", namer(run.loaded)(of.token)},
             {"value", "value", found.gradients.value}});
  if (run.loaded.model->config().normed_alone())
    out.line(
        "gradient × input is 0 by nature: a norm reads each embedding with nothing added to it, and takes its "
        "length away; no answer moves as it fades in");
  auto& rows = out.table("rows", {"what", "token", "gradient_times_input", "importance", "reach"});
  std::vector<double> shown;
  for (std::size_t i = 0; i < run.trace->tokens.size(); ++i) {
    shown.push_back(static_cast<double>(found.gradients.gradient_times_input[i]));
    rows.add({fmt::format("position {}", i), token_label(*run.trace, static_cast<Index>(i)), shown.back(), std::nan(""),
              std::nan("")});
  }
  const std::vector<float>& of_source = found.gradients.source.gradient_times_input;
  for (std::size_t i = 0; i < of_source.size(); ++i)
    rows.add(
        {fmt::format("source {}", i), run.trace->encoder->tokens[i].label, of_source[i], std::nan(""), std::nan("")});
  const auto add_heads = [&](const char* stack, const Tensor& importance, const Tensor& reach) {
    if (!importance.defined()) return;
    for (const auto& [layer, head] : every_head(run.trace->model.dims))
      rows.add({fmt::format("head {}{}.{}", stack, layer, head), "", std::nan(""), importance.at(layer, head),
                reach.at(layer, head)});
  };
  add_heads("", found.importance, found.reach);
  add_heads("cross.", found.cross_importance, found.cross_reach);
  Matrix row = token_row(shown, run.trace, "gradient × input of the logit, per token");
  row.diverging = true;
  out.picture = picture_of(std::move(row), *run.trace);
  return out;
}

class CompositionTool final : public ReadTool {
 public:
  CompositionTool() : ReadTool("composition", "Q-, K- and V-composition of heads") {}
  void add_options(Command& command) override {
    command.add_option("--kind", kind_, "Of the picture: q, k or v").check(one_of({"q", "k", "v"})).show_default();
    command.add_option("--seed", seed_, "Of the random matrices that chance is measured on").show_default();
  }
  Report read(const ReadRun& run) const override;

 private:
  std::string kind_ = "v";
  std::uint64_t seed_ = 1;
};

Report CompositionTool::read(const ReadRun& run) const {
  Composition found;
  run.console.with_progress("composition",
                            [&](const Ctx& ctx) { found = head_composition(*run.loaded.model, ctx, 32, seed_); });
  Report out;
  out.facts({{"chance", "by chance", found.chance.mean}, {"chance_deviation", "± ", found.chance.deviation}});
  auto& rows = out.table("rows", {"writes", "reads", "q", "k", "v"});
  const auto label = [&](Index i) { return to_string(nth(found.heads, i)); };
  for (Index a = 0; a < found.q.dim(0); ++a)
    for (Index b = 0; b < found.q.dim(1); ++b)
      if (!std::isnan(found.q.at(a, b)))
        rows.add({label(a), label(b), found.q.at(a, b), found.k.at(a, b), found.v.at(a, b)});
  const auto kind = kind_ == "q" ? CompositionKind::q : kind_ == "k" ? CompositionKind::k : CompositionKind::v;
  out.picture = picture_of(composition_matrix(found, kind), *run.trace);
  return out;
}

class Singular final : public ReadTool {
 public:
  Singular() : ReadTool("singular", "Singular values of every weight matrix, which the edit \"singular\" scales") {}
  void add_options(Command& command) override { command.add_flag("--full", full_, "Every value, a line each"); }
  Report read(const ReadRun& run) const override;

 private:
  bool full_ = false;
};

Report Singular::read(const ReadRun& run) const {
  Report out;
  auto& rows =
      out.table("rows", full_ ? std::vector<Column>{"layer", "matrix", "i", "sigma"}
                              : std::vector<Column>{"layer", "matrix", "in", "out", "largest", "median", "rank90"});
  for (int layer = 0; layer < run.loaded.model->config().dims.layers; ++layer)
    for (int each = 0; each < weight_matrix_count; ++each) {
      const auto matrix = static_cast<WeightMatrix>(each);
      const auto found = run.loaded.model->singular(layer, matrix);
      if (!found) continue;
      const Tensor weight = run.loaded.model->projection(layer, matrix).weight;
      const std::vector<double>& sigma = found->values;
      const std::string name(name_of(matrix));
      if (!full_)
        rows.add({layer, name, weight.dim(0), weight.dim(1), sigma.front(), median(sigma), energy_rank(sigma, 0.9)});
      for (std::size_t i = 0; full_ && i < sigma.size(); ++i) rows.add({layer, name, i + 1, sigma[i]});
    }
  return out;
}

class FewBits final : public ReadTool {
 public:
  FewBits()
      : ReadTool("few-bits", "Weights and activations in few bits: error of every matrix, loss, outliers apart") {}
  void add_options(Command& command) override {
    command.add_option("--bits", how_.bits, "Bits of a number").check(range(2, 8)).show_default();
    command.add_flag("--weights", weights_, "Round the weights alone, not what they multiply");
    command.add_flag("--per-tensor", per_tensor_, "One step for a whole tensor, not for each row and column");
    command.add_option("--apart", how_.apart, "Dimensions that reach it are multiplied unrounded")
        .check(positive())
        .show_default();
  }
  CaptureSpec capture(const Model& model) const override { return with_sites(quantization_sites(model)); }
  Report read(const ReadRun& run) const override;

 private:
  Quantization how_{.bits = 8, .activations = true, .vectors = true, .apart = 6};
  bool weights_ = false, per_tensor_ = false;
};

Report FewBits::read(const ReadRun& run) const {
  Quantization how = how_;
  how.activations = !weights_, how.vectors = !per_tensor_;
  const QuantizationReport found = read_quantization(*run.loaded.model, *run.trace, how);
  QuantizedRuns runs;
  run.console.with_progress("running in few bits",
                            [&](const Ctx& ctx) { runs = run_quantized(run.loaded, run.request, how, ctx); });
  Report out;
  out.facts({{"loss", "loss as it is", runs.before.loss, "nats"},
             {"loss_rounded", fmt::format("loss in {} bits, outliers apart", how.bits), runs.chosen.loss, "nats"},
             {"kl", "KL(before ‖ after) of the answer", runs.chosen.kl, "nats"}});
  static constexpr const char* ways[] = {"tensor", "vector", "apart"};
  for (const QuantizedRuns::Run& each : runs.runs)
    out.fact({fmt::format("loss_{}_{}", each.bits, nth(ways, each.way)),
              fmt::format("loss in {} bits, {}", each.bits,
                          each.way == QuantizedRuns::tensor   ? "a step per tensor"
                          : each.way == QuantizedRuns::vector ? "per row and column"
                                                              : "per row and column, outliers apart"),
              each.outcome.loss, "nats"});
  for (std::size_t layer = 0; layer < runs.layers.size(); ++layer)
    out.fact({fmt::format("loss_layer_{}", layer), fmt::format("loss with layer {} alone rounded", layer),
              runs.layers[layer].loss, "nats"});
  auto& rows = out.table("rows", {"layer", "matrix", "product_error", "apart_error", "weight_error", "apart",
                                  "dimensions", "largest", "dimension", "median"});
  for (const QuantizedMatrix& each : found.matrices)
    rows.add({each.layer, name_of(each.matrix), each.product_error, each.apart_error, each.weight_error, each.apart,
              each.in, each.largest, each.largest_dimension, each.typical});
  return out;
}

class Word final : public ReadTool {
 public:
  Word() : ReadTool("word", "What heads do from one token: where they look, and the answer without them") {}
  void add_options(Command& command) override { position_.add_to(command); }
  Report read(const ReadRun& run) const override;

 private:
  PositionOption position_;
};

Report Word::read(const ReadRun& run) const {
  WordSweep sweep(run.loaded, {.run = run.request, .row = position_.in(*run.trace)});
  run.console.with_progress("taking heads out", [&](const Ctx& ctx) {
    while (!sweep.finished()) {
      sweep.step(ctx);
      if (ctx.progress) *ctx.progress = static_cast<float>(sweep.share());
    }
  });
  const auto found = sweep.result();
  Report out;
  out.data("sentence", found->sentence.text());
  out.data("provenance", found->provenance.text());
  out.line(found->sentence.text());
  out.line("by: " + found->provenance.text());
  auto& rows = out.table("rows", {"head", "key", "token", "weight", "even", "usual", "as_far", "effect"});
  for (const WordLook& look : found->looks)
    rows.add({to_string(look.head), look.key, nth(run.trace->tokens, look.key).label, look.weight, look.even,
              look.usual, look.as_far, look.effect});
  return out;
}

}  // namespace

ReadTools layers_tools() {
  return tools_of<Rollout, Flow, Gradients, CompositionTool, Singular, FewBits, Word>();
}

}  // namespace headscope::cli
