// The tools of `headscope-cli read` about weights that carry little: sinks, massive activations, other weights of a
// row.

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "app/cli/read_report.h"
#include "app/render/reading_pictures.h"
#include "core/analysis/alternatives.h"
#include "core/analysis/weighted_maps.h"
#include "core/analysis/whatif.h"
#include "core/metrics/next_token.h"
#include "viz/scene/framed.h"
#include "viz/scene/map_cells.h"

namespace headscope::cli {

namespace {
class Sinks final : public ReadTool {
 public:
  Sinks() : ReadTool("sinks", "Attention sinks: weight on the first token, and what it carries") {}
  CaptureSpec capture(const Model& model) const override {
    std::set<SiteKind> sites = weighting_sites(model.config());
    sites.insert(SiteKind::resid_post);
    return with_sites(std::move(sites));
  }
  Report read(const ReadRun& run) const override;
};

Report Sinks::read(const ReadRun& run) const {
  const SinkReport found = read_sinks(*run.trace, weights_of(run));
  Report out;
  for (std::size_t layer = 0; layer < found.layers.size(); ++layer)
    out.fact({fmt::format("v_depth_{}", layer), fmt::format("layer {}: ends ÷ middle (V shape)", layer),
              found.layers[layer].v_depth});
  const bool learned = run.loaded.model->config().learned_sinks;
  std::vector<Column> columns{"head",        "mass",          "chance",  "value_norm", "median",
                              "output_norm", "output_median", "carried", "entropy",    "without_first"};
  if (learned) columns.emplace_back("learned_sink");
  auto& rows = out.table("rows", std::move(columns));
  for (const SinkHead& h : found.heads) {
    std::vector<Cell> cells{to_string(h.id), h.mass,          h.chance,  h.value_norm, h.value_median,
                            h.output_norm,   h.output_median, h.carried, h.entropy,    h.entropy_without};
    if (learned) cells.emplace_back(h.learned);
    rows.add(std::move(cells));
  }
  out.picture = [found, words = describe_run(*run.trace)](const Style& style) {
    return framed(v_shape_chart(found, 720, 300, style), {"V shape of the layers", {}, words, {}}, style);
  };
  return out;
}

class Massive final : public ReadTool {
 public:
  Massive() : ReadTool("massive", "Massive activations, and what they do for the sink") {}
  void add_options(Command& command) override {
    top_.add_to(command);
    const Option threshold =
        command.add_option("--threshold", threshold_, "At least so many times the median magnitude of the layer")
            .check(positive())
            .show_default();
    const Option magnitude =
        command.add_option("--magnitude", magnitude_, "… and above this").check(non_negative()).show_default();
    command.add_flag("--paper", paper_, "The rule of Sun et al. 2024: --threshold 1000 --magnitude 100")
        .excludes(threshold)
        .excludes(magnitude);
    command.add_flag("--zero", zero_,
                     "Run again with all of them set to 0, listed or not: sinks, loss and answer before and after");
  }
  CaptureSpec capture(const Model&) const override { return with_sites({SiteKind::resid_post}); }
  Report read(const ReadRun& run) const override;

