// Linear attention and its kin against definitions in double; the forms that must be equal; what converges.

#include <doctest/doctest.h>

#include <numbers>

#include "core/attention/mechanism_compare.h"
#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/random_features.h"
#include "tests/attention/mechanisms/input.h"

namespace headscope::kernel_test {

using namespace testing;

namespace {

double elu1(double x) {
  return x > 0 ? 1 + x : std::exp(x);
}
/// φ(q)·φ(k) of rows i and j.
template <class Phi>
auto similarity(const MechanismInput& in, Phi phi) {
  return [q = matrix_of(in.q), k = matrix_of(in.k), phi](Index i, Index j) {
    double sum = 0;
    for (std::size_t c = 0; c < q[0].size(); ++c)
      sum += phi(q[static_cast<std::size_t>(i)][c]) * phi(k[static_cast<std::size_t>(j)][c]);
    return sum;
  };
}
double score(const MechanismInput& in, Index i, Index j) {
  return static_cast<double>(in.scale) *
         dot(matrix_of(in.q)[static_cast<std::size_t>(i)], matrix_of(in.k)[static_cast<std::size_t>(j)]);
}

}  // namespace

TEST_CASE("linear, ReLU and cosine kernels by definition") {
  for (const char* mask : {"causal", "full", "window 4"}) {
    const MechanismInput in = random_head(11, 11, 5, 4, mask);
    CHECK(gap(run("linear", in).weights, normalised(in, similarity(in, elu1))) < 1e-6);
    const auto relu = similarity(in, [](double x) { return std::max(x, 0.0); });
    CHECK(gap(run("relu", in).weights, normalised(in, relu)) < 1e-5);
    const Matrix cosine = normalised(in, [&](Index i, Index j) {
      return relu(i, j) * std::cos(std::numbers::pi * static_cast<double>(i - j) / (2 * 64));
    });
    CHECK(gap(run("cosformer longest=64", in).weights, cosine) < 1e-5);
  }
}

TEST_CASE("(QKᵀ)V = Q(KᵀV): 16 entries against 4 for four tokens of width 2") {
  MechanismInput in = random_head(4, 4, 2, 2, "full");
  in.scale = 1;
  const MechanismResult r = run("linear map=identity normalise=none", in, Detail::steps);
  CHECK(step_of(r, "similarity").value.size() == 16);
  CHECK(step_of(r, "state").value.size() == 4);
  const Matrix q = matrix_of(in.q), v = matrix_of(in.v);
  Matrix kt(2, std::vector<double>(4));
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t c = 0; c < 2; ++c) kt[c][i] = matrix_of(in.k)[i][c];
  const Matrix left = times(times(q, kt), v), right = times(q, times(kt, v));
  for (std::size_t i = 0; i < 4; ++i) CHECK(left[i][1] == doctest::Approx(right[i][1]));
  CHECK(gap(r.output, left) < 1e-6);
  CHECK(gap(step_of(r, "state").value, times(kt, v)) < 1e-6);
}

TEST_CASE("polynomial features multiply to the polynomial of the score") {
  const MechanismInput in = random_head(9, 9, 5, 4, "causal");
  const auto of = [&](auto polynomial) {
    return normalised(in, [&](Index i, Index j) { return polynomial(score(in, i, j)); });
  };
  CHECK(gap(run("polynomial form=taylor", in).weights, of([](double x) { return 1 + x + x * x / 2; })) < 1e-5);
  CHECK(gap(run("polynomial form=affine", in).weights, of([](double x) { return (1 + x) * (1 + x); })) < 1e-5);
  const Tensor square = step_of(run("polynomial form=square", in, Detail::steps), "similarity").value;
  for (Index i = 0; i < 9; ++i)
    for (Index j = 0; j < 9; ++j)
      CHECK(static_cast<double>(square.at(i, j)) == doctest::Approx(std::pow(score(in, i, j), 2)).epsilon(1e-4));
}

