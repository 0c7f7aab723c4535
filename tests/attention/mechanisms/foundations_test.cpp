// Look-up, rank, kernel identity, softmax as loops, mask values, dropout: against sums by hand and definitions in
// double.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/attention/mechanism_report.h"
#include "core/attention/rule_edits.h"
#include "tests/attention/mechanisms/input.h"

namespace headscope::foundations_test {

using namespace testing;

namespace {
MechanismInput example(std::string_view id) {
  return std::ranges::find(worked_examples(), id, &WorkedExample::id)->input();
}
const std::string& value_of(const MechanismResult& r, std::string_view name) {
  return std::ranges::find(r.facts, name, &MechanismFact::name)->value;
}
}  // namespace

TEST_CASE("look-up: a word among four, 2 : 1 : 5 : 3, hard and soft") {
  const MechanismResult r = run("look-up", example("apple"), Detail::steps);
  const Tensor &soft = step_of(r, "soft").value, &hard = step_of(r, "hard").value;
  const double shares[] = {2, 1, 5, 3};
  for (Index j = 0; j < 4; ++j) {
    CHECK(soft.at(0, j) == doctest::Approx(shares[j] / 11));
    CHECK(hard.at(0, j) == (j == 2 ? 1.0f : 0.0f));
    CHECK(step_of(r, "soft-read").value.at(0, j) == doctest::Approx(shares[j] / 11));  // one-hot values
    CHECK(step_of(r, "hard-read").value.at(0, j) == (j == 2 ? 1.0f : 0.0f));
  }
  CHECK(value_of(r, "Hard look-up") == "key 2, and no other");
  // √((4 + 1 + 36 + 9)/121) = √50 ÷ 11
  CHECK(number_in(value_of(r, "Distance of the two")) == doctest::Approx(std::sqrt(50.0) / 11).epsilon(2e-3));
  // Σ p_i² (1 − p_i)² + Σ_{i≠j} p_i² p_j², the entries of diag(p) − p pᵀ
  double squares = 0;
  for (Index i = 0; i < 4; ++i)
    for (Index j = 0; j < 4; ++j) squares += std::pow(shares[i] / 11 * ((i == j) - shares[j] / 11), 2);
  CHECK(number_in(value_of(r, "Gradient, soft")) == doctest::Approx(std::sqrt(squares)).epsilon(3e-3));
}

TEST_CASE("look-up: six books in 11 hours, and the sharpness that makes it a dictionary") {
  const MechanismInput books = example("library");
  const MechanismResult r = run("look-up", books, Detail::steps);
  for (Index j = 0; j < 6; ++j)
    CHECK(step_of(r, "soft").value.at(0, j) == doctest::Approx(j < 5 ? 2.0 / 11 : 1.0 / 11));  // 0.18 …, 0.09
  // Five books match equally well: the first is the hard one's; however sharp, the soft one blends all five.
  CHECK(value_of(r, "Hard look-up") == "key 0, and no other");
  const MechanismResult sharp = run("look-up sharpness=100", books, Detail::steps);
  CHECK(number_in(value_of(sharp, "Keys that are blended")) == doctest::Approx(5).epsilon(0.01));
  const MechanismResult word = run("look-up sharpness=100", example("apple"), Detail::steps);
  CHECK(number_in(value_of(word, "Distance of the two")) < 1e-6);
  CHECK(number_in(value_of(word, "Keys that are blended")) == doctest::Approx(1));
  // What the mask hides is not found.
  MechanismInput text = random_head(4, 4, 3, 3, "causal");
  text.k = rows(4, 3, {0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 9, 9}), text.q = rows(4, 3, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1});
  CHECK(value_of(run("look-up query=0.34", text, Detail::steps), "Hard look-up") == "key 0, and no other");
  CHECK(value_of(run("look-up query=1", text, Detail::steps), "Hard look-up") == "key 3, and no other");
}

