#include "core/model/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "core/attention/softmax_attention.h"
#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/model/dropped_tokens.h"
#include "core/model/finite_checks.h"
#include "core/model/first_convolution.h"
#include "core/model/head_results.h"
#include "core/model/lent_keys.h"
#include "core/model/model_parts.h"
#include "core/model/pass_checks.h"
#include "core/model/picture_input.h"
#include "core/model/rounded_rows.h"
#include "core/model/sound_input.h"
#include "core/tensor/row_queue.h"

namespace headscope {
/// One run of the forward pass. Reads like the paper: each line a box of the diagram, each tapped.
class Model::Pass {
 public:
  Pass(const Parts& model, const Ctx& ctx, std::span<const std::int32_t> tokens, KvCache* cache, const MapRequest& maps,
       std::span<const Index> lengths)
      : m_(model),
        c_(model.config),
        ctx_(ctx),
        b_(ctx.backend),
        tokens_(tokens),
        cache_(cache),
        maps_(maps),
        lengths_(lengths.size() > 1 ? lengths : std::span<const Index>()),
        offset_(cache ? cache->length() : 0),
        n_(static_cast<Index>(tokens.size())),
        tap_(ctx.tap),
        queue_(ctx.backend.pool()),
        later_(ctx.tape || b_.asynchronous() || c_.input_bits > 0 || !queue_.pays(n_) ? nullptr : &queue_),
        checks_(b_, c_.name, offset_) {}

  ForwardResult run(bool all_logits, const LayerRange& range) {
    Tensor x = range.first > 0 ? range.residual : embed();
    const int end = range.end < 0 ? c_.dims.layers : range.end;
    for (int layer = range.first; layer < end; ++layer) {
      if (ctx_.stop.stop_requested()) throw Cancelled();
      x = block(layer, x);
      unchecked_ = {x, layer};
      if (ctx_.progress) *ctx_.progress = static_cast<float>(layer + 1) / static_cast<float>(c_.dims.layers + 1);
    }
    if (range.end >= 0) return done();
    if (!c_.predicts) {
      if (c_.stack == Stack::encoder)
        result_.memory = c_.last_norm() ? tap({SiteKind::final_normalized}, norm(m_.final_norm, x)) : x;
      ForwardResult result = done();
      if (ctx_.progress) *ctx_.progress = 1.0f;
      return result;
    }
    if (c_.last_norm()) x = norm(m_.final_norm, x);
    if (c_.head_layer)
      x = norm(m_.head_norm, activated(c_.head_activation, {}, b_, b_.linear(x, m_.head, later_), later_));
    Tensor last = tap({SiteKind::final_normalized}, x);
    if (!all_logits && !c_.vision) last = last.slice(0, n_ - 1, n_);
    Tensor logits = c_.vision && (!all_logits || c_.vision->class_heads > 1) ? classes(last)
                                                                             : b_.linear(last, m_.unembedding, later_);
    logits = times(logits, c_.logit_scale);
    if (c_.logit_cap > 0) logits = b_.soft_cap(logits, static_cast<float>(c_.logit_cap), later_);
    result_.logits = tap({SiteKind::logits}, logits);
    settle();
    checks_.look(result_.logits, {SiteKind::logits});
    ForwardResult result = done();
    if (cache_) cache_->advance(static_cast<int>(n_));
    if (ctx_.progress) *ctx_.progress = 1.0f;
    return result;
  }

 private:
  /// (position, d_model)
  Tensor embed() {
    Tensor tokens = c_.vision  ? embedded_patches(*c_.vision, ctx_.patches, n_, m_.patch_embedding, m_.patch_bias,
                                                  m_.leading_tokens, b_)
                    : c_.sound ? convolved(b_, ctx_.patches, m_.convolutions)
                               : b_.gather(m_.token_embedding, tokens_);
    tokens = times(tokens, c_.embedding_scale);
    if (c_.dropped_token) tokens = without_dropped(b_, tokens, tokens_, lengths_, *c_.dropped_token, later_);
    if (c_.embedding_norm && !c_.norm_of_embeddings) tokens = norm(m_.embedding_norm, tokens);
    Tensor sum = tap({SiteKind::embed}, tokens);
    if (c_.position == PositionKind::learned) {
      const Tensor positions = lengths_.empty() ? m_.position_embedding.slice(0, offset_, offset_ + n_)
                                                : each_text_from(m_.position_embedding);
      sum = b_.add(sum, tap({SiteKind::pos_embed}, positions), later_);
    }
    if (c_.segments > 0) sum = b_.add(sum, tap({SiteKind::segment_embed}, segments()), later_);
    if (c_.dims.d_layer > 0) layer_inputs_ = layer_inputs(c_, m_.layer_inputs, b_, sum, tokens_, later_);
    if (c_.norm_of_embeddings) sum = norm(m_.embedding_norm, sum);
    return m_.embedding_in.defined() ? b_.linear(sum, m_.embedding_in, later_) : sum;
  }

