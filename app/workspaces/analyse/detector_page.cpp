// A head class of one's own: cells by a rule or painted on the map, and all heads ranked by their attention there.

#include "core/base/nth.h"
#include "core/metrics/detector.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "app/render/head_report.h"
#include "app/state/answer.h"
#include "app/widgets/controls.h"
#include "app/widgets/keyboard.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/analyse/parts.h"
#include "app/workspaces/head_cells.h"
#include "app/workspaces/scene_slot.h"
#include "core/base/error.h"
#include "core/base/words.h"
#include "viz/scene/head_map.h"
#include "viz/scene/map_cells.h"

namespace headscope {

namespace {

constexpr Index most_tokens = 4096;  // a rule is asked about every cell

/// One rule, or one painting, on one trace.
struct Cells {
  std::shared_ptr<const Trace> trace;
  std::string rule;                            ///< "" = painted
  std::shared_ptr<const CellPattern> painted;  ///< null: by the rule
  bool operator==(const Cells&) const = default;
};
/// What it found there.
struct Found {
  std::shared_ptr<const CellPattern> pattern;
  std::vector<Detection> heads;
};

class DetectorPage final : public Page {
 public:
  explicit DetectorPage(JobRunner&) {}

  void middle(const PageContext& c) override {
    if (!c.trace() || c.trace()->maps.empty())
      return empty_state(c.ui, said("There is no text yet"), said("Open a model and write a prompt in Explore."));
    search(c);
    const float room = ImGui::GetContentRegionAvail().x, gap = c.ui.px(20), height = ImGui::GetContentRegionAvail().y;
    const float list = std::clamp(room * 0.35f, std::min(c.ui.px(215), room / 2), c.ui.px(380));
    const float left = std::floor(std::min(room - gap - list, height + c.ui.px(60)));
    ImGui::BeginChild("cells", {left, height}, ImGuiChildFlags_NavFlattened);
    map(c);
    ImGui::EndChild();
    ImGui::SameLine(0, gap);
    ImGui::BeginChild("ranking", {room - left - gap, height}, ImGuiChildFlags_NavFlattened);
    ranking(c);
    ImGui::EndChild();
  }

  void controls(ControlsRecord& r) override {
    r.field("painting", painting_);
    std::string rule = r.reading() ? "" : rule_;
    if (r.reading() || !rule.empty()) r.field("rule", rule);
    if (r.reading() && !rule.empty()) taken_ = rule_ = rule;
  }
  void right(const PageContext& c) override {
    section(c.ui, said("WHICH CELLS"));
    static constexpr const char* ways[] = {to_say("by a rule"), to_say("painted")};
    int way = painting_ ? 1 : 0;
    if (segmented(c.ui, "cells by", ways, way, ImGui::GetContentRegionAvail().x)) {
      painting_ = way == 1;
      // What the rule had chosen is what one goes on painting.
      if (painting_ && found() && found_.last_key()->trace.get() == c.trace()) painted_ = found()->pattern;
    }
    painting_ ? paint_controls(c) : rule_controls(c);
    if (found()) {
      section(c.ui, said("FOUND"));
      const Index rows = found()->heads.empty() ? 0 : found()->heads.front().rows;
      fact(c.ui, said("Cells"), std::to_string(found()->pattern->count()), nullptr,
           {said("cells that match, of all queries × keys"), said("those a head may not see do not count for it")});
      fact(c.ui, said("Rows that count"), std::to_string(rows), nullptr,
           {said("query rows with at least one matching key that they may see")});
      note(c.ui, said("Score: mean over those rows of the attention on matching keys. Chance: the same for a head that "
                      "spreads its attention evenly over the keys it may see."));
    }
    selected_head(c);
  }

 private:
  const std::shared_ptr<const Found>& found() const { return found_.last(); }
  void clear(Index size) { painted_ = std::make_shared<const CellPattern>(no_cells(size)); }
  /// Remembered from one start to the next.
  static std::string& rule(const PageContext& c) { return c.app.settings.detector_rule; }