TEST_CASE("random features converge to softmax, and say how far they are") {
  MechanismInput in = random_head(16, 16, 8, 4, "causal");
  in.scale /= 4;  // mild scores: the variance of such features grows with their exponential
  const Matrix exact = softmax_by_definition(in);
  const auto error = [&](const std::string& spec) {
    double sum = 0;
    for (int seed = 1; seed <= 8; ++seed) {
      const MechanismResult r = run(spec + " seed=" + std::to_string(seed), in);
      for (Index i = 0; i < 16; ++i)
        for (Index j = 0; j < 16; ++j)
          sum += std::abs(static_cast<double>(r.weights.at(i, j)) -
                          exact[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)]);
    }
    return sum / (8 * 136);
  };
  for (const char* kind : {"performer", "trigonometric"}) {
    CAPTURE(kind);
    const std::string name(kind);
    const double few = error(name + " features=16"), many = error(name + " features=1024");
    CHECK(many < few / 4);  // about 1/√64
    CHECK(many < 0.02);
  }
  // Without bias, for keys of any length: over many draws the deviations of the map cancel.
  MechanismInput varied = in;
  varied.k = in.k.copy();
  for (Index j = 0; j < 16; ++j)
    for (Index c = 0; c < 8; ++c) varied.k.ref(j, c) *= 0.25f + 0.125f * static_cast<float>(j);
  const Matrix meant = softmax_by_definition(varied);
  std::vector<double> sums(16 * 16, 0.0);
  for (int seed = 1; seed <= 24; ++seed) {
    const MechanismResult r = run("performer features=1024 seed=" + std::to_string(seed), varied);
    for (Index c = 0; c < 256; ++c)
      sums[static_cast<std::size_t>(c)] += static_cast<double>(r.weights.at(c / 16, c % 16)) / 24;
  }
  double bias = 0;
  for (std::size_t c = 0; c < 256; ++c) bias += std::abs(sums[c] - meant[c / 16][c % 16]) / 136;
  CHECK(bias < 0.002);
  CHECK(error("performer features=32 orthogonal=on") < error("performer features=32 orthogonal=off") * 1.1);
  const MechanismResult page = run("performer", in, Detail::steps);
  REQUIRE(page.curves.size() == 2);
  CHECK(page.curves[0].lines[0].y.front() > page.curves[0].lines[0].y.back());
  // Opposite keys, where exp is near zero: sines and cosines come out negative, exponentials never.
  MechanismInput apart = in;
  apart.q = in.q.copy(), apart.k = in.k.copy();
  for (float& x : apart.q.mutable_values()) x = 3;
  for (float& x : apart.k.mutable_values()) x = -3;
  for (Index c = 0; c < 8; ++c) apart.k.ref(0, c) = 3;
  CHECK(compare(apart, run("trigonometric", apart)).negative > 0.1);
  CHECK(compare(apart, run("performer", apart)).negative == 0);
}

TEST_CASE("the curve over features says where it is of the first tokens alone, of queries or of keys") {
  const auto cut = [](Index n, Index m) {
    return run("performer", random_head(n, m, 3, 2, "full"), Detail::steps).curves[0].title.find("first 96 tokens") !=
           std::string::npos;
  };
  CHECK(mechanism::curve_tokens == 96);
  CHECK(cut(97, 5));
  CHECK(cut(5, 97));
  CHECK_FALSE(cut(96, 96));
}

TEST_CASE("orthogonal directions stand at right angles in blocks") {
  const Tensor w = mechanism::directions(10, 4, true, 3);
  const Matrix m = matrix_of(w);
  for (std::size_t a = 0; a < 10; ++a)
    for (std::size_t b = 0; b < a; ++b)
      if (a / 4 == b / 4) CHECK(std::abs(dot(m[a], m[b])) < 1e-4 * std::sqrt(dot(m[a], m[a]) * dot(m[b], m[b])));
  // As long as independent rows are: those of other draws.
  const Matrix lengths = matrix_of(mechanism::gaussian(10, 4, 3 + 0x9E3779B9u));
  for (std::size_t a = 0; a < 10; ++a)
    CHECK(dot(m[a], m[a]) == doctest::Approx(dot(lengths[a], lengths[a])).epsilon(1e-4));
}

