#include "app/workspaces/analyse/reading_page.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "app/state/jobs.h"
#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/analyse/parts.h"
#include "core/base/error.h"
#include "core/base/words.h"
#include "core/edits/singular_edit.h"
#include "core/metrics/next_token.h"
#include "core/trace/model_heads.h"
#include "viz/color/color_norm.h"
#include "viz/scene/map_cells.h"
#include "viz/scene/text.h"

namespace headscope {

std::optional<ReadingSource> reading_source(const PageContext& c) {
  const Results& results = c.results();
  if (!results.run || !results.model.model || results.run->request.model != results.model_folder) return std::nullopt;
  return ReadingSource{results.run, results.model, results.run->trace};
}

std::optional<ReadingSource> maps_source(const PageContext& c) {
  if (c.captured()) return ReadingSource{c.results().run, {}, c.results().run->trace};
  return reading_source(c);
}

ModelWeights weights_of(const ReadingSource& source) {
  return weights_written_with(*source.model.model, source.run->request.edits,
                              static_cast<int>(source.run->trace->tokens.size()));
}

std::shared_ptr<const Trace> record(const ReadingSource& source, const std::set<SiteKind>& sites, const Ctx& ctx,
                                    ReadingCapture& last) {
  if (sites.empty()) return source.run->trace;
  if (last.of == source.run && last.sites == sites) return last.trace;
  RunRequest request = source.run->request;
  request.capture.sites = sites;
  request.capture.all_logits = true;
  last = {source.run, sites, jobs::at_home(run(source.model, request, Ctx{.backend = ctx.backend, .stop = ctx.stop}))};
  return last.trace;
}

Index pinned_row(const PageContext& c, const Trace& trace) {
  const auto n = static_cast<Index>(trace.tokens.size());
  return std::clamp<Index>(c.state().document.query.value_or(answer_position(trace).value_or(n - 1)), 0, n - 1);
}

HeadId chosen_head(const PageContext& c, const Trace& trace) {
  return nearest_head(trace.model.dims, c.state().document.selected);
}

void position_control(const PageContext& c, const char* remark) {
  if (!c.trace()) return;
  const Index row = pinned_row(c, *c.trace());
  section(c.ui, said("POSITION"), remark);
  double at = static_cast<double>(row);
  const double last = static_cast<double>(c.trace()->tokens.size() - 1);
  if (last > 0 && slider(c.ui, to_say("Position"), at, {0, last, last, false, "", 0}))
    c.editor.pin(static_cast<Index>(std::lround(at)));
  fact(c.ui, said("Token there"), token_label(*c.trace(), row), nullptr,
       {said("The pinned query of Explore; without one, where the answer is read"),
        said("click a column of the picture to pin it")});
}

TokenName token_names(const LoadedModel& model) {
  return [model](std::int32_t id) { return token_text(model, id); };
}

namespace {
void read_token(const LoadedModel& model, TokenField& field) {
  field.error.clear();
  field.id.reset();
  field.unread = false;
  if (!field.text.empty() && model.model) try {
      field.id = answer_token(model, field.text, "token");
    } catch (const Error& wrong) {
      field.error = wrong.what();
    }
}
}  // namespace

void token_record(ControlsRecord& record, const char* name, TokenField& field) {
  if (!record.reading() && field.text.empty()) return;
  record.inside(name, [&](ControlsRecord& inner) {
    inner.field("text", field.text);
    std::int64_t id = (field.unread ? field.recorded : field.id).value_or(-1);
    inner.field("id", id, -1, std::numeric_limits<std::int32_t>::max());
    inner.withdraw("id");
    if (!inner.reading()) return;
    field.id.reset(), field.error.clear();
    field.recorded = static_cast<std::int32_t>(id);
    field.unread = true;
  });
}

void keep_inside(const PageContext& c, TokenField& field) {
  const LoadedModel& model = c.results().model;
  if (!model.model) return;
  const int vocab = model.model->config().dims.vocab;
  if (field.unread && c.results().model_folder == c.state().document.model) {
    const std::int32_t was = field.recorded.value_or(-1);
    read_token(model, field);
    // The label of a token need not read back as it.
    if (was >= 0 && was < vocab && token_text(model, was) == field.text) field.id = was, field.error.clear();
  }
  if (field.id && *field.id >= vocab) field = {};
}

bool token_field(const PageContext& c, const char* name, const std::string& hint, TokenField& field) {
  bool changed = false;
  {
    const UseFont font(c.ui, c.ui.token());
    ImGui::SetNextItemWidth(-1);
    changed = input_line(c.ui, name, hint.c_str(), field.text);
  }
  if (changed) read_token(c.results().model, field);
  if (!field.error.empty()) {
    const UseFont font(c.ui, c.ui.small());
    error_text(c.ui, field.error);
  }
  return changed;
}

void LogitFields::keep_inside(const PageContext& c) {
  for (TokenField* field : {&token, &against}) headscope::keep_inside(c, *field);
}

void LogitFields::record(ControlsRecord& record) {
  token_record(record, "token", token);
  token_record(record, "against", against);
}

void logit_controls(const PageContext& c, const char* name, const std::string& taken, LogitFields& fields,
                    const char* remark) {
  section(c.ui, said("LOGIT OF"), said("empty: the most probable one"));
  token_field(c, name, taken, fields.token);
  section(c.ui, said("LESS THAT OF"), said("empty: nothing"));
  token_field(c, "##token against", said("another answer"), fields.against);
  position_control(c, remark);
}

namespace {
const Heatmap* matrix_of(const Scene& scene) {
  const Mark* mark = find(scene, "matrix");
  return mark ? std::get_if<Heatmap>(&mark->shape) : nullptr;
}
}  // namespace

namespace {
/// What stands left of and below a matrix, painted again where it stays in sight while the matrix is scrolled away.
void paint_sticky(const PageContext& c, const Scene& scene, const SceneTouch& touch) {
  const Heatmap* map = matrix_of(scene);
  if (!map || ImGui::GetScrollX() < 1) return;
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const ImVec2 window = ImGui::GetWindowPos();
  const float width = c.ui.px(map->rect.x - 2), below = touch.window({0, map->rect.bottom() + 8}).y,
              end = touch.window({0, scene.height}).y;
  draw.AddRectFilled({window.x, touch.window({0, 0}).y}, {window.x + width, below}, col(c.ui.theme.background));
  draw.AddRectFilled({window.x, below}, {window.x + ImGui::GetWindowWidth(), end}, col(c.ui.theme.background));
  const auto right = [&](const std::string& text, float y) {
    const std::string_view shown = c.ui.fonts.laid_out(text);
    const char *begin = shown.data(), *finish = begin + shown.size();
    const ImVec2 size = ImGui::CalcTextSize(begin, finish);
    draw.AddText({window.x + width - c.ui.px(4) - size.x, y - size.y / 2}, col(c.ui.theme.muted), begin, finish);
  };
  {
    const UseFont font(c.ui, c.ui.theme.small_token());
    for (const Mark& mark : scene.marks)
      if (const auto* label = meaning<LabelOf>(&mark); label && label->axis == LabelOf::row) {
        const Text* text = &std::get<Text>(mark.shape);
        right(text->text, touch.window({0, text->at.y - half_capital(text->font)}).y);
      }
  }
  const UseFont font(c.ui, c.ui.theme.caption());
  const float bar = c.ui.px(240), left = window.x + width, y = below + c.ui.px(20);
  draw.AddText({left, below}, col(c.ui.theme.muted), scene.title.c_str());
  constexpr int steps = 120;
  for (int i = 0; i < steps; ++i)
    draw.AddRectFilled({left + bar * static_cast<float>(i) / steps, y},
                       {left + bar * static_cast<float>(i + 1) / steps, y + c.ui.px(10)},
                       col(map->colormap->at((i + 0.5) / steps)));
  for (const Tick& tick : ticks(map->norm)) {
    const float w = ImGui::CalcTextSize(tick.text.c_str()).x, at = left + bar * static_cast<float>(tick.unit);
    draw.AddText({tick.unit == 0   ? at
                  : tick.unit == 1 ? at - w
                                   : at - w / 2,
                  y + c.ui.px(13)},
                 col(c.ui.theme.muted), tick.text.c_str());
  }
}
}  // namespace

SceneTouch wide_scene(const PageContext& c, SceneSlot& slot, const char* id,
                      const std::function<void(const Scene&, const SceneTouch&)>& over, std::optional<Index> reveal) {
  const Scene* scene = slot.scene();
  if (!scene) return {};
  const double room = c.room();
  SceneViewOptions how;
  how.fit_width = how.fit_height = false;
  const bool fits = scene->width <= room + 1;
  if (!fits) {
    const float height = c.ui.px(scene->height) + ImGui::GetStyle().ScrollbarSize + c.ui.px(2);
    ImGui::BeginChild(id, {0, height}, ImGuiChildFlags_NavFlattened, ImGuiWindowFlags_HorizontalScrollbar);
    if (const Heatmap* map = reveal ? matrix_of(*scene) : nullptr; map && *reveal < map->columns())
      ImGui::SetScrollX(c.ui.px(map->cell(0, *reveal).center().x) - ImGui::GetWindowWidth() / 2);
  }
  const SceneTouch touch = slot.draw(c.ui, id, how, fits ? std::floor(room) : scene->width, scene->height);
  if (over && slot.scene()) over(*slot.scene(), touch);
  if (!fits) {
    if (slot.scene()) paint_sticky(c, *slot.scene(), touch);
    ImGui::EndChild();
  }
  return touch;
}

SceneTouch chart_slot(const PageContext& c, SceneSlot& slot, const char* id, std::shared_ptr<const void> source,
                      const std::string& options, double width, double height,
                      std::function<LineChart(const Style&)> make) {
  slot.want(c.jobs, c.ui, std::move(source), fmt::format("{} {} {}", options, width, height),
            [make = std::move(make), width, height](const Style& style) {
              LineChart chart = make(style);
              chart.width = width;
              chart.height = height;
              return line_chart_scene(chart, style);
            });
  return slot.draw(c.ui, id, {}, width, height);
}

void layer_control(const PageContext& c, int& layer) {
  if (!c.results().model.model) return;
  const int last = c.results().model.model->config().dims.layers - 1;
  layer = std::clamp(layer, 0, last);
  double at = layer;
  if (last > 0 && slider(c.ui, to_say("Layer"), at, {0, static_cast<double>(last), 0, false, "", 0}))
    layer = static_cast<int>(std::lround(at));
}

std::optional<Cell> matrix_cell(const SceneTouch& touch) {
  return touch.mark && touch.mark->id == "matrix" ? touch.cell : std::nullopt;
}

void frame_cell(const PageContext& c, const Scene& scene, const SceneTouch& touch, Cell cell, Color color) {
  const Heatmap* map = matrix_of(scene);
  if (!map || cell.row >= map->rows() || cell.column >= map->columns()) return;
  const Rect r = map->cell(cell.row, cell.column);
  ImGui::GetWindowDrawList()->AddRect(touch.window({r.x - 1, r.y - 1}),
                                      touch.window({r.right() - map->gap + 1, r.bottom() - map->gap + 1}), col(color),
                                      0, 0, c.ui.px(2));
}

void frame_column(const PageContext& c, const Scene& scene, const SceneTouch& touch, Index column, Color color) {
  const Heatmap* map = matrix_of(scene);
  if (!map || column < 0 || column >= map->columns()) return;
  const Rect r = map->cell(0, column);
  ImGui::GetWindowDrawList()->AddRect(touch.window({r.x - 1, map->rect.y - 1}),
                                      touch.window({r.right() - map->gap + 1, map->rect.bottom() - map->gap + 1}),
                                      col(color), 0, 0, c.ui.px(2));
}

void name_cells(const PageContext& c, const Scene& scene, const SceneTouch& touch,
                const std::function<std::string(Index row, Index column)>& name) {
  const Heatmap* map = c.ui.items ? matrix_of(scene) : nullptr;
  if (!map) return;
  for (Index row = 0; row < map->rows(); ++row)
    for (Index column = 0; column < map->columns(); ++column) {
      const Rect r = map->cell(row, column);
      c.ui.name(name(row, column), touch.window({r.x, r.y}), touch.window({r.right(), r.bottom()}));
    }
}

void ReadingPage::no_reading_yet(const PageContext& c, bool of_maps) const {
  if (!c.trace() || (c.captured() && !of_maps)) return nothing_open(c);
  if (!c.jobs.stopped().empty())
    return empty_state(c.ui, said("Stopped"), said("“Run again” above, or F5, takes up what was stopped."));
  const bool coming = std::ranges::any_of(jobs_, &KeepsAnswer::under_way);  // what failed may be of another view
  std::string why;
  for (const KeepsAnswer* job : jobs_)
    if (const std::string error = coming ? "" : job->error(); !error.empty()) {
      if (why.empty()) why = error;
      if (c.jobs.message() && c.jobs.message()->tag == job->tag()) c.jobs.dismiss();
    }
  if (!why.empty()) return empty_state(c.ui, said("Nothing to read here"), why);
  empty_state(c.ui, said("Reading …"), said("Numbers come with the next run."));
}

std::string signed_words(double value) {
  if (!std::isfinite(value)) return "–";
  return fmt::format("{}{:.3f}", value < 0 ? "−" : "+", std::abs(value));
}

}  // namespace headscope
