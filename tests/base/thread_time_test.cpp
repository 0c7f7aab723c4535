#include "core/base/thread_time.h"

#include <doctest/doctest.h>

#include <chrono>
#include <thread>

namespace headscope::thread_time_test {

TEST_CASE("a thread's time grows while it works and stands still while it sleeps") {
  const double begin = thread_seconds();
  volatile double sum = 0;
  while (thread_seconds() - begin < 0.02) sum = sum + 1;
  CHECK(sum > 0);
#ifdef __linux__
  const auto asleep = std::chrono::steady_clock::now();
  const double before = thread_seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  const double worked = thread_seconds() - before;
  CHECK(worked < 0.5 * std::chrono::duration<double>(std::chrono::steady_clock::now() - asleep).count());
#endif
}

}  // namespace headscope::thread_time_test
