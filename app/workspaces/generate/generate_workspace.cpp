#include "app/workspaces/generate/generate_workspace.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "app/widgets/controls.h"
#include "app/widgets/keyboard.h"
#include "app/widgets/paragraph.h"
#include "app/widgets/plots.h"
#include "app/workspaces/head_cells.h"
#include "viz/scene/head_rows.h"
#include "viz/scene/map_cells.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

constexpr const char* study_ids[] = {"tape", "beams", "cost", "streaming", "forcing"};
constexpr const char* study_titles[] = {"Tape", "Beams", "Cost", "Streaming", "Teacher forcing"};

}  // namespace

GenerateWorkspace::GenerateWorkspace(GenerationController& controller)
    : Workspace("Generate"), controller_(controller) {
  pages_ = {{"Generation",
             {{"tape", "Generation tape",
               "token by token, temperature, top-k, top-p, nucleus, greedy decoding, fork, sampling"},
              {"beams", "Beam search", "beams, width, length penalty, early stopping, tree of hypotheses, translation"},
              {"cost", "KV cache: cost per step", "recompute, O(t) against O(t²), bytes of keys and values"},
              {"streaming", "Streaming with a window", "attention sinks, StreamingLLM, eviction, Xiao 2023"},
              {"forcing", "Teacher forcing against free running", "exposure bias, errors compounding"}}}};
}

GenerateWorkspace::Study GenerateWorkspace::study(const AppContext& app) const {
  const auto found = app.settings.pages.find(id());
  if (found == app.settings.pages.end()) return Study::transcript;
  const auto id = std::ranges::find(study_ids, found->second);
  return id == std::end(study_ids) ? Study::transcript : static_cast<Study>(id - std::begin(study_ids));
}

void GenerateWorkspace::each_frame() {
  controller_.frame(drawn_in_ == ImGui::GetFrameCount());  // the last: there may be turns without any
}

// ---- left

void GenerateWorkspace::follow(const PageContext& c) {
  drawn_in_ = ImGui::GetFrameCount();
  if (controller_.running()) *c.ui.animate = true;
  switch (std::exchange(c.app.ui.generation, UiRequests::Generation::none)) {
    case UiRequests::Generation::step:
      controller_.step();
      break;
    case UiRequests::Generation::run:
      controller_.running() ? controller_.pause() : controller_.run();
      break;
    case UiRequests::Generation::none:
      break;
  }
  keys(c.ui, c.app);
}

void GenerateWorkspace::left(const PageContext& c) {
  if (drawn_in_ != ImGui::GetFrameCount()) follow(c);
  prompt(c.ui);
  if (!controller_.prompt()) return;
  sampling(c.ui);
  controls(c.ui, c.app);
  branches(c.ui);
}

void GenerateWorkspace::keys(Ui&, AppContext& app) {
  const bool tape = study(app) == Study::transcript, beam = study(app) == Study::beams && controller_.followed();
  if (!(tape || beam) || ImGui::GetIO().WantTextInput || !controller_.prompt() || walking_controls()) return;
  if (app.slides()) return;
  if (beam && ImGui::IsKeyPressed(ImGuiKey_Escape)) return controller_.leave_beam();
  app.ui.sideways_taken = true;
  const std::size_t at = controller_.cursor();
  if (ImGui::IsKeyPressed(ImGuiKey_LeftArrow) && at > 0) controller_.show(at - 1);
  if (ImGui::IsKeyPressed(ImGuiKey_RightArrow)) {
    if (at < controller_.branch().steps.size())
      controller_.show(at + 1);
    else if (tape && !controller_.running())
      controller_.step();  // at the end, one token on
  }
}

