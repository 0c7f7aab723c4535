#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/render/past_context_picture.h"
#include "app/render/rotary_picture.h"
#include "app/state/page_picture.h"
#include "app/state/positions_controller.h"
#include "core/base/words.h"
#include "core/model/weights.h"
#include "viz/scene/compose.h"

namespace headscope {

namespace {

/// How far the curve goes: past the trained context, so that what lies beyond is seen.
Index farthest_of(Index tokens, int context) {
  const Index wanted = std::max<Index>(tokens, 128);
  return context > 0 ? std::min<Index>(std::max<Index>(wanted, context * 3 / 2), 4096) : wanted;
}

Scene score_maps(const RotaryView& view, const HeadVectors& vectors, RotaryLayout layout, Room room,
                 const Style& style) {
  const Index most = 256, count = std::min<Index>(vectors.tokens(), most);
  MatrixMap own = head_scores(vectors.q.slice(0, 0, count), vectors.k.slice(0, 0, count), view.config, layout,
                              vectors.scale, view.causal);
  own.title = said("Every query and key of the head");
  own.provenance = vectors.source;
  own.marked = Cell{std::min(view.query, count - 1), std::min(view.key, count - 1)};
  own.numbers = false;
  MatrixMap moved = score_by_positions(view, std::max<Index>(count, 64));
  moved.title = said("This query and this key, moved to every two positions");
  own.width = moved.width = std::floor((room.width - 40) / 2);
  own.height = moved.height = room.height;
  const Scene parts[] = {matrix_map_scene(own, style), matrix_map_scene(moved, style)};
  return beside(parts, 40);
}

PagePicture rotary_page_picture(PositionsController& controller, std::string_view id) {
  const auto view = controller.rotary_view();
  if (!view) return {};
  if (id == "dials")
    return {view, "", [view](Room room, const Style& style) {
              return rotary_dials_picture(*view, room.width, room.height, style);
            }};
  if (id == "wavelengths")
    return {view, "", [view](Room room, const Style& style) {
              return rotary_wavelengths(*view, room.width, room.height, style);
            }};
  if (id == "why")
    return {view, "",
            [view](Room room, const Style& style) { return why_this_score(*view, room.width, room.height, style); }};
  const auto vectors = controller.vectors();
  if (id == "score maps")
    return {view, "", [view, vectors, layout = controller.view.layout](Room room, const Style& style) {
              return score_maps(*view, *vectors, layout, room, style);
            }};
  if (id == "score curve") {
    const Index farthest = farthest_of(vectors->tokens(), view->context);
    return {view, fmt::format("{}", farthest), [view, farthest](Room room, const Style& style) {
              return score_against_distance(*view, farthest, room.width, room.height, style);
            }};
  }
  if (id != "score by positions") return {};
  return {view, "", [view](Room room, const Style& style) {
            constexpr Index count = 64;
            MatrixMap matrix = score_by_positions(*view, count);
            matrix.columns = matrix.rows = "";
            matrix.width = room.width;
            matrix.height = room.height;
            return matrix_map_scene(matrix, style);
          }};
}

PagePicture permuted_page_picture(const PositionsController& controller) {
  return {controller.permuted(), "", [permuted = controller.permuted()](Room room, const Style& style) {
            const PermutedPicture picture{
                permuted->labels,
                permuted->order,
                {permuted->open, permuted->causal, permuted->placed},
                {said("no positions, no mask"), said("no positions, causal mask"), said("own positions, no mask")}};
            Scene scene = permuted_picture(picture, room, style);
            scene.description = said("last residual stream, largest difference over its dimensions");
            return scene;
          }};
}

PagePicture table_page_picture(const std::shared_ptr<const Model>& model, bool centered) {
  if (!model->weights().position_embedding.defined()) return {};
  return {model, fmt::format("{}", centered), [model, centered](Room room, const Style& style) {
            const Tensor table = model->weights().position_embedding;
            return learned_picture(
                table, centered,
                say("position embedding of {}, {} × {}, f32", model->config().name, table.dim(0), table.dim(1)), room,
                style);
          }};
}

}  // namespace

PagePicture positions_picture(PositionsController& controller, std::string_view id) {
  const auto model = controller.results().model.model;
  const auto vectors = controller.vectors();
  if (!model || (!vectors && needs_vectors(id))) return {};
  const PositionsView& v = controller.view;
  if (id == "none") return permuted_page_picture(controller);
  if (id == "learned") return table_page_picture(model, v.centered);
  if (id == "sinusoidal")
    return {model, fmt::format("{} {} {}", v.dimensions, v.positions, v.position),
            [d = v.dimensions, n = v.positions, p = v.position](Room room, const Style& style) {
              return sinusoidal_picture(d, n, p, room, style);
            }};
  if (id == "binary")
    return {model, "", [](Room room, const Style& style) { return binary_picture(16, 4, room, style); }};
  if (id == "shaw")
    return {vectors, fmt::format("{} {}", v.window, v.seed),
            [vectors, window = v.window, seed = v.seed](Room room, const Style& style) {
              return shaw_picture(vectors->q, vectors->k, vectors->scale, window, seed, room, style);
            }};
  if (id == "transformer-xl")
    return {vectors, fmt::format("{}", v.seed), [vectors, seed = v.seed](Room room, const Style& style) {
              return transformer_xl_picture(vectors->q, vectors->k, vectors->scale, seed, room, style);
            }};
  if (id == "deberta")
    return {vectors, fmt::format("{} {}", v.window, v.seed),
            [vectors, span = std::max(2, v.window), seed = v.seed](Room room, const Style& style) {
              return disentangled_picture(vectors->disentangled
                                              ? *vectors->disentangled
                                              : drawn_disentangled(vectors->q, vectors->k, vectors->scale, span, seed),
                                          room, style);
            }};
  if (id == "t5") {
    const std::vector<float> fitted = controller.fitted();
    return {vectors, fmt::format("{} {} {} {}", v.buckets, v.max_distance, v.both_directions, fitted.size()),
            [vectors, fitted, buckets = v.buckets, distance = v.max_distance, both = v.both_directions](
                Room room, const Style& style) {
              return t5_picture(buckets, distance, both, fitted, vectors->tokens(), room, style);
            }};
  }
  if (id == "chunks") {
    const int context = model->config().context, chunk = controller.chunk();
    return {model, fmt::format("{} {}", chunk, context), [chunk, context](Room room, const Style& style) {
              return chunk_picture(chunk, context, Index{4} * context, room, style);
            }};
  }
  if (id == "alibi") {
    const int heads = model->config().dims.heads, head = std::clamp(v.head, 0, heads - 1);
    const auto run = controller.results().run;
    if (!run) return {};
    return {run, fmt::format("{} {}", heads, head),
            [heads, head, n = static_cast<Index>(run->trace->tokens.size())](Room room, const Style& style) {
              return alibi_picture(heads, head, n, room, style);
            }};
  }
  if (const auto run = controller.long_run(); id == "which method when" && run && run->refusal.empty())
    return {run, "", [run](Room room, const Style& style) {
              MatrixMap map = past_context_table(*run);
              map.width = room.width;
              map.height = room.height - 8;
              return matrix_map_scene(map, style);
            }};
  return vectors ? rotary_page_picture(controller, id) : PagePicture();
}

}  // namespace headscope
