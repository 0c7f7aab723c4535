#include "core/metrics/distribution.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/base/error.h"
#include "core/base/random.h"

using namespace headscope;

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
  CHECK(values.quantile(1) == doctest::Approx(8).epsilon(0.13));  // inside the last bin, which ends at 8
  CHECK(std::isnan(Distribution().mean()));
  CHECK(std::isnan(Distribution().spread()));
  CHECK(std::isnan(Distribution().quantile(0.5)));
}

TEST_CASE("quantiles are good to one bin of 512") {
  Random random(7);
  Distribution values({0, 1});
  std::vector<double> all;
  for (int i = 0; i < 5000; ++i) {
    const double v = std::pow(random.uniform(), 3);
    all.push_back(v);
    values.add(v);
  }
  std::ranges::sort(all);
  for (int decile = 1; decile < 10; ++decile)
    CHECK(std::abs(values.quantile(decile / 10.0) - all[static_cast<std::size_t>(decile) * 500]) < 1.0 / 512 + 2e-3);
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

TEST_CASE("stored parts that contradict one another are refused") {
  Distribution values({0, 1});
  values.add(0.25);
  values.add(-0.5);
  const Distribution::Stored good = values.stored();
  CHECK(good.sum == "-67108864");  // −0.25 · 2²⁸
  for (int wrong = 0; wrong < 6; ++wrong) {
    Distribution::Stored bad = good;
    if (wrong == 0) bad.count = 3;
    if (wrong == 1) bad.sum = "99999999999999999999";
    if (wrong == 2) bad.sum = "1e5";
    if (wrong == 3) bad.smallest = bad.largest + 1;
    if (wrong == 4) bad.squares = "-1";
    if (wrong == 5) bad.squares = std::string(50, '9');
    CHECK_THROWS_AS(Distribution::from({0, 1}, bad, "file"), Error);
  }
}
