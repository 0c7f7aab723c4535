#pragma once
// The same target text fed two ways: teacher forcing gives the model the true tokens so far, as in training; free
// running gives it what it wrote itself. Where its own text leaves the target, its later predictions are of another
// text (Williams & Zipser, A Learning Algorithm for Continually Running Fully Recurrent Neural Networks, 1989; Bengio
// et al., Scheduled Sampling, 2015).

#include <cstdint>
#include <span>
#include <vector>

#include "core/generate/generation.h"

namespace headscope {

/// One entry for every target token, in order. Losses in nats.
struct ForcedAndFree {
  std::size_t given = 0;              ///< tokens of the text that both were given to begin with
  std::vector<std::int32_t> target;   ///< the text's tokens from there on
  std::vector<std::int32_t> guessed;  ///< most probable, or drawn, after the true tokens so far
  std::vector<std::int32_t> written;  ///< the same after what the model wrote itself
  std::vector<double> forced_loss;    ///< −ln p(target token | true tokens so far)
  std::vector<double> free_loss;      ///< −ln p(target token | what the model wrote itself)
};

/// `like`: see Generator. Both use the same random numbers. Throws Error when not 1 ≤ given < ids.size(), and as
/// Generator::step.
ForcedAndFree force_and_run_free(const LoadedModel& model, std::span<const std::int32_t> ids, std::size_t given,
                                 const RunRequest& like, const Generator::Choice& choice, const Ctx& ctx);

}  // namespace headscope
