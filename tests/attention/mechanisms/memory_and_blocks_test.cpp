// The chunk-wise form of linear recurrences, the cache in pages, the residual highway, a convolution for positions.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanism_report.h"
#include "core/base/random.h"
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
  // The delta rule besides: n C d for K Kᵀ, n (C − 1) (d + d_v) ÷ 2 to solve, n d d_v for W S.
  CHECK(number_in(value_of(run("chunk-wise recurrence=delta chunk=2", in, Detail::steps), "Multiply-adds")) ==
        18 + 3 * 2 + 3 * 1 * 2 / 2 + 3);
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
    // The last block is told by the tokens that were written.
    const Index last = static_cast<Index>(blocks) - 1, end = static_cast<Index>(length) - 1;
    const std::string words = 4 * last == end ? "token " + std::to_string(end)
                                              : "tokens " + std::to_string(4 * last) + " … " + std::to_string(end);
    CHECK(table.explain(s, last) == words + " of sequence " + std::to_string(s + 1));
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

TEST_CASE("chunk-wise, gated: weights are products of the gates σ(3 + W k), also where these come near 0") {
  constexpr std::size_t n = 110, d = 6;
  for (const double size : {1.0, 20.0}) {
    CAPTURE(size);
    MechanismInput in = random_head(n, n, d, 4, "causal");
    for (float& x : in.k.mutable_values()) x *= static_cast<float>(size);
    const Matrix q = matrix_of(in.q), k = matrix_of(in.k), w = matrix_of(mechanism::gaussian(d, d, 5));
    Matrix gates(n, std::vector<double>(d)), weights(n, std::vector<double>(n, 0.0));
    for (std::size_t t = 0; t < n; ++t)
      for (std::size_t c = 0; c < d; ++c)
        gates[t][c] = 1 / (1 + std::exp(-3 - dot(w[c], k[t]) / std::sqrt(static_cast<double>(d))));
    for (std::size_t s = 0; s < n; ++s) {
      std::vector<double> kept(d, 1.0);
      for (std::size_t t = s; t < n; ++t) {
        for (std::size_t c = 0; c < d; ++c) {
          if (t > s) kept[c] *= gates[t][c];
          weights[t][s] += static_cast<double>(in.scale) * q[t][c] * kept[c] * k[s][c];
        }
      }
    }
    const Matrix expected = times(weights, matrix_of(in.v));
    for (const char* chunk : {"1", "8", "128"}) {
      CAPTURE(chunk);
      const MechanismResult r = run(std::string("chunk-wise seed=5 chunk=") + chunk, in, Detail::steps);
      CHECK(gap(r.weights, weights) < 1e-5 * size);
      CHECK(gap(r.output, expected) < 1e-5 * size);
      const Tensor& tiles = step_of(r, "tiles").value;
      if (chunk == std::string("128")) CHECK(gap(tiles, weights) < 1e-5 * size);
    }
  }
}

TEST_CASE("mix-ffn: Z = Y + silu(conv(Y)) of a picture of 3 × 3 patches, by its definition") {
  const MechanismInput in = random_head(9, 9, 2, 2, "full");
  const MechanismResult r = run("mix-ffn seed=4", in, Detail::steps);
  const Matrix x = matrix_of(in.k), w = matrix_of(mechanism::gaussian(9, 2, 4));
  Matrix y = x;
  for (std::size_t i = 0; i < 9; ++i) {
    double sum = 0;
    std::vector<double> mixed(2, 0.0);
    for (std::size_t j = 0; j < 9; ++j) {
      const double e = std::exp(dot(x[i], x[j]) / std::sqrt(2.0));
      sum += e;
      for (std::size_t c = 0; c < 2; ++c) mixed[c] += e * x[j][c];
    }
    for (std::size_t c = 0; c < 2; ++c) y[i][c] += mixed[c] / sum;
  }
  // Which of the nine numbers meets which patch: of the upper left one the last four, of the middle one all.
  const std::vector<std::pair<std::size_t, std::size_t>> meets[] = {
      {{4, 0}, {5, 1}, {7, 3}, {8, 4}},                                          // row 0, column 0
      {{0, 0}, {1, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 5}, {6, 6}, {7, 7}, {8, 8}},  // the middle
      {{0, 1}, {1, 2}, {3, 4}, {4, 5}, {6, 7}, {7, 8}}};                         // row 1, column 2
  const std::size_t patches[] = {0, 4, 5};
  const Tensor &places = step_of(r, "places").value, &shuffled = step_of(r, "convolution").value;
  for (std::size_t p = 0; p < 3; ++p)
    for (std::size_t c = 0; c < 2; ++c) {
      double conv = 0;
      for (const auto& [number, patch] : meets[p]) conv += w[number][c] / 3 * y[patch][c];
      const double z = y[patches[p]][c] + conv / (1 + std::exp(-conv));
      for (Index at = 0; at < 9; ++at)
        if (static_cast<std::size_t>(places.at(at / 3, at % 3)) == patches[p])
          CHECK(static_cast<double>(shuffled.at(at, static_cast<Index>(c))) == doctest::Approx(z).epsilon(1e-5));
    }
  CHECK(step_of(r, "convolution-off").range == MechanismStep::Range::positive);  // ‖a − b‖ ÷ ‖a‖ may pass 1
}

