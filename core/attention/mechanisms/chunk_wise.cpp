// The chunk-wise form of linear recurrences (Hua et al., Transformer Quality in Linear Time, 2022; Yang et al., Gated
// Linear Attention, 2024; Yang et al., Parallelizing Linear Transformers with the Delta Rule, 2024). All have
//   S_t = A_t S_{t−1} + β k_t v_tᵀ,   o_t = S_tᵀ q_t,
// with A_t = I (linear attention), γ I (RetNet), diag(α_t) (GLA) or I − β k_t k_tᵀ (DeltaNet). Token by token that is n
// steps in sequence; all at once it is n² products. In between: inside a chunk of C tokens matrix products, between
// chunks only the state S. With a_t the product of the gates from the chunk's beginning to t:
//   P_ts = Σ_c q_tc k_sc a_tc ÷ a_sc for s ≤ t,   O = P V + (a ∘ Q) S,   S ← diag(a_C) S + (a_C ÷ a ∘ K)ᵀ V.
// Written as P = tril((a ∘ Q)(K ÷ a)ᵀ) that is one matrix product, but gates have no floor, and K ÷ a overflows where
// their product underflows. So the ratios are taken by themselves, from sums of ln α, as Yang et al. do inside their
// smallest chunks: every exponent is ≤ 0.
// DeltaNet writes U − W S in V's place, (I + tril(β K Kᵀ, −1)) [W U] = β [K V] (the UT transform).
// Ours: GLA's gates are learnt maps of the layer's input; a head has none, so α_t = σ(3 + W k_t), W drawn, entries
// N(0, 1/d). Keys and queries: linear 1 + elu, the delta rule of length 1, otherwise times √scale. No norm behind.
// Shapes: S (d, d_v), tile (C, C). Cost: n C (d + d_v) inside the chunks, 2 n d d_v through the state; for the delta
// rule also n C d for K Kᵀ, n (C − 1) (d + d_v) ÷ 2 to solve for W and U, n d d_v for W S. n ÷ C steps.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/all.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/tensor/gap.h"
#include "core/tensor/matrices.h"

