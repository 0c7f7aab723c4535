#pragma once

#include <cstdint>

namespace headscope {

/// A character of a script that is written without spaces: Chinese characters and kana.
constexpr bool is_han_or_kana(std::int32_t c) {
  return (c >= 0x3040 && c <= 0x30FF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x4E00 && c <= 0x9FFF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x20000 && c <= 0x3FFFF);
}

}  // namespace headscope
