#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/base/nth.h"

#include "app/widgets/controls.h"
#include "app/workspaces/atlas_panel.h"
#include "app/workspaces/head_cells.h"
#include "app/workspaces/shown_run.h"
#include "core/base/words.h"
#include "viz/scene/head_atlas.h"

namespace headscope {

namespace {

std::size_t column_of(std::string_view metric_id) {
  const auto all = metrics();
  return static_cast<std::size_t>(std::ranges::find(all, metric_id, &Metric::id) - all.begin());
}

/// Indices of the heads to show, in order; empty = all, layer by layer.
std::vector<int> order_of(const AtlasView& view, const HeadFacts* facts) {
  if (!facts || (view.sort.empty() && view.only_class.empty())) return {};
  std::vector<int> order(facts->table.value.size());
  std::iota(order.begin(), order.end(), 0);
  if (!view.only_class.empty())
    std::erase_if(order, [&](int i) {
      const auto& verdicts = nth(facts->verdicts, i);
      return verdicts.empty() || verdicts.front().rule->id != view.only_class;
    });
  if (const std::size_t column = column_of(view.sort); column < metrics().size()) {
    const auto value = [&](int i) {
      const double v = nth(facts->table.value, i)[column];
      return std::isnan(v) ? -1e300 : view.ascending ? -v : v;
    };
    std::ranges::stable_sort(order, [&](int a, int b) { return value(a) > value(b); });
  }
  return order;
}

void sort_menu(const PageContext& c, AtlasView& view) {
  const std::size_t column = column_of(view.sort);
  const bool by_metric = !view.sort.empty() && column < metrics().size();
  const std::string shown(by_metric ? said_view(metrics()[column].title) : said_view(to_say("by layer")));
  if (menu_button(c.ui, "Sort heads", shown, "", c.ui.px(24))) ImGui::OpenPopup("sort heads");
  if (ImGui::BeginPopup("sort heads")) {
    if (menu_item(c.ui, to_say("by layer"), nullptr, view.sort.empty())) view.sort.clear();
    ImGui::Separator();
    for (const Metric& metric : metrics()) {
      const std::string title(metric.title), id(metric.id);
      if (menu_item(c.ui, title.c_str(), nullptr, view.sort == id)) {
        view.ascending = view.sort == id && !view.ascending;
        view.sort = id;
      }
    }
    ImGui::EndPopup();
  }
  const std::string only = view.only_class.empty() ? said("every class") : view.only_class;
  beside(c.ui, c.ui.px(c.ui.fonts.width(only, c.ui.body()) + 44));
  if (menu_button(c.ui, "Filter heads", only, "", c.ui.px(24))) ImGui::OpenPopup("filter heads");
  if (ImGui::BeginPopup("filter heads")) {
    if (menu_item(c.ui, to_say("every class"), nullptr, view.only_class.empty())) view.only_class.clear();
    ImGui::Separator();
    for (const ClassRule& rule : default_class_rules())
      if (menu_item(c.ui, rule.title.c_str(), nullptr, view.only_class == rule.id)) view.only_class = rule.id;
    ImGui::EndPopup();
  }
}

}  // namespace

void AtlasPanel::draw(const PageContext& c) {
  AtlasView& view = c.editor.view().atlas;
  section(c.ui, said("HEAD ATLAS"), said("layer ↓ head →"));
  static constexpr const char* labels[] = {to_say("Map"), to_say("Entropy"), to_say("Sink"), to_say("Class"),
                                           to_say("Effect")};
  static constexpr std::string_view ids[] = {"map", "entropy_normalized", "sink", "class", "effect"};
  int chosen = static_cast<int>(std::ranges::find(ids, view.coloring) - std::begin(ids));
  const float wanted = segmented_width(c.ui, labels), room = ImGui::GetContentRegionAvail().x;
  if (0.88f * wanted <= room) {
    if (segmented(c.ui, "atlas coloring", labels, chosen, std::min(wanted, room))) view.coloring = ids[chosen];
  } else {  // large type in a narrow column: the same choice as a menu
    const bool known = chosen < static_cast<int>(std::size(labels));
    if (menu_button(c.ui, "Color heads by", said(known ? labels[chosen] : to_say("Map")), "", c.ui.px(24)))
      ImGui::OpenPopup("color heads");
    if (ImGui::BeginPopup("color heads")) {
      for (std::size_t i = 0; i < std::size(labels); ++i)
        if (menu_item(c.ui, labels[i], nullptr, ids[i] == view.coloring)) view.coloring = ids[i];
      ImGui::EndPopup();
    }
  }
  sort_menu(c, view);

  const Trace* trace = c.trace();
  if (!trace || trace->maps.empty()) return;
  const HeadFacts* facts = c.facts();
  HeadAtlasOptions options;
  options.width = std::floor(c.room());
  options.classes = head_marks(facts);
  options.order = order_of(view, facts);
  const std::vector<Intervention> edits = c.edits();
  for (const AttentionMap& map : trace->maps)
    if (!taken_out(edits, map.id()).empty()) options.taken_out.push_back(map.id());
  const std::size_t column = column_of(view.coloring);
  const EditEffect* effect = compared(c);
  if (view.coloring == "effect" && effect) {
    options.values = effect->moved;
    options.values_title = said("weight that moved");
    options.values_high = std::max(0.01, *std::ranges::max_element(effect->moved));
  } else if (view.coloring == "class" && facts) {
    for (const auto& verdicts : facts->verdicts)
      options.values.push_back(verdicts.empty() ? std::numeric_limits<double>::quiet_NaN() : verdicts.front().score);
    options.values_title = said("score of the class");
  }
  if (facts && column < metrics().size()) {
    const Metric& metric = metrics()[column];
    for (const auto& row : facts->table.value) options.values.push_back(row[column]);
    options.values_title = said_view(metric.title);
    double low = 0, high = 0;  // of the heads that have a number
    for (const double value : options.values)
      if (std::isfinite(value)) low = std::min(low, value), high = std::max(high, value);
    options.values_low = std::isfinite(metric.low) ? metric.low : low;
    options.values_high = std::isfinite(metric.high) ? metric.high : high;
  }
  const bool words = c.words() && maps_in_reach(*trace);
  std::string key = fmt::format("{} {} {} {}", options.width, view.coloring, facts ? 1 : 0, words);
  for (const int i : options.order) key += fmt::format(",{}", i);
  for (const HeadId head : options.taken_out) key += " -" + to_string(head);
  if (view.coloring == "effect")
    for (const double moved : options.values) key += fmt::format(";{}", moved);
  if (view.only_class.empty() || !options.order.empty())
    slot_.want(c.jobs, c.ui, c.results().run->trace, key, [run = c.results().run, options, words](const Style& style) {
      if (words && options.values.empty()) return head_atlas_scene(in_words(*run->trace, run->words), options, style);
      return head_atlas_scene(*run->trace, options, style);
    });
  else
    return section(c.ui, "", said("no head of this text belongs to the class"));

  const Scene* scene = slot_.scene();
  if (!scene) return;
  SceneViewOptions how;
  how.fit_height = false;
  const SceneTouch touch = slot_.draw(c.ui, "atlas", how, options.width, scene->height);
  if (const auto* head = meaning<HeadId>(touch.mark)) {
    c.hovered.head = *head;
    if (touch.clicked) c.editor.select(*head);
  }
  // Selection and hover are painted over the picture, so that they cost no new one.
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  for (const Mark& mark : scene->marks) {
    const auto* head = meaning<HeadId>(&mark);
    if (!head) continue;
    const Rect rect = std::holds_alternative<Heatmap>(mark.shape) ? std::get<Heatmap>(mark.shape).rect
                                                                  : std::get<Box>(mark.shape).rect;
    const ImVec2 from = touch.window({rect.x - 1, rect.y - 1}),
                 to = touch.window({rect.right() + 1, rect.bottom() + 1});
    c.ui.name(fmt::format("Layer {} Head {}", head->layer, head->head), from, to);
    if (*head == c.state().document.selected)
      draw.AddRect(from, to, col(c.ui.theme.text), 0, 0, c.ui.px(2));
    else if (c.state().hover.head == *head)
      draw.AddRect(from, to, col(c.ui.theme.accent), 0, 0, c.ui.px(1.5));
  }
}

}  // namespace headscope
