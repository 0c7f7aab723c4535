#include "core/model/usual_weights.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <utility>

#include "core/base/nth.h"
#include "core/model/multipliers.h"
#include "core/model/picture_input.h"
#include "core/model/stored_layouts.h"
#include "core/model/weight_reader.h"

namespace headscope {

namespace {
/// The first of the names of an embedding that is there.
std::string embedding_of(const WeightSource& source, const WeightNames& names) {
  for (const std::string& name : names.embeddings)
    if (source.contains(name + ".weight")) return name + ".weight";
  return names.embeddings.front() + ".weight";
}

class UsualReader {
 public:
  UsualReader(const WeightSource& source, const ModelConfig& config, const WeightNames& names)
      : source_(source),
        c_(config),
        n_(names),
        head_(names.unembedding_too.empty() || source.contains(names.unembedding + ".weight") ? names.unembedding
                                                                                              : names.unembedding_too),
        reader_(source, names.prefixes, names.probe.empty() ? names.embedding + ".weight" : names.probe, names.block) {}

  RawWeights read() {
    const ModelDims& dims = c_.dims;
    const Index d = dims.d_model, sum = c_.sum_width();
    RawWeights weights;
    if (c_.vision)
      picture(weights);
    else if (c_.sound)
      sound(weights);
    else
      embedding(weights.token_embedding);
    if (c_.embedding_width > 0)
      reader_.take_transposed(n_.embedding_in + ".weight", c_.embedding_width, d, weights.embedding_in);
    if (c_.narrow_sum()) reader_.take(n_.embedding_in + ".bias", {d}, weights.embedding_in_bias);
    if (c_.has_buckets() && !c_.buckets_by_layer)
      reader_.take(buckets_name(), {c_.position_buckets, dims.heads}, weights.position_buckets);
    if (const auto& distances = c_.distances) {
      reader_.take(n_.distances + ".weight", {2 * Index{distances->span}, d}, weights.distances);
      if (distances->norm) norm(n_.distance_norm, d, weights.distance_gain, weights.distance_bias);
    }
    if (c_.convolution) first_convolution(weights.convolution);
    if (c_.sinusoids)
      sinusoids(weights.position_embedding);
    else if (c_.position == PositionKind::learned && n_.positions_are_embedding)
      reader_.take(n_.positions + ".weight", {c_.context + c_.position_offset + c_.position_tail, sum},
                   [&](const Tensor& table) {
                     weights.position_embedding = table.slice(0, c_.position_offset, c_.position_offset + c_.context);
                   });
    if (const Index width = dims.d_layer; width > 0) {
      const Index all = width * dims.layers;
      reader_.take(n_.layer_embedding + ".weight", {c_.layer_vocab, all}, weights.layer_embedding);
      reader_.take_transposed(n_.layer_projection + ".weight", d, all, weights.layer_projection);
      Tensor none;
      norm(n_.layer_norm, width, weights.layer_gain, none);
    }
    if (c_.segments > 0) reader_.take(n_.segments + ".weight", {c_.segments, sum}, weights.segment_embedding);
    for (int i = 0; c_.tasks > 0 && i < static_cast<int>(n_.tasks.size()); ++i)
      reader_.take(nth(n_.tasks, i).first + ".weight", {c_.tasks, sum}, [&](const Tensor& table) {
        for (int again = 0; weights.position_embedding.defined() && again < nth(n_.tasks, i).second; ++again)
          weights.position_embedding = added_to_rows(weights.position_embedding, table.select(0, 0));
      });
    if (c_.embedding_norm) norm(n_.embedding_norm, sum, weights.embedding_gain, weights.embedding_bias);
    weights.layers.resize(static_cast<std::size_t>(dims.layers));
    if (c_.cross()) weights.cross.resize(weights.layers.size());
    for (int layer = 0; layer < dims.layers; ++layer) {
      if (c_.repeats(layer))
        nth(weights.layers, layer) = nth(weights.layers, layer - 1);
      else
        block(at_layer(n_.apart.empty() ? c_.stored_block(layer) : nth(n_.apart, layer).first), layer,
              nth(weights.layers, layer));
      if (c_.entered(layer) < layer) share_norm(nth(weights.layers, layer - 1), nth(weights.layers, layer));
    }
    for (int layer = 0; c_.cross() && layer < dims.layers; ++layer)
      across(n_.block + std::to_string(layer) + ".", nth(weights.cross, layer));
    if (c_.last_norm()) norm(n_.final_norm, d, weights.final_gain, weights.final_bias);
    if (c_.predicts) logits(weights);
    if (n_.layers_behind) reader_.ignore_layers_from(dims.layers);
    reader_.finish(c_, weights);
    return weights;
  }

