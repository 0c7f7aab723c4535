#pragma once
// What a norm does to rows of numbers, beside the other norms. Rows are sequences (or positions), columns features:
//   sum_row     x / Σ of its row                       the plainest way to say "within a sequence" …
//   sum_column  x / Σ of its column                    … and "across the batch"
//   layer_norm  (x − mean) / √(var + ε) of its row     Ba et al., Layer Normalization, 2016
//   rms_norm    x / √(mean x² + ε) of its row          Zhang & Sennrich, Root Mean Square Layer Normalization, 2019
//   batch_norm  (x − mean) / √(var + ε) of its column  Ioffe & Szegedy, Batch Normalization, 2015 (statistics of these
//                                                      rows, as in training)
// Gain 1 and bias 0, unless a model's own are given. Variances divide by the count.

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/model.h"
#include "core/model/weights.h"
#include "core/trace/trace.h"

namespace headscope {

enum class NormMethod { sum_row, sum_column, layer_norm, rms_norm, batch_norm };
inline constexpr NormMethod norm_methods[] = {NormMethod::sum_row, NormMethod::sum_column, NormMethod::layer_norm,
                                              NormMethod::rms_norm, NormMethod::batch_norm};
std::string_view title(NormMethod method);    ///< "Sum, per sequence"
std::string_view formula(NormMethod method);  ///< "x ÷ Σ of the row"
bool per_column(NormMethod method);

/// `rows` (row, feature), at least one of each. A sum of 0 leaves its numbers at 0.
Tensor normalise(Backend& backend, const Tensor& rows, NormMethod method, double epsilon = 1e-5);

/// Of the numbers that a norm divides by: one line of a matrix.
struct LineStatistics {
  double sum = 0, mean = 0, variance = 0, rms = 0;
};
LineStatistics statistics(std::span<const float> line);

/// Pairs of features of a row whose order is another after the norm (a < b before, a > b after), over all rows; and how
/// many pairs differ before: what "the meaning is lost" comes to.
struct OrderKept {
  Index pairs = 0, turned = 0;
};
OrderKept order_kept(const Tensor& before, const Tensor& after);

/// Rows of numbers as people type them: "4 6 0 0", commas or spaces. Throws Error at `where` on anything else, on a
/// number that is not finite, and on more than 64.
std::vector<float> parse_row(std::string_view text, const std::string& where);
/// Rows of equal length as one matrix. Throws Error at `where` when they are not.
Tensor matrix_of_rows(std::span<const std::vector<float>> rows, const std::string& where);

/// One norm of the loaded model at work.
enum class WhichNorm { before_attention, before_mlp, last };
struct ModelNorm {
  Site before_site, after_site;
  Tensor before, after;                        ///< (position, d_model), as recorded
  NormWeights weights;                         ///< gain, and bias where the model has one
  NormMethod method = NormMethod::layer_norm;  ///< the model's own
  double epsilon = 0;
  Tensor bare;            ///< (position, d_model): normalised, before gain and bias
  Tensor again;           ///< (position, d_model): the norm computed anew from `before`
  double difference = 0;  ///< largest |again − after|: 0 to rounding, unless an edit stands between them
};
/// The sites it reads.
std::set<SiteKind> model_norm_sites(const Model& model);
/// `layer` is not looked at for the last norm. Throws Error on a layer that is not there, and before_mlp in a model
/// without MLPs.
ModelNorm read_model_norm(const Model& model, Backend& backend, const Trace& trace, WhichNorm which, int layer);

}  // namespace headscope
