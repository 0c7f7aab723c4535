#include "core/base/thread_time.h"

#include <doctest/doctest.h>

#include <chrono>
#include <thread>

using namespace headscope;

TEST_CASE("a thread's time grows while it works and stands still while it sleeps") {
  const double begin = thread_seconds();
  volatile double sum = 0;
  while (thread_seconds() - begin < 0.02) sum = sum + 1;
  CHECK(sum > 0);
#ifdef __linux__
  const double before = thread_seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  CHECK(thread_seconds() - before < 0.03);
#endif
}
