#pragma once
// A text longer than the key-value cache may grow: what the model predicts when old tokens are evicted, and when the
// first few are kept (Xiao et al., Efficient Streaming Language Models with Attention Sinks, 2023).
// Evicting token j once the cache holds `window` newer ones is, for every layer, the same as never seeing it from a
// distance of `window` on; so one pass under a mask gives the losses of the whole stream. Positions are counted inside
// the cache (§ 3.2): a token that is read when the cache is full stands at its end, window − 1, so that the sinks never
// move farther away than that; all other distances are those of the text. This needs positions that are told when a
// query meets a key: rotations, and ALiBi's bias. Learned positions were added when the token was read, and stay those
// of the text; a model without positions has none to count.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/run/run_request.h"
#include "core/trace/head_id.h"

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
  bool operator==(const StreamingSettings&) const = default;
};

/// How long a text streaming is shown on where nobody says: one context of a model that ends there, else four, at least
/// 1024 tokens.
int streamed_tokens(const ModelConfig& config);

/// −ln p(token i + 1) after token i, i = 0 … n − 2, in nats. A model that does not end at its context
/// (ModelConfig::ends_at_context()) may read a longer text: in the cache no distance is longer than `window`, and the
/// whole cache is what it makes of distances that it never saw. Throws Error when the text has fewer than two tokens,
/// or more than a table of positions has, or not 1 ≤ sinks < window ≤ context; Cancelled. `recompute` costs n passes of
/// `window` tokens.
std::vector<double> streaming_losses(const LoadedModel& model, std::span<const std::int32_t> ids, CachePolicy policy,
                                     const StreamingSettings& settings, const Ctx& ctx);

/// How much a head rests on the first token while that is still there.
struct FirstTokenShare {
  HeadId head;
  double share = 0;   ///< mean of p(key 0) over queries 1 …: the metric "sink"
  double chance = 0;  ///< of a head that spreads its weight evenly
};
/// Of every head, the largest first, over the first min(n, context) tokens. Throws as streaming_losses.
std::vector<FirstTokenShare> first_token_shares(const LoadedModel& model, std::span<const std::int32_t> ids,
                                                const Ctx& ctx);

}  // namespace headscope