void GenerateWorkspace::prompt(Ui& ui) {
  const auto& run = controller_.prompt();
  section(ui, "PROMPT", run ? fmt::format("{} tokens of {}", run->whole->tokens.size(), run->whole->model.name) : "");
  if (controller_.replay_refused()) {
    note(ui, "The session's generated text was not made again. It stays in the session until another is written.");
    if (button(ui, "Make it again")) controller_.replay_again();
    ImGui::Dummy({0, ui.px(4)});
  }
  if (!run)
    return note(ui, controller_.model_continues() ? "Open a model and write a text in Explore."
                                                  : "The open model does not say what comes next.");
  std::string words = run->whole->text;
  if (words.empty())
    for (const Token& token : run->whole->tokens) words += token.label;
  if (words.size() > 220) {
    std::size_t from = words.size() - 210;
    while (from < words.size() && (static_cast<unsigned char>(words[from]) & 0xC0) == 0x80) ++from;
    words = "… " + words.substr(from);
  }
  note(ui, printable(words));
  if (std::ranges::any_of(run->request.edits, &Intervention::enabled)) {
    std::string edits;
    for (const Intervention& edit : run->request.edits)
      if (edit.enabled) edits += (edits.empty() ? "" : "; ") + describe(edit);
    ImGui::Dummy({0, ui.px(2)});
    fact(ui, "Edits at work", edits, &ui.theme.key, {"The document's edits act on every step", edits});
  }
  if (controller_.prompt_changed()) {
    ImGui::Dummy({0, ui.px(2)});
    note(ui, "Explore shows another prompt by now.");
    if (button(ui, "Start from it")) controller_.take_prompt();
  }
}

void GenerateWorkspace::sampling(Ui& ui) {
  GenerationController::Settings& settings = controller_.settings();
  section(ui, "SAMPLING", "over the full vocabulary");
  static constexpr const char* ways[] = {"Greedy", "Sample"};
  int way = settings.greedy ? 0 : 1;
  if (segmented(ui, "sampling way", ways, way)) settings.greedy = way == 0;
  ImGui::BeginDisabled(settings.greedy);
  slider(ui, "Sampling τ", settings.sampling.temperature, {0.05, 5, 1, true, "", 2});
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_DelayShort)) tooltip(ui, {"Temperature", "logits ÷ τ before the softmax"});
  double top_k = settings.sampling.top_k;
  if (slider(ui, "Top-k", top_k, {0, 100, 0, false, "", 0})) settings.sampling.top_k = static_cast<int>(top_k);
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_DelayShort))
    tooltip(ui, {"Top-k: only the k most probable tokens", "0 keeps all · Fan et al. 2018"});
  slider(ui, "Top-p", settings.sampling.top_p, {0.01, 1, 1, false, "", 2});
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_DelayShort))
    tooltip(ui, {"Top-p: then the fewest tokens whose shares reach p", "1 keeps all · Holtzman et al. 2020"});
  ImGui::AlignTextToFramePadding();
  ImGui::TextUnformatted("Seed");
  ImGui::SameLine(ui.px(96));
  ImGui::SetNextItemWidth(ImGui::GetContentRegionAvail().x);
  int seed = static_cast<int>(settings.seed & 0x7fffffff);
  if (ImGui::InputInt("##generation seed", &seed)) settings.seed = static_cast<std::uint64_t>(std::max(seed, 0));
  ImGui::EndDisabled();
}

void GenerateWorkspace::controls(Ui& ui, AppContext& app) {
  const GenerationBranch& branch = controller_.branch();
  section(ui, "RUN", branch.ended.empty() ? controller_.running() ? "writing" : "" : branch.ended);
  ImGui::BeginDisabled(!controller_.ready());
  if (controller_.running() ? button(ui, "Pause") : button(ui, "Run"))
    controller_.running() ? controller_.pause() : controller_.run();
  ImGui::SameLine();
  if (button(ui, "Step")) controller_.step();
  ImGui::EndDisabled();
  ImGui::SameLine();
  const bool back = controller_.cursor() < branch.steps.size();
  ImGui::BeginDisabled(!back);
  if (button(ui, "Rewrite from here")) {
    controller_.fork(controller_.cursor(), std::nullopt);
    controller_.run();
  }
  ImGui::EndDisabled();
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled | ImGuiHoveredFlags_DelayShort))
    tooltip(ui, {"A new branch from the step on screen", "drawn with the seed and settings above", "scrub back first"});
  static constexpr const char* paces[] = {"4 / s", "8 / s", "32 / s", "Full speed"};
  static constexpr double rates[] = {4, 8, 32, 0};
  int pace = static_cast<int>(std::ranges::find(rates, controller_.settings().pace) - std::begin(rates));
  if (segmented(ui, "generation pace", paces, pace)) controller_.settings().pace = rates[pace];
  double sum = 0;
  int count = 0;
  for (auto step = branch.steps.rbegin(); step != branch.steps.rend() && count < 64; ++step)
    if (step->step->computed == 1) sum += step->step->milliseconds, ++count;
  fact(ui, "Written", fmt::format("{} tokens", branch.steps.size()));
  fact(ui, "The model could write", count > 0 && sum > 0 ? fmt::format("{:.0f} tokens/s", 1000 * count / sum) : "–",
       nullptr,
       {"1 ÷ mean time of a step with the cache", fmt::format("the last {} of this branch, maps recorded", count)});
  const ModelDims& dims = controller_.model().model->config().dims;
  const auto length = static_cast<int>(controller_.text()->tokens.size());
  std::vector<std::string> terms{fmt::format("layers · tokens · ({}) · 4 bytes", kept_numbers(dims).words),
                                 fmt::format("{} · {} · ({}) · 4", dims.layers, length, kept_numbers(dims).sum)};
  if (dims.state_space()) terms.push_back("and the state, of any length: " + bytes_text(cache_bytes(dims, 0)));
  fact(ui, dims.state_space() ? "State, and rows to go back" : "KV cache", bytes_text(cache_bytes(dims, length)),
       nullptr, std::move(terms));
  if (const std::size_t dropped = controller_.dropped(); dropped > 0)
    note(ui, fmt::format("Rows and logits of the oldest {} steps were let go to stay inside {}; they are computed "
                         "again when you look at them.",
                         dropped, bytes_text(controller_.byte_budget())));
  ImGui::Dummy({0, ui.px(2)});
  if (button(ui, "Open in Explore")) {
    controller_.pause();
    controller_.open_in_explore();
    app.ui.workspace = workspace_index("Explore");
  }
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_DelayShort))
    tooltip(ui, {"Prompt and continuation become the document's text", "every head of it, all metrics"});
}

