// What the pages tell beside the weights: curves, facts and bookkeeping, each from its definition.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "core/attention/mechanism_math.h"
#include "core/base/random.h"
#include "tests/attention/mechanisms/input.h"

namespace headscope::curves_test {

using namespace testing;

namespace {

std::size_t at(Index i) {
  return static_cast<std::size_t>(i);
}
double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}
double entropy(const std::vector<double>& p) {
  double sum = 0;
  for (const double x : p)
    if (x > 0) sum -= x * std::log(x);
  return sum;
}
/// Queries that score one key 0 and the other as given.
MechanismInput against_zero(const std::vector<float>& scores) {
  const auto n = static_cast<Index>(scores.size());
  return {Tensor::from({n, 1}, scores), rows(2, 1, {1, 0}), rows(2, 1, {1, -1}), 1, parse_mask("full")};
}

}  // namespace

TEST_CASE("softmax's curve: the mean entropy of the rows at each temperature from 0.05 to 20") {
  MechanismInput in = random_head(5, 5, 4, 3, "causal");
  const MechanismResult r = run("softmax temperature=2", in, Detail::steps);
  const auto& line = r.curves.at(0).lines.at(0);
  REQUIRE(line.x.size() == 25);
  CHECK(line.x.front() == doctest::Approx(0.05));
  CHECK(line.x.back() == doctest::Approx(20));
  const auto mean_at = [&](double tau) {
    MechanismInput cooled = in;
    cooled.scale /= static_cast<float>(tau);
    double sum = 0;
    for (const auto& row : softmax_by_definition(cooled)) sum += entropy(row) / 5;
    return sum;
  };
  for (std::size_t i = 0; i < 25; ++i) {
    if (i) CHECK(line.x[i] / line.x[i - 1] == doctest::Approx(std::pow(400.0, 1 / 24.0)));
    CHECK(line.y[i] == doctest::Approx(mean_at(line.x[i])).epsilon(1e-4));
  }
  CHECK(r.curves[0].marker->first == 2);
  CHECK(r.curves[0].marker->second == doctest::Approx(mean_at(2)).epsilon(1e-5));
}

TEST_CASE("saturation's curve: two keys s apart have ‖J‖ = 2 p (1 − p), p = σ(s · sharpness)") {
  const MechanismInput in = against_zero({0.5f, 1.25f, 3});
  const auto size = [](double s) { return 2 * sigmoid(s) * (1 - sigmoid(s)); };
  const MechanismResult r = run("saturation sharpness=2 query=0.5", in, Detail::steps);
  const auto& line = r.curves.at(0).lines.at(0);
  REQUIRE(line.x.size() == 41);
  CHECK(line.x.front() == doctest::Approx(0.05));
  CHECK(line.x.back() == doctest::Approx(100));
  for (std::size_t i = 0; i < 41; ++i) {
    if (i) CHECK(line.x[i] / line.x[i - 1] == doctest::Approx(std::pow(2000.0, 1 / 40.0)));
    CHECK(std::abs(line.y[i] - size(1.25 * line.x[i])) < 1e-5);
  }
  CHECK(r.curves[0].marker->first == 2);
  CHECK(r.curves[0].marker->second == doctest::Approx(size(2.5)).epsilon(1e-4));
  CHECK(number_in(r.facts[0].value) == doctest::Approx(size(2.5)).epsilon(0.005));
  CHECK(number_in(r.facts[1].value) == doctest::Approx(sigmoid(2.5)).epsilon(0.005));
  CHECK(gap(step_of(r, "row-scores").value, Matrix{{2.5, 0}}) < 1e-6);
  // The last query without another word, the first at 0.
  CHECK(number_in(run("saturation", in, Detail::steps).facts[1].value) == doctest::Approx(sigmoid(3)).epsilon(0.005));
  CHECK(number_in(run("saturation query=0", in, Detail::steps).facts[1].value) ==
        doctest::Approx(sigmoid(0.5)).epsilon(0.005));
  // A hidden key has no part in it: its rows and columns of J are 0.
  const MechanismResult hidden = run("saturation query=0.5", random_head(3, 3, 4, 2, "causal"), Detail::steps);
  for (Index i = 0; i < 3; ++i) CHECK(step_of(hidden, "jacobian").value.at(2, i) == 0.0f);
  CHECK(step_of(hidden, "p").masked == std::vector<std::uint8_t>{0, 0, 1});
  CHECK(step_of(hidden, "row-scores").value.at(0, 2) == 0.0f);
}

