// headscope-cli flops: parameters and FLOPs of a model whose layers are softmax, lightning, or a hybrid of both.

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "app/cli/commands.h"
#include "app/cli/input.h"
#include "app/cli/output.h"
#include "app/render/hybrid_cost_picture.h"
#include "core/base/error.h"
#include "core/model/config.h"
#include "viz/scene/framed.h"

namespace headscope::cli {

namespace {
struct FlopsOptions {
  std::string model;
  std::optional<int> layers, width, heads;
  double batch = 1, tokens = 32768;
  int every = 8;
  Output output;
  PictureOutput picture;
};

Report flops_report(const FlopsOptions& options) {
  // MiniMax-Text-01's numbers stand where no model gives its own.
  HybridShape shape{80, 6144, 64, options.batch, options.tokens};
  std::string from = "MiniMax-Text-01";
  if (!options.model.empty()) {
    Input input;
    input.model = options.model;
    const ModelConfig config = load_config(input.model_folder());
    if (config.dims.any_state_space() || config.encoder)
      throw Error(config.name, "one stack of layers that attend, of which the table speaks",
                  config.dims.any_state_space() ? "layers with a state" : "an encoder and a decoder",
                  "--layers, --d-model and --heads ask for any other shape");
    from = config.name;
    shape.layers = config.dims.layers, shape.width = config.dims.d_model;
    shape.heads = std::max(config.dims.heads, 1);
  }
  if (options.layers || options.width || options.heads) from += ", changed";
  shape.layers = options.layers.value_or(shape.layers);
  shape.width = options.width.value_or(shape.width);
  shape.heads = options.heads.value_or(shape.heads);
  if (shape.heads > shape.width)
    throw Error("--heads", fmt::format("at most the width, {:g}", shape.width), fmt::format("{:g}", shape.heads));
  const std::string words = fmt::format("{}: {:g} layers of width {:g}, {:g} heads; {:g} × {:g} tokens a step", from,
                                        shape.layers, shape.width, shape.heads, shape.batch, shape.tokens);
  Report out;
  out.line(words);
  auto& rows = out.table("rows", {"model",
                                  {"parameters", "parameters", "{:.4g}"},
                                  {"flops", "FLOPs", "{:.4g}"},
                                  {"of_softmax", "of softmax", "{:.3f}"},
                                  {"parameters_by", "parameters by"},
                                  {"flops_by", "FLOPs by"}});
  const double softmax = softmax_model_cost(shape).flops;
  for (const HybridCost& row : hybrid_cost_table(shape, options.every))
    rows.add({row.name, row.parameters, row.flops, row.flops / softmax, row.parameters_by, row.flops_by});
  const std::string crossings = hybrid_crossings(shape, options.every);
  out.line(crossings);
  out.line(
      "MiniMax-01 2025; counted as in Shen et al. 2024: without embeddings, with an MLP of width 8/3 d, forward and "
      "backward.");
  out.data("shape", {{"layers", shape.layers},
                     {"width", shape.width},
                     {"heads", shape.heads},
                     {"batch", shape.batch},
                     {"tokens", shape.tokens},
                     {"every", options.every}});
  out.data("crossings", crossings);
  const auto known = [](const std::optional<double>& n) { return n ? Cell(*n) : Cell(); };
  out.data("tokens_for_less", options.every > 1 ? known(hybrid_tokens_for_share(shape, options.every, 1)) : Cell());
  out.data("tokens_for_half", known(hybrid_tokens_for_share(shape, options.every, 0.5)));
  out.picture = [shape, every = options.every, words, crossings](const Style& style) {
    LineChart chart = hybrid_cost_chart(shape, every, style);
    chart.width = 900, chart.height = 420;
    return framed(line_chart_scene(chart, style), {"What a hybrid of softmax and lightning costs", {}, words, {}},
                  style, crossings);
  };
  return out;
}
}  // namespace

void add_flops(Command& app, Console& console) {
  auto options = std::make_shared<FlopsOptions>();
  Command command =
      app.add_subcommand("flops", "Parameters and FLOPs of softmax, lightning and hybrid layers as a text grows");
  command.add_option("-m,--model", options->model, "Whose layers, width and heads (default: MiniMax-Text-01's)")
      .type_name("DIR");
  command.add_option("--layers", options->layers, "Layers l").check(range(1, 1'000'000));
  command.add_option("--d-model", options->width, "Width d").check(range(1, 100'000'000));
  command.add_option("--heads", options->heads, "Heads h").check(range(1, 1'000'000));
  command.add_option("--batch", options->batch, "Texts in a step b").check(range(1.0, 1e12)).show_default();
  command.add_option("--tokens", options->tokens, "Tokens of a text n").check(range(1.0, 1e12)).show_default();
  command.add_option("--every", options->every, "Hybrid: one layer of so many keeps softmax")
      .check(range(2, 1000))
      .show_default();
  options->output.add_to(command);
  options->picture.add_to(command, "A picture: FLOPs per token against the length");
  command.does([options, &console] {
    options->picture.check();
    const Report report = flops_report(*options);
    options->picture.write(console, report.picture);
    if (!options->picture.wanted() || options->output.form() != Form::text)
      console.print(report.printed(options->output.form()));
  });
}

}  // namespace headscope::cli
