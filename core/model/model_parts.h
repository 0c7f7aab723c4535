#pragma once
// What a Model holds: its weights, ready to multiply. Private to core/model.

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "core/attention/rotary.h"
#include "core/model/experts.h"
#include "core/model/family.h"
#include "core/model/layer_inputs.h"
#include "core/model/model.h"
#include "core/model/state_space.h"
#include "core/model/weights.h"
#include "core/tensor/singular.h"

namespace headscope {

struct Latents {
  Linear q, kv;  // q undefined where queries are made of the stream; kv: the latent, then what every key turns
  NormWeights q_norm, kv_norm;
};

struct Layer {
  NormWeights ln1, ln2, ln1_post, ln2_post;  // undefined where the block has none
  NormWeights ln1_sum, ln2_sum;              // of the stream itself
  NormWeights q_norm, k_norm, v_norm, z_norm, mlp_norm;
  LayerInput input;             // of ModelDims::d_layer
  float stream_scale = 1;       // of ModelDims::stream_scales
  Latents latents;              // in models with latents
  StateSpaceLayer state_space;  // in place of q, k and v
  std::vector<Linear> qkv;      // one product with q, k and v side by side, or three, or q alone where the layer reads
                                // another's keys and values
  Tensor sinks;                 // (heads) or undefined
  Linear z_gate;                // of ModelConfig::output_gate
  Linear o, gate, up, down;
  Backend::Xielu xielu;                                           // where the activation is that
  ExpertLayer experts;                                            // in place of gate, up and down
  std::map<WeightMatrix, LowRankUpdate> adapted;                  // what an adapter added
  std::shared_ptr<const AttentionRule> rule;                      // who sees whom
  std::vector<std::shared_ptr<const BucketBias>> buckets;         // by head, where positions have some
  std::vector<std::shared_ptr<const DistanceVectors>> distances;  // by head, where there are some
  int rotary = -1;  // which of the rotations turns queries and keys; −1 = none
};

struct Rotation {
  RotaryConfig config;
  int d_head = 0;
  std::vector<double> frequencies;
  RotaryTable table;  // of the first positions
  /// Of `count` positions from `first` on, in a text that ends with them.
  RotaryTable angles(Index first, Index count, int d_head) const;
  /// Of `rows` rows from `first` on, or of as many texts of these lengths one after another; of `queries` as they grow.
  RotaryTable angles(std::span<const Index> lengths, Index first, Index rows, int d_head, bool queries,
                     Backend& backend) const;
};

struct Model::Parts {
  ModelConfig config;
  ModelInfo info;
  Tensor token_embedding, position_embedding, segment_embedding;  // (vocab | context | segments, d_model)
  // Of models of pictures, in place of token_embedding: every row is a sum of products with 1 where it is that token.
  Linear embedding_in;              // of ModelConfig::narrow_sum()
  std::vector<Linear> convolution;  // of ModelConfig::convolution, by token; the bias in the first
  NormWeights convolution_norm;
  LayerInputs layer_inputs;            // of ModelDims::d_layer
  Linear patch_embedding, patch_bias;  // the bias undefined where there is none
  std::vector<Linear> leading_tokens;
  std::vector<Linear> convolutions;  // of an encoder that reads a sound, likewise in place of token_embedding
  std::vector<Layer> layers;
  std::vector<Layer> cross;  // by layer: attention to a source
  std::shared_ptr<const Model> encoder;
  NormWeights embedding_norm, final_norm;
  Linear head;  // before the unembedding, with a norm behind it; undefined in decoders
  NormWeights head_norm;
  Linear unembedding;
  Linear second_unembedding;                   // of the second token, where VisionConfig::class_heads is 2
  std::vector<std::string> adapted_elsewhere;  // tensors outside the blocks that an adapter changed
  std::vector<Rotation> rotations;             // each that some layer uses, once
};

struct Model::Derived {
  std::mutex mutex;
  std::map<std::pair<int, WeightMatrix>, std::shared_ptr<const SingularDirections>> singular;
};

}  // namespace headscope