 private:
  std::string at_layer(int stored) const { return n_.block + std::to_string(stored) + "." + n_.in_block; }
  /// A parameter by itself where the buckets are ways from patch to patch.
  std::string buckets_name() const { return n_.buckets + (c_.vision ? "" : ".weight"); }
  Index embedded() const { return c_.embedding_width > 0 ? c_.embedding_width : c_.dims.d_model; }

  void embedding(Tensor& into) {
    const Shape shape{c_.dims.vocab, embedded()};
    if (n_.embeddings.empty()) return reader_.take(n_.embedding + ".weight", shape, into);
    reader_.take_outside(embedding_of(source_, n_), shape, [&](const Tensor& table) { into = table; });
  }

  /// Vaswani et al.'s table, sines before cosines, or Tensor2Tensor's, whose last pair turns by exactly 1/10000 (and of
  /// which an odd width has a 0 at its end). Older files hold it, too.
  void sinusoids(Tensor& into) {
    const bool to_end = c_.sinusoids_to_end;
    const Index d = c_.dims.d_model, half = to_end ? d / 2 : (d + 1) / 2;
    const double last = to_end ? static_cast<double>(half - 1) : static_cast<double>(d) / 2;
    into = Tensor::zeros({c_.context, d});
    for (Index at = 0; at < c_.context; ++at)
      for (Index i = 0; i < (to_end ? 2 * half : d); ++i) {
        const Index pair = i < half ? i : i - half;
        const double angle =
            static_cast<double>(at + c_.position_offset) / std::pow(10000.0, static_cast<double>(pair) / last);
        into.ref(at, i) = static_cast<float>(i < half ? std::sin(angle) : std::cos(angle));
      }
    for (const char* name : {".weight", ".weights"}) reader_.ignore(n_.positions + name);
  }

  /// Stored as (d_model, d_model ÷ groups, tokens).
  void first_convolution(RawConvolution& into) {
    const Index d = c_.dims.d_model, groups = c_.convolution->groups, tokens = c_.convolution->tokens;
    reader_.take(n_.convolution + ".weight", {d, d / groups, tokens}, [&](const Tensor& kernel) {
      for (Index t = 0; t < tokens; ++t) into.taps.push_back(whole_matrix(kernel.slice(2, t, t + 1).copy(), d, groups));
    });
    reader_.take(n_.convolution + ".bias", {d}, into.bias);
    norm(n_.convolution_norm, d, into.gain, into.gain_bias);
  }

  /// Cross-attention of a block.
  void across(const std::string& at, RawLayer& raw) {
    const Index d = c_.dims.d_model, queries = Index{c_.dims.heads} * c_.dims.d_head,
                keys = Index{c_.dims.kv_heads} * c_.dims.d_head;
    norm(at + n_.cross_ln, d, raw.ln1_gain, raw.ln1_bias);
    Tensor none;
    if (c_.norms_behind()) norm(at + n_.cross_ln_post, d, raw.ln1_post_gain, none);
    linear(at + n_.cross_q, d, queries, c_.bias.q, raw.q_weight, raw.q_bias);
    linear(at + n_.cross_k, d, keys, c_.bias.k, raw.k_weight, raw.k_bias);
    linear(at + n_.cross_v, d, keys, c_.bias.v, raw.v_weight, raw.v_bias);
    linear(at + n_.cross_o, queries, d, c_.bias.o, raw.o_weight, raw.o_bias);
  }

