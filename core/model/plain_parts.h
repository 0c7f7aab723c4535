#pragma once
// What the parts of the plain definition share (core/model/plain.h). Private to it.

#include <cstdint>
#include <span>
#include <stop_token>
#include <vector>

#include "core/model/plain.h"

namespace headscope::plain {

double number(const Tensor& t, Index i);
/// x W + b. A row of x is a position.
Table product(const Table& x, const Tensor& weight, const Tensor& bias, const std::stop_token& stop);
/// As rounded_rows.h says, in doubles; 0 bits: x stays.
void round_rows(Table& x, int bits);
/// Columns [first, end).
Table columns(const Table& x, Index first, Index end);

/// LayerNorm (x − mean) / √(var + ε) · gain + bias, or RMSNorm x / √(mean x² + ε) · gain, of the columns [first, first
/// + width) of each row. Where `gain` is undefined it is 1. `epsilon`: ε, where it is
/// not the model's.
void normalize(const ModelConfig& config, NormKind kind, Table& x, Index first, Index width, const Tensor& gain,
               const Tensor& bias, Index first_gain = 0, std::optional<double> epsilon = {});

/// Every head of every patch turned by where its centre lies, from −1 to 1: half of its pairs by the row, half by the
/// column.
void rotate_patches(const VisionConfig& v, Table& x, Index heads, Index d, double base);

/// log(1 + eˣ)
double softplus(double x);
/// `learned`: of xIELU, as the file stores it.
double activated(Activation f, double x, const Tensor& learned);
/// f of every neuron; SoLU of a row is x eˣ ÷ Σ eˣ.
void activate(Activation f, Table& x, const Tensor& learned);

/// What ALiBi, buckets of distances or ways between patches add to a score. Falcon's ALiBi is made in bfloat16, in
/// units of its own.
double position_bias(const ModelConfig& config, const RawWeights& weights, int layer, Index head, Index query,
                     Index key);

/// He et al. 2021: what the rows of distances say, by the matrices of K_r and Q_r.
struct Distances {
  Table k, q;  ///< (row, width of all heads); empty where the model has not that term
  Distances(const ModelConfig& config, const RawWeights& all, const RawLayer& weights, const std::stop_token& stop);
  /// q_i · K_r + k_j · Q_r of one head, whose columns begin at `first`; 0 in other models.
  double of(const ModelConfig& config, const Table& queries, Index query, const Table& keys, Index key,
            Index first) const;
};

/// Learned tokens, then E p + b of every patch p, into the rows of x.
void embed_picture(const VisionConfig& v, const RawWeights& weights, const Tensor& patches, Table& x,
                   const std::stop_token& stop);
/// Two convolutions of a spectrogram (Radford et al. 2023).
Table embed_sound(const RawWeights& weights, const Tensor& frames, const std::stop_token& stop);

/// What every layer gets of a token by itself (core/model/layer_inputs.h): norm(x W ÷ √d) and √w times the row of the
/// table, of every layer, both ÷ √2.
Table of_every_layer(const ModelConfig& config, const RawWeights& all, const Table& x,
                     std::span<const std::int32_t> tokens, const std::stop_token& stop);
/// The stream with what a layer's own input adds, times the number of its block.
Table leaving(const ModelConfig& config, const RawLayer& weights, int layer, const Table& inputs, Table x,
              const std::stop_token& stop);

/// norm(y + φ(convolution of x)): ModelConfig::convolution, of what enters the first block and what leaves it.
Table beside_first(const ModelConfig& config, const RawConvolution& weights, const Table& x, Table y,
                   const std::stop_token& stop);

/// What a state space adds to the stream in place of attention (Gu and Dao 2023, Dao and Gu 2024), and the matrices
/// that its heads amount to (Ali et al. 2024).
Table through_states(const ModelConfig& config, const RawLayer& weights, const Table& x, std::vector<Table>& patterns,
                     const std::stop_token& stop);

}  // namespace headscope::plain
