#pragma once
// A family whose configuration is one map and whose weights lie as most do: what nearly every file of this folder is.

#include <string>

#include "core/model/config_map.h"
#include "core/model/usual_weights.h"

namespace headscope {

/// `map` names the keys; `names` the tensors of a configuration that `map` read. `architecture`: the class that Hugging
/// Face opens the folder with.
Family usual_family(std::string model_type, std::string architecture, std::string summary,
                    void (*map)(ConfigMap& keys, ModelConfig& config), WeightNames (*names)(const ModelConfig& config));

/// The same, of which files that have a tensor `older`, alone or behind "model.", and not `newer`, call tensors as
/// `names` says.
Family with_older_names(Family made, std::string older, std::string newer,
                        WeightNames (*names)(const ModelConfig& config));

/// Llama's names, which most decoders took over.
WeightNames usual_names(const ModelConfig&);

/// As keys.extents(), of families whose heads are `d_head` wide where the file says nothing, whatever the stream is.
void extents_of_width(ConfigMap& keys, ModelConfig& c, int d_head, const ConfigMap::Extents& names);

/// What GPT-2 and those that keep its words call their extents.
ConfigMap::Extents gpt2_extents();
/// Likewise the tensors around attention and MLP; their second norm and positions not, which not all have.
WeightNames gpt2_names();

}  // namespace headscope
