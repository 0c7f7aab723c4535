#pragma once
// How one number is spread over many texts, in constant memory, and so that parts counted apart and merged are the same
// bits as one count of everything: values are rounded once to multiples of 2⁻²⁸ and all sums are whole numbers, whose
// order does not matter. Mean and spread are exact for the rounded values (an error below 2·10⁻⁹). Quantiles are those
// of the values themselves while there are few; of more they come from a histogram of fixed bins, are good to one bin,
// and have no more digits than that.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace headscope {

class Distribution {
 public:
  static constexpr std::size_t most_exact = 256;  ///< values that are kept one by one
  static constexpr int even_bins = 512, octaves = 8, octave_bins = 128;
  /// What the bins share out; values outside are counted in the first and the last. Even: 512 of one width. Fine: 8
  /// octaves of 128, each twice as wide as the one before, so that small values are told apart as well as large ones
  /// (the first bin is 1 / 32,640 of the range, the last 1 / 255, about 1 % of the value).
  struct Range {
    double low = 0, high = 1;
    bool fine = false;
    bool operator==(const Range&) const = default;
    int bins() const { return fine ? octaves * octave_bins : even_bins; }
    int bin(double value) const;
    double edge(int bin) const;  ///< lower one; edge(bins()) is `high`
  };
  /// The rounded value: a whole number of 2⁻²⁸. Finite values beyond ±2²⁰ are cut there.
  static std::int64_t rounded(double value);
  static double value(std::int64_t rounded) { return static_cast<double>(rounded) * 0x1.0p-28; }

  Distribution() : Distribution(Range{}) {}  ///< values from 0 to 1
  /// REQUIRES low < high.
  explicit Distribution(Range range);

  /// NaN is no value and is left out.
  void add(double value);
  /// REQUIRES the same range.
  void merge(const Distribution& other);

  const Range& range() const { return range_; }
  std::uint64_t count() const { return count_; }
  /// All NaN while nothing was counted. `spread` is the standard deviation over what was counted.
  double mean() const;
  double spread() const;
  double smallest() const;
  double largest() const;
  /// The value below which the share `p` in [0, 1] of all lies. exact(): linear between neighbours in order (as NumPy
  /// does it; the median of an even count is the mean of the two middle ones). Else linear inside its bin, rounded to
  /// the decimals that the bin's width warrants, never beyond smallest and largest.
  double quantile(double p) const;
  bool exact() const { return values_.size() == count_; }
  std::span<const std::uint32_t> histogram() const { return histogram_; }
  /// The histogram in bars of one width, for pictures.
  struct Bars {
    std::vector<std::uint32_t> counts;
    double low = 0, high = 1;
  };
  Bars bars() const;

  bool operator==(const Distribution&) const = default;

  /// What a file holds: sums as decimal digits, since they do not fit into JSON's numbers.
  struct Stored {
    std::uint64_t count = 0;
    std::string sum = "0", squares = "0";
    std::int64_t smallest = 0, largest = 0;
    std::vector<std::uint32_t> histogram;
    std::vector<std::int64_t> values;  ///< ascending; empty when there are too many
  };
  Stored stored() const;
  /// Throws Error at `where` when the parts contradict one another.
  static Distribution from(Range range, const Stored& stored, const std::string& where);

 private:
  __extension__ using Whole = __int128;
  Range range_;
  std::uint64_t count_ = 0;
  Whole sum_ = 0, squares_ = 0;
  std::int64_t smallest_ = 0, largest_ = 0;
  std::vector<std::uint32_t> histogram_;
  std::vector<std::int64_t> values_;  // ascending; all of them, or none
};

}  // namespace headscope
