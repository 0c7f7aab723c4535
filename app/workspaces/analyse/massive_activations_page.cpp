// Hidden dimensions that stand out, and what setting them to zero does to the sink.

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>

#include "app/render/head_report.h"
#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/analyse/parts.h"
#include "app/workspaces/analyse/reading_page.h"
#include "core/analysis/whatif.h"
#include "core/base/words.h"
#include "viz/scene/map_cells.h"

namespace headscope {

namespace {

struct MassiveCells {
  MassiveActivations all;
  std::optional<ZeroedActivations> zeroed;
  Tensor largest;  ///< (layer, position): largest ratio over the dimensions
};

constexpr std::size_t most_listed = 200;

class MassivePage final : public ReadingPage {
 public:
  void middle(const PageContext& c) override {
    const MassiveRule rule = by_paper_ ? massive_by_sun : MassiveRule{threshold_, 0};
    job_.want(c, {SiteKind::resid_post}, fmt::format("{:.2f} {}", rule.ratio, rule.magnitude),
              [rule](const ReadingSource& source, const Ctx& ctx) {
                MassiveCells out{massive_activations(*source.trace, rule), {}, {}};
                const auto n = static_cast<Index>(source.trace->tokens.size());
                out.largest = Tensor::zeros({static_cast<Index>(out.all.layers.size()), n});
                for (std::size_t layer = 0; layer < out.all.layers.size(); ++layer) {
                  const Tensor& x = source.trace->sites.at({SiteKind::resid_post, static_cast<int>(layer)});
                  for (Index i = 0; i < n; ++i)
                    for (Index d = 0; d < x.dim(1); ++d)
                      out.largest.ref(static_cast<Index>(layer), i) = std::max(
                          out.largest.at(static_cast<Index>(layer), i),
                          static_cast<float>(std::abs(static_cast<double>(x.at(i, d))) / out.all.layers[layer].median));
                }
                if (!out.all.found.empty())
                  out.zeroed = zero_activations(source.model, source.run->request,
                                                Ctx{.backend = ctx.backend, .stop = ctx.stop}, out.all.found);
                return out;
              });
    const auto answer = job_.answer();
    if (!answer) return no_reading_yet(c);
    matrix(c, answer);
    list(c, answer);
  }

  void controls(ControlsRecord& r) override {
    r.field("ratio", threshold_, 2, 1000);
    r.field("by_paper", by_paper_);
  }
  void right(const PageContext& c) override {
    section(c.ui, said("MASSIVE"), said("by how many medians of its layer"));
    static constexpr const char* rules[] = {to_say("by ratio"), to_say("as in the paper")};
    int chosen = by_paper_;
    if (segmented(c.ui, "massive rule", rules, chosen, ImGui::GetContentRegionAvail().x)) by_paper_ = chosen == 1;
    if (by_paper_)
      note(c.ui, said("Sun et al. 2024: above 100, and 1,000 times the median or more."));
    else
      slider(c.ui, to_say("Ratio"), threshold_, {2, 1000, 100, true, "×", 0});
    const auto answer = job_.answer();
    if (!answer) return;
    const MassiveCells& found = answer->result;
    section(c.ui, said("LAYERS"), said("how many there are, the largest ratio"));
    for (std::size_t layer = 0; layer < found.all.layers.size(); ++layer) {
      const MassiveLayer& line = found.all.layers[layer];
      fact(c.ui, say("Layer {}", layer), fmt::format("{}   {:.1f}×", line.count, line.largest.ratio), nullptr,
           {say("blocks.{}.hook_resid_post, F32: median |x| {:.4f}", layer, line.median),
            say("largest: {:.3f} at position {}, dimension {}", line.largest.value, line.largest.position,
                line.largest.dimension),
            say("{} by the paper's rule: above 100, and 1,000 times the median (Sun et al. 2024)", line.count_by_sun)});
    }
    section(c.ui, said("SET TO ZERO"), said("before → after, the text run again"));
    if (!found.zeroed)
      return note(c.ui,
                  said("None is massive in this model on this text. Lower the ratio to see what the largest ones do."));
    const ZeroedActivations& z = *found.zeroed;
    const auto arrow = [](double a, double b) { return fmt::format("{} → {}", number(a), number(b)); };
    fact(c.ui, said("Loss on this text"), arrow(z.loss_before, z.loss_after), nullptr,
         {said(c.predicts().loss), say("{} numbers of hook_resid_post set to 0", z.zeroed.size())});
    fact(c.ui, said("KL of the answer"), nats(z.kl, 4), nullptr,
         {said("KL(before ‖ after) where the model answers, full vocabulary")});
    for (std::size_t layer = 0; layer < z.sink_before.size(); ++layer)
      fact(c.ui, say("Sink of layer {}", layer), arrow(z.sink_before[layer], z.sink_after[layer]), nullptr,
           {said("mean weight on the first token over heads and rows 1 …, hook_pattern")});
  }

