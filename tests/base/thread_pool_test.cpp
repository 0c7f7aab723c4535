#include "core/base/thread_pool.h"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <numeric>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <vector>

#include "core/base/error.h"

namespace headscope::thread_pool_test {

TEST_CASE("the pool runs every task exactly once") {
  for (int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    CHECK(pool.threads() == threads);
    for (int round = 0; round < 200; ++round) {
      std::vector<int> seen(static_cast<std::size_t>(round), 0);
      pool.parallel(round, [&](int task, int thread) {
        CHECK_MESSAGE((thread >= 0 && thread < threads), "thread index ", thread);
        ++seen[static_cast<std::size_t>(task)];
      });
      CHECK(std::accumulate(seen.begin(), seen.end(), 0) == round);
      for (int count : seen) REQUIRE(count == 1);
    }
  }
}

TEST_CASE("a call from inside a body runs inline under the same thread index") {
  ThreadPool pool(3);
  std::vector<int> sums(8, 0);
  pool.parallel(8, [&](int task, int thread) {
    pool.parallel(5, [&](int inner, int inner_thread) {
      if (inner_thread == thread) sums[static_cast<std::size_t>(task)] += inner + 1;
    });
  });
  for (int sum : sums) CHECK(sum == 15);
}

TEST_CASE("the first exception of a body reaches the caller and the pool goes on working") {
  ThreadPool pool(2);
  CHECK_THROWS_WITH(pool.parallel(64,
                                  [](int task, int) {
                                    if (task == 7) throw std::runtime_error("seven");
                                  }),
                    "seven");
  std::atomic<int> count{0};
  pool.parallel(64, [&](int, int) { ++count; });
  CHECK(count == 64);
}

TEST_CASE("what has not begun when a stop is asked for is left out, of the calls of that thread alone") {
  for (const int threads : {1, 2}) {
    ThreadPool pool(threads);
    std::stop_source source;
    const std::stop_token stop = source.get_token();
    std::atomic<int> count{0};
    {
      const ThreadPool::Stopping stopping(stop);
      pool.parallel(8, [&](int, int) { ++count; });
      CHECK(count == 8);
      const auto until_third = [&](int, int) {
        if (++count == 11) source.request_stop();
      };
      CHECK_THROWS_AS(pool.parallel(1000, until_third), Cancelled);
      CHECK(count <= 10 + threads);  // what another thread had begun is ended
      CHECK_THROWS_AS(pool.parallel(1, [&](int, int) { ++count; }), Cancelled);
      std::jthread([&] { pool.parallel(5, [&](int, int) { count += 100; }); }).join();
      CHECK(count >= 500);
    }
    count = 0;
    pool.parallel(64, [&](int, int) { ++count; });
    CHECK(count == 64);
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which need address space of their own
TEST_CASE("where no more threads can be had, those that there are do the work of all") {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    alarm(30);  // ends it where the pool waits for ever
    long pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const auto most = static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE)) + (rlim_t{200} << 20);
    const rlimit limit{most, most};  // room for the stacks of some
    setrlimit(RLIMIT_AS, &limit);
    ThreadPool pool(1000);
    std::atomic<int> count{0};
    pool.parallel(500, [&](int, int thread) { count += thread >= 0 && thread < pool.threads(); });
    _exit(pool.threads() >= 1 && pool.threads() < 1000 && count == 500 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}
#endif

TEST_CASE("several callers take turns") {
  ThreadPool pool(2);
  std::atomic<int> count{0};
  {
    std::vector<std::jthread> callers;
    for (int i = 0; i < 4; ++i)
      callers.emplace_back([&] {
        for (int round = 0; round < 50; ++round) pool.parallel(7, [&](int, int) { ++count; });
      });
  }
  CHECK(count == 4 * 50 * 7);
}

}  // namespace headscope::thread_pool_test
