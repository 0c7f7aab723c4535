// The residual stream by depth, what each part adds, and the norm before each part against behind each sum: in the
// model that is open, and in blocks with random weights.

#include "core/analysis/residual_stream.h"
#include "core/base/nth.h"
#include "core/edits/post_norm_edit.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "app/render/block_pictures.h"
#include "app/render/head_report.h"
#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/analyse/parts.h"
#include "app/workspaces/analyse/reading_page.h"
#include "core/base/words.h"
#include "viz/scene/map_cells.h"

namespace headscope {

namespace {

enum class View { depth, positions, placement, random };

class ResidualPage final : public ReadingPage {
 public:
  void middle(const PageContext& c) override {
    static constexpr const char* views[] = {to_say("By depth"), to_say("By position"), to_say("Norm before or behind"),
                                            to_say("Random blocks")};
    int view = static_cast<int>(view_);
    if (segmented(c.ui, "residual view", views, view)) view_ = static_cast<View>(view);
    ImGui::Dummy({0, c.ui.px(4)});
    if (!c.results().model.model) return no_reading_yet(c);
    switch (view_) {
      case View::depth:
      case View::positions:
        stream_.want(c, residual_stream_sites(*c.results().model.model), "",
                     [](const ReadingSource& source, const Ctx&) { return read_residual_stream(*source.trace); });
        if (!stream_.answer()) return no_reading_yet(c);
        return view_ == View::depth ? depth(c) : positions(c);
      case View::placement:
        placement_.want(c, {}, "", [](const ReadingSource& source, const Ctx& ctx) {
          return compare_norm_placement(source.model, source.run->request,
                                        Ctx{.backend = ctx.backend, .stop = ctx.stop});
        });
        return placement_.answer() ? placement(c) : no_reading_yet(c);
      case View::random:
        stacks_.want(c, {}, fmt::format("{} {} {}", stack_.layers, stack_.width, stack_.seed),
                     [stack = stack_](const ReadingSource&, const Ctx& ctx) { return random_stacks(stack, ctx); });
        return stacks_.answer() ? random(c) : no_reading_yet(c);
    }
  }

  void controls(ControlsRecord& r) override {
    r.field("view", view_, View::random);
    r.field("layer", layer_, 0, most_layers);
    r.field("blocks", stack_.layers, 1, 32);
    int width = std::countr_zero(static_cast<unsigned>(stack_.width));
    r.field("log2_width", width, 4, 8);
    set_width(width);
    r.field("seed", stack_.seed);
  }
  void right(const PageContext& c) override {
    if (view_ == View::random) return random_controls(c);
    position_control(c, view_ == View::placement ? said("whose numbers stand in the blocks") : said("the quiet line"));
    if (view_ == View::placement) return placement_facts(c);
    const auto answer = stream_.answer();
    if (!answer) return;
    const ResidualStream& s = answer->result;
    const Index row = std::min(pinned_row(c, *answer->source.trace), s.norm.dim(1) - 1), last = s.norm.dim(0) - 1;
    section(c.ui, said("STAGES"), said("‖x‖ here, mean over positions in grey"));
    for (Index stage = 0; stage <= last; ++stage) {
      const std::string mean = fmt::format("{:.2f}", ResidualStream::mean(s.norm, stage));
      std::vector<std::string> words{say("{}[{}], F32, Euclidean norm", name(nth(s.stages, stage).site), row)};
      for (const std::size_t part : s.parts_of(stage)) words.push_back(part_words(s, part, row));
      fact(c.ui, said(nth(s.stages, stage).name), fmt::format("{:.2f}", s.norm.at(stage, row)), nullptr, words, &mean);
    }
    fact(c.ui, said("Last ÷ first, of the means"),
         fmt::format("{:.2f}×", ResidualStream::mean(s.norm, last) / ResidualStream::mean(s.norm, 0)), nullptr,
         {said("mean ‖x‖ leaving the last block ÷ mean ‖x‖ of the embedding")});
    if (!scaled(s)) return;
    fact(c.ui, said("Left of the embedding"), fmt::format("{:.3g}×", s.factors(row)), nullptr,
         {said("product of the learned numbers that multiply the stream behind every block")});
    note(c.ui, said("Behind every block a learned number multiplies the whole stream: what earlier blocks wrote is "
                    "scaled with it, once for each block that follows. As a part it adds (s − 1) x: along the stream "
                    "where s > 1, against it where s < 1."));
  }

