// Gradients: what a logit depends on, by token and by attention weight.

#include "core/analysis/saliency.h"
#include "core/base/nth.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "app/widgets/controls.h"
#include "app/workspaces/analyse/parts.h"
#include "app/workspaces/analyse/reading_page.h"
#include "app/workspaces/head_cells.h"
#include "core/base/words.h"
#include "core/metrics/next_token.h"
#include "viz/scene/map_cells.h"

namespace headscope {

namespace {

class SaliencyPage final : public ReadingPage {
 public:
  void middle(const PageContext& c) override {
    keep_up(c);
    const auto answer = job_.answer();
    if (!answer) return no_reading_yet(c);
    tokens(c, answer);
    // The heads and the chosen one's cells stand beside each other.
    const ImVec2 start = ImGui::GetCursorPos();
    const double room = c.room(), half = std::floor(0.4 * room), height = std::max(230.0, room_below(c) - 30);
    ImGui::BeginChild("heads", {c.ui.px(half - 16), c.ui.px(height + 26)}, ImGuiChildFlags_NavFlattened);
    heads(c, answer, height);
    ImGui::EndChild();
    ImGui::SetCursorPos({start.x + c.ui.px(half), start.y});
    ImGui::BeginChild("cells", {0, c.ui.px(height + 26)}, ImGuiChildFlags_NavFlattened);
    cells(c, answer, height);
    ImGui::EndChild();
  }

  void controls(ControlsRecord& r) override {
    r.choice("measure", measure_, 1);
    logit_.record(r);
  }
  void right(const PageContext& c) override {
    const auto& answer = job_.answer();
    logit_controls(c, "##differentiated token", answer ? token_text(answer->source.model, answer->result.token) : "",
                   logit_, said("whose answer is differentiated"));
    if (!answer) return;
    const Saliency& found = answer->result.found;
    section(c.ui, said("STRONGEST TOKENS"), said("gradient × input"));
    std::vector<Index> order;
    for (std::size_t i = 0; i < found.gradients.gradient_times_input.size(); ++i)
      order.push_back(static_cast<Index>(i));
    const auto value = [&](Index i) { return static_cast<double>(nth(found.gradients.gradient_times_input, i)); };
    std::ranges::stable_sort(order, [&](Index a, Index b) { return std::abs(value(a)) > std::abs(value(b)); });
    std::vector<Bar> bars;
    for (std::size_t i = 0; i < std::min<std::size_t>(order.size(), 8); ++i)
      bars.push_back({fmt::format("{} {}", token_label(*answer->source.trace, order[i]), order[i]),
                      std::abs(value(order[i])) / std::max(1e-12, std::abs(value(order[0]))), -1,
                      signed_words(value(order[i])), said("Σ over d of hook_embed · its gradient")});
    bar_list(c.ui, "salient tokens", bars);
    if (answer->source.model.model->config().normed_alone())
      note(c.ui,
           said("Gradient × input is 0 by nature here, but for rounding: a norm reads each embedding with nothing "
                "added to it, and takes its length away, so that no answer moves as it fades in. Attention × "
                "gradient of the heads tells what matters."));
    selected_head(c);
  }

 private:
  /// The token, chosen or the most probable one there, and what its logit depends on.
  struct Read {
    std::int32_t token = 0;
    Saliency found;
  };
  using Reading = ReadingJob<Read>::Reading;

  void keep_up(const PageContext& c) {
    if (!c.results().model.model || !c.trace()) return;
    logit_.keep_inside(c);
    const Index row = pinned_row(c, *c.trace());
    GradientOf of;
    of.position = static_cast<int>(row);
    if (logit_.against.id) of.kind = GradientOf::Kind::logit_difference, of.other = *logit_.against.id;
    job_.want(c, {}, fmt::format("{} {} {}", row, logit_.token.id.value_or(-1), logit_.against.id.value_or(-1)),
              [of, chosen = logit_.token.id, memory = c.jobs.memory()](const ReadingSource& source, const Ctx& ctx) {
                const auto usual = [&] {
                  const auto whole = with_all_logits(source.model, source.run->request, source.trace, ctx, *memory);
                  return most_probable(*whole, of.position).id;
                };
                GradientOf asked = of;
                asked.token = chosen ? *chosen : usual();
                return Read{asked.token, read_saliency(source.model, source.run->request, ctx, *source.trace, asked)};
              });
  }

  void tokens(const PageContext& c, const std::shared_ptr<const Reading>& answer) {
    section(c.ui, said("GRADIENT × INPUT"),
            said("per token: how the logit moves, to first order, as its embedding fades in · click asks about that "
                 "position"));
    const auto& values = answer->result.found.gradients.gradient_times_input;
    const double width = std::max(std::floor(c.room()), 40 + 9.0 * static_cast<double>(values.size()));
    row_.want(c.jobs, c.ui, answer, fmt::format("{}", width), [answer, width](const Style& style) {
      const auto& all = answer->result.found.gradients.gradient_times_input;
      Matrix m = token_row({all.begin(), all.end()}, answer->source.trace, said("gradient × input of the logit"));
      m.diverging = true;
      m.width = width, m.height = 165;
      return matrix_scene(m, style);
    });
    const SceneTouch touch = wide_scene(c, row_, "tokens");
    const auto cell = matrix_cell(touch);
    if (!cell || cell->column >= static_cast<Index>(values.size())) return;
    tooltip(c.ui, {fmt::format("{} ({}): {}", token_label(*answer->source.trace, cell->column), cell->column,
                               signed_words(static_cast<double>(nth(values, cell->column)))),
                   said("Σ over d of hook_embed[d] · ∂logit/∂hook_embed[d], F32")});
    if (touch.clicked) c.editor.pin(cell->column);
  }

