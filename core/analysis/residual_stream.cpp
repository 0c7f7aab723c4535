#include "core/analysis/residual_stream.h"

#include <cmath>
#include <limits>

#include "core/analysis/need.h"
#include "core/model/weights.h"

namespace headscope {

namespace {
std::span<const float> packed_row(const Tensor& packed, Index row) {
  const auto width = static_cast<std::size_t>(packed.dim(1));
  return packed.values().subspan(static_cast<std::size_t>(row) * width, width);
}
}  // namespace

double norm_of(std::span<const float> row) {
  double square = 0;
  for (const float v : row) square += static_cast<double>(v) * static_cast<double>(v);
  return std::sqrt(square);
}

double ResidualStream::mean(const Tensor& values, Index row) {
  double sum = 0;
  Index count = 0;
  for (Index i = 0; i < values.dim(1); ++i)
    if (!std::isnan(values.at(row, i))) sum += static_cast<double>(values.at(row, i)), ++count;
  return count ? sum / static_cast<double>(count) : std::numeric_limits<double>::quiet_NaN();
}

std::set<SiteKind> residual_stream_sites(const Model& model) {
  std::set<SiteKind> sites{SiteKind::resid_pre, SiteKind::attn_out, SiteKind::resid_post};
  if (model.config().dims.d_mlp > 0) sites.insert(SiteKind::mlp_out);
  if (model.config().dims.has_mid()) sites.insert(SiteKind::resid_mid);
  return sites;
}

ResidualStream read_residual_stream(const Trace& trace) {
  const ModelDims& dims = trace.model.dims;
  const auto n = static_cast<Index>(trace.tokens.size());
  ResidualStream out;
  out.stages = residual_stages(dims);
  out.norm = Tensor::uninitialized({static_cast<Index>(out.stages.size()), n});
  for (std::size_t s = 0; s < out.stages.size(); ++s) {
    const Tensor x = need(trace, out.stages[s].site).packed();
    for (Index i = 0; i < n; ++i)
      out.norm.ref(static_cast<Index>(s), i) = static_cast<float>(norm_of(packed_row(x, i)));
  }
  for (int layer = 0; layer < dims.layers; ++layer) {
    out.parts.push_back({layer, false});
    if (dims.has_mlp(layer)) out.parts.push_back({layer, true});
  }
  out.added = Tensor::uninitialized({static_cast<Index>(out.parts.size()), n});
  out.cosine = out.added.copy();
  for (std::size_t p = 0; p < out.parts.size(); ++p) {
    const auto [layer, mlp] = out.parts[p];
    const auto part = static_cast<Index>(p);
    const Tensor x = need(trace, {mlp && dims.has_mid() ? SiteKind::resid_mid : SiteKind::resid_pre, layer}).packed(),
                 f = need(trace, {mlp ? SiteKind::mlp_out : SiteKind::attn_out, layer}).packed();
    for (Index i = 0; i < n; ++i) {
      const auto stream = packed_row(x, i), added = packed_row(f, i);
      double product = 0;
      for (std::size_t d = 0; d < stream.size(); ++d)
        product += static_cast<double>(stream[d]) * static_cast<double>(added[d]);
      const double lengths = norm_of(stream) * norm_of(added);
      out.added.ref(part, i) = static_cast<float>(norm_of(added));
      out.cosine.ref(part, i) =
          lengths > 0 ? static_cast<float>(product / lengths) : std::numeric_limits<float>::quiet_NaN();
    }
  }
  return out;
}

}  // namespace headscope
