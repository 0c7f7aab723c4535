// A small set of heads that keeps a logit difference: the greedy order, its faithfulness, a threshold to drag.

#include "core/engine/head_circuit.h"
#include "core/edits/ablate_edit.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "app/analyse/parts.h"
#include "app/panels/head_cells.h"
#include "app/panels/scene_slot.h"
#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/widgets/plots.h"
#include "viz/scene/matrix.h"

namespace headscope {

namespace {

using Method = HeadCircuitRequest::Method;

class HeadCircuitInstrument final : public Instrument {
 public:
  explicit HeadCircuitInstrument(Explorer& explorer) : desk_(explorer, "circuit") {}

  void each_frame(Explorer&, bool) override { desk_.frame(); }

  void middle(const PageContext& c) override {
    keep_up(c);
    if (!result_) {
      if (!c.trace()) return empty_state(c.ui, "There is no text yet", "Open a model and write a prompt in Explore.");
      return empty_state(c.ui, desk_.running() ? "Running the text" : "No heads have been tried yet",
                         "Press Start on the right: heads go one by one, each time the one that matters least.");
    }
    const int fewest = result_->fewest(threshold_);
    for (const std::string& caveat : result_->caveats(threshold_)) paragraph(c.ui, caveat, c.ui.theme.key);
    curve(c, fewest);
    heads(c, fewest);
  }

  void controls(ControlsRecord& r) override {
    r.field("threshold", threshold_, 0, 1);
    r.field("method", method_, Method::add);
    bool by_baseline = !ablate_;
    r.field("ablation_by_baseline", by_baseline);
    Ablate ablate = ablate_.value_or(Ablate{Ablate::By::mean});
    ablation_record(r, ablate);
    ablate_ = by_baseline ? std::nullopt : std::optional(ablate);
  }
  void right(const PageContext& c) override {
    const float room = ImGui::GetContentRegionAvail().x;
    section(c.ui, "KEEP AT LEAST", "of the logit difference");
    double percent = 100 * threshold_;
    if (slider(c.ui, "Faithfulness", percent, {0, 100, 90, false, " %", 0})) threshold_ = percent / 100;
    ImGui::Dummy({0, c.ui.px(6)});
    section(c.ui, "SEARCH", "greedy: not proven to be the fewest");
    static constexpr const char* methods[] = {"take heads out", "put heads back"};
    int method = method_ == Method::remove ? 0 : 1;
    if (segmented(c.ui, "circuit method", methods, method, room)) method_ = method == 0 ? Method::remove : Method::add;
    note(c.ui, method_ == Method::remove
                   ? "Begins with all heads. In each round every head still in is taken out on trial; the one whose "
                     "loss leaves the logit difference nearest to the whole model's goes for good."
                   : "Begins with no head. In each round every head still out is put back on trial; the one that "
                     "brings the logit difference nearest to the whole model's comes back for good.");
    section(c.ui, "A HEAD THAT IS OUT", "what it reads (z) becomes");
    out_of_circuit(c);
    ImGui::Dummy({0, c.ui.px(6)});
    answer_fields(c, fields_, result_ ? token_text(c.results().model, result_->answers.right) : "",
                  result_ ? token_text(c.results().model, result_->answers.wrong) : "");
    ImGui::Dummy({0, c.ui.px(6)});
    const auto now = wanted(c);
    if (sweep_controls(c, desk_, "passes", now && started_ && *now != *started_, expected(c))) start(c);
    ImGui::Dummy({0, c.ui.px(6)});
    if (!result_) return;
    section(c.ui, "LOGIT DIFFERENCE",
            fmt::format("{} − {}", token_text(c.results().model, result_->answers.right),
                        token_text(c.results().model, result_->answers.wrong)));
    fact(c.ui, "Whole model", fmt::format("{:.3f}", result_->whole), nullptr, {"logits of the last position, F32"});
    fact(c.ui, "Every head out", fmt::format("{:.3f}", result_->none), nullptr, {"logits of the last position, F32"});
    const int fewest = result_->fewest(threshold_);
    if (fewest >= 0) {
      fact(c.ui, "Heads kept", fmt::format("{} of {}", fewest, result_->heads), nullptr,
           {"the fewest heads of the greedy order that reach the threshold"});
      fact(c.ui, "Faithfulness", fmt::format("{:.1f} %", 100 * result_->faithfulness_of(fewest)), nullptr,
           {"(kept − every head out) / (whole − every head out) of the logit difference",
            "normalised, as in Hanna et al. 2024 and Marks et al. 2024; Wang et al. 2023 take the plain difference"});
      if (button(c.ui, "Take the others out in Explore")) apply(c, fewest);
    }
    ImGui::Dummy({0, c.ui.px(6)});
    selected_head(c);
  }

