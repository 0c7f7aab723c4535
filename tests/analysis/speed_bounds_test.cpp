#include "core/analysis/speed_bounds.h"

#include <doctest/doctest.h>

#include <fstream>
#include <string>

#include "core/base/thread_pool.h"
#include "core/tensor/backend.h"
#include "tests/support/paths.h"

namespace headscope::speed_bounds_test {

using testing::reference;

TEST_CASE("a bound is the larger of operations by the peak and bytes by the bandwidth") {
  ThreadPool pool(2);
  SpeedBounds bounds(pool, 1 << 20);
  bounds.measure();
  const double peak = bounds.peak(), read = bounds.bandwidth();
  CHECK(bounds.seconds({3 * peak, 2 * read}) == doctest::Approx(3));
  CHECK_FALSE(bounds.by_memory({3 * peak, 2 * read}));
  CHECK(bounds.seconds({peak, 2 * read}) == doctest::Approx(2));
  CHECK(bounds.by_memory({peak, 2 * read}));
}

TEST_CASE("bare products count the operations of a pass and the bytes of its weights") {
  Backend backend(2);
  const auto model = Model::load(reference("llama-gqa"), backend);
  const ModelDims& d = model->config().dims;
  const double width = d.d_model, q = d.heads * d.d_head, kv = d.kv_heads * d.d_head;
  const double blocks = d.layers * (width * (q + 2 * kv) + q * width + 3 * width * d.d_mlp),
               unembedding = width * d.vocab;
  const auto attention = [&](int n) { return d.layers * n * (n + 1) / 2 * 2 * q; };  // q·kᵀ and pattern·v
  for (const int n : {1, 7}) {
    CHECK(model->bare_products(backend, n, n).operations ==
          doctest::Approx(2 * (n * (blocks + unembedding) + attention(n))));
    CHECK(model->bare_products(backend, n, 1).operations ==
          doctest::Approx(2 * (n * blocks + unembedding + attention(n))));
  }
  const double bytes = model->bare_products(backend, 1, 1).bytes;
  CHECK(bytes >= sizeof(float) * (blocks + unembedding));  // panels are whole
  CHECK(bytes == model->bare_products(backend, 9, 1).bytes);
}

TEST_CASE("of experts only those count that so few tokens can take") {
  Backend backend(2);
  const auto model = Model::load(reference("families") / "mixtral", backend);
  const ModelDims& d = model->config().dims;
  const ExpertConfig& c = model->config().experts;
  REQUIRE(c.per_token < c.count);
  const double one = model->bare_products(backend, 1, 1).bytes, all = model->bare_products(backend, c.count, 1).bytes;
  const double spared = sizeof(float) * 3.0 * d.layers * (c.count - c.per_token) * d.d_model * c.width;
  CHECK(all - one >= spared);
  CHECK(all - one < 3 * spared);
}

TEST_CASE("the processor's name is what the system calls it") {
  std::ifstream file("/proc/cpuinfo");
  std::string expected;
  for (std::string line; expected.empty() && std::getline(file, line);)
    if (line.starts_with("model name")) expected = line.substr(line.find(": ") + 2);
  CHECK(processor_name() == expected);
}

}  // namespace headscope::speed_bounds_test
