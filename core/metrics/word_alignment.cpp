#include "core/metrics/word_alignment.h"

#include <algorithm>

namespace headscope {

AlignmentCounts& AlignmentCounts::operator+=(const AlignmentCounts& other) {
  found += other.found;
  sure += other.sure;
  found_sure += other.found_sure;
  found_possible += other.found_possible;
  return *this;
}

AlignmentCounts count_links(std::span<const WordLink> found, std::span<const WordLink> truth) {
  AlignmentCounts out;
  out.found = static_cast<double>(found.size());
  out.sure = static_cast<double>(std::ranges::count(truth, true, &WordLink::sure));
  for (const WordLink& link : found) {
    const auto same = std::ranges::find_if(
        truth, [&](const WordLink& known) { return known.source == link.source && known.target == link.target; });
    if (same == truth.end()) continue;
    ++out.found_possible;
    if (same->sure) ++out.found_sure;
  }
  return out;
}

AlignmentCounts chance_links(int targets, int sources, std::span<const WordLink> truth) {
  const auto sure = static_cast<double>(std::ranges::count(truth, true, &WordLink::sure));
  return {static_cast<double>(targets), sure, sure / sources, static_cast<double>(truth.size()) / sources};
}

std::vector<WordLink> strongest_links(const AttentionMap& map, std::span<const std::vector<Index>> target_rows,
                                      std::span<const std::vector<Index>> source_keys) {
  std::vector<WordLink> links;
  for (std::size_t target = 0; target < target_rows.size(); ++target) {
    double most = -1;
    std::size_t best = 0;
    for (std::size_t source = 0; source < source_keys.size(); ++source) {
      double weight = 0;  // every word's sum is over the same rows
      for (const Index row : target_rows[target])
        for (const Index key : source_keys[source]) weight += static_cast<double>(map.weight(row, key));
      if (weight > most) most = weight, best = source;
    }
    links.push_back({static_cast<int>(best), static_cast<int>(target), true});
  }
  return links;
}

}  // namespace headscope
