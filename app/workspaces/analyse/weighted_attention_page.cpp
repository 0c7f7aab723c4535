// Attention beside what it carries: α, α ‖v‖, ‖α v W_O‖ (Weighting).

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/analyse/parts.h"
#include "app/workspaces/analyse/reading_page.h"
#include "app/workspaces/head_cells.h"
#include "app/workspaces/map_part.h"
#include "core/analysis/weighted_maps.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/trace/mixer_words.h"
#include "core/trace/model_heads.h"
#include "viz/scene/map_cells.h"

namespace headscope {

namespace {

constexpr const char* titles[] = {to_say("ATTENTION"), to_say("WEIGHTED BY VALUE"), to_say("WEIGHTED BY OUTPUT")};
constexpr const char* choices[] = {to_say("by value"), to_say("by output")};

/// By BehindHeads.
constexpr const char* shares_of_output[] = {
    "Σ ‖α(i, 0) v_0 W_O‖ ÷ Σ ‖α v W_O‖", "Σ ‖α(i, 0) (v_0 ∘ σ(g_i)) W_O‖ ÷ Σ ‖α (v ∘ σ(g_i)) W_O‖",
    "Σ_i ‖α(i, 0) (v_0 ∘ γ) W_O‖ ÷ rms(z_i) ÷ Σ_i Σ_j ‖α (v_j ∘ γ) W_O‖ ÷ rms(z_i)"};

/// What a number besides the weights comes from.
const char* read_from(Weighting weighting, BehindHeads behind) {
  if (weighting == Weighting::attention) return "";
  if (weighting == Weighting::value) return ", hook_v";
  constexpr const char* outputs[] = {", hook_v, W_O", ", hook_v, hook_gate, W_O",
                                     ", hook_v, hook_z, hook_z_gated, W_O"};
  return nth(outputs, behind);
}

struct Weighed {
  ModelWeights weights;
  std::vector<WeightedHead> heads;
};

class WeightedAttentionPage final : public ReadingPage {
 public:
  void middle(const PageContext& c) override {
    const auto& model = c.results().model.model;
    job_.want(c, model ? weighting_sites(model->config()) : std::set<SiteKind>(), "",
              [](const ReadingSource& source, const Ctx&) {
                Weighed out{weights_of(source), {}};
                out.heads = weighted_heads(*source.trace, out.weights);
                return out;
              });
    const auto answer = job_.answer();
    if (!answer) return no_reading_yet(c);
    segmented(c.ui, "weighting", choices, weighted_by_);
    ImGui::SameLine(0, c.ui.px(12));
    ImGui::AlignTextToFramePadding();
    const HeadId head = chosen_head(c, *answer->source.trace);
    ImGui::TextColored(vec(c.ui.theme.muted), "%s", say("layer {} head {}", head.layer, head.head).c_str());
    ImGui::Dummy({0, c.ui.px(4)});
    if (answer->source.trace->model.dims.attends(head.layer))
      maps(c, answer);
    else
      note(c.ui, say("Layer {} is {}: it has no values whose norms could weigh anything.", head.layer,
                     said(mixer_words(answer->source.trace->model.dims, head.layer))));
    atlas(c, answer);
  }

  void controls(ControlsRecord& r) override { r.choice("by", weighted_by_, 1); }
  void right(const PageContext& c) override {
    section(c.ui, said("WHAT IS SHOWN"));
    const auto& answer = job_.answer();
    const BehindHeads behind = answer ? behind_of(*answer) : BehindHeads::nothing;
    note(c.ui, say("A weight says how much of a value is taken, not how large that value is. α ‖v‖ is what is mixed "
                   "in, {} what reaches the residual stream.",
                   formula(Weighting::output, behind)));
    if (behind == BehindHeads::gate) note(c.ui, said("g: the gate of the query, which stands between values and W_O."));
    if (behind == BehindHeads::norm)
      note(c.ui, said("γ and rms(z): gains and divisor of the norm of what all heads put out, before W_O."));
    if (answer) {
      const HeadId head = chosen_head(c, *answer->source.trace);
      const bool attends = answer->source.trace->model.dims.attends(head.layer);
      for (const WeightedHead& w : answer->result.heads) {
        if (w.id != head || !attends) continue;
        section(c.ui, said("FIRST TOKEN'S SHARE"), said("rows 1 and on"));
        const auto share = [](double v) { return std::isnan(v) ? std::string("–") : fmt::format("{:.3f}", v); };
        fact(c.ui, said("by attention"), share(w.first_attention), nullptr, {"Σ α(i, 0) ÷ Σ α"});
        fact(c.ui, said("by value"), share(w.first_value), nullptr, {"Σ α(i, 0) ‖v_0‖ ÷ Σ α ‖v‖"});
        fact(c.ui, said("by output"), share(w.first_output), nullptr, {nth(shares_of_output, behind)});
        fact(c.ui, said("Strongest key stays"), say("{:.0f} % of rows", 100 * w.same_top), nullptr,
             {said("Rows whose strongest key by attention is the strongest by output, too")});
      }
      if (hovered_ && attends) cell_facts(c, *answer, head);
    }
    position_control(c, said("the framed row"));
    selected_head(c);
  }