TEST_CASE("rank: Q Kᵀ has at most d singular values, softmax more; the last of d = 3") {
  const MechanismInput in = random_head(20, 20, 3, 3, "causal");
  const MechanismResult r = run("rank", in, Detail::steps);
  CHECK(value_of(r, "Bound") == "rank(Q Kᵀ) ≤ d = 3");
  CHECK(number_in(value_of(r, "Rank of Q Kᵀ")) == 3);
  CHECK(number_in(value_of(r, "Rank after softmax")) > 3);
  CHECK(number_in(value_of(r, "Rank under the mask")) == 20);  // a triangle with a positive diagonal
  const auto& chart = r.curves[0].lines;
  REQUIRE(chart.size() == 4);
  CHECK(chart[1].y[2] > -3);   // σ₃ of Q Kᵀ is there …
  CHECK(chart[1].y[3] == -8);  // … σ₄ is not
  CHECK(chart[0].y[3] > -8);
  CHECK(chart[3].x == std::vector<double>{3, 3});
  // Scores so flat that every row is even: rank 1.
  CHECK(number_in(value_of(
            run("rank",
                {rows(4, 1, {0, 0, 0, 0}), rows(4, 1, {1, 2, 3, 4}), rows(4, 1, {1, 2, 3, 4}), 1, parse_mask("full")},
                Detail::steps),
            "Rank after softmax")) == 1);
}

TEST_CASE("gaussian: with the bonus softmax, without it the distance alone, and the ½") {
  for (const char* mask : {"causal", "full", "window 3"}) {
    CAPTURE(mask);
    const MechanismInput in = random_head(9, 9, 4, 5, mask);
    CHECK(gap(run("gaussian lengths=on", in).weights, softmax_by_definition(in)) < 1e-6);
    const Matrix q = matrix_of(in.q), k = matrix_of(in.k);
    const MechanismResult alone = run("gaussian", in, Detail::steps);
    CHECK(gap(alone.weights, normalised(in, [&](Index i, Index j) {
                double apart = 0;
                for (std::size_t c = 0; c < 4; ++c)
                  apart += std::pow(q[static_cast<std::size_t>(i)][c] - k[static_cast<std::size_t>(j)][c], 2);
                return std::exp(-static_cast<double>(in.scale) * apart / 2);
              })) < 1e-6);
    CHECK(number_in(value_of(alone, "exp(q·k) against the product")) < 1e-12);
  }
  // x = 2, y = 1: e^(4/2) e^(−1/2) e^(1/2) = e². Without the ½: e⁴ e^(−1/2) e¹, that is e^2.5 times too large.
  const MechanismResult one =
      run("gaussian", {rows(1, 1, {2}), rows(1, 1, {1}), rows(1, 1, {1}), 1, parse_mask("full")}, Detail::steps);
  CHECK(step_of(one, "query-factor").value.at(0, 0) == doctest::Approx(std::exp(2.0)));
  CHECK(step_of(one, "kernel").value.at(0, 0) == doctest::Approx(std::exp(-0.5)));
  CHECK(step_of(one, "key-factor").value.at(0, 0) == doctest::Approx(std::exp(0.5)));
  CHECK(step_of(one, "exponential").value.at(0, 0) == doctest::Approx(std::exp(2.0)));
  CHECK(value_of(one, "With ‖·‖² in place of ‖·‖²/2") == "e^2.5 … e^2.5 times too large");
  // Beyond float32 the steps are logarithms.
  const MechanismResult far =
      run("gaussian", {rows(1, 1, {20}), rows(1, 1, {10}), rows(1, 1, {1}), 1, parse_mask("full")}, Detail::steps);
  CHECK(step_of(far, "exponential").title == "ln exp(q·k)");
  CHECK(step_of(far, "exponential").value.at(0, 0) == doctest::Approx(200));
}

