#include "core/io/trace_file.h"
#include "core/base/json.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ostream>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/io/safetensors.h"
#include "tests/support/paths.h"

namespace headscope::trace_file_test {

namespace fs = std::filesystem;

namespace {

/// Random causal probabilities, (query, key), with `offset` cached keys before row 0.
Tensor causal_weights(Index queries, Index offset, Random& random) {
  Tensor weights = Tensor::zeros({queries, offset + queries});
  for (Index q = 0; q < queries; ++q) {
    double sum = 0;
    for (Index k = 0; k <= offset + q; ++k) sum += weights.ref(q, k) = static_cast<float>(random.uniform() + 0.01);
    for (Index k = 0; k <= offset + q; ++k) weights.ref(q, k) /= static_cast<float>(sum);
  }
  return weights;
}

Tensor random_tensor(Shape shape, Random& random) {
  Tensor tensor = Tensor::uninitialized(shape);
  for (float& x : tensor.mutable_values()) x = random.normal();
  return tensor;
}

constexpr int layers = 2, heads = 4, d_head = 3, vocab = 7;

/// A small trace with everything a run leaves behind. The text is "é!" and its first character is two tokens.
Trace sample(Index cached = 0) {
  Random random(3);
  Trace trace;
  trace.model = {.name = "tiny",
                 .family = "gpt2",
                 .dims = {.layers = layers,
                          .heads = heads,
                          .kv_heads = 2,
                          .d_head = d_head,
                          .d_model = 12,
                          .d_mlp = 20,
                          .vocab = vocab},
                 .context = 64,
                 .parameters = 12345678901,
                 .dtype = "BF16"};
  trace.text = "é!";
  trace.tokens = {
      {6, "", "<|end|>", -1, -1}, {1, "\xC3", "<C3>", 0, 1}, {2, "\xA9", "<A9>", 1, 2}, {1, "!", "!", 2, 3}};
  trace.source = "headscope cpu f32";
  trace.plan = {MapStorage::dense, 512, "8 maps dense (512 bytes)"};
  trace.milliseconds = 1.25;
  const Index n = 4 - cached;
  const auto links = TokenLinks::of(trace.ids());
  for (int layer = 0; layer < layers; ++layer)
    for (int head = 0; head < heads; ++head) {
      const Tensor weights = causal_weights(n, cached, random);
      trace.maps.push_back(AttentionMap::dense({.layer = layer, .head = head, .kv_head = head / 2, .offset = cached},
                                               weights, causal_rule(), stats_of_weights(weights, &links, cached)));
    }
  for (int layer = 0; layer < layers; ++layer) {
    trace.sites[{SiteKind::q, layer}] = random_tensor({n, heads, d_head}, random);
    trace.sites[{SiteKind::v, layer}] = random_tensor({n, 2, d_head}, random);
    trace.sites[{SiteKind::resid_post, layer}] = random_tensor({n, 12}, random);
  }
  trace.sites[{SiteKind::embed}] = random_tensor({n, 12}, random);
  trace.logits = random_tensor({n, vocab}, random);
  return trace;
}

void check_equal(const Tensor& a, const Tensor& b) {
  REQUIRE(a.shape() == b.shape());
  const Tensor x = a.packed(), y = b.packed();
  CHECK(std::ranges::equal(x.values(), y.values()));
}

void check_equal(const std::vector<AttentionMap>& a, const std::vector<AttentionMap>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CHECK(a[i].layer() == b[i].layer());
    CHECK(a[i].head() == b[i].head());
    CHECK(a[i].place().kv_head == b[i].place().kv_head);
    CHECK(a[i].place().offset == b[i].place().offset);
    CHECK(a[i].place().kind == b[i].place().kind);
    check_equal(a[i].to_dense(), b[i].to_dense());
    CHECK(a[i].stats().entropy == b[i].stats().entropy);
    CHECK(a[i].stats().duplicate == b[i].stats().duplicate);
    CHECK(a[i].stats().column_mass == b[i].stats().column_mass);
  }
}

fs::path file_in(const std::string& folder) {
  return testing::scratch_dir(folder) / "trace.safetensors";
}

/// A factored map of n tokens with one head's q and k.
AttentionMap factored_map(Index n, AttentionMap::Place place, Random& random) {
  const Tensor q = random_tensor({n, d_head}, random), k = random_tensor({n, d_head}, random);
  auto stats = std::make_shared<HeadStats>();
  for (Index i = 0; i < n; ++i) {
    double sum = 0;
    for (Index j = 0; j <= i; ++j) {
      double dot = 0;
      for (Index c = 0; c < d_head; ++c) dot += static_cast<double>(q.at(i, c)) * static_cast<double>(k.at(j, c));
      sum += std::exp(0.5 * dot);
    }
    stats->log_sum_exp.push_back(static_cast<decltype(stats->log_sum_exp)::value_type>(std::log(sum)));
  }
  return AttentionMap::factored(place, q, k, 0.5f, causal_rule(), stats);
}

}  // namespace

