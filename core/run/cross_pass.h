#pragma once
// What a decoder's attention to its source needs in a pass: the source itself, the edits of cross-attention, and
// whoever else wants to see its sites.

#include <vector>

#include "core/edits/edit_scene.h"
#include "core/edits/intervention_tap.h"
#include "core/model/model.h"
#include "core/run/run_request.h"

namespace headscope {

class CrossPass {
 public:
  /// `scene`: of the decoder in the same pass; `recorder` may be null. Throws as InterventionTap does.
  CrossPass(const std::vector<Intervention>& edits, const EditScene& scene, const ModelDims& dims,
            const Encoded& encoded, Tap* recorder);
  CrossPass(const CrossPass&) = delete;  // its parts know one another
  CrossPass& operator=(const CrossPass&) = delete;

  /// For Ctx::source; maps as they are asked for here.
  SourceMemory source;

 private:
  EditScene scene_;
  InterventionTap edits_;
  TapChain chain_;
};

}  // namespace headscope
