#pragma once
// Text from a model, token by token, each step kept as an immutable value: what the heads looked at, what was probable,
// what was drawn. A tape is a list of shared steps, so that a fork costs pointers, and any step can be looked at again.
//
// A step at a prefix of t tokens reads the newest of them (the others lie in a key-value cache), which gives the row of
// every head at that token and the logits of the next one.

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/generate/sampling.h"
#include "core/run/run_request.h"

namespace headscope {

struct GenerationStep {
  std::int32_t token = 0;  ///< what was appended
  enum class By { greedy, sampled, given } by = By::sampled;
  SamplingSettings settings;                                 ///< of this step
  std::uint64_t seed = 0;                                    ///< whose stream of numbers was used
  double random = std::numeric_limits<double>::quiet_NaN();  ///< drawn, in [0, 1); NaN when nothing was
  Tensor logits;                 ///< (vocab) of the next token after the prefix; −∞ of those
                                 ///< that are never written (TargetRules)
  Tensor rows;                   ///< (layer · heads + head, position): where the prefix's last token
                                 ///< looked; undefined when not recorded
  Tensor source_rows;            ///< likewise (layer · heads + head, source position), of encoder-decoders
  int length = 0;                ///< tokens of the prefix
  int computed = 0;              ///< of them read in this step: 1 when the cache held the others
  double milliseconds = 0;       ///< of the pass
  std::size_t cache_bytes = 0;   ///< keys and values of the prefix, all layers; 0 without a cache
  std::size_t panel_bytes = 0;   ///< its keys once more, as products read them (KvCache::panel_bytes())
  std::size_t source_bytes = 0;  ///< of encoder-decoders, what the cache holds of the source
  std::size_t held_bytes() const { return cache_bytes + panel_bytes + source_bytes; }
};

struct Transcript {
  std::vector<std::int32_t> prompt;
  std::vector<std::shared_ptr<const GenerationStep>> steps;

  /// Prompt and the first `count` generated tokens.
  std::vector<std::int32_t> ids(std::size_t count = std::numeric_limits<std::size_t>::max()) const;
  /// The tape up to step `count`, its steps shared.
  Transcript until(std::size_t count) const;
};

/// Bytes of keys and values for `tokens` positions: layers · tokens · kv_heads · (d_head + d_value) · 4; of a state
/// space what tokens gave it (kept_numbers()) and the state itself: layers · (tokens · … + d_inner · d_state) · 4. Of
/// layers of both kinds the sum.
std::size_t cache_bytes(const ModelDims& dims, int tokens);
/// Bytes of those keys once more, in panels (KvCache::panel_bytes()), where this machine computes attention: layers ·
/// tokens, rounded up to whole panels · kv_heads · d_head · 4; 0 of a state space.
std::size_t panel_bytes(const ModelDims& dims, int tokens);

/// Makes steps of one model with the edits of one request, with a cache of what it read last: going back, forking and
/// going on costs only what is new. Owned by whoever runs passes, one at a time; not thread-safe.
class Generator {
 public:
  /// `like` is the request that the prompt was read by: its edits act, and texts that these take from are read as it
  /// says; its own text does not matter. `rows`: record them. Edits are checked at the first step.
  /// `longest`: tokens of the longest prefix that will be read, for which there is a cache; 0: those of the context.
  explicit Generator(LoadedModel model, RunRequest like = {}, bool rows = true, int longest = 0);

  struct Choice {
    SamplingSettings settings;
    std::uint64_t seed = 1;
    std::optional<std::int32_t> given = {};  ///< this token, whatever is probable
    bool operator==(const Choice&) const = default;
  };
  /// The step after `prefix` (prompt and what followed). `index` of it in the text counts the seed's random numbers:
  /// the same prefix, settings, seed and index give the same token. Throws Error as Model::forward and run, also when
  /// the prefix fills the context beyond its end; Cancelled.
  std::shared_ptr<const GenerationStep> step(const Ctx& ctx, std::span<const std::int32_t> prefix, std::size_t index,
                                             const Choice& choice);
  /// The pass alone: what step() does before a token is chosen.
  std::shared_ptr<GenerationStep> read(const Ctx& ctx, std::span<const std::int32_t> prefix);
  /// Another that has read the same and goes on by itself: with a cache of its own.
  Generator fork() const;
  /// The next step of `tape`.
  std::shared_ptr<const GenerationStep> step(const Ctx& ctx, const Transcript& transcript, const Choice& choice) {
    return step(ctx, transcript.ids(), transcript.steps.size(), choice);
  }
  bool cached() const { return cached_; }  ///< false when an edit looks ahead
  /// What an encoder-decoder's encoder made of the request's source, read once; null before the first step.
  const std::shared_ptr<const Trace>& source() const { return source_.trace; }

 private:
  void read_source(const Ctx& ctx);
  void read_newest(const Ctx& ctx, std::span<const std::int32_t> prefix, GenerationStep& step);
  void read_whole(const Ctx& ctx, std::span<const std::int32_t> prefix, GenerationStep& step);

  LoadedModel model_;
  RunRequest like_;
  bool rows_, cached_ = true;
  int longest_;
  std::optional<KvCache> cache_;
  std::vector<std::int32_t> read_;  // what the cache holds
  Encoded source_;                  // of encoder-decoders, from the first step on
};

/// Continues `prompt` (at least one token) by at most `count` tokens, at most to the end of the context, until `found`
/// returns false. Throws as Generator::step.
void sample_text(const LoadedModel& model, const Ctx& ctx, const std::vector<std::int32_t>& prompt, int count,
                 const Generator::Choice& choice, const std::function<bool(std::int32_t)>& found);

}  // namespace headscope
