#include "core/edits/intervention.h"
#include "core/base/json.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "core/base/error.h"
#include "core/edits/mask_edit.h"
#include "core/edits/temperature_edit.h"
#include "core/io/json_view.h"
#include "core/run/run_request.h"
#include "tests/support/largest_difference.h"
#include "tests/support/paths.h"
#include "tests/support/worst.h"

namespace headscope::intervention_test {

using nlohmann::json;
using testing::largest_difference;
using testing::reference;
using testing::Worst;

namespace {

const std::vector<std::int32_t> some_ids{3, 14, 15, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2};

struct Runner {
  explicit Runner(const char* name) : folder(reference(name)), loaded{Model::load(folder, backend), nullptr} {}
  std::shared_ptr<const Trace> operator()(std::vector<Intervention> edits, MapStorage storage = MapStorage::dense,
                                          Tap* tap = nullptr) {
    RunRequest request;
    request.model = folder;
    request.ids = some_ids;
    request.capture.maps = storage;
    request.edits = std::move(edits);
    return run(loaded, request, Ctx{backend, tap});
  }
  Backend backend{1};
  std::filesystem::path folder;
  LoadedModel loaded;
};

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::memcmp(a.packed().data(), b.packed().data(), a.bytes()) == 0;
}

Intervention temperature(double tau, HeadTarget target = {}) {
  return {target, SetTemperature{tau}};
}
Intervention mask(const char* spec, HeadTarget target = {}) {
  return {target, SetMask{spec}};
}

/// Writes the window into the scores by hand.
class WindowByHand final : public Tap {
 public:
  explicit WindowByHand(Index width) : width_(width) {}
  bool wants(Site site) const override { return site.kind == SiteKind::attn_scores; }
  Tensor at(Site, const Tensor& value) override {
    Tensor edited = value.copy();
    for (Index h = 0; h < edited.dim(0); ++h)
      for (Index i = 0; i < edited.dim(1); ++i)
        for (Index j = 0; j + width_ <= i; ++j) edited.ref(h, i, j) = -std::numeric_limits<float>::infinity();
    return edited;
  }

