// Every head taken out in turn: an atlas of effects and a list to sort.

#include "core/analysis/head_ablation.h"
#include "core/base/nth.h"
#include "core/edits/ablate_edit.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/analyse/sweep_page.h"
#include "app/workspaces/head_cells.h"
#include "core/base/words.h"
#include "viz/color/color_norm.h"

namespace headscope {

namespace {

/// What an atlas cell and a column of the list can show.
struct Measure {
  const char* button;
  const char* unit;
  const char* formula;
  double (*value)(const HeadAblation::Head&);
};
constexpr Measure measures[] = {
    {to_say("Loss"), to_say("loss change on this text, nats per token"),
     to_say("mean −ln p(token) without the head − with it; above 0 the text needs the head"),
     [](const HeadAblation::Head& h) { return h.loss_change; }},
    {"KL", to_say("KL(before ‖ after) of the answer, nats"),
     to_say("Σ p ln(p / q) over the full vocabulary, where the model answers"),
     [](const HeadAblation::Head& h) { return h.after.kl; }},
    {to_say("Logit difference"), to_say("change of the logit difference"),
     to_say("(logit[first] − logit[second]) without the head − with it, where the model answers; below 0 the head "
            "speaks for the first answer"),
     [](const HeadAblation::Head& h) { return h.logit_difference_change; }},
};

std::string signed_number(double value) {
  if (!std::isfinite(value)) return "–";
  return (value < 0 ? "−" : value > 0 ? "+" : "") + short_number(std::abs(value), 3);
}

class HeadAblationPage final : public SweepPage<HeadAblationSweep, HeadAblationRequest> {
 public:
  explicit HeadAblationPage(JobRunner& jobs)
      : SweepPage(jobs, "ablate",
                  {to_say("heads"), to_say("Nothing has been taken out yet"),
                   to_say("Press Start on the right: every head is taken out once.")}) {}

  void middle(const PageContext& c) override {
    if (!keep_up(c)) return;
    atlas(c);
    list(c);
  }

  void controls(ControlsRecord& r) override {
    ablation_record(r, ablation_);
    r.choice("measure", measure_, 2);
  }
  void right(const PageContext& c) override {
    section(c.ui, said("TAKE OUT"), said("what the head reads (z) becomes"));
    ablation_choice(c, "ablation kind", ablation_);
    const bool known = ask(c, fields_);
    if (known) {
      section(c.ui, said("WITH ALL HEADS"), said("what is compared with"));
      const auto number = [](double v) { return std::isfinite(v) ? fmt::format("{:.3f}", v) : std::string("–"); };
      fact(c.ui, said("Loss on this text"), say("{} nats", number(result()->before.loss)), nullptr,
           {said(c.predicts().loss), said("logits, F32, of the model as edited now")});
      fact(c.ui,
           say("Logit {} − {}", token_text(c.results().model, result()->answers.right),
               token_text(c.results().model, result()->answers.wrong)),
           number(result()->before.logit_difference), nullptr, {said("logits of the last position, F32")});
      const auto on = std::ranges::count_if(result()->request.run.edits, &Intervention::enabled);
      if (on > 0)
        note(c.ui, on == 1 ? said("With 1 edit of Explore in force.") : say("With {} edits of Explore in force.", on));
    }
    selected_head(c);
  }

 private:
  std::optional<HeadAblationRequest> wanted(const PageContext& c) const override {
    if (!c.results().run) return std::nullopt;
    return HeadAblationRequest{c.results().run->request, ablation_.ablate, chosen_answers(c)};
  }
  double passes(const PageContext& c) const override {
    const ModelDims& dims = c.trace()->model.dims;
    return 0.5 * dims.all_heads();  // on average half of the blocks
  }
  bool mistyped() const override { return !fields_.error.empty(); }

  /// Of a text without a loss what the answer moves by.
  int shown_measure() const { return measure_ == 0 && std::isnan(result()->before.loss) ? 1 : measure_; }

  void atlas(const PageContext& c) {
    static constexpr const char* labels[] = {measures[0].button, measures[1].button, measures[2].button};
    int measure = shown_measure();
    if (segmented(c.ui, "effect", labels, measure)) measure_ = measure;
    if (std::isnan(result()->before.loss) && of_open_model(c))
      if (const std::string why = why_no_loss(c); !why.empty()) note(c.ui, why);
    const double height = std::clamp(ImGui::GetContentRegionAvail().y / c.ui.scale * 0.55, 160.0, 460.0);
    const Measure& shown = measures[shown_measure()];
    const SceneTouch touch = matrix_slot(c, slot_, "effects", result(), std::to_string(shown_measure()), height,
                                         [result = result(), &shown] {
                                           const ModelDims& dims = result->before_trace->model.dims;
                                           std::vector<double> values;
                                           for (const auto& head : result->heads) values.push_back(shown.value(head));
                                           Matrix matrix = head_matrix(dims, values);
                                           matrix.unit = said(shown.unit);
                                           return matrix;
                                         });
    const Scene* scene = slot_.scene();
    if (!scene) return;
    if (const auto head = head_cells(c, *scene, touch)) tip(c, *head);
  }

