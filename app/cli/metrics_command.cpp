// headscope-cli metrics: every metric of every head as a table, CSV or JSON, on a text, a trace file, or on generated
// repeated random tokens (the standard induction score).

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "app/cli/commands.h"
#include "app/cli/input.h"
#include "app/cli/table_text.h"
#include "app/cli/trace_report.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/metrics/even_head.h"
#include "core/metrics/repeated_tokens.h"
#include "core/run/expected_tokens.h"
#include "core/run/masked_tokens.h"
#include "core/trace/map_kinds.h"
#include "core/trace/mixer_words.h"
#include "core/trace/words.h"

namespace headscope::cli {

namespace {
struct MetricsOptions {
  Input input;
  std::vector<std::string> metrics;
  std::string format = "table", classes, alphabet = "expected", alphabet_file;
  bool json = false, csv = false, list = false, chance = false, repeated = false, words = false;
  int period = 50, repeats = 2;
  std::uint64_t seed = 1;

  Form form() const { return json || format == "json" ? Form::json : csv || format == "csv" ? Form::csv : Form::text; }
};

Cell metric_json(const Metric& metric) {
  return {{"id", metric.id},
          {"title", metric.title},
          {"unit", metric.unit},
          {"low", metric.low},
          {"high", metric.high},
          {"formula", metric.formula},
          {"any_weights", metric.any_weights},
          {"source", metric.source}};
}

Report metrics_report() {
  Report out;
  Cell list = Cell::array();
  auto& rows = out.table("", {"metric", "unit", "range", "weights", "formula", "source"}, Form::text | Form::csv);
  for (const Metric& each : metrics()) {
    const auto end = [](double value) { return std::isfinite(value) ? fmt::format("{}", value) : std::string("…"); };
    rows.add({each.id, each.unit.empty() ? "share" : each.unit, end(each.low) + "–" + end(each.high),
              each.any_weights ? "any" : "probabilities", each.formula, each.source});
    list.push_back(metric_json(each));
  }
  out.data("", std::move(list));
  out.line(
      "Weights that are signed or do not sum to 1 (another mechanism in place of softmax, lost weight) have the "
      "metrics "
      "of any\nweights; the others, and head classes, are about probabilities: then null (CSV: empty).");
  return out;
}

/// The scores that need to know the period. Chance is the score of a head that spreads its weight evenly.
std::vector<HeadColumn> repeated_columns(int period, int first) {
  const auto column_of = [](std::string id, std::function<double(const AttentionMap&)> score) {
    return HeadColumn{std::move(id), [score](const MetricInput& head) { return score(head.map); },
                      [score](const MetricInput& head) { return score(even_head(head.map, head.text.links)); }};
  };
  return {column_of("induction_block", [=](const AttentionMap& map) { return induction_block(map, period, first); }),
          column_of("duplicate_block", [=](const AttentionMap& map) { return duplicate_block(map, period, first); }),
          column_of("induction_diagonal", [=](const AttentionMap& map) { return induction_diagonal(map, period); })};
}

/// What the repeated tokens are drawn from, and how that is said.
struct Alphabet {
  std::string kind;  ///< "expected", "all", "text" or "file"
  std::vector<std::int32_t> ids;
  int vocab = 0;
  std::string rule;  ///< which tokens those are
  std::string words() const {
    return fmt::format("drawn from {} of {} tokens: {}", grouped(static_cast<std::int64_t>(ids.size())), grouped(vocab),
                       rule);
  }
};

Alphabet alphabet_of(Console& console, const MetricsOptions& options, const LoadedModel& loaded,
                     std::optional<std::int32_t> bos) {
  Alphabet out;
  out.vocab = loaded.model->config().dims.vocab;
  // What a model expects next only a decoder says.
  const bool decoder = loaded.model->config().objective() == Objective::next_token;
  if (options.alphabet_file.empty() && (options.alphabet == "all" || (options.alphabet == "expected" && !decoder))) {
    out.kind = "all";
    out.rule = decoder ? "all" : "all but those that mark places in a text";
    out.ids = whole_alphabet(out.vocab, bos);
    const std::vector<std::int32_t> marks = decoder ? std::vector<std::int32_t>() : marks_of(loaded.tokenizer.get());
    std::erase_if(out.ids, [&](std::int32_t id) { return std::ranges::find(marks, id) != marks.end(); });
    return out;
  }
  if (options.alphabet_file.empty() && options.alphabet == "expected") {
    out.kind = "expected";
    console.with_progress("expected tokens", [&](const Ctx& ctx) {
      out.ids = expected_tokens(*loaded.model, bos, options.seed, ctx).ids;
    });
    out.rule = fmt::format(
        "those whose mean next-token probability, over {} texts drawn from the model's own expectations, is at least "
        "{} of even",
        ExpectedTokens::rounds, ExpectedTokens::least_share);
    return out;
  }
  const bool file = !options.alphabet_file.empty();
  out.kind = file ? "file" : "text";
  out.rule = file ? "those of " + options.alphabet_file : "those of the text given";
  const std::string where = file ? "--alphabet-file" : "--alphabet";
  if (!loaded.tokenizer) throw Error(where, "a model with a tokenizer", "none", "--alphabet all needs none");
  std::set<std::int32_t> found;
  for (const Token& token :
       loaded.tokenizer->encode(file ? read_file(options.alphabet_file) : options.alphabet, Tokenizer::Options{}))
    if (token.id != bos && token.id < out.vocab) found.insert(token.id);
  out.ids.assign(found.begin(), found.end());
  return out;
}

struct Repeated {
  Opened opened;
  Alphabet alphabet;
  int first = 0;  ///< position of the first block: 1 after a BOS
};

Repeated run_repeated(Console& console, const MetricsOptions& options) {
  if (options.input.from_trace()) throw UsageError("--repeated runs a model; a trace holds its own text");
  if (options.input.has_text()) throw UsageError("--repeated makes its own tokens; leave the text away");
  if (options.input.masks_tokens()) throw UsageError("--repeated makes its own tokens; no position can be masked");
  const LoadedModel loaded = load_model(options.input.model_folder(), console.backend());
  const ModelConfig& config = loaded.model->config();
  if (config.vision)
    throw Error("--repeated", "a model that reads tokens of a vocabulary", config.name + ", which reads a picture",
                "patches are repeated by nobody: leave --repeated away and give --image");
  if (loaded.model->encoder())
    throw Error("--repeated", "a model of one stack, whose text is all that it reads", config.name,
                "an encoder-decoder's target answers a source; give it --source and read --part enc, dec or cross");
  // As TransformerLens does it: a BOS in front wherever the model has one.
  auto bos = loaded.tokenizer ? loaded.tokenizer->bos() : config.bos;
  if (options.input.no_bos) bos.reset();
  Repeated out;
  out.first = bos ? 1 : 0;
  const std::int64_t length = out.first + std::int64_t{options.period} * options.repeats;
  if (config.context > 0 && length > config.context)
    throw Error("--period", fmt::format("at most {} tokens in all, the context of {}", config.context, config.name),
                fmt::format("{} ({} × {}{})", length, options.repeats, options.period, bos ? " and BOS" : ""),
                fmt::format("--period {} fits", (config.context - out.first) / options.repeats));
  out.alphabet = alphabet_of(console, options, loaded, bos);
  if (static_cast<int>(out.alphabet.ids.size()) < options.period)
    console.say(fmt::format("the {} tokens are fewer than the period of {}: some stand in a block more than once",
                            out.alphabet.ids.size(), options.period));
  RunRequest request;
  request.model = options.input.model_folder();
  request.edits = options.input.edits();
  request.ids = repeated_tokens(out.alphabet.ids, options.period, options.repeats, bos, options.seed);
  out.opened = run_request(console, loaded, request);
  return out;
}

/// `alphabet`: of repeated tokens; null for a text.
void print_metrics(Console& console, const MetricsOptions& options, const Trace& trace,
                   const std::vector<HeadColumn>& columns, const Alphabet* alphabet) {
  if (trace.maps.empty()) throw Error(trace.model.name, "attention maps to measure", "a trace without any");
  const std::vector<ClassRule> own =
      options.classes.empty() ? std::vector<ClassRule>{}
                              : parse_class_rules(read_input(options.classes, std::size_t{16} << 20), options.classes);
  const std::vector<ClassRule>& rules = options.classes.empty() ? default_class_rules() : own;
  Report out;
  out.line(headline(trace));
  out.data("model", model_json(trace.model));
  if (alphabet) {
    out.line(fmt::format("{} random tokens said {} times (seed {}), {}", options.period, options.repeats, options.seed,
                         alphabet->words()));
    out.data("repeated", {{"period", options.period},
                          {"repeats", options.repeats},
                          {"seed", options.seed},
                          {"alphabet",
                           {{"kind", alphabet->kind},
                            {"tokens", alphabet->ids.size()},
                            {"vocabulary", alphabet->vocab},
                            {"rule", alphabet->rule}}}});
  }
  out.data("tokens", tokens_json(trace.tokens));
  if (trace.between_texts()) out.data("query_tokens", tokens_json(trace.query_tokens));
  Cell known = Cell::array();
  for (const HeadColumn& each : columns)
    for (const Metric& metric : metrics())
      if (metric.id == each.id) known.push_back(metric_json(metric));
  out.data("metrics", std::move(known));
  for (const HeadColumn& each : columns)
    for (const Metric& metric : metrics())
      if (metric.id == each.id)
        if (const std::string why = why_silent(metric, trace.maps.front()); trace.between_texts() && !why.empty())
          out.line("note: " + why);
  if (!trace.model.dims.attends())
    out.line(
        fmt::format("note: the maps of {} are signed, and their rows need not sum to 1: metrics of probabilities are "
                    "silent, row_mass is not",
                    state_words(trace.model.dims)));
  const TextMarks text = TextMarks::of(trace.tokens);
  if (const std::string titles = not_measurable({first_of_shares(trace.maps), text}, rules); !titles.empty())
    out.line("note: not measurable on this text, which holds none of their cells that a head may see: " + titles);
  add_heads(out, report_heads(trace, rules), trace, columns, options.chance || options.form() == Form::json);
  console.print(out.printed(options.form()));
}
}  // namespace

void add_metrics(Command& app, Console& console) {
  auto options = std::make_shared<MetricsOptions>();
  Command command =
      app.add_subcommand("metrics", "Metrics of every head, on a text, a trace, or repeated random tokens");
  options->input.add_to(command, {.trace = true});
  command.add_option("--metric", options->metrics, "Metrics to show, separated by commas; all for every one")
      .delimiter(',')
      .type_name("ID,…");
  command.add_flag("--list", options->list, "List the metrics: unit, range, formula, source");
  const Option format = command.add_option("--format", options->format, "Output as table, csv or json")
                            .check(one_of({"table", "csv", "json"}))
                            .type_name("FORMAT")
                            .show_default();
  const Option json = command.add_flag("--json", options->json, "Same as --format json").excludes(format);
  command.add_flag("--csv", options->csv, "Same as --format csv").excludes(format).excludes(json);
  command.add_flag("--chance", options->chance, "Add what chance gives to the CSV (the JSON always has it)");
  command
      .add_option("--classes", options->classes, "Thresholds of head classes, in the form of assets/head_classes.json")
      .type_name("FILE");
  const Option words = command.add_flag(
      "--words", options->words, "Attention between words: the sum over a word's tokens as keys, the mean as queries");
  const Option repeated = command
                              .add_flag("--repeated", options->repeated,
                                        "Measure on random tokens said twice: the standard induction score")
                              .excludes(words);
  command.add_option("--period", options->period, "Tokens that are repeated")
      .check(range(1, 1 << 20))
      .needs(repeated)
      .show_default();
  command.add_option("--repeats", options->repeats, "How often they are said")
      .check(range(2, 1 << 20))
      .needs(repeated)
      .show_default();
  command.add_option("--seed", options->seed, "Seed of the random tokens").needs(repeated).show_default();
  const Option alphabet =
      command
          .add_option("--alphabet", options->alphabet,
                      "What they are drawn from: tokens that the model expects, all tokens, or those of "
                      "a TEXT")
          .needs(repeated)
          .type_name("expected|all|TEXT")
          .show_default();
  command.add_option("--alphabet-file", options->alphabet_file, "… or those of a file")
      .needs(repeated)
      .excludes(alphabet)
      .type_name("FILE");
  command.does([options, &console] {
    if (options->list) return console.print(metrics_report().printed(options->form()));
    std::vector<HeadColumn> columns;
    if (!options->metrics.empty())
      columns = columns_by_id(options->metrics);  // before the work, so that a typo costs nothing
    if (options->repeated) {
      const Repeated made = run_repeated(console, *options);
      auto scores = repeated_columns(options->period, made.first);
      scores.insert(scores.end(), columns.begin(), columns.end());
      return print_metrics(console, *options, *made.opened.trace, scores, &made.alphabet);
    }
    const Opened opened = open_input(console, options->input, {.all_logits = false});
    if (columns.empty()) columns = options->form() == Form::text ? usual_columns() : columns_by_id({"all"});
    if (options->words) return print_metrics(console, *options, in_words(*opened.trace), columns, nullptr);
    print_metrics(console, *options, *opened.trace, columns, nullptr);
  });
}

}  // namespace headscope::cli
