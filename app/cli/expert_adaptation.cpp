#include "app/cli/expert_adaptation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "app/cli/sweep_run.h"
#include "app/cli/trace_report.h"
#include "core/analysis/singular_tuning.h"
#include "core/analysis/two_passes.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/metrics/next_token.h"

namespace headscope::cli {

namespace {

void add_search(Command& command, CrossEntropySearch::Settings& search) {
  command.add_option("--samples", search.samples, "Mixtures of experts tried in a round of the few-shot search")
      .check(range(2, 10000))
      .show_default();
  command.add_option("--elites", search.elites, "The best of them, about which the next round is drawn")
      .check(range(1, 10000))
      .show_default();
  command.add_option("--rounds", search.rounds, "Of that search").check(range(1, 1000)).show_default();
}

std::vector<TaskTexts> tasks_in(const std::vector<std::string>& words) {
  std::vector<TaskTexts> out;
  for (const std::string& each : words) {
    const std::size_t mark = each.find('=');
    if (mark == 0 || mark == std::string::npos || mark + 1 == each.size())
      throw UsageError(fmt::format("--task takes NAME=FILE, not {}", each));
    const std::string file = each.substr(mark + 1), name = each.substr(0, mark);
    if (name == "expert" || name == "none" || name == "classifier of tasks")  // columns and rows of what is reported
      throw UsageError(fmt::format("--task: a name of its own, not {}", name));
    out.push_back(task_of_lines(name, read_input(file, std::size_t{16} << 20), file));
  }
  return out;
}

/// "0.60 twice + 0.10 exchanged + 0.30 the model itself".
std::string mixture_in_words(const std::vector<double>& weights, const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t k = 0; k < weights.size(); ++k) out += fmt::format("{:.2f} {} + ", weights[k], names[k]);
  return out + fmt::format("{:.2f} the model itself", model_weight(weights));
}

std::string name_of_choice(std::size_t chosen, const std::vector<std::string>& names) {
  return chosen == 0 ? "the model itself" : names[chosen - 1];
}

void add_way(Report::Table& rows, const SelfAdaptation& of, const std::string& name, const SelfAdaptation::Way& way) {
  for (std::size_t t = 0; t < way.chosen.size(); ++t) {
    int prompts = 0;
    for (const int each : way.chosen[t]) prompts += each;
    rows.add({of.tasks[t].name, name, static_cast<double>(way.chosen[t][t + 1]) / prompts, of.losses[0][t], way.loss[t],
              of.losses[t + 1][t]});
  }
}

Report adaptation_report(const SelfAdaptation& of) {
  Report out;
  const ExpertSet& set = of.set;
  std::vector<std::string> matrices, names;
  for (const WeightMatrix each : set.matrices) matrices.emplace_back(symbol_of(each));
  for (const TaskTexts& each : of.tasks) names.push_back(each.name);
  if (!set.experts.empty())
    out.line(fmt::format("{}: {} of {} experts of {} numbers z each ({} of every layer), {} steps of {} texts each",
                         set.model, set.experts.size(), of.tasks.size(), set.experts.front().z.numbers(),
                         fmt::join(matrices, ", "), of.asked.steps, of.asked.batch));
  for (const TaskTexts& each : of.tasks)
    out.line(fmt::format("  {}: {}; {} texts learnt, {} shots, {} measured", each.name, each.about, each.learn.size(),
                         each.shots.size(), each.test.size()));
  out.line();
  out.line("Loss of the second half of unseen texts, nats per token: experts down, tasks across");
  std::vector<Column> columns{"expert"};
  for (const std::string& each : names) columns.emplace_back(each, each, "{:.3f}");
  auto& table = out.table("losses", columns);
  for (std::size_t e = 0; e < of.losses.size(); ++e) {
    std::vector<Cell> row{e ? names[e - 1] : "none"};
    for (std::size_t t = 0; t < names.size(); ++t)
      row.push_back(t < of.losses[e].size() ? Cell(of.losses[e][t]) : Cell(std::nan("")));
    table.add(std::move(row));
  }
  if (!of.prompt.chosen.empty()) {
    const auto line = [&](const char* way, const SelfAdaptation::Way& found) {
      if (found.prompts() == 0) return;
      out.line(
          fmt::format("{}: the task's own expert for {} of {} prompts ({:.0f} %; by chance {:.0f} % among the experts)",
                      way, found.right(), found.prompts(), 100.0 * found.right() / found.prompts(), 100 * of.chance()));
    };
    line("By the prompt", of.prompt);
    line("By the classifier", of.classifier);
    if (!of.classifier.chosen.empty())
      out.line(fmt::format("  with it the labels have {:.3f} of the probability behind a prompt", of.said));
    out.line(
        "By the prompt: whichever of the model and its experts finds the prompt most probable. The paper asks the "
        "model in words instead. The classifier says a token for each task; its loss is over these alone.");
    out.line();
  }
  auto& ways = out.table("ways", {"task",
                                  "way",
                                  {"right", "own expert", "{:.2f}"},
                                  {"model", "loss without", "{:.3f}"},
                                  {"loss", "second pass", "{:.3f}"},
                                  {"own", "with own expert", "{:.3f}"}});
  add_way(ways, of, "prompt", of.prompt);
  add_way(ways, of, "classifier", of.classifier);
  Cell shots = Cell::array();
  for (std::size_t t = 0; t < of.few_shot.size(); ++t) {
    const SelfAdaptation::FewShot& found = of.few_shot[t];
    const bool whole = static_cast<int>(found.best.size()) == of.asked.search.rounds && found.loss > 0;
    if (whole)
      ways.add({names[t], "few shots", found.largest() == t + 1 ? 1.0 : 0.0, of.losses[0][t], found.loss,
                of.losses[t + 1][t]});
    out.line(fmt::format("{} from {} shots: {}; {:.3f} → {:.3f} on the shots", names[t], of.tasks[t].shots.size(),
                         mixture_in_words(found.weights, names), found.before,
                         found.best.empty() ? found.before : found.best.back()));
    shots.push_back({{"task", names[t]},
                     {"weights", found.weights},
                     {"model_weight", model_weight(found.weights)},
                     {"before", found.before},
                     {"best", found.best},
                     {"loss", whole ? Cell(found.loss) : Cell(nullptr)}});
  }
  if (!of.few_shot.empty())
    out.line(fmt::format("  by the cross-entropy method: {} rounds of {} mixtures, the next drawn about the best {}",
                         of.asked.search.rounds, of.asked.search.samples, of.asked.search.elites));
  out.data("few_shot", std::move(shots));
  Cell curves = Cell::object();
  for (std::size_t k = 0; k < of.curves.size(); ++k) {
    curves[k < names.size() ? names[k] : "classifier of tasks"] = of.curves[k];
    if (k < names.size() && !of.curves[k].empty())
      out.line(fmt::format("{} learnt: {:.3f} → {:.3f} nats per token of a step's texts", names[k],
                           of.curves[k].front(), of.curves[k].back()));
  }
  out.data("curves", std::move(curves));
  const auto chosen = [&](const SelfAdaptation::Way& way) {
    Cell all = Cell::object();
    for (std::size_t t = 0; t < way.chosen.size(); ++t) all[names[t]] = way.chosen[t];
    return all;
  };
  out.data("chosen", {{"prompt", chosen(of.prompt)}, {"classifier", chosen(of.classifier)}});
  out.data("chance", of.chance());
  out.data("said", of.said);
  return out;
}

void learn_tasks(Console& console, const TaskOptions& options, const std::string& file) {
  const SelfAdaptationAsked asked = options.request();
  if (asked.search.samples < asked.search.elites) throw UsageError("--elites are some of the --samples");
  if (!file.empty()) expect_writable(file);
  const LoadedModel loaded = load_model(asked.model, console.backend());
  SelfAdaptationRun learning(loaded, asked);
  const bool whole = go_through(console, learning, "steps");
  const auto result = learning.result();
  if (whole && !file.empty()) {
    write_file_atomically(file, to_json(result->set));
    console.say(fmt::format("{}: the experts (headscope-cli expert choose --experts)", file));
  }
  finish(console, options.output, whole, result, adaptation_report);
}

struct ChooseOptions {
  Input input;
  std::string experts, by = "prompt", shots, out;
  CrossEntropySearch::Settings search;
  Output output;
};

struct Mixture {
  std::vector<double> weights, best;
  double before = 0;
};

/// α by the few-shot search on the texts of a file, a line each.
Mixture mixture_of(Console& console, const Opened& opened, const ChooseOptions& options, const ExpertSet& set,
                   const std::filesystem::path& model) {
  TaskTexts task{"shots", "", {}, text_lines(read_input(options.shots, std::size_t{16} << 20), options.shots), {}};
  task.learn = task.test = task.shots;  // none is left out
  const std::vector<TextRow> shots = task_rows(opened.loaded, model, task, console.stop()).shots;
  std::size_t longest = 0;
  for (const TextRow& row : shots) longest = std::max(longest, row.ids.size());
  Backend processor(console.backend().pool().threads());  // weights that change are in its memory
  Mixture out;
  console.with_progress("searching", [&](const Ctx& ctx) {
    const auto learner = singular_learner(opened.loaded, model, set.matrices, {}, static_cast<int>(longest), processor,
                                          ctx.stop, available_memory(), static_cast<int>(shots.size()));
    out.before = learner->loss(rows_batch(shots), ctx.stop);
    ShotSearch search(set.experts, shots, options.search, *learner);
    const int all = options.search.samples * options.search.rounds;
    for (int i = 1; !search.finished(); ++i) {
      search.step(ctx.stop);
      if (ctx.progress) *ctx.progress = static_cast<float>(i) / static_cast<float>(all);
    }
    out.weights = search.search().best(), out.best = search.search().best_by_round();
  });
  return out;
}

void choose_expert(Console& console, const ChooseOptions& options) {
  if ((options.by == "shots") == options.shots.empty())
    throw UsageError("--by shots and --shots FILE go together: a text in each line");
  if (options.search.samples < options.search.elites) throw UsageError("--elites are some of the --samples");
  std::error_code failed;
  if (!options.out.empty() && std::filesystem::equivalent(options.out, options.experts, failed))
    throw UsageError("-o: another file than --experts, which would be lost");
  if (!options.out.empty()) expect_writable(options.out);
  const ExpertSet set = expert_set_from_json(read_file(options.experts), options.experts);
  const Opened opened = open_input(console, options.input, {.maps = MapStorage::none});
  const RunRequest& request = *options.input.asked->request;
  if (!request.edits.empty()) throw UsageError("the first pass reads the model as it is: leave edits away");
  check_fits(set, *opened.loaded.model, options.experts);
  if (options.by == "classifier" && !set.classifier)
    throw Error(options.experts, "a classifier among the experts", "none");
  std::vector<std::string> names;
  for (const ExpertSet::Expert& each : set.experts) names.push_back(each.name);
  FirstPass first;
  console.with_progress("first pass", [&](const Ctx& ctx) { first = first_pass(opened.loaded, set, request, ctx); });
  Report out;
  SingularExpert z;
  if (options.by == "shots") {
    const Mixture found = mixture_of(console, opened, options, set, request.model);
    z = mixed_expert(set.experts, found.weights);
    out.line(fmt::format("chosen by few shots: {}; {:.3f} → {:.3f} on the shots",
                         mixture_in_words(found.weights, names), found.before, found.best.back()));
    out.data("weights", found.weights);
    out.data("best", found.best);
    out.data("before", found.before);
  } else {
    const std::size_t chosen = options.by == "prompt" ? first.by_prompt : first.by_classifier;
    z = chosen ? set.experts[chosen - 1].z : unchanged_expert(*opened.loaded.model, set.matrices);
    out.line(fmt::format("chosen by the {}: {}", options.by, name_of_choice(chosen, names)));
    out.data("chosen", chosen ? Cell(names[chosen - 1]) : Cell(nullptr));
  }
  out.line();
  auto& seen = out.table(
      "first_pass", {"expert", {"loss", "loss of the prompt", "{:.4f}"}, {"label", "by the classifier", "{:.4f}"}});
  for (std::size_t e = 0; e < first.losses.size(); ++e)
    seen.add({e ? names[e - 1] : "none", first.losses[e],
              e && !first.labels.empty() ? Cell(first.labels[e - 1]) : Cell(std::nan(""))});
  out.data("said", first.said);
  const std::vector<Intervention> edits = expert_edits(z);
  RunRequest second = request;
  second.edits = edits;
  const auto after = run(opened.loaded, second, Ctx{console.backend(), nullptr, console.stop()});
  auto& next =
      out.table("next", {"token", {"before", "probability", "{:.4f}"}, {"after", "in the second pass", "{:.4f}"}});
  const Tensor plain = opened.trace->logits.select(0, opened.trace->logits.dim(0) - 1),
               adapted = after->logits.select(0, after->logits.dim(0) - 1);
  for (const NextToken& each : top_next(*after, 8))
    next.add({label_of(opened.loaded.tokenizer.get(), each.id), std::exp(-next_token_loss(plain, each.id)),
              std::exp(-next_token_loss(adapted, each.id))});
  Cell written = Cell::array();
  for (const Intervention& edit : edits) written.push_back(describe(edit));
  out.data("edits", std::move(written));
  if (!options.out.empty()) write_expert_session(console, options.out, request, edits, "");
  console.print(out.printed(options.output.form()));
}

}  // namespace

