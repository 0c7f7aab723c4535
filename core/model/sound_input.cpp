#include "core/model/sound_input.h"

#include <fmt/format.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <vector>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/model/config_reader.h"

namespace headscope {

namespace {
using std::numbers::pi;
using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

std::optional<ConfigReader> extractor_of(const std::filesystem::path& folder) {
  const std::filesystem::path own = folder / "preprocessor_config.json", joint = folder / "processor_config.json";
  std::error_code ignored;
  if (std::filesystem::exists(own, ignored)) return ConfigReader::open(own);
  if (std::filesystem::exists(joint, ignored)) return ConfigReader::open(joint).object("feature_extractor");
  return std::nullopt;
}

/// (mel, bin)
Rows filters_of(const SoundConfig& s) {
  const int bins = s.window / 2 + 1;
  std::vector<double> edges;
  for (int i = 0; i < s.mels + 2; ++i) edges.push_back(hertz_of(mel_of(highest_pitch) * i / (s.mels + 1)));
  Rows out(s.mels, bins);
  for (int mel = 0; mel < s.mels; ++mel) {
    const double low = nth(edges, mel), middle = nth(edges, mel + 1), high = nth(edges, mel + 2);
    for (int bin = 0; bin < bins; ++bin) {
      const double hertz = static_cast<double>(s.rate / 2) * bin / (bins - 1);
      const double side = std::min((hertz - low) / (middle - low), (high - hertz) / (high - middle));
      out(mel, bin) = std::max(0.0, side) * 2 / (high - low);
    }
  }
  return out;
}

/// Sample i of a sound mirrored at both ends.
double mirrored(std::span<const float> samples, Index i, Index length) {
  while (i < 0 || i >= length) i = i < 0 ? -i : 2 * (length - 1) - i;
  return i < static_cast<Index>(samples.size()) ? static_cast<double>(samples[static_cast<std::size_t>(i)]) : 0;
}
}  // namespace

void read_feature_extraction(const std::filesystem::path& folder, SoundConfig& s) {
  const auto json = extractor_of(folder);
  if (!json) return;
  const auto same = [&](const char* key, int expected, int found) {
    if (found != expected)
      throw json->error(key, fmt::format("{}, as the model has it", expected), std::to_string(found));
  };
  same("feature_size", s.mels, json->integer("feature_size", 1, 4096, s.mels));
  s.rate = json->integer("sampling_rate", 1000, 1'000'000, s.rate);
  s.window = json->integer("n_fft", 2, 1 << 16, s.window);
  s.hop = json->integer("hop_length", 1, 1 << 16, s.hop);
  const int seconds = json->integer("chunk_length", 1, 3600, 30);
  if (static_cast<std::int64_t>(seconds) * s.rate > 1'000'000'000)
    throw json->error("chunk_length", "at most 1,000,000,000 samples", fmt::format("{} s of {}", seconds, s.rate));
  s.samples = seconds * s.rate;
  if (s.samples / s.hop != s.frames())
    throw json->error(
        "chunk_length", fmt::format("a sound of {} frames, two for each of max_source_positions", s.frames()),
        fmt::format("{} s of {} samples: {} frames of hop_length {}", seconds, s.rate, s.samples / s.hop, s.hop));
  if (s.samples <= s.window / 2)
    throw json->error("n_fft", fmt::format("at most twice the {} samples of a sound", s.samples),
                      std::to_string(s.window));
  if (json->number("dither", -1e6, 1e6, 0) != 0)
    throw json->error("dither", "0", "noise that is drawn anew each time", "what is read would never be the same");
}

std::string write_feature_extraction(const SoundConfig& s) {
  ConfigWriter json;
  json.put("feature_extractor_type", "WhisperFeatureExtractor");
  json.put("feature_size", s.mels);
  json.put("sampling_rate", s.rate);
  json.put("n_fft", s.window);
  json.put("hop_length", s.hop);
  json.put("chunk_length", s.samples / s.rate);
  return json.text();
}

Tensor mel_filters(const SoundConfig& s) {
  const Rows filters = filters_of(s);
  return Tensor::from({filters.rows(), filters.cols()},
                      [&] { return std::vector<float>(filters.data(), filters.data() + filters.size()); }());
}

Tensor log_mel(std::span<const float> given, const SoundConfig& s) {
  const Index frames = s.frames(), bins = s.window / 2 + 1;
  const std::span<const float> samples = given.first(std::min(given.size(), static_cast<std::size_t>(s.samples)));
  // The transform as two products with cosines and sines, each already under the window.
  Rows cosines(s.window, bins), sines(s.window, bins);
  for (Index i = 0; i < s.window; ++i)
    for (Index bin = 0; bin < bins; ++bin) {
      const double hann = 0.5 - 0.5 * std::cos(2 * pi * static_cast<double>(i) / s.window),
                   angle = 2 * pi * static_cast<double>(i * bin % s.window) / s.window;
      cosines(i, bin) = hann * std::cos(angle);
      sines(i, bin) = hann * std::sin(angle);
    }
  const Rows triangles = filters_of(s).transpose();
  constexpr double least = 1e-10;
  Rows out = Rows::Constant(frames, s.mels, std::log10(least));  // of silence
  constexpr Index at_once = 128;
  for (Index first = 0; first < frames; first += at_once) {
    const Index count = std::min(at_once, frames - first), begin = first * s.hop - s.window / 2;
    if (begin >= static_cast<Index>(samples.size()) && (first + count) * s.hop + s.window < s.samples) continue;
    Rows cut(count, Index{s.window});
    for (Index row = 0; row < count; ++row)
      for (Index i = 0; i < s.window; ++i) cut(row, i) = mirrored(samples, begin + row * s.hop + i, s.samples);
    const Rows real = cut * cosines, imaginary = cut * sines;
    const Rows power = real.cwiseAbs2() + imaginary.cwiseAbs2();
    out.middleRows(first, count) = (power * triangles).cwiseMax(least).array().log10().matrix();
  }
  const double floor = out.maxCoeff() - 8;
  Tensor result = Tensor::uninitialized({frames, s.mels});
  for (Index frame = 0; frame < frames; ++frame)
    for (Index mel = 0; mel < s.mels; ++mel)
      result.ref(frame, mel) = static_cast<float>((std::max(out(frame, mel), floor) + 4) / 4);
  return result;
}

SoundFrames heard(const Sound& sound, const SoundConfig& s) {
  const std::vector<float> samples = resampled(sound, s.rate, static_cast<std::size_t>(s.samples));
  return {log_mel(samples, s), s.frame_seconds(), s.rows, sound.seconds(), sound.from()};
}

double seconds_to_hear(const SoundConfig& s) {
  return static_cast<double>(s.samples) / s.rate + 1;
}

void check_sound(const ModelConfig& c, std::size_t rows, const Tensor& frames) {
  const SoundConfig& s = *c.sound;
  if (rows != static_cast<std::size_t>(s.rows))
    throw Error(c.name, fmt::format("the {} rows of a sound of {} s", s.rows, s.rows * s.row_seconds()),
                std::to_string(rows));
  const Shape shape{s.frames(), s.mels};
  if (!frames.defined() || frames.shape() != shape)
    throw Error(c.name, fmt::format("a sound: {} frames of {} numbers", shape[0], shape[1]),
                frames.defined() ? "numbers of shape " + frames.shape().str() : "none", "this encoder reads no text");
}

namespace {
/// (row, 3 · channels) of x (frame, channels): every `stride`-th frame with those at its sides.
Tensor three_frames(const Tensor& given, int stride) {
  const Tensor x = given.packed();
  const Index frames = x.dim(0), channels = x.dim(1), rows = (frames + stride - 1) / stride;
  Tensor out = Tensor::zeros({rows, 3 * channels});
  float* const to = out.mutable_data();
  for (Index row = 0; row < rows; ++row)
    for (Index tap = 0; tap < 3; ++tap) {
      const Index frame = row * stride + tap - 1;
      if (frame < 0 || frame >= frames) continue;
      const float* const from = x.data() + frame * channels;
      for (Index channel = 0; channel < channels; ++channel) to[(row * channels + channel) * 3 + tap] = from[channel];
    }
  return out;
}
}  // namespace

Tensor convolved(Backend& backend, Tensor x, std::span<const Linear> convolutions) {
  int stride = 0;
  for (const Linear& each : convolutions)
    x = backend.activate(Backend::Unary::gelu, backend.linear(three_frames(x, ++stride), each));
  return x;
}

}  // namespace headscope
