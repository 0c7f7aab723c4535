#pragma once
// Where a layer with experts keeps its weights: by its own names, as torch.nn.Linear stores them, expert by expert; or
// all experts in one tensor (GPT-OSS). Beside usual_weights.h, which reads the rest of the block.

#include <string>

#include "core/model/weight_reader.h"

namespace headscope {

struct ExpertNames {
  std::string router = "mlp.gate", correction = "mlp.gate.e_score_correction_bias";
  std::string expert = "mlp.experts.", gate = "gate_proj", up = "up_proj",
              down = "down_proj";              ///< expert + "3." + gate
  std::string shared = "mlp.shared_experts.";  ///< shared + gate
  /// Both set: all experts in one tensor, (expert, d_model, 2 · width) with the columns of gate and up in turn, and
  /// (expert, width, d_model); each with NAME_bias.
  std::string gate_up_of_all, down_of_all;
};

/// `at`: what the names of this block begin with.
void read_experts(WeightReader& reader, const ModelConfig& config, const ExpertNames& names, const std::string& at,
                  RawExperts& into);

}  // namespace headscope
