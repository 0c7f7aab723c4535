// A small set of heads that keeps a logit difference: the greedy order, its faithfulness, a threshold to drag.

#include "core/analysis/head_circuit.h"
#include "core/base/nth.h"
#include "core/edits/ablate_edit.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/widgets/plots.h"
#include "app/workspaces/analyse/sweep_page.h"
#include "app/workspaces/head_cells.h"
#include "core/base/words.h"
#include "core/trace/model_heads.h"

namespace headscope {

namespace {

using Method = HeadCircuitRequest::Method;

class HeadCircuitPage final : public SweepPage<HeadCircuitSearch, HeadCircuitRequest> {
 public:
  explicit HeadCircuitPage(JobRunner& jobs)
      : SweepPage(jobs, "circuit",
                  {to_say("passes"), to_say("No heads have been tried yet"),
                   to_say("Press Start on the right: heads go one by one, each time the one that matters least.")}) {}

  void middle(const PageContext& c) override {
    if (!keep_up(c)) return;
    const int fewest = result()->fewest(threshold_);
    for (const std::string& caveat : result()->caveats(threshold_)) paragraph(c.ui, caveat, c.ui.theme.key);
    curve(c, fewest);
    heads(c, fewest);
  }

  void controls(ControlsRecord& r) override {
    r.field("threshold", threshold_, 0, 1);
    r.field("method", method_, Method::add);
    r.field("ablation_by_baseline", by_baseline_);
    ablation_record(r, ablation_);
  }
  void right(const PageContext& c) override {
    const float room = ImGui::GetContentRegionAvail().x;
    section(c.ui, said("KEEP AT LEAST"), said("of the logit difference"));
    double percent = 100 * threshold_;
    if (slider(c.ui, to_say("Faithfulness"), percent, {0, 100, 90, false, " %", 0})) threshold_ = percent / 100;
    section(c.ui, said("SEARCH"), said("greedy: not proven to be the fewest"));
    static constexpr const char* methods[] = {to_say("take heads out"), to_say("put heads back")};
    int method = method_ == Method::remove ? 0 : 1;
    if (segmented(c.ui, "circuit method", methods, method, room)) method_ = method == 0 ? Method::remove : Method::add;
    note(c.ui, method_ == Method::remove
                   ? said("Begins with all heads. In each round every head still in is taken out on trial; the one "
                          "whose loss leaves the logit difference nearest to the whole model's goes for good.")
                   : said("Begins with no head. In each round every head still out is put back on trial; the one that "
                          "brings the logit difference nearest to the whole model's comes back for good."));
    section(c.ui, said("A HEAD THAT IS OUT"), said("what it reads (z) becomes"));
    out_of_circuit(c);
    const bool known = ask(c, fields_);
    if (!known) return;
    section(c.ui, said("LOGIT DIFFERENCE"),
            fmt::format("{} − {}", token_text(c.results().model, result()->answers.right),
                        token_text(c.results().model, result()->answers.wrong)));
    fact(c.ui, said("Whole model"), fmt::format("{:.3f}", result()->whole), nullptr,
         {said("logits of the last position, F32")});
    fact(c.ui, said("Every head out"), fmt::format("{:.3f}", result()->none), nullptr,
         {said("logits of the last position, F32")});
    const int fewest = result()->fewest(threshold_);
    if (fewest >= 0) {
      fact(c.ui, said("Heads kept"), say("{} of {}", fewest, result()->heads), nullptr,
           {said("the fewest heads of the greedy order that reach the threshold")});
      fact(c.ui, said("Faithfulness"), fmt::format("{:.1f} %", 100 * result()->faithfulness_of(fewest)), nullptr,
           {said("(kept − every head out) / (whole − every head out) of the logit difference"),
            said("normalised, as in Hanna et al. 2024 and Marks et al. 2024; Wang et al. 2023 take the plain "
                 "difference")});
      if (button(c.ui, to_say("Take the others out in Explore"))) apply(c, fewest);
    }
    selected_head(c);
  }

 private:
  /// What z of a head that is out becomes: by itself something that leaves the heads an answer to make.
  void out_of_circuit(const PageContext& c) {
    if (by_baseline_) ablation_ = {result() ? result()->ablate : Ablate{Ablate::By::mean}, ""};
    if (ablation_choice(c, "circuit ablation", ablation_)) by_baseline_ = false;
    if (!by_baseline_) {
      if (button(c.ui, to_say("Choose by what no head leaves"))) by_baseline_ = true;
      return;
    }
    if (!result() || result()->baselines.empty()) return;
    std::string others;
    for (const auto& [ablate, none] : result()->baselines)
      if (!(ablate == result()->ablate))
        others += fmt::format("{}{} {:.2f}", others.empty() ? "; " : ", ", ablation_title(ablate), none);
    note(c.ui, say("Chosen because with every head out so, {:.2f} of the answer's {:.2f} are left{}.", result()->none,
                   result()->whole, others));
  }

  std::optional<Ablate> ablation() const { return by_baseline_ ? std::nullopt : std::optional(ablation_.ablate); }

  std::optional<HeadCircuitRequest> wanted(const PageContext& c) const override {
    if (!c.results().run) return std::nullopt;
    return HeadCircuitRequest{c.results().run->request, ablation(), method_, chosen_answers(c)};
  }
  double passes(const PageContext& c) const override {
    const double heads = c.trace()->model.dims.all_heads();
    return 0.5 * heads * (heads + 1) / 2;
  }
  bool mistyped() const override { return !fields_.error.empty(); }

