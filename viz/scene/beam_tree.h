#pragma once
// A beam search as a tree: a column for each step, its candidates by their sum, best at the top, and a line from each
// to what it continues, the heavier the more probable its token was. Kept ones stand in a box, finished ones in a box
// with a bar behind it and their place, dropped ones without a box and with a cross: nothing hangs on colour alone.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "viz/scene/scene.h"
#include "viz/scene/token_axis.h"

namespace headscope {

struct BeamTreeNode {
  std::optional<std::size_t> parent;  ///< among the nodes, an earlier one; none: the prompt
  int step = 1;                       ///< its column, from 1; never less than the last node's
  std::string label;                  ///< of its token
  double probability = 0;             ///< of its token behind its parent
  double sum = 0;                     ///< Σ ln p from the prompt to here
  enum class Fate { kept, finished, dropped } fate = Fate::dropped;
  std::optional<std::size_t> place = {};  ///< among the best finished texts, from 0
  double score = 0;                       ///< of those: Σ ln p / tokens^penalty
};

struct BeamTreeOptions {
  std::string prompt;                        ///< label of its last token
  std::vector<BeamTreeNode> nodes;           ///< step after step, best first
  std::optional<std::size_t> selected = {};  ///< the way from the prompt to this node stands out
  bool dropped = true;                       ///< with those that were not kept
  bool titled = false;                       ///< with a title, for a file
  std::string caption = {};                  ///< below the title: model, settings
};

/// Marks "node.<i>" mean Part{i}. The picture is as large as the tree. Series: for each step the sums of its
/// candidates.
Scene beam_tree_scene(const BeamTreeOptions& options, const Style& style);

}  // namespace headscope
