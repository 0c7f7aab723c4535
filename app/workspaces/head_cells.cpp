#include "app/workspaces/head_cells.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/widgets/controls.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "viz/scene/text.h"

namespace headscope {

std::optional<HeadId> head_cells(const PageContext& c, const Scene& scene, const SceneTouch& touch,
                                 const ModelDims* by_key, std::optional<HeadId> framed) {
  const Mark* mark = find(scene, "matrix");
  const auto* map = mark ? std::get_if<Heatmap>(&mark->shape) : nullptr;
  if (!map) return std::nullopt;
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const auto group = [&](Index row) {  // how many heads a cell stands for
    return by_key ? by_key->group(static_cast<int>(row)) : 1;
  };
  const auto run = c.trace();
  const ModelDims* own = by_key;  // of the model on screen, whose layers may have fewer heads than there are columns
  if (!own && run && run->model.dims.layers == map->rows() && run->model.dims.most_heads() == map->columns())
    own = &run->model.dims;
  const auto there = [&](Index row, Index column) {
    return !own || static_cast<int>(column) * group(row) < own->heads_of(static_cast<int>(row));
  };
  const auto corners = [&](Index row, Index column) {
    const Rect r = map->cell(row, column);
    return std::pair{touch.window({r.x - 1, r.y - 1}),
                     touch.window({r.right() - map->gap + 1, r.bottom() - map->gap + 1})};
  };
  if (c.ui.items)
    for (Index row = 0; row < map->rows(); ++row)
      for (Index column = 0; column < map->columns() && there(row, column); ++column) {
        const auto [from, to] = corners(row, column);
        c.ui.name(fmt::format("Layer {} Head {}", row, column * group(row)), from, to);
      }
  const HeadId selected = framed.value_or(c.state().document.selected);
  if (selected.layer < map->rows() && selected.head / group(selected.layer) < map->columns()) {
    const auto [from, to] = corners(selected.layer, selected.head / group(selected.layer));
    draw.AddRect(from, to, col(c.ui.theme.text), 0, 0, c.ui.px(2));
  }
  if (!touch.mark || touch.mark->id != "matrix" || !touch.cell) return std::nullopt;
  if (!there(touch.cell->row, touch.cell->column)) return std::nullopt;
  const HeadId head{static_cast<int>(touch.cell->row), static_cast<int>(touch.cell->column) * group(touch.cell->row)};
  const auto [from, to] = corners(touch.cell->row, touch.cell->column);
  if (head != selected) draw.AddRect(from, to, col(c.ui.theme.accent), 0, 0, c.ui.px(1.5));
  if (touch.double_clicked)
    show_in_explore(c, head);
  else if (touch.clicked)
    c.editor.select(head);
  return head;
}

std::string_view stack_word(Stack stack) {
  return said(stack == Stack::encoder ? to_say("encoder")
              : stack == Stack::cross ? to_say("cross-attention")
                                      : to_say("decoder"));
}

std::optional<Stack> stack_choice(const Ui& ui, Stack now) {
  static constexpr const char* labels[] = {to_say("Encoder"), to_say("Decoder"), to_say("Cross")};
  static constexpr Stack stacks[] = {Stack::encoder, Stack::decoder, Stack::cross};
  static constexpr const char* says[] = {to_say("the source looks at itself"),
                                         to_say("the target looks back at itself"),
                                         to_say("the target looks at the source")};
  int chosen = now == Stack::encoder ? 0 : now == Stack::cross ? 2 : 1;
  section(ui, said("STACK"), said(says[chosen]));
  return segmented(ui, "stack", labels, chosen) ? std::optional(nth(stacks, chosen)) : std::nullopt;
}

void stack_bar(const PageContext& c) {
  if (!c.results().translates()) return;
  if (const auto chosen = stack_choice(c.ui, c.state().document.stack)) c.editor.look_at(*chosen);
}

void selected_head(const PageContext& c) {
  const HeadId head = c.state().document.selected;
  section(c.ui, said("SELECTED HEAD"),
          c.results().translates()
              ? say("{} layer {} head {}", stack_word(c.state().document.stack), head.layer, head.head)
              : say("layer {} head {}", head.layer, head.head));
  if (const auto& facts = c.results().facts; facts && facts->row(head) >= 0)
    for (const HeadVerdict& verdict : facts->told(facts->row(head))) {
      const std::string title = said(verdict.rule->title), chance = fmt::format("{:.2f}", verdict.chance);
      fact(c.ui, verdict.weak ? say("weak: {}", title) : title, fmt::format("{:.2f}", verdict.score), nullptr,
           {title, said("its score on this text, and what a head that spreads its weight evenly would score"),
            beside_chance(verdict)},
           &chance);
    }
  if (button(c.ui, to_say("Open in Explore"))) show_in_explore(c, head);
}

void show_in_explore(const PageContext& c, HeadId head) {
  c.editor.select(head);
  c.app.ui.workspace = workspace_index("Explore");
}

Color class_color(const ClassRule& rule) {
  return parse_color(rule.color).value_or(rgb(0x8E939C));
}

std::vector<HeadMark> head_marks(const HeadFacts* facts) {
  std::vector<HeadMark> marks;
  if (!facts) return marks;
  for (std::size_t i = 0; i < facts->verdicts.size(); ++i)
    if (!facts->verdicts[i].empty()) {
      const AttentionMap& map = facts->trace->maps[i];
      const ClassRule& rule = *facts->verdicts[i].front().rule;
      marks.push_back({map.id(), said(rule.title), class_color(rule)});
    }
  return marks;
}

}  // namespace headscope
