// What a page says of cost, and in words: counts and numbers in sentences, each worked out here.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/attention/mechanism_compare.h"
#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/spectrum.h"
#include "tests/attention/mechanisms/input.h"

namespace headscope::costs_test {

using namespace testing;

namespace {
std::string note_of(const std::string& spec, const MechanismInput& in) {
  const MechanismChoice choice = parse_mechanism(spec);
  return choice.mechanism->note(in, choice.values, run(spec, in, Detail::steps));
}
bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}
}  // namespace

TEST_CASE("multiply-adds, state, cache and bytes moved of every mechanism, for 96 tokens, d = 6 and d_v = 10") {
  constexpr double n = 96, d = 6, d_v = 10, both = d + d_v, pairs = n * n;
  // Scores and weights: written and read; Q, K, V and O: (d + d_v) numbers a token, twice.
  constexpr double matrices = 4 * (2 * n * both + 4 * pairs), inputs = 4 * 2 * n * both, cache = 4 * n * both;
  struct Case {
    const char* spec;
    double multiply_adds, state, cache, moved;
  };
  /// φ(k) vᵀ into the state and φ(q) out of it, r · d_v each; the state has a column for z.
  const auto kernel = [&](const char* spec, double r, double map = 0) {
    return Case{spec, n * (r * d_v + r * d_v) + map, 4 * r * (d_v + 1), 0, inputs};
  };
  const Case cases[] = {
      {"softmax", pairs * both, 0, cache, matrices},
      {"entmax", pairs * both, 0, cache, matrices},
      {"log-length", pairs * both, 0, cache, matrices},
      {"additive", pairs * both, 0, cache, matrices},
      {"additive weights=drawn hidden=7", 2 * n * d * 7 + pairs * (7 + d_v), 0, cache, matrices},
      {"cosine", pairs * both + 2 * n * d, 0, cache, matrices},
      {"low-rank rank=5", n * 5 * both, 0, cache, matrices},
      {"low-rank rank=256", n * n * both, 0, cache, matrices},
      {"refined", pairs * both + n * n * n, 0, cache, matrices},
      {"refined spread=1 form=value-weighted", pairs * both + 4 * n * n * n, 0, cache, matrices},
      {"ring workers=4", pairs * both, 0, cache / 4, 4 * n * both * 5},
      kernel("linear", d),
      kernel("relu", d),
      kernel("transnormer", d),
      kernel("cosformer", 2 * d),
      kernel("polaformer", 2 * d),
      kernel("performer features=32", 32, 2 * n * 32 * d),
      kernel("trigonometric features=32", 64, 2 * n * 32 * d),
      kernel("polynomial form=square", 21, n * d * (d + 1)),  // 6 · 7 / 2 products of two
      kernel("polynomial form=taylor", 28, n * d * (d + 1)),  // and six, and one
      {"linformer rank=8", 2 * n * 8 * both, 0, 4 * 8 * both, 4 * (2 * n * both + 4 * n * 8)},
      {"delta", 4 * n * d * d_v, 4 * d * d_v, 0, inputs},
      {"gated gate=none", 2 * n * d * d_v, 4 * d * d_v, 0, inputs},
      {"gated gate=scalar", 3 * n * d * d_v, 4 * d * d_v, 0, inputs},
      {"gated gate=data-scalar", 3 * n * d * d_v + n * d, 4 * d * d_v, 0, inputs},
      {"gated gate=data-vector", 3 * n * d * d_v + n * d * d, 4 * d * d_v, 0, inputs},
      {"lightning block=16", n * 16 * both + 2 * n * d * d_v, 4 * d * d_v, 0, inputs},
      {"mamba", 3 * n * d * d_v, 4 * d * d_v, 0, inputs},
      {"titans", 5 * n * d * d_v, 4 * 2 * d * d_v, 0, inputs},
      {"rnn", 2 * n * d_v * d_v, 4 * d_v, 0, 4 * (2 * n * d_v + 2 * d_v * d_v)},
      {"lstm", 8 * n * d_v * d_v, 4 * 2 * d_v, 0, 4 * (2 * n * d_v + 8 * d_v * d_v)},
      {"state-space", 3 * 2 * n * std::log2(2 * n) * d_v, 4 * d_v, 0, 4 * 2 * n * d_v},
      {"state-space system=hippo size=8", 3 * 2 * n * std::log2(2 * n) * d_v, 4 * 8 * d_v, 0, 4 * 2 * n * d_v},
  };
  for (const Case& c : cases) {
    CAPTURE(c.spec);
    const MechanismChoice choice = parse_mechanism(c.spec);
    const MechanismCost cost = choice.mechanism->cost({96, 6, 10}, choice.values);
    CHECK(cost.multiply_adds == doctest::Approx(c.multiply_adds));
    CHECK(cost.state_bytes == doctest::Approx(c.state));
    CHECK(cost.cache_bytes == doctest::Approx(c.cache));
    CHECK(cost.moved_bytes == doctest::Approx(c.moved));
  }
}

