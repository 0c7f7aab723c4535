#pragma once
// How one number is spread over many texts, in constant memory, and so that parts counted apart and merged are the same
// bits as one count of everything: values are rounded once to multiples of 2⁻²⁸ and all sums are whole numbers, whose
// order does not matter. Mean and spread are exact for the rounded values (an error below 2·10⁻⁹); quantiles come from
// a histogram of fixed bins and are good to one bin.

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace headscope {

class Distribution {
 public:
  static constexpr int bins = 512;
  /// What the bins share out evenly; values outside are counted in the first and the last.
  struct Range {
    double low = 0, high = 1;
    bool operator==(const Range&) const = default;
  };
  /// The rounded value: a whole number of 2⁻²⁸. Finite values beyond ±2²⁰ are cut there.
  static std::int64_t rounded(double value);
  static double value(std::int64_t rounded) { return static_cast<double>(rounded) * 0x1.0p-28; }

  Distribution() = default;  ///< values from 0 to 1
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
  /// The value below which the share `p` in [0, 1] of all lies: linear inside its bin, never beyond smallest and
  /// largest.
  double quantile(double p) const;
  std::span<const std::uint32_t> histogram() const { return histogram_; }

  bool operator==(const Distribution&) const = default;

  /// What a file holds: sums as decimal digits, since they do not fit into JSON's numbers.
  struct Stored {
    std::uint64_t count = 0;
    std::string sum = "0", squares = "0";
    std::int64_t smallest = 0, largest = 0;
    std::array<std::uint32_t, bins> histogram{};
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
  std::array<std::uint32_t, bins> histogram_{};
};

}  // namespace headscope
