#include "core/attention/other_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <numeric>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/utf8.h"

namespace headscope {

namespace {
constexpr std::string_view residues = "ARNDCQEGHILKMFPSTWYV";
constexpr std::size_t most_residues = 4096;

// clang-format off
constexpr signed char exchanges[20][20] = {
  { 4,-1,-2,-2, 0,-1,-1, 0,-2,-1,-1,-1,-1,-2,-1, 1, 0,-3,-2, 0},
  {-1, 5, 0,-2,-3, 1, 0,-2, 0,-3,-2, 2,-1,-3,-2,-1,-1,-3,-2,-3},
  {-2, 0, 6, 1,-3, 0, 0, 0, 1,-3,-3, 0,-2,-3,-2, 1, 0,-4,-2,-3},
  {-2,-2, 1, 6,-3, 0, 2,-1,-1,-3,-4,-1,-3,-3,-1, 0,-1,-4,-3,-3},
  { 0,-3,-3,-3, 9,-3,-4,-3,-3,-1,-1,-3,-1,-2,-3,-1,-1,-2,-2,-1},
  {-1, 1, 0, 0,-3, 5, 2,-2, 0,-3,-2, 1, 0,-3,-1, 0,-1,-2,-1,-2},
  {-1, 0, 0, 2,-4, 2, 5,-2, 0,-3,-3, 1,-2,-3,-1, 0,-1,-3,-2,-2},
  { 0,-2, 0,-1,-3,-2,-2, 6,-2,-4,-4,-2,-3,-3,-2, 0,-2,-2,-3,-3},
  {-2, 0, 1,-1,-3, 0, 0,-2, 8,-3,-3,-1,-2,-1,-2,-1,-2,-2, 2,-3},
  {-1,-3,-3,-3,-1,-3,-3,-4,-3, 4, 2,-3, 1, 0,-3,-2,-1,-3,-1, 3},
  {-1,-2,-3,-4,-1,-2,-3,-4,-3, 2, 4,-2, 2, 0,-3,-2,-1,-2,-1, 1},
  {-1, 2, 0,-1,-3, 1, 1,-2,-1,-3,-2, 5,-1,-3,-1, 0,-1,-3,-2,-2},
  {-1,-1,-2,-3,-1, 0,-2,-3,-2, 1, 2,-1, 5, 0,-2,-1,-1,-1,-1, 1},
  {-2,-3,-3,-3,-2,-3,-3,-3,-1, 0, 0,-3, 0, 6,-4,-2,-2, 1, 3,-1},
  {-1,-2,-2,-1,-3,-1,-1,-2,-2,-3,-3,-1,-2,-4, 7,-1,-1,-4,-3,-2},
  { 1,-1, 1, 0,-1, 0, 0, 0,-1,-2,-2, 0,-1,-2,-1, 4, 1,-3,-2,-2},
  { 0,-1, 0,-1,-1,-1,-1,-2,-2,-1,-1,-1,-1,-2,-1, 1, 5,-2,-2, 0},
  {-3,-3,-4,-4,-2,-2,-3,-2,-2,-3,-2,-3,-1, 1,-4,-3,-2,11, 2,-3},
  {-2,-2,-2,-3,-2,-1,-2,-3, 2,-1,-1,-2,-1, 3,-3,-2,-2, 2, 7,-1},
  { 0,-3,-3,-3,-1,-2,-2,-3,-3, 3, 1,-2, 1,-1,-2,-2, 0,-3,-1, 4},
};
constexpr float hydropathy[20] = {1.8f, -4.5f, -3.5f, -3.5f, 2.5f, -3.5f, -3.5f, -0.4f, -3.2f, 4.5f,
                                  3.8f, -3.9f, 1.9f, 2.8f, -1.6f, -0.8f, -0.7f, -0.9f, -1.3f, 4.2f};
// clang-format on

/// Hann's window, as one period of a cosine.
double window_at(int t, int length) {
  return 0.5 - 0.5 * std::cos(2 * std::numbers::pi * t / length);
}

/// Of one frame.
double power(std::span<const double> frame, int bin) {
  const auto length = static_cast<int>(frame.size());
  std::complex<double> sum;
  double all = 0;
  for (int t = 0; t < length; ++t) {
    const double w = window_at(t, length);
    sum += w * nth(frame, t) * std::polar(1.0, -2 * std::numbers::pi * bin * t / length);
    all += w;
  }
  return std::norm(sum) / (all * all);
}
}  // namespace

Tensor spectrogram(std::span<const double> samples, const SoundCut& cut) {
  const auto window = static_cast<std::size_t>(cut.window), hop = static_cast<std::size_t>(cut.hop);
  const Index frames = static_cast<Index>((samples.size() - window) / hop) + 1, bins = cut.window / 2;
  std::vector<double> levels;
  for (Index f = 0; f < frames; ++f)
    for (int b = 0; b < cut.window / 2; ++b)
      levels.push_back(std::log(power(samples.subspan(static_cast<std::size_t>(f) * hop, window), b) + cut.floor));
  const auto count = static_cast<double>(levels.size());
  const double mean = std::reduce(levels.begin(), levels.end()) / count;
  double squares = 0;
  for (const double level : levels) squares += (level - mean) * (level - mean);
  const double deviation = std::sqrt(squares / count);
  constexpr double even = 1e-9;  // rounding's: one level everywhere
  Tensor out = Tensor::uninitialized({frames, bins});
  for (Index i = 0; i < out.size(); ++i)
    out.mutable_data()[i] = deviation > even ? static_cast<float>((nth(levels, i) - mean) / deviation) : 0.0f;
  return out;
}

OtherTokens sound_tokens(std::span<const double> samples, const SoundCut& cut) {
  const Tensor levels = spectrogram(samples, cut);
  const Index across = levels.dim(0) / cut.frames, high = levels.dim(1) / cut.bins;
  Tensor x = Tensor::uninitialized({across * high, Index{cut.frames} * cut.bins});
  OtherTokens out;
  const double hertz = cut.rate / cut.window;
  for (Index i = 0; i < across * high; ++i) {
    const Index first_frame = i / high * cut.frames, first_bin = i % high * cut.bins;
    for (Index f = 0; f < cut.frames; ++f)
      for (Index b = 0; b < cut.bins; ++b) x.ref(i, f * cut.bins + b) = levels.at(first_frame + f, first_bin + b);
    out.labels.push_back(fmt::format("{}/{:.0f}", i / high + 1, static_cast<double>(first_bin) * hertz));
  }
  const double d = static_cast<double>(x.dim(1));
  out.input = {x, x, x, static_cast<float>(1 / std::sqrt(d)), full_rule()};
  return out;
}

std::vector<double> tones(std::span<const double> hertz, double seconds, double rate) {
  std::vector<double> out;
  const auto count = static_cast<int>(std::lround(seconds * rate));
  for (const double tone : hertz)
    for (int t = 0; t < count; ++t) {
      const double edge = std::min(t + 1, count - t) / (0.1 * count);
      out.push_back(std::min(edge, 1.0) * std::sin(2 * std::numbers::pi * tone * t / rate));
    }
  return out;
}

int blosum62(char a, char b) {
  return exchanges[residues.find(a)][residues.find(b)];
}

OtherTokens residue_tokens(std::string_view sequence) {
  if (sequence.empty() || sequence.size() > most_residues)
    throw Error("residues", fmt::format("1 to {} letters", most_residues), std::to_string(sequence.size()));
  const auto n = static_cast<Index>(sequence.size());
  Tensor q = Tensor::zeros({n, 20}), k = Tensor::uninitialized({n, 20}), v = Tensor::uninitialized({n, 1});
  OtherTokens out;
  for (Index i = 0; i < n; ++i) {
    const char letter = nth(sequence, i);
    const std::size_t which = residues.find(letter);
    if (which == std::string_view::npos)
      throw Error(fmt::format("residues, letter {}", i + 1), fmt::format("one of {}", residues),
                  "\"" + visible_label(sequence.substr(static_cast<std::size_t>(i), 1)) + "\"");
    q.ref(i, static_cast<Index>(which)) = 1;
    for (Index other = 0; other < 20; ++other) k.ref(i, other) = exchanges[which][other];
    v.ref(i, 0) = hydropathy[which];
    out.labels.push_back(fmt::format("{}{}", letter, i + 1));
  }
  out.input = {q, k, v, static_cast<float>(std::numbers::ln2 / 2), full_rule()};
  return out;
}

}  // namespace headscope
