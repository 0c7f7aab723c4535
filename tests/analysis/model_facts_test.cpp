// What a model says of itself adds up, whatever it is made of.

#include "core/analysis/model_facts.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "core/model/parameter_parts.h"
#include "tests/support/paths.h"

namespace headscope::model_facts_test {

namespace fs = std::filesystem;

TEST_CASE("the parts of every family are all of its parameters") {
  int models = 0;
  for (const char* folder : {"families", "vision", "encoder-decoders"})
    for (const auto& entry : fs::directory_iterator(testing::reference(folder))) {
      if (!fs::exists(entry.path() / "config.json")) continue;
      CAPTURE(entry.path().string());
      const ModelFacts facts = model_facts(entry.path());
      std::int64_t sum = 0;
      for (const ModelFacts::Part& part : facts.parts) sum += part.parameters;
      CHECK(sum == facts.parameters);
      ++models;
    }
  CHECK(models > 50);
}

TEST_CASE("of a state space the mixers are counted, with their gated norms among the norms") {
  for (const char* name : {"mamba", "mamba2"}) {
    CAPTURE(name);
    const ModelFacts facts = model_facts(testing::reference("families") / name);
    const ParameterParts counted = parameter_parts(facts.config);
    for (const ModelFacts::Part& part : facts.parts) {
      if (part.name == "state space") CHECK(part.parameters == counted.attention);
      if (part.name == "norms") CHECK(part.parameters == counted.norms);
      CHECK(part.name != "attention");
    }
  }
}

}  // namespace headscope::model_facts_test
