// headscope-cli eval and card: how good a model that was trained here is, and what its heads do.

#include <fmt/format.h>

#include "app/cli/commands.h"
#include "app/cli/input.h"
#include "app/cli/report.h"
#include "app/cli/table_text.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/train/evaluation.h"
#include "core/train/model_card.h"

namespace headscope::cli {

namespace {
namespace fs = std::filesystem;

struct ModelOptions {
  std::string model, recipe;
  CardSettings card;
  bool json = false, print = false;
};

fs::path folder_of(const std::string& model) {
  Input input;
  input.model = model;
  return input.model_folder();
}

void evaluate(Console& console, const ModelOptions& options) {
  const fs::path folder = folder_of(options.model);
  const Recipe recipe = load_recipe(options.recipe.empty() ? folder / "recipe.json" : fs::path(options.recipe));
  const LoadedModel loaded = load_model(folder, console.backend());
  const auto task = make_task(recipe.task);
  const HeldOut data = task->held_out_that_fit(options.card.rows, recipe.batch, recipe.model.context);
  double loss = 0;
  console.with_progress("evaluating", [&](const Ctx& ctx) { loss = held_out_loss(*loaded.model, ctx, data); });
  const std::string what = recipe.task.draws() ? "picture" : recipe.task.kind == "masked" ? "masked token" : "token";
  Report out;
  out.data("model", loaded.model->config().name);
  out.data("task", recipe.task.kind);
  out.data("rows", options.card.rows - data.left_out);
  out.data("left_out", data.left_out);
  out.data("targets", data.targets);
  out.data("loss", loss);
  out.data("floor", data.floor);
  out.line(fmt::format(
      "{}: held-out loss {:.4f} nats per {} over {} {}{}", loaded.model->config().name, loss, what,
      grouped(data.targets), data.targets == 1 ? what : what + "s",
      std::isnan(data.floor) ? "" : fmt::format("; floor {:.4f}, {:.4f} above it", data.floor, loss - data.floor)));
  if (data.left_out > 0)
    out.line(fmt::format(
        "Of {} texts {} are left out: they are longer than its context, {} tokens. {} of the other {}.",
        options.card.rows, data.left_out, recipe.model.context,
        std::isnan(data.floor) ? "The loss is" : "Loss and floor are both", options.card.rows - data.left_out));
  console.print(out.printed(options.json ? Form::json : Form::text));
}

void write_card(Console& console, const ModelOptions& options) {
  const fs::path folder = folder_of(options.model);
  ModelCard card;
  console.with_progress("measuring", [&](const Ctx& ctx) { card = measure_card(folder, options.card, ctx); });
  if (options.json) return console.print(card_json(card));
  if (options.print) return console.print(card_markdown(card));
  write_file_atomically(folder / "card.json", card_json(card));
  write_file_atomically(folder / "README.md", card_markdown(card));
  console.print_line(
      fmt::format("Written:\n  {}\n  {}", (folder / "README.md").string(), (folder / "card.json").string()));
}

void add_rows(Command& command, ModelOptions& options) {
  command
      .add_option("model", options.model,
                  "Model folder with the recipe it was trained by, or the name of a bundled one")
      .required()
      .type_name("DIR");
  command.add_option("--rows", options.card.rows, "Held-out texts for the loss")
      .check(range(1, 1 << 16))
      .show_default();
}
}  // namespace

void add_eval(Command& app, Console& console) {
  auto options = std::make_shared<ModelOptions>();
  Command command = app.add_subcommand("eval", "Held-out loss of a trained model against the floor of its task");
  add_rows(command, *options);
  command.add_option("--recipe", options->recipe, "Recipe that names the task (default: recipe.json in the folder)")
      .type_name("FILE");
  command.add_flag("--json", options->json, "JSON instead of text");
  command.does([options, &console] { evaluate(console, *options); });
}

void add_card(Command& app, Console& console) {
  auto options = std::make_shared<ModelOptions>();
  Command command = app.add_subcommand(
      "card", "Measure a trained model and its heads, and write README.md and card.json into its folder");
  add_rows(command, *options);
  command.add_option("--texts", options->card.texts, "Texts that heads are measured on")
      .check(range(1, 1 << 16))
      .show_default();
  command.add_option("--ablated-rows", options->card.ablated_rows, "Held-out texts for taking heads away")
      .check(range(1, 1 << 16))
      .show_default();
  const Option print = command.add_flag("--print", options->print, "Print the card instead of writing it");
  command.add_flag("--json", options->json, "Print its numbers as JSON instead of writing it").excludes(print);
  command.does([options, &console] { write_card(console, *options); });
}

}  // namespace headscope::cli
