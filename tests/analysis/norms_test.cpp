#include "core/analysis/norms.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/base/error.h"
#include "tests/analysis/subjects.h"

namespace headscope::norms_test {

using testing::ReadSubject;

namespace {
/// "hello" and "machine learning".
Tensor two_sequences() {
  return Tensor::from({2, 4}, std::vector<float>{4, 6, 0, 0, 1, 2, 3, 3});
}
void same(const Tensor& found, std::initializer_list<double> expected) {
  std::size_t i = 0;
  for (const double v : expected) CHECK(static_cast<double>(found.packed().values()[i++]) == doctest::Approx(v));
}
}  // namespace

TEST_CASE("the worked example: sums within a sequence keep its order, sums across the batch do not") {
  Backend backend{1};
  const Tensor rows = two_sequences();
  const Tensor within = normalise(backend, rows, NormMethod::sum_row),
               across = normalise(backend, rows, NormMethod::sum_column);
  same(within, {0.4, 0.6, 0, 0, 1.0 / 9, 2.0 / 9, 1.0 / 3, 1.0 / 3});
  same(across, {0.8, 0.75, 0, 0, 0.2, 0.25, 1, 1});
  CHECK(order_kept(rows, within).turned == 0);
  CHECK(order_kept(rows, within).pairs == 10);
  CHECK(order_kept(rows, across).turned == 1);  // 4 < 6 became 0.8 > 0.75
}

TEST_CASE("LayerNorm, RMSNorm and BatchNorm of the same rows, by hand") {
  Backend backend{1};
  const Tensor rows = two_sequences();
  // Row a: mean 2.5, variance (1.5² + 3.5² + 2 · 2.5²) / 4 = 6.75; row b: mean 2.25, variance 0.6875.
  const double a = std::sqrt(6.75), b = std::sqrt(0.6875);
  same(normalise(backend, rows, NormMethod::layer_norm, 0),
       {1.5 / a, 3.5 / a, -2.5 / a, -2.5 / a, -1.25 / b, -0.25 / b, 0.75 / b, 0.75 / b});
  // Mean squares 52 / 4 = 13 and 23 / 4 = 5.75.
  const double ra = std::sqrt(13.0), rb = std::sqrt(5.75);
  same(normalise(backend, rows, NormMethod::rms_norm, 0), {4 / ra, 6 / ra, 0, 0, 1 / rb, 2 / rb, 3 / rb, 3 / rb});
  // Of two numbers, each lies one deviation from their mean.
  same(normalise(backend, rows, NormMethod::batch_norm, 0), {1, 1, -1, -1, -1, -1, 1, 1});
  const LineStatistics s = statistics(std::vector<float>{4, 6, 0, 0});
  CHECK(s.sum == 10);
  CHECK(s.mean == 2.5);
  CHECK(s.variance == 6.75);
  CHECK(s.rms == doctest::Approx(ra));
}

TEST_CASE("rows as people type them") {
  CHECK(parse_row("4, 6 0;0", "row") == std::vector<float>{4, 6, 0, 0});
  CHECK(parse_row(" -1.5e1 ", "row") == std::vector<float>{-15});
  for (const char* wrong : {"", "4 x", "nan", "1e99", "inf 2", "4..5"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(parse_row(wrong, "row"), Error);
  }
  CHECK_THROWS_AS(parse_row(std::string(200, '1').insert(100, 1, ' '), "row"), Error);
  const std::vector<std::vector<float>> uneven{{1, 2}, {1}};
  CHECK_THROWS_AS(matrix_of_rows(uneven, "rows"), Error);
  Backend backend{1};
  // A sum of nothing stays nothing.
  same(normalise(backend, Tensor::from({1, 2}, std::vector<float>{1, -1}), NormMethod::sum_row), {0, 0});
}

TEST_CASE("a norm of the model is the norm of what stood before it") {
  for (const char* folder : {"gpt2-random", "llama-gqa"})
    for (const WhichNorm which : {WhichNorm::before_attention, WhichNorm::before_mlp, WhichNorm::last}) {
      CAPTURE(folder);
      ReadSubject s(folder);
      const ModelNorm n = read_model_norm(s.model(), s.backend, *s.trace, which, 1);
      CHECK(n.difference < 1e-5);
      CHECK(n.method ==
            (s.model().config().norm == NormKind::layer_norm ? NormMethod::layer_norm : NormMethod::rms_norm));
      for (Index i = 0; i < 3; ++i) {
        const LineStatistics stats = statistics(n.bare.select(0, i).packed().values());
        CHECK(stats.rms == doctest::Approx(1).epsilon(1e-2));
        for (Index d = 0; d < s.dims().d_model; ++d) {
          const float bias = n.weights.bias.defined() ? n.weights.bias.at(d) : 0.0f;
          CHECK(n.after.at(i, d) ==
                doctest::Approx(n.bare.at(i, d) * n.weights.gain.at(d) + bias).epsilon(1e-3).scale(1));
        }
      }
    }
  ReadSubject s("gpt2-random");
  CHECK_THROWS_AS(read_model_norm(s.model(), s.backend, *s.trace, WhichNorm::before_mlp, 2), Error);
  // An edit between the two shows as a difference.
  ReadSubject edited("gpt2-random", {5, 9, 5, 30}, {parse_intervention("0.*: switch off ln1", "edit")});
  CHECK(read_model_norm(edited.model(), edited.backend, *edited.trace, WhichNorm::before_attention, 0).difference >
        0.01);
}

TEST_CASE("where norms stand behind sums, none is read, whichever is asked for, and the words lead on") {
  for (const char* folder : {"families/gte", "families/luke", "families/bert"}) {
    CAPTURE(folder);
    ReadSubject s(folder);
    for (const WhichNorm which : {WhichNorm::before_attention, WhichNorm::before_mlp, WhichNorm::last}) {
      CHECK_THROWS_WITH_AS(read_model_norm(s.model(), s.backend, *s.trace, which, 1),
                           doctest::Contains("its norms stand behind sums"), Error);
      CHECK_THROWS_WITH_AS(read_model_norm(s.model(), s.backend, *s.trace, which, 1), doctest::Contains("residual"),
                           Error);
    }
  }
}

TEST_CASE("rows become a matrix as they are, those given and no more") {
  const std::vector<std::vector<float>> rows{{1, 2}, {3, 4}, {5, 6}, {7}};
  const Tensor found = matrix_of_rows(std::span(rows).first(3), "rows");
  CHECK(found.shape() == Shape{3, 2});
  same(found, {1, 2, 3, 4, 5, 6});
  CHECK_THROWS_WITH_AS(matrix_of_rows(rows, "rows"),
                       doctest::Contains("2 numbers in every row, as in the first, found 1"), Error);
  CHECK_THROWS_WITH_AS(matrix_of_rows({}, "rows"), doctest::Contains("at least one row"), Error);
}

}  // namespace headscope::norms_test