  /// A patch's matrix is stored as a convolution's kernel (d_model, channel, row, column).
  void picture(RawWeights& weights) {
    const VisionConfig& v = *c_.vision;
    const Index d = c_.dims.d_model;
    reader_.take(n_.embedding + ".weight", {d, v.channels, v.patch, v.patch}, [&](const Tensor& kernel) {
      weights.patch_embedding = kernel.reshape({d, v.patch_numbers()}).transpose(0, 1);
    });
    const Shape shape = n_.positions_are_embedding ? Shape{d} : Shape{1, 1, d};
    if (!n_.leading_in_one.empty())
      reader_.take(n_.leading_in_one, {1, v.leading, d}, [&](const Tensor& all) {
        for (Index i = 0; i < v.leading; ++i) weights.leading_tokens.push_back(all.select(0, 0).slice(0, i, i + 1));
      });
    for (int i = 0; n_.leading_in_one.empty() && i < v.leading - v.registers; ++i)
      reader_.take(nth(n_.leading_tokens, i), shape, [&](const Tensor& token) {
        weights.leading_tokens.push_back(token.reshape({1, d}));
      });
    if (v.registers > 0)
      reader_.take(n_.registers, {1, v.registers, d}, [&](const Tensor& all) {
        for (Index i = 0; i < v.registers; ++i) weights.leading_tokens.push_back(all.select(0, 0).slice(0, i, i + 1));
      });
    if (v.patch_bias)
      reader_.take(n_.embedding + ".bias", {d}, [&](const Tensor& bias) { weights.patch_bias = bias.reshape({1, d}); });
    if (n_.positions_are_embedding || c_.position != PositionKind::learned) return;
    const Index side = v.stored_side, placed = v.leading - v.registers,
                stored = side > 0 ? placed + side * side : c_.context - v.registers;
    reader_.take(n_.positions, {1, stored, d}, [&](const Tensor& positions) {
      weights.position_embedding = positions.reshape({stored, d});
      if (side > 0 && (side != v.rows() || side != v.columns()))
        weights.position_embedding = interpolated_positions(weights.position_embedding, v);
      if (v.registers > 0) weights.position_embedding = with_gap(weights.position_embedding, placed, v.registers);
    });
  }

  /// Stored as (d_model, channel, 3).
  void sound(RawWeights& weights) {
    Index channels = c_.sound->mels;
    const Index d = c_.dims.d_model;
    for (const std::string& name : n_.convolutions) {
      reader_.take(name + ".weight", {d, channels, 3}, [&](const Tensor& kernel) {
        weights.convolutions.push_back(kernel.reshape({d, 3 * channels}).transpose(0, 1));
      });
      reader_.take(name + ".bias", {d}, [&](const Tensor& bias) { weights.convolution_biases.push_back(bias); });
      channels = d;
    }
  }

  HeadNames head_names() const {
    const HeadNames& other = n_.head_too;
    const bool first = other.head.empty() || reader_.contains_outside(n_.head + ".weight") ||
                       !reader_.contains_outside(other.head + ".weight");
    return first ? HeadNames{n_.head, n_.head_norm, n_.unembedding_bias} : other;
  }

  void logits(RawWeights& weights) {
    const Index d = c_.dims.d_model, vocab = c_.dims.vocab;
    if (c_.head_layer) {
      const auto take = [&](const std::string& name, const Shape& shape, Tensor& into) {
        reader_.take_outside(name, shape, [&](const Tensor& found) { into = found; });
      };
      const Index out = c_.dims.out_width();
      const HeadNames names = head_names();
      reader_.take_outside(names.head + ".weight", {out, d},
                           [&](const Tensor& found) { weights.head_weight = found.transpose(0, 1); });
      if (c_.bias.head) take(names.head + ".bias", {out}, weights.head_bias);
      take(norm_name(names.head_norm, true), {out}, weights.head_norm_gain);
      if (c_.bias.norm) take(norm_name(names.head_norm, false), {out}, weights.head_norm_bias);
    }
    if (c_.embedding_width > 0 && !c_.narrow_sum())
      reader_.take_transposed(n_.embedding_out + ".weight", d, c_.embedding_width, weights.embedding_out);
    const Index read = c_.dims.d_out > 0 ? c_.dims.d_out : embedded();
    reader_.take_unembedding(head_ + ".weight", {vocab, read}, c_.tied_embeddings, weights);
    if (c_.vision && c_.vision->class_heads == 2) {
      reader_.take_outside(n_.second_unembedding + ".weight", {vocab, d},
                           [&](const Tensor& head) { weights.second_unembedding = head.transpose(0, 1); });
      reader_.take_outside(n_.second_unembedding + ".bias", {vocab},
                           [&](const Tensor& bias) { weights.second_unembedding_bias = bias; });
    }
    if (!c_.bias.unembedding) return;
    if (n_.bias_is_buffer) {
      Tensor row;
      reader_.take_buffer_outside(n_.unembedding_bias, {1, vocab}, row);
      if (row.defined()) weights.unembedding_bias = row.reshape({vocab});
      return;
    }
    // Where the matrix is the embedding again the bias stands by itself, as a rule.
    const std::string beside = head_ + ".bias", alone = head_names().unembedding_bias;
    const bool own = alone.empty() || ((!c_.tied_embeddings || weights.untied) && reader_.contains_outside(beside));
    reader_.take_outside(own ? beside : alone, {vocab}, [&](const Tensor& bias) { weights.unembedding_bias = bias; });
  }

