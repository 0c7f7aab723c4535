// Runs the tests. Without a display nearly all of them have to leave; then the exit code says so, lest "passed" be read
// where nothing was opened.

#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>

#include "tests/gui/driver.h"

#ifdef __SANITIZE_ADDRESS__
/// Libraries stay loaded to the end, so that what a graphics driver keeps in its own variables is no leak.
extern "C" int dlclose(void*) {
  return 0;
}
#endif

namespace {
constexpr int skipped = 77;  // SKIP_RETURN_CODE in CMakeLists.txt
}

int main(int count, char** arguments) {
  doctest::Context context(count, arguments);
  const int failed = context.run();
  if (failed != 0 || context.shouldExit() || headscope::testing::have_display()) return failed;
  std::fputs("skipped: no display; run the tests through xvfb-run (./test does)\n", stderr);
  return skipped;
}