  /// What leaves a block: with what the layer's own input adds, and times a number.
  Tensor leaving(int layer, const Layer& l, Tensor x) {
    if (const Index width = c_.dims.d_layer; width > 0) {
      x = tap({SiteKind::resid_late, layer}, x);
      const Tensor own =
          tap({SiteKind::layer_input, layer}, layer_inputs_.slice(1, layer * width, (layer + 1) * width));
      x = b_.add(x, tap({SiteKind::layer_out, layer}, added_by_input(c_, l.input, b_, x, own, later_)), later_);
    }
    if (c_.dims.stream_scales) x = b_.scale(tap({SiteKind::resid_unscaled, layer}, x), l.stream_scale, later_);
    return tap({SiteKind::resid_post, layer}, x);
  }

  /// (picture, classes): what the first token of each says, or the mean of that and of what the second says.
  Tensor classes(const Tensor& x) {
    settle();
    const auto read = [&](Index token, const Linear& head) {
      if (lengths_.empty()) return b_.linear(x.slice(0, token, token + 1), head);
      std::vector<std::int32_t> rows;
      for (Index i = token; i < n_; i += c_.vision->tokens()) rows.push_back(static_cast<std::int32_t>(i));
      return b_.linear(b_.gather(x, rows), head);
    };
    const Tensor first = read(0, m_.unembedding);
    return m_.second_unembedding.defined() ? b_.scale(b_.add(first, read(1, m_.second_unembedding)), 0.5f) : first;
  }

  Tensor segments() {
    const std::vector<std::int32_t> first(tokens_.size(), 0);
    return b_.gather(m_.segment_embedding, ctx_.segments.empty() ? std::span(first) : ctx_.segments);
  }

  /// The rows of `table` for position 0, 1, … of every text.
  Tensor each_text_from(const Tensor& table) {
    if (positions_.empty())
      for (const Index length : lengths_)
        for (Index i = 0; i < length; ++i) positions_.push_back(static_cast<std::int32_t>(i));
    return b_.gather(table, positions_);
  }

  Tensor block(int layer, const Tensor& x) {
    const Layer& l = nth(m_.layers, layer);
    const auto [pre, attention_in, own] = with_attention(layer, l, x);
    const Tensor attended = c_.cross() ? across(layer, own) : own;
    if (!c_.dims.has_mlp(layer)) return leaving(layer, l, attended);
    const Tensor mid = c_.dims.parallel ? attended : tap({SiteKind::resid_mid, layer}, attended);
    const Tensor& read = c_.dims.parallel ? pre : mid;  // by the MLP
    const Tensor mlp_in = l.ln2.gain.defined() ? tap({SiteKind::ln2_normalized, layer}, rounded(norm(l.ln2, read)))
                          : c_.shared_norm     ? attention_in
                                               : read;
    Tensor post = b_.add(times(mid, c_.mlp_stream), mlp(layer, l, mlp_in, read), later_);
    if (l.ln2_sum.gain.defined()) post = norm(l.ln2_sum, post);
    if (layer == 0 && c_.convolution) {
      post = tap({SiteKind::resid_late, layer}, post);
      post = norm(m_.convolution_norm, b_.add(post, tap({SiteKind::layer_out, layer}, beside_first(pre)), later_));
    }
    return leaving(layer, l, post);
  }

  Tensor beside_first(const Tensor& x) {
    settle();
    return convolved_along(*c_.convolution, m_.convolution, b_, x, lengths_);
  }

