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
#include "core/base/words.h"
#include "viz/scene/histogram.h"
#include "viz/scene/matrix_scene.h"
#include "viz/scene/scatter.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

std::string unit_text(const Metric& metric) {
  return std::string(said_view(metric.title)) +
         (metric.unit.empty() ? "" : fmt::format(", {}", said_view(metric.unit)));
}

std::string grouped(std::uint64_t value) {
  std::string out = std::to_string(value);
  for (auto at = static_cast<std::ptrdiff_t>(out.size()) - 3; at > 0; at -= 3)
    out.insert(static_cast<std::size_t>(at), ",");
  return out;
}

Color class_hue(const Ui& ui, const CorpusStatistics& all, int head) {
  const ClassRule* rule = all.class_of(head, default_class_rules());
  return rule ? class_color(*rule) : ui.theme.muted;
}

bool number_field(const Ui& ui, const char* label, int& value, int step) {
  ImGui::AlignTextToFramePadding();
  text_line(ui, said(label));
  ImGui::SameLine(ui.px(118));
  ImGui::SetNextItemWidth(ImGui::GetContentRegionAvail().x);
  return ImGui::InputInt(fmt::format("##{}", label).c_str(), &value, step, step * 10);
}

/// " · encoder"; "" where there is one stack.
std::string of_stack(Stack stack) {
  return stack == Stack::only ? "" : fmt::format(" · {}", stack_word(stack));
}

bool any_has(const CorpusStatistics& all, std::size_t metric) {
  for (int head = 0; head < all.layers() * all.heads(); ++head)
    if (all.of(head, metric).count() > 0) return true;
  return false;
}

}  // namespace

std::size_t corpus_column(std::string_view id) {
  return static_cast<std::size_t>(&metric(id) - metrics().data());
}

std::optional<int> corpus_row(const CorpusStatistics& all, HeadId head) {
  if (head.layer >= all.layers() || head.head >= all.heads()) return std::nullopt;
  return head.layer * all.heads() + head.head;
}

CorpusWorkspace::CorpusWorkspace(CorpusController& controller)
    : Workspace("Corpus"),
      controller_(controller),
      x_(corpus_column("entropy")),
      y_(corpus_column("prefix_matching")),
      shown_(corpus_column("entropy")) {
  for (std::size_t i = 0; i < CorpusStatistics::examples; ++i)
    pictures_.emplace_back(fmt::format("scene.corpus.example {}", i));
}

/// An encoder-decoder's stack is the one that is looked at everywhere else, too.
void CorpusWorkspace::follow(const PageContext& c) {
  const auto& results = controller_.results();
  if (!results || !results->encoder)
    stack_ = Stack::only;
  else if (c.results().translates())
    stack_ = c.state().document.stack;
  else if (stack_ == Stack::only)
    stack_ = Stack::decoder;
}

std::string CorpusWorkspace::why_none(std::size_t metric) const {
  if (any_has(part(), metric)) return "";
  if (stack_ == Stack::cross && metrics()[metric].one_text) return said("queries and keys are of two texts.");
  return controller_.results()->source.kind == CorpusKind::pictures
             ? said("patches neither repeat one another nor mark a text.")
             : said("no passage offers evidence.");
}

std::size_t CorpusWorkspace::or_else(std::size_t chosen, const char* other) const {
  return any_has(part(), chosen) ? chosen : corpus_column(other);
}

/// A menu of all metrics behind a button. `id` names both; `now` is shown where these results lack the chosen one.
void CorpusWorkspace::metric_menu(const Ui& ui, const char* id, const char* what, std::size_t& chosen,
                                  std::size_t now) const {
  if (menu_button(ui, id, std::string(said_view(metrics()[now].title)), what, ui.px(27))) ImGui::OpenPopup(id);
  if (!ImGui::BeginPopup(id)) return;
  for (std::size_t i = 0; i < metrics().size(); ++i) {
    const Metric& each = metrics()[i];
    const std::string none = why_none(i);
    if (menu_item(ui, std::string(each.title).c_str(), nullptr, i == now, none.empty())) chosen = i;
    if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled))
      tooltip(ui, {std::string(said_view(each.title)), std::string(said_view(each.formula)),
                   none.empty() ? std::string(each.source) : say("Absent: {}", none)});
  }
  ImGui::EndPopup();
}

