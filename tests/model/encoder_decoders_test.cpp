// Encoder-decoders beside transformers in float64 (tests/reference/encoder-decoders) and beside the plain definition:
// three stacks, their edits, what a pass remembers, generation.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "core/analysis/logit_attribution.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/edits/intervention.h"
#include "core/generate/generation.h"
#include "core/io/safetensors.h"
#include "core/model/config_reader.h"
#include "core/model/family.h"
#include "core/model/formats/model_files.h"
#include "core/model/parameter_parts.h"
#include "core/model/plain.h"
#include "core/run/pass_memory.h"
#include "core/trace/hook_names.h"
#include "tests/model/parity.h"
#include "tests/support/paths.h"

namespace headscope::encoder_decoders_test {

using namespace testing;

namespace {

namespace fs = std::filesystem;

struct Pair {
  fs::path folder;
  Backend backend{2};
  LoadedModel loaded;
  SafetensorsFile expected;
  RunRequest request;

  explicit Pair(const fs::path& at)
      : folder(at), loaded(load_model(at, backend)), expected(SafetensorsFile::open(at / "expected.safetensors")) {
    request.model = at;
    request.source_ids = expected.entry("source").items<std::int32_t>();
    request.ids = expected.entry("target").items<std::int32_t>();
    request.ids_are_whole = true;
  }

  const Model& model() const { return *loaded.model; }
  std::shared_ptr<const Trace> trace(const std::vector<std::string>& edits = {}) {
    RunRequest edited = request;
    for (const std::string& each : edits) edited.edits.push_back(parse_intervention(each, "edit"));
    return run(loaded, edited, Ctx{backend});
  }
};

Pair opened(const std::string& name) {
  return Pair(reference("encoder-decoders") / name);
}

std::vector<fs::path> folders() {
  std::vector<fs::path> all;
  for (const auto& entry : fs::directory_iterator(reference("encoder-decoders"))) all.push_back(entry.path());
  std::ranges::sort(all);
  return all;
}

template <class Check>
void for_each_pair(Check&& check) {
  for (const fs::path& folder : folders()) {
    const std::string model = folder.filename().string();
    CAPTURE(model);
    check(Pair(folder));
  }
}

bool same_bits(const Tensor& a, const Tensor& b) {
  const Tensor x = a.packed(), y = b.packed();
  return x.shape() == y.shape() && std::memcmp(x.data(), y.data(), x.bytes()) == 0;
}

bool same_maps(const Trace& a, const Trace& b) {
  return std::ranges::equal(a.maps, b.maps, [](const AttentionMap& x, const AttentionMap& y) {
    return same_bits(x.to_dense(), y.to_dense());
  });
}

const Trace& part_of(const Trace& trace, const std::string& name) {
  return *trace.part(name == "encoder" ? Stack::encoder : name == "cross" ? Stack::cross : Stack::decoder);
}

}  // namespace

TEST_CASE("patterns of all three stacks, streams and logits are what transformers says in float64") {
  for_each_pair([](Pair&& pair) {
    double worst = 0, logits = 0;
    for (const MapStorage storage : {MapStorage::dense, MapStorage::factored}) {
      pair.request.capture.maps = storage;
      pair.request.capture.sites = {SiteKind::resid_post};
      const auto trace = pair.trace();
      for (const auto& [label, entry] : pair.expected.tensors()) {
        const std::size_t dot = label.find('.');
        if (dot == std::string::npos) continue;
        CAPTURE(label);
        const Trace& part = part_of(*trace, label.substr(0, dot));
        const int layer = std::stoi(label.substr(dot + 1));
        const Tensor truth = pair.expected.tensor(label);
        if (label.ends_with("resid_post")) {
          CHECK(relative(part.sites.at({SiteKind::resid_post, layer}), truth) < 1e-5);
          continue;
        }
        for (int head = 0; head < part.model.dims.heads; ++head) {
          const double gap = absolute(part.map({layer, head}).to_dense(), truth.select(0, head));
          CHECK(gap < map_tolerance);
          worst = std::max(worst, gap);
        }
      }
      const double gap = absolute(trace->logits, pair.expected.tensor("logits"));
      CHECK(gap < 1e-4);
      logits = std::max(logits, gap);
    }
    CHECK(absolute(encode(pair.loaded, pair.request, Ctx{pair.backend}).memory, pair.expected.tensor("memory")) < 1e-4);
    MESSAGE(pair.folder.filename().string(), ": pattern ", worst, ", logits ", logits);
  });
}

TEST_CASE("the greedy continuation is that of transformers, and what each step attends to in the source is kept") {
  for_each_pair([](Pair&& pair) {
    const auto expected = pair.expected.entry("greedy").items<std::int32_t>();
    Generator generator(pair.loaded, pair.request);
    Transcript tape{pair.request.ids, {}};
    SamplingSettings greedy;
    greedy.temperature = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      tape.steps.push_back(generator.step(Ctx{pair.backend}, tape, {greedy}));
      CHECK(tape.steps.back()->token == expected[i]);
      CHECK(tape.steps.back()->computed == (i == 0 ? static_cast<int>(pair.request.ids.size()) : 1));
    }
    CHECK(generator.source()->tokens.size() == pair.request.source_ids.size());
    // The whole text in one pass looks as the steps did.
    pair.request.ids = tape.ids(expected.size() - 1);
    const auto whole = pair.trace();
    const Tensor& rows = tape.steps.back()->source_rows;
    REQUIRE(rows.dim(0) == static_cast<Index>(whole->cross->maps.size()));
    for (std::size_t map = 0; map < whole->cross->maps.size(); ++map) {
      const Tensor all = whole->cross->maps[map].to_dense();
      CHECK(absolute(rows.select(0, static_cast<Index>(map)), all.select(0, all.dim(0) - 1)) < map_tolerance);
    }
  });
}