TEST_CASE("numbers in the sentences of the pages") {
  const MechanismInput nine = random_head(9, 9, 4, 4, "causal");
  // M is 9, the length, where less was asked: cos(8π/18) and cos(π/18).
  CHECK(holds(note_of("cosformer longest=4", nine), "weighted by 0.174, a neighbour by 0.985"));
  CHECK(holds(note_of("cosformer longest=18", nine), "weighted by 0.766, a neighbour by 0.996"));
  const MechanismInput signs{rows(1, 3, {3, -4, 0}), rows(1, 3, {1, -1, 1}), rows(1, 1, {1}), 1, parse_mask("causal")};
  CHECK(holds(note_of("relu", signs), "64 % of the squares of Q and 33.3 % of those of K"));
  CHECK(holds(note_of("linformer rank=4", nine), "Runs of 2 or 3 neighbouring keys"));
  CHECK(holds(note_of("linformer rank=3", nine), "Runs of 3 neighbouring keys"));
  CHECK(holds(note_of("linformer rank=9", nine), "this is softmax attention"));
  // q·k of 1, 2, 3, −3 times the scale ½ … 3 of 4 within ±2, as 4 and more are not.
  const MechanismInput four{rows(2, 1, {1, -1}), rows(2, 1, {2, 3}), rows(2, 1, {1, 2}), 1, parse_mask("full")};
  CHECK(holds(note_of("polynomial form=taylor", four), "50 % of all scores lie beyond ±2"));  // ±3 of ±2, ±3
  CHECK(holds(note_of("polynomial form=taylor", four), "3 features for d = 1"));
  CHECK(holds(note_of("lightning decay=0.9", nine), "0.349 of a weight is left after 10 tokens"));  // 0.9¹⁰
  CHECK(holds(note_of("softmax scaled=off", random_head(3, 3, 16, 2, "causal")), "√16: scores are 4 times"));
}

TEST_CASE("a comparison in words: flatter, sharper, negative, and who is the strongest") {
  // Three rows of three keys, softmax even: ln 3 nats, 3 keys.
  const MechanismInput even{Tensor::zeros({3, 1}), rows(3, 1, {1, 2, 3}), rows(3, 1, {1, 3, 8}), 1, parse_mask("full")};
  const auto words = [](const MechanismInput& in, std::vector<float> weights) {
    MechanismResult r;
    r.weights = rows(3, 3, std::move(weights));
    r.output = rows(3, 1, {0, 0, 0});
    for (Index i = 0; i < 3; ++i)
      for (Index j = 0; j < 3; ++j) r.output.ref(i, 0) += r.weights.at(i, j) * in.v.at(j, 0);
    const Mechanism& linear = *find_mechanism("linear");
    return what_to_look_for(linear, in, linear.usual(), r, compare(in, r));
  };
  const std::string sharp = words(even, {1, 0, 0, 1, 0, 0, 0, 0, 1});
  CHECK(holds(sharp, "Rows are sharper than softmax's: a query spreads over 1.0 keys in place of 3.0."));
  CHECK(!holds(sharp, "strongest"));  // two of three rows agree on the first of equals: neither most nor few
  CHECK(holds(words(even, {0, 0, 1, 1, 0, 0, 0, 0, 1}), "In only 33 % of the rows the strongest key"));
  CHECK(holds(words(even, {1.5f, -0.5f, 0, 1, 0, 0, 1, 0, 0}), "11 % of the visible weights are negative"));
  MechanismInput peaked = even;
  peaked.q = rows(3, 1, {30, 30, 30});
  const std::string flat = words(peaked, {0.3f, 0.3f, 0.4f, 0.3f, 0.3f, 0.4f, 0.3f, 0.3f, 0.4f});
  // exp(−2 · 0.3 ln 0.3 − 0.4 ln 0.4) = 2.97
  CHECK(holds(flat, "Rows are flatter than softmax's: a query spreads over 3.0 keys in place of 1.0."));
  CHECK(holds(flat, "The strongest key of nearly every row is still the same."));
}

