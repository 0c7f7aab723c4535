#pragma once
// How well an alignment of two sentences' words agrees with a known one: the alignment error rate (Och & Ney, A
// Systematic Comparison of Various Statistical Alignment Models, 2003), AER = 1 − (|A ∩ S| + |A ∩ P|) ÷ (|A| + |S|), of
// found links A, sure ones S and possible ones P, of which the sure are a part. 0 is best.

#include <cstdint>
#include <span>
#include <vector>

#include "core/trace/attention_map.h"

namespace headscope {

struct WordLink {
  int source = 0, target = 0;  ///< numbers of words
  bool sure = true;
  bool operator==(const WordLink&) const = default;
};

/// Sums over sentences. Numbers, not integers: those of chance are expected ones.
struct AlignmentCounts {
  double found = 0, sure = 0, found_sure = 0, found_possible = 0;
  double error_rate() const { return 1 - (found_sure + found_possible) / (found + sure); }  ///< NaN of nothing at all
  AlignmentCounts& operator+=(const AlignmentCounts& other);
};

/// `truth`: sure links and those that are possible only. `found`: their `sure` does not matter.
AlignmentCounts count_links(std::span<const WordLink> found, std::span<const WordLink> truth);
/// What is to be expected when every target word is linked to one of `sources` words, each as likely.
AlignmentCounts chance_links(int targets, int sources, std::span<const WordLink> truth);

/// Each target word linked to the source word that it gives most of its weight, from a map (target, source) of
/// cross-attention: the mean over the word's rows of the sum over a source word's tokens. Words as lists of rows and of
/// keys.
std::vector<WordLink> strongest_links(const AttentionMap& map, std::span<const std::vector<Index>> target_rows,
                                      std::span<const std::vector<Index>> source_keys);

}  // namespace headscope
