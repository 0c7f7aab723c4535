// Which word does a word look at: every number of the sentence by its definition, from runs of the test's own.

#include "core/analysis/word_answer.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>

#include "core/base/error.h"
#include "core/edits/ablate_edit.h"
#include "core/edits/temperature_edit.h"
#include "core/edits/weight_edit.h"
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

  Asked(const std::string& model, Index row, std::vector<Intervention> edits = {}, const std::string& of = text,
        const std::string& source = "")
      : loaded(load_model(source_dir() / "models" / model, backend)) {
    request.run.model = source_dir() / "models" / model;
    request.run.text = of;
    request.run.source = source;
    request.run.edits = std::move(edits);
    request.row = row;
    request.most_looks = 64;  // all of them
    WordSweep sweep(loaded, request);
    CHECK(sweep.result() == nullptr);
    do sweep.step(ctx);
    while (!sweep.finished());
    found = sweep.result();
    before = without({});
  }
  std::shared_ptr<const Trace> without(const std::vector<WordLook>& looks) {
    RunRequest edited = request.run;
    edited.capture.all_logits = true;
    for (const WordLook& look : looks)
      edited.edits.push_back(
          {{look.head.layer, look.head.head}, SetWeight{static_cast<int>(request.row), static_cast<int>(look.key), 0}});
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
  bool says(const std::string& words) const { return found->sentence.text().find(words) != std::string::npos; }

  /// Causal models: what a head does from the row, by hand; weight 0 where nothing is worth telling.
  WordLook by_hand(const AttentionMap& map) const {
    const Index row = request.row, n = map.n_query();
    WordLook look{.head = map.id(), .key = -1};
    for (Index key = 0; key < row; ++key)
      if (before->tokens[static_cast<std::size_t>(key)].label != "<|endoftext|>" &&
          (look.key < 0 || map.weight(row, key) > map.weight(row, look.key)))
        look.key = key;
    if (look.key < 0) return look;
    look.weight = static_cast<double>(map.weight(row, look.key));
    look.even = 1.0 / static_cast<double>(row + 1);
    double sum = 0, diagonal = 0;
    int others = 0, as_far = 0;
    for (Index query = look.key + 1; query < n; ++query)
      if (query != row) sum += static_cast<double>(map.weight(query, look.key)), ++others;
    for (Index query = row - look.key; query < n; ++query)
      if (query != row) diagonal += static_cast<double>(map.weight(query, query - (row - look.key))), ++as_far;
    look.usual = others > 0 ? sum / others : 0;
    look.as_far = as_far > 0 ? diagonal / as_far : 0;
    const double special = look.weight - std::max(look.usual, look.as_far);
    if (look.weight < 0.1 || look.weight < 1.5 * look.even || special < 0.1) look.weight = 0;
    return look;
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
          CHECK(told->as_far == Approx(hand.as_far));
        }
        CHECK(asked.found->looks.size() == expected);
      }
}

TEST_CASE("the look that the answer needs most is told first, with the answer before and after") {
  bool some_changed = false;
  for (const Index row : {Index{9}, Index{14}, Index{17}}) {
    CAPTURE(row);
    Asked asked("tiny-gpt2", row);
    const Index last = asked.before->logits.dim(0) - 1;
    const std::int32_t answer = Asked::best(*asked.before, last);
    const double was = Asked::log_p(*asked.before, last, answer);
    double most = 0.05;  // below it changes nothing
    std::optional<WordLook> needed;
    for (const WordLook& look : asked.found->looks) {
      const bool last_layer = look.head.layer + 1 == asked.before->model.dims.layers;
      CHECK(std::isnan(look.effect) == (last_layer && row != last));  // from there nothing reaches the answer
      if (std::isnan(look.effect)) continue;
      const double cost = was - Asked::log_p(*asked.without({look}), last, answer);
      CHECK(look.effect == Approx(cost).epsilon(1e-3));
      if (cost >= most) most = cost, needed = look;
    }
    REQUIRE_FALSE(asked.found->looks.empty());
    const WordLook& first = asked.found->looks.front();
    CHECK(asked.says(fmt::format("in head {}, where an even head gives", to_string(first.head))));
    if (needed) {
      CHECK(first.head == needed->head);
      const auto after = asked.without({first});
      CHECK(asked.says("When it may not look there, after the last token "));
      CHECK(asked.says(fmt::format("falls from {:.2f} to ", std::exp(was))));
      CHECK(asked.says("comes first") == (Asked::best(*after, last) != answer));
      some_changed = true;
    }
    for (std::size_t i = 2; i < asked.found->looks.size(); ++i)  // the rest by what is special about them
      CHECK(asked.found->looks[i - 1].special() >= asked.found->looks[i].special());
  }
  CHECK(some_changed);
}

