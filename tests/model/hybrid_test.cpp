// Models of which some layers attend and others mix tokens by a state: what is a layer's own, in caches, sites, files,
// edits and what is read of them. That every number is right families_test.cpp and plain_test.cpp say.

#include <doctest/doctest.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "core/analysis/linear_layers.h"
#include "core/analysis/logit_attribution.h"
#include "core/analysis/sinks.h"
#include "core/analysis/state_steps.h"
#include "core/analysis/weighted_maps.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/edits/edit_notes.h"
#include "core/generate/generation.h"
#include "core/io/json_view.h"
#include "core/io/trace_file.h"
#include "core/metrics/rollout.h"
#include "core/model/config_reader.h"
#include "core/model/family.h"
#include "core/model/model.h"
#include "core/run/mechanism_input.h"
#include "core/run/run_request.h"
#include "core/trace/layer_kinds.h"
#include "tests/support/largest_difference.h"
#include "tests/support/paths.h"

namespace headscope::hybrid_test {

using testing::largest_difference;
using testing::reference;

namespace {

const std::vector<std::int32_t> ids{3, 17, 8, 21, 40, 3, 17, 9, 33, 12, 40, 5, 3};
const char* const folders[] = {"granitemoehybrid",
                               "granitemoehybrid-dense",
                               "bamba",
                               "jamba",
                               "nemotron_h",
                               "qwen3_next",
                               "qwen3_5_text",
                               "lfm2",
                               "qwen3_5_moe_text",
                               "lfm2_moe",
                               "nemotron_h-experts",
                               "falcon_h1",
                               "falcon_h1-bare",
                               "falcon_h1-heads",
                               "falcon_h1-fewer",
                               "qwen3_5_text-heads",
                               "olmo_hybrid",
                               "minimax"};

struct Subject {
  Backend backend{2};
  LoadedModel loaded;
  RunRequest request;
  explicit Subject(const std::string& folder) {
    request.model = reference("families") / folder;
    loaded.model = Model::load(request.model, backend);
    request.ids = ids;
    request.capture.maps = MapStorage::dense;
  }
  const ModelDims& dims() const { return loaded.model->config().dims; }
  Ctx ctx() { return {backend}; }
  std::shared_ptr<const Trace> run_with(const std::vector<std::string>& edits, std::set<SiteKind> sites = {}) {
    RunRequest own = request;
    own.capture.sites = std::move(sites);
    for (const std::string& edit : edits) own.edits.push_back(parse_intervention(edit, "test"));
    return run(loaded, own, ctx());
  }
};

ModelConfig read(const std::string& type, const std::string& more) {
  return family(type, "here")
      .read_config(ConfigReader::parse("{\"hidden_size\": 24, \"vocab_size\": 43, \"max_position_embeddings\": 40, "
                                       "\"intermediate_size\": 16, \"num_attention_heads\": 4" +
                                           more + "}",
                                       "here"));
}

}  // namespace

TEST_CASE("hybrid: a layer's kind is read, and how many heads it has") {
  const std::string granite = R"(, "num_hidden_layers": 3, "num_local_experts": 0, "shared_intermediate_size": 9,
                                   "mamba_n_heads": 8, "mamba_d_head": 6, "mamba_d_state": 5)";
  const ModelConfig c = read("granitemoehybrid", granite + R"(, "layer_types": ["mamba", "attention", "mamba"])");
  CHECK(c.dims.mixers == std::vector<Mixer>{Mixer::state_space, Mixer::attention, Mixer::state_space});
  CHECK(c.dims.hybrid());
  CHECK_FALSE(c.dims.state_space());
  CHECK(c.dims.state_space(0));
  CHECK(c.dims.attends(1));
  CHECK(c.dims.d_head == 6);
  const ModelDims state = c.dims.of_layer(0), attention = c.dims.of_layer(1);
  CHECK(state.state_space());
  CHECK(state.d_head == 12);  // 48 channels of 4 heads
  CHECK(state.kv_heads == 4);
  CHECK(attention.attends());
  CHECK(attention.d_head == 6);
  CHECK(attention.d_inner == 0);
  CHECK(c.position == PositionKind::none);
  const auto kinds = layer_kinds(c.dims);
  REQUIRE(kinds.size() == 2);
  CHECK(kinds[0].layers == 2);
  CHECK(kinds[1].layers == 1);
  CHECK(attending_layers(c.dims) == 1);

