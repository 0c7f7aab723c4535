#include "core/analysis/naive_codes.h"

#include <algorithm>
#include <cmath>

#include "core/attention/sinusoids.h"
#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/model/weights.h"

namespace headscope {

namespace {

constexpr Index most_words = 48;
constexpr int times_context = 4;

/// The code of position p in a text of n tokens, of d dimensions.
std::vector<double> code_of(NaiveCodes::Code code, Index p, Index n, Index d) {
  const auto at = static_cast<double>(p);
  if (code == NaiveCodes::counted) return std::vector<double>(static_cast<std::size_t>(d), at);
  if (code == NaiveCodes::squeezed)
    return std::vector<double>(static_cast<std::size_t>(d), at / static_cast<double>(std::max<Index>(n - 1, 1)));
  const Tensor waves = sinusoidal_positions(p, 1, d + d % 2);
  std::vector<double> out;
  for (Index i = 0; i < d; ++i) out.push_back(static_cast<double>(waves.at(0, i)));
  return out;
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

}  // namespace

double mean_likeness(const Tensor& embeddings, std::span<const double> code) {
  const Index words = embeddings.dim(0), d = embeddings.dim(1);
  std::vector<std::vector<double>> unit;
  for (Index w = 0; w < words; ++w) {
    std::vector<double>& row = unit.emplace_back();
    double square = 0;
    for (Index i = 0; i < d; ++i) {
      row.push_back(static_cast<double>(embeddings.at(w, i)) + nth(code, i));
      square += row.back() * row.back();
    }
    for (double& value : row) value /= std::sqrt(std::max(square, 1e-300));
  }
  double sum = 0;
  for (std::size_t a = 0; a < unit.size(); ++a)
    for (std::size_t b = a + 1; b < unit.size(); ++b)
      for (std::size_t i = 0; i < unit[a].size(); ++i) sum += unit[a][i] * unit[b][i];
  return sum / (static_cast<double>(words) * static_cast<double>(words - 1) / 2);
}

NaiveCodes naive_codes(const Model& model) {
  const ModelConfig& config = model.config();
  const Tensor table = model.weights().token_embedding;  // (vocab, d)
  if (config.vision || config.sound || table.dim(0) < 2)
    throw Error(config.name, "a vocabulary of two words or more, to which a position is added",
                config.vision  ? "patches of a picture"
                : config.sound ? "frames of a sound"
                               : "one word");
  NaiveCodes out;
  const Index vocab = table.dim(0), d = table.dim(1), words = std::min(most_words, vocab);
  out.words = static_cast<int>(words);
  out.dimensions = static_cast<int>(d);
  out.context = model.config().context;
  Tensor drawn = Tensor::uninitialized({words, d});
  for (Index w = 0; w < words; ++w) {
    double square = 0;
    for (Index i = 0; i < d; ++i) {
      drawn.ref(w, i) = static_cast<float>(model.config().embedding_scale) * table.at(w * vocab / words, i);
      square += static_cast<double>(drawn.at(w, i)) * static_cast<double>(drawn.at(w, i));
    }
    out.embedding_length += std::sqrt(square) / static_cast<double>(words);
  }
  const Index longest = Index{times_context} * std::max(out.context, 2);
  for (Index p = 0; p < longest; p = std::max<Index>(1, 2 * p)) out.positions.push_back(static_cast<double>(p));
  for (Index n = 2; n <= longest; n *= 2) out.lengths.push_back(static_cast<double>(n));
  for (const auto code : {NaiveCodes::counted, NaiveCodes::squeezed, NaiveCodes::sinusoids}) {
    for (const double p : out.positions)
      out.likeness[code].push_back(mean_likeness(drawn, code_of(code, static_cast<Index>(p), longest, d)));
    for (const double n : out.lengths) {
      // Of a code by number all neighbours are equally far apart; of sinusoids, too: a rotation by the same angles.
      const auto size = static_cast<Index>(n);
      out.step[code].push_back(distance(code_of(code, 1, size, d), code_of(code, 0, size, d)) / out.embedding_length);
    }
  }
  return out;
}

}  // namespace headscope
