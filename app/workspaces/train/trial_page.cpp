#include "app/workspaces/train/trial_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "app/render/head_report.h"
#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/widgets/plots.h"
#include "app/workspaces/train/curves.h"
#include "core/base/duration.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "viz/scene/head_map.h"

namespace headscope {

namespace {
using TrialPhase = TrialController::Phase;

/// A hue for each model, the same in both charts and in the list.
Color hue_of_model(const Ui& ui, std::size_t i, std::size_t count) {
  if (count <= 3) {
    const Color three[] = {ui.theme.accent, ui.theme.key, ui.theme.value};
    return legible(ui.theme, nth(three, static_cast<int>(i)));
  }
  // In an order: from one hue to the other.
  const double at = static_cast<double>(i) / static_cast<double>(count - 1);
  return legible(ui.theme, mix(ui.theme.value, ui.theme.query, at));
}

constexpr const char* trial_phases[] = {to_say("not begun"), to_say("running"), to_say("stopped"),
                                        to_say("finished")};  // by TrialController::Phase
}  // namespace

void TrialPage::left(Ui& ui, const TrialPlan& plan) {
  const TrialController::View& view = controller_.view(plan.id);
  const Recipe& recipe = plan.contestants.front().recipe;
  section(ui, said("QUESTION"));
  note(ui, said(plan.question));
  note(ui, said(plan.source) + ".");
  section(ui, said("RUN"), said(nth(trial_phases, static_cast<int>(view.phase))));
  const char* const begin = view.phase == TrialPhase::stopped    ? to_say("Go on")
                            : view.phase == TrialPhase::finished ? to_say("Train again")
                                                                 : to_say("Train side by side");
  const float left = ImGui::GetCursorPosX();
  ImGui::BeginDisabled(view.phase == TrialPhase::running);
  if (button(ui, begin)) controller_.start(plan);
  ImGui::EndDisabled();
  ImGui::SameLine(left + button_width(ui, "Train side by side") + ui.px(8));
  ImGui::BeginDisabled(view.phase != TrialPhase::running);
  if (button(ui, to_say("Stop"))) controller_.stop();
  ImGui::EndDisabled();
  fact(ui, said("Done"), fmt::format("{:.0f} %", 100 * view.done));
  if (!view.standings.empty() && view.phase == TrialPhase::running) {
    double seconds = 0;
    for (const TrialStanding& each : view.standings) seconds += each.progress.seconds_left;
    fact(ui, said("Time left"), duration_text(seconds));
  }
  section(ui, said("ALIKE IN ALL"), said("but for what is asked"));
  fact(ui, said("Task"), recipe.task.kind, nullptr, {said(plan.task_details)});
  fact(ui, said("Layers"), say("{}, width {}", recipe.model.layers, recipe.model.width));
  fact(ui, said("Batch"), step_text(recipe));
  fact(ui, said("Steps"),
       fmt::format("{}", view.standings.empty() ? recipe.steps : view.standings.front().progress.steps));
  fact(ui, said("Learning rate"), fmt::format("{:g}", recipe.optimizer.learning_rate));
  fact(ui, said("Seed"), fmt::format("{}", recipe.seed), nullptr, {said("the same first weights and batches for all")});
}

void TrialPage::middle(Ui& ui, JobRunner& jobs, const TrialPlan& plan) {
  const TrialController::View& view = controller_.view(plan.id);
  if (view.standings.empty())
    return empty_state(ui, view.phase == TrialPhase::running ? said("Making data and first weights") : said(plan.title),
                       view.phase == TrialPhase::running
                           ? said("The first picture follows at once.")
                           : said("Press Train side by side on the left: every number here is of "
                                  "models that learn before your eyes."));
  ui.pictures.passing = "a trial of models that learnt side by side";
  const auto room = [&] { return static_cast<double>(ImGui::GetContentRegionAvail().y / ui.scale); };
  const bool aligns = !plan.alignment_of.empty();
  score(ui, plan, std::max((aligns ? 0.4 : 0.5) * room() - 34, 150.0));
  if (aligns) return alignment(ui, jobs, plan);
  section(ui, said("HELD-OUT LOSS"), said("nats per token; the floor is the entropy of the data, computed"));
  loss(ui, plan, std::max(room() - 10, 120.0));
}

/// What each gets right, by size.
void TrialPage::score(Ui& ui, const TrialPlan& plan, double height) {
  const TrialController::View& view = controller_.view(plan.id);
  const std::size_t count = view.standings.size();
  section(ui, said(plan.score_title), say("{} · chance {:.2f}", said(plan.score_of), plan.chance));
  LineChart chart;
  for (std::size_t i = 0; i < count; ++i) {
    const TrialStanding& each = view.standings[i];
    ChartSeries line{said(each.title), hue_of_model(ui, i, count), {}, {}, 2.25};
    for (std::size_t s = 0; s < plan.sizes.size(); ++s) {
      line.x.push_back(plan.sizes[s]);
      line.y.push_back(each.score[s]);
    }
    chart.series.push_back(std::move(line));
  }
  chart.points = true;
  chart.grid = true;
  chart.y_low = 0;
  chart.y_high = 1;
  chart.x_low = plan.sizes.front();
  chart.x_high = plan.sizes.back();
  chart.x_title = said(plan.size_title);
  chart.height = height;
  plot(ui, "trial score", std::move(chart));
}

void TrialPage::loss(Ui& ui, const TrialPlan& plan, double height) {
  const TrialController::View& view = controller_.view(plan.id);
  const std::size_t count = view.standings.size();
  LineChart chart;
  double end = 1, floor = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const TrialStanding& each = view.standings[i];
    chart.series.push_back(held_out_series(each.curve, said(each.title), hue_of_model(ui, i, count), 2.0));
    end = std::max(end, static_cast<double>(each.progress.steps));
    floor = each.progress.floor;
  }
  chart.series.push_back({said("floor"), ui.theme.faint, {0, end}, {floor, floor}, 1.25});
  chart.grid = true;
  chart.x_low = 0;
  chart.x_high = end;
  chart.y_low = 0;
  chart.x_title = said("step");
  chart.height = height;
  plot(ui, "trial loss", std::move(chart));
}

