#include "core/io/sound.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numbers>
#include <numeric>
#include <optional>
#include <string_view>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/file.h"
#include "core/base/nth.h"
#include "core/io/sound_decoders.h"

namespace headscope {

namespace {
using std::numbers::pi;
constexpr std::size_t most_sound_bytes = std::size_t{1} << 30;

/// Little-endian, of `count` bytes.
std::uint64_t number_at(std::string_view bytes, std::size_t at, std::size_t count) {
  std::uint64_t value = 0;
  for (std::size_t i = count; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

struct WavFormat {
  std::uint64_t tag = 0, channels = 0, rate = 0, bits = 0;
  std::size_t bytes = 0;  ///< of a number
  bool floats() const { return tag == 3; }
  bool plain() const { return tag == 1 || floats(); }
};

const char* name_of_tag(std::uint64_t tag) {
  constexpr std::pair<std::uint64_t, const char*> known[] = {{1, "whole numbers"}, {2, "ADPCM"},  {3, "floats"},
                                                             {6, "A-law"},         {7, "mu-law"}, {0x11, "ADPCM"},
                                                             {0x50, "MPEG"},       {0x55, "MP3"}, {0xFF, "AAC"}};
  const auto* const found = std::ranges::find(known, tag, &std::pair<std::uint64_t, const char*>::first);
  return found == std::end(known) ? "a coding that is not known" : found->second;
}

WavFormat read_format(std::string_view chunk, const std::string& where) {
  const auto refuse = [&](const std::string& expected, const std::string& found) {
    return Error(where + ": chunk \"fmt \"", expected, found, how_to_convert_sounds);
  };
  if (chunk.size() < 16) throw refuse("16 bytes or more", fmt::format("{}", chunk.size()));
  WavFormat f{number_at(chunk, 0, 2), number_at(chunk, 2, 2), number_at(chunk, 4, 4), number_at(chunk, 14, 2)};
  if (f.tag == 0xFFFE) {  // WAVE_FORMAT_EXTENSIBLE: the coding stands first in a GUID
    if (chunk.size() < 40) throw refuse("40 bytes, of the extensible format", fmt::format("{}", chunk.size()));
    f.tag = number_at(chunk, 24, 2);
  }
  if (!f.plain()) return f;
  check_sound_numbers(f.channels, f.rate, where + ": chunk \"fmt \"");
  const std::uint64_t block = number_at(chunk, 12, 2);
  f.bytes = block / f.channels;
  const bool fits = f.floats() ? f.bytes == 4 || f.bytes == 8 : f.bytes >= 1 && f.bytes <= 4;
  if (block % f.channels != 0 || !fits || f.bits > 8 * f.bytes || f.bits < 1)
    throw refuse(f.floats() ? "floats of 32 or 64 bits" : "whole numbers of 8, 16, 24 or 32 bits",
                 fmt::format("{} bits in blocks of {} bytes for {} channels", f.bits, block, f.channels));
  return f;
}

/// ±1 at full scale. Numbers of fewer bits than their bytes have stand at the upper end.
double sample_at(std::string_view data, std::size_t at, const WavFormat& f) {
  const std::uint64_t bits = number_at(data, at, f.bytes);
  if (f.floats())
    return f.bytes == 4 ? static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)))
                        : std::bit_cast<double>(bits);
  if (f.bytes == 1) return (static_cast<double>(bits) - 128) / 128;  // these alone have no sign
  const auto whole = static_cast<std::int32_t>(static_cast<std::uint32_t>(bits << (32 - 8 * f.bytes)));
  return static_cast<double>(whole) / 2147483648.0;
}

Sound read_data(std::string_view data, const WavFormat& f, const std::string& where, const SoundPart& part) {
  const std::size_t block = f.bytes * f.channels, there = data.size() / block;
  const auto [first, count] = samples_of(there, f.rate, part, where);
  Sound out{static_cast<int>(f.rate), {}, first, there - first - count};
  out.samples.reserve(count);
  for (std::size_t i = first; i < first + count; ++i) {
    double sum = 0;
    for (std::size_t channel = 0; channel < f.channels; ++channel)
      sum += sample_at(data, i * block + channel * f.bytes, f);
    add_moment(out, sum, f.channels, where);
  }
  return out;
}

/// Half a second each: three tones, a chord of them, a glide from the first over two octaves; each swells and fades,
/// and a pause follows.
Sound tones() {
  constexpr double pitches[] = {440, 550, 660};
  constexpr int rate = 16'000, length = 8'000, pause = 2'400;
  Sound out{rate, {}};
  for (int part = 0; part < 5; ++part) {
    for (int i = 0; i < length; ++i) {
      const double t = static_cast<double>(i) / rate, share = static_cast<double>(i) / length;
      const auto wave = [&](double pitch) { return std::sin(2 * pi * pitch * t); };
      double value = 0;
      if (part < 3)
        value = wave(nth(pitches, part));
      else if (part == 3)
        for (const double pitch : pitches) value += wave(pitch) / 3;
      else
        value = std::sin(2 * pi * pitches[0] * length / rate * (std::exp2(2 * share) - 1) / (2 * std::numbers::ln2));
      out.samples.push_back(static_cast<float>(0.5 * std::sin(pi * share) * value));
    }
    out.samples.insert(out.samples.end(), pause, 0.0f);
  }
  return out;
}
}  // namespace