void TaskOptions::add_to(Command& command) {
  command.add_option("-m,--model", input.model, "A folder, or the name of a bundled example").required();
  input.add_adapter_to(command);
  command
      .add_option("--task", tasks,
                  "A task of your own, a text a line; once for each. Without: changes of the language that the model "
                  "learnt")
      .type_name("NAME=FILE")
      .take_all();
  command.add_option("--matrices", matrices, "Whose singular values, in every layer")
      .check(one_of(matrix_names()))
      .delimiter(',')
      .type_name("q,k,v,o,mlp_in,mlp_gate,mlp_out")
      .show_default();
  command.add_option("--steps", asked.steps, "Of Adam, for each expert").check(range(1, 100000)).show_default();
  command.add_option("--batch", asked.batch, "Texts in a step").check(range(1, 4096)).show_default();
  command.add_option("--rate", asked.rate, "By how much a z moves in a step, at most")
      .check(positive())
      .check(range(0.0, 1.0))
      .show_default();
  command.add_option("--texts", asked.counts.learn, "Drawn for each task, to be learnt")
      .check(range(1, 10000))
      .show_default();
  command.add_option("--shots", asked.counts.shots, "Drawn for each task, for the few-shot search")
      .check(range(1, 1000))
      .show_default();
  command.add_option("--test", asked.counts.test, "Drawn for each task, to be measured")
      .check(range(1, 10000))
      .show_default();
  command.add_option("--seed", asked.seed, "Of all that is drawn").show_default();
  output.add_to(command);
}