void GenerateWorkspace::branches(Ui& ui) {
  const auto& all = controller_.branches();
  section(ui, "BRANCHES", all.size() == 1 ? "click a candidate on the right to fork" : "click to go back to one");
  for (std::size_t i = 0; i < all.size(); ++i) {
    const GenerationBranch& branch = all[i];
    double loss = 0;
    for (const ToldStep& step : branch.steps) loss -= std::log(std::max(step.probability, 1e-30));
    std::string words;
    for (std::size_t k = branch.from; k < branch.steps.size() && words.size() < 90; ++k)
      words += controller_.label(branch.steps[k].step->token);
    const bool chosen = i == controller_.chosen();
    const float height = ui.px(40), width = ImGui::GetContentRegionAvail().x, close = ui.px(22);
    const ImVec2 at = ImGui::GetCursorScreenPos(), end{at.x + width, at.y + height};
    ImGui::PushID(branch.id);
    const std::string name = fmt::format("branch {}", branch.id);
    ImGui::SetNextItemAllowOverlap();
    if (pressable(name.c_str(), {width, height})) controller_.choose(i);
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    if (chosen || ImGui::IsItemHovered())
      draw.AddRectFilled(at, end, col(chosen ? ui.chrome.selected : ui.chrome.hovered), ui.px(5));
    const float indent = ui.px(branch.parent < 0 ? 8.0 : 20.0);
    if (branch.parent >= 0) {  // a small elbow from the branch above
      const float x = at.x + ui.px(12);
      draw.AddLine({x, at.y}, {x, at.y + height / 2}, col(ui.theme.faint), 1);
      draw.AddLine({x, at.y + height / 2}, {x + ui.px(5), at.y + height / 2}, col(ui.theme.faint), 1);
    }
    const std::string head =
        branch.parent < 0 ? fmt::format("From the prompt · {} tokens", branch.steps.size())
                          : fmt::format("From step {} of {} · {} tokens", branch.from + 1,
                                        branch.parent == 0 ? "the first" : fmt::format("branch {}", branch.parent),
                                        branch.steps.size() - branch.from);
    const std::string mean =
        branch.steps.empty() ? "" : fmt::format("{:.2f}", loss / static_cast<double>(branch.steps.size()));
    const double room = static_cast<double>((width - indent) / ui.scale) - 84;
    draw_text(ui, draw, {{0, 0}, elided(head, ui.body(), room, ui.fonts), ui.body(), ui.theme.text, Anchor::start, 0},
              {at.x + indent, at.y + ui.px(16)});
    draw_text(ui, draw,
              {{0, 0},
               elided(words.empty() ? "nothing yet" : words, ui.small(), room + 40, ui.fonts),
               ui.small(),
               ui.theme.muted,
               Anchor::start,
               0},
              {at.x + indent, at.y + ui.px(32)});
    draw_text(ui, draw, {{0, 0}, mean, ui.number(), ui.theme.muted, Anchor::end, 0},
              {end.x - ui.px(30), at.y + ui.px(16)});
    if (ImGui::IsItemHovered(ImGuiHoveredFlags_DelayShort))
      tooltip(ui,
              {head, words, "the number: mean −ln p of the tokens written, in nats, under the model's own softmax"});
    if (all.size() > 1) {
      ImGui::SetCursorScreenPos({end.x - close, at.y + ui.px(4)});
      const bool gone = pressable(fmt::format("remove branch {}", branch.id).c_str(), {close, ui.px(20)});
      draw_text(ui, draw,
                {{0, 0}, "×", ui.body(), ImGui::IsItemHovered() ? ui.theme.text : ui.theme.faint, Anchor::middle, 0},
                {end.x - close / 2, at.y + ui.px(16)});
      ImGui::SetCursorScreenPos({at.x, end.y});
      ImGui::Dummy({0, 0});
      if (gone) {
        ImGui::PopID();
        return controller_.remove(i);
      }
    }
    ImGui::PopID();
  }
}

