#pragma once
// A transformer of one stack, decoder or encoder: immutable weights and one forward pass, used for inference, capture,
// intervention and generation. An encoder-decoder is its decoder, which owns the encoder.

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <set>
#include <span>
#include <stop_token>
#include <vector>

#include "core/model/config.h"
#include "core/model/kv_cache.h"
#include "core/tensor/backend.h"
#include "core/trace/attention_map.h"
#include "core/trace/capture.h"
#include "core/trace/tap.h"

namespace headscope {

struct RawWeights;
struct ModelWeights;
struct LowRankUpdate;
struct Projection;
struct SingularDirections;
enum class WeightMatrix;

/// Which maps to build, and how.
struct MapRequest {
  MapStorage storage = MapStorage::none;  ///< none, dense or factored
  const TokenLinks* links = nullptr;      ///< of the whole text (cached tokens included); may be null
  const std::set<int>* layers = nullptr;  ///< null = all
  int text = 0;                           ///< whose, when a pass reads several; −1 = every one's
  /// Of the pass that filled a cache which keeps queries: maps go on from theirs. May be empty.
  std::span<const AttentionMap> before = {};
  /// False for who wants weights alone: the statistics of dense maps may then be empty.
  bool statistics = true;

  MapStorage storage_of(int layer) const {
    return layers && !layers->empty() && !layers->contains(layer) ? MapStorage::none : storage;
  }
  std::span<const AttentionMap> before_of(int layer) const {
    const auto found = std::ranges::equal_range(before, layer, {}, &AttentionMap::layer);
    return {found.begin(), found.end()};
  }
};

/// What a decoder's cross-attention reads. Of its own sites only k and v have a row for each token of the source.
struct SourceMemory {
  Tensor memory;       ///< (source, d_model): what the encoder put out
  Tap* tap = nullptr;  ///< sees or replaces tensors at sites of cross-attention; may be null
  MapRequest maps;     ///< `links` is not looked at
  /// Where several texts are read: of the source of each, one after another in `memory`. Empty = one.
  std::span<const Index> lengths = {};
};

/// Everything a pass needs besides the model. Owned by the caller for the duration of one forward().
struct Ctx {
  Backend& backend;
  Tap* tap = nullptr;                      ///< sees or replaces tensors at sites; may be null
  std::stop_token stop = {};               ///< checked between layers and inside long ones; throws Cancelled
  std::atomic<float>* progress = nullptr;  ///< 0…1, written by the pass
  Tape* tape = nullptr;                    ///< the pass records itself on it; may be null
  /// By token, of models with segments (the first text is 0, the one behind a separator 1); empty = all 0.
  std::span<const std::int32_t> segments = {};
  /// (patch, numbers of it): the picture, of models that read one (core/model/vision_config.h); (frame, mel): the
  /// sound, of encoders that read one (core/model/sound_config.h).
  Tensor patches = {};
  double entropy_price = 0;  ///< with a tape: what a nat of attention entropy (without the first key; mean over rows,
                             ///< heads, layers; of cross-attention by itself) adds to the number that is differentiated
  /// With a tape: what a unit of RouterBalance::value, mean over the layers with experts, adds likewise.
  double balance_price = 0;
  /// > 0: texts of so many tokens are read, whatever the model's context. For models that do not end there
  /// (ModelConfig::ends_at_context()), where positions go on as they are, or as an edit says.
  int context = 0;
  const SourceMemory* source = nullptr;  ///< of encoder-decoders, which need one; null elsewhere
};

/// Watches a model being opened. Either may be absent.
struct LoadWatch {
  std::stop_token stop = {};               ///< checked between tensors; throws Cancelled
  std::atomic<float>* progress = nullptr;  ///< 0…1
};

/// Which blocks a pass goes through: [first, end). What an edit cannot reach need not be computed again.
struct LayerRange {
  int first = 0;
  Tensor
      residual;  ///< (query, d_model) as block `first` finds it: resid_post of the one before; undefined when first = 0
  int end = -1;  ///< < 0 = to the logits; else the pass stops before this block and there are none
};

struct ForwardResult {
  Tensor logits;  ///< (query, vocab) or (1, vocab), of a picture (1, classes), or with all
                  ///< logits what every token would be read as; undefined when the pass stopped before them, or the
                  ///< model has none (ModelConfig::predicts)
  std::vector<AttentionMap> maps;        ///< by layer, text, head; empty when none were asked for
  std::vector<AttentionMap> cross_maps;  ///< (target, source), by layer and head; likewise
  Tensor memory;                         ///< (source, d_model): what an encoder-decoder's encoder puts out
};

/// What was done, and what cannot be left out: floating-point operations, and bytes of weights to read.
struct BareProducts {
  double operations = 0, bytes = 0;
};

class Model {
 public:
  /// Opens a model of any format (core/io/model_location.h says what a path may be). Throws Error on missing tensors,
  /// wrong shapes, non-finite weights.
  static std::shared_ptr<const Model> load(const std::filesystem::path& path, Backend& backend,
                                           const LoadWatch& watch = {});
  /// Whether weights stay what they are, so that they can be packed, or change from pass to pass (training).
  enum class Weights { fixed, changing };
  /// The same from weights in memory; `where` names them in errors. `changing` weights are used where they lie.
  static std::shared_ptr<const Model> build(const ModelConfig& config, const RawWeights& weights,
                                            const std::string& where, Backend& backend, Weights kind = Weights::fixed,
                                            const LoadWatch& watch = {});
  ~Model();

