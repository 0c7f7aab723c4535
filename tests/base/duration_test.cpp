#include "core/base/duration.h"

#include <doctest/doctest.h>

namespace headscope::duration_test {

TEST_CASE("durations read as people say them") {
  CHECK(duration_text(-3) == "0 s");
  CHECK(duration_text(0.4) == "0 s");
  CHECK(duration_text(59.4) == "59 s");
  CHECK(duration_text(59.6) == "1 min 00 s");
  CHECK(duration_text(125) == "2 min 05 s");
  CHECK(duration_text(3600 + 7 * 60 + 20) == "1 h 07 min");
}

}  // namespace headscope::duration_test
