// Ring attention over several texts packed into one row: each text is attended to by itself, whatever block its tokens
// lie in; what is never computed and how the work lies, counted by hand.

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

#include "core/attention/mechanism_ticks.h"
#include "core/base/nth.h"
#include "tests/attention/mechanisms/input.h"

namespace headscope::packed_ring_test {

using testing::gap;
using testing::Matrix;
using testing::matrix_of;
using testing::number_in;
using testing::random_head;
using testing::run;
using testing::step_of;

namespace {

const MechanismFact& fact_of(const MechanismResult& r, const std::string& name) {
  const auto found = std::ranges::find(r.facts, name, &MechanismFact::name);
  REQUIRE_MESSAGE(found != r.facts.end(), name);
  return *found;
}

/// Tokens [begin, end) of the head, as a text of their own.
MechanismInput alone(const MechanismInput& in, Index begin, Index end) {
  MechanismInput out = in;
  out.q = in.q.slice(0, begin, end), out.k = in.k.slice(0, begin, end), out.v = in.v.slice(0, begin, end);
  return out;
}

/// Softmax attention of each text by itself, in double.
Matrix text_by_text(const MechanismInput& in, const std::vector<Index>& ends, bool causal) {
  const Matrix q = matrix_of(in.q), k = matrix_of(in.k), v = matrix_of(in.v);
  Matrix out;
  for (std::size_t t = 1; t < ends.size(); ++t)
    for (Index i = ends[t - 1]; i < ends[t]; ++i) {
      std::vector<double> row(v[0].size(), 0);
      double sum = 0;
      for (Index j = ends[t - 1]; j < (causal ? i + 1 : ends[t]); ++j) {
        double score = 0;
        for (std::size_t c = 0; c < q[0].size(); ++c) score += nth(q, i)[c] * nth(k, j)[c];
        const double weight = std::exp(score * static_cast<double>(in.scale));
        sum += weight;
        for (std::size_t c = 0; c < row.size(); ++c) row[c] += weight * nth(v, j)[c];
      }
      for (double& each : row) each /= sum;
      out.push_back(row);
    }
  return out;
}

}  // namespace

TEST_CASE("packed texts: a ring gives softmax attention of each text by itself, for any number of workers") {
  for (const char* mask : {"causal", "full"})
    for (const int workers : {1, 2, 3, 5, 8})
      for (const int texts : {1, 2, 3, 4, 7}) {
        CAPTURE(mask);
        CAPTURE(workers);
        CAPTURE(texts);
        const MechanismInput in = random_head(29, 29, 6, 5, mask);
        const MechanismResult r =
            run("ring workers=" + std::to_string(workers) + " texts=" + std::to_string(texts), in, Detail::steps);
        const std::vector<Index>& ends = r.ring->texts;
        REQUIRE(static_cast<int>(ends.size()) == texts + 1);
        CHECK(ends.front() == 0);
        CHECK(ends.back() == 29);
        CHECK(gap(r.output, text_by_text(in, ends, std::string(mask) == "causal")) < 1e-5);
        // Nothing of one text weighs in another, and rows sum to 1.
        const auto text_of = [&](Index at) { return std::ranges::upper_bound(ends, at) - ends.begin(); };
        for (Index i = 0; i < 29; ++i) {
          double sum = 0;
          for (Index j = 0; j < 29; ++j) {
            if (text_of(i) != text_of(j)) CHECK(r.weights.at(i, j) == 0);
            sum += static_cast<double>(r.weights.at(i, j));
          }
          CHECK(sum == doctest::Approx(1).epsilon(1e-5));
        }
        // The same numbers as each text run alone.
        for (std::size_t t = 1; t < ends.size(); ++t)
          CHECK(gap(r.output.slice(0, ends[t - 1], ends[t]), run("softmax", alone(in, ends[t - 1], ends[t])).output) <
                1e-5);
      }
}

TEST_CASE("the schedule it tells, replayed in double, is plain attention of each text to 1e-12") {
  const MechanismInput in = random_head(23, 23, 4, 3, "causal", 5);
  const Matrix q = matrix_of(in.q), k = matrix_of(in.k), v = matrix_of(in.v);
  constexpr int workers = 4;
  std::vector<double> most(23, -std::numeric_limits<double>::infinity()), sum(23, 0);
  Matrix mixed(23, std::vector<double>(3, 0));
  std::vector<Index> ends;
  for (int rounds = 1; rounds <= workers; ++rounds) {
    const MechanismResult r = run("ring workers=4 texts=3 rounds=" + std::to_string(rounds), in, Detail::steps);
    ends = r.ring->texts;
    const auto text_of = [&](Index at) { return std::ranges::upper_bound(ends, at) - ends.begin(); };
    for (const RingRound::Worker& worker : r.ring->workers)
      for (Index i = worker.queries.begin; i < worker.queries.end; ++i)
        for (Index j = worker.keys.begin; j < std::min(worker.keys.end, i + 1); ++j) {
          if (text_of(i) != text_of(j)) continue;
          double score = 0;
          for (std::size_t c = 0; c < 4; ++c) score += nth(q, i)[c] * nth(k, j)[c];
          score *= static_cast<double>(in.scale);
          const double now = std::max(nth(most, i), score), shrink = std::exp(nth(most, i) - now),
                       weight = std::exp(score - now);
          nth(most, i) = now, nth(sum, i) = nth(sum, i) * shrink + weight;
          for (std::size_t c = 0; c < 3; ++c) nth(mixed, i)[c] = nth(mixed, i)[c] * shrink + weight * nth(v, j)[c];
        }
  }
  const Matrix expected = text_by_text(in, ends, true);
  for (std::size_t i = 0; i < 23; ++i)
    for (std::size_t c = 0; c < 3; ++c) CHECK(std::abs(mixed[i][c] / sum[i] - expected[i][c]) < 1e-12);
}

TEST_CASE("where the texts lie, the cells that are never computed, and the work of each worker, by hand") {
  // 12 tokens as 1 : 2 : 3 are 2, 4 and 6; four workers keep three tokens each.
  const MechanismInput in = random_head(12, 12, 4, 4, "causal");
  const MechanismResult r = run("ring workers=4 texts=3", in, Detail::steps);
  CHECK(r.ring->texts == std::vector<Index>{0, 2, 6, 12});
  CHECK(fact_of(r, "Texts").value == "2, 4, 6 tokens");
  CHECK(fact_of(r, "Texts").provenance == "they begin at (cu_seqlens): 0, 2, 6, 12");
  // Causal cells in all 78; inside the texts 3 + 10 + 21 = 34.
  CHECK(fact_of(r, "Never computed").value == "44 cells");
  // Rows see 1, 2 | 1, 2, 3, 4 | 1, 2, 3, 4, 5, 6 keys: three rows a worker.
  const std::vector<double> cells{1 + 2 + 1, 2 + 3 + 4, 1 + 2 + 3, 4 + 5 + 6};
  for (std::size_t w = 0; w < 4; ++w) CHECK(r.ring->workers[w].cells == cells[w]);
  CHECK(fact_of(r, "Busiest worker").value == "1.76 × the mean");  // 15 ÷ (34 ÷ 4)
  CHECK(fact_of(r, "Busiest worker").provenance == "cells that each worker computes: 4, 9, 6, 15");
  // A ring for each text pads 2, 4 and 6 to 8.
  CHECK(fact_of(r, "A ring for each text").value == "12 tokens of padding");
  // Round by round: worker 1 (tokens 3 to 5, all of the second text) meets its own keys, then those of worker 0, of
  // which token 2 alone is of its text.
  const Tensor& by_round = step_of(r, "cells").value;
  CHECK(by_round.at(1, 0) == 6);
  CHECK(by_round.at(1, 1) == 3);
  CHECK(by_round.at(1, 2) == 0);
  CHECK(by_round.at(2, 1) == 0);  // tokens 6 to 8 begin a text: nothing of the blocks before
  CHECK(by_round.at(3, 1) == 9);
  double idle = 0;
  for (Index w = 0; w < 4; ++w)
    for (Index round = 0; round < 4; ++round) idle += by_round.at(w, round) == 0;
  CHECK(std::abs(number_in(r.facts[0].value) - 100 * idle / 16) <= 0.5);
  // Two rounds done: what is still to come is no work yet.
  const MechanismResult begun = run("ring workers=4 texts=3 rounds=1", in, Detail::steps);
  CHECK(begun.ring->workers[3].cells == 6);
  // A single text of the row: no facts of packing, the work of a causal mask.
  const MechanismResult one = run("ring workers=4", in, Detail::steps);
  CHECK(std::ranges::count(one.facts, "Never computed", &MechanismFact::name) == 0);
  CHECK(fact_of(one, "Busiest worker").provenance == "cells that each worker computes: 6, 15, 24, 33");
}

TEST_CASE("packed texts cost the squares of their lengths; more texts than tokens are as many as tokens") {
  const MechanismChoice choice = parse_mechanism("ring workers=4 texts=3");
  CHECK(choice.mechanism->cost({12, 4, 6}, choice.values).multiply_adds == (4 + 16 + 36) * (4 + 6));
  const MechanismInput in = random_head(3, 3, 4, 4, "causal");
  const MechanismResult r = run("ring workers=2 texts=8", in, Detail::steps);
  CHECK(r.ring->texts == std::vector<Index>{0, 1, 2, 3});
  CHECK(gap(r.output, matrix_of(in.v)) < 1e-6);  // each token sees itself
  // Queries of another row have no texts in common with the keys.
  const MechanismInput across = random_head(4, 6, 4, 4, "full");
  CHECK(run("ring workers=2 texts=3", across, Detail::steps).ring->texts == std::vector<Index>{0, 6});
  CHECK(gap(run("ring workers=2 texts=3", across).output, run("softmax", across).output) < 1e-5);
}

}  // namespace headscope::packed_ring_test
