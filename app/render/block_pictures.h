#pragma once
// What the readings of blocks and of whole models found, as pictures: one place for the command line and for the
// window's pages. All functions are pure.

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "app/render/reading_pictures.h"
#include "core/analysis/feed_forward.h"
#include "core/analysis/norm_placement.h"
#include "core/analysis/norms.h"
#include "core/analysis/token_loss.h"
#include "core/analysis/token_path.h"
#include "viz/scene/flow_diagram.h"
#include "viz/scene/histogram.h"
#include "viz/scene/line_chart.h"
#include "viz/scene/matrix_flow.h"
#include "viz/scene/number_strips.h"
#include "viz/scene/token_bars.h"

namespace headscope {

/// ‖x‖ by depth: the mean over positions and one position.
LineChart stream_chart(const ResidualStream& stream, std::optional<Index> position, const Style& style);
/// Stages down, positions across.
Matrix stream_matrix(const ResidualStream& stream, std::shared_ptr<const Trace> trace);
/// What attention, MLP and what else there is add by layer, mean over positions: ‖f‖, or (`cosine`) its cosine with the
/// stream.
LineChart added_chart(const ResidualStream& stream, bool cosine, const Style& style);

/// The mean ‖x‖ by depth of the model as it is and with its norms moved.
LineChart placement_chart(const NormPlacement& found, const Style& style);
/// One block both ways, with the numbers of one position.
FlowDiagram placement_diagram(const NormPlacement& found, const ModelConfig& config, int layer, Index position);
enum class StackNumber { residual, residual_gradient, weight_gradient };
LineChart stack_chart(const RandomStacks& found, StackNumber what, const Style& style);

/// Rows before and after every norm.
struct NormTable {
  Tensor rows;
  std::vector<Tensor> after;  ///< as norm_methods
  double epsilon = 1e-5;
};
NormTable norm_table(Backend& backend, const Tensor& rows, double epsilon);
/// The rows and what each norm makes of them, each a matrix with its numbers in the cells.
Scene norm_table_scene(const NormTable& table, double width, const Style& style);
/// One position through a norm of the model.
NumberStrips model_norm_strips(const ModelNorm& norm, Index position);

/// φ of every Activation that is a function of one number.
std::vector<ActivationCurve> activation_curves(Backend& backend, const Backend::Xielu& xielu = {});
/// The model's own drawn strong, and SiLU times a linear branch of the value `gate`: what a SwiGLU neuron gives. `at`
/// is pointed out on the axis.
LineChart activation_chart(std::span<const ActivationCurve> curves, std::optional<Activation> own, double gate,
                           double at, const Style& style);
Histogram neuron_histogram(const Distribution& values, const std::string& what, Color color);

NumberStrips path_strips(const TokenPath& path);
TokenBars loss_bars(const LossReport& report, std::shared_ptr<const Trace> trace, const TokenName& name);

}  // namespace headscope