  void block(const std::string& at, int layer, RawLayer& raw) {
    const ModelDims& all = c_.dims;
    const ModelDims dims = all.of_layer(layer);
    const Index d = dims.d_model, queries = Index{dims.heads} * dims.d_head, keys = Index{dims.kv_heads} * dims.d_head,
                values = Index{dims.kv_heads} * dims.value_width();
    const std::string mlp_at = n_.apart.empty() ? at : at_layer(nth(n_.apart, layer).second);
    if (c_.norms_before(layer) || c_.norms_sums()) {
      if ((layer > 0 || c_.first_norm) && c_.entered(layer) == layer) norm(at + n_.ln1, d, raw.ln1_gain, raw.ln1_bias);
      if (!c_.shared_norm && all.has_mlp(layer))
        norm(n_.norms_behind_sums ? norm_after(layer) : mlp_at + (n_.apart.empty() ? n_.ln2 : n_.ln1), d, raw.ln2_gain,
             raw.ln2_bias);
    }
    if (c_.norms_behind(layer)) {
      Tensor none;
      norm(at + n_.ln1_post, d, raw.ln1_post_gain, none);
      norm(at + n_.ln2_post, d, raw.ln2_post_gain, none);
    }
    const bool attends = all.attends(layer), own_keys = c_.own_keys(layer);
    if (all.state_space(layer)) {
      read_state_space(reader_, at, n_.state_space, c_, layer, raw.state_space);
    } else if (c_.latent()) {
      read_latents(reader_, at, n_.latents, c_, raw);
    } else if (n_.qkv.empty()) {
      if (c_.output_gate && n_.z_gate.empty())
        queries_and_gate(at + n_.q, raw);
      else
        linear(at + n_.q, d, queries, c_.bias.q, raw.q_weight, raw.q_bias, c_.groups.q);
      if (own_keys) linear(at + n_.k, d, keys, c_.bias.k, raw.k_weight, raw.k_bias, c_.groups.k);
      if (own_keys && !c_.value_is_key(layer))
        linear(at + n_.v, d, values, c_.bias.v, raw.v_weight, raw.v_bias, c_.groups.v);
      if (n_.swapped_halves) {
        swap_halves(raw.q_weight, raw.q_bias, dims.heads);
        swap_halves(raw.k_weight, raw.k_bias, dims.kv_heads);
      }
    } else {
      Tensor weight, bias;
      linear(at + n_.qkv, d, queries + 2 * keys, c_.bias.q && n_.q_bias.empty(), weight, bias);
      const Qkv parts = ranges_of(n_.fused, dims);
      const auto split = [&](const Ranges& part, Tensor& into, Tensor& into_bias) {
        if (weight.defined()) into = joined(weight, part);
        if (bias.defined()) into_bias = joined(bias, part);
      };
      split(parts.q, raw.q_weight, raw.q_bias);
      split(parts.k, raw.k_weight, raw.k_bias);
      split(parts.v, raw.v_weight, raw.v_bias);
      if (!n_.q_bias.empty()) {
        reader_.take(at + n_.q_bias, {queries}, raw.q_bias);
        reader_.take(at + n_.v_bias, {keys}, raw.v_bias);
      }
    }
    if (c_.distances && !c_.distances->shared) {
      if (c_.distances->content_to_position)
        linear(at + n_.distance_k, d, keys, c_.distances->key_bias, raw.distance_k_weight, raw.distance_k_bias);
      if (c_.distances->position_to_content)
        linear(at + n_.distance_q, d, queries, true, raw.distance_q_weight, raw.distance_q_bias);
    }
    if (attends && c_.qk_norm != QkNorm::none && c_.qk_norm_weights) {
      const bool full = c_.qk_norm == QkNorm::full_width;
      const auto of = [&](const std::string& name, Index heads, Tensor& gain, Tensor& bias) {
        const Shape shape = full                 ? Shape{heads * dims.d_head}
                            : c_.qk_norm_by_head ? Shape{heads, dims.d_head}
                                                 : Shape{dims.d_head};
        if (n_.head_by_head.empty())
          norm(at + name, shape, c_.bias.qk_norm, gain, bias);
        else
          norms_of_heads(at + name + "." + n_.head_by_head, heads, gain);
      };
      of(n_.q_norm, dims.heads, raw.q_norm_gain, raw.q_norm_bias);
      if (own_keys) of(n_.k_norm, dims.kv_heads, raw.k_norm_gain, raw.k_norm_bias);
    }
    Tensor no_bias;
    if (attends && c_.z_norm) norm(at + n_.z_norm, Index{dims.heads} * dims.value_width(), raw.z_norm_gain, no_bias);
    if (c_.mlp_norm && !n_.mlp_norm.empty()) norm(at + n_.mlp_norm, dims.d_mlp, raw.mlp_norm_gain, raw.mlp_norm_bias);
    if (c_.buckets_by_layer) reader_.take(at + buckets_name(), {c_.position_buckets, dims.heads}, raw.position_buckets);
    if (c_.has_sinks(layer)) reader_.take(at + n_.sinks, {dims.heads}, raw.sinks);
    if (attends && c_.output_gate && !n_.z_gate.empty())
      linear(at + n_.z_gate, d, Index{dims.heads} * dims.value_width(), c_.bias.output_gate, raw.z_gate_weight,
             raw.z_gate_bias);
    if (attends)
      linear(at + n_.o, Index{dims.heads} * dims.value_width(), d, c_.bias.o, raw.o_weight, raw.o_bias, c_.groups.o);
    else
      linear(at + (n_.state_space.out.empty() ? n_.o : n_.state_space.out), dims.d_inner, d,
             c_.state_space->biased_out(), raw.o_weight, raw.o_bias);
    if (c_.bias.last_o && layer == dims.layers - 1) reader_.take(at + n_.last_o_bias, {d}, raw.o_bias);
    if (dims.d_layer > 0) {
      Tensor none;
      reader_.take_transposed(at + n_.input_gate + ".weight", d, dims.d_layer, raw.input_gate_weight);
      reader_.take_transposed(at + n_.input_out + ".weight", dims.d_layer, d, raw.input_out_weight);
      norm(at + n_.input_norm, d, raw.input_gain, none);
    }
    if (c_.dims.stream_scales) reader_.take(at + n_.stream_scale, {1}, raw.stream_scale);
    // Which files hold all the same, and no pass reads.
    for (const std::string& name : {n_.k, n_.v, n_.k_norm})
      for (const char* kind : {".weight", ".bias"})
        if (attends && !own_keys) reader_.ignore(at + name + kind);
    if (!all.has_mlp(layer)) {
      // it has none
    } else if (c_.experts.at(layer)) {
      read_experts(reader_, c_, n_.experts, mlp_at, raw.experts);
      if (c_.experts.beside) mlp(mlp_at, dims, raw);
    } else {
      mlp(mlp_at, dims, raw);
    }
    if (c_.norms_behind(layer))  // which would divide it out again
      for (Tensor* gain : {&raw.ln1_post_gain, &raw.ln2_post_gain}) *gain = scaled_by(*gain, c_.residual_scale);
    else
      for (Tensor* written : {&raw.o_weight, &raw.o_bias, &raw.down_weight, &raw.down_bias})
        *written = scaled_by(*written, c_.residual_scale);
    multiply(c_, raw);
    const auto scale = [&](const std::string& name, Tensor& weight, Tensor& bias) {
      reader_.take(at + name, {d}, [&](const Tensor& by) {
        if (weight.defined()) weight = times_columns(weight, by);
        if (bias.defined()) bias = times_columns(bias, by);
      });
    };
    if (c_.layer_scales) scale(n_.scale1, raw.o_weight, raw.o_bias);
    if (c_.layer_scales) scale(n_.scale2, raw.down_weight, raw.down_bias);
    for (const std::string& name : n_.ignored) reader_.ignore(at + name);
  }

