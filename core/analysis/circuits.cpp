#include "core/analysis/circuits.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cmath>
#include <limits>

#include "core/analysis/need.h"
#include "core/attention/rotary.h"
#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/model/weights.h"
#include "core/tensor/decompositions.h"
#include "core/tensor/matrices.h"

namespace headscope {

namespace {
using Matrix = RowMajor<float>;

void check(const Model& model, const CircuitOf& of) {
  const ModelConfig& c = model.config();
  need_attention(c, of.head.layer, "circuits");
  need_words(c, "circuits");
  need_logits(model.info());
  if (of.head.layer < 0 || of.head.layer >= c.dims.layers || of.head.head < 0 || of.head.head >= c.dims.heads)
    throw Error("circuits", fmt::format("a head from 0.0 to {}.{}", c.dims.layers - 1, c.dims.heads - 1),
                to_string(of.head));
  if (c.norm_place != NormPlace::before)
    throw Error("circuits", "a model whose heads write to the stream as they are", c.name,
                "a norm behind attention rescales the sum of all heads, so that a head has no circuit of its own");
  if (c.norm_of_embeddings)
    throw Error("circuits", "a model in which the embedding of a token stands for itself", c.name,
                "a norm of token and position together stands before the first block");
  if (c.clip_qkv > 0)
    throw Error("circuits", "a model whose queries, keys and values are used as they are", c.name,
                fmt::format("they are cut to ± {}, so that no product of matrices gives them", c.clip_qkv));
  if (c.z_norm || c.input_bits > 0)
    throw Error(
        "circuits", "a model whose heads write what they read", c.name,
        "a norm of what all heads put out, or steps of whole rows, stand between, so that no token has one effect");
  if (c.output_gate)
    throw Error("circuits", "a model whose heads write what they read", c.name,
                "a gate that the reading token makes stands between, so that no token has one effect on the logits");
  if (c.head_layer)
    throw Error("circuits", "a model whose logits are sums of what its heads write", c.name,
                "a layer with an activation of its own stands before them");
  if (of.distance < 0 || of.distance >= c.context)
    throw Error("circuits: distance", fmt::format("0 to {} tokens", c.context - 1), std::to_string(of.distance));
}

/// The factors of both circuits: scores are queries · keysᵀ, effects values · outputs.
struct Factors {
  Matrix queries, keys;  // (token, d_head); scale and rotation are in the queries
  Matrix values;         // (token, d_head)
  Matrix outputs;        // (d_head, vocab)
};

Tensor tensor_of(const Matrix& m) {
  return Tensor::from({m.rows(), m.cols()}, {m.data(), static_cast<std::size_t>(m.size())});
}

/// What the matrix of queries, keys or values multiplies: the rows, or the latents made of them.
Matrix read_by(const Matrix& x, const Model& model, Backend& backend, int layer, WeightMatrix matrix) {
  if (!model.config().latent()) return x;
  return matrix_of<float>(
      projection_input(model.config(), nth(model.weights().blocks, layer), backend, tensor_of(x), matrix));
}

Matrix projected(const Matrix& x, const Tensor& weight, const Tensor& bias) {
  Matrix out = x * matrix_of<float>(weight);
  if (bias.defined())
    for (Index j = 0; j < out.cols(); ++j) out.col(j).array() += bias.at(j);
  return out;
}

/// Turns every row as a query `distance` tokens after its key; with `magnitude` of one or of both.
void turn(Matrix& rows, const ModelConfig& c, int layer, int distance, double magnitude, Backend& backend) {
  const RotaryConfig& own = c.rotary_of(layer);
  if (distance == 0 && magnitude == 1) return;
  const RotaryTable at = rotary_table(rotary_frequencies(own, c.dims.widths_of(layer).d_head), distance, 1, magnitude);
  const Index n = rows.rows(), half = at.cosine.dim(1);
  Tensor cosine = Tensor::uninitialized({n, half}), sine = cosine.copy();
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < half; ++j) cosine.ref(i, j) = at.cosine.at(0, j), sine.ref(i, j) = at.sine.at(0, j);
  const Tensor x = Tensor::from({n, 1, rows.cols()}, {rows.data(), static_cast<std::size_t>(rows.size())});
  const Tensor turned = backend.rotate(x, cosine, sine, nullptr, own.layout == RotaryLayout::interleaved);
  std::copy_n(turned.data(), rows.size(), rows.data());
}

/// Queries (or keys) of one head as they meet but for the rotation: with bias, and through their norm, which may be one
/// over all heads. A norm behind the rotation finds them turned, the key at position 0.
Matrix normed(const Matrix& x, const Model& model, Backend& backend, const CircuitOf& of, bool keys) {
  const ModelConfig& c = model.config();
  const ModelWeights w = model.weights();
  const BlockWeights& block = nth(w.blocks, of.head.layer);
  const HeadWeights& head = nth(block.heads, of.head.head);
  if (c.qk_norm == QkNorm::none) {
    const Matrix read = read_by(x, model, backend, of.head.layer, keys ? WeightMatrix::k : WeightMatrix::q);
    Matrix out = keys ? projected(read, head.k, head.k_bias) : projected(read, head.q, head.q_bias);
    if (keys && c.latent())
      out.leftCols(c.rotary.width) += matrix_of<float>(turning_keys(c, block, backend, tensor_of(x)));
    return out;
  }
  const Projection all = model.projection(of.head.layer, keys ? WeightMatrix::k : WeightMatrix::q);
  Matrix full = projected(x, all.weight, all.bias);
  const LayerWidths wide = c.dims.widths_of(of.head.layer);
  const Index heads = keys ? wide.kv_heads : c.dims.heads,
              own = keys ? c.dims.kv_of(of.head.head, of.head.layer) : of.head.head, d = wide.d_head;
  if (c.normed_turned() && c.turns(of.head.layer)) {
    Matrix apart = Eigen::Map<const Matrix>(full.data(), full.rows() * heads, d);
    turn(apart, c, of.head.layer, keys ? 0 : of.distance, rotary_magnitude(c.rotary_of(of.head.layer)), backend);
    full = Eigen::Map<const Matrix>(apart.data(), full.rows(), full.cols());
  }
  Tensor rows = Tensor::from({full.rows(), full.cols()}, {full.data(), static_cast<std::size_t>(full.size())});
  if (c.qk_norm == QkNorm::per_head) rows = rows.reshape({full.rows(), heads, d});
  const Tensor out = normalized(c, keys ? block.k_norm : block.q_norm, backend, rows).reshape({full.rows(), heads * d});
  return matrix_of<float>(out.slice(1, own * d, (own + 1) * d));
}

/// (d_model, vocab) with the final norm's gain folded in, centred over what the norm and the softmax cannot see.
Matrix output_directions(const ModelConfig& c, const ModelWeights& w) {
  Matrix u = matrix_of<float>(w.unembedding) * static_cast<float>(c.logit_scale);
  for (Index i = 0; i < u.rows(); ++i) u.row(i) *= w.final_norm.gain.at(i);
  if (w.final_norm.kind == NormKind::layer_norm) u.rowwise() -= u.colwise().mean().eval();
  u.colwise() -= u.rowwise().mean().eval();
  return u;
}

Matrix embeddings(const Model& model, const ModelWeights& w, Backend& backend, int layer,
                  std::span<const std::int32_t> tokens) {
  const Tensor rows = tokens.empty() ? w.token_embedding.packed() : backend.gather(w.token_embedding, tokens);
  return matrix_of<float>(
      normalized(model.config(), nth(w.blocks, layer).ln1, backend, embedded(model.config(), w, backend, rows)));
}

/// Of these tokens; of the whole vocabulary when there are none.
Factors factors(const Model& model, Backend& backend, const CircuitOf& of, std::span<const std::int32_t> tokens) {
  const ModelWeights w = model.weights();
  const HeadWeights& head = nth(nth(w.blocks, of.head.layer).heads, of.head.head);
  const ModelConfig& c = model.config();
  assert(c.own_keys(of.head.layer) && !c.value_norm);  // the families that have these have norms behind attention, too
  const Matrix e = embeddings(model, w, backend, of.head.layer, tokens);
  Factors out;
  out.queries = normed(e, model, backend, of, false);
  if (c.turns(of.head.layer)) {
    const RotaryConfig& own = c.rotary_of(of.head.layer);
    if (!c.normed_turned())
      turn(out.queries, c, of.head.layer, of.distance, std::pow(rotary_magnitude(own), 2), backend);
    out.queries *= static_cast<float>(query_growth(own, of.distance));
  }
  if (c.unturned_growth > 0 && !c.turns(of.head.layer))
    out.queries *= static_cast<float>(query_growth(
        {.original_context = c.unturned_floor, .query_growth = c.unturned_growth, .growth_from = 1}, of.distance));
  out.queries *= score_scale(model.config(), of.head.layer);
  out.keys = normed(e, model, backend, of, true);
  out.values = projected(read_by(e, model, backend, of.head.layer, WeightMatrix::v), head.v, {});
  out.outputs = matrix_of<float>(head.o) * output_directions(model.config(), w);
  return out;
}

bool stronger(const TokenPair& a, const TokenPair& b) {
  if (a.value != b.value) return a.value > b.value;
  return a.from != b.from ? a.from < b.from : a.to < b.to;
}

/// The strongest of many pairs, in a heap whose front is the weakest kept.
class Strongest {
 public:
  explicit Strongest(std::size_t most) : most_(most) {}
  void offer(const TokenPair& pair) {
    if (kept_.size() < most_) {
      kept_.push_back(pair);
      std::ranges::push_heap(kept_, stronger);
    } else if (!kept_.empty() && stronger(pair, kept_.front())) {
      std::ranges::pop_heap(kept_, stronger);
      kept_.back() = pair;
      std::ranges::push_heap(kept_, stronger);
    }
  }
  const std::vector<TokenPair>& kept() const { return kept_; }
  std::vector<TokenPair> sorted() && {
    std::ranges::sort(kept_, stronger);
    return std::move(kept_);
  }

