// Which layers may become linear: the loss with each layer linear alone, a greedy search over sets of layers, and what
// evenly spaced and random sets lose beside it.

#include "core/analysis/linear_layers.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "app/render/linear_layers_pictures.h"
#include "app/state/mechanism_swaps.h"
#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/widgets/plots.h"
#include "app/workspaces/analyse/sweep_page.h"
#include "app/workspaces/scene_slot.h"
#include "core/attention/mechanism.h"
#include "core/base/nth.h"

namespace headscope {

namespace {

using SearchMethod = LinearLayersAsked::Method;
constexpr double least_allowed = 0.001, most_allowed = 10;

class LinearLayersPage final : public SweepPage<LinearLayersSearch, LinearLayersAsked> {
 public:
  explicit LinearLayersPage(JobRunner& jobs)
      : SweepPage(jobs, "linear layers",
                  {"sets of layers", "No layer has been made linear yet",
                   "Press Start on the right: each layer alone, then set after set."}) {}

  void middle(const PageContext& c) override {
    if (!keep_up(c)) return;
    const std::string finding = result()->finding(allowed_);
    paragraph(c.ui, finding.empty() ? "Searching: the sentence comes with the last round." : finding,
              finding.empty() ? c.ui.theme.muted : c.ui.theme.text);
    const bool picture = result()->before_trace->model.objective == Objective::image_class;
    note(c.ui, fmt::format("{} in softmax's place, on this {}, and no weight was trained on for it: a model that "
                           "learns with its linear layers loses less.",
                           parse_mechanism(result()->asked.mechanism).mechanism->name, picture ? "picture" : "text"));
    charts(c);
    search(c);
  }

  void controls(ControlsRecord& r) override {
    r.field("mechanism", mechanism_);
    r.field("allowed", allowed_, least_allowed, most_allowed);
    r.field("method", method_, SearchMethod::replace);
    r.field("random", draws_, 0, 10);
  }

  void right(const PageContext& c) override {
    section(c.ui, "IN SOFTMAX'S PLACE");
    mechanism(c);
    section(c.ui, "MAY RISE BY", result() && result()->by_kl ? "KL of the answer, nats" : "the loss, nats per token");
    slider(c.ui, "Allowed", allowed_, {least_allowed, most_allowed, 0.1, true, "", 3});
    section(c.ui, "SEARCH", "greedy: no set is proven to be the best");
    static constexpr const char* methods[] = {"softmax back", "linear in"};
    int method = static_cast<int>(method_);
    if (segmented(c.ui, "linear method", methods, method, ImGui::GetContentRegionAvail().x))
      method_ = static_cast<SearchMethod>(method);
    note(c.ui, method_ == SearchMethod::restore
                   ? "Begins with every layer linear. In each round each linear layer gets softmax back on trial; the "
                     "one with the lowest loss keeps it."
                   : "Begins with every layer softmax. In each round each of them is made linear on trial; the one "
                     "with the lowest loss stays so.");
    double draws = draws_;
    if (slider(c.ui, "Random orders", draws, {0, 10, 3, false, "", 0})) draws_ = static_cast<int>(std::lround(draws));
    ImGui::Dummy({0, c.ui.px(6)});
    run(c);
    if (!result()) return;
    const char* const what =
        result()->by_kl ? "KL(before ‖ after) of the answer" : "mean of −ln p of the text's tokens";
    const auto nats_of = [](double value) { return std::isnan(value) ? "–" : fmt::format("{:.3f} nats", value); };
    section(c.ui, result()->by_kl ? "KL OF THE ANSWER" : "LOSS ON THIS TEXT");
    fact(c.ui, "Every layer softmax", nats_of(result()->cost(result()->before)), nullptr, {what, "the model as it is"});
    fact(c.ui, "Every layer linear", nats_of(result()->cost(result()->none)), nullptr,
         {what, result()->asked.mechanism});
    const int fewest = result()->fewest(allowed_);
    if (fewest < 0) return;
    fact(c.ui, "Layers with softmax", fmt::format("{} of {}", fewest, result()->layers), nullptr,
         {"the fewest of the greedy sets whose loss rises by no more than is allowed"});
    fact(c.ui, "With these", nats_of(result()->greedy(fewest)), nullptr,
         {what, "those layers softmax, all others linear"});
    const int even = result()->fewest_evenly(allowed_);
    if (even >= 0)
      fact(c.ui, "Evenly spaced", fmt::format("{} of {}", even, result()->layers), nullptr,
           {"as many as it takes when they are the last of equal stretches, as hybrids place them"});
    ImGui::BeginDisabled(fewest == result()->layers);
    if (button(c.ui, "Try these in Explore")) apply(c, result()->kept_layers(fewest));
    ImGui::EndDisabled();
  }

 private:
  std::optional<LinearLayersAsked> wanted(const PageContext& c) const override {
    if (!c.results().run) return std::nullopt;
    LinearLayersAsked asked;
    asked.run = c.results().run->request;
    // What was tried in Explore is no other question.
    asked.run.edits = without_mechanisms(std::move(asked.run.edits));
    asked.mechanism = text_of(parse_mechanism(chosen(choices(c))));
    asked.method = method_;
    asked.draws = draws_;
    return asked;
  }
  /// A mechanism of so many steps is no pass of the model; twice one is what most take.
  double passes(const PageContext& c) const override {
    const double layers = c.trace()->model.dims.layers;
    return layers + 2 * (layers * (layers + 1) / 2 * 0.5 + (layers - 1) * (1 + draws_));
  }

