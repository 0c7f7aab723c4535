// Mechanisms as their papers give them, against definitions written out in double: the usual values, and every setting
// that stands for something else.

#include <doctest/doctest.h>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanism_report.h"
#include "core/base/random.h"
#include "core/run/mechanism_input.h"
#include "tests/attention/mechanisms/input.h"

namespace headscope::paper_test {

using namespace testing;

namespace {

using Row = std::vector<double>;
std::size_t at(Index i) {
  return static_cast<std::size_t>(i);
}
double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}
double silu(double x) {
  return x * sigmoid(x);
}
Matrix map(Matrix x, double (*f)(double)) {
  for (Row& row : x)
    for (double& value : row) value = f(value);
  return x;
}
/// x W ÷ √(width of x), W drawn.
Matrix drawn(const Tensor& x, Index columns, std::uint64_t seed) {
  Matrix out = times(matrix_of(x), matrix_of(mechanism::gaussian(x.dim(1), columns, seed)));
  for (Row& row : out)
    for (double& value : row) value /= std::sqrt(static_cast<double>(x.dim(1)));
  return out;
}

// ---- Lightning Attention of MiniMax-01

constexpr Index n = 14, heads = 4, d = 6, d_v = 5, layers = 8, layer = 2;

std::shared_ptr<const HeadsOfLayer> whole_layer() {
  return heads_of_layer(random_tensor({n, heads, d}, 1), random_tensor({n, heads, d}, 2),
                        random_tensor({n, heads, d_v}, 3), layer, layers);
}
MechanismInput head_of(const std::shared_ptr<const HeadsOfLayer>& from, Index head) {
  MechanismInput in = input_of_head(from, head);
  in.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(d)));
  in.rule = parse_mask("causal");
  return in;
}

struct Lightning {
  double decay = 0;  // 0: the head's own
  bool map_values = true, norm = true, over_heads = true, gate = true;
};
Matrix raw_lightning(const MechanismInput& in, Index head, const Lightning& how) {
  const double slope = std::pow(2.0, -8.0 * static_cast<double>(head + 1) / heads);
  const double own = std::exp(-slope * (1 - layer / (layers - 1 + 1e-5) + 1e-5));
  const double decay = how.decay > 0 ? how.decay : own;
  const Matrix q = map(matrix_of(in.layer->q[at(head)]), silu), k = map(matrix_of(in.layer->k[at(head)]), silu);
  Matrix v = matrix_of(in.layer->v[at(head)]);
  if (how.map_values) v = map(v, silu);
  Matrix out(n, Row(d_v, 0));
  for (std::size_t t = 0; t < n; ++t)
    for (std::size_t s = 0; s <= t; ++s)
      for (std::size_t e = 0; e < d_v; ++e)
        out[t][e] +=
            std::pow(decay, static_cast<double>(t - s)) * dot(q[t], k[s]) * v[s][e] * static_cast<double>(in.scale);
  return out;
}
Matrix lightning(const MechanismInput& in, const Lightning& how, std::uint64_t seed = 1) {
  Matrix out = raw_lightning(in, in.head, how);
  const Matrix gate = drawn(in.q, d_v, seed + 2);
  for (std::size_t t = 0; t < n; ++t) {
    double squares = 0, width = 0;
    for (Index h = 0; h < heads; ++h) {
      if (!how.over_heads && h != in.head) continue;
      const Row row = raw_lightning(in, h, how)[t];
      squares += dot(row, row), width += d_v;
    }
    for (std::size_t e = 0; e < d_v; ++e) {
      if (how.norm) out[t][e] /= std::sqrt(squares / width + 1e-6);
      if (how.gate) out[t][e] *= sigmoid(gate[t][e]);
    }
  }
  return out;
}

}  // namespace