TEST_CASE("entmax's curve: of two keys s apart the lesser is exactly 0 from α = 1 + 1/s on") {
  // (α − 1) s ≥ 1: zeros at α ≥ 1.625, 1.3, 1.1; a row of equals has none.
  const MechanismInput in = against_zero({1.6f, 10 / 3.0f, 0, 10});
  const MechanismResult r = run("entmax alpha=1.4", in, Detail::steps);
  const auto& line = r.curves.at(0).lines.at(0);
  REQUIRE(line.x.size() == 13);
  for (std::size_t i = 0; i < 13; ++i) {
    const double alpha = 1 + static_cast<double>(i) / 12;
    CHECK(line.x[i] == doctest::Approx(alpha));
    const int zeros = (alpha > 1.3) + (alpha > 1.1) + (alpha > 1.625);
    CHECK(line.y[i] == doctest::Approx(100.0 * zeros / 8));
  }
  CHECK(r.curves[0].marker->first == 1.4);
  CHECK(r.curves[0].marker->second == doctest::Approx(25));
  CHECK(r.facts[0].value == "25 % of 8 cells");
  // Cells that the mask hides are not counted: of 6 in a triangle of 3 × 3.
  MechanismInput triangle{Tensor::full({3, 1}, 5.0f), rows(3, 1, {1, 0, 0}), rows(3, 1, {1, 2, 3}), 1,
                          parse_mask("causal")};
  const MechanismResult seen = run("entmax alpha=2", triangle, Detail::steps);
  CHECK(seen.facts[0].value == "50 % of 6 cells");
  CHECK(seen.curves[0].lines[0].y.back() == doctest::Approx(50));
  // By hand at α = 2: p = s − τ, so τ = 5 − 1 where one key has it all.
  CHECK(gap(step_of(seen, "threshold").value, Matrix{{4}, {4}, {4}}) < 1e-5);
  CHECK(gap(seen.weights, Matrix{{1, 0, 0}, {1, 0, 0}, {1, 0, 0}}) < 1e-6);
}

TEST_CASE("the spectrum of two rows by hand: P Pᵀ of (1, 0) and (½, ½) has eigenvalues (3 ± √5) ÷ 4") {
  MechanismInput in{rows(2, 1, {0, 0}), rows(2, 1, {1, 1}), rows(2, 1, {1, 3}), 1, parse_mask("causal")};
  const double first = (3 + std::sqrt(5.0)) / 4, share = 100 * first / 1.5;  // 87.3 %
  const MechanismResult one = run("low-rank rank=1", in, Detail::steps),
                        two = run("low-rank rank=2", in, Detail::steps);
  const auto& line = one.curves.at(0).lines.at(0);
  CHECK(line.x == std::vector<double>{1, 2});
  CHECK(line.y[0] == doctest::Approx(share).epsilon(1e-6));
  CHECK(line.y[1] == doctest::Approx(100));
  CHECK(one.curves[0].marker->first == 1);
  CHECK(one.curves[0].marker->second == doctest::Approx(share).epsilon(1e-6));
  CHECK(two.curves[0].marker->second == doctest::Approx(100));
  CHECK(one.facts[0].value == "2 of 2");  // 87.3 % are less than 90
  CHECK(one.facts[1].value == "87.3 %");
  CHECK(two.facts[1].value == "100.0 %");
  CHECK(step_of(one, "sigma").value.at(0, 0) == doctest::Approx(std::sqrt(first)).epsilon(1e-5));
  CHECK(step_of(one, "sigma").value.at(1, 0) == doctest::Approx(std::sqrt(1.5 - first)).epsilon(1e-5));
}

