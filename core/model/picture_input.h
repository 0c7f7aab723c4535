#pragma once
// From any picture to what a vision transformer multiplies: resized, cut, scaled and normalised as Hugging Face's image
// processors do it, then cut into patches.

#include <filesystem>
#include <span>
#include <string>

#include "core/attention/rotary.h"
#include "core/io/picture.h"
#include "core/model/config.h"
#include "core/model/vision_config.h"
#include "core/tensor/backend.h"
#include "core/tensor/tensor.h"
#include "core/trace/patch_picture.h"

namespace headscope {

/// Reads preprocessor_config.json of a model's folder over what `vision` says; without the file that stays. Throws
/// Error naming file and key, also when pictures would become another size than the model reads; one whose positions
/// are interpolated (VisionConfig::stored_side) then reads that size.
void read_preparation(const std::filesystem::path& folder, VisionConfig& vision);
/// The text of a preprocessor_config.json that read_preparation() reads back.
std::string write_preparation(const VisionConfig& vision);

/// The picture in the size that the model reads, 8-bit RGB as people see it.
Picture prepared(const Picture& picture, const VisionConfig& vision);
/// (patch, channels · side · side) of a prepared picture: patches row by row; of each channel by channel, row by row,
/// (level · rescale − mean) ÷ std. Pixels on the right and at the bottom that are no whole patch are not read.
Tensor patches_of(const Picture& prepared, const VisionConfig& vision);
/// The grid over it, without pixels on the right and at the bottom that are no whole patch.
PatchPicture patch_picture(const Picture& prepared, const VisionConfig& vision);

/// The rows of positions that are stored for stored_side × stored_side patches (behind those of `leading` tokens, which
/// stay), for as many as there are: bicubic with a = −0.75 (Keys, Cubic convolution interpolation, 1981), the edges
/// repeated, as torch.nn.functional.interpolate; with VisionConfig::smooth_positions as that with `antialias`.
/// Registers have no rows.
Tensor interpolated_positions(const Tensor& stored, const VisionConfig& vision);

/// DINOv3's rotation (Siméoni et al., DINOv3, 2025), (token, d_head/2) each: the first half of the pairs of a patch
/// turns by 2π · y · base^(−4i/d_head), the second by x, where y and x are its centre's, from −1 to 1 over the picture;
/// leading tokens are not turned.
RotaryTable picture_rotation(const VisionConfig& vision, double base, int d_head);

/// (n, d_model): learned tokens, then the product of every patch and what is added to it; picture by picture. `bias`:
/// undefined where there is none. The ops record on the backend's tape.
Tensor embedded_patches(const VisionConfig& vision, const Tensor& patches, Index n, const Linear& patch,
                        const Linear& bias, std::span<const Linear> leading, Backend& backend);

/// Throws Error unless `tokens` are those of whole pictures of this model, and `patches` theirs.
void check_patches(const ModelConfig& config, std::size_t tokens, const Tensor& patches);

}  // namespace headscope