TEST_CASE("dpfp: products of neighbours of relu([x, −x]), by hand") {
  // x = (1, −2): r = (1, 0, 0, 2). Shift 1: r₀r₁, r₁r₂, r₂r₃, r₃r₀ = 0, 0, 0, 2. Shift 2: 0, 0, 0, 0. Shift 3: r₀r₃ …
  // = 2, 0, 0, 0.
  const MechanismInput in{rows(1, 2, {1, -2}), rows(1, 2, {1, -2}), rows(1, 1, {3}), 1, parse_mask("full")};
  const MechanismResult r = run("dpfp nu=3 normalise=none", in, Detail::steps);
  const Tensor& phi = step_of(r, "phi-k").value;
  REQUIRE(phi.shape() == Shape({1, 12}));
  const float expected[] = {0, 0, 0, 2, 0, 0, 0, 0, 2, 0, 0, 0};
  for (Index c = 0; c < 12; ++c) CHECK(phi.at(0, c) == expected[c]);
  CHECK(r.output.at(0, 0) == 24);  // φ·φ = 8, times 3
  CHECK(run("dpfp nu=1 normalise=none", in, Detail::steps).output.at(0, 0) == 12);
  // Opposite keys share no feature.
  const MechanismInput apart{rows(1, 2, {1, -2}), rows(1, 2, {-1, 2}), rows(1, 1, {3}), 1, parse_mask("full")};
  CHECK(run("dpfp nu=1 normalise=none", apart, Detail::steps).output.at(0, 0) == 0);
}

TEST_CASE("softmax as loops: reads and writes as counted by hand, one result") {
  const MechanismInput in{rows(1, 1, {1}), rows(4, 1, {1, 3, 2, 0}), rows(4, 2, {1, 0, 0, 1, 1, 1, 2, 0}), 1,
                          parse_mask("full")};
  const MechanismResult r = run("softmax-loops", in, Detail::steps);
  CHECK(value_of(r, "As defined, two loops") == "2 reads and 1 write of 4 scores: 48 bytes");
  CHECK(value_of(r, "Safe, three loops") == "3 reads and 1 write of 4 scores: 64 bytes");
  CHECK(value_of(r, "Online, two loops") == "2 reads and 1 write of 4 scores: 48 bytes");
  CHECK(value_of(r, "Online with V, one loop") == "1 read and no write of 4 scores: 16 bytes");
  const Tensor &m = step_of(r, "maxima").value, &l = step_of(r, "sums").value;
  const float maxima[] = {1, 3, 3, 3};
  const double sums[] = {1, std::exp(-2.0) + 1, std::exp(-2.0) + 1 + std::exp(-1.0),
                         std::exp(-2.0) + 1 + std::exp(-1.0) + std::exp(-3.0)};
  for (Index j = 0; j < 4; ++j) {
    CHECK(m.at(0, j) == maxima[j]);
    CHECK(l.at(0, j) == doctest::Approx(sums[j]));
  }
  const Matrix weights = softmax_by_definition(in);
  CHECK(gap(step_of(r, "weights").value, weights) < 1e-6);
  CHECK(gap(step_of(r, "defined").value, weights) < 1e-6);
  CHECK(gap(step_of(r, "mixed").value, times(weights, matrix_of(in.v))) < 1e-6);
  // Raised by 100 the plain sum overflows; the others do not notice.
  const MechanismResult high = run("softmax-loops raise=100", in, Detail::steps);
  CHECK(value_of(high, "As defined, two loops").find("overflows") != std::string::npos);
  CHECK(gap(step_of(high, "weights").value, weights) < 1e-5);
  CHECK(gap(step_of(high, "mixed").value, times(weights, matrix_of(in.v))) < 1e-5);
}

