#pragma once

#include <cstdint>
#include <string_view>

namespace headscope {

/// FNV-1a of 64 bits (Fowler, Noll, Vo): the same on every machine and in every build. `value`: of the bytes before.
constexpr std::uint64_t fnv1a(std::string_view bytes, std::uint64_t value = 0xCBF29CE484222325ull) {
  for (const char c : bytes) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
  return value;
}

}  // namespace headscope
