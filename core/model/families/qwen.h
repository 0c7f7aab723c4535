#pragma once
// What Qwen's families share with their models of pictures and text.

#include "core/model/families/usual.h"

namespace headscope {

/// Where keys are absent.
struct QwenUsual {
  double epsilon = 1e-6, base = 10000;
  int windows_from = 28;
};
void qwen2_like(ConfigMap& keys, ModelConfig& c, const QwenUsual& usual);
/// All of Qwen 3 but its windows and ends.
void qwen3_like(ConfigMap& keys, ModelConfig& c, const QwenUsual& usual);

}  // namespace headscope