  struct Attended {
    Tensor stream, read, sum;  // before; what attention reads of it; behind
  };
  Attended with_attention(int layer, const Layer& l, const Tensor& x) {
    Attended a;
    a.stream = tap({SiteKind::resid_pre, layer}, x);
    if (c_.entered(layer) == layer) entered_ = a.stream;
    a.read = l.ln1.gain.defined() ? tap({SiteKind::ln1_normalized, layer}, rounded(norm(l.ln1, entered_))) : entered_;
    const double kept = c_.dims.attends(layer) ? c_.attention_stream : c_.state_stream;
    a.sum = b_.add(times(a.stream, kept), attend(layer, l, a.read), later_);
    if (l.ln1_sum.gain.defined()) a.sum = norm(l.ln1_sum, a.sum);
    return a;
  }

  /// The stream behind cross-attention: the same, with keys and values of the source.
  Tensor across(int layer, const Tensor& x) {
    source_ = ctx_.source;
    tap_ = source_->tap;
    Tensor behind = with_attention(layer, nth(m_.cross, layer), x).sum;
    source_ = nullptr;
    tap_ = ctx_.tap;
    return behind;
  }

  /// What a part of the block adds to the stream: its output, or the norm of that.
  Tensor added(SiteKind unnormed, SiteKind out, int layer, const NormWeights& behind, Tensor x) {
    if (behind.gain.defined()) x = norm(behind, tap({unnormed, layer}, x));
    return tap({out, layer}, x);
  }

  /// (position, head, d_head) through the norm of queries or of keys.
  Tensor head_norm(const NormWeights& w, const Tensor& x) {
    if (c_.qk_norm == QkNorm::full_width) return norm(w, x.reshape({n_, x.dim(1) * x.dim(2)})).reshape(x.shape());
    return norm(w, x);
  }

  struct Qkv {
    Tensor q, k, v;  // (position, width of all heads)
  };
  Qkv products(int layer, const Layer& l, const Tensor& x) {
    const ModelDims& d = c_.dims;
    if (c_.latent()) return latent_products(layer, l, x);
    Tensor q, k, v;
    const LayerWidths wide = d.widths_of(layer);
    const bool same = c_.value_is_key(layer);
    if (source_) {
      q = b_.linear(x, l.qkv[0], later_);
      if (cache_ && cache_->source(layer)) return {q, {}, {}};
      k = b_.linear(source_->memory, l.qkv[1]);  // rows of another text: not with those that wait
      v = b_.linear(source_->memory, l.qkv[2]);
    } else if (!c_.own_keys(layer)) {
      q = b_.linear(x, l.qkv[0], later_);
    } else if (l.qkv.size() == 1) {
      const Tensor all = b_.linear(x, l.qkv[0], later_);
      const Index q_end = Index{d.heads} * wide.d_head, k_end = q_end + Index{wide.kv_heads} * wide.d_head;
      q = all.slice(1, 0, q_end);
      k = all.slice(1, q_end, k_end);
      v = same ? k : all.slice(1, k_end, all.dim(1));
    } else {
      q = b_.linear(x, l.qkv[0], later_);
      k = b_.linear(x, l.qkv[1], later_);
      v = same ? k : b_.linear(x, l.qkv[2], later_);
    }
    return {q, k, v};
  }

  /// The same by way of latents. What turns of a key comes past its latent, for all heads at once.
  Qkv latent_products(int layer, const Layer& l, const Tensor& x) {
    const ModelDims& d = c_.dims;
    Tensor read = x;
    if (l.latents.q.defined())
      read = tap({SiteKind::q_latent, layer}, norm(l.latents.q_norm, b_.linear(x, l.latents.q, later_)));
    const Tensor down = b_.linear(x, l.latents.kv, later_);
    const Tensor latent = tap({SiteKind::kv_latent, layer}, norm(l.latents.kv_norm, down.slice(1, 0, d.kv_latent)));
    const Tensor k = b_.linear(latent, l.qkv[1], later_).reshape({n_, d.kv_heads, d.d_head});
    return {b_.linear(read, l.qkv[0], later_), b_.add_to_heads(k, down.slice(1, d.kv_latent, down.dim(1)), later_),
            b_.linear(latent, l.qkv[2], later_)};
  }

  bool lends(int layer) const { return std::ranges::count(c_.kv_layers, layer) > 1; }

