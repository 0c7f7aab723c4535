#include <sndfile.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "core/base/error.h"
#include "core/io/sound_decoders.h"

namespace headscope {

namespace {

constexpr std::uint64_t most_samples = std::uint64_t{1} << 28;  // 1 GiB: a small file may say that it has any number

/// A file in memory, for libsndfile.
struct SoundBytes {
  std::string_view all;
  sf_count_t at = 0;

  sf_count_t size() const { return static_cast<sf_count_t>(all.size()); }
  static SoundBytes& of(void* self) { return *static_cast<SoundBytes*>(self); }
  static sf_count_t length(void* self) { return of(self).size(); }
  static sf_count_t tell(void* self) { return of(self).at; }
  static sf_count_t seek(sf_count_t offset, int from, void* self) {
    SoundBytes& b = of(self);
    const sf_count_t begin = from == SEEK_SET ? 0 : from == SEEK_CUR ? b.at : b.size();
    if (offset < -begin || offset > b.size() - begin) return -1;
    return b.at = begin + offset;
  }
  static sf_count_t read(void* to, sf_count_t count, void* self) {
    SoundBytes& b = of(self);
    const sf_count_t taken = std::clamp<sf_count_t>(count, 0, b.size() - b.at);
    std::memcpy(to, b.all.data() + b.at, static_cast<std::size_t>(taken));
    b.at += taken;
    return taken;
  }
};

}  // namespace

Sound decode_by_library(std::string_view bytes, const std::string& where, const std::string& found,
                        const SoundPart& part) {
  SoundBytes source{bytes};
  SF_VIRTUAL_IO io{SoundBytes::length, SoundBytes::seek, SoundBytes::read, nullptr, SoundBytes::tell};
  SF_INFO info{};
  const std::unique_ptr<SNDFILE, int (*)(SNDFILE*)> file(sf_open_virtual(&io, SFM_READ, &info, &source), sf_close);
  if (!file)
    throw Error(where, "a sound: WAV, FLAC, Ogg (Vorbis, Opus), MP3, AIFF, AU or CAF",
                sf_error(nullptr) == SF_ERR_UNRECOGNISED_FORMAT ? found : found + ", damaged or cut off",
                how_to_convert_sounds);
  const auto channels = static_cast<std::uint64_t>(std::max(info.channels, 0));
  check_sound_numbers(channels, static_cast<std::uint64_t>(std::max(info.samplerate, 0)), where);
  // Full scale of numbers without a point is ±1 as it is of floats; lossy codings may go a little beyond.
  sf_command(file.get(), SFC_SET_NORM_FLOAT, nullptr, SF_TRUE);
  // A FLAC that was written to a pipe does not say how long it is: it is read to its end.
  const bool known = info.frames < SF_COUNT_MAX;
  const auto rate = static_cast<std::uint64_t>(info.samplerate);
  auto there = known ? static_cast<std::uint64_t>(std::max<sf_count_t>(info.frames, 0)) : 0;
  SampleRange range = known ? samples_of(there, rate, part, where) : SampleRange{samples_of(part.from, rate), 0};
  if (!known) range.count = std::min(samples_of(part.most, rate), most_samples);
  if (range.count > most_samples)
    throw Error(where, fmt::format("at most {} samples", most_samples), fmt::format("{}", range.count));
  // Frames of lossy codings need those before them, a second at most; of Vorbis the library misses places near the end.
  const bool vorbis = (info.format & SF_FORMAT_SUBMASK) == SF_FORMAT_VORBIS;
  std::uint64_t at = known && !vorbis && range.first > rate ? range.first - rate : 0;
  if (at > 0 && sf_seek(file.get(), static_cast<sf_count_t>(at), SEEK_SET) != static_cast<sf_count_t>(at))
    throw Error(where, fmt::format("{} samples", there), fmt::format("none at {}", at), "was it copied whole?");
  Sound out{info.samplerate, {}, range.first};
  constexpr std::size_t at_once = 4096;
  std::vector<float> block(at_once * channels);
  const std::uint64_t end = known ? range.first + range.count : std::numeric_limits<std::uint64_t>::max();
  while (at < end) {
    const auto count = static_cast<sf_count_t>(std::min<std::uint64_t>(at_once, end - at));
    const sf_count_t got = std::max<sf_count_t>(sf_readf_float(file.get(), block.data(), count), 0);
    for (std::size_t i = 0; i < static_cast<std::size_t>(got); ++i, ++at) {
      if (at < range.first || out.samples.size() == range.count) continue;
      double sum = 0;
      for (std::size_t channel = 0; channel < channels; ++channel)
        sum += static_cast<double>(block[i * channels + channel]);
      add_moment(out, sum, channels, where);
    }
    if (got < count) break;
  }
  if (!known) {
    there = at;
    range.count = samples_of(there, rate, part, where).count;
  }
  if (out.samples.size() < range.count)
    throw Error(where, fmt::format("{} samples", there), fmt::format("{}, then the file ends", at),
                "was it copied whole?");
  out.beyond = there - range.first - range.count;
  return out;
}

}  // namespace headscope