void CorpusWorkspace::controls(ControlsRecord& record) {
  controls_of(controller_, record);
  record.field("spread", spread_, 0, 1);
  record.choice("examples", kind_, 2);
  for (const auto& [name, chosen] : {std::pair{"x", &x_}, {"y", &y_}, {"shown", &shown_}}) {
    std::string id(metrics()[*chosen].id);
    record.field(name, id);
    const auto found = std::ranges::find(metrics(), id, &Metric::id);
    if (found != metrics().end()) *chosen = static_cast<std::size_t>(found - metrics().begin());
  }
}

void CorpusWorkspace::left(const PageContext& c) {
  follow(c);
  source(c.ui, c.app);
  progress(c.ui);
  if (stack_ != Stack::only) {
    if (c.results().translates())
      stack_bar(c);
    else
      stack_ = stack_choice(c.ui, stack_).value_or(stack_);
  }
  keep(c.ui);
}

namespace {
/// What the workspace says of a kind of corpus.
struct KindWords {
  const char *drawn, *files, *path, *of_drawn, *of_files, *name;
};
const KindWords& words_of(CorpusKind kind) {
  static constexpr KindWords words[] = {
      {to_say("Stories"), to_say("File or folder"), to_say("path of a text file or a folder"),
       to_say("Drawn from the language that this model learnt; where none is known, from that of tiny-gpt2."), "",
       to_say("Text")},
      {to_say("Drawn pairs"), to_say("File or folder"), to_say("path of a file of pairs or a folder"),
       to_say("Sentences of two small languages, which the bundled tiny-translate learnt."),
       to_say("In each line a source, a tab and its target. One pass measures encoder, decoder and cross-attention."),
       to_say("Pairs")},
      {to_say("Drawn pictures"), to_say("File or folder"), to_say("path of a picture or a folder"),
       to_say("A warm shape among cold ones, as the bundled tiny-vit learnt them."),
       to_say("PNG and JPEG, also in folders inside."), to_say("Pictures")}};
  return words[static_cast<std::size_t>(kind)];
}
}  // namespace

