#include "core/metrics/distribution.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/base/error.h"
#include "core/base/random.h"

namespace headscope::distribution_test {

TEST_CASE("a distribution says mean, spread and quantiles of its values") {
  Distribution values({0, 8});
  for (const double v : {2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0}) values.add(v);
  values.add(std::numeric_limits<double>::quiet_NaN());
  CHECK(values.count() == 8);
  CHECK(values.mean() == 5);    // 40 / 8
  CHECK(values.spread() == 2);  // √(32 / 8)
  CHECK(values.smallest() == 2);
  CHECK(values.largest() == 9);
  CHECK(values.histogram()[511] == 1);  // 9 lies beyond the range: the last bin
  CHECK(values.quantile(0) == 2);
  CHECK(values.quantile(1) == 9);
  CHECK(std::isnan(Distribution().mean()));
  CHECK(std::isnan(Distribution().spread()));
  CHECK(std::isnan(Distribution().quantile(0.5)));
}

TEST_CASE("quantiles of few values are those of the values, whatever the bins") {
  Distribution values({0, 1024, true}), even({0, 1024});
  for (const double v : {1.25, 0.5, 3.0, 0.75, 900.125}) {
    values.add(v);
    even.add(v);
  }
  for (const Distribution& each : {values, even}) {
    CHECK(each.exact());
    CHECK(each.quantile(0.5) == 1.25);
    CHECK(each.quantile(0.1) == doctest::Approx(0.6));  // 0.5 + 0.4 · (0.75 − 0.5), as numpy.quantile
    CHECK(each.quantile(0.9) == doctest::Approx(541.275));
  }
  values.add(2.0);
  CHECK(values.quantile(0.5) == 1.625);  // of an even count the mean of the two middle ones
  for (int i = 6; i < 256; ++i) values.add(7);
  CHECK(values.exact());
  values.add(7);
  CHECK_FALSE(values.exact());
}

TEST_CASE("quantiles of many are good to one bin, and have the digits of it") {
  Random random(7);
  Distribution values({0, 1});
  std::vector<double> all;
  for (int i = 0; i < 5000; ++i) {
    const double v = std::pow(random.uniform(), 3);
    all.push_back(v);
    values.add(v);
  }
  std::ranges::sort(all);
  for (int decile = 1; decile < 10; ++decile) {
    const double q = values.quantile(decile / 10.0);
    CHECK(std::abs(q - all[static_cast<std::size_t>(decile) * 500]) < 1.0 / 512 + 2e-3);
    CHECK(1000 * q == doctest::Approx(std::round(1000 * q)).epsilon(1e-12));  // 1/512: three decimals
  }
}

TEST_CASE("fine bins tell small values apart as well as large ones") {
  const Distribution::Range range{0, 1024, true};
  REQUIRE(range.bins() == 1024);
  CHECK(range.edge(0) == 0);
  CHECK(range.edge(1024) == 1024);
  CHECK(range.edge(1) == doctest::Approx(1024.0 / 255 / 128));  // 0.031 tokens
  CHECK(range.bin(-3) == 0);
  CHECK(range.bin(1024) == 1023);
  CHECK(range.bin(1e9) == 1023);
  for (int bin = 0; bin < 1024; ++bin) {
    const double low = range.edge(bin), high = range.edge(bin + 1);
    CHECK(range.bin(low + 0.25 * (high - low)) == bin);
    CHECK(range.bin(low + 0.75 * (high - low)) == bin);
    CHECK((high - low) <= 0.032 + 0.0081 * low);
  }
  // Distances of about one token in a context of 1,024, more than are kept one by one.
  Random random(3);
  Distribution near(range), far(range);
  std::vector<double> all;
  for (int i = 0; i < 3000; ++i) {
    all.push_back(0.8 + 0.6 * random.uniform());
    near.add(all.back());
    far.add(300 + 400 * random.uniform());
  }
  std::ranges::sort(all);
  for (int decile = 1; decile < 10; ++decile) {
    const double q = near.quantile(decile / 10.0);
    CHECK(std::abs(q - all[static_cast<std::size_t>(decile) * 300]) < 0.04);
    CHECK(100 * q == doctest::Approx(std::round(100 * q)).epsilon(1e-12));          // two decimals
    CHECK(far.quantile(decile / 10.0) == std::round(far.quantile(decile / 10.0)));  // bins of 2 to 4 tokens: none
  }
  // Bars of one width hold all of it.
  for (const Distribution& each : {near, far}) {
    const Distribution::Bars bars = each.bars();
    std::uint64_t sum = 0;
    double mean = 0;
    const double width = (bars.high - bars.low) / static_cast<double>(bars.counts.size());
    for (std::size_t i = 0; i < bars.counts.size(); ++i) {
      sum += bars.counts[i];
      mean += bars.counts[i] / 3000.0 * (bars.low + width * (static_cast<double>(i) + 0.5));
    }
    CHECK(sum == 3000);
    CHECK(std::abs(mean - each.mean()) < width);
    CHECK(bars.high >= each.largest());
  }
}

TEST_CASE("a spread is exact for values that lie close together far from zero") {
  Distribution values({0, 1 << 20});
  for (int i = 0; i < 1000; ++i) values.add(1'000'000 + 0x1p-20 * (i % 2));
  CHECK(values.spread() == doctest::Approx(0x1p-21).epsilon(1e-9));
}

TEST_CASE("parts counted apart and merged in any order are the same bits as one count") {
  Random random(1);
  Distribution all({0, 3});
  std::vector<Distribution> parts(3, all);
  for (int i = 0; i < 1000; ++i) {
    const double v = 3 * random.uniform() - 0.1;
    all.add(v);
    parts[random.below(3)].add(v);
  }
  Distribution merged({0, 3});
  for (const int part : {2, 0, 1}) merged.merge(parts[static_cast<std::size_t>(part)]);
  CHECK(merged == all);
  CHECK(Distribution::from({0, 3}, all.stored(), "file") == all);
  merged.merge(Distribution({0, 3}));  // nothing changes nothing
  CHECK(merged == all);
}

TEST_CASE("parts merge to the same bits on either side of the count up to which values are kept") {
  for (const int count : {1, 200, 255, 256, 257, 600}) {
    CAPTURE(count);
    Random random(static_cast<std::uint64_t>(count));
    const Distribution::Range range{0, 64, true};
    Distribution all(range), left(range), right(range);
    std::vector<Distribution> parts(3, all);
    for (int i = 0; i < count; ++i) {
      const double v = 70 * random.uniform() - 1;
      all.add(v);
      parts[random.below(3)].add(v);
    }
    for (const int part : {2, 0, 1}) left.merge(parts[static_cast<std::size_t>(part)]);
    parts[0].merge(parts[1]);
    right.merge(parts[2]);
    right.merge(parts[0]);
    CHECK(left == all);
    CHECK(right == all);
    CHECK(all.exact() == (count <= 256));
    CHECK(Distribution::from(range, all.stored(), "file") == all);
  }
}

TEST_CASE("stored parts that contradict one another are refused") {
  Distribution values({0, 1});
  values.add(0.25);
  values.add(-0.5);
  const Distribution::Stored good = values.stored();
  CHECK(good.sum == "-67108864");  // −0.25 · 2²⁸
  for (int wrong = 0; wrong < 9; ++wrong) {
    Distribution::Stored bad = good;
    if (wrong == 0) bad.count = 3;
    if (wrong == 1) bad.sum = "99999999999999999999";
    if (wrong == 2) bad.sum = "1e5";
    if (wrong == 3) bad.smallest = bad.largest + 1;
    if (wrong == 4) bad.squares = "-1";
    if (wrong == 5) bad.squares = std::string(50, '9');
    if (wrong == 6) bad.values.pop_back();
    if (wrong == 7) std::swap(bad.values[0], bad.values[1]);
    if (wrong == 8) bad.histogram.pop_back();
    CHECK_THROWS_AS(Distribution::from({0, 1}, bad, "file"), Error);
  }
}

TEST_CASE("quantiles out of bins: one value in each of 512 bins is an even spread") {
  Distribution values({0, 1});
  for (int i = 0; i < 512; ++i) values.add((i + 0.5) / 512);
  REQUIRE_FALSE(values.exact());
  // To three decimals, since a bin is 0.002 wide.
  for (const double p : {0.25, 0.5, 0.75, 0.125}) CHECK(values.quantile(p) == p);
  CHECK(values.quantile(0.1) == doctest::Approx(0.1));
  CHECK(values.quantile(0.001) == doctest::Approx(0.001));
  CHECK(values.quantile(1) == doctest::Approx(511.5 / 512));  // never beyond the largest
  CHECK(values.quantile(0) == doctest::Approx(0.5 / 512));
}

}  // namespace headscope::distribution_test
