// What is told of methods that work block by block: bytes, running maxima and sums, whose keys lie where; and which
// parameters a page shows.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/attention/mechanism_report.h"
#include "core/attention/mechanism_ticks.h"
#include "core/attention/mechanisms/polaformer_fit.h"
#include "core/attention/state_space.h"
#include "tests/attention/mechanisms/input.h"

namespace headscope::machine_test {

using namespace testing;

TEST_CASE("flash: bytes that crossed are those of the tiles so far, and m and l of a row are its scores'") {
  const MechanismInput in = random_head(6, 6, 4, 3, "causal");
  // Tiles of 2 × 2 over 6 tokens: nine. After five: the first row of tiles (two of three skipped), and two of the
  // second.
  const MechanismResult r = run("flash fit=off rows=2 columns=2 done=0.5555555555555556", in, Detail::steps);
  REQUIRE(r.tiles);
  const TileWork& work = *r.tiles;
  CHECK(work.done == 5);
  CHECK(work.tiles == 9);
  CHECK_FALSE(work.skipped);
  // Q twice 2 × 4, K and V three times 2 × (4 + 3), O once 2 × 3, four bytes each.
  CHECK(work.moved == 4 * (2 * 2 * 4 + 3 * 2 * 7 + 2 * 3));
  CHECK(work.moved_in_all == 4 * (6 * 7 + 3 * 6 * 7));
  CHECK(work.one_tile == 4 * (6 * 7 + 6 * 7));
  CHECK(work.blocks[0].held.begin == 2);
  CHECK(work.blocks[1].held.begin == 2);
  CHECK(work.blocks[1].crossed == 4 * 3 * 2 * 4);
  REQUIRE(work.row);
  const Matrix q = matrix_of(in.q), k = matrix_of(in.k);
  const auto score = [&](std::size_t j) { return static_cast<double>(in.scale) * dot(q[3], k[j]); };
  CHECK(work.row->query == 3);
  const double before = std::max(score(0), score(1)), after = std::max({before, score(2), score(3)});
  CHECK(static_cast<double>(work.row->max_before) == doctest::Approx(before));
  CHECK(static_cast<double>(work.row->max) == doctest::Approx(after));
  double sum = 0;
  for (std::size_t j = 0; j < 4; ++j) sum += std::exp(score(j) - after);
  CHECK(static_cast<double>(work.row->sum) == doctest::Approx(sum));
  CHECK(static_cast<double>(work.row->sum_before) ==
        doctest::Approx(std::exp(score(0) - before) + std::exp(score(1) - before)));
  CHECK(static_cast<double>(work.row->added) ==
        doctest::Approx(std::exp(score(2) - after) + std::exp(score(3) - after)));
  CHECK(run("flash fit=off rows=2 columns=2 done=0.2222222222222222", in, Detail::steps).tiles->skipped);
}

TEST_CASE("flash draws small tiles where the chip holds the whole text, and counts the cost of the large one") {
  const MechanismChoice usual = parse_mechanism("flash");
  const MechanismInput in = random_head(26, 26, 8, 8, "causal");
  CHECK(usual.mechanism->ticks({26, 8, 8, 26}, usual.values) == 169);
  CHECK(run("flash", in, Detail::steps).tiles->tiles == 169);
  CHECK(usual.mechanism->ticks({26, 8, 8, 26}, parse_mechanism("flash memory=1").values) ==
        run("flash memory=1", in, Detail::steps).tiles->tiles);
  CHECK(run("flash memory=1", in, Detail::steps).tiles->tiles < 169);
  // Only for the picture: an edit or a timing runs tiles of all rows and d = 8 keys, as memory holds.
  CHECK(run("flash", in).facts[0].value == "4 of 4 done, 0 skipped");
  CHECK(run("flash", in, Detail::steps).facts[0].value.starts_with("169 of 169 done"));
  CHECK(gap(run("flash", in).output, run("flash", in, Detail::steps).output) < 1e-5);
}

TEST_CASE("lightning: blocks that are not done have no output yet, and each reads and writes its rows once") {
  const MechanismInput in = random_head(9, 9, 4, 3, "causal");
  const MechanismResult whole = run("lightning", in), part = run("lightning block=2 done=0.4", in, Detail::steps);
  const auto ticks = [](const MechanismShape& shape, const char* spec) {
    return find_mechanism("lightning")->ticks(shape, parse_mechanism(spec).values);
  };
  CHECK(ticks({9, 4, 3, 9}, "lightning block=2") == 5);
  // Blocks of 8 for a text of nine tokens; one that holds the whole text would show nothing: then blocks of 2.
  CHECK(ticks({9, 4, 3, 9}, "lightning") == 2);
  CHECK(ticks({8, 4, 3, 8}, "lightning") == 4);
  CHECK(run("lightning block=9", in, Detail::steps).tiles->tiles == 5);
  CHECK(gap(run("lightning block=9", in, Detail::steps).output, whole.output) < 1e-6);
  CHECK(gap(part.output.slice(0, 0, 4).copy(), whole.output.slice(0, 0, 4).copy()) < 1e-6);
  CHECK(gap(part.output.slice(0, 4, 9).copy(), Tensor::zeros({5, 3})) == 0);
  REQUIRE(part.tiles);
  CHECK(part.tiles->done == 2);
  CHECK(part.tiles->moved == 4 * 4 * 2 * (4 + 3));
  CHECK(part.tiles->moved_in_all == 4 * 9 * 2 * (4 + 3));
  CHECK(part.tiles->blocks[0].held.begin == 2);
}

TEST_CASE("ring: keys move on by one worker a round, and those of later tokens leave a worker idle") {
  const MechanismInput in = random_head(12, 12, 4, 4, "causal");
  const MechanismResult r = run("ring workers=4 rounds=3", in, Detail::steps);
  REQUIRE(r.ring);
  CHECK(r.ring->done == 3);
  CHECK(r.ring->rounds == 4);
  for (Index w = 0; w < 4; ++w) {
    const RingRound::Worker& worker = r.ring->workers[static_cast<std::size_t>(w)];
    CHECK(worker.of == (w + 2) % 4);  // (w − 2) mod 4
    CHECK(worker.keys.begin == 3 * worker.of);
    CHECK(worker.queries.begin == 3 * w);
    CHECK(worker.works == (worker.of <= w));
    CHECK(worker.met == std::min<Index>(w + 1, 3));
  }
  CHECK(r.ring->sent == 4 * 2 * 3 * 8);  // two hops of three rows, 4 + 4 numbers each
}

TEST_CASE("a state space's dots are the recurrence, on the line of the convolution") {
  const MechanismInput in = random_head(16, 16, 4, 3, "causal");
  for (const char* spec : {"state-space", "state-space system=hippo size=5"}) {
    const MechanismResult r = run(spec, in, Detail::steps);
    REQUIRE(r.curves.size() == 3);
    for (const std::size_t curve : {0, 1}) {
      const auto& lines = r.curves[curve].lines;
      REQUIRE(lines.size() == 2);
      CHECK(lines[1].dots);
      REQUIRE(lines[0].y.size() == 16);
      for (std::size_t t = 0; t < 16; ++t) CHECK(lines[0].y[t] == doctest::Approx(lines[1].y[t]).epsilon(1e-4));
    }
    for (Index t = 0; t < 16; ++t)
      CHECK(r.curves[1].lines[0].y[static_cast<std::size_t>(t)] ==
            doctest::Approx(static_cast<double>(r.output.at(t, 0))));
  }
}

TEST_CASE("gates of the recurrent view are those of the parallel form") {
  const MechanismInput in = random_head(7, 7, 4, 3, "causal");
  for (const char* spec : {"gated gate=scalar decay=0.75", "gated gate=data-vector"}) {
    const MechanismChoice choice = parse_mechanism(spec);
    const Recurrence r = choice.mechanism->recurrent(in, choice.values);
    CHECK(gap(r.gates, step_of(run(spec, in, Detail::steps), "gates").value) == 0);
    if (spec == std::string("gated gate=scalar decay=0.75")) CHECK(r.gates.at(3, 2) == 0.75f);
    // What is left of the state is what it was times the gate, and what the token wrote.
    const Tensor &before = r.states[4], &after = r.states[5];
    const double root = std::sqrt(static_cast<double>(in.scale));
    for (Index c = 0; c < 4; ++c)
      CHECK(static_cast<double>(after.at(c, 1)) ==
            doctest::Approx(static_cast<double>(r.gates.at(5, c)) * static_cast<double>(before.at(c, 1)) +
                            root * static_cast<double>(in.k.at(5, c)) * static_cast<double>(in.v.at(5, 1))));
  }
}

TEST_CASE("random features: the band holds every seed's error, and the points lie about the diagonal") {
  MechanismInput in = random_head(12, 12, 6, 4, "causal");
  in.scale /= 4;  // mild scores: the variance of such features grows with their exponential
  const MechanismResult r = run("performer features=1024", in, Detail::steps);
  REQUIRE(r.curves.size() == 2);
  CHECK(r.curves[0].from_zero);
  REQUIRE(r.curves[0].lines.size() == 2);
  const auto& line = r.curves[0].lines[0];
  const Matrix exact = softmax_by_definition(in);
  double sum = 0, least = 1e9, most = 0;
  for (int seed = 1; seed <= 8; ++seed) {
    const MechanismResult drawn = run("performer features=64 seed=" + std::to_string(seed), in);
    double error = 0;
    for (Index i = 0; i < 12; ++i)
      for (Index j = 0; j <= i; ++j)
        error += std::abs(static_cast<double>(drawn.weights.at(i, j)) -
                          exact[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)]);
    error /= 78;
    sum += error / 8, least = std::min(least, error), most = std::max(most, error);
  }
  REQUIRE(line.x[4] == 64);
  CHECK(line.y[4] == doctest::Approx(sum).epsilon(1e-4));
  CHECK(line.least[4] == doctest::Approx(least).epsilon(1e-4));
  CHECK(line.most[4] == doctest::Approx(most).epsilon(1e-4));
  const auto& cloud = r.curves[1].lines[0];
  CHECK(cloud.dots);
  REQUIRE(cloud.x.size() == 78);
  CHECK(r.curves[1].title == "Estimate against truth, a point for each of 78 pairs");
  CHECK(r.curves[1].x_title == "0.1021 · Q Kᵀ");  // 1 ÷ (4 √6)
  double off = 0;
  for (std::size_t p = 0; p < 78; ++p) off += std::abs(cloud.y[p] - cloud.x[p]) / 78;
  CHECK(off < 0.05);
  const Matrix q = matrix_of(in.q), k = matrix_of(in.k);
  CHECK(cloud.x[1] == doctest::Approx(static_cast<double>(in.scale) * dot(q[1], k[0])));
  // With few features they stray.
  const auto few = run("performer features=4", in, Detail::steps).curves[1].lines[0];
  double strayed = 0;
  for (std::size_t p = 0; p < 78; ++p) strayed += std::abs(few.y[p] - few.x[p]) / 78;
  CHECK(strayed > 3 * off);
}

