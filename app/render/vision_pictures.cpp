#include "app/render/vision_pictures.h"

#include <algorithm>
#include <utility>

#include "core/base/nth.h"
#include "core/base/words.h"
#include "viz/scene/compose.h"
#include "viz/scene/matrix_map.h"

namespace headscope {

Scene position_grid_scene(const Tensor& similarity, const VisionConfig& v, Index marked, double side,
                          const Style& style) {
  const Index rows = v.rows(), columns = v.columns();
  // Between two grids a line of cells stays empty.
  const Index high = rows * (rows + 1) - 1, wide = columns * (columns + 1) - 1;
  MatrixMap map;
  map.values = Tensor::zeros({high, wide});
  map.masked.assign(static_cast<std::size_t>(high * wide), 1);
  map.row_labels.assign(static_cast<std::size_t>(high), "");
  map.column_labels.assign(static_cast<std::size_t>(wide), "");
  for (Index r = 0; r < rows; ++r)
    for (Index c = 0; c < columns; ++c)
      for (Index i = 0; i < rows; ++i)
        for (Index j = 0; j < columns; ++j) {
          const Index y = r * (rows + 1) + i, x = c * (columns + 1) + j;
          map.values.ref(y, x) = similarity.at(r * columns + c, i * columns + j);
          map.masked[static_cast<std::size_t>(y * wide + x)] = 0;
        }
  for (Index r = 0; r < rows; ++r)
    map.row_labels[static_cast<std::size_t>(r * (rows + 1) + rows / 2)] = std::to_string(r);
  for (Index c = 0; c < columns; ++c)
    map.column_labels[static_cast<std::size_t>(c * (columns + 1) + columns / 2)] = std::to_string(c);
  map.rows = said("row of the patch"), map.columns = said("column of the patch");
  map.bar = said("cosine with the position of every other patch");
  map.low = -1, map.high = 1;
  map.numbers = map.mask_legend = false;
  map.width = map.height = side;
  if (marked >= 0)
    map.marked =
        Cell{marked / columns * (rows + 1) + marked / columns, marked % columns * (columns + 1) + marked % columns};
  map.provenance = said("cos(p_i, p_j) of the learned position embeddings");
  return matrix_map_scene(map, style);
}

PatchValues token_norms(const std::vector<PatchToken>& patches, const Model& model) {
  const VisionConfig& v = *model.config().vision;
  std::vector<double> norms(static_cast<std::size_t>(v.leading), 0.0);
  for (const PatchToken& token : patches) norms.push_back(token.embedded);
  PatchValues values{
      std::move(norms), said("Patches"), "‖E p + b‖[:]", said("norm of the token that a patch becomes"), {}};
  values.caption = say("{} numbers of each become {}", v.patch_numbers(), model.config().dims.d_model);
  return values;
}

PatchValues asked_values(const std::vector<AskedPatch>& asked, const std::string& word) {
  PatchValues values{{}, say("Where is “{}”?", word), said("softmax over patches"), said("weight of the patch"), {}};
  values.by_key.assign(asked.empty() ? 0 : static_cast<std::size_t>(asked.front().position), 0.0);
  for (const AskedPatch& each : asked) values.by_key.push_back(each.weight);
  values.caption = say("softmax of w · norm(x) over {} patches; an even weight: {:.3f}", asked.size(),
                       1 / static_cast<double>(asked.size()));
  values.says = [asked, first = asked.empty() ? 0 : asked.front().position](Index key, double value) {
    if (key < first) return std::string(said("a learned token: not asked"));
    const AskedPatch& patch = nth(asked, key - first);
    return say("weight {:.4f}, score {:.3f}, #{} of the classes here", value, patch.score, patch.rank);
  };
  return values;
}

Scene patch_atlas_scene(const Trace& trace, Index query, bool smooth, double width, const Style& style) {
  const int heads = std::max(trace.model.dims.heads, 1);
  const double gap = 8, side = std::max(96.0, (width - gap * (heads - 1)) / heads);
  std::vector<Scene> layers, of_layer;
  for (const AttentionMap& map : trace.maps) {
    PatchMapOptions options{.head = map.id(), .query = query, .smooth = smooth};
    options.room = PatchMapOptions::Room{side, side + 84 * style.theme.text_scale};
    Scene of_head = patch_map_scene(trace, options, style);
    const std::string name = to_string(HeadId{map.layer(), map.head()});
    const Font font = style.theme.body();
    Scene named;
    named.width = of_head.width, named.height = of_head.height + 20;
    named.add({Text{{slim_margin, 16}, name, font, style.theme.text, Anchor::start, 0}, "label", ""});
    place(named, of_head, 0, 20);
    of_layer.push_back(std::move(named));
    if (static_cast<int>(of_layer.size()) < heads) continue;
    layers.push_back(beside(of_layer, gap));
    of_layer.clear();
  }
  if (!of_layer.empty()) layers.push_back(beside(of_layer, gap));
  Scene all = below(layers, gap);
  all.background = style.theme.background;
  all.title = say("{}: where query {} looks, layers down, heads across", trace.model.name, query);
  return all;
}

}  // namespace headscope
