// The chunk-wise form of linear recurrences, the cache in pages, the residual highway, a convolution for positions.

#include <doctest/doctest.h>

#include <algorithm>

#include "core/attention/mechanism_report.h"
#include "tests/attention/mechanisms/input.h"

namespace headscope::memory_and_blocks_test {

using namespace testing;

namespace {
const std::string& value_of(const MechanismResult& r, std::string_view name) {
  return std::ranges::find(r.facts, name, &MechanismFact::name)->value;
}
double percent_in(const std::string& text) {
  return number_in(text.substr(text.find(", ") + 2));
}
}  // namespace

TEST_CASE("chunk-wise: every recurrence and chunk length gives what token by token gives") {
  const MechanismInput in = random_head(23, 23, 5, 4, "causal");
  for (const char* form : {"linear", "decay", "gated", "delta"}) {
    const MechanismChoice by_token = parse_mechanism(std::string("chunk-wise recurrence=") + form);
    const Recurrence recurrence = by_token.mechanism->recurrent(in, by_token.values);
    for (const char* chunk : {"1", "2", "8", "23", "128"}) {
      CAPTURE(form);
      CAPTURE(chunk);
      const MechanismResult r =
          run(std::string("chunk-wise recurrence=") + form + " chunk=" + chunk, in, Detail::steps);
      CHECK(gap(r.output, recurrence.output) < 2e-5);
      CHECK(gap(r.output, times(matrix_of(r.weights), matrix_of(in.v))) < 2e-5);
      CHECK(gap(step_of(r, "state").value, recurrence.states.back()) < 2e-5);
    }
  }
}

TEST_CASE("chunk-wise: three tokens by hand, and the mechanisms whose recurrences these are") {
  // d = d_v = 1, scale 1, γ = ½: S = 1·1, ½ + 2·1 = 2.5, 1.25 + 1·3 = 4.25; o = q S.
  const MechanismInput in{rows(3, 1, {1, 2, 1}), rows(3, 1, {1, 2, 1}), rows(3, 1, {1, 1, 3}), 1, parse_mask("causal")};
  const MechanismResult r = run("chunk-wise recurrence=decay decay=0.5 chunk=2", in, Detail::steps);
  CHECK(r.output.at(0, 0) == 1);
  CHECK(r.output.at(1, 0) == 5);
  CHECK(r.output.at(2, 0) == 4.25);
  CHECK(step_of(r, "through").value.at(2, 0) == 1.25);  // the third token is alone in its chunk
  CHECK(step_of(r, "inside").value.at(2, 0) == 3);
  CHECK(value_of(r, "Steps in sequence") == "2 chunks in place of 3 tokens");
  CHECK(number_in(value_of(r, "Multiply-adds")) == 3 * 2 * 2 + 2 * 3);  // n C (d + d_v) + 2 n d d_v
  const MechanismInput text = random_head(19, 19, 6, 5, "causal");
  CHECK(gap(run("chunk-wise recurrence=linear chunk=4", text).output, run("linear normalise=none", text).output) <
        1e-4);
  CHECK(gap(run("chunk-wise recurrence=delta beta=0.7 chunk=4", text).output,
            run("delta beta=0.7 decay=1", text).output) < 1e-5);
}

TEST_CASE("paged cache: blocks, table and waste of what was drawn") {
  MechanismInput in = random_head(2, 2, 8, 4, "causal");
  const MechanismResult r = run("paged-cache block=4 sequences=5 longest=32 window=8", in, Detail::steps);
  const MechanismStep &rows = step_of(r, "reserved"), &table = step_of(r, "table"), &pool = step_of(r, "pool");
  const auto written = [](const MechanismStep& s) { return std::ranges::count(s.masked, 0); };
  const auto tokens = static_cast<double>(written(rows));
  CHECK(written(pool) == tokens);              // every token has a slot, and no other
  CHECK(written(table) == pool.value.dim(0));  // every block is in the table once
  CHECK(pool.value.dim(1) == 4);
  CHECK(table.value.shape() == Shape({5, 8}));
  std::vector<float> numbers;
  for (Index s = 0; s < 5; ++s) {
    double length = 0, blocks = 0;
    for (Index t = 0; t < 32; ++t) length += !rows.masked[static_cast<std::size_t>(s * 32 + t)];
    for (Index b = 0; b < 8; ++b)
      if (!table.masked[static_cast<std::size_t>(s * 8 + b)]) {
        ++blocks;
        numbers.push_back(table.value.at(s, b));
        CHECK(pool.value.at(static_cast<Index>(table.value.at(s, b)), 0) == static_cast<float>(s + 1));
      }
    CHECK(blocks == std::ceil(length / 4));
  }
  std::ranges::sort(numbers);
  for (std::size_t b = 0; b < numbers.size(); ++b) CHECK(numbers[b] == static_cast<float>(b));
  CHECK(percent_in(value_of(r, "Without pages")) == doctest::Approx(100 * (1 - tokens / 160)).epsilon(0.01));
  CHECK(percent_in(value_of(r, "In pages")) ==
        doctest::Approx(100 * (1 - tokens / (4 * static_cast<double>(pool.value.dim(0))))).epsilon(0.02));
  CHECK(value_of(r, "A token") == "48 B");  // (8 + 4) · 4
  // Of a layer of two heads that share their keys, in a model of three layers: (8 + 4) · 4 · 3, counted once.
  auto layer = std::make_shared<HeadsOfLayer>();
  layer->layers = 3, layer->q = {in.q, in.q}, layer->k = {in.k, in.k}, layer->v = {in.v, in.v};
  in.layer = layer;
  CHECK(value_of(run("paged-cache", in, Detail::steps), "A token") == "144 B");
  // Blocks of one token waste nothing.
  CHECK(percent_in(value_of(run("paged-cache block=1", in, Detail::steps), "In pages")) == 0);
}

TEST_CASE("residual highway: relu halves, the plain stack loses √(g/2) a layer, residuals do not") {
  const MechanismInput in = random_head(2, 2, 4, 4, "full");
  for (const char* gain : {"1", "2", "0.5"}) {
    CAPTURE(gain);
    const MechanismResult r = run(std::string("residual-highway layers=12 width=256 gain=") + gain, in, Detail::steps);
    CHECK(number_in(value_of(r, "ReLU keeps")) == doctest::Approx(50).epsilon(0.1));
    CHECK(number_in(value_of(r, "ReLU sets to 0")) == doctest::Approx(50).epsilon(0.05));
    const auto& plain = r.curves[0].lines[0];
    REQUIRE(plain.x.size() == 13);
    // log₁₀ √(g/2)¹²; of one draw it scatters by √(12 · 5/256) ÷ 2 nats, the mean of 16 by a quarter of that.
    double mean = 0;
    for (int seed = 1; seed <= 16; ++seed)
      mean += run("residual-highway layers=12 width=256 gain=" + std::string(gain) + " seed=" + std::to_string(seed),
                  in, Detail::steps)
                  .curves[0]
                  .lines[0]
                  .y.front() /
              16;
    CHECK(std::abs(mean - 6 * std::log10(std::stod(gain) / 2)) < 0.1);
    CHECK(plain.y.back() == 0);
    for (const std::size_t other : {1, 2}) CHECK(r.curves[0].lines[other].y.front() > 0);
    CHECK(r.curves[0].lines[2].y.front() < r.curves[0].lines[1].y.front());  // the norm holds growth down
  }
}

TEST_CASE("residual highway: the signal of the plain stack falls as its gradient, norms hold it") {
  const MechanismResult r = run("residual-highway layers=6 width=64", random_head(2, 2, 4, 4, "full"), Detail::steps);
  const auto& signal = r.curves[1].lines;
  CHECK(signal[0].y.back() == doctest::Approx(3 * std::log10(0.5)).epsilon(0.25));
  CHECK(std::abs(signal[3].y.back() - signal[3].y[1]) < 1e-6);  // normed behind every layer
}

TEST_CASE("mix-ffn: shuffled patches come out shuffled, but for the convolution") {
  const MechanismInput in = random_head(17, 17, 6, 6, "full");  // a class token and 4 × 4 patches
  const MechanismResult r = run("mix-ffn", in, Detail::steps);
  CHECK(number_in(value_of(r, "Without the convolution")) < 1e-6);
  CHECK(number_in(value_of(r, "With it")) > 0.05);
  CHECK(value_of(r, "A patch reaches") == "9 of 16");
  CHECK(value_of(r, "Picture") == "4 × 4 patches");
  CHECK(gap(step_of(r, "x").value, in.k.slice(0, 1, 17).copy()) == 0);
  CHECK(gap(step_of(r, "attention-off").value, Tensor::zeros({4, 4})) < 1e-5);
  // Without patches to shuffle nothing differs: one patch.
  CHECK(number_in(value_of(run("mix-ffn", random_head(3, 3, 2, 2, "full"), Detail::steps), "With it")) == 0);
}

}  // namespace headscope::memory_and_blocks_test