TEST_CASE("random features: of many pairs so many are drawn, of all rows and columns alike") {
  // Every query 1, key j is j: the truth of a pair names its key. 599 keys, one more than what a stride would miss.
  constexpr Index n = 599;
  MechanismInput in{Tensor::full({n, 1}, 1), Tensor::zeros({n, 1}), random_tensor({n, 1}, 3), 0.01f,
                    parse_mask("full")};
  for (Index j = 0; j < n; ++j) in.k.ref(j, 0) = static_cast<float>(j);
  const MechanismResult r = run("performer features=4", in, Detail::steps);
  const MechanismCurve& cloud = r.curves[1];
  CHECK(cloud.title == "Estimate against truth, 600 of 358801 pairs drawn");
  REQUIRE(cloud.lines.size() == 2);
  REQUIRE(cloud.lines[0].x.size() == 600);
  const std::set<double> keys(cloud.lines[0].x.begin(), cloud.lines[0].x.end());
  CHECK(keys.size() > 300);  // 600 draws of 599: about 379 different ones
  double mean = 0;
  for (const double x : cloud.lines[0].x) mean += x / 600;
  CHECK(mean == doctest::Approx(2.99).epsilon(0.1));  // 0.01 · 299
  CHECK(r.curves[0].title.find("first 96 tokens") != std::string::npos);
  CHECK(run("performer features=4", random_head(12, 12, 6, 4, "causal"), Detail::steps).curves[0].title.find("first") ==
        std::string::npos);
  // No pair is seen: nothing to compare, and no line of equals.
  in.rule = parse_mask("padding 599");
  CHECK(run("performer features=4", in, Detail::steps).curves[1].lines.size() == 1);
}

