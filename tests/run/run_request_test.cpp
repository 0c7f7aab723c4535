#include "core/run/run_request.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <stop_token>

#include "core/attention/masks.h"
#include "core/base/error.h"
#include "core/edits/mask_edit.h"
#include "core/io/safetensors.h"
#include "core/io/trace_file.h"
#include "tests/support/largest_difference.h"
#include "tests/support/paths.h"

namespace headscope::run_request_test {

using testing::largest_difference;
using testing::reference;

namespace {
std::vector<std::int32_t> expected_ids(const SafetensorsFile& file) {
  return file.entry("tokens").items<std::int32_t>();
}

std::vector<std::int32_t> ids_of(const std::vector<Token>& tokens) {
  std::vector<std::int32_t> ids;
  for (const Token& token : tokens) ids.push_back(token.id);
  return ids;
}

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// Adds one to the first channel of the residual stream that enters layer 1. (All channels alike would do nothing:
/// LayerNorm takes the mean away.)
struct Lift final : Tap {
  bool wants(Site site) const override { return site == Site{SiteKind::resid_pre, 1}; }
  Tensor at(Site, const Tensor& value) override {
    Tensor lifted = value.copy();
    for (Index row = 0; row < lifted.dim(0); ++row) lifted.ref(row, 0) += 1.0f;
    return lifted;
  }
};
}  // namespace

TEST_CASE("a run leaves a trace with the tokens, maps, sites and logits that the reference computes") {
  for (const char* name : {"gpt2-random", "llama-gqa"}) {
    CAPTURE(name);
    Backend backend(2);
    const LoadedModel loaded = load_model(reference(name), backend);
    const auto expected = SafetensorsFile::open(reference(name) / "expected.safetensors");
    RunRequest request;
    request.model = reference(name);
    request.ids = expected_ids(expected);
    request.capture.sites = {SiteKind::resid_post, SiteKind::z};
    const auto trace = run(loaded, request, {backend});

    CHECK(trace->ids() == request.ids);
    CHECK(trace->model.name == name);
    CHECK(trace->source.starts_with("headscope CPU f32"));
    CHECK(trace->text.empty());
    CHECK(trace->milliseconds > 0);
    CHECK(trace->plan.maps == MapStorage::dense);
    REQUIRE(trace->maps.size() == 8);
    for (int layer = 0; layer < 2; ++layer) {
      const Tensor patterns = expected.tensor(headscope::name({SiteKind::pattern, layer}));
      for (int head = 0; head < 4; ++head)
        CHECK(largest_difference(trace->map({layer, head}).to_dense(), patterns.select(0, head)) < 1e-5);
    }
    REQUIRE(trace->sites.size() == 4);
    for (const auto& [site, tensor] : trace->sites)
      CHECK(largest_difference(tensor, expected.tensor(headscope::name(site))) < 1e-4);
    CHECK(largest_difference(trace->logits, expected.tensor("logits")) < 1e-3);
  }
}

TEST_CASE("recorded layers are the only ones in the trace") {
  Backend backend(1);
  const LoadedModel loaded = load_model(reference("gpt2-random"), backend);
  RunRequest request;
  request.text = "Mr Fox";
  request.capture.layers = {1};
  request.capture.sites = {SiteKind::q};
  request.capture.all_logits = false;
  const auto trace = run(loaded, request, {backend});
  REQUIRE(trace->maps.size() == 4);
  CHECK(trace->map({1, 3}).layer() == 1);
  CHECK(trace->sites.size() == 1);
  CHECK(trace->sites.count({SiteKind::q, 1}) == 1);
  CHECK(trace->logits.dim(0) == 1);
}

TEST_CASE("factored and dense runs give the same weights") {
  Backend backend(2);
  const LoadedModel loaded = load_model(reference("llama-gqa"), backend);
  RunRequest request;
  request.ids = expected_ids(SafetensorsFile::open(reference("llama-gqa") / "expected.safetensors"));
  request.capture.maps = MapStorage::dense;
  const auto dense = run(loaded, request, {backend});
  request.capture.maps = MapStorage::factored;
  const auto factored = run(loaded, request, {backend});
  REQUIRE(factored->map({1, 2}).is_factored());
  for (int layer = 0; layer < 2; ++layer)
    for (int head = 0; head < 4; ++head)
      CHECK(largest_difference(dense->map({layer, head}).to_dense(), factored->map({layer, head}).to_dense()) < 1e-6);
}

TEST_CASE("an intervening tap acts before the recorder, and changes what follows") {
  Backend backend(1);
  const LoadedModel loaded = load_model(reference("gpt2-random"), backend);
  RunRequest request;
  request.text = "Mr Fox";
  request.capture.sites = {SiteKind::resid_pre};
  const auto plain = run(loaded, request, {backend});
  Lift lift;
  const auto lifted = run(loaded, request, {backend, &lift});
  const Site edited{SiteKind::resid_pre, 1};
  CHECK(largest_difference(plain->sites.at({SiteKind::resid_pre, 0}), lifted->sites.at({SiteKind::resid_pre, 0})) == 0);
  CHECK(largest_difference(plain->sites.at(edited), lifted->sites.at(edited)) == doctest::Approx(1).epsilon(1e-5));
  CHECK(largest_difference(plain->logits, lifted->logits) > 1e-3);
}

TEST_CASE("a run that is stopped before it starts is cancelled") {
  Backend backend(1);
  const LoadedModel loaded = load_model(reference("gpt2-random"), backend);
  RunRequest request;
  request.text = "Mr Fox";
  std::stop_source stop;
  stop.request_stop();
  CHECK_THROWS_AS(run(loaded, request, {backend, nullptr, stop.get_token()}), Cancelled);
}

TEST_CASE("tokens of a text carry spans, a BOS goes in front only when asked or usual") {
  Backend backend(1);
  const LoadedModel loaded = load_model(reference("gpt2-random"), backend);
  RunRequest request;
  request.text = "a b";
  const auto tokens = tokenize(loaded, request);
  REQUIRE(tokens.size() == 3);
  CHECK(tokens[0].bytes == "a");
  CHECK(tokens[1].label == "␣");
  CHECK(tokens[2].begin == 2);
  CHECK(tokens[2].end == 3);
  request.add_bos = true;
  const auto with_bos = tokenize(loaded, request);
  REQUIRE(with_bos.size() == 4);
  CHECK(with_bos[0].id == 256);
  CHECK(with_bos[0].begin == -1);
  CHECK(with_bos[1].id == tokens[0].id);
  request.ids = {5, 6};  // ids win over the text
  CHECK(ids_of(tokenize(loaded, request)) == std::vector<std::int32_t>{256, 5, 6});
}

TEST_CASE("a text longer than the context is refused with numbers, or cut as asked") {
  Backend backend(1);
  const LoadedModel loaded = load_model(reference("gpt2-random"), backend);
  RunRequest request;
  request.ids.resize(50);
  std::iota(request.ids.begin(), request.ids.end(), 0);
  CHECK(message_of([&] { tokenize(loaded, request); }) ==
        "text: expected at most 48 tokens, the context of gpt2-random, found 50 tokens, 2 too many\n"
        "  hint: cut the text, or keep its first or last 48 tokens (command line: --cut first or --cut last)");
  request.too_long = RunRequest::TooLong::keep_first;
  CHECK(tokenize(loaded, request).size() == 48);
  CHECK(tokenize(loaded, request).front().id == 0);
  request.too_long = RunRequest::TooLong::keep_last;
  CHECK(tokenize(loaded, request).front().id == 2);
  CHECK(tokenize(loaded, request).back().id == 49);
  request.add_bos = true;
  const auto with_bos = tokenize(loaded, request);
  REQUIRE(with_bos.size() == 48);
  CHECK(with_bos[0].id == 256);
  CHECK(with_bos[1].id == 3);
  CHECK(with_bos.back().id == 49);
}

TEST_CASE("input that cannot be run gives one clear error") {
  Backend backend(1);
  const LoadedModel loaded = load_model(reference("gpt2-random"), backend);
  RunRequest request;
  CHECK(message_of([&] { tokenize(loaded, request); }) == "text: expected at least one character, found an empty text");
  request.ids = {0, 257};
  CHECK(message_of([&] { tokenize(loaded, request); }) ==
        "token 1: expected ids from 0 to 256 (gpt2-random), found 257");
  request.ids = {-1};
  CHECK(message_of([&] { tokenize(loaded, request); }).find("found -1") != std::string::npos);
  request.ids = {1};
  request.capture.sites = {SiteKind::rot_q};
  CHECK(message_of([&] {
          run(loaded, request, {backend});
        }).starts_with("capture: sites: expected sites that gpt2-random has, found blocks.{i}.attn.hook_rot_q"));
  request.capture.sites = {};
  request.capture.layers = {2};
  CHECK(message_of([&] { run(loaded, request, {backend}); }).find("from 0 to 1, found 2") != std::string::npos);
}

TEST_CASE("a model without a tokenizer runs on ids and says so when given text") {
  Backend backend(1);
  const LoadedModel loaded = load_model(reference("llama-rope3"), backend);
  REQUIRE_FALSE(loaded.tokenizer);
  RunRequest request;
  request.ids = {1, 2, 3};
  const auto tokens = tokenize(loaded, request);
  REQUIRE(tokens.size() == 3);
  CHECK(tokens[2].label == "3");
  request.ids.clear();
  request.text = "abc";
  CHECK(message_of([&] { tokenize(loaded, request); }).find("found none") != std::string::npos);
}

TEST_CASE("a trace file opens with the mask that every head had") {
  Backend backend(1);
  const LoadedModel loaded = load_model(reference("gpt2-random"), backend);
  RunRequest request;
  request.model = reference("gpt2-random");
  request.ids = {5, 6, 7, 8, 9, 10, 11, 12};
  request.edits = {{{1, 0}, SetMask{"window 3"}}, {{1, 2}, SetMask{"full"}}};
  const auto trace = run(loaded, request, {backend});
  const auto file = headscope::testing::scratch_dir("rules") / "trace.safetensors";
  write_trace(*trace, file);
  const auto back = open_trace(file, [](const std::string& rule) { return parse_mask(rule); });
  for (std::size_t i = 0; i < trace->maps.size(); ++i) {
    REQUIRE(back->maps[i].rule());
    CHECK(back->maps[i].rule()->describe() == trace->maps[i].rule()->describe());
  }
  CHECK(back->map({1, 0}).masked(7, 2));
  CHECK_FALSE(back->map({1, 2}).masked(0, 7));
  CHECK(back->map({0, 0}).masked(0, 7));
  // Who knows no masks still opens it: what is not named by the file's own layer stays unknown where weights look
  // ahead.
  const auto plain = open_trace(file);
  CHECK(plain->map({0, 0}).rule()->describe() == "causal");
  CHECK(plain->map({1, 0}).rule() == nullptr);
  CHECK(plain->map({1, 2}).rule()->describe() == "full");
}

TEST_CASE("a text far too long is refused from its length, with what is surely there") {
  Backend backend(1);
  const LoadedModel loaded = load_model(testing::source_dir() / "models/tiny-gpt2", backend);
  const int context = loaded.model->config().context;
  RunRequest request;
  request.text = std::string(1'000'000, 'q');
  try {
    tokenize(loaded, request);
    FAIL("no error");
  } catch (const TextTooLong& refused) {
    CHECK_FALSE(refused.counted);
    CHECK(refused.context == context);
    CHECK(refused.tokens > context);
    CHECK(std::string(refused.what()).find("tokens, at least ") != std::string::npos);
  }
  // A little too long: counted, as ever.
  request.text = std::string(static_cast<std::size_t>(context) + 50, 'q');
  try {
    tokenize(loaded, request);
    FAIL("no error");
  } catch (const TextTooLong& refused) {
    CHECK(refused.counted);
    const int exact = static_cast<int>(loaded.tokenizer->encode(request.text).size());
    CHECK(refused.tokens == exact + (loaded.tokenizer->adds_bos() ? 1 : 0));
  }
  request.too_long = RunRequest::TooLong::keep_first;
  CHECK(static_cast<int>(tokenize(loaded, request).size()) == context);
}

TEST_CASE("a stop reaches the tokenizer of a run") {
  Backend backend(1);
  const LoadedModel loaded = load_model(testing::source_dir() / "models/tiny-gpt2", backend);
  RunRequest request;
  request.text = std::string(300'000, 'a');
  request.too_long = RunRequest::TooLong::keep_last;
  std::stop_source stop;
  stop.request_stop();
  CHECK_THROWS_AS(tokenize(loaded, request, stop.get_token()), Cancelled);
  CHECK_THROWS_AS(run(loaded, request, Ctx{backend, nullptr, stop.get_token()}), Cancelled);
}

}  // namespace headscope::run_request_test
