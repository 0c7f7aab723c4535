// Model cards: a head that knows nothing scores what chance gives, the numbers survive as text, sampling keeps its
// promises.

#include "core/train/model_card.h"
#include "core/base/json.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "core/generate/generation.h"
#include "core/train/evaluation.h"
#include "core/train/trainer.h"
#include "tests/support/paths.h"

namespace headscope::model_card_test {

TEST_CASE("card: untrained heads spread their weight evenly, so every score is what chance gives") {
  Backend backend(2);
  const Recipe recipe = parse_recipe(
      R"({"name": "blank", "task": {"kind": "stories", "vocabulary": 1536, "vocabulary_stories": 1500},
          "model": {"family": "gpt2", "layers": 1, "heads": 2, "width": 8, "mlp": 8, "context": 256},
          "training": {"steps": 1, "batch": 1, "learning_rate": 0, "evaluate_rows": 1}})",
      "test");
  Trainer trainer(recipe, backend);
  trainer.run(1);
  const auto folder = testing::scratch_dir("card") / "blank";
  trainer.save_model(folder);
  const Ctx ctx{backend};
  const ModelCard card = measure_card(folder, {.rows = 3, .texts = 4, .ablated_rows = 2}, ctx);
  CHECK(card.loss == doctest::Approx(std::log(1536)).epsilon(0.02));
  CHECK(card.floor > 0.4);
  CHECK(card.floor < 0.7);
  CHECK(card.training.steps == 1);
  CHECK(std::isnan(card.first_half));
  REQUIRE(card.heads.size() == 2);
  for (const HeadCard& head : card.heads) {
    REQUIRE(head.scores.size() == score_columns("stories").size());
    for (const HeadScore& score : head.scores) {
      INFO(score.id);
      CHECK(std::fabs(score.value / score.chance - 1) < 0.05);  // relative: Approx would allow 0.05 as such
      CHECK(score.chance > 0.005);
      if (!std::isnan(score.fixed)) {
        CHECK(score.fixed > score.chance);
        CHECK(score.fixed <= 1);
      }
    }
    CHECK(std::fabs(head.loss_change) < 0.01);
  }
  // What the files say is what was measured.
  const auto json = nlohmann::json::parse(card_json(card));
  CHECK(json["heads"][1]["scores"]["verb_to_subject"][0].get<double>() ==
        doctest::Approx(card.heads[1].find("verb_to_subject")->value).epsilon(1e-3));
  CHECK(json["loss"].get<double>() == doctest::Approx(card.loss).epsilon(1e-5));
  CHECK(card_markdown(card).find("| 0.1 |") != std::string::npos);
  // No head of an untrained model looks for anything; one that does is named, with its weight.
  CHECK(card_markdown(card).find("| verb → subject | none |") != std::string::npos);
  ModelCard trained = card;
  REQUIRE(trained.heads[1].scores[0].id == "verb_to_subject");
  trained.heads[1].scores[0].value = 0.9;
  CHECK(card_markdown(trained).find("| verb → subject | 0.1 | 0.90 |") != std::string::npos);

  // Sampling: the most probable token at temperature 0, whatever the seed; as many tokens as fit.
  const LoadedModel loaded = load_model(folder, backend);
  const auto written = [&](double temperature, std::uint64_t seed, int count) {
    std::vector<std::int32_t> ids;
    sample_text(loaded, ctx, {trainer.task().vocabulary().end_of_text_id()}, count,
                {{.temperature = temperature}, seed}, [&](std::int32_t id) { return ids.push_back(id), true; });
    return ids;
  };
  CHECK(written(0, 1, 8) == written(0, 2, 8));
  CHECK(written(1, 1, 8) == written(1, 1, 8));
  CHECK(written(1, 1, 8) != written(1, 2, 8));
  CHECK(written(1, 1, 1000).size() == 256);
}

TEST_CASE("sampling: frequencies follow the softmax, top-k cuts it") {
  // Probabilities 1/2, 1/4, 1/4 at temperature 1; with τ = ½ they are squared: 2/3, 1/6, 1/6.
  const std::vector<float> values = {std::log(2.0f), 0, 0};
  const Tensor logits = Tensor::from({3}, values);
  const auto share = [&](const SamplingSettings& settings, std::int32_t id) {
    Random random(1);
    int hits = 0;
    for (int i = 0; i < 20000; ++i) hits += sample_token(logits, settings, random) == id;
    return hits / 20000.0;
  };
  CHECK(share({}, 0) == doctest::Approx(0.5).epsilon(0.03));
  CHECK(share({}, 2) == doctest::Approx(0.25).epsilon(0.05));
  CHECK(share({.temperature = 0.5}, 0) == doctest::Approx(2.0 / 3).epsilon(0.03));
  CHECK(share({.top_k = 2}, 1) == doctest::Approx(1.0 / 3).epsilon(0.04));
  CHECK(share({.top_k = 2}, 2) == 0);
  CHECK(share({.temperature = 0}, 0) == 1);
}

}  // namespace headscope::model_card_test