 private:
  Index width_;
};

template <class F>
std::string refusal(F f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("a run whose edits are all switched off is bit for bit the run without edits") {
  Runner model("gpt2-random");
  const auto plain = model({}), off = model({{{}, SetTemperature{0.1}, false}, {{0, 1}, SetMask{"full"}, false}});
  CHECK(same_bits(plain->logits, off->logits));
  CHECK(same_bits(plain->logits, model({temperature(1)})->logits));
  CHECK(same_bits(plain->logits, model({mask("causal")})->logits));
  CHECK(plain->source == off->source);
  CHECK_FALSE(same_bits(plain->logits, model({temperature(1.01)})->logits));
}

TEST_CASE("a cold softmax takes the largest score, a hot one spreads evenly") {
  for (const MapStorage storage : {MapStorage::dense, MapStorage::factored})
    for (const char* name : {"gpt2-random", "llama-gqa"}) {
      CAPTURE(name);
      Runner model(name);
      const auto plain = model({}, storage), cold = model({temperature(1e-6)}, storage),
                 hot = model({temperature(1e6)}, storage);
      Worst worst_cold, worst_hot;
      int other_key = 0;
      for (const AttentionMap& map : hot->maps)
        for (Index i = 0; i < map.n_query(); ++i)
          for (Index j = 0; j <= i; ++j) worst_hot.add(std::abs(map.weight(i, j) - 1.0 / static_cast<double>(i + 1)));
      for (const AttentionMap& map : cold->maps) {
        if (map.layer() != 0) continue;  // above, the scores themselves have changed
        const HeadStats& before = plain->map({0, map.head()}).stats();
        for (std::size_t i = 0; i < some_ids.size(); ++i) {
          worst_cold.add(std::abs(map.stats().max_weight[i] - 1.0));
          other_key += map.stats().max_key[i] != before.max_key[i];
        }
      }
      CHECK(worst_hot.value() < 1e-4);
      CHECK(worst_cold.value() < 1e-4);
      CHECK(other_key == 0);
    }
}

TEST_CASE("a window mask does what writing -infinity into the scores by hand does") {
  for (const char* name : {"gpt2-random", "llama-gqa"}) {
    CAPTURE(name);
    Runner model(name);
    WindowByHand by_hand(3);
    const auto wanted = model({}, MapStorage::dense, &by_hand);
    for (const MapStorage storage : {MapStorage::dense, MapStorage::factored}) {
      const auto masked = model({mask("window 3")}, storage);
      CHECK(largest_difference(masked->logits, wanted->logits) < 2e-5);
      REQUIRE(masked->maps.size() == 8);
      for (const AttentionMap& map : masked->maps)
        CHECK(largest_difference(map.to_dense(), wanted->map(map.id()).to_dense()) < 1e-5);
      CHECK(masked->map({0, 0}).masked(5, 2));
      CHECK_FALSE(masked->map({0, 0}).masked(5, 3));
    }
  }
}

TEST_CASE("a window of the first layer holds the weights of before, renormalised") {
  Runner model("gpt2-random");
  const auto plain = model({}), masked = model({mask("window 4")});
  const AttentionMap &before = plain->map({0, 1}), &after = masked->map({0, 1});
  for (const Index i : {0, 3, 4, 11, 19}) {
    double sum = 0;
    for (Index j = std::max<Index>(0, i - 3); j <= i; ++j) sum += before.weight(i, j);
    for (Index j = 0; j < after.n_key(); ++j) {
      const bool inside = j <= i && i - j < 4;
      CHECK(after.weight(i, j) == doctest::Approx(inside ? before.weight(i, j) / sum : 0.0).epsilon(1e-5));
    }
  }
}

TEST_CASE("an edit of one head changes that head's map, and no other in its layer or below") {
  Runner model("gpt2-random");
  const auto plain = model({});
  for (const Intervention& edit : {temperature(0.3, {1, 0}), mask("window 2", {1, 0})}) {
    CAPTURE(describe(edit));
    const auto edited = model({edit});
    for (const AttentionMap& map : plain->maps) {
      if (map.layer() > 1) continue;
      const bool same = same_bits(map.to_dense(), edited->map(map.id()).to_dense());
      CHECK(same == !(map.layer() == 1 && map.head() == 0));
    }
    CHECK_FALSE(same_bits(plain->logits, edited->logits));
    CHECK(edited->source == plain->source + "; edited " + describe(edit));
  }
  const auto layer = model({temperature(0.3, {0, {}})}), column = model({temperature(0.3, {{}, 1})});
  CHECK_FALSE(same_bits(plain->map({0, 0}).to_dense(), layer->map({0, 0}).to_dense()));
  CHECK_FALSE(same_bits(plain->map({0, 1}).to_dense(), layer->map({0, 1}).to_dense()));
  CHECK(same_bits(plain->map({0, 0}).to_dense(), column->map({0, 0}).to_dense()));
  CHECK(same_bits(layer->map({0, 1}).to_dense(), column->map({0, 1}).to_dense()));
}

TEST_CASE("of two edits that set the same thing for a head the later one wins") {
  Runner model("gpt2-random");
  const auto one = model({temperature(0.5), temperature(1, {0, {}}), temperature(1, {1, {}})});
  const auto plain = model({});
  CHECK(same_bits(one->map({0, 0}).to_dense(), plain->map({0, 0}).to_dense()));
  CHECK(same_bits(one->map({1, 1}).to_dense(), plain->map({1, 1}).to_dense()));
  CHECK(same_bits(model({temperature(0.5), temperature(2)})->logits, model({temperature(2)})->logits));
  CHECK(same_bits(model({mask("full"), mask("window 2")})->logits, model({mask("window 2")})->logits));
  CHECK(
      same_bits(model({mask("window 2"), temperature(2)})->logits, model({temperature(2), mask("window 2")})->logits));
  CHECK(same_bits(one->logits, plain->logits));
}

TEST_CASE("a query without any key gets no attention, and the pass stays finite") {
  Runner model("gpt2-random");
  for (const MapStorage storage : {MapStorage::dense, MapStorage::factored}) {
    const auto trace = model({mask("padding 20")}, storage);
    CHECK(trace->map({0, 0}).stats().max_key[7] == -1);
    CHECK(trace->map({0, 0}).weight(7, 3) == 0.0f);
    CHECK(std::isfinite(trace->logits.at(7, 0)));
    const auto some = model({mask("window 2 & padding 3")}, storage);
    CHECK(some->map({1, 1}).stats().max_key[19] == -1);
    CHECK(some->map({1, 1}).weight(17, 16) == 1.0f);
  }
}

TEST_CASE("an edit that names a layer or head the model does not have is refused") {
  Runner model("gpt2-random");
  const auto& dims = model.loaded.model->config().dims;
  CHECK(refusal([&] { model({temperature(2, {dims.layers, 0})}); }).find("edit") == 0);
  CHECK(refusal([&] { model({temperature(2, {0, dims.heads})}); }).find("temperature 2") != std::string::npos);
  CHECK(refusal([&] { model({temperature(0)}); }).find("a temperature from 1e-06 to 1000000") != std::string::npos);
  CHECK(refusal([&] { model({temperature(std::nan(""))}); }).find("found nan") != std::string::npos);
  CHECK(refusal([&] { model({mask("widow 3")}); }).find("nearest names: window") != std::string::npos);
}

TEST_CASE("edits read from the command line say what they mean") {
  const auto at = [](std::string_view text) { return describe(parse_temperature_edit(text, "--temperature")); };
  CHECK(at("0.5") == "*: temperature 0.5");
  CHECK(at("1.0=0.5") == "1.0: temperature 0.5");
  CHECK(at("1=2") == "1.*: temperature 2");
  CHECK(at("1.*=2") == "1.*: temperature 2");
  CHECK(at("*.3=2") == "*.3: temperature 2");
  CHECK(at("*=2") == "*: temperature 2");
  CHECK(describe(parse_mask_edit("1.0=window  8", "--mask")) == "1.0: mask window 8");
  CHECK(describe(parse_mask_edit("full", "--mask")) == "*: mask full");
  for (const char* bad : {"", "x", "1.0=", "=2", "1.=2", "1.0.0=2", "-1=2", "1.0=x", "0", "-3", "1.0=inf"}) {
    CAPTURE(bad);
    CHECK(refusal([&] { at(bad); }).find("--temperature: expected") == 0);
  }
}

TEST_CASE("edits survive JSON, alone and inside a request") {
  const std::vector<Intervention> edits{temperature(0.5),
                                        temperature(2.25, {3, {}}),
                                        mask("window 8 & padding 2", {1, 0}),
                                        {{{}, 2}, SetMask{"full"}, false}};
  for (const Intervention& edit : edits) {
    const json written = json::parse(to_json(edit).dump());
    CHECK(intervention_from_json(JsonView(written, "test")) == edit);
  }
  RunRequest request;
  request.model = "some/model";
  request.ids = {1, 2};
  const std::uint64_t before = hash(request);
  CHECK(to_json(request).find("edits") == std::string::npos);
  request.edits = edits;
  CHECK(run_request_from_json(to_json(request), "test") == request);
  CHECK(hash(request) != before);
  request.edits[0].action = SetTemperature{0.25};
  CHECK_FALSE(run_request_from_json(to_json(request), "test").edits == edits);
}

TEST_CASE("JSON that is no edit is refused by key") {
  const auto read = [](const char* text) {
    const json written = json::parse(text);
    return refusal([&] { intervention_from_json(JsonView(written, "edit 3")); });
  };
  CHECK(read("[]").find("edit 3: expected a JSON object") == 0);
  CHECK(read("{}").find("edit 3: expected the key 'target', found none") == 0);
  CHECK(read(R"({"target": "*"})").find("edit 3: expected the key 'action'") == 0);
  CHECK(read(R"({"target": 1, "action": "ablate zero"})").find("edit 3: target: expected a text") == 0);
  CHECK(read(R"({"target": "x", "action": "ablate zero"})").find("edit 3: expected a head such as 1.0") == 0);
  CHECK(read(R"({"target": "*", "action": "mask windows"})").find("edit 3: expected a mask") == 0);
  CHECK(read(R"({"target": "*", "action": "temperature -1"})").find("a temperature from") != std::string::npos);
  CHECK(read(R"({"target": "1.0", "action": "switch off mlp"})").find("a layer") != std::string::npos);
  CHECK(read(R"({"target": "*", "action": "ablate zero", "enabled": 1})")
            .find("edit 3: enabled: expected true or false") == 0);
  CHECK(read(R"({"target": "*", "action": "ablate zero", "colour": 1})").find("found \"colour\"") != std::string::npos);
}

}  // namespace headscope::intervention_test
