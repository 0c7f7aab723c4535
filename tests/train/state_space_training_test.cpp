// Mamba and Mamba-2 learn: how they begin, gradients of every tensor by moving its numbers, what decays and what not,
// several texts at once against each alone, and what recipes say about them.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/attention/state_mixing.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/metrics/shares.h"
#include "core/tensor/tape.h"
#include "core/train/learner.h"
#include "core/train/model_card.h"
#include "core/train/recipe.h"
#include "core/train/trainer.h"
#include "core/train/training_memory.h"
#include "tests/support/gradient_check.h"
#include "tests/support/largest_difference.h"
#include "tests/support/paths.h"

namespace headscope::state_space_training_test {

using testing::largest_difference;
using testing::slopes;

namespace {

std::string recipe_text(const std::string& family, const std::string& more = "", const std::string& training = "") {
  return R"({"name": "small", "task": {"kind": "repeated", "shortest_period": 3, "longest_period": 5},
             "model": {"family": ")" +
         family + R"(", "layers": 2, "width": 16, "states": 4, "context": 32)" +
         (family == "mamba2" ? R"(, "heads": 4)" : "") + more +
         R"(}, "training": {"steps": 4, "batch": 2, "evaluate_rows": 2, "evaluate_every": 4)" + training + "}}";
}

Recipe recipe(const std::string& family) {
  return parse_recipe(recipe_text(family), "test");
}

Parameters begun(const std::string& family, std::uint64_t seed = 3) {
  const Recipe r = recipe(family);
  return Parameters::initial(model_config(r, make_task(r.task)->vocabulary()), seed);
}

/// Two texts of three and five tokens: a learner's own batches are rows of one length, shorter ones filled up.
Batch two_texts() {
  return {.sequences = 2,
          .length = 5,
          .tokens = {2, 7, 11, 2, 2, 2, 4, 9, 4, 13},
          .targets = {7, 11, 5, -1, -1, 4, 9, 4, 13, 2}};
}
Batch first_text() {
  return {1, 3, {2, 7, 11}, {7, 11, 5}};
}
Batch second_text() {
  return {1, 5, {2, 4, 9, 4, 13}, {4, 9, 4, 13, 2}};
}

struct Slope {
  double loss = 0;
  std::vector<Tensor> gradients;  // by parameter
};
Slope slope_of(const Parameters& parameters, const Batch& batch, Backend& backend) {
  Tape tape(backend);
  for (const Parameter& each : parameters.all()) tape.watch(each.value);
  const Tensor logits =
      run_batch(*parameters.trainable_model(backend), batch, Ctx{.backend = backend, .tape = &tape}).logits;
  Slope out;
  Backend::Loss loss;
  {
    const Backend::Recording recording(backend, &tape);
    loss = backend.cross_entropy(logits, batch.targets);
  }
  out.loss = loss.nats;
  tape.backward(loss.mean, Tensor::full({1}, 1.0f));
  for (const Parameter& each : parameters.all()) out.gradients.push_back(tape.gradient(each.value).packed());
  return out;
}

const Parameter& named(const Parameters& parameters, const std::string& end) {
  const auto found = std::ranges::find_if(parameters.all(), [&](const Parameter& p) { return p.name.ends_with(end); });
  REQUIRE(found != parameters.all().end());
  return *found;
}

std::string fault(const std::string& text) {
  try {
    (void)parse_recipe(text, "r.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("state spaces begin as published: decays, steps, what passes by, and an output that depth scales") {
  for (const std::string family : {"mamba", "mamba2"}) {
    CAPTURE(family);
    const Parameters p = begun(family);
    const Tensor logs = named(p, "layers.1.mixer.A_log").value;
    Backend backend(1);
    if (family == "mamba") {
      REQUIRE(logs.shape() == Shape({32, 4}));
      for (Index lane = 0; lane < 32; ++lane)
        for (Index i = 0; i < 4; ++i) CHECK(logs.at(lane, i) == doctest::Approx(std::log(static_cast<double>(i + 1))));
    } else {
      for (const float each : logs.values()) {
        CHECK(each >= 0);
        CHECK(each < std::log(16.0f));
      }
    }
    const Tensor bias = named(p, family == "mamba" ? "layers.0.mixer.dt_proj.bias" : "layers.0.mixer.dt_bias").value;
    const Tensor steps = softplus(backend, bias.reshape({1, bias.dim(0)}));
    for (const float step : steps.values()) {
      CHECK(step > 0.00099f);
      CHECK(step < 0.1001f);
    }
    CHECK(steps.at(0, 0) != steps.at(0, 1));
    for (const float each : named(p, "layers.0.mixer.D").value.values()) CHECK(each == 1);
    // Uniform in ±1 ÷ √32 ÷ √2 layers.
    float largest = 0;
    for (const float each : named(p, "layers.0.mixer.out_proj.weight").value.values())
      largest = std::max(largest, std::abs(each));
    CHECK(largest < 0.125f);
    CHECK(largest > 0.12f);
    for (const Parameter& each : p.all()) {
      CAPTURE(each.name);
      const bool matrix = each.value.rank() >= 2;
      CHECK(each.decays() == (matrix && !each.name.ends_with("A_log")));
      CHECK(std::ranges::all_of(each.value.values(), [](float v) { return std::isfinite(v); }));
      if (each.name.ends_with("conv1d.bias"))
        CHECK(std::ranges::all_of(each.value.values(), [](float v) { return v == 0; }));
      else
        CHECK(std::ranges::any_of(each.value.values(), [](float v) { return v != 0; }));
    }
    CHECK(std::ranges::any_of(p.all(), [](const Parameter& each) { return each.name.ends_with("x_proj.weight"); }) ==
          (family == "mamba"));
  }
  // Of many steps the least and the most.
  std::string wide = recipe_text("mamba");
  wide.replace(wide.find("\"width\": 16"), 11, "\"width\": 512");
  const Recipe r = parse_recipe(wide, "test");
  const Parameters many = Parameters::initial(model_config(r, make_task(r.task)->vocabulary()), 3);
  Backend backend(1);
  const Tensor bias = named(many, "layers.0.mixer.dt_proj.bias").value;
  const Tensor steps = softplus(backend, bias.reshape({1, bias.dim(0)}));
  CHECK(std::ranges::min(steps.values()) < 0.00102f);
  CHECK(std::ranges::max(steps.values()) > 0.098f);
}

TEST_CASE("the gradient of a loss reaches every tensor of a state space, each by moving its numbers") {
  for (const std::string family : {"mamba", "mamba2"}) {
    CAPTURE(family);
    Backend backend(1);
    Parameters parameters = begun(family);
    for (Parameter& each : parameters.all())  // so that states hold much
      if (each.name.ends_with("dt_proj.bias") || each.name.ends_with("dt_bias"))
        for (float& v : each.value.mutable_values()) v += 3;
      else if (each.decays())
        for (float& v : each.value.mutable_values()) v *= each.name.ends_with("embeddings.weight") ? 20 : 2;
    const Batch batch = two_texts();
    const Slope found = slope_of(parameters, batch, backend);
    const auto model = parameters.trainable_model(backend);
    const auto loss = [&] {
      return backend.cross_entropy(run_batch(*model, batch, Ctx{backend}).logits, batch.targets).nats;
    };
    CHECK(found.loss == doctest::Approx(loss()));
    for (std::size_t p = 0; p < parameters.all().size(); ++p) {
      Parameter& each = parameters.all()[p];
      CAPTURE(each.name);
      const Tensor& gradient = found.gradients[p];
      double largest = 0;
      Index most = 0;
      for (Index i = 0; i < gradient.size(); ++i)
        if (const double size = std::abs(static_cast<double>(gradient.data()[i])); size > largest)
          largest = size, most = i;
      CHECK(largest > 2e-3);
      // What matters most, and a few others.
      std::vector<Index> at{most};
      for (Index i = 1; i < each.value.size(); i += std::max<Index>(each.value.size() / 5, 1)) at.push_back(i);
      for (const Index i : at) {
        const auto [near, far] = slopes(each.value.mutable_data()[i], loss);
        CHECK(gradient.data()[i] == doctest::Approx((4 * near - far) / 3).epsilon(0.02).scale(0.01));
      }
    }
  }
}

TEST_CASE("several texts at once are the mean of each alone, by their targets: loss and gradients of a state space") {
  Backend backend(3);
  for (const std::string family : {"mamba", "mamba2"}) {
    CAPTURE(family);
    const Parameters parameters = begun(family);
    const Slope both = slope_of(parameters, two_texts(), backend), first = slope_of(parameters, first_text(), backend),
                second = slope_of(parameters, second_text(), backend);
    CHECK(both.loss == doctest::Approx((3 * first.loss + 5 * second.loss) / 8).epsilon(1e-6));
    for (std::size_t p = 0; p < parameters.all().size(); ++p) {
      CAPTURE(parameters.all()[p].name);
      double largest = 0, off = 0;
      for (Index i = 0; i < both.gradients[p].size(); ++i) {
        const double mean = (3.0 * static_cast<double>(first.gradients[p].data()[i]) +
                             5.0 * static_cast<double>(second.gradients[p].data()[i])) /
                            8;
        largest = std::max(largest, std::abs(mean));
        off = std::max(off, std::abs(static_cast<double>(both.gradients[p].data()[i]) - mean));
      }
      CHECK(off <= 2e-5 * largest + 1e-7);
    }
  }
}

TEST_CASE("weight decay shrinks a state space's matrices, not how fast its states decay") {
  Backend backend(1);
  Parameters p = begun("mamba");
  const Parameters before = p.clone();
  AdamW optimizer(p, {.learning_rate = 0.1, .weight_decay = 0.5});
  std::vector<Tensor> still;
  for (const Parameter& each : p.all()) still.push_back(Tensor::zeros(each.value.shape()));
  optimizer.step(p, still, 0, backend);
  for (std::size_t i = 0; i < p.all().size(); ++i) {
    CAPTURE(p.all()[i].name);
    const bool moved = largest_difference(p.all()[i].value, before.all()[i].value) > 0;
    CHECK(moved == (p.all()[i].value.rank() >= 2 && !p.all()[i].name.ends_with("A_log")));
  }
}

TEST_CASE("state spaces learn two texts by heart, and go on bit for bit from a state, whatever the threads") {
  for (const std::string family : {"mamba", "mamba2"}) {
    CAPTURE(family);
    Backend backend(2), other(1);
    const Parameters start = begun(family);
    OptimizerSettings settings;
    settings.learning_rate = 2e-2;
    settings.warmup_steps = 3;
    Learner learner(start, settings, backend);
    const Batch batch = two_texts();
    CHECK(learner.loss(batch) > 2);
    for (int i = 0; i < 80; ++i) learner.step(batch);
    // Both begin with the same token: what follows it, twice in eight, is even odds.
    CHECK(learner.loss(batch) == doctest::Approx(std::log(2.0) / 4).epsilon(0.01));

    Learner unbroken(start, settings, backend);
    for (int i = 0; i < 3; ++i) unbroken.step(batch);
    Learner resumed(Parameters::initial(start.config(), 9), settings, other);
    resumed.restore(unbroken.state());
    for (int i = 0; i < 3; ++i) {
      const StepReport a = unbroken.step(batch), b = resumed.step(batch);
      CHECK(a.loss == b.loss);
      CHECK(a.gradient_norm == b.gradient_norm);
    }
    for (const auto& [name, tensor] : unbroken.state()) {
      CAPTURE(name);
      CHECK(std::ranges::equal(tensor.values(), resumed.state().at(name).values()));
    }
  }
}

TEST_CASE("a state space trained here opens again, and its files are what others open") {
  for (const std::string family : {"mamba", "mamba2"}) {
    CAPTURE(family);
    Backend backend(1);
    Trainer trainer(recipe(family), backend);
    trainer.run(4);
    CHECK(std::isfinite(trainer.progress().held_out));
    const auto folder = testing::scratch_dir("state_space") / family;
    trainer.save_model(folder);
    const auto config = nlohmann::json::parse(read_file(folder / "config.json"));
    CHECK(config["model_type"] == family);
    CHECK(config["state_size"] == 4);
    CHECK(config["expand"] == 2);
    const Parameters again = Parameters::load(folder);
    REQUIRE(again.all().size() == trainer.learner().parameters().all().size());
    for (std::size_t i = 0; i < again.all().size(); ++i) {
      CAPTURE(again.all()[i].name);
      CHECK(again.all()[i].name.starts_with("backbone."));
      CHECK(again.all()[i].decays() == trainer.learner().parameters().all()[i].decays());
      CHECK(largest_difference(again.all()[i].value, trainer.learner().parameters().all()[i].value) < 3e-3);  // F16
    }
    // A card: its heads are scored by shares of what the layers amount to.
    const ModelCard card = measure_card(folder, {.rows = 2, .texts = 2, .ablated_rows = 1}, Ctx{backend});
    REQUIRE(card.heads.size() == (family == "mamba" ? 16 : 8));
    for (const HeadCard& head : card.heads) {
      const HeadScore* previous = head.find("previous_token");
      REQUIRE(previous);
      CHECK(previous->value > 0);
      CHECK(previous->value < 1);
    }
    const std::string text = card_markdown(card);
    CHECK(text.find(family == "mamba" ? "Mamba architecture, 2 layers of 32 channels with 4 states each, width 16"
                                      : "Mamba-2 architecture, 2 layers of 32 channels with 4 states each, 4 heads") !=
          std::string::npos);
    CHECK(text.find("## What its maps are") != std::string::npos);
  }
}

TEST_CASE("recipes of state spaces: read, written and read again; what does not fit is said in one sentence") {
  for (const std::string family : {"mamba", "mamba2"}) {
    const Recipe r = recipe(family);
    CHECK(r.model.states == 4);
    CHECK(r.model.expand == 2);
    CHECK(r.model.mlp == 0);
    const Recipe again = parse_recipe(recipe_json(r), "again");
    CHECK(again.model == r.model);
    CHECK(recipe_json(again) == recipe_json(r));
    CHECK(recipe_json(r).find("mlp") == std::string::npos);
  }
  CHECK(fault(recipe_text("mamba", R"(, "heads": 4)")).find("one of the keys family, layers, width, states") !=
        std::string::npos);
  CHECK(fault(recipe_text("mamba2", R"(, "expand": 3)")).empty());
  CHECK(fault(recipe_text("mamba2", R"(, "expand": 0)")).find("expand: expected a number in 1…16") !=
        std::string::npos);
  CHECK(fault(recipe_text("mamba", R"(, "states": 0)")).find("states") != std::string::npos);
  CHECK(fault(recipe_text("mamba", "", R"(, "attention_entropy": 0.1)")).find("no softmax whose entropy") !=
        std::string::npos);
  std::string uneven = recipe_text("mamba2");
  uneven.replace(uneven.find("\"heads\": 4"), 10, "\"heads\": 5");
  CHECK(fault(uneven).find("a divisor of the 32 channels") != std::string::npos);
  // What a Llama is not asked for.
  std::string llama = recipe_text("llama");
  CHECK(fault(llama).find("\"states\"") != std::string::npos);
}

TEST_CASE("training memory of state spaces: weights counted as the model counts them, no patterns") {
  Backend backend(1);
  for (const std::string family : {"mamba", "mamba2"}) {
    CAPTURE(family);
    Trainer trainer(recipe(family), backend);
    const TrainingMemory m = training_memory(recipe(family));
    const double counted = 16.0 * static_cast<double>(trainer.learner().parameters().count());
    CHECK(m.weights <= counted);
    CHECK(m.weights > 0.99 * counted);
    CHECK(m.attention == 0);
    CHECK(m.logits == 2 * 4.0 * 2 * 32 * 257);
    CHECK(m.activations > 4.0 * 2 * 64 * 10 * 32);  // ten numbers of each of 32 channels at least
  }
}

TEST_CASE("what a signed map is scored by: each row's magnitudes as shares of their sum") {
  const Tensor weights = Tensor::from({3, 3}, std::vector<float>{2, 0, 0, -1, 3, 0, 0, 0, 0});
  const TokenLinks links = TokenLinks::of(std::vector<Token>(3));
  const AttentionMap map =
      AttentionMap::dense({.kind = MapKind::effective}, weights, nullptr, stats_of_weights(weights, nullptr));
  const AttentionMap shares = as_shares(map, links);
  CHECK(shares.place().kind == MapKind::probability);
  CHECK(shares.weight(0, 0) == 1);
  CHECK(shares.weight(1, 0) == 0.25f);
  CHECK(shares.weight(1, 1) == 0.75f);
  CHECK(shares.weight(2, 2) == 0);
}

}  // namespace headscope::state_space_training_test
