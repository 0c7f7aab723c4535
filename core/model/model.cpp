#include "core/model/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <utility>

#include "core/attention/softmax_attention.h"
#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/io/safetensors.h"
#include "core/model/model_parts.h"
#include "core/tensor/row_queue.h"

namespace headscope {
namespace {

// Products that share an input run as one while the matrices are small: then the calls would cost more than the work.
constexpr Index fuse_up_to = Index{1} << 18;
// Rotary angles are made once for this many positions, per pass beyond.
constexpr Index table_positions = 4096;
// Of the time that opening a model takes: reading its file, beside packing its matrices.
constexpr float reading_share = 0.4f;

/// The sites that a block without an MLP does not have.
bool of_mlp(SiteKind kind) {
  switch (kind) {
    case SiteKind::resid_mid:
    case SiteKind::ln2_normalized:
    case SiteKind::mlp_pre:
    case SiteKind::mlp_pre_linear:
    case SiteKind::mlp_post:
    case SiteKind::mlp_out:
      return true;
    default:
      return false;
  }
}

}  // namespace

Model::Model(std::unique_ptr<const Parts> parts) : parts_(std::move(parts)), derived_(std::make_unique<Derived>()) {}
Model::~Model() = default;
const ModelConfig& Model::config() const {
  return parts_->config;
}
ModelInfo Model::info() const {
  return parts_->info;
}

std::shared_ptr<const Model> Model::load(const std::filesystem::path& folder, Backend& backend,
                                         const LoadWatch& watch) {
  const ModelConfig config = load_config(folder);
  SafetensorsFile file = SafetensorsFile::open(folder);
  std::size_t all = 1, done = 0;
  for (const auto& [name, entry] : file.tensors()) all += entry.size;
  file.watch([&](std::size_t bytes) {
    if (watch.stop.stop_requested()) throw Cancelled();
    done += bytes;
    if (watch.progress) *watch.progress = reading_share * static_cast<float>(done) / static_cast<float>(all);
  });
  return build(config, read_weights(file, config), file.path().string(), backend, Weights::fixed, watch);
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
  parts->token_embedding = checked(raw.token_embedding, -1, "token embedding");
  parts->position_embedding = checked(raw.position_embedding, -1, "position embedding");
  parts->final_norm = {checked(raw.final_gain, -1, "final norm"), checked(raw.final_bias, -1, "final norm")};
  for (std::size_t i = 0; i < raw.layers.size(); ++i) {
    if (watch.stop.stop_requested()) throw Cancelled();
    const RawLayer& r = raw.layers[i];
    const int index = static_cast<int>(i);
    const auto linear = [&](const Tensor& weight, const Tensor& bias, const char* role) {
      return backend.linear_weights({checked(weight, index, role)}, {checked(bias, index, role)}, changing);
    };
    Layer layer;
    layer.ln1 = {checked(r.ln1_gain, index, "first norm"), checked(r.ln1_bias, index, "first norm")};
    layer.ln2 = {checked(r.ln2_gain, index, "second norm"), checked(r.ln2_bias, index, "second norm")};
    for (const Tensor* weight : {&r.q_weight, &r.k_weight, &r.v_weight, &r.q_bias, &r.k_bias, &r.v_bias})
      checked(*weight, index, "query, key or value projection");
    if (r.q_weight.size() + r.k_weight.size() + r.v_weight.size() <= fuse_up_to) {
      layer.qkv = {
          backend.linear_weights({r.q_weight, r.k_weight, r.v_weight}, {r.q_bias, r.k_bias, r.v_bias}, changing)};
    } else {
      layer.qkv = {linear(r.q_weight, r.q_bias, "query projection"), linear(r.k_weight, r.k_bias, "key projection"),
                   linear(r.v_weight, r.v_bias, "value projection")};
    }
    layer.o = linear(r.o_weight, r.o_bias, "output projection");
    if (c.gated_mlp) layer.gate = linear(r.gate_weight, r.gate_bias, "MLP gate");
    if (c.dims.d_mlp > 0) {
      layer.up = linear(r.up_weight, r.up_bias, "MLP input matrix");
      layer.down = linear(r.down_weight, r.down_bias, "MLP output matrix");
    }
    parts->layers.push_back(std::move(layer));
    if (watch.progress)
      *watch.progress =
          reading_share + (1 - reading_share) * static_cast<float>(i + 1) / static_cast<float>(raw.layers.size() + 1);
  }
  parts->unembedding = backend.linear_weights({checked(raw.unembedding, -1, "unembedding")}, {}, changing);
  if (c.position == PositionKind::rotary) {
    parts->frequencies = rotary_frequencies(c.rotary, c.dims.d_head);
    parts->rotary =
        rotary_table(parts->frequencies, 0, std::min<Index>(c.context, table_positions), rotary_magnitude(c.rotary));
  }
  parts->info = {c.name, c.family, c.dims, c.context, raw.parameters, raw.dtype};
  return std::shared_ptr<const Model>(new Model(std::move(parts)));
}

std::vector<SiteKind> Model::sites() const {
  const ModelConfig& c = parts_->config;
  std::vector<SiteKind> kinds;
  for (const SiteInfo& site : site_table()) {
    if (site.kind == SiteKind::pos_embed && c.position != PositionKind::learned) continue;
    if ((site.kind == SiteKind::rot_q || site.kind == SiteKind::rot_k) && c.position != PositionKind::rotary) continue;
    if (site.kind == SiteKind::mlp_pre_linear && !c.gated_mlp) continue;
    if (c.dims.d_mlp == 0 && of_mlp(site.kind)) continue;
    kinds.push_back(site.kind);
  }
  return kinds;
}

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
        queue_(ctx.backend.pool()),
        later_(ctx.tape || !queue_.pays(n_) ? nullptr : &queue_) {}

