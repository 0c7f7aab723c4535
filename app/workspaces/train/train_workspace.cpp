#include "app/workspaces/train/train_workspace.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "app/render/head_report.h"
#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/widgets/plots.h"
#include "app/workspaces/head_cells.h"
#include "app/workspaces/train/curves.h"
#include "core/base/duration.h"
#include "core/base/nth.h"
#include "core/base/user_folders.h"
#include "core/base/words.h"
#include "core/train/training_folder.h"
#include "viz/scene/head_atlas.h"

namespace headscope {

namespace {

using Phase = TrainingController::Phase;
// More points than a plot has pixels would only cost time.
constexpr std::size_t most_points = 600;
constexpr const char* one_model = "model";  // the page that is no trial

/// Every k-th step's loss, k such that the plot has points enough.
ChartSeries loss_series(const std::vector<TrainingPoint>& curve, Color color) {
  ChartSeries line{said("loss"), color, {}, {}};
  const std::size_t every = curve.size() / most_points + 1;
  for (std::size_t i = 0; i < curve.size(); i += every) {
    // The mean of what is left out: single batches scatter.
    double sum = 0;
    std::size_t count = 0;
    for (std::size_t j = i; j < std::min(i + every, curve.size()); ++j) sum += curve[j].loss, ++count;
    line.x.push_back(static_cast<double>(curve[i].step));
    line.y.push_back(sum / static_cast<double>(count));
  }
  return line;
}

const char* phase_words(Phase phase) {
  switch (phase) {
    case Phase::idle:
      return to_say("no run yet");
    case Phase::preparing:
      return to_say("making vocabulary and data");
    case Phase::running:
      return to_say("training");
    case Phase::paused:
      return to_say("paused");
    case Phase::finished:
      return to_say("finished");
  }
  return "";
}

Color head_color(const Ui& ui, const TrainingView& view, std::size_t head) {
  const auto& verdicts = view.facts->verdicts[head];
  return verdicts.empty() ? ui.theme.muted : class_color(*verdicts.front().rule);
}

}  // namespace

std::vector<CatalogueGroup> TrainWorkspace::pages() const {
  CatalogueGroup one, side;
  one.title = to_say("One run");
  one.entries.push_back(
      {one_model, to_say("One model"), "recipe of a run, optimiser, checkpoint, fork, heads forming"});
  side.title = to_say("Trials");
  for (const TrialPlan& plan : trial_plans()) side.entries.push_back({plan.id, plan.title, plan.words});
  return {one, side};
}

const TrialPlan* TrainWorkspace::trial(const AppContext& app) const {
  const auto page = app.settings.pages.find(id());
  if (page == app.settings.pages.end()) return nullptr;
  const auto plan = std::ranges::find(trial_plans(), page->second, &TrialPlan::id);
  return plan == trial_plans().end() ? nullptr : &*plan;
}

void TrainWorkspace::left(const PageContext& c) {
  std::vector<const char*> titles{to_say("One model")};
  std::vector<std::string> ids{one_model};
  const TrialPlan* const plan = trial(c.app);
  int chosen = 0;
  for (const TrialPlan& each : trial_plans()) {
    if (&each == plan) chosen = static_cast<int>(ids.size());
    titles.push_back(each.tab.c_str());
    ids.push_back(each.id);
  }
  const float fits = std::min(segmented_width(c.ui, titles), ImGui::GetContentRegionAvail().x);
  if (segmented(c.ui, "training page", titles, chosen, fits)) c.app.settings.pages[id()] = nth(ids, chosen);
  if (plan) return trial_.left(c.ui, *plan);
  recipe(c.ui);
  controls(c.ui);
  shape(c.ui);
}

void TrainWorkspace::controls(ControlsRecord& record) {
  controls_of(controller_, record);
  record.choice("history", history_metric_, 3);
  record.field("folder", folder_);
}

void TrainWorkspace::recipe(Ui& ui) {
  Recipe& draft = controller_.draft();
  section(ui, said("RECIPE"), said("the same recipe gives the same weights"));
  if (menu_button(ui, "Recipe", draft.name, draft.task.kind)) ImGui::OpenPopup("recipes");
  if (ImGui::BeginPopup("recipes")) {
    for (const auto& [name, path] : controller_.recipes())
      if (ImGui::MenuItem(name.c_str(), nullptr, name == draft.name)) controller_.choose(path);
    ImGui::EndPopup();
  }
}

void TrainWorkspace::controls(Ui& ui) {
  const Phase phase = controller_.phase();
  section(ui, said("RUN"), said(phase_words(phase)));
  const bool sound = controller_.complaint().empty();
  const float left = ImGui::GetCursorPosX();  // SameLine counts from the window's edge, which has a margin
  ImGui::BeginDisabled(!sound || phase == Phase::preparing);
  if (button(ui, controller_.has_run() ? to_say("Start again") : to_say("Start training"))) controller_.start();
  ImGui::EndDisabled();
  // Each stays in its place whatever is going on: a second click must not meet another button.
  const bool narrow =
      left + button_width(ui, "Start training") + button_width(ui, "Resume") + button_width(ui, "Step") + ui.px(16) >
      ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x;
  const float second = narrow ? left : left + button_width(ui, "Start training") + ui.px(8),
              third = second + std::max(button_width(ui, "Resume"), button_width(ui, "Pause")) + ui.px(8);
  ImGui::BeginDisabled(phase != Phase::running && phase != Phase::paused);
  if (!narrow) ImGui::SameLine(second);
  if (phase == Phase::running ? button(ui, to_say("Pause")) : button(ui, to_say("Resume")))
    phase == Phase::running ? controller_.pause() : controller_.resume();
  ImGui::SameLine(third);
  if (button(ui, to_say("Step"))) controller_.step();
  ImGui::EndDisabled();
  if (const std::string wrong = controller_.complaint(); !wrong.empty())
    paragraph(ui, wrong, legible(ui.theme, rgb(0xF0616D)));
  double rate = controller_.draft().optimizer.learning_rate;
  if (slider(ui, to_say("Learning rate"), rate, {1e-5, 1e-1, rate, true, "", 5})) controller_.set_learning_rate(rate);
  balance_price(ui);
  if (!controller_.has_run()) return;
  const TrainingProgress& p = controller_.progress();
  fact(ui, said("Step"), say("{} of {}", p.step, p.steps));
  fact(ui, said("Loss of the batch"), nats(p.loss), nullptr,
       {said("mean cross-entropy of the last step's batch, before its update")});
  fact(ui, said("Held-out loss"), nats(p.held_out), nullptr,
       {say("measured after step {}", p.held_out_step), said("mean over texts that are never learnt from")});
  fact(ui, said("Floor"), nats(p.floor), nullptr,
       {said("exact: Σ −log p of the held-out texts ÷ their tokens"), said("no model can stay below it on average")});
  if (!std::isnan(p.balance))
    fact(ui, said("Balance of experts"), say("{:.3f} (even 1)", p.balance), nullptr,
         {said("E Σ load · mean router probability in the last step's batch, mean over layers"),
          say("costs {:g} nats a unit, which are no part of the loss above",
              controller_.running().optimizer.expert_balance)});
  fact(ui, said("Learning rate now"), fmt::format("{:.2e}", p.learning_rate));
  fact(ui, said("Gradient norm"), fmt::format("{:.3f}", p.gradient_norm), nullptr, {said("before clipping")});
  fact(ui, said("Speed"), say("{:.1f} k tokens/s", p.tokens_per_second / 1000));
  fact(ui, said("Time left"), phase == Phase::running ? duration_text(p.seconds_left) : "–");
  branches(ui);
}

void TrainWorkspace::balance_price(Ui& ui) {
  const Recipe& draft = controller_.draft();
  if (!draft.model.has_experts()) return;
  double price = draft.optimizer.expert_balance;
  // The way stays as it is under the hand.
  if (!ImGui::IsMouseDown(ImGuiMouseButton_Left)) balance_end_ = std::max(usual_balance_end, price);
  if (slider(ui, to_say("Price of balance"), price, {0, balance_end_, usual_balance_price, false, "", 3}))
    controller_.set_expert_balance(price);
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_DelayShort))
    tooltip(ui, {said("Nats of loss that a unit of the balance of experts costs, from the next step on"),
                 said("E Σ load · mean router probability: 1 where even"),
                 said("0: free; routers then tend to send every token to the same few experts")});
}

