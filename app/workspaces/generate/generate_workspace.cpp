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
#include "viz/scene/text.h"

namespace headscope {

namespace {

constexpr const char* study_ids[] = {"tape", "cost", "streaming", "forcing"};
constexpr const char* study_titles[] = {"Tape", "Cost", "Streaming", "Teacher forcing"};

}  // namespace

GenerateWorkspace::GenerateWorkspace(GenerationDesk& desk) : Workspace("Generate"), desk_(desk) {
  pages_ = {{"Generation",
             {{"tape", "Generation tape", "token by token, temperature, top-k, top-p, nucleus, greedy, fork, sampling"},
              {"cost", "KV cache: cost per step", "recompute, O(t) against O(t²), bytes of keys and values"},
              {"streaming", "Streaming with a window", "attention sinks, StreamingLLM, eviction, Xiao 2023"},
              {"forcing", "Teacher forcing against free running", "exposure bias, errors compounding"}}}};
}

GenerateWorkspace::Study GenerateWorkspace::study(const Workbench& bench) const {
  const auto found = bench.settings.pages.find(id());
  if (found == bench.settings.pages.end()) return Study::tape;
  const auto id = std::ranges::find(study_ids, found->second);
  return id == std::end(study_ids) ? Study::tape : static_cast<Study>(id - std::begin(study_ids));
}

void GenerateWorkspace::each_frame() {
  desk_.frame(std::exchange(drawn_, false));
}

// ---- left

void GenerateWorkspace::left(const PageContext& c) {
  drawn_ = true;
  if (desk_.running()) *c.ui.animate = true;
  switch (std::exchange(c.bench.ui.generation, UiRequests::Generation::none)) {
    case UiRequests::Generation::step:
      desk_.step();
      break;
    case UiRequests::Generation::run:
      desk_.running() ? desk_.pause() : desk_.run();
      break;
    case UiRequests::Generation::none:
      break;
  }
  keys(c.ui, c.bench);
  prompt(c.ui);
  if (!desk_.prompt()) return;
  sampling(c.ui);
  controls(c.ui, c.bench);
  branches(c.ui);
}

void GenerateWorkspace::keys(Ui&, Workbench& bench) {
  if (study(bench) != Study::tape || ImGui::GetIO().WantTextInput || !desk_.prompt() || walking_controls()) return;
  bench.ui.sideways_taken = true;
  const std::size_t at = desk_.cursor();
  if (ImGui::IsKeyPressed(ImGuiKey_LeftArrow) && at > 0) desk_.show(at - 1);
  if (ImGui::IsKeyPressed(ImGuiKey_RightArrow)) {
    if (at < desk_.branch().steps.size())
      desk_.show(at + 1);
    else if (!desk_.running())
      desk_.step();  // at the end, one token on
  }
}

void GenerateWorkspace::prompt(Ui& ui) {
  const auto& run = desk_.prompt();
  section(ui, "PROMPT", run ? fmt::format("{} tokens of {}", run->trace->tokens.size(), run->trace->model.name) : "");
  if (desk_.replay_refused()) {
    note(ui, "The session's generated text was not made again. It stays in the session until another is written.");
    if (button(ui, "Make it again")) desk_.replay_again();
    ImGui::Dummy({0, ui.px(4)});
  }
  if (!run) return note(ui, "Open a model and write a text in Explore.");
  std::string words = run->trace->text;
  if (words.empty())
    for (const Token& token : run->trace->tokens) words += token.label;
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
  if (desk_.prompt_changed()) {
    ImGui::Dummy({0, ui.px(2)});
    note(ui, "Explore shows another prompt by now.");
    if (button(ui, "Start from it")) desk_.take_prompt();
  }
}

void GenerateWorkspace::sampling(Ui& ui) {
  GenerationDesk::Settings& settings = desk_.settings();
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

void GenerateWorkspace::controls(Ui& ui, Workbench& bench) {
  const GenerationBranch& branch = desk_.branch();
  section(ui, "RUN", branch.ended.empty() ? desk_.running() ? "writing" : "" : branch.ended);
  ImGui::BeginDisabled(!desk_.ready());
  if (desk_.running() ? button(ui, "Pause") : button(ui, "Run")) desk_.running() ? desk_.pause() : desk_.run();
  ImGui::SameLine();
  if (button(ui, "Step")) desk_.step();
  ImGui::EndDisabled();
  ImGui::SameLine();
  const bool back = desk_.cursor() < branch.steps.size();
  ImGui::BeginDisabled(!back);
  if (button(ui, "Rewrite from here")) {
    desk_.fork(desk_.cursor(), std::nullopt);
    desk_.run();
  }
  ImGui::EndDisabled();
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled | ImGuiHoveredFlags_DelayShort))
    tooltip(ui, {"A new branch from the step on screen", "drawn with the seed and settings above", "scrub back first"});
  static constexpr const char* paces[] = {"4 / s", "8 / s", "32 / s", "Full speed"};
  static constexpr double rates[] = {4, 8, 32, 0};
  int pace = static_cast<int>(std::ranges::find(rates, desk_.settings().pace) - std::begin(rates));
  if (segmented(ui, "generation pace", paces, pace)) desk_.settings().pace = rates[pace];
  double sum = 0;
  int count = 0;
  for (auto step = branch.steps.rbegin(); step != branch.steps.rend() && count < 64; ++step)
    if (step->step->computed == 1) sum += step->step->milliseconds, ++count;
  fact(ui, "Written", fmt::format("{} tokens", branch.steps.size()));
  fact(ui, "The model could write", count > 0 && sum > 0 ? fmt::format("{:.0f} tokens/s", 1000 * count / sum) : "–",
       nullptr,
       {"1 ÷ mean time of a step with the cache", fmt::format("the last {} of this branch, maps recorded", count)});
  const ModelDims& dims = desk_.model().model->config().dims;
  const auto length = static_cast<int>(desk_.text()->tokens.size());
  fact(ui, "KV cache", bytes_text(cache_bytes(dims, length)), nullptr,
       {"2 · layers · tokens · key heads · d_head · 4 bytes",
        fmt::format("2 · {} · {} · {} · {} · 4", dims.layers, length, dims.kv_heads, dims.d_head)});
  if (const std::size_t dropped = desk_.dropped(); dropped > 0)
    note(ui, fmt::format("Rows and logits of the oldest {} steps were let go to stay inside {}; they are computed "
                         "again when you look at them.",
                         dropped, bytes_text(desk_.byte_budget())));
  ImGui::Dummy({0, ui.px(2)});
  if (button(ui, "Open in Explore")) {
    desk_.pause();
    desk_.open_in_explore();
    bench.ui.workspace = workspace_index("Explore");
  }
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_DelayShort))
    tooltip(ui, {"Prompt and continuation become the document's text", "every head of it, all metrics"});
}