 private:
  using Reading = ReadingJob<Weighed>::Reading;

  void cell_facts(const PageContext& c, const Reading& answer, HeadId head) {
    const Trace& trace = *answer.source.trace;
    if (hovered_->row >= static_cast<Index>(trace.tokens.size()) || hovered_->column > hovered_->row) return;
    section(c.ui, said("UNDER THE POINTER"),
            fmt::format("{} → {}", token_label(trace, hovered_->row), token_label(trace, hovered_->column)));
    for (const Weighting w : {Weighting::attention, Weighting::value, Weighting::output}) {
      const double norm = norm_at(answer, head, w, *hovered_);
      fact(c.ui, std::string(formula(w, behind_of(answer))),
           fmt::format("{:.4f}", norm * static_cast<double>(trace.map(head).weight(hovered_->row, hovered_->column))));
    }
  }

  static BehindHeads behind_of(const Reading& answer) { return behind_heads(answer.source.model.model->config()); }
  static double norm_at(const Reading& answer, HeadId head, Weighting w, Cell cell) {
    return offered_norm(*answer.source.trace, answer.result.weights, head, w, cell.row, cell.column);
  }

  void maps(const PageContext& c, const std::shared_ptr<const Reading>& answer) {
    const HeadId head = chosen_head(c, *answer->source.trace);
    const Index row = pinned_row(c, *answer->source.trace);
    const double gap = 16, room = c.room(), width = std::floor((room - gap) / 2);
    const double height = std::min(width + 60, std::max(220.0, room_below(c) - 240));
    const ImVec2 start = ImGui::GetCursorPos();
    hovered_.reset();
    const auto n = static_cast<Index>(answer->source.trace->tokens.size());
    if (shown_.lock() != answer->source.run || std::exchange(c.app.ui.reset_zoom, false)) part_.reset();
    shown_ = answer->source.run;
    part_.of(n, n);
    HeadMapOptions options;
    options.head = head;
    options.query = row;
    options.room = {width, height};
    options.region = part_.region();
    std::string wanted = fmt::format("{} {} {} {} {} {}", head.layer, head.head, row, width, height, weighted_by_);
    if (const auto& part = options.region)
      wanted += fmt::format(" {} {} {} {}", part->query, part->n_query, part->key, part->n_key);
    const BehindHeads behind = behind_of(*answer);
    for (std::size_t i = 0; i < 2; ++i) {
      const auto weighting = i == 0 ? Weighting::attention : static_cast<Weighting>(weighted_by_ + 1);
      const char* title = nth(titles, weighting);
      const float x = start.x + c.ui.px(static_cast<double>(i) * (width + gap));
      ImGui::SetCursorPos({x, start.y});
      {
        const UseFont font(c.ui, c.ui.small());
        ImGui::TextColored(vec(c.ui.theme.muted), "%s", said(title));
        ImGui::SameLine(0, c.ui.px(8));
        ImGui::TextColored(vec(c.ui.theme.faint), "%s", std::string(formula(weighting, behind)).c_str());
      }
      ImGui::SetCursorPos({x, start.y + c.ui.px(20)});
      SceneSlot& slot = slots_[i];
      slot.want(c.jobs, c.ui, answer, wanted, [answer, weighting, options](const Style& style) {
        return weighted_scene(*answer->source.trace, answer->result.weights, weighting, options, style);
      });
      ImGui::SetNextItemAllowOverlap();  // the button beside the map
      const SceneTouch touch = slot.draw(c.ui, title, MapPart::view(), width, height);
      if (!part_.whole()) c.ui.pictures.pass(title, MapPart::in_words);
      const Mark* drawn = slot.scene() ? find(*slot.scene(), "map") : nullptr;
      if (!drawn) continue;
      const auto& map = std::get<Heatmap>(drawn->shape);
      if (part_.use_minimap(touch, *slot.scene()) || part_.follow(touch, map.rect, true)) *c.ui.animate = true;
      part_.reset_button(c.ui, touch, *slot.scene());
      if (touch.mark != drawn || !touch.cell) continue;
      const Index offset = answer->source.trace->map(head).place().offset;
      const Cell cell{map.first_row - offset + touch.cell->row * map.row_bin,
                      map.first_column + touch.cell->column * map.column_bin};
      hovered_ = cell;
      const Trace& trace = *answer->source.trace;
      if (cell.column <= cell.row && cell.row < static_cast<Index>(trace.tokens.size())) {
        const double weight = static_cast<double>(trace.map(head).weight(cell.row, cell.column)),
                     norm = norm_at(*answer, head, weighting, cell);
        tooltip(c.ui, {fmt::format("{} ({}) → {} ({})", token_label(trace, cell.row), cell.row,
                                   token_label(trace, cell.column), cell.column),
                       fmt::format("{} = {:.5f}", formula(weighting, behind), weight * norm),
                       say("α {:.5f}, norm {:.4f}", weight, norm),
                       fmt::format("blocks.{}.attn.hook_pattern[{}]{}; F32", head.layer, head.head,
                                   read_from(weighting, behind))});
      }
      if (touch.clicked) c.editor.pin(cell.row, cell.column);
    }
    ImGui::SetCursorPos({start.x, start.y + c.ui.px(20 + height + 8)});
  }