namespace headscope::mechanism {

namespace {

using Matrix = RowMajor<double>;
enum class ChunkForm { linear, decay, gated, delta };

ChunkForm chunk_form(const MechanismValues& values) {
  return static_cast<ChunkForm>(values.whole("recurrence"));
}

struct ChunkParts {
  ChunkForm form;
  Matrix q, k, v;
  Matrix log_gates;  // (n, d): ln of what row c of S is multiplied by before token t is written; empty: of 1
  double beta;
};

/// ln σ(x), finite however small σ(x) is.
double log_sigmoid(double x) {
  return x < 0 ? x - std::log1p(std::exp(x)) : -std::log1p(std::exp(-x));
}

void to_length_one(Matrix& x) {
  for (Eigen::Index i = 0; i < x.rows(); ++i)
    if (const double length = x.row(i).norm(); length > 0) x.row(i) /= length;
}

ChunkParts chunk_parts(const MechanismInput& in, const MechanismValues& values) {
  ChunkParts p{chunk_form(values), matrix_of(in.q), matrix_of(in.k), matrix_of(in.v), {}, values.number("beta")};
  const double root = std::sqrt(std::abs(static_cast<double>(in.scale)));
  for (Matrix* each : {&p.q, &p.k}) {
    if (p.form == ChunkForm::delta)
      to_length_one(*each);
    else if (p.form == ChunkForm::linear)
      *each = each->unaryExpr([](double x) { return static_cast<double>(one_plus_elu(static_cast<float>(x))); });
    else
      *each *= root;
  }
  if (p.form != ChunkForm::delta) p.beta = 1;
  if (p.form == ChunkForm::decay) p.log_gates = Matrix::Constant(in.n(), in.d(), std::log(values.number("decay")));
  if (p.form == ChunkForm::gated) {
    const Matrix w = matrix_of(gaussian(in.d(), in.d(), values.seed())) / std::sqrt(static_cast<double>(in.d()));
    p.log_gates = (matrix_of(in.k) * w.transpose()).unaryExpr([](double x) { return log_sigmoid(3 + x); });
  }
  return p;
}

Matrix gates_of(const ChunkParts& p) {
  return p.log_gates.array().exp().matrix();
}

/// Token by token: keep(t, S) after each.
template <class Keep>
Matrix chunk_steps(const MechanismInput& in, const ChunkParts& p, Keep keep) {
  Matrix state = Matrix::Zero(in.d(), in.d_v()), out(in.n(), in.d_v());
  const Matrix gates = gates_of(p);
  for (Index t = 0; t < in.n(); ++t) {
    if (t % 256 == 0) check(in);
    if (gates.size() > 0) state = gates.row(t).asDiagonal() * state;
    const Eigen::RowVectorXd held = p.k.row(t) * state;
    state += p.beta * p.k.row(t).transpose() *
             (p.form == ChunkForm::delta ? Eigen::RowVectorXd(p.v.row(t) - held) : p.v.row(t));
    out.row(t) = p.q.row(t) * state;
    keep(t, state);
  }
  return out;
}

struct Chunked {
  Matrix out, inside, through;  // (n, d_v): the sum, and its two parts
  Matrix tiles;                 // (n, n): the products inside chunks, 0 elsewhere; of the delta rule, on U − W S
  Matrix state;                 // (d, d_v) after the last token
};

/// Of one chunk, ln a: sums of ln α from its beginning to each token; empty where all gates are 1.
Matrix log_products(const ChunkParts& p, Index begin, Index size) {
  if (p.log_gates.size() == 0) return {};
  Matrix sums = p.log_gates.middleRows(begin, size);
  for (Index t = 1; t < size; ++t) sums.row(t) += sums.row(t - 1);
  return sums;
}

/// P (C, C): q_t through the gates between s and t, with k_s.
Matrix tile_of(const Matrix& q, const Matrix& k, const Matrix& log_a) {
  if (log_a.size() == 0) return (q * k.transpose()).triangularView<Eigen::Lower>();
  Matrix tile = Matrix::Zero(q.rows(), q.rows());
  for (Index t = 0; t < q.rows(); ++t)
    for (Index s = 0; s <= t; ++s)
      tile(t, s) = (q.row(t).array() * k.row(s).array() * (log_a.row(t) - log_a.row(s)).array().exp()).sum();
  return tile;
}

/// `tiles`: keep them.
Chunked by_chunks(const MechanismInput& in, const ChunkParts& p, Index chunk, bool tiles) {
  const Index n = in.n();
  Chunked c{Matrix(n, in.d_v()), Matrix(n, in.d_v()), Matrix(n, in.d_v()), tiles ? Matrix::Zero(n, n) : Matrix(),
            Matrix::Zero(in.d(), in.d_v())};
  for (Index begin = 0; begin < n; begin += chunk) {
    check(in);
    const Index size = std::min(chunk, n - begin);
    Matrix q = p.q.middleRows(begin, size), k = p.k.middleRows(begin, size), v = p.v.middleRows(begin, size);
    const Matrix log_a = log_products(p, begin, size);
    if (p.form == ChunkForm::delta) {
      Matrix overlap = (p.beta * k * k.transpose()).triangularView<Eigen::StrictlyLower>();
      overlap.diagonal().setOnes();
      const auto solve = overlap.triangularView<Eigen::UnitLower>();
      const Matrix w = solve.solve(p.beta * k), u = solve.solve(p.beta * v);
      v = u - w * c.state;
    }
    const Matrix tile = tile_of(q, k, log_a);
    if (log_a.size() > 0) {
      q = q.cwiseProduct(log_a.array().exp().matrix());
      k = k.cwiseProduct((log_a.row(size - 1).replicate(size, 1) - log_a).array().exp().matrix());
      c.through.middleRows(begin, size) = q * c.state;
      c.state = log_a.row(size - 1).array().exp().matrix().asDiagonal() * c.state;
    } else {
      c.through.middleRows(begin, size) = q * c.state;
    }
    c.inside.middleRows(begin, size) = tile * v;
    if (tiles) c.tiles.block(begin, begin, size, size) = tile;
    c.state += k.transpose() * v;
  }
  c.out = c.inside + c.through;
  return c;
}

/// weight(t, s) by its definition: q_t through every gate back to token s.
Matrix weights_of(const MechanismInput& in, const ChunkParts& p) {
  Matrix weights = Matrix::Zero(in.n(), in.n());
  const Matrix gates = gates_of(p);
  for (Index t = 0; t < in.n(); ++t) {
    check(in);
    Eigen::RowVectorXd u = p.q.row(t);
    for (Index s = t; s >= 0; --s) {
      const double along = u.dot(p.k.row(s));
      weights(t, s) = p.beta * along;
      if (p.form == ChunkForm::delta) u -= p.beta * along * p.k.row(s);
      if (gates.size() > 0) u = u.cwiseProduct(gates.row(s));
    }
  }
  return weights;
}

Index chunk_of(const MechanismValues& values, Index n) {
  return std::min(values.whole("chunk"), std::max<Index>(n, 1));
}

double multiply_adds(const MechanismShape& s, double chunk, ChunkForm form) {
  const auto n = static_cast<double>(s.n), d = static_cast<double>(s.d), d_v = static_cast<double>(s.d_v);
  const double all = n * chunk * (d + d_v) + 2 * n * d * d_v;
  return form == ChunkForm::delta ? all + n * chunk * d + n * (chunk - 1) * (d + d_v) / 2 + n * d * d_v : all;
}

MechanismResult run_chunk(const MechanismInput& in, const MechanismValues& values, Detail detail) {
  need_causal(in, "chunk-wise");
  const ChunkParts p = chunk_parts(in, values);
  const Index n = in.n(), chunk = chunk_of(values, n);
  const Chunked by = by_chunks(in, p, chunk, detail == Detail::steps);
  MechanismResult result;
  result.kind = MapKind::effective;
  result.output = tensor_of(by.out);
  result.weights = tensor_of(weights_of(in, p));
  const MechanismShape shape{n, in.d(), in.d_v()};
  result.facts = {
      {said("Steps in sequence"), say("{} chunks in place of {} tokens", (n + chunk - 1) / chunk, n),
       said("n ÷ C, rounded up")},
      {said("Multiply-adds"), fmt::format("{:.0f}", multiply_adds(shape, static_cast<double>(chunk), p.form)),
       std::string(said("n C (d + d_v) inside the chunks + 2 n d d_v through the state")) +
           (p.form == ChunkForm::delta ? said("; n C d for K Kᵀ, n (C − 1) (d + d_v) ÷ 2 to solve, n d d_v for W S")
                                       : "")}};
  if (detail != Detail::steps) return result;
  add_inputs(result.steps, in);
  auto hidden = hidden_cells(*in.rule, n, n);
  std::vector<std::uint8_t> outside;
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < n; ++j) outside.push_back(j > i || i / chunk != j / chunk);
  result.steps.push_back({.id = "tiles",
                          .title = said("Inside chunks"),
                          .formula = p.form == ChunkForm::delta ? said("tril(Q Kᵀ), meets U − W S")
                                                                : said("Σ q k · gates between, meets V"),
                          .value = tensor_of(by.tiles),
                          .masked = std::move(outside)});
  result.steps.push_back({.id = "inside",
                          .title = said("From the own chunk"),
                          .formula = said("tile · V"),
                          .value = tensor_of(by.inside),
                          .columns = MechanismAxis::dimension});
  result.steps.push_back({.id = "through",
                          .title = said("From chunks before"),
                          .formula = p.form == ChunkForm::delta || p.form == ChunkForm::linear ? "Q S" : "(a ∘ Q) S",
                          .value = tensor_of(by.through),
                          .columns = MechanismAxis::dimension,
                          .explain = {}});
  result.steps.push_back({.id = "state",
                          .title = said("S after the last chunk"),
                          .formula = said("all that crosses a chunk's edge"),
                          .value = tensor_of(by.state),
                          .rows = MechanismAxis::other,
                          .columns = MechanismAxis::dimension});
  result.steps.push_back({.id = "weights",
                          .title = said("Effective weights"),
                          .formula = said("what each value counts for; never built"),
                          .value = result.weights,
                          .masked = std::move(hidden)});
  MechanismStep out = output_step(result.weights, in.v, result.output, said("both parts added"));
  result.steps.push_back(std::move(out));
  MechanismCurve cost{
      said("Multiply-adds over the length of a chunk"), "C", said("multiply-adds"), {{"", {}, {}}}, true, {}};
  MechanismCurve steps{said("Steps that must follow one another"), "C", said("steps"), {{"", {}, {}}}, true, {}};
  for (Index each = 1; each < 2 * n; each *= 2) {
    const Index size = std::min(each, n);
    cost.lines[0].x.push_back(static_cast<double>(size));
    cost.lines[0].y.push_back(multiply_adds(shape, static_cast<double>(size), p.form));
    steps.lines[0].x.push_back(static_cast<double>(size));
    steps.lines[0].y.push_back(static_cast<double>((n + size - 1) / size));
  }
  cost.marker = {static_cast<double>(chunk), multiply_adds(shape, static_cast<double>(chunk), p.form)};
  steps.marker = {static_cast<double>(chunk), static_cast<double>((n + chunk - 1) / chunk)};
  result.curves = {std::move(cost), std::move(steps)};
  return result;
}

Tensor chunk_output(const MechanismInput& in, const MechanismValues& values) {
  need_causal(in, "chunk-wise");
  return tensor_of(by_chunks(in, chunk_parts(in, values), chunk_of(values, in.n()), false).out);
}

Recurrence chunk_recurrence(const MechanismInput& in, const MechanismValues& values) {
  need_causal(in, "chunk-wise");
  static constexpr const char* updates[] = {"Sₜ = Sₜ₋₁ + φ(kₜ) vₜᵀ", "Sₜ = γ Sₜ₋₁ + kₜ vₜᵀ",
                                            "Sₜ = diag(αₜ) Sₜ₋₁ + kₜ vₜᵀ", "Sₜ = (I − β kₜ kₜᵀ) Sₜ₋₁ + β kₜ vₜᵀ"};
  const ChunkParts p = chunk_parts(in, values);
  Recurrence result;
  result.update = nth(updates, p.form);
  result.readout = "oₜ = Sₜᵀ qₜ";
  result.output =
      tensor_of(chunk_steps(in, p, [&](Index, const Matrix& state) { result.states.push_back(tensor_of(state)); }));
  return result;
}

template <ChunkForm form>
bool of(const MechanismValues& values, const MechanismShape&) {
  return chunk_form(values) == form;
}

}  // namespace

