// Entropy and loss against the softmax temperature: every head alone, their mean, all together.

#include "core/engine/temperature_sweep.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "app/analyse/parts.h"
#include "app/panels/head_cells.h"
#include "app/panels/scene_slot.h"
#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/widgets/plots.h"
#include "core/metrics/temperature_curve.h"
#include "viz/scene/matrix.h"

namespace headscope {

namespace {

using Point = TemperatureSweep::Point;
constexpr double coldest = 0.1, hottest = 10;

class TemperatureInstrument final : public Instrument {
 public:
  explicit TemperatureInstrument(Explorer& explorer) : desk_(explorer, "temperature") {}

  void each_frame(Explorer&, bool) override { desk_.frame(); }

  void middle(const PageContext& c) override {
    keep_up(c);
    if (!result_) {
      if (!c.trace()) return empty_state(c.ui, "There is no text yet", "Open a model and write a prompt in Explore.");
      return empty_state(c.ui, desk_.running() ? "Running the text" : "No temperature has been tried yet",
                         "Press Start on the right: every head is run at every temperature.");
    }
    const double height =
        std::clamp(static_cast<double>(ImGui::GetContentRegionAvail().y / c.ui.scale) * 0.27, 110.0, 260.0);
    section(c.ui, "ENTROPY", "nats, mean over queries; thin: one head, its own τ alone is changed");
    chart(
        c, "entropy", [](const Point& p) { return p.entropy; }, height, std::nullopt);
    section(c.ui, "LOSS", "nats per token on this text; thin: one head's τ changed, all others as they are");
    chart(
        c, "loss", [](const Point& p) { return p.loss; }, height, result_->loss_before);
    section(c.ui, "THE BEST TEMPERATURE OF EACH HEAD", "by how much the loss falls there; click to select");
    best(c);
  }

  void controls(ControlsRecord& r) override { r.field("count", count_, 0, 3); }
  void right(const PageContext& c) override {
    section(c.ui, "TEMPERATURES", fmt::format("{:g} … {:g}, on a logarithmic axis", coldest, hottest));
    static constexpr const char* counts[] = {"5", "9", "17", "33"};
    segmented(c.ui, "temperature count", counts, count_, ImGui::GetContentRegionAvail().x);
    note(c.ui, "Scores are divided by τ before the softmax: below 1 sharper, above 1 flatter.");
    ImGui::Dummy({0, c.ui.px(6)});
    const auto now = wanted(c);
    if (sweep_controls(c, desk_, "passes", now && started_ && *now != *started_, expected(c))) start(c);
    ImGui::Dummy({0, c.ui.px(6)});
    if (result_) {
      section(c.ui, "AS IT IS", "every head at τ = 1");
      fact(c.ui, "Loss on this text", fmt::format("{:.3f} nats", result_->loss_before), nullptr,
           {"mean of −ln p(token | what came before)", "logits, F32, of the model as edited now"});
      const HeadId head = c.state().document.selected;
      if (const auto* curve = curve_of(head); curve && curve->size() == result_->request.taus.size()) {
        const auto least = std::ranges::min_element(*curve, {}, &Point::loss);
        const double tau = result_->request.taus[static_cast<std::size_t>(least - curve->begin())];
        fact(c.ui, fmt::format("Lowest with head {}.{}", head.layer, head.head),
             fmt::format("{:.3f} at τ {:.2f}", least->loss, tau), nullptr,
             {"the least loss among the temperatures tried for this head alone"});
      }
      ImGui::Dummy({0, c.ui.px(6)});
    }
    selected_head(c);
  }

 private:
  struct Wanted {
    RunRequest run;
    int count;
    std::uint64_t model;  // which reading
    bool operator==(const Wanted&) const = default;
  };
  int points() const { return count_ == 0 ? 5 : count_ == 1 ? 9 : count_ == 2 ? 17 : 33; }
  std::optional<Wanted> wanted(const PageContext& c) const {
    if (!c.results().run || !c.results().model.model) return std::nullopt;
    return Wanted{c.results().run->request, points(), c.results().model_reading};
  }
  double expected(const PageContext& c) const {
    if (!c.trace()) return 0;
    const ModelDims& dims = c.trace()->model.dims;
    return expected_seconds(c, points() * (1 + 0.5 * dims.layers * dims.heads));
  }
  void keep_up(const PageContext& c) {
    const auto now = wanted(c);
    if (now && now != started_ && expected(c) <= starts_by_itself_seconds) start(c);
  }
  void start(const PageContext& c) {
    const auto now = wanted(c);
    if (!now) return;
    if (started_ && started_->model != now->model) result_.reset();
    started_ = now;
    desk_.start(std::make_shared<TemperatureSweeper>(
                    c.results().model, TemperatureSweepRequest{now->run, temperatures(coldest, hottest, now->count)}),
                [this](std::shared_ptr<const TemperatureSweep> known) { result_ = std::move(known); });
  }

