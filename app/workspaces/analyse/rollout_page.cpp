// Attention through all layers: rollout, and flow from one position.

#include "core/metrics/rollout.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/analyse/parts.h"
#include "app/workspaces/analyse/reading_page.h"
#include "core/base/error.h"
#include "core/base/words.h"
#include "viz/scene/map_cells.h"

namespace headscope {

namespace {

struct Rolled {
  Tensor rollout, relative;
};
struct Flowed {
  Index query = 0;
  std::vector<double> flow, relative;
  std::string refused;  ///< why there is none
};

class RolloutPage final : public ReadingPage {
 public:
  void middle(const PageContext& c) override {
    keep_up(c);
    const auto answer = rollout_.answer();
    if (!answer || stale(c)) return no_reading_yet(c, true);
    static constexpr const char* labels[] = {to_say("as it is"), to_say("÷ even heads")};
    segmented(c.ui, "rollout scale", labels, relative_);
    ImGui::Dummy({0, c.ui.px(4)});
    matrix(c, answer);
    flow(c);
  }

  void controls(ControlsRecord& r) override { r.field("share", residual_, 0, 0.95), r.choice("scale", relative_, 1); }
  void right(const PageContext& c) override {
    section(c.ui, said("RESIDUAL STREAM"), said("its share in each layer's mixture"));
    slider(c.ui, to_say("Share"), residual_, {0, 0.95, 0.5, false, "", 2});
    note(c.ui,
         said("Each layer mixes as share · itself + (1 − share) · mean of its heads, ÷ the row's sum where that is "
              "less than 1. In a causal model every path "
              "leads back: ÷ even heads compares with heads that spread their weight evenly; 1 = no more than that."));
    position_control(c, said("where the flow starts"));
    const auto answer = rollout_.answer();
    if (!answer || stale(c)) return;
    const Index row = pinned_row(c, *answer->source.trace);
    section(c.ui, said("ROLLOUT OF THIS ROW"), said("strongest tokens"));
    const Tensor& shown = relative_ ? answer->result.relative : answer->result.rollout;
    std::vector<Index> order;
    for (Index j = 0; j < end_of_sight(*answer->source.trace, row); ++j) order.push_back(j);
    std::ranges::stable_sort(order, [&](Index a, Index b) { return shown.at(row, a) > shown.at(row, b); });
    std::vector<Bar> bars;
    for (std::size_t i = 0; i < std::min<std::size_t>(order.size(), 10); ++i) {
      const float value = shown.at(row, order[i]);
      bars.push_back({fmt::format("{} {}", token_label(*answer->source.trace, order[i]), order[i]),
                      static_cast<double>(value / std::max(1e-12f, shown.at(row, order[0]))), -1,
                      fmt::format("{:.3f}", value),
                      say("rollout {:.5f}, ÷ even heads {:.3f}", answer->result.rollout.at(row, order[i]),
                          answer->result.relative.at(row, order[i]))});
    }
    bar_list(c.ui, "rollout row", bars);
  }

 private:
  /// One past the last position whose information can reach that row.
  static Index end_of_sight(const Trace& trace, Index row) {
    return trace.sees_later_keys() ? static_cast<Index>(trace.tokens.size()) : row + 1;
  }

  /// What is open has no rollout: a former answer is of something else.
  bool stale(const PageContext& c) const { return !c.trace() || rollout_.failed(); }

  void keep_up(const PageContext& c) {
    if (!c.trace()) return;
    const double rho = residual_;
    rollout_.want_of_maps(c, fmt::format("{:.3f}", rho), [rho](const ReadingSource& source, const Ctx&) {
      Rolled out{attention_rollout(mixing_matrices(*source.trace, rho)), {}};
      out.relative = relative_to(out.rollout, attention_rollout(mixing_matrices(*source.trace, rho, true)));
      return out;
    });
    const Index row = pinned_row(c, *c.trace());
    flow_.want_of_maps(c, fmt::format("{:.3f} {}", rho, row), [rho, row](const ReadingSource& source, const Ctx& ctx) {
      Flowed out;
      out.query = row;
      try {
        out.flow = attention_flow(mixing_matrices(*source.trace, rho), row, ctx.stop);
        const auto even = attention_flow(mixing_matrices(*source.trace, rho, true), row, ctx.stop);
        const Index end = end_of_sight(*source.trace, row);
        for (std::size_t j = 0; j < even.size(); ++j) {
          const bool seen = static_cast<Index>(j) < end;
          if (!seen) out.flow[j] = std::nan("");
          out.relative.push_back(seen && even[j] > 0 ? out.flow[j] / even[j] : std::nan(""));
        }
      } catch (const Error& refused) {
        out.refused = refused.what();
      }
      return out;
    });
  }

