// Routers and experts by hand, and their gradients against central differences of the definition.

#include "core/model/experts.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <vector>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/io/safetensors.h"
#include "core/model/family.h"
#include "core/model/formats/packed_pairs.h"
#include "core/model/weight_reader.h"
#include "core/tensor/tape.h"
#include "tests/support/gradient_check.h"
#include "tests/support/paths.h"

namespace headscope::experts_test {

using namespace testing;

namespace {

std::vector<float> row(const Tensor& t, Index i) {
  std::vector<float> out;
  for (Index j = 0; j < t.dim(1); ++j) out.push_back(t.at(i, j));
  return out;
}

void check_row(const Tensor& t, Index i, const std::vector<double>& expected) {
  const std::vector<float> found = row(t, i);
  REQUIRE(found.size() == expected.size());
  for (std::size_t j = 0; j < expected.size(); ++j) CHECK(found[j] == doctest::Approx(expected[j]).epsilon(1e-6));
}

Tensor random(Shape shape, std::uint64_t seed, float size = 1) {
  Random from(seed);
  Tensor out = Tensor::uninitialized(shape);
  for (float& v : out.mutable_values()) v = size * from.normal();
  return out;
}

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

}  // namespace

TEST_CASE(
    "a router's weights by hand: of the softmax the largest, as they are, divided by their sum, or of their own") {
  Backend backend(1);
  const std::vector<float> logs{std::log(1.0f), std::log(4.0f), std::log(3.0f), std::log(2.0f)};  // .1 .4 .3 .2
  const Tensor logits = Tensor::from({1, 4}, logs);
  ExpertConfig c{.count = 4, .per_token = 2};
  check_row(router_weights(c, {}, backend, logits), 0, {0, 0.4, 0.3, 0});
  c.renormalized = true;
  check_row(router_weights(c, {}, backend, logits), 0, {0, 4.0 / 7, 3.0 / 7, 0});
  c.scale = 2.5;
  check_row(router_weights(c, {}, backend, logits), 0, {0, 10.0 / 7, 7.5 / 7, 0});
  c = {.count = 4, .per_token = 3, .score = RouterScore::softmax_of_chosen};
  check_row(router_weights(c, {}, backend, logits), 0, {0, 4.0 / 9, 3.0 / 9, 2.0 / 9});
  c.per_token = 1;
  check_row(router_weights(c, {}, backend, logits), 0, {0, 1, 0, 0});
  // Equal logits: the first ones.
  c = {.count = 4, .per_token = 2};
  check_row(router_weights(c, {}, backend, Tensor::zeros({1, 4})), 0, {0.25, 0.25, 0, 0});
}

TEST_CASE("an expert that is full takes nobody more, of every text anew, and who is turned away has no gradient") {
  Backend backend(1);
  // Expert 1 for the first three and the last two tokens, 0 for the fourth.
  const Tensor logits = Tensor::from({6, 2}, std::vector<float>{0, 1, 0, 2, 0, 3, 1, 0, 0, 4, 0, 5});
  ExpertConfig c{.count = 2, .per_token = 1};
  c.capacity = 2;
  const auto taken = [&](std::span<const Index> lengths) {
    std::string out;
    const Tensor weights = router_weights(c, {}, backend, logits, 0, {}, lengths);
    for (Index i = 0; i < 6; ++i) {
      const bool first = weights.at(i, 0) != 0, second = weights.at(i, 1) != 0;
      CHECK_FALSE((first && second));
      out += first ? '0' : second ? '1' : '-';
      if (second) CHECK(weights.at(i, 1) == doctest::Approx(sigmoid(static_cast<double>(logits.at(i, 1)))));
    }
    return out;
  };
  CHECK(taken({}) == "11-0--");
  CHECK(taken(std::vector<Index>{3, 3}) == "11-011");
  CHECK(taken(std::vector<Index>{1, 5}) == "1110--");
  c.capacity = 4;
  CHECK(taken({}) == "11101-");
  c.capacity = 2;
  const auto definition = [&](const std::vector<Numbers>& in) {
    Numbers out(12, 0.0);
    for (const auto& [token, e] : {std::pair(0, 1), std::pair(1, 1), std::pair(3, 0)}) {
      const std::size_t at = static_cast<std::size_t>(token) * 2;
      out[at + static_cast<std::size_t>(e)] =
          std::exp(in[0][at + static_cast<std::size_t>(e)]) / (std::exp(in[0][at]) + std::exp(in[0][at + 1]));
    }
    return out;
  };
  check_gradients({[&](Backend& b) { return router_weights(c, {}, b, logits); }, definition, {logits}}, 7);
}

TEST_CASE("a correction chooses experts and does not weigh them; groups that are worse take none") {
  Backend backend(1);
  // σ: 1/2, 2/3, 3/4, 4/5, 1/2, 1/2
  const std::vector<float> z{0, std::log(2.0f), std::log(3.0f), std::log(4.0f), 0, 0};
  const Tensor logits = Tensor::from({1, 6}, z);
  ExpertConfig c{.count = 6, .per_token = 2, .score = RouterScore::sigmoid};
  check_row(router_weights(c, {}, backend, logits), 0, {0, 0, 0.75, 0.8, 0, 0});
  const std::vector<float> more{1, 0, 0, 0, 0, 0};
  const Tensor correction = Tensor::from({6}, more);
  check_row(router_weights(c, correction, backend, logits), 0, {0.5, 0, 0, 0.8, 0, 0});
  // Three groups of two, the sums of whose best two are 1.5 + 2/3, 1.55 and 1: one is kept.
  c.groups = 3, c.groups_kept = 1;
  check_row(router_weights(c, correction, backend, logits), 0, {0.5, 2.0 / 3, 0, 0, 0, 0});
  // By the best alone the first group has 1.5, the second 0.8; without the correction the second is better.
  c.group_best = 1;
  check_row(router_weights(c, correction, backend, logits), 0, {0.5, 2.0 / 3, 0, 0, 0, 0});
  check_row(router_weights(c, {}, backend, logits), 0, {0, 0, 0.75, 0.8, 0, 0});
  // Two of 0.7 beat one of 0.8 beside one of 0.5 where two count, and not where one does.
  const std::vector<float> even{std::log(7.0f / 3), std::log(7.0f / 3), std::log(4.0f), 0, 0, 0};
  check_row(router_weights(c, {}, backend, Tensor::from({1, 6}, even)), 0, {0, 0, 0.8, 0.5, 0, 0});
  c.group_best = 2;
  check_row(router_weights(c, {}, backend, Tensor::from({1, 6}, even)), 0, {0.7, 0.7, 0, 0, 0, 0});
  c.groups_kept = 2;
  check_row(router_weights(c, correction, backend, logits), 0, {0.5, 0, 0, 0.8, 0, 0});
}

TEST_CASE("sigmoids that are divided by their sum have no weight where all are 0, and less beside DeepSeek's 1e-20") {
  Backend backend(1);
  const ExpertConfig c{.count = 3, .per_token = 2, .score = RouterScore::sigmoid, .renormalized = true, .scale = 2.5};
  // e^-50 = 1.9287e-22: 2.5 · 1.9287e-22 ÷ (2 · 1.9287e-22 + 1e-20)
  const Tensor logits = Tensor::from({2, 3}, std::vector<float>{-1000, -1000, -1000, -50, -50, -1000});
  const Tensor weights = router_weights(c, {}, backend, logits);
  check_row(weights, 0, {0, 0, 0});
  const double s = std::exp(-50.0), weight = 2.5 * s / (2 * s + 1e-20);
  CHECK(weight == doctest::Approx(0.046428).epsilon(1e-4));
  check_row(weights, 1, {weight, weight, 0});
  // LFM2's 1e-6 is met sooner: e^-14 = 8.3153e-7.
  ExpertConfig lfm2 = c;
  lfm2.sum_floor = load_config(testing::reference("families/lfm2_moe")).experts.sum_floor;
  const double few = 1 / (1 + std::exp(14.0)), less = 2.5 * few / (2 * few + 1e-6);
  CHECK(less == doctest::Approx(0.780614).epsilon(1e-5));
  check_row(router_weights(lfm2, {}, backend, Tensor::from({1, 3}, std::vector<float>{-14, -14, -1000})), 0,
            {less, less, 0});
  // … and what flows back is a number.
  Tape tape(backend);
  tape.watch(logits);
  Tensor taped;
  {
    const Backend::Recording recording(backend, &tape);
    taped = router_weights(c, {}, backend, logits);
  }
  tape.backward(taped, Tensor::from({2, 3}, std::vector<float>{1, 2, 3, 1, 2, 3}));
  const Tensor back = tape.gradient(logits);
  for (Index e = 0; e < 3; ++e) CHECK(back.at(0, e) == 0);
}

TEST_CASE("experts one after another, each weighed among those nearly as good") {
  Backend backend(1);
  ExpertConfig c{.count = 4, .per_token = 2, .score = RouterScore::near_best, .nearness = 0.25};
  // 2, then of what is left 1.5. Within half of the larger: (2 − 1.5) ÷ 2 and (2 − 1) ÷ 2, not (2 + 1) ÷ 2; then
  // (1.5 − 1) ÷ 1.5, not (1.5 + 1) ÷ 1.5.
  const Tensor w = router_weights(c, {}, backend, Tensor::from({1, 4}, std::vector<float>{1, 2, -1, 1.5f}));
  CHECK(w.at(0, 1) == doctest::Approx(1 / (1 + std::exp(-0.5) + std::exp(-1.0))));
  CHECK(w.at(0, 3) == doctest::Approx(1 / (1 + std::exp(-0.5))));
  CHECK(w.at(0, 0) == 0);
  CHECK(w.at(0, 2) == 0);
  // Where all are below 0 a logit's own size counts: (−1 + 4) ÷ 4 is more than half.
  const Tensor below = router_weights(c, {}, backend, Tensor::from({1, 4}, std::vector<float>{-4, -1, -1.5f, -9}));
  CHECK(below.at(0, 1) == doctest::Approx(1 / (1 + std::exp(-0.5))));
  CHECK(below.at(0, 2) == doctest::Approx(1.0));

  const Tensor logits = random({5, 6}, 3);
  c = {.count = 6, .per_token = 3, .score = RouterScore::near_best, .nearness = 0.6, .scale = 1.5};
  const auto definition = [&](const std::vector<Numbers>& in) {
    Numbers out(30, 0.0);
    for (std::size_t token = 0; token < 5; ++token) {
      std::vector<std::size_t> left{0, 1, 2, 3, 4, 5};
      const auto z = [&](std::size_t e) { return in[0][token * 6 + e]; };
      for (int k = 0; k < 3; ++k) {
        const std::size_t best = *std::ranges::max_element(left, {}, z);
        double near = 0;
        for (const std::size_t e : left)
          if ((z(best) - z(e)) / std::max(std::abs(z(e)), z(best)) <= 1.2) near += std::exp(z(e) - z(best));
        out[token * 6 + best] = 1.5 / near;
        std::erase(left, best);
      }
    }
    return out;
  };
  check_gradients({[&](Backend& b) { return router_weights(c, {}, b, logits); }, definition, {logits}}, 7);
}

TEST_CASE("gradients of a router's weights go to the logits as the definition says") {
  const Tensor logits = random({5, 6}, 3);
  for (const RouterScore score : {RouterScore::softmax, RouterScore::softmax_of_chosen, RouterScore::sigmoid})
    for (const bool renormalized : {false, true}) {
      ExpertConfig c{.count = 6, .per_token = 3, .score = score};
      c.renormalized = renormalized;
      c.scale = 1.5;
      const auto definition = [&](const std::vector<Numbers>& in) {
        Numbers out(30, 0.0);
        for (std::size_t token = 0; token < 5; ++token) {
          std::vector<std::size_t> order{0, 1, 2, 3, 4, 5};
          const auto z = [&](std::size_t e) { return in[0][token * 6 + e]; };
          std::ranges::sort(order, [&](std::size_t a, std::size_t b) { return z(a) > z(b); });
          double all = 0, chosen = 0, sigmoids = 0;
          for (std::size_t k = 0; k < 6; ++k) all += std::exp(z(order[k]));
          for (std::size_t k = 0; k < 3; ++k) chosen += std::exp(z(order[k])), sigmoids += sigmoid(z(order[k]));
          for (std::size_t k = 0; k < 3; ++k) {
            const std::size_t e = order[k];
            double w = score == RouterScore::sigmoid ? sigmoid(z(e))
                                                     : std::exp(z(e)) / (score == RouterScore::softmax ? all : chosen);
            if (renormalized)
              w /= score == RouterScore::sigmoid ? sigmoids : score == RouterScore::softmax ? chosen / all : 1;
            out[token * 6 + e] = 1.5 * w;
          }
        }
        return out;
      };
      CAPTURE(static_cast<int>(score));
      CAPTURE(renormalized);
      check_gradients({[&](Backend& b) { return router_weights(c, {}, b, logits); }, definition, {logits}}, 7);
    }
}

TEST_CASE("the balance of a router by hand, and what its price adds to the gradient of the logits") {
  Backend backend(1);
  // Two tokens with softmax .1 .4 .3 .2 and .4 .1 .3 .2; each takes its best two: loads 1/4 1/4 1/2 0.
  const std::vector<float> logs{std::log(1.0f), std::log(4.0f), std::log(3.0f), std::log(2.0f),
                                std::log(4.0f), std::log(1.0f), std::log(3.0f), std::log(2.0f)};
  const Tensor two = Tensor::from({2, 4}, logs);
  ExpertConfig c{.count = 4, .per_token = 2};
  const RouterBalance hand = router_balance(two, router_weights(c, {}, backend, two));
  CHECK(hand.tokens == std::vector<Index>{1, 1, 2, 0});
  CHECK(hand.probability[0] == doctest::Approx(0.25));
  CHECK(hand.value == doctest::Approx(4 * (0.25 * 0.25 + 0.25 * 0.25 + 0.5 * 0.3)));
  // One expert that has it all: as many as there are experts, but for what softmax leaves the others.
  c.per_token = 1;
  const Tensor alone = Tensor::from({1, 4}, std::vector<float>{40, 0, 0, 0});
  CHECK(router_balance(alone, router_weights(c, {}, backend, alone)).value == doctest::Approx(4));

  const Tensor logits = random({7, 5}, 21);
  c = {.count = 5, .per_token = 2, .renormalized = true};
  const double price = 0.3;
  Tape tape(backend);
  tape.watch(logits);
  Tensor weights;
  {
    const Backend::Recording recording(backend, &tape);
    weights = router_weights(c, {}, backend, logits, price);
  }
  tape.backward(weights, Tensor::zeros(weights.shape()));  // of the weights themselves nothing comes back
  const Tensor found = tape.gradient(logits);
  const std::vector<double> load = router_balance(logits, weights).load;
  std::vector<double> z;
  for (const float each : logits.values()) z.push_back(static_cast<double>(each));
  const auto priced = [&] {  // in float64, loads as they are
    double sum = 0;
    for (std::size_t t = 0; t < 7; ++t) {
      double all = 0;
      for (std::size_t e = 0; e < 5; ++e) all += std::exp(z[t * 5 + e]);
      for (std::size_t e = 0; e < 5; ++e) sum += load[e] * std::exp(z[t * 5 + e]) / all / 7;
    }
    return price * 5 * sum;
  };
  for (std::size_t i = 0; i < z.size(); ++i) {
    const double at = z[i], step = 1e-5;
    z[i] = at + step;
    const double up = priced();
    z[i] = at - step;
    const double down = priced();
    z[i] = at;
    CHECK(static_cast<double>(found.packed().data()[i]) ==
          doctest::Approx((up - down) / (2 * step)).epsilon(1e-4).scale(1e-4));
  }
}

TEST_CASE("a cut gate is (clip(u) + 1) · g σ(α g) with g = min(gate, limit), and so is its gradient") {
  ModelConfig c;
  c.gated_mlp = true;
  c.gate_alpha = 1.5, c.gate_limit = 0.7;
  Backend backend(1);
  const std::vector<float> gate{0.5f, 3.0f, -2.0f}, up{0.2f, -5.0f, 4.0f};
  const Tensor made = gated(c, {}, backend, Tensor::from({1, 3}, gate), Tensor::from({1, 3}, up));
  check_row(made, 0, {1.2 * 0.5 * sigmoid(0.75), (1 - 0.7) * 0.7 * sigmoid(1.05), 1.7 * -2 * sigmoid(-3.0)});
  const auto definition = [](const std::vector<Numbers>& in) {
    Numbers out;
    for (std::size_t i = 0; i < in[0].size(); ++i) {
      const double g = std::min(in[0][i], 0.7), u = std::clamp(in[1][i], -0.7, 0.7);
      out.push_back((u + 1) * g * sigmoid(1.5 * g));
    }
    return out;
  };
  const Tensor a = random({4, 9}, 1), b = random({4, 9}, 2);
  check_gradients({[&](Backend& on) { return gated(c, {}, on, a, b); }, definition, {a, b}}, 5);
}

TEST_CASE(
    "experts add up weighed, those without weight are not run, and gradients reach tokens, weights and matrices") {
  // Two numbers in, three neurons, ReLU without a gate: Σ_e w_e · relu(x A_e) B_e (+ that of the shared one).
  ModelConfig c;
  c.activation = Activation::relu;
  c.dims = {.layers = 1, .heads = 1, .kv_heads = 1, .d_head = 2, .d_model = 2, .d_mlp = 3, .vocab = 4};
  const Tensor x = random({4, 2}, 11), weights = random({4, 2}, 12);
  std::vector<Tensor> inputs{x, weights};
  RawExperts raw;
  raw.router_weight = Tensor::zeros({2, 2});
  for (int e = 0; e < 3; ++e) {
    RawExpert expert;
    expert.up_weight = random({2, 3}, 20 + static_cast<std::uint64_t>(e));
    expert.down_weight = random({3, 2}, 30 + static_cast<std::uint64_t>(e));
    inputs.push_back(expert.up_weight), inputs.push_back(expert.down_weight);
    (e < 2 ? raw.each.emplace_back() : raw.shared) = expert;
  }
  const auto layer = [&](Backend& b) {
    return expert_layer(
        raw, [&b](const Tensor& w, const Tensor& bias, const char*) { return b.linear_weights({w}, {bias}, true); });
  };
  const auto definition = [](const std::vector<Numbers>& in) {
    Numbers out(8, 0.0);
    for (std::size_t token = 0; token < 4; ++token)
      for (std::size_t e = 0; e < 3; ++e) {
        const double weight = e < 2 ? in[1][token * 2 + e] : 1;
        const Numbers &up = in[2 + 2 * e], &down = in[3 + 2 * e];
        for (std::size_t j = 0; j < 3; ++j) {
          const double h = std::max(0.0, in[0][token * 2] * up[j] + in[0][token * 2 + 1] * up[3 + j]);
          for (std::size_t i = 0; i < 2; ++i) out[token * 2 + i] += weight * h * down[j * 2 + i];
        }
      }
    return out;
  };
  check_gradients({[&](Backend& b) { return through_experts(c, layer(b), b, x, weights); }, definition, inputs}, 3);

  // One expert that would give infinity, but takes no token.
  Backend backend(1);
  raw.shared = {};
  std::ranges::fill(raw.each[1].down_weight.mutable_values(), std::numeric_limits<float>::infinity());
  Tensor only_first = Tensor::full({4, 2}, 1.0f);
  for (Index i = 0; i < 4; ++i) only_first.ref(i, 1) = 0;
  CHECK(backend.finite(through_experts(c, layer(backend), backend, x, only_first)));
  only_first.ref(2, 1) = 0.1f;
  CHECK_FALSE(backend.finite(through_experts(c, layer(backend), backend, x, only_first)));
}

TEST_CASE("4-bit pairs are read as their format says, and as what they stand for") {
  const auto file = std::filesystem::temp_directory_path() / "headscope-packed-pairs.safetensors";
  // One expert, two outputs, one group of 32 inputs.
  std::vector<std::uint8_t> blocks(32), scales{127, 129};
  for (std::size_t i = 0; i < 16; ++i)
    blocks[i] = static_cast<std::uint8_t>(i | (15 - i) << 4);  // numbers i and 15 − i
  for (std::size_t i = 16; i < 32; ++i) blocks[i] = 0x1f;      // −6 and ½
  SafetensorsWriter writer;
  const auto bytes = [](const std::vector<std::uint8_t>& all) {
    return [all](std::ostream& out) {
      out.write(reinterpret_cast<const char*>(all.data()), static_cast<std::streamsize>(all.size()));
    };
  };
  writer.add("e.w_blocks", DType::u8, {1, 2, 1, 16}, bytes(blocks));
  writer.add("e.w_scales", DType::u8, {1, 2, 1}, bytes(scales));
  writer.write(file);
  const SafetensorsFile stored = SafetensorsFile::open(file);
  const FileWeights source(stored);
  CHECK(source.names() == std::vector<std::string>{"e.w"});
  REQUIRE(source.contains("e.w"));
  CHECK(source.dtype("e.w") == "MXFP4");
  const Tensor w = source.take("e.w", {1, 32, 2});
  const double numbers[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6};
  for (Index i = 0; i < 16; ++i) {
    CHECK(w.at(0, 2 * i, 0) == numbers[i]);
    CHECK(w.at(0, 2 * i + 1, 0) == numbers[15 - i]);
    CHECK(w.at(0, 2 * i, 1) == -24);  // −6 · 2²
    CHECK(w.at(0, 2 * i + 1, 1) == 2);
  }
  CHECK_THROWS_WITH_AS(source.take("e.w", {1, 64, 2}), doctest::Contains("e.w_blocks"), Error);
  CHECK_THROWS_WITH_AS(source.take("e.w", {1, 33, 2}), doctest::Contains("whole groups of 32"), Error);
  std::filesystem::remove(file);
}

}  // namespace headscope::experts_test
