#include "core/analysis/feed_forward.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/analysis/need.h"
#include "core/analysis/residual_stream.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/model/weights.h"

namespace headscope {

namespace {
Distribution distribution_of(const Tensor& packed) {
  double low = 0, high = 0;
  for (const float v : packed.values())
    low = std::min(low, static_cast<double>(v)), high = std::max(high, static_cast<double>(v));
  if (!(high > low)) high = low + 1;
  Distribution out({low, high});
  for (const float v : packed.values()) out.add(static_cast<double>(v));
  return out;
}

double dot(const Tensor& row, const std::vector<double>& with) {
  double sum = 0;
  for (std::size_t i = 0; i < with.size(); ++i) sum += static_cast<double>(row.at(static_cast<Index>(i))) * with[i];
  return sum;
}

constexpr Index rows_at_once = 64;  // of logits, each as long as the vocabulary

/// The tokens whose logits each row, written to the residual stream, raises most. The last norm is the linear map that
/// it was in this run: s (w − mean w) ∘ g, without the mean for RMSNorm.
std::vector<std::vector<NextToken>> raised(const Model& model, Backend& backend, const Tensor& written, double scale,
                                           int keep) {
  const ModelWeights weights = model.weights();
  Tensor through = written.copy();
  const Index width = through.dim(1);
  for (Index i = 0; i < through.dim(0); ++i) {
    double mean = 0;
    if (weights.final_norm.kind == NormKind::layer_norm)
      for (Index j = 0; j < width; ++j) mean += static_cast<double>(written.at(i, j)) / static_cast<double>(width);
    for (Index j = 0; j < width; ++j)
      through.ref(i, j) = static_cast<float>(scale * (static_cast<double>(written.at(i, j)) - mean) *
                                             static_cast<double>(weights.final_norm.gain.at(j)));
  }
  need_one_unembedding(model.config(), "MLP");
  const Linear unembedding = backend.linear_weights({weights.unembedding}, {}, true);
  Tensor logits;
  std::vector<std::vector<NextToken>> out;
  for (Index row = 0; row < through.dim(0); ++row) {
    const Index i = row % rows_at_once;
    if (i == 0)
      logits = backend.linear(through.slice(0, row, std::min(row + rows_at_once, through.dim(0))), unembedding);
    double mean = 0;
    for (Index t = 0; t < logits.dim(1); ++t)
      mean += static_cast<double>(logits.at(i, t)) / static_cast<double>(logits.dim(1));
    std::vector<std::int32_t> order(static_cast<std::size_t>(logits.dim(1)));
    std::iota(order.begin(), order.end(), 0);
    const auto count = static_cast<std::ptrdiff_t>(std::min<Index>(keep, logits.dim(1)));
    std::partial_sort(order.begin(), order.begin() + count, order.end(), [&](std::int32_t a, std::int32_t b) {
      return logits.at(i, a) != logits.at(i, b) ? logits.at(i, a) > logits.at(i, b) : a < b;
    });
    std::vector<NextToken>& most = out.emplace_back();
    for (std::ptrdiff_t k = 0; k < count; ++k) {
      const std::int32_t id = nth(order, k);
      most.push_back({id, 0, static_cast<float>(static_cast<double>(logits.at(i, id)) - mean)});
    }
  }
  return out;
}
}  // namespace

std::string_view title(Activation activation) {
  constexpr std::string_view titles[] = {"ReLU", "GELU",  "GELU (tanh)", "SiLU", "QuickGELU",
                                         "SoLU", "xIELU", "ReLU²",       "tanh"};
  return nth(titles, activation);
}

std::string_view formula(Activation activation) {
  constexpr std::string_view formulas[] = {"max(0, x)",
                                           to_say("x Φ(x) = ½ x (1 + erf(x ÷ √2))"),
                                           "½ x (1 + tanh(√(2/π) (x + 0.044715 x³)))",
                                           "x ÷ (1 + e⁻ˣ)",
                                           "x ÷ (1 + e^(−1.702 x))",
                                           to_say("x eˣ ÷ Σ eˣ over all neurons"),
                                           to_say("α_p x² + β x above 0, else α_n (eˣ − 1 − x) + β x"),
                                           "max(0, x)²",
                                           "tanh x"};
  return nth(formulas, activation);
}

ActivationCurve activation_curve(Backend& backend, Activation activation, double low, double high, int count,
                                 const Backend::Xielu& xielu) {
  Tensor x = Tensor::uninitialized({count});
  for (int i = 0; i < count; ++i) x.ref(i) = static_cast<float>(low + (high - low) * i / (count - 1));
  const Tensor y = activated(activation, xielu, backend, x);
  ActivationCurve out{activation, {}, {}};
  for (int i = 0; i < count; ++i) {
    out.x.push_back(static_cast<double>(x.at(i)));
    out.y.push_back(static_cast<double>(y.at(i)));
  }
  return out;
}

bool has_neurons(const ModelConfig& config) {
  return config.has_dense();
}

std::set<SiteKind> feed_forward_sites(const Model& model) {
  std::set<SiteKind> sites{SiteKind::mlp_pre, SiteKind::mlp_post, SiteKind::mlp_out, SiteKind::resid_post};
  if (model.config().gated_mlp) sites.insert(SiteKind::mlp_pre_linear);
  return sites;
}

FeedForward read_feed_forward(const Model& model, Backend& backend, const Trace& trace, int layer,
                              const AttributionOf& of, int keep, int raise) {
  const ModelConfig& config = model.config();
  if (config.dims.d_mlp == 0)
    throw Error(config.name, "a model with MLPs",
                config.dims.any_attends() ? "blocks of attention alone" : "blocks of a state alone");
  if (layer < 0 || layer >= config.dims.layers)
    throw Error("MLP: layer", fmt::format("a layer from 0 to {}", config.dims.layers - 1), std::to_string(layer));
  if (!config.dims.has_mlp(layer))
    throw Error("MLP: layer", "a layer with an MLP", fmt::format("layer {}, which has none", layer));
  if (config.experts.at(layer))
    throw Error("MLP: layer", "a layer with one MLP for all tokens",
                fmt::format("layer {}, where each token passes through {} of {} experts", layer,
                            config.experts.per_token, config.experts.count),
                "which expert took which token is read by \"experts\"");
  FeedForward out;
  out.layer = layer;
  out.of = of;
  out.of.position = position_of(trace, of.position, "MLP: position");
  const LogitDirection along = logit_direction(model, trace, out.of);
  const Tensor pre = need(trace, {SiteKind::mlp_pre, layer}).packed(),
               post = need(trace, {SiteKind::mlp_post, layer}).packed();
  const Tensor linear = config.gated_mlp ? need(trace, {SiteKind::mlp_pre_linear, layer}) : Tensor();
  out.pre = distribution_of(pre);
  out.post = distribution_of(post);

  const Index n = pre.dim(0), width = pre.dim(1), at = out.of.position;
  std::vector<char> ever(static_cast<std::size_t>(width), 0);
  for (Index i = 0; i < n; ++i) {
    Index active = 0;
    for (Index j = 0; j < width; ++j)
      if (pre.at(i, j) > 0) ++active, nth(ever, j) = 1;
    out.active.push_back(static_cast<double>(active) / static_cast<double>(width));
  }
  out.ever_active = static_cast<double>(std::ranges::count(ever, 1)) / static_cast<double>(width);

  const BlockWeights block = nth(model.weights().blocks, layer);
  std::vector<Neuron> all;
  double total = 0;
  for (Index j = 0; j < width; ++j) {
    Neuron& neuron = all.emplace_back();
    neuron.index = j;
    neuron.pre = static_cast<double>(pre.at(at, j));
    neuron.linear = linear.defined() ? static_cast<double>(linear.at(at, j)) : 0;
    neuron.post = static_cast<double>(post.at(at, j));
    const Tensor row = block.down.select(0, j);
    neuron.norm = std::abs(neuron.post) * norm_of(row.packed().values());
    neuron.logit = neuron.post * dot(row, along.d);
    total += neuron.norm;
    out.logit += neuron.logit;
  }
  out.bias_logit = block.down_bias.defined() ? dot(block.down_bias, along.d) : 0;
  out.logit += out.bias_logit;
  out.edited_logit = dot(need(trace, {SiteKind::mlp_out, layer}).select(0, at), along.d) - out.logit;
  std::ranges::stable_sort(all, std::ranges::greater{}, &Neuron::norm);
  double sum = 0;
  Index counted = 0;
  while (counted < width && sum < total / 2) sum += nth(all, counted++).norm;
  out.half = static_cast<double>(counted) / static_cast<double>(width);

  all.resize(std::min(all.size(), static_cast<std::size_t>(std::max(keep, 1))));
  Tensor written = Tensor::uninitialized({static_cast<Index>(all.size()), Index{config.dims.d_model}});
  for (std::size_t k = 0; k < all.size(); ++k)
    for (Index d = 0; d < config.dims.d_model; ++d)
      written.ref(static_cast<Index>(k), d) =
          static_cast<float>(all[k].post * static_cast<double>(block.down.at(all[k].index, d)));
  auto tokens = raised(model, backend, written, along.scale, raise);
  for (std::size_t k = 0; k < all.size(); ++k) all[k].raises = std::move(tokens[k]);
  out.neurons = std::move(all);
  return out;
}

}  // namespace headscope
