#pragma once
// How a vision transformer's patches become tokens, and what its positions know of the grid (Dosovitskiy et al., An
// Image is Worth 16x16 Words, 2021: § 3.1 and figure 7).

#include "core/model/model.h"
#include "core/trace/trace.h"

namespace headscope {

/// cos(p_i, p_j) of the position embeddings of two patches, (patch, patch). Throws Error for a model that reads no
/// pictures.
Tensor position_similarity(const Model& model);

/// Means of these cosines over pairs of two different patches.
struct GridSimilarity {
  double same_row = 0, same_column = 0, neighbours = 0,
         others = 0;  ///< neighbours: side by side or one above the other;
                      ///< others: neither row nor column is the same
};
GridSimilarity grid_similarity(const Tensor& similarity, const VisionConfig& vision);

/// What makes one patch a token.
struct PatchToken {
  Index position = 0, row = 0, column = 0;
  double mean = 0, deviation = 0;  ///< of the numbers that the model is given of it
  double embedded = 0;             ///< ‖E p + b‖
};
/// Needs the site `embed`. Throws Error on a trace of no picture.
std::vector<PatchToken> patch_tokens(const Model& model, const Trace& trace);

/// A word asked of every patch, as attention asks: the query is the class's column of the unembedding, the keys are
/// what the last block left of the patches, behind the final norm; so that a score is the class's logit by the logit
/// lens (core/analysis/logit_lens.h) at the patch. The values of such a softmax say where in the picture the word is
/// (as a text's vector asks those of a picture in CLIP and its likes: Radford et al. 2021). Patches of a classifier
/// were never trained to answer; its [CLS] was.
struct AskedPatch {
  Index position = 0;
  double score = 0;   ///< w_class · norm(x) + b_class
  double weight = 0;  ///< softmax of the scores over the patches
  int rank = 0;       ///< of the class at that patch, 1 = the most probable
};
/// In the order of positions. `trace` has recorded logit_lens_sites(). Throws Error on a trace of no picture, on a
/// model without classes, and as logit_lens() does.
std::vector<AskedPatch> ask_patches(const Model& model, const Ctx& ctx, const Trace& trace, std::int32_t word);

/// What a query gives to some patches (numbered row by row), beside what even weights would: their share of the keys.
struct MassOnPatches {
  double mass = 0, chance = 0;
};
MassOnPatches mass_on_patches(const Trace& trace, HeadId head, Index query, const std::vector<Index>& patches);

}  // namespace headscope
