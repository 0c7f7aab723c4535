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

TEST_CASE("letters are spaced where each stands alone, not where they are joined, marked or run to the left") {
  for (const char* alone : {"", "PROMPT", "KÖPFE ÷ 2 → ▾", "НАСТРОЙКИ", "ΚΕΦΑΛΗ", "\u63d0\u793a", "\u30d8\u30c3\u30c9",
                            "\ud0d0\uc0c9", "\xFF"})
    CHECK_MESSAGE(letters_stand_alone(alone), alone);
  for (const char* joined : {"\u0627\u0644\u0646\u0635", "\u05d8\u05e7\u05e1\u05d8", "\u0936\u0940\u0930\u094d\u0937",
                             "\u0e02\u0e49\u0e2d", "HEAD e\u0301", "\u200f.", "\u30d8\u3099"})
    CHECK_MESSAGE(!letters_stand_alone(joined), joined);
}

}  // namespace headscope::paragraph_test