void CorpusWorkspace::source(Ui& ui, AppContext& app) {
  CorpusDraft& draft = controller_.draft();
  const CorpusKind kind = controller_.kind();
  const KindWords& words = words_of(kind);
  section(ui, said("CORPUS"), said("read by the model that is open"));
  const char* const sources[] = {words.drawn, words.files};
  int chosen = draft.drawn ? 0 : 1;
  if (segmented(ui, "corpus source", sources, chosen)) draft.drawn = chosen == 0;
  if (draft.drawn) {
    number_field(ui, to_say("How many"), draft.count, 100);
    draft.count = std::clamp(draft.count, 1, 1'000'000'000);
    number_field(ui, to_say("Seed"), draft.seed, 1);
    draft.seed = std::max(draft.seed, 0);
    note(ui, said(words.of_drawn));
  } else {
    ImGui::SetNextItemWidth(ImGui::GetContentRegionAvail().x);
    input_line(ui, "##corpus path", said(words.path), draft.path);
    if (kind == CorpusKind::texts) {
      static constexpr const char* units[] = {to_say("Whole files"), to_say("By lines")};
      int unit = draft.lines ? 1 : 0;
      if (segmented(ui, "corpus unit", units, unit)) draft.lines = unit == 1;
    } else {
      note(ui, said(words.of_files));
    }
  }
  const Results& open = app.explorer.results();
  if (kind == CorpusKind::pictures)
    return note(ui, say("A picture is a passage, of {} tokens: its patches and what stands before them.",
                        open.model.model->config().vision->tokens()));
  number_field(ui, to_say("Passage"), draft.window, 16);
  const int context = open.model.model ? open.model.model->config().context : 0;
  draft.window = std::clamp(draft.window, 0, context > 0 ? context : 1 << 20);
  const std::string most = draft.window != 0 ? said("tokens at most.")
                           : context > 0     ? say("tokens at most; 0: the context, {}", context)
                                             : said("tokens at most; 0: the context");
  note(ui, kind == CorpusKind::pairs
               ? most + (draft.window == 0 ? ". " : " ") + said("Of each text: longer pairs are left out and counted.")
           : draft.window == 0 ? most
                               : most + " " + said("Longer texts are cut into passages."));
}

void CorpusWorkspace::progress(Ui& ui) {
  using Phase = CorpusController::Phase;
  const Phase phase = controller_.phase();
  static constexpr const char* words[] = {"", to_say("reading"), to_say("stopped"), to_say("finished"),
                                          to_say("stopped by an error")};
  section(ui, said("RUN"), said(words[static_cast<int>(phase)]));
  if (phase == Phase::running) {
    if (button(ui, to_say("Stop"))) controller_.stop();
  } else {
    if (button(ui, phase == Phase::idle ? to_say("Start") : to_say("Start again"))) controller_.start();
    if (controller_.can_resume()) {
      ImGui::SameLine();
      if (button(ui, to_say("Resume"))) controller_.resume();
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
  const CorpusKind kind = results->source.kind;
  const char* const name = words_of(kind).name;
  fact(ui, said(name),
       elided(describe(results->source), ui.number(), ImGui::GetContentRegionAvail().x / ui.scale - 60, ui.fonts));
  fact(ui, said("Model"), results->model);
  std::vector<std::string> told{
      said("Passages"), say("of at most {} tokens, each run alone, as its text would be in Explore", results->window),
      said("files in stretches of at most 16 KiB that end at a line break; passages do not overlap"),
      said("those of a single token are left out")};
  if (kind == CorpusKind::pairs)
    told = {said("Passages"), say("pairs of at most {} tokens in each text, each run alone", results->window),
            said("a pair is never cut: its halves would no longer mean the same")};
  if (kind == CorpusKind::pictures)
    told = {said("Passages"), say("pictures of {} tokens, each run alone", results->window)};
  fact(ui, said("Passages"), grouped(results->statistics.passages()), nullptr, told);
  if (results->encoder)
    fact(ui, said("Tokens"),
         fmt::format("{} + {}", grouped(results->encoder->tokens()), grouped(results->statistics.tokens())), nullptr,
         {said("Tokens"), said("of sources, and of targets with the token that they begin with")});
  else
    fact(ui, said("Tokens"), grouped(results->tokens()));
  if (controller_.tokens_per_second() > 0)
    fact(ui, said("Speed"), say("{} tokens/s", grouped(static_cast<std::uint64_t>(controller_.tokens_per_second()))),
         nullptr, {said("Speed"), said("passes, every metric of every head, and examples; of the worker's own time")});
  if (phase == Phase::running && std::isfinite(controller_.seconds_left()))
    fact(ui, said("Time left"), duration_text(controller_.seconds_left()));
  if (results->shards > 1) fact(ui, said("Shard"), say("{} of {}", results->shard, results->shards));
  if (results->skipped > 0) fact(ui, said("Files left out"), say("{}, not UTF-8", results->skipped));
  if (results->left_out > 0) note(ui, left_out_words(*results) + ".");
}

void CorpusWorkspace::keep(Ui& ui) {
  section(ui, said("FILE"), said("save, and go on another day"));
  ImGui::SetNextItemWidth(ImGui::GetContentRegionAvail().x);
  input_line(ui, "##corpus file", said("results.json, or a folder of shards"), file_);
  ImGui::BeginDisabled(file_.empty() || !controller_.results());
  if (button(ui, to_say("Save results"))) controller_.save(file_);
  ImGui::EndDisabled();
  ImGui::SameLine();
  ImGui::BeginDisabled(file_.empty());
  if (button(ui, to_say("Load results"))) controller_.load(file_);
  ImGui::EndDisabled();
  note(
      ui,
      said(
          "headscope-cli corpus --shard i/n spreads the work over machines; a folder of all shards loads as one run."));
}

namespace {
/// Of every head and metric: what the pictures show one at a time.
Table all_numbers(const CorpusStatistics& all, Stack stack) {
  Table out{"every head and metric over all passages" + of_stack(stack),
            {"layer", "head", "metric", "passages", "mean", "spread", "chance"},
            {}};
  for (int decile = 1; decile <= 9; ++decile) out.columns.push_back(fmt::format("decile {}", decile));
  for (int row = 0; row < all.layers() * all.heads(); ++row)
    for (std::size_t metric = 0; metric < metrics().size() && all.has(row); ++metric) {
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
  follow(c);
  // Drawn texts, which no file holds, are the same once more.
  const bool drawn = controller_.draft().drawn;
  if (controller_.results() && drawn && controller_.answers_draft())
    c.ui.pictures.started = true;
  else if (controller_.results())
    c.ui.pictures.passing = drawn ? "a corpus that was read otherwise" : "a corpus of files, which are not read for it";
  else if (c.app.ui.press_start && drawn && controller_.phase() == CorpusController::Phase::idle && c.trace() &&
           !c.jobs.busy())
    controller_.start();
  if (!controller_.results() || controller_.results()->statistics.passages() == 0) {
    if (controller_.phase() == CorpusController::Phase::running)
      return empty_state(c.ui, said("Reading the first passages"), said("The first picture follows at once."));
    return empty_state(
        c.ui, said("No corpus has been read"),
        said("Press Start on the left: every head is measured on every passage, and its distributions and best "
             "examples appear here."));
  }
  c.ui.pictures.add_table("corpus table", "every head and metric", [results = controller_.results(), stack = stack_] {
    return all_numbers(results->part(stack), stack);
  });
  const double room = static_cast<double>(ImGui::GetContentRegionAvail().y / c.ui.scale);
  const double controls = 36;
  scatter(c.ui, c.app, std::max(200.0, std::floor(room * 0.54) - controls));
  const double height =
      std::max(180.0, static_cast<double>(ImGui::GetContentRegionAvail().y / c.ui.scale) - controls - 34);
  section(c.ui, said("DISTRIBUTION"), said("over all passages"));
  metric_menu(c.ui, "Corpus metric", "", shown_, shown());
  ImGui::SameLine(0, c.ui.px(10));
  static constexpr const char* kinds[] = {to_say("Mean"), to_say("Spread")};
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
  const std::size_t shown_x = or_else(x_, "entropy"), shown_y = or_else(y_, "max_weight");
  metric_menu(ui, "Vertical metric", "↑", y_, shown_y);
  ImGui::SameLine(0, ui.px(10));
  metric_menu(ui, "Horizontal metric", "→", x_, shown_x);
  const auto results = controller_.results();
  const double width = std::floor(static_cast<double>(ImGui::GetContentRegionAvail().x / ui.scale));
  const int heads = part().layers() * part().heads();
  scatter_.want(app.explorer.jobs, ui, results,
                fmt::format("{} {} {} {} {}", name_in(stack_names, stack_), shown_x, shown_y, width, height),
                [results, width, height, heads, x = shown_x, y = shown_y, stack = stack_](const Style& style) {
                  const CorpusStatistics& all = results->part(stack);
                  const Metric &mx = metrics()[x], &my = metrics()[y];
                  ScatterOptions options;
                  options.width = width;
                  options.height = height;
                  options.x_title = say("{} → mean", unit_text(mx)) + of_stack(stack);
                  options.y_title = say("{} ↑ mean", unit_text(my));
                  if (std::isfinite(all.chance(x).mean()) && std::isfinite(all.chance(y).mean()))
                    options.chance = Point{all.chance(x).mean(), all.chance(y).mean()};
                  std::vector<ScatterPoint> points;
                  for (int head = 0; head < heads; ++head) {
                    if (!all.has(head)) continue;
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
                    point.tooltip =
                        say("Layer {} Head {}{}\n{} {} ± {}\n{} {} ± {}\nmean ± standard deviation over {} passages",
                            layer, number, rule ? " · " + said(rule->title) : "", said_view(mx.title),
                            short_number(dx.mean()), short_number(dx.spread()), said_view(my.title),
                            short_number(dy.mean()), short_number(dy.spread()), std::min(dx.count(), dy.count()));
                    if (rule && std::ranges::find(options.legend, said(rule->title),
                                                  &std::pair<std::string, Color>::first) == options.legend.end())
                      options.legend.emplace_back(said(rule->title), class_color(*rule));
                    points.push_back(std::move(point));
                  }
                  options.hollow_title = said("no class");
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
  heads_.want(app.explorer.jobs, ui, results,
              fmt::format("{} {} {} {} {}", name_in(stack_names, stack_), shown(), spread_, width, height),
              [results, width, height, stack = stack_, metric = shown(), spread = spread_ == 1](const Style& style) {
                const CorpusStatistics& all = results->part(stack);
                const Metric& shown = metrics()[metric];
                std::vector<double> values;
                for (int head = 0; head < all.layers() * all.heads(); ++head)
                  values.push_back(spread ? all.of(head, metric).spread() : all.of(head, metric).mean());
                Matrix matrix = head_matrix(all.layers(), all.heads(), values);
                matrix.unit = (spread ? say("spread of {}", unit_text(shown)) : say("mean {}", unit_text(shown))) +
                              of_stack(stack);
                matrix.provenance = std::string(said_view(shown.formula));
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
  const auto row = corpus_row(part(), head);
  if (!row) return note(ui, said("The selected head is of another model than these results."));
  const Color color = class_hue(ui, part(), *row);
  histogram_.want(
      app.explorer.jobs, ui, results,
      fmt::format("{} {} {} {} {}", name_in(stack_names, stack_), shown(), *row, width, height),
      [results, width, height, head, row = *row, stack = stack_, metric = shown(), color](const Style& style) {
        const Distribution& values = results->part(stack).of(row, metric);
        Histogram picture;
        const Distribution::Bars bars = values.bars();
        picture.counts = bars.counts;
        picture.low = bars.low;
        picture.high = bars.high;
        if (values.count() > 0)
          for (int i = 1; i <= 9; ++i) picture.deciles.push_back(values.quantile(i / 10.0));
        picture.mean = values.mean();
        picture.spread = values.spread();
        const double chance = results->part(stack).chance(metric).mean();
        if (std::isfinite(chance)) picture.chance = chance;
        picture.title =
            (stack == Stack::only ? say("{} of head {}.{}", said_view(metrics()[metric].title), head.layer, head.head)
                                  : say("{} of {} head {}.{}", said_view(metrics()[metric].title), stack_word(stack),
                                        head.layer, head.head)) +
            (metrics()[metric].unit.empty() ? "" : fmt::format(", {}", said_view(metrics()[metric].unit)));
        picture.remark = values.count() == 1 ? said("1 passage") : say("{} passages", values.count());
        picture.color = color;
        picture.width = width;
        picture.height = std::min(height, 320.0);
        return histogram_scene(picture, style);
      });
  histogram_.draw(ui, "corpus histogram", {}, width, std::min(height, 320.0));
}

}  // namespace headscope
