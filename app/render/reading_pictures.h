#pragma once
// What the reading tools found, as pictures: one place for the command line and for the window's pages. All
// functions are pure.

#include <functional>
#include <memory>
#include <string>

#include "core/analysis/circuits.h"
#include "core/analysis/composition.h"
#include "core/analysis/logit_attribution.h"
#include "core/analysis/logit_lens.h"
#include "core/analysis/sinks.h"
#include "core/analysis/weighted_maps.h"
#include "viz/scene/head_map.h"
#include "viz/scene/matrix_scene.h"
#include "viz/scene/scene.h"
#include "viz/scene/token_axis.h"

namespace headscope {

/// The label of a token id.
using TokenName = std::function<std::string(std::int32_t)>;

/// What the colour of a logit lens cell says.
enum class LensColor { probability, entropy, kl, followed, rank };
/// Stages down, positions across; cells name the most probable token, or the followed token's number.
Matrix lens_matrix(const LogitLens& lens, std::shared_ptr<const Trace> trace, LensColor color, const TokenName& name);
/// The followed token through the stages at one position: its probability, and its reciprocal rank.
Scene lens_trajectory(const LogitLens& lens, Index position, double width, double height, const Style& style);

/// Layers down; heads, then (where the model has them) the output bias and the MLP across.
Matrix attribution_matrix(const LogitAttribution& found, const ModelDims& dims);
/// The parts of some heads by the position they read from; those behind the one that is asked about are masked where no
/// head looks ahead.
Matrix source_matrix(const LogitAttribution& found, std::shared_ptr<const Trace> trace,
                     const std::vector<HeadId>& heads);

/// The map of the head that the options name, weighted; without title and caption.
Scene weighted_scene(const Trace& trace, const ModelWeights& weights, Weighting weighting, HeadMapOptions options,
                     const Style& style);

enum class Circuit { ov, qk };
Matrix circuit_matrix(const TokenCircuits& found, Circuit circuit, const TokenName& name);

enum class CompositionKind { q, k, v };
/// Earlier heads down, later heads across.
Matrix composition_matrix(const Composition& found, CompositionKind kind);

/// Queries down, keys across: any number per pair of positions. Where no head looks ahead, cells whose key lies after
/// the query are masked.
Matrix token_matrix(const Tensor& values, std::shared_ptr<const Trace> trace, std::string unit);
/// One row over the text.
Matrix token_row(const std::vector<double>& values, std::shared_ptr<const Trace> trace, std::string unit);

/// Attention against place in the row, a line per layer.
Scene v_shape_chart(const SinkReport& report, double width, double height, const Style& style);

}  // namespace headscope