 private:
  std::size_t most_;
  std::vector<TokenPair> kept_;
};

/// Σ Re λ / Σ |λ|; 0 for a circuit that does nothing.
double sign_of_eigenvalues(const Eigen::MatrixXd& m) {
  const Eigen::VectorXcd values = eigenvalues(m);
  const double size = values.cwiseAbs().sum();
  return size > 0 ? values.real().sum() / size : 0;
}
}  // namespace

TokenCircuits token_circuits(const Model& model, Backend& backend, const CircuitOf& of,
                             std::span<const std::int32_t> tokens, int keep) {
  check(model, of);
  TokenCircuits out;
  for (const std::int32_t token : tokens) {
    if (token < 0 || token >= model.config().dims.vocab)
      throw Error("circuits: token", fmt::format("an id from 0 to {}", model.config().dims.vocab - 1),
                  std::to_string(token));
    if (std::ranges::find(out.tokens, token) == out.tokens.end()) out.tokens.push_back(token);
  }
  if (out.tokens.empty()) throw Error("circuits", "at least one token", "none");
  const Factors f = factors(model, backend, of, out.tokens);
  out.qk = tensor_of(Matrix(f.queries * f.keys.transpose()));
  const Matrix effects = f.values * f.outputs;  // (token, vocab)
  const auto n = static_cast<Index>(out.tokens.size());
  out.ov = Tensor::uninitialized({n, n});
  out.kept = std::min(keep, model.config().dims.vocab);
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < n; ++j) out.ov.ref(i, j) = effects(i, nth(out.tokens, j));
    Strongest raised(static_cast<std::size_t>(out.kept));
    for (Index t = 0; t < effects.cols(); ++t)
      raised.offer({nth(out.tokens, i), static_cast<std::int32_t>(t), effects(i, t)});
    std::ranges::move(std::move(raised).sorted(), std::back_inserter(out.raises));
  }
  return out;
}

