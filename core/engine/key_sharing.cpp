#include "core/engine/key_sharing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "core/base/error.h"
#include "core/model/weights.h"

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
  const Index d = dims.d_head, width = Index{dims.kv_heads} * d, group = dims.heads / dims.kv_heads;
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

}  // namespace headscope
