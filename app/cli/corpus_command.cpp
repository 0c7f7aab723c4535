// headscope-cli corpus: every metric of every head over many texts; shards of the work, and their sum.

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <chrono>

#include "app/cli/commands.h"
#include "app/cli/input.h"
#include "app/cli/report.h"
#include "app/cli/table_text.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/standard_streams.h"
#include "core/corpus/corpus.h"

namespace headscope::cli {

namespace {
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

struct CorpusOptions {
  std::string model, out, shard = "0/1", csv;
  std::vector<std::string> inputs;
  std::int64_t stories = 0;
  std::uint64_t seed = 1;
  int window = 0;
  bool lines = false, resume = false, merge = false;
};

constexpr const char* shown_metrics[] = {"entropy",         "sink", "previous_token", "duplicate_token",
                                         "prefix_matching", "local"};

std::size_t column(std::string_view id) {
  return static_cast<std::size_t>(&metric(id) - metrics().data());
}

std::pair<int, int> parse_shard(const std::string& text) {
  int shard = 0, shards = 0;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, shard);
  if (first.ec == std::errc() && first.ptr != end && *first.ptr == '/') {
    const auto second = std::from_chars(first.ptr + 1, end, shards);
    if (second.ec == std::errc() && second.ptr == end && shards >= 1 && shard >= 0 && shard < shards)
      return {shard, shards};
  }
  throw UsageError(fmt::format("--shard: expected i/n with 0 ≤ i < n, such as 0/4, found \"{}\"", text));
}

/// People see some metrics; CSV has all, one line per head and metric, with an empty field where no passage offered
/// evidence.
Report corpus_report(const CorpusResults& results) {
  const CorpusStatistics& all = results.statistics;
  Report out;
  out.line(fmt::format("{} on {}: {} passages of at most {} tokens, {} tokens{}{}", results.model,
                       describe(results.source), grouped(static_cast<std::int64_t>(all.passages())), results.window,
                       grouped(static_cast<std::int64_t>(all.tokens())),
                       results.shards > 1 ? fmt::format(", shard {}/{}", results.shard, results.shards) : "",
                       results.skipped > 0 ? fmt::format(", {} files left out: not UTF-8", results.skipped) : ""));
  std::vector<Column> titles{"head"};
  for (const char* id : shown_metrics) titles.push_back(for_people(std::string(id) + " ± spread"));
  titles.emplace_back("class of the means");
  auto& table = out.table("", titles, Form::text);
  const auto line = [&](const std::string& name, const auto& values_of, const std::string& last) {
    std::vector<Cell> row{name};
    for (const char* id : shown_metrics) {
      const Distribution& values = values_of(column(id));
      row.emplace_back(values.count() == 0 ? "–" : fmt::format("{:.3f} ± {:.3f}", values.mean(), values.spread()));
    }
    row.emplace_back(last);
    table.add(std::move(row));
  };

  titles = {"layer", "head", "metric", "passages", "mean", "spread", "smallest"};
  for (int decile = 1; decile <= 9; ++decile) titles.emplace_back(fmt::format("decile_{}", decile));
  titles.insert(titles.end(), {"largest", "chance_mean"});
  auto& rows = out.table("", titles, Form::csv);
  for (int head = 0; head < all.layers() * all.heads(); ++head) {
    const HeadId id{head / all.heads(), head % all.heads()};
    const ClassRule* rule = all.class_of(head, default_class_rules());
    line(
        to_string(id), [&](std::size_t m) -> const Distribution& { return all.of(head, m); }, rule ? rule->title : "");
    for (std::size_t m = 0; m < metrics().size(); ++m) {
      const Distribution& values = all.of(head, m);
      std::vector<Cell> row{id.layer,      id.head,         metrics()[m].id,  values.count(),
                            values.mean(), values.spread(), values.smallest()};
      for (int decile = 1; decile <= 9; ++decile) row.emplace_back(values.quantile(decile / 10.0));
      row.insert(row.end(), {values.largest(), all.chance(m).mean()});
      rows.add(std::move(row));
    }
  }
  line(
      "chance", [&](std::size_t m) -> const Distribution& { return all.chance(m); }, "");
  return out;
}

void finish(Console& console, const CorpusOptions& options, const CorpusResults& results) {
  const Report report = corpus_report(results);
  console.print(report.printed(Form::text));
  if (!options.out.empty()) save_corpus_results(results, options.out);
  if (!options.csv.empty()) write_file_atomically(options.csv, report.printed(Form::csv));
}

void merge_parts(Console& console, const CorpusOptions& options) {
  if (options.inputs.empty()) throw UsageError("--merge needs the files of all shards");
  std::vector<CorpusResults> parts;
  for (const std::string& file : options.inputs) parts.push_back(load_corpus_results(file));
  finish(console, options, merge(parts, options.inputs));
}

std::unique_ptr<CorpusRun> begin(Console& console, const CorpusOptions& options) {
  const auto [shard, shards] = parse_shard(options.shard);
  if (options.stories > 0 && !options.inputs.empty()) throw UsageError("--stories and files exclude one another");
  if (options.stories == 0 && options.inputs.empty())
    throw UsageError("files or folders to read, or --stories, are required");
  if (options.resume && options.out.empty()) throw UsageError("--resume goes on with the file of -o, which is missing");
  Input input;
  input.model = options.model;
  const fs::path folder = input.model_folder();
  const std::string name = fs::absolute(folder).lexically_normal().filename().string();
  const CorpusSource source = options.stories > 0
                                  ? corpus_of_stories(options.stories, options.seed)
                                  : corpus_of_files({options.inputs.begin(), options.inputs.end()}, options.lines);
  const LoadedModel model = load_model(folder, console.backend());
  if (model.model->config().vision)
    throw Error("corpus", "a model of texts", model.model->config().name + ", which reads pictures",
                "headscope-cli metrics --image FILE measures one");
  if (options.resume && fs::exists(options.out)) {
    CorpusResults stored = load_corpus_results(options.out);
    const CorpusRun asked(model, name, source, options.window, shard, shards);
    const CorpusResults& now = asked.results();
    if (stored.source != now.source || stored.window != now.window || stored.shard != shard || stored.shards != shards)
      throw Error(options.out, "results of the same files, window and shard", "others",
                  "write into another file, or leave --resume away");
    return std::make_unique<CorpusRun>(model, name, std::move(stored));
  }
  return std::make_unique<CorpusRun>(model, name, source, options.window, shard, shards);
}

void corpus(Console& console, const CorpusOptions& options) {
  if (options.merge) return merge_parts(console, options);
  const auto run = begin(console, options);
  const bool terminal = isatty(STDERR_FILENO);
  const auto start = Clock::now();
  const std::uint64_t before = run->results().statistics.tokens();
  auto shown = start, kept = start;
  const auto speed = [&] {
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    return fmt::format(
        "{} tokens in {:.1f} s, {} tokens/s",
        grouped(static_cast<std::int64_t>(run->results().statistics.tokens() - before)), seconds,
        grouped(static_cast<std::int64_t>(static_cast<double>(run->results().statistics.tokens() - before) /
                                          std::max(seconds, 1e-9))));
  };
  try {
    const std::stop_token stop = console.stop();
    while (run->step(Ctx{console.backend(), nullptr, stop})) {
      const auto now = Clock::now();
      if (terminal && now - shown > std::chrono::milliseconds(200)) {
        shown = now;
        say(fmt::format("\r\033[K{:.0f} %  {}", 100 * run->progress(), speed()));
      }
      if (!options.out.empty() && now - kept > std::chrono::minutes(1)) {  // a machine that goes down loses a minute
        save_corpus_results(run->results(), options.out);
        kept = now;
      }
      if (stop.stop_requested()) throw Cancelled();
    }
  } catch (const Cancelled&) {
    if (terminal) say("\n");
    if (!options.out.empty()) {
      save_corpus_results(run->results(), options.out);
      console.say(fmt::format("stopped at {:.0f} %; the same command with --resume goes on", 100 * run->progress()));
    }
    throw;
  }
  if (terminal) say("\r\033[K");
  console.say(speed());
  finish(console, options, run->results());
}
}  // namespace

