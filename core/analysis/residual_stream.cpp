#include "core/analysis/residual_stream.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "core/analysis/need.h"
#include "core/base/nth.h"
#include "core/model/weights.h"

namespace headscope {

namespace {
std::span<const float> packed_row(const Tensor& packed, Index row) {
  const auto width = static_cast<std::size_t>(packed.dim(1));
  return packed.values().subspan(static_cast<std::size_t>(row) * width, width);
}

/// What a part puts into the stream; of a scale what it makes of it.
Site written(ResidualStream::Part::Kind kind, int layer) {
  using Kind = ResidualStream::Part::Kind;
  return {kind == Kind::attention ? SiteKind::attn_out
          : kind == Kind::mlp     ? SiteKind::mlp_out
          : kind == Kind::scale   ? SiteKind::resid_post
                                  : SiteKind::layer_out,
          layer};
}

Tensor less(const Tensor& a, const Tensor& b) {
  Tensor out = a.copy();
  const auto values = out.mutable_values();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] -= b.values()[i];
  return out;
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

double ResidualStream::factor(std::size_t part, Index position) const {
  const auto p = static_cast<Index>(part);
  const double length = static_cast<double>(norm.at(nth(parts, p).stage - 1, position));
  return 1 + static_cast<double>(cosine.at(p, position)) * static_cast<double>(added.at(p, position)) / length;
}

double ResidualStream::factors(Index position) const {
  double product = 1;
  for (std::size_t p = 0; p < parts.size(); ++p)
    if (parts[p].kind == Part::Kind::scale) product *= factor(p, position);
  return product;
}

std::vector<std::size_t> ResidualStream::parts_of(Index stage) const {
  std::vector<std::size_t> out;
  for (std::size_t p = 0; p < parts.size(); ++p)
    if (parts[p].stage == stage) out.push_back(p);
  return out;
}

std::set<SiteKind> residual_stream_sites(const Model& model) {
  std::set<SiteKind> sites = logit_lens_sites(model);
  sites.insert(SiteKind::attn_out);
  if (model.config().dims.d_mlp > 0) sites.insert(SiteKind::mlp_out);
  if (const ModelDims& dims = model.config().dims; dims.d_layer > 0 || dims.convolves_first)
    sites.insert(SiteKind::layer_out);
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
  using Kind = ResidualStream::Part::Kind;
  for (int layer = 0, stage = 0; layer < dims.layers; ++layer) {
    const auto add = [&](Kind kind, const char* what, Index at) {
      out.parts.push_back({fmt::format("{} {}", layer, what), layer, kind, at});
    };
    const bool apart = dims.has_mid() || !dims.has_mlp(layer);
    add(Kind::attention, dims.attends(layer) ? "attn" : "mixer", apart ? ++stage : stage + 1);
    if (dims.has_mlp(layer)) add(Kind::mlp, "mlp", ++stage);
    if (dims.adds_behind(layer))
      dims.d_layer > 0 ? add(Kind::input, "input", ++stage) : add(Kind::convolution, "convolution", ++stage);
    if (dims.stream_scales) add(Kind::scale, "scale", ++stage);
  }
  out.added = Tensor::uninitialized({static_cast<Index>(out.parts.size()), n});
  out.cosine = out.added.copy();
  for (std::size_t p = 0; p < out.parts.size(); ++p) {
    const int layer = out.parts[p].layer;
    const Kind kind = out.parts[p].kind;
    const auto part = static_cast<Index>(p);
    // Of a block's own: the stage before it is that of another block, or what this one begins with.
    const Site before = nth(out.stages, out.parts[p].stage - 1).site;
    const Tensor x = need(trace, before.layer == layer ? before : Site{SiteKind::resid_pre, layer}).packed();
    Tensor f = need(trace, written(kind, layer)).packed();
    if (kind == Kind::scale) f = less(f, x);
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