TEST_CASE("Lightning Attention as in MiniMax-01: SiLU on q, k and v, λ of the head, norm over heads, output gate") {
  const auto from = whole_layer();
  for (const Index head : {0, 1, 3}) {
    CAPTURE(head);
    const MechanismInput in = head_of(from, head);
    CHECK(gap(run("lightning", in).output, lightning(in, {})) < 1e-5);
    CHECK(gap(run("hybrid", in).output, lightning(in, {})) < 1e-5);  // one of its linear layers
    CHECK(gap(run("lightning block=3 seed=5", in).output, lightning(in, {}, 5)) < 1e-5);
    CHECK(gap(run("lightning decay=0.7", in).output, lightning(in, {.decay = 0.7})) < 1e-5);
    CHECK(gap(run("lightning values=identity", in).output, lightning(in, {.map_values = false})) < 1e-5);
    CHECK(gap(run("lightning norm=off", in).output, lightning(in, {.norm = false})) < 1e-5);
    CHECK(gap(run("lightning norm-over=head", in).output, lightning(in, {.over_heads = false})) < 1e-5);
    CHECK(gap(run("lightning output-gate=off", in).output, lightning(in, {.gate = false})) < 1e-5);
    // The weights tell the output where values and outputs are left as they are.
    const MechanismResult bare = run("lightning values=identity output-gate=off", in);
    CHECK(bare.output_is_weights_times_v);
    CHECK(gap(bare.output, times(matrix_of(bare.weights), matrix_of(in.v))) < 1e-5);
    CHECK_FALSE(run("lightning output-gate=off", in).output_is_weights_times_v);
    CHECK_FALSE(run("lightning values=identity", in).output_is_weights_times_v);
  }
  // λ < 1 in every head, and no two alike.
  const std::string first = run("lightning", head_of(from, 0), Detail::steps).facts[0].value,
                    second = run("lightning", head_of(from, 1), Detail::steps).facts[0].value;
  CHECK(number_in(first) == doctest::Approx(std::exp(-0.25 * (1 - 2 / 7.0))).epsilon(1e-2));
  CHECK(number_in(first) < number_in(second));
  CHECK(number_in(second) < 1);
}

TEST_CASE("gated linear attention as in the paper: σ(·)^(1/τ), W of low rank, LayerNorm, swish of the output gate") {
  const MechanismInput in = random_head(n, n, d, d_v, "causal");
  struct How {
    double bias = 0, tau = 16;
    Index rank = d;  // 16 is more than the width
    bool norm = true, centre = true, gate = true;
  };
  const auto definition = [&](const How& how) {
    // α_t = σ(b + k W¹ W² ÷ √(d · rank))^(1/τ)
    Matrix drive = drawn(in.k, how.rank, 1);
    drive = times(drive, matrix_of(mechanism::gaussian(how.rank, d, 2)));
    const Matrix q = matrix_of(in.q), k = matrix_of(in.k), v = matrix_of(in.v), gate = drawn(in.q, d_v, 3);
    Matrix state(d, Row(d_v, 0)), out(n, Row(d_v, 0));
    for (std::size_t t = 0; t < n; ++t) {
      for (std::size_t c = 0; c < d; ++c) {
        const double alpha =
            std::pow(sigmoid(how.bias + drive[t][c] / std::sqrt(static_cast<double>(how.rank))), 1 / how.tau);
        for (std::size_t e = 0; e < d_v; ++e) {
          state[c][e] = alpha * state[c][e] + k[t][c] * v[t][e];
          out[t][e] += static_cast<double>(in.scale) * q[t][c] * state[c][e];
        }
      }
      double mean = 0, squares = 0;
      for (const double x : out[t]) mean += x / d_v;
      if (how.norm && how.centre)
        for (double& x : out[t]) x -= mean;
      for (const double x : out[t]) squares += x * x / d_v;
      for (std::size_t e = 0; e < d_v; ++e) {
        if (how.norm) out[t][e] /= std::sqrt(squares + 1e-6);
        if (how.gate) out[t][e] *= silu(gate[t][e]);
      }
    }
    return out;
  };
  CHECK(gap(run("gated", in).output, definition({})) < 1e-5);
  CHECK(gap(run("gated temperature=1", in).output, definition({.tau = 1})) < 1e-5);
  CHECK(gap(run("gated bias=1.5 temperature=4", in).output, definition({.bias = 1.5, .tau = 4})) < 1e-5);
  CHECK(gap(run("gated rank=2", in).output, definition({.rank = 2})) < 1e-5);
  CHECK(gap(run("gated centre=off", in).output, definition({.centre = false})) < 1e-5);
  CHECK(gap(run("gated norm=off", in).output, definition({.norm = false})) < 1e-5);
  CHECK(gap(run("gated output-gate=off", in).output, definition({.gate = false})) < 1e-5);
  const MechanismResult bare = run("gated norm=off output-gate=off", in);
  CHECK(bare.output_is_weights_times_v);
  CHECK(gap(bare.output, times(matrix_of(bare.weights), matrix_of(in.v))) < 1e-5);
  CHECK_FALSE(run("gated output-gate=off", in).output_is_weights_times_v);  // LayerNorm takes a mean off
  CHECK(run("gated output-gate=off centre=off", in).output_is_weights_times_v);
}

