// A Model of the weights of a file: checked, and made ready to multiply.

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "core/attention/masks.h"
#include "core/base/error.h"
#include "core/model/formats/model_files.h"
#include "core/model/model.h"
#include "core/model/model_parts.h"
#include "core/model/picture_input.h"

namespace headscope {

namespace {
// Products that share an input run as one while the matrices are small: then the calls would cost more than the work.
constexpr Index fuse_up_to = Index{1} << 18;
// Rotary angles are made once for this many positions, per pass beyond.
constexpr Index table_positions = 4096;
// Of the time that opening a model takes: reading its file, beside packing its matrices.
constexpr float reading_share = 0.4f;
}  // namespace

RotaryTable Rotation::angles(Index first, Index count, int d_head) const {
  const Index end = first + count;
  if (const RotaryConfig here = in_text(config, end); here != config)
    return rotary_table(rotary_frequencies(here, d_head), first, count, rotary_magnitude(here));
  if (end > table.cosine.dim(0)) return rotary_table(frequencies, first, count, rotary_magnitude(config));
  return {table.cosine.slice(0, first, end), table.sine.slice(0, first, end)};
}

RotaryTable Rotation::angles(std::span<const Index> lengths, Index first, Index rows, int d_head, bool queries,
                             Backend& backend) const {
  const auto of = [&](Index begin, Index count) {
    const RotaryTable own = angles(begin, count, d_head);
    return queries ? of_queries(own, config, begin, d_head) : own;
  };
  if (lengths.empty()) return of(first, rows);
  RotaryTable all;
  Index row = 0;
  for (const Index length : lengths) {
    const RotaryTable own = of(0, length);
    const Shape whole{rows, own.cosine.dim(1)};
    if (!all.cosine.defined()) all = {backend.empty(whole), backend.empty(whole)};
    for (const auto& [from, to] : {std::pair(&own.cosine, &all.cosine), std::pair(&own.sine, &all.sine)})
      std::copy_n(from->data(), from->size(), &to->ref(row, 0));
    row += length;
  }
  return all;
}

bool Model::continues(const KvCache& cache, Index tokens) const {
  return cache.length() == 0 || std::ranges::all_of(parts_->rotations, [&](const Rotation& each) {
           return in_text(each.config, cache.text()) == in_text(each.config, tokens);
         });
}

std::shared_ptr<const Model> Model::load(const std::filesystem::path& path, Backend& backend, const LoadWatch& watch) {
  ModelConfig config = load_config(path);
  const ModelFiles files = ModelFiles::open(locate_model(path));
  std::size_t all = 1, done = 0;
  for (const auto& [name, entry] : files.tensors->tensors()) all += entry.size;
  files.tensors->watch([&](std::size_t bytes) {
    if (watch.stop.stop_requested()) throw Cancelled();
    done += bytes;
    if (watch.progress) *watch.progress = reading_share * static_cast<float>(done) / static_cast<float>(all);
  });
  const RawWeights weights = read_model_weights(*files.weights, config);
  return build(config, weights, files.weights->where(), backend, Weights::fixed, watch);
}

std::shared_ptr<const Model> Model::build(const ModelConfig& c, const RawWeights& raw, const std::string& where,
                                          Backend& backend, Weights kind, const LoadWatch& watch) {
  const bool changing = kind == Weights::changing;
  auto parts = std::make_unique<Parts>();
  parts->config = c;
  const auto checked = [&](const Tensor& weight, int layer, const char* role) -> const Tensor& {
    if (weight.defined() && !backend.finite(weight))
      throw Error(where, "finite weights",
                  fmt::format("NaN or infinity in the {}{}", role, layer < 0 ? "" : fmt::format(" of layer {}", layer)),
                  "the file may be damaged, or the model diverged in training");
    return weight;
  };
  // What else than products reads: few numbers, f32 however they are stored.
  const auto floats = [&](const Tensor& numbers, int layer, const char* role) {
    return checked(numbers, layer, role).floats();
  };
  // Read again in every pass, as long as they stay what they are.
  const auto resident = [&](Tensor weight) { return changing ? weight : backend.resident(std::move(weight)); };
  parts->token_embedding = checked(raw.token_embedding, -1, "token embedding");
  if (c.narrow_sum())
    parts->embedding_in =
        backend.linear_weights({checked(raw.embedding_in, -1, "projection of the embeddings")},
                               {floats(raw.embedding_in_bias, -1, "projection of the embeddings")}, changing);
  else if (raw.embedding_in.defined())
    parts->token_embedding =
        backend.linear(parts->token_embedding.floats(),
                       backend.linear_weights({checked(raw.embedding_in, -1, "projection of the embedding")}, {}));
  parts->token_embedding = resident(parts->token_embedding);
  parts->position_embedding = resident(floats(raw.position_embedding, -1, "position embedding"));
  if (c.vision)
    parts->patch_embedding =
        backend.linear_weights({checked(raw.patch_embedding, -1, "patch embedding")}, {Tensor()}, changing);
  for (const Tensor& token : raw.leading_tokens)
    parts->leading_tokens.push_back(
        backend.linear_weights({checked(token, -1, "leading tokens")}, {Tensor()}, changing));
  if (raw.patch_bias.defined())
    parts->patch_bias =
        backend.linear_weights({checked(raw.patch_bias, -1, "bias of the patches")}, {Tensor()}, changing);
  for (std::size_t i = 0; i < raw.convolutions.size(); ++i)
    parts->convolutions.push_back(backend.linear_weights({checked(raw.convolutions[i], -1, "convolution")},
                                                         {floats(raw.convolution_biases[i], -1, "convolution")},
                                                         changing));
  if (c.dims.d_layer > 0) {
    parts->layer_inputs.table = resident(checked(raw.layer_embedding, -1, "table of the layers' inputs"));
    parts->layer_inputs.projection = backend.linear_weights(
        {checked(raw.layer_projection, -1, "projection to the layers' inputs")}, {Tensor()}, changing);
  }
  parts->segment_embedding = resident(floats(raw.segment_embedding, -1, "segment embedding"));
  // A norm without weights of its own has a gain of 1; one without a bias adds 0.
  const auto norm_of = [&](NormKind of, const Tensor& gain, const Tensor& bias, Index width, int layer,
                           const char* role) {
    NormWeights out{floats(gain, layer, role), floats(bias, layer, role), of};
    for (Tensor* each : {&out.gain, &out.bias}) *each = resident(std::move(*each));
    if (!out.gain.defined()) out.gain = backend.resident(Tensor::full({width}, 1.0f));
    if (!out.bias.defined() && of == NormKind::layer_norm)
      out.bias = backend.resident(Tensor::zeros({out.gain.size()}));
    return out;
  };
  const auto norm = [&](const Tensor& gain, const Tensor& bias, Index size, int layer, const char* role) {
    return norm_of(c.norm, gain, bias, size, layer, role);
  };
  const Index width = c.dims.d_model;
  if (c.embedding_norm)
    parts->embedding_norm = norm(raw.embedding_gain, raw.embedding_bias, c.sum_width(), -1, "norm of the embedding");
  if (c.convolution) {
    for (const Tensor& tap : raw.convolution.taps)
      parts->convolution.push_back(backend.linear_weights(
          {checked(tap, -1, "convolution")},
          {parts->convolution.empty() ? floats(raw.convolution.bias, -1, "convolution") : Tensor()}, changing));
    parts->convolution_norm =
        norm(raw.convolution.gain, raw.convolution.gain_bias, width, -1, "norm of the convolution");
  }
  if (c.last_norm())
    parts->final_norm = norm_of(c.final_norm(), raw.final_gain, raw.final_bias, width, -1, "final norm");
  if (c.dims.d_layer > 0)
    parts->layer_inputs.norm = norm(raw.layer_gain, {}, c.dims.d_layer, -1, "norm of the layers' inputs");
  if (raw.encoder) parts->encoder = build(*c.encoder, *raw.encoder, where, backend, kind, {watch.stop});
  // By head.
  const auto buckets = [&](const Tensor& table, int layer) {
    std::vector<std::shared_ptr<const BucketBias>> made;
    for (int head = 0; table.defined() && head < c.dims.heads; ++head) {
      const Tensor biases = floats(table, layer, "biases of distances").select(1, head).packed();
      const bool places = c.vision && c.vision->place_biases;
      made.push_back(std::make_shared<const BucketBias>(BucketBias{{biases.data(), biases.data() + biases.size()},
                                                                   c.position_distance,
                                                                   !c.causal,
                                                                   places ? c.vision->rows() : 0,
                                                                   places ? c.vision->columns() : 0}));
    }
    return made;
  };
  // K_r and Q_r of every distance, by head.
  NormWeights distance_norm;
  Tensor distance_rows = floats(raw.distances, -1, "embedding of distances");
  if (c.distances && c.distances->norm) {
    distance_norm = norm(raw.distance_gain, raw.distance_bias, width, -1, "norm of the distances");
    distance_rows = normalized(c, distance_norm, backend, distance_rows);
  }
  const auto distances = [&](const RawLayer& r, int layer) {
    std::vector<std::shared_ptr<const DistanceVectors>> made;
    if (!c.distances) return made;
    const auto products = [&](bool there, const Tensor& weight, const Tensor& bias) {
      if (!there) return Tensor();
      const Tensor all =
          backend.linear(distance_rows, backend.linear_weights({checked(weight, layer, "projection of the distances")},
                                                               {floats(bias, layer, "projection of the distances")}));
      backend.finish();
      return all;
    };
    const bool shared = c.distances->shared;
    const Tensor k = products(c.distances->content_to_position, shared ? r.k_weight : r.distance_k_weight,
                              shared ? r.k_bias : r.distance_k_bias),
                 q = products(c.distances->position_to_content, shared ? r.q_weight : r.distance_q_weight,
                              shared ? r.q_bias : r.distance_q_bias);
    const Index size = c.dims.d_head;
    const auto of = [&](const Tensor& all, Index head) {
      return all.defined() ? all.slice(1, head * size, (head + 1) * size).copy() : Tensor();
    };
    for (int head = 0; head < c.dims.heads; ++head)
      made.push_back(std::make_shared<const DistanceVectors>(DistanceVectors{
          of(k, c.dims.kv_of(head, layer)), of(q, head), c.distances->span, c.distances->max_distance}));
    return made;
  };
  const auto shared_buckets = buckets(raw.position_buckets, -1);
  const auto whole = c.causal ? causal_rule() : full_rule();
  for (std::size_t i = 0; i < raw.layers.size(); ++i) {
    if (watch.stop.stop_requested()) throw Cancelled();
    const RawLayer& r = raw.layers[i];
    const int index = static_cast<int>(i);
    const auto linear = [&](const Tensor& weight, const Tensor& bias, const char* role) {
      return backend.linear_weights({checked(weight, index, role)}, {floats(bias, index, role)}, changing);
    };
    if (c.cross()) {
      const RawLayer& across = raw.cross[i];
      Layer& made = parts->cross.emplace_back();
      (c.norms_sums() ? made.ln1_sum : made.ln1) =
          norm(across.ln1_gain, across.ln1_bias, width, index, "norm of cross-attention");
      if (c.norms_behind(index))
        made.ln1_post = norm(across.ln1_post_gain, {}, width, index, "norm behind cross-attention");
      made.qkv = {linear(across.q_weight, across.q_bias, "query projection of cross-attention"),
                  linear(across.k_weight, across.k_bias, "key projection of cross-attention"),
                  linear(across.v_weight, across.v_bias, "value projection of cross-attention")};
      made.o = linear(across.o_weight, across.o_bias, "output projection of cross-attention");
      made.rule = full_rule();
    }
    if (c.repeats(index)) {
      parts->layers.push_back(parts->layers.back());
      continue;
    }
    Layer layer;
    const bool mlp = c.dims.has_mlp(index), attends = c.dims.attends(index), own_keys = c.own_keys(index),
               before = c.norms_before(index), behind = c.norms_behind(index);
    const LayerWidths wide = c.dims.widths_of(index);
    layer.distances = distances(r, index);
    layer.buckets = c.buckets_by_layer ? buckets(r.position_buckets, index) : shared_buckets;
    if (before) layer.ln1 = norm(r.ln1_gain, r.ln1_bias, width, index, "first norm");
    if (before && index == 0 && !c.first_norm) layer.ln1.kind = NormKind::none;
    if (before && mlp && !c.shared_norm) layer.ln2 = norm(r.ln2_gain, r.ln2_bias, width, index, "second norm");
    if (c.norms_sums()) {
      layer.ln1_sum = norm(r.ln1_gain, r.ln1_bias, width, index, "norm behind attention");
      if (mlp) layer.ln2_sum = norm(r.ln2_gain, r.ln2_bias, width, index, "norm behind the MLP");
    }
    if (behind) layer.ln1_post = norm(r.ln1_post_gain, {}, width, index, "norm behind attention");
    if (behind && mlp) layer.ln2_post = norm(r.ln2_post_gain, {}, width, index, "norm behind the MLP");
    if (mlp && c.mlp_norm)
      layer.mlp_norm =
          norm_of(c.mlp_norm_kind, r.mlp_norm_gain, r.mlp_norm_bias, c.dims.d_mlp, index, "norm inside the MLP");
    if (attends && c.qk_norm != QkNorm::none) {
      const Index head = wide.d_head, full = c.qk_norm == QkNorm::full_width;
      layer.q_norm =
          norm(r.q_norm_gain, r.q_norm_bias, full ? c.dims.heads * head : head, index, "norm of the queries");
      if (own_keys)
        layer.k_norm =
            norm(r.k_norm_gain, r.k_norm_bias, full ? wide.kv_heads * head : head, index, "norm of the keys");
      if (!c.norms_keys(index)) layer.q_norm.kind = layer.k_norm.kind = NormKind::none;
    }
    if (attends && c.z_norm)
      layer.z_norm = norm(r.z_norm_gain, {}, Index{c.dims.heads} * (c.dims.d_value > 0 ? c.dims.d_value : wide.d_head),
                          index, "norm of what heads put out");
    if (attends && own_keys && c.value_norm) layer.v_norm = norm({}, {}, wide.d_head, index, "norm of the values");
    if (c.dims.d_layer > 0) {
      layer.input.gate = linear(r.input_gate_weight, {}, "gate of the layer's input");
      layer.input.out = linear(r.input_out_weight, {}, "output matrix of the layer's input");
      layer.input.norm = norm(r.input_gain, {}, width, index, "norm behind the layer's input");
    }
    if (c.dims.stream_scales) layer.stream_scale = floats(r.stream_scale, index, "scale of the stream").at(0);
    layer.rule = c.chunk(index) > 0     ? chunks_rule(c.chunk(index))
                 : c.window(index) == 0 ? whole
                 : c.causal             ? window_rule(c.window(index))
                                        : around_rule(c.window(index));
    const bool grows = c.unturned_growth > 0 && !c.turns(index);  // a rotation by nothing
    if (attends && (c.turns(index) || grows)) {
      const RotaryConfig own = grows ? RotaryConfig{.original_context = c.unturned_floor,
                                                    .query_growth = c.unturned_growth,
                                                    .growth_from = 1,
                                                    .pairs = 0}
                                     : c.rotary_of(index);
      const auto same = std::ranges::find_if(
          parts->rotations, [&](const Rotation& each) { return each.config == own && each.d_head == wide.d_head; });
      layer.rotary = static_cast<int>(same - parts->rotations.begin());
      if (same == parts->rotations.end()) {
        Rotation& made = parts->rotations.emplace_back(Rotation{own, wide.d_head, {}, {}});
        made.frequencies = rotary_frequencies(made.config, made.d_head);
        made.table = c.vision ? picture_rotation(*c.vision, made.config.base, c.dims.d_head)
                              : rotary_table(made.frequencies, 0, std::min<Index>(c.context, table_positions),
                                             rotary_magnitude(made.config));
      }
    }
    if (c.dims.state_space(index)) {
      const RawStateSpace& s = r.state_space;
      StateSpaceLayer& made = layer.state_space;
      made.x = linear(s.x_weight, s.x_bias, "projection to the channels");
      if (s.gate_weight.defined()) made.gate = linear(s.gate_weight, s.gate_bias, "projection to the gate");
      if (s.select_weight.defined()) made.select = linear(s.select_weight, {}, "projection to step, B and C");
      if (s.beta_weight.defined()) made.rate = linear(s.beta_weight, {}, "projection to the rates");
      if (s.step_weight.defined()) made.step = linear(s.step_weight, s.step_bias, "projection to the steps");
      made.convolution = floats(s.convolution_weight, index, "convolution");
      made.convolution_bias = floats(s.convolution_bias, index, "convolution");
      made.delta_bias = floats(s.delta_bias, index, "bias of the steps");
      made.decay_log = floats(s.decay_log, index, "decays");
      made.d = floats(s.d, index, "skip past the state");
      if (c.state_space->select_norms) {
        made.step_norm = norm(s.step_norm_gain, {}, c.state_space->step_rank, index, "norm before the steps");
        made.b_norm = norm(s.b_norm_gain, {}, c.dims.d_state, index, "norm of B");
        made.c_norm = norm(s.c_norm_gain, {}, c.dims.d_state, index, "norm of C");
        for (NormWeights* each : {&made.step_norm, &made.b_norm, &made.c_norm})
          each->epsilon = c.state_space->select_epsilon;
      }
      if (c.state_space->gated_norm) made.norm = norm(s.norm_gain, {}, s.norm_gain.size(), index, "norm at the gate");
      made.norm.epsilon = c.state_space->gated_epsilon;
    }
    // What this layer multiplies by itself: values that are keys before their norm, or another layer's, it does not.
    std::vector<Tensor> matrices{r.q_weight}, biases{r.q_bias.floats()};
    if (own_keys) matrices.push_back(r.k_weight), biases.push_back(r.k_bias.floats());
    if (own_keys && !c.value_is_key(index)) matrices.push_back(r.v_weight), biases.push_back(r.v_bias.floats());
    Index numbers = 0;
    for (const Tensor& each : matrices) numbers += each.defined() ? each.size() : 0;
    for (const Tensor* weight : {&r.q_weight, &r.k_weight, &r.v_weight, &r.q_bias, &r.k_bias, &r.v_bias})
      checked(*weight, index, "query, key or value projection");
    if (attends && c.latent()) {
      const RawLatents& raw_latents = r.latents;
      const auto latent_norm = [&](const Tensor& gain, const char* role) {
        NormWeights made = norm(gain, {}, gain.size(), index, role);
        made.epsilon = c.latent_epsilon;
        return made;
      };
      if (raw_latents.q_weight.defined()) {
        layer.latents.q = linear(raw_latents.q_weight, raw_latents.q_bias, "projection to the queries' latent");
        layer.latents.q_norm = latent_norm(raw_latents.q_gain, "norm of the queries' latent");
      }
      layer.latents.kv = linear(raw_latents.kv_weight, raw_latents.kv_bias, "projection to the latent");
      layer.latents.kv_norm = latent_norm(raw_latents.kv_gain, "norm of the latent");
    }
    if (!attends) {
      // it has none
    } else if (!c.latent() && (backend.asynchronous() || numbers <= fuse_up_to)) {
      layer.qkv = {backend.linear_weights(matrices, biases, changing)};
    } else {
      for (std::size_t each = 0; each < matrices.size(); ++each)
        layer.qkv.push_back(backend.linear_weights({matrices[each]}, {biases[each]}, changing));
    }
    layer.adapted = r.adapted;
    layer.sinks = checked(r.sinks, index, "learned sinks");
    if (r.z_gate_weight.defined()) layer.z_gate = linear(r.z_gate_weight, r.z_gate_bias, "gate of attention");
    layer.o = linear(r.o_weight, r.o_bias, "output projection");
    if (mlp && c.experts.at(index)) {
      checked(r.experts.correction, index, "router");
      layer.experts = expert_layer(r.experts, linear);
      if (c.experts.beside) {
        ExpertLayer& made = layer.experts;
        made.router_norm = norm(r.experts.router_gain, {}, width, index, "norm before the router");
        made.in_norm = norm(r.experts.in_gain, {}, width, index, "norm before the experts");
        made.out_norm = norm(r.experts.out_gain, {}, width, index, "norm behind the experts");
        made.dense_norm = norm(r.experts.dense_gain, {}, width, index, "norm behind the MLP beside them");
      }
      if (c.experts.weigh_output) layer.experts.output_weight = floats(r.experts.output_weight, index, "router");
    }
    if (mlp && (!c.experts.at(index) || c.experts.beside)) {
      if (c.gated_mlp) layer.gate = linear(r.gate_weight, r.gate_bias, "MLP gate");
      layer.up = linear(r.up_weight, r.up_bias, "MLP input matrix");
      layer.down = linear(r.down_weight, r.down_bias, "MLP output matrix");
      layer.xielu = xielu_of(checked(r.xielu, index, "activation function"));
    }
    parts->layers.push_back(std::move(layer));
    if (watch.progress)
      *watch.progress =
          reading_share + (1 - reading_share) * static_cast<float>(i + 1) / static_cast<float>(raw.layers.size() + 1);
  }
  if (c.head_layer && c.predicts) {
    parts->head =
        backend.linear_weights({checked(raw.head_weight, -1, "head")}, {floats(raw.head_bias, -1, "head")}, changing);
    parts->head_norm = norm(raw.head_norm_gain, raw.head_norm_bias, c.dims.out_width(), -1, "norm of the head");
  }
  if (c.predicts) {
    Tensor unembedding = checked(raw.unembedding, -1, "unembedding");
    if (raw.embedding_out.defined())
      unembedding =
          backend.linear(checked(raw.embedding_out, -1, "projection before the unembedding").floats().packed(),
                         backend.linear_weights({unembedding}, {}));
    parts->unembedding =
        backend.linear_weights({unembedding}, {floats(raw.unembedding_bias, -1, "unembedding")}, changing);
  }
  if (c.predicts && raw.second_unembedding.defined())
    parts->second_unembedding =
        backend.linear_weights({checked(raw.second_unembedding, -1, "second unembedding")},
                               {floats(raw.second_unembedding_bias, -1, "second unembedding")}, changing);
  parts->adapted_elsewhere = raw.adapted_elsewhere;
  parts->info = {c.name,    c.family,      c.dims,  c.context,           raw.parameters,
                 raw.dtype, c.objective(), c.stack, c.vision.has_value()};
  if (parts->encoder) {
    parts->info.encoder = std::make_shared<const ModelInfo>(parts->encoder->info());
    ModelInfo cross = {c.name,    c.family,           c.dims,      c.context, raw.parameters,
                       raw.dtype, Objective::nothing, Stack::cross};
    cross.dims.d_mlp = 0;
    parts->info.cross = std::make_shared<const ModelInfo>(std::move(cross));
  }
  return std::shared_ptr<const Model>(new Model(std::move(parts)));
}

}  // namespace headscope