  /// What attention adds: of the text to itself or, within across(), to the source.
  Tensor attend(int layer, const Layer& l, const Tensor& x) {
    const ModelDims& d = c_.dims;
    if (!d.attends(layer)) return mix(layer, l, x);
    auto [q, k, v] = products(layer, l, x);
    const LayerWidths wide = d.widths_of(layer);
    const Index value_width = d.d_value > 0 ? d.d_value : wide.d_head;
    const bool lent = !source_ && !c_.own_keys(layer);
    const bool known = !k.defined() && !lent;  // keys and values of the source, from an earlier token of the target
    const Layer& maker = lent ? nth(m_.layers, c_.kv_layer(layer)) : l;  // of keys and values
    const LentKeys* const from = lent ? &lent_.at(c_.kv_layer(layer)) : nullptr;
    LentKeys* const to = !source_ && lends(layer) ? &lent_[layer] : nullptr;
    const auto look = [this](Site site, Tensor value) { return tap(site, std::move(value)); };
    KeyWay keys(look, layer, from, to), values(look, layer, from, to);
    const auto clipped = [&](const Tensor& t) {
      return c_.clip_qkv > 0 ? b_.clip(t, static_cast<float>(c_.clip_qkv), later_) : t;
    };
    const bool normed = c_.qk_norm != QkNorm::none;  // then what is cut stands behind the norm
    if (!normed) q = clipped(q);
    q = tap({SiteKind::q, layer}, q.reshape({n_, d.heads, wide.d_head}));
    if (!known) {
      const auto of_values = [&] {
        const Tensor cut = clipped(v);
        return cut.reshape({cut.dim(0), wide.kv_heads, value_width});
      };
      k = keys.at(SiteKind::k, &LentKeys::k, [&] {
        const Tensor cut = normed ? k : clipped(k);
        return cut.reshape({cut.dim(0), wide.kv_heads, wide.d_head});
      });
      if (c_.value_norm) {
        const Tensor plain = values.at(SiteKind::v_unnormed, &LentKeys::v_unnormed, of_values);
        v = values.at(SiteKind::v, &LentKeys::v, [&] { return norm(maker.v_norm, plain); });
      } else {
        v = values.at(SiteKind::v, &LentKeys::v, of_values);
      }
    }
    Tensor gate;
    if (l.z_gate.defined())
      gate = tap({SiteKind::attn_gate, layer}, b_.linear(x, l.z_gate, later_).reshape({n_, d.heads, value_width}));
    const auto normalize = [&] {
      q = tap({SiteKind::q_normed, layer}, clipped(head_norm(l.q_norm, q)));
      k = keys.at(SiteKind::k_normed, &LentKeys::k_normed, [&] { return clipped(head_norm(maker.k_norm, k)); });
    };
    if (normed && !c_.normed_turned()) normalize();
    if (l.rotary >= 0) q = turned(l.rotary, q, true);
    if (c_.position == PositionKind::rotary) {
      q = tap({SiteKind::rot_q, layer}, q);
      if (!known)
        k = keys.at(SiteKind::rot_k, &LentKeys::rot_k, [&] { return l.rotary >= 0 ? turned(l.rotary, k, false) : k; });
    }
    if (c_.normed_turned()) normalize();

    settle();
    const MapRequest& maps = source_ ? source_->maps : maps_;
    AttentionInput in;
    in.storage = maps.storage_of(layer);
    in.statistics = maps.statistics;
    if (in.storage == MapStorage::factored && !ctx_.tape) {  // a map shall keep q and k, not what they are slices of
      q = b_.packed(q);
      if (!known) k = b_.packed(k);
    }
    std::tie(in.q, in.k, in.v) = std::tuple(unit_inner(q), k, v);
    if (source_) {
      if (known)
        std::tie(in.k, in.v) = std::tie(cache_->source(layer)->k, cache_->source(layer)->v);
      else if (cache_)
        cache_->keep_source(layer, {k, v});
    } else if (cache_) {
      const KvCache::Both all = cache_->append(layer, k, v, b_);
      in.k = all.k;
      in.v = all.v;
      in.room = cache_->capacity();
      if (cache_->keeps_queries())
        if (const Tensor whole = cache_->append_queries(layer, in.q, b_); in.storage != MapStorage::none) in.q = whole;
    }
    if (cache_) in.key_panels = &cache_->panels(layer, source_ != nullptr);
    in.scale = score_scale(c_, layer);
    in.rule = l.rule;
    in.cap = static_cast<float>(c_.score_cap);
    in.sinks = l.sinks;
    in.layer = layer;
    in.between_texts = source_ != nullptr;
    in.lengths = lengths_;
    in.mapped = maps.text;
    if (source_) {
      in.key_lengths = source_->lengths;
    } else {  // of where tokens stand in one text
      in.slopes = c_.alibi_slopes;
      in.slope_unit = c_.alibi_unit;
      in.buckets = l.buckets;
      in.distances = l.distances;
      in.known = in.q.dim(0) - n_;
      in.goes_on = cache_ && cache_->keeps_queries();
      if (in.known > 0) in.before = maps.before_of(layer);
      in.links = maps.links;
    }
    in.offset = offset_ - in.known;  // of the target: what edits do to a row they do there
    in.entropy_price = static_cast<float>(ctx_.entropy_price / static_cast<double>(n_ * d.heads * c_.dims.layers));
    AttentionOutput out = softmax_attention(in, b_, tap_, ctx_.stop);
    std::ranges::move(out.maps, std::back_inserter(source_ ? result_.cross_maps : result_.maps));

    const Tensor z = tap({SiteKind::z, layer}, out.z);
    if (!c_.changes_z()) return written(layer, l, z);
    Tensor read = gated_output(b_, z, gate, later_).reshape({n_, d.heads * value_width});
    if (c_.z_norm) read = norm(l.z_norm, read);
    return written(layer, l, tap({SiteKind::z_gated, layer}, rounded(read).reshape(z.shape())));
  }

