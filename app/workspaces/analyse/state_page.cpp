// What a state space makes of every token: steps, what is kept, what is written, by layer or lane by lane.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/render/state_pictures.h"
#include "app/widgets/controls.h"
#include "app/workspaces/analyse/parts.h"
#include "app/workspaces/analyse/reading_page.h"
#include "core/base/nth.h"
#include "core/base/words.h"

namespace headscope {

namespace {

class StatePage final : public ReadingPage {
 public:
  void middle(const PageContext& c) override {
    if (!c.results().model.model) return no_reading_yet(c);
    const Model& model = *c.results().model.model;
    if (!model.config().dims.any_state_space())
      return empty_state(
          c.ui, said("This model has no state"),
          said("Its tokens look at one another by attention. Mamba, Mamba-2 and the gated delta rule hold "
               "what came before in a state instead."));
    if (model.config().dims.state_kind == StateKind::convolution)
      return empty_state(c.ui, said("No step says what its layers hold"),
                         said("They are convolutions of a few tokens, whatever these are."));
    job_.want(c, state_step_sites(model), "", [](const ReadingSource& source, const Ctx&) {
      return read_state_steps(*source.model.model, *source.trace);
    });
    if (!job_.answer()) return no_reading_yet(c);
    static constexpr const char* views[] = {to_say("All layers"), to_say("Lanes of a layer")};
    segmented(c.ui, "state view", views, view_);
    ImGui::Dummy({0, c.ui.px(4)});
    picture(c);
  }

  void controls(ControlsRecord& r) override {
    r.choice("view", view_, 1);
    r.field("layer", layer_, 0, most_layers);
    r.choice("number", number_, 2);
  }

  void right(const PageContext& c) override {
    const auto answer = job_.answer();
    if (!answer || !c.results().model.model) return;
    const ModelDims& dims = c.results().model.model->config().dims;
    if (!dims.any_state_space() || dims.state_kind == StateKind::convolution) return;
    section(c.ui, said("SHOWN"));
    static constexpr const char* numbers[] = {to_say("step"), to_say("kept"), to_say("written")};
    segmented(c.ui, "state number", numbers, number_, ImGui::GetContentRegionAvail().x);
    section(c.ui, said("BLOCK"));
    state_layer_control(c, answer->result);
    position_control(c, said("whose numbers are listed"));
    const bool delta = dims.state_kind == StateKind::delta;
    const StateSteps& steps = shown(answer->result);
    const Index row = std::min(pinned_row(c, *answer->source.trace), steps.delta.dim(0) - 1);
    const std::string at = fmt::format("blocks.{}.mixer", steps.layer);
    section(c.ui, said("THIS TOKEN"), token_label(*answer->source.trace, row));
    const Tensor own = steps.delta.select(0, row).packed();
    const auto [least, most] = std::ranges::minmax(own.values());
    fact(c.ui, said("Step Δ, mean over lanes"), fmt::format("{:.4f}", lane_mean(steps.delta, row)), nullptr,
         {fmt::format("{}.hook_delta[{}]", at, row), said("softplus of what the token says, and a bias of the lane")});
    fact(c.ui, said("  least and most"), fmt::format("{:.4f} … {:.4f}", least, most));
    fact(c.ui, said("Kept of the state"), fmt::format("{:.4f}", lane_mean(steps.kept, row)), nullptr,
         {delta ? said("α = exp(Δ a), mean over lanes; what stands at the token's key is replaced besides")
                : said("mean over lanes and states of exp(Δ a)"),
          said("near 1: the token is passed over; near 0: the state starts anew")});
    fact(c.ui, said("Written"), fmt::format("{:.4f}", lane_mean(steps.written, row)), nullptr,
         {delta ? said("mean over lanes of β |v|, less what already stands at the key")
                : said("mean over lanes of Δ |x|, before B"),
          at + (delta ? ".hook_x, hook_beta" : ".hook_x, hook_delta")});
    fact(c.ui, delta ? "‖k‖" : "‖B‖", fmt::format("{:.4f}", nth(steps.b, row)), nullptr,
         {delta ? say("{}.hook_b: the keys, where a token is written", at)
                : say("{}.hook_b: how a token is written", at)});
    fact(c.ui, delta ? "‖q‖" : "‖C‖", fmt::format("{:.4f}", nth(steps.c, row)), nullptr,
         {delta ? say("{}.hook_c: the queries, by which the state is read", at)
                : say("{}.hook_c: how the state is read", at)});
    const ModelConfig& config = c.results().model.model->config();
    section(c.ui, said("THE STATE"), said("as large for a text of any length"));
    const CachedNumbers state = state_numbers(config);
    fact(c.ui, said("Numbers in a layer"), fmt::format("{}", state.numbers), nullptr, {said(state.words), state.sum});
    fact(c.ui, said("Lanes"), fmt::format("{}", config.dims.lanes), nullptr,
         {config.state_space->lane == StateSpaceConfig::Lane::channel ? said("channels, each with a step of its own")
                                                                      : said("heads, each with a step of its own")});
  }