void GenerateWorkspace::branches(Ui& ui) {
  const auto& all = desk_.branches();
  section(ui, "BRANCHES", all.size() == 1 ? "click a candidate on the right to fork" : "click to go back to one");
  for (std::size_t i = 0; i < all.size(); ++i) {
    const GenerationBranch& branch = all[i];
    double loss = 0;
    for (const ToldStep& step : branch.steps) loss -= std::log(std::max(step.probability, 1e-30));
    std::string words;
    for (std::size_t k = branch.from; k < branch.steps.size() && words.size() < 90; ++k)
      words += desk_.label(branch.steps[k].step->token);
    const bool chosen = i == desk_.chosen();
    const float height = ui.px(40), width = ImGui::GetContentRegionAvail().x, close = ui.px(22);
    const ImVec2 at = ImGui::GetCursorScreenPos(), end{at.x + width, at.y + height};
    ImGui::PushID(branch.id);
    const std::string name = fmt::format("branch {}", branch.id);
    ImGui::SetNextItemAllowOverlap();
    if (pressable(name.c_str(), {width, height})) desk_.choose(i);
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
        return desk_.remove(i);
      }
    }
    ImGui::PopID();
  }
}

// ---- middle

void GenerateWorkspace::middle(const PageContext& c) {
  drawn_ = true;
  const Study now = study(c.bench);
  desk_.want(now);
  if (!desk_.prompt() || !desk_.text())
    return empty_state(c.ui, "Nothing to continue yet",
                       "Open a model and write a text in Explore: the model goes on from there, token by token.");
  const float top = ImGui::GetCursorPosY();
  {
    static constexpr const char* headings[] = {"The model writes", "What a cache saves", "A cache that forgets",
                                               "Taught, and on its own"};
    const UseFont font(c.ui, c.ui.heading());
    ImGui::AlignTextToFramePadding();
    ImGui::TextUnformatted(headings[static_cast<int>(now)]);
  }
  const float width = segmented_width(c.ui, study_titles);
  ImGui::SameLine();
  ImGui::SetCursorPosY(top);
  ImGui::SetCursorPosX(ImGui::GetCursorPosX() + std::max(0.0f, ImGui::GetContentRegionAvail().x - width));
  int chosen = static_cast<int>(now);
  if (segmented(c.ui, "generation study", study_titles, chosen)) c.bench.settings.pages[id()] = study_ids[chosen];
  switch (now) {
    case Study::tape:
      return tape(c.ui, c.bench);
    case Study::cost:
      return cost(c.ui);
    case Study::streaming:
      return streaming(c.ui);
    case Study::forcing:
      return forcing(c.ui);
  }
}

