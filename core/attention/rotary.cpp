#include "core/attention/rotary.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numbers>

#include "core/base/nth.h"
#include "core/base/words.h"

namespace headscope {

namespace {

using Scaling = RotaryConfig::Scaling;
constexpr double yarn_alpha = 1, yarn_beta = 32, llama3_low = 1, llama3_high = 4;

constexpr std::size_t choosable = 5;
constexpr RotaryScalingInfo scalings[] = {
    {Scaling::none, "none", to_say("none"), "θ_i = base^(−2i/d)", "Su et al., RoFormer, 2021"},
    {Scaling::linear, "linear", to_say("linear (PI)"), to_say("θ_i ÷ s: positions are squeezed into the trained range"),
     "Chen et al., Extending Context Window via Position Interpolation, 2023"},
    {Scaling::ntk, "ntk", to_say("NTK"), to_say("base · s^(d/(d−2)): fast pairs stay, the slowest is stretched by s"),
     "bloc97, NTK-Aware Scaled RoPE, 2023"},
    {Scaling::yarn, "yarn", "YaRN",
     to_say("pairs that turn often within the context stay, slow ones ÷ s, smooth between; q and k × (0.1 ln s + 1)"),
     "Peng et al., YaRN: Efficient Context Window Extension, 2023"},
    {Scaling::llama3, "llama3", to_say("Llama 3"), to_say("as YaRN with α = 1, β = 4, and no factor on q and k"),
     "Dubey et al., The Llama 3 Herd of Models, 2024"},
    {Scaling::longrope, "longrope", to_say("LongRoPE"),
     to_say("θ_i ÷ λ_i, numbers that were searched for: others in texts longer than L; q and k × a number"),
     "Ding et al., LongRoPE: Extending LLM Context Window Beyond 2 Million Tokens, 2024"},
    {Scaling::dynamic, "dynamic", to_say("dynamic NTK"),
     to_say("base · (s n/L − s + 1)^(d/(d−2)) in texts of n > L tokens"), "emozilla, Dynamically Scaled RoPE, 2023"},
};

}  // namespace

std::span<const RotaryScalingInfo> rotary_scalings() {
  return std::span(scalings).first(choosable);
}

const RotaryScalingInfo& info(RotaryConfig::Scaling scaling) {
  return *std::ranges::find(scalings, scaling, &RotaryScalingInfo::scaling);
}

RotaryConfig in_text(const RotaryConfig& own, Index tokens) {
  if (own.scaling != Scaling::longrope && own.scaling != Scaling::dynamic) return own;
  RotaryConfig config = own;
  if (tokens <= own.original_context) return config;
  if (own.scaling == Scaling::longrope) {
    config.divisors = own.long_divisors;
    if (own.long_magnitude > 0) config.magnitude = own.long_magnitude;
    return config;
  }
  // As "ntk", with a factor that is 1 at L and grows with the text.
  config.scaling = Scaling::ntk;
  config.factor = own.factor * static_cast<double>(tokens) / own.original_context - own.factor + 1;
  return config;
}

RotaryConfig rescaled(const RotaryConfig& own, Scaling scaling, double factor, int context) {
  RotaryConfig config;
  config.base = own.base;
  config.width = own.width;
  config.odd = own.odd;
  config.layout = own.layout;
  config.scaling = scaling;
  config.query_growth = own.query_growth;
  config.growth_from = own.growth_from;
  config.pairs = own.pairs;
  if (own.query_growth > 0) config.original_context = own.original_context;
  if (scaling == Scaling::none) return config;
  config.factor = factor;
  if (scaling == Scaling::yarn || scaling == Scaling::llama3) {
    config.original_context = own.original_context > 0 ? own.original_context : context;
    config.low_frequency_factor = scaling == Scaling::yarn ? yarn_alpha : llama3_low;
    config.high_frequency_factor = scaling == Scaling::yarn ? yarn_beta : llama3_high;
  }
  return config;
}

namespace {
/// How much of a pair's own θ is kept.
double kept_share(const RotaryConfig& c, int pair, double theta, int width) {
  if (c.ramp == RotaryConfig::Ramp::turns) {
    const double turns = c.original_context * theta / (2 * std::numbers::pi);
    return (turns - c.low_frequency_factor) / (c.high_frequency_factor - c.low_frequency_factor);
  }
  // The pair, as a fraction, that turns so often within the trained context.
  const auto pair_of = [&](double turns) {
    return width * std::log(c.original_context / (2 * std::numbers::pi * turns)) / (2 * std::log(c.base));
  };
  double first = pair_of(c.high_frequency_factor), last = pair_of(c.low_frequency_factor);
  if (c.ramp == RotaryConfig::Ramp::whole_pairs) first = std::floor(first), last = std::ceil(last);
  first = std::max(first, 0.0);
  last = std::min(last, width - 1.0);
  if (first == last) last += 0.001;
  return 1 - (pair - first) / (last - first);
}
}  // namespace

std::vector<double> rotary_frequencies(const RotaryConfig& config, int d_head) {
  std::vector<double> frequencies;
  if (config.width > 0) d_head = config.width;
  const int pairs = d_head / 2;
  if (config.odd) --d_head;
  // With a single pair d − 2 is 0: its θ is 1 whatever the base.
  const double base = config.scaling == Scaling::ntk && d_head > 2
                          ? config.base * std::pow(config.factor, d_head / (d_head - 2.0))
                          : config.base;
  for (int i = 0; i < pairs; ++i) {
    double theta = std::pow(base, -2.0 * i / d_head);
    switch (config.scaling) {
      case Scaling::none:
      case Scaling::ntk:
      case Scaling::dynamic:
        break;
      case Scaling::longrope:
        theta /= nth(config.divisors, i);
        break;
      case Scaling::linear:
        theta /= config.factor;
        break;
      case Scaling::yarn:
      case Scaling::llama3: {
        // Turns within the trained context: few turns = long wavelength = stretched.
        const double keep = kept_share(config, i, theta, d_head);
        if (keep <= 0)
          theta /= config.factor;
        else if (keep < 1)
          theta = (1 - keep) * theta / config.factor + keep * theta;
        break;
      }
    }
    frequencies.push_back(config.pairs >= 0 && i >= config.pairs ? 0 : theta);
  }
  return frequencies;
}

double rotary_magnitude(const RotaryConfig& config) {
  if (config.magnitude > 0) return config.magnitude;
  return config.scaling == Scaling::yarn && config.factor > 1 ? 0.1 * std::log(config.factor) + 1 : 1;
}

double query_growth(const RotaryConfig& config, Index position) {
  if (config.query_growth <= 0) return 1;
  return 1 + config.query_growth *
                 std::log1p(static_cast<double>((position + config.growth_from) / config.original_context));
}

RotaryTable of_queries(const RotaryTable& table, const RotaryConfig& config, Index first, Index d_head) {
  const Index rows = table.cosine.dim(0), turning = table.cosine.dim(1),
              pairs = config.query_growth > 0 ? d_head / 2 : turning;
  assert(pairs == turning || (config.layout == RotaryLayout::interleaved && d_head % 2 == 0));
  RotaryTable out{Tensor::uninitialized({rows, pairs}), Tensor::uninitialized({rows, pairs})};
  for (Index row = 0; row < rows; ++row) {
    const auto by = static_cast<float>(query_growth(config, first + row));
    for (Index pair = 0; pair < pairs; ++pair) {
      out.cosine.ref(row, pair) = pair < turning ? by * table.cosine.at(row, pair) : by;
      out.sine.ref(row, pair) = pair < turning ? by * table.sine.at(row, pair) : 0;
    }
  }
  return out;
}

RotaryTable rotary_table(const std::vector<double>& frequencies, Index first, Index count, double magnitude) {
  const auto half = static_cast<Index>(frequencies.size());
  RotaryTable table{Tensor::uninitialized({count, half}), Tensor::uninitialized({count, half})};
  for (Index p = 0; p < count; ++p)
    for (Index i = 0; i < half; ++i) {
      const double angle = static_cast<double>(first + p) * nth(frequencies, i);
      table.cosine.ref(p, i) = static_cast<float>(magnitude * std::cos(angle));
      table.sine.ref(p, i) = static_cast<float>(magnitude * std::sin(angle));
    }
  return table;
}

std::pair<Index, Index> rotary_pair(Index i, Index d_head, RotaryLayout layout) {
  return layout == RotaryLayout::half_split ? std::pair{i, i + d_head / 2} : std::pair{2 * i, 2 * i + 1};
}

Tensor turning_part(const Tensor& x, const RotaryConfig& config) {
  const Index width = config.width > 0 ? config.width : x.dim(1);
  if (width == x.dim(1) && config.layout == RotaryLayout::half_split) return x;
  Tensor out = Tensor::uninitialized({x.dim(0), width});
  for (Index pair = 0; pair < width / 2; ++pair) {
    const auto [left, right] = rotary_pair(pair, width, config.layout);
    for (Index i = 0; i < x.dim(0); ++i) {
      out.ref(i, pair) = x.at(i, left);
      out.ref(i, pair + width / 2) = x.at(i, right);
    }
  }
  return out;
}

std::vector<double> rotated(std::span<const double> x, double position, std::span<const double> frequencies,
                            RotaryLayout layout, double magnitude) {
  assert(x.size() == 2 * frequencies.size());
  std::vector<double> out(x.size());
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const auto [a, b] = rotary_pair(static_cast<Index>(i), static_cast<Index>(x.size()), layout);
    const double angle = position * frequencies[i], c = magnitude * std::cos(angle), s = magnitude * std::sin(angle);
    const double left = nth(x, a), right = nth(x, b);
    nth(out, a) = left * c - right * s;
    nth(out, b) = left * s + right * c;
  }
  return out;
}