TEST_CASE("mask value: the same while a key is seen, apart when the whole row is hidden") {
  const MechanismInput in{rows(1, 1, {1}), rows(4, 1, {1, 3, 2, 0}), rows(4, 1, {1, 2, 3, 4}), 1, parse_mask("full")};
  const MechanismResult half = run("mask-value hidden=0.5", in, Detail::steps);
  for (const char* id : {"infinity", "billion"}) {
    const Tensor& w = step_of(half, id).value;
    CHECK(w.at(0, 0) == doctest::Approx(1 / (1 + std::exp(2.0))));
    CHECK(w.at(0, 2) == 0);
  }
  const MechanismResult whole = run("mask-value hidden=1", in, Detail::steps);
  CHECK(value_of(whole, "−∞") == "4 weights are not a number");
  CHECK(value_of(whole, "−10⁹, float32") == "1 of the weight on hidden keys");
  CHECK(value_of(whole, "−10⁹, float16") == "4 weights are not a number");  // −10⁹ is −∞ there
  CHECK(value_of(whole, "−65,504, float16") == "1 of the weight on hidden keys");
  CHECK(value_of(whole, "In this program") == "0 everywhere");
  CHECK(step_of(whole, "billion").value.at(0, 1) == doctest::Approx(0.25));
  CHECK(step_of(whole, "infinity").masked == std::vector<std::uint8_t>{1, 1, 1, 1});
}

TEST_CASE("dropout: the expected output is kept, the variance is w² v² p ÷ (1 − p)") {
  // One query, two keys with ½ each, values 2 and 4, p = ½: weights become 0 or 1, the output 0, 2, 4 or 6 with ¼ each:
  // mean 3, variance 5.
  const MechanismInput in{rows(1, 1, {0}), rows(2, 1, {0, 0}), rows(2, 1, {2, 4}), 1, parse_mask("full")};
  const MechanismResult r = run("dropout p=0.5 draws=1000", in, Detail::steps);
  for (Index j = 0; j < 2; ++j) {
    const float w = step_of(r, "dropped").value.at(0, j);
    CHECK((w == 0 || w == 1));
  }
  CHECK(step_of(r, "mean").value.at(0, 0) == doctest::Approx(3).epsilon(0.06));  // ± 2.5 standard errors
  CHECK(number_in(value_of(r, "… and by the formula")) == doctest::Approx(std::sqrt(5.0) / 3).epsilon(2e-3));
  CHECK(number_in(value_of(r, "One draw − output, measured")) == doctest::Approx(std::sqrt(5.0) / 3).epsilon(0.06));
  CHECK(value_of(r, "Row sums") == "0 … 2");
  const MechanismResult none = run("dropout p=0", in, Detail::steps);
  CHECK(gap(step_of(none, "dropped").value, step_of(none, "weights").value) == 0);
}

TEST_CASE("look-up: what is blended is counted among the keys that the query sees") {
  const MechanismResult r = run("look-up query=0.5", random_head(9, 9, 3, 3, "causal"), Detail::steps);
  CHECK(value_of(r, "Keys that are blended").ends_with(" of 5"));
  const std::string note = find_mechanism("look-up")->note(random_head(9, 9, 3, 3, "causal"), {}, r);
  CHECK(note.find("of 5 keys") != std::string::npos);
}

TEST_CASE("softmax as defined: the sum overflows where no weight does, and underflows far below") {
  const auto of = [](std::vector<float> scores) {
    const auto m = static_cast<Index>(scores.size());
    return run("softmax-loops",
               {rows(1, 1, {1}), rows(m, 1, std::move(scores)), Tensor::zeros({m, 1}), 1, parse_mask("full")},
               Detail::steps);
  };
  const auto has_defined = [](const MechanismResult& r) {
    return std::ranges::any_of(r.steps, [](const MechanismStep& s) { return s.id == "defined"; });
  };
  // e^88 = 1.65 · 10³⁸: two fit below 3.4 · 10³⁸, three do not, though every eˣ is a number.
  CHECK(has_defined(of({88, 88})));
  const MechanismResult over = of({88, 88, 88}), under = of({-105, -106}), low = of({-100, -106});
  CHECK_FALSE(has_defined(over));
  CHECK(value_of(over, "As defined, two loops").find("overflows") != std::string::npos);
  CHECK_FALSE(has_defined(under));
  CHECK(value_of(under, "As defined, two loops").find("underflows") != std::string::npos);
  CHECK(has_defined(low));
  for (const MechanismResult* r : {&over, &under})
    CHECK(step_of(*r, "weights").value.at(0, 0) > 0.3f);  // the online form does not notice
}

