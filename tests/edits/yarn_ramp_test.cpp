// The three ramps of YaRN, and which of them an edit means.

#include <doctest/doctest.h>

#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/edits/intervention.h"
#include "core/edits/position_edit.h"

namespace headscope::yarn_ramp_test {

using Ramp = RotaryConfig::Ramp;
using Scaling = RotaryConfig::Scaling;

namespace {

constexpr int d = 32, context = 256;
constexpr double base = 10000, factor = 4;

ModelConfig model() {
  ModelConfig config;
  config.position = PositionKind::rotary;
  config.rotary.base = base;
  config.context = context;
  config.dims.d_head = d;
  config.dims.layers = 1;
  return config;
}

std::vector<double> frequencies(std::optional<Ramp> ramp, const ModelConfig& of = model()) {
  SetPositions edit{.method = SetPositions::Method::rope};
  edit.scaling = Scaling::yarn;
  edit.factor = factor;
  edit.ramp = ramp;
  return rotary_frequencies(rotary_of(edit, of), d);
}

/// The definition in double precision: γ of pair i by its ramp, θ (1 − γ) ÷ s + θ γ.
std::vector<double> by_definition(Ramp ramp) {
  std::vector<double> out;
  // The pair, as a fraction, whose wavelength is L ÷ turns: base^(2i/d) · 2π = L ÷ turns.
  const auto pair_that_turns = [](double turns) {
    return d / 2.0 * std::log(context / (2 * std::numbers::pi * turns)) / std::log(base);
  };
  for (int i = 0; i < d / 2; ++i) {
    const double theta = std::pow(base, -2.0 * i / d);
    double gamma = 0;
    if (ramp == Ramp::turns) {
      gamma = (context * theta / (2 * std::numbers::pi) - 1) / (32 - 1);
    } else {
      double low = pair_that_turns(32), high = pair_that_turns(1);
      if (ramp == Ramp::whole_pairs) low = std::floor(low), high = std::ceil(high);
      low = std::max(low, 0.0), high = std::min(high, d - 1.0);
      gamma = 1 - (i - low) / (high - low);
    }
    gamma = std::min(std::max(gamma, 0.0), 1.0);
    out.push_back(theta * (1 - gamma) / factor + theta * gamma);
  }
  return out;
}

void check_equal(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CAPTURE(i);
    CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-12));
  }
}

}  // namespace

TEST_CASE("every ramp of YaRN is its definition, and they differ") {
  for (const Ramp ramp : {Ramp::whole_pairs, Ramp::pairs, Ramp::turns})
    check_equal(frequencies(ramp), by_definition(ramp));
  // The pair in the middle of the ramp: 0.95 … of itself by whole pairs, else by turns.
  const auto whole = frequencies(Ramp::whole_pairs), pairs = frequencies(Ramp::pairs), turns = frequencies(Ramp::turns);
  double apart = 0, rounded = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    apart = std::max(apart, std::abs(whole[i] / turns[i] - 1));
    rounded = std::max(rounded, std::abs(whole[i] / pairs[i] - 1));
  }
  CHECK(apart > 0.3);
  CHECK(rounded > 0.03);
}

TEST_CASE("whole pairs and pairs are what transformers computes, with truncate and without") {
  // _compute_yarn_parameters of transformers, head_dim 32, rope_theta 10000, factor 4, 256 positions; in float32 there.
  const auto truncated = frequencies(Ramp::whole_pairs), exact = frequencies(Ramp::pairs);
  const std::vector<double> as_true{1.0,
                                    0.502090454102,
                                    0.248464688659,
                                    0.120668955147,
                                    0.0571428537369,
                                    0.0261087007821,
                                    0.0112938489765,
                                    0.00444569857791};
  const std::vector<double> as_false{1.0,
                                     0.521685898304,
                                     0.253972291946,
                                     0.120666697621,
                                     0.0553986355662,
                                     0.0241477265954,
                                     0.00963994301856,
                                     0.00444569857791};
  for (std::size_t i = 0; i < 8; ++i) {
    CAPTURE(i);
    CHECK(truncated[i] == doctest::Approx(as_true[i]).epsilon(2e-6));
    CHECK(exact[i] == doctest::Approx(as_false[i]).epsilon(2e-6));
  }
}

TEST_CASE(
    "an edit that names no ramp means whole pairs, as transformers does, or that of a model with YaRN of its own") {
  check_equal(frequencies({}), by_definition(Ramp::whole_pairs));
  ModelConfig own = model();
  own.rotary.scaling = Scaling::yarn;
  own.rotary.factor = 2;
  own.rotary.original_context = context;
  own.rotary.low_frequency_factor = 1;
  own.rotary.high_frequency_factor = 32;
  own.rotary.ramp = Ramp::pairs;  // "truncate": false
  check_equal(frequencies({}, own), by_definition(Ramp::pairs));
  check_equal(frequencies(Ramp::turns, own), by_definition(Ramp::turns));
}

TEST_CASE("the ramp is written and read back") {
  for (const RampInfo& each : yarn_ramps()) {
    const std::string words = "*: position rope scaling yarn 4 ramp " + std::string(each.id);
    const Intervention edit = parse_intervention(words, "test");
    REQUIRE(edit.action.as<SetPositions>());
    CHECK(edit.action.as<SetPositions>()->ramp == each.ramp);
    CHECK(describe(edit) == words);
  }
  CHECK_THROWS_AS(parse_intervention("*: position rope scaling yarn 4 ramp steep", "test"), Error);
  CHECK_THROWS_AS(parse_intervention("*: position rope scaling ntk 4 ramp whole", "test"), Error);
}

}  // namespace headscope::yarn_ramp_test