Mechanism make_chunk_wise() {
  Mechanism m;
  m.id = "chunk-wise";
  m.title = to_say("Chunk by chunk: linear recurrences as matrix products");
  m.name = to_say("Chunk-wise form");
  m.group = to_say("Recurrent");
  m.source = "Yang et al. 2024";
  m.formula = "O = P V + (a ∘ Q) S,   S ← diag(a_C) S + (a_C ÷ a ∘ K)ᵀ V";
  m.meaning = to_say(
      "Token by token is slow to train, all at once costs n². In chunks: products inside, and only the state passes "
      "from one to the next. The same numbers come out for every chunk length.");
  m.keywords =
      "chunkwise chunked parallel form block-wise training linear attention RetNet GLA DeltaNet WY UT transform "
      "intra-chunk inter-chunk";
  m.ours = to_say("GLA's gates are learnt; here α = σ(3 + W k) with W drawn. No norm and no output gate follow.");
  m.parameters = {
      choice_parameter("recurrence", to_say("Recurrence"),
                       to_say("What becomes of the state before a token is written."),
                       {to_say("linear"), to_say("decay"), to_say("gated"), to_say("delta")}, 2),
      whole_parameter("chunk", to_say("Chunk C"), to_say("Tokens that are worked on together."), 1, 128, 8, true),
      only_where(number_parameter("decay", to_say("Decay γ"), to_say("Of the form decay (RetNet)."), 0.5, 1, 0.9),
                 of<ChunkForm::decay>),
      only_where(number_parameter("beta", to_say("Step β"), to_say("Of the form delta."), 0, 1, 1),
                 of<ChunkForm::delta>),
      only_where(seed_parameter(to_say("of W, form gated")), of<ChunkForm::gated>)};
  m.needs_causal = true;
  m.run = run_chunk;
  m.output = chunk_output;
  m.recurrent = chunk_recurrence;
  m.cost = [](const MechanismShape& s, const MechanismValues& v) {
    MechanismCost cost;
    cost.multiply_adds = multiply_adds(s, static_cast<double>(chunk_of(v, s.n)), chunk_form(v));
    cost.state_bytes = static_cast<double>(s.d) * static_cast<double>(s.d_v) * 4;
    const double chunks = std::ceil(static_cast<double>(s.n) / static_cast<double>(chunk_of(v, s.n)));
    // Q, K, V read and O written once, the state read and written once a chunk.
    cost.moved_bytes =
        4 * static_cast<double>(s.n) * static_cast<double>(2 * s.d + 2 * s.d_v) + 2 * chunks * cost.state_bytes;
    return cost;
  };
  m.chips = [](const MechanismShape& s, const MechanismValues& v) {
    using Role = ShapeChip::Role;
    const Index c = chunk_of(v, s.n);
    return std::vector<ShapeChip>{
        chip(Role::query, "Q", c, s.d),        chip(Role::key, said("tile"), c, c),
        chip(Role::value, "V", c, s.d_v, "·"), chip(Role::plain, "Q S, S", s.d, s.d_v, "+"),
        chip(Role::output, "O", c, s.d_v),     {Role::remark, say("{} times", (s.n + c - 1) / c), ""}};
  };
  m.note = [](const MechanismInput& in, const MechanismValues& v, const MechanismResult& r) -> std::string {
    const Tensor whole = tensor_of(chunk_steps(in, chunk_parts(in, v), [](Index, const Matrix&) {}));
    return say("{}. Token by token gives the same outputs up to {}.", nth(r.facts, 0).value,
               text(greatest_gap(whole, r.output)));
  };
  return m;
}

}  // namespace headscope::mechanism