  /// What a state space adds in the place of attention.
  Tensor mix(int layer, const Layer& l, const Tensor& x) {
    settle();
    StateSpaceOutput out = state_space({c_, l.state_space, x, layer, lengths_, cache_, maps_.storage_of(layer),
                                        maps_.text, maps_.links, maps_.before_of(layer)},
                                       b_, tap_, ctx_.stop);
    std::ranges::move(out.maps, std::back_inserter(result_.maps));
    return written(layer, l, out.gated);
  }

  /// What heads add to the stream by z (position, head, d_head).
  Tensor written(int layer, const Layer& l, const Tensor& z) {
    return added(SiteKind::attn_unnormed, SiteKind::attn_out, layer, l.ln1_post,
                 wants({SiteKind::result, layer}) ? sum_of_heads(layer, l, z)
                                                  : b_.linear(z.reshape({n_, z.dim(1) * z.dim(2)}), l.o, later_));
  }

  /// The output projection head by head, for a tap that wants to see what each head adds to the residual stream.
  Tensor sum_of_heads(int layer, const Layer& l, const Tensor& z) {
    return heads_summed(tap({SiteKind::result, layer}, head_results(l.o, z, b_)), l.o.bias, b_);
  }

  /// `stream`: what experts beside an MLP read.
  Tensor mlp(int layer, const Layer& l, const Tensor& x, const Tensor& stream) {
    if (l.experts.defined() && !c_.experts.beside)
      return added(SiteKind::mlp_unnormed, SiteKind::mlp_out, layer, l.ln2_post, experts(layer, l.experts, x));
    Tensor hidden;
    if (c_.gated_mlp) {
      const Tensor gate = tap({SiteKind::mlp_pre, layer}, b_.linear(x, l.gate, later_));
      const Tensor linear = tap({SiteKind::mlp_pre_linear, layer}, b_.linear(x, l.up, later_));
      hidden = gated(c_, l.xielu, b_, gate, linear, later_);
    } else {
      hidden =
          activated(c_.activation, l.xielu, b_, tap({SiteKind::mlp_pre, layer}, b_.linear(x, l.up, later_)), later_);
    }
    if (l.mlp_norm.gain.defined()) hidden = norm(l.mlp_norm, hidden);
    Tensor out = b_.linear(tap({SiteKind::mlp_post, layer}, rounded(hidden)), l.down, later_);
    if (l.experts.defined()) {
      out = norm(l.experts.dense_norm, out);
      out = b_.add(out, norm(l.experts.out_norm, experts(layer, l.experts, stream)), later_);
    }
    return added(SiteKind::mlp_unnormed, SiteKind::mlp_out, layer, l.ln2_post, out);
  }

  /// The few MLPs that the router sends each token through, weighed.
  Tensor experts(int layer, const ExpertLayer& of, const Tensor& x) {
    settle();
    const auto read = [&](const NormWeights& w) { return w.gain.defined() ? normalized(c_, w, b_, x) : x; };
    const Tensor logits = tap({SiteKind::router_logits, layer}, b_.linear(read(of.router_norm), of.router));
    const Tensor weights =
        router_weights(c_.experts, of.correction, b_, logits,
                       ctx_.balance_price / c_.experts.layers_among(c_.dims.layers), of.output_weight, lengths_);
    return through_experts(c_, of, b_, read(of.in_norm), tap({SiteKind::router_weights, layer}, weights));
  }

