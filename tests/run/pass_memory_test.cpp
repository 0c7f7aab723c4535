#include "core/run/pass_memory.h"
#include "core/edits/mask_edit.h"
#include "core/edits/temperature_edit.h"

#include <doctest/doctest.h>

#include <cstring>

#include "tests/support/paths.h"

namespace headscope::pass_memory_test {

using testing::reference;

namespace {

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::memcmp(a.packed().data(), b.packed().data(), a.bytes()) == 0;
}

/// A tap that changes nothing and notes which blocks a pass went through.
struct Passed final : Tap {
  std::vector<int> layers;
  bool wants(Site site) const override { return site.kind == SiteKind::resid_pre; }
  Tensor at(Site site, const Tensor& value) override {
    layers.push_back(site.layer);
    return value;
  }
};

struct Controller {
  explicit Controller(const char* name) : folder(reference(name)), loaded{Model::load(folder, backend), nullptr} {
    request.model = folder;
    request.ids = {3, 14, 15, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2};
    request.capture.sites = {SiteKind::embed, SiteKind::resid_post, SiteKind::z};
  }
  Backend backend{1};
  std::filesystem::path folder;
  LoadedModel loaded;
  RunRequest request;
  Ctx ctx{backend};
};

void check_same(const Trace& a, const Trace& b) {
  REQUIRE(a.maps.size() == b.maps.size());
  for (std::size_t i = 0; i < a.maps.size(); ++i) {
    CHECK(a.maps[i].layer() == b.maps[i].layer());
    CHECK(a.maps[i].head() == b.maps[i].head());
    CHECK(same_bits(a.maps[i].to_dense(), b.maps[i].to_dense()));
    CHECK(a.maps[i].stats().entropy == b.maps[i].stats().entropy);
  }
  REQUIRE(a.sites.size() == b.sites.size());
  for (const auto& [site, value] : a.sites) CHECK(same_bits(value, b.sites.at(site)));
  CHECK(same_bits(a.logits, b.logits));
}

}  // namespace

TEST_CASE("with a memory, an edit of any layer gives bit for bit what the whole pass gives") {
  for (const char* name : {"gpt2-random", "llama-gqa"}) {
    CAPTURE(name);
    Controller controller(name);
    PassMemory memory;
    run(controller.loaded, controller.request, controller.ctx, memory);
    const int layers = controller.loaded.model->config().dims.layers;
    // Up and down, and then several edits at once, one of them off: each time from what the last pass left.
    std::vector<std::vector<Intervention>> all;
    for (int layer = 0; layer < layers; ++layer) {
      all.push_back({{{layer, 1}, SetTemperature{0.5}}});
      all.push_back({{{layer, {}}, SetMask{"window 3"}}});
    }
    for (int layer = layers; layer-- > 0;) all.push_back({{{layer, 0}, SetTemperature{3}}});
    all.push_back({{{0, 0}, SetTemperature{2}}, {{1, 1}, SetMask{"full"}}});
    all.push_back({{{0, 0}, SetTemperature{2}}, {{1, 1}, SetMask{"full"}, false}});
    all.push_back({{{}, SetTemperature{1.5}}});
    all.push_back({});
    for (const auto& edits : all) {
      CAPTURE(edits.empty() ? "none" : describe(edits.back()));
      controller.request.edits = edits;
      check_same(*run(controller.loaded, controller.request, controller.ctx, memory),
                 *run(controller.loaded, controller.request, controller.ctx));
    }
  }
}

namespace {
std::vector<Token> tokens_of(const std::vector<std::int32_t>& ids) {
  std::vector<Token> tokens(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) tokens[i].id = ids[i];
  return tokens;
}
}  // namespace

