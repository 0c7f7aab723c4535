// Standard input, which can be read once and is asked for more often.

#include "core/base/standard_streams.h"

#include <doctest/doctest.h>

#include <cstdio>

#include "core/base/error.h"
#include "core/base/file.h"
#include "tests/support/paths.h"

namespace headscope::standard_streams_test {

TEST_CASE("standard input is the same when a command is carried out once more") {
  const auto file = testing::scratch_dir("standard-input") / "text";
  write_file_atomically(file, "In the village");
  REQUIRE(std::freopen(file.c_str(), "r", stdin));
  CHECK_THROWS_AS(standard_input(3), Error);
  REQUIRE(std::freopen(file.c_str(), "r", stdin));
  CHECK(standard_input(1 << 20) == "In the village");
  CHECK(standard_input(1 << 20) == "In the village");
}

}  // namespace headscope::standard_streams_test
