#include "core/attention/positions/position_methods.h"

#include <algorithm>

namespace headscope {

namespace {
constexpr PositionMethod methods[] = {
    {"none", "None (NoPE)", "order only from the causal mask", "s = q·k / √d", "nothing",
     "Haviv et al., Transformer Language Models without Positional Encodings Still Learn Positional Information, 2022; "
     "Kazemnejad et al., The Impact of Positional Encoding on Length Generalization, 2023",
     "no positional encoding order permutation"},
    {"learned", "Learned absolute", "GPT-2, BERT · added to embeddings", "x_p = E[token] + P[p]", "embeddings",
     "Gehring et al., Convolutional Sequence to Sequence Learning, 2017; Radford et al., GPT-2, 2019",
     "absolute position embeddings learned positions wpe"},
    {"naive", "Counting, 0 … 1", "the first ideas, and why they fail", "P[p] = p, or p / (n − 1), in every dimension",
     "embeddings", "The usual explanation of why positions are not simply numbered",
     "naive positions naive codes numbering integers index normalised position fraction why not just count"},
    {"sinusoidal", "Sinusoidal", "added · wavelengths 2π … 10000·2π",
     "PE(p, 2i) = sin(p ω_i), PE(p, 2i+1) = cos(p ω_i), ω_i = 10000^(−2i/d)", "embeddings",
     "Vaswani et al., Attention Is All You Need, 2017",
     "sinusoidal positional encoding sinusoids sine cosine PE wavelengths absolute"},
    {"binary", "Binary", "the clock that sinusoids soften", "bit b of p = ⌊p / 2^b⌋ mod 2", "embeddings",
     "The usual explanation of sinusoids: each bit flips half as often as the one before", "binary positions counter"},
    {"shaw", "Relative (Shaw)", "an embedding per distance, added to keys",
     "s_ij = q_i·(k_j + a[clip(j − i, ±w)]) / √d", "scores",
     "Shaw et al., Self-Attention with Relative Position Representations, 2018",
     "relative position representations clipped distance"},
    {"transformer-xl", "Relative (Transformer-XL)", "content and position, four terms",
     "s_ij = (q_i·k_j + q_i·r_{i−j} + u·k_j + v·r_{i−j}) / √d", "scores", "Dai et al., Transformer-XL, 2019",
     "relative positional encoding recurrence"},
    {"t5", "Relative (T5 bias)", "a learned number per bucket of distances", "s_ij = q_i·k_j + b[bucket(j − i)]",
     "scores", "Raffel et al., Exploring the Limits of Transfer Learning (T5), 2020", "relative position bias buckets"},
    {"alibi", "ALiBi", "−m·(i−j), one slope per head", "s_ij = q_i·k_j / √d − m_h (i − j), m_h = 2^(−8h/H)", "scores",
     "Press et al., Train Short, Test Long: Attention with Linear Biases, 2022",
     "attention with linear biases slopes extrapolation"},
    {"rope", "RoPE", "rotates q and k · Llama, Qwen", "s = ⟨R(m) q, R(n) k⟩ / √d, pair i turns by p · base^(−2i/d)",
     "q and k", "Su et al., RoFormer, 2021",
     "rotary position embedding rotary embeddings dials base theta scaling position interpolation PI NTK-aware NTK "
     "YaRN dynamic NTK Llama-3 long context extension context length extrapolation"},
    {"chunks", "Dual chunk (RoPE)", "far distances re-mapped into the trained ones",
     "s_ij = ⟨R(δ) q_i, k_j⟩ / √d, δ < c whatever i − j", "scores",
     "An et al., Training-Free Long-Context Scaling of Large Language Models, 2024",
     "dual chunk attention DCA intra successive inter"},
    {"past", "Past the trained length", "every method, loss by position", "mean −ln p by position, n = 4 L",
     "the model", "Measured on the open model, on texts four times its trained length",
     "past the context length extrapolation generalization loss per position which method when compare methods"},
};
}  // namespace

std::span<const PositionMethod> position_methods() {
  return methods;
}

const PositionMethod* find_position_method(std::string_view id) {
  const auto found = std::ranges::find(methods, id, &PositionMethod::id);
  return found == std::end(methods) ? nullptr : &*found;
}

}  // namespace headscope
