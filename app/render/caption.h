#pragma once
// The words that belong under a picture in a paper: which head of which model on which text, whether anything was
// averaged, what became of the first token, how weights became colours, and what was changed about the model.

#include <optional>
#include <string>
#include <vector>

#include "app/render/picture.h"
#include "core/edits/intervention.h"

namespace headscope {

/// A few plain sentences. `trace` and `request` as export_picture() takes them, `edits` those of the run, nullopt where
/// nobody knows (a file of weights); `model` as in PictureNote. Throws Error when the trace lacks the head.
std::string caption_of(const Trace& trace, const PictureRequest& request,
                       const std::optional<std::vector<Intervention>>& edits, const std::string& model = {});

}  // namespace headscope