TEST_CASE("dispersion's curves in closed form: one key Δ above n − 1 equal ones, and the bound ln n") {
  const MechanismInput in = random_head(2, 2, 4, 4, "full");
  const MechanismResult r = run("dispersion margin=3 trained=64", in, Detail::steps);
  REQUIRE(r.curves.size() == 2);
  REQUIRE(r.curves[0].lines.size() == 2);
  REQUIRE(r.curves[1].lines.size() == 3);
  REQUIRE(r.curves[0].lines[0].x.size() == 16);  // 2 … 65,536
  for (std::size_t i = 0; i < 16; ++i) {
    const double n = std::pow(2.0, static_cast<double>(i + 1));
    for (std::size_t scaled = 0; scaled < 2; ++scaled) {
      const double delta = 3 * (scaled ? std::log(n) / std::log(64.0) : 1);
      const double best = std::exp(delta) / (std::exp(delta) + n - 1), other = 1 / (std::exp(delta) + n - 1);
      CHECK(r.curves[0].lines[scaled].x[i] == n);
      CHECK(r.curves[1].lines[scaled].x[i] == n);
      CHECK(r.curves[0].lines[scaled].y[i] == doctest::Approx(best).epsilon(1e-4));
      CHECK(r.curves[1].lines[scaled].y[i] ==
            doctest::Approx(-best * std::log(best) - (n - 1) * other * std::log(other)).epsilon(1e-3));
    }
    CHECK(r.curves[1].lines[2].x[i] == n);
    CHECK(r.curves[1].lines[2].y[i] == doctest::Approx(std::log(n)));
  }
  const double e = std::exp(3.0), e2 = std::exp(2.0), e8 = std::exp(8.0);  // 3 · 4/6 and 3 · 16/6
  CHECK(number_in(r.facts[0].value) == doctest::Approx(e / (e + 15)).epsilon(0.005));
  CHECK(number_in(r.facts[0].value.substr(r.facts[0].value.find(", ") + 2)) ==
        doctest::Approx(e / (e + 65535)).epsilon(0.005));
  CHECK(number_in(r.facts[1].value) == doctest::Approx(e2 / (e2 + 15)).epsilon(0.005));
  CHECK(number_in(r.facts[1].value.substr(r.facts[1].value.find(", ") + 2)) ==
        doctest::Approx(e8 / (e8 + 65535)).epsilon(0.005));
  // Drawn: the best stands Δ above the largest of the others, which are N(0, 1) from the seed.
  const MechanismResult of_drawn = run("dispersion margin=3 trained=64 drawn=on seed=9", in, Detail::steps);
  Random random(9);
  double most = 0, sum = 0;
  std::vector<double> others;
  for (int j = 1; j < 16; ++j) others.push_back(static_cast<double>(random.normal()));
  for (const double s : others) most = std::max(most, s);
  for (const double s : others) sum += std::exp(s - most - 3);
  CHECK(of_drawn.curves[0].lines[0].y[3] == doctest::Approx(1 / (1 + sum)).epsilon(1e-4));
}

