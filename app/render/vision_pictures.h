#pragma once
// What models of pictures have, as pictures: one place for the command line and for the window.

#include <memory>
#include <string>
#include <vector>

#include "core/analysis/patch_embedding.h"
#include "viz/scene/annotations.h"
#include "viz/scene/patch_map.h"
#include "viz/scene/scene.h"

namespace headscope {

/// A grid of grids: at the place of every patch the cosines of its position with all others (Dosovitskiy et al. 2021,
/// figure 7). `marked`: a patch whose grid is framed; −1 = none.
Scene position_grid_scene(const Tensor& similarity, const VisionConfig& vision, Index marked, double side,
                          const Style& style);

/// The length of the token that each patch becomes, for patch_values_scene().
PatchValues token_norms(const std::vector<PatchToken>& patches, const Model& model);

/// The weights of a word's question to every patch, for patch_values_scene().
PatchValues asked_values(const std::vector<AskedPatch>& asked, const std::string& word);

/// The row of `query` in every head, laid over the picture: layers down, heads across.
Scene patch_atlas_scene(const Trace& trace, Index query, bool smooth, double width, const Style& style);

}  // namespace headscope