/// Ways that were left, at a fork or for another beginning. A click goes back to the end of one.
void TrainWorkspace::branches(Ui& ui) {
  if (controller_.other_branches().empty()) return;
  section(ui, said("BRANCHES"), said("a click goes back to the end of one"));
  std::vector<const TrainingBranch*> all{&controller_.branch()};
  for (const TrainingBranch& branch : controller_.other_branches()) all.push_back(&branch);
  std::ranges::sort(all, {}, &TrainingBranch::id);
  int wanted = -1;
  for (const TrainingBranch* branch : all) {
    const bool now = branch == &controller_.branch();
    const std::string words = branch->parent < 0
                                  ? say("{}: {} to step {}", branch->id, branch->recipe.name, branch->progress.step)
                                  : say("{}: {}'s step {} to {}, rate {:.1e}", branch->id, branch->parent, branch->from,
                                        branch->progress.step, branch->recipe.optimizer.learning_rate);
    if (ImGui::Selectable(fmt::format("{}###training branch {}", ui.fonts.laid_out(words), branch->id).c_str(), now) &&
        !now)
      wanted = branch->id;
  }
  if (wanted >= 0) controller_.go_back_to(wanted);
}

void TrainWorkspace::middle(const PageContext& c) {
  if (const TrialPlan* plan = trial(c.app)) return trial_.middle(c.ui, c.jobs, *plan);
  if (!controller_.has_run() || (!controller_.moment() && controller_.phase() == Phase::idle))
    return empty_state(c.ui, said("No model is being trained"),
                       said("Choose a recipe on the left and press Start training: heads will form before your eyes."));
  if (!controller_.moment())
    return empty_state(c.ui, said("Making vocabulary and data"), said("The first picture follows at once."));
  c.ui.pictures.passing = "a training";
  loss(c.ui);
  scrubber(c.ui);
  heads(c.ui, c.app);
}

