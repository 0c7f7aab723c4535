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
#include "app/workspaces/no_run.h"
#include "core/base/words.h"
#include "core/trace/model_heads.h"
#include "viz/scene/head_rows.h"
#include "viz/scene/map_cells.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

constexpr const char* study_ids[] = {"tape", "beams", "cost", "streaming", "forcing"};
constexpr const char* study_titles[] = {to_say("Tape"), to_say("Beams"), to_say("Cost"), to_say("Streaming"),
                                        to_say("Teacher forcing")};

}  // namespace

GenerateWorkspace::GenerateWorkspace(GenerationController& controller)
    : Workspace("Generate"), controller_(controller) {
  pages_ = {{to_say("Generation"),
             {{"tape", to_say("Generation tape"),
               "token by token, temperature, top-k, top-p, nucleus, greedy decoding, fork, sampling"},
              {"beams", to_say("Beam search"),
               "beams, width, length penalty, early stopping, tree of hypotheses, translation"},
              {"cost", to_say("KV cache: cost per step"), "recompute, O(t) against O(t²), bytes of keys and values"},
              {"streaming", to_say("Streaming with a window"), "attention sinks, StreamingLLM, eviction, Xiao 2023"},
              {"forcing", to_say("Teacher forcing against free running"), "exposure bias, errors compounding"}}}};
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
  section(ui, said("PROMPT"), run ? say("{} tokens of {}", run->whole->tokens.size(), run->whole->model.name) : "");
  if (controller_.replay_refused()) {
    note(ui,
         said("The session's generated text was not made again. It stays in the session until another is written."));
    if (button(ui, to_say("Make it again"))) controller_.replay_again();
    ImGui::Dummy({0, ui.px(4)});
  }
  if (!run) {  // the middle says what to do
    if (!controller_.model_continues()) note(ui, said("The open model does not say what comes next."));
    return;
  }
  std::string words = run->whole->text;
  if (words.empty())
    for (const Token& token : run->whole->tokens)  // ids stand apart
      words += (controller_.model().tokenizer || words.empty() ? "" : " ") + token.label;
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
    fact(ui, said("Edits at work"), edits, &ui.theme.key, {said("The document's edits act on every step"), edits});
  }
  if (controller_.prompt_changed()) {
    ImGui::Dummy({0, ui.px(2)});
    note(ui, said("Explore shows another prompt by now."));
    if (button(ui, to_say("Start from it"))) controller_.take_prompt();
  }
}

void GenerateWorkspace::sampling(Ui& ui) {
  GenerationController::Settings& settings = controller_.settings();
  section(ui, said("SAMPLING"), said("over the full vocabulary"));
  static constexpr const char* ways[] = {to_say("Greedy"), to_say("Sample")};
  int way = settings.greedy ? 0 : 1;
  if (segmented(ui, "sampling way", ways, way)) settings.greedy = way == 0;
  ImGui::BeginDisabled(settings.greedy);
  slider(ui, to_say("Sampling τ"), settings.sampling.temperature, {0.05, 5, 1, true, "", 2});
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_DelayShort))
    tooltip(ui, {said("Temperature"), said("logits ÷ τ before the softmax")});
  double top_k = settings.sampling.top_k;
  if (slider(ui, to_say("Top-k"), top_k, {0, 100, 0, false, "", 0})) settings.sampling.top_k = static_cast<int>(top_k);
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_DelayShort))
    tooltip(ui, {said("Top-k: only the k most probable tokens"), said("0 keeps all · Fan et al. 2018")});
  slider(ui, to_say("Top-p"), settings.sampling.top_p, {0.01, 1, 1, false, "", 2});
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_DelayShort))
    tooltip(ui,
            {said("Top-p: then the fewest tokens whose shares reach p"), said("1 keeps all · Holtzman et al. 2020")});
  int seed = static_cast<int>(settings.seed & 0x7fffffff);
  if (number_field(ui, to_say("Seed"), "##generation seed", seed, 1, 96))
    settings.seed = static_cast<std::uint64_t>(std::max(seed, 0));
  ImGui::EndDisabled();
}

