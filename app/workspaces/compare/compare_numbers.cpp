// The numbers of the Compare workspace: one row of both sides below the maps; predictions, losses and one head's
// metrics in the right column.

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/metrics/next_token.h"

#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/widgets/plots.h"
#include "app/workspaces/compare/compare_workspace.h"
#include "viz/scene/map_cells.h"

namespace headscope {

namespace {

double mean(const std::vector<double>& values) {
  double sum = 0;
  int count = 0;
  for (const double v : values)
    if (!std::isnan(v)) sum += v, ++count;
  return count > 0 ? sum / count : std::nan("");
}

}  // namespace

std::string arrow_text(double a, double b, int decimals) {
  const auto text = [&](double v) { return std::isnan(v) ? std::string("–") : fmt::format("{:.{}f}", v, decimals); };
  return text(a) + " → " + text(b);
}

/// One query's weights of both sides over the keys of A: A's bars stand on the line, B's hang below it. Keys of B
/// without a partner follow at the end.
void CompareWorkspace::row(Ui& ui, AppContext& app, double height) {
  const Comparison& c = *shown();
  const HeadId head = app.explorer.state().document.selected;
  const AttentionMap &map_a = nth(c.a.trace->maps, c.a.row(head)), &map_b = nth(c.b.trace->maps, c.b.row(head));
  Place here = linked(place());
  if (here.query_a < 0 && here.query_b < 0) {  // the last query that has a partner
    for (std::size_t i = 0; i < c.partner.size(); ++i)
      if (c.partner[i] >= 0) here.query_a = static_cast<int>(i), here.query_b = c.partner[i];
  }
  struct Key {
    std::string label;
    double a = 0, b = 0;
    int key_a = -1, key_b = -1;
  };
  std::vector<Key> keys;
  const auto weight = [](const AttentionMap& map, int query, int key) {
    return query >= 0 && key >= 0 && query < map.n_query() && key < map.n_key()
               ? static_cast<double>(map.weight(query, key))
               : 0.0;
  };
  std::vector<char> paired(c.b.trace->tokens.size());
  // Those that the row sees in a decoder, and later ones that have a weight: encoders look ahead.
  const auto last_a = here.query_a < 0 ? static_cast<int>(c.a.trace->tokens.size()) - 1 : here.query_a;
  for (int k = 0; k < static_cast<int>(c.a.trace->tokens.size()); ++k) {
    const int other = nth(c.partner, k);
    const double a = weight(map_a, here.query_a, k), b = weight(map_b, here.query_b, other);
    if (k > last_a && !(a > 0) && !(b > 0)) continue;
    if (other >= 0) nth(paired, other) = 1;
    keys.push_back({token_label(*c.a.trace, k), a, b, k, other});
  }
  const std::size_t of_a = keys.size();
  for (int k = 0; here.query_b >= 0 && k < static_cast<int>(paired.size()); ++k)
    if (!nth(paired, k) && weight(map_b, here.query_b, k) > 0)
      keys.push_back({token_label(*c.b.trace, k), 0, weight(map_b, here.query_b, k), -1, k});
  const std::string query = here.query_a >= 0
                                ? fmt::format("{} {}", token_label(*c.a.trace, here.query_a), here.query_a)
                                : fmt::format("{} {}", token_label(*c.b.trace, here.query_b), here.query_b);
  section(ui, said("ROW"),
          keys.size() > of_a
              ? say("where {} looks; above {}, below {} · last, keys of the second alone", query, c.a.name, c.b.name)
              : say("where {} looks; above {}, below {}", query, c.a.name, c.b.name));
  const float width = ImGui::GetContentRegionAvail().x, tall = ui.px(height - 34);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::InvisibleButton("compare row", {width, tall});
  const bool hovered = ImGui::IsItemHovered();
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  double largest = 1e-6;
  for (const Key& key : keys) largest = std::max({largest, key.a, key.b});
  const float middle = at.y + tall / 2, half = tall / 2 - ui.px(15);
  const float pitch = std::min(width / static_cast<float>(std::max<std::size_t>(keys.size(), 1)), ui.px(34));
  const Color color_a = ui.theme.muted, color_b = legible(ui.theme, ui.theme.accent);
  const float bar = std::max(pitch * 0.72f, 1.f);
  std::vector<std::size_t> order(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    order[i] = i;
    const float x = at.x + pitch * static_cast<float>(i) + (pitch - bar) / 2;
    draw.AddRectFilled({x, middle - half * static_cast<float>(keys[i].a / largest)}, {x + bar, middle}, col(color_a),
                       ui.px(1));
    draw.AddRectFilled({x, middle}, {x + bar, middle + half * static_cast<float>(keys[i].b / largest)}, col(color_b),
                       ui.px(1));
  }
  draw.AddLine({at.x, middle}, {at.x + width, middle}, col(ui.theme.line), 1);
  // The strongest are named, as far as their names do not touch.
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&](std::size_t i) { return std::max(keys[i].a, keys[i].b); });
  std::vector<std::pair<float, float>> taken[2];
  for (const std::size_t i : order) {
    if (std::max(keys[i].a, keys[i].b) < 0.04 * largest) break;
    const bool below = keys[i].b > keys[i].a;
    const std::string words = fmt::format("{} {:.2f}", keys[i].label, below ? keys[i].b : keys[i].a);
    const float wide = static_cast<float>(ui.fonts.width(words, ui.small())) * ui.scale;
    const float center = std::clamp(at.x + pitch * (static_cast<float>(i) + 0.5f), at.x + wide / 2,
                                    at.x + std::max(width - wide / 2, wide / 2));
    const std::pair<float, float> span{center - wide / 2 - ui.px(4), center + wide / 2 + ui.px(4)};
    auto& side = taken[below ? 1 : 0];
    if (std::ranges::any_of(side, [&](const auto& t) { return t.first < span.second && span.first < t.second; }))
      continue;
    side.push_back(span);
    const float tip = half * static_cast<float>((below ? keys[i].b : keys[i].a) / largest);
    draw_text(ui, draw, {{0, 0}, words, ui.small(), below ? color_b : ui.theme.text, Anchor::middle, 0},
              {center, below ? middle + tip + ui.px(12) : middle - tip - ui.px(4)});
  }
  if (!hovered) return;
  const auto index = static_cast<std::size_t>(std::max(0.f, (ImGui::GetMousePos().x - at.x) / pitch));
  if (index >= keys.size()) return;
  const Key& key = keys[index];
  hovered_ = linked({here.query_a, key.key_a, here.query_b, key.key_b});
  tooltip(ui, {fmt::format("{} → {}", query, key.label), fmt::format("{} {:.4f}", c.a.name, key.a),
               fmt::format("{} {:.4f}", c.b.name, key.b), say("{} of both, one row", map_name(*c.a.trace, head))});
}