TEST_CASE("histograms of q·k: densities with the mean 0 and the variance d, and 1 once divided by √d") {
  const MechanismResult r = run("dot-variance", random_head(2, 2, 4, 4, "full"), Detail::steps);
  REQUIRE(r.curves.size() == 5);  // variances, gradients, two histograms, entropy
  const double widths[] = {8, 32, 128, 512};
  for (std::size_t curve = 0; curve < 2; ++curve) {
    REQUIRE(r.curves[2 + curve].lines.size() == 4);
    const double reach = curve == 0 ? 60 : 4, bin = 2 * reach / 61;
    for (std::size_t w = 0; w < 4; ++w) {
      const auto& line = r.curves[2 + curve].lines[w];
      CAPTURE(line.label);
      CHECK(line.label == "d = " + std::to_string(static_cast<int>(widths[w])));
      double mass = 0, mean = 0, square = 0;
      for (std::size_t b = 0; b < 61; ++b) {
        CHECK(line.x[b] == doctest::Approx(bin * (static_cast<double>(b) - 30)));
        mass += line.y[b] * bin, mean += line.y[b] * bin * line.x[b], square += line.y[b] * bin * line.x[b] * line.x[b];
      }
      const double deviation = curve == 0 ? std::sqrt(widths[w]) : 1;
      if (reach > 5 * deviation) {  // nothing lies beyond: all 20,000 are there
        CHECK(mass == doctest::Approx(1).epsilon(1e-9));
        CHECK(std::abs(mean) < 0.03 * deviation);
        CHECK(square - bin * bin / 12 == doctest::Approx(widths[w]).epsilon(0.04));
      }
      // Of many terms a bell: at 0 and one deviation away, within what 20,000 draws scatter.
      if (w == 3)
        for (std::size_t b = 0; b < 61; ++b) {
          const double bell = std::exp(-std::pow(line.x[b] / deviation, 2) / 2) / (deviation * std::sqrt(6.283185307));
          CHECK(std::abs(line.y[b] - bell) < 5 * std::sqrt(bell / (20000 * bin)) + 0.01 / deviation);
        }
    }
  }
  // Entropy of 64 scores of N(0, d): below ln 64 by half the variance while scores are small, d = 1; near 0 at 512.
  for (std::size_t divided = 0; divided < 2; ++divided) {
    const auto& line = r.curves[4].lines[divided];
    REQUIRE(line.x.size() == 10);
    for (std::size_t i = 0; i < 10; ++i) CHECK(line.x[i] == std::pow(2.0, static_cast<double>(i)));
  }
  CHECK(r.curves[4].lines[0].y[0] == r.curves[4].lines[1].y[0]);
  const MechanismResult own = run("dot-variance width=100", random_head(2, 2, 4, 4, "full"), Detail::steps);
  // The variance of the 20,000 sums that the seed gives, less one degree of freedom: pairs of 512 products, each of the
  // two normal numbers that Box & Muller make of two uniform ones; width 100 takes the first 100.
  Random random(1);
  double sum = 0, squares = 0;
  for (int pair = 0; pair < 20000; ++pair) {
    double x = 0;
    for (int c = 0; c < 512; ++c) {
      const double length = std::sqrt(-2 * std::log(1 - random.uniform())), angle = 2 * M_PI * random.uniform();
      if (c < 100) x += length * std::cos(angle) * length * std::sin(angle);
    }
    sum += x, squares += x * x;
  }
  const double variance = (squares - sum * sum / 20000) / 19999;
  CHECK(number_in(own.facts[0].value) == doctest::Approx(variance).epsilon(1e-4));
  CHECK(number_in(own.facts[1].value) == doctest::Approx(variance / 100).epsilon(1e-3));
  CHECK(own.facts[0].value.ends_with("expected 100"));
  CHECK(own.facts[0].provenance == "of 20000 drawn pairs of width 100");
}

TEST_CASE("a ring's work: of four workers under the causal mask six of sixteen rounds are idle") {
  const MechanismInput in = random_head(8, 8, 4, 6, "causal");
  const MechanismResult r = run("ring workers=4", in, Detail::steps);
  // Worker w holds in round r the keys of w − r; those of a later worker are all ahead.
  for (Index w = 0; w < 4; ++w)
    for (Index round = 0; round < 4; ++round) {
      CHECK(step_of(r, "schedule").value.at(w, round) == static_cast<float>((w - round + 4) % 4));
      CHECK(step_of(r, "busy").value.at(w, round) == (round <= w ? 1.0f : 0.15f));
    }
  CHECK(r.facts[0].value == "38 % of worker rounds");  // 6 of 16
  CHECK(r.facts[1].value == "80 B per worker");        // 2 keys · (4 + 6) · 4
  // After two rounds: 8 worked or idle, only worker 0 idle in the second; blocks of three tokens for three workers.
  const MechanismResult begun = run("ring workers=4 rounds=2", in, Detail::steps);
  CHECK(begun.facts[0].value == "12 % of worker rounds");
  CHECK(step_of(begun, "busy").masked == std::vector<std::uint8_t>{0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1});
  CHECK(begun.weights.at(7, 3) == 0.0f);  // worker 3 has met the keys of 3 and 2
  const auto scores = [&](Index j) {
    return static_cast<double>(in.scale) * dot(matrix_of(in.q)[7], matrix_of(in.k)[at(j)]);
  };
  double sum = 0;
  for (Index j = 4; j < 8; ++j) sum += std::exp(scores(j));
  CHECK(begun.weights.at(7, 5) == doctest::Approx(std::exp(scores(5)) / sum).epsilon(1e-4));
  CHECK(run("ring workers=3", in, Detail::steps).facts[1].value == "120 B per worker");
  CHECK(run("ring workers=4", random_head(8, 8, 4, 6, "full"), Detail::steps).facts[0].value == "0 % of worker rounds");
}

