#include "core/tensor/row_queue.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "core/tensor/backend.h"
#include "tests/support/random_tensor.h"

namespace headscope::row_queue_test {

using testing::random_tensor;

namespace {

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

}  // namespace

TEST_CASE("noted rows go through every step in order, each exactly once, on one thread") {
  ThreadPool pool(3);
  for (const Index rows : {1, 7, 16, 63, 64, 200, 1000}) {
    RowQueue queue(pool);
    std::vector<int> steps_done(static_cast<std::size_t>(rows));
    std::vector<std::thread::id> thread(steps_done.size());
    std::atomic<bool> in_order{true}, one_thread{true};
    for (int step = 0; step < 3; ++step)
      queue.add(rows, 50'000, [&, step](Index begin, Index end) {
        for (Index r = begin; r < end; ++r) {
          int& done = steps_done[static_cast<std::size_t>(r)];
          if (done != step) in_order = false;
          std::thread::id& by = thread[static_cast<std::size_t>(r)];
          if (step > 0 && by != std::this_thread::get_id()) one_thread = false;
          by = std::this_thread::get_id();
          ++done;
        }
      });
    CHECK(std::ranges::all_of(steps_done, [](int done) { return done == 0; }));
    queue.run();
    CHECK(in_order);
    CHECK(one_thread);
    CHECK(std::ranges::all_of(steps_done, [](int done) { return done == 3; }));
    queue.run();  // nothing is left
    CHECK(std::ranges::all_of(steps_done, [](int done) { return done == 3; }));
  }
}

TEST_CASE("work worth sharing is cut into tiles, little work is not, and another number of rows runs what was noted") {
  ThreadPool pool(2);
  RowQueue queue(pool);
  std::mutex lock;
  std::vector<Index> sizes;
  const auto note = [&](Index rows, Index work) {
    queue.add(rows, work, [&](Index begin, Index end) {
      const std::lock_guard guard(lock);
      sizes.push_back(end - begin);
    });
  };
  note(64, 100'000);
  queue.run();
  CHECK(sizes == std::vector<Index>{16, 16, 16, 16});
  sizes.clear();
  note(1000, 100'000);
  queue.run();
  CHECK(sizes.size() == 16);
  CHECK(*std::ranges::max_element(sizes) == 64);
  sizes.clear();
  note(1000, 100);
  queue.run();
  CHECK(sizes == std::vector<Index>{1000});
  sizes.clear();
  note(10, 100);
  note(1, 100);
  CHECK(sizes == std::vector<Index>{10});
  queue.run();
  CHECK(sizes == std::vector<Index>{10, 1});
}

TEST_CASE("ops done later give the bits of ops done at once, whatever the number of rows") {
  Backend backend(2);
  for (const Index rows : {1, 5, 16, 33, 64, 150}) {
    CAPTURE(rows);
    const Index width = 48, hidden = 100;
    const Tensor x = random_tensor({rows, width}, 11), gain = random_tensor({width}, 12),
                 bias = random_tensor({width}, 13), cosine = random_tensor({rows, 8}, 14),
                 sine = random_tensor({rows, 8}, 15);
    const Linear up = backend.linear_weights({random_tensor({width, hidden}, 16)}, {random_tensor({hidden}, 17)}),
                 down = backend.linear_weights({random_tensor({hidden, width}, 18)}, {});
    const Linear large = backend.linear_weights({random_tensor({width, 6000}, 19)}, {});  // not by rows
    const auto chain = [&](RowQueue* later) {
      const Tensor normed = backend.layer_norm(x, gain, bias, 1e-5, later);
      const Tensor gate = backend.linear(normed, up, later);
      const Tensor product = backend.multiply(backend.activate(Backend::Unary::silu, gate, later), gate, later);
      const Tensor sum = backend.add(x, backend.linear(product, down, later), later);
      const Tensor turned = backend.rotate(sum.reshape({rows, 3, 16}), cosine, sine, later);
      const Tensor last = backend.rms_norm(turned.reshape({rows, width}).slice(0, rows - 1, rows), gain, 1e-5, later);
      const Tensor gaps = backend.activate(Backend::Unary::relu, sum.slice(1, 3, 20), later);
      const Tensor wide = backend.linear(sum, large, later);
      if (later) later->run();
      return std::vector<Tensor>{normed, gate, product, sum, turned, last, gaps, wide};
    };
    RowQueue queue(backend.pool());
    const std::vector<Tensor> now = chain(nullptr), later = chain(&queue);
    for (std::size_t i = 0; i < now.size(); ++i) {
      CAPTURE(i);
      CHECK(same_bits(now[i], later[i]));
    }
  }
}

}  // namespace headscope::row_queue_test