void check_sound_numbers(std::uint64_t channels, std::uint64_t rate, const std::string& where) {
  const auto refuse = [&](const char* expected, std::uint64_t found) {
    return Error(where, expected, fmt::format("{}", found), how_to_convert_sounds);
  };
  if (channels < 1 || channels > 256) throw refuse("1 to 256 channels", channels);
  if (rate < 1000 || rate > 1'000'000) throw refuse("1000 to 1,000,000 samples a second", rate);
}

std::uint64_t samples_of(double seconds, std::uint64_t rate) {
  return static_cast<std::uint64_t>(std::min(std::ceil(seconds * static_cast<double>(rate) - 1e-6), 1e18));
}

SampleRange samples_of(std::uint64_t there, std::uint64_t rate, const SoundPart& part, const std::string& where) {
  if (there == 0) throw Error(where, "at least one sample", "none");
  const std::uint64_t first = samples_of(part.from, rate);
  if (first >= there)
    throw Error(where,
                fmt::format("a beginning within its {} s", static_cast<double>(there) / static_cast<double>(rate)),
                fmt::format("{} s", part.from));
  return {first, std::min(samples_of(part.most, rate), there - first)};
}

void add_moment(Sound& sound, double sum, std::uint64_t channels, const std::string& where) {
  const auto count = static_cast<double>(channels);
  if (!std::isfinite(sum) || std::abs(sum) > 1e6 * count)
    throw Error(where, "finite numbers, ±1 at full scale",
                fmt::format("{} in sample {}", sum, sound.before + sound.samples.size()));
  sound.samples.push_back(static_cast<float>(sum / count));
}

Sound decode_sound(const std::string& bytes, const std::string& where, const SoundPart& part) {
  const std::string_view all = bytes;
  if (all.size() < 12 || all.substr(0, 4) != "RIFF" || all.substr(8, 4) != "WAVE")
    return decode_by_library(
        all, where, all.empty() ? "an empty file" : "\"" + excerpt(std::string(all.substr(0, 12)), 40) + "\"", part);
  std::optional<WavFormat> format;
  for (std::size_t at = 12; at + 8 <= all.size();) {
    const std::string_view id = all.substr(at, 4);
    std::uint64_t size = number_at(all, at + 4, 4);
    const std::size_t begin = at + 8, left = all.size() - begin;
    const bool data = id == "data";
    if (data && (size == 0 || size == 0xFFFFFFFF || size == 0xFFFFFFFF - 36)) size = left;  // written to a pipe
    if (size > left)
      throw Error(where + ": chunk \"" + excerpt(std::string(id), 8) + "\"", fmt::format("{} bytes", size),
                  fmt::format("{}, then the file ends", left), "was it copied whole?");
    if (id == "fmt ") format = read_format(all.substr(begin, size), where);
    if (data) {
      if (!format) throw Error(where, "a chunk \"fmt \" before the chunk \"data\"", "none");
      if (!format->plain())
        return decode_by_library(all, where, fmt::format("WAV of format {}: {}", format->tag, name_of_tag(format->tag)),
                                 part);
      return read_data(all.substr(begin, size), *format, where + ": chunk \"data\"", part);
    }
    at = begin + size + size % 2;  // chunks begin at even places
  }
  throw Error(where, "a chunk \"data\"", format ? "a file that ends before it" : "neither it nor a chunk \"fmt \"");
}

namespace {
/// Where "#t=" begins in a path that is no file of that name; npos = nowhere.
std::size_t mark_of(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored) ? std::string::npos : path.string().rfind("#t=");
}
}  // namespace