  // All alike is no hybrid: the published names of both kinds, and none at all.
  const ModelConfig states = read("granitemoehybrid", granite);
  CHECK(states.dims.mixers.empty());
  CHECK(states.dims.state_space());
  CHECK(states.dims.d_head == 12);
  const ModelConfig attending =
      read("granitemoehybrid", granite + R"(, "layer_types": ["full_attention", "attention", "full_attention"])");
  CHECK(attending.dims.attends());
  CHECK_FALSE(attending.state_space.has_value());
  CHECK(attending.dims.d_inner == 0);

  const auto refused = [](const std::string& type, const std::string& more, const char* words) {
    CHECK_THROWS_WITH_AS(read(type, more), doctest::Contains(words), Error);
  };
  const std::string bamba = R"(, "num_hidden_layers": 2, "mamba_d_state": 4, "rope_parameters":
                                 {"rope_type": "default", "rope_theta": 100, "partial_rotary_factor": 1})";
  const ModelConfig own = read("bamba", bamba + R"(, "attn_layer_indices": [1], "mamba_n_heads": 6)");
  CHECK(own.dims.state_heads == 6);
  CHECK(own.dims.heads_of(0) == 6);
  CHECK(own.dims.heads_of(1) == 4);
  CHECK(own.dims.of_layer(0).d_head == 8);
  refused("bamba", bamba + R"(, "attn_layer_indices": [2])", "attn_layer_indices");
  refused("granitemoehybrid", granite + R"(, "layer_types": ["mamba", "attention"])", "3 layers");
  refused("granitemoehybrid", granite + R"(, "layer_types": ["mamba", "attention", "gated"])", "gated");
  refused("jamba", R"(, "num_hidden_layers": 4, "attn_layer_period": 2, "attn_layer_offset": 2)", "attn_layer_offset");
  const std::string nemotron = R"(, "head_dim": 6, "num_key_value_heads": 2, "mamba_num_heads": 8, "mamba_head_dim": 3,
                                   "n_groups": 2, "ssm_state_size": 4, "hybrid_override_pattern": )";
  const ModelConfig blocks = read("nemotron_h", nemotron + "\"M-M*-\"");
  CHECK(blocks.dims.layers == 3);
  CHECK(blocks.dims.bare == std::vector<bool>{false, true, false});
  CHECK(blocks.dims.of_layer(1).d_mlp == 0);
  refused("nemotron_h", nemotron + "\"-M*\"", "an MLP as layer 0");
  refused("nemotron_h", nemotron + "\"M--\"", "an MLP as layer 2");
  refused("nemotron_h", nemotron + "\"E*\"", "an MLP as layer 0");
  refused("nemotron_h", nemotron + "\"M-E*\"", "an MLP as layer 2");
  refused("nemotron_h", nemotron + "\"MX*\"", "\"X\" as layer 1");
  const std::string taken = R"(, "n_routed_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 5)";
  const ModelConfig several = read("nemotron_h", nemotron + "\"ME*M-\"" + taken);
  CHECK(several.experts.layers == std::vector<bool>{true, false, false});
  CHECK(several.dims.bare == std::vector<bool>{false, true, false});
  CHECK(several.experts.shared_width == 7688);
  CHECK(several.has_dense());
  const ModelConfig no_dense = read("nemotron_h", nemotron + "\"ME*\"" + taken);
  CHECK_FALSE(no_dense.has_dense());
  CHECK(no_dense.experts.anywhere());
  refused("nemotron_h", nemotron + "\"ME*\"" + taken + R"(, "moe_latent_size": 8)", "moe_latent_size");
  refused("nemotron_h", nemotron + "\"ME*\"" + taken + R"(, "n_shared_experts": 2)", "n_shared_experts");
  CHECK(read("nemotron_h", nemotron + R"("M-M*-", "num_hidden_layers": 5)").dims.layers == 3);
  refused("nemotron_h", nemotron + R"("M-M*-", "num_hidden_layers": 6)", "num_hidden_layers: expected 5");
  CHECK(read("nemotron_h", nemotron + R"("M*", "time_step_limit": [0.0, Infinity])").dims.layers == 2);
  refused("nemotron_h", nemotron + R"("M*", "time_step_limit": [0.1, 2])", "time_step_limit: expected [0, Infinity]");
  // A kind is told in the family's own words.
  refused("granitemoehybrid", granite + R"(, "layer_types": ["mamba", "attention", "conv"])", "conv");
  refused("qwen3_5_text", R"(, "num_hidden_layers": 2, "layer_types": ["mamba", "full_attention"])", "mamba");
  const std::string lfm2 = R"(, "num_hidden_layers": 2, "num_key_value_heads": 2, "block_auto_adjust_ff_dim": )";
  refused("lfm2", lfm2 + R"(false, "layer_types": ["linear_attention", "full_attention"])", "linear_attention");
  CHECK(read("lfm2", lfm2 + R"(false, "full_attn_idxs": [1])").dims.mixers ==
        std::vector<Mixer>{Mixer::state_space, Mixer::attention});
  refused("lfm2", lfm2 + R"(false, "full_attn_idxs": [1, 2])", "full_attn_idxs");
  refused("lfm2", lfm2 + R"(true, "block_ff_dim": 1)", "an MLP of 1 to 1048576 numbers, found 0");
  refused("lfm2", lfm2 + R"(true, "block_ffn_dim_multiplier": 1000, "block_ff_dim": 100000)",
          "block_ffn_dim_multiplier");
}

