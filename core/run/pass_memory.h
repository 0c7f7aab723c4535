#pragma once
// What the last pass over a text left behind, so that the next one computes only what an edit can reach: an edit in
// layer L changes nothing in the blocks below it, and a pass that differs from the last one by edits alone may start at
// the first block in which they differ, from the residual stream that was kept there. A pass that differs by later
// tokens alone may start at the first of them (known_rows.h).
// Owned by whoever runs passes, one at a time; not thread-safe.

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "core/base/nth.h"
#include "core/edits/intervention_tap.h"
#include "core/run/known_rows.h"
#include "core/run/run_request.h"

namespace headscope {

class PassMemory {
 public:
  /// Keeps no residual streams that take more than this together (one per layer: 38 MB for 1,024 tokens of a GPT-2
  /// with 124 million parameters), and no cache that does (141 MB with its room for more; a Mamba of 130 million with
  /// as many, 587).
  explicit PassMemory(std::size_t most_bytes = std::size_t{512} << 20) : most_bytes_(most_bytes) {}
  /// A copy has no cache of its own: the next pass of either would write to it.
  PassMemory(const PassMemory& other)
      : most_bytes_(other.most_bytes_),
        model_(other.model_),
        request_(other.request_),
        trace_(other.trace_),
        kept_(other.kept_) {
    kept_.cache.reset();
  }
  PassMemory(PassMemory&&) = default;
  PassMemory& operator=(PassMemory&&) = default;

  /// The first block that has to be computed for these edits of this model on this text, or picture: 0 when nothing is
  /// known, the number of layers when no edit changed.
  /// `beside`: what a pass reads beside tokens: what the encoder put out, of encoder-decoders; a picture's patches.
  int first_changed(const Model& model, std::span<const Token> tokens, const std::vector<Intervention>& edits,
                    const Tensor& beside = {}) const;
  /// The residual stream that block `layer` ≥ 1 finds. REQUIRES layer ≤ first_changed().
  const Tensor& before(int layer) const { return nth(kept_.residuals, layer); }
  /// The trace of the last pass; its blocks below first_changed() are those of the next one.
  const std::shared_ptr<const Trace>& trace() const { return trace_; }
  /// Whether that trace is of this picture file, as it was then.
  bool saw(const std::filesystem::path& image) const { return trace_ && trace_->picture && request_.image == image; }
  /// The same of a sound's file, which may have been written to since.
  bool heard(const std::filesystem::path& sound) const { return trace_ && trace_->sound && request_.sound == sound; }
  /// Whether that trace recorded what `spec` asks for.
  bool recorded(const CaptureSpec& spec) const { return trace_ && request_.capture == spec; }

  /// Whether the last pass was over this text: then edits change, and no cache is filled for each of them.
  bool read(const Model& model, std::span<const Token> tokens) const;
  /// How many of the first tokens need not be read again by a pass that gets kept().cache: their rows are those of the
  /// last trace. Less than all tokens; 0 when nothing is known, or an edit, or what shall be recorded, changed.
  int rows_known(const Model& model, std::span<const Token> tokens, const RunRequest& request) const;

  /// What the last pass's edits took from this run, when it would be the same now; else null.
  std::shared_ptr<const Trace> source(const Model& model, const RunRequest& request, const SourceNeed& need,
                                      std::span<const Token> tokens) const;

  /// What one pass leaves.
  struct Kept {
    std::vector<Tensor> residuals;  ///< [i]: what block i found; the first is undefined
    EditSources sources;
    Tensor beside = {};  ///< what the pass read beside tokens: what cross-attention did, or a picture's patches
    std::shared_ptr<PassMemory> encoder = {};
    /// Keys, values and queries of the text; null where the next pass could not go on from them (can_go_on()).
    std::shared_ptr<TextCache> cache = {};
  };
  const Kept& kept() const { return kept_; }
  std::size_t most_bytes() const { return most_bytes_; }
  /// The encoder's own memory, of encoder-decoders; null before the first pass.
  const PassMemory* encoder() const { return kept_.encoder.get(); }
  /// Forgets what was known before.
  void keep(std::shared_ptr<const Model> model, const RunRequest& request, std::shared_ptr<const Trace> trace,
            Kept kept);
  void forget();

 private:
  std::size_t most_bytes_;
  std::weak_ptr<const Model> model_;
  RunRequest request_;
  std::shared_ptr<const Trace> trace_;
  Kept kept_;
};

/// run(), with the same numbers for less work. A `ctx.tap` may do anything anywhere: with one, everything is computed.
std::shared_ptr<const Trace> run(const LoadedModel& loaded, const RunRequest& request, const Ctx& ctx,
                                 PassMemory& memory);

/// run() from what `memory` knows, which is read and left as it is: for many passes that each differ from the same one.
/// What the edits take from other runs comes from `known` where it is there (`known` holds all that they need of it).
std::shared_ptr<const Trace> run_beside(const LoadedModel& loaded, const RunRequest& request, const Ctx& ctx,
                                        const PassMemory& memory, const EditSources& known = {});
/// The runs that the request's enabled edits take from, each text once.
EditSources run_edit_sources(const LoadedModel& loaded, const RunRequest& request, const Ctx& ctx);

/// `trace`, which `request` gave, with the logits of every position: those it lacks are computed, from the last
/// residual stream alone where `memory` knows it.
std::shared_ptr<const Trace> with_all_logits(const LoadedModel& loaded, const RunRequest& request,
                                             std::shared_ptr<const Trace> trace, const Ctx& ctx,
                                             const PassMemory& memory);

/// The trace of one layer alone, recorded as `request` asks (whatever layers it names). The pass ends with that layer:
/// there are no logits. `memory` is read and left as it is.
std::shared_ptr<const Trace> run_layer(const LoadedModel& loaded, const RunRequest& request, int layer, const Ctx& ctx,
                                       const PassMemory& memory);

}  // namespace headscope
