#pragma once
// The catalogue's lines, in the order in which it is shown. A new mechanism is a file beside this one that defines
// `Mechanism make_<id>()`, and one line here.

#include <vector>

#include "core/attention/mechanism.h"

// clang-format off
#define HEADSCOPE_MECHANISMS(X) \
  X(softmax)                    \
  X(additive)                   \
  X(cosine)                     \
  X(log_length)                 \
  X(entmax)                     \
  X(flash)                      \
  X(ring)                       \
  X(low_rank)                   \
  X(rank)                       \
  X(linformer)                  \
  X(linear)                     \
  X(relu)                       \
  X(cosformer)                  \
  X(polynomial)                 \
  X(dpfp)                       \
  X(performer)                  \
  X(gaussian)                   \
  X(trigonometric)              \
  X(transnormer)                \
  X(polaformer)                 \
  X(lightning)                  \
  X(hybrid)                     \
  X(gated)                      \
  X(delta)                      \
  X(rnn)                        \
  X(lstm)                       \
  X(state_space)                \
  X(mamba)                      \
  X(titans)                     \
  X(chunk_wise)                 \
  X(refined)                    \
  X(projections)                \
  X(multi_head)                 \
  X(cross)                      \
  X(look_up)                    \
  X(saturation)                 \
  X(dot_variance)               \
  X(dispersion)                 \
  X(softmax_loops)              \
  X(mask_value)                 \
  X(dropout)                    \
  X(vocabulary_softmax)         \
  X(paged_cache)                \
  X(residual_highway)           \
  X(mix_ffn)
// clang-format on

namespace headscope::mechanism {

#define HEADSCOPE_DECLARE(id) Mechanism make_##id();
HEADSCOPE_MECHANISMS(HEADSCOPE_DECLARE)
#undef HEADSCOPE_DECLARE

inline std::vector<Mechanism> all() {
  return {
#define HEADSCOPE_MAKE(id) make_##id(),
      HEADSCOPE_MECHANISMS(HEADSCOPE_MAKE)
#undef HEADSCOPE_MAKE
  };
}

}  // namespace headscope::mechanism
