#include "app/workspaces/mechanisms/mechanisms_workspace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/widgets/text_draw.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/trace/mixer_words.h"
#include "viz/scene/map_cells.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

std::string with_unit(double value, const char* const (&units)[5], double step) {
  int unit = 0;
  while (unit < 4 && std::abs(value) >= step) value /= step, ++unit;
  return fmt::format("{:.{}f} {}", value, value < 10 && unit > 0 ? 1 : 0, units[unit]);
}

// The workspaces whose pages belong to a laboratory of attention, and what the ids of their entries begin with.
constexpr std::string_view elsewhere[] = {"Positions", "Generate", "Analyse"};
constexpr std::string_view jump = "to page ";

Color role_color(const Ui& ui, ShapeChip::Role role) {
  switch (role) {
    case ShapeChip::Role::query:
      return ui.theme.query;
    case ShapeChip::Role::key:
      return ui.theme.key;
    case ShapeChip::Role::value:
    case ShapeChip::Role::output:
      return ui.theme.value;
    default:
      return ui.theme.muted;
  }
}

}  // namespace

std::string count_words(double value) {
  static constexpr const char* units[5] = {"", "k", "M", "G", "T"};
  std::string words = with_unit(value, units, 1000);
  if (words.ends_with(' ')) words.pop_back();
  return words;
}

std::string byte_words(double value) {
  static constexpr const char* units[5] = {"B", "kB", "MB", "GB", "TB"};
  return with_unit(value, units, 1000);
}

MechanismsWorkspace::MechanismsWorkspace(JobRunner& jobs, DocumentEditor& editor, const RunController& run)
    : Workspace("Mechanisms"), jobs_(jobs), editor_(editor), run_(run), controller_(jobs, editor, run) {
  for (const Mechanism& m : mechanisms()) {
    const std::string group(m.group);
    if (groups_.empty() || groups_.back().title != group) groups_.push_back({group, {}});
    groups_.back().entries.push_back(
        {std::string(m.id), std::string(m.name), fmt::format("{} {} {}", m.title, m.source, m.keywords)});
  }
}

void MechanismsWorkspace::follow(const AppContext& app) {
  const auto wanted = app.settings.pages.find(id());
  if (wanted != app.settings.pages.end()) controller_.choose(wanted->second);
  controller_.unasked_seconds = app.ui.measured_seconds.value_or(controller_.unasked_seconds);
}

void MechanismsWorkspace::gather(const AppContext& app) {
  if (!shown_.empty() && others_ == app.ui.pages.size() && gathered_in_ == words_generation()) return;
  gathered_in_ = words_generation();
  others_ = app.ui.pages.size();
  shown_ = groups_;
  for (std::size_t i = 0; i < others_; ++i) {
    const UiRequests::Page& page = app.ui.pages[i];
    if (std::ranges::find(elsewhere, page.of) == std::end(elsewhere)) continue;
    const std::string group = say("In {} →", said_view(workspace_name(page.of).title));
    if (shown_.back().title != group) shown_.push_back({group, {}});
    shown_.back().entries.push_back({std::string(jump) + std::to_string(i), page.title, page.detail});
  }
}

void MechanismsWorkspace::left(const PageContext& c) {
  follow(c.app);
  gather(c.app);
  std::string page_id(controller_.mechanism().id);
  if (catalogue_.draw(c.ui, "mechanisms", shown_, page_id)) {
    if (!page_id.starts_with(jump)) {
      c.app.settings.pages[id()] = page_id;
      controller_.choose(page_id);
    } else if (!ImGui::IsKeyPressed(ImGuiKey_DownArrow) && !ImGui::IsKeyPressed(ImGuiKey_UpArrow)) {
      // Walking down the list ends at the last mechanism; a click or Enter leaves for the other workspace.
      const UiRequests::Page& page = c.app.ui.pages[std::stoul(page_id.substr(jump.size()))];
      c.app.ui.workspace = page.workspace;
      c.app.settings.pages[page.of] = page.id;
    }
  }
  c.app.ui.arrows_taken = catalogue_.takes_arrows();
}

