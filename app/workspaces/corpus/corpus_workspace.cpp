#include "app/workspaces/corpus/corpus_workspace.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "app/widgets/controls.h"
#include "app/widgets/keyboard.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/head_cells.h"
#include "core/base/duration.h"
#include "viz/scene/histogram.h"
#include "viz/scene/matrix_scene.h"
#include "viz/scene/scatter.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

std::size_t column(std::string_view id) {
  return static_cast<std::size_t>(&metric(id) - metrics().data());
}

std::string unit_text(const Metric& metric) {
  return std::string(metric.title) + (metric.unit.empty() ? "" : ", " + std::string(metric.unit));
}

std::string grouped(std::uint64_t value) {
  std::string out = std::to_string(value);
  for (auto at = static_cast<std::ptrdiff_t>(out.size()) - 3; at > 0; at -= 3)
    out.insert(static_cast<std::size_t>(at), ",");
  return out;
}

/// The head's number, layer-major, when the results know it.
std::optional<int> row_of(const CorpusStatistics& all, HeadId head) {
  if (head.layer >= all.layers() || head.head >= all.heads()) return std::nullopt;
  return head.layer * all.heads() + head.head;
}

Color class_hue(const Ui& ui, const CorpusStatistics& all, int head) {
  const ClassRule* rule = all.class_of(head, default_class_rules());
  return rule ? class_color(*rule) : ui.theme.muted;
}

bool number_field(const Ui& ui, const char* label, int& value, int step) {
  ImGui::AlignTextToFramePadding();
  ImGui::TextUnformatted(label);
  ImGui::SameLine(ui.px(118));
  ImGui::SetNextItemWidth(ImGui::GetContentRegionAvail().x);
  return ImGui::InputInt(fmt::format("##{}", label).c_str(), &value, step, step * 10);
}

/// A menu of all metrics behind a button. `id` names both.
void metric_menu(const Ui& ui, const char* id, const char* what, std::size_t& chosen) {
  if (menu_button(ui, id, std::string(metrics()[chosen].title), what, ui.px(27))) ImGui::OpenPopup(id);
  if (!ImGui::BeginPopup(id)) return;
  for (std::size_t i = 0; i < metrics().size(); ++i) {
    const Metric& each = metrics()[i];
    if (ImGui::MenuItem(std::string(each.title).c_str(), nullptr, i == chosen)) chosen = i;
    if (ImGui::IsItemHovered())
      tooltip(ui, {std::string(each.title), std::string(each.formula), std::string(each.source)});
  }
  ImGui::EndPopup();
}

/// Words in three colours, wrapped as one text: what came before, the position that stands out, what follows.
void wrapped_example(const Ui& ui, const ShownExample& example) {
  const Font font = ui.body();
  const UseFont use(ui, font);
  const float left = ImGui::GetCursorScreenPos().x, right = left + ImGui::GetContentRegionAvail().x;
  ImVec2 at = ImGui::GetCursorScreenPos();
  const float line = ImGui::GetTextLineHeight() + ui.px(3);
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const auto write = [&](const std::string& text, Color color, bool ground) {
    for (std::size_t begin = 0; begin < text.size();) {
      // A word with the spaces before it, so that lines break between words.
      std::size_t end = text.find_first_not_of(" \n\r\t", begin);
      end = end == std::string::npos ? text.size() : std::min(text.find_first_of(" \n\r\t", end), text.size());
      std::string word = printable(text.substr(begin, end - begin), 400);
      std::ranges::replace(word, '\n', ' ');
      const auto width_of_word = [&] { return static_cast<float>(ui.fonts.width(word, font)) * ui.scale; };
      const float width = width_of_word();
      if (at.x + width > right && at.x > left) {
        at = {left, at.y + line};
        word.erase(0, word.find_first_not_of(' '));
      }
      const float shown = width_of_word();
      if (ground)
        draw.AddRectFilled({at.x - ui.px(1), at.y - ui.px(1)}, {at.x + shown + ui.px(1), at.y + line - ui.px(2)},
                           col(with_opacity(ui.theme.accent, 0.28)), ui.px(3));
      const std::string_view laid_out = ui.fonts.laid_out(word, font);
      draw.AddText(at, col(color), laid_out.data(), laid_out.data() + laid_out.size());
      at.x += shown;
      begin = end;
    }
  };
  write(example.before, ui.theme.muted, false);
  write(example.focus, ui.theme.text, true);
  write(example.after, example.focus.empty() ? ui.theme.muted : ui.theme.faint, false);
  ImGui::Dummy({right - left, at.y + line - ImGui::GetCursorScreenPos().y});
}

}  // namespace