void TrainWorkspace::loss(Ui& ui) {
  const TrainingProgress& p = controller_.progress();
  section(ui, said("LOSS"),
          controller_.running().task.draws() ? said("nats per picture")
          : std::isnan(p.floor)              ? said("nats per masked token")
                                             : said("nats per token; the floor is the entropy of the data, computed"));
  LineChart chart;
  std::vector<ChartSeries>& lines = chart.series;
  lines.push_back(loss_series(controller_.curve(), ui.theme.muted));
  double end = static_cast<double>(std::max<std::int64_t>(p.step, 10));
  for (const TrainingBranch& branch : controller_.other_branches()) {
    if (branch.recipe.name != controller_.running().name) continue;  // another task's loss is another scale
    lines.push_back(held_out_series(branch.curve, say("branch {}", branch.id), ui.theme.faint, 1.25));
    end = std::max(end, static_cast<double>(branch.progress.step));
  }
  lines.push_back(held_out_series(controller_.curve(), said("held out"), ui.theme.accent, 2.25));
  if (!std::isnan(p.floor))
    lines.push_back(
        {said("floor"), parse_color("#4CC38A").value_or(ui.theme.text), {0, end}, {p.floor, p.floor}, 1.25});
  chart.height = 256;
  chart.grid = true;
  chart.x_low = 0;
  chart.x_high = end;
  chart.x_title = said("step");
  const TrainingMoment* shown = controller_.moment();
  const auto at = static_cast<double>(shown->view->step);
  if (controller_.shown()) {
    const auto& curve = controller_.curve();
    const auto point = std::ranges::find_if(curve, [&](const TrainingPoint& c) { return c.step >= shown->view->step; });
    if (point != curve.end()) chart.marker = Point{at, point->loss};
  }
  const PlotTouch touch = plot(ui, "training loss", std::move(chart));
  if (touch.clicked) {  // the moment nearest to the click
    const auto& all = controller_.moments();
    const auto nearest = std::ranges::min_element(
        all, {}, [&](const TrainingMoment& m) { return std::abs(static_cast<double>(m.view->step) - touch.x); });
    if (nearest != all.end()) controller_.show(static_cast<std::size_t>(nearest - all.begin()));
  }
}

