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
#include "core/base/words.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

using SearchMethod = LinearLayersAsked::Method;
using By = LinearLayersAsked::By;
constexpr double least_allowed = 0.001, most_allowed = 10;

class LinearLayersPage final : public SweepPage<LinearLayersSearch, LinearLayersAsked> {
 public:
  explicit LinearLayersPage(JobRunner& jobs)
      : SweepPage(jobs, "linear layers",
                  {to_say("sets of layers"), to_say("No layer has been made linear yet"),
                   to_say("Press Start on the right: each layer alone, then set after set.")}) {}

  void middle(const PageContext& c) override {
    if (hybrid(c))
      return empty_state(c.ui, said("Some of its layers are no softmax already"),
                         said("This page makes layers linear until few keep softmax. In this model layers that do "
                              "not attend stand beside those that do: it was trained as what is looked for here."));
    if (!keep_up(c)) return;
    const std::string finding = result()->finding(allowed_, namer(c));
    paragraph(c.ui, finding.empty() ? said("Searching: the sentence comes with the last round.") : finding,
              finding.empty() ? c.ui.theme.muted : c.ui.theme.text);
    const bool picture = result()->before_trace->model.objective == Objective::image_class;
    const std::string_view mechanism = said_view(parse_mechanism(result()->asked.mechanism).mechanism->name);
    note(c.ui, picture ? say("{} in softmax's place, on this picture, and no weight was trained on for it: a model "
                             "that learns with its linear layers may lose less.",
                             mechanism)
                       : say("{} in softmax's place, on this text, and no weight was trained on for it: a model that "
                             "learns with its linear layers may lose less.",
                             mechanism));
    charts(c);
    search(c);
  }

  void controls(ControlsRecord& r) override {
    r.field("mechanism", mechanism_);
    r.field("allowed", allowed_, least_allowed, most_allowed);
    r.field("method", method_, SearchMethod::replace);
    r.field("random", draws_, 0, 10);
    r.field("by", by_, By::answer);
  }

  void right(const PageContext& c) override {
    if (hybrid(c)) return;
    section(c.ui, said("IN SOFTMAX'S PLACE"));
    mechanism(c);
    const bool picture = c.trace() && c.trace()->model.objective == Objective::image_class;
    // … and where a text has no loss, the result says so.
    const bool by_answer = picture || by_ == By::answer || (result() && result()->by_kl && result()->asked.by == by_);
    section(c.ui, said("MAY RISE BY"), by_answer ? said("KL of the answer, nats") : said("the loss, nats per token"));
    if (!picture) {
      static constexpr const char* measures[] = {to_say("loss of the text"), to_say("KL of the answer")};
      int by = static_cast<int>(by_);
      if (segmented(c.ui, "linear by", measures, by, ImGui::GetContentRegionAvail().x)) by_ = static_cast<By>(by);
    }
    slider(c.ui, to_say("Allowed"), allowed_, {least_allowed, most_allowed, 0.1, true, "", 3});
    section(c.ui, said("SEARCH"), said("greedy: no set is proven to be the best"));
    static constexpr const char* methods[] = {to_say("softmax back"), to_say("linear in")};
    int method = static_cast<int>(method_);
    if (segmented(c.ui, "linear method", methods, method, ImGui::GetContentRegionAvail().x))
      method_ = static_cast<SearchMethod>(method);
    const char* const measure = by_answer ? "KL" : said("loss");
    note(c.ui, method_ == SearchMethod::restore
                   ? say("Begins with every layer linear. In each round each linear layer gets softmax back on trial; "
                         "the one with the lowest {} keeps it.",
                         measure)
                   : say("Begins with every layer softmax. In each round each of them is made linear on trial; the one "
                         "with the lowest {} stays so.",
                         measure));
    double draws = draws_;
    if (slider(c.ui, to_say("Random orders"), draws, {0, 10, 3, false, "", 0}))
      draws_ = static_cast<int>(std::lround(draws));
    run(c);
    if (!result()) return;
    const char* const what =
        result()->by_kl ? said("KL(before ‖ after) of the answer") : said("mean of −ln p of the text's tokens");
    const auto nats_of = [](double value) { return std::isnan(value) ? "–" : say("{:.3f} nats", value); };
    section(c.ui, result()->by_kl ? said("KL OF THE ANSWER") : said("LOSS ON THIS TEXT"));
    fact(c.ui, said("Every layer softmax"), nats_of(result()->cost(result()->before)), nullptr,
         {what, said("the model as it is")});
    fact(c.ui, said("Every layer linear"), nats_of(result()->cost(result()->none)), nullptr,
         {what, result()->asked.mechanism});
    const int fewest = result()->fewest(allowed_);
    if (fewest < 0 || result()->nothing_to_tell()) return;
    fact(c.ui, said("Layers with softmax"), say("{} of {}", fewest, result()->layers), nullptr,
         {result()->by_kl ? said("the fewest of the greedy sets whose KL rises by no more than is allowed")
                          : said("the fewest of the greedy sets whose loss rises by no more than is allowed")});
    fact(c.ui, said("With these"), nats_of(result()->greedy(fewest)), nullptr,
         {what, said("those layers softmax, all others linear")});
    answer(c, *result()->greedy_outcome(fewest));
    const int even = result()->fewest_evenly(allowed_);
    if (even >= 0)
      fact(c.ui, said("Evenly spaced"), say("{} of {}", even, result()->layers), nullptr,
           {said("as many as it takes when they are the last of equal stretches, as hybrids place them")});
    // Its layers are those of the model that it was asked of.
    if (!of_open_model(c)) return;
    ImGui::BeginDisabled(fewest == result()->layers);
    if (button(c.ui, to_say("Try these in Explore"))) apply(c, result()->kept_layers(fewest));
    ImGui::EndDisabled();
  }

