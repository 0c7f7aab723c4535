// The tool of `headscope-cli read` that only models with a state space have.

#include <fmt/format.h>

#include <algorithm>

#include "app/cli/read_report.h"
#include "app/render/state_pictures.h"
#include "core/analysis/state_steps.h"
#include "core/base/error.h"
#include "core/base/nth.h"
#include "viz/scene/map_cells.h"

namespace headscope::cli {

namespace {
class State final : public ReadTool {
 public:
  State()
      : ReadTool("state",
                 "What a state takes in and forgets, token by token: step Δ, share kept, B and C (keys and queries)") {}
  void add_options(Command& command) override {
    command.add_option("--layer", layer_, "Lane by lane of this layer, in place of means over lanes of all layers")
        .type_name("N");
    command.add_option("--of", of_, "In the picture: delta, kept or written").show_default();
  }
  CaptureSpec capture(const Model& model) const override {
    CaptureSpec spec;
    spec.maps = MapStorage::none;
    spec.sites = state_step_sites(model);
    return spec;
  }
  Report read(const ReadRun& run) const override;

 private:
  std::optional<int> layer_;
  std::string of_ = "delta";
};

Report State::read(const ReadRun& run) const {
  const std::vector<StateSteps> found = read_state_steps(*run.loaded.model, *run.trace);
  const int layers = run.trace->model.dims.layers;
  if (layer_ && (*layer_ < 0 || *layer_ >= layers))
    throw Error("--layer", fmt::format("a layer from 0 to {}", layers - 1), std::to_string(*layer_));
  const auto chosen = std::ranges::find(found, layer_.value_or(found.front().layer), &StateSteps::layer);
  if (chosen == found.end())
    throw Error("--layer", "a layer that mixes tokens by a state", fmt::format("layer {}, which attends", *layer_));
  const auto number = value_in(step_number_names, of_);
  if (!number) throw UsageError("--of: expected delta, kept or written, found \"" + of_ + "\"");
  const ModelConfig& c = run.loaded.model->config();
  const bool channels = c.state_space->lane == StateSpaceConfig::Lane::channel;
  Report out;
  out.facts({{"lanes", channels ? "lanes (channels), each with its own step" : "lanes (heads), each with its own step",
              c.dims.lanes},
             {"d_state", "states of a lane", c.dims.d_state}});
  out.picture = picture_of(step_matrix(found, layer_, *number, run.trace), *run.trace);
  if (layer_) {
    const StateSteps& steps = *chosen;
    auto& rows = out.table("rows", {"layer", "position", "token", "lane", "delta", "kept", "written"});
    for (Index t = 0; t < steps.delta.dim(0); ++t)
      for (Index lane = 0; lane < steps.delta.dim(1); ++lane)
        rows.add({*layer_, t, token_label(*run.trace, t), lane, steps.delta.at(t, lane), steps.kept.at(t, lane),
                  steps.written.at(t, lane)});
    return out;
  }
  auto& rows = out.table("rows", {"layer", "position", "token", "delta", "delta_least", "delta_most", "kept", "written",
                                  "b_norm", "c_norm"});
  for (const StateSteps& steps : found)
    for (Index t = 0; t < steps.delta.dim(0); ++t) {
      const Tensor own = steps.delta.select(0, t).packed();
      const auto [least, most] = std::ranges::minmax(own.values());
      rows.add({steps.layer, t, token_label(*run.trace, t), lane_mean(steps.delta, t), least, most,
                lane_mean(steps.kept, t), lane_mean(steps.written, t), nth(steps.b, t), nth(steps.c, t)});
    }
  return out;
}
}  // namespace

ReadTools state_tools() {
  return tools_of<State>();
}

}  // namespace headscope::cli
