// Encoder-decoders are trained through cross-attention: gradients of every tensor of both stacks by moving its numbers,
// several pairs at once against each alone, what a number depends on in source and target.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/tensor/tape.h"
#include "core/train/gradients.h"
#include "core/train/learner.h"
#include "tests/support/gradient_check.h"
#include "tests/support/largest_difference.h"
#include "tests/support/paths.h"

namespace headscope::two_stacks_training_test {

using testing::largest_difference;
using testing::reference;
using testing::slopes;

namespace {

/// Two pairs: 3 tokens of 5, and 5 of 2, the shorter target filled up.
Batch two_pairs() {
  return {.sequences = 2,
          .length = 5,
          .tokens = {2, 7, 11, 2, 2, 2, 4, 9, 4, 13},
          .targets = {7, 11, 5, -1, -1, 4, 9, 4, 13, 2},
          .source = {3, 14, 9, 8, 2, 6, 2},
          .source_lengths = {5, 2}};
}

Batch first_pair() {
  return {1, 3, {2, 7, 11}, {7, 11, 5}, {3, 14, 9, 8, 2}, {5}};
}
Batch second_pair() {
  return {1, 5, {2, 4, 9, 4, 13}, {4, 9, 4, 13, 2}, {6, 2}, {2}};
}

struct Slope {
  double loss = 0;
  std::vector<Tensor> gradients;  // by parameter
};
Slope slope_of(const Parameters& parameters, const Batch& batch, Backend& backend, double entropy_price = 0) {
  Tape tape(backend);
  for (const Parameter& each : parameters.all()) tape.watch(each.value);
  const auto model = parameters.trainable_model(backend);
  const Tensor logits =
      run_batch(*model, batch, Ctx{.backend = backend, .tape = &tape, .entropy_price = entropy_price}).logits;
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

Parameters tiny(const std::string& name) {
  return Parameters::load(reference("encoder-decoders") / name);
}

/// Adds to one element of one site.
class Nudge final : public Tap {
 public:
  Nudge(Site site, Index element, float by) : site_(site), element_(element), by_(by) {}
  bool wants(Site site) const override { return site == site_; }
  Tensor at(Site, const Tensor& value) override {
    Tensor changed = value.copy();
    changed.mutable_data()[element_] += by_;
    return changed;
  }

 private:
  Site site_;
  Index element_;
  float by_;
};

struct Seen final : Tap {
  bool wants(Site site) const override { return site.kind == SiteKind::embed; }
  Tensor at(Site, const Tensor& value) override { return embedding = value; }
  Tensor embedding;
};

}  // namespace

TEST_CASE("the gradient of a target's loss reaches every tensor of both stacks, each by moving its numbers") {
  Backend backend(1);
  for (const std::string name : {"bart", "marian", "marian-apart"}) {
    CAPTURE(name);
    Parameters parameters = tiny(name);
    const Batch batch = two_pairs();
    const Slope found = slope_of(parameters, batch, backend);
    const auto model = parameters.trainable_model(backend);
    const auto loss = [&] {
      return backend.cross_entropy(run_batch(*model, batch, Ctx{backend}).logits, batch.targets).nats;
    };
    CHECK(found.loss == doctest::Approx(loss()));
    int still = 0;
    for (std::size_t p = 0; p < parameters.all().size(); ++p) {
      Parameter& each = parameters.all()[p];
      CAPTURE(each.name);
      const Tensor& gradient = found.gradients[p];
      double largest = 0;
      for (Index i = 0; i < gradient.size(); ++i)
        largest = std::max(largest, std::abs(static_cast<double>(gradient.data()[i])));
      still += largest < 1e-6;
      // What matters most, and a few others.
      std::vector<Index> at{
          std::distance(gradient.data(), std::max_element(gradient.data(), gradient.data() + gradient.size()))};
      for (Index i = 1; i < each.value.size(); i += std::max<Index>(each.value.size() / 4, 1)) at.push_back(i);
      for (const Index i : at) {
        const auto [near, far] = slopes(each.value.mutable_data()[i], loss);
        CHECK(gradient.data()[i] == doctest::Approx((4 * near - far) / 3).epsilon(0.02).scale(0.02));
      }
    }
    // A softmax does not feel what is added to all of its scores: biases of keys.
    const auto keys = std::ranges::count_if(
        parameters.all(), [](const Parameter& each) { return each.name.find("k_proj.bias") != std::string::npos; });
    CHECK(still == keys);
  }
}

TEST_CASE("several pairs at once are the mean of each alone, by their targets: loss and gradients") {
  Backend backend(3);
  const Parameters parameters = tiny("bart");
  const Slope both = slope_of(parameters, two_pairs(), backend), first = slope_of(parameters, first_pair(), backend),
              second = slope_of(parameters, second_pair(), backend);
  CHECK(first.loss != doctest::Approx(second.loss).epsilon(0.01));
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
    CHECK(off <= 1e-5 * largest + 1e-7);
  }
}

TEST_CASE("a price of looking everywhere is paid by cross-attention and by the encoder, too") {
  Backend backend(1);
  const Parameters parameters = tiny("bart");
  const Slope plain = slope_of(parameters, two_pairs(), backend),
              priced = slope_of(parameters, two_pairs(), backend, 1);
  for (const char* part : {"decoder.layers.0.encoder_attn.q_proj.weight", "encoder.layers.0.self_attn.q_proj.weight",
                           "decoder.layers.0.self_attn.q_proj.weight"}) {
    CAPTURE(part);
    bool moved = false;
    for (std::size_t p = 0; p < parameters.all().size(); ++p)
      if (parameters.all()[p].name.ends_with(part))
        moved = largest_difference(plain.gradients[p], priced.gradients[p]) > 1e-4;
    CHECK(moved);
  }
}

TEST_CASE("what a number of an encoder-decoder depends on: tokens of target and source, patterns of all three kinds") {
  Backend backend(2);
  const std::vector<std::int32_t> tokens{2, 7, 11, 5}, read{3, 14, 9, 8, 2};
  for (const std::string name : {"bart", "marian", "t5", "t5-gated"}) {
    CAPTURE(name);
    const auto model = Model::load(reference("encoder-decoders") / name, backend);
    const GradientOf of{.kind = GradientOf::Kind::logit_difference, .token = 7, .other = 12};
    const GradientSource source{.tokens = read};
    const InputGradients g = input_gradients(*model, Ctx{.backend = backend}, tokens, of, &source);
    REQUIRE(g.source.gradient_times_input.size() == read.size());
    REQUIRE(g.gradient_times_input.size() == tokens.size());
    REQUIRE(g.cross_patterns.size() == static_cast<std::size_t>(model->config().dims.layers));
    REQUIRE(g.source.patterns.size() == static_cast<std::size_t>(model->encoder()->config().dims.layers));
    const float step = 2e-3f;
    const auto moved = [&](int part, Site site, Index element, float by) {
      Nudge nudge(site, element, by);
      GradientSource other = source;
      Ctx ctx{.backend = backend};
      (part == 0 ? ctx.tap : part == 1 ? other.encoder : other.cross) = &nudge;
      return input_gradients(*model, ctx, tokens, of, &other).value;
    };
    double largest = 0;
    const auto check = [&](int part, Site site, Index element, float found) {
      const double expected =
          (moved(part, site, element, step) - moved(part, site, element, -step)) / static_cast<double>(2 * step);
      largest = std::max(largest, std::abs(expected));
      CHECK(found == doctest::Approx(expected).epsilon(0.02).scale(0.1));
    };
    const auto check_all = [&](int part, const Tensor& found, Site site) {
      CAPTURE(part);
      largest = 0;
      for (Index i = 0; i < found.size(); i += std::max<Index>(found.size() / 12, 1))
        check(part, site, i, found.data()[i]);
      CHECK(largest > 1e-3);
    };
    check_all(0, g.embedding, {SiteKind::embed});
    check_all(1, g.source.embedding, {SiteKind::embed});
    check_all(1, g.source.patterns[0], {SiteKind::pattern, 0});
    for (int layer = 0; layer < model->config().dims.layers; ++layer)
      check_all(2, g.cross_patterns[static_cast<std::size_t>(layer)], {SiteKind::pattern, layer});
    // Of the target's own patterns, cells that the mask hides mean nothing.
    for (const auto& [i, j] : {std::pair<Index, Index>{3, 0}, {3, 2}, {2, 2}})
      check(0, {SiteKind::pattern, 0}, i * 4 + j, g.patterns[0].at(0, i, j));
    Seen seen;
    GradientSource watched = source;
    watched.encoder = &seen;
    (void)input_gradients(*model, Ctx{.backend = backend}, tokens, of, &watched);
    double sum = 0;
    for (Index j = 0; j < seen.embedding.dim(1); ++j)
      sum += static_cast<double>(seen.embedding.at(1, j)) * static_cast<double>(g.source.embedding.at(1, j));
    CHECK(g.source.gradient_times_input[1] == doctest::Approx(sum).epsilon(1e-5));
  }
}

TEST_CASE("an encoder-decoder learns two pairs by heart, and goes on bit for bit from a state") {
  Backend backend(2);
  const Parameters start = tiny("bart");
  OptimizerSettings settings;
  settings.learning_rate = 1e-2;
  settings.warmup_steps = 3;
  Learner learner(start, settings, backend);
  const Batch batch = two_pairs();
  CHECK(learner.loss(batch) > 2);
  for (int i = 0; i < 120; ++i) learner.step(batch);
  CHECK(learner.loss(batch) < 0.02);

  Learner unbroken(start, settings, backend);
  for (int i = 0; i < 3; ++i) unbroken.step(batch);
  Backend other(1);  // another number of threads changes nothing
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
  // The maps of a step are those of the decoder's own attention.
  const StepReport report = learner.step(batch, {}, {.storage = MapStorage::dense, .text = 1});
  REQUIRE(!report.maps.empty());
  CHECK(report.maps.front().n_key() == 5);
}

TEST_CASE("new weights of an encoder-decoder: what both stacks share once, and opened again as they were") {
  const Parameters p = Parameters::initial(tiny("bart").config(), 5);
  const auto named = [&](const std::string& name) { return std::ranges::count(p.all(), name, &Parameter::name); };
  CHECK(named("model.shared.weight") == 1);
  CHECK(named("model.encoder.layers.0.self_attn.q_proj.weight") == 1);
  CHECK(named("model.decoder.layers.0.encoder_attn.q_proj.weight") == 1);
  for (const Parameter& each : p.all()) {
    CAPTURE(each.name);
    const bool drawn = each.matrix() && each.name != "final_logits_bias";
    const bool gain = each.name.find("norm") != std::string::npos && each.name.ends_with("weight");
    CHECK(std::ranges::any_of(each.value.values(), [](float v) { return v != 0; }) == (drawn || gain));
  }
  Backend backend(1);
  const auto folder = testing::scratch_dir("two_stacks") / "small";
  p.save(folder, DType::f32);
  const Parameters again = Parameters::load(folder);
  REQUIRE(again.all().size() == p.all().size());
  const Batch batch = two_pairs();
  CHECK(largest_difference(run_batch(*Model::load(folder, backend), batch, Ctx{backend}).logits,
                           run_batch(*p.snapshot(backend), batch, Ctx{backend}).logits) == 0);
}

TEST_CASE("what training an encoder-decoder refuses") {
  Backend backend(1);
  const auto fault = [](auto act) {
    try {
      act();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  // A table of distances that all layers read is not among what is learnt.
  CHECK(fault([&] { (void)tiny("t5").trainable_model(backend); }).find("can be run and read, not trained") !=
        std::string::npos);
  const auto model = tiny("bart").snapshot(backend);
  Batch batch = two_pairs();
  batch.source_lengths.pop_back();
  CHECK(fault([&] { run_batch(*model, batch, Ctx{backend}); }).find("a source for each of 2 sequences") !=
        std::string::npos);
  batch.source_lengths = {};
  CHECK(!fault([&] { run_batch(*model, batch, Ctx{backend}); }).empty());
  batch.source_lengths = {5, 3};
  CHECK(!fault([&] { run_batch(*model, batch, Ctx{backend}); }).empty());
  const std::vector<std::int32_t> tokens{2, 7};
  CHECK(fault([&] { (void)input_gradients(*model, Ctx{.backend = backend}, tokens, {}); }).find("no source") !=
        std::string::npos);
}

}  // namespace headscope::two_stacks_training_test
