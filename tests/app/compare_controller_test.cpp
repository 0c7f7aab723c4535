#include "app/state/compare_controller.h"

#include <doctest/doctest.h>

#include "core/run/run_request.h"
#include "tests/support/paths.h"

namespace headscope::compare_controller_test {

TEST_CASE("pairing two tokens frees their former partners; pairing them again takes them apart") {
  CHECK(paired({0, 1, 2}, 0, 2) == std::vector<int>{2, 1, -1});
  CHECK(paired({0, 1, 2}, 1, 1) == std::vector<int>{0, -1, 2});
  CHECK(paired({0, -1, 2}, 1, 1) == std::vector<int>{0, 1, 2});
  CHECK(paired({0, 1}, 5, 0) == std::vector<int>{0, 1});
}

TEST_CASE("heads are ranked, predictions and losses of both are there") {
  Backend backend(1);
  const LoadedModel model = load_model(testing::reference("gpt2-random"), backend);
  const Ctx ctx{backend};
  const auto traced = [&](std::vector<std::int32_t> ids) {
    RunRequest request;
    request.ids = std::move(ids);
    request.add_bos = false;
    request.capture.maps = MapStorage::dense;
    return run(model, request, ctx);
  };
  const auto a = traced({3, 14, 15, 9, 2}), b = traced({3, 14, 7, 15, 9, 2});
  const auto result = compare_sides({"A", a}, {"B", b}, TextUnit::tokens, {}, {});
  CHECK(result->partner == std::vector<int>{0, 1, 3, 4, 5});
  REQUIRE(result->ranked.size() == a->maps.size());
  for (std::size_t i = 1; i < result->ranked.size(); ++i)
    CHECK(result->heads[result->ranked[i - 1]].total_variation >= result->heads[result->ranked[i]].total_variation);
  CHECK(result->a.losses.size() == 4);
  CHECK(result->b.losses.size() == 5);
  REQUIRE(result->next);
  CHECK(result->kl.size() == 5);
  CHECK(result->kl[0] == doctest::Approx(0));  // the first tokens are the same: so are the predictions after them
  CHECK(result->kl.back() == doctest::Approx(result->next->kl));
  CHECK(result->a.row({0, 1}) == 1);
  CHECK(result->a.row({99, 0}) == -1);

  const auto by_hand = compare_sides(result->a, result->b, TextUnit::tokens, std::vector<int>{0, -1, -1, -1, -1}, {});
  CHECK(by_hand->aligned == result->aligned);
  CHECK(by_hand->heads[0].rows == 1);
  CHECK(by_hand->heads[0].total_variation == doctest::Approx(0));
}

TEST_CASE("what one model says of masked tokens and another of the next are not one distribution against the other") {
  Backend backend(1);
  const auto bundled = [](const char* name) { return testing::source_dir() / "models" / name; };
  const LoadedModel encoder = load_model(bundled("tiny-bert"), backend),
                    decoder = load_model(bundled("tiny-gpt2"), backend);
  const Ctx ctx{backend};
  RunRequest request;
  request.text = "Tom had a red ball.";
  request.capture = {.maps = MapStorage::dense, .all_logits = true};
  const auto plain = run(encoder, request, ctx), next = run(decoder, request, ctx);
  request.masked = {{3, {}}};
  const auto masked = run(encoder, request, ctx);
  REQUIRE(masked->logits.dim(1) == next->logits.dim(1));  // the vocabularies do not tell them apart
  const auto both = compare_sides({"A", masked}, {"B", next}, TextUnit::tokens, {}, {});
  CHECK_FALSE(both->next);
  CHECK(both->kl.empty());
  CHECK_FALSE(both->next_a.empty());
  CHECK_FALSE(both->next_b.empty());
  const auto unasked = compare_sides({"A", masked}, {"B", plain}, TextUnit::tokens, {}, {});
  CHECK_FALSE(unasked->next);
  CHECK(unasked->next_b.empty());
  CHECK(compare_sides({"A", masked}, {"B", masked}, TextUnit::tokens, {}, {})->next->kl == 0);
}

TEST_CASE("in words, sides are paired and compared by words; predictions and losses stay those of tokens") {
  Backend backend(1);
  const LoadedModel model = load_model(testing::source_dir() / "models/tiny-gpt2", backend);
  const Ctx ctx{backend};
  const auto traced = [&](const char* text) {
    RunRequest request;
    request.text = text;
    request.capture.maps = MapStorage::dense;
    return run(model, request, ctx);
  };
  // The villages' names are made of syllables: several tokens each.
  const auto a = traced("Rosa lived in the village of Zoziford."),
             b = traced("Rosa lived in the old village of Zoziford.");
  const auto tokens = compare_sides({"A", a}, {"B", b}, TextUnit::tokens, {}, {});
  const auto words = compare_sides({"A", a}, {"B", b}, TextUnit::words, {}, {});
  CHECK(words->unit == TextUnit::words);
  REQUIRE(words->a.trace->tokens.size() == 9);  // end of text, seven words and the full stop
  CHECK(words->a.trace->tokens.size() < a->tokens.size());
  CHECK(words->partner == std::vector<int>{0, 1, 2, 3, 4, 6, 7, 8, 9});
  CHECK(words->a.losses == tokens->a.losses);
  CHECK(words->kl == tokens->kl);
  CHECK(words->next->kl == tokens->next->kl);
  CHECK(words->a.table.value[0][0] == tokens->a.table.value[0][0]);
  for (const HeadDifference& head : words->heads) CHECK(head.rows == 9);
  // The same text in words differs from itself nowhere.
  const auto itself = compare_sides({"A", a}, {"B", a}, TextUnit::words, {}, {});
  for (const HeadDifference& head : itself->heads) CHECK(head.total_variation == doctest::Approx(0));
}

}  // namespace headscope::compare_controller_test
