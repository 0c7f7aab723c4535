#include "core/io/strict_json.h"
#include "core/base/json.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "core/base/error.h"

namespace headscope::strict_json_test {

using nlohmann::json;

namespace {

std::string refusal(const std::string& text, int depth = 16) {
  try {
    parse_strict_json(text, "file", depth);
    return "read";
  } catch (const Error& error) {
    return error.what();
  }
}

/// A header of so many tensors.
std::string header(int tensors) {
  std::string text = "{";
  for (int i = 0; i < tensors; ++i)
    text += fmt::format(R"({}"t{}":{{"dtype":"F32","shape":[1],"data_offsets":[{},{}]}})", i ? "," : "", i, 4 * i,
                        4 * i + 4);
  return text + "}";
}

}  // namespace

TEST_CASE("strict JSON: what it reads is what the library reads") {
  for (const char* text :
       {"null", "true", "-1", "18446744073709551615", "1.5e300", "\"a\\u0041\\n灯\"", "[]", "{}",
        "[[],{},[1,[2,{\"a\":[3]}]]]", R"({"a": [1, {"b": null}, "x"], "c": {"a": false, "b": {"a": [[]]}}, "": 0})",
        " [ 1 , 2 ] "}) {
    CAPTURE(text);
    CHECK(parse_strict_json(text, "file") == json::parse(text));
  }
}

TEST_CASE("strict JSON: keys twice, depth, broken text and numbers out of range are one Error") {
  CHECK(refusal(R"({"a":1,"b":{"a":2},"a":3})") == R"(file: expected every name once, found "a" twice)");
  CHECK(refusal(R"([{"a":1},{"a":2}])") == "read");
  CHECK(refusal(std::string(16, '[') + std::string(16, ']')) == "read");
  CHECK(refusal(std::string(17, '[') + std::string(17, ']')).find("nested at most 16 deep") != std::string::npos);
  CHECK(refusal(std::string(1'000'000, '[')).find("nested at most 16 deep") != std::string::npos);
  for (const char* text :
       {"", "{", "[1,]", "{\"a\"}", "1 2", "\"\xff\"", "1e999", "{\"a\":1e999}", "nul", "\"\x1b\""}) {
    CAPTURE(text);
    const std::string said = refusal(text);
    CHECK(said.find("file: expected valid JSON, found ") == 0);
    CHECK(said.find("json.exception") == std::string::npos);
    CHECK(said.find('\x1b') == std::string::npos);
    CHECK(said.size() < 300);
  }
  CHECK(refusal("\"" + std::string(1'000'000, 'x')).size() < 300);
}

TEST_CASE(
    "strict JSON: many values are read at once; whoever looked at all of them for each would not come to an end") {
  constexpr int tensors = 300'000;  // a parser that takes the square has 10¹¹ elements to look at
  const json parsed = parse_strict_json(header(tensors), "file");
  CHECK(parsed.size() == tensors);
  CHECK(parsed["t299999"]["data_offsets"][1] == 4 * tensors);
}

}  // namespace headscope::strict_json_test
