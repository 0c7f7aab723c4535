// Mechanisms around exact softmax: the worked examples, the limits, and the same result by other roads.

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanism_report.h"
#include "core/attention/mechanisms/entmax.h"
#include "core/attention/mechanisms/spectrum.h"
#include "tests/attention/mechanisms/input.h"

namespace headscope::exact_test {

using namespace testing;

TEST_CASE("one query by hand: weights 0.40, 0.20, 0.40 and output 20.0") {
  const MechanismInput in{rows(1, 2, {1, 0}), rows(3, 2, {1, 0, 0, 1, 1, 1}), rows(3, 1, {10, 20, 30}),
                          static_cast<float>(1 / std::sqrt(2.0)), parse_mask("full")};
  const MechanismResult r = run("softmax", in, Detail::steps);
  CHECK(r.weights.at(0, 0) == doctest::Approx(0.4011).epsilon(1e-3));
  CHECK(r.weights.at(0, 1) == doctest::Approx(0.1978).epsilon(1e-3));
  CHECK(r.weights.at(0, 2) == doctest::Approx(0.4011).epsilon(1e-3));
  CHECK(r.output.at(0, 0) == doctest::Approx(20.0).epsilon(1e-5));
  CHECK(step_of(r, "dots").value.at(0, 2) == 1.0f);
  CHECK(step_of(r, "scores").value.at(0, 0) == doctest::Approx(0.7071).epsilon(1e-3));
  CHECK(step_of(r, "output").explain(0, 0) == "0.40·10 + 0.20·20 + 0.40·30 = 20.0");
  CHECK(step_of(r, "dots").explain(0, 2) == "1·1 + 0·1 = 1");
}

TEST_CASE("numbers as worked examples write them") {
  const std::pair<double, const char*> written[] = {
      {0.4011, "0.40"}, {0.0211, "0.021"}, {-0.5, "−0.50"}, {10, "10"}, {20.04, "20.0"},    {-123.6, "−124"},
      {0, "0"},         {0.0996, "0.10"},  {9.996, "10.0"}, {-3, "−3"}, {3.9e-5, "3.9e-05"}};
  for (const auto& [value, text] : written) CHECK(mechanism::brief(value) == text);
  CHECK(mechanism::brief(20, true) == "20.0");
  CHECK(mechanism::brief(1, true) == "1.00");
  CHECK(mechanism::brief(0, true) == "0");
}

TEST_CASE(
    "entropy of every row, and as many tokens as would be looked at alike: ln n and n for keys alike, 0 and 1 for "
    "one") {
  // Two queries of zeros see all keys alike; the third is far on one key's side.
  const MechanismInput in{rows(3, 1, {0, 0, 60}), rows(4, 1, {1, 0, 0, 0}), rows(4, 1, {1, 2, 3, 4}), 1,
                          parse_mask("full")};
  const MechanismResult r = run("log-length trained=4", in, Detail::steps);
  CHECK(step_of(r, "entropy").value.at(0, 0) == doctest::Approx(std::log(4.0)));
  CHECK(step_of(r, "effective").value.at(1, 0) == doctest::Approx(4));
  CHECK(step_of(r, "entropy").value.at(2, 0) == doctest::Approx(0));
  CHECK(step_of(r, "effective").value.at(2, 0) == doctest::Approx(1));
  CHECK(step_of(r, "entropy").explain(0, 0) == "−Σ p ln p over 4 keys = 1.39 nats of at most ln 4 = 1.39");
  CHECK(step_of(r, "effective").explain(0, 0) == "e^1.39 = 4.00 tokens");
  CHECK(r.curves.back().lines[2].y[0] == doctest::Approx(std::log(4.0)));  // the bound
  // At n = m the scaled rows are softmax's own; causal rows see one key more each.
  const MechanismInput causal = random_head(6, 6, 4, 4, "causal");
  const MechanismResult c = run("log-length trained=6", causal, Detail::steps);
  const Matrix plain = softmax_by_definition(causal);
  for (std::size_t i = 0; i < 6; ++i) {
    double nats = 0;
    for (const double p : plain[i])
      if (p > 0) nats -= p * std::log(p);
    CHECK(c.curves.back().lines[0].y[i] == doctest::Approx(nats).epsilon(1e-4));
    CHECK(c.curves.back().lines[2].y[i] == doctest::Approx(std::log(static_cast<double>(i + 1))));
  }
  CHECK(c.curves.back().lines[1].y[5] == doctest::Approx(c.curves.back().lines[0].y[5]).epsilon(1e-4));
}

TEST_CASE("softmax attention against its definition in double, with temperature and without scale") {
  MechanismInput in = random_head(9, 9, 8, 8, "causal");
  CHECK(gap(run("softmax", in).weights, softmax_by_definition(in)) < 1e-6);
  const float usual = in.scale;
  in.scale = usual / 2.5f;
  const Matrix cooled = softmax_by_definition(in);
  in.scale = 1;
  const Matrix unscaled = softmax_by_definition(in);
  in.scale = usual;
  CHECK(gap(run("softmax temperature=2.5", in).weights, cooled) < 1e-6);
  CHECK(gap(run("softmax scaled=off", in).weights, unscaled) < 1e-5);
}

TEST_CASE("softmax's limits, its indifference to a shift, scores of ±10000, and log-softmax") {
  MechanismInput in = random_head(7, 9, 8, 4, "full", 5);
  const MechanismResult usual = run("softmax", in, Detail::steps), cold = run("softmax temperature=0.05", in),
                        hot = run("softmax temperature=20", in);
  const Tensor& scores = step_of(usual, "scores").value;
  for (Index i = 0; i < 7; ++i) {
    Index best = 0;
    double second = -1e9, sum = 0;
    for (Index j = 1; j < 9; ++j) best = scores.at(i, j) > scores.at(i, best) ? j : best;
    for (Index j = 0; j < 9; ++j)
      if (j != best) second = std::max(second, static_cast<double>(scores.at(i, j)));
    // Cold: at least what two keys alone would give it. Hot: all near 1/9.
    const double lead = static_cast<double>(scores.at(i, best)) - second;
    CHECK(static_cast<double>(cold.weights.at(i, best)) >= 1 / (1 + 8 * std::exp(-lead / 0.05)) - 1e-6);
    for (Index j = 0; j < 9; ++j) {
      CHECK(std::abs(static_cast<double>(hot.weights.at(i, j)) - 1.0 / 9) < 0.04);
      CHECK(step_of(usual, "log").value.at(i, j) == doctest::Approx(std::log(usual.weights.at(i, j))).epsilon(1e-4));
      sum += static_cast<double>(usual.weights.at(i, j));
    }
    CHECK(sum == doctest::Approx(1).epsilon(1e-6));
  }
  // A number added to a row of scores: q gets a direction in which all keys are alike.
  MechanismInput shifted{Tensor::zeros({7, 9}), Tensor::zeros({9, 9}), in.v, in.scale, in.rule};
  for (Index c = 0; c < 8; ++c) {
    for (Index i = 0; i < 7; ++i) shifted.q.ref(i, c) = in.q.at(i, c);
    for (Index j = 0; j < 9; ++j) shifted.k.ref(j, c) = in.k.at(j, c);
  }
  for (Index i = 0; i < 7; ++i) shifted.q.ref(i, 8) = 10.0f * static_cast<float>(i);
  for (Index j = 0; j < 9; ++j) shifted.k.ref(j, 8) = 1;
  CHECK(gap(run("softmax", shifted).weights, usual.weights) < 1e-5);
  const MechanismInput huge{rows(1, 1, {1}), rows(3, 1, {1e4f, -1e4f, 9999}), rows(3, 1, {1, 2, 3}), 1, in.rule};
  const MechanismResult far = run("softmax", huge, Detail::steps);
  CHECK(far.weights.at(0, 0) == doctest::Approx(1 / (1 + std::exp(-1.0))));
  CHECK(far.weights.at(0, 1) == 0.0f);
  CHECK(step_of(far, "log").value.at(0, 1) == doctest::Approx(-20000.3133).epsilon(1e-6));
}

TEST_CASE("additive scores by hand on two queries and two keys") {
  const MechanismInput in{rows(2, 2, {1, 0, 0, -1}), rows(2, 2, {0.5f, 1, -1, 2}), rows(2, 1, {1, 2}), 1,
                          parse_mask("full")};
  const Matrix expected = normalised(in, [&](Index i, Index j) {
    // Σ_c tanh(q_c + k_c)
    return std::exp(std::tanh(in.q.at(i, 0) + in.k.at(j, 0)) + std::tanh(in.q.at(i, 1) + in.k.at(j, 1)));
  });
  const MechanismResult r = run("additive", in, Detail::steps);
  CHECK(step_of(r, "scores").value.at(0, 0) == doctest::Approx(std::tanh(1.5) + std::tanh(1.0)));
  CHECK(gap(r.weights, expected) < 1e-6);
}

TEST_CASE("norms times cosine restore the score, and each part does what it is said to") {
  const MechanismInput in = random_head(10, 10, 6, 4, "causal");
  CHECK(gap(run("cosine query-norm=on key-norm=on", in).weights, softmax_by_definition(in)) < 1e-6);
  // A key's norm that grows does not matter once key norms are off (the mean apart, which scales all alike).
  const MechanismResult r = run("cosine", in, Detail::steps);
  const Tensor& cosines = step_of(r, "cosines").value;
  for (Index i = 0; i < 10; ++i)
    for (Index j = 0; j < 10; ++j) CHECK(std::abs(cosines.at(i, j)) <= 1.0001f);
  const Tensor &q = step_of(r, "q-norm").value, &k = step_of(r, "k-norm").value;
  const Matrix qm = matrix_of(in.q), km = matrix_of(in.k);
  CHECK(static_cast<double>(q.at(3, 0) * k.at(2, 0) * cosines.at(3, 2)) ==
        doctest::Approx(dot(qm[3], km[2])).epsilon(1e-4));
}

TEST_CASE("scaling by ln n changes nothing at the trained length, and flattens below it") {
  const MechanismInput in = random_head(16, 16, 6, 4, "full");
  CHECK(gap(run("log-length trained=16", in).weights, softmax_by_definition(in)) < 1e-6);
  MechanismInput half = in;
  half.scale *= static_cast<float>(std::log(16.0) / std::log(256.0));
  CHECK(gap(run("log-length trained=256", in).weights, softmax_by_definition(half)) < 1e-6);
}

TEST_CASE("scaling by ln n keeps the entropy of a row flat as the text grows, where softmax lets it spread") {
  // Forty queries 2·e_c on keys of N(0, 1): scores of N(0, 4), of which all rows and lengths are draws.
  constexpr Index queries = 40;
  Tensor q = Tensor::zeros({queries, queries});
  for (Index c = 0; c < queries; ++c) q.ref(c, c) = 2;
  const auto entropy = [&](const char* spec, Index n) {
    const MechanismInput in{q, random_tensor({n, queries}, static_cast<std::uint64_t>(n)), Tensor::zeros({n, 1}), 1.0f,
                            parse_mask("full")};
    const Tensor weights = run(spec, in).weights;
    double sum = 0;
    for (const float p : weights.values())
      if (p > 0) sum -= static_cast<double>(p) * std::log(static_cast<double>(p));
    return sum / queries;
  };
  const double start = entropy("softmax", 32);
  CHECK(entropy("log-length trained=32", 32) == doctest::Approx(start).epsilon(1e-5));
  double before = start;
  for (const Index n : {64, 128, 256, 512, 1024}) {
    CAPTURE(n);
    const double plain = entropy("softmax", n);
    CHECK(plain > before + 0.25);
    before = plain;
    CHECK(std::abs(entropy("log-length trained=32", n) - start) < 0.3);
  }
  CHECK(before > start + 2);
}

TEST_CASE("entmax: softmax at 1, the projection onto the simplex at 2, and the condition that defines it between") {
  const MechanismInput in = random_head(12, 12, 4, 4, "causal", 9);
  CHECK(gap(run("entmax alpha=1", in).weights, softmax_by_definition(in)) < 1e-6);
  std::vector<float> scores;
  const Tensor random = random_tensor({1, 24}, 4);
  for (const float s : random.values()) scores.push_back(2 * s);

  // Michelot 1986: the mean excess is taken off, what is negative leaves, until nobody leaves.
  std::vector<bool> in_set(scores.size(), true);
  double threshold = 0;
  for (bool left = true; left;) {
    double sum = 0, count = 0;
    for (std::size_t j = 0; j < scores.size(); ++j)
      if (in_set[j]) sum += static_cast<double>(scores[j]), ++count;
    threshold = (sum - 1) / count;
    left = false;
    for (std::size_t j = 0; j < scores.size(); ++j)
      if (in_set[j] && static_cast<double>(scores[j]) <= threshold) in_set[j] = false, left = true;
  }
  std::vector<float> row = scores;
  mechanism::entmax_row(row, 2);
  for (std::size_t j = 0; j < row.size(); ++j)
    CHECK(static_cast<double>(row[j]) ==
          doctest::Approx(std::max(static_cast<double>(scores[j]) - threshold, 0.0)).epsilon(1e-5));
  // By hand: (1, 0.5, −1) → threshold 0.25.
  std::vector<float> small{1.0f, 0.5f, -1.0f};
  mechanism::entmax_row(small, 2);
  CHECK(small == std::vector<float>{0.75f, 0.25f, 0.0f});

  for (const double alpha : {1.2, 1.5, 1.9}) {
    row = scores;
    mechanism::entmax_row(row, alpha);
    double sum = 0;
    for (const float p : row) sum += static_cast<double>(p);
    CHECK(sum == doctest::Approx(1).epsilon(1e-5));
    // p^(α−1) − (α−1) s is one number, −τ, wherever p > 0.
    double least = 1e9, most = -1e9;
    for (std::size_t j = 0; j < row.size(); ++j)
      if (row[j] > 1e-4f) {
        const double tau =
            (alpha - 1) * static_cast<double>(scores[j]) - std::pow(static_cast<double>(row[j]), alpha - 1);
        least = std::min(least, tau), most = std::max(most, tau);
      }
    CHECK(most - least < 1e-3);
  }
  std::vector<float> none(3, -std::numeric_limits<float>::infinity());
  mechanism::entmax_row(none, 1.5);
  CHECK(none == std::vector<float>(3, 0.0f));
  const MechanismResult sparse = run("entmax alpha=2", random_head(40, 40, 16, 4, "full", 2));
  CHECK(std::ranges::count(sparse.weights.values(), 0.0f) > 0);
}

TEST_CASE("tiles with online softmax give softmax attention, whatever their size and the mask") {
  for (const char* mask : {"causal", "full", "window 5", "global 2 window 3", "padding 4"})
    for (const char* tiles : {"rows=1 columns=1", "rows=3 columns=5", "rows=8 columns=4", "rows=64 columns=64"}) {
      CAPTURE(mask);
      CAPTURE(tiles);
      const MechanismInput in = random_head(19, 19, 6, 5, mask);
      const MechanismResult r = run(std::string("flash fit=off ") + tiles, in);
      const Matrix expected = softmax_by_definition(in);
      CHECK(gap(r.weights, expected) < 1e-5);
      CHECK(gap(r.output, times(expected, matrix_of(in.v))) < 1e-5);
    }
  const MechanismInput in = random_head(8, 8, 4, 4, "causal");
  const MechanismResult begun = run("flash fit=off rows=4 columns=4 done=0.25", in);  // the first tile of four
  CHECK(gap(begun.weights.slice(0, 4, 8), Tensor::zeros({4, 8})) == 0);
  CHECK(gap(begun.output.slice(0, 0, 4), run("softmax", in).output.slice(0, 0, 4)) < 1e-6);
  CHECK(run("flash fit=off rows=4 columns=4", in).facts[0].value ==
        "4 of 4 done, 1 skipped");  // the upper right is all hidden
}

TEST_CASE("FlashAttention's tile is the largest that fast memory holds, and moves n² d² ÷ M numbers") {
  const Mechanism& flash = *find_mechanism("flash");
  const auto moved = [&](const std::string& spec, Index d) {
    return flash.cost({32768, d, d}, parse_mechanism("flash " + spec).values).moved_bytes;
  };
  // 192 KiB are 49,152 numbers. d = 64: 64 keys take 64 · 128; each row 64 + 128: (49152 − 8192) ÷ 192 = 213 rows.
  const double n = 32768;
  CHECK(moved("memory=192", 64) == 4 * (n * 128 + std::ceil(n / 213) * n * 128));
  const Mechanism& softmax = *find_mechanism("softmax");
  CHECK(softmax.cost({32768, 64, 64}, softmax.usual()).moved_bytes / moved("memory=192", 64) > 6);
  for (const double memory : {64.0, 128.0, 256.0}) {  // twice the memory, half the bytes, up to what K and V take
    const auto spec = [](double m) { return "memory=" + std::to_string(static_cast<int>(m)); };
    CHECK(moved(spec(memory), 32) / moved(spec(2 * memory), 32) == doctest::Approx(2).epsilon(0.1));
  }
  CHECK(moved("memory=512", 64) / moved("memory=512", 32) == doctest::Approx(4).epsilon(0.15));
  // Whatever the memory, the tile fits and the result is the same.
  const MechanismInput in = random_head(23, 23, 16, 16, "causal");
  for (const int memory : {1, 2, 4, 1024}) {
    const MechanismResult r = run("flash memory=" + std::to_string(memory), in);
    CHECK(gap(r.weights, softmax_by_definition(in)) < 1e-5);
    if (memory == 1) CHECK(r.facts[0].value != "1 of 1 done, 0 skipped");
    CHECK(number_in(r.facts[2].value) * (r.facts[2].value.ends_with("kB") ? 1000 : 1) <= 1024.0 * memory + 50);
  }
}

TEST_CASE("a ring of workers gives softmax attention once every key has come round") {
  for (const char* mask : {"causal", "full", "window 4"})
    for (int workers = 1; workers <= 6; ++workers) {
      const MechanismInput in = random_head(17, 17, 6, 5, mask);
      const MechanismResult r = run("ring workers=" + std::to_string(workers), in, Detail::steps);
      const Matrix expected = softmax_by_definition(in);
      CHECK(gap(r.weights, expected) < 1e-5);
      CHECK(gap(r.output, times(expected, matrix_of(in.v))) < 1e-5);
      // Every worker meets every block once, and in each round no two hold the same.
      const Tensor& schedule = step_of(r, "schedule").value;
      for (Index a = 0; a < workers; ++a) {
        std::vector<int> row(static_cast<std::size_t>(workers), 0), column = row;
        for (Index b = 0; b < workers; ++b) {
          ++row[static_cast<std::size_t>(schedule.at(a, b))];
          ++column[static_cast<std::size_t>(schedule.at(b, a))];
        }
        CHECK(row == std::vector<int>(static_cast<std::size_t>(workers), 1));
        CHECK(column == row);
      }
    }
  const MechanismInput in = random_head(12, 12, 4, 4, "full");
  CHECK(gap(run("ring workers=4 rounds=0", in).weights, Tensor::zeros({12, 12})) == 0);
}

TEST_CASE("singular values: by hand, energy, and the error of the cut") {
  const Tensor two = rows(2, 2, {3, 0, 0, 4});
  const std::vector<double> sigma = singular_values(two);
  CHECK(sigma[0] == doctest::Approx(4));
  CHECK(sigma[1] == doctest::Approx(3));
  CHECK(energy_rank(sigma, 0.64) == 1);  // 16 of 25
  CHECK(energy_rank(sigma, 0.9) == 2);
  CHECK(numeric_rank(singular_values(rows(2, 2, {1, 2, 2, 4}))) == 1);
  const MechanismInput in = random_head(14, 14, 6, 5, "causal");
  CHECK(gap(run("low-rank rank=14", in).weights, softmax_by_definition(in)) < 1e-6);
  const auto all = singular_values(run("softmax", in).weights);
  const Tensor cut = run("low-rank rank=3", in).weights, full = run("softmax", in).weights;
  double rest = 0, error = 0;
  for (std::size_t i = 3; i < all.size(); ++i) rest += all[i] * all[i];
  for (Index i = 0; i < 14; ++i)
    for (Index j = 0; j < 14; ++j) error += std::pow(static_cast<double>(cut.at(i, j) - full.at(i, j)), 2);
  CHECK(error == doctest::Approx(rest).epsilon(1e-4));
}

TEST_CASE("attention between rows of the weights, by definition") {
  const MechanismInput in = random_head(9, 9, 6, 4, "causal");
  const Matrix a = softmax_by_definition(in);
  const Matrix b = normalised(in, [&](Index i, Index j) {
    return std::exp(7 / 3.0 * dot(a[static_cast<std::size_t>(i)], a[static_cast<std::size_t>(j)]));  // ÷ √9
  });
  CHECK(gap(run("refined form=simple sharpness=7", in).weights, b) < 1e-5);
  Matrix half = a, weighted = times(b, a);
  for (std::size_t i = 0; i < 9; ++i) {
    double sum = 0;
    for (std::size_t j = 0; j < 9; ++j) half[i][j] = (a[i][j] + b[i][j]) / 2, sum += weighted[i][j];
    for (double& w : weighted[i]) w /= sum;
  }
  CHECK(gap(run("refined form=additive sharpness=7", in).weights, half) < 1e-5);
  CHECK(gap(run("refined form=value-weighted sharpness=7", in).weights, weighted) < 1e-5);
  const Matrix far = normalised(in, [&](Index i, Index j) {
    double sum = 0;
    for (std::size_t c = 0; c < 9; ++c) {
      const double x = a[static_cast<std::size_t>(i)][c], y = a[static_cast<std::size_t>(j)][c];
      const auto deviation = [](double w) { return w > 0 ? w + 1 : std::exp(w); };
      sum += std::pow(x - y, 2) + std::pow(deviation(x) - deviation(y), 2);
    }
    return std::exp(-7 * sum / 3);
  });
  CHECK(gap(run("refined form=stochastic sharpness=7", in).weights, far) < 1e-5);
  // Drawn W: rows still sum to 1, and the seed decides.
  const Tensor one = run("refined spread=1 seed=1", in).weights, two = run("refined spread=1 seed=2", in).weights;
  CHECK(gap(one, two) > 1e-4);
  CHECK(gap(one, run("refined spread=1 seed=1", in).weights) == 0);
}

TEST_CASE("worked examples are the numbers that their titles tell of") {
  const auto example = [](std::string_view id) {
    const auto found = std::ranges::find(worked_examples(), id, &WorkedExample::id);
    REQUIRE(found != worked_examples().end());
    return found->input();
  };
  const MechanismInput one = example("one-query");
  CHECK(one.scale == doctest::Approx(1 / std::sqrt(2.0)));
  CHECK(run("softmax", one).output.at(0, 0) == doctest::Approx(20.0).epsilon(1e-5));
  CHECK(run("softmax", one).weights.at(0, 1) == doctest::Approx(0.1978).epsilon(1e-3));
  const MechanismInput two = example("two-by-two");
  CHECK(gap(two.q, Matrix{{1, 0}, {0, -1}}) == 0);
  CHECK(gap(two.k, Matrix{{0.5, 1}, {-1, 2}}) == 0);
  CHECK(gap(two.v, Matrix{{1}, {2}}) == 0);
  // "Welcome" shares a part with "Starbucks" and none with "to": scores 2 0 1, 0 2 1, 1 1 2.
  const MechanismInput welcome = example("welcome");
  const double e = std::exp(1.0), ee = e * e;
  CHECK(gap(run("softmax", welcome).weights, Matrix{{ee / (ee + 1 + e), 1 / (ee + 1 + e), e / (ee + 1 + e)},
                                                    {1 / (ee + 1 + e), ee / (ee + 1 + e), e / (ee + 1 + e)},
                                                    {e / (ee + 2 * e), e / (ee + 2 * e), ee / (ee + 2 * e)}}) < 1e-6);
}

}  // namespace headscope::exact_test
