// The studies: what they claim, counted.

#include <doctest/doctest.h>

#include "tests/attention/mechanisms/input.h"

namespace headscope::studies_test {

using namespace testing;

namespace {
const MechanismCurve::Line& line(const MechanismResult& r, std::size_t curve, std::size_t index) {
  return r.curves.at(curve).lines.at(index);
}
}  // namespace

TEST_CASE("every study gives something to look at, on any input") {
  for (const Mechanism& m : mechanisms())
    if (m.study) {
      CAPTURE(m.id);
      const MechanismInput in = random_head(9, 9, 8, 8, "causal");
      const MechanismResult r = m.run(in, m.usual(), Detail::steps);
      CHECK(!r.weights.defined());
      CHECK(r.steps.size() + r.curves.size() > 0);
      CHECK(!m.note(in, m.usual(), r).empty());
    }
}

TEST_CASE("the Jacobian of a row: by hand, and 0 where the row is one-hot") {
  MechanismInput in{rows(1, 1, {1}), rows(2, 1, {0, 0}), rows(2, 1, {1, 2}), 1, parse_mask("full")};
  const MechanismResult even = run("saturation sharpness=1", in, Detail::steps);
  CHECK(step_of(even, "jacobian").value.at(0, 0) == doctest::Approx(0.25));  // ½ − ¼
  CHECK(step_of(even, "jacobian").value.at(0, 1) == doctest::Approx(-0.25));
  CHECK(number_in(even.facts[0].value) == doctest::Approx(0.5));
  in.k = rows(2, 1, {0, 50});
  CHECK(number_in(run("saturation", in, Detail::steps).facts[0].value) < 1e-6);
}

TEST_CASE("the variance of q·k is d, within 3 %") {
  const MechanismInput in = random_head(2, 2, 4, 4, "full");
  for (const int d : {8, 64, 512}) {
    const MechanismResult r = run("dot-variance width=" + std::to_string(d), in, Detail::steps);
    CHECK(number_in(r.facts[0].value) == doctest::Approx(d).epsilon(0.03));
    CHECK(number_in(r.facts[1].value) == doctest::Approx(1).epsilon(0.03));
  }
  // Unscaled entropy falls with d, scaled it stays.
  const MechanismResult r = run("dot-variance", in, Detail::steps);
  CHECK(line(r, 2, 0).y.back() < 0.3 * line(r, 2, 0).y.front());
  CHECK(line(r, 2, 1).y.back() == doctest::Approx(line(r, 2, 1).y[4]).epsilon(0.1));
}

TEST_CASE("dispersion: the best key's weight falls, the entropy rises, as the closed form says") {
  const MechanismInput in = random_head(2, 2, 4, 4, "full");
  const MechanismResult r = run("dispersion margin=5 trained=16", in, Detail::steps);
  const auto& weight = line(r, 0, 0);
  for (std::size_t i = 0; i < weight.x.size(); ++i) {
    CHECK(weight.y[i] == doctest::Approx(std::exp(5.0) / (std::exp(5.0) + weight.x[i] - 1)).epsilon(1e-4));
    if (i) CHECK(weight.y[i] < weight.y[i - 1]);
    if (i) CHECK(line(r, 1, 0).y[i] > line(r, 1, 0).y[i - 1]);
  }
  CHECK(line(r, 0, 1).y[3] == doctest::Approx(weight.y[3]));  // at n = m = 16 nothing changes
  // Others drawn from N(0, 1), none of which reaches the best: it keeps at least what e^Δ gives it against equals.
  const MechanismResult of_drawn = run("dispersion margin=5 trained=16 drawn=on", in, Detail::steps);
  const auto& drawn = line(of_drawn, 0, 0);
  for (std::size_t i = 1; i < drawn.x.size(); ++i) CHECK(drawn.y[i] > weight.y[i]);
}

TEST_CASE("X Xᵀ is symmetric with the largest diagonal; with projections neither holds") {
  const Tensor x = rows(3, 4, {1, 0, 1, 0, 0, 1, 0, 1, 1, 0, 0, 1});  // "Welcome to Starbucks", two-hot
  const MechanismInput in{x, x, x, 1, parse_mask("full")};
  const MechanismResult r = run("projections", in, Detail::steps);
  const Tensor& s = step_of(r, "plain").value;
  for (Index i = 0; i < 3; ++i)
    for (Index j = 0; j < 3; ++j) {
      CHECK(s.at(i, j) == s.at(j, i));
      CHECK(s.at(i, i) >= s.at(i, j));
    }
  CHECK(s.at(0, 2) == 1.0f);  // Welcome and Starbucks share a part
  CHECK(s.at(0, 1) == 0.0f);
  CHECK(number_in(r.facts[0].value) == 0);
  CHECK(number_in(r.facts[1].value) > 0.1);
  CHECK(r.facts[2].value == "3 of 3 rows");
  CHECK(r.facts[3].value != "3 of 3 rows");
}

TEST_CASE("heads side by side times W_O is the sum of the heads' own parts; parameters do not depend on h") {
  const MechanismInput in = random_head(10, 10, 24, 24, "causal");
  for (const int heads : {1, 2, 3, 8, 24}) {
    const MechanismResult r = run("multi-head heads=" + std::to_string(heads), in, Detail::steps);
    CHECK(gap(step_of(r, "at-once").value, step_of(r, "sum").value) < 1e-5);
    CHECK(r.facts[1].value == std::to_string(heads) + " of width " + std::to_string(24 / heads));
    CHECK(r.facts[2].value == "1050624 attention, 2097152 FFN weights");
  }
  // One head is softmax attention.
  const MechanismResult one = run("multi-head heads=1", in, Detail::steps);
  CHECK(gap(step_of(one, "head-0").value, softmax_by_definition(in)) < 1e-6);
}

TEST_CASE("cross-attention: decoder length × encoder length, rows that sum to 1") {
  const MechanismResult r = run("cross cut=0.25", random_head(12, 12, 4, 4, "causal"), Detail::steps);
  const Tensor& p = step_of(r, "weights").value;
  CHECK(p.shape() == Shape({9, 3}));
  for (Index i = 0; i < 9; ++i) CHECK(p.at(i, 0) + p.at(i, 1) + p.at(i, 2) == doctest::Approx(1));
  CHECK(step_of(run("cross", random_head(5, 7, 4, 4, "full"), Detail::steps), "weights").value.shape() ==
        Shape({5, 7}));
}

TEST_CASE("cross-attention: the second part's queries on the first part's keys and values, without a mask") {
  const MechanismInput text = random_head(12, 12, 4, 5, "causal", 8), two = random_head(6, 9, 4, 5, "causal", 9);
  const Matrix q = matrix_of(text.q), k = matrix_of(text.k), v = matrix_of(text.v);
  struct Case {
    const char* spec;
    const MechanismInput& in;
    Matrix asking, keys, values;
  };
  const auto part = [](const Matrix& of, std::ptrdiff_t from, std::ptrdiff_t to) {
    return Matrix(of.begin() + from, of.begin() + to);
  };
  for (const Case& c : {Case{"cross cut=0.25", text, part(q, 3, 12), part(k, 0, 3), part(v, 0, 3)},
                        Case{"cross", text, part(q, 6, 12), part(k, 0, 6), part(v, 0, 6)},
                        Case{"cross", two, matrix_of(two.q), matrix_of(two.k), matrix_of(two.v)}}) {
    CAPTURE(c.spec);
    Matrix weights;
    for (const auto& query : c.asking) {
      weights.emplace_back();
      double sum = 0;
      for (const auto& key : c.keys) sum += weights.back().emplace_back(std::exp(dot(query, key) / 2));  // √4
      for (double& weight : weights.back()) weight /= sum;
    }
    const MechanismResult r = run(c.spec, c.in, Detail::steps);
    CHECK(gap(step_of(r, "weights").value, weights) < 1e-6);
    CHECK(gap(step_of(r, "output").value, times(weights, c.values)) < 1e-5);
    CHECK(r.facts[0].value == std::to_string(c.asking.size()) + " × " + std::to_string(c.keys.size()));
  }
}

TEST_CASE("adaptive softmax: multiply-adds of a head of words and two narrower clusters, by hand") {
  MechanismInput in = random_head(3, 3, 8, 8, "full");
  in.vocabulary = std::make_shared<const VocabularyUse>(
      VocabularyUse{{0.3, 0.2, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05}, random_tensor({1, 8}, 3), "a model"});
  const MechanismResult r = run("vocabulary-softmax", in, Detail::steps);
  CHECK(r.facts[1].value == "80 multiply-adds");  // V d = 10 · 8
  // A fifth of the words, 2, and an entry for each cluster: 4 · 8 = 32. A third of the rest, 2 words, come 0.2 of the
  // time, through 8 → 2 (16) and 2 · 2: 4. The other 6 come 0.3 of the time, through 8 → ½ (4) and 6 · ½: 2.1.
  CHECK(r.facts[3].value == "38, ÷ 2.1");  // 80 ÷ 38.1
  CHECK(r.facts[3].provenance == "head 2 words; clusters of 2 and 6 words, reached 20.0 % and 30.0 % of the time");
}

TEST_CASE("hierarchical softmax: leaves sum to 1, and a tree of four words is Huffman's") {
  const MechanismInput in = random_head(3, 3, 8, 8, "full");
  for (const char* words : {"2", "17", "5000"})
    CHECK(number_in(run(std::string("vocabulary-softmax words=") + words, in, Detail::steps).facts[0].value) ==
          doctest::Approx(1).epsilon(1e-5));
  // 12 : 6 : 4 : 3 of 25: {3, 4} → 7, {6, 7} → 13, {12, 13}: paths 1, 2, 3, 3.
  const MechanismResult four = run("vocabulary-softmax words=4", in, Detail::steps);
  CHECK(line(four, 0, 0).y == std::vector<double>{1, 2, 3, 3});
}

TEST_CASE("hierarchical softmax over the open model's words: its own frequencies, whatever their order") {
  MechanismInput in = random_head(3, 3, 8, 8, "full");
  // Frequencies 0.1, 0.5, 0.15, 0.25: {0.1, 0.15} → 0.25, {0.25, 0.25} → 0.5: paths 1, 2, 3, 3 by rank.
  in.vocabulary =
      std::make_shared<const VocabularyUse>(VocabularyUse{{0.1, 0.5, 0.15, 0.25}, random_tensor({1, 8}, 3), "a model"});
  const MechanismResult own = run("vocabulary-softmax", in, Detail::steps);
  CHECK(line(own, 0, 0).y == std::vector<double>{1, 2, 3, 3});
  CHECK(line(own, 1, 1).y == std::vector<double>{0.5, 0.25, 0.15, 0.1});
  CHECK(number_in(own.facts[0].value) == doctest::Approx(1).epsilon(1e-5));
  CHECK(own.facts[1].value == "32 multiply-adds");  // V = 4, d = 8
  CHECK(number_in(own.facts[2].value) == 14);       // 0.5 + 0.5 + 0.75 steps
  CHECK(own.facts[4].value == "4 words, d = 8");
  CHECK(own.facts[4].provenance.find("a model") != std::string::npos);
  CHECK(run("vocabulary-softmax frequencies=zipf words=17", in, Detail::steps).facts[4].value == "17 words, d = 8");
}

}  // namespace headscope::studies_test