TEST_CASE("linear kernels without a sum: maps and norms, by definition, with their longest text") {
  const MechanismInput in = random_head(6, 6, 3, 4, "causal", 7);
  const Matrix q = matrix_of(in.q), k = matrix_of(in.k);
  Matrix identity(6, std::vector<double>(6, 0.0)), turned = identity;
  for (std::size_t i = 0; i < 6; ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      identity[i][j] = static_cast<double>(in.scale) * dot(q[i], k[j]);
      for (std::size_t c = 0; c < 3; ++c)
        turned[i][j] += std::max(q[i][c], 0.0) * std::max(k[j][c], 0.0) *
                        std::cos(std::numbers::pi * static_cast<double>(i - j) / 12);  // M = 6, more than the 2 asked
    }
  CHECK(gap(run("linear map=identity normalise=none", in).weights, identity) < 1e-5);
  CHECK(gap(run("cosformer longest=2 normalise=none", in).weights, turned) < 1e-5);
  Matrix out = times(turned, matrix_of(in.v));
  for (auto& row : out) {
    const double rms = std::sqrt(dot(row, row) / 4 + 1e-6);
    for (double& x : row) x /= rms;
  }
  const MechanismResult normed = run("cosformer longest=2 normalise=rms", in, Detail::steps);
  CHECK(gap(normed.output, out) < 1e-5);
  CHECK(step_of(normed, "output").formula == "φ(Q) S, each row ÷ its rms");
  CHECK(step_of(run("linear", in, Detail::steps), "output").formula == "φ(Q) S");
  // φ(K)ᵀ V over all keys, the sum of a row, and its weights.
  const MechanismResult summed = run("linear", in, Detail::steps);
  const auto elu1 = [](double x) { return x > 0 ? 1 + x : std::exp(x); };
  Matrix state(3, std::vector<double>(4, 0.0));
  double sum = 0;
  for (std::size_t j = 0; j < 6; ++j)
    for (std::size_t c = 0; c < 3; ++c) {
      for (std::size_t e = 0; e < 4; ++e) state[c][e] += elu1(k[j][c]) * matrix_of(in.v)[j][e];
      sum += elu1(q[5][c]) * elu1(k[j][c]);
    }
  CHECK(gap(step_of(summed, "state").value, state) < 1e-5);
  CHECK(step_of(summed, "sums").value.at(5, 0) == doctest::Approx(sum).epsilon(1e-5));
}

TEST_CASE("ln n: the factor of each row by the keys that it sees") {
  const MechanismInput in = random_head(5, 5, 4, 3, "causal");
  const MechanismResult r = run("log-length trained=4", in, Detail::steps);
  const Matrix q = matrix_of(in.q), k = matrix_of(in.k);
  for (Index i = 0; i < 5; ++i) {
    const double factor = std::log(static_cast<double>(i + 1)) / std::log(4.0);
    CHECK(step_of(r, "factors").value.at(i, 0) == doctest::Approx(factor).epsilon(1e-5));
    CHECK(step_of(r, "scores").value.at(i, 0) ==
          doctest::Approx(factor * static_cast<double>(in.scale) * dot(q[static_cast<std::size_t>(i)], k[0]))
              .epsilon(1e-4));
  }
}