 private:
  using PartKind = ResidualStream::Part::Kind;
  static bool scaled(const ResidualStream& s) { return !s.parts.empty() && s.parts.back().kind == PartKind::scale; }

  static std::string part_words(const ResidualStream& s, std::size_t p, Index row) {
    const ResidualStream::Part& part = s.parts[p];
    const double added = static_cast<double>(s.added.at(static_cast<Index>(p), row)),
                 cosine = static_cast<double>(s.cosine.at(static_cast<Index>(p), row));
    if (part.kind == PartKind::scale)
      return say("the whole stream times {:.4f}, a learned number: it adds (s − 1) x, ‖f‖ {:.3f}", s.factor(p, row),
                 added);
    if (s.parts_of(part.stage).size() > 1)  // both of a block whose parts read the same stream
      return say("added by {}: ‖f‖ {:.3f}, cosine with the stream {:+.3f}", part.name, added, cosine);
    return say("added just before: ‖f‖ {:.3f}, cosine with the stream {:+.3f}", added, cosine);
  }

  void depth(const PageContext& c) {
    const auto answer = stream_.answer();
    const Index row = pinned_row(c, *answer->source.trace);
    const double width = std::floor(c.room()), room = room_below(c), half = std::floor((width - 16) / 2);
    const bool more = std::ranges::any_of(answer->result.parts, [](const ResidualStream::Part& part) {
      return part.kind != PartKind::attention && part.kind != PartKind::mlp;
    });
    section(c.ui, said("LENGTH OF THE STREAM"),
            more ? said("after the embedding and every part of every block")
                 : said("after the embedding, every attention and every MLP"));
    chart_slot(c, depth_, "stream", answer, std::to_string(row), width, std::clamp(room * 0.5, 150.0, 380.0),
               [answer, row](const Style& style) { return stream_chart(answer->result, row, style); });
    section(c.ui, said("WHAT EACH PART ADDS"),
            said("how much, and in which direction: +1 = along the stream, 0 = across it"));
    const double height = std::clamp(room_below(c) - 8, 130.0, 300.0);
    chart_slot(c, added_, "added", answer, "", half, height,
               [answer](const Style& style) { return added_chart(answer->result, false, style); });
    ImGui::SameLine(0, c.ui.px(16));
    chart_slot(c, cosine_, "cosine", answer, "", half, height,
               [answer](const Style& style) { return added_chart(answer->result, true, style); });
  }

  void positions(const PageContext& c) {
    const auto answer = stream_.answer();
    const ResidualStream& s = answer->result;
    const double width = std::max(std::floor(c.room()), 80 + 22.0 * static_cast<double>(s.norm.dim(1))),
                 height = std::clamp(room_below(c) - 24, 200.0, 720.0);
    matrix_.want(c.jobs, c.ui, answer, fmt::format("{} {}", width, height),
                 [answer, width, height](const Style& style) {
                   Matrix matrix = stream_matrix(answer->result, answer->source.trace);
                   matrix.width = width, matrix.height = height;
                   matrix.digits = 3;
                   matrix.largest_cell = 60;
                   return matrix_scene(matrix, style);
                 });
    const Index pinned = pinned_row(c, *answer->source.trace);
    const SceneTouch touch = wide_scene(c, matrix_, "positions", [&](const Scene& scene, const SceneTouch& at) {
      frame_column(c, scene, at, pinned, c.ui.theme.accent);
      name_cells(c, scene, at,
                 [](Index stage, Index position) { return fmt::format("Stage {} Position {}", stage, position); });
    });
    const auto cell = matrix_cell(touch);
    if (!cell || cell->row >= s.norm.dim(0) || cell->column >= s.norm.dim(1)) return;
    const LogitLens::Stage& stage = nth(s.stages, cell->row);
    tooltip(c.ui, {say("{} at {} ({}): ‖x‖ {:.4f}", said(stage.name), token_label(*answer->source.trace, cell->column),
                       cell->column, s.norm.at(cell->row, cell->column)),
                   say("{}[{}], F32, Euclidean norm · click pins the position", name(stage.site), cell->column)});
    if (touch.clicked) c.editor.pin(cell->column);
  }