  void atlas(const PageContext& c, const std::shared_ptr<const Reading>& answer) {
    section(c.ui, said("ALL HEADS"),
            said("first token's share by attention − by output: weight that carries little · click a head"));
    const double width = std::floor(c.room()), height = std::max(150.0, room_below(c) - 4);
    atlas_.want(c.jobs, c.ui, answer, fmt::format("{} {}", width, height), [answer, width, height](const Style& style) {
      const ModelDims& dims = answer->source.trace->model.dims;
      std::vector<double> values;
      for (const WeightedHead& head : answer->result.heads) values.push_back(head.first_attention - head.first_output);
      Matrix matrix = head_matrix(dims, values);
      matrix.unit = said("share of the first token by attention − by output");
      matrix.diverging = true;
      matrix.width = width, matrix.height = height;
      return matrix_scene(matrix, style);
    });
    const SceneTouch touch = wide_scene(c, atlas_, "heads");
    if (!atlas_.scene()) return;
    if (const auto head = head_cells(c, *atlas_.scene(), touch)) {
      const ModelDims& dims = answer->source.trace->model.dims;
      if (!dims.has_head(head->layer, head->head)) return;
      const auto at = static_cast<std::size_t>(head_index(dims, *head));
      if (at >= answer->result.heads.size()) return;
      const WeightedHead& w = answer->result.heads[at];
      tooltip(c.ui, {say("Layer {} Head {}", head->layer, head->head),
                     answer->source.trace->model.dims.attends(head->layer)
                         ? say("by attention {:.3f}, by value {:.3f}, by output {:.3f}", w.first_attention,
                               w.first_value, w.first_output)
                         : say("it is {}: no values whose norms could weigh anything",
                               said(mixer_words(answer->source.trace->model.dims, head->layer))),
                     said("Σ over rows 1 … of column 0 ÷ Σ of all columns")});
    }
  }

  ReadingJob<Weighed> job_{*this, "read.weighted"};
  ReadingSlot slots_[2] = {ReadingSlot(*this, "scene.weighted.0"), ReadingSlot(*this, "scene.weighted.1")};
  MapPart part_;  // the same of both
  std::weak_ptr<const TracedRun> shown_;
  int weighted_by_ = 1;
  ReadingSlot atlas_{*this, "scene.weighted.atlas"};
  std::optional<Cell> hovered_;
};

}  // namespace

std::unique_ptr<Page> make_weighted_attention(JobRunner&) {
  return std::make_unique<WeightedAttentionPage>();
}

}  // namespace headscope