  std::string norm_after(int layer) const {
    return layer + 1 < c_.dims.layers ? at_layer(layer + 1) + n_.ln2 : n_.final_norm;
  }

  /// Of the two layers that are one block of the file.
  static void share_norm(const RawLayer& first, RawLayer& second) {
    second.ln1_gain = first.ln1_gain, second.ln1_bias = first.ln1_bias;
  }

  /// Head by head in one matrix: what makes its query, then what makes its gate.
  void queries_and_gate(const std::string& name, RawLayer& raw) {
    const Index width = c_.dims.d_head, heads = c_.dims.heads;
    Tensor weight, bias;
    linear(name, c_.dims.d_model, 2 * heads * width, c_.bias.q, weight, bias);
    Ranges q, gate;
    for (Index head = 0; head < heads; ++head) {
      q.emplace_back(2 * head * width, (2 * head + 1) * width);
      gate.emplace_back((2 * head + 1) * width, (2 * head + 2) * width);
    }
    if (weight.defined()) raw.q_weight = joined(weight, q), raw.z_gate_weight = joined(weight, gate);
    if (bias.defined()) raw.q_bias = joined(bias, q), raw.z_gate_bias = joined(bias, gate);
  }

  void swap_halves(Tensor& weight, Tensor& bias, Index heads) const {
    const Index half = c_.dims.d_head / 2;
    Ranges ranges;
    for (Index head = 0; head < heads; ++head)
      for (const Index part : {2 * head + 1, 2 * head}) ranges.emplace_back(part * half, (part + 1) * half);
    for (Tensor* each : {&weight, &bias})
      if (each->defined()) *each = joined(*each, ranges);
  }

