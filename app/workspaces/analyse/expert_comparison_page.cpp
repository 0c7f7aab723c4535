// Experts of singular values by REINFORCE beside the gradient, and two of them together beside two low-rank adapters.

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "app/render/self_adaptation_pictures.h"
#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/widgets/plots.h"
#include "app/workspaces/analyse/parts.h"
#include "app/workspaces/scene_slot.h"
#include "core/base/error.h"

namespace headscope {

namespace {

enum class Compared { rewards, adapters };
constexpr int most_compared_steps = 400;

class ExpertComparisonPage final : public Page {
 public:
  explicit ExpertComparisonPage(JobRunner& jobs)
      : rewards_(jobs, "expert rewards", "learning by reward"),
        composition_(jobs, "expert composition", "learning experts and adapters") {}

  void middle(const PageContext& c) override {
    if (!c.results().model.model) return empty_state(c.ui, "No model is open", "Open one from the menu above.");
    const double room = static_cast<double>(ImGui::GetContentRegionAvail().y / c.ui.scale);
    if (what_ == Compared::rewards) {
      if (!rewarded_ || rewarded_of_ != c.results().model_reading)
        return empty_state(c.ui, "Nothing has been learnt yet",
                           "Press Start on the right: an expert by rewards, and one by gradient, for each task.");
      section(c.ui, "RIGHT TOKENS", "how probable they are, behind prompts of unseen texts");
      matrix_slot(c, slot_, "expert rewards", rewarded_, "rewards", std::clamp(0.5 * room, 150.0, 420.0),
                  [found = rewarded_] { return reward_matrix(*found); });
      if (rewarded_->found.empty()) return;
      const std::size_t last = rewarded_->found.size() - 1, task = std::min(static_cast<std::size_t>(task_), last);
      section(c.ui, "REWARDS", fmt::format("of {}, step by step", rewarded_->tasks[task].name));
      LineChart chart = reward_chart(*rewarded_, task, c.ui.style());
      chart.height = std::clamp(static_cast<double>(ImGui::GetContentRegionAvail().y / c.ui.scale) - 12, 110.0, 520.0);
      plot(c.ui, "rewards by step", std::move(chart));
      return;
    }
    if (!composed_ || composed_of_ != c.results().model_reading)
      return empty_state(c.ui, "Nothing has been learnt yet",
                         "Press Start on the right: an expert and a low-rank adapter for each task, then every pair.");
    section(c.ui, "TWO TOGETHER", "own: that task's alone, ½: half and half; colour: what that changes");
    matrix_slot(c, slot_, "expert composition", composed_, "adapters", std::max(room - 30, 220.0),
                [found = composed_] { return composition_matrix(*found); });
  }

  void right(const PageContext& c) override {
    if (!c.results().model.model) return;
    section(c.ui, "BESIDE");
    static constexpr const char* what[] = {"rewards", "adapters"};
    int chosen = static_cast<int>(what_);
    if (segmented(c.ui, "compared with", what, chosen, ImGui::GetContentRegionAvail().x))
      what_ = static_cast<Compared>(chosen);
    try {
      SingularLearner::check(c.results().model.model->config(), SelfAdaptationAsked{}.matrices);
    } catch (const Error& refusal) {
      return note(c.ui, refusal.what());
    }
    double steps = steps_;
    if (slider(c.ui, "Steps", steps, {1, most_compared_steps, 60, true, "", 0}))
      steps_ = static_cast<int>(std::lround(steps));
    SelfAdaptationAsked asked;
    asked.model = c.results().run ? c.results().run->request.model : c.state().document.model;
    asked.steps = steps_;
    if (what_ == Compared::rewards)
      rewards(c, asked);
    else
      adapters(c, asked);
  }

  void controls(ControlsRecord& r) override {
    r.field("what", what_, Compared::adapters);
    r.field("steps", steps_, 1, most_compared_steps);
    r.field("price", price_, 0, 2);
    r.field("task", task_, 0, 25);
  }

  void each_frame(JobRunner&, const Results&, bool) override {
    rewards_.frame();
    composition_.frame();
  }