 private:
  using Reading = ReadingJob<std::vector<StateSteps>>::Reading;

  /// Of the layer that was chosen, or the next one with a state.
  const StateSteps& shown(const std::vector<StateSteps>& all) const {
    const auto found = std::ranges::find_if(all, [&](const StateSteps& each) { return each.layer >= layer_; });
    return found == all.end() ? all.back() : *found;
  }

  /// Among the layers with a state alone, where others attend.
  void state_layer_control(const PageContext& c, const std::vector<StateSteps>& all) {
    const int before = layer_ = shown(all).layer;
    layer_control(c, layer_);
    if (layer_ >= before) return void(layer_ = shown(all).layer);
    const auto found =
        std::ranges::find_if(all.rbegin(), all.rend(), [&](const auto& each) { return each.layer <= layer_; });
    layer_ = found == all.rend() ? all.front().layer : found->layer;
  }

  void picture(const PageContext& c) {
    const auto answer = job_.answer();
    const auto tokens = static_cast<double>(answer->source.trace->tokens.size());
    const double width = std::max(std::floor(c.room()), 80 + 14 * tokens), height = std::max(room_below(c) - 30, 160.0);
    const std::optional<int> layer = view_ == 1 ? std::optional(shown(answer->result).layer) : std::nullopt;
    const auto number = static_cast<StepNumber>(number_);
    section(c.ui, view_ == 0 ? said("TOKEN BY TOKEN, LAYER BY LAYER") : said("TOKEN BY TOKEN, LANE BY LANE"),
            view_ == 0 ? said("click pins the token and chooses the layer") : said("click pins the token"));
    slot_.want(c.jobs, c.ui, answer, fmt::format("{} {} {} {}", layer.value_or(-1), number_, width, height),
               [answer, layer, number, width, height](const Style& style) {
                 Matrix matrix = step_matrix(answer->result, layer, number, answer->source.trace);
                 matrix.width = width, matrix.height = height;
                 matrix.largest_cell = 48;
                 return matrix_scene(matrix, style);
               });
    const Index pinned = pinned_row(c, *answer->source.trace);
    const SceneTouch touch = wide_scene(c, slot_, "state", [&](const Scene& scene, const SceneTouch& at) {
      frame_column(c, scene, at, pinned, c.ui.theme.accent);
    });
    const auto cell = matrix_cell(touch);
    const StateSteps& first = answer->result.front();
    const Index rows = layer ? first.delta.dim(1) : static_cast<Index>(answer->result.size());
    if (!cell || cell->row >= rows || cell->column >= first.delta.dim(0)) return;
    const StateSteps& steps = layer ? shown(answer->result) : nth(answer->result, cell->row);
    const auto value = [&](const Tensor& numbers) {
      return layer ? static_cast<double>(numbers.at(cell->column, cell->row)) : lane_mean(numbers, cell->column);
    };
    tooltip(
        c.ui,
        {layer ? say("{}, layer {}, lane {}", token_word(*answer->source.trace, cell->column), steps.layer, cell->row)
               : say("{}, layer {}, mean over lanes", token_word(*answer->source.trace, cell->column), steps.layer),
         say("step Δ {:.4f} · kept {:.4f} · written {:.4f}", value(steps.delta), value(steps.kept),
             value(steps.written))});
    if (!touch.clicked) return;
    c.editor.pin(cell->column);
    if (!layer) layer_ = steps.layer;
  }

  int view_ = 0, layer_ = 0, number_ = 0;
  ReadingJob<std::vector<StateSteps>> job_{*this, "read.state"};
  ReadingSlot slot_{*this, "scene.state"};
};

}  // namespace

std::unique_ptr<Page> make_state(JobRunner&) {
  return std::make_unique<StatePage>();
}

}  // namespace headscope
