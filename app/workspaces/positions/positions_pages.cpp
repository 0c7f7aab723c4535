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
#include "core/base/words.h"
#include "core/model/weights.h"
#include "viz/color/color_norm.h"

namespace headscope {

namespace {

void heading(const Ui& ui, const PositionMethod& method) {
  {
    const UseFont font(ui, ui.heading());
    ImGui::AlignTextToFramePadding();
    text_line(ui, said_view(method.title));
  }
  ImGui::SameLine(0, ui.px(12));
  ImGui::AlignTextToFramePadding();
  text_line(ui, said_view(method.formula), ui.theme.muted);
}

bool whole(const Ui& ui, const char* label, int& value, int low, int high, int usual) {
  double v = value;
  if (!slider(ui, label, v,
              {static_cast<double>(low), static_cast<double>(high), static_cast<double>(usual), false, "", 0}))
    return false;
  value = static_cast<int>(std::lround(v));
  return true;
}

/// What is left of the middle column.
Room middle_room(const PageContext& c) {
  return {std::floor(c.room()), std::floor(ImGui::GetContentRegionAvail().y / c.ui.scale) - 8};
}

}  // namespace

void PositionsWorkspace::none_middle(const PageContext& c) {
  heading(c.ui, *find_position_method("none"));
  note(
      c.ui,
      said("The first tokens of the text, read forwards and backwards. Without positions and without a mask attention "
           "cannot tell one order from the other: every token's output is the same to the last digits of float32, only "
           "in another place. A causal mask alone breaks that, and so do positions."));
  if (!controller_.permuted()) return empty_state(c.ui, said("Reading the text in both orders …"), "");
  show(c, main_, "none", middle_room(c));
}

void PositionsWorkspace::learned_middle(const PageContext& c) {
  heading(c.ui, *find_position_method("learned"));
  const auto model = c.results().model.model;
  if (!model->weights().position_embedding.defined() && model->config().distances)
    return empty_state(c.ui, said("This model has no table of positions"),
                       said("Its distances have vectors instead, which queries and keys meet: Relative (DeBERTa)."));
  if (!model->weights().position_embedding.defined() && model->config().has_buckets())
    return empty_state(c.ui, said("This model has no table of positions"),
                       model->config().vision
                           ? said("Its scores gain a learned number for each way from patch to patch instead.")
                           : said("Its scores gain a learned number for each bucket of distances instead: Relative (T5 "
                                  "bias)."));
  if (!model->weights().position_embedding.defined() && model->config().position == PositionKind::none)
    return empty_state(c.ui, said("This model has no table of positions"),
                       said("It adds no positions and does not turn its queries and keys: a causal mask, and states "
                            "where it has them, tell it of order. Open tiny-gpt2, on the right, for a model that "
                            "learnt its positions."));
  if (!model->weights().position_embedding.defined())
    return empty_state(c.ui, said("This model has no table of positions"),
                       said("It turns queries and keys instead (RoPE). Open tiny-gpt2, on the right, for a model that "
                            "learnt its positions."));
  show(c, main_, "learned", middle_room(c));
}

void PositionsWorkspace::sinusoidal_middle(const PageContext& c) {
  heading(c.ui, *find_position_method("sinusoidal"));
  show(c, main_, "sinusoidal", middle_room(c));
}

void PositionsWorkspace::binary_middle(const PageContext& c) {
  heading(c.ui, *find_position_method("binary"));
  show(c, main_, "binary", middle_room(c));
}

void PositionsWorkspace::shaw_middle(const PageContext& c) {
  heading(c.ui, *find_position_method("shaw"));
  note(c.ui, say("Queries and keys as chosen on the left, before any rotation. The embeddings are learnt in "
                 "training, which the open "
                 "model was not given; these are drawn from N(0, 1/√d) with seed {}.",
                 controller_.view.seed));
  show(c, main_, "shaw", middle_room(c));
}

void PositionsWorkspace::transformer_xl_middle(const PageContext& c) {
  heading(c.ui, *find_position_method("transformer-xl"));
  note(
      c.ui,
      say("Queries and keys as chosen on the left, before any rotation. u, v and W_R are learnt in training; these are "
          "drawn from N(0, 1/√d) with seed {}.",
          controller_.view.seed));
  show(c, main_, "transformer-xl", middle_room(c));
}

void PositionsWorkspace::deberta_middle(const PageContext& c) {
  heading(c.ui, *find_position_method("deberta"));
  if (controller_.vectors()->disentangled)
    note(c.ui,
         said("This head’s queries and keys, and the vectors that it makes of the model’s table of distances: the "
              "scores as the model has them."));
  else
    note(c.ui, say("Queries and keys as chosen on the left, before any rotation. K_r and Q_r are learnt in training; "
                   "these are drawn from N(0, 1/√d) with seed {}.",
                   controller_.view.seed));
  show(c, main_, "deberta", middle_room(c));
}

void PositionsWorkspace::t5_middle(const PageContext& c) {
  heading(c.ui, *find_position_method("t5"));
  show(c, main_, "t5", middle_room(c));
}

void PositionsWorkspace::chunks_middle(const PageContext& c) {
  heading(c.ui, *find_position_method("chunks"));
  show(c, main_, "chunks", middle_room(c));
}

void PositionsWorkspace::alibi_middle(const PageContext& c) {
  heading(c.ui, *find_position_method("alibi"));
  show(c, main_, "alibi", middle_room(c));
}

void PositionsWorkspace::page_controls(const PageContext& c) {
  const Ui& ui = c.ui;
  PositionsView& v = controller_.view;
  const ModelConfig& config = c.results().model.model->config();
  section(ui, said("THIS METHOD"));
  const PositionMethod& method = *find_position_method(v.method);
  {
    const UseFont font(ui, ui.small());
    note(ui, say("Acts on {}. {}", said_view(method.acts_on), said_view(method.source)));
  }
  if (v.method == "sinusoidal") {
    whole(ui, to_say("position"), v.position, 0, 255, 5);
    whole(ui, to_say("dimensions"), v.dimensions, 4, 64, 32);
    keep_possible(v);
    whole(ui, to_say("positions"), v.positions, 16, 256, 64);
  } else if (v.method == "learned") {
    check_box(ui, to_say("take off what all positions share"), v.centered);
    if (config.position == PositionKind::learned) {
      const int most = std::max(1, config.context - static_cast<int>(c.trace()->tokens.size()));
      whole(ui, to_say("shift the text"), v.table_shift, 0, most, 0);
      v.table_shift = std::min(v.table_shift, most);
      note(ui, said("A table knows places, not distances: moved along it, the same text is read differently."));
    }
  } else if (v.method == "shaw" || (v.method == "deberta" && !controller_.vectors()->disentangled)) {
    whole(ui, to_say("clip at ±w"), v.window, 1, 32, 4);
  } else if (v.method == "t5") {
    whole(ui, to_say("buckets"), v.buckets, 4, 64, 32);
    keep_possible(v);
    whole(ui, to_say("largest distance"), v.max_distance, v.buckets / 2 + 1, 512, 128);
    keep_possible(v);
    check_box(ui, to_say("both directions"), v.both_directions);
    check_box(ui, to_say("run the fit in the model"), v.fitted);
    if (ImGui::IsItemHovered())
      tooltip(ui, {said("the model without its own positions,"),
                   said("with the selected head's numbers added to the scores of all heads")});
  } else if (v.method == "chunks") {
    v.chunk = controller_.chunk();
    whole(ui, to_say("chunk"), v.chunk, 1, std::max(config.context - 1, 2), std::max(config.context * 3 / 4, 1));
    note(ui, said("Within a chunk distances are true; to the chunk before they are true for near tokens; all that lies "
                  "further "
                  "back is met at the largest distance of training. Nothing is learnt anew."));
  } else if (v.method == "alibi") {
    whole(ui, to_say("head"), v.head, 0, std::max(1, config.dims.heads - 1), 0);
    v.head = std::min(v.head, config.dims.heads - 1);
    const auto slopes = alibi_slopes(config.dims.heads);
    fact(ui, said("Slope of this head"), short_number(nth(slopes, v.head), 4), nullptr,
         {"2^(−8h/H), h = 1 … H", said("H = heads of a layer")});
    check_box(ui, to_say("on top of the model's own positions"), v.on_top);
  } else if (v.method == "past") {
    past_controls(c);
  } else if (v.method == "binary") {
    note(
        ui,
        said("Bit b of a position flips every 2^b tokens, hand i of a sinusoid turns every 2π · 10000^(2i/d): the same "
             "idea, one hard, one smooth. "
             "Smooth hands make near positions alike, and a shift a rotation."));
  }
}

}  // namespace headscope