  void placement(const PageContext& c) {
    const auto answer = placement_.answer();
    const NormPlacement& found = answer->result;
    const ModelConfig& config = answer->source.model.model->config();
    const int layer = std::min(layer_, config.dims.layers - 1);
    const Index row = std::min(pinned_row(c, *found.pre.trace), static_cast<Index>(found.kl.size()) - 1);
    const double width = std::floor(c.room()), room = room_below(c);
    section(c.ui, say("BLOCK {} BOTH WAYS", layer), say("lengths at {} ({})", token_label(*found.pre.trace, row), row));
    const double height = std::clamp(room * 0.6, 260.0, 430.0);
    diagram_.want(c.jobs, c.ui, answer, fmt::format("{} {} {} {}", layer, row, width, height),
                  [answer, layer, row, width, height](const Style& style) {
                    FlowDiagram diagram =
                        placement_diagram(answer->result, answer->source.model.model->config(), layer, row);
                    diagram.width = width, diagram.height = height;
                    return flow_diagram_scene(diagram, style);
                  });
    if (diagram_.scene()) diagram_.draw(c.ui, "blocks", {}, width, diagram_.scene()->height);
    section(c.ui, said("LENGTH BY DEPTH"), said("the same weights, both ways"));
    chart_slot(c, placed_, "placement", answer, "", width, std::clamp(room_below(c) - 8, 120.0, 260.0),
               [answer](const Style& style) { return placement_chart(answer->result, style); });
  }

  void placement_facts(const PageContext& c) {
    section(c.ui, said("BLOCK"));
    layer_control(c, layer_);
    const auto answer = placement_.answer();
    if (!answer) return;
    const NormPlacement& found = answer->result;
    section(c.ui, said("WHAT IT DOES"), said("as the model is → norms moved"));
    fact(c.ui, said("Loss on this text"), fmt::format("{} → {}", number(found.pre.loss), number(found.post.loss)),
         nullptr, {say("{}, nats", said(c.predicts().loss)), said("from logits of two whole passes, F32")});
    double kl = 0;
    for (const double each : found.kl) kl += each / static_cast<double>(found.kl.size());
    fact(c.ui, said("KL, mean over positions"), say("{:.3f} nats", kl), nullptr,
         {said("KL(as it is ‖ moved) of each position's distribution"),
          said("full vocabulary, mean over all positions")});
    fact(c.ui, said("KL at the last position"), say("{:.3f} nats", found.kl.back()), nullptr,
         {said("KL(as it is ‖ moved) of that distribution")});
    note(c.ui, said("The model was trained with the norm before each part. Moved behind the sums, the same weights "
                    "meet inputs they never saw: the loss says how much they lean on the order, not which order is "
                    "better. Untrained blocks are compared under Random blocks."));
    std::vector<Intervention> edits = c.state().document.edits;
    const auto moved = [](const Intervention& edit) { return edit.action.as<PostNorm>(); };
    const bool kept = std::ranges::any_of(edits, moved);
    if (!button(c.ui, kept ? to_say("Take the edit back") : to_say("Keep as an edit"))) return;
    if (kept)
      std::erase_if(edits, moved);
    else
      edits.push_back({{}, PostNorm{}});
    c.editor.history().close_step();
    c.editor.set_edits(std::move(edits));
  }

