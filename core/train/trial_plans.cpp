// What is tried side by side. A new trial is an entry here.

#include <fmt/format.h>

#include "core/base/words.h"
#include "core/train/translation.h"
#include "core/train/trial.h"

namespace headscope {

namespace {
/// Two layers of a Llama, small enough for a minute or two.
Recipe small_recipe(const std::string& name, TaskSettings task, int context) {
  Recipe recipe;
  recipe.name = name;
  recipe.task = std::move(task);
  recipe.model = {
      .family = "llama", .layers = 2, .heads = 2, .kv_heads = 2, .width = 128, .mlp = 0, .context = context};
  recipe.steps = recipe.optimizer.schedule_steps = 700;
  recipe.batch = 32;
  recipe.optimizer.learning_rate = 0.001;
  recipe.optimizer.final_learning_rate = 0.0002;
  recipe.optimizer.warmup_steps = 50;
  recipe.optimizer.weight_decay = 0.01;
  recipe.evaluate_every = 25;
  recipe.evaluate_rows = 32;
  return recipe;
}

std::vector<Contestant> attention_and_states(const Recipe& recipe) {
  return {{to_say("attention"), recipe},
          {to_say("linear recurrence"), recipe, transformer({0, 1, 2})},
          {to_say("hybrid"), recipe, transformer({0})}};
}

/// What both trials of copying say alike.
TrialPlan copying_plan() {
  TrialPlan plan;
  plan.size_title = to_say("characters to copy");
  plan.sizes = {8, 12, 16, 20, 24, 30};
  plan.chance = 1.0 / 95;
  plan.score_title = to_say("characters copied right");
  plan.score_of = to_say("share of those said for the second time");
  plan.counted = to_say("share of certain tokens that come first");
  plan.task_details = to_say("random printable characters, said again with a period of 8 to 30");
  plan.kept_of = to_say(
      "keys and values of every token where a layer attends, a state of d_head × d_head for each head where it recurs");
  return plan;
}
Recipe copying_recipe(const std::string& name) {
  return small_recipe(name, {.kind = "repeated", .seed = 1, .shortest_period = 8, .longest_period = 30}, 64);
}

TrialPlan copying() {
  Recipe recipe = copying_recipe("copy");
  recipe.model.layers = 3;
  TrialPlan plan = copying_plan();
  plan.id = "copy";
  plan.title = to_say("Copying: attention and states of fixed size");
  plan.tab = to_say("Copying");
  plan.question = to_say("Random characters are said twice. How long a text can be said again?");
  plan.answer = to_say(
      "Attention finds what followed the same character and copies any length it learnt at. A recurrence has to keep "
      "the text in a state of fixed size, and mixes up the more, the longer it is. With attention in the two layers "
      "above it the text comes back.");
  plan.source = "Jelassi et al. 2024 (Repeat After Me), Arora et al. 2023 (Zoology)";
  plan.words =
      "state space, SSM, Mamba, recall, exact recall, associative recall, linear recurrence, retention, hybrid, "
      "fixed state";
  plan.contestants = attention_and_states(recipe);
  return plan;
}

TrialPlan heads() {
  TrialPlan plan = copying_plan();
  plan.id = "heads";
  plan.title = to_say("Head count: one width shared out");
  plan.tab = to_say("Head count");
  plan.question = to_say("The same width and as many weights, shared out to 1 … 32 heads. Which learn to copy?");
  plan.answer = to_say(
      "A head's scores have rank d_head = width ÷ heads at most (Bhojanapalli et al. 2020). How few numbers still "
      "tell 95 characters apart, and one place back from two?");
  plan.source = "Bhojanapalli et al. 2020 (Low-Rank Bottleneck), Michel et al. 2019";
  plan.words = "how many heads, number of heads, d_head, head width, ablation of width";
  Recipe recipe = copying_recipe("heads");
  for (const int heads : {1, 2, 4, 8, 16, 32}) {
    recipe.model.heads = recipe.model.kv_heads = heads;
    plan.contestants.push_back({fmt::format("{} × {}", heads, recipe.model.width / heads), recipe});
  }
  return plan;
}

TrialPlan bottleneck() {
  TrialPlan plan;
  plan.id = "bottleneck";
  plan.title = to_say("One vector: what attention was invented for");
  plan.tab = to_say("One vector");
  plan.question = to_say(
      "A recurrent network reads a text, another writes its translation. Does the text fit into the one vector that is "
      "handed over?");
  plan.answer = to_say(
      "One vector holds a short text, and the less of one the longer it is, read forwards or backwards. Attention goes "
      "back to the source for every word: long texts come out as well as short ones.");
  plan.source = "Sutskever et al. 2014, Cho et al. 2014, Bahdanau et al. 2015 (figures 2 and 3)";
  // In the palette what comes first says most: what pages of their own are called by comes last.
  plan.words =
      "fixed vector, context vector, thought vector, long sentences, Sutskever, Cho, reversed source, GRU, accuracy "
      "against length, recurrent encoder-decoder, RNN, encoder decoder, translation, figure 3, additive attention, "
      "alignment, Bahdanau, seq2seq, sequence to sequence, without before attention, information bottleneck";
  plan.size_title = to_say("words of the source");
  plan.sizes = {6, 10, 14, 18, 22, 26, 30};
  plan.chance = 1.0 / (target_words() + 1);  // the end is a token, too
  plan.score_title = to_say("words translated right");
  plan.score_of = to_say("share of those of the target, each at its place");
  plan.counted = to_say("share of the target's words that are written at their place");
  plan.task_details =
      to_say("texts of one to three sentences of an English of a hundred words, into a language made for this");
  plan.kept_of =
      to_say("the last state of the encoder where there is one vector, its state at every token with attention");
  plan.alignment_of = to_say("target ↓ source →");
  Recipe recipe = small_recipe(
      "bottleneck", {.kind = "translate", .seed = 1, .vocabulary = 1024, .vocabulary_stories = 1500, .sentences = 3},
      44);
  // Of the shape its width and the context count: a recurrent pair has one layer and no heads.
  recipe.model = {.family = "bart", .layers = 1, .heads = 1, .kv_heads = 1, .width = 64, .mlp = 1, .context = 44};
  recipe.steps = recipe.optimizer.schedule_steps = 1000;
  recipe.optimizer.learning_rate = 0.005;
  recipe.optimizer.final_learning_rate = 0.0005;
  recipe.optimizer.warmup_steps = 20;
  plan.contestants = {{to_say("one vector"), recipe, recurrent_pair(SourceReading::one_vector)},
                      {to_say("one vector, reversed"), recipe, recurrent_pair(SourceReading::one_vector_backwards)},
                      {to_say("attention"), recipe, recurrent_pair(SourceReading::attention)}};
  return plan;
}
}  // namespace

const std::vector<TrialPlan>& trial_plans() {
  static const std::vector<TrialPlan> plans{copying(), heads(), bottleneck()};
  return plans;
}

}  // namespace headscope
