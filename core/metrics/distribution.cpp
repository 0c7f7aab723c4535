#include "core/metrics/distribution.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "core/base/error.h"

namespace headscope {

namespace {

__extension__ using Whole = __int128;
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double largest_value = 1 << 20;
// With squares below 2^97 so many fit into 128 bits; also what a bin can count.
constexpr std::uint64_t most_values = std::uint64_t{1} << 30;

std::string digits(Whole value) {
  if (value == 0) return "0";
  const bool negative = value < 0;
  std::string out;
  for (; value != 0; value /= 10) out += static_cast<char>('0' + (negative ? -(value % 10) : value % 10));
  if (negative) out += '-';
  std::ranges::reverse(out);
  return out;
}

Whole whole(const std::string& text, const std::string& where) {
  const bool negative = text.starts_with('-');
  const std::string_view rest = std::string_view(text).substr(negative ? 1 : 0);
  if (rest.empty() || rest.size() > 38 || rest.find_first_not_of("0123456789") != std::string_view::npos)
    throw Error(where, "a sum of at most 38 digits", "\"" + text.substr(0, 60) + "\"");
  Whole value = 0;
  for (const char c : rest) value = value * 10 + (c - '0');
  return negative ? -value : value;
}

}  // namespace

std::int64_t Distribution::rounded(double value) {
  return std::llround(std::clamp(value, -largest_value, largest_value) * 0x1.0p28);
}

Distribution::Distribution(Range range) : range_(range) {
  assert(range.low < range.high);
}

void Distribution::add(double given) {
  if (std::isnan(given)) return;
  const std::int64_t fixed = rounded(given);
  const double t = (value(fixed) - range_.low) / (range_.high - range_.low) * bins;
  ++histogram_[static_cast<std::size_t>(std::clamp(t, 0.0, static_cast<double>(bins - 1)))];
  smallest_ = count_ == 0 ? fixed : std::min(smallest_, fixed);
  largest_ = count_ == 0 ? fixed : std::max(largest_, fixed);
  ++count_;
  sum_ += fixed;
  squares_ += Whole{fixed} * fixed;
}

void Distribution::merge(const Distribution& other) {
  assert(range_ == other.range_);
  if (other.count_ == 0) return;
  smallest_ = count_ == 0 ? other.smallest_ : std::min(smallest_, other.smallest_);
  largest_ = count_ == 0 ? other.largest_ : std::max(largest_, other.largest_);
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
  const auto n = static_cast<Whole>(count_);
  const Whole centre = sum_ / n;
  const Whole about = squares_ - 2 * centre * sum_ + n * centre * centre;
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
  const double wanted = std::clamp(p, 0.0, 1.0) * static_cast<double>(count_);
  const double width = (range_.high - range_.low) / bins;
  double below = 0;
  for (std::size_t i = 0; i < histogram_.size(); ++i) {
    const auto here = static_cast<double>(histogram_[i]);
    if (here > 0 && below + here >= wanted) {
      const double inside = range_.low + width * (static_cast<double>(i) + (wanted - below) / here);
      return std::clamp(inside, smallest(), largest());
    }
    below += here;
  }
  return largest();
}

Distribution::Stored Distribution::stored() const {
  return {count_, digits(sum_), digits(squares_), smallest_, largest_, histogram_};
}

Distribution Distribution::from(Range range, const Stored& stored, const std::string& where) {
  Distribution out(range);
  out.count_ = stored.count;
  out.sum_ = whole(stored.sum, where);
  out.squares_ = whole(stored.squares, where);
  out.smallest_ = stored.smallest;
  out.largest_ = stored.largest;
  out.histogram_ = stored.histogram;
  std::uint64_t counted = 0;
  for (const std::uint32_t in_bin : stored.histogram) counted += in_bin;
  const auto n = static_cast<Whole>(stored.count);
  const bool sound = stored.count <= most_values && counted == stored.count && stored.smallest <= stored.largest &&
                     out.sum_ >= n * stored.smallest && out.sum_ <= n * stored.largest && out.squares_ >= 0 &&
                     std::abs(value(stored.smallest)) <= largest_value &&
                     std::abs(value(stored.largest)) <= largest_value;
  if (!sound) throw Error(where, "count, sums and bins of the same values", "parts that contradict one another");
  return out;
}

}  // namespace headscope
