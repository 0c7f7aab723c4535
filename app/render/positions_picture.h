#pragma once
// Pictures of the ways of knowing positions, one function each, for the window and the command line alike. Rotary
// positions have a file of their own (rotary_picture.h). `width` and `height` are the room there is.

#include <string>
#include <vector>

#include "core/tensor/tensor.h"
#include "viz/scene/scene.h"
#include "viz/scene/token_axis.h"

namespace headscope {

struct Room {
  double width = 900, height = 600;
};

/// None: the first tokens in their order and in another, and how far each token's output moved, for three ways of
/// running the model.
struct PermutedPicture {
  std::vector<std::string> labels;
  std::vector<int> order;                  ///< token order[i] stands at i
  std::vector<std::vector<double>> moved;  ///< by way, by token
  std::vector<std::string> ways;
};
Scene permuted_picture(const PermutedPicture& picture, Room room, const Style& style);

/// Learned: how alike the rows of a table (position, d) are, their lengths, and their likeness by distance.
Scene learned_picture(const Tensor& table, bool centered, const std::string& source, Room room, const Style& style);

/// Sinusoidal: the clock of one position, the whole table, and likeness by distance.
Scene sinusoidal_picture(int dimensions, Index positions, Index position, Room room, const Style& style);

/// Binary digits beside the sinusoids that soften them.
Scene binary_picture(Index positions, int bits, Room room, const Style& style);

/// Shaw: which embedding each cell adds, and what it adds to the scores of q, k (token, d); the table is drawn from
/// N(0, 1/√d) with `seed`, since it is learnt in training.
Scene shaw_picture(const Tensor& q, const Tensor& k, double scale, int window, std::uint64_t seed, Room room,
                   const Style& style);

/// Transformer-XL: its four terms on q, k, with u, v and W_R drawn likewise.
Scene transformer_xl_picture(const Tensor& q, const Tensor& k, double scale, std::uint64_t seed, Room room,
                             const Style& style);

/// T5: the bucket of each cell, buckets by distance, and the numbers of a fit (may be empty) by distance.
Scene t5_picture(int buckets, int max_distance, bool both_directions, const std::vector<float>& bias, Index tokens,
                 Room room, const Style& style);

/// Dual chunk: the distance at which each query meets each key, which of the three parts a cell belongs to, and the
/// distances of one late query beside the true ones.
Scene chunk_picture(Index chunk, Index context, Index tokens, Room room, const Style& style);

/// ALiBi: the slopes, every head's bias by distance, and one head's as a map.
Scene alibi_picture(int heads, int head, Index tokens, Room room, const Style& style);

}  // namespace headscope