 private:
  static bool hybrid(const PageContext& c) {
    return c.results().model.model && c.results().model.model->config().dims.hybrid();
  }

  std::optional<LinearLayersAsked> wanted(const PageContext& c) const override {
    if (!c.results().run) return std::nullopt;
    LinearLayersAsked asked;
    asked.run = c.results().run->request;
    // What was tried in Explore is no other question.
    asked.run.edits = without_mechanisms(std::move(asked.run.edits));
    asked.mechanism = text_of(parse_mechanism(chosen(choices(c))));
    asked.method = method_;
    asked.draws = draws_;
    asked.by = by_;
    return asked;
  }
  /// A mechanism of so many steps is no pass of the model; twice one is what most take.
  double passes(const PageContext& c) const override {
    const double layers = c.trace()->model.dims.layers;
    return layers + 2 * (layers * (layers + 1) / 2 * 0.5 + (layers - 1) * (1 + draws_));
  }

  /// Of the answers, while the model that gives them is open.
  LinearLayers::Namer namer(const PageContext& c) const {
    if (!of_open_model(c)) return {};
    return [&model = c.results().model](std::int32_t id) { return printable(token_text(model, id)); };
  }

  void answer(const PageContext& c, const LinearOutcome& with) {
    const LinearOutcome& before = result()->before;
    if (before.answer < 0 || with.answer < 0) return;
    const LinearLayers::Namer name = namer(c);
    const bool changes = before.answer != with.answer;
    fact(c.ui, said("Their answer"),
         !name     ? (changes ? said("another") : said("the same"))
         : changes ? fmt::format("{} → {}", name(before.answer), name(with.answer))
                   : name(with.answer),
         nullptr,
         {said("the most probable one, with every layer softmax and with these alone"),
          result()->before_trace->model.objective == Objective::next_token
              ? said("it comes after the last token, and is in no loss of the text")
              : ""});
    if (!result()->by_kl)
      fact(c.ui, said("KL of their answer"), say("{:.3f} nats", with.kl), nullptr, {said("KL(before ‖ after) of it")});
    else if (std::isfinite(with.loss))
      fact(c.ui, said("Their loss"), say("{:.3f} nats", with.loss), nullptr,
           {said("mean of −ln p of the text's tokens")});
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
    if (menu_button(c.ui, "Linear mechanism", std::string(said_view(find_mechanism(id)->name)), "", c.ui.px(27)))
      ImGui::OpenPopup("linear mechanisms");
    if (ImGui::IsItemHovered())
      tooltip(c.ui, {std::string(said_view(find_mechanism(id)->title)), std::string(find_mechanism(id)->formula)});
    if (!ImGui::BeginPopup("linear mechanisms")) return;
    for (const std::string& each : ids) {
      const Mechanism& m = *find_mechanism(each);
      if (ImGui::MenuItem(fmt::format("{}###{}", said_view(m.name), m.name).c_str(), std::string(m.source).c_str(),
                          each == id))
        mechanism_ = each;
    }
    ImGui::EndPopup();
  }