SelfAdaptationAsked TaskOptions::request() const {
  SelfAdaptationAsked out = asked;
  out.model = input.model_folder();
  out.matrices = matrices_in(matrices);
  out.tasks = tasks_in(tasks);
  return out;
}

void add_expert_tasks(Command& command, Console& console) {
  struct Options {
    TaskOptions tasks;
    std::string out;
  };
  auto options = std::make_shared<Options>();
  Command tasks = command.add_subcommand(
      "tasks", "Learns an expert for each of several tasks, and measures three ways of choosing between them");
  options->tasks.add_to(tasks);
  add_search(tasks, options->tasks.asked.search);
  tasks.add_option("-o,--out", options->out, "The experts").type_name("FILE.json");
  tasks.does([options, &console] { learn_tasks(console, options->tasks, options->out); });
}

void add_expert_choose(Command& command, Console& console) {
  auto options = std::make_shared<ChooseOptions>();
  Command choose = command.add_subcommand("choose", "Reads a prompt twice: first to choose an expert, then with it");
  options->input.add_to(choose, {.short_edits = false, .part = false});
  choose.add_option("--experts", options->experts, "What `expert tasks -o` wrote").required().type_name("FILE.json");
  choose
      .add_option("--by", options->by,
                  "Whoever finds the prompt most probable, the classifier, or a mixture searched on a few texts")
      .check(one_of({"prompt", "classifier", "shots"}))
      .type_name("prompt|classifier|shots")
      .show_default();
  choose.add_option("--shots", options->shots, "Texts of the task, a line each").type_name("FILE");
  add_search(choose, options->search);
  choose.add_option("-o,--out", options->out, "A session of model, text and the edits of what was chosen")
      .type_name("FILE.json");
  options->output.add_to(choose);
  choose.does([options, &console] { choose_expert(console, *options); });
}

}  // namespace headscope::cli