TEST_CASE("a trace with every recorded site comes back equal, partial characters and all") {
  const Trace trace = sample();
  const fs::path path = file_in("trace-round");
  write_trace(trace, path,
              {.sites = {SiteKind::pattern, SiteKind::q, SiteKind::v, SiteKind::resid_post, SiteKind::embed,
                         SiteKind::logits}});
  const auto back = open_trace(path);
  CHECK(back->model.name == "tiny");
  CHECK(back->model.family == "gpt2");
  CHECK(back->model.dtype == "BF16");
  CHECK(back->model.context == 64);
  CHECK(back->model.parameters == 12345678901);
  CHECK(back->model.dims.kv_heads == 2);
  CHECK(back->model.dims.d_mlp == 20);
  CHECK(back->text == "é!");
  CHECK(back->source == "headscope cpu f32");
  CHECK(back->milliseconds == 1.25);
  CHECK(back->plan.summary == "8 maps dense (512 bytes)");
  CHECK(back->plan.maps == MapStorage::dense);
  CHECK(back->ids() == std::vector<std::int32_t>{6, 1, 2, 1});
  for (std::size_t i = 0; i < trace.tokens.size(); ++i) {
    CHECK(back->tokens[i].bytes == trace.tokens[i].bytes);
    CHECK(back->tokens[i].label == trace.tokens[i].label);
    CHECK(back->tokens[i].begin == trace.tokens[i].begin);
    CHECK(back->tokens[i].end == trace.tokens[i].end);
  }
  check_equal(trace.maps, back->maps);
  CHECK(back->map({1, 2}).rule()->describe() == "causal");
  CHECK(back->map({1, 2}).masked(0, 1));
  REQUIRE(back->sites.size() == trace.sites.size());
  for (const auto& [site, tensor] : trace.sites) check_equal(tensor, back->sites.at(site));
  check_equal(trace.logits, back->logits);
}

TEST_CASE("tensors can have the names of TransformerLens' bridges, and come back the same") {
  Trace trace = sample();
  Random random(8);
  for (const SiteKind kind : {SiteKind::mlp_pre, SiteKind::mlp_pre_linear})
    trace.sites[{kind, 1}] = random_tensor({4, 20}, random);
  for (const SiteKind kind : {SiteKind::ln1_normalized, SiteKind::resid_pre, SiteKind::resid_mid})
    trace.sites[{kind, 1}] = random_tensor({4, 12}, random);
  const fs::path path = file_in("trace-bridge");
  TraceFileOptions options{.names = HookNames::bridge_gated};
  for (const auto& [site, tensor] : trace.sites) options.sites.insert(site.kind);
  options.sites.insert(SiteKind::logits);
  write_trace(trace, path, options);
  const SafetensorsFile file = SafetensorsFile::open(path);
  for (const char* key : {"blocks.1.mlp.gate.hook_out", "blocks.1.mlp.in.hook_out", "blocks.1.ln1.hook_out",
                          "blocks.1.hook_in", "blocks.1.ln2.hook_in", "blocks.1.hook_out", "blocks.0.attn.q.hook_out",
                          "embed.hook_out", "unembed.hook_out", "blocks.0.attn.hook_pattern"})
    CHECK_MESSAGE(file.tensors().contains(key), key);
  const auto back = open_trace(path);
  REQUIRE(back->sites.size() == trace.sites.size());
  for (const auto& [site, tensor] : trace.sites) check_equal(tensor, back->sites.at(site));
  check_equal(trace.maps, back->maps);
  check_equal(trace.logits, back->logits);
}

TEST_CASE("patterns alone are written by default, and the maps of a reopened trace are written again the same") {
  const Trace trace = sample();
  const fs::path folder = testing::scratch_dir("trace-default");
  write_trace(trace, folder / "a.safetensors");
  const auto back = open_trace_file(folder / "a.safetensors");
  CHECK(back->sites.empty());
  CHECK_FALSE(back->logits.defined());
  CHECK(back->plan.bytes == 2 * 4 * 4 * 4 * sizeof(float));
  write_trace(*back, folder / "b.safetensors");
  check_equal(trace.maps, open_trace(folder / "b.safetensors")->maps);
}

