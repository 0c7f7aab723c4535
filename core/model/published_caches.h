#pragma once
// What published models keep per token of text: layers, key heads, head widths, as their papers state them. For tables
// that compare cache sizes; no model is opened.

#include <cstdint>
#include <span>
#include <string_view>

namespace headscope {

struct PublishedCache {
  std::string_view model;
  std::string_view sharing;  ///< "MHA", "GQA", "MQA", "MLA"
  int layers = 0, heads = 0, kv_heads = 0, d_head = 0;
  int latent = 0, rotary = 0;  ///< MLA: numbers of the latent and of the key that carries positions; kv_heads is 0
  std::string_view source;
  /// Keys and values of `tokens` tokens at `bytes` per number.
  std::uint64_t bytes(std::uint64_t tokens, std::uint64_t bytes_per_number) const;
};

std::span<const PublishedCache> published_caches();

}  // namespace headscope
