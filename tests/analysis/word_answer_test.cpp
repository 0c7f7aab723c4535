// Which word does a word look at: every number of the sentence by its definition, from runs of the test's own.

#include "core/analysis/word_answer.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>

#include "core/base/error.h"
#include "core/edits/temperature_edit.h"
#include "tests/support/paths.h"

namespace headscope::word_answer_test {

using doctest::Approx;
using testing::source_dir;

namespace {
const char* const text = "One day, Anna sold pies. Tom sold milk. One day, Anna";

struct Asked {
  Backend backend{1};
  Ctx ctx{backend};
  LoadedModel loaded;
  WordRequest request;
  std::shared_ptr<const WordAnswer> found;
  std::shared_ptr<const Trace> before;

  Asked(const std::string& model, Index row, std::vector<Intervention> edits = {}, const std::string& of = text)
      : loaded(load_model(source_dir() / "models" / model, backend)) {
    request.run.model = source_dir() / "models" / model;
    request.run.text = of;
    request.run.edits = std::move(edits);
    request.row = row;
    WordSweep sweep(loaded, request);
    CHECK(sweep.result() == nullptr);
    do sweep.step(ctx);
    while (!sweep.finished());
    found = sweep.result();
    before = without({});
  }
  std::shared_ptr<const Trace> without(const std::vector<HeadId>& heads) {
    RunRequest edited = request.run;
    edited.capture.all_logits = true;
    const int row = static_cast<int>(request.row);
    for (const HeadId head : heads)
      edited.edits.push_back({{head.layer, head.head, PositionRange{row, row}}, Ablate{Ablate::By::mean}});
    return run(loaded, edited, ctx);
  }
  /// ln p of a token at the row of the answer, by its definition.
  static double log_p(const Trace& trace, Index row, std::int32_t token) {
    double sum = 0;
    for (Index i = 0; i < trace.logits.dim(1); ++i)
      sum += std::exp(static_cast<double>(trace.logits.at(row, i)) - static_cast<double>(trace.logits.at(row, token)));
    return -std::log(sum);
  }
  static std::int32_t best(const Trace& trace, Index row) {
    std::int32_t most = 0;
    for (Index i = 0; i < trace.logits.dim(1); ++i)
      if (trace.logits.at(row, i) > trace.logits.at(row, most)) most = static_cast<std::int32_t>(i);
    return most;
  }
  bool says(const std::string& words) const { return found->sentence.find(words) != std::string::npos; }

  /// Causal models: what a head does from the row, by hand; special ≤ 0 where nothing is worth telling.
  WordLook by_hand(const AttentionMap& map) const {
    const Index row = request.row, n = map.n_query();
    WordLook most;
    double special = 0;
    for (Index key = 0; key < row; ++key) {
      const auto weight = static_cast<double>(map.weight(row, key));
      const double even = 1.0 / static_cast<double>(row + 1);
      double sum = 0;
      int count = 0;
      for (Index query = key + 1; query < n; ++query)
        if (query != row) sum += static_cast<double>(map.weight(query, key)), ++count;
      const double usual = count > 0 ? sum / count : 0;
      if (weight >= 0.1 && weight >= 1.5 * even && weight - usual >= 0.1 && weight - usual > special) {
        special = weight - usual;
        most = {map.id(), key, weight, even, usual, 0};
      }
    }
    return most;
  }
};
}  // namespace

TEST_CASE("told are the heads that look from a word as they do from nowhere else, with all their numbers") {
  for (const char* model : {"tiny-gpt2", "tiny-llama"})
    for (const Index row : {Index{4}, Index{9}, Index{14}})
      for (const bool edited : {false, true}) {
        CAPTURE(model);
        CAPTURE(row);
        CAPTURE(edited);
        Asked asked(model, row,
                    edited ? std::vector<Intervention>{{{0, {}}, SetTemperature{0.5}}} : std::vector<Intervention>{});
        std::size_t expected = 0;
        for (const AttentionMap& map : asked.before->maps) {
          const WordLook hand = asked.by_hand(map);
          const auto told = std::ranges::find(asked.found->looks, map.id(), &WordLook::head);
          if (hand.weight == 0) {
            CHECK(told == asked.found->looks.end());
            continue;
          }
          ++expected;
          REQUIRE(told != asked.found->looks.end());
          CHECK(told->key == hand.key);
          CHECK(told->weight == Approx(hand.weight));
          CHECK(told->even == Approx(hand.even));
          CHECK(told->usual == Approx(hand.usual));
        }
        CHECK(asked.found->looks.size() == expected);
      }
}

TEST_CASE("the head that the answer needs most is told first, with the answer before and after") {
  const Index row = 14;
  Asked asked("tiny-gpt2", row);
  const Index last = asked.before->logits.dim(0) - 1;
  const std::int32_t answer = Asked::best(*asked.before, last);
  const double was = Asked::log_p(*asked.before, last, answer);
  REQUIRE(asked.found->looks.size() > 2);
  double most = 0;
  HeadId needed;
  int measured = 0;
  for (const WordLook& look : asked.found->looks) {
    if (std::isnan(look.effect)) continue;
    ++measured;
    const double cost = was - Asked::log_p(*asked.without({look.head}), last, answer);
    CHECK(look.effect == Approx(cost).epsilon(1e-3));
    if (cost > most) most = cost, needed = look.head;
  }
  CHECK(measured == std::min<int>(8, static_cast<int>(asked.found->looks.size())));
  REQUIRE(most > 0.05);
  const WordLook& first = asked.found->looks.front();
  CHECK(first.head == needed);
  CHECK(asked.says(fmt::format("{:.2f} in head {}, where an even head gives 0.0", first.weight, to_string(needed))));
  const auto after = asked.without({needed});
  CHECK(asked.says(fmt::format("falls from {:.2f} to ", std::exp(was))));
  const std::int32_t now = Asked::best(*after, last);
  CHECK(asked.says("comes first") == (now != answer));
  // The rest by what is special about them.
  for (std::size_t i = 2; i < asked.found->looks.size(); ++i)
    CHECK(asked.found->looks[i - 1].special() >= asked.found->looks[i].special());
}

TEST_CASE("where nothing stands out, where nothing is asked, and outside the text") {
  Asked first("tiny-gpt2", 0);  // sees itself alone
  CHECK(first.found->looks.empty());
  CHECK(first.says(
      "From “<|endoftext|>” (position 0) no head looks at another token much more than the rest of the text does."));
  // An encoder that is asked for no word has no answer that could change.
  Asked open("tiny-bert", 3, {}, "Anna sold pies to Tom");
  for (const WordLook& look : open.found->looks) CHECK(std::isnan(look.effect));
  CHECK_FALSE(open.says("Without"));
  Asked masked("tiny-bert", 3, {}, "Anna sold [MASK] to Tom");
  REQUIRE_FALSE(masked.found->looks.empty());
  CHECK_FALSE(std::isnan(masked.found->looks.front().effect));
  CHECK(masked.says("Without what that head brings here"));
  CHECK_THROWS_WITH_AS(Asked("tiny-gpt2", 99), doctest::Contains("99"), Error);
}

}  // namespace headscope::word_answer_test