TEST_CASE("texts longer than a block: the cheap output of 150 tokens is that of the weights, by definition") {
  const auto elu1 = [](double x) { return x > 0 ? 1 + x : std::exp(x); };
  for (const char* mask : {"causal", "full", "window 70", "causal & padding 5"}) {
    CAPTURE(mask);
    const MechanismInput in = random_head(150, 150, 4, 3, mask);
    const Matrix q = matrix_of(in.q), k = matrix_of(in.k), v = matrix_of(in.v);
    const MechanismChoice softmax = parse_mechanism("softmax temperature=0.5"), linear = parse_mechanism("linear"),
                          bare = parse_mechanism("linear normalise=none");
    MechanismInput sharp = in;
    sharp.scale *= 2;
    CHECK(gap(output_of(*softmax.mechanism, in, softmax.values), times(softmax_by_definition(sharp), v)) < 1e-5);
    Matrix similar(150, std::vector<double>(150, 0.0));
    for (Index i = 0; i < 150; ++i)
      for (Index j = 0; j < 150; ++j)
        if (!masked(*in.rule, i, j, 150))
          for (std::size_t c = 0; c < 4; ++c)
            similar[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] +=
                elu1(q[static_cast<std::size_t>(i)][c]) * elu1(k[static_cast<std::size_t>(j)][c]);
    CHECK(gap(output_of(*bare.mechanism, in, bare.values), times(similar, v)) < 2e-3);  // sums of up to a thousand
    for (auto& row : similar) {
      double sum = 0;
      for (const double x : row) sum += x;
      for (double& x : row) x /= sum;
    }
    CHECK(gap(output_of(*linear.mechanism, in, linear.values), times(similar, v)) < 1e-5);
  }
}

TEST_CASE("cross-attention's cut leaves a token on each side; J's cells in words; maps of a kernel with signs") {
  const MechanismInput text = random_head(8, 8, 4, 4, "causal");
  CHECK(step_of(run("cross cut=0.05", text, Detail::steps), "weights").value.shape() == Shape({7, 1}));
  CHECK(step_of(run("cross cut=0.95", text, Detail::steps), "weights").value.shape() == Shape({1, 7}));
  CHECK(step_of(run("cross", random_head(2, 2, 4, 4, "causal"), Detail::steps), "weights").value.shape() ==
        Shape({1, 1}));
  const MechanismInput two{rows(1, 1, {1}), rows(2, 1, {0, 0}), rows(2, 1, {1, 2}), 1, parse_mask("full")};
  const MechanismResult j = run("saturation", two, Detail::steps);
  CHECK(step_of(j, "jacobian").explain(0, 0) == "0.5 − 0.5² = 0.25");
  CHECK(step_of(j, "jacobian").explain(0, 1) == "−0.5 · 0.5");
  using Range = MechanismStep::Range;
  CHECK(step_of(run("linear", text, Detail::steps), "weights").range == Range::positive);
  CHECK(step_of(run("linear map=identity normalise=none", text, Detail::steps), "weights").range ==
        Range::signed_values);
  // Of own E and F both are shown, of one matrix one.
  const auto shows_f = [&](const char* spec) {
    const MechanismResult r = run(spec, text, Detail::steps);
    return std::ranges::count(r.steps, std::string("projection-f"), &MechanismStep::id);
  };
  CHECK(shows_f("linformer projection=gaussian") == 1);
  CHECK(shows_f("linformer projection=gaussian sharing=key-value") == 0);
  CHECK(shows_f("linformer") == 0);
}

