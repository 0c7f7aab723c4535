// Every row of the table of masks is a whole run with that mask; hashed ones are counted on the head's own vectors.

#include "core/analysis/mask_sweep.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/attention/lsh.h"
#include "core/attention/masks.h"
#include "core/edits/mask_edit.h"
#include "core/metrics/next_token.h"
#include "core/metrics/next_token_change.h"
#include "tests/support/paths.h"

namespace headscope::mask_sweep_test {

using doctest::Approx;
using testing::reference;
using testing::source_dir;

TEST_CASE("masks side by side: cells, loss and change of the answer are those of a run with each") {
  Backend backend;
  const Ctx ctx{backend};
  const LoadedModel loaded = load_model(reference("gpt2-random"), backend);
  RunRequest request;
  request.model = reference("gpt2-random");
  request.ids = {3, 14, 15, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2};
  request.capture.all_logits = true;
  const MasksAsked asked{request, {1, 0}, {"causal", "window 3", "lsh 4 rounds 1 seed 2", "padding 2 & causal"}};
  MaskSweep sweep(loaded, asked);
  while (!sweep.finished()) sweep.step(ctx);
  const auto known = sweep.result();
  REQUIRE(known->entries.size() == 4);
  const auto plain = run(loaded, request, ctx);
  CHECK(known->before.loss == Approx(mean_loss(*plain)));
  for (const MaskCosts::Entry& each : known->entries) {
    CAPTURE(each.mask);
    RunRequest changed = request;
    changed.edits = {{{}, SetMask{each.mask}}};
    const auto after = run(loaded, changed, ctx);
    CHECK(each.outcome.loss == Approx(mean_loss(*after)));
    CHECK(each.outcome.kl == Approx(next_token_change(*plain, *after, 1).kl).scale(1e-6));
  }
  CHECK(known->entries[0].facts.cells == 210);
  CHECK(known->entries[0].outcome.kl == Approx(0).scale(1e-6));
  CHECK(known->entries[1].facts.cells == 57);  // 1 + 2 + 18 · 3
  CHECK(known->entries[1].outcome.loss != Approx(known->before.loss));

  // The head's own queries and keys, as a run records them.
  RunRequest recorded = request;
  recorded.capture.sites = {SiteKind::q, SiteKind::k};
  const auto trace = run(loaded, recorded, ctx);
  const auto head_of = [&](SiteKind kind) {
    const Tensor& all = trace->sites.at({kind, 1});  // (token, head, d)
    Tensor out = Tensor::zeros({all.dim(0), all.dim(2)});
    for (Index i = 0; i < out.dim(0); ++i)
      for (Index c = 0; c < out.dim(1); ++c) out.ref(i, c) = all.at(i, 0, c);
    return out;
  };
  const RulePtr hashed =
      lsh_rule(head_of(SiteKind::q), head_of(SiteKind::k), {.buckets = 4, .rounds = 1, .seed = 2}, "lsh");
  CHECK(known->entries[2].facts.cells == mask_facts(*hashed, 20).cells);
  CHECK(known->entries[2].facts.cells < 210);
  CHECK(known->entries[2].facts.kept_keys == 20);  // a later query may meet any of them
  CHECK(known->entries[1].facts.kept_keys == 2);
}

TEST_CASE("what a mask saves: a cache of latents alone, none of a text read at once, no work by one head's hashes") {
  const MaskFacts facts = mask_facts(*parse_mask("window 3"), 20);
  REQUIRE(facts.cells == 57);
  REQUIRE(facts.kept_keys == 2);
  // Two layers of three heads, keys of 6 + 8 numbers and values of 4, out of a latent of 5 and the 8 that turn.
  const ModelConfig config = load_config(reference("families/deepseek_v2"));
  const MaskSavings latent = MaskSavings::of(config);
  CHECK(latent.cache_bytes(facts) == 4 * 2 * (5 + 8) * 2);
  CHECK(latent.work(facts, false) == 2 * (14 + 4) * 57 * 3 * 2);
  CHECK(std::isnan(latent.work(facts, true)));
  // Of weights alone it is not known that they come of a latent.
  const MaskSavings weights = MaskSavings::of(ModelInfo{.name = "", .family = "", .dims = config.dims});
  CHECK(weights.cache_bytes(facts) == 4 * 2 * 3 * (14 + 4) * 2);
  CHECK(weights.work(facts, false) == latent.work(facts, false));
  // BERT: three layers of three heads of 6.
  const MaskSavings encoder = MaskSavings::of(load_config(reference("families/bert")));
  CHECK_FALSE(encoder.keeps_keys);
  CHECK(std::isnan(encoder.cache_bytes(facts)));
  CHECK(encoder.work(facts, false) == 2 * (6 + 6) * 57 * 3 * 3);
  CHECK_FALSE(MaskSavings::of(load_config(source_dir() / "models/tiny-vit")).keeps_keys);
  const MaskSavings state = MaskSavings::of(load_config(reference("families/mamba")));
  CHECK(std::isnan(state.work(facts, false)));
  CHECK(std::isnan(state.cache_bytes(facts)));
}

TEST_CASE("a state space has no queries and keys to hash: the mask stays as it is written") {
  Backend backend(1);
  const LoadedModel loaded = load_model(reference("families/mamba"), backend);
  RunRequest request;
  request.ids = {3, 4, 5};
  const std::string mask = "lsh 4 rounds 1 seed 2";
  CHECK(mask_on_text(mask, loaded, request, {0, 0}, Ctx{backend})->describe() == parse_mask(mask)->describe());
}

}  // namespace headscope::mask_sweep_test
