#pragma once
// Layers whose positions mix through a state in place of attention: Mamba (Gu & Dao, Mamba: Linear-Time Sequence
// Modeling with Selective State Spaces, 2023), Mamba-2 (Dao & Gu, Transformers are SSMs, 2024) and Gated DeltaNet. What
// they compute between their projections is core/attention/state_mixing.h, or gated_delta.h. Extents stand in
// ModelDims, since they decide how large sites are.

#include <limits>
#include <optional>

namespace headscope {

struct StateSpaceConfig {
  /// What has a step Δ of its own.
  enum class Lane {
    channel,  ///< Mamba: Δ, B and C are read off the convolved channels, Δ by way of few numbers. It has no heads: here
              ///< one is a group of neighbouring channels, whose map is the mean of theirs
    head,   ///< Mamba-2: Δ is read off the stream, B and C are convolved beside the channels
    delta,  ///< a head of the gated delta rule (Yang, Kautz & Hatamizadeh, Gated Delta Networks, 2025): likewise, and
            ///< β; C are its queries, B its keys, of unit length, and what is convolved are queries, keys and values
    convolution  ///< LFM2: a channel holds the last tokens alone; B gates what is convolved, C what comes of it, and
                 ///< there is no other gate and no Δ. Shown as Mamba
  };
  Lane lane = Lane::channel;
  int convolution = 4;                ///< tokens that a channel's convolution reads
  int step_rank = 0;                  ///< Lane::channel: the few numbers
  bool bias = false;                  ///< of the projections in and out …
  std::optional<bool> out_bias = {};  ///< … or of that out, where it is not as that in
  bool convolution_bias = true;
  double least_step = 0, most_step = std::numeric_limits<double>::infinity();  ///< Δ is cut to these
  bool select_norms = false;  ///< Lane::channel: RMSNorms stand behind what Δ is made of, behind B and behind C (Lieber
                              ///< et al., Jamba, 2024)
  bool select_gains = true;  ///< these have weights (Falcon Mamba: not)
  bool gated_norm = false;  ///< an RMSNorm of each group of B and C stands behind the gate; Lane::delta: of every head,
                            ///< with the same gains, before it
  bool norm_before_gate = false;  ///< it stands before the gate (Lane::head)
  bool one_norm = false;          ///< Lane::head: it is of all groups together
  bool sigmoid_gate = false;      ///< Lane::head: the gate goes through σ, not through SiLU
  bool steady = false;  ///< Lane::head: Δ is 1, and a head decays by its number and its layer alone; nothing is
                        ///< convolved, and nothing passes by. C, B and x are queries, keys and values of linear
                        ///< attention (Qin et al., Various Lengths, Constant Speed: Efficient Language Modeling with
                        ///< Lightning Attention, 2024; MiniMax-01, 2025)
  std::optional<double> select_epsilon = {}, gated_epsilon = {};  ///< of these norms, where it is not the model's
  bool biased_out() const { return out_bias.value_or(bias); }
  double most_rate = 1;  ///< Lane::delta: β = this · σ. With 2 what stands at a key may be turned round (Grazzi et al.,
                         ///< Unlocking State-Tracking in Linear RNNs Through Negative Eigenvalues, 2025)
};

/// Most heads that channels without heads are shown as.
inline constexpr int most_channel_groups = 8;

}  // namespace headscope
