// How a picture becomes tokens: its patches, what the model is given of each, the token that comes of it; and what
// positions know of the grid.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/render/vision_pictures.h"
#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/analyse/parts.h"
#include "app/workspaces/analyse/reading_page.h"
#include "core/analysis/logit_lens.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "viz/scene/patch_map.h"

namespace headscope {

namespace {

constexpr std::size_t listed = 6;  // of the patches whose positions are most alike

class PatchesPage final : public ReadingPage {
 public:
  void middle(const PageContext& c) override {
    if (!c.results().model.model) return no_reading_yet(c);
    const ModelConfig& config = c.results().model.model->config();
    if (!config.vision)
      return empty_state(c.ui, said("This model reads no pictures"),
                         said("Its tokens are pieces of a text. ViT, DeiT and CLIP cut a picture into patches, each of "
                              "which becomes a token."));
    static constexpr const char* views[] = {to_say("Patches"), to_say("Grid of positions"), to_say("Ask a word")};
    segmented(c.ui, "patches view", views, view_);
    ImGui::Dummy({0, c.ui.px(4)});
    if (view_ == asking) return ask(c);
    if (view_ == 0) {
      tokens_.want(c, {SiteKind::embed}, "", [](const ReadingSource& source, const Ctx&) {
        return patch_tokens(*source.model.model, *source.trace);
      });
      return tokens_.answer() ? patches(c) : no_reading_yet(c);
    }
    if (config.position != PositionKind::learned)
      return empty_state(c.ui, said("This model has no learned positions"), said("There is nothing to compare."));
    alike_.want_of_weights(
        c, "", [](const ReadingSource& source, const Ctx&) { return position_similarity(*source.model.model); });
    alike_.answer() ? positions(c) : no_reading_yet(c);
  }

  void controls(ControlsRecord& r) override {
    r.choice("view", view_, 2);
    token_record(r, "word", word_);
  }

  void right(const PageContext& c) override {
    if (!c.results().model.model || !c.results().model.model->config().vision || !c.trace()) return;
    const VisionConfig& v = *c.results().model.model->config().vision;
    position_control(c, said("the patch whose numbers are listed"));
    view_ == 0 ? patch_facts(c, v) : view_ == asking ? answer_facts(c, v) : position_facts(c, v);
  }

 private:
  /// The patch that is pinned, row by row; none: a token that is learned.
  static std::optional<Index> pinned_patch(const PageContext& c, const VisionConfig& v) {
    const Index row = pinned_row(c, *c.trace());
    return row >= v.leading && row < v.tokens() ? std::optional(row - v.leading) : std::nullopt;
  }

  void patches(const PageContext& c) {
    const auto answer = tokens_.answer();
    section(c.ui, said("THE PICTURE, PATCH BY PATCH"),
            said("the longer a patch's token, the stronger its colour · click pins one"));
    over_picture(c, answer, "norms", [](const auto& of) { return token_norms(of.result, *of.source.model.model); });
  }

  /// Numbers of the answer laid over the picture, in the room that is left; a click pins a patch. `which`: of the
  /// views.
  template <class Reading, class Values>
  void over_picture(const PageContext& c, const std::shared_ptr<const Reading>& answer, const char* which,
                    Values numbers) {
    const double width = std::floor(c.room()), height = std::max(room_below(c) - 30, 200.0);
    const Index pinned = pinned_row(c, *answer->source.trace);
    picture_.want(c.jobs, c.ui, answer, fmt::format("{} {} {} {}", which, width, height, pinned),
                  [answer, numbers, width, height, pinned](const Style& style) {
                    PatchValues values = numbers(*answer);
                    values.query = pinned;
                    PatchMapOptions options;
                    options.room = PatchMapOptions::Room{width, height};
                    return patch_values_scene(*answer->source.trace, values, options, style);
                  });
    SceneViewOptions how;
    how.centered = true;
    const SceneTouch touch = picture_.draw(c.ui, "patches", how, width, height);
    const TokenAt* patch = meaning<TokenAt>(touch.mark);
    if (patch && touch.clicked) c.editor.pin(patch->position);
  }