  void charts(const PageContext& c) {
    const double height =
        std::clamp(static_cast<double>(ImGui::GetContentRegionAvail().y / c.ui.scale) * 0.42, 150.0, 330.0);
    if (!ImGui::BeginTable("linear charts", 2, ImGuiTableFlags_SizingStretchSame | ImGuiTableFlags_NoSavedSettings))
      return;
    ImGui::TableNextColumn();
    section(c.ui, said("HOW MANY KEEP SOFTMAX"), said("click: allow so much"));
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
    section(c.ui, said("ONE LAYER AT A TIME"), said("all others softmax"));
    LineChart layers = one_linear_layer_chart(*result(), c.ui.style());
    layers.height = height;
    plot(c.ui, "one linear layer", std::move(layers));
    ImGui::EndTable();
  }

  void search(const PageContext& c) {
    const bool restoring = result()->asked.method == SearchMethod::restore;
    section(c.ui, said("THE SEARCH, ROUND BY ROUND"),
            restoring ? said("• the layer that got softmax back in it; click a row to allow that much")
                      : said("• the layer that became linear in it; click a row to allow that much"));
    const double height = std::max(static_cast<double>(ImGui::GetContentRegionAvail().y / c.ui.scale) - 6, 150.0);
    const SceneTouch touch = matrix_slot(c, slot_, "linear search", result(), "", height,
                                         [result = result()] { return linear_search_matrix(*result); });
    if (!touch.cell || !touch.mark || touch.mark->id != "matrix") return;
    const int round = static_cast<int>(touch.cell->row), layer = static_cast<int>(touch.cell->column);
    const auto& trials = result()->trials;
    const auto& order = result()->order;
    const auto trial = std::ranges::find_if(
        trials, [&](const LinearLayers::Trial& each) { return each.round == round && each.layer == layer; });
    if (trial == trials.end()) {
      const auto turn =
          std::ranges::find_if(order, [&](const LinearLayers::Step& each) { return each.layer == layer; });
      if (turn == order.end() || turn - order.begin() >= round) return tooltip(c.ui, {said("Not tried yet")});
      return tooltip(
          c.ui, {restoring ? say("Layer {} has softmax by then", layer) : say("Layer {} is linear by then", layer)});
    }
    const int kept = restoring ? round + 1 : result()->layers - round - 1;
    if (touch.clicked && std::isfinite(result()->greedy(kept)))
      allowed_ = std::clamp(std::ceil((result()->greedy(kept) - result()->cost(result()->before)) * 1000) / 1000,
                            least_allowed, most_allowed);
    tooltip(c.ui, {restoring ? say("Layer {} gets softmax back, {} with softmax", layer, kept)
                             : say("Layer {} becomes linear, {} with softmax", layer, kept),
                   result()->by_kl ? say("KL {:.4f}: {:+.4f} beside the model as it is", result()->cost(trial->outcome),
                                         result()->rise(trial->outcome))
                                   : say("loss {:.4f}: {:+.4f} beside the model as it is",
                                         result()->cost(trial->outcome), result()->rise(trial->outcome)),
                   say("KL(before ‖ after) of the answer {:.4f} nats", trial->outcome.kl)});
  }

  /// The set's edits take the place of those that put mechanisms there before; all others stay as they are now.
  void apply(const PageContext& c, const std::vector<int>& kept) {
    const ModelDims& dims = result()->before_trace->model.dims;
    MechanismSwaps swaps;
    for (int layer = 0; layer < dims.layers; ++layer)
      for (int head = 0; head < dims.heads_of(layer) && !std::ranges::binary_search(kept, layer); ++head)
        swaps[{layer, head}] = result()->asked.mechanism;
    c.editor.history().close_step();
    c.editor.set_edits(with_swaps(c.state().document.edits, swaps, dims));
    c.app.ui.workspace = workspace_index("Explore");
  }

  SceneSlot slot_{"scene.linear_layers"};
  std::string mechanism_ = "linear";
  SearchMethod method_ = SearchMethod::restore;
  By by_ = By::loss;
  double allowed_ = 0.1;
  int draws_ = 3;
};

}  // namespace

std::unique_ptr<Page> make_linear_layers(JobRunner& jobs) {
  return std::make_unique<LinearLayersPage>(jobs);
}

}  // namespace headscope
