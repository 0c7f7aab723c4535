#include "core/engine/edited_weights.h"

#include "core/engine/edit_rows.h"
#include "core/engine/weight_edit.h"

namespace headscope {

ModelWeights weights_written_with(const Model& model, const std::vector<Intervention>& edits, int tokens,
                                  std::optional<int> position) {
  ModelWeights weights = model.weights();
  const ModelDims& dims = model.config().dims;
  for (const Intervention& edit : edits) {
    const auto* scale = std::get_if<ScaleSingular>(&edit.action);
    if (!edit.enabled || !scale || scale->matrix != WeightMatrix::o) continue;
    const PositionRange range = edit.target.positions.value_or(PositionRange{});
    const int first = from_end(range.first, tokens), last = from_end(range.last, tokens);
    if (position ? *position < first || *position > last : first > 0 || last < tokens - 1) continue;
    for (int layer = 0; layer < dims.layers; ++layer) {
      if (edit.target.layer.value_or(layer) != layer) continue;
      const auto scaled = scaled_projection(model, layer, *scale, "edit " + describe(edit));
      if (!scaled) continue;
      auto& heads = weights.blocks[static_cast<std::size_t>(layer)].heads;
      for (std::size_t head = 0; head < heads.size(); ++head)
        heads[head].o =
            scaled->weight.slice(0, static_cast<Index>(head) * dims.d_head, static_cast<Index>(head + 1) * dims.d_head);
    }
  }
  return weights;
}

}  // namespace headscope
