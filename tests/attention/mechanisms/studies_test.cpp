// The studies: what they claim, counted.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "core/attention/mechanism_math.h"
#include "core/attention/rule_edits.h"
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
  CHECK(line(r, 4, 0).y.back() < 0.3 * line(r, 4, 0).y.front());
  CHECK(line(r, 4, 1).y.back() == doctest::Approx(line(r, 4, 1).y[4]).epsilon(0.1));
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

TEST_CASE("a model's own X and weights: X W + b, and in how many rows the diagonal is the largest, counted") {
  MechanismInput in = random_head(6, 6, 3, 2, "causal");
  auto own = std::make_shared<HeadProjections>();
  own->x = random_tensor({6, 5}, 11);
  own->q = random_tensor({5, 3}, 12), own->k = random_tensor({5, 3}, 13), own->v = random_tensor({5, 2}, 14);
  own->q_bias = random_tensor({3}, 15);
  own->from = "a layer";
  in.projections = own;
  const auto made = [&](const Tensor& w, const Tensor& b) {
    Matrix out = times(matrix_of(own->x), matrix_of(w));
    for (auto& row : out)
      for (std::size_t c = 0; c < row.size(); ++c)
        row[c] += b.defined() ? static_cast<double>(b.at(static_cast<Index>(c))) : 0.0;
    return out;
  };
  const Matrix q = made(own->q, own->q_bias), k = made(own->k, {}), v = made(own->v, {}), x = matrix_of(own->x);
  const MechanismResult r = run("projections", in, Detail::steps);
  CHECK(gap(step_of(r, "q").value, q) < 1e-5);
  CHECK(gap(step_of(r, "k").value, k) < 1e-5);
  CHECK(gap(step_of(r, "v").value, v) < 1e-5);
  CHECK(step_of(r, "q").title == "Q = X W_Q + b");
  CHECK(step_of(r, "k").title == "K = X W_K");  // which has none
  const auto counted = [](const Matrix& a, const Matrix& b) {
    int count = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      bool largest = true;
      for (const auto& other : b) largest = largest && dot(a[i], other) <= dot(a[i], b[i]) + 1e-12;
      count += largest;
    }
    return std::to_string(count) + " of 6 rows";
  };
  CHECK(r.facts[2].value == counted(x, x));
  CHECK(r.facts[3].value == counted(q, k));
  CHECK(r.facts[2].value != r.facts[3].value);
  const Mechanism& m = *find_mechanism("projections");
  const std::string note = m.note(in, m.usual(), r);
  CHECK(note.find("largest of its row in " + counted(x, x)) != std::string::npos);
  CHECK(note.find("largest in " + counted(q, k)) != std::string::npos);
  // What the head reads, its mask and scale kept.
  Matrix output;
  for (std::size_t i = 0; i < 6; ++i) {
    double sum = 0;
    std::vector<double> row(2, 0.0);
    for (std::size_t j = 0; j <= i; ++j) {
      const double e = std::exp(static_cast<double>(in.scale) * dot(q[i], k[j]));
      sum += e;
      for (std::size_t c = 0; c < 2; ++c) row[c] += e * v[j][c];
    }
    for (double& each : row) each /= sum;
    output.push_back(row);
  }
  CHECK(gap(step_of(r, "output").value, output) < 1e-5);
  // With a logit of the head's own in every row: e^½ more in the sum, which the cell says, and softmax(X Xᵀ) has not.
  MechanismInput sunk = in;
  sunk.rule = sink_rule(in.rule, 0.5f);
  const MechanismResult with = run("projections", sunk, Detail::steps);
  const double score = static_cast<double>(in.scale) * dot(q[0], k[0]);
  const double own_weight = std::exp(score) / (std::exp(score) + std::exp(0.5));
  CHECK(step_of(with, "weights").value.at(0, 0) == doctest::Approx(own_weight).epsilon(1e-5));
  CHECK(step_of(with, "weights").explain(0, 0) ==
        fmt::format("exp({}) ÷ (Σ exp over the row + e^0.50 of the sink) = {}", mechanism::brief(score),
                    mechanism::brief(own_weight)));
  CHECK(step_of(r, "weights").explain(0, 0) ==
        fmt::format("exp({}) ÷ Σ exp over the row = 1", mechanism::brief(score)));
  CHECK(step_of(with, "similar").explain(0, 0).find("sink") == std::string::npos);
  // The example by hand stands beside it, with its words.
  CHECK(step_of(r, "two-hot-scores").value.at(0, 2) == 1.0f);
  CHECK(step_of(r, "two-hot-scores").row_names == std::vector<std::string>{"Welcome", "to", "Starbucks"});
  CHECK(step_of(r, "two-hot-scores").explain(0, 2) == "1·1 + 0·0 + 1·0 + 0·1 = 1");
}