  void mlp(const std::string& at, const ModelDims& dims, RawLayer& raw) {
    const Index d = dims.d_model;
    if (c_.gated_mlp && !n_.gate_up.empty()) {
      Tensor weight, bias;
      linear(at + n_.gate_up, d, 2 * dims.d_mlp, c_.bias.up, weight, bias);
      if (weight.defined()) {
        raw.gate_weight = weight.slice(1, 0, dims.d_mlp);
        raw.up_weight = weight.slice(1, dims.d_mlp, 2 * dims.d_mlp);
        if (n_.up_first) std::swap(raw.gate_weight, raw.up_weight);
      }
      if (bias.defined()) {
        raw.gate_bias = bias.slice(0, 0, dims.d_mlp);
        raw.up_bias = bias.slice(0, dims.d_mlp, 2 * dims.d_mlp);
        if (n_.up_first) std::swap(raw.gate_bias, raw.up_bias);
      }
    } else {
      if (c_.gated_mlp) linear(at + n_.gate, d, dims.d_mlp, c_.bias.up, raw.gate_weight, raw.gate_bias);
      linear(at + n_.up, d, dims.d_mlp, c_.bias.up, raw.up_weight, raw.up_bias, c_.groups.up);
    }
    linear(at + n_.down, dims.d_mlp, d, c_.bias.down, raw.down_weight, raw.down_bias, c_.groups.down);
    if (c_.activation == Activation::xielu) xielu(at + n_.xielu + ".", raw);
  }

