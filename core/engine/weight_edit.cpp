#include "core/engine/weight_edit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <Eigen/Core>
#include <algorithm>
#include <vector>

#include "core/base/error.h"
#include "core/model/weights.h"
#include "core/tensor/singular.h"

namespace headscope {

void check_groups(int groups, const ModelDims& dims, const std::string& where) {
  if (groups <= dims.kv_heads && dims.kv_heads % groups == 0) return;
  std::vector<int> possible;
  for (int g = 1; g <= dims.kv_heads; ++g)
    if (dims.kv_heads % g == 0) possible.push_back(g);
  throw Error(where, fmt::format("{} key heads in equal groups: {}", dims.kv_heads, fmt::join(possible, ", ")),
              std::to_string(groups));
}

LatentProjector latent_projector(const Model& model, int layer, int rank, const std::string& where) {
  const ModelDims& dims = model.config().dims;
  const BlockWeights block = model.weights().blocks[static_cast<std::size_t>(layer)];
  const Index d = dims.d_head, width = Index{dims.kv_heads} * d, group = dims.group();
  // The key heads side by side; each stands in every query head that shares it.
  const auto joined = [&](Tensor HeadWeights::*part) {
    const Tensor& first = block.heads[0].*part;
    if (!first.defined()) return Tensor();
    const bool matrix = first.rank() == 2;
    Tensor all = Tensor::uninitialized(matrix ? Shape{first.dim(0), width} : Shape{width});
    for (Index kv = 0; kv < dims.kv_heads; ++kv) {
      const Tensor& own = block.heads[static_cast<std::size_t>(kv * group)].*part;
      for (Index c = 0; c < d; ++c) {
        if (!matrix) all.ref(kv * d + c) = own.at(c);
        for (Index row = 0; matrix && row < own.dim(0); ++row) all.ref(row, kv * d + c) = own.at(row, c);
      }
    }
    return all;
  };
  const Index most = std::min<Index>(dims.d_model, 2 * width);
  if (rank < 1 || rank > most)
    throw Error(where, fmt::format("a rank from 1 to {}, that of keys and values together", most),
                std::to_string(rank));
  return {factor_keys(joined(&HeadWeights::k), joined(&HeadWeights::v), rank), joined(&HeadWeights::k_bias),
          joined(&HeadWeights::v_bias)};
}

void through_latent(const LatentProjector& latent, const Tensor& input, bool values, int first, int last, Tensor& out) {
  const Tensor& up = values ? latent.factors.up_v : latent.factors.up_k;
  const Tensor& bias = values ? latent.v_bias : latent.k_bias;
  const Tensor& down = latent.factors.down;
  const Index width = down.dim(0), rank = down.dim(1), d = out.dim(2);
  std::vector<double> code(static_cast<std::size_t>(rank));
  for (Index i = first; i <= last; ++i) {
    std::ranges::fill(code, 0.0);
    for (Index a = 0; a < width; ++a)
      for (Index r = 0; r < rank; ++r)
        code[static_cast<std::size_t>(r)] += static_cast<double>(input.at(i, a)) * static_cast<double>(down.at(a, r));
    for (Index h = 0; h < out.dim(1); ++h)
      for (Index c = 0; c < d; ++c) {
        double sum = bias.defined() ? static_cast<double>(bias.at(h * d + c)) : 0;
        for (Index r = 0; r < rank; ++r)
          sum += code[static_cast<std::size_t>(r)] * static_cast<double>(up.at(r, h * d + c));
        out.ref(i, h, c) = static_cast<float>(sum);
      }
  }
}

SiteKind input_site(WeightMatrix matrix) {
  switch (matrix) {
    case WeightMatrix::o:
      return SiteKind::z;
    case WeightMatrix::mlp_in:
    case WeightMatrix::mlp_gate:
      return SiteKind::ln2_normalized;
    case WeightMatrix::mlp_out:
      return SiteKind::mlp_post;
    default:
      return SiteKind::ln1_normalized;
  }
}

SiteKind output_site(WeightMatrix matrix, const ModelConfig& config) {
  switch (matrix) {
    case WeightMatrix::q:
      return SiteKind::q;
    case WeightMatrix::k:
      return SiteKind::k;
    case WeightMatrix::v:
      return SiteKind::v;
    case WeightMatrix::o:
      return SiteKind::attn_out;
    case WeightMatrix::mlp_in:
      return config.gated_mlp ? SiteKind::mlp_pre_linear : SiteKind::mlp_pre;
    case WeightMatrix::mlp_gate:
      return SiteKind::mlp_pre;
    case WeightMatrix::mlp_out:
      return SiteKind::mlp_out;
  }
  return SiteKind::mlp_out;
}

std::optional<Projection> scaled_projection(const Model& model, int layer, const ScaleSingular& edit,
                                            const std::string& where) {
  const Projection own = model.projection(layer, edit.matrix);
  const auto found = model.singular(layer, edit.matrix);
  if (!found) {
    std::vector<std::string_view> there;
    for (int each = 0; each < weight_matrix_count; ++each)
      if (model.projection(layer, static_cast<WeightMatrix>(each)).weight.defined())
        there.push_back(name_of(static_cast<WeightMatrix>(each)));
    throw Error(where, fmt::format("a matrix that {} has: {}", model.config().name, fmt::join(there, ", ")),
                std::string(name_of(edit.matrix)));
  }
  const auto count = static_cast<int>(found->values.size());
  for (const ScaleSingular::Range& range : edit.scales)
    if (range.first > count || range.last > count)
      throw Error(where, fmt::format("singular values from 1 to {} of {}", count, symbol_of(edit.matrix)),
                  std::to_string(std::max(range.first, range.last)));
  const std::vector<double> z = edit.vector(found->values.size());
  if (std::ranges::all_of(z, [](double each) { return each == 1; })) return std::nullopt;
  return Projection{scaled_singular(own.weight, *found, z), own.bias};
}

namespace {
using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using View = Eigen::Map<const RowMajor>;
}  // namespace

void multiply_anew(const Projection& by, const Tensor& input, int first, int last, Tensor& out) {
  if (last < first) return;
  const Tensor x = input.packed(), w = by.weight.packed();
  const Index in = w.dim(0), width = w.dim(1), rows = last - first + 1;
  RowMajor product = View(x.data() + first * in, rows, in) * View(w.data(), in, width);
  const Index inner = out.rank() == 3 ? out.dim(2) : 1;
  for (Index i = 0; i < rows; ++i)
    for (Index c = 0; c < width; ++c) {
      const float value = product(i, c) + (by.bias.defined() ? by.bias.at(c) : 0.0f);
      (out.rank() == 3 ? out.ref(first + i, c / inner, c % inner) : out.ref(first + i, c)) = value;
    }
}

void multiply_heads_anew(const Projection& by, const Tensor& input, int first, int last, Tensor& out) {
  const Tensor w = by.weight.packed();
  const Index heads = input.dim(1), d = input.dim(2), width = w.dim(1);
  for (Index head = 0; head < heads; ++head) {
    const Tensor z = input.select(1, head).packed();
    const RowMajor product =
        View(z.data() + first * d, last - first + 1, d) * View(w.data() + head * d * width, d, width);
    for (Index i = 0; i < product.rows(); ++i)
      for (Index c = 0; c < width; ++c) out.ref(first + i, head, c) = product(i, c);
  }
}

}  // namespace headscope
