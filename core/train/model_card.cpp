#include "core/train/model_card.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/error.h"
#include "core/base/special_values.h"
#include "core/base/words.h"
#include "core/metrics/metric.h"
#include "core/metrics/shares.h"
#include "core/trace/model_heads.h"
#include "core/train/backcopy_task.h"
#include "core/train/evaluation.h"
#include "core/train/head_taps.h"
#include "core/train/seeing_heads.h"
#include "core/train/translate_task.h"

namespace headscope {

namespace {

struct LinkScore {
  const char *id, *title;
  LinkKind kind;
};
constexpr LinkScore link_scores[] = {{"verb_to_subject", to_say("verb → subject"), LinkKind::subject},
                                     {"pronoun_to_antecedent", to_say("pronoun → antecedent"), LinkKind::antecedent},
                                     {"noun_to_determiner", to_say("noun → determiner"), LinkKind::determiner},
                                     {"to_earlier_occurrence", to_say("name → earlier"), LinkKind::occurrence},
                                     {"song_to_continuation", to_say("song → what followed"), LinkKind::continuation}};
constexpr const char* metric_scores[][2] = {{"previous_token", to_say("previous token")},
                                            {"duplicate_token", "duplicate"},
                                            {"prefix_matching", "induction"},
                                            {"sink", "sink"}};

constexpr int probe_letters = 63;  // of a text of "backcopy": 64 tokens with the one it begins with

/// A query and the keys that the truth links it to, as token positions.
struct Query {
  Index query = 0;
  std::vector<Index> keys;
};

std::vector<Query> queries_of(const Story& story, const std::vector<Token>& tokens, LinkKind kind) {
  std::map<Index, std::vector<Index>> keys;
  for (const TruthLink& link : story.links) {
    if (link.kind != kind) continue;
    const auto from = tokens_of(tokens, link.from);
    if (from.empty()) continue;
    for (const Index key : tokens_of(tokens, link.to))
      if (key < from.back()) keys[from.back()].push_back(key);
  }
  std::vector<Query> queries;
  for (auto& [query, list] : keys) {
    std::ranges::sort(list);
    list.erase(std::unique(list.begin(), list.end()), list.end());
    queries.push_back({query, std::move(list)});
  }
  return queries;
}

struct Mean {
  double sum = 0;
  std::int64_t count = 0;
  void add(double value) {
    if (std::isnan(value)) return;
    sum += value;
    ++count;
  }
  double mean() const { return count > 0 ? sum / static_cast<double>(count) : nan; }
};

/// What one kind of link is worth to a head that knows nothing, and to one that knows a distance.
struct LinkBaseline {
  Mean chance;
  std::map<Index, std::int64_t> hits;  // by distance
  std::int64_t queries = 0;
  /// `seen`: by the query.
  void add(const Query& query, Index seen) {
    ++queries;
    chance.add(static_cast<double>(query.keys.size()) / static_cast<double>(seen));
    for (const Index key : query.keys) ++hits[query.query - key];
  }
  double fixed() const {
    std::int64_t most = 0;
    for (const auto& [distance, count] : hits) most = std::max(most, count);
    return queries > 0 ? static_cast<double>(most) / static_cast<double>(queries) : nan;
  }
};

std::vector<Story> probe_stories(const Task& task, int texts) {
  if (task.settings().tells_stories()) return held_out_stories(task, texts);
  std::vector<Story> out;
  Random random(task.settings().seed);
  if (task.settings().kind == "backcopy") {
    const Backcopy language(task.settings());
    for (int i = 0; i < texts; ++i) out.push_back({language.sample(random, probe_letters), 0, {}});
    return out;
  }
  const int period = task.settings().longest_period;
  for (int i = 0; i < texts; ++i) out.push_back({repeated_text(random, period, 2 * period), 0, {}});
  return out;
}

/// Loss of each half of texts that are said twice.
void measure_halves(ModelCard& card, const LoadedModel& loaded, const Task& task, int texts, const Ctx& ctx) {
  if (task.settings().kind != "repeated") return;
  HeldOut data;
  const int period = task.settings().longest_period;
  for (const Story& story : probe_stories(task, texts)) {
    Batch& batch = data.batches.emplace_back();
    batch.sequences = 1;
    batch.length = 2 * period;
    batch.tokens.push_back(task.vocabulary().end_of_text_id());
    for (const Token& token : task.tokenizer()->encode(story.text)) batch.targets.push_back(token.id);
    batch.tokens.insert(batch.tokens.end(), batch.targets.begin(), batch.targets.end() - 1);
  }
  Mean first, second;
  for (const auto& row : held_out_losses(*loaded.model, ctx, data))
    for (std::size_t i = 0; i < row.size(); ++i) (i < row.size() / 2 ? first : second).add(row[i]);
  card.first_half = first.mean();
  card.second_half = second.mean();
}

}  // namespace

const HeadScore* HeadCard::find(std::string_view column) const {
  const auto found = std::ranges::find(scores, column, &HeadScore::id);
  return found == scores.end() ? nullptr : &*found;
}

const std::vector<ScoreColumn>& score_columns(const std::string& task_kind) {
  static const std::vector<ScoreColumn> all = [] {
    std::vector<ScoreColumn> columns;
    for (const LinkScore& each : link_scores) columns.push_back({each.id, each.title});
    for (const auto& [id, title] : metric_scores) columns.push_back({id, title});
    return columns;
  }();
  static const std::vector<ScoreColumn> metrics_only(all.begin() + std::size(link_scores), all.end());
  static const std::vector<ScoreColumn> seeing{{"object", to_say("CLS → shape")}};
  if (task_kind == "shapes") return seeing;
  return TaskSettings{.kind = task_kind}.reads_bytes() ? metrics_only : all;
}

std::vector<HeadCard> measure_heads(const LoadedModel& loaded, const Task& task, int texts, const Ctx& ctx) {
  const ModelDims& dims = loaded.model->config().dims;
  const std::vector<HeadId> ids = every_head(dims);
  const std::size_t heads = ids.size();
  constexpr std::size_t links = std::size(link_scores), metrics = std::size(metric_scores);
  std::vector<std::array<Mean, links>> link_means(heads);
  std::vector<std::array<Mean, metrics>> values(heads), chances(heads);
  std::array<LinkBaseline, links> baselines;
  const auto frame = loaded.tokenizer->behind() ? 2u : 1u;  // what stands around every text
  for (const Story& story : probe_stories(task, texts)) {
    if (loaded.tokenizer->encode(story.text).size() + frame > static_cast<std::size_t>(loaded.model->config().context))
      continue;  // trained on rows that are cut, a model may have a context that some stories do not fit into
    RunRequest request;
    request.text = story.text;
    request.add_bos = true;
    request.capture.maps = MapStorage::dense;
    const auto trace = run(loaded, request, ctx);
    const TextMarks text = TextMarks::of(trace->tokens);
    std::array<std::vector<Query>, links> queries;
    for (std::size_t k = 0; k < links; ++k) {
      queries[k] = queries_of(story, trace->tokens, link_scores[k].kind);
      for (const Query& query : queries[k])
        baselines[k].add(query,
                         loaded.model->config().causal ? query.query + 1 : static_cast<Index>(trace->tokens.size()));
    }
    for (std::size_t h = 0; h < heads; ++h) {
      const AttentionMap map = as_shares(trace->maps[h], text.links);
      for (std::size_t k = 0; k < links; ++k)
        for (const Query& query : queries[k]) {
          double weight = 0;
          for (const Index key : query.keys) weight += map.weight(query.query, key);
          link_means[h][k].add(weight);
        }
      for (std::size_t m = 0; m < metrics; ++m) {
        const Metric& each = metric(metric_scores[m][0]);
        values[h][m].add(each.value({map, text}));
        chances[h][m].add(each.chance({map, text}));
      }
    }
  }
  std::vector<HeadCard> cards;
  for (std::size_t h = 0; h < heads; ++h) {
    HeadCard& card = cards.emplace_back();
    card.id = nth(ids, h);
    if (task.settings().tells_stories())
      for (std::size_t k = 0; k < links; ++k)
        card.scores.push_back(
            {link_scores[k].id, link_means[h][k].mean(), baselines[k].chance.mean(), baselines[k].fixed()});
    for (std::size_t m = 0; m < metrics; ++m)
      card.scores.push_back({metric_scores[m][0], values[h][m].mean(), chances[h][m].mean(), nan});
  }
  return cards;
}

double loss_without(const Model& model, const HeldOut& data, HeadId head, const Ctx& ctx) {
  WithoutHead tap(head);
  const Ctx with_tap{ctx.backend, &tap, ctx.stop, nullptr};
  return held_out_loss(model, with_tap, data);
}

ModelCard measure_card(const std::filesystem::path& folder, const CardSettings& settings, const Ctx& ctx) {
  ModelCard card;
  card.recipe = load_recipe(folder / "recipe.json");
  card.training = load_training_record(folder / "training.json");
  const LoadedModel loaded = load_model(folder, ctx.backend);
  const auto task = make_task(card.recipe.task);
  if (!loaded.tokenizer || loaded.tokenizer->vocab_size() != task->tokenizer()->vocab_size())
    throw Error(folder.string(), "the tokenizer that the recipe makes",
                loaded.tokenizer ? loaded.tokenizer->describe() : "none");
  const ModelInfo info = loaded.model->info();
  card.parameters = info.parameters;
  card.dtype = info.dtype;
  const Ctx quiet{ctx.backend, nullptr, ctx.stop, nullptr};
  const HeldOut data = task->held_out_that_fit(settings.rows, card.recipe.batch, card.recipe.model.context);
  card.rows = settings.rows - data.left_out;
  card.left_out = data.left_out;
  card.targets = data.targets;
  card.floor = data.floor;
  card.loss = held_out_loss(*loaded.model, quiet, data);
  card.texts = settings.texts;
  card.first_half = card.second_half = card.accuracy = nan;
  const HeldOut few = task->held_out_that_fit(settings.ablated_rows, card.recipe.batch, card.recipe.model.context);
  card.ablated_rows = settings.ablated_rows - few.left_out;
  if (const auto* translates = dynamic_cast<const TranslateTask*>(task.get())) {
    card.translation = measure_translation(loaded, *translates, settings.rows, few, ctx);
    return card;
  }
  measure_halves(card, loaded, *task, settings.texts, quiet);
  if (task->settings().draws()) card.accuracy = share_told_right(*loaded.model, data, quiet);
  card.heads = task->settings().draws() ? measure_seeing_heads(*loaded.model, *task, settings.texts, quiet)
                                        : measure_heads(loaded, *task, settings.texts, quiet);
  const double whole = held_out_loss(*loaded.model, quiet, few);
  for (std::size_t i = 0; i < card.heads.size(); ++i) {
    HeadCard& head = card.heads[i];
    head.loss_change = loss_without(*loaded.model, few, head.id, quiet) - whole;
    if (ctx.progress) ctx.progress->store(static_cast<float>(i + 1) / static_cast<float>(card.heads.size()));
  }
  return card;
}

}  // namespace headscope
