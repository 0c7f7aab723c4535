// headscope-cli bench: forward passes with everything captured, beside the bare matrix products of the same model.

#include <fmt/format.h>

#include <chrono>

#include "app/cli/commands.h"
#include "app/cli/input.h"
#include "app/cli/trace_report.h"
#include "core/base/error.h"
#include "core/base/median.h"
#include "core/base/random.h"
#include "core/tensor/matrix.h"

namespace headscope::cli {

namespace {
struct BenchOptions {
  Input input;
  std::vector<int> lengths;
  std::string storage = "auto";
  int repeat = 9;
  bool json = false, last_logits = false;
};

struct Row {
  int tokens = 0;
  double forward = 0, floor = 0;  // milliseconds, medians
  double flops = 0;               // of the bare products
  std::string plan;
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

/// Forward and floor take turns, so that a busy moment of the machine hits both.
Row measure(const LoadedModel& loaded, int tokens, const BenchOptions& options, const Ctx& ctx) {
  RunRequest request;
  Random random(7);
  for (int i = 0; i < tokens; ++i)
    request.ids.push_back(
        static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(loaded.model->config().dims.vocab))));
  request.capture.all_logits = !options.last_logits;
  request.capture.byte_budget = std::size_t{8} << 30;
  if (options.storage == "dense") request.capture.maps = MapStorage::dense;
  if (options.storage == "factored") request.capture.maps = MapStorage::factored;
  const int logit_rows = options.last_logits ? 1 : tokens;
  Row row;
  row.tokens = tokens;
  row.plan = run(loaded, request, ctx)->plan.summary;
  const auto products = [&] {
    const auto begin = std::chrono::steady_clock::now();
    row.flops = loaded.model->bare_products(ctx.backend, tokens, logit_rows);
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  };
  products();
  std::vector<double> forward, floors;
  for (int i = 0; i < options.repeat; ++i) {
    forward.push_back(run(loaded, request, ctx)->milliseconds);
    floors.push_back(products());
  }
  row.forward = median(forward);
  row.floor = median(floors);
  return row;
}

Report app_report(const LoadedModel& loaded, Backend& backend, const std::vector<Row>& measured) {
  Report out;
  out.data("model", model_json(loaded.model->info()));
  out.data("threads", backend.pool().threads());
  out.data("matrix_library", matrix_library());
  auto& rows = out.table("rows", {"tokens",
                                  {"forward_ms", "forward", "{:.3f}", "ms"},
                                  {"products_ms", "products", "{:.3f}", "ms"},
                                  {"ratio", "ratio", "{:.2f}"},
                                  for_people("GFLOP/s of products", "{:.1f}"),
                                  "captured"});
  for (const Row& row : measured)
    rows.add({row.tokens, row.forward, row.floor, row.forward / row.floor, row.flops / row.floor * 1e-6, row.plan});
  out.line("forward: all maps and their metrics; products: its matrix products alone, same library and threads");
  return out;
}
}  // namespace

void add_bench(Command& app, Console& console) {
  auto options = std::make_shared<BenchOptions>();
  Command command =
      app.add_subcommand("bench", "Time forward passes with full capture beside the bare matrix products");
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
  command.add_flag("--json", options->json, "JSON instead of a table");
  command.does([options, &console] {
    Backend& backend = console.backend();
    const LoadedModel loaded = load_model(options->input.model_folder(), backend);
    const std::vector<int> lengths = lengths_of(*options, loaded.model->config());
    std::vector<Row> rows;
    const Ctx ctx{backend, nullptr, console.stop()};
    for (const int tokens : lengths) {
      rows.push_back(measure(loaded, tokens, *options, ctx));
      if (!options->json) console.say(fmt::format("{} tokens: {:.3f} ms", tokens, rows.back().forward));
    }
    console.print(app_report(loaded, backend, rows).printed(options->json ? Form::json : Form::text));
  });
}

}  // namespace headscope::cli
