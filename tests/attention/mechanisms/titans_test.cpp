// Titans in the catalogue: what the head gives (memory alone, or joined as context, gate, layer), its weights, cost,
// curves and the numbers of its diagram.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/attention/mechanism_math.h"
#include "core/attention/memory_paths.h"
#include "core/attention/memory_recall.h"
#include "core/attention/titans_forms.h"
#include "core/base/error.h"
#include "tests/attention/mechanisms/input.h"

namespace headscope::titans_test {

using namespace testing;

namespace {

constexpr const char* forms[] = {"context", "gate", "layer"};
constexpr const char* depths[] = {"", " hidden=5 learning=0.03", " hidden=5 depth=2 learning=0.03"};

std::string joined(const char* form, const std::string& further = "") {
  return std::string("titans output=joined span=3 form=") + form + further;
}
MechanismResult output_only(const std::string& spec, const MechanismInput& in) {
  return run(spec, in, Detail::output);
}
/// Rows of the first tokens alone.
MechanismInput beginning(const MechanismInput& in, Index tokens) {
  MechanismInput out = in;
  out.q = in.q.slice(0, 0, tokens).packed(), out.k = in.k.slice(0, 0, tokens).packed();
  out.v = in.v.slice(0, 0, tokens).packed();
  return out;
}

}  // namespace

TEST_CASE("the head gives memory alone unless it is asked to join, and then what titans_forms.h says") {
  const MechanismInput in = random_head(10, 10, 4, 4, "causal");
  for (const char* form : forms) {
    CAPTURE(form);
    const std::string spec = std::string("titans form=") + form;
    CHECK(gap(run(spec, in).output, run("titans", in).output) == 0);  // what older sessions mean by a form
    const TitansForm which = static_cast<TitansForm>(std::ranges::find(forms, std::string(form)) - forms);
    const PersistentTokens always = persistent_tokens(2, in.k.slice(0, 0, 1).packed(), in.v.slice(0, 0, 1).packed(), 1);
    const TitansJoined expected =
        join_memory(which, in.q, in.k, in.v, in.scale, {0.3, 0.2, 0.02}, {}, always, 3,
                    {TitansReading::Context::output, TitansReading::Gating::memory, TitansReading::Segments::causal});
    CHECK(gap(output_only(joined(form), in).output, expected.output) == 0);
    CHECK(gap(output_only(joined(form), in).output, run("titans", in).output) > 1e-2);
  }
  // The forms differ from one another, and a deep memory from one of one matrix.
  CHECK(gap(run(joined("context"), in).output, run(joined("gate"), in).output) > 1e-2);
  CHECK(gap(run(joined("gate"), in).output, run(joined("layer"), in).output) > 1e-2);
  for (const char* form : forms)
    CHECK(gap(run(joined(form, depths[0]), in).output, run(joined(form, depths[1]), in).output) > 1e-4);
  CHECK(gap(run("titans hidden=5 learning=0.03", in).output, run("titans hidden=5 depth=2 learning=0.03", in).output) >
        1e-3);
}

TEST_CASE("fast, stepwise and recurrent outputs agree, and the beginning of a text is what it is alone") {
  const MechanismInput in = random_head(11, 11, 4, 3, "causal", 4);
  const Mechanism& titans = *find_mechanism("titans");
  for (const char* form : forms)
    for (const char* depth : depths)
      for (const char* adaptive : {"", " adaptive=on"}) {
        const std::string spec = joined(form, std::string(depth) + adaptive);
        CAPTURE(spec);
        const MechanismChoice choice = parse_mechanism(spec);
        const Tensor whole = run(spec, in, Detail::steps).output;
        CHECK(gap(titans.output(in, choice.values), whole) < 1e-5);
        const Recurrence recurrent = titans.recurrent(in, choice.values);
        CHECK(gap(recurrent.output, whole) < 1e-5);
        CHECK(recurrent.states.size() == 11);
        for (const Index tokens : {1, 4, 6, 10})  // as a model that generates meets it
          CHECK(gap(titans.output(beginning(in, tokens), choice.values), whole.slice(0, 0, tokens)) < 1e-5);
      }
}

TEST_CASE(
    "weights: exact for memory alone and for a layer without persistent tokens, else told to be none of the output") {
  const MechanismInput in = random_head(12, 12, 4, 3, "causal", 2);
  const auto mixture = [&](const std::string& spec) {
    const MechanismResult r = run(spec, in);
    const Matrix product = times(matrix_of(r.weights), matrix_of(in.v));
    CHECK(r.output_is_weights_times_v == (gap(r.output, product) < 1e-5));
    for (Index i = 0; i < 12; ++i)
      for (Index j = i + 1; j < 12; ++j) CHECK(r.weights.at(i, j) == 0);
    return r.output_is_weights_times_v;
  };
  CHECK(mixture("titans"));
  CHECK(mixture("titans adaptive=on"));
  CHECK(mixture(joined("layer", " persistent=0")));
  CHECK(mixture(joined("layer", " persistent=0 adaptive=on")));
  CHECK_FALSE(mixture(joined("layer", " persistent=2")));
  CHECK_FALSE(mixture(joined("layer", " persistent=0 hidden=4 learning=0.05")));
  CHECK_FALSE(mixture(joined("gate", " persistent=0")));
  CHECK_FALSE(mixture(joined("context", " persistent=0")));
  CHECK_FALSE(mixture("titans hidden=4 learning=0.05"));
  // A layer reaches beyond its window; a gate's attention does not.
  CHECK(run(joined("layer", " persistent=0"), in).weights.at(11, 0) != 0);
  CHECK(run(joined("gate", " persistent=0"), in).weights.at(11, 8) == 0);
  CHECK(run(joined("gate", " persistent=0"), in).weights.at(11, 9) != 0);
  CHECK(run(joined("context", " persistent=0"), in).weights.at(11, 8) != 0);  // of another segment, by way of memory
}

TEST_CASE("cost: a memory of more matrices, and the attention that each form adds") {
  const Mechanism& titans = *find_mechanism("titans");
  const auto cost = [&](const std::string& spec) { return titans.cost({96, 6, 10}, parse_mechanism(spec).values); };
  // Numbers: 7 · 6 + 7 · 7 + 10 · 7 = 161. Five products with each, and one more on the way back with all but the
  // first.
  CHECK(cost("titans hidden=7 depth=2").multiply_adds == doctest::Approx(96 * (5 * 161 + 119)));
  CHECK(cost("titans hidden=7 depth=2").state_bytes == doctest::Approx(8 * 161));
  CHECK(cost("titans hidden=7").multiply_adds == doctest::Approx(96 * (5 * 112 + 70)));
  const double memory = 96 * 5 * 60;
  const auto more = [&](const std::string& form) {
    return cost("titans output=joined persistent=2 span=8 form=" + form).multiply_adds - memory;
  };
  CHECK(more("layer") == doctest::Approx(96 * 10 * 16 + 2 * 5 * 60));
  CHECK(more("gate") == doctest::Approx(96 * 10 * 16 + 2 * 5 * 60 + 3 * 96 * 10));
  CHECK(more("context") == doctest::Approx(96 * 18 * 16 + 96 * 60 + 3 * 96 * 10));
  const auto kept = [&](const std::string& form) {
    return cost("titans output=joined persistent=2 span=8 form=" + form).cache_bytes;
  };
  CHECK(kept("gate") == doctest::Approx(4 * 10 * 16));
  CHECK(kept("layer") == doctest::Approx(4 * 10 * 16));
  CHECK(kept("context") == doctest::Approx(4 * (10 * 16 + 8 * 10)));
  CHECK(cost("titans persistent=2").cache_bytes == 0);  // memory alone reads none
  CHECK(cost("titans output=joined persistent=3").moved_bytes - cost("titans").moved_bytes ==
        doctest::Approx(4 * 3 * 16));
  // A window longer than the text is the text.
  CHECK(titans.cost({5, 6, 10}, parse_mechanism("titans output=joined form=gate persistent=0 span=64").values)
            .multiply_adds == doctest::Approx(5 * 5 * 60 + 5 * 5 * 16 + 3 * 5 * 10));
}

TEST_CASE("the numbers of the diagram are those of the steps") {
  const MechanismInput in = random_head(8, 8, 4, 4, "causal", 6);
  const auto length = [](const Tensor& x) {
    double sum = 0;
    for (const std::vector<double>& row : matrix_of(x)) sum += std::sqrt(dot(row, row));
    return sum / static_cast<double>(x.dim(0));
  };
  for (const char* form : forms) {
    CAPTURE(form);
    const MechanismResult r = run(joined(form, " persistent=2"), in, Detail::steps);
    REQUIRE(r.memory);
    const MemoryPaths& paths = *r.memory;
    const bool context = form == std::string("context"), layer = form == std::string("layer");
    CHECK(paths.form == static_cast<TitansForm>(std::ranges::find(forms, std::string(form)) - forms));
    CHECK(paths.tokens == 8);
    CHECK(paths.persistent == 2);
    // The last of eight tokens, segments of three: two of its own segment, or three in the window.
    CHECK(paths.seen == (context ? 2 : 3));
    CHECK(paths.recalled == (context ? 2 : 0));
    const Tensor& mask = step_of(r, "mask").value;
    double shares[3] = {};
    for (Index i = 0; i < 8; ++i)
      for (Index c = 0; c < mask.dim(1); ++c)
        shares[c < 2 ? 0 : context && c < 10 ? 1 : 2] += static_cast<double>(mask.at(i, c)) / 8;
    CHECK(paths.to_persistent == doctest::Approx(shares[0]));
    CHECK(paths.to_recalled == doctest::Approx(shares[1]));
    CHECK(paths.to_tokens == doctest::Approx(shares[2]));
    CHECK(paths.to_persistent + paths.to_recalled + paths.to_tokens == doctest::Approx(1));
    CHECK(paths.y == doctest::Approx(length(step_of(r, "attended").value)));
    CHECK(paths.says == doctest::Approx(length(step_of(r, "recalled").value)));
    CHECK(paths.output == doctest::Approx(length(r.output)));
    CHECK(paths.forgetting == doctest::Approx(0.02));
    double surprise = 0, gate = 0;
    for (Index t = 0; t < 8; ++t) surprise += static_cast<double>(step_of(r, "surprise").value.at(t, 0)) / 8;
    CHECK(paths.surprise == doctest::Approx(surprise));
    if (!layer)
      for (const float each : step_of(r, "gate").value.values()) gate += static_cast<double>(each) / 32;
    CHECK(paths.gate == doctest::Approx(gate));
    REQUIRE(r.facts.size() == (layer ? 1u : 2u));
    CHECK(number_in(r.facts[0].value) == doctest::Approx(shares[0]).epsilon(0.01));
    CHECK(r.facts[0].value.find(context ? "tokens of the segment" : "tokens in the window") != std::string::npos);
    if (!layer) CHECK(number_in(r.facts[1].value) == doctest::Approx(gate).epsilon(0.01));
    CHECK(gap(step_of(r, layer ? "attended" : "joined").value, r.output) < 1e-6);
    CHECK(gap(step_of(r, "output").value, r.output) == 0);
  }
  const MechanismResult alone = run("titans form=gate", in, Detail::steps);
  REQUIRE(alone.memory);
  CHECK_FALSE(alone.memory->form);
  CHECK(alone.memory->says == doctest::Approx(length(alone.output)));
  CHECK(alone.memory->y == 0);
  CHECK(alone.facts.empty());
  CHECK_FALSE(run("titans", in).memory);
}

TEST_CASE("MAC in the model is taught and asked causally; the page shows the paper's segments while memory is alone") {
  const MechanismInput in = random_head(7, 7, 4, 4, "causal", 3);
  const MechanismResult shown = run("titans form=context span=3", in, Detail::steps),
                        given = run(joined("context"), in, Detail::steps);
  // Token 0 sees what was recalled for 1 and 2 in the paper's segment, not in the causal one.
  const auto hidden = [](const MechanismResult& r, Index row, Index column) {
    const MechanismStep& mask = step_of(r, "mask");
    return mask.masked[static_cast<std::size_t>(row * mask.value.dim(1) + column)] == 1;
  };
  for (const Index column : {3, 4}) {
    CHECK_FALSE(hidden(shown, 0, column));
    CHECK(hidden(given, 0, column));
    CHECK_FALSE(hidden(given, 2, column));
  }
  CHECK(step_of(given, "loss").formula.find("yₜ) − yₜ") != std::string::npos);
  CHECK(step_of(run(joined("context", " context-memory=token"), in, Detail::steps), "loss").formula.find("kₜ) − yₜ") !=
        std::string::npos);
  CHECK(step_of(shown, "loss").formula.find("kₜ) − vₜ") != std::string::npos);
}

TEST_CASE("curves: forgetting and fill where it adapts, deep against linear where it is asked for") {
  const MechanismInput in = random_head(9, 9, 4, 4, "causal", 8);
  CHECK(run("titans", in, Detail::steps).curves.size() == 1);
  const MechanismResult adaptive =
      run("titans adaptive=on surprise-weight=5 fill-weight=3 surprise-span=6 capacity=7 forgetting=0.1", in,
          Detail::steps);
  REQUIRE(adaptive.curves.size() == 3);
  const MemoryRun expected =
      run_memory(mechanism::unit_rows(in.q), mechanism::unit_rows(in.k), in.v, {0.3, 0.2, 0.1, {true, 5, 3, 6, 7}});
  CHECK(adaptive.curves[1].lines[0].y == expected.forgetting);
  CHECK(adaptive.curves[1].lines[1].y == std::vector<double>(9, 0.1));
  CHECK(adaptive.curves[2].lines[0].y == expected.size);
  CHECK(adaptive.curves[2].lines[0].x.back() == 8);
  CHECK(gap(adaptive.output, expected.output) < 1e-5);
  CHECK(gap(adaptive.output, run("titans forgetting=0.1", in).output) > 1e-4);
  double mean = 0;
  for (const double each : expected.forgetting) mean += each / 9;
  CHECK(adaptive.memory->forgetting == doctest::Approx(mean));

  const MechanismResult recall = run("titans recall=on recall-learning=0.03 momentum=0.2 seed=5", in, Detail::steps);
  REQUIRE(recall.curves.size() == 3);
  const TaughtPairs pairs[] = {{mechanism::unit_rows(in.k), in.v}, parity_pairs(512, 5)};
  for (std::size_t c = 0; c < 2; ++c) {
    const MechanismCurve& curve = recall.curves[c + 1];
    CHECK(curve.title == (c == 0 ? "Recall: these pairs" : "Recall: parity"));
    CHECK(curve.y_title.find("θ = 0.03, η = 0.2, α = 0") != std::string::npos);
    REQUIRE(curve.lines.size() == 3);
    const MemoryShape shapes[] = {{}, {32, 5, 1}, {32, 5, 2}};
    for (std::size_t i = 0; i < 3; ++i) {
      const RecallCurve by = recall_while_learning(pairs[c].k, pairs[c].v, {0.2, 0.03, 0}, shapes[i]);
      CHECK(curve.lines[i].y == by.error);
      CHECK(curve.lines[i].x == by.pairs);
    }
    CHECK(curve.lines[0].label == "one matrix");
    CHECK(curve.lines[2].label == "2 hidden × 32");
  }
  // Its own width where it is deep, and the count at which a line is lost.
  const MechanismResult wild =
      run("titans hidden=40 learning=0.01 recall=on recall-learning=0.2 momentum=0.9", in, Detail::steps);
  CHECK(wild.curves[2].lines[2].label.starts_with("2 hidden × 40, beyond 10 at "));
}

TEST_CASE("parameters without a say are not shown, and the sentence says what the weights are") {
  const auto shows = [](const char* spec, std::string_view name) {
    const MechanismChoice choice = parse_mechanism(spec);
    const auto shown = choice.mechanism->shown_parameters(choice.values, {9, 4, 4});
    return std::ranges::any_of(shown, [&](const MechanismParameter* each) { return each->name == name; });
  };
  for (const char* name : {"surprise-weight", "fill-weight", "surprise-span", "capacity"}) {
    CHECK_FALSE(shows("titans", name));
    CHECK(shows("titans adaptive=on", name));
  }
  CHECK_FALSE(shows("titans", "depth"));
  CHECK(shows("titans hidden=3", "depth"));
  CHECK_FALSE(shows("titans", "recall-learning"));
  CHECK(shows("titans recall=on", "recall-learning"));
  CHECK(shows("titans recall=on persistent=0 hidden=0", "seed"));
  const MechanismInput in = random_head(6, 6, 4, 4, "causal");
  const auto note = [&](const std::string& spec) {
    const MechanismChoice choice = parse_mechanism(spec);
    return choice.mechanism->note(in, choice.values, run(spec, in));
  };
  CHECK(note(joined("gate")).find("no weights give it") != std::string::npos);
  CHECK(note(joined("context")).find("no weights give it") != std::string::npos);
  CHECK(note(joined("layer", " persistent=0")).find("with its own weight here") != std::string::npos);
  CHECK(note(joined("layer", " persistent=0")).find("Persistent") == std::string::npos);
  CHECK(note(joined("layer", " persistent=1")).find("Persistent tokens have a say") != std::string::npos);
  CHECK(note(joined("layer", " hidden=4")).find("no mixture of values") != std::string::npos);
}

TEST_CASE("whoever asks to stop is heard, whatever is joined") {
  for (const char* form : forms) {
    MechanismInput in = random_head(6, 6, 4, 4, "causal");
    std::stop_source stop;
    in.stop = stop.get_token();
    CHECK_NOTHROW(run(joined(form), in, Detail::output));
    stop.request_stop();
    CHECK_THROWS_AS(run(joined(form), in, Detail::output), Cancelled);
  }
}

}  // namespace headscope::titans_test