TEST_CASE("the plain definition gives the same patterns and logits") {
  for_each_pair([](Pair&& pair) {
    const ModelConfig& c = pair.model().config();
    const ModelFiles files = ModelFiles::open(locate_model(pair.folder));
    const plain::Pass pass =
        plain::forward(c, read_weights(*files.weights, c), pair.request.ids, {}, nullptr, {}, pair.request.source_ids);
    for (const auto& [label, entry] : pair.expected.tensors()) {
      if (!label.ends_with("pattern")) continue;
      CAPTURE(label);
      const auto layer = static_cast<std::size_t>(std::stoi(label.substr(label.find('.') + 1)));
      const auto& heads = label.starts_with("encoder") ? pass.encoder->patterns[layer]
                          : label.starts_with("cross") ? pass.cross_patterns[layer]
                                                       : pass.patterns[layer];
      const Tensor truth = pair.expected.tensor(label);
      double gap = 0;
      for (Index head = 0; head < truth.dim(0); ++head)
        for (Index i = 0; i < truth.dim(1); ++i)
          for (Index j = 0; j < truth.dim(2); ++j)
            gap = std::max(gap, std::abs(heads[static_cast<std::size_t>(head)].at(i, j) -
                                         static_cast<double>(truth.at(head, i, j))));
      CHECK(gap < (c.norm == NormKind::rms_norm ? 5e-6 : 1e-6));  // T5's norms square in float32 there
    }
    const Tensor truth = pair.expected.tensor("logits");
    double gap = 0;
    for (Index i = 0; i < truth.dim(0); ++i)
      for (Index j = 0; j < truth.dim(1); ++j)
        gap = std::max(gap, std::abs(pass.logits.at(i, j) - static_cast<double>(truth.at(i, j))));
    CHECK(gap < 1e-5);
  });
}

