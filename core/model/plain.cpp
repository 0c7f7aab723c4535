#include "core/model/plain.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numbers>
#include <tuple>
#include <utility>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/model/plain_parts.h"

namespace headscope::plain {

namespace {
using std::numbers::pi;

Table sum(Table a, const Table& b) {
  for (std::size_t i = 0; i < a.values.size(); ++i) a.values[i] += b.values[i];
  return a;
}

Table times(Table a, double by) {
  for (double& value : a.values) value *= by;
  return a;
}

Table normed(const ModelConfig& c, NormKind kind, Table x, const Tensor& gain, const Tensor& bias) {
  normalize(c, kind, x, 0, x.columns, gain, bias);
  return x;
}
Table normed(const ModelConfig& c, Table x, const Tensor& gain, const Tensor& bias) {
  return normed(c, c.norm, std::move(x), gain, bias);
}

using Lent = std::map<int, std::pair<Table, Table>>;  // keys as they meet, and values, by layer

/// cap · tanh(x ÷ cap)
double capped(double x, double cap) {
  return cap > 0 ? cap * std::tanh(x / cap) : x;
}

/// θ of pair i of `width` turning dimensions in a text of so many tokens, radians per position.
double theta(const RotaryConfig& r, Index i, Index width, Index tokens) {
  using Scaling = RotaryConfig::Scaling;
  if (r.pairs >= 0 && i >= r.pairs) return 0;
  const auto d = static_cast<double>(width);
  double base = r.base;
  if (r.scaling == Scaling::ntk && width > 2) base *= std::pow(r.factor, d / (d - 2));
  if (r.scaling == Scaling::dynamic && tokens > r.original_context && width > 2)
    base *= std::pow(r.factor * static_cast<double>(tokens) / r.original_context - (r.factor - 1), d / (d - 2));
  const double own = std::pow(base, -2.0 * static_cast<double>(i) / d), stretched = own / r.factor;
  if (r.scaling == Scaling::linear) return stretched;
  if (r.scaling == Scaling::longrope) return own / nth(tokens > r.original_context ? r.long_divisors : r.divisors, i);
  if (r.scaling != Scaling::yarn && r.scaling != Scaling::llama3) return own;
  // By parts: what turns often within the trained context stays, what turns hardly once is stretched.
  const auto context = static_cast<double>(r.original_context);
  double kept = 0;
  if (r.ramp == RotaryConfig::Ramp::turns) {
    const double turns = context * own / (2 * pi);
    kept = (turns - r.low_frequency_factor) / (r.high_frequency_factor - r.low_frequency_factor);
  } else {  // along the number of the pair, from that of β turns to that of α
    const bool whole = r.ramp == RotaryConfig::Ramp::whole_pairs;
    double from = d * std::log(context / (r.high_frequency_factor * 2 * pi)) / (2 * std::log(r.base)),
           to = d * std::log(context / (r.low_frequency_factor * 2 * pi)) / (2 * std::log(r.base));
    from = std::max(whole ? std::floor(from) : from, 0.0);
    to = std::min(whole ? std::ceil(to) : to, d - 1);
    if (from == to) to += 0.001;
    kept = 1 - (static_cast<double>(i) - from) / (to - from);
  }
  kept = std::clamp(kept, 0.0, 1.0);
  return kept * own + (1 - kept) * stretched;
}

/// Every head of every row turned to its position; queries longer, where they grow.
void rotate(Table& x, Index heads, Index d_head, const RotaryConfig& r, bool queries) {
  const Index width = r.width > 0 ? r.width : d_head;
  const bool far = r.long_magnitude > 0 && x.rows > r.original_context;
  const double magnitude = far                                                        ? r.long_magnitude
                           : r.magnitude > 0                                          ? r.magnitude
                           : r.scaling == RotaryConfig::Scaling::yarn && r.factor > 1 ? 0.1 * std::log(r.factor) + 1
                                                                                      : 1;
  const auto growth = [&](Index row) {
    return queries && r.query_growth > 0
               ? 1 + r.query_growth * std::log(1 + std::floor(static_cast<double>(row) / r.original_context))
               : 1;
  };
  for (Index row = 0; row < x.rows; ++row)
    for (Index head = 0; head < heads; ++head)
      for (Index i = width; i < d_head; ++i) x.at(row, head * d_head + i) *= growth(row);
  for (Index i = 0; i < width / 2; ++i) {
    const bool adjacent = r.layout == RotaryLayout::interleaved;
    const Index a = adjacent ? 2 * i : i, b = adjacent ? 2 * i + 1 : i + width / 2;
    const double turn = theta(r, i, r.odd ? width - 1 : width, x.rows);
    for (Index row = 0; row < x.rows; ++row)
      for (Index head = 0; head < heads; ++head) {
        double &first = x.at(row, head * d_head + a), &second = x.at(row, head * d_head + b);
        const double angle = static_cast<double>(row) * turn, p = first, q = second;
        const double size = magnitude * growth(row);
        first = size * (p * std::cos(angle) - q * std::sin(angle));
        second = size * (p * std::sin(angle) + q * std::cos(angle));
      }
  }
}

void normalize_heads(const ModelConfig& c, Table& x, Index heads, const Tensor& gain, const Tensor& bias) {
  const Index width = x.columns / heads;
  if (c.qk_norm == QkNorm::full_width) return normalize(c, c.norm, x, 0, x.columns, gain, bias);
  for (Index head = 0; head < heads; ++head)
    normalize(c, c.norm, x, head * width, width, gain, bias, c.qk_norm_by_head ? head * width : 0);
}

/// softmax over the keys that `row` sees, and a sink where there is one (OpenAI 2025): e^s ÷ (Σ e^s + e^sink).
void softmax(Table& scores, Index row, Index first, Index last, const Tensor& sinks, Index head) {
  double most = sinks.defined() ? number(sinks, head) : scores.at(row, first), total = 0;
  for (Index key = first; key <= last; ++key) most = std::max(most, scores.at(row, key));
  if (sinks.defined()) total = std::exp(number(sinks, head) - most);
  for (Index key = first; key <= last; ++key) total += std::exp(scores.at(row, key) - most);
  for (Index key = first; key <= last; ++key) scores.at(row, key) = std::exp(scores.at(row, key) - most) / total;
}

/// x ÷ √(mean x² + ε) · gain of a latent.
Table latent_normed(ModelConfig c, Table x, const Tensor& gain) {
  c.norm_epsilon = c.latent_epsilon;
  return normed(c, std::move(x), gain, {});
}

/// Queries, keys and values of latents: q = norm(x W_DQ) W_UQ, [c, r] = x W_DKV, k = norm(c) W_UK with r in every head
/// where it turns, v = norm(c) W_UV.
void of_latents(const ModelConfig& c, const RawLayer& w, const Table& x, Table& q, Table& k, Table& v,
                const std::stop_token& stop) {
  const RawLatents& l = w.latents;
  q = product(l.q_weight.defined() ? latent_normed(c, product(x, l.q_weight, l.q_bias, stop), l.q_gain) : x, w.q_weight,
              w.q_bias, stop);
  const Table down = product(x, l.kv_weight, l.kv_bias, stop);
  const Table latent = latent_normed(c, columns(down, 0, c.dims.kv_latent), l.kv_gain);
  k = product(latent, w.k_weight, {}, stop);
  v = product(latent, w.v_weight, {}, stop);
  for (Index row = 0; row < x.rows; ++row)
    for (Index head = 0; head < c.dims.kv_heads; ++head)
      for (Index i = 0; i < c.rotary.width; ++i)
        k.at(row, head * c.dims.d_head + i) = down.at(row, c.dims.kv_latent + i);
}

/// What attention adds to the stream, before any norm behind it; its patterns. `source`: what keys and values are made
/// of where that is another text, all of which every query sees.
/// `lent`: keys and values of every layer, for those that read another's.
Table attend(const ModelConfig& c, const RawWeights& all, const RawLayer& w, int layer, const Table& x,
             const Table* source, std::vector<Table>& patterns, Lent& lent, const std::stop_token& stop) {
  if (c.dims.state_space(layer)) return through_states(c, w, x, patterns, stop);
  const Table& of = source ? *source : x;
  const ModelDims dims = c.dims.of_layer(layer);
  const Index heads = dims.heads, shared = dims.kv_heads, d = dims.d_head, wide = dims.value_width(), n = x.rows,
              keys = of.rows;
  const bool own = source || c.own_keys(layer);
  Table q, k, v;
  if (c.latent())
    of_latents(c, w, x, q, k, v, stop);
  else
    q = product(x, w.q_weight, w.q_bias, stop);
  if (own && !c.latent()) {
    k = product(of, w.k_weight, w.k_bias, stop);
    v = c.value_is_key(layer) ? k : product(of, w.v_weight, w.v_bias, stop);
    if (c.value_norm) normalize_heads(c, v, shared, {}, {});
  }
  const auto normalize_both = [&] {
    if (!c.norms_keys(layer)) return;
    normalize_heads(c, q, heads, w.q_norm_gain, w.q_norm_bias);
    if (own) normalize_heads(c, k, shared, w.k_norm_gain, w.k_norm_bias);
  };
  if (!c.norm_after_rotation) normalize_both();
  if (c.clip_qkv > 0)
    for (Table* each : {&q, &k, &v})
      for (double& value : each->values) value = std::clamp(value, -c.clip_qkv, c.clip_qkv);
  if (source) {
    // where a token of another text stands says nothing here
  } else if (c.turns(layer) && c.vision) {
    rotate_patches(*c.vision, q, heads, d, c.rotary.base);
    rotate_patches(*c.vision, k, shared, d, c.rotary.base);
  } else if (c.turns(layer)) {
    rotate(q, heads, d, c.rotary_of(layer), true);
    if (own) rotate(k, shared, d, c.rotary_of(layer), false);
  }
  if (c.norm_after_rotation) normalize_both();
  if (c.unturned_growth > 0 && !c.turns(layer))
    for (Index row = 0; row < n; ++row)
      for (Index i = 0; i < q.columns; ++i)
        q.at(row, i) *=
            1 + c.unturned_growth * std::log(1 + std::floor(static_cast<double>(row + 1) / c.unturned_floor));
  if (!own) std::tie(k, v) = lent.at(c.kv_layer(layer));
  if (!source && std::ranges::count(c.kv_layers, layer) > 1) lent[layer] = {k, v};
  double scale = c.score_scale ? *c.score_scale : c.scale_by_inverse_sqrt_d ? 1 / std::sqrt(static_cast<double>(d)) : 1;
  if (c.scale_by_inverse_layer) scale /= layer + 1;

  const Distances distances(c, all, w, stop);
  Table z(n, heads * wide);
  for (Index head = 0; head < heads; ++head) {
    const Index group = head * shared / heads;  // the key and value head that it reads
    Table pattern(n, keys);
    for (Index query = 0; query < n; ++query) {
      const Index reach = c.window(layer) > 0 ? c.window(layer) - 1 : n;
      const Index chunk = c.chunk(layer) > 0 ? query / c.chunk(layer) * c.chunk(layer) : 0;
      const Index first = source ? 0 : std::max(chunk, query - reach), last = source ? keys - 1
                                                                              : c.causal
                                                                                  ? query
                                                                                  : std::min(n - 1, query + reach);
      for (Index key = first; key <= last; ++key) {
        double score = 0;
        for (Index i = 0; i < d; ++i) score += q.at(query, head * d + i) * k.at(key, group * d + i);
        score += distances.of(c, q, query, k, key, head * d);
        score = capped(score * scale, c.score_cap);
        if (!source) score += position_bias(c, all, layer, head, query, key);
        pattern.at(query, key) = score;
      }
      softmax(pattern, query, first, last, w.sinks, head);
      for (Index key = first; key <= last; ++key)
        for (Index i = 0; i < wide; ++i)
          z.at(query, head * wide + i) += pattern.at(query, key) * v.at(key, group * wide + i);
    }
    patterns.push_back(std::move(pattern));
  }
  if (w.z_gate_weight.defined()) {
    const Table gate = product(x, w.z_gate_weight, w.z_gate_bias, stop);
    for (std::size_t i = 0; i < z.values.size(); ++i) z.values[i] /= 1 + std::exp(-gate.values[i]);
  }
  if (c.z_norm) z = normed(c, std::move(z), w.z_norm_gain, {});
  round_rows(z, c.input_bits);
  return product(z, w.o_weight, w.o_bias, stop);
}

/// f(x W_in + b) W_out + b, or (f(x W_gate + b) ∘ (x W_in + b)) W_out + b.
Table feed_forward(const ModelConfig& c, const RawLayer& w, const Table& x, const std::stop_token& stop) {
  Table hidden = product(x, c.gated_mlp ? w.gate_weight : w.up_weight, c.gated_mlp ? w.gate_bias : w.up_bias, stop);
  activate(c.activation, hidden, w.xielu);
  if (c.gated_mlp) {
    const Table linear = product(x, w.up_weight, w.up_bias, stop);
    for (std::size_t i = 0; i < hidden.values.size(); ++i) hidden.values[i] *= linear.values[i];
  }
  if (c.mlp_norm) hidden = normed(c, c.mlp_norm_kind, std::move(hidden), w.mlp_norm_gain, w.mlp_norm_bias);
  round_rows(hidden, c.input_bits);
  return product(hidden, w.down_weight, w.down_bias, stop);
}

/// One of several MLPs, of the rows of x that it takes.
Table expert_output(const ModelConfig& c, const RawExpert& w, const Table& x, const std::stop_token& stop) {
  Table hidden = product(x, c.gated_mlp ? w.gate_weight : w.up_weight, c.gated_mlp ? w.gate_bias : w.up_bias, stop);
  const Table linear = c.gated_mlp ? product(x, w.up_weight, w.up_bias, stop) : Table();
  for (std::size_t i = 0; i < hidden.values.size(); ++i) {
    double& value = hidden.values[i];
    if (c.gate_limit > 0) {
      value = std::min(value, c.gate_limit);
      value *= (std::clamp(linear.values[i], -c.gate_limit, c.gate_limit) + 1) / (1 + std::exp(-c.gate_alpha * value));
    } else {
      value = activated(c.activation, value, {}) * (c.gated_mlp ? linear.values[i] : 1);
    }
  }
  return product(hidden, w.down_weight, w.down_bias, stop);
}

/// Of the logits z: k times the largest of those left, and the softmax over those left that are as large but for 2ε of
/// the larger of it and their own size (Liu et al. 2024).
std::vector<std::pair<Index, double>> near_best(const ExpertConfig& c, const std::vector<double>& z) {
  std::vector<std::pair<Index, double>> out;
  const auto taken = [&](Index e) { return std::ranges::count(out, e, [](const auto& own) { return own.first; }) > 0; };
  for (int i = 0; i < c.per_token; ++i) {
    Index best = -1;
    for (Index e = 0; e < c.count; ++e)
      if (!taken(e) && (best < 0 || nth(z, e) > nth(z, best))) best = e;
    double total = 0;
    for (Index e = 0; e < c.count; ++e)
      if (!taken(e) && nth(z, best) - nth(z, e) <= 2 * c.nearness * std::max(std::abs(nth(z, e)), nth(z, best)))
        total += std::exp(nth(z, e) - nth(z, best));
    out.emplace_back(best, c.scale / total);
  }
  return out;
}

/// The experts that take a token, and their weights, from its logits z: of softmax z or σ(z) the largest, or the
/// softmax of the largest z; divided by their sum where the model does.
std::vector<std::pair<Index, double>> chosen(const ExpertConfig& c, const Tensor& correction, std::vector<double> z) {
  if (c.score == RouterScore::near_best) return near_best(c, z);
  double most = *std::ranges::max_element(z), total = 0;
  for (double& value : z) {
    value = c.score == RouterScore::sigmoid ? 1 / (1 + std::exp(-value)) : std::exp(value - most);
    total += value;
  }
  if (c.score == RouterScore::softmax)
    for (double& value : z) value /= total;
  std::vector<std::pair<double, Index>> order;  // what they are chosen by
  for (Index e = 0; e < c.count; ++e)
    order.emplace_back(nth(z, e) + (correction.defined() ? number(correction, e) : 0.0), e);
  if (c.groups_kept < c.groups) {
    const Index width = c.count / c.groups;
    std::vector<std::pair<double, Index>> groups;
    for (Index g = 0; g < c.groups; ++g) {
      std::vector<std::pair<double, Index>> own(order.begin() + g * width, order.begin() + (g + 1) * width);
      std::ranges::sort(own, std::greater{});
      double best = 0;
      for (Index i = 0; i < std::min<Index>(width, c.group_best); ++i) best += nth(own, i).first;
      groups.emplace_back(best, g);
    }
    std::ranges::sort(groups, std::greater{});
    groups.resize(static_cast<std::size_t>(c.groups_kept));
    std::erase_if(order, [&](const auto& each) {
      return std::ranges::find(groups, each.second / width, [](const auto& g) { return g.second; }) == groups.end();
    });
  }
  std::ranges::stable_sort(order, [](const auto& a, const auto& b) { return a.first > b.first; });
  order.resize(std::min(order.size(), static_cast<std::size_t>(c.per_token)));
  double sum = 0;
  for (const auto& [by, e] : order) sum += nth(z, e);
  const bool shares = c.renormalized || c.score == RouterScore::softmax_of_chosen;
  sum += c.sum_floor;
  std::vector<std::pair<Index, double>> out;
  for (const auto& [by, e] : order) out.emplace_back(e, c.scale * nth(z, e) / (shares ? sum : 1));
  return out;
}

/// Σ weight · expert(x), token by token.
Table experts(const ModelConfig& c, const RawExperts& w, const Table& x, const std::stop_token& stop) {
  const Table logits =
      product(c.experts.beside ? normed(c, x, w.router_gain, {}) : x, w.router_weight, w.router_bias, stop);
  Table out = w.shared.up_weight.defined() ? expert_output(c, w.shared, x, stop) : Table(x.rows, x.columns);
  if (w.shared_gate.defined()) {
    const Table gate = product(x, w.shared_gate, {}, stop);
    for (Index row = 0; row < x.rows; ++row)
      for (Index i = 0; i < x.columns; ++i) out.at(row, i) /= 1 + std::exp(-gate.at(row, 0));
  }
  const Table read = c.experts.beside ? normed(c, x, w.in_gain, {}) : x;
  std::vector<int> came(static_cast<std::size_t>(c.experts.count), 0);  // to each, of ExpertConfig::capacity
  for (Index row = 0; row < x.rows; ++row) {
    Table token(1, x.columns);
    for (Index i = 0; i < x.columns; ++i) token.at(0, i) = read.at(row, i);
    std::vector<double> z;
    for (Index e = 0; e < logits.columns; ++e) z.push_back(logits.at(row, e));
    for (const auto& [e, chosen_weight] : chosen(c.experts, w.correction, std::move(z))) {
      if (c.experts.capacity > 0 && ++nth(came, e) > c.experts.capacity) continue;
      double weight = chosen_weight * (w.output_weight.defined() ? number(w.output_weight, e) : 1);
      Table given = token;
      if (c.experts.weigh_input) {
        for (double& value : given.values) value *= weight;
        weight = 1;
      }
      const Table made = expert_output(c, nth(w.each, e), given, stop);
      for (Index i = 0; i < x.columns; ++i) out.at(row, i) += weight * made.at(0, i);
    }
  }
  return out;
}

/// The stream behind cross-attention.
Table across(const ModelConfig& c, const RawWeights& all, int layer, const Table& x, const Table& source,
             std::vector<Table>& patterns, const std::stop_token& stop) {
  const RawLayer& w = nth(all.cross, layer);
  const Table read = c.norms_before() ? normed(c, x, w.ln1_gain, w.ln1_bias) : x;
  Lent none;
  Table attention = attend(c, all, w, layer, read, &source, patterns, none, stop);
  if (c.norms_behind()) attention = normed(c, std::move(attention), w.ln1_post_gain, {});
  Table out = sum(x, attention);
  return c.norms_sums() ? normed(c, std::move(out), w.ln1_gain, w.ln1_bias) : out;
}

/// `source`: what the encoder put out, of an encoder-decoder.
/// `entered`: what ModelConfig::entered() says.
Table block(const ModelConfig& c, const RawWeights& all, int layer, const Table& x, const Table& entered,
            const Table& source, const Table& inputs, Lent& lent, Pass& pass, const std::stop_token& stop) {
  const RawLayer& w = nth(all.layers, layer);
  const bool before = c.norms_before(layer), behind = c.norms_behind(layer);
  Table attention_in = before && (layer > 0 || c.first_norm) ? normed(c, entered, w.ln1_gain, w.ln1_bias) : entered;
  round_rows(attention_in, c.input_bits);
  Table attention = attend(c, all, w, layer, attention_in, nullptr, pass.patterns.emplace_back(), lent, stop);
  if (behind) attention = normed(c, std::move(attention), w.ln1_post_gain, {});
  Table after = sum(times(x, c.dims.attends(layer) ? c.attention_stream : c.state_stream), attention);
  if (c.norms_sums()) after = normed(c, std::move(after), w.ln1_gain, w.ln1_bias);
  if (c.cross()) after = across(c, all, layer, after, source, pass.cross_patterns.emplace_back(), stop);
  if (!c.dims.has_mlp(layer)) return leaving(c, w, layer, inputs, std::move(after), stop);
  const Table& read = c.dims.parallel ? x : after;
  Table mlp_in = c.shared_norm ? attention_in : before ? normed(c, read, w.ln2_gain, w.ln2_bias) : read;
  round_rows(mlp_in, c.input_bits);
  const bool sparse = c.experts.at(layer), beside = sparse && c.experts.beside;
  Table mlp = sparse && !beside ? experts(c, w.experts, mlp_in, stop) : feed_forward(c, w, mlp_in, stop);
  if (beside)
    mlp = sum(normed(c, std::move(mlp), w.experts.dense_gain, {}),
              normed(c, experts(c, w.experts, read, stop), w.experts.out_gain, {}));
  if (behind) mlp = normed(c, std::move(mlp), w.ln2_post_gain, {});
  Table out = sum(times(std::move(after), c.mlp_stream), mlp);
  if (c.norms_sums()) out = normed(c, std::move(out), w.ln2_gain, w.ln2_bias);
  if (c.convolution && layer == 0) out = beside_first(c, all.convolution, x, std::move(out), stop);
  return leaving(c, w, layer, inputs, std::move(out), stop);
}

/// The rows of the tokens, scaled; where the stored ones alone are narrower, times the matrix that widens them.
void embed_tokens(const ModelConfig& c, const RawWeights& w, std::span<const std::int32_t> tokens, Table& x,
                  const std::stop_token& stop) {
  Table stored(x.rows, c.embedding_width > 0 ? c.embedding_width : x.columns);
  for (Index row = 0; row < x.rows; ++row)
    for (Index i = 0; i < stored.columns; ++i)
      stored.at(row, i) = number(w.token_embedding.select(0, nth(tokens, row)), i);
  x = c.embedding_width > 0 && !c.narrow_sum() ? product(stored, w.embedding_in, {}, stop) : std::move(stored);
  for (double& value : x.values) value *= c.embedding_scale;
  if (!c.dropped_token) return;
  const auto dropped = std::ranges::count(tokens, *c.dropped_token);
  const double others = static_cast<double>(x.rows - dropped) / static_cast<double>(x.rows);
  for (Index row = 0; row < x.rows; ++row)
    for (Index i = 0; i < x.columns; ++i)
      x.at(row, i) = nth(tokens, row) == *c.dropped_token ? 0 : x.at(row, i) / others;
}

Table row_of(const Table& x, Index row) {
  Table out(1, x.columns);
  for (Index i = 0; i < x.columns; ++i) out.at(0, i) = x.at(row, i);
  return out;
}

}  // namespace

Pass forward(const ModelConfig& c, const RawWeights& w, std::span<const std::int32_t> tokens,
             const std::stop_token& stop, std::atomic<float>* progress, std::span<const std::int32_t> segments,
             std::span<const std::int32_t> source, const Tensor& patches) {
  Pass out;
  if (c.cross())
    out.encoder = std::make_shared<const Pass>(forward(*c.encoder, *w.encoder, source, stop, nullptr, {}, {}, patches));
  Table x(static_cast<Index>(tokens.size()), c.dims.d_model);
  if (c.vision)
    embed_picture(*c.vision, w, patches, x, stop);
  else if (c.sound)
    x = embed_sound(w, patches, stop);
  else
    embed_tokens(c, w, tokens, x, stop);
  if (c.embedding_norm && !c.norm_of_embeddings) x = normed(c, std::move(x), w.embedding_gain, w.embedding_bias);
  if (c.position == PositionKind::learned)
    for (Index row = 0; row < x.rows; ++row)
      for (Index i = 0; i < x.columns; ++i) x.at(row, i) += static_cast<double>(w.position_embedding.at(row, i));
  for (Index row = 0; c.segments > 0 && row < x.rows; ++row)
    for (Index i = 0; i < x.columns; ++i)
      x.at(row, i) += number(w.segment_embedding.select(0, segments.empty() ? 0 : nth(segments, row)), i);
  if (c.norm_of_embeddings) x = normed(c, std::move(x), w.embedding_gain, w.embedding_bias);
  if (c.narrow_sum()) x = product(x, w.embedding_in, w.embedding_in_bias, stop);

  const Table inputs = c.dims.d_layer > 0 ? of_every_layer(c, w, x, tokens, stop) : Table();
  Lent lent;
  Table entered;
  for (int layer = 0; layer < c.dims.layers; ++layer) {
    if (c.entered(layer) == layer) entered = x;
    x = block(c, w, layer, x, entered, out.encoder ? out.encoder->memory : Table(), inputs, lent, out, stop);
    out.resid_post.push_back(x);
    if (progress) *progress = static_cast<float>(layer + 1) / static_cast<float>(c.dims.layers + 1);
  }
  if (c.last_norm()) x = normed(c, c.final_norm(), std::move(x), w.final_gain, w.final_bias);
  if (!c.predicts) {
    out.memory = std::move(x);
    return out;
  }
  if (c.head_layer) {
    x = product(x, w.head_weight, w.head_bias, stop);
    activate(c.head_activation, x, {});
    x = normed(c, std::move(x), w.head_norm_gain, w.head_norm_bias);
  }
  if (w.embedding_out.defined()) x = product(x, w.embedding_out, {}, stop);
  out.logits = product(c.vision ? row_of(x, 0) : x, w.unembedding, w.unembedding_bias, stop);
  if (w.second_unembedding.defined()) {
    out.logits =
        sum(std::move(out.logits), product(row_of(x, 1), w.second_unembedding, w.second_unembedding_bias, stop));
    for (double& value : out.logits.values) value /= 2;
  }
  for (double& value : out.logits.values) value = capped(value * c.logit_scale, c.logit_cap);
  return out;
}

std::vector<double> losses(const Table& logits, std::span<const std::int32_t> tokens) {
  std::vector<double> out;
  for (Index row = 0; row + 1 < logits.rows; ++row) {
    double most = logits.at(row, 0), total = 0;
    for (Index id = 0; id < logits.columns; ++id) most = std::max(most, logits.at(row, id));
    for (Index id = 0; id < logits.columns; ++id) total += std::exp(logits.at(row, id) - most);
    out.push_back(most + std::log(total) - logits.at(row, nth(tokens, row + 1)));
  }
  return out;
}

}  // namespace headscope::plain
