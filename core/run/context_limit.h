#pragma once
// How long a text may be.

#include <algorithm>

#include "core/edits/edit_scene.h"
#include "core/run/run_request.h"

namespace headscope {

// Of a text whose positions an edit extends past the trained context: attention costs its square.
inline constexpr int longest_edited_text = 65'536;

/// How many tokens the run may have: the trained context, or more where an edit says how positions go on.
inline int context_of(const LoadedModel& loaded, const RunRequest& request) {
  const ModelConfig& config = loaded.model->config();
  return reads_past_context(request.edits, config) ? std::max(config.context, longest_edited_text) : config.context;
}

}  // namespace headscope