void TrainWorkspace::scrubber(Ui& ui) {
  const auto& moments = controller_.moments();
  int index = static_cast<int>(controller_.shown().value_or(moments.size() - 1));
  const bool live = !controller_.shown();
  const float newest = button_width(ui, "Newest");
  ImGui::AlignTextToFramePadding();
  text_line(ui, say("step {}", controller_.moment()->view->step));
  ImGui::SameLine(ui.px(110));
  ImGui::SetNextItemWidth(ImGui::GetContentRegionAvail().x - newest - ui.px(10));
  if (ImGui::SliderInt("##moment", &index, 0, std::max(static_cast<int>(moments.size()) - 1, 0), ""))
    controller_.show(static_cast<std::size_t>(index));
  ImGui::SameLine();
  ImGui::BeginDisabled(live);
  if (button(ui, to_say("Newest"))) controller_.show(std::nullopt);
  ImGui::EndDisabled();
}

void TrainWorkspace::heads(Ui& ui, AppContext& app) {
  const TrainingView& view = *controller_.moment()->view;
  const Trace& trace = *view.facts->trace;
  const std::string shown = trace.model.stack == Stack::cross
                                ? say("of cross-attention, {} tokens ↓ over {} of their source →",
                                      trace.query_tokens.size(), trace.tokens.size())
                                : say("of one text of {} tokens", trace.tokens.size());
  section(ui, said("HEADS"), say("{}, at step {} · layer ↓ head →", shown, view.step));
  HeadAtlasOptions options;
  options.width = std::floor(ImGui::GetContentRegionAvail().x / ui.scale);
  options.classes = head_marks(view.facts.get());
  // As large as all layers fit below one another.
  const double room = ImGui::GetContentRegionAvail().y / ui.scale - 60;
  options.largest_thumb = std::clamp(std::floor(room / trace.model.dims.layers) - 3, 40.0, 240.0);
  atlas_.want(
      app.explorer.jobs, ui, view.facts, fmt::format("{} {}", options.width, options.largest_thumb),
      [facts = view.facts, options](const Style& style) { return head_atlas_scene(*facts->trace, options, style); });
  if (const Scene* scene = atlas_.scene()) {
    SceneViewOptions how;
    how.fit_height = false;
    atlas_.draw(ui, "training heads", how, options.width, scene->height);
  }
}

void TrainWorkspace::right(const PageContext& c) {
  if (const TrialPlan* plan = trial(c.app)) return trial_.right(c.ui, *plan);
  if (!controller_.moment())
    return empty_state(c.ui, said("Heads over time"),
                       said("Their scores, and what the model writes, will stand here."));
  history(c.ui);
  sample(c.ui);
  keep(c.ui, c.app);
}

void TrainWorkspace::history(Ui& ui) {
  static constexpr const char* labels[] = {to_say("Induction"), to_say("Previous"), to_say("Sink"), to_say("Entropy")};
  const auto& all = controller_.head_history();
  // Between two texts this is what can be said of heads.
  const bool aligns = !all.empty() && all.back().metric == HeadHistory::alignment;
  section(ui, said("HEADS OVER TIME"),
          aligns                                      ? said("alignment error rate, a line each")
          : controller_.running().model.state_space() ? said("a line each, of |α| as shares")
                                                      : said("a line each"));
  // A picture repeats nothing and has no token before another.
  const int first = controller_.running().task.draws() ? 2 : 0;
  history_metric_ = std::max(history_metric_, first);
  int shown_metric = history_metric_ - first;
  if (!aligns &&
      segmented(ui, "training history", std::span(labels).subspan(static_cast<std::size_t>(first)), shown_metric))
    history_metric_ = shown_metric + first;
  if (all.empty()) return;
  const TrainingController::HeadHistory& history = aligns ? all.back() : nth(all, history_metric_);
  const TrainingView& view = *controller_.moment()->view;
  LineChart chart;
  const auto score = [&](const std::vector<double>& values) {
    if (values.empty() || std::isnan(values.back())) return -1.0;
    return aligns ? 1 - values.back() : values.back();  // of an error the least is best
  };
  const auto best = std::ranges::max_element(history.heads, {}, score);
  for (std::size_t head = 0; head < history.heads.size(); ++head) {
    const AttentionMap& map = view.facts->trace->maps[head];
    const bool named = history.heads.begin() + static_cast<std::ptrdiff_t>(head) == best;
    chart.series.push_back({named ? to_string(map.id()) : "", head_color(ui, view, head), history.steps,
                            history.heads[head], named ? 2.25 : 1.25});
  }
  // In a low window what follows it matters as much.
  chart.height = std::clamp(0.28 * static_cast<double>(ImGui::GetWindowHeight() / ui.scale), 150.0, 186.0);
  chart.grid = true;
  chart.x_low = 0;
  chart.y_low = 0;
  chart.y_high = 1;
  chart.x_title = said("step");
  plot(ui, "training history", std::move(chart), false);
  if (aligns) {
    if (ImGui::IsItemHovered())
      tooltip(ui, {said("Alignment error rate"), "1 − (|A ∩ S| + |A ∩ P|) ÷ (|A| + |S|): Och & Ney 2003",
                   said("of each target word's strongest source word, on the fixed pair of sentences; 0 is best")});
    return;
  }
  const Metric& shown = metric(history.metric);
  if (ImGui::IsItemHovered())
    tooltip(ui, {std::string(said_view(shown.title)), std::string(said_view(shown.formula)),
                 said("of the fixed probe text")});
}

