// Means of implied attention over lanes, which are found by products, against their definition in float64.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/attention/state_mixing.h"
#include "core/attention/state_patterns.h"
#include "core/base/error.h"
#include "tests/support/random_tensor.h"

namespace headscope::state_means_test {

using testing::random_tensor;

namespace {

struct Shapes {
  Index lanes, groups, states;
  bool one_pace = false;
  float pace = 1;   ///< times the usual decay
  float step = -1;  ///< what softplus is taken of beside the random part: how long steps are
};

// Leaves have 16 tokens, products a depth of 256, vectors 4, 8 or 16 numbers.
const Shapes all_shapes[] = {{1, 1, 16},
                             {3, 1, 5},
                             {20, 1, 16},
                             {20, 4, 3},
                             {6, 2, 9, true},
                             {1, 1, 128, true},
                             {2, 1, 300},
                             {90, 3, 7, false, 0.02f},
                             {4, 2, 4, false, 9},
                             {3, 1, 6, true, 30},
                             {5, 1, 4, false, 0.3f, 15}};

StateMixing random_mixing(const Shapes& s, Index n, std::uint64_t seed) {
  StateMixing in;
  in.x = Tensor::zeros({n, s.lanes, 1});
  // Slices of one product, as the model has them.
  const Index part = s.groups * s.states;
  const Tensor all = random_tensor({n, 2 * part + 1}, seed);
  in.b = all.slice(1, 1, part + 1).reshape({n, s.groups, s.states});
  in.c = all.slice(1, part + 1, 2 * part + 1).reshape({n, s.groups, s.states});
  in.delta = random_tensor({n, s.lanes}, seed + 1);
  in.a = random_tensor({s.lanes, s.one_pace ? 1 : s.states}, seed + 2);
  for (float& step : in.delta.mutable_values()) step = std::log1p(std::exp(step + s.step));
  for (float& a : in.a.mutable_values()) a = -s.pace * std::exp(0.7f * a);
  return in;
}

/// Σ over lanes of α_ts ÷ their number, and of what its parts amount to without signs, those of large exponents more:
/// an exponent in float32 errs by its size.
struct Cell {
  double mean = 0, size = 0;
};
Cell definition(const StateMixing& in, Index begin, Index end, Index t, Index s) {
  Cell cell;
  for (Index lane = begin; lane < end; ++lane) {
    const Index group = lane / (in.x.dim(1) / in.b.dim(1));
    double span = 0;
    for (Index r = s + 1; r <= t; ++r) span += static_cast<double>(in.delta.at(r, lane));
    for (Index i = 0; i < in.b.dim(2); ++i) {
      const double exponent = static_cast<double>(in.a.at(lane, i % in.a.dim(1))) * span;
      const double part = static_cast<double>(in.c.at(t, group, i)) * static_cast<double>(in.b.at(s, group, i)) *
                          static_cast<double>(in.delta.at(s, lane)) * std::exp(exponent);
      cell.mean += part / static_cast<double>(end - begin);
      cell.size += std::abs(part) * (1 - exponent / 8) / static_cast<double>(end - begin);
    }
  }
  return cell;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  const Tensor left = a.packed(), right = b.packed();
  return left.shape() == right.shape() && std::ranges::equal(left.values(), right.values());
}

StateMixing until(const StateMixing& in, Index end) {
  StateMixing out = in;
  for (Tensor* each : {&out.x, &out.delta, &out.b, &out.c}) *each = each->slice(0, 0, end);
  return out;
}

}  // namespace

TEST_CASE("the mean of lanes' implied attention is its definition, at every edge of leaves and nodes") {
  std::uint64_t seed = 1;
  for (const Shapes& shapes : all_shapes) {
    CAPTURE(shapes.lanes);
    CAPTURE(shapes.states);
    const Index most = shapes.lanes * shapes.states > 600 ? 70 : 150;
    const StateMixing in = random_mixing(shapes, most, seed += 10);
    const Index begin = shapes.lanes / 3, end = shapes.lanes;
    const Tensor map = mean_implied(in, begin, end);
    REQUIRE(map.shape() == Shape({most, most}));
    double worst = 0;
    for (Index t = 0; t < most; ++t)
      for (Index s = 0; s < most; ++s) {
        const auto is = static_cast<double>(map.at(t, s));
        if (s > t) {
          CHECK(is == 0);
          continue;
        }
        const Cell right = definition(in, begin, end, t, s);
        worst = std::max(worst, std::abs(is - right.mean) / (right.size + 1e-28));
      }
    CHECK(worst < 1e-6);
  }
}

TEST_CASE("rows of a mean have the same bits whatever comes before and after them, and however many threads") {
  for (const Shapes& shapes : {Shapes{20, 2, 16}, Shapes{3, 1, 5}, Shapes{2, 1, 128, true}, Shapes{3, 1, 4, true, 4},
                               Shapes{1, 1, 4, true, 9}}) {
    const Index most = 150;
    const StateMixing in = random_mixing(shapes, most, 5);
    const Tensor map = mean_implied(in, 0, shapes.lanes);
    for (const Index first : {1, 7, 16, 31, 33, 64, 100, 128, 149, 150})
      CHECK(same_bits(mean_implied(in, 0, shapes.lanes, first), map.slice(0, first, most)));
    for (Index n = 1; n < most; n += n < 70 ? 1 : 9) {
      CAPTURE(n);
      const StateMixing text = until(in, n);
      CHECK(same_bits(mean_implied(text, 0, shapes.lanes), map.slice(0, 0, n).slice(1, 0, n)));
      CHECK(same_bits(mean_implied(text, 0, shapes.lanes, n / 2), map.slice(0, n / 2, n).slice(1, 0, n)));
      CHECK(same_bits(mean_implied(text, 0, shapes.lanes, n - 1), map.slice(0, n - 1, n).slice(1, 0, n)));
    }
    Backend one(1), three(3);
    const Tensor patterns = mean_patterns(one, in, shapes.lanes == 20 ? 4 : 1, {3, in.x.dim(0)});
    CHECK(same_bits(mean_patterns(three, in, shapes.lanes == 20 ? 4 : 1, {3, in.x.dim(0)}), patterns));
    if (!shapes.one_pace)
      CHECK(same_bits(patterns.select(0, 0), mean_implied(in, 0, shapes.lanes == 20 ? 5 : shapes.lanes, 3)));
  }
}

TEST_CASE(
    "where all states of a lane decay alike one product serves a group's lanes: its definition, and the same bits") {
  Backend one(1), three(3);
  std::uint64_t seed = 1;
  // Heads of one lane, of some of a group, of lanes of two groups.
  for (const auto& [shapes, heads] : {std::pair(Shapes{6, 2, 9, true}, 6),
                                      {{6, 2, 9, true}, 3},
                                      {{6, 3, 5, true}, 2},
                                      {{1, 1, 128, true}, 1},
                                      {{3, 1, 6, true, 30}, 3},
                                      {{4, 4, 3, true, 0.02f}, 1},
                                      {{2, 1, 4, true, 0.3f, 15}, 2},
                                      {{2, 1, 4, true, 9}, 1}}) {
    CAPTURE(shapes.lanes);
    CAPTURE(shapes.states);
    CAPTURE(heads);
    const Index most = 110, each = shapes.lanes / heads;
    const StateMixing in = random_mixing(shapes, most, seed += 10);
    const Tensor maps = mean_patterns(one, in, heads, {0, most});
    REQUIRE(maps.shape() == Shape({heads, most, most}));
    double worst = 0;
    for (Index head = 0; head < heads; ++head)
      for (Index t = 0; t < most; ++t)
        for (Index s = 0; s < most; ++s) {
          const auto is = static_cast<double>(maps.at(head, t, s));
          if (s > t) {
            CHECK(is == 0);
            continue;
          }
          const Cell right = definition(in, head * each, (head + 1) * each, t, s);
          worst = std::max(worst, std::abs(is - right.mean) / (right.size + 1e-28));
        }
    CHECK(worst < 1e-6);
    for (const Index first : {1, 7, 16, 31, 33, 64, 100, 109, 110})
      CHECK(same_bits(mean_patterns(three, in, heads, {first, most}), maps.slice(1, first, most)));
    for (Index head = 0; head < heads; ++head)
      for (const KeyRange rows : {KeyRange{0, most}, KeyRange{40, 41}, KeyRange{63, 90}})
        CHECK(same_bits(mean_pattern(in, heads, head, rows),
                        maps.select(0, head).slice(0, rows.begin, rows.end).slice(1, 0, rows.end)));
    for (Index n = 1; n < most; n += n < 35 ? 1 : 9) {
      CAPTURE(n);
      const StateMixing text = until(in, n);
      CHECK(same_bits(mean_patterns(three, text, heads, {0, n}), maps.slice(1, 0, n).slice(2, 0, n)));
      CHECK(same_bits(mean_patterns(one, text, heads, {n - 1, n}), maps.slice(1, n - 1, n).slice(2, 0, n)));
    }
  }
  const StateMixing in = random_mixing({6, 2, 9, true}, 100, 3);
  std::stop_source stop;
  stop.request_stop();
  CHECK_THROWS_AS(mean_patterns(one, in, 6, {0, 100}, stop.get_token()), Cancelled);
}

TEST_CASE("means of lanes: a number that is none shows in every cell that it makes, and in no other") {
  constexpr Index n = 150, at = 70;
  const Shapes slow{3, 1, 5, false, 0.02f};  // nothing goes by itself
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Backend backend(2);
  const auto check = [&](const StateMixing& in, const auto& wrong) {
    StateMixing alike = in, usual = random_mixing(slow, n, 5);
    alike.a = alike.a.slice(1, 0, 1).packed();
    usual.a = alike.a;
    const Tensor right = mean_implied(random_mixing(slow, n, 5), 0, 3), map = mean_implied(in, 0, 3),
                 one = implied_attention(in, 1), pace = mean_patterns(backend, alike, 1, {0, n}),
                 right_pace = mean_patterns(backend, usual, 1, {0, n});
    int cells = 0, hidden = 0, spread = 0, differ = 0;
    for (Index t = 0; t < n; ++t)
      for (Index s = 0; s <= t; ++s) {
        cells += wrong(t, s);
        for (const float value : {map.at(t, s), one.at(t, s), pace.at(0, t, s)}) {
          hidden += wrong(t, s) && !std::isnan(value);
          spread += !wrong(t, s) && std::isnan(value);
        }
        differ += !wrong(t, s) && std::abs(map.at(t, s) - right.at(t, s)) > 1e-5f;
        differ += !wrong(t, s) && std::abs(pace.at(0, t, s) - right_pace.at(0, t, s)) > 1e-5f;
      }
    CHECK(cells >= at);
    CHECK(hidden == 0);
    CHECK(spread == 0);
    CHECK(differ == 0);
  };
  StateMixing in = random_mixing(slow, n, 5);
  in.delta.ref(at, 1) = nan;  // of one lane of three
  check(in, [](Index t, Index s) { return s <= at && at <= t; });
  in = random_mixing(slow, n, 5);
  in.b = in.b.packed();
  in.b.ref(at, 0, 2) = nan;
  check(in, [](Index t, Index s) { return s == at && at <= t; });
  in = random_mixing(slow, n, 5);
  in.c = in.c.packed();
  in.c.ref(at, 0, 4) = nan;
  check(in, [](Index t, Index) { return t == at; });
}

TEST_CASE("means of lanes: what has all gone is exactly 0, long steps stay finite, and who stops it is told") {
  StateMixing in = random_mixing({4, 1, 4}, 100, 3);
  in.a = Tensor::full({4, 4}, -30);
  in.delta = Tensor::full({100, 4}, 20);
  const Tensor map = mean_implied(in, 0, 4);
  for (Index t = 0; t < 100; ++t) {
    CHECK(map.at(t, t) != 0);
    for (Index s = 0; s < t; ++s) CHECK(map.at(t, s) == 0);
  }
  // Products leave out what has gone by whole leaves, and those do not move with the first row.
  in = random_mixing({1, 1, 1}, 150, 3);
  for (Tensor* each : {&in.b, &in.c, &in.delta}) *each = Tensor::full(each->shape(), 1);
  in.a = Tensor::full({1, 1}, -1);
  const Tensor even = mean_implied(in, 0, 1);
  CHECK(even.at(149, 63) == doctest::Approx(std::exp(-86.0)).epsilon(1e-4).scale(0));
  CHECK(even.at(149, 31) == 0);
  for (Index first = 1; first < 150; ++first)
    CHECK(same_bits(mean_implied(in, 0, 1, first), even.slice(0, first, 150)));
  std::stop_source stop;
  stop.request_stop();
  CHECK_THROWS_AS(mean_implied(in, 0, 1, 0, stop.get_token()), Cancelled);
}

}  // namespace headscope::state_means_test