FullCircuits full_circuits(const Model& model, const Ctx& ctx, const CircuitOf& of, int keep) {
  check(model, of);
  const Factors f = factors(model, ctx.backend, of, {});
  const Index vocab = f.values.rows();
  constexpr Index rows = 32;
  const int blocks = static_cast<int>((vocab + rows - 1) / rows);
  const auto threads = static_cast<std::size_t>(ctx.backend.pool().threads());
  struct Found {
    Strongest qk, ov;
    Index copies_first = 0, copies_ten = 0, matches = 0;
  };
  std::vector<Found> found(threads,
                           Found{Strongest(static_cast<std::size_t>(keep)), Strongest(static_cast<std::size_t>(keep))});
  std::atomic<int> done = 0;
  ctx.backend.pool().parallel(blocks, [&](int block, int thread) {
    if (ctx.stop.stop_requested()) throw Cancelled();
    Found& mine = nth(found, thread);
    const Index begin = block * rows, count = std::min(rows, vocab - begin);
    const auto go_through = [&](const Matrix& table, Strongest& strongest, auto&& own_rank) {
      for (Index i = 0; i < count; ++i) {
        const auto from = static_cast<std::int32_t>(begin + i);
        Index above = 0;
        for (Index t = 0; t < vocab; ++t) {
          above += table(i, t) > table(i, from);
          strongest.offer({from, static_cast<std::int32_t>(t), table(i, t)});
        }
        own_rank(above);
      }
    };
    go_through(f.values.middleRows(begin, count) * f.outputs, mine.ov, [&](Index above) {
      mine.copies_first += above == 0;
      mine.copies_ten += above < 10;
    });
    go_through(f.queries.middleRows(begin, count) * f.keys.transpose(), mine.qk,
               [&](Index above) { mine.matches += above == 0; });
    if (ctx.progress) *ctx.progress = static_cast<float>(++done) / static_cast<float>(blocks);
  });
  // Counts are added as counts: which thread took which rows must not show in a last digit.
  Index copies_first = 0, copies_ten = 0, matches = 0;
  Strongest qk(static_cast<std::size_t>(keep)), ov(static_cast<std::size_t>(keep));
  for (const Found& part : found) {
    for (const TokenPair& pair : part.qk.kept()) qk.offer(pair);
    for (const TokenPair& pair : part.ov.kept()) ov.offer(pair);
    copies_first += part.copies_first;
    copies_ten += part.copies_ten;
    matches += part.matches;
  }
  const auto share = [&](Index tokens) { return static_cast<double>(tokens) / static_cast<double>(vocab); };
  FullCircuits out;
  out.copies_first = share(copies_first);
  out.copies_ten = share(copies_ten);
  out.matches_first = share(matches);
  out.qk = std::move(qk).sorted();
  out.ov = std::move(ov).sorted();
  return out;
}

