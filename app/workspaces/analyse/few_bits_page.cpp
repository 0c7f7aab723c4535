// Weights and activations in few bits: the loss it costs, the error of every matrix, and what outliers do.

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/analyse/parts.h"
#include "app/workspaces/analyse/reading_page.h"
#include "core/analysis/quantization.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/edits/quantize_edit.h"
#include "viz/scene/map_cells.h"

namespace headscope {

namespace {

class FewBitsPage final : public ReadingPage {
 public:
  void middle(const PageContext& c) override {
    if (!c.results().model.model) return no_reading_yet(c);
    const Quantization how = chosen();
    const std::string options = fmt::format("{} {} {} {:.2f}", how.bits, how.activations, how.vectors, how.apart);
    errors_.want(c, quantization_sites(*c.results().model.model), options,
                 [how](const ReadingSource& source, const Ctx&) {
                   return read_quantization(*source.model.model, *source.trace, how);
                 });
    runs_.want(c, {}, options, [how](const ReadingSource& source, const Ctx& ctx) {
      RunRequest unrounded = source.run->request;
      std::erase_if(unrounded.edits, of_this_page);
      return run_quantized(source.model, unrounded, how, Ctx{.backend = ctx.backend, .stop = ctx.stop});
    });
    if (!errors_.answer()) return no_reading_yet(c);
    charts(c);
    matrix(c);
  }

  void controls(ControlsRecord& r) override {
    r.field("bits", bits_, 2, 8);
    r.choice("operands", operands_, 1);
    r.choice("steps", steps_, 1);
    r.field("apart", apart_, 0.5, 20);
    r.choice("shown", shown_, 2);
  }

  void right(const PageContext& c) override {
    section(c.ui, said("ROUNDED TO"), said("symmetric, absmax"));
    double bits = bits_;
    if (slider(c.ui, to_say("Bits"), bits, {2, 8, 8, false, "", 0})) bits_ = static_cast<int>(std::lround(bits));
    static constexpr const char* operands[] = {to_say("weights"), to_say("and what they multiply")};
    segmented(c.ui, "rounded operands", operands, operands_, ImGui::GetContentRegionAvail().x);
    static constexpr const char* steps[] = {to_say("a step per tensor"), to_say("per row and column")};
    segmented(c.ui, "rounding steps", steps, steps_, ImGui::GetContentRegionAvail().x);
    slider(c.ui, to_say("Apart from"), apart_, {0.5, 20, 6, true, "", 1});
    note(c.ui, said("Dimensions in which some token reaches this are multiplied unrounded (LLM.int8(): 6)."));
    if (const auto& model = c.results().model.model)
      if (const ModelConfig& config = model->config(); !config.dims.attends() || config.output_gate)
        note(c.ui, said("Rounded of a layer that does not attend are W_O and the MLP; the output gate of attention "
                        "never is."));
    facts(c);
    const bool in_use = std::ranges::any_of(c.state().document.edits, of_this_page);
    if (button(c.ui, in_use ? to_say("Run the model unrounded") : to_say("Run the model so"))) use(c, !in_use);
    if (ImGui::IsItemHovered())
      tooltip(c.ui, {said("the edit “quantize” in all layers: every page then shows the rounded model")});
  }

 private:
  Quantization chosen() const { return {bits_, operands_ == 1, steps_ == 1, apart_}; }

  static bool of_this_page(const Intervention& edit) {
    return edit.action.as<Quantize>() && edit.target == HeadTarget{};
  }
  void use(const PageContext& c, bool rounded) const {
    std::vector<Intervention> edits = c.state().document.edits;
    std::erase_if(edits, of_this_page);
    if (rounded) edits.push_back({{}, Quantize{chosen()}});
    c.editor.set_edits(std::move(edits));
  }

