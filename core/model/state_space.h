#pragma once
// A layer of a state space (core/model/state_space_config.h) up to its output matrix, tapped: what stands in place of
// attention in a pass. Private to core/model.

#include <span>
#include <stop_token>
#include <vector>

#include "core/model/family.h"
#include "core/model/kv_cache.h"
#include "core/model/weights.h"
#include "core/tensor/backend.h"
#include "core/trace/attention_map.h"
#include "core/trace/tap.h"

namespace headscope {

/// Ready to multiply.
struct StateSpaceLayer {
  Linear x, gate, select, step, rate;
  Tensor convolution, convolution_bias;  // (convolved, tokens), (convolved) or undefined
  Tensor delta_bias, decay_log, d;       // as RawStateSpace has them
  NormWeights norm;                      // its gain undefined where there is none, as those of the next
  NormWeights step_norm, b_norm, c_norm;
};

struct StateSpaceInput {
  const ModelConfig& config;
  const StateSpaceLayer& weights;
  Tensor x;  ///< (query, d_model): what the layer reads
  int layer = 0;
  std::span<const Index> lengths = {};    ///< of several texts, one after another; empty = one
  KvCache* cache = nullptr;               ///< of what came before, which grows by x's rows; of one text
  MapStorage storage = MapStorage::none;  ///< how maps are kept; those that an edit changed are dense:
  int text = 0;                           ///< of this text, or −1 of all
  const TokenLinks* links = nullptr;
  /// With a cache that keeps queries maps are of all rows: of what came before those of the last pass, head by head.
  std::span<const AttentionMap> before = {};
};

struct StateSpaceOutput {
  Tensor gated;                    ///< (query, head, d_inner ÷ heads of the layer): what the output matrix multiplies
  std::vector<AttentionMap> maps;  ///< text by text, head by head; effective; factored ones computed
};

/// Sites mixer_* , pattern and z go through `tap` (may be null). It is asked for each head's rule, too: keys that it
/// hides weigh 0. A pattern that it changes is what the head does then: α of each lane of the head times new ÷ old, or
/// new where old is as good as 0. Throws Cancelled; Error for a rule that wants more of a head than which earlier
/// tokens count, since no softmax of scores is here, and when a tap returns another shape.
StateSpaceOutput state_space(const StateSpaceInput& input, Backend& backend, Tap* tap, const std::stop_token& stop);

}  // namespace headscope