 private:
  void rewards(const PageContext& c, const SelfAdaptationAsked& asked) {
    slider(c.ui, "Price of KL", price_, {0, 2, 0.1, false, "", 2});
    const bool stale = rewarded_ && !(rewarded_->asked == asked && rewarded_->price == price_);
    if (sweep_controls(c, rewards_, "steps", stale, std::nan("")))
      rewards_.start(std::make_shared<RewardTuningRun>(c.results().model, asked, price_),
                     [this, of = c.results().model_reading](std::shared_ptr<const RewardTuning> known) {
                       rewarded_ = std::move(known), rewarded_of_ = of;
                     });
    note(c.ui,
         "Tokens are drawn behind every prompt; a right one is worth 1, a wrong one −1. J = E[ln π′(ŷ) r] − λ KL(π′ ‖ "
         "π) "
         "grows, less the reward's expectation; λ is the price, π the model as it was.");
    if (!rewarded_ || rewarded_of_ != c.results().model_reading) return;
    std::vector<const char*> names;
    for (const TaskTexts& each : rewarded_->tasks) names.push_back(each.name.c_str());
    int task = std::min(task_, static_cast<int>(names.size()) - 1);
    section(c.ui, "TASK");
    if (segmented(c.ui, "rewards of", names, task, ImGui::GetContentRegionAvail().x)) task_ = task;
    const auto which = static_cast<std::size_t>(task);
    if (which >= rewarded_->found.size() || !rewarded_->found[which].whole) return;
    const RewardTuning::Task& found = rewarded_->found[which];
    fact(c.ui, "Right, by REINFORCE", fmt::format("{:.3f} → {:.3f}", found.before.right, found.rewarded.right), nullptr,
         {"mean probability of the right token, of unseen texts"});
    fact(c.ui, "Right, by gradient", fmt::format("{:.3f} → {:.3f}", found.before.right, found.taught.right));
    fact(c.ui, "KL, by REINFORCE", fmt::format("{:.3f} nats", found.rewarded.kl), nullptr,
         {"KL(π′ ‖ π) behind the prompts: how far the model was left"});
    fact(c.ui, "KL, by gradient", fmt::format("{:.3f} nats", found.taught.kl));
  }

  void adapters(const PageContext& c, const SelfAdaptationAsked& asked) {
    if (sweep_controls(c, composition_, "steps", composed_ && !(composed_->asked == asked), std::nan("")))
      composition_.start(std::make_shared<ExpertCompositionRun>(c.results().model, asked, 1, 0.01),
                         [this, of = c.results().model_reading](std::shared_ptr<const ExpertComposition> known) {
                           composed_ = std::move(known), composed_of_ = of;
                         });
    note(
        c.ui,
        "Experts z and adapters W′ = W + A B of rank 1, of the same matrices, learn the same batches. Then two are put "
        "together, half and half or as their sum.");
    if (!composed_ || composed_of_ != c.results().model_reading) return;
    section(c.ui, "NUMBERS LEARNT");
    fact(c.ui, "Of an expert", std::to_string(composed_->expert_numbers), nullptr, {"min(in, out) for each matrix"});
    fact(c.ui, "Of an adapter", std::to_string(composed_->adapter_numbers), nullptr, {"in + out for each matrix"});
    if (composed_->pairs.empty()) return;
    const HalfAndHalf mean = half_and_half(*composed_);
    section(c.ui, "HALF AND HALF", "mean over pairs, nats per token");
    fact(c.ui, "Experts (own alone)", fmt::format("{:.2f} ({:.2f})", mean.experts, mean.own_expert));
    fact(c.ui, "Adapters (own alone)", fmt::format("{:.2f} ({:.2f})", mean.adapters, mean.own_adapter));
  }

  Compared what_ = Compared::rewards;
  int steps_ = 60, task_ = 0;
  double price_ = 0.1;
  SweepController rewards_, composition_;
  std::shared_ptr<const RewardTuning> rewarded_;
  std::shared_ptr<const ExpertComposition> composed_;
  std::uint64_t rewarded_of_ = 0, composed_of_ = 0;  // reading of the model that they are of
  SceneSlot slot_{"scene.expert_comparison"};
};

}  // namespace

std::unique_ptr<Page> make_expert_comparison(JobRunner& jobs) {
  return std::make_unique<ExpertComparisonPage>(jobs);
}

}  // namespace headscope