 private:
  /// What z of a head that is out becomes: by itself something that leaves the heads an answer to make.
  void out_of_circuit(const PageContext& c) {
    Ablate shown = ablate_ ? *ablate_ : result_ ? result_->ablate : Ablate{Ablate::By::mean};
    if (ablation_choice(c, "circuit ablation", shown)) ablate_ = shown;
    if (ablate_) {
      if (button(c.ui, "Choose by what no head leaves")) ablate_.reset();
      return;
    }
    if (!result_ || result_->baselines.empty()) return;
    std::string others;
    for (const auto& [ablate, none] : result_->baselines)
      if (!(ablate == result_->ablate))
        others += fmt::format("{}{} {:.2f}", others.empty() ? "; " : ", ", ablation_title(ablate), none);
    note(c.ui, fmt::format("Chosen because with every head out so, {:.2f} of the answer's {:.2f} are left{}.",
                           result_->none, result_->whole, others));
  }

  struct Wanted {
    RunRequest run;
    std::optional<Ablate> ablate;
    Method method;
    std::optional<AnswerPair> answers;
    std::uint64_t model;  // which reading
    bool operator==(const Wanted&) const = default;
  };
  std::optional<Wanted> wanted(const PageContext& c) {
    if (!c.results().run || !c.results().model.model) return std::nullopt;
    return Wanted{c.results().run->request, ablate_, method_, chosen_answers(c), c.results().model_reading};
  }
  double expected(const PageContext& c) const {
    if (!c.trace()) return 0;
    const double heads = c.trace()->model.dims.layers * c.trace()->model.dims.heads;
    return expected_seconds(c, 0.5 * heads * (heads + 1) / 2);
  }
  void keep_up(const PageContext& c) {
    const auto now = wanted(c);
    if (now && fields_.error.empty() && now != started_ && expected(c) <= starts_by_itself_seconds) start(c);
  }
  void start(const PageContext& c) {
    const auto now = wanted(c);
    if (!now || !fields_.error.empty()) return;
    if (started_ && started_->model != now->model) result_.reset();
    started_ = now;
    desk_.start(std::make_shared<HeadCircuitSearch>(
                    c.results().model, HeadCircuitRequest{now->run, now->ablate, now->method, now->answers}),
                [this](std::shared_ptr<const HeadCircuit> known) { result_ = std::move(known); });
  }

  /// The heads outside the set become edits, after those that are there.
  void apply(const PageContext& c, int fewest) {
    const auto kept = result_->kept(fewest);
    const ModelDims& dims = result_->before_trace->model.dims;
    std::vector<Intervention> edits = result_->request.run.edits;
    for (int layer = 0; layer < dims.layers; ++layer)
      for (int head = 0; head < dims.heads; ++head)
        if (!kept.contains({layer, head})) edits.push_back({{layer, head}, result_->ablate});
    c.explorer().close_step();
    c.explorer().set_edits(std::move(edits));
    c.bench.ui.workspace = workspace_index("Explore");
  }

  void curve(const PageContext& c, int fewest) {
    section(c.ui, "FAITHFULNESS",
            "share of the logit difference that is left, by how many heads are kept; click to keep so much");
    Series line{"faithfulness", {}, {}, c.ui.theme.accent, 2, false};
    for (int kept = 0; kept <= result_->heads; ++kept) {
      const double value = result_->faithfulness_of(kept);
      if (!std::isfinite(value)) continue;
      line.x.push_back(kept);
      line.y.push_back(value);
    }
    const auto all = static_cast<double>(std::max(result_->heads, 1));
    const std::vector<Series> lines{
        {"", {0, all}, {threshold_, threshold_}, with_opacity(c.ui.theme.text, 0.4), 1, true}, line};
    PlotOptions options;
    options.height =
        std::clamp(static_cast<double>(ImGui::GetContentRegionAvail().y / c.ui.scale) * 0.36, 130.0, 320.0);
    options.scales = true;
    options.x_low = 0, options.x_high = all;
    options.y_low = std::min(0.0, line.y.empty() ? 0.0 : *std::ranges::min_element(line.y)) - 0.05;
    options.y_high = std::max(1.0, line.y.empty() ? 1.0 : *std::ranges::max_element(line.y)) + 0.05;
    options.x_name = "heads kept";
    if (fewest >= 0) options.marker = Point{static_cast<double>(fewest), result_->faithfulness_of(fewest)};
    const PlotTouch touch = plot(c.ui, "faithfulness", lines, options);
    if (touch.clicked) {
      const double value = result_->faithfulness_of(static_cast<int>(std::lround(touch.x)));
      if (std::isfinite(value)) threshold_ = std::clamp(std::floor(value * 1000) / 1000, 0.0, 1.0);
    }
  }

