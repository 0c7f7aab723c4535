#include "app/widgets/paragraph.h"

#include <doctest/doctest.h>

namespace headscope::paragraph_test {

TEST_CASE("a paragraph breaks at spaces alone, numbers stay whole, its own line breaks stay") {
  const auto lines = [](std::string_view text, double room) {
    return broken_at_spaces(text, room, [](std::string_view part) { return 10.0 * static_cast<double>(part.size()); });
  };
  CHECK(lines("", 100) == "");
  CHECK(lines("it loses +0.820 nats", 1000) == "it loses +0.820 nats");
  CHECK(lines("it loses +0.820 nats", 110) == "it loses\n+0.820 nats");
  CHECK(lines("it loses +0.820 nats", 109) == "it loses\n+0.820\nnats");
  CHECK(lines("one two\nthree four", 100) == "one two\nthree four");
  CHECK(lines("one two\nthree four five", 70) == "one two\nthree\nfour\nfive");
  CHECK(lines("models/tiny-gpt2/README.md or so", 60) == "models/tiny-gpt2/README.md\nor so");  // a word too wide stays
}

}  // namespace headscope::paragraph_test
