#include "core/metrics/distribution.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <iterator>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/special_values.h"

namespace headscope {

namespace {

__extension__ using Exact = __int128;
constexpr double largest_value = 1 << 20;
// With squares below 2^97 so many fit into 128 bits; also what a bin can count.
constexpr std::uint64_t most_values = std::uint64_t{1} << 30;

std::string digits(Exact value) {
  if (value == 0) return "0";
  const bool negative = value < 0;
  std::string out;
  for (; value != 0; value /= 10) out += static_cast<char>('0' + (negative ? -(value % 10) : value % 10));
  if (negative) out += '-';
  std::ranges::reverse(out);
  return out;
}

Exact whole(const std::string& text, const std::string& where) {
  const bool negative = text.starts_with('-');
  const std::string_view rest = std::string_view(text).substr(negative ? 1 : 0);
  if (rest.empty() || rest.size() > 38 || rest.find_first_not_of("0123456789") != std::string_view::npos)
    throw Error(where, "a sum of at most 38 digits", "\"" + text.substr(0, 60) + "\"");
  Exact value = 0;
  for (const char c : rest) value = value * 10 + (c - '0');
  return negative ? -value : value;
}

}  // namespace

std::int64_t Distribution::rounded(double value) {
  return std::llround(std::clamp(value, -largest_value, largest_value) * 0x1.0p28);
}

int Distribution::Range::bin(double value) const {
  const double t = (value - low) / (high - low);
  if (!fine) return static_cast<int>(std::clamp(t * even_bins, 0.0, static_cast<double>(even_bins - 1)));
  // Octave k begins at u = 2^k − 1 of 2^octaves − 1.
  const double u = std::clamp(t, 0.0, 1.0) * ((1 << octaves) - 1) + 1;
  const int k = std::min(std::ilogb(u), octaves - 1);
  return std::min(k * octave_bins + static_cast<int>((std::ldexp(u, -k) - 1) * octave_bins), bins() - 1);
}

double Distribution::Range::edge(int bin) const {
  if (bin >= bins()) return high;
  if (!fine) return low + (high - low) / even_bins * bin;
  const double u = std::ldexp(1 + static_cast<double>(bin % octave_bins) / octave_bins, bin / octave_bins) - 1;
  return low + (high - low) * u / ((1 << octaves) - 1);
}

Distribution::Distribution(Range range) : range_(range), histogram_(static_cast<std::size_t>(range.bins())) {
  assert(range.low < range.high);
}

void Distribution::add(double given) {
  if (std::isnan(given)) return;
  const std::int64_t fixed = rounded(given);
  ++nth(histogram_, range_.bin(value(fixed)));
  smallest_ = count_ == 0 ? fixed : std::min(smallest_, fixed);
  largest_ = count_ == 0 ? fixed : std::max(largest_, fixed);
  if (exact() && count_ < most_exact)
    values_.insert(std::ranges::upper_bound(values_, fixed), fixed);
  else
    values_.clear();
  ++count_;
  sum_ += fixed;
  squares_ += Exact{fixed} * fixed;
}

void Distribution::merge(const Distribution& other) {
  assert(range_ == other.range_);
  if (other.count_ == 0) return;
  smallest_ = count_ == 0 ? other.smallest_ : std::min(smallest_, other.smallest_);
  largest_ = count_ == 0 ? other.largest_ : std::max(largest_, other.largest_);
  std::vector<std::int64_t> both;
  if (exact() && other.exact() && count_ + other.count_ <= most_exact)
    std::ranges::merge(values_, other.values_, std::back_inserter(both));
  values_ = std::move(both);
  count_ += other.count_;
  sum_ += other.sum_;
  squares_ += other.squares_;
  for (std::size_t i = 0; i < histogram_.size(); ++i) histogram_[i] += other.histogram_[i];
}

double Distribution::mean() const {
  return count_ > 0 ? static_cast<double>(sum_) / static_cast<double>(count_) * 0x1.0p-28 : nan;
}

double Distribution::spread() const {
  if (count_ == 0) return nan;
  // Σ (x − c)² about a whole number c next to the mean, exactly; then the rest of the way to the mean.
  const auto n = static_cast<Exact>(count_);
  const Exact centre = sum_ / n;
  const Exact about = squares_ - 2 * centre * sum_ + n * centre * centre;
  const double off = static_cast<double>(sum_ - centre * n) / static_cast<double>(n);
  const double variance = static_cast<double>(about) / static_cast<double>(n) - off * off;
  return std::sqrt(std::max(variance, 0.0)) * 0x1.0p-28;
}

double Distribution::smallest() const {
  return count_ > 0 ? value(smallest_) : nan;
}
double Distribution::largest() const {
  return count_ > 0 ? value(largest_) : nan;
}

double Distribution::quantile(double p) const {
  if (count_ == 0) return nan;
  p = std::clamp(p, 0.0, 1.0);
  if (exact()) {
    const double at = p * static_cast<double>(count_ - 1);
    const auto below = static_cast<std::size_t>(at), above = std::min(below + 1, values_.size() - 1);
    const double a = value(values_[below]), b = value(values_[above]);
    return a + (b - a) * (at - static_cast<double>(below));
  }
  const double wanted = p * static_cast<double>(count_);
  double below = 0;
  for (std::size_t i = 0; i < histogram_.size(); ++i) {
    const auto here = static_cast<double>(histogram_[i]);
    if (here > 0 && below + here >= wanted) {
      const double edge = range_.edge(static_cast<int>(i)), width = range_.edge(static_cast<int>(i) + 1) - edge;
      const double inside = edge + width * (wanted - below) / here;
      // So many decimals that the last one is no finer than a tenth of the bin.
      const double digits = std::pow(10.0, std::max(std::ceil(-std::log10(width)), 0.0));
      return std::clamp(std::round(inside * digits) / digits, smallest(), largest());
    }
    below += here;
  }
  return largest();
}

Distribution::Bars Distribution::bars() const {
  if (!range_.fine || count_ == 0) return {histogram_, range_.low, range_.high};
  // As wide as the bins of the octave in which the largest value lies: narrower ones lie whole inside such bars.
  const int last = range_.bin(largest()) / octave_bins, whole = (1 << octaves) - 1;
  const auto bar_of = [&](int bin) {
    const int k = bin / octave_bins, f = bin % octave_bins;  // begins at u = 2^k (1 + f/128) − 1, in bars of 2^last/128
    return ((((octave_bins + f) << k) - octave_bins) >> last);
  };
  Bars out{std::vector<std::uint32_t>(static_cast<std::size_t>(bar_of((last + 1) * octave_bins - 1)) + 1), range_.low,
           0};
  for (int bin = 0; bin < (last + 1) * octave_bins; ++bin) nth(out.counts, bar_of(bin)) += nth(histogram_, bin);
  out.high = range_.low + (range_.high - range_.low) / whole *
                              std::ldexp(static_cast<double>(out.counts.size()), last) / octave_bins;
  return out;
}

Distribution::Stored Distribution::stored() const {
  return {count_, digits(sum_), digits(squares_), smallest_, largest_, histogram_, values_};
}

Distribution Distribution::from(Range range, const Stored& stored, const std::string& where) {
  Distribution out(range);
  out.count_ = stored.count;
  out.sum_ = whole(stored.sum, where);
  out.squares_ = whole(stored.squares, where);
  out.smallest_ = stored.smallest;
  out.largest_ = stored.largest;
  out.histogram_ = stored.histogram;
  out.values_ = stored.values;
  std::uint64_t counted = 0;
  for (const std::uint32_t in_bin : stored.histogram) counted += in_bin;
  const auto n = static_cast<Exact>(stored.count);
  const bool values_fit =
      stored.values.empty() ||
      (stored.values.size() == stored.count && stored.count <= most_exact && std::ranges::is_sorted(stored.values) &&
       stored.values.front() == stored.smallest && stored.values.back() == stored.largest);
  const bool sound = stored.histogram.size() == static_cast<std::size_t>(range.bins()) && values_fit &&
                     stored.count <= most_values && counted == stored.count && stored.smallest <= stored.largest &&
                     out.sum_ >= n * stored.smallest && out.sum_ <= n * stored.largest && out.squares_ >= 0 &&
                     std::abs(value(stored.smallest)) <= largest_value &&
                     std::abs(value(stored.largest)) <= largest_value;
  if (!sound) throw Error(where, "count, sums and bins of the same values", "parts that contradict one another");
  return out;
}

}  // namespace headscope