  void rule_controls(const PageContext& c) {
    std::string& rule = this->rule(c);
    {
      const UseFont font(c.ui, c.ui.token());
      ImGui::SetNextItemWidth(-1);
      if (input_line(c.ui, "##rule", "k == q - 1", rule)) error_.clear();
    }
    if (menu_button(c.ui, "Known classes", said("Known classes"), "", c.ui.px(26))) ImGui::OpenPopup("known classes");
    if (ImGui::BeginPopup("known classes")) {
      for (const DetectorPreset& preset : detector_presets())
        if (ImGui::MenuItem(fmt::format("{}###{}", said(preset.title), preset.title).c_str(), preset.rule.c_str(),
                            rule == preset.rule))
          rule = preset.rule, error_.clear();
      ImGui::EndPopup();
    }
    if (!error_.empty()) {
      // The place of the mistake, under a line of the same type.
      const UseFont font(c.ui, c.ui.token());
      std::string mark;
      std::size_t column = 0;
      for (std::size_t i = 0; i < std::min(error_at_, rule.size()); ++i)
        if ((static_cast<unsigned char>(rule[i]) & 0xC0) != 0x80) ++column;
      mark.assign(column, ' ');
      ImGui::TextUnformatted(rule.c_str());
      error_text(c.ui, mark + "^");
      const UseFont small(c.ui, c.ui.small());
      error_text(c.ui, error_);
    }
    const UseFont font(c.ui, c.ui.small());
    note(c.ui, said("q query, k key, n tokens, token[i]; + - * / %, abs(x); == != < <= > >=; and, or, not. Tokens "
                    "compare with tokens or with a text: token[k] == \"␣the\"."));
  }

  void paint_controls(const PageContext& c) {
    note(c.ui, said("Drag over the map: cells are switched on, or off where you begin on one that is on."));
    if (button(c.ui, to_say("Clear")) && c.trace()) clear(static_cast<Index>(c.trace()->tokens.size()));
  }

  /// Asks for the ranking whenever cells or trace changed.
  void search(const PageContext& c) {
    if (taken_) rule(c) = *std::exchange(taken_, std::nullopt);
    rule_ = rule(c);
    if (painting_) c.ui.pictures.passing = "cells that were painted";
    const auto trace = c.results().run->trace;
    const auto n = static_cast<Index>(trace->tokens.size());
    if (painting_ && painted_->size != n) clear(n);
    std::optional<CellRule> rule;
    try {
      if (n > most_tokens)
        throw Error("detector", fmt::format("a text of at most {} tokens", most_tokens), std::to_string(n),
                    "a rule is asked about every cell of the map");
      if (!painting_) rule.emplace(this->rule(c));
      error_.clear();
    } catch (const RuleError& mistyped) {
      error_ = mistyped.what();
      error_at_ = mistyped.begin;
      return;
    } catch (const Error& refused) {
      error_ = refused.what();
      error_at_ = 0;
      return;
    }
    const Cells cells{trace, painting_ ? "" : this->rule(c), painting_ ? painted_ : nullptr};
    found_.want(c.jobs, cells, [cells, rule](const Ctx& ctx) {
      Found found{cells.painted, {}};
      if (rule) found.pattern = std::make_shared<const CellPattern>(cells_of(*rule, cells.trace->tokens, ctx.stop));
      found.heads = detect_all(*cells.trace, *found.pattern, ctx.stop);
      return found;
    });
  }

