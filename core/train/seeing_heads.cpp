#include "core/train/seeing_heads.h"

#include <algorithm>

#include "core/base/nth.h"
#include "core/base/special_values.h"
#include "core/model/picture_input.h"
#include "core/train/evaluation.h"
#include "core/train/shapes_task.h"

namespace headscope {

double share_told_right(const Model& model, const HeldOut& data, const Ctx& ctx) {
  std::int64_t right = 0;
  for (const Batch& batch : data.batches)
    for (int row = 0; row < batch.sequences; ++row) {
      const Batch one = row_of(batch, row, batch.length);
      const Tensor logits = run_batch(model, one, ctx).logits.packed();
      const auto scores = logits.values().first(static_cast<std::size_t>(logits.dim(1)));  // at CLS
      right += std::ranges::max_element(scores) - scores.begin() == one.targets.front();
    }
  return static_cast<double>(right) / static_cast<double>(data.targets);
}

std::vector<HeadCard> measure_seeing_heads(const Model& model, const Task& task, int pictures, const Ctx& ctx) {
  const VisionConfig& v = *model.config().vision;
  const ModelDims& dims = model.config().dims;
  std::vector<HeadCard> cards;
  for (int layer = 0; layer < dims.layers; ++layer)
    for (int head = 0; head < dims.heads; ++head) cards.push_back({{layer, head}, {{"object", 0, 0, nan}}, 0});
  const std::vector<std::int32_t> tokens(static_cast<std::size_t>(v.tokens()), 0);
  for (const DrawnPicture& each : dynamic_cast<const ShapesTask&>(task).held_out_pictures(pictures)) {
    Ctx seeing = ctx;
    seeing.patches = patches_of(each.picture, v);
    const ForwardResult found = model.forward(seeing, tokens, nullptr, {.storage = MapStorage::dense});
    for (std::size_t i = 0; i < cards.size(); ++i) {
      HeadScore& score = cards[i].scores.front();
      for (const Index patch : each.patches)
        score.value += static_cast<double>(found.maps[i].weight(0, v.leading + patch)) / pictures;
      score.chance += static_cast<double>(each.patches.size()) / v.tokens() / pictures;
    }
  }
  return cards;
}

}  // namespace headscope