TEST_CASE("softmax as defined: a sum that is not a number gives no weights either, and is not called ∞") {
  // 0 · ∞ is no number.
  const MechanismInput in{rows(1, 1, {0}), rows(2, 1, {std::numeric_limits<float>::infinity(), 1}),
                          Tensor::zeros({2, 1}), 1, parse_mask("full")};
  const MechanismResult r = run("softmax-loops", in, Detail::steps);
  CHECK(std::ranges::none_of(r.steps, [](const MechanismStep& s) { return s.id == "defined"; }));
  CHECK(value_of(r, "As defined, two loops") ==
        "2 reads and 1 write of 2 scores: 24 bytes; overflows: Σ eˣ is not a number in float32, no weight comes out");
}

TEST_CASE("a learned sink takes part in a row's softmax: look-up, saturation, and what they say of it") {
  // Scores ln 2, 0 and −1 beside a sink of ½: weights over 2 + 1 + 1/e + √e.
  MechanismInput in{rows(1, 1, {1}), rows(3, 1, {std::log(2.0f), 0, -1}), rows(3, 1, {1, 10, 100}), 1,
                    sink_rule(parse_mask("full"), 0.5f)};
  const double e = std::exp(1.0), sum = 2 + 1 + 1 / e + std::sqrt(e);
  const std::vector<double> p = {2 / sum, 1 / sum, 1 / e / sum};
  double square = 0;
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) square += std::pow((i == j ? p[i] : 0) - p[i] * p[j], 2);

  const MechanismResult look = run("look-up query=1", in, Detail::steps);
  CHECK(gap(step_of(look, "soft").value, Matrix{p}) < 1e-6);
  CHECK(step_of(look, "soft-read").value.at(0, 0) == doctest::Approx(p[0] + 10 * p[1] + 100 * p[2]));
  CHECK(step_of(look, "soft").formula == "e^score ÷ (Σ e^score + e^0.5)");
  CHECK(step_of(look, "soft").explain(0, 0) == "e^0.693 ÷ (Σ e^score + e^0.5) = 0.399");
  CHECK(number_in(value_of(look, "Soft look-up")) == doctest::Approx(p[0]).epsilon(2e-3));
  CHECK(number_in(value_of(look, "Gradient, soft")) == doctest::Approx(std::sqrt(square)).epsilon(2e-3));

  const MechanismResult jacobian = run("saturation", in, Detail::steps);
  CHECK(gap(step_of(jacobian, "p").value, Matrix{p}) < 1e-6);
  CHECK(step_of(jacobian, "p").formula == "softmax of the row: e^score ÷ (Σ e^score + e^0.5)");
  CHECK(step_of(jacobian, "jacobian").value.at(0, 0) == doctest::Approx(p[0] - p[0] * p[0]));
  CHECK(jacobian.curves[0].marker->second == doctest::Approx(std::sqrt(square)));
  CHECK(number_in(value_of(jacobian, "‖J‖")) == doctest::Approx(std::sqrt(square)).epsilon(2e-3));
  // Three times as sharp, the sink as it was: 8, 1 and 1/e³ beside √e.
  const double sharp = 8 + 1 + std::exp(-3.0) + std::sqrt(e);
  CHECK(step_of(run("saturation sharpness=3", in, Detail::steps), "p").value.at(0, 0) == doctest::Approx(8 / sharp));

  // The loops begin with it: m = ½, l = 1.
  const MechanismResult loops = run("softmax-loops", in, Detail::steps);
  for (const char* id : {"weights", "defined"}) CHECK(gap(step_of(loops, id).value, Matrix{p}) < 1e-6);
  CHECK(step_of(loops, "maxima").value.at(0, 0) == std::log(2.0f));
  CHECK(step_of(loops, "sums").value.at(0, 0) == doctest::Approx(1 + std::sqrt(e) / 2));
  CHECK(step_of(loops, "sums").value.at(0, 2) == doctest::Approx(sum / 2));
  CHECK(step_of(loops, "mixed").value.at(0, 0) == doctest::Approx(p[0] + 10 * p[1] + 100 * p[2]));
  CHECK(number_in(value_of(loops, "Online − safe")) < 1e-6);
  CHECK(gap(step_of(run("softmax-loops raise=80", in, Detail::steps), "weights").value, Matrix{p}) < 1e-5);

  // A sink that takes nearly all, and one that takes nearly nothing, leave the gradient its digits: p (1 − p) of one
  // key.
  for (const double sink : {20.0, -20.0}) {
    const MechanismInput one{rows(1, 1, {0}), rows(1, 1, {0}), rows(1, 1, {1}), 1,
                             sink_rule(parse_mask("full"), static_cast<float>(sink))};
    const double all = 1 + std::exp(sink), derivative = std::exp(sink) / (all * all);
    CHECK(run("saturation", one, Detail::steps).curves[0].marker->second / derivative ==
          doctest::Approx(1).epsilon(1e-5));
  }
  const MechanismInput plain{in.q, in.k, in.v, 1, parse_mask("full")};
  CHECK(step_of(run("look-up query=1", plain, Detail::steps), "soft").formula == "e^score ÷ Σ e^score");
}