  void map(const PageContext& c) {
    const HeadId head = c.state().document.selected;
    section(c.ui, say("LAYER {} HEAD {}", head.layer, head.head),
            painting_ ? said("drag to paint the cells") : said("framed: cells that match"));
    const double width = std::floor(c.room());
    const double height = std::floor(static_cast<double>(ImGui::GetContentRegionAvail().y / c.ui.scale) - 4);
    slot_.want(c.jobs, c.ui, c.results().run, fmt::format("{}.{} {} {}", head.layer, head.head, width, height),
               [run = c.results().run, head, width, height](const Style& style) {
                 HeadMapOptions options;
                 options.head = head;
                 options.room = {width, height};
                 options.bare = true;
                 options.values = false;
                 return head_map_scene(*run->trace, options, style);
               });
    const Scene* scene = slot_.scene();
    if (!scene) return;
    const SceneTouch touch = slot_.draw(c.ui, "detector map", {}, width, height);
    const Mark* mark = find(*scene, "map");
    if (!mark) return;
    const auto& heat = std::get<Heatmap>(mark->shape);
    const auto n = static_cast<Index>(c.trace()->tokens.size());
    const Index bin = std::max<Index>(1, (n + heat.rows() - 1) / heat.rows());
    const CellPattern& shown = painting_ || !found() ? *painted_ : *found()->pattern;
    if (shown.size == n) frames(c, heat, touch, shown, bin);
    if (painting_ && bin == 1) paint(heat, touch);
    if (touch.cell && touch.mark && touch.mark->id == "map" && bin == 1) {
      const AttentionMap* attention = c.results().map(head);
      if (attention && touch.cell->row < attention->n_query() && touch.cell->column < attention->n_key()) {
        const float weight = attention->weight(touch.cell->row, touch.cell->column);
        tooltip(c.ui,
                {fmt::format("{} → {}", token_label(*c.trace(), touch.cell->row),
                             token_label(*c.trace(), touch.cell->column)),
                 attention->masked(touch.cell->row, touch.cell->column) ? say("weight {:.4f}, masked", weight)
                                                                        : say("weight {:.4f}", weight),
                 shown.has(touch.cell->row, touch.cell->column) ? said("matches") : said("does not match"),
                 fmt::format("{}[{}, {}], F32", map_name(*c.trace(), head), touch.cell->row, touch.cell->column)});
      }
    }
  }

  /// Every chosen cell framed; where cells are small, filled runs of them.
  void frames(const PageContext& c, const Heatmap& heat, const SceneTouch& touch, const CellPattern& cells, Index bin) {
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    const Rect first = heat.cell(0, 0);
    const bool large = first.w * static_cast<double>(touch.pixels) > 7;
    constexpr int most = 20'000;  // more rectangles than can be told apart
    int drawn = 0;
    for (Index q = 0; q < cells.size; ++q) {
      const auto& keys = nth(cells.keys, q);
      for (std::size_t i = 0; i < keys.size() && drawn < most;) {
        std::size_t end = i + 1;
        while (!large && end < keys.size() && keys[end] == keys[end - 1] + 1) ++end;
        const Rect from = heat.cell(q / bin, keys[i] / bin), to = heat.cell(q / bin, keys[end - 1] / bin);
        const ImVec2 a = touch.window({from.x, from.y}),
                     b = touch.window({to.right() - heat.gap, to.bottom() - heat.gap});
        if (heat.is_masked(q / bin, keys[i] / bin))
          draw.AddRect(a, b, col(with_opacity(c.ui.theme.faint, 0.5)), 0, 0, 1);
        else if (large)
          draw.AddRect(a, b, col(c.ui.theme.accent), 0, 0, c.ui.px(1.5));
        else
          draw.AddRectFilled(a, {std::max(b.x, a.x + 1), std::max(b.y, a.y + 1)},
                             col(with_opacity(c.ui.theme.accent, 0.55)));
        ++drawn;
        i = end;
      }
    }
  }

  void paint(const Heatmap& heat, const SceneTouch& touch) {
    if (!ImGui::IsMouseDown(ImGuiMouseButton_Left)) {
      stroke_.reset();
      return;
    }
    const auto cell = cell_at(heat, touch.at);
    if (!cell || !(touch.hovered || stroke_)) return;
    if (!stroke_) {
      if (!ImGui::IsMouseClicked(ImGuiMouseButton_Left)) return;
      stroke_ = !painted_->has(cell->row, cell->column);
    }
    if (painted_->has(cell->row, cell->column) == *stroke_) return;
    CellPattern painted = *painted_;
    painted.set(cell->row, cell->column, *stroke_);
    painted_ = std::make_shared<const CellPattern>(std::move(painted));
  }

