// Entropy and loss against the softmax temperature: every head alone, their mean, all together.

#include "core/analysis/temperature_sweep.h"
#include "core/base/nth.h"
#include "core/trace/layer_kinds.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "app/render/head_report.h"
#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/widgets/plots.h"
#include "app/workspaces/analyse/sweep_page.h"
#include "app/workspaces/head_cells.h"
#include "core/base/words.h"
#include "core/metrics/temperature_curve.h"
#include "core/trace/layer_kinds.h"
#include "core/trace/model_heads.h"

namespace headscope {

namespace {

using Point = TemperatureSweep::Point;
constexpr double coldest = 0.1, hottest = 10;
constexpr double least_grid = 250;  // logical pixels

class TemperaturePage final : public SweepPage<TemperatureSweeper, TemperatureSweepRequest> {
 public:
  explicit TemperaturePage(JobRunner& jobs)
      : SweepPage(jobs, "temperature",
                  {to_say("passes"), to_say("No temperature has been tried yet"),
                   to_say("Press Start on the right: every head is run at every temperature.")}) {}

  void middle(const PageContext& c) override {
    if (!keep_up(c)) return;
    // Two charts and three headings above the heads, which should be seen without a turn of the wheel.
    const double room = static_cast<double>(ImGui::GetContentRegionAvail().y / c.ui.scale),
                 height = std::clamp((room - least_grid - 130) / 2, 110.0, 260.0);
    section(c.ui, said("ENTROPY"), said("nats, mean over queries; thin: one head, its own τ alone is changed"));
    chart(
        c, "entropy", [](const Point& p) { return p.entropy; }, height, std::nullopt);
    if (std::isnan(result()->loss_before)) return note(c.ui, why_no_loss(c));
    section(c.ui, said("LOSS"),
            said("nats per token on this text; thin: one head's τ changed, all others as they are"));
    chart(
        c, "loss", [](const Point& p) { return p.loss; }, height, result()->loss_before);
    section(c.ui, said("THE BEST TEMPERATURE OF EACH HEAD"), said("by how much the loss falls there; click to select"));
    best(c);
  }

  void controls(ControlsRecord& r) override { r.choice("count", count_, 3); }
  void right(const PageContext& c) override {
    section(c.ui, said("TEMPERATURES"), say("{:g} … {:g}, on a logarithmic axis", coldest, hottest));
    static constexpr const char* counts[] = {"5", "9", "17", "33"};
    segmented(c.ui, "temperature count", counts, count_, ImGui::GetContentRegionAvail().x);
    note(c.ui, said("Scores are divided by τ before the softmax: below 1 sharper, above 1 flatter."));
    run(c);
    if (result()) {
      section(c.ui, said("AS IT IS"), said("every head at τ = 1"));
      fact(c.ui, said("Loss on this text"), nats(result()->loss_before), nullptr,
           {said(c.predicts().loss), said("logits, F32, of the model as edited now")});
      const HeadId head = c.state().document.selected;
      if (const auto* curve = curve_of(head);
          curve && curve->size() == result()->request.taus.size() && !std::isnan(result()->loss_before)) {
        const auto least = std::ranges::min_element(*curve, {}, &Point::loss);
        const double tau = nth(result()->request.taus, least - curve->begin());
        fact(c.ui, say("Lowest with head {}.{}", head.layer, head.head), say("{:.3f} at τ {:.2f}", least->loss, tau),
             nullptr, {said("the least loss among the temperatures tried for this head alone")});
      }
    }
    selected_head(c);
  }

 private:
  int points() const { return count_ == 0 ? 5 : count_ == 1 ? 9 : count_ == 2 ? 17 : 33; }
  std::optional<TemperatureSweepRequest> wanted(const PageContext& c) const override {
    if (!c.results().run) return std::nullopt;
    return TemperatureSweepRequest{c.results().run->request, temperatures(coldest, hottest, points())};
  }
  double passes(const PageContext& c) const override {
    const ModelDims& dims = c.trace()->model.dims;
    return points() * (1 + 0.5 * attending_layers(dims) * dims.heads);
  }