TEST_CASE("gaussian: keys far apart in length, and logarithms explained as such") {
  // s ‖k‖²/2: 800 and ½, a bonus of e^799.5.
  const MechanismInput far{rows(2, 1, {40, 1}), rows(2, 1, {40, 1}), rows(2, 1, {1, 2}), 1, parse_mask("full")};
  const MechanismResult r = run("gaussian", far, Detail::steps);
  CHECK(value_of(r, "Bonus of the longest key") == "× e^800");
  CHECK(step_of(r, "kernel").title == "ln K(q, k)");
  CHECK(step_of(r, "kernel").value.at(0, 1) == doctest::Approx(-1521 / 2.0));
  CHECK(step_of(r, "kernel").explain(0, 1) == "−1.52e+03 ÷ 2 = −760");
  CHECK(run("gaussian", far).steps.empty());
  CHECK(run("gaussian", far).facts.empty());
}

TEST_CASE("log n: a row without keys is worth no token") {
  const MechanismResult r = run("log-length", random_head(5, 5, 3, 3, "causal & !window 2"), Detail::steps);
  const MechanismStep& effective = step_of(r, "effective");
  CHECK(effective.value.at(0, 0) == 0);
  CHECK(effective.value.at(2, 0) == 1);  // one key
  CHECK(effective.explain(0, 0) == "the row sees no key: 0 tokens");
  CHECK(step_of(r, "entropy").explain(1, 0) == "the row sees no key");
}

TEST_CASE("mask value: steps say what lies on hidden keys, or that nothing is a number") {
  const MechanismInput in{rows(1, 1, {1}), rows(4, 1, {1, 3, 2, 0}), rows(4, 1, {1, 2, 3, 4}), 1, parse_mask("full")};
  const MechanismResult half = run("mask-value hidden=0.5", in, Detail::steps);
  for (const char* id : {"infinity", "billion", "billion-half", "least-half"})
    CHECK(step_of(half, id).formula == "0 on hidden keys");
  CHECK(step_of(half, "row-scores").formula == "query 0; 2 of 4 keys hidden");
  CHECK(value_of(half, "In this program") == "as with −∞");
  CHECK(value_of(half, "−∞") == "0 of the weight on hidden keys");
  const MechanismResult whole = run("mask-value hidden=1", in, Detail::steps);
  CHECK(step_of(whole, "infinity").formula == "0 ÷ 0: not a number");
  CHECK(step_of(whole, "billion").formula == "1 on hidden keys");
}

