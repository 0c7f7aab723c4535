#pragma once
// What an encoder of speech makes rows of (Radford et al., Robust Speech Recognition via Large-Scale Weak Supervision,
// 2023): a sound of fixed length (silence fills it up) as a log-mel spectrogram, then two convolutions over three
// frames each, the second of every other frame: a row for two frames.

namespace headscope {

struct SoundConfig {
  int mels = 80;
  int rows = 1500;        ///< what the encoder reads: half as many as frames
  int rate = 16'000;      ///< samples a second
  int window = 400;       ///< samples of a frame: of a Hann window, and so of the Fourier transform
  int hop = 160;          ///< samples from one frame to the next
  int samples = 480'000;  ///< of the sound, once silence fills it up
  bool operator==(const SoundConfig&) const = default;

  int frames() const { return 2 * rows; }
  double frame_seconds() const { return static_cast<double>(hop) / rate; }
  double row_seconds() const { return 2 * frame_seconds(); }
};

}  // namespace headscope