  void patch_facts(const PageContext& c, const VisionConfig& v) {
    const auto answer = tokens_.answer();
    if (!answer) return;
    const int width = c.results().model.model->config().dims.d_model;
    section(c.ui, said("THE WAY TO TOKENS"));
    fact(c.ui, said("Picture, pixels"), fmt::format("{} × {}", v.width, v.height), nullptr,
         {said("what the model is given: made of the file as its preprocessor_config.json says")});
    fact(c.ui, said("Patches"), fmt::format("{} × {} = {}", v.columns(), v.rows(), v.patches()), nullptr,
         {say("of {0} × {0} pixels", v.patch)});
    fact(c.ui, said("Numbers of a patch"), fmt::format("{}", v.patch_numbers()), nullptr,
         {say("{} channels · {} · {}", v.channels, v.patch, v.patch)});
    fact(c.ui, said("Numbers of a token"), fmt::format("{}", width), nullptr,
         {say("a matrix of {} × {}", v.patch_numbers(), width)});
    fact(c.ui, said("Tokens"), fmt::format("{}", v.tokens()), nullptr,
         {say("{} learned before the patches", v.leading)});
    section(c.ui, said("THIS PATCH"));
    const auto patch = pinned_patch(c, v);
    if (!patch || *patch >= std::ssize(answer->result))
      return note(c.ui, said("A learned token is pinned, which comes of no patch: click one in the picture."));
    const PatchToken& token = nth(answer->result, *patch);
    fact(c.ui, said("Row, column"), fmt::format("{}, {}", token.row, token.column));
    fact(c.ui, said("From pixel"), fmt::format("{}, {}", token.column * v.patch, token.row * v.patch));
    fact(c.ui, said("Mean of its numbers"), fmt::format("{:.4f}", token.mean), nullptr,
         {said("of the levels as the model is given them: (x − mean) ÷ std by channel")});
    fact(c.ui, said("Deviation"), fmt::format("{:.4f}", token.deviation), nullptr, {said("0: one colour everywhere")});
    fact(c.ui, "‖E p + b‖", fmt::format("{:.4f}", token.embedded), nullptr,
         {say("hook_embed[{}], F32: the patch times the matrix, before its position is added", token.position)});
  }

  void ask(const PageContext& c) {
    if (!c.trace()) return no_reading_yet(c);
    if (c.trace()->model.objective == Objective::nothing)
      return empty_state(
          c.ui, said("This model names no classes"),
          said("Its file is without the matrix that would tell what a picture shows: no word can be asked."));
    keep_inside(c, word_);
    const std::int32_t word = word_.id.value_or(-1);  // −1: what the model says that the picture shows
    asked_.want(c, logit_lens_sites(*c.results().model.model), fmt::format("{}", word),
                [word](const ReadingSource& source, const Ctx& ctx) {
                  const std::int32_t of = word < 0 ? most_probable(*source.trace, 0).id : word;
                  return Asked{of, ask_patches(*source.model.model, ctx, *source.trace, of)};
                });
    const auto answer = asked_.answer();
    if (!answer) return no_reading_yet(c);
    const std::string name = token_names(answer->source.model)(answer->result.word);
    section(c.ui, say("WHERE IS “{}”?", name),
            said("the word is the query, patches are the keys: the more weight, the stronger its colour"));
    over_picture(c, answer, "asked", [name](const auto& of) { return asked_values(of.result.patches, name); });
  }

  void answer_facts(const PageContext& c, const VisionConfig& v) {
    section(c.ui, said("THE WORD"), said("a class that the model knows"));
    token_field(c, "##asked word", said("what it says that it sees"), word_);
    const auto answer = asked_.answer();
    if (!answer) return;
    note(c.ui,
         said("Only [CLS] was trained to answer. What a patch says is read with the norm and the matrix of [CLS]."));
    const std::vector<AskedPatch>& found = answer->result.patches;
    const auto strongest = std::ranges::max_element(found, {}, &AskedPatch::weight);
    section(c.ui, said("ANSWERS"));
    fact(c.ui, said("Strongest patch"),
         fmt::format("{}, {}", (strongest->position - v.leading) / v.columns(),
                     (strongest->position - v.leading) % v.columns()),
         nullptr, {said("row, column")});
    fact(c.ui, said("Its weight"), fmt::format("{:.4f}", strongest->weight), nullptr,
         {said("softmax of the scores over all patches"), say("even: {:.4f}", 1 / static_cast<double>(v.patches()))});
    fact(c.ui, said("Patches that say it first"),
         say("{} of {}", std::ranges::count(found, 1, &AskedPatch::rank), v.patches()), nullptr,
         {said("of which no class is more probable, by the logit lens")});
    section(c.ui, said("THIS PATCH"));
    const auto patch = pinned_patch(c, v);
    if (!patch || *patch >= std::ssize(found)) return note(c.ui, said("A learned token is pinned: click a patch."));
    const AskedPatch& pinned = nth(found, *patch);
    fact(c.ui, said("Score"), fmt::format("{:.4f}", pinned.score), nullptr,
         {said("w · norm(x) + b, the class's logit at the patch")});
    fact(c.ui, said("Weight"), fmt::format("{:.4f}", pinned.weight));
    fact(c.ui, said("Place of the class"), fmt::format("{}", pinned.rank));
  }

