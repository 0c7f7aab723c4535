// Different weights, same output: how far a row can be moved without the head noticing.

#include "core/analysis/alternatives.h"
#include "core/base/nth.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/analyse/parts.h"
#include "app/workspaces/analyse/reading_page.h"
#include "app/workspaces/head_cells.h"
#include "core/analysis/whatif.h"
#include "core/base/words.h"
#include "core/trace/model_heads.h"
#include "viz/color/color_norm.h"
#include "viz/scene/map_cells.h"

namespace headscope {

namespace {

constexpr double little_room = 0.02;  // total variation that is not worth speaking of

/// The answer of the model at one place of the slider.
struct Moved {
  std::string place;  ///< of the row: options of the Alternatives
  double room = 0;    ///< total variation at the end of the way, wherever the slider stands
  RowDifference difference, blind_difference;
  RowReplaced replaced, blind;
};

class AlternativesPage final : public ReadingPage {
 public:
  void middle(const PageContext& c) override {
    keep_up(c);
    const auto answer = job_.answer();
    if (!answer || !c.trace()) return no_reading_yet(c);  // an answer outlives the text that it was made of
    rows(c, answer);
    verdict(c, *answer);
    atlas(c);
  }

  void controls(ControlsRecord& r) override {
    r.field("share", share_, 0, 1);
    r.field("tolerance", tolerance_, 1e-6, 0.5);
  }
  void right(const PageContext& c) override {
    section(c.ui, said("MOVE THE WEIGHTS"), said("0: the model's own"));
    slider(c.ui, to_say("Share of the way"), share_, {0, 1, 1, false, "", 2});
    section(c.ui, said("NEARLY THE SAME"), said("relative singular value"));
    slider(c.ui, to_say("Tolerance"), tolerance_, {1e-6, 0.5, 1e-6, true, "", 6});
    position_control(c, said("the row that is moved"));
    const auto answer = job_.answer();
    if (!answer) return;
    const Alternatives& found = answer->result;
    section(c.ui, said("THIS ROW"), say("layer {} head {}", found.head.layer, found.head.head));
    fact(c.ui, said("Keys it sees"), std::to_string(found.weights.size()));
    fact(c.ui, said("Free directions"), std::to_string(found.free), nullptr,
         {said("dimension of {δ : Σ δ = 0, Σ δ v = 0}"),
          said("keys − 1 − rank of the values: above d_head + 1 keys there always are some"),
          fmt::format("blocks.{}.attn.hook_v, F32", found.head.layer)});
    fact(c.ui, said("Gives its weight away"), token_label(*answer->source.trace, found.key), nullptr,
         {said("the pinned key, or the strongest one"),
          say("{:.4f} → {:.4f} at the end", nth(found.weights, found.key), nth(found.at(1), found.key))});
    if (found.free == 0)
      note(c.ui, said("The values pin this row: no other weights give the same output. Pin a later row, or raise the "
                      "tolerance."));
    if (c.trace() && roomiest(c) == found.head)
      note(c.ui,
           said("The head with the most room in this row. A click in the table, or the arrow keys, choose another."));
    else
      selected_head(c);
  }

 private:
  using Reading = ReadingJob<Alternatives>::Reading;

  /// While nobody has chosen a head, the one with the most room in this row, as soon as that is known.
  std::optional<HeadId> roomiest(const PageContext& c) {
    const auto rooms = room_.answer();
    if (!c.app.explorer.run.softer_head() || !rooms || rooms->source.run != c.results().run || rooms->result.empty() ||
        rooms->options != rooms_of(pinned_row(c, *c.trace())))
      return std::nullopt;
    const auto most = std::ranges::max_element(rooms->result) - rooms->result.begin();
    return nth(c.trace()->maps, most).id();
  }
  std::string rooms_of(Index row) const { return fmt::format("{} {:.3g}", row, tolerance_); }