TEST_CASE("TransNormer: no denominator, rows of root mean square 1") {
  const MechanismInput in = random_head(9, 9, 5, 4, "causal");
  const auto sim = similarity(in, elu1);
  Matrix w(9, std::vector<double>(9, 0.0));
  for (Index i = 0; i < 9; ++i)
    for (Index j = 0; j <= i; ++j) w[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] = sim(i, j);
  Matrix out = times(w, matrix_of(in.v));
  CHECK(gap(run("transnormer norm=off", in).output, out) < 1e-4);
  for (auto& row : out) {
    const double rms = std::sqrt(dot(row, row) / 4 + 1e-6);
    for (double& x : row) x /= rms;
  }
  CHECK(gap(run("transnormer", in).output, out) < 1e-5);
}

TEST_CASE("PolaFormer: powers of equal signs give half of the channels, of opposite signs the other") {
  for (const auto& [spec, power] :
       {std::pair{"polaformer", 3.0}, {"polaformer power=1", 1.0}, {"polaformer power=2.5", 2.5}})
    for (const char* mask : {"full", "causal"}) {
      CAPTURE(spec);
      CAPTURE(mask);
      const MechanismInput in = random_head(7, 7, 5, 6, mask, 3);
      const Matrix q = matrix_of(in.q), k = matrix_of(in.k), v = matrix_of(in.v);
      // Each channel pair is of one sign or of two; |q|ᵖ |k|ᵖ goes to the one or to the other sum.
      const auto stream = [&](bool same) {
        return normalised(in, [&, same](Index i, Index j) {
          double sum = 0;
          for (std::size_t c = 0; c < 5; ++c) {
            const double a = q[static_cast<std::size_t>(i)][c], b = k[static_cast<std::size_t>(j)][c];
            if ((a * b > 0) == same) sum += std::pow(std::abs(a * b), power);
          }
          return sum;
        });
      };
      const Matrix same = stream(true), opposite = stream(false), first = times(same, v), second = times(opposite, v);
      Matrix out = first, mean = same;
      for (std::size_t i = 0; i < 7; ++i) {
        for (std::size_t c = 3; c < 6; ++c) out[i][c] = second[i][c];
        for (std::size_t j = 0; j < 7; ++j) mean[i][j] = (same[i][j] + opposite[i][j]) / 2;
      }
      const MechanismResult r = run(spec, in);
      CHECK(gap(r.output, out) < 1e-5);
      CHECK(gap(r.weights, mean) < 1e-5);
    }
}

TEST_CASE("PolaFormer: at power 1 same sign less opposite signs is q·k") {
  const MechanismInput in = random_head(7, 7, 5, 6, "full");
  const MechanismResult r = run("polaformer power=1", in, Detail::steps);
  const Matrix q = matrix_of(step_of(r, "polar-q").value), k = matrix_of(step_of(r, "polar-k").value);
  const Matrix qm = matrix_of(in.q), km = matrix_of(in.k);
  for (std::size_t i = 0; i < 7; ++i)
    for (std::size_t j = 0; j < 7; ++j) {
      double same = 0, opposite = 0;
      for (std::size_t c = 0; c < 5; ++c) {
        same += q[i][c] * k[j][c] + q[i][5 + c] * k[j][5 + c];
        opposite += q[i][c] * k[j][5 + c] + q[i][5 + c] * k[j][c];
      }
      CHECK(same - opposite == doctest::Approx(dot(qm[i], km[j])).epsilon(1e-4));
    }
  // Channels 0–2 are read by the one, 3–5 by the other.
  const Matrix v = matrix_of(in.v), first = times(matrix_of(step_of(r, "same").value), v),
               second = times(matrix_of(step_of(r, "opposite").value), v);
  for (Index i = 0; i < 7; ++i) {
    CHECK(static_cast<double>(r.output.at(i, 1)) ==
          doctest::Approx(first[static_cast<std::size_t>(i)][1]).epsilon(1e-4));
    CHECK(static_cast<double>(r.output.at(i, 4)) ==
          doctest::Approx(second[static_cast<std::size_t>(i)][4]).epsilon(1e-4));
  }
}

