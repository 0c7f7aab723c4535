// The views of a mechanism: its matrices, and what they are beside softmax. Every matrix is made ready on the worker: a
// frame where nothing changed does nothing of size n².

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "app/widgets/controls.h"
#include "app/workspaces/mechanisms/mechanisms_workspace.h"
#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/spectrum.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/metrics/metric.h"
#include "core/trace/model_heads.h"
#include "viz/scene/line_chart.h"
#include "viz/scene/map_cells.h"
#include "viz/scene/matrix_scene.h"

namespace headscope {

namespace {

// Singular values of every head take n³ each.
constexpr Index most_ranked_tokens = 256;

/// A metric of all heads, layer by layer; NaN where none was recorded.
std::vector<double> of_every_head(const HeadFacts& facts, std::string_view metric) {
  const ModelDims& dims = facts.trace->model.dims;
  const auto column = static_cast<std::size_t>(std::ranges::find(metrics(), metric, &Metric::id) - metrics().begin());
  std::vector<double> out;
  for (const HeadId head : every_head(dims)) {
    const int row = facts.row(head);
    out.push_back(row < 0 ? std::numeric_limits<double>::quiet_NaN() : nth(facts.table.value, row)[column]);
  }
  return out;
}

/// Layers × heads with a last column, the mean of each layer.
Matrix with_layer_means(const ModelDims& dims, const std::vector<double>& of_heads) {
  const int layers = dims.layers, heads = dims.most_heads();
  Matrix out;
  out.values = Tensor::full({layers, heads + 1}, std::numeric_limits<float>::quiet_NaN());
  for (int layer = 0; layer < layers; ++layer) {
    double sum = 0;
    const int own = dims.heads_of(layer);
    for (int head = 0; head < own; ++head) {
      const double value = nth(of_heads, head_index(dims, {layer, head}));
      out.values.ref(layer, head) = static_cast<float>(value);
      sum += value / own;
    }
    out.values.ref(layer, heads) = static_cast<float>(sum);
    out.rows.push_back(std::to_string(layer));
  }
  for (int head = 0; head < heads; ++head) out.columns.push_back(std::to_string(head));
  out.columns.emplace_back(said("mean"));
  out.row_title = said("layer ↓");
  out.column_title = said("head →");
  return out;
}

}  // namespace

bool MechanismsWorkspace::show(Ui& ui, SceneSlot& slot, const char* id, Room room) {
  slot.want(jobs_, ui, id, mechanism_picture(controller_, id), room);
  return slot.scene() != nullptr;
}

/// Shows the flow, paints the hovered row and column over all of its matrices, and tells what the pointer is on.
void MechanismsWorkspace::matrices(Ui& ui, SceneSlot& slot, const char* id, const std::vector<ShownMatrix>& shown,
                                   Room room) {
  const auto page = controller_.page();
  if (!show(ui, slot, id, room)) return;
  const Scene* scene = slot.scene();
  SceneViewOptions how;
  how.fit_height = false;
  how.tooltips = false;
  const SceneTouch touch = slot.draw(ui, id, how, room.width, scene->height);
  // What the rows and columns of each matrix are. A picture may be older than the words beside it.
  const auto words_of = [&](const std::string& name) -> const ShownMatrix* {
    const auto found = std::ranges::find(shown, name, &ShownMatrix::id);
    return found == shown.end() ? nullptr : &*found;
  };
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  for (const Mark& mark : scene->marks) {
    const auto* map = std::get_if<Heatmap>(&mark.shape);
    if (!map || map->rows() == 0 || map->columns() == 0) continue;
    const ShownMatrix* words = words_of(mark.id);
    if (!words) continue;
    const MechanismAxis rows = words->rows, columns = words->columns;
    const auto frame = [&](const Rect& r, Color color) {
      draw.AddRect(touch.window({r.x, r.y}), touch.window({r.right(), r.bottom()}), col(color), 0, 0, ui.px(1));
    };
    const Index first_row = words->step ? words->step->first_row : 0,
                first_column = words->step ? words->step->first_column : 0;
    const auto row = [&](Index i, Color color) {
      i -= first_row;
      if (i < 0 || i >= map->rows()) return;
      const Rect cell = map->cell(i, 0);
      frame({map->rect.x, cell.y, map->rect.w, cell.h}, color);
    };
    const auto column = [&](Index j, Color color) {
      j -= first_column;
      if (j < 0 || j >= map->columns()) return;
      const Rect cell = map->cell(0, j);
      frame({cell.x, map->rect.y, cell.w, map->rect.h}, color);
    };
    if (hovered_.query && rows == MechanismAxis::query) row(*hovered_.query, with_opacity(ui.theme.query, 0.8));
    if (hovered_.key && rows == MechanismAxis::key) row(*hovered_.key, with_opacity(ui.theme.key, 0.7));
    if (hovered_.key && columns == MechanismAxis::key) column(*hovered_.key, with_opacity(ui.theme.key, 0.7));
  }
  const auto outline = [&](const std::optional<MechanismCell>& cell, float thick) {
    const ShownMatrix* words = cell ? words_of(cell->step) : nullptr;
    const Mark* mark = words && words->step ? find(*scene, cell->step) : nullptr;
    const auto* map = mark ? std::get_if<Heatmap>(&mark->shape) : nullptr;
    if (!map || cell->row >= map->rows() || cell->column >= map->columns()) return;
    const Rect r = map->cell(cell->row, cell->column);
    const ImVec2 from = touch.window({r.x - 1, r.y - 1}), to = touch.window({r.right(), r.bottom()});
    draw.AddRect({from.x - 1, from.y - 1}, {to.x + 1, to.y + 1}, col(ui.theme.background), 0, 0, thick + 2);
    draw.AddRect(from, to, col(ui.theme.accent), 0, 0, thick);
  };
  const bool steps = std::ranges::any_of(shown, [](const ShownMatrix& each) { return each.step != nullptr; });
  if (steps) {
    if (!told_) outline(controller_.pinned ? controller_.pinned : telling_cell(*page), ui.px(2));
    if (told_ && controller_.pinned) outline(controller_.pinned, ui.px(2));
    told_.reset();
  }
  if (!touch.hovered || !touch.mark) return;
  if (const auto* folds = meaning<TitleOf>(touch.mark)) {
    if (touch.clicked && !controller_.folded.erase(folds->matrix)) controller_.folded.insert(folds->matrix);
    tooltip(ui, {said("click to fold or to open"), touch.mark->tooltip});
    return;
  }
  if (!touch.cell) return;
  const auto* map = std::get_if<Heatmap>(&touch.mark->shape);
  const ShownMatrix* words = words_of(touch.mark->id);
  if (!map || !words) return;
  const MechanismAxis rows = words->rows, columns = words->columns;
  const Index i = touch.cell->row, j = touch.cell->column;
  const Index row_at = i + (words->step ? words->step->first_row : 0),
              column_at = j + (words->step ? words->step->first_column : 0);
  if (rows == MechanismAxis::query) hovering_.query = row_at;
  if (rows == MechanismAxis::key) hovering_.key = row_at;
  if (columns == MechanismAxis::key) hovering_.key = column_at;
  const MechanismStep* step = words->step;
  if (step && (step->value.dim(0) != map->rows() || step->value.dim(1) != map->columns())) step = nullptr;
  if (step) {
    const MechanismCell here{step->id, i, j};
    told_ = here;
    if (touch.clicked) controller_.pinned = controller_.pinned == here ? std::nullopt : std::optional(here);
  }
  std::vector<std::string> lines{fmt::format("{} [{}, {}]", said(words->title),
                                             step ? row_place(*page, *step, i) : place(*page, rows, i),
                                             step ? column_place(*page, *step, j) : place(*page, columns, j))};
  if (map->is_masked(i, j))
    lines.push_back(say("hidden: {}", words->hidden.empty() ? page->input.rule->describe() : said(words->hidden)));
  else {
    lines.push_back(fmt::format("{:.5g}", map->values.at(i, j)));
    if (step && step->explain) lines.push_back(step->explain(i, j));
  }
  lines.push_back(said(words->formula));
  lines.push_back(page->source == MechanismSource::Kind::head
                      ? say("Q, K, V of {}, F32", map_name(*page->trace, page->head))
                      : said("of the input on the right, F32"));
  tooltip(ui, lines);
}

void MechanismsWorkspace::compare(Ui& ui) {
  const double width = std::floor(static_cast<double>(ImGui::GetContentRegionAvail().x / ui.scale));
  const double room = static_cast<double>(ImGui::GetContentRegionAvail().y / ui.scale);
  // Names take a third of a small map: it keeps the width that there is.
  const double side = std::clamp(std::min((width - 64) / 3, std::max(room - 330, 180.0)), 120.0, 340.0);
  matrices(ui, compare_, "mechanism compare", compared_matrices(*controller_.page()), {width, side});
}

void MechanismsWorkspace::numbers(Ui& ui) {
  const MechanismPage& page = *controller_.page();
  const MechanismComparison& c = page.comparison;
  const auto entropy = [](double value) { return std::isnan(value) ? std::string("–") : fmt::format("{:.2f}", value); };
  struct Number {
    std::string name, value;
    std::vector<std::string> provenance;
  };
  std::vector<Number> all{
      {said("output error ‖ΔO‖/‖O‖"),
       fmt::format("{:.3g}", c.output_error < 2e-5 ? 0.0 : c.output_error),
       {said("Frobenius norm of the outputs' difference ÷ that of softmax's output"),
        fmt::format("{:.3e}", c.output_error)}},
      {said("entropy"),
       say("{} → {} nats", entropy(c.entropy_reference), entropy(c.entropy)),
       {said("mean over the rows of −Σ p ln p, each row ÷ its sum"),
        said("softmax → this; – where a weight is negative")}},
      {said("top-1 agreement"),
       std::isnan(c.top1) ? "–" : fmt::format("{:.0f} %", 100 * c.top1),
       {said("rows whose largest weight lies on the same key"), said("of the rows that see more than one key")}},
      {said("rank (90 % energy)"),
       c.rank90 < 0 ? "–" : fmt::format("{} → {}", c.rank90_reference, c.rank90),
       {said("fewest singular values of the weights whose squares sum to 90 %"),
        c.rank < 0 ? said("not computed for more than 384 tokens")
                   : say("singular values above 10⁻⁶ of the largest: {} → {}", c.rank_reference, c.rank),
        said("softmax → this")}},
      {said("row sums"),
       c.largest_sum - c.least_sum < 1e-4 ? fmt::format("{:.3g}", c.largest_sum)
                                          : fmt::format("{:.3g} … {:.3g}", c.least_sum, c.largest_sum),
       {said("sum of the effective weights of a row, smallest and largest")}}};
  for (const MechanismFact& fact : page.result.facts)
    all.push_back({said(fact.name), said(fact.value), {said(fact.provenance)}});
  const float room = ImGui::GetContentRegionAvail().x, left = ImGui::GetCursorPosX();
  float x = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const float name = static_cast<float>(ui.fonts.width(all[i].name, ui.body())) * ui.scale;
    const float value = static_cast<float>(ui.fonts.width(all[i].value, ui.number())) * ui.scale;
    const float width = name + value + ui.px(6);
    if (i > 0 && x + width < room)
      ImGui::SameLine(left + x);
    else
      x = 0;
    ImGui::BeginGroup();
    ImGui::PushStyleColor(ImGuiCol_Text, vec(ui.theme.muted));
    text_line(ui, all[i].name);
    ImGui::PopStyleColor();
    ImGui::SameLine(0, ui.px(6));
    {
      const UseFont font(ui, ui.number());
      text_line(ui, all[i].value);
    }
    ImGui::EndGroup();
    if (ImGui::IsItemHovered()) {
      std::vector<std::string> lines{all[i].name + " " + all[i].value};
      lines.insert(lines.end(), all[i].provenance.begin(), all[i].provenance.end());
      tooltip(ui, lines);
    }
    x += width + ui.px(22);
  }
}