  void ranking(const PageContext& c) {
    section(c.ui, said("HEADS BY MATCH"), said("score, chance"));
    if (!found()) return;
    std::vector<std::size_t> order(found()->heads.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto score = [&](std::size_t i) {
      return std::isnan(found()->heads[i].score) ? -1 : found()->heads[i].score;
    };
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return score(a) > score(b); });
    if (order.empty() || score(order.front()) < 0)
      return empty_state(c.ui, said("No cell matches"), said("No head may see a matching cell on this text."));
    c.ui.pictures.add_table("heads by match", said("heads by match"), [found = found(), order] {
      Table out{said("heads by match"),
                {to_say("layer"), to_say("head"), to_say("score"), to_say("chance"), to_say("rows")},
                {}};
      for (const std::size_t i : order) {
        const Detection& d = found->heads[i];
        out.rows.push_back({std::to_string(d.id.layer), std::to_string(d.id.head), number_cell(d.score),
                            number_cell(d.chance), std::to_string(d.rows)});
      }
      return out;
    });
    const float height = c.ui.px(23 * c.ui.theme.text_scale), room = ImGui::GetContentRegionAvail().x;
    const double scale = std::max(1e-9, std::max(score(order.front()), found()->heads[order.front()].chance));
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    ImGuiListClipper clipper;
    clipper.Begin(static_cast<int>(order.size()), height);
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
    while (clipper.Step())
      for (int line = clipper.DisplayStart; line < clipper.DisplayEnd; ++line) {
        const Detection& d = found()->heads[nth(order, line)];
        const HeadId head = d.id;
        const ImVec2 at = ImGui::GetCursorScreenPos();
        const std::string name = to_string(d.id);
        if (pressable(("match " + name).c_str(), {room, height})) c.editor.select(head);
        const bool hovered = ImGui::IsItemHovered();
        if (head == c.state().document.selected || hovered)
          draw.AddRectFilled(at, {at.x + room, at.y + height},
                             col(head == c.state().document.selected ? c.ui.chrome.selected : c.ui.chrome.hovered),
                             c.ui.px(3));
        const float middle = at.y + height / 2, x0 = at.x + c.ui.px(46), x1 = at.x + room - c.ui.px(92);
        const float base = middle + static_cast<float>(0.36 * c.ui.number().size) * c.ui.scale;
        draw_text(c.ui, draw, {{0, 0}, name, c.ui.number(), c.ui.theme.text, Anchor::start, 0},
                  {at.x + c.ui.px(6), base});
        const auto place = [&](double v) { return x0 + static_cast<float>(v / scale) * std::max(x1 - x0, 4.f); };
        const bool told = std::isfinite(d.score);
        if (told)
          draw.AddRectFilled({x0, middle - c.ui.px(4)}, {std::max(place(d.score), x0 + 1), middle + c.ui.px(4)},
                             col(c.ui.theme.accent), c.ui.px(2));
        draw.AddRectFilled({place(d.chance) - 1, middle - c.ui.px(8)}, {place(d.chance) + 1, middle + c.ui.px(8)},
                           col(c.ui.theme.text));
        draw_text(c.ui, draw, {{0, 0}, number(d.score), c.ui.number(), c.ui.theme.text, Anchor::end, 0},
                  {at.x + room - c.ui.px(46), base});
        draw_text(c.ui, draw,
                  {{0, 0}, fmt::format("{:.3f}", d.chance), c.ui.number(), c.ui.theme.faint, Anchor::end, 0},
                  {at.x + room - c.ui.px(6), base});
        if (hovered)
          tooltip(
              c.ui,
              {say("Layer {} Head {}", d.id.layer, d.id.head),
               told ? say("score {:.4f}, chance {:.4f}: {:.1f} times chance", d.score, d.chance, d.score / d.chance)
                    : said("no score: the weights of this head are no probabilities"),
               say("mean over {} rows of the weight on matching keys", d.rows), map_name(*c.trace(), d.id) + ", F32"});
      }
    ImGui::PopStyleVar();
    clipper.End();
  }

  SceneSlot slot_{"scene.detector"};
  std::string error_;
  std::size_t error_at_ = 0;
  bool painting_ = false;
  std::string rule_;                  // the settings', as last seen …
  std::optional<std::string> taken_;  // … and one of a session, to be put there
  std::shared_ptr<const CellPattern> painted_ = std::make_shared<const CellPattern>();
  std::optional<bool> stroke_;  // while the button is down: cells are switched on, or off
  Answer<Cells, Found> found_{{"detector", to_say("looking for the rule")}, Holds::numbers};
};

}  // namespace

std::unique_ptr<Page> make_detector(JobRunner& jobs) {
  return std::make_unique<DetectorPage>(jobs);
}

}  // namespace headscope
