#pragma once
// Where a layer with experts keeps its weights: by its own names, as torch.nn.Linear stores them, expert by expert; or
// all experts in one tensor (GPT-OSS). Beside usual_weights.h, which reads the rest of the block.

#include <string>

#include "core/model/weight_reader.h"

namespace headscope {

struct ExpertNames {
  std::string router = "mlp.gate", correction = "mlp.gate.e_score_correction_bias";
  std::string correction_too;      ///< another name of it, in files that have not the first
  bool correction_is_row = false;  ///< stored (1, expert)
  std::string expert = "mlp.experts.", gate = "gate_proj", up = "up_proj",
              down = "down_proj";              ///< expert + "3." + gate
  std::string shared = "mlp.shared_experts.";  ///< shared + gate
  std::string shared_gate_up;                  ///< in place of the shared expert's gate and up: first the gate
  /// Both set: all experts in one tensor, (expert, d_model, 2 · width) with the columns of gate and up in turn, and
  /// (expert, width, d_model); each with NAME_bias.
  std::string gate_up_of_all, down_of_all;
  bool rows =
      false;  ///< these as torch.nn.Linear has them: (expert, 2 · width, d_model), the rows of gate before
              ///< those of up (of an MLP without a gate the latter alone), and (expert, d_model, width). Without biases
  /// All three set: every matrix of all experts in one tensor, one below the other, each (expert · width, d_model), as
  /// torch.nn.Linear has gate and up, and down the other way round. Without biases (DBRX).
  std::string gate_below, up_below, down_below;
  bool halves = false;  ///< without `rows`: the columns of gate before those of up, not in turn. Without biases
  std::string shared_gate = "mlp.shared_expert_gate";  ///< of ExpertConfig::shared_gate
  /// Of ExpertConfig::beside: the norms; of the router's the gain is divided by √d_model. Of weigh_output the last.
  std::string router_gain, in_norm, out_norm, dense_norm, output_weight;
};

/// `at`: what the names of this block begin with.
void read_experts(WeightReader& reader, const ModelConfig& config, const ExpertNames& names, const std::string& at,
                  RawExperts& into);

}  // namespace headscope
