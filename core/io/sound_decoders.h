#pragma once
// What the two readers of sounds share: our own of plain WAV files (sound.cpp), which says what is wrong with one chunk
// by chunk, and libsndfile for all others.

#include <cstdint>
#include <string>
#include <string_view>

#include "core/io/sound.h"

namespace headscope {

inline constexpr const char* how_to_convert_sounds =
    "ffmpeg -i FILE -ac 1 -ar 16000 sound.wav makes one of nearly anything";

/// Throws Error on a number of channels or a rate that no sound has.
void check_sound_numbers(std::uint64_t channels, std::uint64_t rate, const std::string& where);
/// The first sample at or behind a second.
std::uint64_t samples_of(double seconds, std::uint64_t rate);
/// Which samples of `there` a part is. Throws Error where it begins behind them, or there are none.
struct SampleRange {
  std::uint64_t first = 0, count = 0;
};
SampleRange samples_of(std::uint64_t there, std::uint64_t rate, const SoundPart& part, const std::string& where);
/// Appends the mean of a moment's channels; throws Error where it is no finite number or far beyond full scale.
void add_moment(Sound& sound, double sum, std::uint64_t channels, const std::string& where);

/// By libsndfile; `found` says what the file is where that cannot read it. Throws Error.
Sound decode_by_library(std::string_view bytes, const std::string& where, const std::string& found,
                        const SoundPart& part);

}  // namespace headscope