CorpusWorkspace::CorpusWorkspace(CorpusController& controller)
    : Workspace("Corpus"),
      controller_(controller),
      x_(column("entropy")),
      y_(column("prefix_matching")),
      shown_(column("entropy")) {}

void CorpusWorkspace::controls(ControlsRecord& record) {
  controls_of(controller_, record);
  record.field("spread", spread_, 0, 1);
  record.field("examples", kind_, 0, 2);
  for (const auto& [name, chosen] : {std::pair{"x", &x_}, {"y", &y_}, {"shown", &shown_}}) {
    std::string id(metrics()[*chosen].id);
    record.field(name, id);
    const auto found = std::ranges::find(metrics(), id, &Metric::id);
    if (found != metrics().end()) *chosen = static_cast<std::size_t>(found - metrics().begin());
  }
}

void CorpusWorkspace::left(const PageContext& c) {
  source(c.ui, c.app);
  progress(c.ui);
  keep(c.ui);
}

void CorpusWorkspace::source(Ui& ui, AppContext& app) {
  CorpusDraft& draft = controller_.draft();
  section(ui, "CORPUS", "read by the model that is open");
  static constexpr const char* kinds[] = {"Stories", "File or folder"};
  int kind = draft.stories ? 0 : 1;
  if (segmented(ui, "corpus source", kinds, kind)) draft.stories = kind == 0;
  if (draft.stories) {
    number_field(ui, "How many", draft.count, 100);
    draft.count = std::clamp(draft.count, 1, 1'000'000'000);
    number_field(ui, "Seed", draft.seed, 1);
    draft.seed = std::max(draft.seed, 0);
    note(ui, "Drawn from the language of the bundled models.");
  } else {
    ImGui::SetNextItemWidth(ImGui::GetContentRegionAvail().x);
    input_line(ui, "##corpus path", "path of a text file or a folder", draft.path);
    static constexpr const char* units[] = {"Whole files", "By lines"};
    int unit = draft.lines ? 1 : 0;
    if (segmented(ui, "corpus unit", units, unit)) draft.lines = unit == 1;
  }
  number_field(ui, "Passage", draft.window, 16);
  const Results& open = app.explorer.results();
  const int context = open.model.model ? open.model.model->config().context : 0;
  draft.window = std::clamp(draft.window, 0, context > 0 ? context : 1 << 20);
  note(ui, draft.window == 0
               ? fmt::format("tokens at most; 0: the context{}", context > 0 ? fmt::format(", {}", context) : "")
               : "tokens at most. Longer texts are cut into passages.");
}

void CorpusWorkspace::progress(Ui& ui) {
  using Phase = CorpusController::Phase;
  const Phase phase = controller_.phase();
  static constexpr const char* words[] = {"", "reading", "stopped", "finished", "stopped by an error"};
  section(ui, "RUN", words[static_cast<int>(phase)]);
  if (phase == Phase::running) {
    if (button(ui, "Stop")) controller_.stop();
  } else {
    if (button(ui, phase == Phase::idle ? "Start" : "Start again")) controller_.start();
    if (controller_.can_resume()) {
      ImGui::SameLine();
      if (button(ui, "Resume")) controller_.resume();
    }
  }
  if (!controller_.error().empty()) error_text(ui, controller_.error());
  const auto& results = controller_.results();
  if (phase == Phase::running || phase == Phase::stopped) {
    ImGui::PushStyleColor(ImGuiCol_PlotHistogram, vec(ui.theme.accent));
    ImGui::ProgressBar(static_cast<float>(controller_.progress()), {ImGui::GetContentRegionAvail().x, ui.px(4)}, "");
    ImGui::PopStyleColor();
  }
  if (!results) return;
  const CorpusStatistics& all = results->statistics;
  fact(ui, "Text",
       elided(describe(results->source), ui.number(), ImGui::GetContentRegionAvail().x / ui.scale - 60, ui.fonts));
  fact(ui, "Model", results->model);
  fact(ui, "Passages", grouped(all.passages()), nullptr,
       {"Passages",
        fmt::format("of at most {} tokens, each run alone, as its text would be in Explore", results->window),
        "files in stretches of at most 16 KiB that end at a line break; passages do not overlap",
        "those of a single token are left out"});
  fact(ui, "Tokens", grouped(all.tokens()));
  if (controller_.tokens_per_second() > 0)
    fact(ui, "Speed", fmt::format("{} tokens/s", grouped(static_cast<std::uint64_t>(controller_.tokens_per_second()))),
         nullptr, {"Speed", "passes, every metric of every head, and examples; of the worker's own time"});
  if (phase == Phase::running && std::isfinite(controller_.seconds_left()))
    fact(ui, "Time left", duration_text(controller_.seconds_left()));
  if (results->shards > 1) fact(ui, "Shard", fmt::format("{} of {}", results->shard, results->shards));
  if (results->skipped > 0) fact(ui, "Files left out", fmt::format("{}, not UTF-8", results->skipped));
}

void CorpusWorkspace::keep(Ui& ui) {
  section(ui, "FILE", "save, and go on another day");
  ImGui::SetNextItemWidth(ImGui::GetContentRegionAvail().x);
  input_line(ui, "##corpus file", "results.json, or a folder of shards", file_);
  ImGui::BeginDisabled(file_.empty() || !controller_.results());
  if (button(ui, "Save results")) controller_.save(file_);
  ImGui::EndDisabled();
  ImGui::SameLine();
  ImGui::BeginDisabled(file_.empty());
  if (button(ui, "Load results")) controller_.load(file_);
  ImGui::EndDisabled();
  note(ui, "headscope-cli corpus --shard i/n spreads the work over machines; a folder of all shards loads as one run.");
}

namespace {
/// Of every head and metric: what the pictures show one at a time.
Table all_numbers(const CorpusStatistics& all) {
  Table out{"every head and metric over all passages",
            {"layer", "head", "metric", "passages", "mean", "spread", "chance"},
            {}};
  for (int decile = 1; decile <= 9; ++decile) out.columns.push_back(fmt::format("decile {}", decile));
  for (int row = 0; row < all.layers() * all.heads(); ++row)
    for (std::size_t metric = 0; metric < metrics().size(); ++metric) {
      const Distribution& values = all.of(row, metric);
      out.rows.push_back({std::to_string(row / all.heads()), std::to_string(row % all.heads()),
                          std::string(metrics()[metric].id), std::to_string(values.count()), number_cell(values.mean()),
                          number_cell(values.spread()), number_cell(all.chance(metric).mean())});
      for (int decile = 1; decile <= 9; ++decile)
        out.rows.back().push_back(values.count() > 0 ? number_cell(values.quantile(decile / 10.0)) : "");
    }
  return out;
}
}  // namespace

void CorpusWorkspace::middle(const PageContext& c) {
  if (!controller_.results() || controller_.results()->statistics.passages() == 0) {
    if (controller_.phase() == CorpusController::Phase::running)
      return empty_state(c.ui, "Reading the first passages", "The first picture follows at once.");
    return empty_state(
        c.ui, "No corpus has been read",
        "Press Start on the left: every head is measured on every passage, and its distributions and best "
        "examples appear here.");
  }
  c.ui.pictures.add_table("corpus table", "every head and metric",
                          [results = controller_.results()] { return all_numbers(results->statistics); });
  const double room = static_cast<double>(ImGui::GetContentRegionAvail().y / c.ui.scale);
  const double controls = 36;
  scatter(c.ui, c.app, std::max(200.0, std::floor(room * 0.54) - controls));
  const double height =
      std::max(180.0, static_cast<double>(ImGui::GetContentRegionAvail().y / c.ui.scale) - controls - 34);
  section(c.ui, "DISTRIBUTION", "over all passages");
  metric_menu(c.ui, "Corpus metric", "", shown_);
  ImGui::SameLine(0, c.ui.px(10));
  static constexpr const char* kinds[] = {"Mean", "Spread"};
  segmented(c.ui, "corpus tiles", kinds, spread_);
  const double width = std::floor(static_cast<double>(ImGui::GetContentRegionAvail().x / c.ui.scale));
  const double tiles = std::clamp(std::floor(width * 0.42), 180.0, 460.0);
  ImGui::BeginGroup();
  heads(c.ui, c.app, tiles, height);
  ImGui::EndGroup();
  ImGui::SameLine(0, c.ui.px(20));
  ImGui::BeginGroup();
  histogram(c.ui, c.app, width - tiles - 20, height);
  ImGui::EndGroup();
}

void CorpusWorkspace::scatter(Ui& ui, AppContext& app, double height) {
  metric_menu(ui, "Vertical metric", "↑", y_);
  ImGui::SameLine(0, ui.px(10));
  metric_menu(ui, "Horizontal metric", "→", x_);
  const auto results = controller_.results();
  const double width = std::floor(static_cast<double>(ImGui::GetContentRegionAvail().x / ui.scale));
  const int heads = results->statistics.layers() * results->statistics.heads();
  scatter_.want(app.explorer.jobs, ui, results, fmt::format("{} {} {} {}", x_, y_, width, height),
                [results, width, height, heads, x = x_, y = y_](const Style& style) {
                  const CorpusStatistics& all = results->statistics;
                  const Metric &mx = metrics()[x], &my = metrics()[y];
                  ScatterOptions options;
                  options.width = width;
                  options.height = height;
                  options.x_title = unit_text(mx) + " → mean";
                  options.y_title = unit_text(my) + " ↑ mean";
                  if (std::isfinite(all.chance(x).mean()) && std::isfinite(all.chance(y).mean()))
                    options.chance = Point{all.chance(x).mean(), all.chance(y).mean()};
                  std::vector<ScatterPoint> points;
                  for (int head = 0; head < heads; ++head) {
                    ScatterPoint point;
                    const int layer = head / all.heads(), number = head % all.heads();
                    point.head = {layer, number};
                    point.label = to_string(point.head);
                    const Distribution &dx = all.of(head, x), &dy = all.of(head, y);
                    point.x = dx.mean();
                    point.y = dy.mean();
                    if (heads <= 64) point.x_spread = dx.spread(), point.y_spread = dy.spread();
                    const ClassRule* rule = all.class_of(head, default_class_rules());
                    point.color = rule ? class_color(*rule) : style.theme.muted;
                    point.hollow = !rule;
                    point.tooltip = fmt::format(
                        "Layer {} Head {}{}\n{} {} ± {}\n{} {} ± {}\nmean ± standard deviation over {} passages", layer,
                        number, rule ? " · " + rule->title : "", mx.title, short_number(dx.mean()),
                        short_number(dx.spread()), my.title, short_number(dy.mean()), short_number(dy.spread()),
                        std::min(dx.count(), dy.count()));
                    if (rule && std::ranges::find(options.legend, rule->title, &std::pair<std::string, Color>::first) ==
                                    options.legend.end())
                      options.legend.emplace_back(rule->title, class_color(*rule));
                    points.push_back(std::move(point));
                  }
                  options.hollow_title = "no class";
                  return scatter_scene(points, options, style);
                });
  const SceneTouch touch = scatter_.draw(ui, "corpus scatter", {}, width, height);
  if (!scatter_.scene()) return;
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const HeadId selected = app.explorer.state().document.selected;
  for (const Mark& mark : scatter_.scene()->marks) {
    const HeadId* means = meaning<HeadId>(&mark);
    if (!means) continue;
    const HeadId head = *means;
    const Rect rect = std::get<Box>(mark.shape).rect;
    const ImVec2 from = touch.window({rect.x, rect.y}), to = touch.window({rect.right(), rect.bottom()});
    ui.name(fmt::format("Point {}.{}", head.layer, head.head), from, to);
    const ImVec2 middle{(from.x + to.x) / 2, (from.y + to.y) / 2};
    const bool hovered = touch.mark == &mark;
    if (head == selected) draw.AddCircle(middle, ui.px(8), col(ui.theme.text), 24, ui.px(2));
    if (hovered) draw.AddCircle(middle, ui.px(8), col(ui.theme.accent), 24, ui.px(1.5));
    if (!hovered) continue;
    if (touch.double_clicked) app.ui.workspace = workspace_index("Explore");
    if (touch.clicked) app.explorer.editor.select(head);
  }
}

void CorpusWorkspace::heads(Ui& ui, AppContext& app, double width, double height) {
  const auto results = controller_.results();
  heads_.want(app.explorer.jobs, ui, results, fmt::format("{} {} {} {}", shown_, spread_, width, height),
              [results, width, height, metric = shown_, spread = spread_ == 1](const Style& style) {
                const CorpusStatistics& all = results->statistics;
                const Metric& shown = metrics()[metric];
                std::vector<double> values;
                for (int head = 0; head < all.layers() * all.heads(); ++head)
                  values.push_back(spread ? all.of(head, metric).spread() : all.of(head, metric).mean());
                Matrix matrix = head_matrix(all.layers(), all.heads(), values);
                matrix.unit = (spread ? "spread of " : "mean ") + unit_text(shown);
                matrix.provenance = std::string(shown.formula);
                if (!spread && shown.low == 0) matrix.low = 0;
                matrix.width = width;
                matrix.height = height;
                return matrix_scene(matrix, style);
              });
  SceneViewOptions how;
  how.fit_height = false;
  const SceneTouch touch = heads_.draw(ui, "corpus heads", how, width, height);
  if (heads_.scene()) (void)head_cells({ui, app}, *heads_.scene(), touch);
}

void CorpusWorkspace::histogram(Ui& ui, AppContext& app, double width, double height) {
  const auto results = controller_.results();
  const HeadId head = app.explorer.state().document.selected;
  const auto row = row_of(results->statistics, head);
  if (!row) return note(ui, "The selected head is of another model than these results.");
  const Color color = class_hue(ui, results->statistics, *row);
  histogram_.want(app.explorer.jobs, ui, results, fmt::format("{} {} {} {}", shown_, *row, width, height),
                  [results, width, height, head, row = *row, metric = shown_, color](const Style& style) {
                    const Distribution& values = results->statistics.of(row, metric);
                    Histogram picture;
                    const Distribution::Bars bars = values.bars();
                    picture.counts = bars.counts;
                    picture.low = bars.low;
                    picture.high = bars.high;
                    if (values.count() > 0)
                      for (int i = 1; i <= 9; ++i) picture.deciles.push_back(values.quantile(i / 10.0));
                    picture.mean = values.mean();
                    picture.spread = values.spread();
                    const double chance = results->statistics.chance(metric).mean();
                    if (std::isfinite(chance)) picture.chance = chance;
                    picture.title =
                        fmt::format("{} of head {}.{}{}", metrics()[metric].title, head.layer, head.head,
                                    metrics()[metric].unit.empty() ? "" : ", " + std::string(metrics()[metric].unit));
                    picture.remark = fmt::format("{} {}", values.count(), values.count() == 1 ? "passage" : "passages");
                    picture.color = color;
                    picture.width = width;
                    picture.height = std::min(height, 320.0);
                    return histogram_scene(picture, style);
                  });
  histogram_.draw(ui, "corpus histogram", {}, width, std::min(height, 320.0));
}

void CorpusWorkspace::right(const PageContext& c) {
  if (!controller_.results() || controller_.results()->statistics.passages() == 0)
    return empty_state(c.ui, "Examples", "Passages that show the selected head best will stand here.");
  numbers(c.ui, c.app);
  examples(c.ui, c.app);
}

void CorpusWorkspace::numbers(Ui& ui, AppContext& app) {
  const CorpusStatistics& all = controller_.results()->statistics;
  const HeadId head = app.explorer.state().document.selected;
  section(ui, fmt::format("HEAD {}.{}", head.layer, head.head), "mean ± spread, chance in grey");
  const auto row = row_of(all, head);
  if (!row) return note(ui, "These results are of another model.");
  if (const ClassRule* rule = all.class_of(*row, default_class_rules())) {
    const std::size_t scored = column(rule->metric);
    badge(ui, fmt::format("{} {:.2f}", rule->title, all.of(*row, scored).mean()), class_color(*rule));
    if (ImGui::IsItemHovered())
      tooltip(ui, {rule->title + " by the mean over all passages", std::string(metrics()[scored].formula)});
  }
  std::vector<const char*> listed{"entropy",         "sink",         "previous_token", "duplicate_token",
                                  "prefix_matching", "mean_distance"};
  if (std::ranges::all_of(listed, [&](const char* id) { return all.of(*row, column(id)).count() == 0; })) {
    note(ui, "No passage gives it one of the usual numbers: those of probabilities are silent on weights of any sign.");
    listed = {"row_mass"};
  }
  for (const char* id : listed) {
    const std::size_t at = column(id);
    const Distribution& values = all.of(*row, at);
    const auto number = [](double value) { return std::isnan(value) ? std::string("–") : short_number(value, 3); };
    const std::string chance = number(all.chance(at).mean());
    fact(ui, std::string(metrics()[at].title), fmt::format("{} ± {}", number(values.mean()), number(values.spread())),
         nullptr,
         {std::string(metrics()[at].title), std::string(metrics()[at].formula),
          fmt::format("mean and standard deviation over {} passages; {} … {}", values.count(),
                      number(values.smallest()), number(values.largest()))},
         &chance);
  }
}

void CorpusWorkspace::examples(Ui& ui, AppContext& app) {
  section(ui, "EXAMPLES", "by " + std::string(metrics()[shown_].title) + " · click opens in Explore");
  static constexpr const char* kinds[] = {"Highest", "Lowest", "Typical"};
  segmented(ui, "example kind", kinds, kind_);
  if (ImGui::IsItemHovered())
    tooltip(ui, {"Passages by the metric of this head", "highest and lowest: of all passages",
                 fmt::format("typical: nearest to the median, of a random sample of {} passages",
                             CorpusStatistics::sampled),
                 "marked: the position where the metric of that row alone is most extreme"});
  const HeadId head = app.explorer.state().document.selected;
  const auto* shown = controller_.examples(head, shown_, static_cast<ExampleKind>(kind_));
  if (!shown) return;
  if (shown->empty()) return note(ui, "No passage offers evidence for this metric.");
  for (std::size_t i = 0; i < shown->size(); ++i) {
    const ShownExample& example = (*shown)[i];
    ImGui::PushID(static_cast<int>(i));
    ImGui::Dummy({0, ui.px(2)});
    const ImVec2 from = ImGui::GetCursorScreenPos();
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    draw.ChannelsSplit(2);
    draw.ChannelsSetCurrent(1);
    ImGui::BeginGroup();
    const std::string value = short_number(Distribution::value(example.example.value), 4);
    fact(ui, example.place, value);
    if (example.error.empty())
      wrapped_example(ui, example);
    else
      error_text(ui, example.error);
    ImGui::EndGroup();
    const ImVec2 to{from.x + ImGui::GetContentRegionAvail().x, ImGui::GetItemRectMax().y + ui.px(4)};
    ImGui::SetCursorScreenPos(from);
    const std::string id = fmt::format("example {}", i);
    const bool clicked = pressable(id.c_str(), {to.x - from.x, to.y - from.y});
    draw.ChannelsSetCurrent(0);
    if (ImGui::IsItemHovered())
      draw.AddRectFilled({from.x - ui.px(6), from.y - ui.px(2)}, {to.x + ui.px(6), to.y}, col(ui.chrome.hovered),
                         ui.px(6));
    draw.ChannelsMerge();
    if (clicked && example.error.empty()) {
      controller_.open(example, head);
      if (controller_.of_open_model()) app.ui.workspace = workspace_index("Explore");
    }
    ImGui::PopID();
  }
}

}  // namespace headscope