  ForwardResult run(bool all_logits, const LayerRange& range) {
    Tensor x = range.first > 0 ? range.residual : embed();
    const int end = range.end < 0 ? c_.dims.layers : range.end;
    for (int layer = range.first; layer < end; ++layer) {
      if (ctx_.stop.stop_requested()) throw Cancelled();
      x = block(layer, x);
      unchecked_ = {x, layer};
      if (ctx_.progress) *ctx_.progress = static_cast<float>(layer + 1) / static_cast<float>(c_.dims.layers + 1);
    }
    if (range.end >= 0) {
      settle();
      return std::move(result_);
    }
    Tensor last = tap({SiteKind::final_normalized}, norm(m_.final_norm, x));
    if (!all_logits) last = last.slice(0, n_ - 1, n_);
    result_.logits = tap({SiteKind::logits}, b_.linear(last, m_.unembedding, later_));
    settle();
    check_finite(result_.logits, {SiteKind::logits});
    if (cache_) cache_->advance(static_cast<int>(n_));
    if (ctx_.progress) *ctx_.progress = 1.0f;
    return std::move(result_);
  }

 private:
  Tensor embed() {
    const Tensor tokens = tap({SiteKind::embed}, b_.gather(m_.token_embedding, tokens_));  // (position, d_model)
    if (c_.position != PositionKind::learned) return tokens;
    const Tensor positions = lengths_.empty() ? m_.position_embedding.slice(0, offset_, offset_ + n_)
                                              : each_text_from(m_.position_embedding);
    return b_.add(tokens, tap({SiteKind::pos_embed}, positions), later_);
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
    const Tensor pre = tap({SiteKind::resid_pre, layer}, x);
    const Tensor attention_in = tap({SiteKind::ln1_normalized, layer}, norm(l.ln1, pre));
    const Tensor attended = b_.add(pre, attend(layer, l, attention_in), later_);
    if (c_.dims.d_mlp == 0) return tap({SiteKind::resid_post, layer}, attended);
    const Tensor mid = tap({SiteKind::resid_mid, layer}, attended);
    const Tensor mlp_in = tap({SiteKind::ln2_normalized, layer}, norm(l.ln2, mid));
    return tap({SiteKind::resid_post, layer}, b_.add(mid, mlp(layer, l, mlp_in), later_));
  }

