// xIELU's numbers, learnt by each layer: read from the file as they are, and what the pass makes of them.

#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "core/analysis/feed_forward.h"
#include "core/io/safetensors.h"
#include "core/model/model.h"
#include "core/model/weights.h"
#include "tests/support/paths.h"

namespace headscope::xielu_test {

TEST_CASE("each layer's xIELU is that of its file, and the curve on screen is the pass's") {
  const auto folder = testing::reference("families") / "apertus";
  Backend backend(1);
  const auto model = Model::load(folder, backend);
  const SafetensorsFile file = SafetensorsFile::open(folder / "model.safetensors");
  for (int layer = 0; layer < model->config().dims.layers; ++layer) {
    const auto stored = [&](const char* name) {
      return static_cast<double>(
          file.tensor("model.layers." + std::to_string(layer) + ".mlp.act_fn." + name).packed().values()[0]);
    };
    const Backend::Xielu f = model->weights().blocks[static_cast<std::size_t>(layer)].xielu;
    const double positive = std::log(1 + std::exp(stored("alpha_p"))),
                 negative = stored("beta") + std::log(1 + std::exp(stored("alpha_n")));
    CHECK(static_cast<double>(f.positive) == doctest::Approx(positive).epsilon(1e-6));
    CHECK(static_cast<double>(f.negative) == doctest::Approx(negative).epsilon(1e-6));
    CHECK(static_cast<double>(f.beta) == stored("beta"));
    CHECK(static_cast<double>(f.epsilon) == stored("eps"));
    CHECK(stored("eps") == doctest::Approx(-1e-4));  // not what every model has
    CHECK(stored("beta") == doctest::Approx(0.37));
    const ActivationCurve curve = activation_curve(backend, Activation::xielu, -2, 2, 5, f);
    CHECK(curve.y[4] == doctest::Approx(positive * 4 + 2 * stored("beta")));
    CHECK(curve.y[0] == doctest::Approx(negative * (std::exp(-2) - 1 + 2) - 2 * stored("beta")));
    CHECK(curve.y[2] == doctest::Approx(negative * (std::exp(-1e-4) - 1)).epsilon(0.01));
  }
}

TEST_CASE("xIELU as training begins is x (0.8 x + 0.5) above 0") {
  Backend backend(1);
  const ActivationCurve curve = activation_curve(backend, Activation::xielu, 0.5, 1, 2);
  CHECK(curve.y[0] == doctest::Approx(0.45));
  CHECK(curve.y[1] == doctest::Approx(1.3));
  CHECK(title(Activation::xielu) == "xIELU");
}

}  // namespace headscope::xielu_test