TEST_CASE("blocks do not change what Lightning Attention computes") {
  const MechanismInput in = random_head(21, 21, 6, 5, "causal");
  const double root = std::sqrt(static_cast<double>(in.scale));
  const auto silu = [root](double x) { return root * x / (1 + std::exp(-x)); };
  const auto sim = similarity(in, silu);
  Matrix w(21, std::vector<double>(21, 0.0));
  for (Index i = 0; i < 21; ++i)
    for (Index j = 0; j <= i; ++j)
      w[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] =
          sim(i, j) * std::pow(0.9, static_cast<double>(i - j));
  const Matrix out = times(w, matrix_of(in.v));
  for (const char* block : {"1", "3", "8", "21", "64"}) {
    CAPTURE(block);
    const MechanismResult r =
        run(std::string("lightning decay=0.9 norm=off values=identity output-gate=off block=") + block, in);
    CHECK(gap(r.output, out) < 1e-5);
    CHECK(gap(r.weights, w) < 1e-5);
  }
}

TEST_CASE("gates: 1 is ungated, a scalar fades by distance, data-dependent ones lie between 0 and 1") {
  const MechanismInput in = random_head(12, 12, 5, 4, "causal");
  const std::string bare = "gated norm=off output-gate=off ";  // the state alone
  const Tensor plain = run(bare + "gate=none", in).weights;
  for (Index i = 0; i < 12; ++i)
    for (Index j = 0; j <= i; ++j)
      CHECK(static_cast<double>(plain.at(i, j)) == doctest::Approx(score(in, i, j)).epsilon(1e-4));
  CHECK(gap(run(bare + "gate=scalar decay=1", in).weights, plain) < 1e-6);
  CHECK(gap(run(bare + "gate=none positive=on", in).weights, run("linear normalise=none", in).weights) > 0);
  const Tensor faded = run(bare + "gate=scalar decay=0.8", in).weights;
  for (Index i = 0; i < 12; ++i)
    for (Index j = 0; j <= i; ++j)
      CHECK(static_cast<double>(faded.at(i, j)) ==
            doctest::Approx(static_cast<double>(plain.at(i, j)) * std::pow(0.8, static_cast<double>(i - j)))
                .epsilon(1e-4));
  for (const char* form : {"data-scalar", "data-vector"}) {
    const MechanismResult r = run(bare + "gate=" + form, in, Detail::steps);
    for (const float g : step_of(r, "gates").value.values()) CHECK((g > 0 && g < 1));
    // S_t = G_t ∘ S_{t−1} + k_t v_tᵀ, in double.
    const Matrix gates = matrix_of(step_of(r, "gates").value), v = matrix_of(in.v);
    const double root = std::sqrt(static_cast<double>(in.scale));
    Matrix state(5, std::vector<double>(4, 0.0));
    for (std::size_t t = 0; t < 12; ++t) {
      std::vector<double> out(4, 0.0);
      for (std::size_t c = 0; c < 5; ++c)
        for (std::size_t e = 0; e < 4; ++e) {
          state[c][e] = gates[t][c] * state[c][e] + root * matrix_of(in.k)[t][c] * v[t][e];
          out[e] += root * matrix_of(in.q)[t][c] * state[c][e];
        }
      CHECK(static_cast<double>(r.output.at(static_cast<Index>(t), 2)) == doctest::Approx(out[2]).epsilon(1e-4));
    }
  }
  // A gate that never closes (σ of a large bias) is no gate.
  CHECK(gap(run(bare + "gate=data-vector bias=8", in).weights, plain) < 0.05);
}

