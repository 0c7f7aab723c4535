#pragma once
// Parameters and training FLOPs of a whole model whose layers mix tokens by softmax attention, by Lightning Attention,
// or by both, one layer in `every` keeping softmax: the table of MiniMax (MiniMax-01, 2025, section 2.2), whose counts
// are those of Shen et al. (Scaling Laws for Linear Complexity Language Models, 2024, appendix A.1). Embeddings are
// left out, softmax's 3 n² h operations of exp, sum and division too; a text's later half of cells is counted though a
// causal mask hides it; a gated MLP of width 8/3 d.
//   softmax    12 l d²                72 b n l d² (1 + n ÷ 6d + 5 ÷ 18d)
//   lightning  12 l d² + 2 l d² ÷ h   72 b n l d² (1 + 1 ÷ 2h + 5 ÷ 18d)
//   one in k   the k − 1 : 1 mean of both
// The 2 d² ÷ h of a lightning layer are its output gate through d ÷ h numbers; its 1 ÷ 2h that gate, blocks of d ÷ h
// tokens and a state of d ÷ h rows a head. 72 = 3 · 24: forward once, backward twice.
// Thread rule: pure functions.

#include <optional>
#include <string>
#include <vector>

namespace headscope {

struct HybridShape {
  double layers = 0, width = 0, heads = 0;  ///< l, d, h: each ≥ 1
  double batch = 1, tokens = 0;             ///< b, n
};

struct HybridCost {
  std::string name;                     ///< "softmax", "lightning", "hybrid 7 : 1"
  double parameters = 0;                ///< without embeddings
  double flops = 0;                     ///< of one training step over b texts of n tokens
  std::string parameters_by, flops_by;  ///< the formulas
};

HybridCost softmax_model_cost(const HybridShape& shape);
HybridCost lightning_model_cost(const HybridShape& shape);
/// One layer in `every` softmax, all others lightning. REQUIRES every ≥ 1.
HybridCost hybrid_model_cost(const HybridShape& shape, int every);
/// Those three rows.
std::vector<HybridCost> hybrid_cost_table(const HybridShape& shape, int every);

/// The length from which on the hybrid needs at most `share` of softmax's FLOPs; nullopt where none is long enough,
/// since one layer in `every` grows as softmax does. REQUIRES 0 < share.
std::optional<double> hybrid_tokens_for_share(const HybridShape& shape, int every, double share);
/// The crossing points in words: from which length on the hybrid costs less than softmax, and half of it.
std::string hybrid_crossings(const HybridShape& shape, int every);

}  // namespace headscope
