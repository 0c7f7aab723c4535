// Two small languages whose alignment is known: sentences worked out by hand, what determines what, the error rate of
// alignments by its formula, and a small model that learns to translate.

#include "core/train/translation.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/metrics/alignment.h"
#include "core/train/evaluation.h"
#include "core/train/trainer.h"
#include "core/train/training_memory.h"
#include "core/train/translate_task.h"
#include "core/train/translation_scores.h"
#include "tests/support/paths.h"

namespace headscope::translation_test {

namespace {

/// The one of the first sentences drawn whose source is this.
Translation of(const std::string& source) {
  Random random(3);
  for (int i = 0; i < 400; ++i)
    if (Translation drawn = draw_translation(random); drawn.source_text() == source) return drawn;
  FAIL("no such sentence: " << source);
  return {};
}

/// As parse_alignment() reads it, by target.
std::string links_of(const Translation& sentence) {
  std::vector<AlignedPair> pairs(sentence.known.possible.begin(), sentence.known.possible.end());
  std::ranges::sort(pairs, {}, [](const AlignedPair& pair) { return std::pair(pair.target, pair.source); });
  std::string out;
  for (const AlignedPair& pair : pairs)
    out += (out.empty() ? "" : " ") + std::to_string(pair.source) + (sentence.known.sure.contains(pair) ? "-" : "?") +
           std::to_string(pair.target);
  return out;
}

Recipe small_recipe() {
  return parse_recipe(R"({"name": "small", "task": {"kind": "translate", "vocabulary": 640, "vocabulary_stories": 600},
      "model": {"family": "bart", "layers": 1, "heads": 2, "width": 32, "mlp": 48, "context": 48,
                "initial_deviation": 0.1},
      "training": {"steps": 60, "batch": 8, "learning_rate": 0.01, "warmup_steps": 5, "evaluate_every": 30,
                   "evaluate_rows": 12}})",
                      "r.json");
}

}  // namespace

TEST_CASE("sentences and their alignment, by hand") {
  // Verb last; its number is that of the subject, which neither "loved" nor "the" shows: possible link to "birds".
  const Translation plain = of("the birds loved these horses");
  CHECK(plain.target_text() == "kor tarkor sar sonar melur");
  CHECK(links_of(plain) == "0-0 1?0 1-1 3-2 4?2 4-3 1?4 2-4");
  // The adjective behind its noun, in the noun's class; the adverb first.
  const Translation more = of("a kind bird knew a black king today");
  CHECK(more.target_text() == "nun mo tarko dulo mo orbo nogo gavu");
  CHECK(links_of(more) == "7-0 0-1 2?1 2-2 1-3 2?3 4-4 6?4 6-5 5-6 6?6 2?7 3-7");
  // What is behind something stands after it, and "behind" behind that.
  const Translation place = of("a cat follows these women behind a small woman today");
  CHECK(place.target_text() == "nun ma mira sar lanar ma lana mina ud dreni");
  CHECK(links_of(place) == "9-0 0-1 1?1 1-2 3-3 4?3 4-4 6-5 8?5 8-6 7-7 8?7 5-8 1?9 2-9");
  CHECK(spans_of(plain.source)[2] == TextSpan{10, 15});
}

