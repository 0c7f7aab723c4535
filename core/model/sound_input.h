#pragma once
// From any sound to what an encoder of speech reads: cut or filled up, then a log-mel spectrogram as Hugging Face's
// WhisperFeatureExtractor makes it.

#include <filesystem>
#include <span>
#include <string>

#include "core/io/sound.h"
#include "core/model/config.h"
#include "core/tensor/backend.h"
#include "core/tensor/tensor.h"
#include "core/trace/sound_frames.h"

namespace headscope {

/// Reads preprocessor_config.json of a model's folder (or feature_extractor of its processor_config.json) over what
/// `sound` says; without either file that stays. Throws Error naming file and key, also when its frames would be others
/// than the model's.
void read_feature_extraction(const std::filesystem::path& folder, SoundConfig& sound);
/// The text of a preprocessor_config.json that read_feature_extraction() reads back.
std::string write_feature_extraction(const SoundConfig& sound);

/// (frame, mel) of samples at the model's rate, of which the first `samples` are read; silence follows. The power of
/// the Fourier transform of every Hann window (the sound mirrored at both ends), through triangles of equal area on
/// Slaney's scale of pitch up to 8 kHz, log₁₀ of at least 10⁻¹⁰, no lower than 8 below the largest; (x + 4) ÷ 4.
Tensor log_mel(std::span<const float> samples, const SoundConfig& sound);
/// The triangles, (mel, bin of window ÷ 2 + 1), as transformers.audio_utils.mel_filter_bank makes them.
Tensor mel_filters(const SoundConfig& sound);

/// A sound as a model reads it.
SoundFrames heard(const Sound& sound, const SoundConfig& config);
/// So much of a file is enough for that: what the model reads, and what the change of rate looks at behind it.
double seconds_to_hear(const SoundConfig& config);

/// Throws Error unless `rows` are those of one sound of this model, and `frames` its spectrogram.
void check_sound(const ModelConfig& config, std::size_t rows, const Tensor& frames);

/// gelu of one convolution after the other of x (frame, channels), over three frames, of the i-th every (i + 1)-th,
/// zeros beyond both ends. A convolution is the product with a row that has of each channel its three frames side by
/// side, as a kernel (out, channel, 3) is stored. No gradient goes through them.
Tensor convolved(Backend& backend, Tensor x, std::span<const Linear> convolutions);

}  // namespace headscope