// ---- middle

void GenerateWorkspace::middle(const PageContext& c) {
  if (drawn_in_ != ImGui::GetFrameCount()) follow(c);
  const Study now = study(c.app);
  controller_.want(now);
  if (!controller_.prompt() || !controller_.text())
    return controller_.model_continues()
               ? empty_state(c.ui, "Nothing to continue yet",
                             "Open a model and write a text in Explore: the model goes on from there, token by token.")
               : empty_state(
                     c.ui, "This model continues no text",
                     reads_pictures(c.results())
                         ? "It reads a picture and tells what that shows: look at it in Explore."
                         : "An encoder reads a whole text and tells what stands where a token is masked: mask some in "
                           "Explore.");
  if (controller_.running()) c.ui.pictures.passing = "a text that was being written";
  const float top = ImGui::GetCursorPosY();
  {
    static constexpr const char* headings[] = {"The model writes", "The most probable texts", "What a cache saves",
                                               "A cache that forgets", "Taught, and on its own"};
    const UseFont font(c.ui, c.ui.heading());
    ImGui::AlignTextToFramePadding();
    ImGui::TextUnformatted(headings[static_cast<int>(now)]);
  }
  const float width = segmented_width(c.ui, study_titles);
  ImGui::SameLine();
  ImGui::SetCursorPosY(top);
  ImGui::SetCursorPosX(ImGui::GetCursorPosX() + std::max(0.0f, ImGui::GetContentRegionAvail().x - width));
  int chosen = static_cast<int>(now);
  if (segmented(c.ui, "generation study", study_titles, chosen)) c.app.settings.pages[id()] = study_ids[chosen];
  switch (now) {
    case Study::transcript:
      return transcript(c.ui, c.app);
    case Study::beams:
      return beams(c.ui, c.app);
    case Study::cost:
      return cost(c.ui);
    case Study::streaming:
      return streaming(c.ui);
    case Study::forcing:
      return forcing(c.ui);
  }
}

void GenerateWorkspace::transcript(Ui& ui, AppContext& app) {
  const double room = static_cast<double>(ImGui::GetContentRegionAvail().y / ui.scale);
  section(ui, "TEXT",
          "the stronger the colour, the more the model was surprised, −ln p · click a token to see its choice");
  chips(ui, ui.px(std::clamp(0.2 * room, 84.0, 190.0)));
  scrubber(ui);
  source(ui);
  const double left = static_cast<double>(ImGui::GetContentRegionAvail().y / ui.scale);
  const double chart = left > 420 ? 150 : left > 330 ? 110 : 0;
  rows(ui, app, left - chart - 6);
  if (chart > 0) history(ui, chart - 50);
}

