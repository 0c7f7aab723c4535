#include "app/workspaces/compare/compare_workspace.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "app/assets.h"
#include "app/widgets/controls.h"
#include "app/widgets/keyboard.h"
#include "app/widgets/plots.h"
#include "app/workspaces/head_cells.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/edits/edit.h"
#include "viz/scene/head_atlas.h"
#include "viz/scene/head_pair.h"
#include "viz/scene/map_cells.h"
#include "viz/scene/text.h"
#include "viz/scene/token_pairs.h"

namespace headscope {

namespace {

using With = CompareController::With;
constexpr const char* way_ids[] = {"edits", "text", "model", "training"};
constexpr const char* bundled[] = {"everyday-gpt2", "tiny-gpt2",  "tiny-llama",   "tiny-bert", "tiny-translate",
                                   "tiny-mixtral",  "tiny-mamba", "induction-2l", "sink-2l",   "induction"};

std::string describe_side(const ComparedSide& side) {
  return say("{} · {} tokens", side.run->model.name, side.run->tokens.size());
}

}  // namespace

CompareWorkspace::CompareWorkspace(CompareController& controller) : Workspace("Compare"), controller_(controller) {
  pages_ = {{to_say("Side by side"),
             {{"edits", to_say("Before and after the edits"), "difference of heads, total variation, Jensen-Shannon"},
              {"text", to_say("Two texts"), "token alignment, difference maps"},
              {"model", to_say("Two models"), "the same text, difference of heads"},
              {"training", to_say("Two moments of a training run"), "checkpoints"}}}};
}

const Comparison* CompareWorkspace::shown() const {
  return controller_.missing().empty() ? controller_.result().get() : nullptr;
}

void CompareWorkspace::each_frame() {
  controller_.frame(std::exchange(drawn_, false));
  hover_ = std::exchange(hovered_, {});
  if (shown() != seen_) {
    seen_ = shown();
    pinned_ = hover_ = {};
    picked_a_ = picked_b_ = -1;
    part_.reset();
  }
}

CompareWorkspace::Place CompareWorkspace::linked(Place place) const {
  const Comparison* c = shown();
  if (!c) return {};
  // The picture under the pointer may be that of a moment ago, of longer texts.
  const auto there = [](int& position, const ComparedSide& side) {
    if (position >= static_cast<int>(side.trace->tokens.size())) position = -1;
  };
  there(place.query_a, c->a), there(place.key_a, c->a), there(place.query_b, c->b), there(place.key_b, c->b);
  const auto to_b = [&](int a) { return a >= 0 && a < static_cast<int>(c->partner.size()) ? nth(c->partner, a) : -1; };
  const auto to_a = [&](int b) {
    const auto found = std::ranges::find(c->partner, b);
    return b >= 0 && found != c->partner.end() ? static_cast<int>(found - c->partner.begin()) : -1;
  };
  if (place.query_b < 0) place.query_b = to_b(place.query_a);
  if (place.key_b < 0) place.key_b = to_b(place.key_a);
  if (place.query_a < 0) place.query_a = to_a(place.query_b);
  if (place.key_a < 0) place.key_a = to_a(place.key_b);
  return place;
}

// ---- left

void CompareWorkspace::follow(const PageContext& c) {
  drawn_ = true;
  if (const auto page = c.app.settings.pages.find(id()); page != c.app.settings.pages.end() && page->second != page_) {
    page_ = page->second;
    const auto id = std::ranges::find(way_ids, page_);
    if (id != std::end(way_ids)) controller_.set_with(static_cast<With>(id - std::begin(way_ids)));
  }
}

void CompareWorkspace::left(const PageContext& c) {
  follow(c);
  sides(c.ui, c.app);
  if (!shown()) return;
  atlas(c.ui, c.app);
  ranking(c.ui, c.app);
}

void CompareWorkspace::sides(Ui& ui, AppContext& app) {
  section(ui, said("COMPARE"), said("the open prompt with …"));
  static constexpr const char* ways[] = {to_say("Edits"), to_say("Text B"), to_say("Model B"), to_say("Training")};
  int way = static_cast<int>(controller_.with());
  if (segmented(ui, "compare with", ways, way)) {
    controller_.set_with(static_cast<With>(way));
    app.settings.pages[id()] = page_ = way_ids[way];
  }
  ImGui::Dummy({0, ui.px(2)});
  switch (controller_.with()) {
    case With::edits:
      for (const Intervention& edit : app.explorer.state().document.edits)
        if (edit.enabled) fact(ui, describe(edit), "", nullptr, {std::string(form_of(edit.action).meaning)});
      break;
    case With::text: {
      const auto& run = app.explorer.results().run;
      const PromptTouch touch = edit_.draw(
          ui, "##second text", controller_.text(), {}, ImGui::GetIO().DisplaySize.y / ui.scale < 800 ? 3 : 6,
          controller_.reads_ids() ? said("Token ids of the second text …") : said("Write the second text …"));
      if (touch.changed) controller_.text() = edit_.text();
      if (run && controller_.text().empty() && button(ui, to_say("Begin with a copy of the prompt"))) {
        const Document& document = app.explorer.state().document;
        controller_.text() = !controller_.reads_ids()      ? run->trace->text
                             : document.source_ids.empty() ? token_ids_text(document.ids)
                                                           : token_ids_text(document.source_ids);
      }
      break;
    }
    case With::model: {
      const std::string name =
          controller_.model().empty() ? said("Choose a model") : controller_.model().filename().string();
      if (menu_button(ui, "Second model", name, "")) ImGui::OpenPopup("second model");
      if (ImGui::BeginPopup("second model")) {
        for (const char* each : bundled)
          if (const auto folder = find_bundled_model(each);
              folder && ImGui::MenuItem(each, nullptr, controller_.model() == *folder))
            controller_.set_model(*folder);
        const auto& recent = app.settings.recent_models;
        if (!recent.empty()) ImGui::Separator();
        for (const auto& folder : recent)
          if (ImGui::MenuItem(folder.filename().string().c_str(), nullptr, controller_.model() == folder))
            controller_.set_model(folder);
        ImGui::EndPopup();
      }
      break;
    }
    case With::training: {
      const std::size_t count = controller_.moment_count();
      if (count < 2) break;
      auto& [a, b] = controller_.moments();
      const auto moment = [&](const char* label, const char* id, std::size_t& index) {
        int at = static_cast<int>(std::min(index, count - 1));
        ImGui::AlignTextToFramePadding();
        text_line(ui, said(label));
        ImGui::SameLine(ui.px(64));
        ImGui::SetNextItemWidth(ImGui::GetContentRegionAvail().x);
        const std::string shown = say("step {}", controller_.moment_step(static_cast<std::size_t>(at)));
        if (ImGui::SliderInt(id, &at, 0, static_cast<int>(count) - 1, shown.c_str()))
          index = static_cast<std::size_t>(at);
      };
      moment(to_say("Before"), "##moment a", a);
      moment(to_say("After"), "##moment b", b);
      break;
    }
  }
  if (const Comparison* c = shown()) {
    ImGui::Dummy({0, ui.px(2)});
    fact(ui, c->a.name, describe_side(c->a), &ui.theme.muted, {c->a.trace->source, printable(c->a.trace->text, 400)});
    fact(ui, c->b.name, describe_side(c->b), &ui.theme.muted, {c->b.trace->source, printable(c->b.trace->text, 400)});
  }
}

void CompareWorkspace::atlas(Ui& ui, AppContext& app) {
  const auto result = controller_.result();
  section(ui, said("HEADS BY DIFFERENCE"), said("layer ↓ head → · mean total variation"));
  HeadAtlasOptions options;
  options.width = std::floor(static_cast<double>(ImGui::GetContentRegionAvail().x / ui.scale));
  options.largest_thumb = 44;
  options.values_title = said("mean total variation");
  options.values_high = 0;
  options.quiet_missing = true;  // heads that only one of the models has
  for (const AttentionMap& map : result->a.trace->maps) {
    const HeadDifference* d = result->difference({map.layer(), map.head()});
    options.values.push_back(d ? d->total_variation : std::nan(""));
    if (d && !std::isnan(d->total_variation)) options.values_high = std::max(options.values_high, d->total_variation);
  }
  if (options.values.empty()) return;
  options.values_high = std::max(options.values_high, 1e-6);
  atlas_.want(app.explorer.jobs, ui, result, fmt::format("{}", options.width),
              [result, options](const Style& style) { return head_atlas_scene(*result->a.trace, options, style); });
  const Scene* scene = atlas_.scene();
  if (!scene) return;
  SceneViewOptions how;
  how.fit_height = false;
  const SceneTouch touch = atlas_.draw(ui, "compare atlas", how, options.width, scene->height);
  if (const auto* head = meaning<HeadId>(touch.mark); head && touch.clicked) app.explorer.editor.select(*head);
  if (const Mark* mark = mark_of(*scene, app.explorer.state().document.selected)) {
    const Rect rect = std::get<Box>(mark->shape).rect;
    ImGui::GetWindowDrawList()->AddRect(touch.window({rect.x - 1, rect.y - 1}),
                                        touch.window({rect.right() + 1, rect.bottom() + 1}), col(ui.theme.text), 0, 0,
                                        ui.px(2));
  }
}

void CompareWorkspace::ranking(Ui& ui, AppContext& app) {
  const Comparison& c = *shown();
  section(ui, said("RANKED"),
          say("0 = the same … {:.3f} the largest here", c.ranked.empty() ? 0.0 : c.heads[c.ranked[0]].total_variation));
  const double largest = c.ranked.empty() ? 1 : std::max(c.heads[c.ranked[0]].total_variation, 1e-9);
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const float width = ImGui::GetContentRegionAvail().x, height = ui.px(22);
  for (std::size_t rank = 0; rank < c.ranked.size(); ++rank) {
    const HeadDifference& d = c.heads[c.ranked[rank]];
    const HeadId head = d.id;
    const ImVec2 at = ImGui::GetCursorScreenPos(), end{at.x + width, at.y + height};
    if (pressable(fmt::format("difference rank {}", rank + 1).c_str(), {width, height}))
      app.explorer.editor.select(head);
    if (!ImGui::IsItemVisible()) continue;
    const bool hovered = ImGui::IsItemHovered(), chosen = head == app.explorer.state().document.selected;
    if (hovered || chosen) draw.AddRectFilled(at, end, col(chosen ? ui.chrome.selected : ui.chrome.hovered), ui.px(4));
    const auto text = [&](float x, const std::string& words, const Font& font, Color color, Anchor anchor) {
      draw_text(ui, draw, {{0, 0}, words, font, color, anchor, 0}, {x, at.y + ui.px(15)});
    };
    text(at.x + ui.px(6), fmt::format("L{} H{}", d.id.layer, d.id.head), ui.number(), ui.theme.text, Anchor::start);
    const float x0 = at.x + ui.px(64), x1 = end.x - ui.px(58);
    const double share = std::isnan(d.total_variation) ? 0 : d.total_variation / largest;
    draw.AddRectFilled({x0, at.y + ui.px(7)},
                       {x0 + std::max(1.0f, (x1 - x0) * static_cast<float>(share)), at.y + ui.px(15)},
                       col(ui.theme.accent), ui.px(2));
    text(end.x - ui.px(6), std::isnan(d.total_variation) ? "–" : fmt::format("{:.3f}", d.total_variation), ui.number(),
         ui.theme.text, Anchor::end);
    if (hovered)
      tooltip(
          ui,
          {say("Layer {} Head {}", d.id.layer, d.id.head),
           say("total variation {:.4f}: ½ Σ |a − b| of a row, mean over {} paired queries", d.total_variation, d.rows),
           std::isnan(d.jensen_shannon) ? said("no Jensen–Shannon divergence: weights are negative, or none are paired")
                                        : say("Jensen–Shannon divergence {:.4f} nats, at most ln 2", d.jensen_shannon),
           say("{} of both", map_name(*c.a.trace, d.id))});
  }
}

// ---- middle

void CompareWorkspace::middle(const PageContext& c) {
  follow(c);
  if (const std::string missing = controller_.missing(); !missing.empty())
    return empty_state(c.ui, said("Two runs, side by side"), said(missing));
  if (!controller_.result()) {
    const std::string why = controller_.failure();
    if (!why.empty()) controller_.told_failure();  // here, and no longer as the message
    return why.empty() ? empty_state(c.ui, said("Running both sides …"), "")
                       : empty_state(c.ui, said("One of the two does not run"), why);
  }
  if (controller_.with() == CompareController::With::training) c.ui.pictures.passing = "two moments of a training";
  if (controller_.pairs_changed()) c.ui.pictures.passing = "tokens that were paired by hand";
  const HeadId head = c.state().document.selected;
  {
    const UseFont font(c.ui, c.ui.heading());
    ImGui::AlignTextToFramePadding();
    text_line(c.ui, head_title(head));
  }
  if (const HeadDifference* d = shown()->difference(head)) {
    ImGui::SameLine(0, c.ui.px(12));
    const float y = ImGui::GetCursorPosY() + c.ui.px(5);  // the title's line is higher than the labels
    ImGui::SetCursorPosY(y);
    badge(c.ui, say("total variation {:.3f}", d->total_variation), c.ui.theme.accent);
    if (!std::isnan(d->jensen_shannon)) {  // of signed weights there is none
      ImGui::SameLine(0, c.ui.px(6));
      ImGui::SetCursorPosY(y);
      badge(c.ui, say("Jensen–Shannon {:.3f} nats", d->jensen_shannon), c.ui.theme.muted);
    }
  }
  const float room = ImGui::GetContentRegionAvail().y;
  tokens(c.ui, c.app, std::clamp(0.24f * room, c.ui.px(96), c.ui.px(230)));
  maps(c.ui, c.app);
}

void CompareWorkspace::tokens(Ui& ui, AppContext& app, float height) {
  const auto result = controller_.result();
  const auto pairs = std::ranges::count_if(result->partner, [](int p) { return p >= 0; });
  const float top = ImGui::GetCursorPosY();
  section(ui, result->unit == TextUnit::words ? said("WORDS") : said("TOKENS"),
          picked_a_ >= 0 || picked_b_ >= 0
              ? said("now click its partner in the other text")
              : say("{} of {} and {} paired · click one above and one below to pair or part them", pairs,
                    result->a.trace->tokens.size(), result->b.trace->tokens.size()));
  if (controller_.pairs_changed()) {
    const float after = ImGui::GetCursorPosY(), width = button_width(ui, "Reset pairs");
    ImGui::SetCursorPos({ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x - width, top - ui.px(3)});
    if (button(ui, to_say("Reset pairs"), ui.px(24))) controller_.reset_pairs();
    ImGui::SetCursorPosY(after);
  }
  ImGui::PushStyleColor(ImGuiCol_ChildBg, vec(ui.theme.background));
  if (ImGui::BeginChild("token pairs", {0, height}, ImGuiChildFlags_AutoResizeY | ImGuiChildFlags_NavFlattened)) {
    TokenPairsOptions options;
    options.name_a = result->a.name.text();
    options.name_b = result->b.name;
    options.width = std::floor(static_cast<double>(ImGui::GetContentRegionAvail().x / ui.scale)) - 2;
    tokens_.want(app.explorer.jobs, ui, result, fmt::format("{}", options.width),
                 [result, options](const Style& style) {
                   TokenPairsOptions all = options;
                   all.partner = result->partner;
                   return token_pairs_scene(*result->a.trace, *result->b.trace, all, style);
                 });
    if (const Scene* scene = tokens_.scene()) {
      SceneViewOptions how;
      how.fit_height = false;
      const SceneTouch touch = tokens_.draw(ui, "pairs", how, options.width, scene->height);
      if (const auto* token = meaning<TokenAt>(touch.mark)) {
        const auto at = static_cast<int>(token->position);
        hovered_ = token->text == 0 ? Place{at, at, -1, -1} : Place{-1, -1, at, at};
        int& mine = token->text == 0 ? picked_a_ : picked_b_;
        if (touch.clicked) mine = mine == at ? -1 : at;
        if (picked_a_ >= 0 && picked_b_ >= 0) {
          controller_.pair(picked_a_, picked_b_);
          picked_a_ = picked_b_ = -1;
        }
      }
      ImDrawList& draw = *ImGui::GetWindowDrawList();
      const Place here = linked(place());
      const auto frame = [&](int text, int index, Color color) {
        const Mark* mark = mark_of(*scene, TokenAt{index, text});
        if (!mark) return;
        const Rect& r = std::get<Box>(mark->shape).rect;
        draw.AddRect(touch.window({r.x - 1, r.y - 1}), touch.window({r.right() + 1, r.bottom() + 1}), col(color),
                     ui.px(4), 0, ui.px(2));
      };
      frame(0, here.key_a, ui.theme.key);
      frame(1, here.key_b, ui.theme.key);
      frame(0, here.query_a, ui.theme.query);
      frame(1, here.query_b, ui.theme.query);
      frame(0, picked_a_, ui.theme.accent);
      frame(1, picked_b_, ui.theme.accent);
    }
  }
  ImGui::EndChild();
  ImGui::PopStyleColor();
}

MapRegion CompareWorkspace::beside(const MapRegion& of_a, const Comparison& c) {
  const auto n = static_cast<Index>(c.b.trace->tokens.size());
  const auto along = [&](Index first, Index count) {
    Index low = n, high = -1;
    for (Index i = first; i < first + count && i < static_cast<Index>(c.partner.size()); ++i)
      if (const Index partner = nth(c.partner, i); partner >= 0)
        low = std::min(low, partner), high = std::max(high, partner);
    if (high < 0) low = high = first;
    count = std::min(count, n);
    return std::pair(std::clamp<Index>((low + high + 1 - count) / 2, 0, n - count), count);
  };
  const auto [query, n_query] = along(of_a.query, of_a.n_query);
  const auto [key, n_key] = along(of_a.key, of_a.n_key);
  return {query, n_query, key, n_key};
}

void CompareWorkspace::maps(Ui& ui, AppContext& app) {
  const auto result = controller_.result();
  const HeadId head = app.explorer.state().document.selected;
  const int row_a = result->a.row(head), row_b = result->b.row(head);
  if (row_a < 0 || row_b < 0)
    return empty_state(ui, say("Only one of the two has layer {} head {}", head.layer, head.head),
                       said("Choose a head on the left that both have."));
  reading(ui, app);
  const double width = std::floor(static_cast<double>(ImGui::GetContentRegionAvail().x / ui.scale));
  const double room = std::floor(static_cast<double>(ImGui::GetContentRegionAvail().y / ui.scale)) - 4;
  HeadPairOptions options;
  options.head = head;
  options.name_a = result->a.name;
  options.name_b = result->b.name;
  options.scaling.scale = app.explorer.state().view.scale == Scale::log ? Scale::log : Scale::linear;
  // What three maps side by side leave below them shows one row of both.
  const bool same =
      std::ranges::equal(result->a.trace->tokens, result->b.trace->tokens, {}, &Token::label, &Token::label);
  double row_height = std::clamp(room - (width - (same ? 140 : 290)) / 3 - 150, 0.0, 210.0);
  if (row_height < 90) row_height = 0;
  const double height = room - row_height;
  options.room = {width, height};
  options.bare = true;
  const AttentionMap &map_a = nth(result->a.trace->maps, row_a), &map_b = nth(result->b.trace->maps, row_b);
  if (std::exchange(app.ui.reset_zoom, false)) part_.reset();
  part_.of(map_a.n_query(), map_a.n_key());
  options.region_a = part_.region();
  if (options.region_a) options.region_b = beside(*options.region_a, *result);
  std::string wanted = fmt::format("{}.{} {} {} {}", head.layer, head.head, width, height, name(options.scaling.scale));
  if (const auto& part = options.region_a)
    wanted += fmt::format(" {} {} {} {}", part->query, part->n_query, part->key, part->n_key);
  maps_.want(app.explorer.jobs, ui, result, wanted, [result, options](const Style& style) {
    HeadPairOptions all = options;
    all.partner = result->partner;
    return head_pair_scene(*result->a.trace, *result->b.trace, all, style);
  });
  const Scene* scene = maps_.scene();
  if (!scene) return;
  const SceneTouch touch = maps_.draw(ui, "pair", MapPart::view(), width, height);
  if (!part_.whole()) ui.pictures.pass("pair", MapPart::in_words);
  const Place here = linked(place());
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  ImGui::PushClipRect(ImGui::GetItemRectMin(), ImGui::GetItemRectMax(), true);
  for (const char* id : {"map.a", "map.b", "map.difference"}) {
    const Mark* mark = find(*scene, id);
    if (!mark) continue;
    const auto& heat = std::get<Heatmap>(mark->shape);
    const bool of_b = std::string_view(id) == "map.b";
    const AttentionMap& map = of_b ? map_b : map_a;
    const Index offset = map.place().offset;
    const int query = of_b ? here.query_b : here.query_a, key = of_b ? here.key_b : here.key_a;
    const auto row = query < 0 ? std::nullopt : heat.row_of(offset + query);
    const auto column = key < 0 ? std::nullopt : heat.column_of(key);
    const auto frame = [&](const Rect& r, Color color, double thick) {
      draw.AddRect(touch.window({r.x, r.y}), touch.window({r.right(), r.bottom()}), col(color), 0, 0, ui.px(thick));
    };
    if (column) {
      const Rect cell = heat.cell(0, *column);
      frame({cell.x, heat.rect.y, cell.w, heat.rect.h}, with_opacity(ui.theme.key, 0.6), 1);
    }
    if (row) {
      const Rect cell = heat.cell(*row, 0);
      frame({heat.rect.x, cell.y, heat.rect.w, cell.h}, with_opacity(ui.theme.query, 0.8), 1);
    }
    if (touch.mark == mark && touch.cell) {
      const int q = static_cast<int>(heat.first_row - offset + touch.cell->row * heat.row_bin),
                k = static_cast<int>(heat.first_column + touch.cell->column * heat.column_bin);
      hovered_ = of_b ? Place{-1, -1, q, k} : Place{q, k, -1, -1};
      if (touch.clicked) pinned_ = pinned_ == hovered_ ? Place{} : hovered_;
    }
    if (touch.mark == mark && part_.follow(touch, heat.rect, true)) *ui.animate = true;
  }
  ImGui::PopClipRect();
  if (row_height > 0) row(ui, app, row_height);
}

void CompareWorkspace::reading(Ui& ui, AppContext& app) {
  const Comparison& c = *shown();
  const HeadId head = app.explorer.state().document.selected;
  const Place here = linked(place());
  static constexpr const char* scales[] = {to_say("linear"), to_say("log")};
  int scale = app.explorer.state().view.scale == Scale::log ? 1 : 0;
  ImGui::Dummy({0, ui.px(2)});
  if (segmented(ui, "compare scale", scales, scale))
    app.explorer.editor.view().scale = scale == 1 ? Scale::log : Scale::linear;
  ImGui::SameLine(0, ui.px(10));
  static constexpr const char* units[] = {to_say("tokens"), to_say("words")};
  int unit = static_cast<int>(app.explorer.state().view.text_unit);
  if (segmented(ui, "compare unit", units, unit)) app.explorer.editor.view().text_unit = static_cast<TextUnit>(unit);
  if (ImGui::IsItemHovered())
    tooltip(ui, {said("Tokens, or words (W)"),
                 said("to a word: the sum over its tokens; from a word: the mean over its tokens"),
                 c.unit == c.asked ? said("predictions and losses are those of tokens")
                                   : said("this text is too long to compare every head in words")});
  if (!part_.whole()) {
    ImGui::SameLine(0, ui.px(10));
    if (button(ui, to_say("Whole maps"))) part_.reset();
    if (ImGui::IsItemHovered()) tooltip(ui, {said("The whole maps again (0)")});
  }
  ImGui::SameLine(0, ui.px(14));
  std::string text = c.unit == TextUnit::words
                         ? said("Point at a cell or a word: it is pointed out in both. Click keeps it.")
                         : said("Point at a cell or a token: it is pointed out in both. Click keeps it.");
  const auto weight = [&](const ComparedSide& side, int query, int key) {
    const int row = side.row(head);
    if (row < 0 || query < 0 || key < 0) return std::nan("");
    const AttentionMap& map = nth(side.trace->maps, row);
    return query < map.n_query() && key < map.n_key() ? static_cast<double>(map.weight(query, key)) : std::nan("");
  };
  const bool cell = here.any() && (here.query_a != here.key_a || here.query_b != here.key_b || pinned_.any());
  if (here.any()) {
    const double a = weight(c.a, here.query_a, here.key_a), b = weight(c.b, here.query_b, here.key_b);
    const auto at = [](const ComparedSide& side, int position) {
      return position < 0 ? std::string(said("no partner"))
                          : fmt::format("{} {}", token_label(*side.trace, position), position);
    };
    text = cell
               ? fmt::format(
                     "{} → {}   {}", at(here.query_a >= 0 ? c.a : c.b, here.query_a >= 0 ? here.query_a : here.query_b),
                     at(here.key_a >= 0 ? c.a : c.b, here.key_a >= 0 ? here.key_a : here.key_b), arrow_text(a, b, 4))
               : fmt::format("{}   {}    {}   {}", c.a.name, at(c.a, here.query_a), c.b.name, at(c.b, here.query_b));
    if (cell && !std::isnan(a) && !std::isnan(b)) text += fmt::format("   ({:+.4f})", b - a);
  }
  const double room = static_cast<double>(ImGui::GetContentRegionAvail().x / ui.scale);
  const Font font = here.any() ? ui.number() : ui.small();
  const std::string shown_text = elided(text, font, room, ui.fonts);
  const ImVec2 from = ImGui::GetCursorScreenPos();
  draw_text(ui, *ImGui::GetWindowDrawList(),
            {{0, 0}, shown_text, font, here.any() ? ui.theme.text : ui.theme.faint, Anchor::start, 0},
            {from.x, from.y + ui.px(18)});
  ImGui::NewLine();
  ImGui::Dummy({0, ui.px(4)});
}

}  // namespace headscope