  void heads(const PageContext& c, int fewest) {
    section(c.ui, "WHICH HEADS", "framed: kept at this threshold; bright: kept longest; click to select");
    const double width = std::floor(c.room());
    const double height = std::max(static_cast<double>(ImGui::GetContentRegionAvail().y / c.ui.scale) - 6, 140.0);
    slot_.want(c.explorer(), c.ui, result_, fmt::format("{} {}", width, height),
               [result = result_, width, height](const Look& look) {
                 const ModelDims& dims = result->before_trace->model.dims;
                 Matrix matrix = head_matrix(dims.layers, dims.heads, {});
                 const bool removing = result->request.method == Method::remove;
                 const auto known = static_cast<int>(result->order.size());
                 for (int i = 0; i < known; ++i) {
                   const HeadCircuit::Step& step = result->order[static_cast<std::size_t>(i)];
                   matrix.values.ref(step.layer, step.head) = static_cast<float>(removing ? i : result->heads - 1 - i);
                   matrix.pending[static_cast<std::size_t>(step.layer * dims.heads + step.head)] = 0;
                 }
                 matrix.low = 0, matrix.high = std::max(result->heads - 1, 1);
                 matrix.digits = 3;
                 matrix.unit = "heads that it outlasts";
                 matrix.width = width, matrix.height = height;
                 return matrix_scene(matrix, look);
               });
    const Scene* scene = slot_.scene();
    if (!scene) return;
    SceneViewOptions how;
    how.fit_height = false;
    const SceneTouch touch = slot_.draw(c.ui, "circuit", how, width, scene->height);
    if (const Mark* mark = find(*scene, "matrix"); mark && fewest >= 0)
      for (const auto& [layer, head] : result_->kept(fewest)) {
        const auto& map = std::get<Heatmap>(mark->shape);
        const Rect r = map.cell(layer, head);
        ImGui::GetWindowDrawList()->AddRect(touch.window({r.x + 1, r.y + 1}),
                                            touch.window({r.right() - map.gap - 1, r.bottom() - map.gap - 1}),
                                            col(c.ui.theme.accent), 0, 0, c.ui.px(2));
      }
    if (const auto head = head_cells(c, *scene, touch)) tip(c, *head);
  }

  void tip(const PageContext& c, HeadId head) {
    const auto step = std::ranges::find_if(
        result_->order, [&](const HeadCircuit::Step& s) { return s.layer == head.layer && s.head == head.head; });
    if (step == result_->order.end()) return tooltip(c.ui, {"Its turn has not come yet"});
    const bool removing = result_->request.method == Method::remove;
    tooltip(c.ui,
            {fmt::format("Layer {} Head {}", head.layer, head.head),
             fmt::format("{} as number {}", removing ? "taken out" : "put back", step - result_->order.begin() + 1),
             fmt::format("logit difference after that {:.3f}, faithfulness {:.3f}", step->logit_difference,
                         result_->faithfulness(step->logit_difference)),
             fmt::format("blocks.{}.attn.hook_z[:, {}], F32", head.layer, head.head)});
  }

  SweepDesk desk_;
  SceneSlot slot_{"scene.circuit"};
  Method method_ = Method::remove;
  std::optional<Ablate> ablate_;  // empty: by what no head leaves
  double threshold_ = 0.9;
  AnswerFields fields_;
  std::optional<Wanted> started_;
  std::shared_ptr<const HeadCircuit> result_;
};

}  // namespace

std::unique_ptr<Instrument> make_head_circuit(Explorer& explorer) {
  return std::make_unique<HeadCircuitInstrument>(explorer);
}

}  // namespace headscope