TEST_CASE("Mamba as in the paper: zero-order hold, and a step length for every channel") {
  const MechanismInput in = random_head(n, n, d, d_v, "causal");
  struct How {
    bool hold = true, shared = false;
    double bias = -2, rate = 1, sensitivity = 2;
  };
  const auto definition = [&](const How& how) {
    const Matrix q = matrix_of(in.q), k = matrix_of(in.k), v = matrix_of(in.v), along = drawn(in.k, 1, 1);
    Random random(2);
    Matrix out(n, Row(d_v, 0));
    for (std::size_t e = 0; e < d_v; ++e) {
      // softplus⁻¹ of a number drawn from 0.001 … 0.1
      const double parameter = how.shared ? how.bias : std::log(std::exp(0.001 + 0.099 * random.uniform()) - 1);
      Row h(d, 0);
      for (std::size_t t = 0; t < n; ++t) {
        const double delta = std::log(1 + std::exp(parameter + how.sensitivity * along[t][0]));
        for (std::size_t i = 0; i < d; ++i) {
          const double a = -how.rate * static_cast<double>(i + 1);
          const double write = how.hold ? 1 / (delta * a) * (std::exp(delta * a) - 1) * delta : delta;
          h[i] = std::exp(delta * a) * h[i] + write * k[t][i] * v[t][e];
          out[t][e] += static_cast<double>(in.scale) * q[t][i] * h[i];
        }
      }
    }
    return out;
  };
  CHECK(gap(run("mamba", in).output, definition({})) < 1e-6);
  CHECK(gap(run("mamba hold=euler", in).output, definition({.hold = false})) < 1e-6);
  CHECK(gap(run("mamba steps=shared bias=-1", in).output, definition({.shared = true, .bias = -1})) < 1e-6);
  CHECK(gap(run("mamba rate=0.1 sensitivity=0.5", in).output, definition({.rate = 0.1, .sensitivity = 0.5})) < 1e-6);
  // The two discretisations differ by more than rounding, and agree for small steps.
  CHECK(gap(run("mamba steps=shared", in).output, definition({.hold = false, .shared = true})) > 1e-3);
  const MechanismResult shared = run("mamba steps=shared", in);
  CHECK(shared.output_is_weights_times_v);
  CHECK(gap(shared.output, times(matrix_of(shared.weights), matrix_of(in.v))) < 1e-6);
  // Each channel has a matrix of its own; their mean is shown, or one.
  const MechanismResult mean = run("mamba", in);
  CHECK_FALSE(mean.output_is_weights_times_v);
  Matrix sum(n, Row(n, 0));
  for (Index e = 0; e < d_v; ++e) {
    const Matrix own = matrix_of(run("mamba channel=" + std::to_string(e + 1), in).weights);
    const Matrix y = times(own, matrix_of(in.v));
    for (std::size_t t = 0; t < n; ++t) {
      CHECK(y[t][at(e)] ==
            doctest::Approx(static_cast<double>(mean.output.at(static_cast<Index>(t), e))).epsilon(1e-4));
      for (std::size_t s = 0; s < n; ++s) sum[t][s] += own[t][s] / d_v;
    }
  }
  CHECK(gap(mean.weights, sum) < 1e-6);
}

