// LayerNorm, RMSNorm and BatchNorm of the same rows: typed by hand, or the model's own at a norm of its.

#include "core/analysis/norms.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "app/render/block_pictures.h"
#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/analyse/parts.h"
#include "app/workspaces/analyse/reading_page.h"
#include "core/base/error.h"
#include "core/base/words.h"
#include "viz/color/color_norm.h"
#include "viz/scene/map_cells.h"

namespace headscope {

namespace {

constexpr const char* hello = "4 6 0 0";
constexpr const char* machine_learning = "1 2 3 3";

class NormsPage final : public ReadingPage {
 public:
  void middle(const PageContext& c) override {
    static constexpr const char* views[] = {to_say("Rows by hand"), to_say("The model's norms")};
    segmented(c.ui, "norms view", views, view_);
    ImGui::Dummy({0, c.ui.px(4)});
    if (!c.results().model.model) return no_reading_yet(c);
    view_ == 0 ? by_hand(c) : of_model(c);
  }

  void controls(ControlsRecord& r) override {
    r.choice("view", view_, 1);
    r.choice("norm", which_, 2);
    r.field("layer", layer_, 0, most_layers);
    r.field("row_a", rows_[0]);
    r.field("row_b", rows_[1]);
    r.field("epsilon", epsilon_, 1e-8, 1);
  }
  void right(const PageContext& c) override { view_ == 0 ? hand_controls(c) : model_controls(c); }

 private:
  void by_hand(const PageContext& c) {
    if (const auto rows = typed())
      table_.want(c, {}, fmt::format("{}|{}|{}", rows_[0], rows_[1], epsilon_),
                  [rows = *rows, epsilon = epsilon_](const ReadingSource&, const Ctx& ctx) {
                    return norm_table(ctx.backend, rows, epsilon);
                  });
    const auto answer = table_.answer();
    if (!answer) return error_.empty() ? no_reading_yet(c) : error_text(c.ui, error_);
    const double width = std::floor(c.room());
    slot_.want(c.jobs, c.ui, answer, std::to_string(width),
               [answer, width](const Style& style) { return norm_table_scene(answer->result, width, style); });
    if (!slot_.scene()) return;
    SceneViewOptions how;
    how.fit_height = false;
    const SceneTouch touch = slot_.draw(c.ui, "norms", how, width, slot_.scene()->height);
    if (!touch.mark || !touch.cell) return;
    const NormTable& table = answer->result;
    const Cell cell = *touch.cell;
    if (cell.row >= table.rows.dim(0) || cell.column >= table.rows.dim(1)) return;
    const auto x = static_cast<double>(table.rows.at(cell.row, cell.column));
    const Part* part = meaning<Part>(touch.mark);
    if (!part) return;
    const NormMethod method = norm_methods[part->index];
    const Tensor line =
        per_column(method) ? table.rows.select(1, cell.column).copy() : table.rows.select(0, cell.row).copy();
    const LineStatistics s = statistics(line.values());
    tooltip(c.ui,
            {say("{}: row {}, feature {}: {:.4f}", said_view(title(method)), static_cast<char>('a' + cell.row),
                 cell.column, table.after[part->index].at(cell.row, cell.column)),
             fmt::format("{}; x = {:g}", said_view(formula(method)), x),
             per_column(method) ? say("of its column: sum {:g}, mean {:g}, variance {:g}, √ mean x² {:.4f}; ε {:g}",
                                      s.sum, s.mean, s.variance, s.rms, table.epsilon)
                                : say("of its row: sum {:g}, mean {:g}, variance {:g}, √ mean x² {:.4f}; ε {:g}", s.sum,
                                      s.mean, s.variance, s.rms, table.epsilon)});
  }

  /// The rows as typed; nullopt, and why, when they are none.
  std::optional<Tensor> typed() {
    error_.clear();
    try {
      const std::vector<std::vector<float>> rows{parse_row(rows_[0], "row a"), parse_row(rows_[1], "row b")};
      return matrix_of_rows(rows, "row b");
    } catch (const Error& wrong) {
      error_ = wrong.what();
      return std::nullopt;
    }
  }

