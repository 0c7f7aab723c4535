// headscope-cli corpus: every metric of every head over many texts, pairs or pictures; shards of the work, and their
// sum.

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <optional>

#include "app/cli/commands.h"
#include "app/cli/input.h"
#include "app/cli/report.h"
#include "app/cli/table_text.h"
#include "core/analysis/learnt_language.h"
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
  std::int64_t stories = 0, translations = 0, shapes = 0;
  std::uint64_t seed = 1;
  int window = 0;
  bool lines = false, pairs = false, resume = false, merge = false;

  /// Nothing where files are to be read.
  std::optional<CorpusSource> drawn() const {
    if (stories > 0) return drawn_corpus(CorpusKind::texts, stories, seed);
    if (translations > 0) return drawn_corpus(CorpusKind::pairs, translations, seed);
    if (shapes > 0) return drawn_corpus(CorpusKind::pictures, shapes, seed);
    return std::nullopt;
  }
};

// The first of them that there is evidence for.
constexpr const char* shown_metrics[] = {"entropy",         "sink",  "previous_token", "duplicate_token",
                                         "prefix_matching", "local", "max_weight"};
constexpr std::size_t most_shown = 6;

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

/// "enc.1.0" of an encoder-decoder, "1.0" elsewhere.
std::string name_of(Stack stack, const std::string& head) {
  return stack == Stack::only ? head : fmt::format("{}.{}", name_in(stack_names, stack), head);
}

/// What people see of one stack: those of some metrics that any of its heads has evidence for.
void add_heads(Report& out, Stack stack, const CorpusStatistics& all) {
  if (all.passages() == 0) return;
  std::vector<std::size_t> shown;
  std::vector<Column> titles{"head"};
  const int heads = all.layers() * all.heads();
  const auto show = [&](const char* id) {
    const std::size_t m = column(id);
    bool any = false;
    for (int head = 0; head < heads; ++head) any |= all.of(head, m).count() > 0;
    if (!any || shown.size() == most_shown) return;
    shown.push_back(m);
    titles.push_back(for_people(std::string(id) + " ± spread"));
  };
  for (const char* id : shown_metrics) show(id);
  if (shown.empty()) {
    show("row_mass");
    out.line("Weights of any sign: metrics of probabilities say nothing of them.");
  }
  if (stack == Stack::cross)
    out.line("Queries and keys of cross-attention are of two texts: metrics that compare their places are left out.");
  titles.emplace_back("class of the means");
  auto& table = out.table("", titles, Form::text);
  const auto line = [&](const std::string& name, const auto& values_of, const std::string& last) {
    std::vector<Cell> row{name};
    for (const std::size_t m : shown) {
      const Distribution& values = values_of(m);
      std::string cell = values.count() == 0 ? "–" : fmt::format("{:.3f} ± {:.3f}", values.mean(), values.spread());
      // Not every passage offers evidence, and files of before a metric was added have none of it.
      if (values.count() > 0 && values.count() < all.passages()) cell += fmt::format(" of {}", values.count());
      row.emplace_back(std::move(cell));
    }
    row.emplace_back(last);
    table.add(std::move(row));
  };
  for (int head = 0; head < heads; ++head) {
    if (!all.has(head)) continue;
    const ClassRule* rule = all.class_of(head, default_class_rules());
    line(
        name_of(stack, to_string(HeadId{head / all.heads(), head % all.heads()})),
        [&](std::size_t m) -> const Distribution& { return all.of(head, m); }, rule ? rule->title : "");
  }
  line(
      name_of(stack, "chance"), [&](std::size_t m) -> const Distribution& { return all.chance(m); }, "");
}

