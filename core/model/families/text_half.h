#pragma once
// Models of pictures and text, of which the half that reads text is read: its keys stand in text_config (in older files
// of some beside all others), its tensors behind "language_model", "text_model" or "thinker". Pictures are not read.

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
  /// With `map`: the names in files that have a tensor `older` and not `newer`, both as if there were nothing else.
  WeightNames (*older_names)(const ModelConfig& config) = nullptr;
  std::string older = {}, newer = {};
  std::string as = {};                       ///< the family that reads `types`, where they are none themselves
  std::map<std::string, double> usual = {};  ///< numbers that files leave out; without `map` those of the family, too
  bool flat = false;                         ///< keys may stand beside all others
  std::string of_pictures = {};              ///< a key of text_config that says nothing of a text alone
  std::string around = {};                   ///< the object in which text_config stands, with what goes with it
  bool tied = false;                         ///< the unembedding is the embedding where the file says nothing of it
  std::optional<bool> ties = {};             ///< the same where the whole configuration alone says it
  int more_tokens = 0;                       ///< rows of the embedding behind the vocabulary, of tokens of pictures
  std::string left_out = {};                 ///< layers with tensors of that name are passed by where no picture is
};
Family text_half_family(TextHalf half);

}  // namespace headscope
