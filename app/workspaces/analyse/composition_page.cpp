// How much a head reads what an earlier one wrote.

#include "core/analysis/composition.h"
#include "core/base/nth.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "app/widgets/controls.h"
#include "app/workspaces/analyse/parts.h"
#include "app/workspaces/analyse/reading_page.h"
#include "app/workspaces/head_cells.h"
#include "core/base/words.h"
#include "core/trace/layer_kinds.h"
#include "core/trace/mixer_words.h"

namespace headscope {

namespace {

constexpr std::size_t strongest_shown = 12;

struct Composed {
  Composition all;
  std::vector<std::pair<Index, Index>> strongest[3];  ///< (earlier, later) by Q, K, V, largest first
};

std::vector<std::pair<Index, Index>> strongest(const Tensor& all, std::size_t most) {
  std::vector<std::pair<Index, Index>> order;
  for (Index a = 0; a < all.dim(0); ++a)
    for (Index b = 0; b < all.dim(1); ++b)
      if (!std::isnan(all.at(a, b))) order.emplace_back(a, b);
  most = std::min(most, order.size());
  std::ranges::partial_sort(
      order, order.begin() + static_cast<std::ptrdiff_t>(most),
      [&](const auto& x, const auto& y) { return all.at(x.first, x.second) > all.at(y.first, y.second); });
  order.resize(most);
  return order;
}

class CompositionPage final : public ReadingPage {
 public:
  void middle(const PageContext& c) override {
    // Weights alone decide: another text changes nothing.
    job_.want_of_weights(c, "", [](const ReadingSource& source, const Ctx& ctx) {
      Composed out{head_composition(*source.model.model, ctx), {}};
      const Tensor* values[] = {&out.all.q, &out.all.k, &out.all.v};
      for (std::size_t kind = 0; kind < 3; ++kind) out.strongest[kind] = strongest(*values[kind], strongest_shown);
      return out;
    });
    const auto answer = job_.answer();
    if (!answer) return no_reading_yet(c);
    if (answer->source.trace->model.dims.layers < 2)
      return empty_state(c.ui, said("One layer composes with nothing"), said("Open a model of two layers or more."));
    if (attending_layers(answer->source.trace->model.dims) < 2)
      return empty_state(
          c.ui, said("One layer composes with nothing"),
          say("Only one layer of this model attends. Each other one is {}, without matrices of queries, keys "
              "and values to compose.",
              said(state_words(answer->source.trace->model.dims))));
    static constexpr const char* labels[] = {"Q", "K", "V"};
    segmented(c.ui, "composition kind", labels, kind_);
    ImGui::SameLine(0, c.ui.px(12));
    ImGui::AlignTextToFramePadding();
    static constexpr const char* meaning[] = {to_say("the earlier head's output feeds the later one's queries"),
                                              to_say("the earlier head's output feeds the later one's keys"),
                                              to_say("the earlier head's output feeds the later one's values")};
    ImGui::TextColored(vec(c.ui.theme.muted), "%s", said(meaning[kind_]));
    ImGui::Dummy({0, c.ui.px(4)});
    matrix(c, answer);
  }

  void controls(ControlsRecord& r) override { r.choice("kind", kind_, 2); }
  void right(const PageContext& c) override {
    const auto answer = job_.answer();
    if (!answer || attending_layers(answer->source.trace->model.dims) < 2) return;
    const Composition& found = answer->result.all;
    section(c.ui, said("BY CHANCE"),
            say("{} pairs of random matrices, seed {}", found.chance.samples, found.chance.seed));
    fact(c.ui, said("Mean"), fmt::format("{:.4f}", found.chance.mean), nullptr,
         {said("Normal random W_V, W_O, W_Q, W_K of the same shapes, scored alike")});
    fact(c.ui, said("Deviation"), fmt::format("{:.4f}", found.chance.deviation), nullptr, {said("of one such pair")});
    section(c.ui, said("STRONGEST"), said("earlier → later, times chance"));
    const Tensor& all = values(found);
    const auto& order = nth(answer->result.strongest, kind_);
    std::vector<Bar> bars;
    for (const auto& [writer, reader] : order) {
      const double value = static_cast<double>(all.at(writer, reader));
      bars.push_back({fmt::format("{} → {}", label(found, writer), label(found, reader)),
                      value / std::max(1e-9, static_cast<double>(all.at(order[0].first, order[0].second))), -1,
                      fmt::format("{:.3f}  {:.1f}×", value, value / found.chance.mean),
                      said("score, and how many times chance")});
    }
    bar_list(c.ui, "compositions", bars);
    selected_head(c);
  }