CopyingScore copying_score(const Model& model, Backend& backend, HeadId head) {
  check(model, {head, 0});
  const ModelWeights w = model.weights();
  const HeadWeights& h = nth(nth(w.blocks, head.layer).heads, head.head);
  const Matrix e = embeddings(model, w, backend, head.layer, {});  // (vocab, d_model)
  const Matrix values = projected(read_by(e, model, backend, head.layer, WeightMatrix::v), h.v, {});
  const Matrix outputs = matrix_of<float>(h.o) * output_directions(model.config(), w);  // (d_head, vocab)
  // Queries and keys that are normalised, or made of latents that are, are no product of the embedding with a matrix.
  const double copying = sign_of_eigenvalues((outputs * values).cast<double>());
  if (model.config().qk_norm != QkNorm::none || model.config().latent())
    return {copying, std::numeric_limits<double>::quiet_NaN()};
  const Matrix queries = projected(e, h.q, {}), keys = projected(e, h.k, {});
  return {copying, sign_of_eigenvalues((keys.transpose() * queries).cast<double>())};
}

std::string circuit_note(const ModelConfig& config) {
  if (!config.latent()) return "";
  return say(
      "Keys and values are made of a latent behind a norm{}: with c the normalised latent, a score is q W_UKᵀ cᵀ on "
      "the {} dimensions without positions, which holds for each token alone, as here, and is no one matrix W_Q W_Kᵀ "
      "of the stream. On the {} that turn, all heads share one key and the score depends on the distance: nothing is "
      "said there for all distances at once.",
      config.dims.q_latent > 0 ? said(", queries of another") : "", config.dims.d_head - config.rotary.width,
      config.rotary.width);
}

}  // namespace headscope