TEST_CASE("hybrid: more channels than a layer may have are refused by the key that asks for them") {
  const auto refused = [](const std::string& type, const std::string& more, const char* words) {
    CAPTURE(more);
    CHECK_THROWS_WITH_AS(read(type, more), doctest::Contains(words), Error);
  };
  const std::string nemotron = R"(, "head_dim": 6, "num_key_value_heads": 2, "n_groups": 2,
                                   "hybrid_override_pattern": "M*", "mamba_num_heads": 1048576, )";
  for (const char* width : {"2", "2048", "4096", "1048576"})  // in 32 bits 2^21, −2^31, 0 and 0
    refused("nemotron_h", nemotron + R"("ssm_state_size": 4, "mamba_head_dim": )" + width,
            "mamba_head_dim: expected a layer with a state of at most 1048576 channels, found 1048576 · ");
  refused("nemotron_h", nemotron + R"("mamba_head_dim": 1, "ssm_state_size": 1048576)",
          "ssm_state_size: expected at most 4194304 channels that are convolved, found 1048576 + 2 · 2 · 1048576");
  refused("qwen3_5_text",
          R"(, "num_hidden_layers": 4, "linear_num_value_heads": 1048576, "linear_value_head_dim": 8192)",
          "linear_value_head_dim: expected a layer");
  const std::string granite = R"(, "num_hidden_layers": 3, "num_local_experts": 0, "shared_intermediate_size": 9,
                                   "layer_types": ["mamba", "attention", "mamba"], "mamba_n_groups": )";
  refused("granitemoehybrid", granite + R"(1, "mamba_n_heads": 131072, "mamba_d_head": 32768)", "131072 · 32768");
  refused("granitemoehybrid", granite + R"(1024, "mamba_n_heads": 8, "mamba_d_state": 1048576)",
          "mamba_d_state: expected at most 4194304");
}