namespace {
using Row = std::vector<double>;

double size_of(const Row& x) {
  double sum = 0;
  for (const double v : x) sum += v * v;
  return std::sqrt(sum / static_cast<double>(x.size()));
}
Row normed(const Row& x) {
  double mean = 0, square = 0;
  for (const double v : x) mean += v / static_cast<double>(x.size());
  for (const double v : x) square += (v - mean) * (v - mean) / static_cast<double>(x.size());
  Row out;
  for (const double v : x) out.push_back((v - mean) / std::sqrt(square + 1e-12));
  return out;
}
/// plain, residual, pre-norm, post-norm: x after all layers.
Row through(int stack, const std::vector<Matrix>& weights, Row x) {
  for (const Matrix& w : weights) {
    const Row read = stack == 2 ? normed(x) : x;
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::max(dot(w[i], read), 0.0) + (stack == 0 ? 0 : x[i]);
    if (stack == 3) x = normed(x);
  }
  return x;
}
}  // namespace

TEST_CASE("residual highway: signal and gradient of all four stacks, by definition and by differences") {
  constexpr std::size_t d = 16, layers = 3;
  const MechanismResult r =
      run("residual-highway layers=3 width=16 gain=1.5 seed=4", random_head(2, 2, 4, 4, "full"), Detail::steps);
  // As they are drawn: the input, the direction of the gradient, then each layer's matrix column by column.
  Random random(4);
  Row input(d), direction(d);
  for (Row* each : {&input, &direction})
    for (double& v : *each) v = static_cast<double>(random.normal());
  std::vector<Matrix> weights(layers, Matrix(d, Row(d)));
  for (Matrix& w : weights)
    for (std::size_t j = 0; j < d; ++j)
      for (std::size_t i = 0; i < d; ++i) w[i][j] = std::sqrt(1.5 / d) * static_cast<double>(random.normal());
  for (int stack = 0; stack < 4; ++stack) {
    CAPTURE(stack);
    Row slope;
    for (std::size_t i = 0; i < d; ++i) {
      Row up = input, down = input;
      up[i] += 1e-6, down[i] -= 1e-6;
      slope.push_back((dot(direction, through(stack, weights, up)) - dot(direction, through(stack, weights, down))) /
                      2e-6);
    }
    const auto line = static_cast<std::size_t>(stack);
    const double arrived = size_of(slope) / size_of(direction);
    CHECK(r.curves[0].lines[line].y.front() == doctest::Approx(std::log10(arrived)).epsilon(1e-4).scale(1));
    CHECK(r.curves[1].lines[line].y.back() ==
          doctest::Approx(std::log10(size_of(through(stack, weights, input)) / size_of(input))).scale(1));
    CHECK(r.facts[3 + line].value == "× " + mechanism::text(std::pow(10, r.curves[0].lines[line].y.front())));
  }
  // √(g/2) a layer.
  CHECK(number_in(value_of(r, "Expected, plain").substr(std::string("× ").size())) ==
        doctest::Approx(std::pow(0.75, 1.5)).epsilon(2e-3));
  const std::string note = find_mechanism("residual-highway")->note({}, {}, r);
  CHECK(note.find("plain " + r.facts[3].value + ", residual " + r.facts[4].value + ", pre-norm " + r.facts[5].value +
                  ", post-norm " + r.facts[6].value) != std::string::npos);
}

TEST_CASE("paged cache: bytes below ten as they are, shares that are gone, and the curve of waste") {
  // A key and a value of one number: 8 bytes a token.
  const MechanismInput in = random_head(2, 2, 1, 1, "causal");
  const MechanismResult r = run("paged-cache block=4 sequences=5 longest=32 window=8", in, Detail::steps);
  CHECK(value_of(r, "A token") == "8 B");
  const MechanismStep& rows = step_of(r, "reserved");
  double written = 0, kept = 0;
  std::vector<int> lengths;
  for (std::size_t s = 0; s < 5; ++s) {
    int length = 0;
    while (length < 32 && !rows.masked[s * 32 + static_cast<std::size_t>(length)]) ++length;
    for (int t = 0; t < 32; ++t)
      CHECK(rows.value.at(static_cast<Index>(s), t) == (t < length ? static_cast<float>(s + 1) : 0));
    lengths.push_back(length);
    written += length, kept += std::min(length, 8);
  }
  const std::string& cut = value_of(r, "Cut to a window");
  CHECK(percent_in(cut) == doctest::Approx(100 * (1 - kept / written)).epsilon(0.01));
  const auto& pages = r.curves[0].lines[0];
  CHECK(pages.x == std::vector<double>{1, 2, 4, 8, 16, 32});
  for (std::size_t i = 0; i < pages.x.size(); ++i) {
    double held = 0;
    for (const int length : lengths) held += std::ceil(length / pages.x[i]) * pages.x[i];
    CHECK(pages.y[i] == doctest::Approx(100 * (1 - written / held)).scale(1e-6));
    CHECK(r.curves[0].lines[1].y[i] == doctest::Approx(100 * (1 - written / 160)));
  }
  CHECK(r.curves[0].marker->first == 4);
  CHECK(r.curves[0].marker->second == doctest::Approx(pages.y[2]).scale(1e-6));
}

TEST_CASE("chunk-wise: what a tile meets is said by the recurrence, and a chunk is no longer than the text") {
  const MechanismInput in = random_head(9, 9, 3, 3, "causal");
  const auto formula = [&](const char* spec) { return step_of(run(spec, in, Detail::steps), "tiles").formula; };
  CHECK(formula("chunk-wise recurrence=delta") == "tril(Q Kᵀ), meets U − W S");
  CHECK(formula("chunk-wise recurrence=linear") == "Σ q k · gates between, meets V");
  CHECK(value_of(run("chunk-wise chunk=64", in), "Steps in sequence") == "1 chunks in place of 9 tokens");
  CHECK(value_of(run("chunk-wise chunk=4", in), "Steps in sequence") == "3 chunks in place of 9 tokens");
}

}  // namespace headscope::memory_and_blocks_test
