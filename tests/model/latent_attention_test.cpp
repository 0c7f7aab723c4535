// Latent keys and values: what a configuration says of them, what is refused, what a cache must keep, and the rotation
// that published files ask for.

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <string>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/model/config_reader.h"
#include "core/model/family.h"
#include "core/model/kv_cache.h"
#include "core/model/parameter_parts.h"
#include "core/model/published_caches.h"
#include "core/model/weights.h"
#include "tests/model/parity.h"
#include "tests/support/paths.h"

namespace headscope::latent_attention_test {

using namespace testing;

namespace {
using Json = nlohmann::json;

/// DeepSeek-V2-Lite's shape, its layers dense.
Json lite() {
  return {{"hidden_size", 2048},
          {"num_hidden_layers", 27},
          {"num_attention_heads", 16},
          {"num_key_value_heads", 16},
          {"intermediate_size", 10944},
          {"max_position_embeddings", 163840},
          {"vocab_size", 102400},
          {"q_lora_rank", nullptr},
          {"kv_lora_rank", 512},
          {"qk_nope_head_dim", 128},
          {"qk_rope_head_dim", 64},
          {"v_head_dim", 128},
          {"first_k_dense_replace", 27},
          {"n_routed_experts", 64},
          {"rope_theta", 10000},
          {"rope_scaling",
           {{"type", "yarn"},
            {"factor", 40},
            {"beta_fast", 32},
            {"beta_slow", 1},
            {"mscale", 0.707},
            {"mscale_all_dim", 0.707},
            {"original_max_position_embeddings", 4096}}}};
}

ModelConfig read(const Json& json, const char* type = "deepseek_v2") {
  return family(type, "test").read_config(ConfigReader::parse(json.dump(), "config.json"));
}
}  // namespace

TEST_CASE("a configuration with latents: widths, score scale and rotation by hand") {
  const ModelConfig c = read(lite());
  CHECK(c.dims.d_head == 192);
  CHECK(c.dims.value_width() == 128);
  CHECK(c.rotary.width == 64);
  CHECK(c.dims.q_latent == 0);
  // (128 + 64)^−½ · (0.1 · 0.707 · ln 40 + 1)²
  CHECK(static_cast<double>(score_scale(c, 0)) == doctest::Approx(0.114721386792).epsilon(1e-6));
  CHECK(rotary_magnitude(c.rotary) == doctest::Approx(1));  // mscale over itself
  // 64 · ln(4096 / (2π · 32)) / (2 ln 10000) = 10.47 …, of one turn 22.51 …: pairs up to 10 keep θ, from 23 on θ ÷ 40.
  const std::vector<double> theta = rotary_frequencies(c.rotary, c.dims.d_head);
  REQUIRE(theta.size() == 32);
  const auto own = [](int i) { return std::pow(10000.0, -2.0 * i / 64); };
  CHECK(theta[10] == doctest::Approx(own(10)));
  CHECK(theta[13] == doctest::Approx(own(13) * (10.0 / 13 + 3.0 / 13 / 40)));
  CHECK(theta[23] == doctest::Approx(own(23) / 40));
  CHECK(theta[31] == doctest::Approx(own(31) / 40));
}

TEST_CASE("a cache of latents keeps what the paper says, this program's the keys and values themselves") {
  ModelConfig c = read(lite());
  c.dims.layers = 60;
  const CachedNumbers needed = needed_numbers(c), kept = kept_numbers(c.dims);
  CHECK(needed.numbers == 512 + 64);
  CHECK(needed.sum == "512 + 64");
  CHECK(kept.numbers == 16 * (192 + 128));
  CHECK(kept.sum == "16 · (192 + 128)");
  CHECK(60 * needed.numbers * 2 == published_caches()[12].bytes(1, 2));  // DeepSeek-V2
  CHECK(KvCache(c.dims, 3).bytes() == 60 * 3 * kept.numbers * sizeof(float));
  ModelDims usual{.layers = 2, .heads = 4, .kv_heads = 2, .d_head = 8};
  CHECK(kept_numbers(usual).sum == "2 · 2 · 8");
}

TEST_CASE("DeepSeek's published numbers of experts, and the parameters that they come to") {
  Json json = lite();
  json.update({{"first_k_dense_replace", 1},
               {"n_shared_experts", 2},
               {"moe_intermediate_size", 1408},
               {"num_experts_per_tok", 6},
               {"n_group", 1},
               {"topk_group", 1},
               {"topk_method", "greedy"},
               {"norm_topk_prob", false},
               {"scoring_func", "softmax"},
               {"routed_scaling_factor", 1.0}});
  const ModelConfig v2 = read(json);
  CHECK_FALSE(v2.experts.at(0));
  CHECK(v2.experts.at(1));
  CHECK(v2.experts.shared_width == 2816);
  CHECK(v2.experts.score == RouterScore::softmax);
  CHECK_FALSE(v2.experts.renormalized);
  CHECK(parameter_parts(v2).total() == doctest::Approx(15.7e9).epsilon(0.002));  // "15.7B", of which 2.4B are active
  CHECK(parameter_parts(v2).total() - parameter_parts(v2).idle == doctest::Approx(2.66e9).epsilon(0.01));

  json.update({{"hidden_size", 7168},
               {"num_hidden_layers", 61},
               {"num_attention_heads", 128},
               {"num_key_value_heads", 128},
               {"intermediate_size", 18432},
               {"vocab_size", 129280},
               {"q_lora_rank", 1536},
               {"n_routed_experts", 256},
               {"n_shared_experts", 1},
               {"moe_intermediate_size", 2048},
               {"num_experts_per_tok", 8},
               {"n_group", 8},
               {"topk_group", 4},
               {"topk_method", "noaux_tc"},
               {"norm_topk_prob", true},
               {"scoring_func", "sigmoid"},
               {"first_k_dense_replace", 3},
               {"routed_scaling_factor", 2.5}});
  const ModelConfig v3 = read(json, "deepseek_v3");
  CHECK(v3.experts.score == RouterScore::sigmoid);
  CHECK(v3.experts.renormalized);
  CHECK(v3.experts.correction);
  CHECK(v3.experts.groups == 8);
  CHECK(v3.experts.groups_kept == 4);
  CHECK(v3.experts.scale == 2.5);
  CHECK(parameter_parts(v3).total() == doctest::Approx(671e9).epsilon(0.001));
  CHECK(parameter_parts(v3).total() - parameter_parts(v3).idle == doctest::Approx(37.6e9).epsilon(0.02));
}

TEST_CASE("what no two programs agree on in sparse layers, shared keys and odd rotations are refused by name") {
  const auto complaint = [](const char* key, const Json& value, const char* type = "deepseek_v2") {
    Json json = lite();
    json[key] = value;
    try {
      (void)read(json, type);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const auto sparse = [](Json more, const char* type = "deepseek_v2") {
    Json json = lite();
    json.update({{"first_k_dense_replace", 1}, {"num_experts_per_tok", 6}, {"n_group", 8}, {"topk_group", 3}});
    json.update(more);
    try {
      (void)read(json, type);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const auto refused = [](const std::string& said, const char* words) { return said.find(words) != std::string::npos; };
  CHECK(sparse(Json::object()).empty());
  CHECK(sparse(Json::object(), "deepseek_v3").empty());
  CHECK(refused(sparse({{"norm_topk_prob", true}}), "norm_topk_prob: expected false"));
  CHECK(refused(sparse({{"moe_layer_freq", 2}}), "moe_layer_freq"));
  CHECK(refused(sparse({{"topk_method", "noaux_tc"}}), "topk_method: expected one of greedy, group_limited_greedy"));
  CHECK(refused(sparse({{"topk_method", "greedy"}}, "deepseek_v3"), "topk_method: expected \"noaux_tc\""));
  CHECK(refused(sparse({{"scoring_func", "sigmoid"}}), "scoring_func: expected \"softmax\""));
  CHECK(refused(sparse({{"n_group", 64}}, "deepseek_v3"), "n_group: expected groups of 2 or more of the 64 experts"));
  CHECK(refused(sparse({{"n_group", 7}}, "deepseek_v3"), "n_group"));
  CHECK(refused(sparse({{"topk_group", 9}}, "deepseek_v3"), "topk_group"));
  CHECK(refused(sparse({{"num_experts_per_tok", 25}}, "deepseek_v3"), "topk_group: expected groups with 25 experts"));
  CHECK(refused(sparse({{"num_experts_per_tok", nullptr}}), "num_experts_per_tok"));
  CHECK(complaint("num_key_value_heads", 4).find("num_key_value_heads: expected num_attention_heads = 16") !=
        std::string::npos);
  CHECK(complaint("qk_rope_head_dim", 63).find("even number") != std::string::npos);
  CHECK(complaint("kv_lora_rank", 0).find("kv_lora_rank") != std::string::npos);
  Json dense = lite();
  dense["first_k_dense_replace"] = 1;
  dense["n_routed_experts"] = nullptr;
  CHECK(read(dense).dims.kv_latent == 512);
}

TEST_CASE(
    "the turning dimensions of a key are the same in all heads, and an edit of a latent reaches keys and values") {
  const Subject subject(reference("families") / "deepseek_v3");
  RunRequest request;
  request.ids = {3, 17, 8, 21};
  request.capture.sites = {SiteKind::k, SiteKind::v, SiteKind::kv_latent, SiteKind::q_latent};
  const auto trace = run(subject.loaded, request, {*subject.backend});
  const ModelConfig& c = subject.loaded.model->config();
  const Tensor& k = trace->sites.at({SiteKind::k, 1});
  for (Index i = 0; i < 4; ++i)
    for (int head = 1; head < c.dims.heads; ++head)
      for (Index d = 0; d < c.dims.d_head; ++d) {
        CAPTURE(d);
        CHECK((k.at(i, head, d) == k.at(i, 0, d)) == (d < c.rotary.width));
      }
  CHECK(trace->sites.at({SiteKind::v, 1}).shape() == Shape{4, c.dims.heads, c.dims.value_width()});
  CHECK(trace->sites.at({SiteKind::kv_latent, 1}).shape() == Shape{4, c.dims.kv_latent});
  CHECK(trace->sites.at({SiteKind::q_latent, 1}).shape() == Shape{4, c.dims.q_latent});

  struct Twice final : Tap {
    std::map<SiteKind, Tensor> seen;
    bool wants(Site site) const override { return site.layer == 0; }
    Tensor at(Site site, const Tensor& value) override {
      seen[site.kind] = value;
      if (site.kind != SiteKind::kv_latent) return value;
      Tensor out = value.copy();
      for (float& x : out.mutable_values()) x *= 2;
      return out;
    }
  } twice;
  const std::vector<std::int32_t> ids{3, 17, 8, 21};
  (void)subject.loaded.model->forward({*subject.backend, &twice}, ids);
  request.capture.sites = {SiteKind::k, SiteKind::v};
  const auto usual = run(subject.loaded, request, {*subject.backend});
  for (const SiteKind kind : {SiteKind::k, SiteKind::v}) {
    const Tensor &before = usual->sites.at({kind, 0}), &after = twice.seen.at(kind);
    for (Index i = 0; i < 4; ++i)
      for (Index d = 0; d < before.dim(2); ++d) {
        const bool turns = kind == SiteKind::k && d < c.rotary.width;
        CHECK(after.at(i, 1, d) == doctest::Approx((turns ? 1 : 2) * before.at(i, 1, d)).epsilon(1e-5));
      }
  }
}

}  // namespace headscope::latent_attention_test