TEST_CASE(
    "hybrid: files beside the weights may hold the bare Infinity that Python writes, as whoever reads them meets it") {
  const auto file = testing::scratch_dir("hybrid-infinity") / "config.json";
  write_file_atomically(file, R"({"model_type": "bamba", "said": "\"Infinity", "time_step_limit": [0.0, Infinity]})");
  const nlohmann::json read = read_json_file(file);
  CHECK(read["said"] == "\"Infinity");
  CHECK(read["time_step_limit"][1]["__float__"] == "Infinity");
}

TEST_CASE("hybrid: a cache that was cut back anywhere gives the logits of a pass without one, and maps of all keys") {
  for (const char* folder : folders) {
    CAPTURE(folder);
    Subject s(folder);
    const Model& model = *s.loaded.model;
    KvCache cache(s.dims(), 20);
    model.forward(s.ctx(), ids, &cache);
    KvCache other = cache.copy();
    CHECK(other.length() == 13);
    for (const int kept : {12, 11, 3, 1, 0}) {
      CAPTURE(kept);
      std::vector<std::int32_t> text(ids.begin(), ids.begin() + kept);
      cache.truncate(kept);
      const std::vector<std::int32_t> more{9, 30, 2};
      text.insert(text.end(), more.begin(), more.end());
      const ForwardResult fresh = model.forward(s.ctx(), text, nullptr, {MapStorage::dense});
      const ForwardResult first = model.forward(s.ctx(), std::span(more).first(1), &cache);
      const ForwardResult rest = model.forward(s.ctx(), std::span(more).subspan(1), &cache, {MapStorage::factored});
      CHECK(largest_difference(first.logits, fresh.logits.slice(0, kept, kept + 1)) < 1e-5);
      CHECK(largest_difference(rest.logits, fresh.logits.slice(0, kept + 1, kept + 3)) < 1e-5);
      REQUIRE(rest.maps.size() == fresh.maps.size());
      for (std::size_t m = 0; m < fresh.maps.size(); ++m) {
        const bool attends = s.dims().attends(rest.maps[m].layer());
        CHECK((rest.maps[m].place().kind == MapKind::probability) == attends);
        CHECK(rest.maps[m].is_factored() == attends);
        CHECK(largest_difference(rest.maps[m].to_dense(), fresh.maps[m].to_dense().slice(0, kept + 1, kept + 3)) <
              1e-5);
      }
    }
    const ForwardResult last = model.forward(s.ctx(), std::vector<std::int32_t>{7}, &other);
    std::vector<std::int32_t> longer = ids;
    longer.push_back(7);
    CHECK(largest_difference(last.logits, model.forward(s.ctx(), longer).logits.slice(0, 13, 14)) < 1e-5);
  }
}

TEST_CASE("hybrid: what a cache takes is the sum of its layers, each by its kind") {
  Subject s("granitemoehybrid");  // 2 layers with 36 channels, 6 lanes, 2 groups of 5 states; 2 with one key head of 6
  CHECK(cache_bytes(s.dims(), 0) == 4 * 2 * (36 * 5));
  // From the seventeenth token on a second state is kept, behind the sixteenth.
  CHECK(cache_bytes(s.dims(), 17) - cache_bytes(s.dims(), 16) ==
        cache_bytes(s.dims(), 3) - cache_bytes(s.dims(), 2) + 4 * 2 * (36 * 5));
  CHECK(cache_bytes(s.dims(), 3) == 4 * (2 * (36 * 5 + 3 * ((36 + 20) + 36 + 6 + 10)) + 2 * 3 * 2 * 6));
  CHECK(needed_numbers(s.loaded.model->config()).numbers == 2 * 6);
  CHECK(panel_bytes(s.dims(), 64) == 2 * 64 * 6 * 4);
  Subject delta("qwen3_next");  // 2 layers of 6 heads of 4 values, 2 keys of 5; 2 with one key head of 8
  CHECK(cache_bytes(delta.dims(), 3) == 4 * (2 * (24 * 5 + 3 * ((24 + 20) + 24 + 2 * 6 + 10)) + 2 * 3 * 2 * 8));
  Subject convolution("lfm2");  // 3 layers of 24 channels; one with 2 key heads of 4
  CHECK(cache_bytes(convolution.dims(), 3) == 4 * (3 * 3 * (3 * 24) + 3 * 2 * 2 * 4));
}

