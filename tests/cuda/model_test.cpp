// Whole passes on the card beside the processor's: every family, every edit, texts that go on from a cache.

#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/edits/intervention.h"
#include "core/generate/generation.h"
#include "core/model/model.h"
#include "core/run/run_request.h"
#include "tests/cuda/card.h"
#include "tests/support/every_edit.h"
#include "tests/support/largest_difference.h"
#include "tests/support/paths.h"
#include "tests/support/worst.h"

namespace headscope::model_test {

using testing::largest_difference;
using testing::Worst;

namespace {

std::vector<std::filesystem::path> models() {
  std::vector<std::filesystem::path> out;
  for (const auto& entry : std::filesystem::directory_iterator(testing::reference("families")))
    out.push_back(entry.path());
  for (const char* name : {"gpt2-random", "gpt2-untied-erf", "gpt2-f16", "llama-gqa", "llama-bias", "llama-rope3"})
    out.push_back(testing::reference(name));
  return out;
}

/// Largest number of |x|, at least 1.
double size_of(const Tensor& x) {
  double most = 1;
  for (const float v : x.packed().values()) most = std::max(most, std::abs(static_cast<double>(v)));
  return most;
}

double apart(const Trace& a, const Trace& b) {
  double most = largest_difference(a.logits, b.logits) / size_of(a.logits);
  REQUIRE(a.maps.size() == b.maps.size());
  for (std::size_t m = 0; m < a.maps.size(); ++m)
    most = std::max(most, largest_difference(a.maps[m].to_dense(), b.maps[m].to_dense()));
  return most;
}

}  // namespace

TEST_CASE("every family on the card gives the processor's logits and maps") {
  HEADSCOPE_NEEDS_CARD(card);
  Backend here(2);
  for (const auto& folder : models()) {
    CAPTURE(folder.filename().string());
    RunRequest request;
    request.model = folder;
    request.ids = {3, 17, 8, 21, 40, 3, 17, 9, 33, 12, 40, 5, 3};
    for (const MapStorage storage : {MapStorage::dense, MapStorage::factored}) {
      request.capture.maps = storage;
      LoadedModel a, b;
      a.model = Model::load(folder, here);
      b.model = Model::load(folder, *card);
      const auto expected = run(a, request, Ctx{here}), got = run(b, request, Ctx{*card});
      CHECK(apart(*expected, *got) < 1e-4);
    }
  }
}

TEST_CASE("every edit in every family, on the card as on the processor") {
  HEADSCOPE_NEEDS_CARD(card);
  Backend here(2);
  const std::vector<std::string> lines = testing::every_edit_line();
  int compared = 0;
  for (const auto& folder : models()) {
    CAPTURE(folder.filename().string());
    LoadedModel a, b;
    a.model = Model::load(folder, here);
    b.model = Model::load(folder, *card);
    RunRequest request;
    request.model = folder;
    request.ids = {3, 17, 8, 21, 40, 3, 17, 9, 33, 12, 40, 5, 3};
    request.capture.maps = MapStorage::dense;
    for (const std::string& line : lines) {
      CAPTURE(line);
      // Its weights are quotients of sums that cancel: what rounding leaves of them is anything.
      if (line.starts_with("mechanism trigonometric")) continue;
      request.edits.clear();
      std::shared_ptr<const Trace> expected;
      try {
        request.edits.push_back(parse_intervention("*: " + line, "test"));
        expected = run(a, request, Ctx{here});
      } catch (const Error&) {
        CHECK_THROWS_AS(run(b, request, Ctx{*card}), Error);
        continue;
      }
      const double most = apart(*expected, *run(b, request, Ctx{*card}));
      // A number on the edge of two steps goes up or down; gates normalise what may be small.
      CHECK(most < (line.starts_with("quantize") ? 2e-2 : line.starts_with("mechanism gated") ? 1e-2 : 2e-3));
      ++compared;
    }
  }
  CHECK(compared > 1000);
}

TEST_CASE("a text read token by token from a cache on the card is the text read at once") {
  HEADSCOPE_NEEDS_CARD(card);
  const std::vector<std::int32_t> tokens{5, 17, 3, 17, 5, 40, 8, 2, 9};
  for (const char* name : {"gpt2-random", "llama-gqa"})
    for (const MapStorage storage : {MapStorage::none, MapStorage::factored, MapStorage::dense}) {
      CAPTURE(name);
      const auto model = Model::load(testing::reference(name), *card);
      const TokenLinks links = TokenLinks::of(tokens);
      const auto whole = model->forward({*card}, tokens, nullptr, {storage, &links, nullptr});
      KvCache cache(model->config().dims, 16);
      Worst apart, maps;
      std::vector<ForwardResult> kept;
      for (std::size_t i = 0; i < tokens.size(); ++i)
        kept.push_back(model->forward({*card}, std::span(tokens).subspan(i, 1), &cache, {storage, &links, nullptr}));
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        const auto at = static_cast<Index>(i);
        apart.add(largest_difference(kept[i].logits, whole.logits.slice(0, at, at + 1)));
        for (std::size_t m = 0; m < kept[i].maps.size(); ++m)
          for (Index key = 0; key <= at; ++key)
            maps.add(std::abs(kept[i].maps[m].weight(0, key) - whole.maps[m].weight(at, key)));
      }
      CHECK(apart.value() < 1e-4);
      if (storage != MapStorage::none) CHECK(maps.value() < 1e-5);
    }
}

