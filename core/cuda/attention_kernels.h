#pragma once
// Softmax attention with its statistics on the card: scores, weights, z and what HeadStats keeps of every row, without
// a matrix of n² numbers unless one is asked for. Two ways by the same formulas. By tiles of queries and keys: one
// kernel for z and the rows, whose softmax goes along with the keys (Milakov & Gimelshein, Online normalizer
// calculation for softmax, 2018; Dao, FlashAttention-2, 2023), and, where statistics are wanted, one that computes the
// scores again for what needs weights that are final. And one block per row, for few rows (generation) and wide heads.
// Private to core/cuda.

#include <cuda_runtime_api.h>

#include <cstdint>

namespace headscope::cuda {

/// One head's way from q·k to scores: s = scale · q·k, bent to cap · tanh(s / cap) where cap > 0, minus slope · |i −
/// j|; or, where `rows` ≥ 0, by the terms of its rule: s = factor_i · bend_i(s) + bias_ij.
struct HeadTerms {
  float scale, cap, slope, sink;
  int ranges;           ///< which [n_query] of `ranges`
  int rows = -1;        ///< which [n_query] of `rows`
  int bias = -1;        ///< which [n_query · n_key] of `biases`; −1: no number for each cell
  bool simple = false;  ///< scores are products times a positive number and nothing else
};

struct RowTerms {
  float factor, cap, sink;
};

/// Statistics of all heads, each array [head][…].
struct StatsRoom {
  double* log_sum_exp = nullptr;  ///< null: no statistics
  float *entropy = nullptr, *entropy_without_first = nullptr, *max_weight = nullptr, *first = nullptr;
  int* max_key = nullptr;
  float *duplicate = nullptr, *induction = nullptr;  ///< null without labels
  /// Sums of weights as whole numbers of 2⁻⁴⁰, which add up to the same in any order; zero before.
  /// Null of a single query, whose weights tell them.
  unsigned long long *column = nullptr, *distance = nullptr;  ///< n_key; n_query + n_key − 1
  float* overview = nullptr;                                  ///< bin > 1: zero before
  int bin = 1, overview_rows = 0, overview_columns = 0;
};
inline constexpr double mass_unit = 1.0 / (1ull << 40);
__host__ __device__ inline unsigned long long mass_of(float weight) {
  return weight > 0.0f ? static_cast<unsigned long long>(static_cast<double>(weight) * 0x1p40 + 0.5) : 0;
}

struct AttentionTask {
  const float *q, *k, *v;
  float* z;
  std::int64_t q_row, q_head, k_row, k_head, v_row, v_head, z_row, z_head;  ///< strides
  int n_query, n_key, heads, kv_heads, d, d_value, offset;
  bool exact;    ///< products of 24 bits, else of 11 (as of TF32), where the tensor cores make them
  bool simple;   ///< every head is
  bool by_four;  ///< keys and values begin at multiples of 16 bytes, in every row and head
  const HeadTerms* head;
  const int2* ranges;    ///< keys [x, y) of each query
  const RowTerms* rows;  ///< may be null
  const float* biases;   ///< may be null
  const int* labels;     ///< (offset + n_query): which token, for links; null = none
  float* weights;        ///< (head, n_query, n_key), zero before; null = not kept
  float* scratch;        ///< by tiles: tiles_bytes(); by rows: (head, row, n_key) where n_key > row_room(d), else null
  int first_query;       ///< by rows: the first of this call
  /// By rows: keys and values (fresh_rows, kv_head, width) of the last keys, to be put to their places first; or null.
  const float *fresh_k, *fresh_v;
  float *to_k, *to_v;
  int fresh_rows;
  bool early;  ///< by rows: may start while the kernel before still runs
  StatsRoom stats;
};

/// What a card has of a block's shared memory, and how many blocks run side by side at least.
struct Room {
  std::size_t shared_bytes;
  int processors;
};
/// Whether the kernels of tiles have code for these widths and the card room for it.
bool tiles_take(int d, int d_value, Room card);
std::size_t tiles_bytes(const AttentionTask& task);  ///< of scratch
void attention_by_tiles(const AttentionTask& task, Room card, cudaStream_t stream);
int row_room(int d);  ///< scores of one row that stay on chip
/// `rows` queries from task.first_query on.
void attention_by_rows(const AttentionTask& task, int rows, cudaStream_t stream);

}  // namespace headscope::cuda