TEST_CASE("PolaFormer's learnt powers: the gradient is the slope of the loss, and the loss is the output's") {
  const MechanismInput in = random_head(9, 9, 4, 5, "causal", 4);
  std::vector<double> powers{1.5, 2, 3, 4.2}, gradient, none;
  const Tensor target = run("softmax", in).output;
  const auto loss_of = [&](const std::vector<double>& p, double same, double opposite,
                           std::vector<double>* slopes = nullptr) {
    return mechanism::polar_loss(in, target, p, same, opposite, slopes);
  };
  const double loss = loss_of(powers, 0.8, 1.1, &gradient);
  CHECK(loss == loss_of(powers, 0.8, 1.1));
  REQUIRE(gradient.size() == 6);
  constexpr double step = 1e-5;
  for (std::size_t c = 0; c < 4; ++c) {
    std::vector<double> up = powers, down = powers;
    up[c] += step, down[c] -= step;
    const double slope = (loss_of(up, 0.8, 1.1) - loss_of(down, 0.8, 1.1)) / (2 * step);
    CHECK(gradient[c] == doctest::Approx(slope).epsilon(1e-5));
  }
  CHECK(gradient[4] ==
        doctest::Approx((loss_of(powers, 0.8 + step, 1.1) - loss_of(powers, 0.8 - step, 1.1)) / (2 * step)));
  CHECK(gradient[5] ==
        doctest::Approx((loss_of(powers, 0.8, 1.1 + step) - loss_of(powers, 0.8, 1.1 - step)) / (2 * step)));
  // The mechanism's output is what the loss is of.
  const auto error_of = [&](const std::string& spec) {
    const Tensor out = run(spec, in).output, exact = run("softmax", in).output;
    double off = 0, energy = 0;
    for (std::size_t c = 0; c < out.values().size(); ++c) {
      off += std::pow(static_cast<double>(out.values()[c]) - static_cast<double>(exact.values()[c]), 2);
      energy += std::pow(static_cast<double>(exact.values()[c]), 2);
    }
    return off / energy;
  };
  const mechanism::PolarFit fit = mechanism::fit_polar(in);
  CHECK(fit.losses.front() == doctest::Approx(error_of("polaformer")).epsilon(1e-4));
  CHECK(*std::ranges::min_element(fit.losses) == doctest::Approx(error_of("polaformer powers=learnt")).epsilon(1e-4));
  CHECK(error_of("polaformer powers=learnt") < 0.8 * error_of("polaformer"));
  for (const double power : fit.powers) {
    CHECK(power > 1);
    CHECK(power < 5);
  }
  const MechanismResult learnt = run("polaformer powers=learnt", in, Detail::steps);
  CHECK(step_of(learnt, "powers").value.dim(1) == 4);
  CHECK(learnt.facts[0].provenance.ends_with("at power 3 and at the best of 80 steps"));
  // Of other numbers, another mask or another scale another fit: none is mistaken for one that is known.
  MechanismInput other = in;
  other.rule = parse_mask("full");
  CHECK(mechanism::fit_polar(other).losses != fit.losses);
  other = in, other.scale *= 2;
  CHECK(mechanism::fit_polar(other).losses != fit.losses);
  other = in, other.v = in.v.copy(), other.v.ref(8, 4) += 1;
  CHECK(mechanism::fit_polar(other).losses != fit.losses);
  CHECK(mechanism::fit_polar(in).losses == fit.losses);
}