 private:
  using Reading = ReadingJob<Composed>::Reading;

  const Tensor& values(const Composition& found) const { return kind_ == 0 ? found.q : kind_ == 1 ? found.k : found.v; }
  static std::string label(const Composition& found, Index i) { return to_string(nth(found.heads, i)); }

  void matrix(const PageContext& c, const std::shared_ptr<const Reading>& answer) {
    const double width = std::floor(c.room()), height = std::max(200.0, room_below(c) - 6);
    slot_.want(c.jobs, c.ui, answer, fmt::format("{} {} {}", kind_, width, height),
               [answer, kind = kind_, width, height](const Style& style) {
                 Matrix m = composition_matrix(answer->result.all, static_cast<CompositionKind>(kind));
                 m.width = width, m.height = height;
                 return matrix_scene(m, style);
               });
    const Composition& found = answer->result.all;
    const int heads = answer->source.trace->model.dims.heads;
    const SceneTouch touch = wide_scene(c, slot_, "composition", [&](const Scene& scene, const SceneTouch& at) {
      const HeadId selected = chosen_head(c, *answer->source.trace);
      const auto place = std::ranges::find(found.heads, selected);  // layers that do not attend have none
      if (place != found.heads.end()) frame_column(c, scene, at, place - found.heads.begin() - heads, c.ui.theme.text);
      if (const auto cell = matrix_cell(at)) frame_cell(c, scene, at, *cell, c.ui.theme.accent);
    });
    const auto cell = matrix_cell(touch);
    const auto n = static_cast<Index>(found.heads.size());
    if (!cell || cell->row >= n || cell->column + heads >= n) return;
    const Index writer = cell->row, reader = cell->column + heads;
    const float value = values(found).at(writer, reader);
    if (std::isnan(value))
      tooltip(c.ui, {fmt::format("{} → {}", label(found, writer), label(found, reader)),
                     said("Not an earlier layer: nothing to read")});
    else
      tooltip(c.ui, {say("{} → {}: {:.4f}, {:.2f} × chance", label(found, writer), label(found, reader), value,
                         static_cast<double>(value) / found.chance.mean),
                     say("Q {:.4f}   K {:.4f}   V {:.4f}   chance {:.4f}", found.q.at(writer, reader),
                         found.k.at(writer, reader), found.v.at(writer, reader), found.chance.mean),
                     kind_ == 0   ? "‖W_OV W_QK‖ ÷ (‖W_OV‖ ‖W_QK‖)"
                     : kind_ == 1 ? "‖W_OV W_QKᵀ‖ ÷ (‖W_OV‖ ‖W_QK‖)"
                                  : "‖W_OV W_OV‖ ÷ (‖W_OV‖ ‖W_OV‖)",
                     said("Frobenius norms, the first norms' gains folded in, F32 weights")});
    if (touch.clicked) c.editor.select(nth(found.heads, reader));
  }

  ReadingJob<Composed> job_{*this, "read.composition"};
  ReadingSlot slot_{*this, "scene.composition"};
  int kind_ = 1;
};

}  // namespace

std::unique_ptr<Page> make_composition(JobRunner&) {
  return std::make_unique<CompositionPage>();
}

}  // namespace headscope