TEST_CASE("look-up: where the best key's value is nothing the distance is what attention returns, unshared") {
  // Scores 2, 0: weights σ(2), σ(−2). The best value is 0, the other 3.
  const MechanismInput in{rows(1, 1, {1}), rows(2, 1, {2, 0}), rows(2, 1, {0, 3}), 1, parse_mask("full")};
  const double other = 1 / (1 + std::exp(2.0));
  const MechanismResult r = run("look-up", in, Detail::steps);
  CHECK(number_in(value_of(r, "Distance of the two")) == doctest::Approx(3 * other).epsilon(2e-3));
  CHECK(r.curves[1].marker->second == doctest::Approx(3 * other));
  CHECK(number_in(value_of(r, "Soft look-up")) == doctest::Approx(1 - other).epsilon(2e-3));
  // Of 41 sharpnesses, from 0.05 to 100: the best weight is σ(2 s).
  REQUIRE(r.curves[0].lines[0].x.size() == 41);
  CHECK(r.curves[0].lines[0].x.front() == doctest::Approx(0.05));
  CHECK(r.curves[0].lines[0].x.back() == doctest::Approx(100));
  for (std::size_t i = 0; i < 41; ++i) {
    const double sharpness = r.curves[0].lines[0].x[i], best = 1 / (1 + std::exp(-2 * sharpness));
    CHECK(r.curves[0].lines[0].y[i] == doctest::Approx(best));
    CHECK(r.curves[1].lines[0].y[i] == doctest::Approx(3 * (1 - best)).scale(1e-3));
  }
}

TEST_CASE("softmax as loops: bytes by keys seen, four for each read and write") {
  const MechanismInput in{rows(1, 1, {1}), rows(4, 1, {1, 3, 2, 0}), rows(4, 2, {1, 0, 0, 1, 1, 1, 2, 0}), 1,
                          parse_mask("full")};
  const MechanismResult r = run("softmax-loops", in, Detail::steps);
  REQUIRE(r.curves.size() == 1);
  const double accesses[] = {4, 3, 1};  // safe, online, with V
  REQUIRE(r.curves[0].lines.size() == 3);
  for (std::size_t line = 0; line < 3; ++line) {
    const auto& curve = r.curves[0].lines[line];
    CHECK(curve.x == std::vector<double>{0, 16384, 32768, 49152, 65536});
    for (std::size_t i = 0; i < curve.x.size(); ++i) CHECK(curve.y[i] == 4 * accesses[line] * curve.x[i]);
  }
}

TEST_CASE("dropout's curve: the spread grows as √(p ÷ (1 − p)), and so many draws were made as were asked for") {
  const MechanismInput in{rows(1, 1, {0}), rows(2, 1, {0, 0}), rows(2, 1, {2, 4}), 1, parse_mask("full")};
  const MechanismResult r = run("dropout p=0.25 draws=64", in, Detail::steps);
  CHECK(step_of(r, "mean").formula == "of 64 draws");
  const auto& line = r.curves[0].lines[0];
  REQUIRE(line.x.size() == 37);
  for (std::size_t i = 0; i < 37; ++i) {
    const double p = 0.025 * static_cast<double>(i);
    CHECK(line.x[i] == doctest::Approx(p));
    CHECK(line.y[i] == doctest::Approx(std::sqrt(5 * p / (1 - p)) / 3));
  }
  CHECK(r.curves[0].marker->first == 0.25);
  CHECK(r.curves[0].marker->second == doctest::Approx(std::sqrt(5.0 / 3) / 3));
  // Values of nothing: the spread itself.
  MechanismInput zeros = in;
  zeros.v = Tensor::zeros({2, 1});
  CHECK(value_of(run("dropout p=0.25 draws=64", zeros, Detail::steps), "… and by the formula") == "0");
  CHECK(step_of(r, "dropped")
            .explain(0, 0)
            .find(step_of(r, "dropped").value.at(0, 0) == 0 ? "dropped: 0.5 → 0" : "0.5 ÷ 0.75 = 0.667") == 0);
}

