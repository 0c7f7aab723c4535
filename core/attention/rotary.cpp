#include "core/attention/rotary.h"

#include <cmath>
#include <numbers>

namespace headscope {

std::vector<double> rotary_frequencies(const RotaryConfig& config, int d_head) {
  std::vector<double> frequencies;
  for (int i = 0; i < d_head / 2; ++i) {
    double theta = std::pow(config.base, -2.0 * i / d_head);
    switch (config.scaling) {
      case RotaryConfig::Scaling::none:
        break;
      case RotaryConfig::Scaling::linear:
        theta /= config.factor;
        break;
      case RotaryConfig::Scaling::llama3: {
        // Turns within the trained context: few turns = long wavelength = stretched.
        const double turns = config.original_context * theta / (2 * std::numbers::pi);
        const double keep =
            (turns - config.low_frequency_factor) / (config.high_frequency_factor - config.low_frequency_factor);
        if (keep <= 0)
          theta /= config.factor;
        else if (keep < 1)
          theta = (1 - keep) * theta / config.factor + keep * theta;
        break;
      }
    }
    frequencies.push_back(theta);
  }
  return frequencies;
}

RotaryTable rotary_table(const std::vector<double>& frequencies, Index first, Index count) {
  const auto half = static_cast<Index>(frequencies.size());
  RotaryTable table{Tensor::uninitialized({count, half}), Tensor::uninitialized({count, half})};
  for (Index p = 0; p < count; ++p)
    for (Index i = 0; i < half; ++i) {
      const double angle = static_cast<double>(first + p) * frequencies[static_cast<std::size_t>(i)];
      table.cosine.ref(p, i) = static_cast<float>(std::cos(angle));
      table.sine.ref(p, i) = static_cast<float>(std::sin(angle));
    }
  return table;
}

}  // namespace headscope