TEST_CASE("the first block to compute is the first whose edits differ") {
  Controller controller("gpt2-random");
  const Model& model = *controller.loaded.model;
  PassMemory memory;
  CHECK(memory.first_changed(model, tokens_of(controller.request.ids), {}) == 0);
  controller.request.edits = {{{1, 0}, SetTemperature{2}}};
  run(controller.loaded, controller.request, controller.ctx, memory);
  const auto first = [&](std::vector<Intervention> edits) {
    return memory.first_changed(model, tokens_of(controller.request.ids), edits);
  };
  CHECK(first(controller.request.edits) == 2);  // the same again: two layers, none changed
  CHECK(first({{{1, 0}, SetTemperature{3}}}) == 1);
  CHECK(first({}) == 1);
  CHECK(first({{{1, 0}, SetTemperature{2}, false}}) == 1);
  CHECK(first({{{0, 0}, SetTemperature{2}}}) == 0);
  CHECK(first({{{}, SetTemperature{2}}}) == 0);                                          // all heads
  CHECK(first({{{0, 0}, SetTemperature{9}, false}, {{1, 0}, SetTemperature{2}}}) == 2);  // what is off does nothing
  CHECK(memory.first_changed(model, tokens_of({1, 2, 3}), controller.request.edits) == 0);
  const auto twin = Model::load(controller.folder, controller.backend);
  CHECK(memory.first_changed(*twin, tokens_of(controller.request.ids), controller.request.edits) == 0);
}

TEST_CASE("a run that records something else, or is watched by a tap, is computed whole") {
  Controller controller("gpt2-random");
  PassMemory memory;
  run(controller.loaded, controller.request, controller.ctx, memory);
  RunRequest more = controller.request;
  more.capture.sites.insert(SiteKind::q);
  check_same(*run(controller.loaded, more, controller.ctx, memory), *run(controller.loaded, more, controller.ctx));

  Passed passed;
  run(controller.loaded, more, Ctx{controller.backend, &passed}, memory);
  CHECK(passed.layers == std::vector{0, 1});
}

TEST_CASE("residual streams that would take too much memory are not kept") {
  Controller controller("gpt2-random");
  PassMemory small(100);
  run(controller.loaded, controller.request, controller.ctx, small);
  CHECK(small.first_changed(*controller.loaded.model, tokens_of(controller.request.ids), {}) == 0);
  CHECK_FALSE(small.trace());
}

TEST_CASE("a layer alone has the maps of the whole run, in factors, and no logits") {
  for (const char* name : {"gpt2-random", "llama-gqa"}) {
    Controller controller(name);
    controller.request.edits = {{{0, 1}, SetTemperature{0.7}}};
    PassMemory memory, nothing;
    const auto whole = run(controller.loaded, controller.request, controller.ctx, memory);
    RunRequest factored = controller.request;
    factored.capture.maps = MapStorage::factored;
    for (const PassMemory* known : {&memory, &nothing})
      for (int layer = 0; layer < 2; ++layer) {
        const auto one = run_layer(controller.loaded, factored, layer, controller.ctx, *known);
        CHECK(one->maps.size() == static_cast<std::size_t>(controller.loaded.model->config().dims.heads));
        CHECK_FALSE(one->logits.defined());
        REQUIRE(one->map({layer, 1}).is_factored());
        for (Index q = 0; q < 20; ++q)
          for (Index k = 0; k < 20; ++k)
            CHECK(one->map({layer, 1}).weight(q, k) ==
                  doctest::Approx(whole->map({layer, 1}).weight(q, k)).epsilon(1e-5));
      }
    CHECK(memory.trace() == whole);  // read, not written
  }
}

TEST_CASE("the logits of every position come after: the same bits, whether the pass is known or not") {
  for (const char* name : {"gpt2-random", "llama-gqa"}) {
    CAPTURE(name);
    Controller controller(name);
    controller.request.edits = {{{1, 0}, SetTemperature{0.5}}};
    const auto whole = run(controller.loaded, controller.request, controller.ctx);
    controller.request.capture.all_logits = false;
    PassMemory memory;
    const auto last = run(controller.loaded, controller.request, controller.ctx, memory);
    REQUIRE(last->logits.dim(0) == 1);
    const std::vector<std::int32_t> ids = last->ids();
    CHECK(memory.first_changed(*controller.loaded.model, tokens_of(ids), controller.request.edits) ==
          controller.loaded.model->config().dims.layers);
    check_same(*with_all_logits(controller.loaded, controller.request, last, controller.ctx, memory), *whole);
    memory.forget();
    check_same(*with_all_logits(controller.loaded, controller.request, last, controller.ctx, memory), *whole);
    CHECK(with_all_logits(controller.loaded, controller.request, whole, controller.ctx, memory) ==
          whole);  // nothing is lacking
  }
}

}  // namespace headscope::pass_memory_test