namespace {

/// Everything that a page shows of a choice, as numbers and words.
std::string shown(const MechanismChoice& choice, const MechanismInput& in) {
  const MechanismReport r = report_on(choice, in);
  std::string out;
  const auto add = [&](const Tensor& x) {
    if (!x.defined()) return;
    for (const float value : x.packed().values()) out += std::to_string(static_cast<double>(value)) + " ";
  };
  add(r.result.weights), add(r.result.output);
  for (const MechanismStep& step : r.result.steps) out += step.id, add(step.value);
  for (const MechanismCurve& curve : r.result.curves) {
    for (const auto& line : curve.lines)
      for (const double y : line.y) out += std::to_string(y) + " ";
    if (curve.marker) out += std::to_string(curve.marker->first);
  }
  for (const MechanismFact& fact : r.result.facts) out += fact.value;
  if (r.recurrence)
    for (const Tensor& state : r.recurrence->states) add(state);
  if (choice.mechanism->cost)
    for (const Index n : {24, 32768}) {
      const MechanismCost cost = choice.mechanism->cost({n, in.d(), in.d_v()}, choice.values);
      for (const double each : {cost.multiply_adds, cost.state_bytes, cost.cache_bytes, cost.moved_bytes})
        out += std::to_string(each) + " ";
    }
  return out;
}

/// A head of four, in a layer of two.
MechanismInput head_of_layer() {
  const Tensor q = random_tensor({24, 4, 12}, 1), k = random_tensor({24, 4, 12}, 2), v = random_tensor({24, 4, 10}, 3);
  MechanismInput in = input_of_head(heads_of_layer(q, k, v, 0, 2), 1);
  in.scale = static_cast<float>(1 / std::sqrt(12.0));
  in.rule = parse_mask("causal");
  auto words = std::make_shared<VocabularyUse>();
  for (int word = 0; word < 40; ++word) words->frequency.push_back((40 - word) / 820.0);
  words->hidden = random_tensor({1, 12}, 4);
  words->from = "forty words";
  in.vocabulary = std::move(words);
  return in;
}

}  // namespace

