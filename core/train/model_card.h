#pragma once
// What is known about a model that was trained here: its loss beside the floor, and for every head how well it does
// what heads are said to do, measured on truth, beside what chance gives and what is lost when the head is taken away.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/run/run_request.h"
#include "core/trace/head_id.h"
#include "core/train/checkpoint.h"
#include "core/train/recipe.h"
#include "core/train/tasks.h"
#include "core/train/translation_scores.h"

namespace headscope {

/// One score of one head. Attention weights, so 0 … 1.
struct HeadScore {
  std::string id;     ///< "verb_to_subject", or the id of a metric
  double value = 0;   ///< mean over the texts
  double chance = 0;  ///< of a head that spreads its weight evenly
  double fixed = 0;   ///< of the best head that always looks the same distance back: a link that this explains needs no
                      ///< grammar. NaN for metrics
};

struct HeadCard {
  HeadId id;
  std::vector<HeadScore> scores;
  double loss_change = 0;  ///< held-out loss with the head's z set to zero, minus without, nats per token

  const HeadScore* find(std::string_view column) const;
};

struct ModelCard {
  Recipe recipe;
  TrainingRecord training;
  std::int64_t parameters = 0;
  std::string dtype;
  std::int64_t targets = 0;  ///< held-out tokens
  int rows = 0;              ///< held-out rows
  int left_out = 0;          ///< beside them, since they are longer than the context
  double loss = 0, floor = 0;
  /// Of texts said twice with the longest period of the task "repeated": mean loss of each half. NaN for stories.
  double first_half = 0, second_half = 0;
  double accuracy = 0;          ///< of pictures held out, the share told right; NaN of texts
  int texts = 0;                ///< that the heads were measured on
  int ablated_rows = 0;         ///< held-out rows for loss_change
  std::vector<HeadCard> heads;  ///< none of the task "translate", which has
  std::optional<TranslationScores> translation;
};

struct CardSettings {
  int rows = 400;
  int texts = 60;
  int ablated_rows = 40;
};

/// Measures a model folder that holds recipe.json and training.json. Throws Error when the model does not fit the
/// recipe, Cancelled when stopped.
ModelCard measure_card(const std::filesystem::path& folder, const CardSettings& settings, const Ctx& ctx);
/// Only the scores of the heads, on `texts` texts of the task.
std::vector<HeadCard> measure_heads(const LoadedModel& loaded, const Task& task, int texts, const Ctx& ctx);
/// Held-out loss with one head's z set to zero.
double loss_without(const Model& model, const HeldOut& data, HeadId head, const Ctx& ctx);

/// The scores in the order of the card, with their titles.
struct ScoreColumn {
  std::string id, title;
};
const std::vector<ScoreColumn>& score_columns(const std::string& task_kind);

/// {"loss": …, "floor": …, "heads": [{"layer": 0, "head": 0, "loss_change": …, "scores": {id: [value, chance,
/// fixed]}}]}
std::string card_json(const ModelCard& card);
/// The same for people: models/NAME/README.md.
std::string card_markdown(const ModelCard& card);

}  // namespace headscope
