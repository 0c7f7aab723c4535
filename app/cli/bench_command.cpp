// headscope-cli bench: forward passes with everything captured, a generated token, a training step, each beside the
// bare matrix products of the same model and beside what the machine allows.

#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <limits>
#include <optional>

#include "app/cli/commands.h"
#include "app/cli/input.h"
#include "app/cli/trace_report.h"
#include "core/analysis/speed_bounds.h"
#include "core/base/error.h"
#include "core/base/median.h"
#include "core/base/random.h"
#include "core/generate/generation.h"
#include "core/run/pass_memory.h"
#include "core/train/learner.h"

namespace headscope::cli {

namespace {
struct BenchOptions {
  Input input;
  std::vector<int> lengths;
  std::string storage = "auto";
  int repeat = 9;
  bool json = false, last_logits = false, training = false;
};

MapStorage storage_of(const BenchOptions& options) {
  if (options.storage == "dense") return MapStorage::dense;
  return options.storage == "factored" ? MapStorage::factored : MapStorage::automatic;
}

constexpr std::size_t roomy = std::size_t{8} << 30;  ///< for the maps that were asked for
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

struct Row {
  std::string work;                                        // "pass", "next token", "training step"
  int tokens = 0;                                          // of the text; of the text before it; of all texts
  double milliseconds = nan, products = nan, bound = nan;  // medians; NaN where nothing was measured
  std::string bound_by = {};
  std::string plan = {};
};

/// What the processor allows, measured in turns with the rest; nothing where a card computes.
using Bounds = std::optional<SpeedBounds>;

std::vector<int> lengths_of(const BenchOptions& options, const ModelConfig& config) {
  std::vector<int> lengths = options.lengths;
  if (lengths.empty()) {
    for (const int n : {16, 64, 256, 1024})
      if (config.context == 0 || n <= config.context) lengths.push_back(n);
    if (lengths.empty()) lengths.push_back(config.context);
  }
  for (const int n : lengths)
    if (config.context > 0 && n > config.context)
      throw Error("--lengths", fmt::format("at most {}, the context of {}", config.context, config.name),
                  std::to_string(n));
  return lengths;
}

double milliseconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

std::vector<std::int32_t> random_tokens(const ModelConfig& config, int count) {
  Random random(7);
  std::vector<std::int32_t> tokens;
  for (int i = 0; i < count; ++i)
    tokens.push_back(static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(config.dims.vocab))));
  return tokens;
}

void set_bound(Row& row, const BareProducts& work, const Bounds& bounds) {
  if (!bounds) return;
  row.bound = 1e3 * bounds->seconds(work);
  row.bound_by = bounds->by_memory(work) ? "memory" : "arithmetic";
}

/// Medians of `step` (milliseconds of the i-th) and of the bare products of a pass over `tokens`, without the first
/// `skipped`. What is compared takes turns, so that a busy moment of the machine hits all of it.
void in_turns(Row& row, int repeat, int skipped, const std::function<double(int)>& step, const Model& model, int tokens,
              int logit_rows, const Ctx& ctx, Bounds& bounds) {
  std::vector<double> steps, floors;
  BareProducts work;
  for (int i = 0; i < repeat + skipped; ++i) {
    const double took = step(i);
    const double floor = milliseconds_of([&] { work = model.bare_products(ctx.backend, tokens, logit_rows); });
    if (bounds) bounds->measure();
    if (i < skipped) continue;
    steps.push_back(took);
    floors.push_back(floor);
  }
  row.milliseconds = median(steps);
  row.products = median(floors);
  set_bound(row, work, bounds);
}

Row measure_pass(const LoadedModel& loaded, int tokens, const BenchOptions& options, const Ctx& ctx, Bounds& bounds) {
  RunRequest request;
  request.ids = random_tokens(loaded.model->config(), tokens);
  request.capture.all_logits = !options.last_logits;
  request.capture.byte_budget = roomy;
  request.capture.maps = storage_of(options);
  Row row{.work = "pass", .tokens = tokens};
  const auto step = [&](int) {
    const auto trace = run(loaded, request, ctx);
    row.plan = trace->plan.summary;
    return trace->milliseconds;
  };
  in_turns(row, options.repeat, 1, step, *loaded.model, tokens, options.last_logits ? 1 : tokens, ctx, bounds);
  return row;
}