TEST_CASE("queries after cached tokens keep their offset, and one row of logits is enough") {
  Trace trace = sample(2);
  trace.logits = trace.logits.slice(0, 1, 2);
  const fs::path path = file_in("trace-offset");
  write_trace(trace, path, {.sites = {SiteKind::pattern, SiteKind::logits}});
  const auto back = open_trace(path);
  CHECK(back->map({0, 0}).n_query() == 2);
  CHECK(back->map({0, 0}).n_key() == 4);
  CHECK(back->map({0, 0}).masked(0, 3));
  CHECK_FALSE(back->map({0, 0}).masked(0, 2));
  check_equal(trace.maps, back->maps);
  CHECK(back->logits.shape() == Shape{1, vocab});
}

TEST_CASE("a trace of some layers only comes back with those layers") {
  Trace trace = sample();
  trace.maps.erase(trace.maps.begin(), trace.maps.begin() + heads);
  const fs::path path = file_in("trace-layers");
  write_trace(trace, path);
  const auto back = open_trace(path);
  CHECK(back->maps.size() == heads);
  check_equal(trace.map({1, 3}).to_dense(), back->map({1, 3}).to_dense());
  CHECK_THROWS_AS(back->map({0, 0}), Error);
}

TEST_CASE("factored maps are written band by band and come back as their dense weights") {
  constexpr Index n = 700;  // 262144 / 700 = 374 rows a band: the last band is narrower
  Random random(5);
  Trace trace;
  trace.model.dims = {.layers = 1, .heads = 2, .kv_heads = 1, .d_head = d_head, .d_model = 6, .d_mlp = 8, .vocab = 9};
  for (Index i = 0; i < n; ++i) trace.tokens.push_back({static_cast<std::int32_t>(i % 9), "x", "x", -1, -1});
  for (int head = 0; head < 2; ++head) trace.maps.push_back(factored_map(n, {.layer = 0, .head = head}, random));
  trace.plan.maps = MapStorage::factored;
  const fs::path path = file_in("trace-factored");
  std::size_t last = 0;
  write_trace(trace, path, {.progress = [&](std::size_t done, std::size_t) { last = done; }});
  CHECK(last == (2 * n * n + n) * 4);
  const auto back = open_trace(path);
  CHECK_FALSE(back->map({0, 1}).is_factored());
  CHECK(back->plan.maps == MapStorage::dense);
  for (int head = 0; head < 2; ++head) {
    check_equal(trace.map({0, head}).to_dense(), back->map({0, head}).to_dense());
    std::vector<float> row(n);
    back->map({0, head}).row(n - 1, row);
    double sum = 0;
    for (const float w : row) sum += static_cast<double>(w);
    CHECK(sum == doctest::Approx(1.0).epsilon(1e-6));
  }
}

TEST_CASE("giving up while writing leaves no file") {
  const fs::path folder = testing::scratch_dir("trace-cancel");
  const auto stop = [](std::size_t done, std::size_t) {
    if (done > 0) throw Cancelled();
  };
  CHECK_THROWS_AS(write_trace(sample(), folder / "x.safetensors", {.progress = stop}), Cancelled);
  CHECK(fs::is_empty(folder));
}

TEST_CASE("asking for a site that was not recorded says which were") {
  const fs::path path = file_in("trace-absent");
  CHECK_THROWS_WITH_AS(write_trace(sample(), path, {.sites = {SiteKind::z}}),
                       doctest::Contains("blocks.{i}.attn.hook_z in the trace to write, found none recorded\n  hint: "
                                         "recorded were blocks.{i}.attn.hook_pattern, blocks.{i}.attn.hook_q"),
                       Error);
  Trace wrong = sample();
  wrong.sites[{SiteKind::q, 0}] = Tensor::zeros({4, 4, 5});
  CHECK_THROWS_WITH_AS(write_trace(wrong, path, {.sites = {SiteKind::q}}),
                       doctest::Contains("expected shape [4, 4, 3] (query, head, d_head), found [4, 4, 5]"), Error);
  Trace lacking = sample();
  lacking.maps.pop_back();
  CHECK_THROWS_WITH_AS(write_trace(lacking, path), doctest::Contains("4 maps in layer 1, found 3"), Error);
  Trace fewer = sample();
  fewer.tokens.pop_back();
  CHECK_THROWS_WITH_AS(write_trace(fewer, path), doctest::Contains("3 tokens"), Error);
  CHECK_FALSE(fs::exists(path));
}