  void positions(const PageContext& c) {
    const auto answer = alike_.answer();
    const VisionConfig v = *answer->source.model.model->config().vision;
    const double side = std::max(200.0, std::min(std::floor(c.room()), room_below(c) - 30));
    section(c.ui, said("HOW ALIKE POSITIONS ARE"),
            said("at the place of each patch: its cosines with all others · click pins it"));
    const Index pinned = c.trace() ? pinned_patch(c, v).value_or(-1) : -1;
    grid_.want(c.jobs, c.ui, answer, fmt::format("{} {}", side, pinned), [answer, v, side, pinned](const Style& style) {
      return position_grid_scene(answer->result, v, pinned, side, style);
    });
    const SceneTouch touch = wide_scene(c, grid_, "positions");
    if (!touch.mark || touch.mark->id != "map" || !touch.cell) return;
    const Cell* const cell = &*touch.cell;
    const Index high = v.rows() + 1, wide = v.columns() + 1;  // of a grid, and the line behind it
    const Index row = cell->row / high, column = cell->column / wide, y = cell->row % high, x = cell->column % wide;
    if (row >= v.rows() || column >= v.columns() || y >= v.rows() || x >= v.columns()) return;
    const Index patch = row * v.columns() + column, other = y * v.columns() + x;
    tooltip(c.ui,
            {say("patch {}, {} and patch {}, {}", row, column, y, x),
             say("cosine {:.4f}", answer->result.at(patch, other)), said("of the rows of the position embedding")});
    if (touch.clicked) c.editor.pin(v.leading + patch);
  }

  void position_facts(const PageContext& c, const VisionConfig& v) {
    const auto answer = alike_.answer();
    if (!answer) return;
    const GridSimilarity means = grid_similarity(answer->result, v);
    section(c.ui, said("MEAN COSINE"), said("of two different patches"));
    fact(c.ui, said("In the same row"), fmt::format("{:.4f}", means.same_row));
    fact(c.ui, said("In the same column"), fmt::format("{:.4f}", means.same_column));
    fact(c.ui, said("Neighbours"), fmt::format("{:.4f}", means.neighbours), nullptr,
         {said("side by side, or one above the other")});
    fact(c.ui, said("Neither row nor column"), fmt::format("{:.4f}", means.others));
    const auto patch = pinned_patch(c, v);
    section(c.ui, said("MOST ALIKE"), patch ? said("to the pinned patch: row, column") : "");
    if (!patch) return note(c.ui, said("A learned token is pinned: click a patch."));
    std::vector<std::pair<double, Index>> found;
    for (Index other = 0; other < answer->result.dim(1); ++other)
      if (other != *patch) found.emplace_back(-answer->result.at(*patch, other), other);
    std::ranges::sort(found);
    found.resize(std::min(found.size(), listed));
    for (const auto& [less, other] : found)
      fact(c.ui, fmt::format("{}, {}", other / v.columns(), other % v.columns()), fmt::format("{:.4f}", -less));
  }

  struct Asked {
    std::int32_t word = 0;
    std::vector<AskedPatch> patches;
  };
  static constexpr int asking = 2;
  int view_ = 0;
  TokenField word_;
  ReadingJob<Asked> asked_{*this, "read.asked-patches"};
  ReadingJob<std::vector<PatchToken>> tokens_{*this, "read.patches"};
  ReadingJob<Tensor> alike_{*this, "read.positions-grid"};
  ReadingSlot picture_{*this, "scene.patches"}, grid_{*this, "scene.positions-grid"};
};

}  // namespace

std::unique_ptr<Page> make_patches(JobRunner&) {
  return std::make_unique<PatchesPage>();
}

}  // namespace headscope