void MechanismsWorkspace::header(Ui& ui) {
  const Mechanism& m = controller_.mechanism();
  static constexpr const char* all_views[] = {to_say("Compare"), to_say("Steps"), to_say("Recurrent view"),
                                              to_say("In the model"), to_say("Cost")};
  const std::span<const char* const> views(all_views, tells_whole_model() ? 5 : 4);
  static constexpr const char* study_views[] = {to_say("Steps")};
  const float width = m.study ? segmented_width(ui, study_views) : segmented_width(ui, views);
  const ImVec2 at = ImGui::GetCursorPos();
  const float room = ImGui::GetContentRegionAvail().x;
  const double words = static_cast<double>((room - width) / ui.scale) - 16;
  // Where the whole title has no room, the short name says more than half of a title.
  const std::string whole(said_view(m.title)),
      shown = ui.fonts.width(whole, ui.heading()) <= words ? whole : std::string(said_view(m.name));
  {
    const UseFont font(ui, ui.heading());
    text_line(ui, elided(shown, ui.heading(), words, ui.fonts));
  }
  const double left = words - ui.fonts.width(shown, ui.heading()) - 10;
  if (left > 60) {
    ImGui::SameLine(0, ui.px(8));
    ImGui::SetCursorPosY(at.y + ui.px(4));
    ImGui::PushStyleColor(ImGuiCol_Text, vec(ui.theme.faint));
    text_line(ui, elided(std::string(m.source), ui.body(), left, ui.fonts));
    ImGui::PopStyleColor();
  }
  ImGui::SetCursorPos({at.x + room - width, at.y});
  if (m.study) {
    int only = 0;
    segmented(ui, "mechanism view", study_views, only);
  } else {
    int view = static_cast<int>(shown_view());
    if (segmented(ui, "mechanism view", views, view)) controller_.view = static_cast<MechanismController::View>(view);
  }
  ImGui::SetCursorPos({at.x, at.y + ui.px(34)});
  paragraph(ui, said_view(m.meaning), ui.theme.muted);
}

void MechanismsWorkspace::chips(Ui& ui) {
  const auto& page = controller_.page();
  const Mechanism& m = controller_.mechanism();
  if (!page || !m.chips) return;
  const MechanismShape shape{page->input.m(), page->input.d(), page->input.d_v(), page->input.n()};
  const Font font = ui.number();
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float room = ImGui::GetContentRegionAvail().x, height = ui.px(25), pad = ui.px(9), gap = ui.px(7);
  float x = at.x, y = at.y;
  const auto width_of = [&](const std::string& text, const Font& f) {
    return static_cast<float>(ui.fonts.width(text, f)) * ui.scale;
  };
  const auto write = [&](const std::string& text, const Font& f, Color color, float left) {
    draw_text(ui, draw, {{0, 0}, text, f, color, Anchor::start, 0},
              {left, y + height / 2 + static_cast<float>(half_capital(f)) * ui.scale});
  };
  bool first = true;
  for (const ShapeChip& chip : m.chips(shape, controller_.values())) {
    const std::string before = first ? "" : said(chip.before), text = said(chip.text);
    const bool remark = chip.role == ShapeChip::Role::remark;
    const Font& own = remark ? ui.small() : font;
    const float join = before.empty() ? 0 : width_of(before, ui.body()) + gap;
    const float width = width_of(text, own) + (remark ? 0 : 2 * pad);
    if (!first && x + join + width > at.x + room) x = at.x, y += height + ui.px(6);
    if (!before.empty()) write(before, ui.body(), ui.theme.muted, x);
    x += join;
    if (!remark) {
      const Color color = role_color(ui, chip.role);
      draw.AddRectFilled({x, y}, {x + width, y + height}, col(ui.chrome.raised), ui.px(5));
      draw.AddRect({x, y}, {x + width, y + height}, col(with_opacity(color, 0.7)), ui.px(5));
    }
    write(text, own, remark ? ui.theme.faint : ui.theme.text, x + (remark ? 0 : pad));
    x += width + gap;
    first = false;
  }
  ImGui::Dummy({room, y + height - at.y});
  if (ImGui::IsItemHovered())
    tooltip(ui, {std::string(said_view(m.formula)), said("the computation of one head with the shapes on this page"),
                 say("queries {}, keys {}, d = {}, d_v = {}", shape.rows(), shape.n, shape.d, shape.d_v),
                 std::string(m.source)});
  ImGui::Dummy({0, ui.px(4)});
}

bool MechanismsWorkspace::no_vectors(const PageContext& c) {
  return controller_.source().kind == MechanismSource::Kind::head &&
         holds_state(c.results(), c.state().document.selected.layer);
}

