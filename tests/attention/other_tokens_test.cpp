// Sounds and proteins as tokens, against their definitions.

#include "core/attention/other_tokens.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "core/attention/mechanism_report.h"
#include "core/base/error.h"
#include "tests/support/process.h"

namespace headscope::other_tokens_test {

using doctest::Approx;

namespace {
Tensor weights_of(const MechanismInput& input) {
  const Mechanism& softmax = *find_mechanism("softmax");
  return softmax.run(input, softmax.usual(), Detail::steps).weights;
}

std::string problem(std::string_view sequence) {
  try {
    residue_tokens(sequence);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}
}  // namespace

TEST_CASE("a spectrogram is the logarithm of a windowed transform's power, of mean 0 and deviation 1") {
  const SoundCut cut{.rate = 1000, .window = 20, .hop = 15, .frames = 1, .bins = 1, .floor = 1e-4};
  std::vector<double> samples;
  for (int t = 0; t < 64; ++t)  // a tone in the middle of bin 3, a weaker one between bins, growing
    samples.push_back(std::cos(2 * std::numbers::pi * 3 * t / 20) + 0.01 * t * std::sin(0.7 * t));
  const Tensor found = spectrogram(samples, cut);
  REQUIRE(found.dim(0) == 3);  // 15 samples behind them make no whole frame
  REQUIRE(found.dim(1) == 10);
  std::vector<double> levels;
  for (int f = 0; f < 3; ++f)
    for (int b = 0; b < 10; ++b) {
      double re = 0, im = 0, all = 0;
      for (int t = 0; t < 20; ++t) {
        const double s = std::sin(std::numbers::pi * t / 20), w = s * s, turn = 2 * std::numbers::pi * b * t / 20;
        re += w * samples[static_cast<std::size_t>(15 * f + t)] * std::cos(turn);
        im -= w * samples[static_cast<std::size_t>(15 * f + t)] * std::sin(turn);
        all += w;
      }
      levels.push_back(std::log((re * re + im * im) / (all * all) + 1e-4));
    }
  double mean = 0, squares = 0;
  for (const double level : levels) mean += level / 30;
  for (const double level : levels) squares += (level - mean) * (level - mean) / 30;
  for (int i = 0; i < 30; ++i)
    CHECK(found.at(i / 10, i % 10) ==
          Approx((levels[static_cast<std::size_t>(i)] - mean) / std::sqrt(squares)).epsilon(1e-5));
  // A tone of amplitude 1 in the middle of a bin has there the power (1 / 2)².
  std::vector<double> pure;
  for (int t = 0; t < 20; ++t) pure.push_back(std::cos(2 * std::numbers::pi * 3 * t / 20));
  const Tensor one = spectrogram(pure, cut);
  CHECK(*std::ranges::max_element(one.values()) == one.at(0, 3));
  CHECK(one.at(0, 2) == Approx(one.at(0, 4)).epsilon(1e-4));  // Hann's neighbours: a half of its amplitude each
  // Silence is nothing out of the ordinary: no number is divided by 0.
  const Tensor silent = spectrogram(std::vector<double>(64), cut);
  for (const float level : silent.values()) CHECK(level == 0);
}

TEST_CASE("patches go moment by moment, from the lowest frequency up, and a tone finds itself") {
  const SoundCut cut;
  const auto samples = tones(std::array{220.0, 330.0, 440.0, 330.0, 220.0}, 0.256, cut.rate);
  REQUIRE(samples.size() == 2560);
  CHECK(std::abs(samples[0]) < 0.03);  // faded in
  const OtherTokens tokens = sound_tokens(samples, cut);
  REQUIRE(tokens.input.n() == 20);  // 5 moments of 4 bands
  REQUIRE(tokens.input.d() == 64);
  CHECK(tokens.input.scale == Approx(1.0 / 8));
  CHECK(tokens.labels[0] == "1/0");
  CHECK(tokens.labels[7] == "2/750");
  const Tensor levels = spectrogram(samples, cut);
  CHECK(tokens.input.q.at(7, 8 * 3 + 5) == levels.at(8 + 3, 24 + 5));
  CHECK(tokens.input.v.at(18, 63) == levels.at(39, 23));
  const Tensor weights = weights_of(tokens.input);
  const auto strongest_other = [&](Index row) {
    Index best = row == 0 ? 1 : 0;
    for (Index j = 0; j < 20; ++j)
      if (j != row && weights.at(row, j) > weights.at(row, best)) best = j;
    return best;
  };
  CHECK(strongest_other(16) == 0);  // 220 Hz at the end, 220 Hz at the beginning
  CHECK(strongest_other(13) == 5);  // 330 Hz
  CHECK(weights.at(16, 0) > 0.9 * weights.at(16, 16));
  CHECK(weights.at(9, 5) < weights.at(9, 9));  // 440 Hz beside 330 Hz, in the same band
  // What fills no patch is left out.
  CHECK(sound_tokens(std::span(samples).first(2559), cut).input.n() == 16);
}

TEST_CASE("residues are weighted by how often evolution exchanges them") {
  constexpr std::string_view all = "ARNDCQEGHILKMFPSTWYV";
  for (const char a : all)
    for (const char b : all) CHECK(blosum62(a, b) == blosum62(b, a));
  for (const auto& [a, b, score] :
       {std::tuple{'W', 'W', 11}, {'I', 'V', 3}, {'F', 'Y', 3}, {'D', 'E', 2}, {'W', 'C', -2}, {'P', 'F', -4}})
    CHECK(blosum62(a, b) == score);
  const OtherTokens tokens = residue_tokens("IVWI");
  CHECK(tokens.labels == std::vector<std::string>{"I1", "V2", "W3", "I4"});
  // √2 to the power of the score: I–I 4, I–V 3, I–W −3.
  const double ii = std::pow(2, 4 / 2.0), iv = std::pow(2, 3 / 2.0), iw = std::pow(2, -3 / 2.0), sum = 2 * ii + iv + iw;
  const Tensor weights = weights_of(tokens.input);
  CHECK(weights.at(0, 0) == Approx(ii / sum).epsilon(1e-5));
  CHECK(weights.at(0, 1) == Approx(iv / sum).epsilon(1e-5));
  CHECK(weights.at(0, 2) == Approx(iw / sum).epsilon(1e-5));
  CHECK(tokens.input.v.at(0, 0) == Approx(4.5));  // isoleucine shuns water most, arginine least
  CHECK(residue_tokens("R").input.v.at(0, 0) == Approx(-4.5));

  CHECK(problem("").find("1 to 4096 letters, found 0") != std::string::npos);
  CHECK(problem("FVX").find("letter 3: expected one of " + std::string(all) + ", found \"X\"") != std::string::npos);
  CHECK(problem("fv").find("letter 1") != std::string::npos);
  CHECK(problem("Fé").find("<C3>") != std::string::npos);
  CHECK(problem(std::string(4097, 'A')).find("found 4097") != std::string::npos);
}

TEST_CASE("both are examples of the catalogue, and any protein an input of the command line") {
  for (const auto& [id, tokens] : {std::pair{"sound", 20}, {"residues", 30}}) {
    const auto found = std::ranges::find(worked_examples(), std::string_view(id), &WorkedExample::id);
    REQUIRE(found != worked_examples().end());
    CHECK(found->input().n() == tokens);
    CHECK(std::ssize(found->queries) == tokens);
    CHECK(found->queries == found->keys);
  }
  const testing::Finished run = testing::run_cli({"mechanism", "softmax", "--residues", "IVWI", "--json"});
  CHECK(run.out.find("4 residues: one-hot, BLOSUM62, hydropathy") != std::string::npos);
  CHECK(testing::run_cli({"mechanism", "softmax", "--residues", "IVZ"}).code == 2);
  CHECK(testing::run_cli({"mechanism", "softmax", "--residues", "I", "--random", "4"}).code == 2);
  const testing::Finished none = testing::run_cli({"mechanism", "softmax", "--residues", ""});
  CHECK(none.code == 2);
  CHECK(none.err.find("1 to 4096 letters, found 0") != std::string::npos);
}

}  // namespace headscope::other_tokens_test
