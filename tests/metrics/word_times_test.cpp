#include <doctest/doctest.h>

#include "core/base/error.h"
#include "core/metrics/token_times.h"

namespace headscope::word_times_test {

namespace {
/// Five tokens on ten keys of 0.1 s, each looking at two keys of its own, one after another; the first steers.
struct Said {
  Trace target, cross;
  Said() {
    target.text = " oh no, hi";
    const char* bytes[] = {"", " oh", " no", ",", " hi"};
    int at = 0;
    for (const char* each : bytes) {
      Token token;
      token.bytes = token.label = each;
      if (*each) token.begin = at, token.end = at += static_cast<int>(std::string(each).size());
      target.tokens.push_back(token);
    }
    cross.sound = std::make_shared<const SoundFrames>(SoundFrames{Tensor::full({10, 2}, 0.0f), 0.1, 10, 1.0});
    cross.tokens.resize(10);
    cross.query_tokens = target.tokens;
    Tensor weights = Tensor::full({5, 10}, 0.0f);
    for (Index row = 0; row < 5; ++row)
      for (Index key = 0; key < 10; ++key) weights.ref(row, key) = key / 2 == row ? 0.5f : 0.0f;
    cross.maps.push_back(
        AttentionMap::dense({.between_texts = true}, weights, nullptr, stats_of_weights(weights, nullptr)));
  }
};
constexpr HeadId heads[] = {{0, 0}};
}  // namespace

TEST_CASE("a word is said from the time of its first token to that behind it, and takes the marks behind it along") {
  const Said said;
  CHECK(first_said(said.target) == 1);
  const std::vector<double> times = token_times(said.cross, heads, 1, 1);
  REQUIRE(times.size() == 4);
  // The first token's path begins with the sound; the others are reached where their own keys begin: 4, 6, 8.
  CHECK(times[0] == doctest::Approx(0));
  CHECK(times[1] == doctest::Approx(0.4));
  CHECK(times[2] == doctest::Approx(0.6));
  CHECK(times[3] == doctest::Approx(0.8));
  const std::vector<WordTime> words = word_times(said.cross, said.target, heads, 1);
  REQUIRE(words.size() == 3);
  CHECK(words[0].text == "oh");
  CHECK(words[0].begin == doctest::Approx(0));
  CHECK(words[0].end == doctest::Approx(0.4));
  CHECK(words[1].text == "no,");
  CHECK(words[1].first == 2);
  CHECK(words[1].last == 3);
  CHECK(words[1].begin == doctest::Approx(0.4));
  CHECK(words[1].end == doctest::Approx(0.8));
  CHECK(words[2].text == "hi");
  CHECK(words[2].end == doctest::Approx(1.0));  // of the sound
  Trace silent = said.target;
  for (Token& token : silent.tokens) token.begin = -1;
  CHECK(first_said(silent) == 5);
  CHECK(word_times(said.cross, silent, heads, 1).empty());
}

}  // namespace headscope::word_times_test
