#pragma once
// What the generations of GLM-4 share.

#include "core/model/families/usual.h"

namespace headscope {

/// Where keys are absent.
struct GlmUsual {
  int d_head = 128;  ///< 0: the width of the model ÷ heads
  double epsilon = 1.5625e-7, share = 0.5;
};
void glm_like(ConfigMap& keys, ModelConfig& c, const GlmUsual& usual);
void glm_keys(ConfigMap& keys, ModelConfig& c);
/// Of GLM-4.1V's half that reads text.
void glm4v_text_keys(ConfigMap& keys, ModelConfig& c);
WeightNames glm_names(const ModelConfig&);

WeightNames glm4_names(const ModelConfig& c);

}  // namespace headscope