double RotaryPart::at(double distance, double theta) const {
  return amplitude * std::cos(phase + distance * theta);
}

std::vector<RotaryPart> rotary_parts(std::span<const double> q, std::span<const double> k, RotaryLayout layout) {
  assert(q.size() == k.size());
  std::vector<RotaryPart> parts;
  for (std::size_t i = 0; i < q.size() / 2; ++i) {
    const auto [a, b] = rotary_pair(static_cast<Index>(i), static_cast<Index>(q.size()), layout);
    const auto left = static_cast<std::size_t>(a), right = static_cast<std::size_t>(b);
    RotaryPart part;
    part.query_norm = std::hypot(q[left], q[right]);
    part.key_norm = std::hypot(k[left], k[right]);
    part.query_angle = std::atan2(q[right], q[left]);
    part.key_angle = std::atan2(k[right], k[left]);
    part.amplitude = part.query_norm * part.key_norm;
    part.phase = std::remainder(part.query_angle - part.key_angle, 2 * std::numbers::pi);
    parts.push_back(part);
  }
  return parts;
}

std::vector<double> rotary_scores(std::span<const RotaryPart> parts, const RotaryConfig& config, double distance,
                                  double scale) {
  const std::vector<double> theta = rotary_frequencies(config, static_cast<int>(2 * parts.size()));
  const double magnitude = rotary_magnitude(config), factor = scale * magnitude * magnitude;
  std::vector<double> scores;
  for (std::size_t i = 0; i < parts.size(); ++i) scores.push_back(factor * parts[i].at(distance, theta[i]));
  return scores;
}

}  // namespace headscope