TEST_CASE("Linformer's E and F are two matrices unless they share") {
  for (const char* mask : {"full", "causal"}) {
    CAPTURE(mask);
    const MechanismInput in = random_head(n, n, d, d_v, mask);
    const auto definition = [&](bool shared, Index r) {
      const auto projection = [&](std::uint64_t seed) {
        Matrix e = matrix_of(mechanism::gaussian(r, n, seed));
        for (Row& row : e)
          for (double& x : row) x /= std::sqrt(static_cast<double>(r));
        return e;
      };
      const Matrix e = projection(3), f = shared ? e : projection(4), q = matrix_of(in.q), k = matrix_of(in.k),
                   v = matrix_of(in.v);
      Matrix out(n, Row(d_v, 0));
      for (std::size_t i = 0; i < n; ++i) {
        Row share(at(r), 0);
        double sum = 0;
        for (std::size_t s = 0; s < at(r); ++s) {
          double score = 0;
          for (std::size_t j = 0; j < n; ++j)
            if (mask == std::string("full") || j <= i) score += e[s][j] * dot(q[i], k[j]);
          sum += share[s] = std::exp(static_cast<double>(in.scale) * score);
        }
        for (std::size_t s = 0; s < at(r); ++s)
          for (std::size_t j = 0; j < n; ++j)
            if (mask == std::string("full") || j <= i)
              for (std::size_t c = 0; c < d_v; ++c) out[i][c] += share[s] / sum * f[s][j] * v[j][c];
      }
      return out;
    };
    CHECK(gap(run("linformer projection=gaussian seed=3 rank=4", in).output, definition(false, 4)) < 1e-5);
    CHECK(gap(run("linformer projection=gaussian seed=3 rank=4 sharing=key-value", in).output, definition(true, 4)) <
          1e-5);
    const MechanismChoice drawn_apart = parse_mechanism("linformer projection=gaussian seed=3 rank=4");
    CHECK(gap(output_of(*drawn_apart.mechanism, in, drawn_apart.values), definition(false, 4)) < 1e-5);
  }
}

TEST_CASE("cosine attention is cos θ ÷ τ as in Swin V2; the mean of the norms is a choice, and looks ahead") {
  const MechanismInput in = random_head(n, n, d, d_v, "causal");
  const Matrix q = matrix_of(in.q), k = matrix_of(in.k);
  const auto length = [](const Row& x) { return std::sqrt(dot(x, x)); };
  const auto definition = [&](double tau, bool keep_q, bool keep_k) {
    return normalised(in, [&](Index i, Index j) {
      const double cosine = dot(q[at(i)], k[at(j)]) / (length(q[at(i)]) * length(k[at(j)]));
      return std::exp(cosine * (keep_q ? length(q[at(i)]) : 1) * (keep_k ? length(k[at(j)]) : 1) / tau);
    });
  };
  CHECK(gap(run("cosine", in).weights, definition(0.1, false, false)) < 1e-5);
  CHECK(gap(run("cosine temperature=0.5", in).weights, definition(0.5, false, false)) < 1e-5);
  CHECK(gap(run("cosine temperature=2 sharpness=4", in).weights, definition(0.5, false, false)) < 1e-5);
  CHECK(gap(run("cosine query-norm=on temperature=1", in).weights, definition(1, true, false)) < 1e-5);
  CHECK(gap(run("cosine key-norm=on temperature=1", in).weights, definition(1, false, true)) < 1e-5);
  double mean_q = 0, mean_k = 0;
  for (std::size_t i = 0; i < n; ++i) mean_q += length(q[i]) / n, mean_k += length(k[i]) / n;
  const double unit = static_cast<double>(in.scale) * mean_q * mean_k;
  CHECK(gap(run("cosine off-norm=mean", in).weights, definition(1 / unit, false, false)) < 1e-5);
  CHECK(gap(run("cosine off-norm=mean temperature=3", in).weights, definition(1 / unit, false, false)) < 1e-5);
  MechanismInput later = in;
  later.k = in.k.copy(), later.q = in.q.copy();
  for (Index c = 0; c < d; ++c) later.k.ref(n - 1, c) = later.q.ref(n - 1, c) = 9;
  const auto first_rows = [](const char* spec, const MechanismInput& of) {
    return run(spec, of).weights.slice(0, 0, n - 1);
  };
  CHECK(gap(first_rows("cosine", in), first_rows("cosine", later)) == 0);
  CHECK(gap(first_rows("cosine off-norm=mean", in), first_rows("cosine off-norm=mean", later)) > 1e-3);
}