  void xielu(const std::string& at, RawLayer& raw) {
    Tensor parts[] = {{}, {}, Tensor::full({1}, 0.5f), Tensor::full({1}, -1e-6f)};
    reader_.take(at + "alpha_p", {1}, parts[0]);
    reader_.take(at + "alpha_n", {1}, parts[1]);
    for (const auto& [name, part] : {std::pair("beta", &parts[2]), std::pair("eps", &parts[3])}) {
      Tensor scalar;
      reader_.take_buffer(at + name, {}, scalar);
      if (scalar.defined()) *part = scalar.reshape({1});
    }
    if (!parts[0].defined() || !parts[1].defined()) return;
    raw.xielu = Tensor::uninitialized({4});
    for (Index i = 0; i < 4; ++i) raw.xielu.ref(i) = nth(parts, i).at(0);
  }

  void linear(const std::string& name, Index in, Index out, bool bias, Tensor& weight, Tensor& into_bias,
              Index groups = 1) {
    if (n_.kernels)
      reader_.take(name + ".weight", {out, in / groups, 1}, [&](const Tensor& kernel) {
        weight = groups == 1 ? kernel.reshape({out, in}).transpose(0, 1) : whole_matrix(kernel, in, groups);
      });
    else
      reader_.take_transposed(name + ".weight", in, out, weight);
    if (bias) reader_.take(name + ".bias", {out}, into_bias);
  }

  void norm(const std::string& name, Index width, Tensor& gain, Tensor& bias) {
    norm(name, Shape{width}, c_.norm == NormKind::layer_norm && c_.bias.norm, gain, bias);
  }
  /// Older files call gain and bias gamma and beta.
  std::string norm_name(const std::string& name, bool gain) const {
    const std::string usual = name + (gain ? ".weight" : ".bias"), old = name + (gain ? ".gamma" : ".beta");
    const auto there = [&](const std::string& n) { return reader_.contains(n) || reader_.contains_outside(n); };
    return !there(usual) && there(old) ? old : usual;
  }
  void norm(const std::string& name, const Shape& shape, bool with_bias, Tensor& gain, Tensor& bias) {
    if (!c_.norm_weights) return;
    reader_.take(norm_name(name, true), shape, gain);
    if (gain.defined() && shape.rank() == 2) gain = gain.reshape({shape.size()});
    if (gain.defined() && c_.norm_gain_plus_one) {
      gain = gain.copy();
      for (float& v : gain.mutable_values()) v += 1;
    }
    if (with_bias) reader_.take(norm_name(name, false), shape, bias);
  }

  /// Gains of heads that a file keeps apart, one after another.
  void norms_of_heads(const std::string& name, Index heads, Tensor& gain) {
    const Index width = c_.dims.d_head;
    Tensor all = Tensor::uninitialized({heads * width});
    bool whole = true;
    for (Index head = 0; head < heads; ++head) {
      Tensor own, none;
      norm(name + std::to_string(head), Shape{width}, false, own, none);
      whole = whole && own.defined();
      for (Index i = 0; own.defined() && i < width; ++i) all.ref(head * width + i) = own.at(i);
    }
    if (whole) gain = all;
  }

  const WeightSource& source_;
  const ModelConfig& c_;
  const WeightNames& n_;
  const std::string head_;  // the unembedding's name
  WeightReader reader_;
};
}  // namespace

RawWeights read_usual_weights(const WeightSource& source, const ModelConfig& config, const WeightNames& names) {
  return UsualReader(source, config, names).read();
}

RawWeights read_two_stacks(const WeightSource& source, const ModelConfig& config, const WeightNames& decoder,
                           const WeightNames& encoder) {
  RawWeights weights = read_usual_weights(source, config, decoder);
  weights.encoder = std::make_shared<RawWeights>(read_usual_weights(source, *config.encoder, encoder));
  RawWeights& other = *weights.encoder;
  // Of what one stack does not use the other may.
  std::vector<std::string> neither;
  std::ranges::set_intersection(weights.unused, other.unused, std::back_inserter(neither));
  weights.unused = neither;
  other.unused.clear();
  const bool shared = !config.encoder->sound && embedding_of(source, decoder) == embedding_of(source, encoder);
  weights.parameters += other.parameters - (shared ? weights.token_embedding.size() : 0);
  return weights;
}

}  // namespace headscope
