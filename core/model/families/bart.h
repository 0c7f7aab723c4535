#pragma once
// What BART shares with those made after it.

#include "core/model/families/two_stacks.h"

namespace headscope {

/// Where those made after it differ.
struct BartHabits {
  bool scaled = false;  ///< embeddings are multiplied by √d_model where the file says nothing
  std::string decoder_context = "max_position_embeddings", encoder_context = decoder_context;
  std::string decoder_vocab = "vocab_size", encoder_vocab = decoder_vocab;
  std::string activation = "gelu";  ///< where the file says none
  bool tied = true;                 ///< where the file says nothing
};

/// All but what is added to the embeddings. `place`: norms of every sum, or before attention and MLP and behind the
/// last block.
void bart_like(ConfigMap& keys, ModelConfig& decoder, ModelConfig& encoder, NormPlace place = NormPlace::after_sum,
               const BartHabits& habits = {});
/// BART, mBART and PLBART: learned positions from row 2, and a norm of the embeddings' sum.
void bart_with_normed_embeddings(ConfigMap& keys, ModelConfig& decoder, ModelConfig& encoder, NormPlace place,
                                 const BartHabits& habits = {});
WeightNames bart_names(const ModelConfig& stack);

}  // namespace headscope
