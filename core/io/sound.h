#pragma once
// Sounds from files, as one row of numbers, and at another rate.

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace headscope {

struct Sound {
  int rate = 0;                ///< samples a second
  std::vector<float> samples;  ///< the mean of all channels, ±1 at full scale
  double seconds() const { return static_cast<double>(samples.size()) / rate; }
  bool operator==(const Sound&) const = default;
};

/// Not a file: three tones, a chord and a glide between pauses, made by a formula, for when any sound will do.
inline constexpr const char* built_in_sound = "builtin:tones";

/// WAV: whole numbers of 8 to 32 bits or floats of 32 or 64, of any rate and number of channels. A data chunk that
/// says no length (written to a pipe) reaches to the end of the file. Throws Error naming file, chunk and numbers on
/// anything else, on a file that ends too early, and on more than 1 GiB.
Sound read_sound(const std::filesystem::path& path);
/// The same of a file's bytes; `where` names them in Errors.
Sound decode_sound(const std::string& bytes, const std::string& where);
/// Whether a path ends as files do that read_sound() reads.
bool may_be_sound(const std::filesystem::path& path);

/// The first `most` samples of `sound` at another rate, by a sinc under a Kaiser window (Smith, Digital Audio
/// Resampling, 2002): 64 zero crossings to each side, β = 9; what lies above 0.955 of the lower rate's half goes.
std::vector<float> resampled(const Sound& sound, int rate, std::size_t most);

}  // namespace headscope