  void facts(const PageContext& c) {
    const auto runs = runs_.answer();
    if (runs) {
      const QuantizedRuns& of = runs->result;
      section(c.ui, said("LOSS ON THIS TEXT"), said("before → after"));
      if (!std::isnan(of.before.loss))
        fact(c.ui, said("All layers"), fmt::format("{:.3f} → {:.3f}", of.before.loss, of.chosen.loss), nullptr,
             {said(c.predicts().loss), said("the edit “quantize” in every layer, as chosen above")});
      else if (const std::string why = why_no_loss(c); !why.empty())
        note(c.ui, why);
      fact(c.ui, said("KL of the answer"), std::isnan(of.chosen.kl) ? "–" : say("{:.4f} nats", of.chosen.kl), nullptr,
           {said("KL(before ‖ after) where the model answers, full vocabulary")});
    }
    const auto errors = errors_.answer();
    if (!errors || errors->result.matrices.empty()) return;
    const QuantizationReport& of = errors->result;
    Index apart = 0, in = 0;
    const QuantizedMatrix* most = nullptr;  // where half of the dimensions are 0, as behind a ReLU, nothing is typical
    for (const QuantizedMatrix& each : of.matrices) {
      apart += each.apart, in += each.in;
      if (each.typical > 0 &&
          (!most || std::abs(each.largest) * most->typical > std::abs(most->largest) * each.typical))
        most = &each;
    }
    section(c.ui, said("OUTLIERS"), said("of what the matrices multiply"));
    fact(c.ui, said("Kept apart"),
         say("{:.1f} % of the dimensions", 100.0 * static_cast<double>(apart) / static_cast<double>(in)), nullptr,
         {say("{} of {} input dimensions of all matrices reach {:.1f}", apart, in, of.how.apart)});
    if (most)
      fact(c.ui, said("The largest"), say("{:.0f} × the median", std::abs(most->largest) / most->typical), nullptr,
           {say("{:.2f} in dimension {} of what {} of layer {} multiplies", most->largest, most->largest_dimension,
                symbol_of(most->matrix), most->layer),
            say("median over its dimensions of the largest magnitude: {:.3f}", most->typical)});
    note(
        c.ui,
        apart == 0
            ? say("No dimension reaches {:.1f} here: keeping apart changes nothing. Lower the threshold.", of.how.apart)
            : said(
                  "One large number makes the step of all that share it large. Kept apart, the rest has a finer one."));
  }

  void charts(const PageContext& c) {
    const auto answer = runs_.answer();
    const double width = std::floor(c.room()), half = std::floor((width - 24) / 2),
                 height = std::clamp(room_below(c) * 0.42, 150.0, 320.0);
    if (!answer) {
      section(c.ui, said("LOSS OVER BITS"), said("running the model with every number of bits"));
      ImGui::Dummy({0, c.ui.px(static_cast<float>(height))});
      return;
    }
    section(c.ui, by_loss(answer->result) ? said("LOSS OVER BITS") : said("KL OVER BITS"),
            said("all layers · on the right: one layer alone, as chosen"));
    const ImVec2 at = ImGui::GetCursorPos();
    chart_slot(c, bits_slot_, "bits", answer, "", half, height,
               [answer](const Style& style) { return over_bits(answer->result, style); });
    ImGui::SetCursorPos({at.x + c.ui.px(static_cast<float>(half + 24)), at.y});
    chart_slot(c, layers_slot_, "layers", answer, "", half, height,
               [answer](const Style& style) { return over_layers(answer->result, style); });
  }

  /// Of a text without a loss the charts tell how far the answer moves.
  static bool by_loss(const QuantizedRuns& runs) { return !std::isnan(runs.before.loss); }
  static LineChart over_bits(const QuantizedRuns& runs, const Style& style) {
    LineChart chart;
    chart.grid = chart.points = true;
    const bool losses = by_loss(runs);
    chart.y_title = losses ? said("loss, nats") : said("KL of the answer, nats");
    chart.x_title = said("bits");
    chart.x_ticks = {3, 4, 5, 6, 8};
    ChartSeries lines[] = {{said("per tensor"), style.theme.key, {}, {}},
                           {said("per row"), style.theme.accent, {}, {}},
                           {said("apart"), style.theme.value, {}, {}}};
    for (const QuantizedRuns::Run& run : runs.runs) {
      ChartSeries& line = nth(lines, run.way);
      line.x.push_back(run.bits), line.y.push_back(losses ? run.outcome.loss : run.outcome.kl);
    }
    for (ChartSeries& line : lines) {
      std::ranges::reverse(line.x), std::ranges::reverse(line.y);
      chart.series.push_back(std::move(line));
    }
    const double as_it_is = losses ? runs.before.loss : 0 * runs.chosen.kl;  // NaN where nothing is answered
    ChartSeries before{said("unrounded"), style.theme.muted, {3, 8}, {as_it_is, as_it_is}};
    before.dashed = before.quiet = true;
    chart.series.push_back(std::move(before));
    return chart;
  }