void MechanismsWorkspace::middle(const PageContext& c) {
  drawn_ = true;
  if (controller_.source().kind == MechanismSource::Kind::hand)
    c.ui.pictures.passing = "matrices that were made by hand";
  held_ = ImGui::IsAnyMouseDown();
  follow(c.app);
  header(c.ui);
  ImGui::Dummy({0, c.ui.px(2)});
  if (shown_view() == MechanismController::View::cost) return whole_model(c);  // of no head
  chips(c.ui);
  if (c.captured() && controller_.source().kind == MechanismSource::Kind::head)
    return empty_state(
        c.ui, said("This page reads a model"),
        said("What is open is attention that was captured elsewhere: weights, without the model behind them."));
  if (no_vectors(c))
    return empty_state(
        c.ui,
        holds_state(c.results()) ? std::string(said("This model has no queries, keys and values"))
                                 : say("Layer {} has no queries, keys and values", c.state().document.selected.layer),
        say("In their place stands {}. Choose Random or By hand on the right: every mechanism works on "
            "those, Mamba's own selective scan too.",
            said(mixer_words(c.results().model.model->config().dims, c.state().document.selected.layer))));
  if (!controller_.error().empty()) {
    paragraph(c.ui, controller_.error(), c.ui.theme.key);
  }
  const auto& page = controller_.page();
  const Mechanism& m = controller_.mechanism();
  if (!page || page->choice.mechanism != &m) {
    if (controller_.source().kind == MechanismSource::Kind::head && !c.results().run)
      return empty_state(c.ui, said("No text is open"),
                         said("Open a model and type a text, or choose Random or By hand on the right."));
    if (controller_.error().empty()) empty_state(c.ui, said("Computing"), said("The first picture follows at once."));
    return;
  }
  const auto view = shown_view();
  if (view == MechanismController::View::compare) {
    compare(c.ui);
    numbers(c.ui);
    const bool of_heads = controller_.source().kind == MechanismSource::Kind::head;
    if (of_heads && (m.id == "low-rank" || m.id == "log-length"))
      every_head(c.ui, m.id == "low-rank" ? "rank" : "entropy");
    else
      times(c.ui);
  } else if (view == MechanismController::View::steps) {
    walk(c.app, catalogue_.takes_arrows());
    // The arithmetic of a cell stays in sight below the steps, which scroll.
    const bool told = std::ranges::any_of(page->result.steps, [](const MechanismStep& s) { return bool(s.explain); });
    const float room = ImGui::GetContentRegionAvail().y, below = c.ui.px(76);
    const bool apart = told && room > 3 * below;
    if (apart) ImGui::BeginChild("mechanism steps", {0, room - below}, ImGuiChildFlags_NavFlattened);
    progress(c.ui);
    path(c.ui);
    machine(c.ui);
    steps(c.ui);
    curves(c.ui);
    if (apart) ImGui::EndChild();
    if (told) arithmetic(c.ui);
  } else if (view == MechanismController::View::recurrent) {
    recurrent(c.ui);
  } else {
    in_model(c.ui, c.app);
  }
  if (!(hovered_ == hovering_)) *c.ui.animate = true;
  hovered_ = std::exchange(hovering_, {});
}

MechanismController::View MechanismsWorkspace::shown_view() const {
  using View = MechanismController::View;
  if (controller_.mechanism().study) return View::steps;
  return controller_.view == View::cost && !tells_whole_model() ? View::compare : controller_.view;
}

void MechanismsWorkspace::right(const PageContext& c) {
  if (shown_view() == MechanismController::View::cost) {  // of no head: what is of one stands with the other views
    whole_model_shape(c);
    if (controller_.mechanism().parameter("every")) parameters(c.ui);
    return;
  }
  input(c.ui, c.app);
  parameters(c.ui);
  if (!controller_.mechanism().study) {
    cost(c.ui);
    if (shown_view() != MechanismController::View::model && c.results().model.model) {
      section(c.ui, said("USE IT IN THE MODEL"),
              c.results().translates() ? said("heads of the decoder · click") : said("click heads"));
      if (holds_state(c.results())) {
        note(c.ui, said("The model that is open has no attention that another mechanism could stand in for."));
      } else {
        grid(c.ui, c.app, 11, false);
        effect(c.ui, c.app, false);
      }
    }
  }
  const auto& page = controller_.page();
  if (page && page->choice.mechanism == &controller_.mechanism() && !page->look_for.empty()) {
    section(c.ui, said("WHAT TO LOOK FOR"));
    paragraph(c.ui, said(page->look_for), c.ui.theme.muted);
  }
  if (const std::string_view ours = controller_.mechanism().ours; !ours.empty()) {
    section(c.ui, said("NOT THE PAPER'S"));
    paragraph(c.ui, said_view(ours), c.ui.theme.muted);
  }
}

void MechanismsWorkspace::each_frame() {
  controller_.frame(std::exchange(drawn_, false), held_);
}

}  // namespace headscope