  void keep_up(const PageContext& c) {
    if (!c.trace()) return;
    const HeadId head = roomiest(c).value_or(chosen_head(c, *c.trace()));
    const Index row = pinned_row(c, *c.trace());
    const Index key = c.state().document.key && *c.state().document.key <= row ? *c.state().document.key : -1;
    const double tolerance = tolerance_;
    const std::string place = fmt::format("{} {} {} {} {:.3g}", head.layer, head.head, row, key, tolerance);
    job_.want(c, {SiteKind::v}, place, [head, row, key, tolerance](const ReadingSource& source, const Ctx& ctx) {
      return find_alternatives(*source.trace, head, row, key, tolerance, ctx.stop);
    });
    const auto found = job_.answer();
    if (!found || found->options != place || found->source.run != c.results().run) return;
    const double share = share_;
    moved_.want(c, {}, fmt::format("{} {:.4f}", place, share),
                [found, share, place](const ReadingSource& source, const Ctx& ctx) {
                  const Alternatives& path = found->result;
                  Moved out;
                  out.place = place;
                  out.room = row_difference(path.values, path.weights, path.at(1)).variation;
                  const auto weights = path.at(share);
                  out.difference = row_difference(path.values, path.weights, weights);
                  const auto blind = naive_shift(path.weights, path.key, out.difference.variation);
                  out.blind_difference = row_difference(path.values, path.weights, blind);
                  const Ctx own{.backend = ctx.backend, .stop = ctx.stop};
                  out.replaced = replace_row(source.model, source.run->request, own, *found->source.trace, path.head,
                                             path.query, weights);
                  out.blind = replace_row(source.model, source.run->request, own, *found->source.trace, path.head,
                                          path.query, blind);
                  return out;
                });
  }

  /// How far the strongest key's weight can go in every head, at this row.
  void atlas(const PageContext& c) {
    const Index row = pinned_row(c, *c.trace());
    const double tolerance = tolerance_;
    constexpr Index most = Index{1} << 14;  // heads × keys: beyond, it would take too long for a glance
    const ModelDims& dims = c.trace()->model.dims;
    if (Index{dims.all_heads()} * (row + 1) > most) return;
    room_.want(c, {SiteKind::v}, rooms_of(row), [row, tolerance](const ReadingSource& source, const Ctx& ctx) {
      std::vector<double> moved;
      for (const AttentionMap& map : source.trace->maps) {
        const Alternatives path = find_alternatives(*source.trace, map.id(), row, -1, tolerance, ctx.stop);
        moved.push_back(row_difference(path.values, path.weights, path.at(1)).variation);
        if (ctx.progress)
          *ctx.progress = static_cast<float>(moved.size()) / static_cast<float>(source.trace->maps.size());
      }
      return moved;
    });
    const auto answer = room_.answer();
    if (!answer) return;
    section(c.ui, said("ROOM IN EVERY HEAD"), said("share of this row's weight that can lie elsewhere · click a head"));
    const double width = std::floor(c.room()), height = std::max(150.0, room_below(c) - 6);
    atlas_.want(c.jobs, c.ui, answer, fmt::format("{} {}", width, height), [answer, width, height](const Style& style) {
      const ModelDims& d = answer->source.trace->model.dims;
      Matrix m = head_matrix(d, answer->result);
      m.unit = said("total variation that leaves the output as it is");
      m.low = 0;
      m.high = 1;
      m.width = width, m.height = height;
      return matrix_scene(m, style);
    });
    const SceneTouch touch = wide_scene(c, atlas_, "room");
    if (!atlas_.scene()) return;
    const auto head = head_cells(c, *atlas_.scene(), touch, nullptr, roomiest(c));
    const auto at = head && dims.has_head(head->layer, head->head) ? static_cast<std::size_t>(head_index(dims, *head))
                                                                   : answer->result.size();
    if (at < answer->result.size())
      tooltip(c.ui, {say("Layer {} Head {}: {:.3f}", head->layer, head->head, answer->result[at]),
                     said("½ Σ |α − α'| at the end of the way; its strongest key gives its weight away"),
                     said("hook_pattern, hook_v of this row")});
  }

  void rows(const PageContext& c, const std::shared_ptr<const Reading>& answer) {
    const Alternatives& found = answer->result;
    section(c.ui, said("ROW"),
            say("of {} {}: the model's weights, other weights with the same output, as much moved blindly",
                token_label(*answer->source.trace, found.query), found.query));
    const double width =
        std::max(std::floor(c.room()), 80 + 9.0 * static_cast<double>(answer->source.trace->tokens.size()));
    slot_.want(
        c.jobs, c.ui, answer, fmt::format("{:.3f} {}", share_, width),
        [answer, share = share_, width](const Style& style) {
          const Alternatives& path = answer->result;
          const auto other = path.at(share),
                     blind = naive_shift(path.weights, path.key,
                                         row_difference(path.values, path.weights, other).variation);
          Matrix m;
          const auto n = static_cast<Index>(answer->source.trace->tokens.size());
          m.values = Tensor::zeros({3, n});
          for (Index r = 0; r < 3; ++r)
            for (Index j = 0; j < n; ++j) {
              const auto at = static_cast<std::size_t>(j);
              m.pending.push_back(at >= path.weights.size());
              if (at < path.weights.size())
                m.values.ref(r, j) = static_cast<float>(r == 0 ? path.weights[at] : r == 1 ? other[at] : blind[at]);
            }
          m.pending_text = said("masked");
          m.rows = {said("model's"), said("other"), said("blind")};
          m.tokens = answer->source.trace;
          m.column_title = said("key →");
          m.unit = said("attention weight of this row");
          m.low = 0;
          m.high = std::max(0.05, static_cast<double>(*std::ranges::max_element(path.weights)));
          m.width = width, m.height = 270;
          m.largest_cell = 44;
          return matrix_scene(m, style);
        });
    const SceneTouch touch = wide_scene(c, slot_, "rows", [&](const Scene& scene, const SceneTouch& at) {
      frame_column(c, scene, at, found.key, c.ui.theme.accent);
      name_cells(c, scene, at, [](Index row, Index key) { return fmt::format("Weights {} Key {}", row, key); });
    });
    const auto cell = matrix_cell(touch);
    if (!cell || cell->column >= static_cast<Index>(found.weights.size())) return;
    const auto at = static_cast<std::size_t>(cell->column);
    tooltip(c.ui, {fmt::format("{} ({})", token_label(*answer->source.trace, cell->column), cell->column),
                   say("model's {:.5f}, other {:.5f}", found.weights[at], found.at(share_)[at]),
                   said("click: this key shall give its weight away")});
    if (touch.clicked) c.editor.pin(found.query, cell->column);
  }

