#pragma once
// The cross-entropy method (Rubinstein, 1999; de Boer et al., A Tutorial on the Cross-Entropy Method, 2005): a few
// numbers that make a loss small, found without its gradient. Every round draws samples from a normal distribution of
// independent coordinates; mean and deviation of the next one are those of the samples with the lowest loss.

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/random.h"

namespace headscope {

class CrossEntropySearch {
 public:
  struct Settings {
    int samples = 20, elites = 5, rounds = 6;
    double deviation = 0.4;         ///< of every coordinate in the first round
    double least_deviation = 0.01;  ///< in none it falls below
    std::uint64_t seed = 1;
    bool operator==(const Settings&) const = default;
  };
  /// The first round is drawn about `mean`; its first sample is the mean itself. Throws Error on settings that make no
  /// sense.
  CrossEntropySearch(std::vector<double> mean, const Settings& settings);

  bool finished() const { return round_ == settings_.rounds; }
  /// What to try next. REQUIRES !finished().
  std::span<const double> next() const { return samples_[tried_]; }
  /// How good it was. A loss that is no number counts as infinite. Behind the last of a round the distribution moves.
  void tell(double loss);

  const std::vector<double>& best() const { return best_; }  ///< of all that were tried; empty before the first
  double best_loss() const { return best_loss_; }
  const std::vector<double>& best_by_round() const { return curve_; }  ///< the least loss so far, behind each round
  const std::vector<double>& mean() const { return mean_; }
  const std::vector<double>& deviation() const { return deviation_; }

 private:
  void draw();
  Settings settings_;
  Random random_;
  std::vector<double> mean_, deviation_, best_, losses_, curve_;
  std::vector<std::vector<double>> samples_;
  double best_loss_ = 0;
  std::size_t tried_ = 0;
  int round_ = 0;
};

}  // namespace headscope