  void random(const PageContext& c) {
    const auto answer = stacks_.answer();
    const double width = std::floor(c.room()), each = std::clamp((room_below(c) - 130) / 3, 110.0, 260.0);
    const auto one = [&](const char* title, const char* remark, SceneSlot& slot, const char* id, StackNumber what) {
      section(c.ui, title, remark);
      chart_slot(c, slot, id, answer, "", width, each,
                 [answer, what](const Style& style) { return stack_chart(answer->result, what, style); });
    };
    one(said("FORWARD"), said("length of the stream"), forward_, "stack norm", StackNumber::residual);
    one(said("BACKWARD"), said("gradient of the loss at the stream"), backward_, "stack gradient",
        StackNumber::residual_gradient);
    one(said("WEIGHTS"), said("gradient of the loss at the MLP's output matrix"), weights_, "stack weights",
        StackNumber::weight_gradient);
  }

  void set_width(int log2) {
    stack_.width = 1 << log2;
    stack_.mlp = 4 * stack_.width;
  }
  void random_controls(const PageContext& c) {
    section(c.ui, said("BLOCKS"), said("GPT-2's, weights N(0, 1/width), gains 1"));
    double layers = stack_.layers, width = std::log2(stack_.width), seed = static_cast<double>(stack_.seed);
    if (slider(c.ui, to_say("Blocks"), layers, {1, 32, 12, false, "", 0}))
      stack_.layers = static_cast<int>(std::lround(layers));
    if (slider(c.ui, to_say("log₂ width"), width, {4, 8, 6, false, "", 0}))
      set_width(static_cast<int>(std::lround(width)));
    if (slider(c.ui, to_say("Seed"), seed, {1, 20, 1, false, "", 0}))
      stack_.seed = static_cast<std::uint64_t>(std::lround(seed));
    const auto answer = stacks_.answer();
    if (!answer) return;
    const RandomStacks& found = answer->result;
    section(c.ui, said("FOUND"), said("norm before, norm behind"));
    const auto two = [](double a, double b) { return fmt::format("{:.3g}, {:.3g}", a, b); };
    fact(c.ui, said("‖x‖, last ÷ first block"),
         two(found.pre.residual.back() / found.pre.residual.front(),
             found.post.residual.back() / found.post.residual.front()),
         nullptr, {said("mean over positions of the stream leaving the block")});
    fact(c.ui, said("‖∂loss/∂W‖, last ÷ first"),
         two(found.pre.weight_gradient.back() / found.pre.weight_gradient.front(),
             found.post.weight_gradient.back() / found.post.weight_gradient.front()),
         nullptr, {said("Frobenius norm, the MLP's output matrix, by the tape that training uses")});
    fact(c.ui, said("‖∂loss/∂W‖ of the last block"),
         two(found.pre.weight_gradient.back(), found.post.weight_gradient.back()), nullptr,
         {said("Xiong et al. 2020: large with the norm behind, which is why such models warm up")});
    fact(c.ui, said("Loss before any training"), two(found.pre.loss, found.post.loss), nullptr,
         {say("{} random tokens of {}, seed {}: mean −ln p of the next", found.stack.tokens, found.stack.vocabulary,
              found.stack.seed),
          fmt::format("ln {} = {:.3f}", found.stack.vocabulary, std::log(found.stack.vocabulary))});
    note(c.ui,
         said("Random weights and random tokens, the same for both: what is seen comes from where the norm stands."));
  }

  View view_ = View::depth;
  ReadingJob<ResidualStream> stream_{*this, "read.residual"};
  ReadingJob<NormPlacement> placement_{*this, "read.placement"};
  ReadingJob<RandomStacks> stacks_{*this, "read.stacks"};
  ReadingSlot depth_{*this, "scene.residual"}, added_{*this, "scene.residual.added"},
      cosine_{*this, "scene.residual.cosine"}, matrix_{*this, "scene.residual.matrix"},
      diagram_{*this, "scene.residual.blocks"}, placed_{*this, "scene.residual.placed"},
      forward_{*this, "scene.residual.forward"}, backward_{*this, "scene.residual.backward"},
      weights_{*this, "scene.residual.weights"};
  RandomStack stack_;
  int layer_ = 0;
};

}  // namespace

std::unique_ptr<Page> make_residual_stream(JobRunner&) {
  return std::make_unique<ResidualPage>();
}

}  // namespace headscope