TEST_CASE("hybrid: sites are of the layers that have them, and a trace is saved with its kinds of layers") {
  for (const char* folder : folders) {
    CAPTURE(folder);
    Subject s(folder);
    std::set<SiteKind> all;
    for (const SiteKind kind : s.loaded.model->sites())
      if (kind != SiteKind::attn_scores) all.insert(kind);
    const auto trace = s.run_with({}, all);
    for (int layer = 0; layer < s.dims().layers; ++layer) {
      CAPTURE(layer);
      const bool attends = s.dims().attends(layer);
      CHECK(trace->sites.contains({SiteKind::v, layer}) == attends);
      const StateKind kind = s.dims().state_kind;
      CHECK(trace->sites.contains({SiteKind::mixer_b, layer}) == !attends);
      CHECK(trace->sites.contains({SiteKind::mixer_delta, layer}) == (!attends && kind != StateKind::convolution));
      CHECK(trace->sites.contains({SiteKind::mixer_gate, layer}) == (!attends && kind != StateKind::convolution));
      CHECK(trace->sites.contains({SiteKind::mixer_beta, layer}) == (!attends && kind == StateKind::delta));
      CHECK(trace->sites.contains({SiteKind::mlp_out, layer}) == s.dims().has_mlp(layer));
      CHECK(trace->sites.at({SiteKind::z, layer}).dim(1) == s.dims().heads_of(layer));
      CHECK(trace->sites.at({SiteKind::z, layer}).dim(2) ==
            (attends ? s.dims().d_head : s.dims().d_inner / s.dims().heads_of(layer)));
    }
    const auto file = testing::scratch_dir("hybrid") / "trace.safetensors";
    all.insert(SiteKind::pattern);
    write_trace(*trace, file, {.sites = all});
    const auto again = open_trace(file);
    CHECK(again->model.dims.mixers == s.dims().mixers);
    CHECK(again->model.dims.bare == s.dims().bare);
    CHECK(again->model.dims.normed_behind == s.dims().normed_behind);
    CHECK(again->model.dims.state_kind == s.dims().state_kind);
    CHECK(again->model.dims.state_heads == s.dims().state_heads);
    CHECK(again->model.dims.paired == s.dims().paired);
    REQUIRE(again->maps.size() == trace->maps.size());
    for (std::size_t m = 0; m < again->maps.size(); ++m) {
      CHECK(again->maps[m].place().kind == trace->maps[m].place().kind);
      CHECK(largest_difference(again->maps[m].to_dense(), trace->maps[m].to_dense()) < 1e-7);
    }
    CHECK(again->sites.size() + 1 == trace->sites.size());  // the logits stand beside them
  }
}