TEST_CASE("refined weights have no factor of their own: scores between rows are (A A ᵀ) ÷ √m") {
  const MechanismInput in = random_head(9, 9, 6, 4, "causal");
  const Matrix a = softmax_by_definition(in);
  CHECK(gap(run("refined", in).weights,
            normalised(in, [&](Index i, Index j) { return std::exp(dot(a[at(i)], a[at(j)]) / 3); })) < 1e-6);
}

TEST_CASE("what older sessions wrote still reads, and keeps the values that it named") {
  const std::pair<const char*, const char*> older[] = {
      {"lightning block=8 decay=1 map=silu norm=on", "decay=1"},
      {"hybrid block=4 decay=0.9 map=elu norm=off every=8", "decay=0.9"},
      {"gated gate=scalar decay=0.8 bias=2 positive=on norm=on seed=3", "bias=2"},
      {"mamba sensitivity=2 bias=-2 rate=0.05 seed=1", "rate=0.05"},
      {"titans learning=0.2 momentum=0.3 forgetting=0.02 hidden=0 form=context persistent=2 span=4 seed=1",
       "form=context"},
      {"linformer rank=8 projection=gaussian seed=1", "projection=gaussian"},
      {"cosine query-norm=off key-norm=off sharpness=1", "sharpness=1"},
      {"refined form=simple sharpness=10 spread=0 seed=1", "sharpness=10"}};
  for (const auto& [spec, kept] : older) {
    CAPTURE(spec);
    CHECK(text_of(parse_mechanism(spec)).find(kept) != std::string::npos);
  }
  // λ as it was named is the λ of every head.
  const auto from = whole_layer();
  const MechanismInput in = head_of(from, 2);
  CHECK(gap(run("lightning block=8 decay=1 map=silu norm=on", in).output, lightning(in, {.decay = 1})) < 1e-5);
}

TEST_CASE("cells that the mask hides are marked in every step over queries and keys") {
  for (const Mechanism& m : mechanisms()) {
    if (m.study || m.id == "low-rank") continue;
    CAPTURE(m.id);
    const MechanismInput in = random_head(9, 9, 5, 4, "causal");
    for (const MechanismStep& step : m.run(in, m.usual(), Detail::steps).steps) {
      if (step.rows != MechanismAxis::query || step.columns != MechanismAxis::key) continue;
      CAPTURE(step.id);
      REQUIRE(step.masked.size() == 81);
      for (std::size_t i = 0; i < 9; ++i)
        for (std::size_t j = i + 1; j < 9; ++j) CHECK(step.masked[i * 9 + j] == 1);
    }
  }
}

TEST_CASE("a difference from the parallel form is told only where there is one") {
  const MechanismInput in = random_head(12, 12, 5, 4, "causal");
  for (const char* spec : {"rnn", "lstm", "titans hidden=4 learning=0.05"}) {
    CAPTURE(spec);
    const MechanismReport report = report_on(parse_mechanism(spec), in);
    CHECK(report.recurrence);
    CHECK_FALSE(report.recurrent_gap);
  }
  for (const Mechanism& m : mechanisms()) {
    if (!m.recurrent || (m.only_recurrent && m.only_recurrent(m.usual()))) continue;
    CAPTURE(m.id);
    const MechanismReport report = report_on({&m, m.usual()}, in);
    REQUIRE(report.recurrent_gap);
    CHECK(*report.recurrent_gap < 1e-4);
  }
}

}  // namespace headscope::paper_test