TEST_CASE("every parameter that a page shows changes something on it, and those it leaves out change nothing") {
  const MechanismInput in = head_of_layer();
  const MechanismShape shape{in.m(), in.d(), in.d_v(), in.n()};
  for (const Mechanism& m : mechanisms()) {
    CAPTURE(m.id);
    // The usual page, and every other choice of one parameter.
    std::vector<MechanismValues> pages{m.usual()};
    for (const MechanismParameter& p : m.parameters)
      if (p.kind == MechanismParameter::Kind::choice || p.kind == MechanismParameter::Kind::toggle)
        for (double value = p.low; value <= p.high; ++value)
          if (value != p.usual) pages.push_back(m.usual()), pages.back().set(p.name, value);
    for (const MechanismValues& values : pages) {
      CAPTURE(text_of({&m, values}));
      const std::string as_it_is = shown({&m, values}, in);
      const auto there = m.shown_parameters(values, shape);
      for (const MechanismParameter& p : m.parameters) {
        // Which of the two counts depends on the input, of a layer or not: the page knows (mechanism_side.cpp).
        if (m.id == "multi-head" && (p.name == "own" || p.name == "heads")) continue;
        CAPTURE(p.name);
        bool changes = false;
        std::vector<double> tried{p.low, p.high, (p.low + p.high) / 2, p.low + (p.high - p.low) / 8, p.usual};
        if (p.kind != MechanismParameter::Kind::number)
          for (double& value : tried) value = std::round(value);
        if (p.kind == MechanismParameter::Kind::choice) {
          tried.clear();
          for (double value = p.low; value <= p.high; ++value) tried.push_back(value);
        }
        std::ranges::sort(tried);
        for (const double value : tried) {
          if (value > 600 && p.logarithmic) continue;  // of sizes: they cost more and show nothing else
          MechanismValues other = values;
          other.set(p.name, value);
          if ((changes = changes || shown({&m, other}, in) != as_it_is)) break;
        }
        CHECK(changes == (std::ranges::find(there, &p) != there.end()));
      }
    }
  }
}

}  // namespace headscope::machine_test
