#pragma once
// Strings and a number for each, found by walking a text byte by byte.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/nth.h"

namespace headscope {

class ByteTrie {
 public:
  static constexpr std::int32_t root = 0, none = -1;

  ByteTrie() : values_{none} {}
  /// Of two equal strings the later one's value holds. An empty string is not kept.
  void add(std::string_view text, std::int32_t value) {
    std::int32_t node = root;
    for (const char byte : text) {
      const auto [next, is_new] = children_.try_emplace(key(node, byte), static_cast<std::int32_t>(values_.size()));
      if (is_new) values_.push_back(none);
      node = next->second;
    }
    if (node != root) nth(values_, node) = value;
  }
  /// The node one byte further, or `none`.
  std::int32_t next(std::int32_t node, char byte) const {
    const auto found = children_.find(key(node, byte));
    return found == children_.end() ? none : found->second;
  }
  /// Of the string that ends at the node, or `none`.
  std::int32_t value(std::int32_t node) const { return nth(values_, node); }

 private:
  static std::uint64_t key(std::int32_t node, char byte) {
    return static_cast<std::uint64_t>(node) << 8 | static_cast<unsigned char>(byte);
  }
  struct Hash {
    std::size_t operator()(std::uint64_t key) const {
      key *= 0x9E3779B97F4A7C15ull;
      return static_cast<std::size_t>(key ^ (key >> 32));
    }
  };
  std::unordered_map<std::uint64_t, std::int32_t, Hash> children_;
  std::vector<std::int32_t> values_;  // by node
};

}  // namespace headscope
