// headscope-cli trial: small models that differ in one thing, trained side by side.

#include <fmt/format.h>

#include "app/cli/commands.h"
#include "app/cli/output.h"
#include "core/train/trial.h"

namespace headscope::cli {

namespace {
struct TrialOptions {
  Output output;
  std::string id;
  std::int64_t steps = 0;
  bool list = false;
};

void list_trials(Console& console, const TrialOptions& options) {
  Report out;
  auto& rows = out.table("trials", {"id", "title", "question", only_in(Form::scripts, "source")});
  for (const TrialPlan& plan : trial_plans()) rows.add({plan.id, plan.title, plan.question, plan.source});
  console.print(out.printed(options.output.form()));
}

void try_out(Console& console, const TrialOptions& options) {
  if (options.list) return list_trials(console, options);
  if (options.id.empty()) throw UsageError("which trial? --list names them");
  const TrialPlan plan = with_steps(understood([&] { return trial_plan(options.id); }), options.steps);
  Trial trial(plan, console.backend());
  console.with_progress(plan.id, [&](const Ctx& ctx) {
    while (!trial.finished()) {
      trial.run(10, ctx.stop);
      if (ctx.progress) *ctx.progress = static_cast<float>(trial.share_done());
    }
  });
  Report out;
  const Recipe& recipe = plan.contestants.front().recipe;
  out.line(fmt::format("{} ({})", plan.title, plan.source));
  out.line(
      fmt::format("{} steps of {}; {}, chance {:.2f}", recipe.steps, step_text(recipe), plan.counted, plan.chance));
  std::vector<Column> columns{"model",
                              "parameters",
                              {"state", "numbers kept"},
                              {"loss", "held-out loss", "{:.4f}"},
                              only_in(Form::scripts, "floor")};
  for (const int size : plan.sizes)
    columns.push_back({fmt::format("accuracy_{}", size), fmt::format("{}", size), "{:.2f}"});
  auto& rows = out.table("models", columns);
  for (const TrialStanding& each : trial.standings()) {
    std::vector<Cell> row{each.title, each.parameters, each.state, each.progress.held_out, each.progress.floor};
    for (const double score : each.score) row.push_back(score);
    rows.add(std::move(row));
  }
  out.line(fmt::format("by {}", plan.size_title));
  console.print(out.printed(options.output.form()));
}
}  // namespace

void add_trial(Command& app, Console& console) {
  auto options = std::make_shared<TrialOptions>();
  Command command = app.add_subcommand("trial", "Small models that differ in one thing, trained side by side");
  command.add_option("trial", options->id, "Which: --list names them").type_name("TRIAL");
  options->output.add_to(command);
  command.add_option("--steps", options->steps, "Steps of each model (default: the trial's own)")
      .check(range(1, 1 << 24));
  command.add_flag("--list", options->list, "The trials, with what they ask");
  command.does([options, &console] { try_out(console, *options); });
}

}  // namespace headscope::cli
