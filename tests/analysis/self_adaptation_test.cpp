// Experts for tasks, and two passes: every number is that of ordinary runs whose edits are the experts'.

#include "core/analysis/self_adaptation.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/analysis/singular_tuning.h"
#include "core/analysis/two_passes.h"
#include "core/base/error.h"
#include "core/metrics/next_token.h"
#include "tests/support/paths.h"

namespace headscope::self_adaptation_test {

using doctest::Approx;

namespace {

struct Adapted {
  Backend backend{1};
  std::filesystem::path folder = testing::source_dir() / "models" / "everyday-gpt2";
  LoadedModel loaded = load_model(folder, backend);
  SelfAdaptationAsked asked;
  Adapted() {
    asked.model = folder;
    asked.counts = {.learn = 12, .shots = 3, .test = 5};
    asked.steps = 12, asked.batch = 4, asked.rate = 0.05;
    asked.search = {.samples = 5, .elites = 2, .rounds = 2};
  }
  std::shared_ptr<const SelfAdaptation> learnt() {
    SelfAdaptationRun run(loaded, asked);
    int steps = 0;
    while (!run.finished()) run.step(Ctx{backend}), ++steps;
    CHECK(run.share() == 1);
    CHECK(steps == run.total() + 1);  // the first prepares
    return run.result();
  }
  RunRequest request(const SingularExpert* z) const {
    RunRequest out;
    out.model = folder;
    if (z) out.edits = expert_edits(*z);
    return out;
  }
  /// −ln p of each token of a text from the second on, under an expert's edits.
  std::vector<double> losses(const std::string& text, const SingularExpert* z) {
    RunRequest asking = request(z);
    asking.text = text;
    return token_losses(*run(loaded, asking, Ctx{backend}));
  }
  /// The first tokens of a text, and the logits behind them.
  std::shared_ptr<const Trace> prompt(const std::string& text, int tokens, const SingularExpert* z) {
    RunRequest asking = request(z);
    asking.text = text;
    for (const Token& each : tokenize(loaded, asking)) asking.ids.push_back(each.id);
    asking.ids.resize(static_cast<std::size_t>(tokens));
    asking.ids_are_whole = true;
    return run(loaded, asking, Ctx{backend});
  }
};

double sum(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

}  // namespace

TEST_CASE("experts are learnt task by task; losses, choices and mixtures are those of runs with their edits") {
  Adapted a;
  const auto found = a.learnt();
  REQUIRE(found->whole);
  REQUIRE(found->tasks.size() == 4);
  CHECK(found->tasks ==
        drawn_tasks(Grammar::named("everyday", "test"), a.asked.counts, 1, [](const std::string&) { return true; }));
  REQUIRE(found->set.experts.size() == 4);
  REQUIRE(found->set.classifier);
  check_fits(found->set, *a.loaded.model, "test");
  CHECK(found->chance() == 0.25);

  // Learning: each expert from the model as it is, so that the first loss of its curve is the model's own.
  REQUIRE(found->curves.size() == 5);
  for (std::size_t k = 0; k < 4; ++k) REQUIRE(found->curves[k].size() == 12);
  REQUIRE(found->curves[4].size() == 48);                    // as many for each task
  const auto fell_by = [&](std::size_t k, std::size_t of) {  // batches differ, so several of them together
    const std::span<const double> curve(found->curves[k]);
    return (sum(curve.first(of)) - sum(curve.last(of))) / static_cast<double>(of);
  };
  SingularLearner plain(Parameters::load(a.folder), a.asked.matrices, {}, a.backend);
  const PreparedTasks prepared = prepare_tasks(a.loaded, a.asked, 2);
  for (std::size_t k = 0; k < 4; ++k)
    CHECK(found->curves[k][0] ==
          Approx(plain.loss(rows_batch(drawn_rows(prepared.rows[k].learn, a.asked, k, 0)))).epsilon(1e-4));
  for (std::size_t k = 0; k < 3; ++k) CHECK(fell_by(k, 4) > 0);
  CHECK(fell_by(4, 12) > 0.1);

  REQUIRE(found->losses.size() == 5);
  std::vector<std::vector<int>> chosen(4, std::vector<int>(5, 0)), labelled = chosen;
  std::vector<double> by_prompt(4, 0), by_classifier(4, 0);
  double said = 0;
  for (std::size_t t = 0; t < 4; ++t) {
    std::vector<double> nats(5, 0);
    double tokens = 0;
    for (const std::string& text : found->tasks[t].test) {
      std::vector<double> prompts, rests;
      int half = 0;
      for (std::size_t e = 0; e < 5; ++e) {
        const auto all = a.losses(text, e ? &found->set.experts[e - 1].z : nullptr);
        half = static_cast<int>(all.size() + 1) / 2;
        const auto middle = static_cast<std::size_t>(half - 1);  // losses of tokens 1 … half − 1 are the prompt's
        prompts.push_back(sum(std::span(all).first(middle)));
        rests.push_back(sum(std::span(all).subspan(middle)));
        nats[e] += rests.back();
        if (e == 0) tokens += static_cast<double>(all.size() - middle);
      }
      const auto best = static_cast<std::size_t>(std::ranges::min_element(prompts) - prompts.begin());
      ++chosen[t][best], by_prompt[t] += rests[best];
      const auto trace = a.prompt(text, half, &*found->set.classifier);
      const Tensor row = trace->logits.select(0, half - 1);
      std::vector<double> labels;
      for (const std::int32_t label : found->set.labels) labels.push_back(std::exp(-next_token_loss(row, label)));
      const auto told = static_cast<std::size_t>(std::ranges::max_element(labels) - labels.begin()) + 1;
      ++labelled[t][told], by_classifier[t] += rests[told];
      said += sum(labels) / 20;

      // The same prompt by itself, as command line and window ask it.
      RunRequest prompt;
      prompt.model = a.folder;
      prompt.ids = a.prompt(text, half, nullptr)->ids();
      prompt.ids_are_whole = true;
      prompt.edits = {parse_intervention("0.*: ablate zero", "test")};  // left aside
      const FirstPass first = first_pass(a.loaded, found->set, prompt, Ctx{a.backend});
      CHECK(first.by_prompt == best);
      CHECK(first.by_classifier == told);
      CHECK(first.said == Approx(sum(labels)).epsilon(1e-4));
      for (std::size_t e = 0; e < 5; ++e) CHECK(first.losses[e] == Approx(prompts[e] / (half - 1)).epsilon(1e-4));
      for (std::size_t k = 0; k < 4; ++k) CHECK(first.labels[k] == Approx(labels[k] / sum(labels)).epsilon(1e-4));
    }
    for (std::size_t e = 0; e < 5; ++e) CHECK(found->losses[e][t] == Approx(nats[e] / tokens).epsilon(1e-4));
    CHECK(found->prompt.loss[t] == Approx(by_prompt[t] / tokens).epsilon(1e-4));
    CHECK(found->classifier.loss[t] == Approx(by_classifier[t] / tokens).epsilon(1e-4));

    // Few shots: the weights that were found have the loss that was told.
    const SelfAdaptation::FewShot& shots = found->few_shot[t];
    REQUIRE(shots.weights.size() == 4);
    REQUIRE(shots.best.size() == 2);
    CHECK(shots.best[1] <= shots.best[0]);
    const auto mean_behind_prompts = [&](const std::vector<std::string>& texts, const SingularExpert* z) {
      double all = 0, count = 0;
      for (const std::string& text : texts) {
        const auto each = a.losses(text, z);
        const std::size_t middle = (each.size() + 1) / 2 - 1;
        all += sum(std::span(each).subspan(middle)), count += static_cast<double>(each.size() - middle);
      }
      return all / count;
    };
    const SingularExpert mixture = mixed_expert(found->set.experts, shots.weights);
    CHECK(shots.before == Approx(mean_behind_prompts(found->tasks[t].shots, nullptr)).epsilon(1e-4));
    CHECK(shots.best[1] == Approx(mean_behind_prompts(found->tasks[t].shots, &mixture)).epsilon(1e-3));
    CHECK(shots.loss == Approx(mean_behind_prompts(found->tasks[t].test, &mixture)).epsilon(1e-3));
    std::vector<double> all = shots.weights;
    all.insert(all.begin(), 1 - sum(shots.weights));
    CHECK(all[shots.largest()] == std::ranges::max(all));
  }
  CHECK(found->prompt.chosen == chosen);
  CHECK(found->classifier.chosen == labelled);
  CHECK(found->said == Approx(said).epsilon(1e-4));
  int right = 0;
  for (std::size_t t = 0; t < 4; ++t) right += chosen[t][t + 1];
  CHECK(found->prompt.right() == right);
  CHECK(found->prompt.prompts() == 20);
  // Of the three changed tasks each is known better by its own expert than by the model.
  for (std::size_t t = 0; t < 3; ++t) CHECK(found->losses[t + 1][t] < found->losses[0][t] - 0.2);
  CHECK(right >= 7);  // five of twenty by chance

  // The same again; and with other draws another outcome.
  const auto again = a.learnt();
  CHECK(to_json(again->set) == to_json(found->set));
  CHECK(again->few_shot[1].weights == found->few_shot[1].weights);
  a.asked.seed = 2, a.asked.steps = 1;
  CHECK(a.learnt()->curves[0][0] != found->curves[0][0]);
}

TEST_CASE("labels are the most frequent tokens, and their loss is over them alone, with its slope") {
  TaskRows one, two;
  one.learn = {{{9, 5, 5, 7}, 1}};
  two.learn = {{{9, 7, 4, 5, 3}, 1}};
  // 5 three times, 7 twice, 3 and 4 once: 9 is never told, and of equals the lowest counts.
  CHECK(task_labels({one, two}) == std::vector<std::int32_t>{5, 7});
  CHECK(task_labels({one, two, two}) == std::vector<std::int32_t>{5, 7, 3});
  CHECK_THROWS_AS(task_labels({one, one, one}), Error);

  const std::vector<float> numbers = {0.5f, 2, -1, 0.25f, 1, 0, 0.75f, -0.5f};
  const std::vector<std::int32_t> targets = {3, -1}, labels = {0, 3};
  const auto at = [&](std::size_t which, float by) {
    std::vector<float> moved = numbers;
    moved[which] += by;
    return label_loss(Tensor::from({2, 4}, moved), targets, labels);
  };
  // Shares of e^0.5 and e^0.25.
  CHECK(at(0, 0).loss == Approx(-std::log(std::exp(0.25) / (std::exp(0.25) + std::exp(0.5)))));
  for (std::size_t i = 0; i < 8; ++i)
    CHECK(at(0, 0).slope.at(static_cast<Index>(i / 4), static_cast<Index>(i % 4)) ==
          Approx((at(i, 0.01f).loss - at(i, -0.01f).loss) / 0.02).epsilon(1e-3));
}

TEST_CASE("a learner begins anew, reads texts of several lengths side by side, and tells them apart") {
  Adapted a;
  const std::vector<TextRow> rows = {{{5, 9, 30, 31, 8}, 2}, {{5, 40, 41}, 1}};
  const Batch batch = rows_batch(rows);
  CHECK(batch.sequences == 2);
  CHECK(batch.length == 5);
  CHECK(batch.targets == std::vector<std::int32_t>{-1, 30, 31, 8, -1, 40, 41, -1, -1, -1});
  SingularLearner learner(Parameters::load(a.folder), {WeightMatrix::v}, {}, a.backend);
  const auto alone = [&](const TextRow& row) { return learner.nats(rows_batch(std::vector{row}))[0]; };
  const std::vector<double> nats = learner.nats(batch);
  CHECK(nats[0] == Approx(alone(rows[0])).epsilon(1e-5));
  CHECK(nats[1] == Approx(alone(rows[1])).epsilon(1e-5));
  CHECK(learner.loss(batch) == Approx((nats[0] + nats[1]) / 5).epsilon(1e-6));
  const double first = learner.step(batch), second = learner.step(batch);
  learner.restart();
  CHECK(learner.expert().parts[0].z == std::vector<double>(128, 1.0));
  CHECK(learner.nats(batch) == nats);
  CHECK(learner.step(batch) == first);
  CHECK(learner.step(batch) == second);
  const auto need = [&](int tokens, int texts) {
    return SingularLearner::memory(*a.loaded.model, {WeightMatrix::v}, tokens, texts);
  };
  CHECK(need(10, 4).attention == Approx(4 * need(10, 1).attention));
  CHECK(need(10, 4).logits == Approx(4 * need(10, 1).logits));
  CHECK(prompt_length(2) == 1);
  CHECK(prompt_length(3) == 1);
  CHECK(prompt_length(9) == 4);
}

TEST_CASE("what makes no tasks is refused in words, and a stop leaves a step to be taken again") {
  Adapted a;
  const auto refusal = [&](std::vector<TaskTexts> tasks) {
    a.asked.tasks = std::move(tasks);
    SelfAdaptationRun run(a.loaded, a.asked);
    try {
      run.step(Ctx{a.backend});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const TaskTexts one{"one", "", {"Tom saw a dog."}, {"Tom saw a cat."}, {"Tom saw a hen."}};
  TaskTexts two = one;
  two.name = "two";
  CHECK(refusal({one, two}) == "");
  CHECK(refusal({one}).find("tasks: expected at least two, found 1") != std::string::npos);
  CHECK(refusal({one, one}).find("one twice") != std::string::npos);
  two.test = {};
  CHECK(refusal({one, two}).find("task two: expected texts to measure, found none") != std::string::npos);
  two.test = {std::string(2000, 'x')};
  CHECK(refusal({one, two}).find("task two, \"xxx") != std::string::npos);
  const LoadedModel unknown = load_model(testing::source_dir() / "models" / "induction-2l", a.backend);
  SelfAdaptationAsked asked;
  asked.model = testing::source_dir() / "models" / "induction-2l";
  SelfAdaptationRun none(unknown, asked);
  CHECK_THROWS_WITH_AS(none.step(Ctx{a.backend}), doctest::Contains("a model whose language is known"), Error);

  a.asked.tasks = {};
  a.asked.steps = 2;
  SelfAdaptationRun run(a.loaded, a.asked);
  const auto stopped = [&] {
    std::stop_source stop;
    stop.request_stop();
    CHECK_THROWS_AS(run.step(Ctx{.backend = a.backend, .stop = stop.get_token()}), Cancelled);
  };
  stopped();
  CHECK_FALSE(run.result());
  while (!run.finished()) {
    run.step(Ctx{a.backend});
    const int done = run.done();
    if (!run.finished() && done % 7 == 0) stopped();
    CHECK(run.done() == done);
  }
  const auto found = run.result();
  CHECK(to_json(found->set) == to_json(a.learnt()->set));
  CHECK(found->few_shot.size() == 4);
}

}  // namespace headscope::self_adaptation_test
