#include "core/metrics/repeated_tokens.h"

#include <algorithm>
#include <limits>
#include <unordered_set>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/metrics/mass.h"
#include "core/metrics/metric.h"

namespace headscope {

namespace {

double mean_after_first_block(const AttentionMap& map, int period, int first, int distance) {
  if (!has_probabilities(map)) return std::numeric_limits<double>::quiet_NaN();
  const Index offset = map.place().offset;
  double sum = 0;
  Index rows = 0;
  for (Index query = std::max<Index>(0, first + period - offset); query < map.n_query(); ++query) {
    const Index key = offset + query - distance;
    if (key < 0 || key >= map.n_key()) continue;
    sum += static_cast<double>(map.weight(query, key));
    ++rows;
  }
  return rows > 0 ? sum / static_cast<double>(rows) : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

std::vector<std::int32_t> whole_alphabet(int vocab, std::optional<std::int32_t> bos) {
  std::vector<std::int32_t> ids;
  for (std::int32_t id = 0; id < vocab; ++id)
    if (id != bos) ids.push_back(id);
  if (ids.empty())
    throw Error("repeated tokens: vocabulary", "at least one token besides the BOS", std::to_string(vocab) + " in all");
  return ids;
}

std::vector<std::int32_t> repeated_tokens(std::span<const std::int32_t> alphabet, int period, int repeats,
                                          std::optional<std::int32_t> bos, std::uint64_t seed) {
  if (alphabet.empty()) throw Error("repeated tokens: alphabet", "at least one token besides the BOS", "none");
  if (period < 1) throw Error("repeated tokens: period", "at least 1", std::to_string(period));
  if (repeats < 2) throw Error("repeated tokens: repeats", "at least 2", std::to_string(repeats));

  Random random(seed);
  std::vector<std::int32_t> block;
  std::unordered_set<std::int32_t> used;
  while (static_cast<int>(block.size()) < period) {
    const std::int32_t id = alphabet[random.below(alphabet.size())];
    // Once every token has been used, they may come again.
    if (used.size() == alphabet.size()) used.clear();
    if (used.insert(id).second) block.push_back(id);
  }
  std::vector<std::int32_t> ids;
  if (bos) ids.push_back(*bos);
  for (int repeat = 0; repeat < repeats; ++repeat) ids.insert(ids.end(), block.begin(), block.end());
  return ids;
}

double induction_block(const AttentionMap& map, int period, int first) {
  return mean_after_first_block(map, period, first, period - 1);
}

double duplicate_block(const AttentionMap& map, int period, int first) {
  return mean_after_first_block(map, period, first, period);
}

double induction_diagonal(const AttentionMap& map, int period) {
  return has_probabilities(map) ? weight_at_distance(map, period - 1) : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace headscope