TEST_CASE("parameters add up from the configuration alone, which is written as it is read") {
  for_each_pair([](Pair&& pair) {
    const ModelConfig& c = pair.model().config();
    CHECK(parameter_parts(c).total() == pair.model().info().parameters);
    const std::string written = write_config(c);
    ModelConfig again = family(c.family, "written").read_config(ConfigReader::parse(written, "written"));
    again.family = c.family;
    CHECK(write_config(again) == written);
    CHECK(again.encoder->dims.layers == c.encoder->dims.layers);
    CHECK(again.logit_scale == c.logit_scale);
    CHECK(again.embedding_scale == c.embedding_scale);
    CHECK(again.activation == c.activation);
  });
}

TEST_CASE("what a file leaves out is as its family has it, and what is not computed is refused by its key") {
  const auto read = [](const std::string& model, const std::string& without, const std::string& was = "",
                       const std::string& is = "") {
    std::string json = read_file(reference("encoder-decoders") / model / "config.json");
    if (const std::size_t at = json.find("\"" + without + "\""); !without.empty() && at != std::string::npos)
      json.erase(at, json.find('\n', at) + 1 - at);
    if (const std::size_t at = json.find(was); !was.empty() && at != std::string::npos)
      json.replace(at, was.size(), is);
    const std::string type = model == "t5gemma-plain" ? "t5gemma" : model;
    return family(type, "test").read_config(ConfigReader::parse(json, "test"));
  };
  CHECK(read("plbart", "scale_embedding").embedding_scale == doctest::Approx(std::sqrt(18.0)));
  CHECK(read("bart", "scale_embedding").embedding_scale == 1);
  const ModelConfig led = read("led", "");
  CHECK(led.context == 30);
  CHECK(led.encoder->context == 36);
  CHECK(led.windows.empty());
  CHECK(led.encoder->windows == std::vector{3, 5, 3});  // half on either side, and the token itself
  CHECK_THROWS_WITH_AS(read("led", "", "\"encoder_layers\": 3", "\"encoder_layers\": 2"),
                       doctest::Contains("attention_window"), Error);
  const ModelConfig gemma = read("t5gemma", "");
  CHECK(gemma.windows == std::vector{3, 0});              // a decoder sees itself and two before
  CHECK(gemma.encoder->windows == std::vector{4, 0, 4});  // an encoder itself and three on either side
  CHECK(gemma.logit_cap == 4);
  CHECK(gemma.encoder->logit_cap == 0);
  CHECK(gemma.decoder_start == 1);
  CHECK_THROWS_WITH_AS(read("t5gemma", "", "\"hidden_size\": 18", "\"hidden_size\": 24"),
                       doctest::Contains("unequal width"), Error);
}

TEST_CASE("each part of a run is a trace of its own") {
  Pair pair = opened("t5");
  const auto trace = pair.trace();
  const ModelInfo info = pair.model().info();
  CHECK(trace->stacks() == std::vector{Stack::encoder, Stack::decoder, Stack::cross});
  CHECK(trace->part(Stack::only) == trace.get());
  CHECK(trace->part(Stack::decoder) == trace.get());
  CHECK(trace->part(Stack::encoder) == trace->encoder.get());
  CHECK(trace->encoder->part(Stack::cross) == nullptr);
  CHECK(trace->encoder->model.objective == Objective::nothing);
  CHECK(trace->encoder->model.dims.layers == info.part(Stack::encoder).dims.layers);
  CHECK(trace->encoder->ids() == pair.request.source_ids);
  CHECK(trace->cross->between_texts());
  CHECK(trace->cross->ids() == pair.request.source_ids);
  CHECK(trace->cross->queries().size() == pair.request.ids.size());
  CHECK(trace->cross->map({0, 0}).n_key() == static_cast<Index>(pair.request.source_ids.size()));
  CHECK_FALSE(trace->cross->logits.defined());
}

