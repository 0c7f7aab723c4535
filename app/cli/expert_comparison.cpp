// headscope-cli expert reward and expert compose: experts learnt by REINFORCE beside the gradient, and experts composed
// beside low-rank adapters.

#include <fmt/format.h>

#include <algorithm>

#include "app/cli/expert_adaptation.h"
#include "app/cli/sweep_run.h"
#include "core/analysis/expert_composition.h"
#include "core/analysis/reward_tuning.h"

namespace headscope::cli {

namespace {

Report reward_report(const RewardTuning& of) {
  Report out;
  out.line("Right next tokens behind the prompts of unseen texts, Σ p(right) ÷ tokens, and KL to the model, nats");
  auto& rows = out.table("tasks", {"task",
                                   {"before", "no expert", "{:.4f}"},
                                   {"rewarded", "by REINFORCE", "{:.4f}"},
                                   {"rewarded_kl", "KL", "{:.3f}"},
                                   {"taught", "by gradient", "{:.4f}"},
                                   {"taught_kl", "KL", "{:.3f}"}});
  Cell steps = Cell::object();
  for (std::size_t t = 0; t < of.found.size(); ++t) {
    const RewardTuning::Task& task = of.found[t];
    if (task.whole)
      rows.add({of.tasks[t].name, task.before.right, task.rewarded.right, task.rewarded.kl, task.taught.right,
                task.taught.kl});
    Cell rewards = Cell::array();
    for (const RewardStep& each : task.steps)
      rewards.push_back({{"reward", each.reward}, {"kl", each.kl}, {"right", each.right}});
    steps[of.tasks[t].name] = {{"rewards", std::move(rewards)}, {"losses", task.losses}};
  }
  out.data("steps", std::move(steps));
  out.data("price", of.price);
  out.line(
      fmt::format("Both learn {} steps of {} texts, the same ones. REINFORCE draws {} tokens behind every prompt and "
                  "is told which are right (1) and which are not (−1); λ = {:g} for the KL.",
                  of.asked.steps, of.asked.batch, RewardLearner::Settings{}.draws, of.price));
  return out;
}

Report composition_report(const ExpertComposition& of) {
  Report out;
  out.line(
      fmt::format("{} numbers z of an expert, {} of an adapter of rank {}; {} steps of {} texts each, the same ones",
                  of.expert_numbers, of.adapter_numbers, of.rank, of.asked.steps, of.asked.batch));
  out.line("Loss behind the prompts of unseen texts, nats per token");
  auto& single = out.table("single", {"learnt",
                                      "on",
                                      {"model", "neither", "{:.3f}"},
                                      {"expert", "expert", "{:.3f}"},
                                      {"adapter", "adapter", "{:.3f}"}});
  for (std::size_t k = 0; k < std::min(of.experts.size(), of.adapters.size()); ++k)
    for (std::size_t t = 0; t < of.tasks.size(); ++t)
      single.add({of.tasks[k].name, of.tasks[t].name, of.model[t], of.experts[k][t], of.adapters[k][t]});
  auto& rows = out.table("pairs", {"first",
                                   "second",
                                   {"first_weight", "of first", "{:.2f}"},
                                   {"second_weight", "of second", "{:.2f}"},
                                   {"experts_first", "experts on first", "{:.3f}"},
                                   {"experts_second", "on second", "{:.3f}"},
                                   {"adapters_first", "adapters on first", "{:.3f}"},
                                   {"adapters_second", "on second", "{:.3f}"}});
  for (const ExpertComposition::Pair& pair : of.pairs)
    for (std::size_t w = 0; w < composed_weights.size(); ++w)
      rows.add({of.tasks[pair.first].name, of.tasks[pair.second].name, composed_weights[w][0], composed_weights[w][1],
                pair.experts[w][0], pair.experts[w][1], pair.adapters[w][0], pair.adapters[w][1]});
  if (!of.pairs.empty()) {
    const HalfAndHalf mean = half_and_half(of);
    out.line(
        fmt::format("Half and half, over all pairs and both of their tasks: experts {:.3f} where the own one alone has "
                    "{:.3f}, adapters {:.3f} where the own one alone has {:.3f}",
                    mean.experts, mean.own_expert, mean.adapters, mean.own_adapter));
    out.data("half_and_half", {{"experts", mean.experts},
                               {"own_expert", mean.own_expert},
                               {"adapters", mean.adapters},
                               {"own_adapter", mean.own_adapter}});
  }
  out.data("expert_numbers", of.expert_numbers);
  out.data("adapter_numbers", of.adapter_numbers);
  return out;
}

}  // namespace

void add_expert_reward(Command& command, Console& console) {
  struct Options {
    TaskOptions tasks;
    double price = 0.1;
  };
  auto options = std::make_shared<Options>();
  Command reward = command.add_subcommand(
      "reward", "Learns experts by REINFORCE, from right and wrong answers alone, beside the gradient");
  options->tasks.add_to(reward);
  reward.add_option("--price", options->price, "λ of the KL to the model as it was")
      .check(non_negative())
      .show_default();
  reward.does([options, &console] {
    const SelfAdaptationAsked asked = options->tasks.request();
    RewardTuningRun learning(load_model(asked.model, console.backend()), asked, options->price);
    const bool whole = go_through(console, learning, "steps");
    finish(console, options->tasks.output, whole, learning.result(), reward_report);
  });
}

void add_expert_compose(Command& command, Console& console) {
  struct Options {
    TaskOptions tasks;
    int rank = 1;
    double rate = 0.01;
  };
  auto options = std::make_shared<Options>();
  Command compose =
      command.add_subcommand("compose", "Composes experts of two tasks, and low-rank adapters beside them");
  options->tasks.add_to(compose);
  compose.add_option("--rank", options->rank, "Of the adapters (LoRA)").check(range(1, 1 << 16)).show_default();
  compose.add_option("--adapter-rate", options->rate, "Of Adam, for the adapters")
      .check(positive())
      .check(range(0.0, 1.0))
      .show_default();
  compose.does([options, &console] {
    const SelfAdaptationAsked asked = options->tasks.request();
    ExpertCompositionRun learning(load_model(asked.model, console.backend()), asked, options->rank, options->rate);
    const bool whole = go_through(console, learning, "steps");
    finish(console, options->tasks.output, whole, learning.result(), composition_report);
  });
}

}  // namespace headscope::cli
