// A model card as text: JSON for programs, Markdown for people.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/base/json.h"
#include "core/io/shapes.h"
#include "core/train/model_card.h"

namespace headscope {

namespace {

using nlohmann::ordered_json;

constexpr double nats_digits = 1e6;

/// Six digits say more than the measurement does; NaN is null.
ordered_json rounded(double value) {
  if (std::isnan(value)) return nullptr;
  return std::round(value * nats_digits) / nats_digits;
}

std::string time_text(double seconds) {
  return seconds < 120 ? fmt::format("{:.0f} seconds", seconds) : fmt::format("{:.0f} minutes", seconds / 60);
}

std::string cell(const HeadScore& score, double best) {
  if (std::isnan(score.value)) return "";
  const std::string text = fmt::format("{:.2f}", score.value);
  return score.value >= best && score.value >= 2 * score.chance ? "**" + text + "**" : text;
}

std::string data_text(const Recipe& recipe) {
  if (recipe.task.translates())
    return "sentences of a small English and what they are in a language made for this project "
           "(`core/train/translation.h`): other order of words, articles and adjectives that agree with their noun in "
           "class and number, verbs with their subject. Which word stands for which is known. A seventh of all "
           "sentences is never learnt from; all numbers here are of those";
  if (recipe.task.draws())
    return fmt::format(
        "pictures of {0} × {0} pixels, drawn for this project (`core/io/shapes.h`): one warm shape of {1}, up to "
        "{2} "
        "cold ones beside it, whose shapes do not count; where it lies is known",
        recipe.task.side, fmt::join(shape_names(), ", "), recipe.task.distractors);
  if (recipe.task.tells_stories())
    return std::string(recipe.task.kind == "masked" ? "masked tokens (15 %, drawn anew for every row) in " : "") +
           fmt::format(
               "{} of `assets/{}.grammar`, a grammar written for this project: every text's probability is known "
               "exactly, and so are its links (which verb belongs to which subject, whom a pronoun means …)",
               recipe.task.grammar == "stories" ? "stories" : "texts", recipe.task.grammar);
  if (recipe.task.kind == "backcopy")
    return fmt::format(
        "{} letters, each of which says by itself which four may follow, and a mark \"=\" behind {:.0f} % of them, "
        "after "
        "which the letter before it is said again (bigram-backcopy, Guo et al. 2024; `core/train/backcopy_task.h`)",
        recipe.task.letters, 100 * recipe.task.mark_share);
  return fmt::format("random printable characters, said again with a period of {} to {} that only the text tells",
                     recipe.task.shortest_period, recipe.task.longest_period);
}

/// "Llama architecture, 4 layers × 4 heads (2 of keys and values), width 128, MLP 512, context 256".
std::string shape_text(const ModelShape& shape) {
  if (shape.state_space())
    return fmt::format("{} architecture, {} layers of {} channels with {} states each{}, width {}, context {}",
                       shape.family == "mamba" ? "Mamba" : "Mamba-2", shape.layers, shape.expand * shape.width,
                       shape.states, shape.family == "mamba" ? "" : fmt::format(", {} heads", shape.heads), shape.width,
                       shape.context);
  return fmt::format("{} architecture, {} layers{} × {} heads{}, width {}, {}, context {}",
                     shape.family == "gpt2"   ? "GPT-2"
                     : shape.family == "bert" ? "BERT"
                     : shape.family == "bart" ? "BART"
                     : shape.family == "vit"  ? "ViT"
                     : shape.has_experts()    ? "Mixtral"
                                              : "Llama",
                     shape.layers, shape.family == "bart" ? " in each stack" : "", shape.heads,
                     shape.kv_heads < shape.heads ? fmt::format(" ({} of keys and values)", shape.kv_heads) : "",
                     shape.width,
                     shape.has_experts() ? fmt::format("{} experts of {}, of which {} take each token", shape.experts,
                                                       shape.mlp, shape.experts_per_token)
                     : shape.mlp > 0     ? fmt::format("MLP {}", shape.mlp)
                                         : "attention only",
                     shape.context);
}

/// What stands in place of attention where a model has none.
std::string maps_text(const ModelShape& shape) {
  if (!shape.state_space()) return "";
  return fmt::format(
      "\n## What its maps are\n\nIt has no attention, but what token *t* takes of what came in at token *s* is a "
      "number that can be computed (Ali, Zimerman & Wolf, *The Hidden Attention of Mamba Models*, 2024), signed. A "
      "head is "
      "here {}. Its weight on *s* is the magnitude of that number ÷ the sum of its row's. What came in at *s* holds "
      "the three tokens before it, too, by the convolution in front: a link may stand one to three tokens late, and "
      "one that the convolution makes alone stands in no map.\n",
      shape.family == "mamba" ? "a group of neighbouring channels, whose mean its map is" : "one of Mamba-2's heads");
}

/// The best head of every column, and whether it is more than chance.
std::string clearest(const ModelCard& card) {
  const bool distances = !card.recipe.task.draws();  // no head of pictures looks so many tokens back
  std::string out =
      distances ? "| looks for | head | weight | chance | one distance | taken away |\n|---|---|---:|---:|---:|---:|\n"
                : "| looks for | head | weight | chance | taken away |\n|---|---|---:|---:|---:|\n";
  const auto number = [](double value) { return std::isnan(value) ? std::string() : fmt::format("{:.2f}", value); };
  for (const ScoreColumn& column : score_columns(card.recipe.task.kind)) {
    const HeadCard* best = nullptr;
    const HeadScore* most = nullptr;
    for (const HeadCard& head : card.heads)
      if (const HeadScore* score = head.find(column.id);
          score && !std::isnan(score->value) && (!most || score->value > most->value))
        best = &head, most = score;
    if (!best) continue;
    const bool clear = most->value >= 2 * most->chance;
    out += fmt::format("| {} | {} | {} | {} |{} {} |\n", column.title, clear ? to_string(best->id) : "none",
                       number(most->value), number(most->chance), distances ? " " + number(most->fixed) + " |" : "",
                       clear ? fmt::format("{:+.3f}", best->loss_change) : "");
  }
  return out;
}

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

/// What a translator's card says in place of heads that look for something in one text.
std::string translation_text(const ModelCard& card) {
  const TranslationScores& t = *card.translation;
  std::string out = fmt::format(
      "- **Translations**: {} of {} sentences come out right to the last token, written greedily.\n"
      "\n## How its cross-attention aligns words\n\nEach target word is linked to the source word that a head gives "
      "most of its weight, and the links compared with the true ones ({} sure, of a word to the one it stands for; {} "
      "more possible, to the noun that it agrees with): alignment error rate (Och & Ney 2003), 0 is best. *As it "
      "writes*: of the rows that write a word's tokens; *as it reads*: of the rows that read them, one later. "
      "*Weight*: "
      "what the rows that write a word give the word it stands for. *Taken away*: what the loss rises by, in nats per "
      "token over {} sentences, when the head alone is taken away (its `z` set to zero).\n\n"
      "| head | as it writes | as it reads | weight | taken away |\n|---|---:|---:|---:|---:|\n",
      percent(t.exact), t.sentences, t.sure, t.possible - t.sure, card.ablated_rows);
  for (const CrossHeadScore& head : t.heads) {
    const bool best = &head == &t.best();
    const std::string error = fmt::format("{:.4f}", head.written);
    out += fmt::format("| cross.{}.{} | {} | {:.4f} | {:.2f} | {:+.3f} |\n", head.id.layer, head.id.head,
                       best ? "**" + error + "**" : error, head.read, head.weight, head.loss_change);
  }
  out += fmt::format("| *chance* | {0:.4f} | {0:.4f} | | |\n| *in order* | {1:.4f} | {1:.4f} | | |\n", t.chance,
                     t.in_order);
  return out +
         "\n*Chance* links every target word to any source word, each as likely; *in order* links first to first, "
         "second to second …\n";
}

ordered_json translation_json(const TranslationScores& t) {
  ordered_json heads = ordered_json::array();
  for (const CrossHeadScore& head : t.heads)
    heads.push_back({{"layer", head.id.layer},
                     {"head", head.id.head},
                     {"error_writing", rounded(head.written)},
                     {"error_reading", rounded(head.read)},
                     {"weight", rounded(head.weight)},
                     {"loss_change", rounded(head.loss_change)}});
  return {{"sentences", t.sentences},
          {"exact", rounded(t.exact)},
          {"sure_links", t.sure},
          {"possible_links", t.possible},
          {"best_error", rounded(t.best().written)},
          {"chance_error", rounded(t.chance)},
          {"in_order_error", rounded(t.in_order)},
          {"cross_heads", heads}};
}

constexpr const char* card_end =
    "\n`card.json` holds the same numbers for programs; `headscope-cli card` measures them again.\n";

}  // namespace

std::string card_json(const ModelCard& card) {
  ordered_json out;
  out["name"] = card.recipe.name;
  out["parameters"] = card.parameters;
  out["dtype"] = card.dtype;
  out["steps"] = card.training.steps;
  out["seconds"] = card.training.seconds;
  out["rows"] = card.rows;
  if (card.left_out > 0) out["left_out"] = card.left_out;
  out["targets"] = card.targets;
  out["loss"] = rounded(card.loss);
  out["floor"] = rounded(card.floor);
  if (!std::isnan(card.accuracy)) out["accuracy"] = rounded(card.accuracy);
  if (!std::isnan(card.first_half)) {
    out["first_half_loss"] = rounded(card.first_half);
    out["second_half_loss"] = rounded(card.second_half);
  }
  if (card.translation) {
    out["ablated_rows"] = card.ablated_rows;
    out["translation"] = translation_json(*card.translation);
    return out.dump(1) + "\n";
  }
  out["texts"] = card.texts;
  out["ablated_rows"] = card.ablated_rows;
  out["heads"] = ordered_json::array();
  for (const HeadCard& head : card.heads) {
    ordered_json scores;
    for (const HeadScore& score : head.scores)
      scores[score.id] = {rounded(score.value), rounded(score.chance), rounded(score.fixed)};
    out["heads"].push_back({{"layer", head.id.layer},
                            {"head", head.id.head},
                            {"loss_change", rounded(head.loss_change)},
                            {"scores", scores}});
  }
  return out.dump(1) + "\n";
}

std::string card_markdown(const ModelCard& card) {
  const Recipe& recipe = card.recipe;
  const ModelShape& shape = recipe.model;
  std::string out = fmt::format("# {}\n\n", recipe.name);
  out += fmt::format("{}; {} parameters in {}.\n\n", shape_text(shape), card.parameters, card.dtype);
  out += fmt::format("Made from nothing by\n\n    headscope-cli train models/{}/recipe.json\n\n", recipe.name);
  out += fmt::format("- **Data**: {}.\n", data_text(recipe));
  out += fmt::format("- **Training**: {} steps of {}, {} on the machine where it was made.\n", card.training.steps,
                     step_text(recipe), time_text(card.training.seconds));
  if (recipe.optimizer.attention_entropy > 0)
    out += fmt::format(
        "- **Price of looking everywhere**: from step {} on, a nat of mean attention entropy (without the first key) "
        "costs up to {:g} nats of loss, so that heads choose where they look.\n",
        recipe.optimizer.attention_entropy_from, recipe.optimizer.attention_entropy);
  if (recipe.optimizer.expert_balance > 0)
    out += fmt::format(
        "- **Balance**: E Σ load · mean router probability (1 where experts share tokens out evenly, {:g} where the "
        "same {} have them all; mean over layers) costs {:g} nats of loss a unit (Fedus et al., Switch Transformers, "
        "2022).{}\n",
        static_cast<double>(shape.experts) / shape.experts_per_token, shape.experts_per_token,
        recipe.optimizer.expert_balance,
        card.training.curve.empty() ? "" : fmt::format(" It ended at {:.3f}.", card.training.curve.back().balance));
  out += fmt::format(
      "- **Held-out loss**: {:.4f} nats per {} over {} that it never learnt from.", card.loss,
      recipe.task.draws()      ? "picture"
      : shape.family == "bert" ? "masked token"
                               : "token",
      recipe.task.draws() ? fmt::format("{} pictures", card.targets) : fmt::format("{} tokens", card.targets));
  if (!std::isnan(card.floor))
    out += fmt::format(" No model can do better than the floor, {:.4f}; it is {:.4f} above.", card.floor,
                       card.loss - card.floor);
  if (card.left_out > 0)
    out += fmt::format(" Of {} texts {} are left out: they are longer than its context, {} tokens.",
                       card.rows + card.left_out, card.left_out, shape.context);
  out += "\n";
  if (!std::isnan(card.accuracy))
    out += fmt::format("- **Told right**: {} of {} pictures; one of {} classes is right by chance.\n",
                       percent(card.accuracy), card.rows, shape_names().size());
  if (!std::isnan(card.first_half))
    out += fmt::format(
        "- **Said twice**: of {} characters said twice, the first half costs {:.3f} nats per character, the second "
        "{:.3f}.\n",
        recipe.task.longest_period, card.first_half, card.second_half);
  if (card.translation) return out + translation_text(card) + card_end;
  if (recipe.task.draws())
    out += fmt::format(
        "\n## What its heads look at\n\nWhat CLS gives to the patches of the warm shape, mean over {} pictures it "
        "never "
        "learnt from; *none* when no head gives twice what chance does, the share that those patches are of all "
        "tokens. "
        "*Taken away*: what the loss rises by, in nats per picture over {} pictures, when the head alone is taken away "
        "(its `z` set to zero).\n\n{}",
        card.texts, card.ablated_rows, clearest(card));
  else
    out +=
        maps_text(shape) +
        fmt::format(
            "\n## What its heads look for\n\nThe head that does each most, by its mean attention weight on {} texts it "
            "never "
            "learnt from; *none* when that is less than twice what chance gives. *Chance* spreads its weight evenly; "
            "*one "
            "distance* is the best that looking always equally far back could give. *Taken away*: what the loss rises "
            "by, in nats per token over {} rows, when the head alone is taken away (its `z` set to zero).\n\n{}",
            card.texts, card.ablated_rows, clearest(card));
  out += "\n## All heads\n\nBold: the best of a column, where it is at least twice what chance gives.\n\n";
  const auto& columns = score_columns(recipe.task.kind);
  out += "| head |";
  for (const ScoreColumn& column : columns) out += " " + column.title + " |";
  out += " taken away |\n|---|";
  for (std::size_t i = 0; i < columns.size(); ++i) out += "---:|";
  out += "---:|\n";
  std::vector<double> best(columns.size(), 0);
  for (const HeadCard& head : card.heads)
    for (std::size_t i = 0; i < columns.size(); ++i)
      if (const HeadScore* score = head.find(columns[i].id); score && !std::isnan(score->value))
        best[i] = std::max(best[i], score->value);
  for (const HeadCard& head : card.heads) {
    out += "| " + to_string(head.id) + " |";
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const HeadScore* score = head.find(columns[i].id);
      out += " " + (score ? cell(*score, best[i]) : "") + " |";
    }
    out += fmt::format(" {:+.3f} |\n", head.loss_change);
  }
  const auto baseline = [&](const char* title, double HeadScore::*member) {
    out += fmt::format("| {} |", title);
    for (const ScoreColumn& column : columns) {
      const HeadScore* score = card.heads.empty() ? nullptr : card.heads.front().find(column.id);
      out += score && !std::isnan(score->*member) ? fmt::format(" {:.2f} |", score->*member) : " |";
    }
    out += " |\n";
  };
  baseline("*chance*", &HeadScore::chance);
  if (!recipe.task.draws()) baseline("*one distance*", &HeadScore::fixed);
  return out + card_end;
}

}  // namespace headscope
