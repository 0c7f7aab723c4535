#pragma once
// Experts of singular values for several tasks (core/analysis/self_adaptation.h) as pictures. All functions are pure.

#include "core/analysis/expert_composition.h"
#include "core/analysis/reward_tuning.h"
#include "core/analysis/self_adaptation.h"
#include "viz/scene/line_chart.h"
#include "viz/scene/matrix_scene.h"

namespace headscope {

/// The model and each expert × each task: nats per token of unseen texts behind their prompts. Pending: not measured.
Matrix expert_loss_matrix(const SelfAdaptation& found);
/// z − 1 of every expert by singular value, largest first, the experts below one another for each matrix of each layer.
Matrix expert_z_matrix(const ExpertSet& set);
/// Nats per token of the shots under the best mixture so far, behind each round of the few-shot search of a task;
/// dashed: the model itself.
LineChart few_shot_chart(const SelfAdaptation& found, std::size_t task, const Style& style);

/// Task × the model, the expert by REINFORCE, the one by gradient: mean probability of the right token behind prompts.
Matrix reward_matrix(const RewardTuning& found);
/// Pairs of tasks, experts and adapters below one another × the own one alone, half and half, the sum: on the first
/// task of the pair, then on the second.
Matrix composition_matrix(const ExpertComposition& found);
/// The mean reward of what a task's expert drew before each step, and what it had to expect.
LineChart reward_chart(const RewardTuning& found, std::size_t task, const Style& style);

}  // namespace headscope
