// Every setting of a mechanism that stands for another formula, against that formula written out in double.

#include <doctest/doctest.h>

#include <cmath>

#include "core/attention/mechanism_math.h"
#include "core/base/random.h"
#include "tests/attention/mechanisms/input.h"

namespace headscope::settings_test {

using namespace testing;

namespace {

std::size_t at(Index i) {
  return static_cast<std::size_t>(i);
}
double elu1(double x) {
  return x > 0 ? 1 + x : std::exp(x);
}
Matrix drawn(Index rows, Index columns, std::uint64_t seed, double factor) {
  Matrix out = matrix_of(mechanism::gaussian(rows, columns, seed));
  for (auto& row : out)
    for (double& x : row) x *= factor;
  return out;
}
Matrix columns_of(const Matrix& x, std::size_t from, std::size_t to) {
  Matrix out;
  for (const auto& row : x)
    out.emplace_back(row.begin() + static_cast<std::ptrdiff_t>(from), row.begin() + static_cast<std::ptrdiff_t>(to));
  return out;
}

}  // namespace

TEST_CASE(
    "many heads: each scores its own part of q and k ÷ √(d/h), reads its own part of v, writes by its rows of W_O") {
  for (const char* mask : {"causal", "full"}) {
    const MechanismInput in = random_head(7, 7, 12, 18, mask);
    for (const std::size_t heads : {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{6}}) {
      CAPTURE(mask);
      CAPTURE(heads);
      const std::size_t d = 12 / heads, d_v = 18 / heads;
      const MechanismResult r = run("multi-head seed=4 heads=" + std::to_string(heads), in, Detail::steps);
      const Matrix wo = drawn(18, 18, 4, 1 / std::sqrt(18.0));
      Matrix joined(7);
      for (std::size_t h = 0; h < heads; ++h) {
        const Matrix q = columns_of(matrix_of(in.q), h * d, (h + 1) * d),
                     k = columns_of(matrix_of(in.k), h * d, (h + 1) * d);
        const Matrix p = normalised(in, [&](Index i, Index j) {
          return std::exp(dot(q[at(i)], k[at(j)]) / std::sqrt(static_cast<double>(d)));
        });
        CHECK(gap(step_of(r, "head-" + std::to_string(h)).value, p) < 1e-6);
        const Matrix z = times(p, columns_of(matrix_of(in.v), h * d_v, (h + 1) * d_v));
        for (std::size_t i = 0; i < 7; ++i) joined[i].insert(joined[i].end(), z[i].begin(), z[i].end());
      }
      CHECK(gap(step_of(r, "joined").value, joined) < 1e-5);
      CHECK(gap(step_of(r, "wo").value, wo) < 1e-6);
      CHECK(gap(step_of(r, "at-once").value, times(joined, wo)) < 1e-5);
      CHECK(gap(step_of(r, "sum").value, times(joined, wo)) < 1e-5);
    }
  }
  // The largest number of heads up to the wanted one that divides both widths; eight at most are shown.
  const MechanismInput wide = random_head(3, 3, 32, 16, "full");
  CHECK(run("multi-head heads=7", wide, Detail::steps).facts[1].value == "4 of width 8");
  const MechanismResult many = run("multi-head heads=16", wide, Detail::steps);
  CHECK(many.facts[1].value == "16 of width 2");
  CHECK(step_of(many, "head-7").formula == "dimensions 14–15");
  CHECK(many.steps.size() == 8 + 5);
  // 4 w² + 4 w of attention, 2 · w · 4 w of the FFN.
  CHECK(run("multi-head width=10", wide, Detail::steps).facts[2].value == "440 attention, 800 FFN weights");
}

TEST_CASE("additive attention with drawn W, U and w: wᵀ tanh(W q + U k), W and U of N(0, 1/d), w of N(0, 1/h)") {
  MechanismInput in = random_head(6, 9, 5, 4, "full");
  in.temperature = 2;
  const auto definition = [&](std::size_t h, double sharpness) {
    const Matrix w = drawn(5, static_cast<Index>(h), 3, 1 / std::sqrt(5.0)),
                 u = drawn(5, static_cast<Index>(h), 4, 1 / std::sqrt(5.0)),
                 last = drawn(1, static_cast<Index>(h), 5, 1 / std::sqrt(static_cast<double>(h)));
    const Matrix wq = times(matrix_of(in.q), w), uk = times(matrix_of(in.k), u);
    return normalised(in, [&](Index i, Index j) {
      double sum = 0;
      for (std::size_t c = 0; c < h; ++c) sum += last[0][c] * std::tanh(wq[at(i)][c] + uk[at(j)][c]);
      return std::exp(sharpness * sum / 2);  // the temperature
    });
  };
  CHECK(gap(run("additive weights=drawn hidden=7 seed=3", in).weights, definition(7, 1)) < 1e-6);
  CHECK(gap(run("additive weights=drawn hidden=3 seed=3 sharpness=6", in).weights, definition(3, 6)) < 1e-6);
  const MechanismResult r = run("additive weights=drawn hidden=7 seed=3", in, Detail::steps);
  CHECK(step_of(r, "wq").value.shape() == Shape({6, 7}));
  CHECK(step_of(r, "uk").value.shape() == Shape({9, 7}));
  CHECK(gap(r.output, times(matrix_of(r.weights), matrix_of(in.v))) < 1e-5);
}

TEST_CASE("Lightning Attention with 1 + elu or without a map, its blocks and the state between them") {
  constexpr std::size_t n = 11;
  const MechanismInput in = random_head(n, n, 4, 3, "causal");
  const double root = std::sqrt(static_cast<double>(in.scale));
  struct Case {
    const char* map;
    double (*phi)(double x, double root);
  };
  for (const Case& c : {Case{"elu", [](double x, double) { return elu1(x); }},
                        Case{"identity", [](double x, double unit) { return unit * x; }},
                        Case{"silu", [](double x, double unit) { return unit * x / (1 + std::exp(-x)); }}}) {
    CAPTURE(c.map);
    Matrix q = matrix_of(in.q), k = matrix_of(in.k);
    for (Matrix* x : {&q, &k})
      for (auto& row : *x)
        for (double& value : row) value = c.phi(value, root);
    Matrix weights(n, std::vector<double>(n, 0.0)), inside = weights, before = weights;
    for (std::size_t t = 0; t < n; ++t)
      for (std::size_t s = 0; s <= t; ++s) {
        weights[t][s] = dot(q[t], k[s]) * std::pow(0.8, static_cast<double>(t - s));
        (t / 4 == s / 4 ? inside : before)[t][s] = weights[t][s];
      }
    for (const char* id : {"lightning", "hybrid"}) {
      CAPTURE(id);
      const MechanismResult r =
          run(std::string(id) + " block=4 decay=0.8 norm=off values=identity output-gate=off map=" + c.map, in,
              Detail::steps);
      CHECK(gap(r.weights, weights) < 1e-5);
      CHECK(gap(r.output, times(weights, matrix_of(in.v))) < 1e-5);
      CHECK(gap(step_of(r, "inside").value, inside) < 1e-5);
      CHECK(gap(step_of(r, "before").value, before) < 1e-5);
      // Tokens 0 … 7 are behind the last block, each faded by its distance from token 7.
      Matrix state(4, std::vector<double>(3, 0.0));
      const Matrix v = matrix_of(in.v);
      for (std::size_t s = 0; s < 8; ++s)
        for (std::size_t a = 0; a < 4; ++a)
          for (std::size_t b = 0; b < 3; ++b)
            state[a][b] += std::pow(0.8, static_cast<double>(7 - s)) * k[s][a] * v[s][b];
      CHECK(gap(step_of(r, "state").value, state) < 1e-5);
    }
  }
}

TEST_CASE("the hybrid's cost: the mean over layers, one in eight softmax, by hand") {
  // n = 64, d = d_v = 16, blocks of 8. Lightning: 64 · 8 · 32 + 2 · 64 · 16 · 16 = 49,152; softmax: 64² · 32 = 131,072.
  const Mechanism &hybrid = *find_mechanism("hybrid"), &lightning = *find_mechanism("lightning");
  const MechanismShape shape{64, 16, 16};
  CHECK(lightning.cost(shape, lightning.usual()).multiply_adds == 49152);
  const MechanismCost cost = hybrid.cost(shape, hybrid.usual());
  CHECK(cost.multiply_adds == doctest::Approx(49152 * 7 / 8.0 + 131072 / 8.0));
  CHECK(cost.state_bytes == doctest::Approx(16 * 16 * 4 * 7 / 8.0));
  CHECK(cost.cache_bytes == doctest::Approx(64 * 32 * 4 / 8.0));
  CHECK(hybrid.cost(shape, parse_mechanism("hybrid every=1").values).multiply_adds == doctest::Approx(131072));
}

TEST_CASE("gates without data: G = 1 and a scalar γ, on plain and on positive maps; the mean gate") {
  constexpr std::size_t n = 9;
  const MechanismInput in = random_head(n, n, 5, 4, "causal");
  const std::string bare = "gated norm=off output-gate=off ";
  const auto definition = [&](bool positive, double gate) {
    const Matrix q = matrix_of(in.q), k = matrix_of(in.k);
    Matrix out(n, std::vector<double>(n, 0.0));
    for (std::size_t t = 0; t < n; ++t)
      for (std::size_t s = 0; s <= t; ++s)
        for (std::size_t c = 0; c < 5; ++c)
          out[t][s] += (positive ? elu1(q[t][c]) * elu1(k[s][c]) : static_cast<double>(in.scale) * q[t][c] * k[s][c]) *
                       std::pow(gate, static_cast<double>(t - s));
    return out;
  };
  for (const bool positive : {false, true}) {
    const std::string map = positive ? "positive=on " : "";
    CHECK(gap(run(bare + map + "gate=none", in).weights, definition(positive, 1)) < 1e-5);
    const MechanismResult faded = run(bare + map + "gate=scalar decay=0.8", in, Detail::steps);
    CHECK(gap(faded.weights, definition(positive, 0.8)) < 1e-5);
    CHECK(gap(faded.output, times(definition(positive, 0.8), matrix_of(in.v))) < 1e-5);
    CHECK(gap(step_of(faded, "ungated").value.slice(0, n - 1, n), Matrix{[&] {
                std::vector<double> row;
                for (std::size_t s = 0; s < n; ++s) row.push_back(definition(positive, 1)[n - 1][s]);
                return row;
              }()}) < 1e-5);
    CHECK(faded.facts[0].value == "0.8");
  }
  // Data: the fact is the mean of all entries of G.
  const MechanismResult data = run(bare + "gate=data-vector temperature=1 bias=-2", in, Detail::steps);
  double mean = 0;
  for (const float g : step_of(data, "gates").value.values()) mean += static_cast<double>(g) / (n * 5);
  CHECK(number_in(data.facts[0].value) == doctest::Approx(mean).epsilon(0.005));
  CHECK(mean < 0.5);
}

TEST_CASE("Mamba's Δ and what each token leaves of the state, by channel, as a mean and as a curve") {
  constexpr Index n = 7;
  const MechanismInput in = random_head(n, n, 4, 3, "causal");
  const Matrix along = times(matrix_of(in.k), drawn(4, 1, 1, 0.5));  // ÷ √4
  Random random(2);
  std::vector<double> parameter;
  for (int e = 0; e < 3; ++e) parameter.push_back(std::log(std::exp(0.001 + 0.099 * random.uniform()) - 1));
  const auto delta = [&](std::size_t t, std::size_t e) {
    return std::log(1 + std::exp(parameter[e] + 2 * along[t][0]));
  };
  const MechanismResult mean = run("mamba rate=0.5", in, Detail::steps),
                        third = run("mamba channel=3", in, Detail::steps);
  REQUIRE(mean.curves.size() == 1);
  for (std::size_t t = 0; t < n; ++t) {
    const auto row = static_cast<Index>(t);
    const double all = (delta(t, 0) + delta(t, 1) + delta(t, 2)) / 3;
    CHECK(mean.curves[0].lines[0].x[t] == static_cast<double>(t));
    CHECK(mean.curves[0].lines[0].y[t] == doctest::Approx(all).epsilon(1e-5));
    for (std::size_t e = 0; e < 3; ++e)
      CHECK(step_of(mean, "delta").value.at(row, static_cast<Index>(e)) == doctest::Approx(delta(t, e)).epsilon(1e-5));
    for (Index i = 0; i < 4; ++i) {
      CHECK(step_of(mean, "keep").value.at(row, i) ==
            doctest::Approx(std::exp(-0.5 * static_cast<double>(i + 1) * all)).epsilon(1e-5));
      CHECK(step_of(third, "keep").value.at(row, i) ==
            doctest::Approx(std::exp(-static_cast<double>(i + 1) * delta(t, 2))).epsilon(1e-5));
    }
  }
  CHECK(mean.facts[0].value == "3 rounds");  // ⌈log₂ 7⌉
  CHECK(number_in(mean.facts[1].value) < 1e-5);
}

TEST_CASE("norms as the page tells them, and scores of a cosine with one norm off") {
  MechanismInput in{rows(2, 2, {3, 4, 0, 0}), rows(2, 2, {1, 0, 0, 2}), rows(2, 1, {1, 2}), 0.5f, parse_mask("full")};
  const MechanismResult r = run("cosine query-norm=on temperature=0.5", in, Detail::steps);
  CHECK(r.facts[0].value == "0 … 5");
  CHECK(r.facts[1].value == "1 … 2");
  CHECK(gap(step_of(r, "cosines").value, Matrix{{0.6, 0.8}, {0, 0}}) < 1e-6);  // a query of length 0 has no angle
  CHECK(gap(step_of(r, "scores").value, Matrix{{6, 8}, {0, 0}}) < 1e-5);       // 5 · cos ÷ ½
  CHECK(gap(step_of(run("cosine key-norm=on temperature=0.5", in, Detail::steps), "scores").value,
            Matrix{{1.2, 3.2}, {0, 0}}) < 1e-5);
  // At the mean: ‖q‖ 2.5, ‖k‖ 1.5, and the head's own scale instead of τ.
  CHECK(gap(step_of(run("cosine off-norm=mean sharpness=2", in, Detail::steps), "scores").value,
            Matrix{{2 * 0.5 * 2.5 * 1.5 * 0.6, 2 * 0.5 * 2.5 * 1.5 * 0.8}, {0, 0}}) < 1e-5);
  in.temperature = 4;
  CHECK(gap(step_of(run("cosine query-norm=on temperature=0.5", in, Detail::steps), "scores").value,
            Matrix{{1.5, 2}, {0, 0}}) < 1e-5);
}

TEST_CASE("refined weights with drawn W: queries, keys and values of the rows have seeds of their own") {
  const MechanismInput in = random_head(6, 6, 4, 3, "causal");
  const Matrix a = softmax_by_definition(in);
  const auto projected = [&](std::uint64_t seed) {
    Matrix w = drawn(6, 6, seed, 0.7 / std::sqrt(6.0));
    for (std::size_t i = 0; i < 6; ++i) w[i][i] += 1;
    return times(a, w);
  };
  const Matrix q = projected(5), k = projected(6), v = projected(7);
  const Matrix b =
      normalised(in, [&](Index i, Index j) { return std::exp(2 * dot(q[at(i)], k[at(j)]) / std::sqrt(6.0)); });
  const std::string spec = "refined spread=0.7 seed=5 sharpness=2 form=";
  CHECK(gap(run(spec + "simple", in).weights, b) < 1e-5);
  Matrix half = b, weighted = times(b, v);
  for (std::size_t i = 0; i < 6; ++i) {
    double sum = 0;
    for (std::size_t j = 0; j < 6; ++j) {
      half[i][j] = (a[i][j] + b[i][j]) / 2;
      weighted[i][j] = j > i ? 0 : weighted[i][j];  // keys ahead stay hidden
      sum += weighted[i][j];
    }
    for (double& w : weighted[i]) w /= sum;
  }
  CHECK(gap(run(spec + "additive", in).weights, half) < 1e-5);
  CHECK(gap(run(spec + "value-weighted", in).weights, weighted) < 1e-4);
  CHECK(run(spec + "value-weighted", in).kind == MapKind::effective);
  CHECK(run("refined form=value-weighted", in).kind == MapKind::probability);
}

TEST_CASE("Linformer's summaries: means of segments cut to what a query sees, and their shares") {
  const MechanismInput in = random_head(7, 7, 3, 2, "causal");
  const MechanismResult r = run("linformer rank=3", in, Detail::steps);
  // Segments of 7 keys in 3: 0–1, 2–3, 4–6.
  const Matrix e{{0.5, 0.5, 0, 0, 0, 0, 0}, {0, 0, 0.5, 0.5, 0, 0, 0}, {0, 0, 0, 0, 1 / 3.0, 1 / 3.0, 1 / 3.0}};
  CHECK(gap(step_of(r, "projection").value, e) < 1e-6);
  CHECK(gap(step_of(r, "keys").value, times(e, matrix_of(in.k))) < 1e-6);
  // Query 2 sees keys 0–2: segments {0, 1} and {2}.
  const Matrix q = matrix_of(in.q), k = matrix_of(in.k);
  double first = 0, second = 0;
  for (std::size_t c = 0; c < 3; ++c) {
    first += q[2][c] * (k[0][c] + k[1][c]) / 2;
    second += q[2][c] * k[2][c];
  }
  const double share = 1 / (1 + std::exp(static_cast<double>(in.scale) * (second - first)));
  const Tensor& shares = step_of(r, "shares").value;
  CHECK(shares.at(2, 0) == doctest::Approx(share).epsilon(1e-5));
  CHECK(shares.at(2, 1) == doctest::Approx(1 - share).epsilon(1e-5));
  CHECK(shares.at(2, 2) == 0.0f);
  CHECK(r.weights.at(2, 1) == doctest::Approx(share / 2).epsilon(1e-5));
  CHECK(r.weights.at(2, 2) == doctest::Approx(1 - share).epsilon(1e-5));
}

}  // namespace headscope::settings_test