void GenerateWorkspace::tape(Ui& ui, Workbench& bench) {
  const double room = static_cast<double>(ImGui::GetContentRegionAvail().y / ui.scale);
  section(ui, "TEXT",
          "the stronger the colour, the more the model was surprised, −ln p · click a token to see its choice");
  chips(ui, ui.px(std::clamp(0.2 * room, 84.0, 190.0)));
  scrubber(ui);
  const double left = static_cast<double>(ImGui::GetContentRegionAvail().y / ui.scale);
  const double chart = left > 420 ? 150 : left > 330 ? 110 : 0;
  rows(ui, bench, left - chart - 6);
  if (chart > 0) history(ui, chart - 50);
}

void GenerateWorkspace::chips(Ui& ui, float height) {
  const std::size_t given = desk_.prompt()->trace->tokens.size(), at = desk_.cursor();
  const Trace& text = *desk_.text();
  const float gap = ui.px(3);
  ImGui::PushStyleColor(ImGuiCol_ChildBg, vec(ui.theme.background));
  if (ImGui::BeginChild("generated text", {0, height}, ImGuiChildFlags_NavFlattened)) {
    const float right = ImGui::GetCursorScreenPos().x + ImGui::GetContentRegionAvail().x;
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {gap, gap});
    for (std::size_t i = 0; i < text.tokens.size(); ++i) {
      if (i > 0) {
        ImGui::SameLine(0, gap);
        if (ImGui::GetCursorScreenPos().x + ui.px(token_chip_width(ui, text.tokens[i].label)) > right) ImGui::NewLine();
      }
      ChipOptions chip;
      const bool own = i >= given;
      const ToldStep* step = own ? &desk_.branch().steps[i - given] : nullptr;
      if (own) chip.shade = 0.06 + 0.86 * std::min(1.0, -std::log(std::max(step->probability, 1e-30)) / 5);
      chip.faint = !own;
      chip.selected = i == given + at;
      const Touch touch = token_chip(ui, text.tokens[i].label, fmt::format("tape {}", i), chip);
      if (touch.clicked && own) desk_.show(i - given);
      if (touch.hovered && own)
        tooltip(ui, {text.tokens[i].label,
                     fmt::format("step {}: probability {:.4f}, rank {} of {}", i - given + 1, step->probability,
                                 step->rank + 1, desk_.model().model->config().dims.vocab),
                     fmt::format("drawn from {} tokens, where its share was {:.4f}", step->kept, step->share)});
    }
    if (desk_.branch().ended.empty()) {  // where the next one will stand
      ImGui::SameLine(0, gap);
      ChipOptions chip;
      chip.selected = at == desk_.branch().steps.size();
      chip.faint = true;
      const Touch touch = token_chip(ui, "  ?  ", "tape next", chip);
      if (touch.clicked) desk_.show(std::numeric_limits<std::size_t>::max());
    }
    ImGui::PopStyleVar();
    if (followed_ != text.tokens.size() && at == desk_.branch().steps.size()) ImGui::SetScrollHereY(1);
    followed_ = text.tokens.size();
  }
  ImGui::EndChild();
  ImGui::PopStyleColor();
}

