#pragma once
// Models of pictures and text, of which the half that reads text is read: its keys stand in text_config (in older files
// of some beside all others), its tensors behind "language_model" or "text_model". Pictures are not read.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/model/families/usual.h"

namespace headscope {

struct TextHalf {
  std::string model_type, architecture, summary;
  /// What that half may be, by the model_type of text_config; the first where that says none.
  std::vector<std::string> types;
  /// Of a half that is no family by itself; else `types` are families.
  void (*map)(ConfigMap& keys, ModelConfig& config) = nullptr;
  WeightNames (*names)(const ModelConfig& config) = nullptr;
  std::map<std::string, int> usual = {};  ///< with `map`: numbers that files leave out
  bool flat = false;                      ///< keys may stand beside all others
  /// Whether embeddings are tied where the whole configuration, which alone says it, leaves it out. Without it either
  /// place may say it; older files say it within.
  std::optional<bool> tied = {};
  std::string of_pictures = {};  ///< a key of text_config that says nothing of a text alone
};
Family text_half_family(TextHalf half);

}  // namespace headscope
