#pragma once
// What sharing keys and values costs a model on one text: every number of groups, and latents of several ranks, each a
// run with the edit in every layer (core/attention/key_sharing.h, latent_keys.h).

#include <memory>
#include <optional>
#include <vector>

#include "core/analysis/edit_probe.h"
#include "core/analysis/sweep.h"

namespace headscope {

struct KeySharing {
  struct Entry {
    bool latent = false;
    int number = 0;           ///< groups of key heads, or rank of the latent
    double kept = 0;          ///< numbers that the cache keeps per token and layer
    double weight_error = 0;  ///< latent: ‖W − W_r‖ / ‖W‖ of [W_K W_V], mean over layers
    Outcome outcome;
  };
  RunRequest request;
  std::vector<Entry> entries;  ///< as far as they are known: groups from most to 1, then ranks from most to least
  Outcome before;
  ModelDims dims;
  int total = 0;
};

/// Whether all layers have as many keys of the same width, made by themselves: only then one number says how all share.
bool alike_in_keys(const ModelConfig& config);

class KeySharingSweep final : public Sweep {
 public:
  using Result = KeySharing;
  /// At most `ranks` ranks, halving from the full one. Throws Error where layers are not alike_in_keys().
  KeySharingSweep(LoadedModel loaded, RunRequest request, int ranks = 8);
  void step(const Ctx& ctx) override;
  int done() const override { return static_cast<int>(known_.entries.size()); }
  int total() const override { return known_.total; }
  bool finished() const override { return probe_ && done() == total(); }
  double share() const override { return total() > 0 ? static_cast<double>(done()) / total() : 0; }
  std::shared_ptr<const KeySharing> result() const;

 private:
  LoadedModel loaded_;
  int ranks_;
  std::optional<EditProbe> probe_;
  std::vector<KeySharing::Entry> todo_;
  KeySharing known_;
};

}  // namespace headscope
