#pragma once
// TransformerLens' state dicts as models. A HookedTransformer's configuration lies beside its weights (config.json), in
// the same .pt ("cfg", "config"), or nowhere: then shapes and names tell the extents, and what they cannot tell is
// asked for by name.

#include "core/io/model_location.h"
#include "core/io/tensor_file.h"
#include "core/model/config_reader.h"

namespace headscope {

/// By the names of its tensors.
bool is_transformer_lens(const TensorFile& file);

/// The configuration of the family "transformer_lens": what config.json or the file itself says, and of the rest what
/// the tensors tell. Throws Error naming the choices that neither tells, and the file to write them into.
ConfigReader transformer_lens_config(const ModelLocation& model, const TensorFile& file);

}  // namespace headscope
