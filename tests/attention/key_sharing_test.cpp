// Sharing keys and values: pooling, the latent factors, and what a cache takes.

#include "core/attention/key_sharing.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/attention/latent_keys.h"
#include "tests/support/random_tensor.h"

namespace headscope::key_sharing_test {

using testing::random_tensor;

TEST_CASE("heads become the mean of their group, in the rows that are asked for") {
  const float values[] = {1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8};
  Tensor x = Tensor::from({2, 4, 2}, values);
  pool_heads(x, 2, 1, 1);
  CHECK(x.at(0, 1, 0) == 3);
  CHECK(x.at(1, 0, 0) == 2);
  CHECK(x.at(1, 1, 0) == 2);
  CHECK(x.at(1, 2, 1) == 7);
  CHECK(x.at(1, 3, 1) == 7);
}

TEST_CASE("cache: for eight query heads MHA 1, GQA of four 1/2, of two 1/4, MQA 1/8") {
  const auto bytes = [](std::uint64_t kv) { return key_cache_bytes(32, kv, 128, 4096, 2); };
  CHECK(bytes(8) == 2ull * 32 * 8 * 128 * 4096 * 2);
  CHECK(bytes(4) * 2 == bytes(8));
  CHECK(bytes(2) * 4 == bytes(8));
  CHECK(bytes(1) * 8 == bytes(8));
  CHECK(latent_cache_bytes(60, 512, 64, 1, 2) == 60ull * 576 * 2);
}

TEST_CASE("latent factors: exact at full rank, the best of their rank, and their error is what is missing") {
  const Tensor w_k = random_tensor({10, 6}, 1), w_v = random_tensor({10, 6}, 2);
  const auto left_out = [&](int rank) {
    const LatentFactors f = factor_keys(w_k, w_v, rank);
    double missing = 0, all = 0;
    for (Index i = 0; i < 10; ++i)
      for (Index j = 0; j < 6; ++j)
        for (const bool value : {false, true}) {
          const Tensor &w = value ? w_v : w_k, &up = value ? f.up_v : f.up_k;
          double made = 0;
          for (Index r = 0; r < up.dim(0); ++r)
            made += static_cast<double>(f.down.at(i, r)) * static_cast<double>(up.at(r, j));
          missing += std::pow(made - static_cast<double>(w.at(i, j)), 2);
          all += std::pow(static_cast<double>(w.at(i, j)), 2);
        }
    CHECK(std::sqrt(missing / all) == doctest::Approx(f.error).epsilon(1e-4));
    return f.error;
  };
  double last = 1;
  for (int rank = 1; rank <= 10; ++rank) {
    const double error = left_out(rank);
    CHECK(error < last);
    last = error;
  }
  CHECK(last < 1e-5);
  // A matrix of rank 2 needs a latent of 2.
  const Tensor a = random_tensor({10, 2}, 3), b = random_tensor({2, 6}, 4), c = random_tensor({2, 6}, 5);
  Tensor k = Tensor::zeros({10, 6}), v = Tensor::zeros({10, 6});
  for (Index i = 0; i < 10; ++i)
    for (Index j = 0; j < 6; ++j)
      for (Index r = 0; r < 2; ++r) k.ref(i, j) += a.at(i, r) * b.at(r, j), v.ref(i, j) += a.at(i, r) * c.at(r, j);
  CHECK(factor_keys(k, v, 2).error < 1e-5);
  CHECK(factor_keys(k, v, 1).error > 0.1);
}

TEST_CASE("latent factors of nothing are nothing, without an error") {
  const LatentFactors found = factor_keys(Tensor::zeros({4, 3}), Tensor::zeros({4, 3}), 2);
  CHECK(found.error == 0);
}

}  // namespace headscope::key_sharing_test
