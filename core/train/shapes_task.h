#pragma once
// What a vision transformer learns from: drawn pictures (core/io/shapes.h), each with the class of its warm shape.

#include "core/io/shapes.h"
#include "core/model/vision_config.h"
#include "core/train/tasks.h"

namespace headscope {

class ShapesTask final : public Task {
 public:
  explicit ShapesTask(const TaskSettings& settings);
  Batch batch(std::int64_t step, int sequences, int length) const override;
  std::string probe_text(int) const override { return ""; }

  /// Of which no model learns any.
  std::vector<DrawnPicture> held_out_pictures(int count) const;
  /// How its pictures become patches, and what the classes are called.
  static VisionConfig vision(const TaskSettings& settings);

 private:
  HeldOut draw_held_out(int rows, int sequences, int length) const override;
  Batch batch_of(const std::vector<DrawnPicture>& pictures) const;
};

}  // namespace headscope
