#include "core/attention/key_sharing.h"

#include <cassert>

namespace headscope {

void pool_heads(Tensor& x, int groups, Index first, Index last) {
  assert(groups > 0 && x.dim(1) % groups == 0);
  const Index size = x.dim(1) / groups;
  for (Index i = first; i <= last; ++i)
    for (Index group = 0; group < groups; ++group)
      for (Index c = 0; c < x.dim(2); ++c) {
        double sum = 0;
        for (Index h = group * size; h < (group + 1) * size; ++h) sum += static_cast<double>(x.at(i, h, c));
        for (Index h = group * size; h < (group + 1) * size; ++h)
          x.ref(i, h, c) = static_cast<float>(sum / static_cast<double>(size));
      }
}

}  // namespace headscope
