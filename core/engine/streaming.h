#pragma once
// A text longer than the key-value cache may grow: what the model predicts when old tokens are evicted, and when the
// first few are kept (Xiao et al., Efficient Streaming Language Models with Attention Sinks, 2023).
// Evicting token j once the cache holds `window` newer ones is, for every layer, the same as never seeing it from a
// distance of `window` on; so one pass under a mask gives the losses of the whole stream. Positions stay those of the
// text: the paper counts them inside the cache, which differs for the sinks' distances only.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/engine/run_request.h"

namespace headscope {

enum class CachePolicy {
  whole,      ///< nothing is evicted
  window,     ///< the last `window` tokens
  sinks,      ///< the first `sinks` and the last `window − sinks`
  recompute,  ///< the last `window` tokens read anew for every prediction, from position 0: no cache, full price
};
std::string_view title_of(CachePolicy policy);  ///< "whole cache", "window only", …

struct StreamingSettings {
  int window = 64;  ///< tokens that the cache holds
  int sinks = 4;
};

/// −ln p(token i + 1) after token i, i = 0 … n − 2, in nats. Throws Error when the text has fewer than two tokens or
/// more than the context, or not 1 ≤ sinks < window; Cancelled. `recompute` costs n passes of `window` tokens.
std::vector<double> streaming_losses(const LoadedModel& model, std::span<const std::int32_t> ids, CachePolicy policy,
                                     const StreamingSettings& settings, const Ctx& ctx);

}  // namespace headscope
