// Shaw, Transformer-XL, T5 and ALiBi: what is added to scores.

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "core/attention/masks.h"
#include "core/attention/positions/alibi.h"
#include "core/attention/positions/place_bias.h"
#include "core/attention/positions/shaw_relative.h"
#include "core/attention/positions/sinusoidal.h"
#include "core/attention/positions/t5_bias.h"
#include "core/attention/positions/transformer_xl.h"
#include "tests/support/random_tensor.h"

namespace headscope::score_positions_test {

using testing::random_tensor;

TEST_CASE("ALiBi: eight heads have slopes 1/2 … 1/256; other numbers of heads fill in between") {
  const auto eight = alibi_slopes(8);
  REQUIRE(eight.size() == 8);
  for (std::size_t h = 0; h < 8; ++h) CHECK(eight[h] == doctest::Approx(std::pow(0.5, static_cast<double>(h + 1))));
  const auto sixteen = alibi_slopes(16);
  CHECK(sixteen[0] == doctest::Approx(std::pow(2, -0.5)));
  CHECK(sixteen[15] == doctest::Approx(1.0 / 256));
  // Twelve: those of eight, then the 1st, 3rd, 5th and 7th of sixteen.
  const auto twelve = alibi_slopes(12);
  REQUIRE(twelve.size() == 12);
  for (std::size_t h = 0; h < 8; ++h) CHECK(twelve[h] == doctest::Approx(eight[h]));
  for (std::size_t h = 0; h < 4; ++h) CHECK(twelve[8 + h] == doctest::Approx(sixteen[2 * h]));
  CHECK(alibi_slopes(1) == std::vector<double>{1.0 / 256});
}

TEST_CASE("ALiBi's rule takes slope times distance from what the mask lets through") {
  const RulePtr rule = alibi_rule(parse_mask("window 3"), 0.25);
  std::vector<float> scores(3, 1.0f);
  CHECK(rule->keys(5, 10).begin == 3);
  rule->apply(5, 3, scores);
  CHECK(scores == std::vector<float>{0.5f, 0.75f, 1.0f});
  CHECK(masked(*rule, 5, 2, 10));
  std::vector<float> strided(9, 0.0f);
  alibi_rule(parse_mask("strided 4"), 1)->apply(8, 0, strided);
  CHECK(strided[1] == -std::numeric_limits<float>::infinity());
  CHECK(strided[4] == -4.0f);
}

TEST_CASE("T5's buckets for 32 buckets and a largest distance of 128 are those of its program") {
  // relative_position = key − query; computed by the published function for causal and for both directions.
  struct Row {
    int distance, causal, both_before, both_after;
  };
  const Row rows[] = {{0, 0, 0, 0},      {1, 1, 1, 17},     {7, 7, 7, 23},    {8, 8, 8, 24},     {15, 15, 9, 25},
                      {16, 16, 10, 26},  {17, 16, 10, 26},  {20, 17, 10, 26}, {31, 21, 11, 27},  {32, 21, 12, 28},
                      {64, 26, 14, 30},  {90, 29, 14, 30},  {91, 29, 15, 31}, {113, 31, 15, 31}, {127, 31, 15, 31},
                      {128, 31, 15, 31}, {5000, 31, 15, 31}};
  for (const Row& row : rows) {
    CAPTURE(row.distance);
    CHECK(t5_bucket(-row.distance, false, 32, 128) == row.causal);
    CHECK(t5_bucket(row.distance, false, 32, 128) == 0);  // later keys share the nearest bucket
    CHECK(t5_bucket(-row.distance, true, 32, 128) == row.both_before);
    if (row.distance > 0) CHECK(t5_bucket(row.distance, true, 32, 128) == row.both_after);
  }
  int last = 0;
  for (int d = 0; d < 1000; ++d) {
    const int bucket = t5_bucket(-d, false, 32, 128);
    CHECK((bucket == last || bucket == last + 1));
    last = bucket;
  }
}

TEST_CASE("T5's rule adds each bucket's number, and the fit finds the numbers scores were made with") {
  std::vector<float> bias;
  for (int b = 0; b < 8; ++b) bias.push_back(static_cast<float>(b * b) * 0.125f);
  const RulePtr rule = t5_rule(parse_mask("causal"), bias, 16);
  const Index n = 40;
  Tensor scores = Tensor::zeros({n, n});
  for (Index i = 0; i < n; ++i) {
    std::vector<float> row(static_cast<std::size_t>(i + 1), 0.0f);
    rule->apply(i, 0, row);
    for (Index j = 0; j <= i; ++j) {
      scores.ref(i, j) = row[static_cast<std::size_t>(j)];
      CHECK(scores.at(i, j) == bias[static_cast<std::size_t>(t5_bucket(j - i, false, 8, 16))]);
    }
  }
  // One distance more or less in a row moves its mean: only long rows of many far keys come near.
  const auto fitted = t5_fit(scores, *parse_mask("window 4"), 8, 16);
  CHECK(static_cast<double>(fitted[3] - fitted[2]) ==
        doctest::Approx(static_cast<double>(bias[3] - bias[2])).epsilon(0.1));
  CHECK(fitted[7] == fitted[3]);  // no cell that far: as the nearest bucket
}

TEST_CASE("a way from patch to patch has one number wherever it begins, and CLS three of its own") {
  // 2 × 3 patches: 3 · 5 = 15 ways, then what CLS gives a patch, a patch CLS, and CLS itself.
  REQUIRE(place_biases(2, 3) == 18);
  CHECK(place_bias(0, 4, 2, 3) == 15);
  CHECK(place_bias(4, 0, 2, 3) == 16);
  CHECK(place_bias(0, 0, 2, 3) == 17);
  CHECK(place_bias(1, 1, 2, 3) == 7);  // the middle
  CHECK(place_bias(6, 6, 2, 3) == 7);
  CHECK(place_bias(1, 2, 2, 3) == 6);  // one to the right
  CHECK(place_bias(5, 6, 2, 3) == 6);
  CHECK(place_bias(2, 1, 2, 3) == 8);
  CHECK(place_bias(1, 4, 2, 3) == 2);   // one down
  CHECK(place_bias(6, 1, 2, 3) == 14);  // one up, two to the left
  CHECK(place_bias(1, 6, 2, 3) == 0);
  std::vector<float> bias;
  for (int i = 0; i < 18; ++i) bias.push_back(static_cast<float>(i) * 0.5f);
  const RulePtr rule = place_rule(full_rule(), bias, 2, 3);
  std::vector<float> row(3, 1.0f);
  rule->apply(4, 0, row);  // the first patch of the second row, at CLS and the first two of the first
  CHECK(row == std::vector<float>{9, 1 + 12 * 0.5f, 1 + 11 * 0.5f});
}

TEST_CASE("Shaw's scores and values on three tokens, by the definition") {
  const Tensor q = random_tensor({3, 4}, 1), k = random_tensor({3, 4}, 2), table = random_tensor({3, 4}, 3);
  const Tensor scores = shaw_scores(q, k, table, 0.5);
  for (Index i = 0; i < 3; ++i)
    for (Index j = 0; j < 3; ++j) {
      const Index row = j < i ? 0 : j == i ? 1 : 2;  // w = 1: everything before, itself, everything after
      CHECK(shaw_index(j - i, 1) == row);
      double sum = 0;
      for (Index c = 0; c < 4; ++c)
        sum +=
            static_cast<double>(q.at(i, c)) * (static_cast<double>(k.at(j, c)) + static_cast<double>(table.at(row, c)));
      CHECK(static_cast<double>(scores.at(i, j)) == doctest::Approx(0.5 * sum).epsilon(1e-6));
    }
  const float weights[] = {1, 0, 0, 0.25f, 0.75f, 0, 0.5f, 0.25f, 0.25f};
  const Tensor added = shaw_values(Tensor::from({3, 3}, weights), table);
  for (Index c = 0; c < 4; ++c) {
    CHECK(added.at(0, c) == table.at(1, c));
    CHECK(static_cast<double>(added.at(2, c)) ==
          doctest::Approx(static_cast<double>(0.75f * table.at(0, c) + 0.25f * table.at(1, c))));
  }
}

TEST_CASE("Transformer-XL's four terms on three tokens, by the definition") {
  const Tensor q = random_tensor({3, 4}, 1), k = random_tensor({3, 4}, 2), u = random_tensor({4}, 3),
               v = random_tensor({4}, 4), w = random_tensor({6, 4}, 5);
  const TransformerXlTerms terms = transformer_xl_scores(q, k, u, v, w, 0.5);
  for (Index i = 0; i < 3; ++i)
    for (Index j = 0; j < 3; ++j) {  // keys ahead too, at a distance below 0
      double r[4] = {};
      for (int a = 0; a < 3; ++a) {
        const double angle = static_cast<double>(i - j) * std::pow(10000.0, -2.0 * a / 6);
        for (Index c = 0; c < 4; ++c)
          r[c] += std::sin(angle) * static_cast<double>(w.at(2 * a, c)) +
                  std::cos(angle) * static_cast<double>(w.at(2 * a + 1, c));
      }
      double qk = 0, qr = 0, uk = 0, vr = 0;
      for (Index c = 0; c < 4; ++c) {
        qk += static_cast<double>(q.at(i, c)) * static_cast<double>(k.at(j, c));
        qr += static_cast<double>(q.at(i, c)) * r[c];
        uk += static_cast<double>(u.at(c)) * static_cast<double>(k.at(j, c));
        vr += static_cast<double>(v.at(c)) * r[c];
      }
      CHECK(static_cast<double>(terms.content.at(i, j)) == doctest::Approx(0.5 * qk).epsilon(1e-5));
      CHECK(static_cast<double>(terms.content_position.at(i, j)) == doctest::Approx(0.5 * qr).epsilon(1e-4));
      CHECK(static_cast<double>(terms.key_bias.at(i, j)) == doctest::Approx(0.5 * uk).epsilon(1e-5));
      CHECK(static_cast<double>(terms.position_bias.at(i, j)) == doctest::Approx(0.5 * vr).epsilon(1e-4));
      CHECK(static_cast<double>(terms.sum.at(i, j)) == doctest::Approx(0.5 * (qk + qr + uk + vr)).epsilon(1e-4));
    }
  // The last two terms do not know the query: they are the same along a column, and along a diagonal.
  CHECK(terms.key_bias.at(0, 0) == terms.key_bias.at(2, 0));
  CHECK(terms.position_bias.at(1, 0) == terms.position_bias.at(2, 1));
}

TEST_CASE("Shaw's scores of more tokens than numbers, queries and keys of different count") {
  const Tensor q = random_tensor({7, 2}, 1), k = random_tensor({5, 2}, 2), table = random_tensor({5, 2}, 3);
  const Tensor scores = shaw_scores(q, k, table, 2);
  REQUIRE(scores.shape() == Shape{7, 5});
  for (Index i = 0; i < 7; ++i)
    for (Index j = 0; j < 5; ++j) {
      const Index row = std::min<Index>(std::max<Index>(j - i, -2), 2) + 2;  // w = 2
      CHECK(shaw_index(j - i, 2) == row);
      double sum = 0;
      for (Index c = 0; c < 2; ++c)
        sum += static_cast<double>(q.at(i, c)) * static_cast<double>(k.at(j, c) + table.at(row, c));
      CHECK(static_cast<double>(scores.at(i, j)) == doctest::Approx(2 * sum).epsilon(1e-5));
    }
  // Each pattern's share of a distance, times that distance's vector.
  const Tensor pattern = random_tensor({7, 5}, 4), values = shaw_values(pattern, table);
  REQUIRE(values.shape() == Shape{7, 2});
  for (Index i = 0; i < 7; ++i)
    for (Index c = 0; c < 2; ++c) {
      double sum = 0;
      for (Index j = 0; j < 5; ++j)
        sum += static_cast<double>(pattern.at(i, j)) * static_cast<double>(table.at(shaw_index(j - i, 2), c));
      CHECK(static_cast<double>(values.at(i, c)) == doctest::Approx(sum).epsilon(1e-5));
    }
}

namespace {
/// What came before, without the token itself.
class Earlier final : public AttentionRule {
 public:
  KeyRange keys(Index query, Index) const override { return {0, query}; }
  std::string describe() const override { return "earlier"; }
};
}  // namespace

TEST_CASE("T5's fit by hand: the mean of a bucket less that of its row; where the first has no cell it stays 0") {
  // Rows (1 · ·), (2 4 ·), (3 5 10) under causal: less their means 0; −1 1; −3 −1 4. Four buckets to 8: distances 0, 1,
  // then 2 and 3 together.
  const Tensor scores = Tensor::from({3, 3}, std::vector<float>{1, 50, 50, 2, 4, 50, 3, 5, 10});
  const auto fitted = t5_fit(scores, *causal_rule(), 4, 8);
  REQUIRE(fitted.size() == 4);
  CHECK(fitted[0] == doctest::Approx((0.0 + 1 + 4) / 3));
  CHECK(fitted[1] == doctest::Approx((-1.0 - 1) / 2));
  CHECK(fitted[2] == doctest::Approx(-3));
  CHECK(fitted[3] == fitted[2]);
  // Rows that do not see themselves: (2), (3 5).
  const auto before = t5_fit(scores, Earlier(), 4, 8);
  CHECK(before[0] == 0);
  CHECK(before[1] == doctest::Approx((0.0 + 1) / 2));
  CHECK(before[2] == doctest::Approx(-1));
}

}  // namespace headscope::score_positions_test
