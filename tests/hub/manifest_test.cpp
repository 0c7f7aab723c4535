// The list of models that comes with the program.

#include "core/hub/manifest.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/model/family.h"
#include "tests/support/paths.h"

namespace headscope::manifest_test {

TEST_CASE("every listed model is of a family that opens, named once, with size, licence and a reason") {
  const auto entries = read_manifest(testing::source_dir() / "models" / "manifest.json");
  CHECK(entries.size() >= 10);
  std::set<std::string> names;
  for (const ManifestEntry& entry : entries) {
    CAPTURE(entry.name);
    CHECK(names.insert(entry.name).second);
    CHECK(std::ranges::find(families(), entry.family, &Family::model_type) != families().end());
    CHECK(entry.bytes > 1'000'000);
    CHECK(entry.bytes < 10'000'000'000);
    CHECK_FALSE(entry.licence.empty());
    CHECK_FALSE(entry.parameters.empty());
    CHECK_FALSE(entry.why.empty());
  }
  CHECK(names.contains("openai-community/gpt2"));
}

TEST_CASE("a list that is no list says where") {
  const auto file = testing::scratch_dir("manifest") / "manifest.json";
  const auto why = [&](const std::string& text) -> std::string {
    write_file_atomically(file, text);
    try {
      read_manifest(file);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const std::string head = R"({"type": "headscope models", "version": 1, "models": [)";
  CHECK(why(head + "]}").empty());
  CHECK(why(head + R"({"name": "a/b", "family": "gpt2", "bytes": -1, "licence": "x"}]})").find("bytes") !=
        std::string::npos);
  CHECK(why(head + R"({"name": "../b", "family": "gpt2", "bytes": 1, "licence": "x"}]})").find("org/name") !=
        std::string::npos);
  CHECK(why(head + R"({"name": "a/b", "family": "gpt2", "bytes": 1, "licence": "x", "size": 1}]})").find("size") !=
        std::string::npos);
  CHECK(why(R"({"models": []})").find("headscope models") != std::string::npos);
}

}  // namespace headscope::manifest_test