TEST_CASE("a source determines its target, every target word has one sure link, and order and forms do vary") {
  Random random(1);
  std::map<std::string, std::string> known;
  std::set<std::string> words;
  int moved = 0, held_out = 0, all = 0;
  const int count = 20000;
  for (int i = 0; i < count; ++i) {
    const Translation drawn = draw_translation(random);
    const auto [at, fresh] = known.emplace(drawn.source_text(), drawn.target_text());
    CHECK(at->second == drawn.target_text());
    held_out += drawn.held_out();
    std::vector<int> sure(drawn.target.size(), 0), of_source(drawn.source.size(), 0);
    for (const AlignedPair& link : drawn.known.sure) {
      ++sure[static_cast<std::size_t>(link.target)];
      ++of_source[static_cast<std::size_t>(link.source)];
      moved += link.source != link.target;
      ++all;
    }
    CHECK(std::ranges::all_of(sure, [](int n) { return n == 1; }));
    CHECK(std::ranges::all_of(of_source, [](int n) { return n == 1; }));
    words.insert(drawn.target.begin(), drawn.target.end());
  }
  CHECK(known.size() > 19500);  // a model cannot learn them by heart
  CHECK(static_cast<double>(held_out) / count == doctest::Approx(1.0 / 7).epsilon(0.05));
  CHECK(static_cast<double>(moved) / all > 0.5);
  // 20 nouns and 3 articles (of two classes) and 10 adjectives (in both) in two numbers, 10 verbs of four forms, 4
  // prepositions, 4 adverbs.
  CHECK(words.size() == 20 * 2 + 3 * 4 + 10 * 4 + 10 * 4 + 4 + 4);
}

TEST_CASE("a batch of translations: sources with their end, targets from the end-of-text to it, none held out") {
  const Recipe recipe = small_recipe();
  const TranslateTask task(recipe.task);
  const std::int32_t end = task.vocabulary().end_of_text_id();
  CHECK(task.tokenizer()->behind() == end);
  CHECK(!task.tokenizer()->adds_bos());
  std::set<std::string> held;
  for (const Translation& sentence : task.held_out_translations(200)) {
    CHECK(sentence.held_out());
    held.insert(sentence.source_text());
  }
  for (std::int64_t step = 1; step <= 20; ++step) {
    const Batch batch = task.batch(step, 8, 48);
    CHECK(batch.source == task.batch(step, 8, 48).source);
    REQUIRE(batch.source_lengths.size() == 8);
    for (int i = 0; i < 8; ++i) {
      const Batch row = row_of(batch, i, batch.length);
      REQUIRE(row.source.back() == end);
      std::vector<std::int32_t> source(row.source.begin(), row.source.end() - 1), target;
      for (std::size_t t = 0; row.targets[t] != end; ++t) {
        target.push_back(row.targets[t]);
        CHECK(row.tokens[t + 1] == row.targets[t]);
      }
      CHECK(row.tokens[0] == end);
      CHECK(std::ranges::count_if(row.targets, [](auto id) { return id >= 0; }) ==
            static_cast<std::ptrdiff_t>(target.size()) + 1);
      const std::string words = task.tokenizer()->decode(source);
      CHECK(!held.contains(words));
    }
  }
  const HeldOut data = task.held_out(5, 2, 48);
  CHECK(data.floor == 0);
  CHECK(data.batches.size() == 3);
  const auto sentences = task.held_out_translations(5);
  const Batch last = row_of(data.batches[1], 1, data.batches[1].length);  // the fourth
  CHECK(last.source == task.source_ids(sentences[3]));
  CHECK(task.tokenizer()->decode({last.source.begin(), last.source.end() - 1}) == sentences[3].source_text());
  CHECK(std::vector<std::int32_t>(
            last.tokens.begin() + 1,
            last.tokens.begin() + 1 + static_cast<std::ptrdiff_t>(task.target_ids(sentences[3]).size())) ==
        task.target_ids(sentences[3]));
  CHECK_THROWS_AS(task.held_out(5, 2, 6), Error);
  std::vector<std::size_t> sizes;
  for (const Translation& each : task.held_out_translations(20))
    sizes.push_back(std::max(task.source_ids(each).size(), task.target_ids(each).size() + 1));
  std::ranges::sort(sizes);
  REQUIRE(sizes[9] < sizes[19]);
  CHECK(task.held_out_that_fit(20, 2, static_cast<int>(sizes[9])).left_out ==
        static_cast<int>(sizes.end() - std::ranges::upper_bound(sizes, sizes[9])));
  CHECK(task.held_out_that_fit(20, 2, static_cast<int>(sizes[19])).left_out == 0);
  CHECK(std::ranges::count(task.probe_source(), ' ') == std::ranges::count(task.probe_text(48), ' '));
  CHECK(std::ranges::count(task.probe_source(), ' ') >= 9);
}