TEST_CASE("sites of all three stacks are recorded") {
  for (const char* name : {"t5", "bart"}) {
    Pair pair = opened(name);
    for (const Stack stack : {Stack::only, Stack::encoder, Stack::cross})
      for (const SiteKind kind : pair.model().sites(stack)) pair.request.capture.sites.insert(kind);
    const auto trace = pair.trace();
    for (const Stack stack : trace->stacks())
      for (const SiteKind kind : pair.model().sites(stack)) {
        if (kind == SiteKind::pattern || kind == SiteKind::logits) continue;
        const std::string site = headscope::name({kind, info(kind).per_layer ? 0 : -1});
        CAPTURE(site);
        CHECK(trace->part(stack)->sites.contains({kind, info(kind).per_layer ? 0 : -1}));
      }
    // Between a decoder's attention and its MLP stands what cross-attention added.
    if (std::string(name) == "t5") {
      const Tensor pre = trace->cross->sites.at({SiteKind::resid_pre, 1}),
                   added = trace->cross->sites.at({SiteKind::attn_out, 1}),
                   mid = trace->sites.at({SiteKind::resid_mid, 1});
      for (Index i = 0; i < mid.dim(0); ++i)
        for (Index j = 0; j < mid.dim(1); ++j)
          CHECK(mid.at(i, j) == doctest::Approx(pre.at(i, j) + added.at(i, j)).epsilon(1e-5));
    }
  }
}

TEST_CASE("sites of a stack follow the names of TransformerLens' bridges") {
  const auto bridge = [](SiteKind kind, Stack stack) { return name(Site{kind, 0}, stack, HookNames::bridge); };
  CHECK(bridge(SiteKind::q, Stack::encoder) == "encoder.blocks.0.attn.q.hook_out");
  CHECK(bridge(SiteKind::q, Stack::decoder) == "decoder.blocks.0.attn.q.hook_out");
  CHECK(bridge(SiteKind::q, Stack::cross) == "decoder.blocks.0.cross_attn.q.hook_out");
  CHECK(bridge(SiteKind::resid_mid, Stack::decoder) == "decoder.blocks.0.ln3.hook_in");
  CHECK(bridge(SiteKind::resid_pre, Stack::cross) == "decoder.blocks.0.ln2.hook_in");
  CHECK(name(Site{SiteKind::pattern, 2}, Stack::cross, HookNames::transformer_lens) ==
        "decoder.blocks.2.cross_attn.hook_pattern");
  CHECK(name(Site{SiteKind::resid_mid, 2}, Stack::decoder, HookNames::transformer_lens) ==
        "decoder.blocks.2.hook_resid_mid_cross");
}

TEST_CASE("an edit changes its own stack and what comes behind it, and nothing before") {
  for (const char* name : {"t5", "bart", "marian"}) {
    Pair pair = opened(name);
    const auto plain = pair.trace();
    const auto encoder = pair.trace({"enc.0.0: ablate zero"});
    CHECK_FALSE(same_maps(*encoder->cross, *plain->cross));
    CHECK_FALSE(same_bits(encoder->logits, plain->logits));
    const auto cross = pair.trace({"cross.0.1: ablate zero"});
    CHECK(same_maps(*cross->encoder, *plain->encoder));
    CHECK(same_bits(cross->cross->map({0, 0}).to_dense(), plain->cross->map({0, 0}).to_dense()));
    CHECK_FALSE(same_bits(cross->logits, plain->logits));
    const auto decoder = pair.trace({"dec.1.0: temperature 0.5"}), unnamed = pair.trace({"1.0: temperature 0.5"});
    CHECK(same_bits(decoder->logits, unnamed->logits));
    CHECK(same_maps(*decoder->encoder, *plain->encoder));
    CHECK(same_bits(decoder->map({0, 0}).to_dense(), plain->map({0, 0}).to_dense()));
    CHECK_FALSE(same_bits(decoder->map({1, 0}).to_dense(), plain->map({1, 0}).to_dense()));
    // Two on different stacks act together.
    const auto both = pair.trace({"enc.0.0: ablate zero", "cross.1.0: pattern first"});
    CHECK(same_maps(*both->encoder, *encoder->encoder));
    CHECK(both->cross->map({1, 0}).weight(2, 0) == 1);
    CHECK_FALSE(same_bits(both->logits, encoder->logits));
    // A cell of cross-attention by its numbers, counted in target and source.
    const auto cell = pair.trace({"cross.0.1: weight 2 12 0.75"});
    CHECK(cell->cross->map({0, 1}).weight(2, 12) == doctest::Approx(0.75));
    const auto dropped = pair.trace({"cross.*: drop first 2"});
    CHECK(dropped->cross->map({1, 1}).weight(3, 1) == 0);
    const auto hidden = pair.trace({"cross.0.1: mask cells 1-7:0-12 & not cells 3:4"});
    CHECK(hidden->cross->map({0, 1}).weight(3, 4) == 0);
    CHECK(hidden->cross->map({0, 1}).weight(3, 5) > 0);
  }
}