void MechanismsWorkspace::times(Ui& ui) {
  const auto& times = controller_.times();
  ImGui::Dummy({0, ui.px(2)});
  const std::string doing = say("measuring {:.0f} %", 100 * controller_.timing().share());
  const bool measuring = controller_.timing().running();
  const float needed =
      measuring ? static_cast<float>(ui.fonts.width(doing, ui.body())) * ui.scale + button_width(ui, "Stop") + ui.px(10)
                : button_width(ui, "Measure longer");
  section(ui, said("TIME AS THE TEXT GROWS"),
          times ? say("measured on this machine, one head, one thread, {} mask, dashed: multiply-adds", times->mask)
                : said("measured on this machine, one head, one thread, dashed: multiply-adds"),
          needed + ui.px(8));
  ImGui::SameLine();
  const float width_left = ImGui::GetContentRegionAvail().x;
  ImGui::SetCursorPosX(ImGui::GetCursorPosX() + std::max(0.0f, width_left - needed));
  if (measuring) {
    ImGui::PushStyleColor(ImGuiCol_Text, vec(ui.theme.muted));
    text_line(ui, doing);
    ImGui::PopStyleColor();
    ImGui::SameLine();
    if (button(ui, to_say("Stop"), ui.px(22))) controller_.timing().cancel();
  } else {
    if (button(ui, to_say("Measure longer"), ui.px(22))) controller_.measure(1.0);
    if (ImGui::IsItemHovered()) tooltip(ui, {said("Until one point takes more than a second")});
  }
  if (!times || times->id != controller_.mechanism().id) return;
  ui.pictures.passing = "times that were measured";
  const double width = std::floor(static_cast<double>(ImGui::GetContentRegionAvail().x / ui.scale));
  const double height = std::clamp(static_cast<double>(ImGui::GetContentRegionAvail().y / ui.scale) - 6, 150.0, 330.0);
  const std::string name(said_view(controller_.mechanism().name));
  const bool itself = times->id == "softmax";
  times_.want(jobs_, ui, times, fmt::format("{} {}", width, height),
              [times, width, height, name, itself](const Style& style) {
                LineChart chart;
                chart.width = width;
                chart.height = height;
                chart.log_x = chart.log_y = true;
                chart.y_title = said("seconds");
                chart.x_title = said("tokens n");
                chart.points = true;
                const Color softmax = style.theme.diverging->at(0.85);
                const auto lines = [&](const MechanismTimes::Line& line, const std::string& label, Color color) {
                  if (line.n.empty()) return;
                  // Both end at the right edge only in theory; the title stands there.
                  chart.series.push_back({label, with_opacity(color, 0.75), line.theory_n, line.theory, 1.25, true});
                  chart.series.push_back({"", color, line.n, line.seconds});
                };
                lines(times->softmax, said("softmax"), softmax);
                if (!itself) lines(times->mechanism, name, style.theme.accent);
                chart.x_ticks = {16, 64, 256, 1024, 4096, 16384, 65536};
                return line_chart_scene(chart, style);
              });
  times_.draw(ui, "mechanism times", {}, width, height);
}

