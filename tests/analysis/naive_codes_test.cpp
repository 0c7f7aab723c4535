// The codes of positions that do not work, on vectors made by hand and on models.

#include "core/analysis/naive_codes.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/model/weights.h"
#include "core/run/run_request.h"
#include "core/train/parameters.h"
#include "tests/support/paths.h"

namespace headscope::naive_codes_test {

using doctest::Approx;
using testing::source_dir;

TEST_CASE("naive codes by hand: likeness of two vectors with a code added, and steps by the length of the text") {
  Tensor two = Tensor::zeros({2, 2});
  two.ref(0, 0) = 1;
  two.ref(1, 1) = 1;
  const std::vector<double> none{0, 0}, three{3, 3};
  CHECK(mean_likeness(two, none) == Approx(0));
  CHECK(mean_likeness(two, three) == Approx(24.0 / 25));  // (4, 3) · (3, 4) ÷ 25

  Backend backend(1);
  const LoadedModel model = load_model(source_dir() / "models/tiny-gpt2", backend);
  const NaiveCodes codes = naive_codes(*model.model);
  CHECK(codes.positions == std::vector<double>{0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512});
  CHECK(codes.lengths.back() == 1024);
  CHECK(codes.likeness[NaiveCodes::counted].back() > 0.999);
  CHECK(codes.likeness[NaiveCodes::counted].front() < 0.9);
  CHECK(codes.likeness[NaiveCodes::counted].front() == Approx(codes.likeness[NaiveCodes::squeezed].front()));
  const double root = std::sqrt(static_cast<double>(codes.dimensions));
  CHECK(codes.step[NaiveCodes::counted].back() == Approx(root / codes.embedding_length));
  CHECK(codes.step[NaiveCodes::squeezed].back() == Approx(root / 1023 / codes.embedding_length));
  CHECK(codes.step[NaiveCodes::sinusoids].front() == Approx(codes.step[NaiveCodes::sinusoids].back()));
}

TEST_CASE("sinusoids of neighbours stand as far apart as their pairs turn; a context of two is the least") {
  Backend backend(1);
  const int d = 8, odd = 7;
  ModelConfig config;
  config.name = "short", config.family = "gpt2";
  config.dims = {.layers = 1, .heads = 1, .kv_heads = 1, .d_head = d, .d_model = d, .d_mlp = 0, .vocab = 9};
  for (const auto& [width, context] : {std::pair{d, 1}, {d, 2}, {d, 3}, {odd, 2}}) {
    CAPTURE(width);
    CAPTURE(context);
    config.context = context;
    config.dims.d_head = config.dims.d_model = width;
    const auto model = Parameters::initial(config, 1).trainable_model(backend);
    const NaiveCodes codes = naive_codes(*model);
    const int longest = 4 * std::max(context, 2);
    CHECK(codes.words == 9);
    CHECK(codes.dimensions == width);
    std::vector<double> positions{0}, lengths;
    for (int p = 1; p < longest; p *= 2) positions.push_back(p);
    for (int n = 2; n <= longest; n *= 2) lengths.push_back(n);
    CHECK(codes.positions == positions);
    CHECK(codes.lengths == lengths);
    double mean = 0;
    const Tensor table = model->weights().token_embedding;
    for (Index w = 0; w < 9; ++w) {
      double square = 0;
      for (Index i = 0; i < width; ++i)
        square += static_cast<double>(table.at(w, i)) * static_cast<double>(table.at(w, i));
      mean += std::sqrt(square) / 9;
    }
    CHECK(codes.embedding_length == Approx(mean));
    // sin ω and cos ω − 1 of each pair; of an odd number of dimensions the last has no cosine.
    double square = 0;
    for (int i = 0; i < width; ++i) {
      const double angle = std::pow(10000.0, -2.0 * (i / 2) / d);
      square += std::pow(i % 2 == 0 ? std::sin(angle) : std::cos(angle) - 1, 2);
    }
    for (const double step : codes.step[NaiveCodes::sinusoids]) CHECK(step == Approx(std::sqrt(square) / mean));
    CHECK(codes.step[NaiveCodes::squeezed].front() ==
          Approx(std::sqrt(static_cast<double>(width)) / mean));  // of two tokens, 0 and 1
  }
}

}  // namespace headscope::naive_codes_test