SoundPlace sound_place(const std::filesystem::path& path) {
  const std::size_t at = mark_of(path);
  if (at == std::string::npos) return {path, 0};
  const std::string all = path.string(), number = all.substr(at + 3);
  double from = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), from);
  if (error != std::errc() || end != number.data() + number.size() || !(from >= 0) || from > 1e9)
    throw Error(path.string(), "a number of seconds behind \"#t=\"", "\"" + excerpt(number, 40) + "\"");
  return {all.substr(0, at), from};
}

std::filesystem::path path_of(const SoundPlace& place) {
  return place.from > 0 ? std::filesystem::path(fmt::format("{}#t={}", place.file.string(), place.from)) : place.file;
}

Sound read_sound(const std::filesystem::path& path, double most_seconds) {
  const SoundPlace place = sound_place(path);
  const SoundPart part{place.from, most_seconds};
  if (place.file != built_in_sound) return decode_sound(read_file(place.file, most_sound_bytes), path.string(), part);
  Sound all = tones();
  const auto [first, count] = samples_of(all.samples.size(), static_cast<std::uint64_t>(all.rate), part, path.string());
  const auto begin = all.samples.begin() + static_cast<std::ptrdiff_t>(first);
  const std::uint64_t behind = all.samples.size() - first - count;
  return {all.rate, {begin, begin + static_cast<std::ptrdiff_t>(count)}, first, behind};
}

bool may_be_sound(const std::filesystem::path& path) {
  const std::filesystem::path file = path.string().substr(0, mark_of(path));
  if (file == built_in_sound) return true;
  std::string ending = file.extension().string();
  std::ranges::transform(ending, ending.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::ranges::find(sound_endings, ending) != std::end(sound_endings) || ending == ".m4a" || ending == ".aac" ||
         ending == ".wma";  // which are refused with a way out
}

namespace {
constexpr double crossings = 64, kaiser_beta = 9, rolloff = 0.955;

/// I₀, the modified Bessel function, by its series.
double bessel_i0(double x) {
  double term = 1, sum = 1;
  for (int k = 1; term > 1e-17 * sum; ++k) sum += term *= x * x / (4.0 * k * k);
  return sum;
}

/// The kernel at a distance of x zero crossings.
double windowed_sinc(double x) {
  if (std::abs(x) >= crossings) return 0;
  const double window =
      bessel_i0(kaiser_beta * std::sqrt(1 - x * x / (crossings * crossings))) / bessel_i0(kaiser_beta);
  return x == 0 ? window : window * std::sin(pi * x) / (pi * x);
}
}  // namespace

std::vector<float> resampled(const Sound& sound, int rate, std::size_t most) {
  const auto count = static_cast<std::int64_t>(sound.samples.size());
  if (rate == sound.rate) {
    const auto kept = static_cast<std::ptrdiff_t>(std::min(most, sound.samples.size()));
    return {sound.samples.begin(), sound.samples.begin() + kept};
  }
  // Sample n of the new rate lies at n · from ÷ to: between old ones it stands at one of `to` places, each with taps of
  // its own.
  const int common = std::gcd(sound.rate, rate);
  const std::int64_t from = sound.rate / common, to = rate / common;
  const double density = rolloff * std::min(1.0, static_cast<double>(to) / static_cast<double>(from));
  const auto reach = static_cast<std::int64_t>(std::ceil(crossings / density));
  const auto width = static_cast<std::size_t>(2 * reach);
  std::vector<std::vector<float>> taps(static_cast<std::size_t>(to));
  const std::int64_t longest = (count * to + from - 1) / from;
  std::vector<float> out(std::min(most, static_cast<std::size_t>(longest)));
  for (std::size_t n = 0; n < out.size(); ++n) {
    const std::int64_t place = static_cast<std::int64_t>(n) * from, first = place / to - reach + 1;
    std::vector<float>& own = nth(taps, place % to);
    if (own.empty()) {
      const double beside = static_cast<double>(place % to) / static_cast<double>(to);
      for (std::size_t i = 0; i < width; ++i)
        own.push_back(static_cast<float>(
            density *
            windowed_sinc(density * (static_cast<double>(static_cast<std::int64_t>(i) - reach + 1) - beside))));
    }
    const std::int64_t begin = std::max<std::int64_t>(first, 0),
                       end = std::min(first + static_cast<std::int64_t>(width), count);
    float sum = 0;
    for (std::int64_t k = begin; k < end; ++k) sum += nth(sound.samples, k) * nth(own, k - first);
    out[n] = sum;
  }
  return out;
}

}  // namespace headscope