TEST_CASE("FlashAttention's bytes, tiles and running numbers, by hand") {
  // 12 tokens, d = 4, d_v = 6, tiles of 4 × 3: three blocks of rows.
  const MechanismInput in = random_head(12, 12, 4, 6, "causal");
  const MechanismResult r = run("flash fit=off rows=4 columns=3", in, Detail::steps);
  CHECK(r.facts[0].value == "12 of 12 done, 3 skipped");
  // Q and O once: 12 · 10; K and V for each block of rows: 3 · 12 · 10; 4 B each: 1920. Plain: 4 (12 · 20 + 4 · 144).
  CHECK(r.facts[1].value == "1.9 kB against 3.3 kB");
  CHECK(r.facts[2].value == "328 B");  // 4 (12 + 7 · 4 + 7 · 6)
  const Tensor& schedule = step_of(r, "schedule").value;
  // Rows 0–3, 4–7, 8–11; keys 0–2, 3–5, 6–8, 9–11. The last tile is the newest.
  CHECK(gap(schedule, Matrix{{0.6, 0.6, 0.25, 0.25}, {0.6, 0.6, 0.6, 0.25}, {0.6, 0.6, 0.6, 1}}) < 1e-6);
  const Matrix q = matrix_of(in.q), k = matrix_of(in.k), v = matrix_of(in.v);
  for (std::size_t i = 0; i < 12; ++i) {
    double most = -1e9, sum = 0;
    std::vector<double> s, mixed(6, 0.0);
    for (std::size_t j = 0; j <= i; ++j) s.push_back(static_cast<double>(in.scale) * dot(q[i], k[j]));
    for (const double x : s) most = std::max(most, x);
    for (std::size_t j = 0; j <= i; ++j) {
      sum += std::exp(s[j] - most);
      for (std::size_t c = 0; c < 6; ++c) mixed[c] += std::exp(s[j] - most) * v[j][c];
    }
    const auto row = static_cast<Index>(i);
    CHECK(step_of(r, "max").value.at(row, 0) == doctest::Approx(most).epsilon(1e-4));
    CHECK(step_of(r, "sum").value.at(row, 0) == doctest::Approx(sum).epsilon(1e-4));
    for (Index c = 0; c < 6; ++c)
      CHECK(static_cast<double>(step_of(r, "mixed").value.at(row, c)) == doctest::Approx(mixed[at(c)]).epsilon(1e-3));
    CHECK(step_of(r, "scores").value.at(row, 0) == doctest::Approx(s[0]).epsilon(1e-4));
  }
  // The first tile of twelve alone: rows after it have no maximum yet, and are shown as 0.
  const MechanismResult begun = run("flash fit=off rows=4 columns=3 done=0.0833333333", in, Detail::steps);
  CHECK(begun.facts[0].value == "1 of 12 done, 0 skipped");
  CHECK(step_of(begun, "max").value.at(11, 0) == 0.0f);
  CHECK(step_of(begun, "schedule").value.at(0, 0) == 1.0f);
  CHECK(step_of(begun, "schedule").value.at(0, 1) == 0.0f);
  // 1 KiB are 256 numbers: 4 keys (11 each) and a row (10) fit; (256 − 4 · 10) ÷ (4 + 10) = 15 rows, of 12.
  const std::string fitted = run("flash memory=1", in, Detail::steps).facts[2].provenance;
  CHECK(fitted.starts_with("tiles of 12 × 4:"));
  // Too little for d = 64 keys of width 128 (129 each): (256 − 128) ÷ 129 → 1 key; (256 − 128) ÷ 129 → 1 row.
  CHECK(run("flash memory=1", random_head(3, 3, 64, 64, "full"), Detail::steps)
            .facts[2]
            .provenance.starts_with("tiles of 1 × 1:"));
}