/// The token behind at least `tokens` others whose keys and values are known, every head's row of weights recorded.
Row measure_generation(const LoadedModel& loaded, int tokens, const BenchOptions& options, const Ctx& ctx,
                       Bounds& bounds) {
  std::vector<std::int32_t> text = random_tokens(loaded.model->config(), tokens);
  const int context = loaded.model->config().context, longest = context > 0 ? context : tokens + options.repeat + 1;
  Generator generator(loaded, RunRequest{}, true, longest);
  Row row{.work = "next token", .tokens = tokens, .plan = "every head's row of weights"};
  const auto step = [&](int i) {
    if (static_cast<int>(text.size()) > longest) text.resize(static_cast<std::size_t>(tokens) + 1);  // once more
    return milliseconds_of([&] {
      text.push_back(generator.step(ctx, text, static_cast<std::size_t>(i), {.settings = {.temperature = 0}})->token);
    });
  };
  in_turns(row, options.repeat, 1, step, *loaded.model, 1, 1, ctx, bounds);  // the first reads the whole text
  return row;
}

/// One more token at the end of a text of `tokens` that is read again whenever it changes, as the window does: all maps
/// and their metrics, logits of the last position.
Row measure_typing(const LoadedModel& loaded, int tokens, const BenchOptions& options, const Ctx& ctx, Bounds& bounds) {
  RunRequest request;
  request.capture.all_logits = false;
  request.capture.maps = storage_of(options);
  if (request.capture.maps != MapStorage::automatic) request.capture.byte_budget = roomy;
  const std::vector<std::int32_t> text = random_tokens(loaded.model->config(), tokens);
  Row row{.work = "token typed", .tokens = tokens};
  PassMemory memory;
  const int presses = std::min(options.repeat + 1, tokens - 1);
  const auto step = [&](int i) {
    request.ids.assign(text.begin(), text.end() - presses + i);
    return milliseconds_of([&] { row.plan = run(loaded, request, ctx, memory)->plan.summary; });
  };
  // The first reads the whole text, the second makes room for more.
  const int skipped = std::min(2, presses);
  in_turns(row, presses + 1 - skipped, skipped, step, *loaded.model, 1, 1, ctx, bounds);
  return row;
}

/// A step of AdamW over sixteen texts of this model's shape, from random weights, every map recorded. Three products
/// for each of a pass: forward, to the inputs, to the weights.
Row measure_training(const ModelConfig& config, int tokens, const BareProducts& pass, const BenchOptions& options,
                     const Ctx& ctx, Bounds& bounds) {
  constexpr int texts = 16;
  Learner learner(config, {}, 1, ctx.backend);
  const std::vector<std::int32_t> ids = random_tokens(config, texts * tokens + 1);
  const Batch batch{texts, tokens, {ids.begin(), ids.end() - 1}, {ids.begin() + 1, ids.end()}};
  const MapRequest maps{.storage = MapStorage::dense, .text = -1};
  Row row{.work = "training step", .tokens = texts * tokens, .plan = "every map"};
  std::vector<double> steps;
  for (int i = 0; i <= options.repeat; ++i) {
    const double step = milliseconds_of([&] { learner.step(batch, ctx.stop, maps); });
    if (bounds) bounds->measure();
    if (i > 0) steps.push_back(step);
  }
  row.milliseconds = median(steps);
  set_bound(row, {3 * texts * pass.operations, 3 * pass.bytes}, bounds);
  return row;
}