  Tensor attend(int layer, const Layer& l, const Tensor& x) {
    const ModelDims& d = c_.dims;
    Tensor q, k, v;
    if (l.qkv.size() == 1) {
      const Tensor all = b_.linear(x, l.qkv[0], later_);
      const Index q_end = Index{d.heads} * d.d_head, k_end = q_end + Index{d.kv_heads} * d.d_head;
      q = all.slice(1, 0, q_end);
      k = all.slice(1, q_end, k_end);
      v = all.slice(1, k_end, all.dim(1));
    } else {
      q = b_.linear(x, l.qkv[0], later_);
      k = b_.linear(x, l.qkv[1], later_);
      v = b_.linear(x, l.qkv[2], later_);
    }
    q = tap({SiteKind::q, layer}, q.reshape({n_, d.heads, d.d_head}));
    k = tap({SiteKind::k, layer}, k.reshape({n_, d.kv_heads, d.d_head}));
    v = tap({SiteKind::v, layer}, v.reshape({n_, d.kv_heads, d.d_head}));
    if (c_.position == PositionKind::rotary) {
      if (!angles_.cosine.defined()) angles_ = angles();
      q = tap({SiteKind::rot_q, layer}, b_.rotate(unit_inner(q), angles_.cosine, angles_.sine, later_));
      k = tap({SiteKind::rot_k, layer}, b_.rotate(unit_inner(k), angles_.cosine, angles_.sine, later_));
    }

    settle();
    AttentionInput in;
    in.storage =
        maps_.layers && !maps_.layers->empty() && !maps_.layers->contains(layer) ? MapStorage::none : maps_.storage;
    if (in.storage == MapStorage::factored &&
        !ctx_.tape) {  // the map shall keep q and k alone, not what they are slices of
      q = q.packed();
      k = k.packed();
    }
    in.q = unit_inner(q);
    in.k = k;
    in.v = v;
    if (cache_) {
      const KvCache::Both all = cache_->append(layer, k, v);
      // The cache will be written again; what a map keeps must not change.
      in.k = in.storage == MapStorage::factored ? all.k.copy() : all.k;
      in.v = all.v;
    }
    in.scale = score_scale(c_, layer);
    in.rule = rule_;
    in.offset = offset_;
    in.layer = layer;
    in.lengths = lengths_;
    in.mapped = maps_.text;
    in.links = maps_.links;
    in.entropy_price = static_cast<float>(ctx_.entropy_price / static_cast<double>(n_ * d.heads * c_.dims.layers));
    AttentionOutput out = softmax_attention(in, b_, ctx_.tap, ctx_.stop);
    std::ranges::move(out.maps, std::back_inserter(result_.maps));

    const Tensor z = tap({SiteKind::z, layer}, out.z);  // (position, head, d_head)
    return tap({SiteKind::attn_out, layer}, wants({SiteKind::result, layer})
                                                ? sum_of_heads(layer, l, z)
                                                : b_.linear(z.reshape({n_, z.dim(1) * z.dim(2)}), l.o, later_));
  }

  /// The output projection head by head, for a tap that wants to see what each head adds to the residual stream.
  Tensor sum_of_heads(int layer, const Layer& l, const Tensor& z) {
    const ModelDims& d = c_.dims;
    Tensor result = b_.empty({n_, d.heads, d.d_model});
    for (int head = 0; head < d.heads; ++head) {
      const Tensor weight = l.o.parts[0].slice(0, Index{head} * d.d_head, Index{head + 1} * d.d_head);
      const Tensor part = b_.linear(z.select(1, head), b_.linear_weights({weight}, {}));
      for (Index i = 0; i < n_; ++i) std::copy_n(part.data() + i * d.d_model, d.d_model, &result.ref(i, head, 0));
    }
    const Tensor seen = tap({SiteKind::result, layer}, result);
    Tensor sum = b_.empty({n_, d.d_model});
    for (Index i = 0; i < n_; ++i)
      for (Index j = 0; j < d.d_model; ++j) {
        float total = l.o.bias.defined() ? l.o.bias.at(j) : 0.0f;
        for (Index head = 0; head < d.heads; ++head) total += seen.at(i, head, j);
        sum.ref(i, j) = total;
      }
    return sum;
  }

  Tensor mlp(int layer, const Layer& l, const Tensor& x) {
    const Backend::Unary f = activation_op(c_.activation);
    Tensor hidden;
    if (c_.gated_mlp) {
      const Tensor gate = tap({SiteKind::mlp_pre, layer}, b_.linear(x, l.gate, later_));
      const Tensor linear = tap({SiteKind::mlp_pre_linear, layer}, b_.linear(x, l.up, later_));
      hidden = b_.multiply(b_.activate(f, gate, later_), linear, later_);
    } else {
      hidden = b_.activate(f, tap({SiteKind::mlp_pre, layer}, b_.linear(x, l.up, later_)), later_);
    }
    return tap({SiteKind::mlp_out, layer}, b_.linear(tap({SiteKind::mlp_post, layer}, hidden), l.down, later_));
  }

  Tensor norm(const NormWeights& w, const Tensor& x) { return normalized(c_, w, b_, x, later_); }

