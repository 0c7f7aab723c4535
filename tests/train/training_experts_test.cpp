// Models with experts are trained as others: gradients of routers, experts and learned sinks, by moving them.

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/train/parameters.h"
#include "tests/support/gradient_check.h"
#include "tests/support/paths.h"

namespace headscope::training_experts_test {

using testing::reference;
using testing::slopes;

TEST_CASE(
    "the gradient of the loss reaches routers and experts of a model, a few numbers of each tensor by moving them") {
  Backend backend(1);
  const std::vector<std::int32_t> tokens{3, 17, 8, 21, 40, 3, 17, 9}, targets{17, 8, 21, 40, 3, 17, 9, -1};
  for (const std::string family : {"mixtral", "qwen3_moe", "olmoe"}) {
    CAPTURE(family);
    Parameters parameters = Parameters::load(reference("families") / family);
    const auto model = parameters.trainable_model(backend);
    const auto loss = [&] { return backend.cross_entropy(model->forward({backend}, tokens).logits, targets).nats; };
    Tape tape(backend);
    for (const Parameter& each : parameters.all()) tape.watch(each.value);
    {
      const Ctx ctx{.backend = backend, .tape = &tape};
      const Tensor logits = model->forward(ctx, tokens).logits;
      const Backend::Recording recording(backend, &tape);
      tape.backward(backend.cross_entropy(logits, targets).mean, Tensor::full({1}, 1.0f));
    }
    int routers = 0, experts = 0;
    for (Parameter& each : parameters.all()) {
      const bool router = each.name.ends_with(".gate.weight"), expert = each.name.find("experts.") != std::string::npos;
      if (!router && !expert) continue;
      CAPTURE(each.name);
      const Tensor gradient = tape.gradient(each.value).packed();
      for (Index i = 1; i < each.value.size(); i += each.value.size() / 3) {
        const auto [slope, wide] = slopes(each.value.mutable_data()[i], loss);
        if (std::abs(slope - wide) > 1e-3) continue;  // a token goes to another expert in between
        CHECK(gradient.data()[i] == doctest::Approx(slope).epsilon(0.02).scale(0.02));
        if (std::abs(slope) > 1e-3) ++(router ? routers : experts);
      }
    }
    CHECK(routers > 1);
    CHECK(experts > 5);
  }
  // Interleaved as GPT-OSS stores its gates, they are copies.
  CHECK_THROWS_WITH_AS(Parameters::load(reference("families") / "gpt_oss").trainable_model(backend),
                       doctest::Contains("not trained"), Error);
}

}  // namespace headscope::training_experts_test