  static std::vector<std::string> choices(const PageContext& c) {
    return linear_mechanisms(c.results().model.model->config().causal);
  }
  /// What was chosen, where this model can run it.
  std::string chosen(const std::vector<std::string>& ids) const {
    return std::ranges::count(ids, mechanism_) > 0 ? mechanism_ : ids.front();
  }

  void mechanism(const PageContext& c) {
    if (!c.results().model.model) return;
    const std::vector<std::string> ids = choices(c);
    const std::string id = chosen(ids);
    if (menu_button(c.ui, "Linear mechanism", std::string(find_mechanism(id)->name), "", c.ui.px(27)))
      ImGui::OpenPopup("linear mechanisms");
    if (ImGui::IsItemHovered())
      tooltip(c.ui, {std::string(find_mechanism(id)->title), std::string(find_mechanism(id)->formula)});
    if (!ImGui::BeginPopup("linear mechanisms")) return;
    for (const std::string& each : ids) {
      const Mechanism& m = *find_mechanism(each);
      if (ImGui::MenuItem(std::string(m.name).c_str(), std::string(m.source).c_str(), each == id)) mechanism_ = each;
    }
    ImGui::EndPopup();
  }

  void charts(const PageContext& c) {
    const double height =
        std::clamp(static_cast<double>(ImGui::GetContentRegionAvail().y / c.ui.scale) * 0.42, 150.0, 330.0);
    if (!ImGui::BeginTable("linear charts", 2, ImGuiTableFlags_SizingStretchSame | ImGuiTableFlags_NoSavedSettings))
      return;
    ImGui::TableNextColumn();
    section(c.ui, "HOW MANY KEEP SOFTMAX", "click: allow so much");
    LineChart sets = kept_softmax_chart(*result(), allowed_, c.ui.style());
    sets.height = height;
    const PlotTouch touch = plot(c.ui, "kept softmax", std::move(sets));
    if (touch.clicked) {
      const double cost = result()->greedy(std::clamp(static_cast<int>(std::lround(touch.x)), 0, result()->layers));
      // Rounded up, so that the set that was clicked is within it.
      if (std::isfinite(cost))
        allowed_ =
            std::clamp(std::ceil((cost - result()->cost(result()->before)) * 1000) / 1000, least_allowed, most_allowed);
    }
    ImGui::TableNextColumn();
    section(c.ui, "ONE LAYER AT A TIME", "all others softmax");
    LineChart layers = one_linear_layer_chart(*result(), c.ui.style());
    layers.height = height;
    plot(c.ui, "one linear layer", std::move(layers));
    ImGui::EndTable();
  }

  void search(const PageContext& c) {
    const bool restoring = result()->asked.method == SearchMethod::restore;
    section(c.ui, "THE SEARCH, ROUND BY ROUND",
            fmt::format("• the layer that {} in it; click a row to allow that much",
                        restoring ? "got softmax back" : "became linear"));
    const double height = std::max(static_cast<double>(ImGui::GetContentRegionAvail().y / c.ui.scale) - 6, 150.0);
    const SceneTouch touch = matrix_slot(c, slot_, "linear search", result(), "", height,
                                         [result = result()] { return linear_search_matrix(*result); });
    if (!touch.cell || !touch.mark || touch.mark->id != "matrix") return;
    const int round = static_cast<int>(touch.cell->row), layer = static_cast<int>(touch.cell->column);
    const auto& trials = result()->trials;
    const auto trial = std::ranges::find_if(
        trials, [&](const LinearLayers::Trial& each) { return each.round == round && each.layer == layer; });
    if (trial == trials.end()) return;
    const int kept = restoring ? round + 1 : result()->layers - round - 1;
    if (touch.clicked && std::isfinite(result()->greedy(kept)))
      allowed_ = std::clamp(std::ceil((result()->greedy(kept) - result()->cost(result()->before)) * 1000) / 1000,
                            least_allowed, most_allowed);
    tooltip(c.ui, {fmt::format("Layer {} {}, {} with softmax", layer,
                               restoring ? "gets softmax back" : "becomes linear", kept),
                   fmt::format("{} {:.4f}: {:+.4f} beside the model as it is", result()->by_kl ? "KL" : "loss",
                               result()->cost(trial->outcome), result()->rise(trial->outcome)),
                   fmt::format("KL(before ‖ after) of the answer {:.4f} nats", trial->outcome.kl)});
  }

  /// The set's edits take the place of those that put mechanisms there before.
  void apply(const PageContext& c, const std::vector<int>& kept) {
    const ModelDims& dims = result()->before_trace->model.dims;
    MechanismSwaps swaps;
    for (int layer = 0; layer < dims.layers; ++layer)
      for (int head = 0; head < dims.heads && !std::ranges::binary_search(kept, layer); ++head)
        swaps[{layer, head}] = result()->asked.mechanism;
    c.editor.history().close_step();
    c.editor.set_edits(with_swaps(result()->asked.run.edits, swaps, dims));
    c.app.ui.workspace = workspace_index("Explore");
  }

  SceneSlot slot_{"scene.linear_layers"};
  std::string mechanism_ = "linear";
  SearchMethod method_ = SearchMethod::restore;
  double allowed_ = 0.1;
  int draws_ = 3;
};

}  // namespace

std::unique_ptr<Page> make_linear_layers(JobRunner& jobs) {
  return std::make_unique<LinearLayersPage>(jobs);
}

}  // namespace headscope