TEST_CASE("a layer's own heads: each with its own numbers, through the rows of W_O that are its own") {
  std::vector<Tensor> q, k, v;
  for (std::uint64_t h = 0; h < 3; ++h)
    q.push_back(random_tensor({5, 4}, 20 + h)), k.push_back(random_tensor({5, 4}, 30 + h)),
        v.push_back(random_tensor({5, 2}, 40 + h));
  auto layer = std::make_shared<HeadsOfLayer>();
  layer->layer = 1, layer->layers = 2, layer->q = q, layer->k = k, layer->v = v;
  MechanismInput in = input_of_head(layer, 1);
  in.scale = 0.7f;
  in.rule = parse_mask("causal");
  auto own = std::make_shared<HeadProjections>();
  own->o = random_tensor({6, 7}, 50);
  in.projections = own;
  const MechanismResult r = run("multi-head", in, Detail::steps);
  const Matrix o = matrix_of(own->o);
  Matrix expected(5, std::vector<double>(7, 0.0));
  Tensor norms = Tensor::zeros({5, 3});
  for (std::size_t h = 0; h < 3; ++h) {
    MechanismInput each = in;
    each.q = q[h], each.k = k[h], each.v = v[h];
    const Matrix p = softmax_by_definition(each);
    CHECK(gap(step_of(r, "head-" + std::to_string(h)).value, p) < 1e-6);
    const Matrix part = times(times(p, matrix_of(v[h])), Matrix{o[2 * h], o[2 * h + 1]});
    for (std::size_t i = 0; i < 5; ++i) {
      double square = 0;
      for (std::size_t c = 0; c < 7; ++c) expected[i][c] += part[i][c], square += part[i][c] * part[i][c];
      norms.ref(static_cast<Index>(i), static_cast<Index>(h)) = static_cast<float>(std::sqrt(square));
    }
  }
  CHECK(gap(step_of(r, "at-once").value, expected) < 1e-5);
  CHECK(gap(step_of(r, "sum").value, expected) < 1e-5);
  CHECK(gap(step_of(r, "norms").value, norms) < 1e-5);
  CHECK(number_in(r.facts[0].value) < 1e-5);
  CHECK(r.facts[1].value == "3 of width 4");
  CHECK(r.facts[3].value == "Q, K, V of the whole layer, its own W_O");
  // Cut anew: any number from 1 to d, here of width 12 and values of width 6.
  for (const int heads : {1, 2, 3, 6})
    CHECK(run("multi-head own=off heads=" + std::to_string(heads), in, Detail::steps).facts[1].value ==
          std::to_string(heads) + " of width " + std::to_string(12 / heads));
  CHECK(gap(step_of(run("multi-head own=off heads=6", in, Detail::steps), "at-once").value, expected) > 1e-3);
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

TEST_CASE("cross-attention between two texts of one length is not cut; of one text the rows name their own tokens") {
  MechanismInput in = random_head(6, 6, 4, 4, "causal");
  in.two_texts = true;
  const MechanismResult whole = run("cross", in, Detail::steps);
  CHECK(step_of(whole, "weights").value.shape() == Shape({6, 6}));
  CHECK(step_of(whole, "weights").first_row == 0);
  CHECK(step_of(whole, "weights").value.at(0, 5) > 0);  // no mask
  in.two_texts = false;
  const MechanismResult cut = run("cross cut=0.5", in, Detail::steps);
  CHECK(step_of(cut, "weights").first_row == 3);
  CHECK(step_of(cut, "q").first_row == 3);
  CHECK(step_of(cut, "k").first_row == 0);
}

TEST_CASE("the gradient of a row of softmax: ‖diag(p) − p pᵀ‖ cell by cell, ½ √2 … 0") {
  for (const auto& p : {std::vector<double>{0.5, 0.5}, {0.7, 0.2, 0.1}, {0, 1, 0}}) {
    double square = 0;
    for (std::size_t i = 0; i < p.size(); ++i)
      for (std::size_t j = 0; j < p.size(); ++j) square += std::pow((i == j ? p[i] : 0) - p[i] * p[j], 2);
    CHECK(mechanism::softmax_gradient(rows(1, static_cast<Index>(p.size()), {p.begin(), p.end()})) ==
          doctest::Approx(std::sqrt(square)).epsilon(1e-5));
  }
  CHECK(mechanism::softmax_gradient(rows(1, 2, {0.5f, 0.5f})) == doctest::Approx(0.5));
  CHECK(mechanism::softmax_gradient(rows(1, 2, {1, 0})) == 0);
  // Two keys: J = a (1 − a) (1 −1; −1 1), ‖J‖ = 2 a (1 − a). Sharp rows keep their digits.
  for (const float a : {1e-3f, 1e-6f, 1e-12f, 1e-30f})
    CHECK(mechanism::softmax_gradient(rows(1, 2, {1 - a, a})) /
              (2 * static_cast<double>(a) * (1 - static_cast<double>(a))) ==
          doctest::Approx(1).epsilon(1e-6));
}

TEST_CASE("unscaled scores lose their gradient as d grows, scaled ones keep it; bars of variance are as high as d") {
  const MechanismInput in = random_head(3, 3, 4, 4, "causal");
  const MechanismResult r = run("dot-variance width=100", in, Detail::steps);
  const auto& bars = line(r, 0, 0);
  CHECK(r.curves[0].bars);
  CHECK(r.curves[0].marker->first == 100);
  CHECK(std::ranges::count(bars.x, 100.0) == 1);
  for (std::size_t i = 0; i < bars.x.size(); ++i) CHECK(bars.y[i] == doctest::Approx(bars.x[i]).epsilon(0.06));
  const auto &plain = line(r, 1, 0), &scaled = line(r, 1, 1);
  REQUIRE(plain.x.back() == 512);
  CHECK(plain.x.front() == 1);
  CHECK(plain.y.front() == doctest::Approx(scaled.y.front()));  // √1
  // As NumPy draws them: 0.004 at 512 in place of 0.18.
  CHECK(plain.y.back() < 0.01);
  CHECK(scaled.y.back() == doctest::Approx(0.18).epsilon(0.1));
  CHECK(scaled.y[3] == doctest::Approx(0.18).epsilon(0.1));  // d = 8
  CHECK(r.curves[1].marker->first == 100);
  CHECK(number_in(r.facts[3].value) == doctest::Approx(plain.y.back()).epsilon(0.05));
}

TEST_CASE("the way to one word: its code, the probability of every turn, their product, what was not taken") {
  MechanismInput in = random_head(3, 3, 8, 8, "full");
  // Frequencies 0.1, 0.5, 0.15, 0.25: {0.1, 0.15} → 0.25, with 0.25 → 0.5, with 0.5 the root. Ranks: b d c a.
  in.vocabulary = std::make_shared<const VocabularyUse>(
      VocabularyUse{{0.1, 0.5, 0.15, 0.25}, random_tensor({1, 8}, 3), "a model", {"a", "b", "c", "d"}});
  const MechanismResult r = run("vocabulary-softmax word=4", in, Detail::steps);
  REQUIRE(r.path);
  const MechanismPath& path = *r.path;
  CHECK(path.leaf == "a");
  CHECK(path.frequency == 0.1);
  REQUIRE(path.turns.size() == 3);
  CHECK(path.turns[0].other == "b");
  CHECK(path.turns[1].other == "d");
  CHECK(path.turns[2].other == "c");
  CHECK(path.turns[0].share == doctest::Approx(0.5));
  CHECK(path.turns[1].share == doctest::Approx(0.25));
  CHECK(path.turns[2].bit == 0);  // the rarer of the two that were joined first
  double product = 1;
  for (const auto& turn : path.turns) product *= turn.probability;
  CHECK(path.product == doctest::Approx(product));
  CHECK(path.product == doctest::Approx(line(r, 1, 0).y[3]));  // as the curve over all words says
  // Two words that part at the last turn: their probabilities there sum to 1.
  const MechanismPath c = *run("vocabulary-softmax word=3", in, Detail::steps).path;
  CHECK(c.leaf == "c");
  CHECK(c.turns[2].bit == 1);
  CHECK(c.turns[2].probability + path.turns[2].probability == doctest::Approx(1));
  CHECK(c.turns[0].probability == path.turns[0].probability);
  CHECK(run("vocabulary-softmax word=1", in, Detail::steps).path->turns[0].other == "3 words");
  REQUIRE(path.costs.size() == 3);
  CHECK(path.costs[0].multiply_adds == 32);  // V = 4, d = 8
  CHECK(path.costs[1].multiply_adds == doctest::Approx(14));
  CHECK(r.curves[0].marker == std::pair{4.0, 3.0});
  double share = 0;
  Index leaves = 0;
  for (const auto& cluster : path.clusters) share += cluster.share, leaves += cluster.leaves;
  CHECK(share == doctest::Approx(1));
  CHECK(leaves == 4);
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

TEST_CASE("why projections: whose output it is, the head's or that of Q and K without positions and norms") {
  MechanismInput in = random_head(6, 6, 3, 2, "causal");
  auto own = std::make_shared<HeadProjections>();
  own->x = random_tensor({6, 5}, 11);
  own->q = random_tensor({5, 3}, 12), own->k = random_tensor({5, 3}, 13), own->v = random_tensor({5, 2}, 14);
  in.projections = own;
  const auto formula = [&] { return step_of(run("projections", in, Detail::steps), "output").formula; };
  CHECK(formula() == "without positions and norms: not what the head reads");
  const MechanismResult r = run("projections", in, Detail::steps);
  in.q = step_of(r, "q").value.copy(), in.k = step_of(r, "k").value.copy(), in.v = step_of(r, "v").value.copy();
  CHECK(formula() == "what the head reads");
  CHECK(gap(step_of(run("projections", in, Detail::steps), "output").value, run("softmax", in).output) < 1e-6);
  in.k.ref(5, 0) += 0.01f;  // one key is turned
  CHECK(formula() == "without positions and norms: not what the head reads");
  in.k.ref(5, 0) -= 0.01f;
  // A learned sink takes its part: with the logit 0 a row of one score s has the weight e^s ÷ (e^s + 1).
  class Sink final : public AttentionRule {
   public:
    KeyRange keys(Index query, Index) const override { return {0, query + 1}; }
    std::string describe() const override { return "causal, with a sink"; }
    float sink(Index) const override { return 0; }
  };
  in.rule = std::make_shared<Sink>();
  const double s = static_cast<double>(in.scale) * dot(matrix_of(in.q)[0], matrix_of(in.k)[0]);
  CHECK(step_of(run("projections", in, Detail::steps), "weights").value.at(0, 0) ==
        doctest::Approx(std::exp(s) / (std::exp(s) + 1)));
}

TEST_CASE("many heads: both ways to W_O are computed, and one cell's parts add up to it") {
  const MechanismInput in = random_head(9, 9, 24, 24, "causal");
  const MechanismResult r = run("multi-head heads=6", in, Detail::steps);
  const double difference = number_in(r.facts[0].value);
  CHECK(difference > 0);  // the sums run in another order
  CHECK(difference < 1e-5);
  const std::string told = step_of(r, "sum").explain(4, 7);
  CHECK(std::ranges::count(told, '+') == 5);
  CHECK(told.ends_with(" = " + mechanism::brief(static_cast<double>(step_of(r, "at-once").value.at(4, 7)), true)));
}

}  // namespace headscope::studies_test