TEST_CASE("why projections: asymmetry and the diagonal, by hand and from the drawn matrices") {
  const MechanismInput in = random_head(5, 5, 3, 3, "full");
  const MechanismResult r = run("projections seed=2", in, Detail::steps);
  const auto drawn = [](std::uint64_t seed) {
    Matrix out = matrix_of(mechanism::gaussian(3, 3, seed));
    for (auto& row : out)
      for (double& x : row) x /= std::sqrt(3.0);
    return out;
  };
  const Matrix x = matrix_of(in.k), q = times(x, drawn(2)), k = times(x, drawn(3));
  double off = 0, all = 0;
  int largest = 0;
  for (std::size_t i = 0; i < 5; ++i) {
    bool is = true;
    for (std::size_t j = 0; j < 5; ++j) {
      off += std::pow(dot(q[i], k[j]) - dot(q[j], k[i]), 2);
      all += std::pow(dot(q[i], k[j]), 2);
      is = is && dot(q[i], k[j]) <= dot(q[i], k[i]);
    }
    largest += is;
  }
  CHECK(number_in(r.facts[1].value) == doctest::Approx(std::sqrt(off / all)).epsilon(0.005));
  CHECK(r.facts[3].value == std::to_string(largest) + " of 5 rows");
  CHECK(number_in(r.facts[0].value) == 0);
  const std::string note = note_of("projections seed=2", in);
  CHECK(holds(note, "(asymmetry 0), its diagonal the largest of its row in " + r.facts[2].value));
  CHECK(holds(note, "is " + r.facts[1].value + ", and the diagonal is the largest in " + r.facts[3].value));
}

TEST_CASE("sentences turn at their own number: as many keys as trained, as many rounds as blocks, rates of nothing") {
  const MechanismInput nine = random_head(9, 9, 4, 4, "causal");
  CHECK(note_of("log-length trained=9", nine).starts_with("No row here has more keys"));
  CHECK(note_of("log-length trained=8", nine).starts_with("Rows with more keys than m"));
  CHECK(note_of("ring workers=3 rounds=2", nine).starts_with("Some keys have not come round yet"));
  CHECK(note_of("ring workers=3 rounds=3", nine).starts_with("Every key has come round"));
  CHECK(note_of("ring workers=16 rounds=9", nine).starts_with("Every key has come round"));
  CHECK(note_of("ring workers=16 rounds=8", nine).starts_with("Some keys have not come round yet"));
  const std::string delta = "Without momentum and forgetting this is the delta rule with β = 2θ.";
  CHECK(note_of("titans momentum=0 forgetting=0", nine) == delta);
  CHECK(note_of("titans momentum=0.5 forgetting=0", nine) != delta);
  CHECK(note_of("titans momentum=0 forgetting=0.5", nine) != delta);
}

TEST_CASE("refined weights: three products of n³ where W is drawn, one where it is the identity, one more of values") {
  const Mechanism& refined = *find_mechanism("refined");
  const auto cost = [&](const char* spec) {
    return refined.cost({10, 4, 4}, parse_mechanism(spec).values).multiply_adds -
           mechanism::plain_cost({10, 4, 4}).multiply_adds;
  };
  CHECK(cost("refined spread=0") == 1000);
  CHECK(cost("refined spread=0.5") == 3000);
  CHECK(cost("refined spread=1") == 3000);
  CHECK(cost("refined spread=0 form=value-weighted") == 2000);
  CHECK(cost("refined spread=0.5 form=value-weighted") == 4000);
}

TEST_CASE("ranks that nobody asked for are −1, all four") {
  const MechanismInput in = random_head(5, 5, 3, 3, "causal");
  const MechanismResult r = run("softmax", in);
  const MechanismComparison none = compare(in, r, 4), all = compare(in, r, 5);
  for (const int rank : {none.rank, none.rank_reference, none.rank90, none.rank90_reference}) CHECK(rank == -1);
  for (const int rank : {all.rank, all.rank_reference, all.rank90, all.rank90_reference}) CHECK(rank > 0);
  CHECK(energy_rank({3, 4, 0}, 1) == 2);
  CHECK(energy_rank({4, 3}, 0.64) == 1);
  CHECK(energy_rank({4, 3}, 0.65) == 2);
  CHECK(energy_rank({0, 0}, 0.9) == 0);
  CHECK(energy_rank({}, 0.9) == 0);
  CHECK(numeric_rank({2, 2.1e-6, 1.9e-6}) == 2);
  CHECK(numeric_rank({0, 0}) == 0);
}

