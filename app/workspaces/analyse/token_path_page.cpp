// One position from its token id to the next token's probabilities, stage by stage, with its numbers.

#include "core/analysis/token_path.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "app/render/block_pictures.h"
#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/analyse/parts.h"
#include "app/workspaces/analyse/reading_page.h"
#include "core/base/words.h"
#include "core/trace/layer_kinds.h"
#include "viz/scene/map_cells.h"

namespace headscope {

namespace {

struct Way {
  TokenPath path;
  WeightTying tying;
};

class TokenPathPage final : public ReadingPage {
 public:
  void middle(const PageContext& c) override {
    if (!c.results().model.model || !c.trace()) return no_reading_yet(c);
    const Index row = pinned_row(c, *c.trace());
    job_.want(c, token_path_sites(*c.results().model.model), std::to_string(row),
              [row](const ReadingSource& source, const Ctx&) {
                return Way{read_token_path(*source.model.model, *source.trace,
                                           std::min(row, static_cast<Index>(source.trace->tokens.size()) - 1), 8),
                           weight_tying(*source.model.model)};
              });
    const auto answer = job_.answer();
    if (!answer) return no_reading_yet(c);
    static constexpr const char* scales[] = {to_say("Each its own scale"), to_say("One scale for all")};
    segmented(c.ui, "strip scale", scales, scale_);
    ImGui::Dummy({0, c.ui.px(4)});
    const TokenPath& path = answer->result.path;
    section(c.ui, said("THE NUMBERS OF ONE POSITION"),
            say("{} ({}) · a cell is a dimension · + is added to the stream",
                token_label(*answer->source.trace, path.position), path.position));
    const double width = std::floor(c.room());
    slot_.want(c.jobs, c.ui, answer, fmt::format("{} {}", scale_, width),
               [answer, one = scale_ == 1, width](const Style& style) {
                 NumberStrips strips = path_strips(answer->result.path);
                 strips.width = width;
                 strips.one_scale = one;
                 return number_strips_scene(strips, style);
               });
    if (!slot_.scene()) return;
    SceneViewOptions how;
    how.fit_height = false;
    const SceneTouch touch = slot_.draw(c.ui, "path", how, width, slot_.scene()->height);
    const Part* strip = meaning<Part>(touch.mark);
    if (!strip || !touch.cell) return;
    const std::size_t at = strip->index;
    if (at >= path.stages.size() || touch.cell->column >= path.stages[at].row.size()) return;
    const PathStage& stage = path.stages[at];
    const Index d = touch.cell->column;
    std::vector<std::string> lines{
        say("{}, dimension {}: {:.5f}", said(stage.name), d, stage.row.at(d)),
        say("{}[{}, {}] = {}, F32, tensor of {}", name(stage.site), path.position, d, stage.formula, stage.shape)};
    if (stage.site.kind == SiteKind::logits)
      lines[0] = say("logit of {} (id {}): {:.4f}", token_text(answer->source.model, static_cast<std::int32_t>(d)), d,
                     stage.row.at(d));
    tooltip(c.ui, lines);
  }

  void controls(ControlsRecord& r) override { r.choice("scale", scale_, 1); }
  void right(const PageContext& c) override {
    position_control(c, said("whose way is shown"));
    const auto answer = job_.answer();
    if (!answer) return;
    const TokenPath& path = answer->result.path;
    const Objective objective = answer->source.trace->model.objective;
    if (objective != Objective::nothing)  // without logits there is no softmax over a vocabulary
      section(c.ui, said("SOFTMAX"),
              objective == Objective::next_token    ? said("the next token after it")
              : objective == Objective::image_class ? said("the class of the picture")
                                                    : said("the token in its place"));
    std::vector<Bar> bars;
    for (const NextToken& t : path.answers)
      bars.push_back({token_text(answer->source.model, t.id), t.probability / path.answers.front().probability, -1,
                      fmt::format("{:.1f} %", 100 * t.probability),
                      say("e^{:.3f} ÷ Σ e^logit over {} tokens = {:.5f}", t.logit,
                          answer->source.trace->model.dims.vocab, t.probability)});
    bar_list(c.ui, "path answers", bars);
    if (objective == Objective::next_token || objective == Objective::masked_token) tied(c, answer->result.tying);
    section(c.ui, said("SHAPES"));
    const ModelDims& d = answer->source.trace->model.dims;
    fact(c.ui, said("Every stream"), path.stages.front().shape, nullptr,
         {said("position × d_model, the same at every stage")});
    const std::size_t tokens = answer->source.trace->tokens.size();
    if (const std::string width = across_layers(d, &LayerWidths::d_head); d.any_attends())
      fact(c.ui, said("Inside attention"), fmt::format("{} × {} × {}", tokens, d.heads, width), nullptr,
           {said("position × head × d_head: hook_q"),
            fmt::format("hook_z: d_value = {}", d.d_value > 0 ? std::to_string(d.d_value) : width)});
    if (d.any_state_space())
      fact(c.ui, said("Inside the mixer"), fmt::format("{} × {}", tokens, d.d_inner), nullptr,
           {said("position × d_inner: mixer.hook_x, what the state takes in")});
    if (d.d_mlp > 0)
      fact(c.ui, said("Inside the MLP"), fmt::format("{} × {}", tokens, across_layers(d, &LayerWidths::d_mlp)), nullptr,
           {said("position × d_mlp: hook_pre, hook_post")});
    if (objective != Objective::nothing)
      fact(c.ui, said("Logits"), path.stages.back().shape, nullptr, {said("position × vocabulary")});
  }

 private:
  static void tied(const PageContext& c, const WeightTying& tying) {
    section(c.ui, said("WEIGHT TYING"), tying.tied ? said("tied") : said("not tied"));
    const auto megabytes = fmt::format("{:.2f} MB", static_cast<double>(tying.matrix_bytes) / 1e6);
    fact(c.ui, tying.tied ? said("Saved") : said("Tying would save"), megabytes, nullptr,
         {said("one matrix of vocabulary × d_model numbers, as it lies in memory"),
          tying.tied ? said("embedding and unembedding are the same memory")
                     : said("embedding and unembedding lie apart")});
    note(c.ui, tying.tied ? said("The unembedding is the embedding turned round, W_U = W_Eᵀ: a token is likely when "
                                 "the last vector points the way that token is embedded.")
                          : said("This model reads tokens in with one matrix and out with another."));
  }

  ReadingJob<Way> job_{*this, "read.path"};
  ReadingSlot slot_{*this, "scene.path"};
  int scale_ = 0;
};

}  // namespace

std::unique_ptr<Page> make_token_path(JobRunner&) {
  return std::make_unique<TokenPathPage>();
}

}  // namespace headscope
