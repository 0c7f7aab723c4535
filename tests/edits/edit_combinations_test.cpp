// Several edits at once: of one kind on different rows, of different kinds on the same rows, against scores written out
// in float64 from the queries and keys of the pass.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <set>

#include "core/attention/mechanism.h"
#include "core/attention/positions/alibi.h"
#include "core/edits/held_edits.h"
#include "core/io/trace_file.h"
#include "core/metrics/metric.h"
#include "tests/edits/edit_bench.h"
#include "tests/support/largest_difference.h"
#include "tests/support/paths.h"
#include "tests/support/worst.h"

namespace headscope::edit_combinations_test {

using namespace testing;

namespace {

constexpr double hidden = -std::numeric_limits<double>::infinity();
/// The score of a cell, made of q·k/√d; `hidden` where the row does not see the key.
using Score = std::function<double(Index query, Index key, double score, int head)>;

/// The largest difference between the maps of a run with these edits and the softmax of the scores written out.
double gap(Bench& bench, const std::vector<std::string>& edits, const Score& score) {
  const SiteKind q_kind = bench.rotary() ? SiteKind::rot_q : SiteKind::q,
                 k_kind = bench.rotary() ? SiteKind::rot_k : SiteKind::k;
  const auto trace = bench(edits, {q_kind, k_kind});
  Worst most;
  for (const AttentionMap& map : trace->maps) {
    const Tensor &q = trace->sites.at({q_kind, map.layer()}), &k = trace->sites.at({k_kind, map.layer()});
    const Index shared = map.head() / (q.dim(1) / k.dim(1));
    for (Index i = 0; i < tokens; ++i) {
      std::vector<double> row(tokens);
      for (Index j = 0; j < tokens; ++j) {
        double dot = 0;
        for (Index c = 0; c < q.dim(2); ++c)
          dot += static_cast<double>(q.at(i, map.head(), c)) * static_cast<double>(k.at(j, shared, c));
        row[static_cast<std::size_t>(j)] = score(i, j, dot / std::sqrt(static_cast<double>(q.dim(2))), map.head());
      }
      double sum = 0;
      for (double& s : row) sum += s = std::exp(s);
      for (Index j = 0; j < tokens; ++j)
        most.add(
            std::abs((sum > 0 ? row[static_cast<std::size_t>(j)] / sum : 0) - static_cast<double>(map.weight(i, j))));
    }
  }
  return most.value();
}

bool in_window(Index i, Index j, Index width) {
  return j <= i && i - j < width;
}

}  // namespace

TEST_CASE("two edits of one kind on different rows both act, and where they overlap the later one") {
  for (const char* name : families) {
    CAPTURE(name);
    Bench bench(name);
    CHECK(gap(bench, {}, [](Index i, Index j, double s, int) { return j <= i ? s : hidden; }) < 1e-5);
    CHECK(gap(bench, {"*@0..5: mask window 3", "*@6..: mask window 6"},
              [](Index i, Index j, double s, int) { return in_window(i, j, i < 6 ? 3 : 6) ? s : hidden; }) < 1e-5);
    CHECK(gap(bench, {"*: mask window 3", "*@6..8: mask full", "1.*@7: mask window 2", "0.*@7: mask window 2"},
              [](Index i, Index j, double s, int) {
                return i == 7             ? (in_window(i, j, 2) ? s : hidden)
                       : i >= 6 && i <= 8 ? s
                                          : (in_window(i, j, 3) ? s : hidden);
              }) < 1e-5);
    CHECK(gap(bench, {"*@0..5: temperature 0.5", "*@4..: temperature 2"}, [](Index i, Index j, double s, int) {
            return j > i ? hidden : i < 4 ? s / 0.5 : s / 2;
          }) < 1e-5);
    CHECK(gap(bench, {"*@0..5: pattern previous", "*@4..8: pattern uniform"}, [](Index i, Index j, double s, int) {
            return j > i ? hidden : i > 8 ? s : i >= 4 ? 0 : j == std::max<Index>(i - 1, 0) ? 0 : hidden;
          }) < 1e-5);
    CHECK(gap(bench, {"*@3..5: drop first 2", "*@6..: drop first 1"}, [](Index i, Index j, double s, int) {
            return j > i || (i >= 3 && j < (i < 6 ? 2 : 1)) ? hidden : s;
          }) < 1e-5);
    CHECK(gap(bench, {"*@0..5: scale by length 8", "*@6..: scale by length 64"}, [](Index i, Index j, double s, int) {
            return j > i ? hidden : s * std::log(static_cast<double>(i + 1)) / std::log(i < 6 ? 8.0 : 64.0);
          }) < 1e-5);
    // A later edit of all rows takes the earlier one's place.
    CHECK(largest_difference(bench({"*@0..5: temperature 0.5", "*: temperature 2"})->logits,
                             bench({"*: temperature 2"})->logits) == 0);
  }
}

TEST_CASE("of two edits that drop the first tokens the later one holds in a row, whether weight is lost or not") {
  Bench bench("gpt2-random");
  const auto lost =
                 bench({"0.0@3..5: drop first 2 and its weight", "0.0@6..: drop first 1 and its weight"})->map({0, 0}),
             plain = bench({})->map({0, 0});
  for (Index i = 0; i < tokens; ++i)
    for (Index j = 0; j < tokens; ++j)
      CHECK(lost.weight(i, j) == (i >= 3 && j < (i < 6 ? 2 : 1) ? 0.0f : plain.weight(i, j)));
  CHECK(largest_difference(bench({"*: drop first 2 and its weight", "*: drop first 1"})->logits,
                           bench({"*: drop first 1"})->logits) == 0);
}

TEST_CASE("edits of different kinds act together on the rows that they share, whatever their order") {
  for (const char* name : families) {
    CAPTURE(name);
    Bench bench(name);
    const auto slopes = alibi_slopes(bench.dims().heads);
    const double bucket[] = {0, 1, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3};
    const Score by_hand = [&](Index i, Index j, double s, int head) {
      if (i < 8 ? !in_window(i, j, 4) : j > i) return hidden;
      if (i >= 2 && j < 1) return hidden;
      Index seen = 0;
      for (Index k = i >= 2 ? 1 : 0; k <= i; ++k) seen += i >= 8 || in_window(i, k, 4);
      if (i >= 5) s -= slopes[static_cast<std::size_t>(head)] * static_cast<double>(i - j);
      s += bucket[i - j];
      s *= std::log(static_cast<double>(seen)) / std::log(16.0);
      return s / (i < 4 ? 1 : i < 9 ? 0.5 : 3);
    };
    std::vector<std::string> edits{"*@0..7: mask window 4",        "*@4..: temperature 0.5",
                                   "*@2..: drop first 1",          "*: scale by length 16",
                                   "*@5..: position alibi on top", "*: position t5 8 bias 0,1,2,3 on top",
                                   "*@9..: temperature 3",         "*: position shift 2"};
    CHECK(gap(bench, edits, by_hand) < 1e-5);
    // The two temperatures keep their order, all others may stand anywhere.
    const auto forward = bench(edits);
    std::vector<std::string> turned{edits.rbegin(), edits.rend()};
    std::swap(*std::ranges::find(turned, edits[1]), *std::ranges::find(turned, edits[6]));
    CHECK(largest_difference(bench(turned)->logits, forward->logits) == 0);
    // Bits do not depend on how the map is kept.
    bench.plain.capture.maps = MapStorage::factored;
    CHECK(gap(bench, edits, by_hand) < 1e-5);
  }
}

TEST_CASE("a bias on top survives every other edit of positions") {
  for (const char* name : families) {
    CAPTURE(name);
    Bench bench(name);
    const auto slopes = alibi_slopes(bench.dims().heads);
    const Score with_alibi = [&](Index i, Index j, double s, int head) {
      return j > i ? hidden : s - slopes[static_cast<std::size_t>(head)] * static_cast<double>(i - j);
    };
    for (const char* other :
         {"*: position shift 3", "*: position none", "*: position rope base 500", "*: position sinusoidal"}) {
      CAPTURE(other);
      CHECK(gap(bench, {"*: position alibi on top", other}, with_alibi) < 1e-5);
      CHECK(gap(bench, {other, "*: position alibi on top"}, with_alibi) < 1e-5);
      CHECK(largest_difference(bench({"*: position alibi on top", other})->logits, bench({other})->logits) > 1e-3);
    }
    const double bucket[] = {0, 1, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3};
    for (const bool first : {true, false})
      CHECK(gap(bench,
                first ? std::vector<std::string>{"*: position alibi on top", "*: position t5 8 bias 0,1,2,3 on top"}
                      : std::vector<std::string>{"*: position t5 8 bias 0,1,2,3 on top", "*: position alibi on top"},
                [&](Index i, Index j, double s, int head) {
                  return j > i ? hidden : with_alibi(i, j, s, head) + bucket[i - j];
                }) < 1e-5);
    // What replaces the model's own positions replaces an earlier replacement, and its bias with it.
    CHECK(largest_difference(bench({"*: position alibi", "*: position t5 8 bias 0,1,2,3"})->logits,
                             bench({"*: position t5 8 bias 0,1,2,3"})->logits) == 0);
    CHECK(largest_difference(bench({"*: position alibi", "*: position none"})->logits,
                             bench({"*: position none"})->logits) == 0);
  }
}

TEST_CASE("a shift moves the positions that another edit has put in place") {
  for (const char* name : families) {
    CAPTURE(name);
    Bench bench(name);
    const auto logits = [&](std::vector<std::string> edits) { return bench(edits)->logits; };
    // Rotations and biases do not notice it, and it brings nothing back that was replaced.
    for (const char* own : {"*: position none", "*: position rope base 500", "*: position alibi"}) {
      CAPTURE(own);
      CHECK(largest_difference(logits({own, "*: position shift 3"}), logits({own})) < 1e-3);
      CHECK(largest_difference(logits({"*: position shift 3", own}), logits({own})) < 1e-3);
    }
    CHECK(largest_difference(logits({"*: position shift 2", "*: position shift 3"}), logits({"*: position shift 3"})) ==
          0);
    const SiteKind site = bench.rotary() ? SiteKind::embed : SiteKind::pos_embed;
    const auto embedded = [&](std::vector<std::string> edits) { return bench(edits, {site})->sites.at({site}); };
    const Tensor base = bench.rotary() ? embedded({}) : Tensor::zeros({tokens, bench.dims().d_model}),
                 still = embedded({"*: position sinusoidal"}),
                 moved = embedded({"*: position sinusoidal", "*: position shift 3"});
    for (Index i = 0; i + 3 < tokens; ++i)
      for (Index c = 0; c < base.dim(1); ++c)
        CHECK(moved.at(i, c) - base.at(i, c) ==
              doctest::Approx(static_cast<double>(still.at(i + 3, c) - base.at(i + 3, c))).epsilon(1e-3));
    // Sinusoids are added once, and go when something else takes their place.
    CHECK(largest_difference(logits({"*: position sinusoidal", "*: position sinusoidal"}),
                             logits({"*: position sinusoidal"})) == 0);
    CHECK(largest_difference(logits({"*: position sinusoidal", "*: position none"}), logits({"*: position none"})) ==
          0);
    CHECK(largest_difference(logits({"*: position rope base 500", "*: position rope base 100"}),
                             logits({"*: position rope base 100"})) == 0);
    // What makes queries anew does not undo their rotation.
    CHECK(largest_difference(logits({"*: position rope base 500", "0.*: singular q 1=0"}),
                             logits({"0.*: singular q 1=0", "*: position rope base 500"})) < 1e-5);
  }
}

TEST_CASE("one temperature for all rows divides a bias as it does for some rows") {
  for (const char* name : families) {
    CAPTURE(name);
    Bench bench(name);
    const auto slopes = alibi_slopes(bench.dims().heads);
    const Score by_hand = [&](Index i, Index j, double s, int head) {
      return j > i ? hidden : (s - slopes[static_cast<std::size_t>(head)] * static_cast<double>(i - j)) / 0.5;
    };
    CHECK(gap(bench, {"*: position alibi on top", "*: temperature 0.5"}, by_hand) < 1e-5);
    CHECK(gap(bench, {"*: temperature 0.5", "*@0..4: position alibi on top", "*@5..: position alibi on top"}, by_hand) <
          1e-5);
    CHECK(gap(bench, {"*: position alibi", "*: temperature 0.5"}, by_hand) < 1e-5);
    const std::vector<const char*> specs{"softmax scaled=off", "additive", "cosine",
                                         "entmax alpha=2",     "flash",    "ring",
                                         "low-rank",           "refined",  "log-length trained=16"};
    for (const std::string spec : specs) {
      CAPTURE(spec);
      const std::string swap = "1.2: mechanism " + spec;
      const auto map = [&](std::vector<std::string> edits) {
        edits.push_back(swap);
        return bench(edits)->map({1, 2}).to_dense();
      };
      const Tensor whole = map({"1.2: temperature 0.5"});
      CHECK(largest_difference(whole, map({})) > 1e-4);
      // As rows, and (which keeps it out of the scale) beside a bias of zero.
      const std::string nothing = "1.2: position t5 8 bias 0,0 on top";
      CHECK(largest_difference(whole, map({"1.2: temperature 0.5", nothing})) < 2e-5);
      CHECK(largest_difference(map({nothing}), map({})) < 2e-5);
      if (spec != "low-rank" && spec != "refined") {  // which compare rows
        const Tensor parts = map({"1.2@0..4: temperature 0.5", "1.2@5..: temperature 3"}),
                     hot = map({"1.2: temperature 3"});
        CHECK(largest_difference(parts.slice(0, 0, 5).packed(), whole.slice(0, 0, 5).packed()) < 2e-5);
        CHECK(largest_difference(parts.slice(0, 5, 12).packed(), hot.slice(0, 5, 12).packed()) < 2e-5);
      }
    }
    CHECK(largest_difference(bench({"1.2: temperature 0.5", "1.2: mechanism additive"})->logits,
                             bench({"1.2: mechanism additive sharpness=2"})->logits) < 1e-5);
  }
}

TEST_CASE("a mechanism refuses the edits of scores that it could not follow, and says which") {
  for (const char* name : families) {
    CAPTURE(name);
    Bench bench(name);
    // Without an edit of scores every mechanism of the catalogue runs; with one it changes its weights or refuses.
    for (const Mechanism& mechanism : mechanisms()) {
      if (mechanism.study) continue;
      CAPTURE(mechanism.id);
      const std::string swap = "1.2: mechanism " + std::string(mechanism.id);
      const Tensor plain = bench({swap})->map({1, 2}).to_dense();
      for (const char* edit : {"1.2: temperature 0.5", "1.2@3..: temperature 0.5", "1.2: scale by length 64",
                               "1.2: position alibi on top", "1.2: pattern uniform"}) {
        CAPTURE(edit);
        const std::string refusal = bench.refused({edit, swap});
        const bool whole = std::string(edit) == "1.2: temperature 0.5";
        if (mechanism.score_edits == ScoreEdits::all || (mechanism.score_edits == ScoreEdits::scaled && whole)) {
          REQUIRE(refusal == "accepted");
          CHECK(largest_difference(bench({edit, swap})->map({1, 2}).to_dense(), plain) > 1e-6);
        } else {
          CHECK(refusal.find(edit) != std::string::npos);
          CHECK(refusal.find("mechanism " + std::string(mechanism.id)) != std::string::npos);
        }
      }
      // On rows of their own the two do not meet.
      const auto both = bench(
          {"1.2@0..5: mechanism " + std::string(mechanism.id), "1.2@6..: temperature 0.5", "1.2@8..: mask window 2"});
      const Tensor tempered = bench({"1.2: temperature 0.5"})->map({1, 2}).to_dense();
      if (mechanism.id != "refined" && mechanism.id != "low-rank")
        CHECK(largest_difference(both->map({1, 2}).to_dense().slice(0, 0, 6).packed(), plain.slice(0, 0, 6).packed()) <
              1e-5);
      CHECK(largest_difference(both->map({1, 2}).to_dense().slice(0, 6, 8).packed(), tempered.slice(0, 6, 8).packed()) <
            1e-5);
    }
  }
}

TEST_CASE("scaling by length counts the keys that a row sees, as the mechanism does") {
  for (const char* name : families) {
    CAPTURE(name);
    Bench bench(name);
    CHECK(gap(bench, {"*: mask full", "*: scale by length 64"},
              [](Index, Index, double s, int) { return s * std::log(12.0) / std::log(64.0); }) < 1e-5);
    CHECK(gap(bench, {"*: scale by length 64", "*: mask window 3"}, [](Index i, Index j, double s, int) {
            const double seen = static_cast<double>(std::min<Index>(i + 1, 3));
            return in_window(i, j, 3) ? s * std::log(seen) / std::log(64.0) : hidden;
          }) < 1e-5);
    CHECK(
        gap(bench, {"*: scale by length 64", "*: mask causal & not cells 9:3-6"}, [](Index i, Index j, double s, int) {
          if (j > i || (i == 9 && j >= 3 && j <= 6)) return hidden;
          return s * std::log(i == 9 ? 6.0 : static_cast<double>(i + 1)) / std::log(64.0);
        }) < 1e-5);
    for (const char* mask : {"causal", "full", "window 3", "sink 1 window 2", "causal & not cells 9:3-6"}) {
      CAPTURE(mask);
      const std::string masked = std::string("*: mask ") + mask;
      CHECK(largest_difference(bench({masked, "*: scale by length 16"})->logits,
                               bench({masked, "*: mechanism log-length trained=16"})->logits) < 1e-4);
    }
    CHECK(largest_difference(bench({"*: position alibi on top", "*: scale by length 16"})->logits,
                             bench({"*: position alibi on top", "*: mechanism log-length trained=16"})->logits) < 1e-4);
  }
}

TEST_CASE("a weight set after a pattern was frozen or made by a mechanism stands in that pattern") {
  for (const char* name : families) {
    CAPTURE(name);
    Bench bench(name);
    for (const char* before : {"0.1: freeze pattern", "0.1: mechanism entmax", "0.*: mechanism linear",
                               "0.1: mechanism delta", "0.1: mechanism lstm"}) {
      CAPTURE(before);
      const AttentionMap own = bench({before})->map({0, 1}), set = bench({before, "0.1: weight 6 2 0.7"})->map({0, 1});
      double sum = 0, after = 0;
      for (Index j = 0; j < tokens; ++j) sum += static_cast<double>(own.weight(6, j)), after += set.weight(6, j);
      CHECK(set.weight(6, 2) == doctest::Approx(0.7));
      CHECK(after == doctest::Approx(sum).epsilon(1e-4));
      for (const Index j : {Index{0}, Index{5}})
        CHECK(set.weight(6, j) ==
              doctest::Approx(own.weight(6, j) * (sum - 0.7) / (sum - static_cast<double>(own.weight(6, 2))))
                  .epsilon(1e-3));
      CHECK(set.weight(5, 2) == own.weight(5, 2));
      // Listed before, it is what the later edit replaces.
      CHECK(largest_difference(bench({"0.1: weight 6 2 0.7", before})->map({0, 1}).to_dense(), own.to_dense()) == 0);
    }
  }
}

TEST_CASE("dropped tokens stay dropped in a pattern that is written later, and a norm that is off is not moved") {
  for (const char* name : families) {
    CAPTURE(name);
    Bench bench(name);
    for (const char* later : {"0.1: mechanism linear", "0.1: freeze pattern"}) {
      const AttentionMap map = bench({"0.1: drop first 2 and its weight", later})->map({0, 1}),
                         own = bench({later})->map({0, 1});
      for (Index i = 0; i < tokens; ++i)
        for (Index j = 0; j < tokens; ++j) CHECK(map.weight(i, j) == (j < 2 ? 0.0f : own.weight(i, j)));
    }
    const std::set<SiteKind> sites{SiteKind::resid_mid, SiteKind::resid_pre, SiteKind::attn_out,
                                   SiteKind::ln1_normalized};
    for (const auto& edits : {std::vector<std::string>{"1.*: post norm", "1.*@3..5: switch off ln1"},
                              std::vector<std::string>{"1.*@3..5: switch off ln1", "1.*: post norm"}}) {
      const auto off = bench(edits, sites), moved = bench({"1.*: post norm"}, sites);
      const auto at = [](const Trace& trace, SiteKind kind) { return trace.sites.at({kind, 1}); };
      for (Index i = 0; i < tokens; ++i)
        for (Index c = 0; c < bench.dims().d_model; ++c) {
          const float sum = at(*off, SiteKind::resid_pre).at(i, c) + at(*off, SiteKind::attn_out).at(i, c);
          if (i >= 3 && i <= 5)
            CHECK(at(*off, SiteKind::resid_mid).at(i, c) == doctest::Approx(sum).epsilon(1e-5));
          else
            CHECK(at(*off, SiteKind::resid_mid).at(i, c) == at(*moved, SiteKind::resid_mid).at(i, c));
        }
    }
    // Other weights come before what is done to their output, wherever they stand in the list.
    CHECK(largest_difference(bench({"1.*: switch off attention", "1.*: singular o 1=0"})->logits,
                             bench({"1.*: switch off attention"})->logits) == 0);
    CHECK(largest_difference(bench({"1.*: share keys 1", "1.*: latent keys 4"})->logits,
                             bench({"1.*: latent keys 4", "1.*: share keys 1"})->logits) == 0);
  }
}

TEST_CASE("a run in which one head has weights of another kind is written and read back, head by head") {
  const auto folder = headscope::testing::scratch_dir("edit-kinds");
  for (const char* name : families) {
    CAPTURE(name);
    Bench bench(name);
    for (const std::string id :
         {"delta", "lightning", "gated", "mamba", "titans", "state-space", "rnn", "entmax", "linear"}) {
      CAPTURE(id);
      const auto trace = bench({"1.2: mechanism " + id, "1.3: drop first 1 and its weight"});
      write_trace(*trace, folder / "run.safetensors");
      const auto back = open_trace_file(folder / "run.safetensors");
      REQUIRE(back->maps.size() == trace->maps.size());
      const bool probabilities = id == "entmax" || id == "linear";
      for (const AttentionMap& map : back->maps) {
        const bool edited = map.layer() == 1 && map.head() >= 2;
        CHECK(map.place().kind == trace->map(map.id()).place().kind);
        CHECK((map.place().kind == MapKind::effective) == (edited && (map.head() == 3 || !probabilities)));
        CHECK(largest_difference(map.to_dense(), trace->map(map.id()).to_dense()) == 0);
        CHECK(std::isnan(evaluate(metric("entropy"),
                                  *back)[static_cast<std::size_t>(map.layer() * bench.dims().heads + map.head())]) ==
              (map.place().kind == MapKind::effective));
      }
    }
  }
}

}  // namespace headscope::edit_combinations_test