TEST_CASE("parameters without a say are not shown: seeds of what is not drawn, gates of what has none") {
  const auto shows = [](const char* spec, std::string_view name) {
    const MechanismChoice choice = parse_mechanism(spec);
    const auto shown = choice.mechanism->shown_parameters(choice.values, {9, 4, 4});
    return std::ranges::any_of(shown, [&](const MechanismParameter* each) { return each->name == name; });
  };
  CHECK(shows("additive weights=drawn", "seed"));
  CHECK_FALSE(shows("additive", "seed"));
  CHECK(shows("refined spread=0.5", "seed"));
  CHECK_FALSE(shows("refined spread=0", "seed"));
  CHECK(shows("titans form=context", "gating"));
  CHECK(shows("titans form=gate", "gating"));
  CHECK_FALSE(shows("titans form=layer", "gating"));
  CHECK(shows("titans form=context", "context-memory"));
  CHECK_FALSE(shows("titans form=gate", "context-memory"));
  CHECK_FALSE(shows("titans persistent=0 hidden=0", "seed"));
  CHECK(shows("titans persistent=1 hidden=0", "seed"));
  CHECK(shows("titans persistent=0 hidden=1", "seed"));
}

TEST_CASE("sentences and titles name the numbers and inputs they mean") {
  const MechanismInput nine = random_head(9, 9, 4, 4, "causal");
  const MechanismResult r = run("saturation", nine, Detail::steps);
  CHECK(find_mechanism("saturation")->note(nine, parse_mechanism("saturation").values, r) ==
        "The largest weight is " + r.facts[1].value + ", the gradient " + r.facts[0].value +
            ": raise the sharpness and watch it go to 0.");
  const MechanismResult cross = run("cross", nine, Detail::steps);
  CHECK(step_of(cross, "q").title == "Q, of the asking sequence");
  CHECK(step_of(cross, "k").title == "K, of the other");
  CHECK(step_of(cross, "v").title != "K, of the other");
  // Two rows, even: entropies 0 and ln 2, whose mean is that of √2 = 1.4 tokens.
  MechanismInput two = random_head(2, 2, 3, 3, "causal");
  two.q = Tensor::zeros({2, 3});
  const MechanismResult lengths = run("log-length", two, Detail::steps);
  CHECK(std::ranges::any_of(lengths.facts, [](const MechanismFact& fact) { return fact.value == "1.4 → 1.4"; }));
  CHECK(step_of(lengths, "effective").explain(1, 0) == "e^0.69 = 2.00 tokens");
  const MechanismResult system = run("state-space", nine, Detail::steps);
  for (const MechanismCurve& curve : system.curves)
    for (const MechanismCurve::Line& line : curve.lines) CHECK(line.x.size() == line.y.size());
}

TEST_CASE("tiles that no row reaches are skipped, also where one begins where the other ends") {
  // Each row sees itself alone: of two tiles of two keys each row needs one.
  const MechanismResult r = run("flash fit=off rows=1 columns=2", random_head(4, 4, 3, 3, "window 1"), Detail::steps);
  CHECK(r.facts[0].value.find("4 skipped") != std::string::npos);
  // 256 numbers of fast memory, rows of 11 + 11: eleven keys would take 11 · 23 + 22 = 275, ten take 252 and leave one
  // row. So 33 tokens are 33 rows of 4 tiles.
  const MechanismInput in = random_head(33, 33, 11, 11, "full");
  const MechanismResult fit = run("flash fit=on memory=1", in);
  CHECK(fit.facts[0].value == "132 of 132 done, 0 skipped");
  CHECK(gap(fit.output, times(softmax_by_definition(in), matrix_of(in.v))) < 1e-5);
  const double n = 33, width = 22;
  CHECK(find_mechanism("flash")->cost({33, 11, 11}, parse_mechanism("flash fit=on memory=1").values).moved_bytes ==
        4 * (n * width + n * n * width));
}