/// Where the one that aligns looks as it writes, beside what all of them write, in what is left of the column.
void TrialPage::alignment(Ui& ui, JobRunner& jobs, const TrialPlan& plan) {
  const auto& standings = controller_.view(plan.id).standings;
  const auto which =
      std::ranges::find_if(standings, [](const TrialStanding& each) { return each.alignment != nullptr; });
  if (which == standings.end()) {
    section(ui, said("WHERE IT LOOKS"), said(plan.alignment_of));
    return note(ui, said("Drawn whenever the models are scored, ten times in the course of a run."));
  }
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float high = std::max(room.y, ui.px(250)), gap = ui.px(16), left = std::floor((room.x - gap) * 0.6f);
  ImGui::BeginChild("where it looks", {left, high}, ImGuiChildFlags_NavFlattened);
  section(ui, said("WHERE IT LOOKS"), said(plan.alignment_of));
  const double width = std::floor(static_cast<double>(ImGui::GetContentRegionAvail().x / ui.scale)),
               height = std::floor(static_cast<double>(ImGui::GetContentRegionAvail().y / ui.scale)) - 6;
  HeadMapOptions options;
  options.bare = true;
  options.room = HeadMapOptions::Room{width, height};
  alignment_.want(
      jobs, ui, which->alignment, fmt::format("{} {}", width, height),
      [trace = which->alignment, options](const Style& style) { return head_map_scene(*trace, options, style); });
  if (alignment_.scene()) alignment_.draw(ui, "trial alignment", {}, width, height);
  ImGui::EndChild();
  ImGui::SameLine(0, gap);
  ImGui::BeginChild("what each writes", {room.x - left - gap, high}, ImGuiChildFlags_NavFlattened);
  writings(ui, plan, *which->alignment);
  ImGui::EndChild();
}