void GenerateWorkspace::controls(Ui& ui, AppContext& app) {
  const GenerationBranch& branch = controller_.branch();
  section(ui, said("RUN"), branch.ended.empty() ? controller_.running() ? said("writing") : "" : branch.ended.text());
  ImGui::BeginDisabled(!controller_.ready());
  if (controller_.running() ? button(ui, to_say("Pause")) : button(ui, to_say("Run")))
    controller_.running() ? controller_.pause() : controller_.run();
  beside(ui, button_width(ui, "Step"));
  if (button(ui, to_say("Step"))) controller_.step();
  ImGui::EndDisabled();
  beside(ui, button_width(ui, "Rewrite from here"));
  const bool back = controller_.cursor() < branch.steps.size();
  ImGui::BeginDisabled(!back);
  if (button(ui, to_say("Rewrite from here"))) {
    controller_.fork(controller_.cursor(), std::nullopt);
    controller_.run();
  }
  ImGui::EndDisabled();
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled | ImGuiHoveredFlags_DelayShort))
    tooltip(ui, {said("A new branch from the step on screen"), said("drawn with the seed and settings above"),
                 said("scrub back first")});
  static constexpr const char* paces[] = {"4 / s", "8 / s", "32 / s", to_say("Full speed")};
  static constexpr double rates[] = {4, 8, 32, 0};
  int pace = static_cast<int>(std::ranges::find(rates, controller_.settings().pace) - std::begin(rates));
  if (segmented(ui, "generation pace", paces, pace)) controller_.settings().pace = rates[pace];
  double sum = 0;
  int count = 0;
  for (auto step = branch.steps.rbegin(); step != branch.steps.rend() && count < 64; ++step)
    if (step->step->computed == 1) sum += step->step->milliseconds, ++count;
  fact(ui, said("Written"), say("{} tokens", branch.steps.size()));
  fact(ui, said("The model could write"), count > 0 && sum > 0 ? say("{:.0f} tokens/s", 1000 * count / sum) : "–",
       nullptr,
       {said("1 ÷ mean time of a step with the cache"), say("the last {} of this branch, maps recorded", count)});
  const ModelDims& dims = controller_.model().model->config().dims;
  const auto length = static_cast<int>(controller_.text()->tokens.size());
  const GenerationStep* const newest = branch.steps.empty() ? nullptr : branch.steps.back().step.get();
  const bool packed = !newest || newest->cache_bytes == 0 || newest->panel_bytes > 0;  // none where a card computes
  const std::size_t source = newest ? newest->source_bytes : 0;
  fact(ui, !dims.attends() ? said("State, and rows to go back") : said("KV cache"),
       bytes_text(cache_bytes(dims, length) + (packed ? panel_bytes(dims, length) : 0) + source), nullptr,
       cache_terms(dims, length, packed, source));
  if (const std::size_t dropped = controller_.dropped(); dropped > 0)
    note(ui, say("Rows and logits of the oldest {} steps were let go to stay inside {}; they are computed "
                 "again when you look at them.",
                 dropped, bytes_text(controller_.byte_budget())));
  ImGui::Dummy({0, ui.px(2)});
  if (button(ui, to_say("Open in Explore"))) {
    controller_.pause();
    controller_.open_in_explore();
    app.ui.workspace = workspace_index("Explore");
  }
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_DelayShort))
    tooltip(ui, {said("Prompt and continuation become the document's text"), said("every head of it, all metrics")});
}