TEST_CASE("weights that see later keys are not called causal") {
  Trace trace = sample();
  Random random(8);
  trace.maps.clear();
  for (int layer = 0; layer < layers; ++layer)
    for (int head = 0; head < heads; ++head) {
      const Tensor weights = random_tensor({4, 4}, random);
      trace.maps.push_back(
          AttentionMap::dense({.layer = layer, .head = head, .kv_head = head / 2, .kind = MapKind::effective}, weights,
                              full_rule(), stats_of_weights(weights, nullptr)));
    }
  const fs::path path = file_in("trace-full");
  write_trace(trace, path);
  const auto back = open_trace(path);
  CHECK(back->map({0, 0}).rule()->describe() == "full");
  CHECK(back->map({0, 0}).place().kind == MapKind::effective);
  CHECK(back->map({0, 0}).weight(0, 3) == trace.map({0, 0}).weight(0, 3));
}

TEST_CASE("Python's safetensors opens a trace file and finds the TransformerLens names") {
  const fs::path path = file_in("trace-python");
  const Trace trace = sample();
  write_trace(trace, path, {.sites = {SiteKind::pattern, SiteKind::logits}});
  const std::string command =
      "python3 '" + testing::reference("check_safetensors.py").string() + "' '" + path.string() + "' 2>&1";
  std::FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe);
  std::string output;
  char buffer[4096];
  while (const std::size_t got = std::fread(buffer, 1, sizeof buffer, pipe)) output.append(buffer, got);
  const int status = pclose(pipe);
  if (WEXITSTATUS(status) == 3 || WEXITSTATUS(status) == 127) {
    MESSAGE("skipped: Python with numpy and safetensors is not installed");
    return;
  }
  CAPTURE(output);
  REQUIRE(status == 0);
  const auto seen = nlohmann::json::parse(output);
  CHECK(seen["tensors"]["tokens"]["dtype"] == "int32");
  CHECK(seen["tensors"]["tokens"]["values"] == nlohmann::json::parse("[6,1,2,1]"));
  const auto& pattern = seen["tensors"]["blocks.1.attn.hook_pattern"];
  CHECK(pattern["dtype"] == "float32");
  CHECK(pattern["shape"] == nlohmann::json::parse("[4,4,4]"));
  // Head 2, query 3, key 1 of (4, 4, 4).
  CHECK(pattern["values"][2 * 16 + 3 * 4 + 1].get<double>() == static_cast<double>(trace.map({1, 2}).weight(3, 1)));
  CHECK(seen["tensors"]["logits"]["shape"] == nlohmann::json::parse("[4,7]"));
  CHECK(seen["metadata"]["format"] == "headscope-trace");
  CHECK(seen["metadata"]["version"] == "1");
  const auto description = nlohmann::json::parse(seen["metadata"]["headscope"].get<std::string>());
  CHECK(description["tokens"][1]["bytes"]["hex"] == "c3");
  CHECK(description["tokens"][3]["bytes"] == "!");
  CHECK(description["rule"] == "causal");
}

TEST_CASE("heads whose weights are of different kinds are written, and come back with their kind each") {
  Trace trace = sample();
  std::vector<AttentionMap> maps;
  for (const AttentionMap& map : trace.maps) {
    AttentionMap::Place place = map.place();
    Tensor weights = map.to_dense();
    if (place.layer == 1 && place.head == 2) {
      place.kind = MapKind::effective;
      weights.ref(2, 1) = -0.5f;
    }
    if (place.layer == 0 && place.head == 0) place.kind = MapKind::sparse;
    maps.push_back(AttentionMap::dense(place, weights, causal_rule(), stats_of_weights(weights, nullptr)));
  }
  trace.maps = maps;
  const fs::path path = file_in("trace-kinds");
  write_trace(trace, path);
  const auto back = open_trace_file(path);
  REQUIRE(back->maps.size() == trace.maps.size());
  for (std::size_t i = 0; i < maps.size(); ++i) {
    CHECK(back->maps[i].place().kind == maps[i].place().kind);
    CHECK(back->maps[i].weight(2, 1) == maps[i].weight(2, 1));
  }
  CHECK(back->map({1, 2}).place().kind == MapKind::effective);
  CHECK(back->map({0, 0}).place().kind == MapKind::sparse);
  CHECK(back->map({1, 1}).place().kind == MapKind::probability);
  // What cannot be written says what is wrong with it.
  trace.maps[3] = AttentionMap::dense({.layer = 0, .head = 3, .offset = 1}, maps[3].to_dense(), causal_rule(),
                                      stats_of_weights(maps[3].to_dense(), nullptr));
  CHECK_THROWS_WITH_AS(write_trace(trace, path),
                       doctest::Contains("after 0 cached tokens, found head 0.3 of 4 × 4 after 1"), Error);
}

}  // namespace headscope::trace_file_test