  RotaryTable angles() {
    if (!lengths_.empty()) {
      const Index longest = *std::ranges::max_element(lengths_);
      const bool made = longest <= m_.rotary.cosine.dim(0);
      const RotaryTable table =
          made ? m_.rotary : rotary_table(m_.frequencies, 0, longest, rotary_magnitude(c_.rotary));
      return {each_text_from(table.cosine), each_text_from(table.sine)};
    }
    if (offset_ + n_ > m_.rotary.cosine.dim(0))
      return rotary_table(m_.frequencies, offset_, n_, rotary_magnitude(c_.rotary));
    return {m_.rotary.cosine.slice(0, offset_, offset_ + n_), m_.rotary.sine.slice(0, offset_, offset_ + n_)};
  }

  bool wants(Site site) const { return ctx_.tap && ctx_.tap->wants(site); }

  Tensor tap(Site site, Tensor value) {
    if (!wants(site)) return value;
    settle();
    Tensor seen = ctx_.tap->at(site, value);
    if (seen.shape() != value.shape())
      throw Error(name(site), "an edit of shape " + value.shape().str(), seen.shape().str());
    return seen;
  }

  static Tensor unit_inner(const Tensor& t) { return t.stride(-1) == 1 ? t : t.copy(); }

  /// From here on every tensor made so far holds its values.
  void settle() {
    queue_.run();
    if (const auto [x, layer] = std::exchange(unchecked_, {}); x.defined())
      check_finite(x, {SiteKind::resid_post, layer});
  }

  void check_finite(const Tensor& x, Site site) const {
    if (b_.finite(x)) return;
    for (Index i = 0; i < x.dim(0); ++i)
      for (Index j = 0; j < x.dim(1); ++j)
        if (!std::isfinite(x.at(i, j)))
          throw Error(fmt::format("{}: {}", c_.name, name(site)), "finite numbers",
                      fmt::format("{} at position {}, dimension {}", x.at(i, j), offset_ + i, j),
                      "the weights may be damaged, or an edit drove the activations out of range");
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
  std::vector<std::int32_t> positions_;  // of every row, once somebody asked
  const std::shared_ptr<const AttentionRule> rule_ = causal_rule();
  RotaryTable angles_;
  RowQueue queue_;
  RowQueue* const later_;  // null where a tape records, or there are few rows
  struct {
    Tensor x;
    int layer = 0;
  } unchecked_;  // the last block's result
  ForwardResult result_;
};

ForwardResult Model::forward(const Ctx& ctx, std::span<const std::int32_t> tokens, KvCache* cache,
                             const MapRequest& maps, bool all_logits, const LayerRange& layers,
                             std::span<const Index> lengths) const {
  const ModelConfig& c = parts_->config;
  if (tokens.empty()) throw Error(c.name, "at least one token", "none");
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i] < 0 || tokens[i] >= c.dims.vocab)
      throw Error(c.name, fmt::format("token ids in [0, {})", c.dims.vocab),
                  fmt::format("{} at position {}", tokens[i], i));
  assert(!(cache && (ctx.tape || !lengths.empty())) && (all_logits || lengths.size() <= 1));
  assert(ctx.context <= 0 || c.position != PositionKind::learned);
  const int context = ctx.context > 0 ? ctx.context : c.context;
  const auto limit = static_cast<Index>(cache ? std::min(cache->capacity(), context) : context);
  Index longest = 0, total = 0;
  for (const Index length : lengths) {
    if (length < 1) throw Error(c.name, "at least one token in every text", fmt::format("a length of {}", length));
    longest = std::max(longest, length);
    total += length;
  }
  const auto given = static_cast<Index>(tokens.size());
  if (lengths.empty()) longest = given + (cache ? cache->length() : 0);
  if (!lengths.empty() && total != given)
    throw Error(c.name, fmt::format("texts of {} tokens together", given),
                fmt::format("lengths that add up to {}", total));
  if (longest > limit)
    throw Error(c.name, fmt::format("at most {} tokens", limit),
                fmt::format("{}, {} too many", longest, longest - limit),
                "cut the text, or choose a model with a longer context");
  assert(layers.first >= 0 && layers.first <= c.dims.layers && layers.end <= c.dims.layers);
  assert(layers.first == 0 || (layers.residual.dim(0) == given && !cache));
  if (ctx.tape && ctx.tap)
    for (int layer = 0; layer < c.dims.layers; ++layer)
      if (ctx.tap->wants({SiteKind::result, layer}))
        throw Error(name(Site{SiteKind::result, layer}), "no request for it together with gradients", "one");
  const Backend::Recording recording(ctx.backend, ctx.tape);
  return Pass(*parts_, ctx, tokens, cache, maps, lengths).run(all_logits, layers);
}

}  // namespace headscope
