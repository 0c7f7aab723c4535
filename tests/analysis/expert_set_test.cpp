// Named experts: mixtures by hand, files that read back as they were, and files that lie.

#include "core/analysis/expert_set.h"

#include <doctest/doctest.h>

#include "core/base/error.h"
#include "core/base/json.h"
#include "tests/support/paths.h"

namespace headscope::expert_set_test {

using nlohmann::json;

namespace {

ExpertSet of_random(const Model& model) {
  ExpertSet set;
  set.model = model.config().name;
  set.matrices = {WeightMatrix::v, WeightMatrix::mlp_out};
  set.weights = weights_identity(model, set.matrices);
  for (const char* name : {"a", "b"}) {
    SingularExpert z = unchanged_expert(model, set.matrices);
    z.parts[0].z[1] = name[0] == 'a' ? 1.5 : -0.25;
    set.experts.push_back({name, "about " + std::string(name), z});
  }
  set.classifier = unchanged_expert(model, set.matrices);
  set.classifier->parts[1].z[0] = 2;
  set.labels = {7, 9};
  return set;
}

std::string refusal_of(const json& file) {
  try {
    expert_set_from_json(file.dump(), "x.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("experts read back as they were written, and belong to one model's matrices") {
  Backend backend(1);
  const auto model = Model::load(testing::reference("gpt2-random"), backend);
  const ExpertSet set = of_random(*model);
  // gpt2-random: two layers of width 32, MLP 128: 32 values of each matrix.
  REQUIRE(set.experts[0].z.parts.size() == 4);
  CHECK(set.experts[0].z.numbers() == 128);
  const ExpertSet read = expert_set_from_json(to_json(set), "x.json");
  CHECK(read.model == set.model);
  CHECK(read.weights == set.weights);
  CHECK(read.matrices == set.matrices);
  CHECK(read.labels == set.labels);
  REQUIRE(read.experts.size() == 2);
  CHECK(read.experts[1].name == "b");
  CHECK(read.experts[1].about == "about b");
  CHECK(read.experts[0].z.parts[0].z[1] == 1.5);
  CHECK(read.experts[1].z.parts[0].z[1] == -0.25);
  CHECK(read.classifier->parts[1].z[0] == 2);
  CHECK(read.classifier->parts[1].matrix == WeightMatrix::mlp_out);
  CHECK(to_json(read) == to_json(set));
  check_fits(read, *model, "x.json");

  // The same shapes with other numbers; other matrices; a matrix of another shape.
  CHECK(weights_identity(*model, {WeightMatrix::v}) != set.weights);
  CHECK(weights_identity(*model, {WeightMatrix::mlp_out, WeightMatrix::v}) != set.weights);
  CHECK(weights_identity(*model, {WeightMatrix::v, WeightMatrix::mlp_out, WeightMatrix::v}) == set.weights);
  ExpertSet wrong = set;
  wrong.weights ^= 1;
  CHECK_THROWS_WITH_AS(check_fits(wrong, *model, "x.json"), doctest::Contains("whose matrices are"), Error);
  wrong = set;
  wrong.experts[1].z.parts[2].z.pop_back();
  CHECK_THROWS_WITH_AS(check_fits(wrong, *model, "x.json"), doctest::Contains("x.json: b: expected 128 numbers z of 4"),
                       Error);
  wrong = set;
  wrong.labels[1] = model->config().dims.vocab;
  CHECK_THROWS_WITH_AS(check_fits(wrong, *model, "x.json"), doctest::Contains("a token below"), Error);
  const auto other = Model::load(testing::source_dir() / "models" / "tiny-gpt2", backend);
  CHECK_THROWS_AS(check_fits(set, *other, "x.json"), Error);
}

TEST_CASE("a mixture is the interpolation in which the model takes what is left of 1") {
  Backend backend(1);
  const auto model = Model::load(testing::reference("gpt2-random"), backend);
  const ExpertSet set = of_random(*model);
  const auto mixed = [&](double a, double b) { return mixed_expert(set.experts, std::vector{a, b}).parts[0].z; };
  // 0.5 · 1.5 + 0.25 · (−0.25) + (1 − 0.75) · 1
  CHECK(mixed(0.5, 0.25)[1] == doctest::Approx(0.9375).epsilon(1e-12));
  CHECK(mixed(0.5, 0.25)[0] == 1);
  CHECK(mixed(1, 0) == set.experts[0].z.parts[0].z);
  CHECK(mixed(0, 1) == set.experts[1].z.parts[0].z);
  CHECK(mixed(0, 0)[1] == 1);
  CHECK(mixed(100, 0)[1] == 10);
  CHECK(mixed(-100, 0)[1] == -10);
}

TEST_CASE("a file of experts that is none, or lies, is refused with the way to what is wrong") {
  Backend backend(1);
  const auto model = Model::load(testing::reference("gpt2-random"), backend);
  const json good = json::parse(to_json(of_random(*model)));
  CHECK(refusal_of(good) == "");
  const auto with = [&](const std::function<void(json&)>& change) {
    json file = good;
    change(file);
    return refusal_of(file);
  };
  const auto has = [](const std::string& text, const char* part) {
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  };
  has(refusal_of(json::array()), "x.json");
  has(with([](json& f) { f["type"] = "headscope session"; }), "headscope experts");
  has(with([](json& f) { f["version"] = 2; }), "version");
  has(with([](json& f) { f["weights"] = "12"; }), "16 hexadecimal digits");
  has(with([](json& f) { f["weights"] = "000000000000000g"; }), "16 hexadecimal digits");
  has(with([](json& f) { f["matrices"] = json::array(); }), "matrices");
  has(with([](json& f) { f["matrices"][0] = "w"; }), "one of q, k, v");
  has(with([](json& f) { f["experts"] = json::array(); }), "experts");
  has(with([](json& f) { f["experts"][1]["name"] = "a"; }), "a name that no other expert has");
  has(with([](json& f) { f["experts"][1]["label"] = 7; }), "a label of its own");
  has(with([](json& f) { f["experts"][1].erase("label"); }), "label");
  has(with([](json& f) { f.erase("classifier"); }), "no label where there is no classifier");
  has(with([](json& f) { f["experts"][0]["parts"][0]["z"][3] = 1000; }), "experts[0].parts[0].z[3]");
  has(with([](json& f) { f["experts"][0]["parts"][0]["z"][3] = "1"; }), "experts[0].parts[0].z[3]");
  has(with([](json& f) { f["experts"][0]["parts"][0].erase("layer"); }), "layer");
  has(with([](json& f) { f["experts"][0]["parts"][0]["more"] = 1; }), "more");
  has(with([](json& f) { f["surplus"] = 1; }), "surplus");
  CHECK_THROWS_AS(expert_set_from_json("{", "x.json"), Error);
}

}  // namespace headscope::expert_set_test