std::string corpus_headline(const CorpusResults& results) {
  const auto count = [](std::uint64_t number) { return grouped(static_cast<std::int64_t>(number)); };
  const CorpusKind kind = results.source.kind;
  std::string out =
      fmt::format("{} on {}: {} ", results.model, describe(results.source), count(results.statistics.passages()));
  out += kind == CorpusKind::pictures ? fmt::format("passages, a picture of {} tokens each", results.window)
         : kind == CorpusKind::pairs
             ? fmt::format("passages of at most {} tokens in each text, {} tokens in sources, {} in targets",
                           results.window, count(results.encoder->tokens()), count(results.statistics.tokens()))
             : fmt::format("passages of at most {} tokens, {} tokens", results.window, count(results.tokens()));
  if (results.shards > 1) out += fmt::format(", shard {}/{}", results.shard, results.shards);
  if (results.skipped > 0) out += fmt::format(", {} files left out: not UTF-8", results.skipped);
  if (results.left_out > 0) out += ", " + left_out_words(results);
  return out;
}

/// CSV has all metrics, one line per head and metric, with an empty field where no passage offered evidence.
Report corpus_report(const CorpusResults& results) {
  Report out;
  out.line(corpus_headline(results));
  const bool several = results.stacks().size() > 1;
  std::vector<Column> titles{"layer", "head", "metric", "passages", "mean", "spread", "smallest"};
  if (several) titles.insert(titles.begin(), "stack");
  for (int decile = 1; decile <= 9; ++decile) titles.emplace_back(fmt::format("decile_{}", decile));
  titles.insert(titles.end(), {"largest", "chance_mean"});
  auto& rows = out.table("", titles, Form::csv);
  for (const Stack stack : results.stacks()) {
    const CorpusStatistics& all = results.part(stack);
    add_heads(out, stack, all);
    for (int head = 0; head < all.layers() * all.heads(); ++head)
      for (std::size_t m = 0; m < metrics().size() && all.has(head); ++m) {
        const Distribution& values = all.of(head, m);
        std::vector<Cell> row{head / all.heads(), head % all.heads(), metrics()[m].id,  values.count(),
                              values.mean(),      values.spread(),    values.smallest()};
        if (several) row.insert(row.begin(), name_in(stack_names, stack));
        for (int decile = 1; decile <= 9; ++decile) row.emplace_back(values.quantile(decile / 10.0));
        row.insert(row.end(), {values.largest(), all.chance(m).mean()});
        rows.add(std::move(row));
      }
  }
  return out;
}

void finish(Console& console, const CorpusOptions& options, const CorpusResults& results) {
  const Report report = corpus_report(results);
  console.print(report.printed(Form::text));
  if (!options.out.empty()) save_corpus_results(results, options.out);
  if (!options.csv.empty()) write_file_atomically(options.csv, report.printed(Form::csv));
}

/// Before anything is read.
void expect_places(const CorpusOptions& options) {
  for (const std::string& file : {options.out, options.csv})
    if (!file.empty()) expect_writable(file);
}

void merge_parts(Console& console, const CorpusOptions& options) {
  if (options.inputs.empty()) throw UsageError("--merge needs the files of all shards");
  expect_places(options);
  std::vector<CorpusResults> parts;
  for (const std::string& file : options.inputs) parts.push_back(load_corpus_results(file));
  finish(console, options, merge(parts, options.inputs));
}