TEST_CASE("hybrid: an edit reaches the layers that can follow, says so, and is refused where it names another") {
  Subject s("granitemoehybrid");
  const auto plain = s.run_with({}), cool = s.run_with({"*: temperature 0.5"}),
             by_layer = s.run_with({"1.*: temperature 0.5", "3.*: temperature 0.5"});
  CHECK(largest_difference(plain->logits, cool->logits) > 1e-3);
  CHECK(largest_difference(cool->logits, by_layer->logits) == 0);
  CHECK(largest_difference(plain->map({0, 1}).to_dense(), cool->map({0, 1}).to_dense()) == 0);
  CHECK_THROWS_WITH_AS(s.run_with({"2.*: temperature 0.5"}), doctest::Contains("layer 2, a state space"), Error);
  CHECK_THROWS_WITH_AS(s.run_with({"2.0: mechanism linear"}), doctest::Contains("layer 2, a state space"), Error);
  CHECK_THROWS_WITH_AS(Subject("lfm2").run_with({"0.*: temperature 0.5"}),
                       doctest::Contains("layer 0, a short convolution"), Error);
  CHECK_THROWS_WITH_AS(Subject("qwen3_5_text").run_with({"0.*: temperature 0.5"}),
                       doctest::Contains("layer 0, the gated delta rule"), Error);
  const auto cut = s.run_with({"*: mask window 2"});
  for (int layer = 0; layer < 4; ++layer) CHECK(cut->map({layer, 0}).weight(9, 3) == 0);
  const auto set = s.run_with({"*: weight -1 4 0.5"});
  for (int layer = 0; layer < 4; ++layer) CHECK(set->map({layer, 2}).weight(12, 4) == doctest::Approx(0.5));
  const ModelInfo info = s.loaded.model->info();
  const auto notes = [&](const char* edit) { return edit_notes({parse_intervention(edit, "test")}, info, 13); };
  REQUIRE(notes("*: temperature 0.5").size() == 1);
  CHECK(notes("*: temperature 0.5")[0].find("layers that do not attend (a state space) stay as they are: 0, 2") !=
        std::string::npos);
  CHECK(notes("1.*: temperature 0.5").empty());
  CHECK(notes("*: mask window 2").empty());
  CHECK_THROWS_WITH_AS(head_input(s.loaded, s.request, {0, 1}, s.ctx()), doctest::Contains("layer 0"), Error);
  CHECK(head_input(s.loaded, s.request, {1, 1}, s.ctx()).q.dim(0) == 13);
  Subject bare("nemotron_h");
  CHECK_THROWS_WITH_AS(bare.run_with({"1.*: switch off mlp"}), doctest::Contains("layer 1"), Error);
  CHECK(largest_difference(bare.run_with({"*: switch off mlp"})->logits, bare.run_with({})->logits) > 1e-3);
}

TEST_CASE("hybrid: a block of Falcon-H1 is two layers that read what enters the first") {
  Subject s("falcon_h1");
  const std::set<SiteKind> sites{SiteKind::resid_pre, SiteKind::ln1_normalized, SiteKind::attn_out,
                                 SiteKind::resid_post};
  const auto plain = s.run_with({}, sites), silent = s.run_with({"0: switch off attention"}, sites);
  const auto site = [](const Trace& of, SiteKind kind, int layer) { return of.sites.at({kind, layer}); };
  CHECK(s.dims().layers == 4);
  for (const int first : {0, 2}) {
    CHECK(s.dims().state_space(first));
    CHECK(s.dims().attends(first + 1));
    CHECK_FALSE(s.dims().has_mlp(first));
    CHECK(largest_difference(site(*plain, SiteKind::ln1_normalized, first),
                             site(*plain, SiteKind::ln1_normalized, first + 1)) == 0);
    CHECK(largest_difference(site(*plain, SiteKind::resid_post, first), site(*plain, SiteKind::resid_pre, first + 1)) ==
          0);
    CHECK(largest_difference(site(*plain, SiteKind::resid_pre, first), site(*plain, SiteKind::resid_pre, first + 1)) >
          0.1);
  }
  // What a state writes is not read by the attention beside it, but by the blocks behind.
  CHECK(largest_difference(plain->map({1, 2}).to_dense(), silent->map({1, 2}).to_dense()) == 0);
  CHECK(largest_difference(plain->map({2, 2}).to_dense(), silent->map({2, 2}).to_dense()) > 1e-4);
  CHECK(largest_difference(plain->map({3, 2}).to_dense(), silent->map({3, 2}).to_dense()) > 1e-4);
  CHECK_THROWS_WITH_AS(s.run_with({"1: switch off ln1"}), doctest::Contains("in pairs"), Error);
  CHECK_THROWS_WITH_AS(s.run_with({"*: post norm"}), doctest::Contains("in pairs"), Error);
  // A text that changed is computed anew from its start.
  CHECK_FALSE(s.loaded.model->config().stream_is_all());
}