TEST_CASE("rank: the line of the bound is drawn where it bounds anything, whichever there are fewer of") {
  const auto lines = [](Index n, Index m, const char* spec) {
    return run(spec, random_head(n, m, 6, 4, "full"), Detail::steps).curves[0].lines;
  };
  CHECK(lines(9, 9, "rank dimensions=4").size() == 3);
  CHECK(lines(9, 9, "rank dimensions=4").back().x == std::vector<double>{4, 4});
  CHECK(lines(3, 9, "rank dimensions=4").size() == 2);
  CHECK(lines(9, 3, "rank dimensions=4").size() == 2);
  CHECK(lines(4, 9, "rank dimensions=4").size() == 2);
  CHECK(lines(5, 9, "rank dimensions=4").size() == 3);
  const MechanismInput in = random_head(9, 9, 6, 4, "causal");
  const MechanismResult r = run("rank dimensions=4", in, Detail::steps);
  CHECK(r.curves[0].lines.size() == 4);
  const MechanismChoice choice = parse_mechanism("rank dimensions=4");
  CHECK(choice.mechanism->note(in, choice.values, r) ==
        "Of the head's 6 dimensions 4 make the scores; with more tokens take them all. Q Kᵀ: rank " +
            value_of(r, "Rank of Q Kᵀ") + "; after softmax: " + value_of(r, "Rank after softmax") +
            "; under the mask: " + value_of(r, "Rank under the mask") + ".");
  // All scores 0: no singular value is larger than another, and softmax has rank 1.
  MechanismInput zeros = in;
  zeros.q = Tensor::zeros({9, 6});
  const MechanismResult none = run("rank dimensions=4", zeros, Detail::steps);
  CHECK(value_of(none, "Rank of Q Kᵀ").starts_with("0 of 9"));
  CHECK(value_of(none, "Rank after softmax").starts_with("1 of 9, 90 % energy in 1"));
  for (const double y : none.curves[0].lines[1].y) CHECK(y == none.curves[0].lines[1].y[0]);
}

TEST_CASE("gaussian: its sentence has the bonus of the longest key and the difference of the product") {
  const MechanismInput in = random_head(4, 4, 3, 3, "full");
  const MechanismResult r = run("gaussian", in, Detail::steps);
  const std::string note = find_mechanism("gaussian")->note(in, {}, r);
  CHECK(note.find("a bonus of " + r.facts[2].value + " over the shortest") != std::string::npos);
  CHECK(note.ends_with("up to " + r.facts[0].value + "."));
  CHECK(find_mechanism("gaussian")->note(in, {}, run("gaussian", in)).empty());
}

TEST_CASE("look-up: the distance of the two is a share of what the dictionary returns") {
  // Scores 2, 0: weights σ(2), σ(−2); values 4 and 1, of which the dictionary returns 4.
  const MechanismInput in{rows(1, 1, {1}), rows(2, 1, {2, 0}), rows(2, 1, {4, 1}), 1, parse_mask("full")};
  const double other = 1 / (1 + std::exp(2.0));
  const MechanismResult r = run("look-up", in, Detail::steps);
  CHECK(number_in(value_of(r, "Distance of the two")) == doctest::Approx(3 * other / 4).epsilon(2e-3));
}

}  // namespace headscope::foundations_test