  const std::vector<Point>* curve_of(HeadId head) const {
    const ModelDims& dims = result()->before_trace->model.dims;
    return dims.has_head(head.layer, head.head) ? &nth(result()->heads, head_index(dims, head)) : nullptr;
  }

  void chart(const PageContext& c, const char* id, double (*value)(const Point&), double height,
             std::optional<double> level) {
    const std::vector<double>& taus = result()->request.taus;
    const auto series = [&](const std::string& label, const std::vector<Point>& points, Color color, double width) {
      ChartSeries line{label, color, {}, {}, width};
      for (std::size_t i = 0; i < points.size(); ++i) line.x.push_back(taus[i]), line.y.push_back(value(points[i]));
      return line;
    };
    LineChart plotted;
    std::vector<ChartSeries>& lines = plotted.series;
    const Color thin = with_opacity(c.ui.theme.muted, result()->heads.size() > 40 ? 0.22 : 0.4);
    for (const auto& curve : result()->heads) {
      if (curve.empty()) continue;
      lines.push_back(series("", curve, thin, 1));
      lines.back().quiet = true;
    }
    if (level) {
      lines.push_back({"", with_opacity(c.ui.theme.text, 0.35), {coldest, hottest}, {*level, *level}, 1});
      lines.back().quiet = true;
    }
    const HeadId head = c.state().document.selected;
    if (const auto* curve = curve_of(head); curve && !curve->empty())
      lines.push_back(
          series(say("head {}.{}", head.layer, head.head), *curve, legible(c.ui.theme, rgb(0xFFB13B)), 1.75));
    lines.push_back(series(said("mean of heads"), result()->mean(), c.ui.theme.text, 1.75));
    lines.push_back(series(said("all together"), result()->all, c.ui.theme.accent, 2.25));
    plotted.height = height;
    plotted.log_x = plotted.grid = true;
    plotted.x_low = coldest, plotted.x_high = hottest;
    plotted.x_title = "τ";
    plotted.x_ticks = {0.1, 0.2, 0.5, 1, 2, 5, 10};
    plot(c.ui, id, std::move(plotted));
  }

  void best(const PageContext& c) {
    const double height = std::max(static_cast<double>(ImGui::GetContentRegionAvail().y / c.ui.scale) - 6, least_grid);
    const SceneTouch touch = matrix_slot(c, slot_, "best temperatures", result(), "", height, [result = result()] {
      const ModelDims& dims = result->before_trace->model.dims;
      std::vector<double> values;
      for (const HeadId head : every_head(dims)) {
        const auto& curve = nth(result->heads, head_index(dims, head));
        if (!dims.attends(head.layer)) {
          values.push_back(std::numeric_limits<double>::quiet_NaN());
          continue;
        }
        if (curve.size() != result->request.taus.size()) break;
        values.push_back(result->loss_before - std::ranges::min_element(curve, {}, &Point::loss)->loss);
      }
      Matrix matrix = head_matrix(dims, values);
      matrix.unit = said("fall of the loss at the head's best τ, nats per token");
      return matrix;
    });
    const Scene* scene = slot_.scene();
    if (!scene) return;
    const auto head = head_cells(c, *scene, touch);
    if (!head) return;
    const auto* curve = curve_of(*head);
    if (!curve || curve->size() != result()->request.taus.size())
      return tooltip(c.ui,
                     {result()->before_trace->model.dims.attends(head->layer) ? said("Not computed yet")
                                                                              : said("This layer has no softmax")});
    const auto least = std::ranges::min_element(*curve, {}, &Point::loss);
    const auto at = static_cast<std::size_t>(least - curve->begin());
    tooltip(c.ui, {say("Layer {} Head {}", head->layer, head->head),
                   say("lowest loss {:.4f} at τ {:.2f} (as it is {:.4f})", least->loss, result()->request.taus[at],
                       result()->loss_before),
                   say("entropy there {:.3f} nats", least->entropy),
                   say("the model run again from block {} with this head's scores divided by τ", head->layer)});
  }

  SceneSlot slot_{"scene.temperature"};
  int count_ = 1;
};

}  // namespace

std::unique_ptr<Page> make_temperature_sweep(JobRunner& jobs) {
  return std::make_unique<TemperaturePage>(jobs);
}

}  // namespace headscope
