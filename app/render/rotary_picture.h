#pragma once
// Pictures of rotary positions, for the window and the command line alike: one query and one key of a head, before they
// are turned, and what turning them to any two positions makes of their score.

#include <string>
#include <vector>

#include "core/attention/rotary.h"
#include "viz/scene/matrix_map.h"
#include "viz/scene/scene.h"
#include "viz/scene/token_axis.h"

namespace headscope {

struct RotaryView {
  std::vector<RotaryPart> parts;  ///< of the query and the key, before rotation
  RotaryConfig config, own;       ///< as shown, and as the model has it
  double scale = 1;               ///< 1 / √d_head
  Index query = 0, key = 0;       ///< positions m and n
  Index shift = 0;                ///< added to both
  int context = 0;                ///< trained length; 0 = not known
  bool causal = true;             ///< false: keys behind a query are seen too
  std::string source;             ///< of the numbers: "blocks.2.attn.hook_q[17, 3, :] …"

  int pairs() const { return static_cast<int>(parts.size()); }
  /// The score with query and key at these positions, and the part of each pair.
  double score(double m, double n) const;
  std::vector<double> split(double m, double n) const;
};

/// One dial per pair, hands at the shifted positions; as large as the room lets them be.
Scene rotary_dials_picture(const RotaryView& view, double width, double height, const Style& style);
/// The score, and the part of every pair, against the distance m − n = 0 … farthest; the present distance marked.
Scene score_against_distance(const RotaryView& view, Index farthest, double width, double height, const Style& style);
/// The score as a sum over pairs, largest first.
Scene why_this_score(const RotaryView& view, double width, double height, const Style& style);
Scene rotary_wavelengths(const RotaryView& view, double width, double height, const Style& style);
/// This query and this key at every two positions: one value along each diagonal.
MatrixMap score_by_positions(const RotaryView& view, Index count);
/// All queries and keys of a head (token, d_head), before rotation, turned to their places: scores, later keys masked
/// where the model is causal.
MatrixMap head_scores(const Tensor& q, const Tensor& k, const RotaryConfig& config, RotaryLayout layout, double scale,
                      bool causal);

/// Row `position` of x (token, d_head) as numbers to compute with.
std::vector<double> row_of(const Tensor& x, Index position);

}  // namespace headscope
