// Alignments read off a map, and their error rate, on a few tokens with the sums written out.

#include <doctest/doctest.h>

#include <cmath>

#include "core/base/error.h"
#include "core/metrics/alignment.h"

namespace headscope::alignment_test {

namespace {
AttentionMap map_of(const Tensor& weights) {
  AttentionMap::Place place;
  place.between_texts = true;
  return AttentionMap::dense(place, weights, full_rule(), stats_of_weights(weights, nullptr));
}
}  // namespace

TEST_CASE("the strongest source of every target, and all above a threshold") {
  // Two target tokens, three of the source.
  const std::vector<float> weights{0.2f, 0.5f, 0.3f, 0.4f, 0.4f, 0.2f};
  const AttentionMap map = map_of(Tensor::from({2, 3}, weights));
  CHECK(strongest_pairs(map) == AlignedPairs{{1, 0}, {0, 1}});  // of equals the first
  CHECK(pairs_above(map, 0.4) == AlignedPairs{{1, 0}, {0, 1}, {1, 1}});
  CHECK(pairs_above(map, 0.6).empty());
}

TEST_CASE("the alignment error rate of Och and Ney") {
  const KnownAlignment known = parse_alignment("0-0 1-2 2?1", 3, 3, "truth");
  CHECK(known.sure == AlignedPairs{{0, 0}, {1, 2}});
  CHECK(known.possible.size() == 3);
  // A = {0-0, 2-1, 2-2}: |A ∩ S| = 1, |A ∩ P| = 2, |A| = 3, |S| = 2, so 1 − 3 / 5.
  const AlignmentScore score = score_alignment({{0, 0}, {2, 1}, {2, 2}}, known);
  CHECK(score.error_rate == doctest::Approx(0.4));
  CHECK(score.precision == doctest::Approx(2.0 / 3));
  CHECK(score.recall == doctest::Approx(0.5));
  CHECK(score_alignment(known.sure, known).error_rate == 0);
  CHECK(std::isnan(score_alignment({}, {}).error_rate));
}

TEST_CASE("a known alignment of another form is refused") {
  for (const char* wrong : {"0", "0-", "-1", "0-x", "0-1x", "a-b", "0:1"})
    CHECK_THROWS_WITH_AS(parse_alignment(wrong, 9, 9, "--truth"), doctest::Contains("pairs of positions"), Error);
  CHECK_THROWS_WITH_AS(parse_alignment("3-0", 3, 3, "--truth"), doctest::Contains("below 3"), Error);
}

TEST_CASE("the parts of a score add up over sentences, and what chance gives is their expected number") {
  // Two sure pairs, one possible. Found: a sure one, the possible one, a wrong one.
  const KnownAlignment known{{{0, 0}, {2, 1}}, {{0, 0}, {2, 1}, {0, 1}}};
  const AlignmentCounts counts = count_pairs({{0, 0}, {0, 1}, {1, 2}}, known);
  CHECK(counts.found == 3);
  CHECK(counts.sure == 2);
  CHECK(counts.found_sure == 1);
  CHECK(counts.found_possible == 2);
  CHECK(counts.score().error_rate == doctest::Approx(1 - (1.0 + 2) / (3 + 2)));
  // Of 3 target words, each paired with one of 4 source words: a pair is hit by 1 of 4.
  const AlignmentCounts chance = chance_pairs(4, 3, known);
  CHECK(chance.score().error_rate == doctest::Approx(1 - (2 / 4.0 + 3 / 4.0) / (3 + 2)));
  AlignmentCounts both = counts;
  both += chance;
  CHECK(both.score().error_rate == doctest::Approx(1 - (1.5 + 2.75) / 10));
}

TEST_CASE("each target word goes to the source word with most weight, of all tokens of both") {
  const std::vector<float> weights{0.4f, 0.3f, 0.2f, 0.1f,  //
                                   0.7f, 0.1f, 0.1f, 0.1f,  //
                                   0.1f, 0.5f, 0.4f, 0.0f};
  const Tensor rows_of = Tensor::from({3, 4}, weights);
  const AttentionMap map = AttentionMap::dense({}, rows_of, nullptr, stats_of_weights(rows_of, nullptr));
  // Target word 0: row 0; word 1: rows 1 and 2. Source word 0: key 0; word 1: keys 1 and 2. So 0.4 against 0.5, and 0.8
  // against 1.1. Key 3 is of no word.
  const std::vector<std::vector<Index>> rows{{0}, {1, 2}}, keys{{0}, {1, 2}};
  CHECK(strongest_words(map, rows, keys) == AlignedPairs{{1, 0}, {1, 1}});
  const std::vector<std::vector<Index>> one_row{{1}};
  CHECK(strongest_words(map, one_row, keys) == AlignedPairs{{0, 0}});
}

TEST_CASE("the last position of either side is one, the next is none, and which word was wrong is said") {
  const KnownAlignment known = parse_alignment(" 2-1\t1?0\n", 3, 2, "truth");
  CHECK(known.possible == AlignedPairs{{2, 1}, {1, 0}});
  CHECK(known.sure == AlignedPairs{{2, 1}});
  CHECK(parse_alignment("", 3, 2, "truth").possible.empty());
  for (const char* wrong : {"3-0", "0-2", "2-2", "0--1"}) {
    CAPTURE(wrong);
    CHECK_THROWS_WITH_AS(
        parse_alignment(std::string("0-0 ") + wrong, 3, 2, "truth"),
        doctest::Contains(
            (std::string("a source position below 3 and a target position below 2, found \"") + wrong + "\"").c_str()),
        Error);
  }
}

}  // namespace headscope::alignment_test