void CompareWorkspace::right(const PageContext& c) {
  if (!shown())
    return empty_state(c.ui, said("What differs"),
                       said("Predictions, losses and the head's numbers of both will stand here."));
  predictions(c.ui);
  losses(c.ui);
  numbers(c.ui, c.app);
}

void CompareWorkspace::predictions(Ui& ui) {
  const Comparison& c = *shown();
  const Objective asked_a = c.a.run->model.objective, asked_b = c.b.run->model.objective;
  const bool decoder = asked_a == Objective::next_token && asked_b == asked_a;
  section(ui,
          decoder              ? said("NEXT TOKEN")
          : asked_a == asked_b ? said("MASKED TOKEN")
                               : said("ANSWERS"),
          c.next                                 ? fmt::format("{} → {}", c.a.name, c.b.name)
          : asked_a != asked_b                   ? said("not the same is asked")
          : c.next_a.empty() || c.next_b.empty() ? said("one is asked for none")
                                                 : said("vocabularies differ: two lists"));
  std::vector<Bar> bars;
  if (c.next) {
    double largest = 1e-9;
    for (const auto& token : c.next->tokens) largest = std::max({largest, token.before, token.after});
    for (const auto& token : c.next->tokens) {
      if (bars.size() == 8) break;
      bars.push_back({c.a.label(token.id), token.after / largest, token.before / largest,
                      fmt::format("{:.1f} → {:.1f}", 100 * token.before, 100 * token.after),
                      say("token {}: probability {:.5f} → {:.5f}, softmax of the logits over the full vocabulary",
                          token.id, token.before, token.after)});
    }
    bar_list(ui, "compare next", bars);
    fact(ui, fmt::format("KL({} ‖ {})", c.a.name, c.b.name), say("{:.4f} nats", c.next->kl), nullptr,
         {say("of the distributions {}", said(prediction_words(c.a.run->model.objective).where)),
          said("Σ p ln(p / q) over the full vocabulary")});
    return;
  }
  const auto list = [&](const ComparedSide& side, const std::vector<NextToken>& next, const char* id) {
    section(ui, side.name, said(prediction_words(side.run->model.objective).where));
    if (next.empty()) return note(ui, said("No token is masked."));
    std::vector<Bar> own;
    for (const NextToken& token : next) {
      if (own.size() == 5) break;
      own.push_back({side.label(token.id), token.probability / std::max(next.front().probability, 1e-9), -1,
                     fmt::format("{:.1f} %", 100 * token.probability), say("token {}", token.id)});
    }
    bar_list(ui, id, own);
  };
  list(c.a, c.next_a, "compare next a");
  list(c.b, c.next_b, "compare next b");
}