  /// The heads outside the set become edits, after those that are there.
  void apply(const PageContext& c, int fewest) {
    const auto kept = result()->kept(fewest);
    const ModelDims& dims = result()->before_trace->model.dims;
    std::vector<Intervention> edits = result()->request.run.edits;
    for (const auto& [layer, head] : every_head(dims))
      if (!kept.contains({layer, head})) edits.push_back({{layer, head}, result()->ablate});
    c.editor.history().close_step();
    c.editor.set_edits(std::move(edits));
    c.app.ui.workspace = workspace_index("Explore");
  }

  void curve(const PageContext& c, int fewest) {
    section(c.ui, said("FAITHFULNESS"),
            said("share of the logit difference that is left, by how many heads are kept; click to keep so much"));
    ChartSeries line{said("faithfulness"), c.ui.theme.accent, {}, {}, 2};
    for (int kept = 0; kept <= result()->heads; ++kept) {
      const double value = result()->faithfulness_of(kept);
      if (!std::isfinite(value)) continue;
      line.x.push_back(kept);
      line.y.push_back(value);
    }
    const auto all = static_cast<double>(std::max(result()->heads, 1));
    LineChart chart;
    chart.height =
        std::clamp(static_cast<double>(ImGui::GetContentRegionAvail().y / c.ui.scale) * 0.36, 130.0, 320.0) + 16;
    chart.grid = true;
    chart.x_low = 0, chart.x_high = all;
    chart.y_low = std::min(0.0, line.y.empty() ? 0.0 : *std::ranges::min_element(line.y)) - 0.05;
    chart.y_high = std::max(1.0, line.y.empty() ? 1.0 : *std::ranges::max_element(line.y)) + 0.05;
    chart.x_title = said("heads kept");
    if (fewest >= 0) chart.marker = Point{static_cast<double>(fewest), result()->faithfulness_of(fewest)};
    chart.series = {{"", with_opacity(c.ui.theme.text, 0.4), {0, all}, {threshold_, threshold_}, 1}, std::move(line)};
    chart.series.front().quiet = true;
    const PlotTouch touch = plot(c.ui, "faithfulness", std::move(chart));
    if (touch.clicked) {
      const double value = result()->faithfulness_of(static_cast<int>(std::lround(touch.x)));
      if (std::isfinite(value)) threshold_ = std::clamp(std::floor(value * 1000) / 1000, 0.0, 1.0);
    }
  }

  void heads(const PageContext& c, int fewest) {
    section(c.ui, said("WHICH HEADS"), said("framed: kept at this threshold; bright: kept longest; click to select"));
    const double height = std::max(static_cast<double>(ImGui::GetContentRegionAvail().y / c.ui.scale) - 6, 140.0);
    const SceneTouch touch = matrix_slot(c, slot_, "circuit", result(), "", height, [result = result()] {
      const ModelDims& dims = result->before_trace->model.dims;
      Matrix matrix = head_matrix(dims, {});
      const bool removing = result->request.method == Method::remove;
      const auto known = static_cast<int>(result->order.size());
      for (int i = 0; i < known; ++i) {
        const HeadCircuit::Step& step = nth(result->order, i);
        matrix.values.ref(step.id.layer, step.id.head) = static_cast<float>(removing ? i : result->heads - 1 - i);
        nth(matrix.pending, step.id.layer * dims.most_heads() + step.id.head) = 0;
      }
      if (known == result->heads) matrix.pending_text = to_say("no such head");
      matrix.low = 0, matrix.high = std::max(result->heads - 1, 1);
      matrix.digits = 3;
      matrix.unit = said("heads that it outlasts");
      return matrix;
    });
    const Scene* scene = slot_.scene();
    if (!scene) return;
    if (const Mark* mark = find(*scene, "matrix"); mark && fewest >= 0)
      for (const auto& [layer, head] : result()->kept(fewest)) {
        const auto& map = std::get<Heatmap>(mark->shape);
        const Rect r = map.cell(layer, head);
        ImGui::GetWindowDrawList()->AddRect(touch.window({r.x + 1, r.y + 1}),
                                            touch.window({r.right() - map.gap - 1, r.bottom() - map.gap - 1}),
                                            col(c.ui.theme.accent), 0, 0, c.ui.px(2));
      }
    if (const auto head = head_cells(c, *scene, touch)) tip(c, *head);
  }

  void tip(const PageContext& c, HeadId head) {
    const auto step = std::ranges::find_if(result()->order, [&](const HeadCircuit::Step& s) { return s.id == head; });
    if (step == result()->order.end()) return tooltip(c.ui, {said("Its turn has not come yet")});
    const bool removing = result()->request.method == Method::remove;
    tooltip(c.ui, {say("Layer {} Head {}", head.layer, head.head),
                   removing ? say("taken out as number {}", step - result()->order.begin() + 1)
                            : say("put back as number {}", step - result()->order.begin() + 1),
                   say("logit difference after that {:.3f}, faithfulness {:.3f}", step->logit_difference,
                       result()->faithfulness(step->logit_difference)),
                   fmt::format("blocks.{}.attn.hook_z[:, {}], F32", head.layer, head.head)});
  }

  SceneSlot slot_{"scene.circuit"};
  Method method_ = Method::remove;
  bool by_baseline_ = true;  // what z becomes is chosen by what no head leaves
  AblationFields ablation_{{Ablate::By::mean}, ""};
  double threshold_ = 0.9;
  AnswerFields fields_;
};

}  // namespace

std::unique_ptr<Page> make_head_circuit(JobRunner& jobs) {
  return std::make_unique<HeadCircuitPage>(jobs);
}

}  // namespace headscope
