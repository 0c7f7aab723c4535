#pragma once
// Dual chunk attention (An et al., Training-Free Long-Context Scaling of Large Language Models, 2024): a model reads
// past its trained length c because no query ever meets a key at a distance it has not seen. The text is cut into
// chunks of s < c tokens; keys take their place in their chunk, j mod s, and a query has three places:
//   intra       keys of its own chunk:        i mod s                       the true distance
//   successive  keys of the chunk before:     min(s + i mod s, c − 1)       true for the first c − s tokens of a chunk
//   inter       keys of chunks further back:  c − 1                         far, whatever the distance
// Trained with RoPE, the model notices distances alone, so the method is the re-mapping of i − j below.

#include "core/tensor/tensor.h"

namespace headscope {

enum class ChunkPart { intra, successive, inter };
ChunkPart chunk_part(Index query, Index key, Index chunk);

/// The distance at which dual chunk attention lets the query meet the key. REQUIRES key ≤ query, 0 < chunk < context.
Index dual_chunk_distance(Index query, Index key, Index chunk, Index context);

}  // namespace headscope
