#include "core/base/excerpt.h"

#include <doctest/doctest.h>

#include "core/base/error.h"
#include "core/base/utf8.h"

namespace headscope::excerpt_test {

TEST_CASE("an excerpt spells out what would command a terminal, turn the line or is no UTF-8") {
  CHECK(excerpt("wte.weight") == "wte.weight");
  CHECK(excerpt("\x1b[31mred\x1b[0m") == "<1B>[31mred<1B>[0m");
  CHECK(excerpt(std::string("a\0b\r\n\t\x7f", 7)) == "a<00>b<0D><0A><09><7F>");
  CHECK(excerpt("\u009b2J") == "<C2><9B>2J");  // the one-character form of ESC [
  CHECK(excerpt("a\u202Egnp.exe") == "a<U+202E>gnp.exe");
  CHECK(excerpt("\xff\xe4\xb8") == "<FF><E4><B8>");
  CHECK(excerpt("灯台 👩‍🌾 ünï") == "灯台 👩‍🌾 ünï");  // a joiner inside an emoji belongs to it
  CHECK(excerpt("one\ntwo\x1b", 200, Lines::kept) == "one\ntwo<1B>");
}

TEST_CASE("an excerpt is at most so many characters, and says that there was more") {
  CHECK(excerpt(std::string(200, 'x')) == std::string(200, 'x'));
  CHECK(excerpt(std::string(201, 'x')) == std::string(200, 'x') + "…");
  CHECK(excerpt("灯台灯台", 3) == "灯台灯…");
  CHECK(excerpt("", 0).empty());
}

TEST_CASE("no part of an error's message lets control characters through, and what was found is cut") {
  const std::string bad = "\x1b]0;title\x07";
  const Error error("file: tensor " + bad, "a name" + bad, bad + std::string(100'000, 'y'), "try " + bad + "\nagain");
  const std::string what = error.what();
  for (const char c : what) CHECK((static_cast<unsigned char>(c) >= 0x20 || c == '\n'));
  CHECK(what.find("file: tensor <1B>]0;title<07>: expected a name<1B>]0;title<07>, found <1B>]0;title<07>yyy") == 0);
  CHECK(what.find("\n  hint: try <1B>]0;title<07>\nagain") != std::string::npos);
  CHECK(error.found.size() == 200 - bad.size() + 2 * 4 + bad.size() - 2 + std::string("…").size());
  CHECK(error.where.find('\x1b') == std::string::npos);
  const Error wide(std::string(100'000, 'w'), "e", "f");
  CHECK(wide.where.size() == 1000 + std::string("…").size());
}

}  // namespace headscope::excerpt_test