void CompareWorkspace::losses(Ui& ui) {
  const Comparison& c = *shown();
  if (c.a.losses.empty() && c.b.losses.empty()) return;
  section(ui, said("LOSS PER TOKEN"), say("nats · grey {}, blue {}", c.a.name, c.b.name));
  const auto line_of = [](const ComparedSide& side, Color color) {
    return ChartSeries{side.name, color, side.losses.empty() ? std::vector<double>() : target_positions(*side.run),
                       side.losses};
  };
  ChartSeries a = line_of(c.a, ui.theme.muted), b = line_of(c.b, legible(ui.theme, ui.theme.accent));
  LineChart chart;
  chart.height = 116;
  chart.grid = true;
  chart.y_low = 0;
  chart.x_title = said("position");
  for (ChartSeries* line : {&a, &b})
    if (!line->y.empty()) chart.series.push_back(std::move(*line));
  plot(ui, "compare losses", chart);
  std::vector<std::string> formulas;
  for (const ComparedSide* side : {&c.a, &c.b})
    formulas.push_back(fmt::format("{}: {}", side->name, said(prediction_words(side->run->model.objective).loss)));
  fact(ui, said("Mean loss"), say("{} nats", arrow_text(mean(c.a.losses), mean(c.b.losses))), nullptr, formulas);
  if (c.kl.empty()) return;
  ChartSeries kl{"", legible(ui.theme, ui.theme.key), {}, c.kl};
  for (std::size_t i = 0; i < c.kl.size(); ++i) kl.x.push_back(static_cast<double>(i));
  chart.y_title = said("KL of the predictions, nats");
  chart.series = {std::move(kl)};
  plot(ui, "compare kl", chart);
  fact(ui, said("Mean KL over paired tokens"), say("{:.4f} nats", mean(c.kl)), nullptr,
       {c.unit == TextUnit::words
            ? say("KL({0} ‖ {1}) after every token of {0} that has a partner (paired by itself: by hand words are "
                  "paired)",
                  c.a.name, c.b.name)
            : say("KL({0} ‖ {1}) after every token of {0} that has a partner", c.a.name, c.b.name)});
}

void CompareWorkspace::numbers(Ui& ui, AppContext& app) {
  const Comparison& c = *shown();
  const HeadId head = app.explorer.state().document.selected;
  const int row_a = c.a.row(head), row_b = c.b.row(head);
  if (row_a < 0 || row_b < 0) return;
  section(ui, say("LAYER {} HEAD {}", head.layer, head.head), fmt::format("{} → {}", c.a.name, c.b.name));
  static constexpr std::string_view ids[] = {"entropy",         "sink",           "mean_distance",   "max_weight",
                                             "prefix_matching", "previous_token", "duplicate_token", "self_attention"};
  for (const std::string_view id : ids) {
    const Metric& m = metric(id);
    const auto column = static_cast<std::size_t>(&m - metrics().data());
    const double a = nth(c.a.table.value, row_a)[column], b = nth(c.b.table.value, row_b)[column];
    const bool moved = !std::isnan(a) && !std::isnan(b) && std::abs(b - a) > 0.1 * std::max(std::abs(a), 0.1);
    fact(ui, std::string(said_view(m.title)), arrow_text(a, b, 2), moved ? &ui.theme.accent : nullptr,
         {std::string(said_view(m.title)), std::string(said_view(m.formula)),
          say("{} of both, F32", map_name(*c.a.trace, head))});
  }
}

}  // namespace headscope
