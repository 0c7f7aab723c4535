// headscope-cli streaming: a text of many windows under a cache that evicts, with and without the first tokens.

#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "app/cli/commands.h"
#include "app/cli/input.h"
#include "app/cli/output.h"
#include "core/analysis/past_context.h"
#include "core/generate/streaming.h"

namespace headscope::cli {

namespace {
struct StreamingOptions {
  Input input;
  Output output;
  StreamingSettings settings;
  int tokens = 0, bin = 64;
  bool recompute = false;
};

double mean(const std::vector<double>& values, std::size_t from, std::size_t to) {
  to = std::min(to, values.size());
  if (from >= to) return std::nan("");
  return std::accumulate(values.begin() + static_cast<std::ptrdiff_t>(from),
                         values.begin() + static_cast<std::ptrdiff_t>(to), 0.0) /
         static_cast<double>(to - from);
}

void stream(Console& console, const StreamingOptions& options) {
  const LoadedModel loaded = load_model(options.input.model_folder(), console.backend());
  const ModelConfig& config = loaded.model->config();
  if (!options.input.edits().empty()) throw UsageError("streaming reads the model as it is: without --edit and --mask");
  Report out;
  std::vector<std::int32_t> ids;
  if (options.input.has_text()) {
    ids = ids_of_any_length(loaded, options.input.request(), console.stop());
  } else {
    const int tokens = options.tokens > 0 ? options.tokens : streamed_tokens(config);
    const auto learnt = learnt_texts(loaded, options.input.model_folder(), 1, tokens);
    if (learnt.empty())
      throw UsageError(
          "--text or --file is required: this model did not learn a language whose texts can be any length");
    ids = learnt.front();
  }
  std::vector<CachePolicy> policies{CachePolicy::whole, CachePolicy::window, CachePolicy::sinks};
  if (options.recompute) policies.push_back(CachePolicy::recompute);
  std::vector<std::vector<double>> losses;
  console.with_progress("streaming", [&](const Ctx& ctx) {
    for (const CachePolicy policy : policies)
      losses.push_back(streaming_losses(loaded, ids, policy, options.settings, ctx));
  });
  const std::vector<FirstTokenShare> rests =
      first_token_shares(loaded, ids, {console.backend(), nullptr, console.stop()});
  out.line(fmt::format("{}: {} tokens, a cache of {}, {} of them the first", config.name, ids.size(),
                       options.settings.window, options.settings.sinks));
  std::vector<Column> columns{"from", "to"};
  for (const CachePolicy policy : policies) {
    const std::string title(title_of(policy));
    columns.push_back({title, title, "{:.4f}"});
  }
  auto& rows = out.table("loss", columns);
  const auto row = [&](std::size_t from, std::size_t to) {
    std::vector<Cell> cells{from + 1, std::min(to, ids.size() - 1)};
    for (const auto& each : losses) cells.push_back(mean(each, from, to));
    rows.add(std::move(cells));
  };
  const auto window = static_cast<std::size_t>(options.settings.window), step = static_cast<std::size_t>(options.bin);
  for (std::size_t from = 0; from + 1 < ids.size(); from += step) row(from, from + step);
  if (losses[0].size() <= window) {
    out.line(fmt::format("nothing is evicted: {} tokens fit into a cache of {}", ids.size(), window));
  } else {
    const auto after = [&](std::size_t p) { return mean(losses[p], window, losses[p].size()); };
    out.line(
        fmt::format("after the first eviction, mean loss: whole cache {:.4f}, window only {:.4f}, window and sinks "
                    "{:.4f}; keeping the first tokens changes the window's loss by {:+.4f} nats per token",
                    after(0), after(1), after(2), after(2) - after(1)));
  }
  out.line("Weight on the first token, before any goes (metric sink):");
  auto& heads = out.table("first_token", {"head", {"share", "share", "{:.3f}"}, {"chance", "chance", "{:.3f}"}});
  for (const FirstTokenShare& each : rests) heads.add({to_string(each.head), each.share, each.chance});
  console.print(out.printed(options.output.form()));
}
}  // namespace

void add_streaming(Command& app, Console& console) {
  auto options = std::make_shared<StreamingOptions>();
  Command command = app.add_subcommand(
      "streaming", "A text of many windows in a cache that evicts, with and without the first tokens (StreamingLLM)");
  options->input.add_to(command, {.part = false});
  options->output.add_to(command);
  command.add_option("--window", options->settings.window, "Tokens that the cache holds")
      .check(range(2, 1 << 20))
      .show_default();
  command.add_option("--sinks", options->settings.sinks, "First tokens that stay in it")
      .check(range(1, 1 << 20))
      .show_default();
  command
      .add_option(
          "--tokens", options->tokens,
          "Without a text: so many tokens of the language that a bundled model learnt (default: four contexts, at "
          "least 1024; one context of a model with learned positions)")
      .check(range(2, 1 << 20));
  command.add_option("--bin", options->bin, "Tokens in a row of the table").check(range(1, 1 << 20)).show_default();
  command.add_flag("--recompute", options->recompute, "Also the last window read anew for every token: full price");
  command.does([options, &console] { stream(console, *options); });
}

}  // namespace headscope::cli
