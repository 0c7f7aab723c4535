#pragma once
// What numbers of few bits cost a model on one text, and what its outlier dimensions have to do with it (Dettmers et
// al., LLM.int8(), 2022; core/tensor/quantized.h says how is rounded). Of each matrix of each layer, with the rows X
// that it multiplied in the run:
//   weight error   ‖W − Ŵ‖ ÷ ‖W‖
//   product error  ‖X W − X̂ Ŵ‖ ÷ ‖X W‖, with and without the dimensions kept apart that reach the threshold
// and of the model the loss when it is run so (edit "quantize"): whole, at several numbers of bits, and one layer at a
// time.

#include <optional>
#include <set>
#include <vector>

#include "core/analysis/edit_probe.h"
#include "core/model/weights.h"
#include "core/tensor/quantized.h"

namespace headscope {

struct QuantizedMatrix {
  int layer = 0;
  WeightMatrix matrix = WeightMatrix::q;
  double weight_error = 0;   ///< nothing kept apart
  double product_error = 0;  ///< likewise
  double apart_error = 0;    ///< with the dimensions that reach the threshold kept apart
  Index in = 0;              ///< input dimensions
  Index apart = 0;           ///< of which so many reach it
  float largest = 0;         ///< of X …
  Index largest_dimension = 0;
  double typical = 0;  ///< … beside the median over dimensions of the largest magnitude of each
};

struct QuantizationReport {
  Quantization how;                       ///< `apart` is the threshold of the columns "apart"
  std::vector<QuantizedMatrix> matrices;  ///< layer by layer
};

std::set<SiteKind> quantization_sites(const Model& model);
/// `trace` must have recorded quantization_sites(). REQUIRES how.apart > 0.
QuantizationReport read_quantization(const Model& model, const Trace& trace, const Quantization& how);

struct QuantizedRuns {
  enum Way { tensor, vector, apart };
  static constexpr int ways = 3;
  struct Run {
    int bits = 8;
    Way way = tensor;
    Outcome outcome;
  };
  Outcome before;
  std::vector<Run> runs;        ///< bits 8, 6, 5, 4, 3, each way: one step a tensor, vector-wise, with outliers apart
  Outcome chosen;               ///< `how`
  std::vector<Outcome> layers;  ///< `how` in this layer alone
};
/// Runs `request` as often as there are layers and 17 times more. Throws as run().
QuantizedRuns run_quantized(const LoadedModel& loaded, const RunRequest& request, const Quantization& how,
                            const Ctx& ctx);

}  // namespace headscope