void add_corpus(Command& app, Console& console) {
  auto options = std::make_shared<CorpusOptions>();
  Command command =
      app.add_subcommand("corpus", "Every metric of every head over many texts: spread, deciles, examples");
  command.add_option("inputs", options->inputs, "Text files, or folders of them; with --merge the files of shards")
      .type_name("FILE…");
  command.add_option("-m,--model", options->model, "Model folder (Hugging Face layout), or the name of a bundled one")
      .type_name("DIR");
  command.add_option("-o,--out", options->out, "The results, as JSON").type_name("FILE.json");
  command.add_option("--csv", options->csv, "Mean, spread and deciles of every head and metric").type_name("FILE.csv");
  command.add_flag("--lines", options->lines, "Every line is a text of its own");
  command.add_option("--stories", options->stories, "Instead of files: stories of the bundled models' language")
      .check(range(std::int64_t{1}, std::int64_t{1'000'000'000}))
      .type_name("N");
  command.add_option("--seed", options->seed, "Seed of the stories").show_default();
  command.add_option("--window", options->window, "Most tokens of a passage (default: the model's context)")
      .check(range(2, 1 << 24))
      .type_name("N");
  command.add_option("--shard", options->shard, "Only part i of n of the work").type_name("i/n").show_default();
  const Option resume = command.add_flag("--resume", options->resume, "Go on with what -o holds");
  command.add_flag("--merge", options->merge, "Put the files of all shards together").excludes(resume);
  command.does([options, &console] { corpus(console, *options); });
}

}  // namespace headscope::cli