  void heads(const PageContext& c, const std::shared_ptr<const Reading>& answer, double height) {
    struct Measure {
      const char *title, *unit, *formula;
      const Tensor& (*of)(const Saliency& found);
    };
    static constexpr Measure measures[] = {
        {to_say("importance"), to_say("|Σ over cells of attention × gradient|, logits"),
         to_say("|Σ A ∘ ∂logit/∂A| over its cells, hook_pattern, F32 (Michel et al. 2019)"),
         [](const Saliency& found) -> const Tensor& { return found.importance; }},
        {to_say("reach"), to_say("Σ over cells of |attention × gradient|, logits"),
         to_say("Σ |A ∘ ∂logit/∂A| over its cells, hook_pattern, F32: for and against do not cancel"),
         [](const Saliency& found) -> const Tensor& { return found.reach; }}};
    static constexpr const char* titles[] = {to_say("importance"), to_say("reach")};
    section(c.ui, said("HEADS"), said("attention × gradient · click a head"));
    segmented(c.ui, "head measure", titles, measure_);
    const Measure& measure = measures[measure_];
    const double width = std::floor(c.room());
    height -= 34;
    heads_.want(c.jobs, c.ui, answer, fmt::format("{} {} {}", width, height, measure.title),
                [answer, width, height, &measure](const Style& style) {
                  const Tensor& found = measure.of(answer->result.found);
                  std::vector<double> values;
                  for (const float v : found.values()) values.push_back(static_cast<double>(v));
                  Matrix m = head_matrix(static_cast<int>(found.dim(0)), static_cast<int>(found.dim(1)), values);
                  m.unit = said(measure.unit);
                  m.width = width, m.height = height;
                  return matrix_scene(m, style);
                });
    const SceneTouch touch = wide_scene(c, heads_, "importance");
    if (!heads_.scene()) return;
    const Tensor& found = measure.of(answer->result.found);
    if (const auto head = head_cells(c, *heads_.scene(), touch); head && head->layer < found.dim(0))
      tooltip(c.ui, {say("Layer {} Head {}: {:.4f}", head->layer, head->head, found.at(head->layer, head->head)),
                     said(measure.formula)});
  }

  void cells(const PageContext& c, const std::shared_ptr<const Reading>& answer, double height) {
    const HeadId head = chosen_head(c, *answer->source.trace);
    section(c.ui, say("HEAD {}.{}: ATTENTION × GRADIENT", head.layer, head.head),
            said("what the logit would lose without it"));
    const double width = std::floor(c.room());
    map_.want(c.jobs, c.ui, answer, fmt::format("{} {} {} {}", head.layer, head.head, width, height),
              [answer, head, width, height](const Style& style) {
                const Tensor values = nth(answer->result.found.weighted, head.layer).select(0, head.head);
                Matrix m = token_matrix(values, answer->source.trace, said("attention × gradient, logits"));
                m.diverging = true;
                m.width = width, m.height = height;
                m.largest_cell = std::clamp((height - 120) / static_cast<double>(values.dim(0)), 3.0, 34.0);
                return matrix_scene(m, style);
              });
    const SceneTouch touch = wide_scene(c, map_, "cells");
    const auto cell = matrix_cell(touch);
    const Tensor& weighted = nth(answer->result.found.weighted, head.layer);
    if (!cell || cell->row >= weighted.dim(1) || cell->column >= weighted.dim(2)) return;
    const AttentionMap& map = answer->source.trace->map(head);
    if (map.masked(cell->row, cell->column)) return;
    const float weight = map.weight(cell->row, cell->column);
    tooltip(c.ui, {fmt::format("{} ({}) → {} ({}): {}", token_label(*answer->source.trace, cell->row), cell->row,
                               token_label(*answer->source.trace, cell->column), cell->column,
                               signed_words(static_cast<double>(weighted.at(head.head, cell->row, cell->column)))),
                   say("attention {:.5f} · ∂logit/∂attention", weight),
                   say("blocks.{}.attn.hook_pattern[{}], F32, one backward pass", head.layer, head.head)});
    if (touch.clicked) c.editor.pin(cell->row, cell->column);
  }

  ReadingJob<Read> job_{*this, "read.saliency"};
  ReadingSlot row_{*this, "scene.saliency.tokens"}, heads_{*this, "scene.saliency.heads"},
      map_{*this, "scene.saliency.cells"};
  LogitFields logit_;
  int measure_ = 0;  // of heads: importance or reach
};

}  // namespace

std::unique_ptr<Page> make_saliency(JobRunner&) {
  return std::make_unique<SaliencyPage>();
}

}  // namespace headscope
