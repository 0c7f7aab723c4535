#include "core/train/head_taps.h"

namespace headscope {

std::vector<Index> tokens_of(const std::vector<Token>& tokens, const TextSpan& span) {
  std::vector<Index> found;
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i].begin >= 0 && static_cast<std::size_t>(tokens[i].end) > span.begin &&
        static_cast<std::size_t>(tokens[i].begin) < span.end)
      found.push_back(static_cast<Index>(i));
  return found;
}

Tensor WithoutHead::at(Site, const Tensor& value) {
  Tensor out = value.copy();  // (query, head, d_head)
  for (Index i = 0; i < out.dim(0); ++i)
    for (Index d = 0; d < out.dim(2); ++d) out.ref(i, head_.head, d) = 0;
  return out;
}

}  // namespace headscope