  Tensor norm(const NormWeights& w, const Tensor& x) { return normalized(c_, w, b_, x, later_); }
  Tensor rounded(const Tensor& x) { return rounded_rows(b_, x, c_.input_bits); }
  Tensor times(const Tensor& x, double by) { return by == 1 ? x : b_.scale(x, static_cast<float>(by), later_); }

  Tensor turned(int rotation, const Tensor& x, bool queries) {
    const Rotation& by = nth(m_.rotations, rotation);
    const bool grow = queries && by.config.query_growth > 0;
    std::vector<RotaryTable>& made = grow ? query_angles_ : angles_;
    made.resize(m_.rotations.size());
    RotaryTable& at = nth(made, rotation);
    if (!at.cosine.defined()) {
      at = by.angles(lengths_, offset_, n_, by.d_head, grow, b_);
      for (Tensor* each : {&at.cosine, &at.sine}) *each = b_.resident(std::move(*each));
    }
    return b_.rotate(unit_inner(x), at.cosine, at.sine, later_, by.config.layout == RotaryLayout::interleaved);
  }

  bool wants(Site site) const { return tap_ && tap_->wants(site); }

  Tensor tap(Site site, Tensor value) {
    if (!wants(site)) return value;
    settle();
    Tensor seen = tap_->at(site, value);
    if (seen.shape() != value.shape())
      throw Error(name(site), "an edit of shape " + value.shape().str(), seen.shape().str());
    return seen;
  }

  static Tensor unit_inner(const Tensor& t) { return t.stride(-1) == 1 ? t : t.copy(); }

  /// From here on every tensor made so far holds its values.
  void settle() {
    queue_.run();
    if (const auto [x, layer] = std::exchange(unchecked_, {}); x.defined())
      checks_.look(x, {SiteKind::resid_post, layer});
  }

  /// What the pass gives, with nothing left to wait for.
  ForwardResult done() {
    settle();
    if (Remote* const logits = result_.logits.remote(); logits && result_.logits.dim(0) == 1)
      logits->send();  // which a generator reads next
    b_.finish();
    checks_.read();
    return std::move(result_);
  }

  const Parts& m_;
  const ModelConfig& c_;
  const Ctx& ctx_;
  Backend& b_;
  std::span<const std::int32_t> tokens_;
  KvCache* cache_;
  const MapRequest& maps_;
  const std::span<const Index> lengths_;  // empty for one text
  const Index offset_, n_;
  std::vector<std::int32_t> positions_;    // of every row, once somebody asked
  std::vector<RotaryTable> angles_;        // by rotation, once a layer asked
  std::vector<RotaryTable> query_angles_;  // likewise of queries, where they grow
  Tensor layer_inputs_;                    // of ModelDims::d_layer
  Tensor entered_;                         // the stream that ModelConfig::entered() says
  std::map<int, LentKeys> lent_;           // by layer
  Tap* tap_;                               // of the sites that are reached: the text's, or cross-attention's
  const SourceMemory* source_ = nullptr;   // while cross-attention runs
  RowQueue queue_;
  RowQueue* const later_;  // null where a tape records, or there are few rows
  struct {
    Tensor x;
    int layer = 0;
  } unchecked_;  // the last block's result
  FiniteChecks checks_;
  ForwardResult result_;
};

ForwardResult Model::forward(const Ctx& ctx, std::span<const std::int32_t> tokens, KvCache* cache,
                             const MapRequest& maps, bool all_logits, const LayerRange& layers,
                             std::span<const Index> lengths) const {
  check_pass(parts_->config, ctx, tokens, cache, layers, lengths);
  assert(!cache || continues(*cache, cache->length() + static_cast<Index>(tokens.size())));
  assert(!(cache && (ctx.tape || !lengths.empty())) && (all_logits || lengths.size() <= 1));
  const Backend::Recording recording(ctx.backend, ctx.tape);
  struct Running {
    Backend& backend;
    ~Running() { backend.abandon(); }
  } running{ctx.backend};
  const ThreadPool::Stopping stopping(ctx.stop);
  return Pass(*parts_, ctx, tokens, cache, maps, lengths).run(all_logits, layers);
}

}  // namespace headscope
