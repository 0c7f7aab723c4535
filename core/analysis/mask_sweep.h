#pragma once
// Every mask beside every other on one text: cells, work, what a cache keeps, and the loss of the model with the mask
// in every head. Masks that hash queries and keys are counted on one head's own; in the model each head hashes its own.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/analysis/edit_probe.h"
#include "core/analysis/sweep.h"
#include "core/attention/mask_facts.h"
#include "core/model/kv_cache.h"
#include "core/trace/head_id.h"

namespace headscope {

struct MasksAsked {
  RunRequest request;
  HeadId head;                     ///< whose queries and keys are hashed
  std::vector<std::string> masks;  ///< as parse_mask reads them
  bool operator==(const MasksAsked&) const = default;
};

/// What a mask can save a model.
struct MaskSavings {
  ModelDims dims;
  bool keeps_keys = true;    ///< whether the model writes token by token, from a cache
  CachedNumbers cached;      ///< of a cache that keeps no more than it must
  std::uint64_t in_all = 0;  ///< of a key, in all layers

  static MaskSavings of(const ModelConfig& config);
  /// Of weights without a model, of which more is not known.
  static MaskSavings of(const ModelInfo& info);
  /// Multiplications and additions of scores and mixing, all heads and layers; NaN where there are no scores, and where
  /// every head has cells of its own: those of `facts` are `hashed` of one head's queries and keys.
  double work(const MaskFacts& facts, bool hashed) const;
  /// Bytes in F32 of what a cache must keep; NaN where there is none.
  double cache_bytes(const MaskFacts& facts) const;
};

struct MaskCosts {
  struct Entry {
    std::string mask;
    MaskFacts facts;
    bool hashed = false;  ///< facts are of one head's queries and keys: others hash theirs otherwise
    Outcome outcome;
  };
  MasksAsked asked;
  std::vector<Entry> entries;  ///< as far as they are known, in the order asked
  Outcome before;
  MaskSavings savings;

  double work(const Entry& entry) const { return savings.work(entry.facts, entry.hashed); }
  double cache_bytes(const Entry& entry) const { return savings.cache_bytes(entry.facts); }
};

/// `mask` over `tokens` tokens. A mask that hashes takes the head's queries and keys of the run; of a state space,
/// which has none, it is causal. Throws Error as parse_mask and run() do.
std::shared_ptr<const AttentionRule> mask_on_text(const std::string& mask, const LoadedModel& loaded,
                                                  const RunRequest& request, HeadId head, const Ctx& ctx);

/// What `rule`, the mask of these words, leaves over `tokens` tokens. A mask that hashes may show a later query any
/// key: a cache must keep them all.
MaskFacts facts_on_text(const std::string& mask, const AttentionRule& rule, Index tokens);

class MaskSweep final : public Sweep {
 public:
  using Result = MaskCosts;
  MaskSweep(LoadedModel loaded, MasksAsked asked);
  void step(const Ctx& ctx) override;
  int done() const override { return static_cast<int>(known_.entries.size()); }
  int total() const override { return static_cast<int>(known_.asked.masks.size()); }
  bool finished() const override { return probe_ && done() == total(); }
  double share() const override { return total() > 0 ? static_cast<double>(done()) / total() : 0; }
  std::shared_ptr<const MaskCosts> result() const;

 private:
  LoadedModel loaded_;
  std::optional<EditProbe> probe_;
  MaskCosts known_;
};

}  // namespace headscope