TEST_CASE("Titans' surprise and loss: by hand on two tokens with one key") {
  // k = (1, 0) twice, v = (3, 4) then (1, 0); M = 0 at first. ‖0 − v‖² = 25; the gradient 2 (M k − v) kᵀ is 10 long.
  const MechanismInput in{rows(2, 2, {2, 0, 0, 5}), rows(2, 2, {7, 0, 2, 0}), rows(2, 2, {3, 4, 1, 0}), 1,
                          parse_mask("causal")};
  const MechanismResult r = run("titans learning=0.25 momentum=0.5 forgetting=0.2", in, Detail::steps);
  // S₁ = ¼ · 2 v kᵀ: M₁ k = (1.5, 2). Then M k − v = (0.5, 2): 4.25, and 2 √4.25.
  CHECK(gap(step_of(r, "loss").value, Matrix{{25}, {4.25}}) < 1e-5);
  CHECK(gap(step_of(r, "surprise").value, Matrix{{10}, {2 * std::sqrt(4.25)}}) < 1e-5);
  REQUIRE(r.curves.size() == 1);
  CHECK(r.curves[0].lines[0].x == std::vector<double>{0, 1});
  CHECK(r.curves[0].lines[0].y[0] == doctest::Approx(10));
  CHECK(r.curves[0].lines[0].y[1] == doctest::Approx(2 * std::sqrt(4.25)));
  // Query (1, 0) after the first token; (0, 1) after the second finds nothing. M₂ k = 0.8 (1.5, 2) + ½ (1.5, 2) − ½
  // (0.5, 2).
  CHECK(gap(r.output, Matrix{{1.5, 2}, {0, 0}}) < 1e-5);
  MechanismInput same = in;
  same.q = rows(2, 2, {2, 0, 5, 0});
  const MechanismResult asked = run("titans learning=0.25 momentum=0.5 forgetting=0.2", same, Detail::steps);
  CHECK(gap(asked.output, Matrix{{1.5, 2}, {1.7, 1.6}}) < 1e-5);
  CHECK(gap(asked.weights, Matrix{{0.5, 0}, {0.4, 0.5}}) < 1e-5);  // 0.4 (3, 4) + 0.5 (1, 0)
}

TEST_CASE("hierarchical softmax: a word's probability is the product of σ(± w·h) along its path") {
  const MechanismInput in = random_head(3, 3, 8, 8, "full");
  const MechanismResult r = run("vocabulary-softmax frequencies=zipf words=4 seed=6", in, Detail::steps);
  // Of 12 : 6 : 4 : 3 words 3 and 2 join (2 on the right) at node 0; words 1 and that (on the right) at node 1; word 0
  // and that (on the right) at the root.
  Random random(6);
  double drive[3];
  for (double& x : drive) {
    x = 0;
    for (Index c = 0; c < 8; ++c) x += static_cast<double>(random.normal()) * static_cast<double>(in.q.at(2, c));
    x /= std::sqrt(8.0);
  }
  const double right = sigmoid(drive[2]), deep = right * sigmoid(drive[1]);
  const double expected[] = {sigmoid(-drive[2]), right * sigmoid(-drive[1]), deep * sigmoid(drive[0]),
                             deep * sigmoid(-drive[0])};
  const auto &tree = r.curves.at(1).lines.at(0), &zipf = r.curves.at(1).lines.at(1);
  for (std::size_t word = 0; word < 4; ++word) {
    CHECK(tree.x[word] == static_cast<double>(word + 1));
    CHECK(tree.y[word] == doctest::Approx(expected[word]).epsilon(1e-6));
    CHECK(zipf.y[word] == doctest::Approx(12.0 / static_cast<double>(word + 1) / 25));
    CHECK(r.curves.at(0).lines.at(1).y[word] == 2);  // log₂ 4
  }
  CHECK(r.facts[5].value == "1.80 steps");  // (12 + 2 · 6 + 3 · 7) ÷ 25
  CHECK(r.facts[5].provenance == "Σ f · steps; a balanced tree takes 2.00");
  CHECK(r.facts[2].value == "14, ÷ 2");  // 1.8 · 8 of 32
  // Of a large vocabulary every 12th word is drawn, and the first twenty-one.
  const MechanismCurve::Line many =
      run("vocabulary-softmax frequencies=zipf words=5000", in, Detail::steps).curves.at(0).lines.at(0);
  CHECK(many.x[20] == 21);
  CHECK(many.x[21] == 25);
  CHECK(many.x[22] == 37);
}