TEST_CASE("a translator learns from its recipe, bit for bit again, and its folder opens as what was trained") {
  Backend backend(2);
  const Recipe recipe = small_recipe();
  Trainer trainer(recipe, backend);
  trainer.run(60);
  CHECK(trainer.curve().front().loss > 5.5);  // ln 640 = 6.46
  CHECK(trainer.progress().held_out < 4.5);
  Trainer again(recipe, backend);
  again.run(30);
  Trainer resumed(again.checkpoint(), backend);
  resumed.run(30);
  CHECK(resumed.progress().held_out == trainer.progress().held_out);

  const auto folder = testing::scratch_dir("translator") / "small";
  trainer.save_model(folder);
  const LoadedModel loaded = load_model(folder, backend);
  CHECK(held_out_loss(*loaded.model, Ctx{backend}, trainer.held_out()) ==
        doctest::Approx(trainer.progress().held_out).epsilon(2e-3));
  CHECK(recipe_json(load_recipe(folder / "recipe.json")) == recipe_json(recipe));
  // A run reads what training read: the source with its end, the target behind the token that all begin with.
  const auto& task = dynamic_cast<const TranslateTask&>(trainer.task());
  const Translation sentence = task.held_out_translations(1).front();
  RunRequest request;
  request.source = sentence.source_text();
  request.text = sentence.target_text();
  const auto trace = run(loaded, request, Ctx{backend});
  CHECK(trace->encoder->ids() == task.source_ids(sentence));
  std::vector<std::int32_t> target = task.target_ids(sentence);
  target.insert(target.begin(), task.vocabulary().end_of_text_id());
  CHECK(trace->ids() == target);
  // Its scores: within what they can be, and the same again.
  const HeldOut few = task.held_out(6, 4, 48);
  const TranslationScores scores = measure_translation(loaded, task, 12, few, Ctx{backend});
  CHECK(scores.heads.size() == 2);
  CHECK(scores.chance > 0.7);
  CHECK(scores.in_order > 0.3);
  CHECK(scores.sure > 12 * 5);
  CHECK(scores.possible > scores.sure);
  for (const CrossHeadScore& head : scores.heads) {
    CHECK((head.written >= 0 && head.written <= 1));
    CHECK((head.weight > 0 && head.weight < 1));
    CHECK(head.loss_change != 0);
  }
  CHECK(measure_translation(loaded, task, 12, few, Ctx{backend}).best().written == scores.best().written);
}

TEST_CASE("what training a translator takes in memory: its weights as the model counts them, to norms and biases") {
  const Recipe recipe = load_recipe(testing::source_dir() / "models/tiny-translate/recipe.json");
  const TranslateTask task(recipe.task);
  const double counted =
      16.0 * static_cast<double>(Parameters::initial(model_config(recipe, task.vocabulary()), 1).count());
  const double reckoned = training_memory(recipe).weights;
  CHECK(reckoned <= counted);
  CHECK(reckoned > 0.9 * counted);
  CHECK(training_memory(recipe).attention == 4.0 * 3 * 2 * 32 * 4 * 6 * 6);  // three kinds, layer, text, head, 6 × 6
}

TEST_CASE("translations are for encoder-decoders, and these for translations") {
  const auto fault = [](const char* task, const char* family) {
    try {
      parse_recipe(std::string(R"({"name": "a", "task": {"kind": ")") + task + R"("}, "model": {"family": ")" + family +
                       R"("}})",
                   "r.json");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(fault("translate", "gpt2").find("\"bart\", which reads a source") != std::string::npos);
  CHECK(fault("stories", "bart").find("say what comes next") != std::string::npos);
  CHECK(fault("translate", "bart").empty());
}

}  // namespace headscope::translation_test
