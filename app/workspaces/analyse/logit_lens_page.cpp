// What every residual stream would answer, and the way of one token through the layers.

#include "core/analysis/logit_lens.h"
#include "core/base/nth.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "app/widgets/controls.h"
#include "app/workspaces/analyse/parts.h"
#include "app/workspaces/analyse/reading_page.h"
#include "core/base/words.h"
#include "viz/scene/map_cells.h"

namespace headscope {

namespace {

enum class Follow { next, answer, token };

class LogitLensPage final : public ReadingPage {
 public:
  void middle(const PageContext& c) override {
    keep_up(c);
    if (!job_.answer()) return no_reading_yet(c);
    static constexpr const char* colors[] = {to_say("Top token"), to_say("Entropy"), to_say("KL to answer"),
                                             to_say("Followed"), to_say("Rank")};
    int color = static_cast<int>(color_);
    if (segmented(c.ui, "lens colour", colors, color)) color_ = static_cast<LensColor>(color);
    ImGui::Dummy({0, c.ui.px(4)});
    table(c);
    trajectory(c);
  }

  void controls(ControlsRecord& r) override {
    r.field("color", color_, LensColor::rank);
    r.field("follow", follow_, Follow::token);
    token_record(r, "token", field_);
  }
  void right(const PageContext& c) override {
    section(c.ui, said("FOLLOW"), said("one token through the stages"));
    static constexpr const char* modes[] = {to_say("next in text"), to_say("answer"), to_say("a token")};
    int mode = static_cast<int>(follow_);
    if (segmented(c.ui, "follow", modes, mode, ImGui::GetContentRegionAvail().x)) follow_ = static_cast<Follow>(mode);
    if (token_field(c, "##followed token", said("a token, or click a cell"), field_) && field_.id)
      follow_ = Follow::token;
    position_control(c, said("whose way is drawn"));
    const auto& answer = job_.answer();
    if (!answer) return;
    const LogitLens& lens = answer->result;
    const Index position = pinned_row(c, *answer->source.trace);
    section(c.ui, said("STAGES"), said("top token, rank of the followed"));
    const auto name = token_names(answer->source.model);
    for (Index s = 0; s < static_cast<Index>(lens.stages.size()); ++s) {
      const LogitLens::Stage& stage = nth(lens.stages, s);
      const NextToken& top = lens.cell(s, position)[0];
      const std::string rank = lens.rank(s, position) > 0 ? fmt::format("#{}", lens.rank(s, position)) : "–";
      fact(c.ui, said(stage.name), fmt::format("{} {:.1f} %", name(top.id), 100 * top.probability), nullptr,
           cell_words(*answer, s, position), &rank);
    }
  }

 private:
  using Reading = ReadingJob<LogitLens>::Reading;

  void keep_up(const PageContext& c) {
    if (!c.results().model.model) return;
    keep_inside(c, field_);
    std::int32_t token = -1;
    if (follow_ == Follow::token && field_.id) token = *field_.id;
    const bool answer = follow_ == Follow::answer;
    const Index row = c.trace() ? pinned_row(c, *c.trace()) : 0;
    job_.want(c, logit_lens_sites(*c.results().model.model), fmt::format("{} {}", token, answer ? row : -1),
              [token, answer, row](const ReadingSource& source, const Ctx& ctx) {
                const std::int32_t of = answer ? most_probable(*source.trace, static_cast<int>(row)).id : token;
                return logit_lens(*source.model.model, ctx, *source.trace, follow(*source.trace, of));
              });
  }

  std::string followed_name(const Reading& answer, Index position) const {
    const std::int32_t id = nth(answer.result.followed, position);
    return id < 0 ? "–" : token_text(answer.source.model, id);
  }

  std::vector<std::string> cell_words(const Reading& answer, Index stage, Index position) const {
    const LogitLens& lens = answer.result;
    const LogitLens::Stage& s = nth(lens.stages, stage);
    std::vector<std::string> lines{
        say("{} at {} ({})", said(s.name), token_label(*answer.source.trace, position), position)};
    for (const NextToken& token : lens.cell(stage, position))
      lines.push_back(
          say("{}  {:.4f}  logit {:.3f}", token_text(answer.source.model, token.id), token.probability, token.logit));
    if (lens.rank(stage, position) > 0)
      lines.push_back(say("followed {}: {:.5f}, rank {}, logit {:.3f}", followed_name(answer, position),
                          lens.followed_probability.at(stage, position), lens.rank(stage, position),
                          lens.followed_logit.at(stage, position)));
    lines.push_back(say("entropy {:.3f} nats, KL(answer ‖ here) {:.3f} nats", lens.entropy.at(stage, position),
                        lens.kl.at(stage, position)));
    lines.push_back(fmt::format("softmax(norm_final({}[{}]) · W_U), F32", headscope::name(s.site), position));
    return lines;
  }