TEST_CASE("the delta rule: a key that was just written gives its value back, and a repeated key replaces") {
  MechanismInput in = random_head(6, 6, 5, 4, "causal");
  in.q = in.k;  // ask with the key that was written
  const MechanismResult r = run("delta", in);
  CHECK(gap(r.output, in.v) < 1e-5);
  in.k = in.k.copy();
  for (Index c = 0; c < 5; ++c) in.k.ref(5, c) = 2 * in.k.at(1, c);  // the same direction as key 1
  in.q = in.k;
  const MechanismResult again = run("delta", in);
  CHECK(std::abs(again.weights.at(5, 1)) < 1e-5f);
  CHECK(again.weights.at(5, 5) == doctest::Approx(1));
  CHECK(gap(run("delta beta=0", in).output, Tensor::zeros({6, 4})) == 0);
}

TEST_CASE("Linformer is exact with as many summaries as keys, and equal inside a segment below") {
  for (const char* mask : {"full", "causal", "window 4"}) {
    const MechanismInput in = random_head(12, 12, 5, 4, mask);
    CHECK(gap(run("linformer rank=12", in).weights, softmax_by_definition(in)) < 1e-5);
  }
  const MechanismInput in = random_head(6, 12, 5, 4, "full");
  const Tensor w = run("linformer rank=4", in).weights;
  for (Index i = 0; i < 6; ++i)
    for (Index j = 0; j < 12; ++j) CHECK(w.at(i, j) == doctest::Approx(w.at(i, j / 3 * 3)).epsilon(1e-6));
  // By definition: softmax over the means of three neighbouring keys, a third of it for each.
  const Matrix k = matrix_of(in.k), q = matrix_of(in.q);
  double sum = 0, first = 0;
  for (std::size_t s = 0; s < 4; ++s) {
    double x = 0;
    for (std::size_t c = 0; c < 5; ++c) x += q[2][c] * (k[3 * s][c] + k[3 * s + 1][c] + k[3 * s + 2][c]) / 3;
    const double e = std::exp(static_cast<double>(in.scale) * x);
    sum += e;
    if (s == 0) first = e;
  }
  CHECK(static_cast<double>(w.at(2, 1)) == doctest::Approx(first / sum / 3).epsilon(1e-4));
}

TEST_CASE("comparison: errors, entropy, agreement and rank of a case one can count") {
  const MechanismInput in{rows(2, 1, {0, 0}), rows(2, 1, {1, 1}), rows(2, 1, {1, 3}), 1, parse_mask("full")};
  MechanismResult r;
  r.weights = rows(2, 2, {1, 0, 0, 1});
  r.output = rows(2, 1, {1, 3});
  const MechanismComparison c = compare(in, r);
  // Softmax: every weight ½, every output 2. ‖(−1, 1)‖ ÷ ‖(2, 2)‖ = ½.
  CHECK(c.output_error == doctest::Approx(0.5));
  CHECK(c.entropy == doctest::Approx(0));
  CHECK(c.entropy_reference == doctest::Approx(std::log(2.0)));
  CHECK(c.rank == 2);
  CHECK(c.rank_reference == 1);
  CHECK(c.rank90 == 2);
  CHECK(c.top1 == doctest::Approx(0.5));  // row 0 agrees on the first of equals
  CHECK(c.difference.at(0, 1) == -0.5f);
  r.weights = rows(2, 2, {1.5f, -0.5f, 0, 1});
  CHECK(std::isnan(compare(in, r).entropy));
  CHECK(compare(in, r).negative == 0.25);
}

TEST_CASE("the worked example of associativity, by hand: Kᵀ V = [5 3; 4 2]") {
  const auto examples = worked_examples();
  const auto example = std::ranges::find_if(examples, [](const auto& each) { return each.id == "associativity"; });
  REQUIRE(example != examples.end());
  const MechanismResult r = run("linear map=identity normalise=none", example->input(), Detail::steps);
  CHECK(gap(step_of(r, "state").value, Matrix{{5, 3}, {4, 2}}) == 0);
  CHECK(gap(r.output, Matrix{{5, 3}, {4, 2}, {9, 5}, {1, 1}}) == 0);
}

