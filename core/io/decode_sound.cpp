#include <sndfile.h>

#include <algorithm>
#include <cstring>
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
                fmt::format("{} (libsndfile: {})", found, sf_strerror(nullptr)), how_to_convert_sounds);
  const auto channels = static_cast<std::uint64_t>(std::max(info.channels, 0));
  check_sound_numbers(channels, static_cast<std::uint64_t>(std::max(info.samplerate, 0)), where);
  // Full scale of numbers without a point is ±1 as it is of floats; lossy codings may go a little beyond.
  sf_command(file.get(), SFC_SET_NORM_FLOAT, nullptr, SF_TRUE);
  const auto there = static_cast<std::uint64_t>(std::max<sf_count_t>(info.frames, 0));
  const auto [first, wanted] = samples_of(there, static_cast<std::uint64_t>(info.samplerate), part, where);
  if (wanted > most_samples)
    throw Error(where, fmt::format("at most {} samples", most_samples), fmt::format("{}", wanted));
  if (first > 0 && sf_seek(file.get(), static_cast<sf_count_t>(first), SEEK_SET) != static_cast<sf_count_t>(first))
    throw Error(where, fmt::format("{} samples", there), fmt::format("none at {}", first), "was it copied whole?");
  Sound out{info.samplerate, {}, first, there - first - wanted};
  constexpr std::size_t at_once = 4096;
  std::vector<float> block(at_once * channels);
  while (out.samples.size() < wanted) {
    const auto count = static_cast<sf_count_t>(std::min<std::uint64_t>(at_once, wanted - out.samples.size()));
    const sf_count_t got = sf_readf_float(file.get(), block.data(), count);
    for (std::size_t i = 0; i < static_cast<std::size_t>(got); ++i) {
      double sum = 0;
      for (std::size_t channel = 0; channel < channels; ++channel)
        sum += static_cast<double>(block[i * channels + channel]);
      add_moment(out, sum, channels, where);
    }
    if (got < count) break;
  }
  if (out.samples.size() < wanted)
    throw Error(where, fmt::format("{} samples", there),
                fmt::format("{}, then the file ends", first + out.samples.size()), "was it copied whole?");
  return out;
}

}  // namespace headscope
