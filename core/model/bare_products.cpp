#include <algorithm>

#include "core/base/nth.h"
#include "core/model/model_parts.h"
#include "core/tensor/panels.h"
#include "core/tensor/products.h"

namespace headscope {
namespace {

constexpr Index block_rows = 64;

/// q·kᵀ and pattern·v (the values' width of `out`) of every head over the keys that a query sees (causal: half of
/// them), by blocks of rows.
void attention_products(Backend& backend, const ModelDims& d, bool causal, Index n, const Tensor& q,
                        const Tensor& packed, const Tensor& out) {
  const int blocks = static_cast<int>((n + block_rows - 1) / block_rows);
  std::vector<Tensor> scratch(static_cast<std::size_t>(backend.pool().threads()));
  const Index panel = panels::width(), width = d.value_width();
  backend.pool().parallel(blocks * d.heads, [&](int task, int thread) {
    Tensor& scores = nth(scratch, thread);
    if (!scores.defined()) scores = backend.empty({block_rows, panels::padded(n)});
    const Index first = (blocks - 1 - task / d.heads) * block_rows, rows = std::min(block_rows, n - first),
                head = task % d.heads, keys = causal ? first + rows : n;
    panels::multiply_streamed({q.data() + first * q.stride(0) + head * d.d_head, q.stride(0)}, rows, d.d_head,
                              packed.data(), panel * d.d_head, keys, 1.0f, scores.mutable_data(), scores.stride(0));
    panels::multiply_streamed({scores.data(), scores.stride(0)}, rows, keys, packed.data(), panel * n, width, 1.0f,
                              const_cast<float*>(out.data()) + first * out.stride(0) + head * width, out.stride(0));
  });
}

}  // namespace

BareProducts Model::bare_products(Backend& backend, int tokens, int logit_rows) const {
  const ModelDims& d = parts_->config.dims;
  const bool causal = parts_->config.causal;
  ModelDims most = d;  // of any layer
  for (const LayerWidths& each : d.widths) {
    most.d_head = std::max(most.d_head, each.d_head);
    most.d_mlp = std::max(most.d_mlp, each.d_mlp);
  }
  const Index n = tokens;
  Tensor x = backend.empty({n, d.d_model}), hidden = backend.empty({n, most.d_mlp}),
         z = backend.empty({n, Index{d.heads} * most.value_width()}), inputs = backend.empty({n, d.d_layer}),
         channels = backend.empty({n, d.d_inner}), q_latent = backend.empty({n, d.q_latent}),
         kv_latent = backend.empty({n, d.kv_latent});
  Tensor packed =
      backend.empty({std::max(panels::packed_size(most.d_head, n), panels::packed_size(n, most.value_width()))});
  for (Tensor* t : {&x, &hidden, &z, &packed, &channels, &q_latent, &kv_latent, &inputs})
    std::ranges::fill(t->mutable_values(), 0.5f);
  double multiply_adds = 0;
  std::size_t bytes = 0;
  const auto product = [&](const Tensor& in, const Linear& w) {
    Tensor out = backend.empty({in.dim(0), w.out()});
    multiply_adds += static_cast<double>(in.dim(0)) * static_cast<double>(w.in() * w.out());
    if (w.packed) {
      bytes += w.packed->bytes();
      w.packed->multiply(in, nullptr, out, backend.pool());
    } else {
      std::vector<Product> products;
      Index column = 0;
      for (const Tensor& part : w.parts) {
        bytes += part.bytes();
        products.push_back({in, part, {}, out.slice(1, column, column + part.dim(1))});
        column += part.dim(1);
      }
      multiply(products, backend.pool());
    }
    return out;
  };
  if (d.d_layer > 0) product(x, parts_->layer_inputs.projection);
  for (const Linear& tap : parts_->convolution) product(x, tap);
  for (int index = 0; index < d.layers; ++index) {
    const Layer& layer = nth(parts_->layers, index);
    const ModelDims own = d.of_layer(index);
    Tensor q;
    if (layer.latents.q.defined()) product(x, layer.latents.q);
    if (layer.latents.kv.defined()) product(x, layer.latents.kv);
    for (const Linear& w : layer.qkv) {
      const bool latent = layer.latents.kv.defined();
      const Tensor out = product(!latent ? x : q.defined() ? kv_latent : d.q_latent > 0 ? q_latent : x, w);
      if (!q.defined()) q = out;
    }
    const StateSpaceLayer& state = layer.state_space;
    for (const Linear* w : {&state.x, &state.gate, &state.select, &state.step, &state.rate})
      if (w->defined()) product(w->in() == d.d_model ? x : channels.slice(1, 0, w->in()), *w);
    if (!layer.qkv.empty()) attention_products(backend, own, causal, n, q, packed, z);
    if (!layer.qkv.empty())
      multiply_adds += static_cast<double>(n) * (causal ? static_cast<double>(n + 1) / 2 : static_cast<double>(n)) *
                       static_cast<double>(own.heads * (own.d_head + own.value_width()));
    if (layer.z_gate.defined()) product(x, layer.z_gate);
    product(layer.qkv.empty() ? channels : z.slice(1, 0, layer.o.in()), layer.o);
    if (layer.experts.defined()) {
      product(x, layer.experts.router);
      // As many rows for each as it takes where all take as many; of few tokens not every expert takes one.
      const ExpertConfig& c = parts_->config.experts;
      const Index rows = std::clamp<Index>(n * c.per_token / c.count, 1, n),
                  used = std::min<Index>(n * c.per_token, c.count);
      const auto feed = [&](const Expert& expert, const Tensor& in) {
        Tensor inner = backend.empty({in.dim(0), expert.down.in()});
        std::ranges::fill(inner.mutable_values(), 0.5f);
        if (expert.gate.defined()) product(in, expert.gate);
        product(in, expert.up);
        product(inner, expert.down);
      };
      for (Index expert = 0; expert < used; ++expert) feed(nth(layer.experts.each, expert), x.slice(0, 0, rows));
      if (layer.experts.shared.up.defined()) feed(layer.experts.shared, x);
      if (layer.experts.shared_gate.defined()) product(x, layer.experts.shared_gate);
    }
    if (layer.gate.defined()) product(x, layer.gate);
    if (layer.up.defined()) {
      product(x, layer.up);
      product(hidden.slice(1, 0, layer.down.in()), layer.down);
    }
    if (layer.input.gate.defined()) product(x, layer.input.gate);
    if (layer.input.out.defined()) product(inputs, layer.input.out);
  }
  if (parts_->config.predicts) {
    const Tensor read = parts_->config.head_layer ? product(x, parts_->head) : x;
    product(read.slice(0, n - (parts_->config.vision ? 1 : logit_rows), n), parts_->unembedding);
  }
  return {2 * multiply_adds, static_cast<double>(bytes)};
}

}  // namespace headscope
