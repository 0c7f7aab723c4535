#include "core/model/published_caches.h"

#include "core/attention/key_sharing.h"

namespace headscope {

namespace {
constexpr PublishedCache table[] = {
    {"GPT-2 small", "MHA", 12, 12, 12, 64, 0, 0, "Radford et al., GPT-2, 2019"},
    {"GPT-2 XL", "MHA", 48, 25, 25, 64, 0, 0, "Radford et al., GPT-2, 2019"},
    {"GPT-3 175B", "MHA", 96, 96, 96, 128, 0, 0, "Brown et al., 2020, table 2.1"},
    {"Llama 2 7B", "MHA", 32, 32, 32, 128, 0, 0, "Touvron et al., Llama 2, 2023"},
    {"Llama 2 70B", "GQA", 80, 64, 8, 128, 0, 0, "Touvron et al., Llama 2, 2023"},
    {"Llama 3 8B", "GQA", 32, 32, 8, 128, 0, 0, "Dubey et al., Llama 3, 2024, table 3"},
    {"Llama 3 70B", "GQA", 80, 64, 8, 128, 0, 0, "Dubey et al., Llama 3, 2024, table 3"},
    {"Llama 3 405B", "GQA", 126, 128, 8, 128, 0, 0, "Dubey et al., Llama 3, 2024, table 3"},
    {"Mistral 7B", "GQA", 32, 32, 8, 128, 0, 0, "Jiang et al., Mistral 7B, 2023, table 1"},
    {"Qwen2 7B", "GQA", 28, 28, 4, 128, 0, 0, "Yang et al., Qwen2, 2024, table 1"},
    {"Gemma 2B", "MQA", 18, 8, 1, 256, 0, 0, "Gemma Team, Gemma, 2024, table 1"},
    {"PaLM 540B", "MQA", 118, 48, 1, 256, 0, 0, "Chowdhery et al., PaLM, 2022"},
    {"DeepSeek-V2", "MLA", 60, 128, 0, 128, 512, 64, "DeepSeek-AI, DeepSeek-V2, 2024"},
    {"DeepSeek-V3", "MLA", 61, 128, 0, 128, 512, 64, "DeepSeek-AI, DeepSeek-V3, 2024"},
};
}  // namespace

std::uint64_t PublishedCache::bytes(std::uint64_t tokens, std::uint64_t bytes_per_number) const {
  const auto u = [](int value) { return static_cast<std::uint64_t>(value); };
  return latent > 0 ? latent_cache_bytes(u(layers), u(latent), u(rotary), tokens, bytes_per_number)
                    : key_cache_bytes(u(layers), u(kv_heads), u(d_head), tokens, bytes_per_number);
}

std::span<const PublishedCache> published_caches() {
  return table;
}

}  // namespace headscope
