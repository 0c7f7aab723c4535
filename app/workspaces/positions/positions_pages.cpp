// The pages of every way of knowing positions but the rotary one.

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "app/render/positions_picture.h"
#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/positions/positions_workspace.h"
#include "core/attention/positions/alibi.h"
#include "core/attention/positions/position_methods.h"
#include "core/base/nth.h"
#include "core/model/weights.h"
#include "viz/color/color_norm.h"

namespace headscope {

namespace {

void heading(const Ui& ui, const PositionMethod& method) {
  {
    const UseFont font(ui, ui.heading());
    ImGui::AlignTextToFramePadding();
    ImGui::TextUnformatted(std::string(method.title).c_str());
  }
  ImGui::SameLine(0, ui.px(12));
  ImGui::AlignTextToFramePadding();
  text_line(ui, method.formula, ui.theme.muted);
}

bool whole(const Ui& ui, const char* label, int& value, int low, int high, int usual) {
  double v = value;
  if (!slider(ui, label, v,
              {static_cast<double>(low), static_cast<double>(high), static_cast<double>(usual), false, "", 0}))
    return false;
  value = static_cast<int>(std::lround(v));
  return true;
}

}  // namespace

void PositionsWorkspace::none_middle(const PageContext& c) {
  heading(c.ui, *find_position_method("none"));
  const auto permuted = controller_.permuted();
  note(c.ui,
       "The first tokens of the text, read forwards and backwards. Without positions and without a mask attention "
       "cannot tell one order from the other: every token's output is the same to the last digits of float32, only "
       "in another place. A causal mask alone breaks that, and so do positions.");
  if (!permuted) return empty_state(c.ui, "Reading the text in both orders …", "");
  const double width = std::floor(c.room()), height = std::floor(ImGui::GetContentRegionAvail().y / c.ui.scale) - 8;
  show(c, main_, "none", permuted, "", width, height, [permuted, width, height](const Style& style) {
    PermutedPicture picture{permuted->labels,
                            permuted->order,
                            {permuted->open, permuted->causal, permuted->placed},
                            {"no positions, no mask", "no positions, causal mask", "own positions, no mask"}};
    Scene scene = permuted_picture(picture, {width, height}, style);
    scene.description = "last residual stream, largest difference over its dimensions";
    return scene;
  });
}

void PositionsWorkspace::learned_middle(const PageContext& c) {
  heading(c.ui, *find_position_method("learned"));
  const auto model = c.results().model.model;
  if (!model->weights().position_embedding.defined())
    return empty_state(c.ui, "This model has no table of positions",
                       "It turns queries and keys instead (RoPE). Open tiny-gpt2, on the right, for a model that "
                       "learnt its positions.");
  const double width = std::floor(c.room()), height = std::floor(ImGui::GetContentRegionAvail().y / c.ui.scale) - 8;
  const bool centered = controller_.view.centered;
  show(c, main_, "learned", model, fmt::format("{}", centered), width, height,
       [model, centered, width, height](const Style& style) {
         const Tensor table = model->weights().position_embedding;
         return learned_picture(
             table, centered,
             fmt::format("position embedding of {}, {} × {}, f32", model->config().name, table.dim(0), table.dim(1)),
             {width, height}, style);
       });
}

void PositionsWorkspace::sinusoidal_middle(const PageContext& c) {
  heading(c.ui, *find_position_method("sinusoidal"));
  const auto source = c.results().model.model;
  const PositionsView& v = controller_.view;
  const double width = std::floor(c.room()), height = std::floor(ImGui::GetContentRegionAvail().y / c.ui.scale) - 8;
  show(c, main_, "sinusoidal", source, fmt::format("{} {} {}", v.dimensions, v.positions, v.position), width, height,
       [d = v.dimensions, n = v.positions, p = v.position, width, height](const Style& style) {
         return sinusoidal_picture(d, n, p, {width, height}, style);
       });
}

void PositionsWorkspace::binary_middle(const PageContext& c) {
  heading(c.ui, *find_position_method("binary"));
  const double width = std::floor(c.room()), height = std::floor(ImGui::GetContentRegionAvail().y / c.ui.scale) - 8;
  show(c, main_, "binary", c.results().model.model, "", width, height, [width, height](const Style& style) {
    return binary_picture(16, 4, {width, height}, style);
  });
}

void PositionsWorkspace::shaw_middle(const PageContext& c) {
  heading(c.ui, *find_position_method("shaw"));
  note(c.ui, fmt::format("Queries and keys as chosen on the left, before any rotation. The embeddings are learnt in "
                         "training, which the open "
                         "model was not given; these are drawn from N(0, 1/√d) with seed {}.",
                         controller_.view.seed));
  const auto vectors = controller_.vectors();
  const double width = std::floor(c.room()), height = std::floor(ImGui::GetContentRegionAvail().y / c.ui.scale) - 8;
  show(c, main_, "shaw", vectors, fmt::format("{} {}", controller_.view.window, controller_.view.seed), width, height,
       [vectors, window = controller_.view.window, seed = controller_.view.seed, width, height](const Style& style) {
         return shaw_picture(vectors->q, vectors->k, vectors->scale, window, seed, {width, height}, style);
       });
}

void PositionsWorkspace::transformer_xl_middle(const PageContext& c) {
  heading(c.ui, *find_position_method("transformer-xl"));
  note(
      c.ui,
      fmt::format(
          "Queries and keys as chosen on the left, before any rotation. u, v and W_R are learnt in training; these are "
          "drawn from N(0, 1/√d) with seed {}.",
          controller_.view.seed));
  const auto vectors = controller_.vectors();
  const double width = std::floor(c.room()), height = std::floor(ImGui::GetContentRegionAvail().y / c.ui.scale) - 8;
  show(c, main_, "transformer-xl", vectors, fmt::format("{}", controller_.view.seed), width, height,
       [vectors, seed = controller_.view.seed, width, height](const Style& style) {
         return transformer_xl_picture(vectors->q, vectors->k, vectors->scale, seed, {width, height}, style);
       });
}

void PositionsWorkspace::t5_middle(const PageContext& c) {
  heading(c.ui, *find_position_method("t5"));
  const auto vectors = controller_.vectors();
  const PositionsView& v = controller_.view;
  const double width = std::floor(c.room()), height = std::floor(ImGui::GetContentRegionAvail().y / c.ui.scale) - 8;
  const std::vector<float> fitted = controller_.fitted();
  show(c, main_, "t5", vectors, fmt::format("{} {} {} {}", v.buckets, v.max_distance, v.both_directions, fitted.size()),
       width, height,
       [vectors, fitted, buckets = v.buckets, distance = v.max_distance, both = v.both_directions, width,
        height](const Style& style) {
         return t5_picture(buckets, distance, both, fitted, vectors->tokens(), {width, height}, style);
       });
}

void PositionsWorkspace::chunks_middle(const PageContext& c) {
  heading(c.ui, *find_position_method("chunks"));
  const auto model = c.results().model.model;
  const int context = model->config().context, chunk = controller_.chunk();
  const double width = std::floor(c.room()), height = std::floor(ImGui::GetContentRegionAvail().y / c.ui.scale) - 8;
  show(c, main_, "chunks", model, fmt::format("{} {}", chunk, context), width, height,
       [chunk, context, width, height](const Style& style) {
         return chunk_picture(chunk, context, Index{4} * context, {width, height}, style);
       });
}

void PositionsWorkspace::alibi_middle(const PageContext& c) {
  heading(c.ui, *find_position_method("alibi"));
  const auto vectors = controller_.vectors();
  const int heads = c.results().model.model->config().dims.heads,
            head = std::clamp(controller_.view.head, 0, heads - 1);
  const double width = std::floor(c.room()), height = std::floor(ImGui::GetContentRegionAvail().y / c.ui.scale) - 8;
  show(c, main_, "alibi", vectors, fmt::format("{} {}", heads, head), width, height,
       [heads, head, n = vectors->tokens(), width, height](const Style& style) {
         return alibi_picture(heads, head, n, {width, height}, style);
       });
}

void PositionsWorkspace::page_controls(const PageContext& c) {
  const Ui& ui = c.ui;
  PositionsView& v = controller_.view;
  const ModelConfig& config = c.results().model.model->config();
  section(ui, "THIS METHOD");
  const PositionMethod& method = *find_position_method(v.method);
  {
    const UseFont font(ui, ui.small());
    note(ui, fmt::format("Acts on {}. {}", method.acts_on, method.source));
  }
  if (v.method == "sinusoidal") {
    whole(ui, "position", v.position, 0, 255, 5);
    whole(ui, "dimensions", v.dimensions, 4, 64, 32);
    v.dimensions -= v.dimensions % 2;
    whole(ui, "positions", v.positions, 16, 256, 64);
  } else if (v.method == "learned") {
    ImGui::Checkbox("take off what all positions share", &v.centered);
    if (config.position == PositionKind::learned) {
      const int most = std::max(1, config.context - static_cast<int>(c.trace()->tokens.size()));
      whole(ui, "shift the text", v.table_shift, 0, most, 0);
      v.table_shift = std::min(v.table_shift, most);
      note(ui, "A table knows places, not distances: moved along it, the same text is read differently.");
    }
  } else if (v.method == "shaw") {
    whole(ui, "clip at ±w", v.window, 1, 32, 4);
  } else if (v.method == "t5") {
    whole(ui, "buckets", v.buckets, 4, 64, 32);
    v.buckets -= v.buckets % 4;
    whole(ui, "largest distance", v.max_distance, v.buckets / 2 + 1, 512, 128);
    v.max_distance = std::max(v.max_distance, v.buckets / 2 + 1);
    ImGui::Checkbox("both directions", &v.both_directions);
    ImGui::Checkbox("run the fit in the model", &v.fitted);
    if (ImGui::IsItemHovered())
      tooltip(ui, {"the model without its own positions,",
                   "with the selected head's numbers added to the scores of all heads"});
  } else if (v.method == "chunks") {
    v.chunk = controller_.chunk();
    whole(ui, "chunk", v.chunk, 1, std::max(config.context - 1, 2), std::max(config.context * 3 / 4, 1));
    note(ui,
         "Within a chunk distances are true; to the chunk before they are true for near tokens; all that lies further "
         "back is met at the largest distance of training. Nothing is learnt anew.");
  } else if (v.method == "alibi") {
    whole(ui, "head", v.head, 0, std::max(1, config.dims.heads - 1), 0);
    v.head = std::min(v.head, config.dims.heads - 1);
    const auto slopes = alibi_slopes(config.dims.heads);
    fact(ui, "Slope of this head", short_number(nth(slopes, v.head), 4), nullptr,
         {"2^(−8h/H), h = 1 … H", "H = heads of a layer"});
    ImGui::Checkbox("on top of the model's own positions", &v.on_top);
  } else if (v.method == "past") {
    past_controls(c);
  } else if (v.method == "binary") {
    note(ui,
         "Bit b of a position flips every 2^b tokens, hand i of a sinusoid turns every 2π · 10000^(2i/d): the same "
         "idea, one hard, one smooth. "
         "Smooth hands make near positions alike, and a shift a rotation.");
  }
}

}  // namespace headscope
