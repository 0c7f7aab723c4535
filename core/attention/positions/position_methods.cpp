#include "core/attention/positions/position_methods.h"

#include <algorithm>

#include "core/base/words.h"

namespace headscope {

namespace {
constexpr PositionMethod methods[] = {
    {"none", to_say("None (NoPE)"), to_say("order only from the causal mask"), "s = q·k / √d", to_say("nothing"),
     "Haviv et al., Transformer Language Models without Positional Encodings Still Learn Positional Information, 2022; "
     "Kazemnejad et al., The Impact of Positional Encoding on Length Generalization, 2023",
     "no positional encoding order permutation"},
    {"learned", to_say("Learned absolute"), to_say("GPT-2, BERT · added to embeddings"),
     to_say("x_p = E[token] + P[p]"), to_say("embeddings"),
     "Gehring et al., Convolutional Sequence to Sequence Learning, 2017; Radford et al., GPT-2, 2019",
     "absolute position embeddings learned positions wpe"},
    {"naive", to_say("Counting, 0 … 1"), to_say("the first ideas, and why they fail"),
     to_say("P[p] = p, or p / (n − 1), in every dimension"), to_say("embeddings"),
     to_say("The usual explanation of why positions are not simply numbered"),
     "naive positions naive codes numbering integers index normalised position fraction why not just count"},
    {"sinusoidal", to_say("Sinusoidal"), to_say("added · wavelengths 2π … 10000·2π"),
     "PE(p, 2i) = sin(p ω_i), PE(p, 2i+1) = cos(p ω_i), ω_i = 10000^(−2i/d)", to_say("embeddings"),
     "Vaswani et al., Attention Is All You Need, 2017",
     "sinusoidal positional encoding sinusoids sine cosine PE wavelengths absolute"},
    {"binary", to_say("Binary"), to_say("the clock that sinusoids soften"), "bit b of p = ⌊p / 2^b⌋ mod 2",
     to_say("embeddings"), to_say("The usual explanation of sinusoids: each bit flips half as often as the one before"),
     "binary positions counter"},
    {"shaw", to_say("Relative (Shaw)"), to_say("an embedding per distance, added to keys"),
     "s_ij = q_i·(k_j + a[clip(j − i, ±w)]) / √d", to_say("scores"),
     "Shaw et al., Self-Attention with Relative Position Representations, 2018",
     "relative position representations clipped distance"},
    {"transformer-xl", to_say("Relative (Transformer-XL)"), to_say("content and position, four terms"),
     "s_ij = (q_i·k_j + q_i·r_{i−j} + u·k_j + v·r_{i−j}) / √d", to_say("scores"), "Dai et al., Transformer-XL, 2019",
     "relative positional encoding recurrence"},
    {"deberta", to_say("Relative (DeBERTa)"), to_say("contents and distances, three products"),
     "s_ij = (q_i·k_j + q_i·K_r[δ] + k_j·Q_r[δ]) / √(3d), δ = δ(i − j)", to_say("scores"),
     "He et al., DeBERTa: Decoding-enhanced BERT with Disentangled Attention, 2021",
     "disentangled attention content to position relative embeddings"},
    {"t5", to_say("Relative (T5 bias)"), to_say("a learned number per bucket of distances"),
     to_say("s_ij = q_i·k_j + b[bucket(j − i)]"), to_say("scores"),
     "Raffel et al., Exploring the Limits of Transfer Learning (T5), 2020", "relative position bias buckets"},
    {"alibi", to_say("ALiBi"), to_say("−m·(i−j), one slope per head"),
     "s_ij = q_i·k_j / √d − m_h (i − j), m_h = 2^(−8h/H)", to_say("scores"),
     "Press et al., Train Short, Test Long: Attention with Linear Biases, 2022",
     "attention with linear biases slopes extrapolation"},
    {"rope", to_say("RoPE"), to_say("rotates q and k · Llama, Qwen"),
     to_say("s = ⟨R(m) q, R(n) k⟩ / √d, pair i turns by p · base^(−2i/d)"), to_say("q and k"),
     "Su et al., RoFormer, 2021",
     "rotary position embedding rotary embeddings dials base theta scaling position interpolation PI NTK-aware NTK "
     "YaRN dynamic NTK Llama-3 long context extension context length extrapolation"},
    {"chunks", to_say("Dual chunk (RoPE)"), to_say("far distances re-mapped into the trained ones"),
     to_say("s_ij = ⟨R(δ) q_i, k_j⟩ / √d, δ < c whatever i − j"), to_say("scores"),
     "An et al., Training-Free Long-Context Scaling of Large Language Models, 2024",
     "dual chunk attention DCA intra successive inter"},
    {"past", to_say("Past the trained length"), to_say("every method, loss by position"),
     to_say("mean −ln p by position, n = 4 L"), to_say("the model"),
     to_say("Measured on the open model, on texts four times its trained length"),
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
