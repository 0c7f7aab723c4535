// The BPE trainer: by hand, against a recount from scratch, and through the project's own tokenizer.

#include "core/text/bpe_trainer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/text/tokenizer.h"
#include "tests/support/paths.h"

namespace headscope::bpe_trainer_test {

namespace {
using Texts = std::vector<std::string>;

/// Sennrich's loop as the paper states it: count all pairs of all words anew before every merge. Words are given.
std::vector<std::string> recounted_tokens(const Texts& words, const TrainedBpe& start, std::size_t merges) {
  std::vector<std::string> tokens(start.tokens.begin(), start.tokens.begin() + 256);
  std::vector<std::vector<int>> symbols;
  for (const std::string& word : words) {
    auto& ids = symbols.emplace_back();
    for (const char byte : word)
      ids.push_back(static_cast<int>(std::ranges::find(tokens, std::string(1, byte)) - tokens.begin()));
  }
  for (std::size_t step = 0; step < merges; ++step) {
    std::map<std::pair<int, int>, int> counts;
    for (const auto& ids : symbols)
      for (std::size_t i = 0; i + 1 < ids.size(); ++i) ++counts[{ids[i], ids[i + 1]}];
    std::pair<int, int> best;
    int most = 1;
    for (const auto& [pair, count] : counts)  // ascending: the first of equals stays
      if (count > most) best = pair, most = count;
    if (most < 2) break;
    for (auto& ids : symbols) {
      std::vector<int> merged;
      for (std::size_t i = 0; i < ids.size(); ++i) {
        if (i + 1 < ids.size() && ids[i] == best.first && ids[i + 1] == best.second)
          merged.push_back(static_cast<int>(tokens.size())), ++i;
        else
          merged.push_back(ids[i]);
      }
      ids = merged;
    }
    tokens.push_back(tokens[static_cast<std::size_t>(best.first)] + tokens[static_cast<std::size_t>(best.second)]);
  }
  return tokens;
}

std::vector<std::string> merged_tokens(const TrainedBpe& bpe) {
  return {bpe.tokens.begin() + 256, bpe.tokens.end() - 1};
}
}  // namespace

TEST_CASE("BPE training: a worked example") {
  // Words: low, ·low, ·low, ·lower, ·newest, ·newest (· is the space). Pairs: lo 4, ow 4, ·l 3, we 3, and ·n, ne, ew,
  // es, st with 2 each, er 1. Of lo and ow the smaller left id wins (letters keep the order of ASCII): lo, then lo+w 4,
  // then ·+low 3, which leaves we with 2 (newest). Of all pairs with 2 the smallest left id is e, its smallest right
  // id s: es. Then e+w.
  const Texts texts = {"low low low lower newest newest"};
  const TrainedBpe bpe = train_bpe(texts, {.vocab_size = 256 + 5 + 1});
  CHECK(merged_tokens(bpe) == Texts{"lo", "low", " low", "es", "ew"});
  CHECK(bpe.tokens.size() == 262);
  CHECK(bpe.tokens[0] == "!");    // GPT-2's id 0
  CHECK(bpe.tokens[220] == " ");  // and 220
  CHECK(bpe.end_of_text_id() == 261);
}

TEST_CASE("BPE training: equal letters overlap in counting and merge from the left") {
  // "aaaaa": aa 4 times → X X a. Then X+X and X+a once each, below two: nothing more to merge.
  const Texts texts = {"aaaaa"};
  const TrainedBpe bpe = train_bpe(texts, {.vocab_size = 300});
  CHECK(merged_tokens(bpe) == Texts{"aa"});
  CHECK(merged_tokens(train_bpe(texts, {.vocab_size = 300, .at_least = 1})).size() == 3);
  CHECK_THROWS_AS(train_bpe(texts, {.vocab_size = 256}), Error);
  CHECK_THROWS_AS(train_bpe(Texts{"\xFF"}, {}), Error);
}

TEST_CASE("BPE training: equals a recount from scratch on random words") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    Texts words;
    std::string text;
    const auto letters = 2 + random.below(4);
    for (int w = 0; w < 120; ++w) {
      std::string word = w == 0 ? "" : " ";
      const auto length = 1 + random.below(9);
      for (std::uint64_t i = 0; i < length; ++i) word += static_cast<char>('a' + random.below(letters));
      text += word;
      words.push_back(word);
    }
    const TrainedBpe bpe = train_bpe(Texts{text}, {.vocab_size = 257 + 60});
    const auto expected = recounted_tokens(words, bpe, 60);
    CHECK(merged_tokens(bpe) == std::vector<std::string>(expected.begin() + 256, expected.end()));
  }
}

TEST_CASE("BPE training: the project's tokenizer opens what was written and uses its merges") {
  const Texts texts = {"The cat sat. The cat ran away from the other cat, the cat's friend.", "Naïve café ☕ 12 12"};
  const TrainedBpe bpe = train_bpe(texts, {.vocab_size = 300});
  const auto folder = testing::scratch_dir("bpe_trainer");
  save_tokenizer(bpe, folder);
  const auto tokenizer = load_tokenizer(folder);
  REQUIRE(tokenizer);
  CHECK(tokenizer->vocab_size() == static_cast<int>(bpe.tokens.size()));
  CHECK(tokenizer->bos() == bpe.end_of_text_id());
  CHECK(tokenizer->eos() == bpe.end_of_text_id());
  CHECK(tokenizer->adds_bos());
  for (const std::string& text : {texts[0], texts[1], std::string("unseen: zß\n\t  \xF0\x9F\x98\x80")}) {
    std::vector<std::int32_t> ids;
    std::string joined;
    for (const Token& token : tokenizer->encode(text)) {
      ids.push_back(token.id);
      joined += bpe.tokens[static_cast<std::size_t>(token.id)];
    }
    CHECK(joined == text);
    CHECK(tokenizer->decode(ids) == text);
  }
  CHECK(tokenizer->encode(" cat").size() == 1);
  CHECK(tokenizer->encode("<|endoftext|>", {.parse_special = true}).size() == 1);
}

}  // namespace headscope::bpe_trainer_test