TEST_CASE("edits while a text is generated on the card do what they do on the processor") {
  HEADSCOPE_NEEDS_CARD(card);
  Backend here(2);
  const std::vector<std::string> together[] = {{},
                                               {"0.1: ablate zero", "*: temperature 2"},
                                               {"1.0: drop first 1", "0.*: temperature 0.5"},
                                               {"0.0: mask window 2", "1.*: ablate mean"}};
  for (const std::string name : {"gpt2-random", "llama-gqa"})
    for (const auto& edits : together) {
      CAPTURE(name);
      if (!edits.empty()) CAPTURE(edits.front());
      RunRequest request;
      for (const std::string& line : edits) request.edits.push_back(parse_intervention(line, "test"));
      LoadedModel a, b;
      a.model = Model::load(testing::reference(name), here);
      b.model = Model::load(testing::reference(name), *card);
      Generator expected(a, request), got(b, request);
      std::vector<std::int32_t> text{5, 17, 3, 17, 5};
      Worst logits, rows;
      for (int step = 0; step < 4; ++step) {
        const auto x = expected.read({here}, text), y = got.read({*card}, text);
        logits.add(largest_difference(x->logits, y->logits));
        rows.add(largest_difference(x->rows, y->rows));
        text.push_back(static_cast<std::int32_t>(7 * step + 2));
      }
      text.resize(4);  // cut back, and another way from there
      text.push_back(9);
      const auto x = expected.read({here}, text), y = got.read({*card}, text);
      logits.add(largest_difference(x->logits, y->logits));
      rows.add(largest_difference(x->rows, y->rows));
      CHECK(logits.value() < 1e-3);
      CHECK(rows.value() < 1e-4);
    }
}

TEST_CASE("a number that is not finite is told by site and place on the card too") {
  HEADSCOPE_NEEDS_CARD(card);
  Backend here(2);
  const auto message = [&](Backend& backend) {
    const auto model = Model::load(testing::reference("gpt2-random"), backend);
    const std::vector<std::int32_t> tokens{3, 17, 8};
    Tensor stream = Tensor::full({3, model->config().dims.d_model}, 0.5f);
    stream.ref(1, 2) = std::numeric_limits<float>::infinity();
    try {
      model->forward({backend}, tokens, nullptr, {}, true, {1, stream, -1});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  // What an infinite number becomes on its way through a norm may be any of the row's.
  for (const std::string& each : {message(here), message(*card)}) {
    CAPTURE(each);
    CHECK(each.find("gpt2-random: blocks.1.hook_resid_post: expected finite numbers, found") == 0);
    CHECK(each.find("at position ") != std::string::npos);
  }
}

TEST_CASE("a thousand runs take no more memory than a hundred") {
  HEADSCOPE_NEEDS_CARD(card);
  const auto model = Model::load(testing::source_dir() / "models" / "tiny-gpt2", *card);
  std::vector<std::int32_t> tokens(100);
  std::iota(tokens.begin(), tokens.end(), 3);
  const auto runs = [&](int count) {
    for (int i = 0; i < count; ++i) model->forward({*card}, tokens, nullptr, {MapStorage::factored, nullptr, nullptr});
    return cuda_devices(true).at(0).free;
  };
  const std::uint64_t before = runs(100), after = runs(900);
  CHECK(after >= before);
}

TEST_CASE("without a card, or with one that is not there, the error says what there is") {
  if (!why_no_cuda().empty())
    CHECK_THROWS_AS(make_cuda_backend(), CardError);
  else
    CHECK_THROWS_AS(make_cuda_backend(1, 64), CardError);
}

}  // namespace headscope::model_test