/// What each makes of the text whose alignment is shown, and how many of its words stand where they should.
void TrialPage::writings(Ui& ui, const TrialPlan& plan, const Trace& text) {
  const auto& standings = controller_.view(plan.id).standings;
  const auto words = [](const std::vector<Token>& tokens) {  // without the end
    std::vector<std::string> out;
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) out.push_back(tokens[i].label);
    return out;
  };
  const std::vector<std::string> right = words(text.query_tokens);
  section(ui, said("WHAT EACH WRITES"), said("of this text"));
  note(ui, fmt::format("{}", fmt::join(words(text.tokens), " ")));
  paragraph(ui, fmt::format("{}", fmt::join(right, " ")), ui.theme.text);
  for (std::size_t i = 0; i < standings.size(); ++i) {
    const TrialStanding& each = standings[i];
    std::size_t same = 0;
    for (std::size_t w = 0; w < std::min(right.size(), each.written.size()); ++w) same += right[w] == each.written[w];
    const Color hue = hue_of_model(ui, i, standings.size());
    fact(ui, said(each.title), say("{} of {}", same, right.size()), &hue,
         {said("of its words, those that stand where the translation above has them")});
    note(ui, fmt::format("{}", fmt::join(each.written, " ")));
  }
}

void TrialPage::right(Ui& ui, const TrialPlan& plan) {
  const TrialController::View& view = controller_.view(plan.id);
  if (view.standings.empty())
    return empty_state(ui, said("Who stands where"),
                       said("Accuracy, loss and what each keeps of a text will stand here."));
  const auto mean = [](const std::vector<double>& values) {
    double sum = 0;
    for (const double each : values) sum += each;
    return sum / static_cast<double>(values.size());
  };
  const std::size_t count = view.standings.size();
  section(ui, said("Score"), said("mean over all lengths"));
  for (std::size_t i = 0; i < count; ++i) {
    const TrialStanding& each = view.standings[i];
    const Color hue = hue_of_model(ui, i, count);
    const double share = mean(each.score);
    fact(
        ui, said(each.title), std::isnan(share) ? "–" : fmt::format("{:.0f} %", 100 * share), &hue,
        {say("{}, measured after step {}, on texts that it never learnt from", said(plan.score_of), each.scored_step)});
  }
  section(ui, said("HELD-OUT LOSS"), say("floor {:.3f}", view.standings.front().progress.floor));
  for (std::size_t i = 0; i < count; ++i) {
    const TrialStanding& each = view.standings[i];
    const Color hue = hue_of_model(ui, i, count);
    fact(ui, said(each.title), std::isnan(each.progress.held_out) ? "–" : nats(each.progress.held_out), &hue,
         {say("after step {}", each.progress.held_out_step)});
  }
  section(ui, said("KEPT OF A TEXT"), say("numbers, of {} tokens", plan.contestants.front().recipe.model.context));
  for (std::size_t i = 0; i < count; ++i) {
    const TrialStanding& each = view.standings[i];
    fact(ui, said(each.title), fmt::format("{}", each.state), nullptr,
         {said(plan.kept_of), say("{} weights", each.parameters)});
  }
  if (!plan.alignment_of.empty()) {  // whose place the alignment has
    section(ui, said("LOSS OVER STEPS"), said("nats per token"));
    loss(ui, plan, 132);
  }
  section(ui, said("WHAT TO LOOK FOR"));
  // It speaks of models that have learnt what they can.
  bool learnt = true;
  for (std::size_t i = 0; i < count; ++i)
    learnt = learnt && view.standings[i].scored_step >= plan.contestants[i].recipe.steps;
  note(ui, learnt ? said(plan.answer)
                  : say("Of a run of all {} steps: {}", plan.contestants.front().recipe.steps, said(plan.answer)));
}

}  // namespace headscope
