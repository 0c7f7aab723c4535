#pragma once
// What a Model holds: its weights, ready to multiply. Private to core/model.

#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "core/attention/rotary.h"
#include "core/model/family.h"
#include "core/model/model.h"
#include "core/model/weights.h"
#include "core/tensor/singular.h"

namespace headscope {

struct Layer {
  NormWeights ln1, ln2;
  std::vector<Linear> qkv;  // one product with q, k and v side by side, or three
  Linear o, gate, up, down;
};

struct Model::Parts {
  ModelConfig config;
  ModelInfo info;
  Tensor token_embedding, position_embedding;  // (vocab, d_model), (context, d_model)
  std::vector<Layer> layers;
  NormWeights final_norm;
  Linear unembedding;
  std::vector<double> frequencies;  // rotary
  RotaryTable rotary;               // of the first positions
};

struct Model::Derived {
  std::mutex mutex;
  std::map<std::pair<int, WeightMatrix>, std::shared_ptr<const SingularDirections>> singular;
};

}  // namespace headscope