void GenerateWorkspace::scrubber(Ui& ui) {
  const std::size_t steps = desk_.branch().steps.size();
  int at = static_cast<int>(desk_.cursor());
  const bool end = desk_.cursor() == steps;
  ImGui::AlignTextToFramePadding();
  if (end)
    ImGui::TextUnformatted("next token");
  else
    ImGui::Text("step %d of %d", at + 1, static_cast<int>(steps));
  ImGui::SameLine(ui.px(118));
  ImGui::SetNextItemWidth(
      std::max(ImGui::GetContentRegionAvail().x - button_width(ui, "Newest") - ui.px(10), ui.px(60)));
  if (ImGui::SliderInt("##tape", &at, 0, std::max(static_cast<int>(steps), 1), ""))
    desk_.show(static_cast<std::size_t>(std::max(at, 0)));
  ImGui::SameLine();
  ImGui::BeginDisabled(end);
  if (button(ui, "Newest")) desk_.show(std::numeric_limits<std::size_t>::max());
  ImGui::EndDisabled();
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled | ImGuiHoveredFlags_DelayShort))
    tooltip(ui, {"← and → walk the tape", "→ at its end writes one token"});
}

void GenerateWorkspace::rows(Ui& ui, Workbench& bench, double height) {
  const ToldStep* told = desk_.at_cursor();
  const float line = ImGui::GetCursorPosY();
  if (!told) {
    const bool past = desk_.cursor() < desk_.branch().steps.size();
    section(ui, "ROWS OF ALL HEADS",
            past                           ? "let go to save memory, being computed again"
            : desk_.branch().ended.empty() ? "being read"
                                           : desk_.branch().ended);
    return;
  }
  const Index position = told->step->length - 1;
  const std::string label = token_label(*desk_.text(), position);
  section(ui, "ROWS OF ALL HEADS", fmt::format("where {} {} looks while the next token is chosen", label, position));
  static constexpr const char* scales[] = {"linear", "log"};
  const float width = segmented_width(ui, scales);
  const float after = ImGui::GetCursorPosY();
  ImGui::SetCursorPos({ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x - width, line - ui.px(3)});
  int scale = bench.explorer.state().view.scale == Scale::log ? 1 : 0;
  if (segmented(ui, "row scale", scales, scale))
    bench.explorer.editor.view().scale = scale == 1 ? Scale::log : Scale::linear;
  ImGui::SetCursorPosY(std::max(after, line + ui.px(27)));
  HeadRowsOptions options;
  options.heads = desk_.model().model->config().dims.heads;
  options.scale = scale == 1 ? Scale::log : Scale::linear;
  options.width = std::floor(static_cast<double>(ImGui::GetContentRegionAvail().x / ui.scale));
  options.height = std::max(height - 34, 120.0);
  const HeadId selected = bench.explorer.state().document.selected;
  options.selected = selected;
  rows_.want(bench.explorer.jobs, ui, told->step,
             fmt::format("{} {} {} {}.{}", options.width, options.height, scale, selected.layer, selected.head),
             [text = desk_.text(), step = told->step, options](const Look& look) {
               return head_rows_scene(*text, step->rows, options, look);
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
                             token_label(*desk_.text(), key), key, told->step->rows.at(row, key)),
                 fmt::format("blocks.{}.attn.hook_pattern[{}, {}, {}], F32", layer, head, position, key),
                 "click to select the head"});
  if (touch.clicked) bench.explorer.editor.select({layer, head});
}

void GenerateWorkspace::history(Ui& ui, double height) {
  const auto& steps = desk_.branch().steps;
  section(ui, "UNCERTAINTY BY STEP", "entropy in nats · grey the model, blue what is drawn from · click to go there");
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
  if (desk_.cursor() < steps.size())
    chart.marker = Point{static_cast<double>(desk_.cursor() + 1), steps[desk_.cursor()].entropy_kept};
  chart.series = {std::move(model), std::move(drawn)};
  const PlotTouch touch = plot(ui, "generation entropy", std::move(chart));
  if (touch.clicked && !steps.empty())
    desk_.show(static_cast<std::size_t>(std::clamp(std::lround(touch.x), 1L, static_cast<long>(steps.size())) - 1));
}

}  // namespace headscope