  void tip(const PageContext& c, HeadId head) {
    const auto found = std::ranges::find_if(result()->heads, [&](const HeadAblation::Head& h) { return h.id == head; });
    if (found == result()->heads.end()) return tooltip(c.ui, {said("Not computed yet")});
    const Ablate& by = result()->request.ablate;
    tooltip(c.ui,
            {say("Layer {} Head {} without it", head.layer, head.head),
             say("loss {:.4f} → {:.4f} nats", result()->before.loss, found->after.loss),
             say("KL(before ‖ after) {:.4f} nats", found->after.kl),
             say("logit difference {:.3f} → {:.3f}", result()->before.logit_difference, found->after.logit_difference),
             say("blocks.{}.attn.hook_z[:, {}] {}, F32; the model run again from block {}", head.layer, head.head,
                 text_of(EditAction(by)), head.layer)});
  }

  void list(const PageContext& c) {
    section(c.ui, said("HEADS BY EFFECT"),
            said("click a column to sort, a row to select, twice to open it in Explore"));
    std::vector<int> order(result()->heads.size());
    std::iota(order.begin(), order.end(), 0);
    const auto key = [&](int i) {
      const HeadAblation::Head& h = nth(result()->heads, i);
      if (sort_ == 0) return -static_cast<double>(i);
      const double v = measures[sort_ - 1].value(h);
      return std::isnan(v) ? -1e300 : v;
    };
    std::ranges::stable_sort(order, [&](int a, int b) { return descending_ ? key(a) > key(b) : key(a) < key(b); });

    constexpr ImGuiTableFlags flags = ImGuiTableFlags_Sortable | ImGuiTableFlags_SizingStretchSame |
                                      ImGuiTableFlags_ScrollY | ImGuiTableFlags_NoSavedSettings;
    c.ui.pictures.add_table("heads by effect", said("heads by effect"), [result = result(), order] {
      Table out{said("heads by effect"),
                {to_say("layer"), to_say("head"), to_say("loss change"), "KL", to_say("logit difference")},
                {}};
      for (const int i : order) {
        const HeadAblation::Head& head = nth(result->heads, i);
        out.rows.push_back({std::to_string(head.id.layer), std::to_string(head.id.head)});
        for (const Measure& measure : measures) out.rows.back().push_back(number_cell(measure.value(head)));
      }
      return out;
    });
    if (sort_ != 1 || !descending_) c.ui.pictures.pass("heads by effect", "a list that was sorted otherwise");
    const UseFont font(c.ui, c.ui.number());
    if (!ImGui::BeginTable("heads by effect", 5, flags, {0, std::max(ImGui::GetContentRegionAvail().y, c.ui.px(120))}))
      return;
    ImGui::TableSetupScrollFreeze(0, 1);
    ImGui::TableSetupColumn(said("Head"), ImGuiTableColumnFlags_PreferSortAscending, 0.6f);
    ImGui::TableSetupColumn(said("Class"), ImGuiTableColumnFlags_NoSort, 1.3f);
    ImGui::TableSetupColumn(said("Loss change"),
                            ImGuiTableColumnFlags_DefaultSort | ImGuiTableColumnFlags_PreferSortDescending, 1.1f);
    ImGui::TableSetupColumn("KL", ImGuiTableColumnFlags_PreferSortDescending, 0.8f);
    ImGui::TableSetupColumn(said("Logit difference"), ImGuiTableColumnFlags_PreferSortAscending, 1.4f);
    ImGui::TableHeadersRow();
    if (ImGuiTableSortSpecs* specs = ImGui::TableGetSortSpecs(); specs && specs->SpecsCount > 0) {
      const int column = specs->Specs[0].ColumnIndex;
      sort_ = column == 0 ? 0 : column - 1;
      // By head, ascending is layer by layer: the key falls.
      descending_ = (specs->Specs[0].SortDirection == ImGuiSortDirection_Descending) != (column == 0);
    }
    const auto& facts = c.results().facts;
    for (const int i : order) {
      const HeadAblation::Head& head = nth(result()->heads, i);
      const HeadId ref = head.id;
      ImGui::TableNextRow();
      ImGui::TableNextColumn();
      const std::string label = to_string(head.id) + "##row";
      if (ImGui::Selectable(label.c_str(), c.state().document.selected == ref,
                            ImGuiSelectableFlags_SpanAllColumns | ImGuiSelectableFlags_AllowDoubleClick)) {
        if (ImGui::IsMouseDoubleClicked(0))
          show_in_explore(c, ref);
        else
          c.editor.select(ref);
      }
      if (ImGui::IsItemHovered(ImGuiHoveredFlags_DelayShort)) tip(c, ref);
      ImGui::TableNextColumn();
      const int row = facts ? facts->row(ref) : -1;
      const bool classed = row >= 0 && !nth(facts->verdicts, row).empty();
      ImGui::TextColored(vec(c.ui.theme.muted), "%s",
                         classed ? said(nth(facts->verdicts, row).front().rule->title).c_str() : "–");
      for (const Measure& measure : measures) {
        ImGui::TableNextColumn();
        ImGui::TextUnformatted(signed_number(measure.value(head)).c_str());
      }
    }
    ImGui::EndTable();
  }

  SceneSlot slot_{"scene.ablation"};
  AblationFields ablation_{{Ablate::By::mean}, ""};
  AnswerFields fields_;
  int measure_ = 0, sort_ = 1;
  bool descending_ = true;
};

}  // namespace

std::unique_ptr<Page> make_head_ablation(JobRunner& jobs) {
  return std::make_unique<HeadAblationPage>(jobs);
}

}  // namespace headscope
