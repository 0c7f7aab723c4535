#include "core/reading/circuits.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "core/attention/rotary.h"
#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/model/weights.h"
#include "core/tensor/decompositions.h"
#include "core/tensor/matrices.h"

namespace headscope {

namespace {
using Matrix = RowMajor<float>;

void check(const Model& model, const CircuitOf& of) {
  const ModelConfig& c = model.config();
  if (of.head.layer < 0 || of.head.layer >= c.dims.layers || of.head.head < 0 || of.head.head >= c.dims.heads)
    throw Error("circuits", fmt::format("a head from 0.0 to {}.{}", c.dims.layers - 1, c.dims.heads - 1),
                to_string(of.head));
  if (of.distance < 0 || of.distance >= c.context)
    throw Error("circuits: distance", fmt::format("0 to {} tokens", c.context - 1), std::to_string(of.distance));
}

/// The factors of both circuits: scores are queries · keysᵀ, effects values · outputs.
struct Factors {
  Matrix queries, keys;  // (token, d_head); scale and rotation are in the queries
  Matrix values;         // (token, d_head)
  Matrix outputs;        // (d_head, vocab)
};

Matrix projected(const Matrix& x, const Tensor& weight, const Tensor& bias) {
  Matrix out = x * matrix_of<float>(weight);
  if (bias.defined())
    for (Index j = 0; j < out.cols(); ++j) out.col(j).array() += bias.at(j);
  return out;
}

/// Turns every row as a query `distance` tokens after its key.
void turn(Matrix& rows, const ModelConfig& c, int distance, Backend& backend) {
  if (c.position != PositionKind::rotary || distance == 0) return;
  const RotaryTable at = rotary_table(rotary_frequencies(c.rotary, c.dims.d_head), distance, 1);
  const Index n = rows.rows(), half = rows.cols() / 2;
  Tensor cosine = Tensor::uninitialized({n, half}), sine = cosine.copy();
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < half; ++j) cosine.ref(i, j) = at.cosine.at(0, j), sine.ref(i, j) = at.sine.at(0, j);
  const Tensor x = Tensor::from({n, 1, rows.cols()}, {rows.data(), static_cast<std::size_t>(rows.size())});
  const Tensor turned = backend.rotate(x, cosine, sine);
  std::copy_n(turned.data(), rows.size(), rows.data());
}

/// (d_model, vocab) with the final norm's gain folded in, centred over what the norm and the softmax cannot see.
Matrix output_directions(const ModelConfig& c, const ModelWeights& w) {
  Matrix u = matrix_of<float>(w.unembedding);
  for (Index i = 0; i < u.rows(); ++i) u.row(i) *= w.final_norm.gain.at(i);
  if (c.norm == NormKind::layer_norm) u.rowwise() -= u.colwise().mean().eval();
  u.colwise() -= u.rowwise().mean().eval();
  return u;
}

Matrix embeddings(const Model& model, const ModelWeights& w, Backend& backend, int layer,
                  std::span<const std::int32_t> tokens) {
  const Tensor rows = tokens.empty() ? w.token_embedding.packed() : backend.gather(w.token_embedding, tokens);
  return matrix_of<float>(normalized(model.config(), nth(w.blocks, layer).ln1, backend, rows));
}

/// Of these tokens; of the whole vocabulary when there are none.
Factors factors(const Model& model, Backend& backend, const CircuitOf& of, std::span<const std::int32_t> tokens) {
  const ModelWeights w = model.weights();
  const HeadWeights& head = nth(nth(w.blocks, of.head.layer).heads, of.head.head);
  const Matrix e = embeddings(model, w, backend, of.head.layer, tokens);
  Factors out;
  out.queries = projected(e, head.q, head.q_bias);
  turn(out.queries, model.config(), of.distance, backend);
  out.queries *= score_scale(model.config(), of.head.layer);
  out.keys = projected(e, head.k, head.k_bias);
  out.values = projected(e, head.v, {});
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

Tensor tensor_of(const Matrix& m) {
  return Tensor::from({m.rows(), m.cols()}, {m.data(), static_cast<std::size_t>(m.size())});
}

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
  FullCircuits out;
  Strongest qk(static_cast<std::size_t>(keep)), ov(static_cast<std::size_t>(keep));
  for (const Found& part : found) {
    for (const TokenPair& pair : part.qk.kept()) qk.offer(pair);
    for (const TokenPair& pair : part.ov.kept()) ov.offer(pair);
    out.copies_first += static_cast<double>(part.copies_first) / static_cast<double>(vocab);
    out.copies_ten += static_cast<double>(part.copies_ten) / static_cast<double>(vocab);
    out.matches_first += static_cast<double>(part.matches) / static_cast<double>(vocab);
  }
  out.qk = std::move(qk).sorted();
  out.ov = std::move(ov).sorted();
  return out;
}

CopyingScore copying_score(const Model& model, Backend& backend, HeadId head) {
  check(model, {head, 0});
  const ModelWeights w = model.weights();
  const HeadWeights& h = nth(nth(w.blocks, head.layer).heads, head.head);
  const Matrix e = embeddings(model, w, backend, head.layer, {});  // (vocab, d_model)
  const Matrix values = projected(e, h.v, {}), queries = projected(e, h.q, {}), keys = projected(e, h.k, {});
  const Matrix outputs = matrix_of<float>(h.o) * output_directions(model.config(), w);  // (d_head, vocab)
  return {sign_of_eigenvalues((outputs * values).cast<double>()),
          sign_of_eigenvalues((keys.transpose() * queries).cast<double>())};
}

}  // namespace headscope