TEST_CASE("a head that is taken out is not told of, one whose look is hidden tells another") {
  Asked whole("tiny-gpt2", 14);
  REQUIRE_FALSE(whole.found->looks.empty());
  const WordLook look = whole.found->looks.front();
  Asked out("tiny-gpt2", 14, {{{look.head.layer, look.head.head}, Ablate{Ablate::By::mean}}});
  CHECK(std::ranges::find(out.found->looks, look.head, &WordLook::head) == out.found->looks.end());
  Asked hidden("tiny-gpt2", 14, {without_look(whole.request, look)});
  const auto there = std::ranges::find(hidden.found->looks, look.head, &WordLook::head);
  CHECK((there == hidden.found->looks.end() || there->key != look.key));
}

TEST_CASE("an encoder-decoder's word looks in its decoder, and its answer is the decoder's") {
  bool some = false;
  for (const Index row : {Index{2}, Index{3}}) {
    Asked asked("tiny-translate", row, {}, "kar lipar dular so orbo", "the kind mice saw this white king");
    const Index last = asked.before->logits.dim(0) - 1;
    const std::int32_t answer = Asked::best(*asked.before, last);
    for (const WordLook& look : asked.found->looks) {
      CHECK(look.weight == static_cast<double>(asked.before->map(look.head).weight(row, look.key)));
      if (std::isnan(look.effect)) continue;
      const double cost =
          Asked::log_p(*asked.before, last, answer) - Asked::log_p(*asked.without({look}), last, answer);
      CHECK(look.effect == Approx(cost).epsilon(1e-3));
      some = true;
    }
  }
  CHECK(some);
}

TEST_CASE("where nothing stands out, where nothing is asked, where weights say nothing, and outside the text") {
  Asked first("tiny-gpt2", 0);
  CHECK(first.found->looks.empty());
  CHECK(first.says("“<|endoftext|>” sees only itself."));
  Asked second("tiny-gpt2", 1);  // sees one other
  CHECK_FALSE(second.says("sees only itself"));
  // A word that stands there several times is told with its place.
  Asked often("tiny-gpt2", static_cast<Index>(first.before->tokens.size()) - 1);
  CHECK(often.says(fmt::format(" (position {}) looks at ", often.request.row)));
  Asked state("tiny-mamba", 5);
  CHECK(state.found->looks.empty());
  CHECK(state.says("no probabilities"));
  // An encoder that is asked for no word has no answer that could change.
  Asked open("tiny-bert", 3, {}, "Anna sold pies to Tom");
  for (const WordLook& look : open.found->looks) {
    CHECK(std::isnan(look.effect));
    // Every row of an encoder sees every key: all count but the word's own and, of a column, the key's.
    const AttentionMap& map = open.before->map(look.head);
    double column = 0, diagonal = 0;
    int others = 0, as_far = 0;
    for (Index query = 0; query < map.n_query(); ++query) {
      if (query == open.request.row) continue;
      if (query != look.key) column += static_cast<double>(map.weight(query, look.key)), ++others;
      const Index there = query + look.key - open.request.row;
      if (there >= 0 && there < map.n_key()) diagonal += static_cast<double>(map.weight(query, there)), ++as_far;
    }
    CHECK(look.usual == Approx(column / others));
    CHECK(look.as_far == Approx(as_far > 0 ? diagonal / as_far : 0));
  }
  CHECK_FALSE(open.says("When it may not"));
  Asked masked("tiny-bert", 3, {}, "Anna sold [MASK] to Tom");
  const auto row = answer_position(*masked.before);
  REQUIRE(row);
  for (const WordLook& look : masked.found->looks) {
    if (std::isnan(look.effect)) continue;
    const std::int32_t answer = Asked::best(*masked.before, *row);
    CHECK(look.effect ==
          Approx(Asked::log_p(*masked.before, *row, answer) - Asked::log_p(*masked.without({look}), *row, answer))
              .epsilon(1e-3));
  }
  CHECK_THROWS_WITH_AS(Asked("tiny-gpt2", 99), doctest::Contains("99"), Error);
}

}  // namespace headscope::word_answer_test
