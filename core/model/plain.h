#pragma once
// The forward pass a second time, as papers write it: float64, one number after another, no fast path, no cache, no
// library. What the engine computes is held against this, for every model that a person opens and in the tests. It
// shares with the engine what a model is (ModelConfig, RawWeights, and so the readers of files) and nothing of how one
// is computed: the formulas stand here once more on purpose.
//
//   Vaswani et al. 2017 (attention), Radford et al. 2019 (norms before), Zhang and Sennrich 2019 (RMSNorm), Su et al.
//   2021 (rotary), Press et al. 2022 (ALiBi), Shazeer 2020 (gated MLPs), Ainslie et al. 2023 (grouped queries),
//   Devlin et al. 2019 (encoders, segments, the layer before the logits), Dehghani et al. 2023 (norms of queries and
//   keys), Wang and Komatsuzaki 2021 (parallel blocks), Gemma Team 2024 (soft caps), Jiang et al. 2024 and OpenAI 2025
//   (experts), Huang and Schlag 2025 (xIELU), DeepSeek-AI 2024 (latent keys and values), Dosovitskiy et al. 2021
//   (patches of a picture), Touvron et al. 2021 (a distillation token), Gu and Dao 2023 and Dao and Gu 2024 (state
//   spaces), Radford et al. 2023 (convolutions of a sound), He et al. 2021 (disentangled attention).

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "core/model/family.h"

namespace headscope::plain {

/// Rows of numbers.
struct Table {
  Index rows = 0, columns = 0;
  std::vector<double> values;
  Table() = default;
  Table(Index r, Index c) : rows(r), columns(c), values(static_cast<std::size_t>(r * c)) {}
  double& at(Index r, Index c) { return values[static_cast<std::size_t>(r * columns + c)]; }
  double at(Index r, Index c) const { return values[static_cast<std::size_t>(r * columns + c)]; }
};

struct Pass {
  std::vector<std::vector<Table>> patterns;        ///< (layer)(head): (query, key), zeros where a query does not see
  std::vector<Table> resid_post;                   ///< (layer): (position, d_model)
  std::vector<std::vector<Table>> cross_patterns;  ///< (layer)(head): (target, source), of encoder-decoders
  std::shared_ptr<const Pass> encoder;             ///< likewise: of the source
  Table memory;                                    ///< without logits: what leaves the last norm, which a decoder reads
  Table logits;                                    ///< (position, vocab); empty where the model has none
};

/// `tokens`: ids inside the vocabulary, no more than the context. A pass of n tokens multiplies each weight n times, on
/// one core: seconds for a hundred million weights and a line of text. `patches`: Ctx's, of an encoder-decoder its
/// encoder's. Throws Cancelled.
Pass forward(const ModelConfig& config, const RawWeights& weights, std::span<const std::int32_t> tokens,
             const std::stop_token& stop = {}, std::atomic<float>* progress = nullptr,
             std::span<const std::int32_t> segments = {}, std::span<const std::int32_t> source = {},
             const Tensor& patches = {});

/// −ln p(token i + 1 | tokens 0 … i) in nats, i = 0 … n − 2.
std::vector<double> losses(const Table& logits, std::span<const std::int32_t> tokens);

}  // namespace headscope::plain