TEST_CASE("HiPPO: the kernel C Āᵗ B̄ of two numbers and what they recall, with the matrices written out") {
  const MechanismInput in = random_head(6, 6, 4, 2, "causal");
  const MechanismResult r = run("state-space system=hippo size=2 step=0.2 c=2", in, Detail::steps);
  // x' = −A x + B u with A = (1, 0; √3, 2), B = (1, √3): (1 + ΔA/2) x₊ = (1 − ΔA/2) x + Δ B u, solved from the top.
  const auto step = [](std::vector<double> x, double half, double input) {
    const double first = ((1 - half) * x[0] + input) / (1 + half);
    const double second = (-half * std::sqrt(3.0) * x[0] + (1 - 2 * half) * x[1] + std::sqrt(3.0) * input -
                           half * std::sqrt(3.0) * first) /
                          (1 + 2 * half);
    return std::vector<double>{first, second};
  };
  std::vector<double> x{0, 0};
  const auto& kernel = r.curves.at(0).lines.at(0);
  for (std::size_t t = 0; t < 6; ++t) {
    x = step(x, 0.1, t == 0 ? 0.2 : 0);
    CHECK(kernel.x[t] == static_cast<double>(t));
    CHECK(kernel.y[t] == doctest::Approx(x[0] + x[1]).epsilon(1e-6));  // C = c ÷ size for each
    CHECK(r.weights.at(5, static_cast<Index>(5 - t)) == doctest::Approx(kernel.y[t]).epsilon(1e-5));
  }
  // LegS: the step to token t is 1/t long; the state is read as x₀ + √3 x₁ (2 (s + ½)/n − 1).
  std::vector<double> memory{0, 0};
  for (Index t = 0; t < 6; ++t) {
    const double tokens = static_cast<double>(t + 1);
    memory = step(memory, 0.5 / tokens, static_cast<double>(in.v.at(t, 0)) / tokens);
  }
  REQUIRE(r.curves.size() == 3);
  CHECK(r.curves[2].lines[1].label == "recalled from 2 numbers");
  for (std::size_t s = 0; s < 6; ++s) {
    CHECK(r.curves[2].lines[0].y[s] == doctest::Approx(static_cast<double>(in.v.at(static_cast<Index>(s), 0))));
    CHECK(r.curves[2].lines[1].x[s] == static_cast<double>(s));
    CHECK(r.curves[2].lines[1].y[s] ==
          doctest::Approx(memory[0] + std::sqrt(3.0) * memory[1] * (2 * (static_cast<double>(s) + 0.5) / 6 - 1))
              .epsilon(1e-6));
  }
  CHECK(run("state-space", in, Detail::steps).curves[2].lines[1].label == "recalled from 8 numbers");
}

TEST_CASE("the cells' third line is attention's: log₁₀ of w √d_v, one hop whatever the distance") {
  const MechanismInput in = random_head(7, 7, 4, 9, "causal");
  const Matrix w = softmax_by_definition(in);
  for (const char* id : {"rnn", "lstm"}) {
    const MechanismCurve::Line line = run(id, in, Detail::steps).curves.at(0).lines.at(2);
    CHECK(line.label == "attention");
    for (std::size_t back = 0; back < 7; ++back) {
      CHECK(line.x[back] == static_cast<double>(back));
      CHECK(line.y[back] == doctest::Approx(std::log10(3 * w[6][6 - back])).epsilon(1e-5));
    }
  }
}

}  // namespace headscope::curves_test