  void hand_controls(const PageContext& c) {
    section(c.ui, said("ROWS"), said("one sequence each, numbers with spaces"));
    {
      const UseFont font(c.ui, c.ui.token());
      ImGui::SetNextItemWidth(-1);
      input_line(c.ui, "##row a", hello, rows_[0]);
      ImGui::SetNextItemWidth(-1);
      input_line(c.ui, "##row b", machine_learning, rows_[1]);
    }
    if (!error_.empty()) error_text(c.ui, error_);
    if (button(c.ui, to_say("“hello” and “machine learning”"))) rows_[0] = hello, rows_[1] = machine_learning;
    double exponent = std::log10(epsilon_);
    if (slider(c.ui, "log₁₀ ε", exponent, {-8, 0, -5, false, "", 1})) epsilon_ = std::pow(10, exponent);
    const auto answer = table_.answer();
    if (!answer) return;
    section(c.ui, said("ORDER WITHIN A ROW"), said("pairs that changed it"));
    for (std::size_t m = 0; m < answer->result.after.size(); ++m) {
      const OrderKept order = order_kept(answer->result.rows, answer->result.after[m]);
      fact(c.ui, std::string(said_view(title(norm_methods[m]))), say("{} of {}", order.turned, order.pairs), nullptr,
           {said("pairs of features of one row, a < b before and a > b after, or the other way round"),
            said("ties before are not counted; ties after count as kept")});
    }
    note(c.ui, said("A norm along the row can rescale and shift, but it keeps which feature is larger. One along the "
                    "column weighs each feature by the other sequence, and may turn that round: the reason why "
                    "transformers normalise each token by itself."));
  }

  void of_model(const PageContext& c) {
    const ModelConfig& config = c.results().model.model->config();
    const int layer = std::clamp(layer_, 0, config.dims.layers - 1);
    if (which_ == 1 && !config.dims.has_mlp(layer)) which_ = 0;
    const auto which = static_cast<WhichNorm>(which_);
    norm_.want(c, model_norm_sites(*c.results().model.model), fmt::format("{} {}", which_, layer),
               [which, layer](const ReadingSource& source, const Ctx& ctx) {
                 return read_model_norm(*source.model.model, ctx.backend, *source.trace, which, layer);
               });
    const auto answer = norm_.answer();
    if (!answer) return no_reading_yet(c);
    const Index row = pinned_row(c, *answer->source.trace);
    const double width = std::floor(c.room());
    section(c.ui, said("ONE POSITION THROUGH THE NORM"),
            fmt::format("{} ({})", token_label(*answer->source.trace, row), row));
    strips_.want(c.jobs, c.ui, answer, fmt::format("{} {}", row, width), [answer, row, width](const Style& style) {
      NumberStrips strips = model_norm_strips(answer->result, row);
      strips.width = width;
      return number_strips_scene(strips, style);
    });
    if (strips_.scene()) draw_strips(c, answer, row, width);
    section(c.ui, said("MEAN AND DEVIATION BY POSITION"), fixed_by(answer->result.method));
    chart_slot(c, chart_, "moments", answer, "", width, std::clamp(room_below(c) - 8, 120.0, 420.0),
               [answer](const Style& style) { return moments(answer->result, style); });
  }

  void draw_strips(const PageContext& c, const std::shared_ptr<const ReadingJob<ModelNorm>::Reading>& answer, Index row,
                   double width) {
    const Scene* scene = strips_.scene();
    SceneViewOptions how;
    how.fit_height = false;
    const SceneTouch touch = strips_.draw(c.ui, "strips", how, width, scene->height);
    if (!touch.cell || !meaning<Part>(touch.mark)) return;
    const auto* map = std::get_if<Heatmap>(&touch.mark->shape);
    const Index d = touch.cell->column;
    const ModelNorm& n = answer->result;
    if (!map || d >= n.before.dim(1)) return;
    tooltip(c.ui, {say("feature {}: {:.5f}", d, map->values.at(0, d)),
                   n.weights.bias.defined()
                       ? say("{:.5f} → normalised {:.5f} → · gain {:.4f} + bias {:.4f} = {:.5f}", n.before.at(row, d),
                             n.bare.at(row, d), n.weights.gain.at(d), n.weights.bias.at(d), n.after.at(row, d))
                       : say("{:.5f} → normalised {:.5f} → · gain {:.4f} = {:.5f}", n.before.at(row, d),
                             n.bare.at(row, d), n.weights.gain.at(d), n.after.at(row, d))});
  }

