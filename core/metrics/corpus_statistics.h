#pragma once
// Every metric of every head over many passages of text: how it is distributed, and which passages show it best. Memory
// does not grow with the number of passages, and merging is exact: statistics of shards, merged in any order, equal
// those of one run bit for bit (sums are whole numbers, examples and samples are chosen by value and place alone).

#include <cstdint>
#include <span>
#include <vector>

#include "core/metrics/distribution.h"
#include "core/metrics/head_class.h"
#include "core/metrics/metric.h"

namespace headscope {

class ThreadPool;

/// A passage of a corpus: what one pass of the model read.
struct PassagePlace {
  std::int64_t piece = 0;   ///< number of the stretch of text it was cut from; with `window` the order of passages
  std::int32_t window = 0;  ///< number of the passage in that stretch
  std::int32_t file = 0;    ///< of the corpus; 0 where there are no files
  std::int64_t begin = 0, end = 0;  ///< bytes of that file (of that story)
  auto operator<=>(const PassagePlace&) const = default;
};

/// A passage that shows a head's metric, and where in it.
struct CorpusExample {
  std::int64_t value = 0;  ///< Distribution::rounded
  PassagePlace place;
  std::int32_t query = -1;  ///< the row for which the metric, taken of that row alone, is most extreme; −1 = none is
  bool operator==(const CorpusExample&) const = default;
};

class CorpusStatistics {
 public:
  static constexpr std::size_t examples = 6, sampled = 48;

  CorpusStatistics() = default;
  /// `heads`: the most of any layer; those that a layer lacks stay without values. `window`: most tokens of a passage,
  /// which bounds entropies and distances.
  CorpusStatistics(int layers, int heads, int window);

  int layers() const { return layers_; }
  int heads() const { return heads_; }
  int window() const { return window_; }
  std::uint64_t passages() const { return passages_; }
  std::uint64_t tokens() const { return tokens_; }

  /// REQUIRES a trace with the maps of all heads, and a place that was not added before. Heads are measured side by
  /// side; the result does not depend on the number of threads.
  void add(const Trace& trace, const PassagePlace& place, ThreadPool& pool);
  /// REQUIRES statistics of the same shape, of other passages.
  void merge(const CorpusStatistics& other);
  bool same_shape(const CorpusStatistics& other) const {
    return layers_ == other.layers_ && heads_ == other.heads_ && window_ == other.window_ &&
           fine_tokens() == other.fine_tokens();
  }
  /// Whether metrics in tokens are counted in fine bins. Files of older versions have even ones.
  bool fine_tokens() const;

  /// Whether there is a head, as far as passages tell.
  bool has(int head) const;
  /// `head` counts layer-major, `metric` as in metrics().
  const Distribution& of(int head, std::size_t metric) const { return cell(head, metric).values; }
  /// What the head that spreads its weight evenly scores on the same passages.
  const Distribution& chance(std::size_t metric) const { return chance_[metric]; }
  /// Largest value first, of equals the earlier passage; at most `examples`.
  std::span<const CorpusExample> highest(int head, std::size_t metric) const { return cell(head, metric).highest; }
  std::span<const CorpusExample> lowest(int head, std::size_t metric) const { return cell(head, metric).lowest; }
  /// Passages of a random sample of the corpus (the same whatever the shards) whose value is nearest to the median.
  std::vector<CorpusExample> typical(int head, std::size_t metric) const;
  /// The class that the head's means meet with the largest margin, chance being the mean of chance, of those for which
  /// its rows of all passages are evidence enough (RowEvidence, as for a single text); nullptr = none. Rules that ask
  /// what distance explains are left out: that is told of one text.
  const ClassRule* class_of(int head, const std::vector<ClassRule>& rules) const;

  bool operator==(const CorpusStatistics&) const = default;

  // ---- what a file holds
  /// RowEvidence as whole numbers; sums in multiples of 2⁻²⁰.
  struct RowSums {
    std::int64_t rows = 0, score = 0, chance = 0, log_candidates = 0;
    bool operator==(const RowSums&) const = default;
    RowSums& operator+=(const RowSums& other);
    static RowSums of(const RowEvidence& evidence);
    RowEvidence evidence() const;
  };
  struct Cell {
    Distribution values;
    std::vector<CorpusExample> highest, lowest;
    RowSums rows;
    bool operator==(const Cell&) const = default;
  };
  struct Sampled {
    std::uint64_t hash = 0;  ///< the sample is the passages with the smallest
    PassagePlace place;
    std::vector<std::int64_t> values;  ///< [head × metrics + metric], no_value for NaN
    bool operator==(const Sampled&) const = default;
  };
  static constexpr std::int64_t no_value = INT64_MIN;
  /// What the bins of a metric share out, for passages of at most `window` tokens.
  static Distribution::Range range_of(const Metric& metric, int window, bool fine_tokens = true);
  struct Parts {
    std::uint64_t passages = 0, tokens = 0;
    std::vector<Cell> cells;  ///< [head × metrics + metric]
    std::vector<Distribution> chance;
    std::vector<Sampled> sample;
    bool operator==(const Parts&) const = default;
  };
  Parts parts() const { return {passages_, tokens_, cells_, chance_, sample_}; }
  /// REQUIRES parts of that shape.
  static CorpusStatistics from(int layers, int heads, int window, Parts parts);

 private:
  const Cell& cell(int head, std::size_t metric) const {
    return cells_[static_cast<std::size_t>(head) * metrics().size() + metric];
  }
  void sample(const PassagePlace& place, std::vector<std::int64_t> values);

  int layers_ = 0, heads_ = 0, window_ = 0;
  std::uint64_t passages_ = 0, tokens_ = 0;
  std::vector<Cell> cells_;
  std::vector<Distribution> chance_;
  std::vector<Sampled> sample_;  // ascending by hash, then place
};

}  // namespace headscope