  void verdict(const PageContext& c, const Reading& answer) {
    const auto moved = moved_.answer();
    section(c.ui, said("WHAT CHANGES"),
            said("the same amount of weight, moved with an eye on the values, and blindly"));
    if (!moved || moved->source.run != answer.source.run || moved->result.place != answer.options)
      return note(c.ui, said("Running the text …"));
    const Moved& m = moved->result;
    const auto line = [&](const char* name, double other, double blind, const char* how) {
      ImGui::TableNextRow();
      ImGui::TableNextColumn();
      ImGui::TextUnformatted(name);
      if (ImGui::IsItemHovered()) tooltip(c.ui, {name, how});
      const UseFont font(c.ui, c.ui.number());
      for (const double v : {other, blind}) {
        ImGui::TableNextColumn();
        ImGui::TextUnformatted(std::isnan(v)                  ? "–"
                               : v != 0 && std::abs(v) < 1e-4 ? short_number(v, 2).c_str()
                                                              : fmt::format("{:.4f}", v).c_str());
      }
    };
    if (ImGui::BeginTable("verdict", 3,
                          ImGuiTableFlags_SizingStretchProp | ImGuiTableFlags_RowBg | ImGuiTableFlags_NoSavedSettings,
                          {std::min(ImGui::GetContentRegionAvail().x, c.ui.px(640)), 0})) {
      ImGui::TableSetupColumn("", 0, 2.4f);
      ImGui::TableSetupColumn(said("other weights"));
      ImGui::TableSetupColumn(said("moved blindly"));
      ImGui::TableHeadersRow();
      line(said("Total variation of the weights"), m.difference.variation, m.blind_difference.variation,
           said("½ Σ |α − α'|: 0 the same, 1 nothing in common"));
      line(said("Jensen–Shannon divergence, nats"), m.difference.divergence, m.blind_difference.divergence,
           said("at most ln 2 = 0.693"));
      line(said("Change of the head's output"), m.difference.output, m.blind_difference.output,
           "‖z − z'‖ ÷ ‖z‖, z = Σ α v, hook_v, float64");
      line(said("KL of the answer here, nats"), m.replaced.kl, m.blind.kl,
           said("KL(before ‖ after) at this row, the model run again with the row replaced"));
      line(said("KL at the end of the text, nats"), m.replaced.kl_last, m.blind.kl_last,
           said("the same at the last row"));
      ImGui::EndTable();
    }
    ImGui::Dummy({0, c.ui.px(6)});
    const std::string key = token_label(*answer.source.trace, answer.result.key);
    note(c.ui,
         m.room < little_room
             ? say("No weights that give less to {} write the same: here the map says what the output rests on.", key)
             : say("Up to {:.0f} % of this row's weight can lie elsewhere, away from {}, without a change of the "
                   "head's output: the map alone does not say what it rests on.",
                   100 * m.room, key));
  }

  ReadingJob<Alternatives> job_{*this, "read.alternatives", to_say("moving the weights")};
  ReadingJob<Moved> moved_{*this, "read.alternatives.moved", to_say("moving the weights")};
  ReadingJob<std::vector<double>> room_{*this, "read.alternatives.room", to_say("moving the weights")};
  ReadingSlot slot_{*this, "scene.alternatives"}, atlas_{*this, "scene.alternatives.room"};
  double share_ = 1, tolerance_ = 1e-6;
};

}  // namespace

std::unique_ptr<Page> make_alternatives(JobRunner&) {
  return std::make_unique<AlternativesPage>();
}

}  // namespace headscope