  void matrix(const PageContext& c, const std::shared_ptr<const ReadingJob<Rolled>::Reading>& answer) {
    const double width = std::floor(c.room()), height = std::max(220.0, room_below(c) - flow_room(c));
    slot_.want(c.jobs, c.ui, answer, fmt::format("{} {} {}", relative_, width, height),
               [answer, relative = relative_, width, height](const Style& style) {
                 Matrix m =
                     token_matrix(relative ? answer->result.relative : answer->result.rollout, answer->source.trace,
                                  relative ? said("rollout ÷ that of even heads, 1 = chance")
                                           : said("attention rollout, a share of each row"));
                 m.low = 0;
                 m.high = relative ? 4 : 0.2;  // the first rows look at little else than the first token
                 m.width = width, m.height = height;
                 m.square = true;  // queries and keys are the same tokens
                 m.largest_cell = 34;
                 return matrix_scene(m, style);
               });
    const SceneTouch touch = wide_scene(c, slot_, "rollout");
    const auto cell = matrix_cell(touch);
    if (!cell) return;
    const Mark* mark = slot_.scene() ? find(*slot_.scene(), "matrix") : nullptr;
    const Index bin = mark ? std::get<Heatmap>(mark->shape).row_bin : 1;
    // Of several numbers in a cell the one that it shows.
    const Tensor& shown = relative_ ? answer->result.relative : answer->result.rollout;
    const Index n = shown.dim(0);
    const Trace& trace = *answer->source.trace;
    Index row = -1, column = -1;
    for (Index q = cell->row * bin; q < std::min(n, (cell->row + 1) * bin); ++q)
      for (Index k = cell->column * bin; k < std::min(end_of_sight(trace, q), (cell->column + 1) * bin); ++k)
        if (row < 0 || shown.at(q, k) > shown.at(row, column)) row = q, column = k;
    if (row < 0) return;
    tooltip(c.ui, {fmt::format("{} ({}) → {} ({})", token_label(trace, row), row, token_label(trace, column), column),
                   say("rollout {:.5f}, ÷ even heads {:.3f}", answer->result.rollout.at(row, column),
                       answer->result.relative.at(row, column)),
                   said("Ã_L · … · Ã_1, Ã = ρ I + (1 − ρ) mean over heads of hook_pattern, F32")});
    if (touch.clicked) c.editor.pin(row, column);
  }

  /// What stands below the matrix: the flow, or why there is none.
  double flow_room(const PageContext& c) const {
    const auto& answer = flow_.answer();
    return (answer && !answer->result.refused.empty() ? 90 : 196) * c.ui.theme.text_scale;
  }

  void flow(const PageContext& c) {
    const auto answer = flow_.answer();
    if (!answer) return;
    const Flowed& found = answer->result;
    section(c.ui,
            say("FLOW FROM {}",
                token_label(*answer->source.trace,
                            std::min(found.query, static_cast<Index>(answer->source.trace->tokens.size()) - 1))),
            said("largest flow through the layers to each token"));
    if (!found.refused.empty()) return error_text(c.ui, found.refused);
    const double width = std::max(std::floor(c.room()), 24 + 9.0 * static_cast<double>(found.flow.size()));
    row_.want(c.jobs, c.ui, answer, fmt::format("{} {}", relative_, width),
              [answer, relative = relative_, width](const Style& style) {
                Matrix m = token_row(relative ? answer->result.relative : answer->result.flow, answer->source.trace,
                                     relative ? said("flow ÷ that of even heads, 1 = chance")
                                              : said("attention flow, in units of the row's own weight"));
                m.width = width, m.height = 170;
                return matrix_scene(m, style);
              });
    const SceneTouch touch = wide_scene(c, row_, "flow");
    const auto cell = matrix_cell(touch);
    if (!cell || cell->column >= static_cast<Index>(found.flow.size())) return;
    const auto at = static_cast<std::size_t>(cell->column);
    tooltip(c.ui,
            {say("to {} ({}): {:.4f}", token_label(*answer->source.trace, cell->column), cell->column, found.flow[at]),
             say("÷ even heads {:.3f}", found.relative[at]),
             said("largest flow in the layered graph with capacities Ã (Dinic 1970)")});
  }

  ReadingJob<Rolled> rollout_{*this, "read.rollout"};
  ReadingJob<Flowed> flow_{*this, "read.flow"};
  ReadingSlot slot_{*this, "scene.rollout"}, row_{*this, "scene.flow"};
  double residual_ = 0.5;
  int relative_ = 0;
};

}  // namespace

std::unique_ptr<Page> make_rollout(JobRunner&) {
  return std::make_unique<RolloutPage>();
}

}  // namespace headscope
