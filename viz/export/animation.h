#pragma once
// Pictures one after another as one file: GIF, which every program for slides plays, and APNG, in which no colour is
// lost. Frames of different sizes stand at the upper left of the largest, on the first one's ground.

#include <string>
#include <vector>

#include "viz/export/png.h"

namespace headscope {

/// What the application extension of a GIF that holds its recipe is called: name and version, 11 bytes.
inline constexpr const char* gif_recipe_name = "HEADSCOPE01";

/// Plays for ever. Up to 256 colours of all frames together are kept as they are, more become 256 by median cut
/// (Heckbert, Color Image Quantization for Frame Buffer Display, 1982). `seconds` a frame, rounded to hundredths, at
/// least 0.02, below which browsers slow down. Opaque. Throws Error without frames, on more than 65,535 pixels a side,
/// and when giflib reports a failure. REQUIRES every frame's rgba to be of its size.
std::string encode_gif(std::vector<Image> frames, double seconds, const std::string& recipe = {});
/// Animated PNG (Portable Network Graphics Specification, third edition, 2025): a viewer that knows nothing of it shows
/// the first frame. Throws Error without frames and as encode_png().
std::string encode_apng(std::vector<Image> frames, double seconds, const FileNote& note = {});

}  // namespace headscope