  const ModelConfig& config() const;
  ModelInfo info() const;
  /// Of an encoder-decoder; null elsewhere. It lives as long as this.
  const Model* encoder() const;

  /// tokens → logits. With a cache, `tokens` continue it and it grows by them; without, they start at position 0. Maps
  /// are of the rows of `tokens`, or, where the cache keeps queries, of the whole text.
  /// Throws Error on an empty text, an id outside the vocabulary, a text longer than the context, or a result that is
  /// not finite. `layers` other than all of them needs a pass without a cache.
  /// REQUIRES continues(), with a cache.
  /// `lengths`: several texts one after another in `tokens`, each beginning at position 0 and seeing itself only; then
  /// there is no cache, and all logits are given. Rows of every site are the positions of all texts.
  /// An encoder-decoder needs ctx.source: as many sources as texts, each seen by its own. An encoder that was run with
  /// the same tape has its part in the gradients. A cache keeps keys and values of the first source that it was used
  /// with.
  /// A model of pictures or sounds reads ctx.patches; `tokens` then say only how many there are, and there is no cache.
  /// With a tape there is no cache either, and nobody may want the site `result`; nor is there one in a model that
  /// sees later tokens.
  ForwardResult forward(const Ctx& ctx, std::span<const std::int32_t> tokens, KvCache* cache = nullptr,
                        const MapRequest& maps = {}, bool all_logits = true, const LayerRange& layers = {},
                        std::span<const Index> lengths = {}) const;

  /// Whether a pass that makes a text of `tokens` may go on from what the cache holds: not where rotary positions turn
  /// all keys otherwise in a text of that length (LongRoPE beyond the trained context).
  bool continues(const KvCache& cache, Index tokens) const;

  /// The bare matrix products of a pass over n tokens, logits of the last `logit_rows` of them, and nothing else: what
  /// a pass cannot be faster than with these products. For benchmarks.
  BareProducts bare_products(Backend& backend, int n, int logit_rows) const;

  /// The site kinds that fire in this model (no rot_q with learned positions, no pos_embed with RoPE …).
  std::vector<SiteKind> sites() const;
  /// Those of a part of an encoder-decoder.
  std::vector<SiteKind> sites(Stack part) const;
  /// Whether this one does: of layers of which only some have experts, each has the sites of its own kind of MLP.
  bool fires(Site site) const;

  /// Views of the weights, head by head (core/model/weights.h). Cheap; they live as long as the model.
  ModelWeights weights() const;
  /// One matrix of a block, whole. A view, likewise.
  Projection projection(int layer, WeightMatrix matrix) const;
  /// What an adapter added to this matrix; null where none did.
  const LowRankUpdate* adapted(int layer, WeightMatrix matrix) const;
  /// Tensors outside the blocks that an adapter changed.
  const std::vector<std::string>& adapted_elsewhere() const;
  /// Its singular values and directions, computed when first asked for and kept; null where there is no such matrix.
  /// Any thread. Of a model whose weights change, computed anew each time.
  std::shared_ptr<const SingularDirections> singular(int layer, WeightMatrix matrix) const;

 private:
  struct Parts;
  struct Derived;  // what was computed from the weights
  class Pass;
  explicit Model(std::unique_ptr<const Parts> parts);
  std::unique_ptr<const Parts> parts_;
  std::unique_ptr<Derived> derived_;
};

}  // namespace headscope