  void table(const PageContext& c) {
    const auto answer = job_.answer();
    const LogitLens& lens = answer->result;
    const double room = std::floor(c.room()), height = std::clamp(room_below(c) - 190, 180.0, 620.0),
                 width = std::max(room, 60 + 46.0 * static_cast<double>(lens.positions));
    slot_.want(c.jobs, c.ui, answer, fmt::format("{} {} {}", static_cast<int>(color_), width, height),
               [answer, color = color_, width, height](const Style& style) {
                 Matrix matrix =
                     lens_matrix(answer->result, answer->source.trace, color, token_names(answer->source.model));
                 matrix.width = width, matrix.height = height;
                 matrix.largest_cell = 96;
                 return matrix_scene(matrix, style);
               });
    const Index pinned = pinned_row(c, *answer->source.trace);
    std::optional<Index> reveal;
    if (slot_.scene() && (pinned != revealed_ || answer.get() != revealed_in_)) {
      // What a click pinned is in sight already: only a position chosen elsewhere moves the picture.
      if (!clicked_) reveal = pinned;
      clicked_ = false;
      revealed_ = pinned;
      revealed_in_ = answer.get();
    }
    const SceneTouch touch = wide_scene(
        c, slot_, "lens",
        [&](const Scene& scene, const SceneTouch& at) {
          frame_column(c, scene, at, pinned, c.ui.theme.accent);
          if (const auto cell = matrix_cell(at)) frame_cell(c, scene, at, *cell, c.ui.theme.text);
          name_cells(c, scene, at,
                     [](Index stage, Index position) { return fmt::format("Stage {} Position {}", stage, position); });
        },
        reveal);
    const auto cell = matrix_cell(touch);
    if (!cell || cell->row >= static_cast<Index>(lens.stages.size()) || cell->column >= lens.positions) return;
    tooltip(c.ui, cell_words(*answer, cell->row, cell->column));
    if (!touch.clicked) return;
    const std::int32_t top = lens.cell(cell->row, cell->column)[0].id;
    field_ = {token_text(answer->source.model, top), "", top};
    follow_ = Follow::token;
    clicked_ = true;
    c.editor.pin(cell->column);
  }

  void trajectory(const PageContext& c) {
    const auto answer = job_.answer();
    const LogitLens& lens = answer->result;
    const Index position = pinned_row(c, *answer->source.trace);
    Index first = -1;  // stage from which on the followed token stays on top
    for (auto s = static_cast<Index>(lens.stages.size()) - 1; s >= 0 && lens.rank(s, position) == 1; --s) first = s;
    section(c.ui, say("WAY OF {}", followed_name(*answer, position)),
            first >= 0 ? say("at {} {}, most probable from {} on", token_label(*answer->source.trace, position),
                             position, said(nth(lens.stages, first).name))
                       : say("at {} {}", token_label(*answer->source.trace, position), position));
    const double width = std::floor(c.room()), height = std::clamp(room_below(c) - 6, 96.0, 220.0);
    way_.want(c.jobs, c.ui, answer, fmt::format("{} {} {}", position, width, height),
              [answer, position, width, height](const Style& style) {
                return lens_trajectory(answer->result, position, width, height, style);
              });
    way_.draw(c.ui, "way", {}, width, height);
  }

  ReadingJob<LogitLens> job_{*this, "read.lens"};
  ReadingSlot slot_{*this, "scene.lens"}, way_{*this, "scene.lens.way"};
  LensColor color_ = LensColor::probability;
  Follow follow_ = Follow::answer;
  Index revealed_ = -1;
  const void* revealed_in_ = nullptr;
  bool clicked_ = false;
  TokenField field_;
};

}  // namespace

std::unique_ptr<Page> make_logit_lens(JobRunner&) {
  return std::make_unique<LogitLensPage>();
}

}  // namespace headscope
