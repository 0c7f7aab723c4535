#pragma once
// Which word of a source a word of a target stands for, as cross-attention tells it (Bahdanau, Cho & Bengio, Neural
// Machine Translation by Jointly Learning to Align and Translate, 2015), and how far that is from what is known:
//   AER = 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|),  precision |A ∩ P| / |A|,  recall |A ∩ S| / |S|
// of the pairs A that were found, those S that are sure and those P ⊇ S that are possible (Och & Ney, A Systematic
// Comparison of Various Statistical Alignment Models, 2003).

#include <compare>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/trace/attention_map.h"

namespace headscope {

/// Positions of two tokens that stand for each other.
struct AlignedPair {
  int source = 0, target = 0;
  auto operator<=>(const AlignedPair&) const = default;
};
using AlignedPairs = std::set<AlignedPair>;

/// Of every row of a map (target, source) its largest weight (the first of equals), where there is one.
AlignedPairs strongest_pairs(const AttentionMap& map);
/// The same of words: each target word with the source word that it gives most, the mean over its rows of the sum over
/// the other's keys. Words as lists of rows and of keys; pairs are numbers of words.
AlignedPairs strongest_words(const AttentionMap& map, std::span<const std::vector<Index>> target_rows,
                             std::span<const std::vector<Index>> source_keys);
/// All cells of at least that weight.
AlignedPairs pairs_above(const AttentionMap& map, double threshold);

/// What is known: "0-1 2-0 3?1", source-target, `?` where it is possible only.
struct KnownAlignment {
  AlignedPairs sure, possible;  ///< the sure ones are possible, too
};
/// Throws Error at `where` on words of another form, and on positions outside the two texts.
KnownAlignment parse_alignment(std::string_view text, int sources, int targets, const std::string& where);

/// NaN where nothing can be said: of no pairs at all.
struct AlignmentScore {
  double error_rate = 0, precision = 0, recall = 0;
};
AlignmentScore score_alignment(const AlignedPairs& found, const KnownAlignment& known);

/// What a score is made of: |A|, |S|, |A ∩ S|, |A ∩ P|. They add up over sentences, and may be expected numbers.
struct AlignmentCounts {
  double found = 0, sure = 0, found_sure = 0, found_possible = 0;
  AlignmentCounts& operator+=(const AlignmentCounts& other);
  AlignmentScore score() const;
};
AlignmentCounts count_pairs(const AlignedPairs& found, const KnownAlignment& known);
/// Expected when each target position is paired with one of the source's, all as likely.
AlignmentCounts chance_pairs(int sources, int targets, const KnownAlignment& known);

}  // namespace headscope
