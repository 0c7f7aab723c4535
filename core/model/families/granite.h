#pragma once
// What the families of Granite share.

#include "core/model/families/usual.h"

namespace headscope {

/// What files leave out that have it as everybody had it.
struct GraniteUsual {
  double epsilon = 1e-6;  ///< of norms
  int kv_heads = 0;       ///< 0: as many as heads
  bool tied = false;
};
/// All but biases of the MLP, and experts.
void granite_stream(ConfigMap& keys, ModelConfig& c, const GraniteUsual& usual = {});
/// Of those with windows: a learned sink in every softmax; windows as layer_types says, or in three layers of four; and
/// the base of every layer's rotation, of which 0 is none.
void granite_windows(ConfigMap& keys, ModelConfig& c);
/// Granite MoE.
void granitemoe_keys(ConfigMap& keys, ModelConfig& c);
WeightNames granitemoe_names(const ModelConfig&);

}  // namespace headscope
