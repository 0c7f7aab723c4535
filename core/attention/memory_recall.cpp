#include "core/attention/memory_recall.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/random.h"

namespace headscope {

std::vector<Index> recall_points(Index n) {
  std::vector<Index> points;
  for (Index i = 1; i <= std::min<Index>(n, 32); ++i) points.push_back(i);
  for (int i = 1; i <= 24 && n > 32; ++i) {
    const auto at = static_cast<Index>(std::lround(32 * std::pow(static_cast<double>(n) / 32, i / 24.0)));
    if (at > points.back()) points.push_back(at);
  }
  return points;
}

RecallCurve recall_while_learning(const Tensor& k, const Tensor& v, const MemoryRates& rates, const MemoryShape& shape,
                                  const std::stop_token& stop) {
  NeuralMemory memory(k.dim(1), v.dim(1), rates, shape);
  RecallCurve curve{shape, {}, {}, 0};
  std::vector<std::vector<double>> keys, values;
  double squares = 0;
  for (const Index until : recall_points(k.dim(0))) {
    while (static_cast<Index>(keys.size()) < until) {
      const auto row = static_cast<Index>(keys.size());
      keys.push_back(tensor_row(k, row)), values.push_back(tensor_row(v, row));
      for (const double each : values.back()) squares += each * each;
      memory.learn(keys.back(), values.back());
    }
    if (stop.stop_requested()) throw Cancelled();
    double error = 0;
    const bool finite = memory.size() < 1e12;
    for (std::size_t s = 0; s < keys.size() && finite; ++s) {
      const std::vector<double> said = memory.answer(keys[s]);
      for (std::size_t c = 0; c < said.size(); ++c) error += (said[c] - values[s][c]) * (said[c] - values[s][c]);
    }
    error = squares > 0 ? error / squares : 0;
    if (!finite || !(error <= most_recall_error)) {
      curve.lost_at = until;
      break;
    }
    curve.pairs.push_back(static_cast<double>(until));
    curve.error.push_back(error);
  }
  return curve;
}

TaughtPairs parity_pairs(Index count, std::uint64_t seed) {
  Random random(seed);
  TaughtPairs out{Tensor::uninitialized({count, 4}), Tensor::uninitialized({count, 1})};
  for (Index i = 0; i < count; ++i) {
    for (Index c = 0; c < 4; ++c) out.k.ref(i, c) = random.normal() < 0 ? -0.5f : 0.5f;
    out.v.ref(i, 0) = 8 * out.k.at(i, 0) * out.k.at(i, 1) * out.k.at(i, 2);
  }
  return out;
}

}  // namespace headscope