void GenerateWorkspace::branches(Ui& ui) {
  const auto& all = controller_.branches();
  section(ui, said("BRANCHES"),
          all.size() == 1 ? said("click a candidate on the right to fork") : said("click to go back to one"));
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
    const std::string head = branch.parent < 0
                                 ? say("From the prompt · {} tokens", branch.steps.size())
                                 : say("From step {} of {} · {} tokens", branch.from + 1,
                                       branch.parent == 0 ? said("the first") : say("branch {}", branch.parent),
                                       branch.steps.size() - branch.from);
    const std::string mean =
        branch.steps.empty() ? "" : fmt::format("{:.2f}", loss / static_cast<double>(branch.steps.size()));
    const double room = static_cast<double>((width - indent) / ui.scale) - 84;
    draw_text(ui, draw, {{0, 0}, elided(head, ui.body(), room, ui.fonts), ui.body(), ui.theme.text, Anchor::start, 0},
              {at.x + indent, at.y + ui.px(16)});
    draw_text(ui, draw,
              {{0, 0},
               elided(words.empty() ? said("nothing yet") : words, ui.small(), room + 40, ui.fonts),
               ui.small(),
               ui.theme.muted,
               Anchor::start,
               0},
              {at.x + indent, at.y + ui.px(32)});
    draw_text(ui, draw, {{0, 0}, mean, ui.number(), ui.theme.muted, Anchor::end, 0},
              {end.x - ui.px(30), at.y + ui.px(16)});
    if (ImGui::IsItemHovered(ImGuiHoveredFlags_DelayShort))
      tooltip(ui, {head, words,
                   said("the number: mean −ln p of the tokens written, in nats, under the model's own softmax")});
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
               ? c.captured() ? empty_state(c.ui, said("This page reads a model"),
                                            said("What is open is attention that was captured elsewhere: weights, "
                                                 "without the model behind them."))
                 : c.trace()  ? empty_state(c.ui, said("Nothing to continue yet"), "")
                              : no_run(c, said("The model goes on from there, token by token."))
               : empty_state(c.ui, said("This model continues no text"),
                             reads_pictures(c.results())
                                 ? said("It reads a picture and tells what that shows: look at it in Explore.")
                                 : said("An encoder reads a whole text and tells what stands where a token is masked: "
                                        "mask some in "
                                        "Explore."));
  if (controller_.running()) c.ui.pictures.passing = "a text that was being written";
  const float top = ImGui::GetCursorPosY();
  {
    static constexpr const char* headings[] = {to_say("The model writes"), to_say("The most probable texts"),
                                               to_say("What a cache saves"), to_say("A cache that forgets"),
                                               to_say("Taught, and on its own")};
    const UseFont font(c.ui, c.ui.heading());
    ImGui::AlignTextToFramePadding();
    text_line(c.ui, said(headings[static_cast<int>(now)]));
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
  section(ui, said("TEXT"),
          said("the stronger the colour, the more the model was surprised, −ln p · click a token to see its choice"));
  chips(ui, ui.px(std::clamp(0.2 * room, 84.0, 190.0)));
  scrubber(ui);
  source(ui, app);
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
    section(ui, said("ROWS OF ALL HEADS"),
            past                                 ? said("let go to save memory, being computed again")
            : controller_.branch().ended.empty() ? said("being read")
                                                 : controller_.branch().ended.text());
    return;
  }
  const Index position = told->step->length - 1;
  const std::string label = token_label(*controller_.text(), position);
  section(ui, said("ROWS OF ALL HEADS"), say("where {} {} looks while the next token is chosen", label, position));
  static constexpr const char* scales[] = {to_say("linear"), to_say("log")};
  const float width = segmented_width(ui, scales);
  const float after = ImGui::GetCursorPosY();
  ImGui::SetCursorPos({ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x - width, line - ui.px(3)});
  int scale = app.explorer.state().view.scale == Scale::log ? 1 : 0;
  if (segmented(ui, "row scale", scales, scale))
    app.explorer.editor.view().scale = scale == 1 ? Scale::log : Scale::linear;
  ImGui::SetCursorPosY(std::max(after, line + ui.px(27)));
  const ModelDims& dims = controller_.model().model->config().dims;
  HeadRowsOptions options;
  if (dims.state_heads > 0)
    options.listed = every_head(dims);
  else
    options.heads = dims.heads;
  options.scale = scale == 1 && dims.any_attends() ? Scale::log : Scale::linear;  // which has no signs
  if (!dims.any_attends()) options.kind = MapKind::effective;
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
  const Index key = touch.cell->column * bin, row = head_index(dims, {layer, head});
  if (row < told->step->rows.dim(0) && key < told->step->rows.dim(1))
    tooltip(ui, {say("Layer {} Head {}:  {} {} → {} {}   {:.4f}", layer, head, label, position,
                     token_label(*controller_.text(), key), key, told->step->rows.at(row, key)),
                 fmt::format("{}[{}, {}], F32", map_name(*controller_.text(), {layer, head}), position, key),
                 said("click to select the head")});
  if (!touch.clicked) return;
  if (controller_.prompt()->whole->encoder) app.explorer.editor.look_at(Stack::decoder);
  app.explorer.editor.select({layer, head});
}

void GenerateWorkspace::history(Ui& ui, double height) {
  const auto& steps = controller_.branch().steps;
  section(ui, said("UNCERTAINTY BY STEP"),
          said("entropy in nats · grey the model, blue what is drawn from · click to go there"));
  if (steps.empty()) return note(ui, said("No token has been written yet."));
  ChartSeries model{said("model"), ui.theme.muted, {}, {}}, drawn{said("drawn from"), ui.theme.accent, {}, {}, 2.0};
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
  chart.x_title = said("step");
  if (controller_.cursor() < steps.size())
    chart.marker = Point{static_cast<double>(controller_.cursor() + 1), steps[controller_.cursor()].entropy_kept};
  chart.series = {std::move(model), std::move(drawn)};
  const PlotTouch touch = plot(ui, "generation entropy", std::move(chart));
  if (touch.clicked)
    controller_.show(
        static_cast<std::size_t>(std::clamp(std::lround(touch.x), 1L, static_cast<long>(steps.size())) - 1));
}

}  // namespace headscope
