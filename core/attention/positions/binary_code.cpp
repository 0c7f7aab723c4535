#include "core/attention/positions/binary_code.h"

namespace headscope {

Tensor binary_table(Index count, int bits) {
  Tensor table = Tensor::uninitialized({count, bits});
  for (Index p = 0; p < count; ++p)
    for (int b = 0; b < bits; ++b) table.ref(p, b) = static_cast<float>((p >> b) & 1);
  return table;
}

}  // namespace headscope