void MechanismsWorkspace::every_head(Ui& ui, const std::string& of) {
  const auto& run = run_.results().run;
  const auto& facts = run_.results().facts;
  if (!run || run->trace->maps.empty() || !facts || facts->trace != run->trace) return;
  const bool rank = of == "rank";
  section(ui, rank ? said("RANK FOR 90 % ENERGY OF EVERY HEAD") : said("ENTROPY OF EVERY HEAD AND LAYER"),
          say("of {} tokens; click a head", run->trace->tokens.size()));
  if (rank && run->trace->maps.front().n_query() > most_ranked_tokens) {
    text_line(ui, say("A text of more than {} tokens takes too long.", most_ranked_tokens));
    return;
  }
  const double width = std::floor(static_cast<double>(ImGui::GetContentRegionAvail().x / ui.scale));
  const double height = std::clamp(static_cast<double>(ImGui::GetContentRegionAvail().y / ui.scale) - 6, 140.0, 330.0);
  ranks_.want(jobs_, ui, facts, fmt::format("{} {} {}", of, width, height),
              [facts, rank, width, height](const Style& style) {
                const ModelDims& dims = facts->trace->model.dims;
                std::vector<double> numbers;
                if (rank)
                  for (const AttentionMap& map : facts->trace->maps)
                    numbers.push_back(energy_rank(singular_values(map.to_dense()), 0.9));
                else
                  numbers = of_every_head(*facts, "entropy");
                Matrix matrix = rank ? head_matrix(dims, numbers) : with_layer_means(dims, numbers);
                matrix.unit = rank ? said("rank for 90 % energy") : said("entropy, nats");
                matrix.low = 0;
                matrix.width = width;
                matrix.height = height;
                matrix.provenance =
                    rank ? said("fewest singular values of hook_pattern whose squares sum to 90 % of all squares")
                         : said(
                               "mean over the rows of −Σ p ln p of hook_pattern; e^H = as many tokens looked at "
                               "alike; last column: mean of the layer's heads");
                return matrix_scene(matrix, style);
              });
  const Scene* scene = ranks_.scene();
  if (!scene) return;
  SceneViewOptions how;
  how.fit_height = false;
  const SceneTouch touch = ranks_.draw(ui, "mechanism ranks", how, width, scene->height);
  if (!touch.cell || !touch.mark || touch.mark->id != "matrix") return;
  const HeadId head{static_cast<int>(touch.cell->row), static_cast<int>(touch.cell->column)};
  const ModelDims& own = run->trace->model.dims;
  const bool a_head = own.has_head(head.layer, head.head);
  if (!a_head && head.head < own.most_heads()) return;
  if (touch.clicked && a_head) editor_.select(head);
  const auto& map = std::get<Heatmap>(touch.mark->shape);
  const auto value = static_cast<double>(map.values.at(touch.cell->row, touch.cell->column));
  tooltip(ui, {a_head ? head_title(head) : say("Layer {}, mean of its heads", head.layer),
               rank ? say("{:.0f} singular values hold 90 % of the energy", value)
                    : say("{:.3f} nats: as many as {:.1f} tokens looked at alike (e^H)", value, std::exp(value)),
               a_head ? say("of blocks.{}.attn.hook_pattern[{}]", head.layer, head.head)
                      : say("of blocks.{}.attn.hook_pattern", head.layer)});
}

}  // namespace headscope