void GenerateWorkspace::rows(Ui& ui, AppContext& app, double height) {
  const ToldStep* told = controller_.at_cursor();
  const float line = ImGui::GetCursorPosY();
  if (!told) {
    const bool past = controller_.cursor() < controller_.branch().steps.size();
    section(ui, "ROWS OF ALL HEADS",
            past                                 ? "let go to save memory, being computed again"
            : controller_.branch().ended.empty() ? "being read"
                                                 : controller_.branch().ended);
    return;
  }
  const Index position = told->step->length - 1;
  const std::string label = token_label(*controller_.text(), position);
  section(ui, "ROWS OF ALL HEADS", fmt::format("where {} {} looks while the next token is chosen", label, position));
  static constexpr const char* scales[] = {"linear", "log"};
  const float width = segmented_width(ui, scales);
  const float after = ImGui::GetCursorPosY();
  ImGui::SetCursorPos({ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x - width, line - ui.px(3)});
  int scale = app.explorer.state().view.scale == Scale::log ? 1 : 0;
  if (segmented(ui, "row scale", scales, scale))
    app.explorer.editor.view().scale = scale == 1 ? Scale::log : Scale::linear;
  ImGui::SetCursorPosY(std::max(after, line + ui.px(27)));
  const ModelDims& dims = controller_.model().model->config().dims;
  HeadRowsOptions options;
  options.heads = dims.heads;
  options.scale = scale == 1 && !dims.state_space() ? Scale::log : Scale::linear;  // which has no signs
  if (dims.state_space()) options.kind = MapKind::effective;
  options.width = std::floor(static_cast<double>(ImGui::GetContentRegionAvail().x / ui.scale));
  options.height = std::max(height - 34, 120.0);
  const HeadId selected = app.explorer.state().document.selected;
  options.selected = selected;
  rows_.want(app.explorer.jobs, ui, told->step,
             fmt::format("{} {} {} {}.{}", options.width, options.height, scale, selected.layer, selected.head),
             [text = controller_.text(), step = told->step, options](const Style& style) {
               return head_rows_scene(*text, step->rows, options, style);
             });
  const Scene* scene = rows_.scene();
  if (!scene) return ImGui::Dummy({0, 0});
  SceneViewOptions how;
  how.tooltips = false;
  const SceneTouch touch = rows_.draw(ui, "head rows", how, options.width, options.height);
  const auto* rows = meaning<HeadRows>(touch.mark);
  if (!rows || !touch.cell) return;
  const auto& heat = std::get<Heatmap>(touch.mark->shape);
  const Index bin = (told->step->rows.dim(1) + heat.columns() - 1) / heat.columns();
  const auto [layer, head] = nth(rows->heads, touch.cell->row);
  const Index key = touch.cell->column * bin, row = Index{layer} * options.heads + head;
  if (row < told->step->rows.dim(0) && key < told->step->rows.dim(1))
    tooltip(ui, {fmt::format("Layer {} Head {}:  {} {} → {} {}   {:.4f}", layer, head, label, position,
                             token_label(*controller_.text(), key), key, told->step->rows.at(row, key)),
                 fmt::format("{}[{}, {}], F32", map_name(*controller_.text(), {layer, head}), position, key),
                 "click to select the head"});
  if (!touch.clicked) return;
  if (controller_.prompt()->whole->encoder) app.explorer.editor.look_at(Stack::decoder);
  app.explorer.editor.select({layer, head});
}

void GenerateWorkspace::history(Ui& ui, double height) {
  const auto& steps = controller_.branch().steps;
  section(ui, "UNCERTAINTY BY STEP", "entropy in nats · grey the model, blue what is drawn from · click to go there");
  if (steps.empty()) return note(ui, "No token has been written yet.");
  ChartSeries model{"model", ui.theme.muted, {}, {}}, drawn{"drawn from", ui.theme.accent, {}, {}, 2.0};
  for (std::size_t i = 0; i < steps.size(); ++i) {
    for (ChartSeries* line : {&model, &drawn}) line->x.push_back(static_cast<double>(i + 1));
    model.y.push_back(steps[i].entropy);
    drawn.y.push_back(steps[i].entropy_kept);
  }
  LineChart chart;
  chart.height = height + 16;
  chart.grid = true;
  chart.x_low = 1;
  chart.x_high = std::max<double>(static_cast<double>(steps.size()), 10);
  chart.y_low = 0;
  chart.x_title = "step";
  if (controller_.cursor() < steps.size())
    chart.marker = Point{static_cast<double>(controller_.cursor() + 1), steps[controller_.cursor()].entropy_kept};
  chart.series = {std::move(model), std::move(drawn)};
  const PlotTouch touch = plot(ui, "generation entropy", std::move(chart));
  if (touch.clicked)
    controller_.show(
        static_cast<std::size_t>(std::clamp(std::lround(touch.x), 1L, static_cast<long>(steps.size())) - 1));
}

}  // namespace headscope