TEST_CASE("one key that is hidden is one weight that is not a number; a cosine is told with its own two lengths") {
  const MechanismInput one{rows(1, 1, {1}), rows(1, 1, {2}), rows(1, 1, {3}), 1, parse_mask("full")};
  const MechanismResult r = run("mask-value hidden=1", one, Detail::steps);
  CHECK(step_of(r, "infinity").formula == "0 ÷ 0: not a number");
  CHECK(r.facts[0].value == "1 weights are not a number");
  const MechanismInput two{rows(1, 2, {3, 4}), rows(2, 2, {1, 0, 0, 2}), rows(2, 1, {1, 2}), 1, parse_mask("full")};
  const MechanismResult cosine = run("cosine", two, Detail::steps);
  CHECK(step_of(cosine, "cosines").explain(0, 0).ends_with("÷ (5 · 1)"));
  CHECK(step_of(cosine, "cosines").explain(0, 1).ends_with("÷ (5 · 2)"));
  // Of 2 · 4 · 2 features for each query and key, beside what a kernel of so many costs.
  CHECK(find_mechanism("dpfp")->cost({10, 4, 6}, parse_mechanism("dpfp nu=2").values).multiply_adds ==
        find_mechanism("linear")->cost({10, 16, 6}, parse_mechanism("linear").values).multiply_adds + 2 * 10 * 16);
}

namespace {
/// Nobody sees anything.
class Blind final : public AttentionRule {
 public:
  KeyRange keys(Index, Index) const override { return {0, 0}; }
  std::string describe() const override { return "nothing"; }
};
}  // namespace

TEST_CASE("where no key is seen shares are 0, not a number over nothing") {
  MechanismInput in = random_head(3, 3, 2, 2, "full");
  in.rule = std::make_shared<Blind>();
  CHECK(compare(in, run("softmax", in)).negative == 0);
  CHECK(run("entmax", in).facts[0].value == "0 % of 0 cells");
  // Of one cell all, when it is negative.
  const MechanismInput one = random_head(1, 1, 2, 2, "full");
  MechanismResult negative = run("softmax", one);
  negative.weights = rows(1, 1, {-1});
  CHECK(compare(one, negative).negative == 1);
  const MechanismResult rows_of_none = run("softmax", in, Detail::steps);
  CHECK(step_of(rows_of_none, "exp").explain(1, 1).find("− 0)") != std::string::npos);
  // As many shifts as leave an entry another to be multiplied with: of d = 1 one, so 2 features.
  CHECK(step_of(run("dpfp nu=16", random_head(4, 4, 1, 2, "full"), Detail::steps), "phi-q").value.shape() ==
        Shape{4, 2});
  CHECK(mechanism::brief(100000) == mechanism::text(100000));
  CHECK(mechanism::brief(99999) == "99999");
  // A curve of a long text is of its beginning, and says so; of a short one of all.
  CHECK_FALSE(
      holds(run("performer features=8", random_head(9, 9, 2, 2, "causal"), Detail::steps).curves[0].title, "first"));
  const MechanismResult system = run("state-space", random_head(5, 5, 3, 3, "causal"), Detail::steps);
  const MechanismChoice choice = parse_mechanism("state-space");
  const MechanismInput five = random_head(5, 5, 3, 3, "causal");
  const Recurrence by = choice.mechanism->recurrent(five, choice.values);
  const Tensor& a = step_of(system, "a").value;  // and B̄ by what the first token leaves of a channel
  for (Index e = 0; e < 3; ++e)
    for (Index t = 0; t < 5; ++t)
      for (Index i = 0; i < a.dim(0); ++i) {
        double expected = static_cast<double>(by.states[0].at(i, 0)) / static_cast<double>(five.v.at(0, 0)) *
                          static_cast<double>(five.v.at(t, e));
        for (Index j = 0; t > 0 && j < a.dim(0); ++j)
          expected += static_cast<double>(a.at(i, j)) *
                      static_cast<double>(by.states[static_cast<std::size_t>(t - 1)].at(j, e));
        CHECK(by.states[static_cast<std::size_t>(t)].at(i, e) == doctest::Approx(expected).epsilon(1e-4).scale(1e-3));
      }
}

}  // namespace headscope::costs_test