TEST_CASE("similarities below 0 are counted among the cells that the mask leaves, and give a map its signs") {
  // q·k: (1 −1; 1 −1) of which the causal mask leaves (1 ·; 1 −1).
  const MechanismInput in{rows(2, 1, {1, 1}), rows(2, 1, {1, -1}), rows(2, 1, {1, 2}), 1, causal_rule()};
  const MechanismResult one = run("linear map=identity normalise=none", in, Detail::steps);
  REQUIRE(one.facts.size() == 1);
  CHECK(one.facts[0].value == "33.3 %");
  CHECK(step_of(one, "weights").range == MechanismStep::Range::signed_values);
  MechanismInput all = in;
  all.rule = full_rule();
  CHECK(run("linear map=identity normalise=none", all).facts[0].value == "50.0 %");
  MechanismInput positive = in;
  positive.k = rows(2, 1, {1, 2});
  const MechanismResult none = run("linear map=identity normalise=none", positive, Detail::steps);
  CHECK(none.facts.empty());
  CHECK(step_of(none, "weights").range == MechanismStep::Range::positive);
  CHECK(step_of(none, "weights").explain(1, 1) == "2");
  // Rows that sum to 0 have no weight: 1 − 1.
  const MechanismResult empty = run("linear map=identity", all);
  CHECK(empty.facts[0].value == "2 of 2");
  for (const float weight : empty.weights.values()) CHECK(weight == 0);
}

TEST_CASE("features are as many as their page says: twice d of turned and polar ones, twice r of waves") {
  const MechanismInput in = random_head(6, 6, 3, 5, "causal");
  for (const auto& [spec, width] : {std::pair<const char*, Index>{"linear", 3},
                                    {"relu", 3},
                                    {"cosformer", 6},
                                    {"trigonometric features=8", 16},
                                    {"performer features=8", 8},
                                    {"dpfp nu=2", 12}}) {
    CAPTURE(spec);
    const MechanismResult r = run(spec, in, Detail::steps);
    CHECK(step_of(r, "phi-q").value.shape() == Shape{6, width});
    CHECK(step_of(r, "phi-k").value.shape() == Shape{6, width});
    CHECK(step_of(r, "state").value.shape() == Shape{width, 5});
    const MechanismChoice choice = parse_mechanism(spec);
    bool told = false;
    for (const ShapeChip& chip : choice.mechanism->chips({6, 3, 5}, choice.values))
      told |= chip.text == "φ(Q) 6×" + std::to_string(width);
    CHECK(told);
  }
}

TEST_CASE("what kernels say of themselves: what ReLU loses, what the identity risks, how far apart cosFormer sees") {
  const auto said = [](const char* spec, const MechanismInput& in) {
    const MechanismChoice choice = parse_mechanism(spec);
    return choice.mechanism->note(in, choice.values, choice.mechanism->run(in, choice.values, Detail::weights));
  };
  // Squares of Q: 1 + 4 + 4 + 16, of which 4 of a number below 0; of K: none.
  const MechanismInput in{rows(2, 2, {1, -2, 2, 4}), rows(2, 2, {0, 0, 1, 2}), rows(2, 1, {1, 2}), 1, full_rule()};
  CHECK(said("relu", in) == "Negative parts are lost: 16 % of the squares of Q and 0 % of those of K.");
  MechanismInput nothing = in;
  nothing.q = Tensor::zeros({2, 2});
  CHECK(said("relu", nothing).find("lost: 0 % of the squares of Q") != std::string::npos);
  MechanismInput half = in;  // below 1, so that squares are less than the numbers
  half.q = rows(2, 2, {0.25f, -0.25f, 0.5f, 0});
  CHECK(said("relu", half).find("lost: 16.7 %") != std::string::npos);
  CHECK(said("linear", in).find("nothing pushes small similarities towards zero") != std::string::npos);
  CHECK(said("linear map=identity", in).find("Without φ the weights take both signs") == 0);
  // Four tokens, M = 4: cos(3 π / 8) and cos(π / 8).
  const MechanismInput four = random_head(4, 4, 2, 2, "causal");
  CHECK(said("cosformer longest=4", four) ==
        "The farthest pair of this text is weighted by 0.383, a neighbour by 0.924.");
}