 private:
  using Reading = ReadingJob<MassiveCells>::Reading;

  /// What is massive; where nothing is, what comes nearest to it in each layer.
  static std::vector<HiddenActivation> listed(const MassiveActivations& all) {
    if (!all.found.empty()) return all.found;
    std::vector<HiddenActivation> out;
    for (const MassiveLayer& layer : all.layers) out.push_back(layer.largest);
    std::ranges::stable_sort(out, std::ranges::greater{}, &HiddenActivation::ratio);
    return out;
  }

  void matrix(const PageContext& c, const std::shared_ptr<const Reading>& answer) {
    section(c.ui, said("LARGEST BY PLACE"),
            said("largest |residual stream| of a position ÷ median of the layer · click pins"));
    const double width = std::max(std::floor(c.room()),
                                  60 + 9.0 * static_cast<double>(answer->source.trace->tokens.size())),
                 height = std::clamp(room_below(c) * 0.5, 200.0, 480.0);
    slot_.want(c.jobs, c.ui, answer, fmt::format("{} {}", width, height), [answer, width, height](const Style& style) {
      Matrix m;
      m.values = answer->result.largest;
      for (Index l = 0; l < m.values.dim(0); ++l) m.rows.push_back(std::to_string(l));
      m.tokens = answer->source.trace;
      m.row_title = said("layer ↓");
      m.column_title = said("position →");
      m.unit = said("largest magnitude ÷ median magnitude of the layer");
      m.low = 0;
      m.width = width, m.height = height;
      m.largest_cell = 44;
      return matrix_scene(m, style);
    });
    const SceneTouch touch = wide_scene(c, slot_, "massive");
    const auto cell = matrix_cell(touch);
    if (!cell || cell->row >= answer->result.largest.dim(0) || cell->column >= answer->result.largest.dim(1)) return;
    tooltip(c.ui, {say("{} ({}), layer {}: {:.1f}×", token_label(*answer->source.trace, cell->column), cell->column,
                       cell->row, answer->result.largest.at(cell->row, cell->column)),
                   say("max over d of |blocks.{}.hook_resid_post[{}, d]| ÷ median |x|, F32", cell->row, cell->column)});
    if (touch.clicked) c.editor.pin(cell->column);
  }

  void list(const PageContext& c, const std::shared_ptr<const Reading>& kept) {
    const Reading& answer = *kept;
    const bool none = answer.result.all.found.empty();
    const std::vector<HiddenActivation> found = listed(answer.result.all);
    section(c.ui, none ? said("LARGEST OF EACH LAYER") : said("MASSIVE ACTIVATIONS"),
            none                         ? said("none of them is massive")
            : found.size() > most_listed ? say("the {} largest of {}", most_listed, found.size())
                                         : say("{} found", found.size()));
    c.ui.pictures.add_table("massive list", none ? said("largest of each layer") : said("massive activations"), [kept] {
      Table out{said("massive activations"),
                {to_say("layer"), to_say("position"), to_say("token"), to_say("dimension"), to_say("value"),
                 to_say("ratio to the median")},
                {}};
      for (const HiddenActivation& a : listed(kept->result.all))
        out.rows.push_back({std::to_string(a.layer), std::to_string(a.position),
                            token_label(*kept->source.trace, a.position), std::to_string(a.dimension),
                            number_cell(a.value), number_cell(a.ratio)});
      return out;
    });
    const UseFont font(c.ui, c.ui.number());
    if (!ImGui::BeginTable("massive list", 5,
                           ImGuiTableFlags_ScrollY | ImGuiTableFlags_RowBg | ImGuiTableFlags_NoSavedSettings,
                           {0, std::max(ImGui::GetContentRegionAvail().y, c.ui.px(90))}))
      return;
    ImGui::TableSetupScrollFreeze(0, 1);
    for (const char* title : {said("layer"), said("position"), said("dimension"), said("value"), said("ratio")})
      ImGui::TableSetupColumn(title);
    ImGui::TableHeadersRow();
    for (const HiddenActivation& a : std::span(found).first(std::min(found.size(), most_listed))) {
      ImGui::TableNextRow();
      for (const std::string& text :
           {std::to_string(a.layer), fmt::format("{} {}", token_label(*answer.source.trace, a.position), a.position),
            std::to_string(a.dimension), fmt::format("{:.3f}", a.value), fmt::format("{:.1f}×", a.ratio)}) {
        ImGui::TableNextColumn();
        text_line(c.ui, text);
      }
    }
    ImGui::EndTable();
  }

  ReadingJob<MassiveCells> job_{*this, "read.massive"};
  ReadingSlot slot_{*this, "scene.massive"};
  double threshold_ = MassiveRule{}.ratio;
  bool by_paper_ = false;
};

}  // namespace

std::unique_ptr<Page> make_massive_activations(JobRunner&) {
  return std::make_unique<MassivePage>();
}

}  // namespace headscope
