#pragma once
// What the keys of an encoder of speech are frames of (Radford et al., Robust Speech Recognition via Large-Scale Weak
// Supervision, 2023): stretches of equal length of a sound, one after another, as a log-mel spectrogram shows them.

#include <cmath>
#include <cstdint>

#include "core/tensor/tensor.h"

namespace headscope {

/// Slaney's scale of pitch (Auditory Toolbox, 1998): linear up to 1 kHz, then 27 steps for every factor of 6.4.
inline double mel_of(double hertz) {
  return hertz < 1000 ? 3 * hertz / 200 : 15 + std::log(hertz / 1000) * 27 / std::log(6.4);
}
inline double hertz_of(double mel) {
  return mel < 15 ? 200 * mel / 3 : 1000 * std::exp(std::log(6.4) / 27 * (mel - 15));
}
/// Up to which Whisper's spectrograms reach, whatever the rate.
inline constexpr double highest_pitch = 8000;

struct SoundFrames {
  Tensor log_mel;            ///< (frame, mel), the lowest pitch first: what the model was given
  double frame_seconds = 0;  ///< from one frame to the next
  Index keys = 0;            ///< each stands for as many frames
  double seconds = 0;  ///< of the sound, which may be longer than what is read; silence follows it where it is shorter
  double from = 0;     ///< seconds of its file before that
  std::int64_t written = 0;  ///< when its file was, as the file system counts; not in files

  Index frames() const { return log_mel.dim(0); }
  Index mels() const { return log_mel.dim(1); }
  double whole() const { return from + seconds; }  ///< of the file
  double key_seconds() const { return frame_seconds * static_cast<double>(frames()) / static_cast<double>(keys); }
  /// How high a pitch stands in the spectrogram, 0 (its lower edge) … 1.
  double place_of_pitch(double hertz) const {
    const auto n = static_cast<double>(mels());  // the middle of mel i is pitch (i + 1) ÷ (n + 1) of the highest
    return (mel_of(hertz) / mel_of(highest_pitch) * (n + 1) - 0.5) / n;
  }
  double read_seconds() const {
    return frame_seconds * static_cast<double>(frames());
  }  ///< of which silence may be a part
};

}  // namespace headscope
