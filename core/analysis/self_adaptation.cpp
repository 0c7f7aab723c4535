#include "core/analysis/self_adaptation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "core/analysis/learnt_language.h"
#include "core/analysis/singular_tuning.h"
#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/metrics/next_token.h"

namespace headscope {

namespace {

constexpr const char* adaptation_place = "tasks";

std::vector<std::int32_t> ids_of(const LoadedModel& loaded, const std::filesystem::path& folder,
                                 const std::string& text, const std::stop_token& stop) {
  RunRequest request;
  request.model = folder, request.text = text;
  std::vector<std::int32_t> out;
  for (const Token& each : tokenize(loaded, request, stop)) out.push_back(each.id);
  return out;
}

/// Tokens of which the loss counts.
std::size_t counted(std::span<const TextRow> rows) {
  std::size_t out = 0;
  for (const TextRow& each : rows) out += each.ids.size() - static_cast<std::size_t>(each.from);
  return out;
}
double sum(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

/// The prompt alone, and behind it a label, which is all that is told.
TextRow prompt_of(const TextRow& row) {
  return {{row.ids.begin(), row.ids.begin() + row.from}, 1};
}
TextRow labelled(const TextRow& row, std::int32_t label) {
  TextRow out = prompt_of(row);
  out.ids.push_back(label);
  out.from = row.from;
  return out;
}

}  // namespace

int prompt_length(std::size_t tokens) {
  return std::max(1, static_cast<int>(tokens / 2));
}

std::vector<std::int32_t> task_labels(const std::vector<TaskRows>& tasks) {
  std::map<std::int32_t, int> counts;
  for (const TaskRows& task : tasks)
    for (const TextRow& row : task.learn)
      for (std::size_t i = 1; i < row.ids.size(); ++i) ++counts[row.ids[i]];
  if (counts.size() < tasks.size())
    throw Error(adaptation_place, fmt::format("texts of at least {} tokens, a label for each task", tasks.size()),
                std::to_string(counts.size()));
  std::vector<std::pair<std::int32_t, int>> ranked(counts.begin(), counts.end());
  std::ranges::stable_sort(ranked, [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::int32_t> out;
  for (std::size_t k = 0; k < tasks.size(); ++k) out.push_back(ranked[k].first);
  return out;
}

SingularLearner::LogitLoss label_loss(const Tensor& logits, std::span<const std::int32_t> targets,
                                      std::span<const std::int32_t> labels) {
  SingularLearner::LogitLoss out{0, Tensor::zeros({logits.dim(0), logits.dim(1)})};
  const auto rows = static_cast<double>(std::ranges::count_if(targets, [](std::int32_t each) { return each >= 0; }));
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] < 0) continue;
    const auto row = static_cast<Index>(i);
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (const std::int32_t label : labels) largest = std::max(largest, static_cast<double>(logits.at(row, label)));
    for (const std::int32_t label : labels) sum += std::exp(static_cast<double>(logits.at(row, label)) - largest);
    for (const std::int32_t label : labels) {
      const double share = std::exp(static_cast<double>(logits.at(row, label)) - largest) / sum;
      out.slope.ref(row, label) = static_cast<float>((share - (label == targets[i] ? 1 : 0)) / rows);
      if (label == targets[i]) out.loss -= std::log(share) / rows;
    }
  }
  return out;
}

TaskRows task_rows(const LoadedModel& loaded, const std::filesystem::path& folder, const TaskTexts& task,
                   const std::stop_token& stop) {
  TaskRows out;
  const auto read = [&](const std::vector<std::string>& texts, std::vector<TextRow>& rows, const char* what,
                        bool behind_prompt) {
    if (texts.empty()) throw Error("task " + excerpt(task.name), fmt::format("texts {}", what), "none");
    for (const std::string& text : texts) {
      TextRow row;
      try {
        row.ids = ids_of(loaded, folder, text, stop);
      } catch (const Error& wrong) {
        throw Error(fmt::format("task {}, \"{}\"", excerpt(task.name), excerpt(text, 40)), wrong.expected, wrong.found,
                    wrong.hint);
      }
      if (row.ids.size() < 2)
        throw Error(fmt::format("task {}, \"{}\"", excerpt(task.name), excerpt(text, 40)), "at least two tokens",
                    std::to_string(row.ids.size()));
      if (behind_prompt) row.from = prompt_length(row.ids.size());
      rows.push_back(std::move(row));
    }
  };
  read(task.learn, out.learn, "to learn", false);
  read(task.shots, out.shots, "as shots", true);
  read(task.test, out.test, "to measure", true);
  return out;
}

ShotSearch::ShotSearch(const std::vector<ExpertSet::Expert>& experts, std::span<const TextRow> shots,
                       const CrossEntropySearch::Settings& settings, SingularLearner& learner)
    : experts_(experts),
      batch_(rows_batch(shots)),
      learner_(learner),
      search_(std::vector<double>(experts.size(), 1.0 / static_cast<double>(experts.size() + 1)), settings) {}

void ShotSearch::step(std::stop_token stop) {
  learner_.set_expert(mixed_expert(experts_, search_.next()));
  search_.tell(learner_.loss(batch_, stop));
}

int SelfAdaptation::Way::right() const {
  int out = 0;
  for (std::size_t task = 0; task < chosen.size(); ++task) out += chosen[task][task + 1];
  return out;
}
int SelfAdaptation::Way::prompts() const {
  int out = 0;
  for (const std::vector<int>& each : chosen) out += std::accumulate(each.begin(), each.end(), 0);
  return out;
}
double model_weight(std::span<const double> weights) {
  return 1 - sum(weights);
}
double mean_nats(std::span<const double> nats, std::span<const TextRow> rows) {
  return sum(nats) / static_cast<double>(counted(rows));
}

std::size_t SelfAdaptation::FewShot::largest() const {
  std::vector<double> all = weights;
  all.insert(all.begin(), model_weight(weights));
  return static_cast<std::size_t>(std::ranges::max_element(all) - all.begin());
}

SelfAdaptationRun::SelfAdaptationRun(LoadedModel loaded, SelfAdaptationAsked asked) : loaded_(std::move(loaded)) {
  known_.asked = std::move(asked);
}
SelfAdaptationRun::~SelfAdaptationRun() = default;

int SelfAdaptationRun::total() const {
  if (!learner_) return 0;
  const int tasks = static_cast<int>(count());
  const CrossEntropySearch::Settings& search = known_.asked.search;
  return 2 * tasks * known_.asked.steps + (tasks + 1) * tasks + tasks + tasks * (search.samples * search.rounds + 1);
}

PreparedTasks prepare_tasks(const LoadedModel& loaded, const SelfAdaptationAsked& asked, int least,
                            const std::stop_token& stop) {
  SingularLearner::check(loaded.model->config(), asked.matrices);
  PreparedTasks out{asked.tasks, {}, 0};
  if (out.tasks.empty()) {
    const Grammar* grammar = learnt_grammar(asked.model);
    if (!grammar)
      throw Error(loaded.model->config().name + ": tasks",
                  fmt::format("a model whose language is known (everyday-gpt2, tiny-gpt2 …), or texts for at least {} "
                              "task{}",
                              least, least == 1 ? "" : "s"),
                  "neither", "expert tasks --task NAME=FILE gives them, a text a line");
    const auto context = static_cast<std::size_t>(loaded.model->config().context);
    out.tasks = drawn_tasks(*grammar, asked.counts, asked.seed, [&](const std::string& text) {
      if (stop.stop_requested()) throw Cancelled();
      RunRequest request;
      request.text = text;
      const std::size_t tokens = ids_of_any_length(loaded, request).size();
      return tokens >= 2 && tokens <= context;
    });
  }
  if (static_cast<int>(out.tasks.size()) < least)
    throw Error(adaptation_place, fmt::format("at least {}", least == 2 ? "two" : std::to_string(least)),
                std::to_string(out.tasks.size()));
  std::set<std::string> names;
  for (const TaskTexts& task : out.tasks) {
    if (!names.insert(task.name).second)
      throw Error(adaptation_place, "names that differ", excerpt(task.name) + " twice");
    out.rows.push_back(task_rows(loaded, asked.model, task, stop));
    for (const std::vector<TextRow>* list : {&out.rows.back().learn, &out.rows.back().shots, &out.rows.back().test})
      for (const TextRow& row : *list) out.longest = std::max(out.longest, static_cast<int>(row.ids.size()));
  }
  return out;
}

std::vector<TextRow> drawn_rows(const std::vector<TextRow>& texts, const SelfAdaptationAsked& asked, std::size_t which,
                                std::size_t step) {
  Random random(asked.seed + 1'000'003 * (which + 1) + 7919 * step);
  std::vector<TextRow> out;
  for (int i = 0; i < asked.batch; ++i) out.push_back(texts[random.below(texts.size())]);
  return out;
}

void SelfAdaptationRun::prepare(const Ctx& ctx) {
  const SelfAdaptationAsked& asked = known_.asked;
  PreparedTasks prepared = prepare_tasks(loaded_, asked, 2, ctx.stop);
  auto backend = std::make_unique<Backend>(ctx.backend.pool().threads());
  auto learner = singular_learner(loaded_, asked.model, asked.matrices, {.rate = asked.rate}, prepared.longest,
                                  *backend, ctx.stop, available_memory(), asked.batch);
  ExpertSet& set = known_.set;
  set.model = loaded_.model->config().name;
  set.matrices = asked.matrices;
  set.labels = task_labels(prepared.rows);
  set.weights = weights_identity(*loaded_.model, asked.matrices);
  known_.tasks = std::move(prepared.tasks), rows_ = std::move(prepared.rows);
  known_.curves.resize(count() + 1);
  // Of the classifier: the prompts of all tasks, each with its label behind it.
  labelled_.clear();
  for (std::size_t task = 0; task < rows_.size(); ++task)
    for (TextRow row : rows_[task].learn) {
      row.from = prompt_length(row.ids.size());
      labelled_.push_back(labelled(row, set.labels[task]));
    }
  backend_ = std::move(backend), learner_ = std::move(learner);
}

void SelfAdaptationRun::learn(std::size_t which, const Ctx& ctx) {
  const SelfAdaptationAsked& asked = known_.asked;
  std::vector<double>& curve = known_.curves[which];
  if (curve.empty()) learner_->restart();
  const bool classifies = which == count();
  const Batch made = rows_batch(drawn_rows(classifies ? labelled_ : rows_[which].learn, asked, which, curve.size()));
  curve.push_back(classifies ? learner_->step(made, ctx.stop,
                                              [&](const Tensor& logits) {
                                                return label_loss(logits, made.targets, known_.set.labels);
                                              })
                             : learner_->step(made, ctx.stop));
  if (static_cast<int>(curve.size()) < asked.steps * (classifies ? static_cast<int>(count()) : 1)) return;
  const SingularExpert learnt = as_written(learner_->expert());
  if (which < count())
    known_.set.experts.push_back({known_.tasks[which].name, known_.tasks[which].about, learnt});
  else
    known_.set.classifier = learnt;
}

void SelfAdaptationRun::measure(std::size_t expert, std::size_t task, const Ctx& ctx) {
  if (task == 0) {
    if (expert == 0)
      learner_->restart();
    else
      learner_->set_expert(known_.set.experts[expert - 1].z);
  }
  std::vector<TextRow> prompts;
  for (const TextRow& row : rows_[task].test) prompts.push_back(prompt_of(row));
  std::vector<double> prompt = learner_->nats(rows_batch(prompts), ctx.stop),
                      rest = learner_->nats(rows_batch(rows_[task].test), ctx.stop);
  if (task == 0) known_.losses.emplace_back(), prompts_.emplace_back(), rests_.emplace_back();
  known_.losses.back().push_back(mean_nats(rest, rows_[task].test));
  prompts_.back().push_back(std::move(prompt)), rests_.back().push_back(std::move(rest));
  if (expert < count() || task + 1 < count()) return;
  // The first pass by the prompt, of every text, and what the second one then gave.
  for (std::size_t t = 0; t < count(); ++t) {
    std::vector<int> chosen(count() + 1, 0);
    double nats = 0;
    for (std::size_t text = 0; text < rows_[t].test.size(); ++text) {
      std::size_t best = 0;
      for (std::size_t e = 1; e <= count(); ++e)
        if (prompts_[e][t][text] < prompts_[best][t][text]) best = e;
      ++chosen[best];
      nats += rests_[best][t][text];
    }
    known_.prompt.chosen.push_back(std::move(chosen));
    known_.prompt.loss.push_back(nats / static_cast<double>(counted(rows_[t].test)));
  }
}

void SelfAdaptationRun::classify(std::size_t task, const Ctx& ctx) {
  if (task == 0) learner_->set_expert(*known_.set.classifier);
  std::vector<TextRow> prompts;
  for (const TextRow& row : rows_[task].test) prompts.push_back(prompt_of(row));
  const Batch batch = rows_batch(prompts);
  const Tensor logits = learner_->logits(batch, ctx.stop);
  std::vector<int> chosen(count() + 1, 0);
  double nats = 0;
  for (std::size_t text = 0; text < prompts.size(); ++text) {
    const Tensor row =
        logits.select(0, static_cast<Index>(text) * batch.length + static_cast<Index>(prompts[text].ids.size()) - 1);
    std::size_t best = 0;
    const double all = log_sum_exp(row);
    for (std::size_t k = 0; k < count(); ++k) {
      if (row.at(known_.set.labels[k]) > row.at(known_.set.labels[best])) best = k;
      known_.said += std::exp(static_cast<double>(row.at(known_.set.labels[k])) - all) /
                     static_cast<double>(count() * prompts.size());
    }
    ++chosen[best + 1];
    nats += rests_[best + 1][task][text];
  }
  known_.classifier.chosen.push_back(std::move(chosen));
  known_.classifier.loss.push_back(nats / static_cast<double>(counted(rows_[task].test)));
}

void SelfAdaptationRun::search(std::size_t task, const Ctx& ctx) {
  if (!search_) {
    learner_->restart();
    SelfAdaptation::FewShot found;
    found.before = learner_->loss(rows_batch(rows_[task].shots), ctx.stop);
    known_.few_shot.push_back(std::move(found));
    CrossEntropySearch::Settings settings = known_.asked.search;
    settings.seed += known_.asked.seed * 1000 + task;
    search_ = std::make_unique<ShotSearch>(known_.set.experts, rows_[task].shots, settings, *learner_);
  }
  SelfAdaptation::FewShot& found = known_.few_shot.back();
  if (!search_->finished()) {
    search_->step(ctx.stop);
    found.weights = search_->search().best();
    found.best = search_->search().best_by_round();
    return;
  }
  learner_->set_expert(as_written(mixed_expert(known_.set.experts, found.weights)));
  found.loss = mean_nats(learner_->nats(rows_batch(rows_[task].test), ctx.stop), rows_[task].test);
  search_.reset();
}

void SelfAdaptationRun::step(const Ctx& ctx) {
  if (!learner_) return prepare(ctx);
  const SelfAdaptationAsked& asked = known_.asked;
  const auto tasks = static_cast<int>(count());
  const int searching = asked.search.samples * asked.search.rounds + 1;
  int at = done_;
  if (at < 2 * tasks * asked.steps) {
    learn(static_cast<std::size_t>(std::min(at / asked.steps, tasks)), ctx);  // last of all the classifier
  } else if ((at -= 2 * tasks * asked.steps) < (tasks + 1) * tasks) {
    measure(static_cast<std::size_t>(at / tasks), static_cast<std::size_t>(at % tasks), ctx);
  } else if ((at -= (tasks + 1) * tasks) < tasks) {
    classify(static_cast<std::size_t>(at), ctx);
  } else {
    search(static_cast<std::size_t>((at - tasks) / searching), ctx);
  }
  known_.whole = ++done_ == total();
}

std::shared_ptr<const SelfAdaptation> SelfAdaptationRun::result() const {
  return learner_ ? std::make_shared<const SelfAdaptation>(known_) : nullptr;
}

}  // namespace headscope
