// Taking from a text of another length: pairs by words, patches and patterns against definitions of their own.

#include "core/run/edit_pairs.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/analysis/activation_patching.h"
#include "core/base/error.h"
#include "core/edits/freeze_pattern_edit.h"
#include "core/edits/intervention_tap.h"
#include "core/edits/patch_edit.h"
#include "core/edits/text_pairing.h"
#include "core/metrics/next_token_change.h"
#include "tests/support/paths.h"

namespace headscope::edit_pairs_test {

namespace {

const char* const here_text = "Mr and Mrs Quill kept bees.";
const char* const there_text = "Mr and old Mrs Quill kept bees.";

struct Bench {
  Bench() : loaded(load_model(headscope::testing::source_dir() / "assets/examples/induction", backend)) {
    request.text = here_text;
    request.capture.maps = MapStorage::dense;
  }
  std::shared_ptr<const Trace> operator()(const std::vector<Intervention>& edits, std::set<SiteKind> sites = {},
                                          const char* text = nullptr) {
    RunRequest run = request;
    if (text) run.text = text;
    run.edits = edits;
    run.capture.sites = std::move(sites);
    return headscope::run(loaded, run, Ctx{backend});
  }
  Backend backend{1};
  LoadedModel loaded;
  RunRequest request;
};

}  // namespace

TEST_CASE("pairings read back from their words; wrong ones are refused") {
  for (const TextPairing& pairing :
       {TextPairing(), TextPairing(TextPairing::By::end), TextPairing(TextPairing::By::tokens),
        TextPairing(TextPairing::By::hand), TextPairing(TextPairing::By::hand, {{0, 3}, {7, 1}})})
    CHECK(parse_pairing(text_of(pairing), "test") == pairing);
  CHECK(text_of(TextPairing(TextPairing::By::hand, {{0, 3}, {7, 1}})) == "0:3,7:1");
  for (const char* wrong : {"", "middle", "1", "1:", "1:2,", "1:2 3:4", "1:2,1:3", "1:2,3:2", "-1:2", "1:2;3:4"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(parse_pairing(wrong, "test"), Error);
  }
  for (const char* words : {R"(patch v from "a b" aligned 0:1,2:2)", R"(patch v from "a" aligned none)",
                            R"(freeze pattern from "a \"b\"" aligned tokens)"})
    CHECK(text_of(parse_edit_action(words, "test")) == words);
  CHECK_THROWS_AS(parse_edit_action("freeze pattern aligned tokens", "test"), Error);
}

TEST_CASE("stretches of pairs, in words") {
  CHECK(stretches_of_pairs({0, 1, 3, 4, -1, 5}) == "5 of 6 positions: 0–1 from 0–1, 2–3 from 3–4, 5 from 5");
  CHECK(stretches_of_pairs({-1, -1}) == "0 of 2 positions");
}

TEST_CASE("a patch from a longer text replaces rows at paired tokens and no others") {
  Bench bench;
  const auto other = bench({}, {SiteKind::z}, there_text);
  const auto plain = bench({}, {SiteKind::z});
  const Index n = plain->logits.dim(0), m = other->logits.dim(0);
  REQUIRE(m > n);
  const auto expect = [&](const TextPairing& pairing, const std::vector<int>& partner) {
    const auto patched = bench({{{0, 1}, Patch{pairing, SiteKind::z, there_text}}}, {SiteKind::z});
    const Site site{SiteKind::z, 0};
    for (Index i = 0; i < n; ++i) {
      const int from = partner[static_cast<std::size_t>(i)];
      CAPTURE(i);
      CHECK(patched->sites.at(site).at(i, 1, 0) ==
            (from < 0 ? plain->sites.at(site).at(i, 1, 0) : other->sites.at(site).at(from, 1, 0)));
      CHECK(patched->sites.at(site).at(i, 0, 0) == plain->sites.at(site).at(i, 0, 0));
    }
  };
  // What both texts begin and end with is paired: "Mr and " and "Mrs Quill kept bees.".
  std::size_t head = 0, tail = 0;
  const auto ids = plain->ids(), others = other->ids();
  while (ids[head] == others[head]) ++head;
  while (tail < ids.size() - head && ids[ids.size() - 1 - tail] == others[others.size() - 1 - tail]) ++tail;
  REQUIRE(head + tail == ids.size());  // nothing in the shorter text is without a partner
  std::vector<int> by_tokens;
  for (std::size_t i = 0; i < ids.size(); ++i)
    by_tokens.push_back(static_cast<int>(i < head ? i : i + static_cast<std::size_t>(m - n)));
  expect(TextPairing::By::tokens, by_tokens);
  std::vector<int> by_hand(ids.size(), -1);
  by_hand[2] = 5;
  by_hand[6] = 0;
  expect(TextPairing(TextPairing::By::hand, {{2, 5}, {6, 0}}), by_hand);
  CHECK_THROWS_WITH_AS(bench({{{0, 1}, Patch{{TextPairing::By::hand, {{0, 99}}}, SiteKind::z, there_text}}}),
                       doctest::Contains("0:99"), Error);

  const auto pairs =
      edit_pairs(bench.loaded, bench.request, ids, {{0, 1}, Patch{TextPairing::By::tokens, SiteKind::z, there_text}});
  REQUIRE(pairs);
  CHECK(pairs->partner == by_tokens);
  CHECK(static_cast<Index>(pairs->tokens.size()) == m);
  CHECK_FALSE(edit_pairs(bench.loaded, bench.request, ids, {{0, 1}, FreezePattern{}}));
}

TEST_CASE(
    "a pattern from a text of another length: paired cells, each row sharing what went to tokens without partner") {
  Bench bench;
  const auto other = bench({}, {}, there_text), plain = bench({});
  const Index n = plain->logits.dim(0), m = other->logits.dim(0);
  const auto partner = align_positions(TextPairing::By::tokens, plain->ids(), other->ids());
  const auto frozen = bench({{{0, 2}, FreezePattern{there_text, TextPairing::By::tokens}}});
  const AttentionMap &map = frozen->map({0, 2}), &source = other->map({0, 2}), &own = plain->map({0, 2});
  int shared = 0;
  for (Index i = 0; i < n; ++i) {
    const Index from = partner[static_cast<std::size_t>(i)];
    REQUIRE(from >= 0);
    double kept = 0;
    for (Index j = 0; j <= i; ++j) kept += source.weight(from, partner[static_cast<std::size_t>(j)]);
    shared += kept < 0.999;
    double sum = 0;
    for (Index j = 0; j < n; ++j) {
      const double wanted = j > i ? 0 : source.weight(from, partner[static_cast<std::size_t>(j)]) / kept;
      CHECK(map.weight(i, j) == doctest::Approx(wanted).epsilon(1e-5));
      sum += map.weight(i, j);
    }
    CHECK(sum == doctest::Approx(1).epsilon(1e-5));
  }
  CHECK(shared > 0);  // some row did look at the word that is not here
  CHECK(m == n + 4);

  // A row that has no partner, or none of whose weights has one, stays.
  const auto one = bench({{{0, 2}, FreezePattern{there_text, {TextPairing::By::hand, {{4, 4}}}}}});
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j <= i; ++j) {
      const bool alone = i == 4 && source.weight(4, 4) > 0;
      CHECK(one->map({0, 2}).weight(i, j) ==
            (alone ? (j == 4 ? doctest::Approx(1) : doctest::Approx(0)) : doctest::Approx(own.weight(i, j))));
    }
}

TEST_CASE("activation patching between prompts of different lengths, positions and patterns, is one edit per cell") {
  Bench bench;
  // The second prompt says one word more; what it repeats is the same.
  const char *clean = "Mr Quill and Mrs Quill of old Fox Hythe. Mr Qu",
             *corrupted = "Mr Quoll and Mrs Quoll of Fox Hythe. Mr Qu";
  for (const SiteKind site : {SiteKind::resid_pre, SiteKind::z, SiteKind::pattern}) {
    PatchingRequest request{bench.request.model, clean, corrupted, {}, site, TextPairing::By::tokens, {}};
    PatchingSweep sweep(bench.loaded, request);
    while (!sweep.finished()) sweep.step(Ctx{bench.backend});
    const auto result = sweep.result();
    REQUIRE(result->clean->tokens.size() != result->corrupted->tokens.size());
    RunRequest by_hand = bench.request;
    by_hand.text = corrupted;
    for (int column = 0; column < result->columns; ++column) {
      HeadTarget target{1, {}, {}};
      if (is_by_head(site))
        target.head = column;
      else
        target.positions = PositionRange{column, column};
      by_hand.edits = {{target, site == SiteKind::pattern ? EditAction(FreezePattern{clean, TextPairing::By::tokens})
                                                          : EditAction(Patch{TextPairing::By::tokens, site, clean})}};
      const auto cell = static_cast<std::size_t>(result->columns + column);
      if (!is_by_head(site) && result->partner[static_cast<std::size_t>(column)] < 0) {
        CHECK(std::isnan(result->difference[cell]));
        continue;
      }
      const auto trace = run(bench.loaded, by_hand, Ctx{bench.backend});
      CHECK(result->difference[cell] ==
            doctest::Approx(logit_difference(*trace, result->answers.right, result->answers.wrong)).epsilon(1e-9));
    }
  }
}

TEST_CASE("an edit is found again by what it takes from where, however its pairs were changed") {
  const auto edit = [](const char* words) { return parse_intervention(words, "test"); };
  const Intervention a = edit("0.*: patch resid_pre from \"Mr Quill\" aligned tokens"),
                     a_otherwise = edit("0.*: patch resid_pre from \"Mr Quill\" aligned start"),
                     b = edit("0.*: patch resid_pre from \"Mrs Fox\" aligned tokens"), plain = edit("1.0: ablate zero");
  const std::vector<Intervention> edits{plain, a, b};
  CHECK(same_source(edits, a) == std::size_t(1));
  CHECK(same_source(edits, a_otherwise) == std::size_t(1));
  CHECK(same_source(edits, b) == std::size_t(2));
  CHECK_FALSE(same_source(edits, plain));
  CHECK_FALSE(same_source({plain, a}, b));
  CHECK(same_source({a_otherwise, a}, a) == std::size_t(1));  // the same edit before one that is like it
}

}  // namespace headscope::edit_pairs_test
