// headscope-cli bench: forward passes with everything captured, a generated token, a training step, each beside the
// bare matrix products of the same model and beside what the machine allows.

#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <limits>

#include "app/cli/commands.h"
#include "app/cli/input.h"
#include "app/cli/trace_report.h"
#include "core/analysis/speed_bounds.h"
#include "core/base/error.h"
#include "core/base/median.h"
#include "core/base/random.h"
#include "core/generate/generation.h"
#include "core/tensor/instruction_set.h"
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

struct Row {
  std::string work;                                  // "pass", "next token", "training step"
  int tokens = 0;                                    // of the text; of the text before it; of all texts
  double milliseconds = 0, products = 0, bound = 0;  // medians; products NaN where they are not measured
  bool by_memory = false;                            // what bounds it
  std::string plan = {};
};

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

void set_bound(Row& row, const BareProducts& work, const SpeedBounds& bounds) {
  row.bound = 1e3 * bounds.seconds(work);
  row.by_memory = bounds.by_memory(work);
}

/// What is compared takes turns, so that a busy moment of the machine hits all of it.
Row measure_pass(const LoadedModel& loaded, int tokens, const BenchOptions& options, const Ctx& ctx,
                 SpeedBounds& bounds) {
  RunRequest request;
  request.ids = random_tokens(loaded.model->config(), tokens);
  request.capture.all_logits = !options.last_logits;
  request.capture.byte_budget = std::size_t{8} << 30;
  if (options.storage == "dense") request.capture.maps = MapStorage::dense;
  if (options.storage == "factored") request.capture.maps = MapStorage::factored;
  Row row{.work = "pass", .tokens = tokens};
  row.plan = run(loaded, request, ctx)->plan.summary;
  BareProducts work;
  const auto products = [&] {
    work = loaded.model->bare_products(ctx.backend, tokens, options.last_logits ? 1 : tokens);
  };
  products();
  std::vector<double> passes, floors;
  for (int i = 0; i < options.repeat; ++i) {
    passes.push_back(run(loaded, request, ctx)->milliseconds);
    floors.push_back(milliseconds_of(products));
    bounds.measure();
  }
  row.milliseconds = median(passes);
  row.products = median(floors);
  set_bound(row, work, bounds);
  return row;
}

/// The token behind `tokens` others whose keys and values are known, every head's row of weights recorded.
Row measure_generation(const LoadedModel& loaded, int tokens, const BenchOptions& options, const Ctx& ctx,
                       SpeedBounds& bounds) {
  std::vector<std::int32_t> text = random_tokens(loaded.model->config(), tokens);
  Generator generator(loaded, RunRequest{}, true, tokens + options.repeat + 1);
  Row row{.work = "next token", .tokens = tokens, .plan = "every head's row of weights"};
  std::vector<double> steps, floors;
  BareProducts work;
  for (int i = 0; i <= options.repeat; ++i) {
    const double step = milliseconds_of([&] {
      text.push_back(generator.step(ctx, text, static_cast<std::size_t>(i), {.settings = {.temperature = 0}})->token);
    });
    const double floor = milliseconds_of([&] { work = loaded.model->bare_products(ctx.backend, 1, 1); });
    bounds.measure();
    if (i == 0) continue;  // reads the whole text
    steps.push_back(step);
    floors.push_back(floor);
  }
  row.milliseconds = median(steps);
  row.products = median(floors);
  set_bound(row, work, bounds);
  return row;
}

/// A step of AdamW over sixteen texts of this model's shape, from random weights, every map recorded. Three products
/// for each of a pass: forward, to the inputs, to the weights.
Row measure_training(const ModelConfig& config, int tokens, const BareProducts& pass, const BenchOptions& options,
                     const Ctx& ctx, SpeedBounds& bounds) {
  constexpr int texts = 16;
  Learner learner(config, {}, 1, ctx.backend);
  const std::vector<std::int32_t> ids = random_tokens(config, texts * tokens + 1);
  const Batch batch{texts, tokens, {ids.begin(), ids.end() - 1}, {ids.begin() + 1, ids.end()}};
  const MapRequest maps{.storage = MapStorage::dense, .text = -1};
  Row row{.work = "training step", .tokens = texts * tokens, .plan = "every map"};
  std::vector<double> steps;
  for (int i = 0; i <= options.repeat; ++i) {
    const double step = milliseconds_of([&] { learner.step(batch, ctx.stop, maps); });
    bounds.measure();
    if (i > 0) steps.push_back(step);
  }
  row.milliseconds = median(steps);
  row.products = std::numeric_limits<double>::quiet_NaN();
  set_bound(row, {3 * texts * pass.operations, 3 * pass.bytes}, bounds);
  return row;
}

Report app_report(const LoadedModel& loaded, Backend& backend, const SpeedBounds& bounds,
                  const std::vector<Row>& measured) {
  Report out;
  out.data("model", model_json(loaded.model->info()));
  out.data("processor", processor_name());
  out.data("threads", backend.pool().threads());
  out.data("instruction_set", std::string(instruction_set()));
  out.data("peak_gflops", bounds.peak() * 1e-9);
  out.data("read_gb_per_second", bounds.bandwidth() * 1e-9);
  auto& rows = out.table("rows", {"work",
                                  "tokens",
                                  {"ms", "time", "{:.3f}", "ms"},
                                  {"products_ms", "products", "{:.3f}", "ms"},
                                  {"ratio", "÷ products", "{:.2f}"},
                                  {"bound_ms", "bound", "{:.3f}", "ms"},
                                  {"bound_ratio", "÷ bound", "{:.2f}"},
                                  {"bound_by", "by"},
                                  "captured"});
  for (const Row& row : measured)
    rows.add({row.work, row.tokens, row.milliseconds, row.products, row.milliseconds / row.products, row.bound,
              row.milliseconds / row.bound, row.by_memory ? "memory" : "arithmetic", row.plan});
  out.line(
      fmt::format("{}, {} thread{}, {}: {:.0f} GFLOP/s from registers, {:.1f} GB/s read from as much memory as the "
                  "weights take, both measured in turns with the rest",
                  processor_name(), backend.pool().threads(), backend.pool().threads() == 1 ? "" : "s",
                  instruction_set(), bounds.peak() * 1e-9, bounds.bandwidth() * 1e-9));
  out.line(
      "products: the matrix products alone, by the same kernels; bound: operations ÷ the first, or bytes of weights "
      "÷ the second, whichever is more");
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
    const BareProducts one = model.bare_products(backend, 1, 1);
    SpeedBounds bounds(backend.pool(), one.bytes);
    std::vector<Row> rows;
    const auto add = [&](Row row) {
      if (!options->json) console.say(fmt::format("{}, {} tokens: {:.3f} ms", row.work, row.tokens, row.milliseconds));
      rows.push_back(std::move(row));
    };
    for (const int tokens : lengths) add(measure_pass(loaded, tokens, *options, ctx, bounds));
    const int context = model.config().context;
    const int before = context > 0 ? std::min(64, context - options->repeat - 1) : 64;
    if (model.config().objective() == Objective::next_token && !model.encoder() && before > 0)
      add(measure_generation(loaded, before, *options, ctx, bounds));
    if (options->training) {
      const int length = context > 0 ? std::min(64, context) : 64;
      add(measure_training(model.config(), length, model.bare_products(backend, length, length), *options, ctx,
                           bounds));
    }
    console.print(app_report(loaded, backend, bounds, rows).printed(options->json ? Form::json : Form::text));
  });
}

}  // namespace headscope::cli
