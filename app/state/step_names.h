#pragma once
// What a step of the history did, in words for a list: read off the documents before and after it.

#include <string>

#include "app/state/app_state.h"

namespace headscope {

/// "Edit 1.0: ablate zero", "Head 1.0", "Text: Mr and Mrs Quill"; several changes in one step: what weighs most.
std::string step_name(const Document& before, const Document& after);

}  // namespace headscope