  static LineChart over_layers(const QuantizedRuns& runs, const Style& style) {
    LineChart chart;
    chart.grid = chart.points = true;
    const bool losses = by_loss(runs);
    chart.y_title = losses ? said("change of loss, nats") : said("KL of the answer, nats");
    chart.x_title = said("layer");
    ChartSeries line{"", style.theme.accent, {}, {}};
    for (std::size_t layer = 0; layer < runs.layers.size(); ++layer) {
      line.x.push_back(static_cast<double>(layer));
      line.y.push_back(losses ? runs.layers[layer].loss - runs.before.loss : runs.layers[layer].kl);
      chart.x_ticks.push_back(static_cast<double>(layer));
    }
    chart.series.push_back(std::move(line));
    return chart;
  }

  void matrix(const PageContext& c) {
    const auto answer = errors_.answer();
    section(c.ui, said("ERROR OF EVERY MATRIX"), said("‖difference‖ ÷ ‖what it was‖, on this text"));
    static constexpr const char* views[] = {to_say("products"), to_say("outliers apart"), to_say("weights")};
    segmented(c.ui, "shown error", views, shown_);
    const int shown = shown_;
    const SceneTouch touch =
        matrix_slot(c, slot_, "few bits", answer, std::to_string(shown), std::max(room_below(c) - 8, 120.0),
                    [answer, shown] { return error_matrix(answer->result, shown); });
    const auto cell = matrix_cell(touch);
    if (!cell) return;
    const auto columns = columns_of(answer->result);
    for (const QuantizedMatrix& each : answer->result.matrices)
      if (each.layer == cell->row && cell->column < static_cast<Index>(columns.size()) &&
          nth(columns, cell->column) == each.matrix)
        tooltip(c.ui, {say("{} of layer {}", symbol_of(each.matrix), each.layer),
                       say("products {:.4f}, outliers apart {:.4f}, weights {:.4f}", each.product_error,
                           each.apart_error, each.weight_error),
                       say("{} of {} input dimensions kept apart; largest {:.2f} in dimension {}, median {:.2f}",
                           each.apart, each.in, each.largest, each.largest_dimension, each.typical),
                       said("‖X W − X̂ Ŵ‖ ÷ ‖X W‖, X as recorded, F32")});
  }

  static std::vector<WeightMatrix> columns_of(const QuantizationReport& report) {
    std::vector<WeightMatrix> columns;
    for (int each = 0; each < weight_matrix_count; ++each)
      if (std::ranges::find(report.matrices, static_cast<WeightMatrix>(each), &QuantizedMatrix::matrix) !=
          report.matrices.end())
        columns.push_back(static_cast<WeightMatrix>(each));
    return columns;
  }

  static Matrix error_matrix(const QuantizationReport& report, int shown) {
    Matrix m;
    const auto columns = columns_of(report);
    const int layers = report.matrices.empty() ? 0 : report.matrices.back().layer + 1;
    m.values = Tensor::full({layers, static_cast<Index>(columns.size())}, std::numeric_limits<float>::quiet_NaN());
    for (int layer = 0; layer < layers; ++layer) m.rows.push_back(std::to_string(layer));
    for (const WeightMatrix each : columns) m.columns.emplace_back(symbol_of(each));
    for (const QuantizedMatrix& each : report.matrices)
      m.values.ref(each.layer, std::ranges::find(columns, each.matrix) - columns.begin()) =
          static_cast<float>(shown == 0   ? each.product_error
                             : shown == 1 ? each.apart_error
                                          : each.weight_error);
    m.row_title = said("layer ↓");
    m.column_title = said("matrix →");
    m.unit = shown == 2 ? "‖W − Ŵ‖ ÷ ‖W‖" : "‖X W − X̂ Ŵ‖ ÷ ‖X W‖";
    m.low = 0;
    if (shown < 2) {  // one scale for both, so that the eye can compare
      double most = 0;
      for (const QuantizedMatrix& each : report.matrices) most = std::max({most, each.product_error, each.apart_error});
      m.high = std::max(most, 1e-6);
    }
    m.largest_cell = 90;
    return m;
  }

  ReadingJob<QuantizationReport> errors_{*this, "read.few bits"};
  ReadingJob<QuantizedRuns> runs_{*this, "read.few bits runs", to_say("running the model in few bits")};
  ReadingSlot slot_{*this, "scene.few bits"}, bits_slot_{*this, "scene.few bits.bits"},
      layers_slot_{*this, "scene.few bits.layers"};
  int bits_ = 4, operands_ = 1, steps_ = 1, shown_ = 0;
  double apart_ = 6;
};

}  // namespace

std::unique_ptr<Page> make_few_bits(JobRunner&) {
  return std::make_unique<FewBitsPage>();
}

}  // namespace headscope