  const std::vector<Point>* curve_of(HeadId head) const {
    const ModelDims& dims = result_->before_trace->model.dims;
    const auto index = static_cast<std::size_t>(head.layer * dims.heads + head.head);
    return head.head < dims.heads && index < result_->heads.size() ? &result_->heads[index] : nullptr;
  }

  void chart(const PageContext& c, const char* id, double (*value)(const Point&), double height,
             std::optional<double> level) {
    const std::vector<double>& taus = result_->request.taus;
    const auto series = [&](const std::string& label, const std::vector<Point>& points, Color color, double width) {
      Series line{label, {}, {}, color, width, false};
      for (std::size_t i = 0; i < points.size(); ++i) line.x.push_back(taus[i]), line.y.push_back(value(points[i]));
      return line;
    };
    std::vector<Series> lines;
    const Color thin = with_opacity(c.ui.theme.muted, result_->heads.size() > 40 ? 0.22 : 0.4);
    for (const auto& curve : result_->heads) {
      lines.push_back(series("", curve, thin, 1));
      lines.back().quiet = true;
    }
    if (level) {
      lines.push_back({"as it is", {coldest, hottest}, {*level, *level}, with_opacity(c.ui.theme.text, 0.35), 1, true});
    }
    const HeadId head = c.state().document.selected;
    if (const auto* curve = curve_of(head))
      lines.push_back(
          series(fmt::format("head {}.{}", head.layer, head.head), *curve, legible(c.ui.theme, rgb(0xFFB13B)), 1.75));
    lines.push_back(series("mean of heads", result_->mean(), c.ui.theme.text, 1.75));
    lines.push_back(series("all together", result_->all, c.ui.theme.accent, 2.25));
    PlotOptions options;
    options.height = height;
    options.log_x = true;
    options.x_low = coldest, options.x_high = hottest;
    options.x_name = "τ";
    options.scales = true;
    for (const double tau : {0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0})
      options.x_ticks.emplace_back(tau, fmt::format("{:g}", tau));
    plot(c.ui, id, lines, options);
  }

  void best(const PageContext& c) {
    const double width = std::floor(c.room());
    const double height = std::max(static_cast<double>(ImGui::GetContentRegionAvail().y / c.ui.scale) - 6, 250.0);
    slot_.want(c.explorer(), c.ui, result_, fmt::format("{} {}", width, height),
               [result = result_, width, height](const Look& look) {
                 const ModelDims& dims = result->before_trace->model.dims;
                 std::vector<double> values;
                 for (const auto& curve : result->heads) {
                   if (curve.size() != result->request.taus.size()) break;
                   values.push_back(result->loss_before - std::ranges::min_element(curve, {}, &Point::loss)->loss);
                 }
                 Matrix matrix = head_matrix(dims.layers, dims.heads, values);
                 matrix.unit = "fall of the loss at the head's best τ, nats per token";
                 matrix.width = width, matrix.height = height;
                 return matrix_scene(matrix, look);
               });
    const Scene* scene = slot_.scene();
    if (!scene) return;
    SceneViewOptions how;
    how.fit_height = false;
    const SceneTouch touch = slot_.draw(c.ui, "best temperatures", how, width, scene->height);
    const auto head = head_cells(c, *scene, touch);
    if (!head) return;
    const auto* curve = curve_of(*head);
    if (!curve || curve->size() != result_->request.taus.size()) return tooltip(c.ui, {"Not computed yet"});
    const auto least = std::ranges::min_element(*curve, {}, &Point::loss);
    const auto at = static_cast<std::size_t>(least - curve->begin());
    tooltip(c.ui, {fmt::format("Layer {} Head {}", head->layer, head->head),
                   fmt::format("lowest loss {:.4f} at τ {:.2f} (as it is {:.4f})", least->loss,
                               result_->request.taus[at], result_->loss_before),
                   fmt::format("entropy there {:.3f} nats", least->entropy),
                   fmt::format("the model run again from block {} with this head's scores divided by τ", head->layer)});
  }

  SweepDesk desk_;
  SceneSlot slot_{"scene.temperature"};
  int count_ = 1;
  std::optional<Wanted> started_;
  std::shared_ptr<const TemperatureSweep> result_;
};

}  // namespace

std::unique_ptr<Instrument> make_temperature_sweep(Explorer& explorer) {
  return std::make_unique<TemperatureInstrument>(explorer);
}

}  // namespace headscope
