// What every mechanism of the catalogue must keep, whatever it computes.

#include <doctest/doctest.h>

#include <set>

#include "core/attention/mechanism_compare.h"
#include "core/attention/mechanism_report.h"
#include "core/base/error.h"
#include "tests/attention/mechanisms/input.h"

namespace headscope::catalogue_test {

using namespace testing;

namespace {
std::string refusal(const std::string& spec) {
  try {
    parse_mechanism(spec);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}
/// The cut to low rank is a measure of the softmax weights, not a method: it knows no mask.
bool cuts(const Mechanism& m) {
  return m.id == "low-rank";
}
}  // namespace

TEST_CASE("every mechanism names itself, its source and its parameters; its words read back") {
  std::set<std::string_view> ids;
  for (const Mechanism& m : mechanisms()) {
    CAPTURE(m.id);
    CHECK(ids.insert(m.id).second);
    for (const std::string_view text : {m.title, m.name, m.group, m.source, m.formula, m.meaning}) CHECK(!text.empty());
    REQUIRE((m.run != nullptr));
    for (const MechanismParameter& p : m.parameters) {
      CAPTURE(p.name);
      CHECK(p.usual >= p.low);
      CHECK(p.usual <= p.high);
      CHECK((!p.logarithmic || p.low > 0));
      CHECK(!p.words.empty());
      MechanismChoice choice{&m, m.usual()};
      for (const double value : {p.low, p.usual, p.high}) {
        choice.values.set(p.name, value);
        CHECK(parse_mechanism(text_of(choice)).values == choice.values);
      }
    }
  }
}

TEST_CASE("specs that are none are refused with what would be") {
  CHECK(refusal("lineer").find("linear") != std::string::npos);
  CHECK(refusal("linear normalise=half").find("one of sum, none, rms") != std::string::npos);
  CHECK(refusal("entmax alpha=3").find("a number from 1 to 2") != std::string::npos);
  CHECK(refusal("entmax alpha=x").find("found \"x\"") != std::string::npos);
  CHECK(refusal("performer features=8.5").find("a whole number") != std::string::npos);
  CHECK(refusal("linear colour=red").find("names: map, normalise") != std::string::npos);
  CHECK(refusal("").find("a mechanism's id") != std::string::npos);
}

TEST_CASE("the output is the effective weights times v, the cheap form agrees, and hidden cells weigh nothing") {
  for (const Mechanism& m : mechanisms()) {
    if (m.study) continue;
    for (const char* mask : {"causal", "full", "window 3", "padding 3"}) {
      if (m.needs_causal && mask != std::string("causal")) continue;
      CAPTURE(m.id);
      CAPTURE(mask);
      const MechanismInput in = random_head(13, 13, 6, 5, mask);
      const MechanismResult r = m.run(in, m.usual(), Detail::steps);
      REQUIRE(r.weights.shape() == Shape({13, 13}));
      REQUIRE(r.output.shape() == Shape({13, 5}));
      const double size = 1e-5 * (1 + gap(r.output, Tensor::zeros(r.output.shape())));
      if (r.output_is_weights_times_v) CHECK(gap(r.output, times(matrix_of(r.weights), matrix_of(in.v))) < size);
      CHECK(gap(output_of(m, in, m.usual()), r.output) < size);
      CHECK(gap(m.run(in, m.usual(), Detail::output).output, r.output) < size);
      if (!cuts(m))
        for (Index i = 0; i < 13; ++i)
          for (Index j = 0; j < 13; ++j)
            if (masked(*in.rule, i, j, 13)) CHECK(r.weights.at(i, j) == 0.0f);
      for (const MechanismStep& step : r.steps) {
        CAPTURE(step.id);
        CHECK(step.value.rank() == 2);
        CHECK((step.masked.empty() || step.masked.size() == static_cast<std::size_t>(step.value.size())));
        if (step.explain && step.value.size() > 0) CHECK(!step.explain(step.value.dim(0) - 1, 0).empty());
      }
      CHECK(!what_to_look_for(m, in, m.usual(), r, compare(in, r)).empty());
    }
  }
}

TEST_CASE("parallel equals recurrent, for every setting of every choice") {
  const MechanismInput in = random_head(17, 17, 6, 4, "causal", 5);
  for (const Mechanism& m : mechanisms()) {
    if (!m.recurrent) continue;
    std::vector<MechanismValues> settings{m.usual()};
    for (const MechanismParameter& p : m.parameters)
      if (p.kind == MechanismParameter::Kind::choice || p.kind == MechanismParameter::Kind::toggle)
        for (double value = p.low; value <= p.high; ++value) {
          MechanismValues values = m.usual();
          values.set(p.name, value);
          settings.push_back(values);
        }
    for (const MechanismValues& values : settings) {
      CAPTURE(text_of({&m, values}));
      const MechanismResult parallel = m.run(in, values, Detail::weights);
      const Recurrence recurrent = m.recurrent(in, values);
      CHECK(recurrent.states.size() == 17);
      CHECK(!recurrent.update.empty());
      const double size = 1 + gap(parallel.output, Tensor::zeros(parallel.output.shape()));
      CHECK(gap(recurrent.output, parallel.output) < 1e-5 * size);
    }
  }
}

TEST_CASE("under a causal mask the past does not know the future") {
  for (const Mechanism& m : mechanisms()) {
    if (m.study || cuts(m)) continue;
    CAPTURE(m.id);
    const MechanismInput in = random_head(12, 12, 6, 5, "causal", 3);
    MechanismInput other = in;
    other.k = in.k.copy(), other.v = in.v.copy(), other.q = in.q.copy();
    for (Index c = 0; c < 6; ++c) other.k.ref(11, c) = other.q.ref(11, c) = 2.5f;
    for (Index c = 0; c < 5; ++c) other.v.ref(11, c) = -3.0f;
    const Tensor a = m.run(in, m.usual(), Detail::output).output, b = m.run(other, m.usual(), Detail::output).output;
    CHECK(gap(a.slice(0, 0, 11), b.slice(0, 0, 11)) < 2e-4);
    CHECK(gap(a.slice(0, 11, 12), b.slice(0, 11, 12)) > 1e-3);
  }
}

TEST_CASE("queries and keys may come from two texts of different length") {
  for (const Mechanism& m : mechanisms()) {
    if (m.study || m.needs_causal || m.id == "refined") continue;
    CAPTURE(m.id);
    const MechanismInput in = random_head(5, 9, 6, 4, "full");
    const MechanismResult r = m.run(in, m.usual(), Detail::steps);
    REQUIRE(r.weights.shape() == Shape({5, 9}));
    REQUIRE(r.output.shape() == Shape({5, 4}));
    const double size = 1e-5 * (1 + gap(r.output, Tensor::zeros({5, 4})));
    if (r.output_is_weights_times_v) CHECK(gap(r.output, times(matrix_of(r.weights), matrix_of(in.v))) < size);
    CHECK(gap(output_of(m, in, m.usual()), r.output) < size);
    // What the last key holds is read: another value there is another output.
    MechanismInput other = in;
    other.v = in.v.copy();
    for (Index c = 0; c < 4; ++c) other.v.ref(8, c) += 5;
    CHECK(gap(m.run(other, m.usual(), Detail::output).output, r.output) > 1e-4);
  }
}

TEST_CASE("a single token, and a stop that was asked for") {
  for (const Mechanism& m : mechanisms()) {
    if (m.study) continue;
    CAPTURE(m.id);
    const MechanismInput one = random_head(1, 1, 4, 4, "causal");
    CHECK(m.run(one, m.usual(), Detail::steps).output.shape() == Shape({1, 4}));
  }
  std::stop_source stop;
  stop.request_stop();
  MechanismInput in = random_head(8, 8, 4, 4, "causal");
  in.stop = stop.get_token();
  CHECK_THROWS_AS(run("softmax", in), Cancelled);
  CHECK_THROWS_AS(run("linear", in), Cancelled);
}

TEST_CASE("those that run from first to last say so under another mask") {
  for (const Mechanism& m : mechanisms())
    if (m.needs_causal) CHECK_THROWS_AS(m.run(random_head(6, 6, 4, 4, "full"), m.usual(), Detail::weights), Error);
}

TEST_CASE("cost: what a page says at 24 and at 32 768 tokens of width 32") {
  const Mechanism& linear = *find_mechanism("linear");
  const Mechanism& softmax = *find_mechanism("softmax");
  CHECK(linear.cost({24, 32, 32}, linear.usual()).multiply_adds == 2.0 * 24 * 32 * 32);        // 49 k
  CHECK(softmax.cost({24, 32, 32}, softmax.usual()).multiply_adds == 24.0 * 24 * 64);          // 37 k
  CHECK(linear.cost({32768, 32, 32}, linear.usual()).multiply_adds == 2.0 * 32768 * 32 * 32);  // 67 M
  CHECK(linear.cost({32768, 32, 32}, linear.usual()).state_bytes == 32.0 * 33 * 4);
  CHECK(softmax.cost({24, 32, 32}, softmax.usual()).cache_bytes == 24.0 * 64 * 4);  // 6.1 kB
  const Mechanism& flash = *find_mechanism("flash");
  // Keys and values are read once for every block of rows, so tiles chosen too small move more than they save.
  const double plain = softmax.cost({32768, 32, 32}, softmax.usual()).moved_bytes;
  CHECK(flash.cost({32768, 32, 32}, parse_mechanism("flash fit=off rows=128").values).moved_bytes < plain / 4);
  CHECK(flash.cost({32768, 32, 32}, parse_mechanism("flash fit=off rows=8").values).moved_bytes > plain);
  CHECK(flash.cost({32768, 32, 32}, flash.usual()).moved_bytes < plain / 20);  // tiles that fill an A100's memory
}

TEST_CASE("a report says what it does not keep: states without end, maps without bounds") {
  const MechanismReport states = report_on(parse_mechanism("polynomial"), random_head(160, 160, 128, 128, "causal"));
  CHECK_FALSE(states.recurrence);
  CHECK(states.no_recurrence.find("160 tokens") != std::string::npos);
  CHECK(report_on(parse_mechanism("polynomial"), random_head(6, 6, 4, 4, "causal")).recurrence);
  CHECK_THROWS_WITH_AS(report_on(parse_mechanism("linear"), random_head(5000, 5000, 2, 2, "causal")),
                       doctest::Contains("5000 queries × 5000 keys, 0.1 GB each"), Error);
}

TEST_CASE("shape chips tell queries from keys where there are fewer of them") {
  const MechanismInput in = random_head(5, 8, 4, 6, "full");
  int rectangular = 0;
  for (const Mechanism& m : mechanisms()) {
    CAPTURE(m.id);
    if (!m.chips || m.study) continue;
    MechanismResult result;
    try {
      result = m.run(in, m.usual(), Detail::weights);
    } catch (const Error&) {
      continue;  // it needs as many queries as keys
    }
    ++rectangular;
    REQUIRE(result.output.dim(0) == 5);
    const auto chips = m.chips({8, 4, 6, 5}, m.usual());
    std::string all;
    for (const ShapeChip& chip : chips) {
      all += chip.text + "; ";
      if (chip.text.starts_with("Q ") && chip.text.find("block") == std::string::npos) CHECK(chip.text == "Q 5×4");
      CHECK_MESSAGE(chip.text.find("8×8") == std::string::npos, chip.text);
    }
    CHECK_MESSAGE(all.find("O 5×6") != std::string::npos, all);
  }
  CHECK(rectangular >= 12);
}

}  // namespace headscope::catalogue_test
