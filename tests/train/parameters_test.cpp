#include "core/train/parameters.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/base/error.h"
#include "tests/support/paths.h"

namespace headscope::parameters_test {

namespace fs = std::filesystem;

namespace {

ModelConfig gpt2(int d_mlp) {
  ModelConfig c;
  c.name = "small";
  c.family = "gpt2";
  c.dims = {.layers = 8, .heads = 2, .kv_heads = 2, .d_head = 16, .d_model = 32, .d_mlp = d_mlp, .vocab = 100};
  c.context = 20;
  return c;
}

ModelConfig llama() {
  ModelConfig c;
  c.name = "small";
  c.family = "llama";
  c.dims = {.layers = 2, .heads = 4, .kv_heads = 1, .d_head = 6, .d_model = 20, .d_mlp = 40, .vocab = 30};
  c.context = 12;
  c.norm = NormKind::rms_norm;
  c.norm_epsilon = 1e-6;
  c.position = PositionKind::rotary;
  c.rotary.base = 5000;
  c.activation = Activation::silu;
  c.gated_mlp = true;
  c.bias = BiasSet::none();
  c.tied_embeddings = true;
  return c;
}

const Tensor& named(const Parameters& parameters, const std::string& name) {
  const auto found = std::ranges::find(parameters.all(), name, &Parameter::name);
  REQUIRE(found != parameters.all().end());
  return found->value;
}

double deviation(const Tensor& x) {
  double sum = 0;
  for (const float v : x.values()) sum += static_cast<double>(v) * static_cast<double>(v);
  return std::sqrt(sum / static_cast<double>(x.size()));
}

struct Folder {
  fs::path path = fs::temp_directory_path() / "headscope-parameters-test";
  Folder() { fs::remove_all(path); }
  ~Folder() { fs::remove_all(path); }
};

}  // namespace

TEST_CASE("initial weights: names, shapes, spread, seed") {
  const Parameters p = Parameters::initial(gpt2(64), 7);
  CHECK(p.all().size() == 2 + 8 * 12 + 2);  // tied: no lm_head
  CHECK(named(p, "transformer.h.0.attn.c_attn.weight").shape() == Shape({32, 96}));
  CHECK(deviation(named(p, "transformer.wte.weight")) == doctest::Approx(0.02).epsilon(0.05).scale(0));
  CHECK(deviation(named(p, "transformer.h.3.attn.c_attn.weight")) == doctest::Approx(0.02).epsilon(0.05).scale(0));
  CHECK(deviation(named(p, "transformer.h.3.attn.c_proj.weight")) ==
        doctest::Approx(0.02 / 4).epsilon(0.07).scale(0));  // ÷ √16
  CHECK(deviation(named(p, "transformer.h.7.mlp.c_proj.weight")) == doctest::Approx(0.02 / 4).epsilon(0.07).scale(0));
  CHECK(std::ranges::all_of(named(p, "transformer.h.1.ln_2.weight").values(), [](float v) { return v == 1; }));
  CHECK(deviation(named(p, "transformer.h.1.mlp.c_fc.bias")) == 0);
  CHECK(p.count() == 100 * 32 + 20 * 32 + 8 * (4 * 32 + 4 * 32 * 32 + 4 * 32 + 2 * 32 * 64 + 64 + 32) + 2 * 32);

  const Parameters same = Parameters::initial(gpt2(64), 7), other = Parameters::initial(gpt2(64), 8);
  for (std::size_t i = 0; i < p.all().size(); ++i)
    CHECK(std::ranges::equal(p.all()[i].value.values(), same.all()[i].value.values()));
  CHECK_FALSE(std::ranges::equal(p.all()[0].value.values(), other.all()[0].value.values()));

  const Parameters attention_only = Parameters::initial(gpt2(0), 7);
  CHECK(attention_only.all().size() == 2 + 8 * 6 + 2);
  CHECK(named(Parameters::initial(llama(), 1), "model.layers.1.self_attn.k_proj.weight").shape() == Shape({6, 20}));
}

TEST_CASE("a saved model opens as what it was") {
  Backend backend(1);
  const std::vector<std::int32_t> tokens{3, 1, 4, 1, 5};
  for (const ModelConfig& config : {gpt2(64), gpt2(0), llama()})
    for (const DType type : {DType::f32, DType::f16}) {
      CAPTURE(config.family);
      CAPTURE(config.dims.d_mlp);
      CAPTURE(dtype_name(type));
      Folder folder;
      const Parameters p = Parameters::initial(config, 3);
      p.save(folder.path, type, {{"headscope", "made by a test"}});
      const auto model = Model::load(folder.path, backend);
      CHECK(model->info().dtype == dtype_name(type));
      CHECK(model->info().parameters == p.count());
      const ModelConfig& back = model->config();
      CHECK(back.dims.d_mlp == config.dims.d_mlp);
      CHECK(back.dims.kv_heads == config.dims.kv_heads);
      CHECK(back.activation == config.activation);
      CHECK(back.norm_epsilon == config.norm_epsilon);
      CHECK(back.rotary.base == config.rotary.base);
      CHECK(back.tied_embeddings == config.tied_embeddings);
      const Tensor expected = p.snapshot(backend)->forward(Ctx{.backend = backend}, tokens).logits,
                   found = model->forward(Ctx{.backend = backend}, tokens).logits;
      for (Index i = 0; i < expected.size(); ++i)
        CHECK(std::abs(found.data()[i] - expected.data()[i]) <= (type == DType::f32 ? 0.0f : 2e-3f));
      const Parameters again = Parameters::load(folder.path);
      REQUIRE(again.all().size() == p.all().size());
      for (std::size_t i = 0; i < p.all().size(); ++i) {
        CHECK(again.all()[i].name == p.all()[i].name);
        if (type == DType::f32) CHECK(std::ranges::equal(again.all()[i].value.values(), p.all()[i].value.values()));
      }
    }
}

TEST_CASE("a model without an MLP fires the sites it has, and no others") {
  Backend backend(1);
  const auto model = Parameters::initial(gpt2(0), 3).snapshot(backend);
  const std::vector<SiteKind> sites = model->sites();
  for (const SiteKind kind : {SiteKind::mlp_out, SiteKind::mlp_pre, SiteKind::ln2_normalized, SiteKind::resid_mid})
    CHECK(std::ranges::count(sites, kind) == 0);
  struct Count final : Tap {
    bool wants(Site) const override { return true; }
    Tensor at(Site site, const Tensor& value) override {
      seen.push_back(site.kind);
      return value;
    }
    std::vector<SiteKind> seen;
  } count;
  const std::vector<std::int32_t> tokens{1, 2, 3};
  (void)model->forward(Ctx{.backend = backend, .tap = &count}, tokens);
  for (const SiteKind kind : count.seen) CHECK(std::ranges::count(sites, kind) == 1);
  for (const SiteKind kind : sites) CHECK(std::ranges::count(count.seen, kind) == (info(kind).per_layer ? 8 : 1));
}

TEST_CASE("a value that F16 cannot hold is not saved as infinity") {
  Folder folder;
  Parameters p = Parameters::initial(llama(), 3);
  p.all()[0].value.ref(1, 1) = 1e6f;
  CHECK_THROWS_AS(p.save(folder.path, DType::f16), Error);
  p.save(folder.path, DType::f32);
}

}  // namespace headscope::parameters_test