void TrainWorkspace::sample(Ui& ui) {
  const TrainingView& view = *controller_.moment()->view;
  if (controller_.running().task.kind == "masked")
    section(ui, said("THE MODEL TELLS"), say("step {}: ⟨right⟩ ⟨wrong|was⟩", view.sample_step));
  else if (controller_.running().task.draws())
    section(ui, said("THE MODEL SEES"), say("at step {}: what it takes the example picture for", view.sample_step));
  else if (controller_.running().task.translates())
    section(ui, said("THE MODEL TRANSLATES"),
            say("at step {}: source, its translation, the true one", view.sample_step));
  else
    section(ui, said("THE MODEL WRITES"), say("at step {}, temperature 0.8", view.sample_step));
  paragraph(ui, view.sample.empty() ? said("(nothing: it ends the text at once)") : view.sample.text(), ui.theme.text);
}

void TrainWorkspace::keep(Ui& ui, AppContext& app) {
  section(ui, said("KEEP"), say("the model of step {}", controller_.moment()->view->step));
  const std::string usual = with_tilde(controller_.usual_folder());
  ImGui::SetNextItemWidth(ImGui::GetContentRegionAvail().x);
  input_line(ui, "##training folder", usual.c_str(), folder_);
  const bool entered =
      ImGui::IsItemDeactivated() && (ImGui::IsKeyPressed(ImGuiKey_Enter) || ImGui::IsKeyPressed(ImGuiKey_KeypadEnter));
  const std::filesystem::path folder = folder_.empty() ? controller_.usual_folder() : from_tilde(folder_);
  const auto save = [&](bool open, bool overwrite) {
    replace_.clear();
    if (!overwrite && holds_model(folder)) {
      replace_ = folder;
      replace_opens_ = open;
      return;
    }
    if (open) {
      controller_.pause();
      app.ui.workspace = workspace_index("Explore");
    }
    controller_.save(folder, open, overwrite);
  };
  if (button(ui, to_say("Save")) || entered) save(false, false);
  beside(ui, button_width(ui, "Open in Explore"));
  if (button(ui, to_say("Open in Explore"))) save(true, false);
  if (!replace_.empty() && replace_ == folder) {
    paragraph(ui, said("A model lies there already."), ui.theme.text);
    if (button(ui, to_say("Replace it"))) save(replace_opens_, true);
    beside(ui, button_width(ui, "Leave it"));
    if (button(ui, to_say("Leave it"))) replace_.clear();
  }
  ImGui::BeginDisabled(!controller_.shown());
  if (button(ui, to_say("Fork from here"))) controller_.fork();
  ImGui::EndDisabled();
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled))
    tooltip(ui, {said("Train on from the step on screen"),
                 said("with the learning rate on the left; what came after it stays as a branch"),
                 said("scrub back first")});
}

}  // namespace headscope
