#include "core/tensor/few_bits.h"

namespace headscope::few_bits {

void unpack(const std::uint32_t* words, int bits, Index count, float* numbers) {
  const std::uint32_t mask = (1u << bits) - 1;
  if (32 % bits == 0) {  // none lies across the end of a word
    const Index each = 32 / bits;
    for (Index i = 0; i < count; i += each, ++words)
      for (Index j = 0; j < each && i + j < count; ++j)
        numbers[i + j] = static_cast<float>((*words >> (j * bits)) & mask);
    return;
  }
  std::uint64_t held = 0;
  int left = 0;
  for (Index i = 0; i < count; ++i) {
    if (left < bits) {
      held |= static_cast<std::uint64_t>(*words++) << left;
      left += 32;
    }
    numbers[i] = static_cast<float>(static_cast<std::uint32_t>(held) & mask);
    held >>= bits;
    left -= bits;
  }
}

void unpack_across(const std::uint32_t* words, int bits, Index k, Index columns, float* numbers) {
  const std::uint32_t mask = (1u << bits) - 1;
  const int from = static_cast<int>(k * bits % 32);
  const std::uint32_t* const low = words + k * bits / 32 * columns;
  const std::uint32_t* const high = from + bits > 32 ? low + columns : low;
  if (high == low) {
    for (Index j = 0; j < columns; ++j) numbers[j] = static_cast<float>(static_cast<int>((low[j] >> from) & mask));
    return;
  }
  for (Index j = 0; j < columns; ++j)
    numbers[j] = static_cast<float>(static_cast<int>(((low[j] >> from) | (high[j] << (32 - from))) & mask));
}

}  // namespace headscope::few_bits