 private:
  TopOption top_;
  double threshold_ = 100, magnitude_ = 0;
  bool paper_ = false, zero_ = false;
};

Report Massive::read(const ReadRun& run) const {
  const MassiveActivations found =
      massive_activations(*run.trace, paper_ ? massive_by_sun : MassiveRule{threshold_, magnitude_});
  Index by_sun = 0;
  for (const MassiveLayer& line : found.layers) by_sun += line.count_by_sun;
  const auto rule = [](const MassiveRule& r) {
    return fmt::format("at least {:g} times the layer's median magnitude{}", r.ratio,
                       r.magnitude > 0 ? fmt::format(" and above {:g}", r.magnitude) : "");
  };
  Report out;
  out.facts({{"massive", rule(found.rule), found.found.size()},
             {"massive_by_paper", rule(massive_by_sun) + " (Sun et al. 2024)", by_sun}});
  for (std::size_t layer = 0; layer < found.layers.size(); ++layer) {
    const MassiveLayer& line = found.layers[layer];
    out.fact({fmt::format("largest_{}", layer),
              fmt::format("layer {}: median {:.4g}, {} massive, largest ratio (position {}, dimension {})", layer,
                          line.median, line.count, line.largest.position, line.largest.dimension),
              line.largest.ratio});
  }
  if (zero_ && !found.found.empty()) {
    ZeroedActivations zeroed;
    run.console.with_progress(
        "zeroed", [&](const Ctx& ctx) { zeroed = zero_activations(run.loaded, run.request, ctx, found.found); });
    out.fact({"zeroed", "set to 0", zeroed.zeroed.size()});
    out.fact({"loss_before", "loss before", zeroed.loss_before});
    out.fact({"loss_after", "loss with them at 0", zeroed.loss_after});
    out.fact({"kl", fmt::format("KL(before ‖ after) of the {}", prediction_words(run.trace->model.objective).token),
              zeroed.kl});
    for (std::size_t layer = 0; layer < zeroed.sink_before.size(); ++layer) {
      out.fact({fmt::format("sink_before_{}", layer), fmt::format("layer {}: weight on the first token before", layer),
                zeroed.sink_before[layer]});
      out.fact({fmt::format("sink_after_{}", layer), "  … and after", zeroed.sink_after[layer]});
    }
  }
  auto& rows = out.table("rows", {"layer", "position", "token", "dimension", "value", "ratio"});
  for (const HiddenActivation& a :
       std::span(found.found).first(std::min<std::size_t>(found.found.size(), static_cast<std::size_t>(top_.count))))
    rows.add({a.layer, a.position, token_label(*run.trace, a.position), a.dimension, a.value, a.ratio});
  return out;
}

class AlternativeWeights final : public ReadTool {
 public:
  AlternativeWeights() : ReadTool("alternatives", "Other weights of a row that give the same output") {}
  void add_options(Command& command) override {
    head_.add_to(command);
    position_.add_to(command);
    command.add_option("--key", key_, "The key that loses its weight (default: the strongest)").type_name("N");
    command.add_option("--share", share_, "How far to go, 0 … 1").check(range(0.0, 1.0)).show_default();
    command.add_option("--tolerance", tolerance_, "Singular values below this share of the largest count as 0")
        .check(range(0.0, 1.0))
        .show_default();
  }
  CaptureSpec capture(const Model&) const override { return with_sites({SiteKind::v}); }
  Report read(const ReadRun& run) const override;

 private:
  HeadOption head_;
  PositionOption position_;
  std::optional<int> key_;
  double share_ = 1, tolerance_ = 1e-6;
};

Report AlternativeWeights::read(const ReadRun& run) const {
  const HeadId head = head_.in(*run.trace);
  const Index query = position_.in(*run.trace);
  Alternatives found;
  RowReplaced replaced, naive;
  std::vector<double> other;
  run.console.with_progress("other weights", [&](const Ctx& ctx) {
    found = find_alternatives(*run.trace, head, query, key_.value_or(-1), tolerance_, ctx.stop);
    other = found.at(share_);
    replaced = replace_row(run.loaded, run.request, ctx, *run.trace, head, query, other);
    const double moved = row_difference(found.values, found.weights, other).variation;
    naive = replace_row(run.loaded, run.request, ctx, *run.trace, head, query,
                        naive_shift(found.weights, found.key, moved));
  });
  const RowDifference difference = row_difference(found.values, found.weights, other);
  Report out;
  out.facts({{"free", "free directions", found.free},
             {"key", "key that loses weight", found.key},
             {"variation", "total variation of the weights", difference.variation},
             {"divergence", "Jensen–Shannon divergence", difference.divergence, "nats"},
             {"output", "relative change of the head's output", difference.output},
             {"kl", "KL of the next token at this row", replaced.kl, "nats"},
             {"kl_last", "KL at the end of the text", replaced.kl_last, "nats"},
             {"kl_naive", "KL when as much weight is moved blindly", naive.kl, "nats"}});
  auto& rows = out.table("rows", {"key", "token", "weight", "other"});
  for (std::size_t j = 0; j < found.weights.size(); ++j)
    rows.add({j, token_label(*run.trace, static_cast<Index>(j)), found.weights[j], other[j]});
  return out;
}

}  // namespace

ReadTools sink_tools() {
  return tools_of<Sinks, Massive, AlternativeWeights>();
}

}  // namespace headscope::cli
