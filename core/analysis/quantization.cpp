#include "core/analysis/quantization.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/median.h"
#include "core/base/nth.h"
#include "core/edits/quantize_edit.h"
#include "core/tensor/matrices.h"

namespace headscope {

namespace {

Tensor as_rows(const Tensor& x) {
  const Tensor all = x.packed();
  Tensor out = Tensor::uninitialized({all.dim(0), all.size() / all.dim(0)});
  std::copy_n(all.data(), all.size(), &out.ref(0, 0));
  return out;
}

double relative(const RowMajor<double>& now, const RowMajor<double>& before) {
  const double size = before.norm();
  return size > 0 ? (now - before).norm() / size : 0;
}

QuantizedMatrix read_matrix(int layer, WeightMatrix matrix, const Tensor& x, const Tensor& w, const Quantization& how) {
  QuantizedMatrix out{layer, matrix};
  out.in = x.dim(1);
  std::vector<double> magnitudes;
  for (Index c = 0; c < x.dim(1); ++c) {
    double most = 0;
    for (Index i = 0; i < x.dim(0); ++i) {
      most = std::max(most, std::abs(static_cast<double>(x.at(i, c))));
      if (std::abs(x.at(i, c)) > std::abs(out.largest)) out.largest = x.at(i, c), out.largest_dimension = c;
    }
    magnitudes.push_back(most);
  }
  out.typical = median(std::move(magnitudes));
  const RowMajor<double> before = matrix_of(x) * matrix_of(w);
  Quantization plain = how;
  plain.apart = 0;
  const QuantizedFactors all = quantized_factors(x, w, plain), some = quantized_factors(x, w, how);
  out.weight_error = relative(matrix_of(all.w), matrix_of(w));
  out.product_error = relative(matrix_of(all.x) * matrix_of(all.w), before);
  out.apart_error = relative(matrix_of(some.x) * matrix_of(some.w), before);
  out.apart = static_cast<Index>(some.apart.size());
  return out;
}

}  // namespace

std::set<SiteKind> quantization_sites(const Model& model) {
  std::set<SiteKind> sites;
  for (int layer = 0; layer < model.config().dims.layers; ++layer)
    for (int each = 0; each < weight_matrix_count; ++each)
      if (const auto matrix = static_cast<WeightMatrix>(each); model.projection(layer, matrix).weight.defined())
        sites.insert(input_site(model.config(), matrix, layer));
  return sites;
}

QuantizationReport read_quantization(const Model& model, const Trace& trace, const Quantization& how) {
  QuantizationReport report{how, {}};
  for (int layer = 0; layer < model.config().dims.layers; ++layer)
    for (int each = 0; each < weight_matrix_count; ++each) {
      const auto matrix = static_cast<WeightMatrix>(each);
      const Projection own = model.projection(layer, matrix);
      if (!own.weight.defined()) continue;
      const auto found = trace.sites.find({input_site(model.config(), matrix, layer), layer});
      if (found == trace.sites.end()) continue;
      report.matrices.push_back(read_matrix(layer, matrix, as_rows(found->second), own.weight.floats().copy(), how));
    }
  return report;
}

QuantizedRuns run_quantized(const LoadedModel& loaded, const RunRequest& request, const Quantization& how,
                            const Ctx& ctx) {
  QuantizedRuns out;
  const EditProbe probe(loaded, request, true, ctx);
  out.before = probe.outcome(*probe.before());
  const int layers = probe.layers();
  static constexpr int bits[] = {8, 6, 5, 4, 3};
  const double total = static_cast<double>(std::size(bits)) * QuantizedRuns::ways + layers + 1;
  double done = 0;
  const auto after = [&](const Quantization& rounded, std::optional<int> layer) {
    Intervention edit{{}, Quantize{rounded}};
    edit.target.layer = layer;
    const Outcome outcome = probe.after({edit}, ctx);
    if (ctx.progress) *ctx.progress = static_cast<float>(++done / total);
    return outcome;
  };
  for (const int each : bits)
    for (const auto way : {QuantizedRuns::tensor, QuantizedRuns::vector, QuantizedRuns::apart}) {
      Quantization rounded = how;
      rounded.bits = each, rounded.vectors = way != QuantizedRuns::tensor;
      if (way != QuantizedRuns::apart) rounded.apart = 0;
      out.runs.push_back({each, way, after(rounded, {})});
    }
  out.chosen = after(how, {});
  for (int layer = 0; layer < layers; ++layer) out.layers.push_back(after(how, layer));
  return out;
}

}  // namespace headscope