  /// What the norm takes out of the curves below.
  static const char* fixed_by(NormMethod method) {
    return method == NormMethod::rms_norm
               ? said("before the norm; it fixes the root mean square alone, √(mean² + variance), before the gain")
               : said("before the norm; before gain and bias it leaves every position with mean 0 and variance 1");
  }

  static LineChart moments(const ModelNorm& norm, const Style& style) {
    LineChart chart;
    chart.y_title = said("mean, and √ variance, of the row before the norm");
    chart.x_title = said("position");
    chart.grid = true;
    ChartSeries mean{said("mean"), style.theme.muted, {}, {}},
        deviation{said("√ variance"), style.theme.accent, {}, {}};
    for (Index i = 0; i < norm.before.dim(0); ++i) {
      const LineStatistics s = statistics(norm.before.select(0, i).copy().values());
      mean.x.push_back(static_cast<double>(i));
      deviation.x.push_back(static_cast<double>(i));
      mean.y.push_back(s.mean);
      deviation.y.push_back(std::sqrt(s.variance));
    }
    chart.series = {mean, deviation};
    return chart;
  }

  void model_controls(const PageContext& c) {
    section(c.ui, said("WHICH NORM"));
    static constexpr const char* norms[] = {to_say("before attention"), to_say("before MLP"), to_say("last")};
    segmented(c.ui, "which norm", norms, which_, ImGui::GetContentRegionAvail().x);
    if (which_ < 2) layer_control(c, layer_);
    position_control(c, said("whose numbers are shown"));
    const auto answer = norm_.answer();
    if (!answer) return;
    const ModelNorm& n = answer->result;
    const Index row = pinned_row(c, *answer->source.trace);
    const LineStatistics before = statistics(n.before.select(0, row).copy().values()),
                         bare = statistics(n.bare.select(0, row).copy().values()),
                         after = statistics(n.after.select(0, row).copy().values());
    section(c.ui, said("NUMBERS"), fmt::format("{}: {}", said_view(title(n.method)), said_view(formula(n.method))));
    const auto line = [&](const char* what, const LineStatistics& s, const std::string& from) {
      fact(c.ui, what, fmt::format("{:+.4f}, {:.4f}", s.mean, s.variance), nullptr,
           {said("mean and variance over the features (divided by their count)"), from});
    };
    line(said("Mean, variance before"), before, fmt::format("{}[{}], F32", name(n.before_site), row));
    line(said("… normalised"), bare, said("before gain and bias"));
    line(said("… after gain and bias"), after, fmt::format("{}[{}], F32", name(n.after_site), row));
    fact(c.ui, "ε", fmt::format("{:g}", n.epsilon), nullptr, {said("of the model's configuration")});
    fact(c.ui, said("Computed anew, differs by"),
         n.difference > 0 ? short_number(n.difference, 2) : said("0, bit for bit"), nullptr,
         {said("largest |norm(before) − after| over all positions"),
          said("more than rounding where an edit stands between them")});
  }

  int view_ = 0, which_ = 0, layer_ = 0;
  std::string rows_[2] = {hello, machine_learning}, error_;
  double epsilon_ = 1e-5;
  ReadingJob<NormTable> table_{*this, "read.norms"};
  ReadingJob<ModelNorm> norm_{*this, "read.norm"};
  ReadingSlot slot_{*this, "scene.norms"}, strips_{*this, "scene.norm.strips"}, chart_{*this, "scene.norm.moments"};
};

}  // namespace

std::unique_ptr<Page> make_norms(JobRunner&) {
  return std::make_unique<NormsPage>();
}

}  // namespace headscope
