#pragma once
// Token streams that are no text. Attention asks for vectors in a row, wherever they come from: a sound's spectrogram
// is cut into patches as a picture is (Gong, Chung & Glass, AST: Audio Spectrogram Transformer, 2021), a protein is a
// row of residues, a token each (Jumper et al., AlphaFold, 2021; Rives et al., 2021). No weights are learnt here: what
// is compared are the patches themselves, and residues by how much more often than by chance evolution exchanges them.
// Thread rule: pure functions.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/attention/mechanism.h"

namespace headscope {

/// How a sound becomes patches.
struct SoundCut {
  double rate = 2000;   ///< samples a second
  int window = 64;      ///< samples of a frame, under a Hann window; half as many bins, from 0 to rate / 2
  int hop = 64;         ///< samples from frame to frame
  int frames = 8;       ///< of a patch
  int bins = 8;         ///< of a patch
  double floor = 1e-3;  ///< added to a power before its logarithm: what is silence
};

/// (frame, window / 2): ln(power + floor), less the mean of all, divided by their standard deviation (AST
/// divides by twice that). Power: |Σ_t w_t x_t e^(−2πi b t / window)|² ÷ (Σ w_t)². REQUIRES at least one whole frame.
Tensor spectrogram(std::span<const double> samples, const SoundCut& cut);

struct OtherTokens {
  MechanismInput input;             ///< every token sees every other
  std::vector<std::string> labels;  ///< of the tokens
};
/// Patches of the spectrogram, one moment after another, and of each moment from the lowest frequency up; a patch's
/// numbers are its row of X, q = k = v = X, scale 1/√d. What does not fill a patch is left out. Labels: "5/250" is the
/// fifth moment, from 250 Hz on.
OtherTokens sound_tokens(std::span<const double> samples, const SoundCut& cut);
/// Pure tones one behind another, `seconds` each, faded in and out over a tenth of that.
std::vector<double> tones(std::span<const double> hertz, double seconds, double rate);

/// Residues in one-letter code (capitals). q is one-hot, k the residue's row of BLOSUM62 (Henikoff & Henikoff 1992),
/// whose numbers are half bits: with the scale ½ ln 2, e^score is how many times more often two residues stand in one
/// another's place in related proteins than chance would have it. v: hydropathy (Kyte & Doolittle 1982), positive =
/// shuns water. Throws Error naming the letter and its place on any other, on none, and on more than 4,096.
OtherTokens residue_tokens(std::string_view sequence);
/// The matrix's number for two residues. REQUIRES letters of the twenty.
int blosum62(char a, char b);

}  // namespace headscope
