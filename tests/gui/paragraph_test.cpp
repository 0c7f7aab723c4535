#include "app/widgets/paragraph.h"

#include <doctest/doctest.h>

#include "app/widgets/line_breaks.h"

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

TEST_CASE("lines of Chinese end beside its characters, neither before what closes nor behind what opens") {
  const auto parts = [](std::string_view word) {
    std::string out;
    for (const std::string_view each : breakable_parts(word)) out += (out.empty() ? "" : "|") + std::string(each);
    return out;
  };
  CHECK(parts("sold") == "sold");
  CHECK(parts("a.b,c") == "a.b,c");
  CHECK(parts("\u8bfb\u5b8c\u4e86\u3002\u5728") == "\u8bfb|\u5b8c|\u4e86\u3002|\u5728");         // 读完了。在
  CHECK(parts("\u8bcdsold\uff0c\u5728") == "\u8bcd|sold\uff0c|\u5728");                          // 词sold，在
  CHECK(parts("\u8bf4\u300c\u662f\u300d0.38\u3002") == "\u8bf4|\u300c\u662f\u300d|0.38\u3002");  // 说「是」0.38。
  CHECK(parts("\u5728*\u8bcd*\uff0c\u5728") == "\u5728*\u8bcd*\uff0c|\u5728");
  CHECK(parts("") == "");
  CHECK(parts("\xFF\xFE") == "\xFF\xFE");
}

}  // namespace headscope::paragraph_test
