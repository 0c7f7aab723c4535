// Runs the tests, none of which finds or writes anything among a person's own files.

#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include "tests/support/paths.h"
#include "tests/support/variable.h"

int main(int count, char** arguments) {
  using namespace headscope::testing;
  const Variable own("XDG_DATA_HOME", scratch_dir("data").string());
  const Variable english("LC_ALL", "C.UTF-8");  // lessons follow the system's language
  return doctest::Context(count, arguments).run();
}
