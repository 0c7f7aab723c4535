#include "core/train/shapes_task.h"

#include <algorithm>

#include "core/model/picture_input.h"
#include "core/text/class_names.h"
#include "core/train/batches.h"

namespace headscope {

VisionConfig ShapesTask::vision(const TaskSettings& settings) {
  VisionConfig v;
  v.height = v.width = settings.side;
  v.patch = settings.patch;
  v.labels = shape_names();
  v.preparation.resize_height = v.preparation.resize_width = settings.side;
  return v;
}

ShapesTask::ShapesTask(const TaskSettings& settings) : Task(settings, class_names(shape_names())) {}

/// The class is the target at CLS, the first token of each picture; nothing else is asked.
Batch ShapesTask::batch_of(const std::vector<DrawnPicture>& pictures) const {
  const VisionConfig v = vision(settings());
  Batch out{static_cast<int>(pictures.size()), v.tokens(), {}, {}};
  out.patches = Tensor::uninitialized({static_cast<Index>(pictures.size()) * v.patches(), v.patch_numbers()});
  float* to = out.patches.mutable_data();
  for (const DrawnPicture& each : pictures) {
    const Tensor numbers = patches_of(each.picture, v);
    to = std::ranges::copy(numbers.values(), to).out;
    for (int i = 0; i < v.tokens(); ++i) {
      out.tokens.push_back(0);  // which are all the same: patches say what there is
      out.targets.push_back(i == 0 ? each.shape : -1);
    }
  }
  return out;
}

Batch ShapesTask::batch(std::int64_t step, int sequences, int) const {
  Random numbers = random(Stream::train, step);
  std::vector<DrawnPicture> pictures;
  for (int i = 0; i < sequences; ++i)
    pictures.push_back(draw_shapes(numbers, settings().side, settings().patch, settings().distractors));
  return batch_of(pictures);
}

std::vector<DrawnPicture> ShapesTask::held_out_pictures(int count) const {
  Random numbers = random(Stream::held_out);
  std::vector<DrawnPicture> pictures;
  for (int i = 0; i < count; ++i)
    pictures.push_back(draw_shapes(numbers, settings().side, settings().patch, settings().distractors));
  return pictures;
}

HeldOut ShapesTask::draw_held_out(int rows, int sequences, int) const {
  const std::vector<DrawnPicture> pictures = held_out_pictures(rows);
  HeldOut out;
  for (std::size_t at = 0; at < pictures.size(); at += static_cast<std::size_t>(sequences))
    out.batches.push_back(batch_of(
        {pictures.begin() + static_cast<std::ptrdiff_t>(at),
         pictures.begin() +
             static_cast<std::ptrdiff_t>(std::min(at + static_cast<std::size_t>(sequences), pictures.size()))}));
  out.targets = counted(out.batches);
  out.floor = 0;  // a picture determines its class
  return out;
}

}  // namespace headscope
