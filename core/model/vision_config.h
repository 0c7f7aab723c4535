#pragma once
// What a vision transformer makes tokens of (Dosovitskiy et al., An Image is Worth 16x16 Words, 2021): a picture of
// height × width pixels is cut into patches, row by row; each, channels · patch · patch numbers, is multiplied by one
// matrix, and stands behind `leading` tokens that are learned. And how any picture becomes one of that size.

#include <string>
#include <vector>

#include "core/io/picture.h"

namespace headscope {

/// What Hugging Face's image processors do to a picture, in this order (preprocessor_config.json).
struct PicturePreparation {
  int shortest_edge = 0;                    ///< > 0: the shorter side becomes that long, the other in proportion
  int resize_height = 0, resize_width = 0;  ///< else both as said; 0 = the picture keeps its size
  Resample resample = Resample::bilinear;
  int crop_height = 0, crop_width = 0;                          ///< > 0: cut out of the middle
  double rescale = 1.0 / 255;                                   ///< what levels 0…255 are multiplied by
  std::vector<double> mean{0.5, 0.5, 0.5}, std{0.5, 0.5, 0.5};  ///< by channel: (x − mean) ÷ std; empty = x
  bool operator==(const PicturePreparation&) const = default;
};

struct VisionConfig {
  int height = 224, width = 224, patch = 16, channels = 3;
  int leading = 1;    ///< learned tokens before the patches: CLS, and a distillation token (Touvron et al., DeiT, 2021)
  int registers = 0;  ///< the last of them, which have no positions (Darcet et al., Vision Transformers Need Registers,
                      ///< 2024)
  int class_heads = 1;  ///< the first so many tokens have a matrix to class scores each; scores are their mean
  bool patch_bias = true;
  int stored_side = 0;  ///< > 0: positions are stored for pictures of so many patches a side, and read for others by
                        ///< bicubic interpolation (DINOv2): the size is then what preprocessor_config.json makes
  bool place_biases = false;        ///< scores gain a learned number for each way from patch to patch (BEiT): PlaceBias
  bool smooth_positions = false;    ///< that interpolation weighs all that a place covers, as Resample::bicubic does
  std::vector<std::string> labels;  ///< of the classes; empty = they have numbers
  PicturePreparation preparation;
  bool operator==(const VisionConfig&) const = default;

  int rows() const { return height / patch; }
  int columns() const { return width / patch; }
  int patches() const { return rows() * columns(); }
  int tokens() const { return leading + patches(); }
  /// Numbers of a patch: channel by channel, row by row.
  int patch_numbers() const { return channels * patch * patch; }
};

}  // namespace headscope
