#pragma once
// Whole numbers of 1 to 8 bits, packed one behind the other from the lowest bit of 32-bit words on, across their ends.
// Thread rule: pure functions.

#include <cstdint>

#include "core/tensor/stored.h"

namespace headscope::few_bits {

/// Words that `count` numbers take.
inline Index words_of(int bits, Index count) {
  return (count * bits + 31) / 32;
}

/// Numbers 0 … count − 1 of one stream.
void unpack(const std::uint32_t* words, int bits, Index count, float* numbers);

/// Number k of each of `columns` streams, whose words lie side by side: word w of stream j is words[w · columns + j].
void unpack_across(const std::uint32_t* words, int bits, Index k, Index columns, float* numbers);

}  // namespace headscope::few_bits
