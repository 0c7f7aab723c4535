#include "core/model/weights.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "core/base/nth.h"
#include "core/model/model_parts.h"

namespace headscope {

namespace {
struct Part {
  Tensor weight, bias;
};

/// Columns [begin, begin + width) of the products side by side. They lie in one part: parts may have been joined, never
/// cut.
Part columns(const std::vector<Linear>& products, Index begin, Index width) {
  for (const Linear& product : products)
    for (std::size_t i = 0; i < product.parts.size(); ++i) {
      const Index here = product.parts[i].dim(1);
      if (begin >= here) {
        begin -= here;
        continue;
      }
      assert(begin + width <= here);
      const Tensor bias = i < product.biases.size() ? product.biases[i] : Tensor();
      return {product.parts[i].slice(1, begin, begin + width),
              bias.defined() ? bias.slice(0, begin, begin + width) : Tensor()};
    }
  assert(false);
  return {};
}
}  // namespace

std::string_view name_of(WeightMatrix matrix) {
  static constexpr std::string_view names[weight_matrix_count] = {"q", "k", "v", "o", "mlp_in", "mlp_gate", "mlp_out"};
  return names[static_cast<int>(matrix)];
}

std::string_view symbol_of(WeightMatrix matrix) {
  static constexpr std::string_view symbols[weight_matrix_count] = {"W_Q",  "W_K",    "W_V",  "W_O",
                                                                    "W_in", "W_gate", "W_out"};
  return symbols[static_cast<int>(matrix)];
}

Tensor normalized(const ModelConfig& config, const NormWeights& norm, Backend& backend, const Tensor& x,
                  RowQueue* later) {
  const double epsilon = norm.epsilon.value_or(config.norm_epsilon);
  switch (norm.kind) {
    case NormKind::layer_norm:
      return backend.layer_norm(x, norm.gain, norm.bias, epsilon, later);
    case NormKind::rms_norm:
      return backend.rms_norm(x, norm.gain, epsilon, later);
    case NormKind::none:
      break;
  }
  return x;
}

Tensor activated(Activation activation, const Backend::Xielu& xielu, Backend& backend, const Tensor& x,
                 RowQueue* later) {
  switch (activation) {
    case Activation::relu:
      return backend.activate(Backend::Unary::relu, x, later);
    case Activation::relu2: {
      const Tensor cut = backend.activate(Backend::Unary::relu, x, later);
      return backend.multiply(cut, cut, later);
    }
    case Activation::gelu:
      return backend.activate(Backend::Unary::gelu, x, later);
    case Activation::gelu_tanh:
      return backend.activate(Backend::Unary::gelu_tanh, x, later);
    case Activation::silu:
      return backend.activate(Backend::Unary::silu, x, later);
    case Activation::solu:
      return backend.solu(x, later);
    case Activation::quick_gelu:  // a x · σ(a x) ÷ a
      return backend.scale(backend.activate(Backend::Unary::silu, backend.scale(x, 1.702f, later), later), 1 / 1.702f,
                           later);
    case Activation::tanh:
      return backend.soft_cap(x, 1, later);
    case Activation::xielu:
      break;
  }
  return backend.xielu(xielu, x, later);
}

Backend::Xielu xielu_of(const Tensor& stored) {
  if (!stored.defined()) return {};
  const auto softplus = [](float x) { return x > 20 ? x : std::log1p(std::exp(x)); };
  const float beta = stored.at(2);
  return {softplus(stored.at(0)), beta + softplus(stored.at(1)), beta, stored.at(3)};
}

float score_scale(const ModelConfig& config, int layer) {
  double s = 1;
  if (config.score_scale)
    s = *config.score_scale;
  else if (config.scale_by_inverse_sqrt_d)
    s /= std::sqrt(static_cast<double>(config.dims.widths_of(layer).d_head));
  if (config.scale_by_inverse_layer) s /= layer + 1;
  return static_cast<float>(s);
}

Tensor embedded(const ModelConfig& config, const ModelWeights& weights, Backend& backend, const Tensor& rows) {
  const Tensor scaled =
      config.embedding_scale == 1 ? rows : backend.scale(rows, static_cast<float>(config.embedding_scale));
  assert(!config.norm_of_embeddings);  // then no row stands for itself
  return config.embedding_norm ? normalized(config, weights.embedding_norm, backend, scaled) : scaled;
}

Tensor gated_output(Backend& backend, const Tensor& z, const Tensor& gate, RowQueue* later) {
  if (!gate.defined()) return z;
  // σ(g) = ½ + ½ tanh(½ g), in ops that every device has.
  const Tensor bent = backend.soft_cap(backend.scale(gate, 0.5f, later), 1, later);
  return backend.scale(backend.add(z, backend.multiply(z, bent, later), later), 0.5f, later);
}

Tensor projection_input(const ModelConfig& config, const BlockWeights& block, Backend& backend, const Tensor& x,
                        WeightMatrix matrix) {
  const LatentWeights& l = block.latents;
  const bool queries = matrix == WeightMatrix::q;
  if (!config.latent() || (queries && !l.q.defined())) return x;
  const Tensor made = queries ? backend.linear(x, backend.linear_weights({l.q}, {l.q_bias}, true))
                              : backend.linear(x, backend.linear_weights({l.kv}, {l.kv_bias}, true));
  return queries ? normalized(config, l.q_norm, backend, made)
                 : normalized(config, l.kv_norm, backend, made.slice(1, 0, config.dims.kv_latent));
}

Tensor turning_keys(const ModelConfig& config, const BlockWeights& block, Backend& backend, const Tensor& x) {
  const LatentWeights& l = block.latents;
  const Index from = config.dims.kv_latent, end = l.kv.dim(1);
  const Tensor bias = l.kv_bias.defined() ? l.kv_bias.slice(0, from, end) : Tensor();
  return backend.linear(x, backend.linear_weights({l.kv.slice(1, from, end)}, {bias}, true));
}

SiteKind attention_input(const ModelConfig& config, int layer) {
  return config.norms_before(layer) ? SiteKind::ln1_normalized : SiteKind::resid_pre;
}

SiteKind mlp_input(const ModelConfig& config, int layer) {
  if (!config.norms_before(layer)) return config.dims.parallel ? SiteKind::resid_pre : SiteKind::resid_mid;
  return config.dims.parallel && config.shared_norm ? SiteKind::ln1_normalized : SiteKind::ln2_normalized;
}

void add_inputs(const ModelConfig& config, std::set<SiteKind>& sites) {
  for (int layer = 0; layer < config.dims.layers; ++layer) {
    sites.insert(attention_input(config, layer));
    if (config.dims.has_mlp(layer)) sites.insert(mlp_input(config, layer));
  }
}

SiteKind input_site(const ModelConfig& config, WeightMatrix matrix, int layer) {
  switch (matrix) {
    case WeightMatrix::o:
      if (!config.dims.attends(layer)) return SiteKind::mixer_gated;
      return config.changes_z() ? SiteKind::z_gated : SiteKind::z;
    case WeightMatrix::mlp_in:
    case WeightMatrix::mlp_gate:
      return mlp_input(config, layer);
    case WeightMatrix::mlp_out:
      return SiteKind::mlp_post;
    case WeightMatrix::q:
      return config.dims.q_latent > 0 ? SiteKind::q_latent : attention_input(config, layer);
    default:
      return config.latent() ? SiteKind::kv_latent : attention_input(config, layer);
  }
}

SiteKind output_site(const ModelConfig& config, WeightMatrix matrix, int layer) {
  const bool behind = config.norms_behind(layer);
  switch (matrix) {
    case WeightMatrix::q:
      return SiteKind::q;
    case WeightMatrix::k:
      return SiteKind::k;
    case WeightMatrix::v:
      return config.value_norm ? SiteKind::v_unnormed : SiteKind::v;
    case WeightMatrix::o:
      return behind ? SiteKind::attn_unnormed : SiteKind::attn_out;
    case WeightMatrix::mlp_in:
      return config.gated_mlp ? SiteKind::mlp_pre_linear : SiteKind::mlp_pre;
    case WeightMatrix::mlp_gate:
      return SiteKind::mlp_pre;
    case WeightMatrix::mlp_out:
      break;
  }
  return behind ? SiteKind::mlp_unnormed : SiteKind::mlp_out;
}

SiteKind unturned_site(const ModelConfig& config, bool keys) {
  if (config.qk_norm != QkNorm::none && !config.normed_turned()) return keys ? SiteKind::k_normed : SiteKind::q_normed;
  return keys ? SiteKind::k : SiteKind::q;
}

SiteKind meeting_site(const ModelConfig& config, bool keys) {
  if (config.normed_turned()) return keys ? SiteKind::k_normed : SiteKind::q_normed;
  if (config.position == PositionKind::rotary) return keys ? SiteKind::rot_k : SiteKind::rot_q;
  return unturned_site(config, keys);
}

ModelWeights Model::weights() const {
  const Parts& m = *parts_;
  const ModelDims& d = m.config.dims;
  const auto whole = [](const Linear& product, Tensor& weight, Tensor& bias) {
    if (!product.defined()) return;
    weight = product.parts[0];
    if (!product.biases.empty()) bias = product.biases[0];
  };
  ModelWeights out;
  out.token_embedding = m.token_embedding;
  if (m.patch_embedding.defined()) {
    out.patch_embedding = m.patch_embedding.parts[0];
    const auto leading = static_cast<Index>(m.leading_tokens.size());
    out.token_embedding = Tensor::zeros({leading + 1, d.d_model});
    const auto row = [&](Index to, const Linear& from) {
      for (Index i = 0; i < d.d_model; ++i) out.token_embedding.ref(to, i) = from.parts[0].at(0, i);
    };
    for (Index i = 0; i < leading; ++i) row(i, nth(m.leading_tokens, i));
    if (m.patch_bias.defined()) row(leading, m.patch_bias);
  }
  out.one_unembedding = !m.second_unembedding.defined();
  out.position_embedding = m.position_embedding;
  out.embedding_norm = m.embedding_norm;
  out.final_norm = m.final_norm;
  whole(m.unembedding, out.unembedding, out.unembedding_bias);
  // `keyed`: the layer whose keys and values it reads.
  const auto add_heads = [&](const Layer& layer, const Layer& keyed, int index, BlockWeights& block) {
    const LayerWidths wide = d.widths_of(index);
    const bool attends = !layer.qkv.empty();
    if (!layer.o.biases.empty()) block.o_bias = layer.o.biases[0];
    const Index width = wide.d_head, full = d.d_value > 0 ? d.d_value : wide.d_head,
                of_value = attends ? full : d.d_inner / d.heads_of(index), keys = Index{d.heads} * width,
                all_keys = Index{wide.kv_heads} * width;
    Index stored = 0;
    for (const Linear& each : keyed.qkv) stored += each.out();
    const Index values = stored > keys + all_keys ? keys + all_keys : keys;  // or the projection of the keys again
    for (Index head = 0; head < d.heads_of(index); ++head) {
      if (!attends) {  // which has no queries, keys and values
        block.heads.emplace_back().o = layer.o.parts[0].slice(0, head * of_value, (head + 1) * of_value);
        continue;
      }
      const Index group = d.kv_of(static_cast<int>(head), index);
      const Part q = columns(layer.qkv, head * width, width), k = columns(keyed.qkv, keys + group * width, width),
                 v = columns(keyed.qkv, values + group * of_value, of_value);
      block.heads.push_back({q.weight, q.bias, k.weight, k.bias, v.weight, v.bias,
                             layer.o.parts[0].slice(0, head * of_value, (head + 1) * of_value)});
    }
  };
  for (const Layer& layer : m.cross) {
    BlockWeights& block = out.cross.emplace_back();
    block.ln1 = layer.ln1;
    add_heads(layer, layer, 0, block);
  }
  const auto buckets_of = [&](const Layer& layer) {
    if (layer.buckets.empty()) return Tensor();
    Tensor all = Tensor::uninitialized({d.heads, static_cast<Index>(layer.buckets.front()->bias.size())});
    for (Index head = 0; head < d.heads; ++head) std::ranges::copy(nth(layer.buckets, head)->bias, &all.ref(head, 0));
    return all;
  };
  if (!m.config.buckets_by_layer) out.position_buckets = buckets_of(m.layers.front());
  for (int index = 0; index < d.layers; ++index) {
    const Layer &layer = nth(m.layers, index), &keyed = nth(m.layers, m.config.kv_layer(index));
    BlockWeights& block = out.blocks.emplace_back();
    block.ln1 = layer.ln1;
    block.ln1_post = layer.ln1_post;
    block.ln2_post = layer.ln2_post;
    block.q_norm = layer.q_norm;
    block.k_norm = keyed.k_norm;
    block.v_norm = keyed.v_norm;
    block.sinks = layer.sinks;
    block.z_norm = layer.z_norm;
    whole(layer.z_gate, block.z_gate, block.z_gate_bias);
    if (m.config.buckets_by_layer) block.position_buckets = buckets_of(layer);
    block.ln2 = layer.ln2;
    whole(layer.gate, block.gate, block.gate_bias);
    whole(layer.up, block.up, block.up_bias);
    whole(layer.down, block.down, block.down_bias);
    block.mlp_norm = layer.mlp_norm;
    whole(layer.experts.router, block.router, block.router_bias);
    const auto expert = [&](const Expert& from) {
      if (!from.up.defined()) return;
      ExpertWeights& own = block.experts.emplace_back();
      whole(from.gate, own.gate, own.gate_bias);
      whole(from.up, own.up, own.up_bias);
      whole(from.down, own.down, own.down_bias);
    };
    for (const Expert& each : layer.experts.each) expert(each);
    expert(layer.experts.shared);
    block.xielu = layer.xielu;
    whole(layer.latents.q, block.latents.q, block.latents.q_bias);
    whole(layer.latents.kv, block.latents.kv, block.latents.kv_bias);
    block.latents.q_norm = layer.latents.q_norm;
    block.latents.kv_norm = layer.latents.kv_norm;
    block.decay_log = layer.state_space.decay_log;
    add_heads(layer, keyed, index, block);
  }
  return out;
}

Projection Model::projection(int layer, WeightMatrix matrix) const {
  const Layer& l = nth(parts_->layers, layer);
  const ModelDims d = parts_->config.dims.of_layer(layer);
  const Index queries = Index{d.heads} * d.d_head, keys = Index{d.kv_heads} * d.d_head,
              values = Index{d.kv_heads} * d.value_width();
  const bool keyed = matrix == WeightMatrix::k || matrix == WeightMatrix::v;
  if (keyed && !parts_->config.own_keys(layer)) return {};  // which the layer has that it reads
  // Of an MLP beside experts no site has what it puts out: the sum of both stands there.
  if (matrix >= WeightMatrix::mlp_in && l.experts.defined()) return {};
  if (matrix == WeightMatrix::v && parts_->config.value_is_key(layer)) matrix = WeightMatrix::k;  // used once more
  const auto part = [](const Part& p) { return Projection{p.weight, p.bias}; };
  if (l.qkv.empty() && matrix <= WeightMatrix::v) return {};
  const auto whole = [](const Linear& linear) {
    return linear.defined() ? Projection{linear.parts[0], linear.biases.empty() ? Tensor() : linear.biases[0]}
                            : Projection{};
  };
  switch (matrix) {
    case WeightMatrix::q:
      return part(columns(l.qkv, 0, queries));
    case WeightMatrix::k:
      return part(columns(l.qkv, queries, keys));
    case WeightMatrix::v:
      return part(columns(l.qkv, queries + keys, values));
    case WeightMatrix::o:
      return whole(l.o);
    case WeightMatrix::mlp_in:
      return whole(l.up);
    case WeightMatrix::mlp_gate:
      return whole(l.gate);
    case WeightMatrix::mlp_out:
      return whole(l.down);
  }
  return {};
}

const LowRankUpdate* Model::adapted(int layer, WeightMatrix matrix) const {
  const auto& all = nth(parts_->layers, layer).adapted;
  const auto found = all.find(matrix);
  return found == all.end() ? nullptr : &found->second;
}

const std::vector<std::string>& Model::adapted_elsewhere() const {
  return parts_->adapted_elsewhere;
}

std::shared_ptr<const SingularDirections> Model::singular(int layer, WeightMatrix matrix) const {
  const Projection found = projection(layer, matrix);
  if (!found.weight.defined()) return nullptr;
  const auto made = [&] { return std::make_shared<const SingularDirections>(singular_directions(found.weight)); };
  if (!parts_->layers.front().o.packed) return made();  // weights that change
  const std::lock_guard lock(derived_->mutex);
  auto& kept = derived_->singular[{layer, matrix}];
  if (!kept) kept = made();
  return kept;
}

}  // namespace headscope
