// Which layers have a window and are rotated where a file does not list them, by the rules of each family's makers; and
// the squared ReLU on a few numbers.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/analysis/feed_forward.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/io/strict_json.h"
#include "core/model/config_reader.h"
#include "core/model/family.h"
#include "core/model/plain_parts.h"
#include "tests/support/paths.h"

namespace headscope::layer_kinds_test {

using namespace testing;
using Json = nlohmann::json;

namespace {
/// The reference's configuration of a family without its list of kinds, and with these keys.
ModelConfig unlisted(const std::string& name, const Json& keys = Json::object()) {
  const auto file = reference("families/" + name) / "config.json";
  Json json = parse_strict_json(read_file(file, 1 << 20), file.string());
  json.erase("layer_types");
  json.update(keys);
  return family(json.at("model_type").get<std::string>(), name)
      .read_config(ConfigReader::parse(json.dump(), "config.json"));
}
using Windows = std::vector<int>;
using Turns = std::vector<bool>;
}  // namespace

TEST_CASE("layers with a window that a file does not list are those of the family's rule") {
  const ModelConfig cohere = unlisted("cohere2");  // all but every fourth, and those turn
  CHECK(cohere.windows == Windows{4, 4, 4, 0});
  CHECK(cohere.layer_turns == Turns{true, true, true, false});
  CHECK(unlisted("cohere2", {{"sliding_window_pattern", 2}}).windows == Windows{4, 0, 4, 0});
  const ModelConfig exaone = unlisted("exaone4", {{"sliding_window_pattern", 2}});
  CHECK(exaone.windows == Windows{4, 0, 4});
  CHECK(exaone.layer_turns == Turns{true, false, true});
  const ModelConfig whole = unlisted("exaone4", {{"sliding_window", nullptr}});  // then all of them turn
  CHECK(whole.windows.empty());
  CHECK(whole.turns(1));
  CHECK(unlisted("qwen2_moe").windows == Windows{4, 0, 4, 0});  // every other one before max_window_layers = 3 …
  CHECK(unlisted("qwen2_moe", {{"max_window_layers", 1}}).windows == Windows{4, 0, 0, 0});
  CHECK(unlisted("qwen2_moe", {{"use_sliding_window", false}}).windows.empty());
  CHECK(unlisted("dots1").windows == Windows{0, 0, 4});  // … and here from max_window_layers = 2 on
  CHECK(unlisted("cwm").windows == Windows{0, 4, 4});
  CHECK(unlisted("ministral").windows == Windows{4, 4, 4});
  CHECK(unlisted("ministral", {{"sliding_window", nullptr}}).windows.empty());
}

TEST_CASE("a window that sliding layers need and the file does not name is refused") {
  CHECK_THROWS_WITH_AS(
      unlisted("cohere2", {{"layer_types", {"sliding_attention", "full_attention", "full_attention", "full_attention"}},
                           {"sliding_window", nullptr}}),
      doctest::Contains("sliding_window"), Error);
  CHECK_THROWS_WITH_AS(unlisted("exaone4", {{"sliding_window_pattern", "LLLG"}}),
                       doctest::Contains("sliding_window_pattern"), Error);
}

TEST_CASE("a squared ReLU is 0 below 0 and x² above") {
  Backend backend(1);
  const ActivationCurve curve = activation_curve(backend, Activation::relu2, -2, 3, 6);
  const double expected[] = {0, 0, 0, 1, 4, 9};
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(curve.y[i] == expected[i]);
    CHECK(plain::activated(Activation::relu2, curve.x[i], {}) == expected[i]);
  }
  CHECK(title(Activation::relu2) == "ReLU²");
  CHECK(formula(Activation::relu2) == "max(0, x)²");
  CHECK(activation_name(Activation::relu2) == "relu2");
}

}  // namespace headscope::layer_kinds_test