TEST_CASE("a head that takes from another source looks as it does there") {
  Pair pair = opened("t5");
  pair.request.capture.sites = {SiteKind::z};
  RunRequest other = pair.request;
  std::ranges::reverse(other.source_ids);
  const auto there = run(pair.loaded, other, Ctx{pair.backend});
  CHECK_FALSE(same_maps(*there->cross, *pair.trace()->cross));
}

TEST_CASE("a pass that remembers the last one gives the same bits") {
  for (const char* name : {"t5", "bart", "marian-apart"}) {
    Pair pair = opened(name);
    pair.request.capture.sites = {SiteKind::z, SiteKind::resid_post};
    PassMemory memory;
    const std::vector<std::vector<std::string>> order = {{},
                                                         {"cross.1.0: ablate zero"},
                                                         {"cross.1.0: ablate zero", "enc.0.1: ablate mean"},
                                                         {"enc.0.1: ablate mean"},
                                                         {"enc.0.1: ablate mean", "dec.1.*: temperature 2"},
                                                         {"cross.*: temperature 0.3"},
                                                         {}};
    for (const auto& edits : order) {
      RunRequest edited = pair.request;
      for (const std::string& each : edits) edited.edits.push_back(parse_intervention(each, "edit"));
      const auto fresh = run(pair.loaded, edited, Ctx{pair.backend});
      const auto again = run(pair.loaded, edited, Ctx{pair.backend}, memory);
      CHECK(same_bits(fresh->logits, again->logits));
      for (const Stack stack : fresh->stacks()) {
        CHECK(same_maps(*fresh->part(stack), *again->part(stack)));
        CHECK(fresh->part(stack)->sites.size() == again->part(stack)->sites.size());
        for (const auto& [site, value] : fresh->part(stack)->sites)
          CHECK(same_bits(value, again->part(stack)->sites.at(site)));
      }
    }
    // Another source begins anew.
    RunRequest other = pair.request;
    std::ranges::reverse(other.source_ids);
    CHECK(same_bits(run(pair.loaded, other, Ctx{pair.backend})->logits,
                    run(pair.loaded, other, Ctx{pair.backend}, memory)->logits));
  }
}