TEST_CASE("hybrid: what is read of a layer is what its kind has, and nothing where it has none") {
  Subject s("granitemoehybrid");
  std::set<SiteKind> sites = attribution_sites(*s.loaded.model);
  sites.merge(state_step_sites(*s.loaded.model));
  const auto trace = s.run_with({}, sites);
  const LogitAttribution found = logit_attribution(*s.loaded.model, *trace, {.position = 7, .token = 11});
  CHECK(found.sum() == doctest::Approx(found.logit).epsilon(1e-4));
  for (int layer = 0; layer < 4; ++layer)
    for (int head = 0; head < 3; ++head) {
      double split = 0;
      for (Index key = 0; key < 13; ++key)
        split += static_cast<double>(found.by_source.at(Index{layer} * 3 + head, key));
      const double whole = found.value(AttributionPart::Kind::head, layer, head);
      if (s.dims().attends(layer))
        CHECK(split == doctest::Approx(whole).epsilon(1e-4).scale(0.1));
      else
        CHECK(std::isnan(split));
    }
  const auto steps = read_state_steps(*s.loaded.model, *trace);
  REQUIRE(steps.size() == 2);
  CHECK(steps[0].layer == 0);
  CHECK(steps[1].layer == 2);
  CHECK(steps[1].delta.dim(1) == 6);
  const ModelWeights weights = s.loaded.model->weights();
  const SinkReport sinks = read_sinks(*trace, weights, 4);
  REQUIRE(sinks.heads.size() == 12);
  CHECK(std::isnan(sinks.heads[0].mass));
  CHECK(sinks.heads[3].mass > 0);
  CHECK(std::isnan(sinks.layers[2].received[1]));
  CHECK(sinks.layers[2].residual[1] > 0);
  const auto weighted = weighted_heads(*trace, weights);
  CHECK(std::isnan(weighted[6].first_output));
  CHECK(weighted[9].first_output > 0);
  CHECK_THROWS_WITH_AS(weighted_map(*trace, weights, {2, 0}, Weighting::value), doctest::Contains("layer 2"), Error);
  // |α| as shares in the layers with a state, probabilities in the others.
  const std::vector<Tensor> mixing = mixing_matrices(*trace, 0.5);
  for (int layer = 0; layer < 4; ++layer) {
    double row = 0, own = 0, all = 0;
    for (Index key = 0; key < 13; ++key) row += static_cast<double>(mixing[static_cast<std::size_t>(layer)].at(9, key));
    CHECK(row == doctest::Approx(1));
    for (int head = 0; head < 3; ++head) {
      const AttentionMap& map = trace->map({layer, head});
      double sum = 0;
      for (Index key = 0; key < 10; ++key) sum += std::abs(static_cast<double>(map.weight(9, key)));
      own += std::abs(static_cast<double>(map.weight(9, 4))) / sum;
      all += 1;
    }
    CHECK(mixing[static_cast<std::size_t>(layer)].at(9, 4) == doctest::Approx(0.5 * own / all).epsilon(1e-5));
  }
  LinearLayersAsked asked;
  asked.run = s.request;
  asked.mechanism = "linear";
  LinearLayersSearch search(s.loaded, asked);
  CHECK_THROWS_WITH_AS(search.step(s.ctx()), doctest::Contains("layers 0 and 2"), Error);
  CHECK_THROWS_WITH_AS(search.step(s.ctx()), doctest::Contains("\"1.*: mechanism linear\""), Error);
  Subject nemotron("nemotron_h");
  const std::string first =
      std::to_string(std::ranges::find(nemotron.dims().mixers, Mixer::attention) - nemotron.dims().mixers.begin());
  asked.run = nemotron.request;
  LinearLayersSearch other(nemotron.loaded, asked);
  CHECK_THROWS_WITH_AS(other.step(nemotron.ctx()), doctest::Contains(("\"" + first + ".*: mechanism").c_str()), Error);
}

}  // namespace headscope::hybrid_test