TEST_CASE("features share the size of the scale, whatever its sign") {
  MechanismInput in = random_head(6, 6, 3, 5, "causal");
  MechanismInput turned = in;
  turned.scale = -in.scale;
  for (const char* spec : {"linear map=identity normalise=none", "dpfp", "performer", "trigonometric", "polynomial"}) {
    CAPTURE(spec);
    CHECK(gap(run(spec, turned).weights, run(spec, in).weights) == 0);
  }
}

TEST_CASE("PolaFormer: of an odd number of channels the middle one is read by equal signs") {
  const MechanismInput in = random_head(5, 5, 2, 3, "causal");
  const MechanismResult r = run("polaformer power=1 same=1 opposite=1", in);
  const Matrix q = matrix_of(in.q), k = matrix_of(in.k), v = matrix_of(in.v);
  const auto by = [&](bool same) {
    return normalised(in, [&](Index i, Index j) {
      double sum = 0;
      for (std::size_t c = 0; c < 2; ++c) {
        const double both = q[static_cast<std::size_t>(i)][c] * k[static_cast<std::size_t>(j)][c];
        if ((both > 0) == same) sum += std::abs(both);
      }
      return sum;
    });
  };
  const Matrix same = times(by(true), v), opposite = times(by(false), v);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(r.output.at(static_cast<Index>(i), 0) == doctest::Approx(same[i][0]).epsilon(1e-4));
    CHECK(r.output.at(static_cast<Index>(i), 1) == doctest::Approx(same[i][1]).epsilon(1e-4));
    CHECK(r.output.at(static_cast<Index>(i), 2) == doctest::Approx(opposite[i][2]).epsilon(1e-4));
  }
}

TEST_CASE("the delta rule with a decay and half a write, token by token in double") {
  const MechanismInput in = random_head(7, 7, 3, 2, "causal");
  const MechanismResult r = run("delta beta=0.5 decay=0.8", in);
  const MechanismChoice choice = parse_mechanism("delta beta=0.5 decay=0.8");
  const auto unit = [](Matrix x) {  // queries and keys of length 1
    for (auto& each : x) {
      const double length = std::sqrt(dot(each, each));
      for (double& value : each) value /= length;
    }
    return x;
  };
  const Matrix q = unit(matrix_of(in.q)), k = unit(matrix_of(in.k)), v = matrix_of(in.v);
  Matrix state(3, std::vector<double>(2, 0)), out;
  for (std::size_t t = 0; t < 7; ++t) {
    std::vector<double> held(2, 0), row(2, 0);
    for (auto& each : state)
      for (double& x : each) x *= 0.8;
    for (std::size_t c = 0; c < 3; ++c)
      for (std::size_t e = 0; e < 2; ++e) held[e] += k[t][c] * state[c][e];
    for (std::size_t c = 0; c < 3; ++c)
      for (std::size_t e = 0; e < 2; ++e) {
        state[c][e] += 0.5 * k[t][c] * (v[t][e] - held[e]);
        row[e] += q[t][c] * state[c][e];
      }
    out.push_back(row);
  }
  CHECK(gap(r.output, out) < 1e-5);
  CHECK(gap(choice.mechanism->output(in, choice.values), out) < 1e-5);
  CHECK(gap(choice.mechanism->recurrent(in, choice.values).output, out) < 1e-5);
}

}  // namespace headscope::kernel_test