TEST_CASE("generation with edits of every stack is that of whole passes") {
  Pair pair = opened("t5");
  // Edits of some rows, and masks that are not the same in all, besides: a step reads one row of many.
  for (const char* edit :
       {"enc.1.0: ablate zero", "cross.0.1: temperature 0.2", "cross.*: pattern uniform", "dec.1.1: ablate zero",
        "cross.1.*: ablate mean", "cross.*@0..2: temperature 0.2", "cross.*@5..: scale by length 4096",
        "cross.0.*@0..7: pattern first", "cross.1.*: mask cells 0-7:0-3 8:4 9:5-6 10:0"}) {
    CAPTURE(edit);
    RunRequest edited = pair.request;
    edited.edits.push_back(parse_intervention(edit, "edit"));
    Generator generator(pair.loaded, edited);
    std::vector<std::int32_t> prefix = pair.request.ids;
    for (std::size_t i = 0; i < 3; ++i) {
      const auto step = generator.step(Ctx{pair.backend}, prefix, i, {});
      RunRequest whole = edited;
      whole.ids = prefix;
      const auto trace = run(pair.loaded, whole, Ctx{pair.backend});
      CHECK(absolute(step->logits, trace->logits.select(0, trace->logits.dim(0) - 1)) < 1e-4);
      prefix.push_back(step->token);
    }
  }
}

TEST_CASE("the parts of a logit add up, cross-attention's among them") {
  Pair pair = opened("t5");
  pair.request.capture.sites = attribution_sites(pair.model());
  const auto trace = pair.trace();
  const LogitAttribution found = logit_attribution(pair.model(), *trace, {-1, 7});
  CHECK(found.sum() == doctest::Approx(found.logit).epsilon(1e-4));
  const double head = found.value(AttributionPart::Kind::cross_head, 1, 2);
  CHECK(std::abs(head) > 1e-6);
  double by_source = 0;
  for (Index key = 0; key < found.cross_by_source.dim(1); ++key)
    by_source += static_cast<double>(found.cross_by_source.at(1 * 3 + 2, key));
  CHECK(by_source == doctest::Approx(head).epsilon(1e-3));
}

TEST_CASE("what an encoder-decoder needs and what it has not is said in a sentence") {
  Pair pair = opened("bart");
  RunRequest bare = pair.request;
  bare.source_ids.clear();
  CHECK_THROWS_WITH_AS(run(pair.loaded, bare, Ctx{pair.backend}), doctest::Contains("a source for its encoder"), Error);
  CHECK_THROWS_WITH_AS(pair.trace({"enc.7.0: ablate zero"}), doctest::Contains("a layer from 0 to 2"), Error);
  CHECK_THROWS_WITH_AS(pair.trace({"cross.0.0: weight 0 13 0.5"}), doctest::Contains("positions from 0 to 12"), Error);
  CHECK_THROWS_WITH_AS(pair.trace({"cross.0.0@9: ablate zero"}), doctest::Contains("positions from 0 to 7"), Error);
  CHECK_THROWS_WITH_AS(pair.trace({"cross.0.0: pattern previous"}), doctest::Contains("keys are of another text"),
                       Error);
  // An empty target is its first token alone.
  RunRequest empty = pair.request;
  empty.ids.clear();
  empty.ids_are_whole = false;
  CHECK(run(pair.loaded, empty, Ctx{pair.backend})->ids() == std::vector<std::int32_t>{2});
  Backend backend(1);
  const LoadedModel one = load_model(reference("families/opt"), backend);
  RunRequest source;
  source.ids = {3, 5};
  source.source_ids = {4};
  CHECK_THROWS_WITH_AS(run(one, source, Ctx{backend}), doctest::Contains("of one stack"), Error);
  source.source_ids.clear();
  source.edits = {parse_intervention("cross.0.0: ablate zero", "edit")};
  CHECK_THROWS_WITH_AS(run(one, source, Ctx{backend}), doctest::Contains("only encoder-decoders"), Error);
}

TEST_CASE("a run with a source is the same after JSON, and others keep their hashes") {
  Pair pair = opened("t5");
  pair.request.edits = {parse_intervention("cross.0.1@3: ablate zero", "edit"),
                        parse_intervention("enc.*: temperature 2", "edit")};
  CHECK(run_request_from_json(to_json(pair.request), "json") == pair.request);
  RunRequest plain;
  plain.model = "m";
  plain.text = "t";
  CHECK(to_json(plain).find("source") == std::string::npos);
}

}  // namespace headscope::encoder_decoders_test
