#include "core/attention/positions/dual_chunk.h"

#include <algorithm>
#include <cassert>

namespace headscope {

ChunkPart chunk_part(Index query, Index key, Index chunk) {
  const Index back = query / chunk - key / chunk;
  return back == 0 ? ChunkPart::intra : back == 1 ? ChunkPart::successive : ChunkPart::inter;
}

Index dual_chunk_distance(Index query, Index key, Index chunk, Index context) {
  assert(key <= query && chunk > 0 && chunk < context);
  const Index inside = query % chunk;
  switch (chunk_part(query, key, chunk)) {
    case ChunkPart::intra:
      return inside - key % chunk;
    case ChunkPart::successive:
      return std::min(chunk + inside, context - 1) - key % chunk;
    case ChunkPart::inter:
      return context - 1 - key % chunk;
  }
  return 0;
}

}  // namespace headscope
