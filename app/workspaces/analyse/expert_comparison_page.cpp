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
#include "core/base/words.h"

namespace headscope {

namespace {

enum class Compared { rewards, adapters };
constexpr int most_compared_steps = 400;

class ExpertComparisonPage final : public Page {
 public:
  explicit ExpertComparisonPage(JobRunner& jobs)
      : rewards_(jobs, "expert rewards", to_say("learning by reward")),
        composition_(jobs, "expert composition", to_say("learning experts and adapters")) {}

  void middle(const PageContext& c) override {
    if (!c.results().model.model) return nothing_open(c);
    if (const std::string refusal = refusal_of_experts(c); !refusal.empty())
      return empty_state(c.ui, said("This model learns no experts"), refusal);
    if (sweep_shown(c, what_ == Compared::rewards ? rewards_ : composition_, stale(c))) start(c);
    const double room = static_cast<double>(ImGui::GetContentRegionAvail().y / c.ui.scale);
    if (what_ == Compared::rewards) {
      if (!rewarded_ || rewarded_of_ != c.results().model_reading)
        return empty_state(c.ui, said("Nothing has been learnt yet"),
                           said("Press Start on the right: an expert by rewards, and one by gradient, for each task."));
      section(c.ui, said("RIGHT TOKENS"), said("how probable they are, behind prompts of unseen texts"));
      matrix_slot(c, slot_, "expert rewards", rewarded_, "rewards", std::clamp(0.5 * room, 150.0, 420.0),
                  [found = rewarded_] { return reward_matrix(*found); });
      if (rewarded_->found.empty()) return;
      const std::size_t last = rewarded_->found.size() - 1, task = std::min(static_cast<std::size_t>(task_), last);
      section(c.ui, said("REWARDS"), say("of {}, step by step", said(rewarded_->tasks[task].name)));
      LineChart chart = reward_chart(*rewarded_, task, c.ui.style());
      chart.height = std::clamp(static_cast<double>(ImGui::GetContentRegionAvail().y / c.ui.scale) - 12, 110.0, 520.0);
      plot(c.ui, "rewards by step", std::move(chart));
      return;
    }
    if (!composed_ || composed_of_ != c.results().model_reading)
      return empty_state(
          c.ui, said("Nothing has been learnt yet"),
          said("Press Start on the right: an expert and a low-rank adapter for each task, then every pair."));
    section(c.ui, said("TWO TOGETHER"), said("own: that task's alone, ½: half and half; colour: what that changes"));
    matrix_slot(c, slot_, "expert composition", composed_, "adapters", std::max(room - 30, 220.0),
                [found = composed_] { return composition_matrix(*found); });
  }

  void right(const PageContext& c) override {
    if (!c.results().model.model || !refusal_of_experts(c).empty()) return;
    section(c.ui, said("BESIDE"));
    static constexpr const char* what[] = {to_say("rewards"), to_say("adapters")};
    int chosen = static_cast<int>(what_);
    if (segmented(c.ui, "compared with", what, chosen, ImGui::GetContentRegionAvail().x))
      what_ = static_cast<Compared>(chosen);
    double steps = steps_;
    if (slider(c.ui, to_say("Steps"), steps, {1, most_compared_steps, 60, true, "", 0}))
      steps_ = static_cast<int>(std::lround(steps));
    what_ == Compared::rewards ? rewards(c) : adapters(c);
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
  SelfAdaptationAsked asked(const PageContext& c) const {
    SelfAdaptationAsked out;
    out.model = c.results().run ? c.results().run->request.model : c.state().document.model;
    out.steps = steps_;
    return out;
  }
  /// What is looked at was found for something else.
  bool stale(const PageContext& c) const {
    if (what_ == Compared::rewards) return rewarded_ && !(rewarded_->asked == asked(c) && rewarded_->price == price_);
    return composed_ && !(composed_->asked == asked(c));
  }
  void start(const PageContext& c) {
    const auto of = c.results().model_reading;
    if (what_ == Compared::rewards)
      rewards_.start(
          std::make_shared<RewardTuningRun>(c.results().model, asked(c), price_),
          [this, of](std::shared_ptr<const RewardTuning> known) { rewarded_ = std::move(known), rewarded_of_ = of; });
    else
      composition_.start(std::make_shared<ExpertCompositionRun>(c.results().model, asked(c), 1, 0.01),
                         [this, of](std::shared_ptr<const ExpertComposition> known) {
                           composed_ = std::move(known), composed_of_ = of;
                         });
  }

  void rewards(const PageContext& c) {
    slider(c.ui, to_say("Price of KL"), price_, {0, 2, 0.1, false, "", 2});
    if (sweep_controls(c, rewards_, to_say("steps"), stale(c), std::nan(""))) start(c);
    note(c.ui, said("Tokens are drawn behind every prompt; a right one is worth 1, a wrong one −1. J = E[ln π′(ŷ) r] − "
                    "λ KL(π′ ‖ π) grows, less the reward's expectation; λ is the price, π the model as it was."));
    if (!rewarded_ || rewarded_of_ != c.results().model_reading) return;
    std::vector<const char*> names;
    for (const TaskTexts& each : rewarded_->tasks) names.push_back(each.name.c_str());
    int task = std::min(task_, static_cast<int>(names.size()) - 1);
    section(c.ui, said("TASK"));
    if (segmented(c.ui, "rewards of", names, task, ImGui::GetContentRegionAvail().x)) task_ = task;
    const auto which = static_cast<std::size_t>(task);
    if (which >= rewarded_->found.size() || !rewarded_->found[which].whole) return;
    const RewardTuning::Task& found = rewarded_->found[which];
    fact(c.ui, said("Right, by REINFORCE"), fmt::format("{:.3f} → {:.3f}", found.before.right, found.rewarded.right),
         nullptr, {said("mean probability of the right token, of unseen texts")});
    fact(c.ui, said("Right, by gradient"), fmt::format("{:.3f} → {:.3f}", found.before.right, found.taught.right));
    fact(c.ui, said("KL, by REINFORCE"), say("{:.3f} nats", found.rewarded.kl), nullptr,
         {said("KL(π′ ‖ π) behind the prompts: how far the model was left")});
    fact(c.ui, said("KL, by gradient"), say("{:.3f} nats", found.taught.kl));
  }

  void adapters(const PageContext& c) {
    if (sweep_controls(c, composition_, to_say("steps"), stale(c), std::nan(""))) start(c);
    note(c.ui, said("Experts z and adapters W′ = W + A B of rank 1, of the same matrices, learn the same batches. Then "
                    "two are put together, half and half or as their sum."));
    if (!composed_ || composed_of_ != c.results().model_reading) return;
    section(c.ui, said("NUMBERS LEARNT"));
    fact(c.ui, said("Of an expert"), std::to_string(composed_->expert_numbers), nullptr,
         {said("min(in, out) for each matrix")});
    fact(c.ui, said("Of an adapter"), std::to_string(composed_->adapter_numbers), nullptr,
         {said("in + out for each matrix")});
    if (composed_->pairs.empty()) return;
    const HalfAndHalf mean = half_and_half(*composed_);
    section(c.ui, said("HALF AND HALF"), said("mean over pairs, nats per token"));
    fact(c.ui, said("Experts (own alone)"), fmt::format("{:.2f} ({:.2f})", mean.experts, mean.own_expert));
    fact(c.ui, said("Adapters (own alone)"), fmt::format("{:.2f} ({:.2f})", mean.adapters, mean.own_adapter));
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
