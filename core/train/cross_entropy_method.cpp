#include "core/train/cross_entropy_method.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/base/error.h"

namespace headscope {

CrossEntropySearch::CrossEntropySearch(std::vector<double> mean, const Settings& settings)
    : settings_(settings),
      random_(settings.seed),
      mean_(std::move(mean)),
      deviation_(mean_.size(), settings.deviation),
      best_loss_(std::numeric_limits<double>::infinity()) {
  if (mean_.empty() || settings.rounds < 1 || settings.elites < 1 || settings.samples < settings.elites ||
      !(settings.deviation > 0) || !(settings.least_deviation >= 0))
    throw Error("cross-entropy method", "at least one number, one round, and as many samples as elites",
                fmt::format("{} numbers, {} rounds, {} of {} samples", mean_.size(), settings.rounds, settings.elites,
                            settings.samples));
  draw();
}

void CrossEntropySearch::draw() {
  samples_.clear(), losses_.clear(), tried_ = 0;
  for (int i = 0; i < settings_.samples; ++i) {
    std::vector<double> sample = mean_;
    if (round_ || i)
      for (std::size_t k = 0; k < sample.size(); ++k)
        sample[k] += deviation_[k] * static_cast<double>(random_.normal());
    samples_.push_back(std::move(sample));
  }
}

void CrossEntropySearch::tell(double loss) {
  if (std::isnan(loss)) loss = std::numeric_limits<double>::infinity();
  if (best_.empty() || loss < best_loss_) best_loss_ = loss, best_ = samples_[tried_];
  losses_.push_back(loss);
  if (++tried_ < samples_.size()) return;
  std::vector<std::size_t> order(samples_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return losses_[i]; });
  const auto elites = static_cast<double>(settings_.elites);
  for (std::size_t k = 0; k < mean_.size(); ++k) {
    double sum = 0, squares = 0;
    for (int i = 0; i < settings_.elites; ++i) sum += samples_[order[static_cast<std::size_t>(i)]][k];
    mean_[k] = sum / elites;
    for (int i = 0; i < settings_.elites; ++i)
      squares += std::pow(samples_[order[static_cast<std::size_t>(i)]][k] - mean_[k], 2);
    deviation_[k] = std::max(std::sqrt(squares / elites), settings_.least_deviation);
  }
  curve_.push_back(best_loss_);
  if (++round_ < settings_.rounds) draw();
}

}  // namespace headscope
