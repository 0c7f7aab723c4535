#pragma once
// Sounds from files, as one row of numbers, and at another rate.

#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace headscope {

struct Sound {
  int rate = 0;                          ///< samples a second
  std::vector<float> samples;            ///< the mean of all channels, ±1 at full scale
  std::uint64_t before = 0, beyond = 0;  ///< so many more stand before and behind these, which nobody asked for
  double from() const { return static_cast<double>(before) / rate; }  ///< when these begin, in seconds
  double seconds() const { return static_cast<double>(samples.size() + beyond) / rate; }  ///< from there to the end
  bool operator==(const Sound&) const = default;
};

/// Not a file: three tones, a chord and a glide between pauses, made by a formula, for when any sound will do.
inline constexpr const char* built_in_sound = "builtin:tones";

/// A file of sound and from which second on it is read, as one path: talk.mp3#t=95.5 (W3C, Media Fragments URI 1.0).
struct SoundPlace {
  std::filesystem::path file;
  double from = 0;  ///< seconds
};
/// A file whose own name ends so is meant as it is. Throws Error where t is no number of seconds.
SoundPlace sound_place(const std::filesystem::path& path);
std::filesystem::path path_of(const SoundPlace& place);

/// Reads `most_seconds` of a sound_place(), of any rate and number of channels. WAV: whole numbers of 8 to 32 bits or
/// floats of 32 or 64; a data chunk that says no length (written to a pipe) reaches to the end of the file. All else as
/// libsndfile reads it: FLAC, Ogg (Vorbis, Opus), MP3, AIFF, AU, CAF, WAV of other codings. Throws Error naming file,
/// chunk and numbers on anything else, on a file that ends too early or before it is to begin, and on more than 1 GiB.
Sound read_sound(const std::filesystem::path& path, double most_seconds = std::numeric_limits<double>::infinity());
/// Which part of a sound is read.
struct SoundPart {
  double from = 0, most = std::numeric_limits<double>::infinity();  ///< seconds
};
/// The same of a file's bytes; `where` names them in Errors.
Sound decode_sound(const std::string& bytes, const std::string& where, const SoundPart& part = {});
/// What files end in that read_sound() reads.
inline constexpr const char* sound_endings[] = {".wav",  ".wave", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".aif",
                                                ".aiff", ".aifc", ".au",   ".snd", ".caf", ".w64",  ".rf64"};
/// Whether a path ends as files of sounds do, those that read_sound() refuses with a way out among them (M4A, WMA).
bool may_be_sound(const std::filesystem::path& path);

/// The first `most` samples of `sound` at another rate, by a sinc under a Kaiser window (Smith, Digital Audio
/// Resampling, 2002): 64 zero crossings to each side, β = 9; what lies above 0.955 of the lower rate's half goes.
std::vector<float> resampled(const Sound& sound, int rate, std::size_t most);

}  // namespace headscope