std::unique_ptr<CorpusRun> begin(Console& console, const CorpusOptions& options) {
  const auto [shard, shards] = parse_shard(options.shard);
  const std::optional<CorpusSource> drawn = options.drawn();
  if (drawn && !options.inputs.empty())
    throw UsageError("files exclude --stories, --translations and --shapes, which draw what is read");
  if (!drawn && options.inputs.empty())
    throw UsageError("files or folders to read are required, or --stories, --translations or --shapes");
  if (options.resume && options.out.empty()) throw UsageError("--resume goes on with the file of -o, which is missing");
  expect_places(options);
  Input input;
  input.model = options.model;
  const fs::path folder = input.model_folder();
  const std::string name = fs::absolute(folder).lexically_normal().filename().string();
  const LoadedModel model = load_model(folder, console.backend());
  const bool pictures = corpus_kind_of(*model.model) == CorpusKind::pictures;
  if (options.lines && pictures && !drawn)
    throw Error("--lines", "texts, of which each line is read alone", name + ", which reads pictures", "leave it away");
  CorpusSource source = drawn ? *drawn
                              : corpus_of_files({options.inputs.begin(), options.inputs.end()}, options.lines,
                                                options.pairs ? CorpusKind::pairs
                                                : pictures    ? CorpusKind::pictures
                                                              : CorpusKind::texts);
  if (drawn && drawn->kind == CorpusKind::texts) source.grammar = learnt_grammar_name(folder).value_or(source.grammar);
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
  const std::uint64_t before = run->results().tokens();
  auto shown = start, kept = start;
  const auto speed = [&] {
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    return fmt::format("{} tokens in {:.1f} s, {} tokens/s",
                       grouped(static_cast<std::int64_t>(run->results().tokens() - before)), seconds,
                       grouped(static_cast<std::int64_t>(static_cast<double>(run->results().tokens() - before) /
                                                         std::max(seconds, 1e-9))));
  };
  try {
    const std::stop_token stop = console.stop();
    while (run->step(Ctx{console.backend(), nullptr, stop})) {
      const auto now = Clock::now();
      if (terminal && now - shown > std::chrono::milliseconds(200)) {
        shown = now;
        write_error(fmt::format("\r\033[K{:.0f} %  {}", 100 * run->progress(), speed()));
      }
      if (!options.out.empty() && now - kept > std::chrono::minutes(1)) {  // a machine that goes down loses a minute
        save_corpus_results(run->results(), options.out);
        kept = now;
      }
      if (stop.stop_requested()) throw Cancelled();
    }
  } catch (const Cancelled&) {
    if (terminal) write_error("\n");
    if (!options.out.empty()) {
      save_corpus_results(run->results(), options.out);
      console.say(fmt::format("stopped at {:.0f} %; the same command with --resume goes on", 100 * run->progress()));
    }
    throw;
  }
  if (terminal) write_error("\r\033[K");
  console.say(speed());
  finish(console, options, run->results());
}
}  // namespace

void add_corpus(Command& app, Console& console) {
  auto options = std::make_shared<CorpusOptions>();
  Command command = app.add_subcommand(
      "corpus", "Every metric of every head over many texts, pairs or pictures: spread, deciles, examples");
  command
      .add_option(
          "inputs", options->inputs,
          "Text files (PNG and JPEG of models of pictures), or folders of them; with --merge the files of shards")
      .type_name("FILE…");
  command.add_option("-m,--model", options->model, "Model folder (Hugging Face layout), or the name of a bundled one")
      .type_name("DIR");
  command.add_option("-o,--out", options->out, "The results, as JSON").type_name("FILE.json");
  command.add_option("--csv", options->csv, "Mean, spread and deciles of every head and metric").type_name("FILE.csv");
  const Option lines = command.add_flag("--lines", options->lines, "Every line is a text of its own");
  command
      .add_flag("--pairs", options->pairs,
                "Of an encoder-decoder: every line is source<TAB>target; a pair too long for the model is left out")
      .excludes(lines);
  Command draws = command.add_choice("drawn", "Instead of files (one of)");
  const auto draw = [&](const char* name, std::int64_t& count, const char* what) {
    draws.add_option(name, count, what).check(range(std::int64_t{1}, std::int64_t{1'000'000'000})).type_name("N");
  };
  draw("--stories", options->stories, "Stories of the language that the model learnt, or of the first one");
  draw("--translations", options->translations, "Of an encoder-decoder: sentences of two small languages");
  draw("--shapes", options->shapes, "Of a model of pictures: a warm shape among cold ones");
  command.add_option("--seed", options->seed, "Seed of what is drawn").show_default();
  command
      .add_option("--window", options->window,
                  "Most tokens of a passage, in each text of a pair (default: the model's context)")
      .check(range(2, 1 << 24))
      .type_name("N");
  command.add_option("--shard", options->shard, "Only part i of n of the work").type_name("i/n").show_default();
  const Option resume = command.add_flag("--resume", options->resume, "Go on with what -o holds");
  command.add_flag("--merge", options->merge, "Put the files of all shards together").excludes(resume);
  command.does([options, &console] { corpus(console, *options); });
}

}  // namespace headscope::cli
