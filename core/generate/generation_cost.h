#pragma once
// What one more token costs with a key-value cache and without, measured on this machine.

#include <cstdint>
#include <span>
#include <vector>

#include "core/generate/generation.h"

namespace headscope {

struct GenerationCost {
  int length = 0;                                ///< tokens of the prefix
  double cached_ms = 0;                          ///< the newest token read, the others in the cache: grows as t
  double recomputed_ms = 0;                      ///< the whole prefix read: grows as t², once attention dominates
  std::size_t cache_bytes = 0, panel_bytes = 0;  ///< as of a GenerationStep
};

/// At `points` lengths spread evenly from 2 to ids.size(), shortest times of several runs, no maps recorded. Throws
/// Cancelled.
std::vector<GenerationCost> measure_generation(const Model& model, std::span<const std::int32_t> ids, int points,
                                               const Ctx& ctx);

}  // namespace headscope
