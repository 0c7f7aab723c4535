#include "core/analysis/sinks.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "core/analysis/whatif.h"
#include "core/base/error.h"
#include "core/metrics/next_token.h"
#include "core/metrics/next_token_change.h"
#include "tests/analysis/subjects.h"

namespace headscope::sinks_test {

using testing::ReadSubject;

TEST_CASE("sinks: weight on the first token, norms of what it carries") {
  for (const char* folder : {"gpt2-random", "llama-gqa"}) {
    CAPTURE(folder);
    const ReadSubject s(folder);
    const SinkReport report = read_sinks(*s.trace, s.weights, 4);
    REQUIRE(report.heads.size() == 8);
    for (const SinkHead& head : report.heads) {
      const AttentionMap& map = s.trace->map(head.id);
      const Tensor& o =
          s.weights.blocks[static_cast<std::size_t>(head.id.layer)].heads[static_cast<std::size_t>(head.id.head)].o;
      std::vector<double> values, outputs;
      for (Index j = 0; j < 8; ++j) {
        std::vector<double> v;
        for (Index d = 0; d < s.dims().d_head; ++d)
          v.push_back(static_cast<double>(s.site(SiteKind::v, head.id.layer).at(j, map.place().kv_head, d)));
        double square = 0, written = 0;
        for (const double x : v) square += x * x;
        for (const double x : testing::times(v, o)) written += x * x;
        values.push_back(std::sqrt(square));
        outputs.push_back(std::sqrt(written));
      }
      double mass = 0, chance = 0, carried = 0;
      for (Index i = 1; i < 8; ++i) {
        mass += static_cast<double>(map.weight(i, 0)) / 7;
        chance += 1.0 / static_cast<double>(i + 1) / 7;
        double all = 0;
        for (Index j = 0; j <= i; ++j)
          all += static_cast<double>(map.weight(i, j)) * outputs[static_cast<std::size_t>(j)];
        carried += static_cast<double>(map.weight(i, 0)) * outputs[0] / all / 7;
      }
      CHECK(head.mass == doctest::Approx(mass).epsilon(1e-5));
      CHECK(head.chance == doctest::Approx(chance).epsilon(1e-5));
      CHECK(head.carried == doctest::Approx(carried).epsilon(1e-4));
      CHECK(head.value_norm == doctest::Approx(values[0]).epsilon(1e-4));
      CHECK(head.output_norm == doctest::Approx(outputs[0]).epsilon(1e-4));
      std::sort(values.begin() + 1, values.end());
      CHECK(head.value_median == doctest::Approx(values[4]).epsilon(1e-4));  // the fourth of seven
    }
    for (int layer = 0; layer < 2; ++layer) {
      const SinkLayer& line = report.layers[static_cast<std::size_t>(layer)];
      double received = 0;
      for (int head = 0; head < 4; ++head)
        for (Index i = 3; i < 8; ++i) received += static_cast<double>(s.trace->map({layer, head}).weight(i, 2)) / 4 / 5;
      CHECK(line.received[2] == doctest::Approx(received).epsilon(1e-5));
      CHECK(std::isnan(line.received[7]));
      CHECK(line.density.size() == 4);
    }
  }
}

TEST_CASE("the V shape of a layer: even attention is flat, ends only is a V") {
  ReadSubject s("gpt2-random", std::vector<std::int32_t>(32, 5));
  Trace shaped = *s.trace;
  const auto put = [&](auto weight) {
    for (AttentionMap& map : shaped.maps) {
      Tensor w = Tensor::zeros({32, 32});
      for (Index i = 0; i < 32; ++i)
        for (Index j = 0; j <= i; ++j) w.ref(i, j) = weight(i, j);
      map = AttentionMap::dense(map.place(), w, causal_rule(), stats_of_weights(w, nullptr));
    }
    return read_sinks(shaped, s.weights, 8).layers[1];
  };
  const SinkLayer flat = put([](Index i, Index) { return 1.0f / static_cast<float>(i + 1); });
  for (const double part : flat.density) CHECK(part == doctest::Approx(1));
  CHECK(flat.v_depth == doctest::Approx(1));
  const SinkLayer v = put([](Index i, Index j) {
    return i == 0 ? 1.0f : j == 0 || j == i ? 0.4f : 0.2f / static_cast<float>(i - 1);
  });
  CHECK(v.density.front() > 2);
  CHECK(v.density.back() > 2);
  CHECK(v.density[3] < 0.5);
  CHECK(v.v_depth > 5);
  // The lesser of both ends ÷ the mean of the middle half.
  double middle = 0;
  const std::size_t quarter = v.density.size() / 4, half = v.density.size() - 2 * quarter;
  for (std::size_t part = quarter; part < quarter + half; ++part) middle += v.density[part] / static_cast<double>(half);
  CHECK(v.v_depth == doctest::Approx(std::min(v.density.front(), v.density.back()) / middle));
}

TEST_CASE("where heads look ahead, places are those of the whole text, and every token is received") {
  ReadSubject s("gpt2-random", std::vector<std::int32_t>(32, 5));
  Trace shaped = *s.trace;
  for (AttentionMap& map : shaped.maps) {
    Tensor w = Tensor::full({32, 32}, 1.0f / 32);
    map = AttentionMap::dense(map.place(), w, full_rule(), stats_of_weights(w, nullptr));
  }
  const SinkReport even = read_sinks(shaped, s.weights, 8);
  CHECK(even.ahead);
  CHECK_FALSE(read_sinks(*s.trace, s.weights, 8).ahead);
  for (const double part : even.layers[1].density) CHECK(part == doctest::Approx(1));
  for (const double weight : even.layers[1].received) CHECK(weight == doctest::Approx(1.0 / 32));
}

TEST_CASE("massive activations are found against the median, and zeroing one is what a pass without it gives") {
  ReadSubject s("gpt2-random");
  Trace spiked = *s.trace;
  Tensor x = s.site(SiteKind::resid_post, 0).copy();
  x.ref(3, 11) = -500;
  x.ref(0, 2) = 900;
  spiked.sites[{SiteKind::resid_post, 0}] = x;
  std::vector<float> sizes;
  for (const float v : x.values()) sizes.push_back(std::abs(v));
  std::sort(sizes.begin(), sizes.end());
  const double median = 0.5 * (static_cast<double>(sizes[127]) + static_cast<double>(sizes[128]));  // of 8 · 32
  const MassiveActivations found = massive_activations(spiked);
  CHECK(found.layers[0].median == doctest::Approx(median));
  CHECK(found.layers[0].count == 2);
  CHECK(found.layers[1].count == 0);
  REQUIRE(found.found.size() == 2);
  CHECK(found.found[0].position == 0);
  CHECK(found.found[0].dimension == 2);
  CHECK(found.found[0].ratio == doctest::Approx(900 / median));
  CHECK(found.found[1].value == -500);
  CHECK(found.layers[0].largest.value == 900);
  // The paper's rule beside ours. Layer 0: magnitudes of 1 but for four; layer 1: of 0.01 but for one.
  Tensor even = x.copy(), small = x.copy();
  for (float& v : even.mutable_values()) v = 1;
  for (float& v : small.mutable_values()) v = -0.01f;
  even.ref(5, 7) = 1000;
  even.ref(6, 8) = -1100;
  even.ref(7, 9) = 999;
  even.ref(7, 10) = 99;
  small.ref(2, 3) = 50;  // 5,000 times the median, but not above 100
  spiked.sites[{SiteKind::resid_post, 0}] = even;
  spiked.sites[{SiteKind::resid_post, 1}] = small;
  const MassiveActivations ours = massive_activations(spiked), by_sun = massive_activations(spiked, massive_by_sun);
  CHECK(ours.layers[0].count == 3);
  CHECK(ours.layers[1].count == 1);
  CHECK(ours.found.size() == 4);
  for (const MassiveActivations& each : {ours, by_sun}) {
    CHECK(each.layers[0].count_by_sun == 2);
    CHECK(each.layers[1].count_by_sun == 0);
  }
  REQUIRE(by_sun.found.size() == 2);
  CHECK(by_sun.found[0].value == -1100);
  CHECK(by_sun.found[1].value == 1000);

  struct Without final : Tap {
    bool wants(Site site) const override { return site == Site{SiteKind::resid_post, 0}; }
    Tensor at(Site, const Tensor& value) override {
      Tensor changed = value.copy();
      changed.ref(0, 2) = 0;
      return changed;
    }
  } without;
  const auto after = run(s.loaded, s.request, Ctx{.backend = s.backend, .tap = &without});
  const ZeroedActivations zeroed = zero_activations(s.loaded, s.request, s.ctx(), {{0, 0, 2, 0, 0}});
  CHECK(zeroed.loss_before == doctest::Approx(mean_loss(*s.trace)));
  CHECK(zeroed.loss_after == doctest::Approx(mean_loss(*after)));
  CHECK(zeroed.kl == doctest::Approx(next_token_change(*s.trace, *after, 1).kl));
  CHECK(zeroed.kl > 0);
  double sink = 0;
  for (int head = 0; head < 4; ++head)
    for (Index i = 1; i < 8; ++i) sink += static_cast<double>(after->map({1, head}).weight(i, 0)) / 28;
  CHECK(zeroed.sink_after[1] == doctest::Approx(sink).epsilon(1e-5));
  CHECK(zeroed.sink_after[0] == zeroed.sink_before[0]);  // below the change
}

TEST_CASE("sinks need a second token") {
  const ReadSubject s("gpt2-random", {4});
  CHECK_THROWS_AS(read_sinks(*s.trace, s.weights), Error);
}

TEST_CASE("the entropy of a head is the mean over its rows but the first, with its sink and without") {
  const ReadSubject s("gpt2-random");
  const SinkReport report = read_sinks(*s.trace, s.weights, 4);
  for (const SinkHead& head : report.heads) {
    const AttentionMap& map = s.trace->map(head.id);
    double whole = 0, without = 0;
    for (Index i = 1; i < 8; ++i) {
      const auto rest = 1 - static_cast<double>(map.weight(i, 0));
      for (Index j = 0; j <= i; ++j) {
        const auto p = static_cast<double>(map.weight(i, j));
        whole -= p * std::log(p) / 7;
        if (j > 0) without -= p / rest * std::log(p / rest) / 7;
      }
    }
    CHECK(head.entropy == doctest::Approx(whole).epsilon(1e-4));
    CHECK(head.entropy_without == doctest::Approx(without).epsilon(1e-4));
  }
}

TEST_CASE("a text of one token has no row that could look back at it") {
  ReadSubject s("gpt2-random", {5});
  const ZeroedActivations out = zero_activations(s.loaded, s.request, s.ctx(), {{0, 0, 3}});
  CHECK(out.sink_before == std::vector<double>{0, 0});
  CHECK(out.sink_after == std::vector<double>{0, 0});
  CHECK(std::isnan(out.loss_before));
  CHECK(out.kl > 0);
}

}  // namespace headscope::sinks_test