/// Passes in one table, whose keys scripts know, what takes one step in another.
Report app_report(const LoadedModel& loaded, Backend& backend, const Bounds& bounds, const std::vector<Row>& passes,
                  const std::vector<Row>& steps, const std::vector<Row>& typing) {
  Report out;
  out.data("model", model_json(loaded.model->info()));
  out.data("engine", backend.name());
  out.data("processor", processor_name());
  out.data("threads", backend.pool().threads());
  if (bounds) out.data("peak_gflops", bounds->peak() * 1e-9);
  if (bounds) out.data("read_gb_per_second", bounds->bandwidth() * 1e-9);
  const std::vector<Column> compared{{"products_ms", "products", "{:.3f}", "ms"},
                                     {"ratio", "÷ products", "{:.2f}"},
                                     {"bound_ms", "bound", "{:.3f}", "ms"},
                                     {"bound_ratio", "÷ bound", "{:.2f}"},
                                     {"bound_by", "by"},
                                     "captured"};
  const auto add = [](Report::Table& table, std::vector<Cell> cells, const Row& row) {
    for (const Cell& cell : std::vector<Cell>{row.milliseconds, row.products, row.milliseconds / row.products,
                                              row.bound, row.milliseconds / row.bound, row.bound_by, row.plan})
      cells.push_back(cell);
    table.add(std::move(cells));
  };
  const auto with = [&](std::vector<Column> columns) {
    columns.insert(columns.end(), compared.begin(), compared.end());
    return columns;
  };
  auto& rows = out.table("rows", with({"tokens", {"forward_ms", "forward", "{:.3f}", "ms"}}));
  for (const Row& row : passes) add(rows, {row.tokens}, row);
  auto& others = out.table("steps", with({"work", "tokens", {"ms", "time", "{:.3f}", "ms"}}));
  for (const Row& row : steps) add(others, {row.work, row.tokens}, row);
  auto& typed =
      out.table("typing", with({"tokens", {"of_pass", "÷ pass", "{:.3f}"}, {"ms", "token typed", "{:.3f}", "ms"}}));
  for (const Row& row : typing) {
    const auto pass = std::ranges::find(passes, row.tokens, &Row::tokens);
    add(typed, {row.tokens, row.milliseconds / pass->milliseconds}, row);
  }
  out.line("forward: all maps and their metrics; products: its matrix products alone, same kernels and threads");
  if (bounds)
    out.line(
        fmt::format("bound: operations ÷ {:.0f} GFLOP/s from registers, or bytes of weights ÷ {:.1f} GB/s, whichever "
                    "is more; both measured in turns with the rest on {}, {}",
                    bounds->peak() * 1e-9, bounds->bandwidth() * 1e-9, processor_name(), backend.described()));
  return out;
}
}  // namespace

void add_bench(Command& app, Console& console) {
  auto options = std::make_shared<BenchOptions>();
  Command command = app.add_subcommand(
      "bench", "Time passes with full capture beside bare matrix products and what the machine allows");
  command.add_option("-m,--model", options->input.model, "Model folder, or the name of a bundled example")
      .type_name("DIR")
      .required();
  command
      .add_option("--lengths", options->lengths,
                  "Tokens per pass (default: 16,64,256,1024 as far as the context reaches)")
      .delimiter(',')
      .check(range(1, 1 << 24))
      .type_name("N,…");
  command.add_option("--repeat", options->repeat, "Passes per length; the median counts")
      .check(range(1, 100000))
      .show_default();
  command.add_option("--storage", options->storage, "How maps are kept: auto, dense or factored")
      .check(one_of({"auto", "dense", "factored"}))
      .type_name("STORAGE")
      .show_default();
  command.add_flag("--last-logits", options->last_logits, "Logits of the last position only");
  command.add_flag("--training", options->training, "A training step besides, of this shape from random weights");
  command.add_flag("--json", options->json, "JSON instead of a table");
  command.does([options, &console] {
    Backend& backend = console.backend();
    const LoadedModel loaded = load_model(options->input.model_folder(), backend);
    const std::vector<int> lengths = lengths_of(*options, loaded.model->config());
    const Ctx ctx{backend, nullptr, console.stop()};
    const Model& model = *loaded.model;
    Bounds bounds;
    if (!backend.asynchronous()) bounds.emplace(backend.pool(), model.bare_products(backend, 1, 1).bytes);
    const auto told = [&](Row row) {
      if (!options->json) console.say(fmt::format("{}, {} tokens: {:.3f} ms", row.work, row.tokens, row.milliseconds));
      return row;
    };
    const int context = model.config().context;
    std::vector<Row> passes, steps, typing;
    if (options->training) {  // first: what cannot be trained is refused before anything was measured
      const int length = context > 0 ? std::min(64, context) : 64;
      steps.push_back(told(measure_training(model.config(), length, model.bare_products(backend, length, length),
                                            *options, ctx, bounds)));
    }
    for (const int tokens : lengths) passes.push_back(told(measure_pass(loaded, tokens, *options, ctx, bounds)));
    if (model.config().objective() == Objective::next_token && !model.encoder()) {
      const int before = context > 0 ? std::min(64, (context + 1) / 2) : 64;
      steps.insert(steps.begin(), told(measure_generation(loaded, before, *options, ctx, bounds)));
      for (const int tokens : lengths)
        if (tokens > 1) typing.push_back(told(measure_typing(loaded, tokens, *options, ctx, bounds)));
    }
    console.print(
        app_report(loaded, backend, bounds, passes, steps, typing).printed(options->json ? Form::json : Form::text));
  });
}

}  // namespace headscope::cli
