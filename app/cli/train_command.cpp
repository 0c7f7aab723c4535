// headscope-cli train: a recipe becomes a model folder. Interrupted, it leaves a checkpoint and says how to go on.

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cmath>

#include "app/cli/commands.h"
#include "app/cli/table.h"
#include "core/base/duration.h"
#include "core/base/error.h"
#include "core/train/trainer.h"

namespace headscope::cli {

namespace {
namespace fs = std::filesystem;

struct Options {
  std::string recipe, out;
  bool resume = false;
};

std::string progress_line(const TrainingProgress& p) {
  std::string held_out = std::isnan(p.held_out) ? "" : fmt::format(", held-out {:.4f}", p.held_out);
  return fmt::format("step {}/{}  loss {:.4f}{} (floor {:.4f})  {} tokens/s  {} left", p.step, p.steps, p.loss,
                     held_out, p.floor, grouped(static_cast<std::int64_t>(p.tokens_per_second)),
                     duration_text(p.seconds_left));
}

/// On a terminal one line that is written over; elsewhere a line for every held-out loss.
class ProgressLine {
 public:
  explicit ProgressLine(Shell& shell) : shell_(shell), terminal_(isatty(STDERR_FILENO)) {}
  void show(const TrainingProgress& p) {
    const bool measured = p.held_out_step == p.step;
    if (!terminal_) {
      if (measured) shell_.say(progress_line(p));
      return;
    }
    const auto now = std::chrono::steady_clock::now();
    if (!measured && now - last_ < std::chrono::milliseconds(200)) return;
    last_ = now;
    fmt::print(stderr, "\r\033[K{}{}", progress_line(p), measured ? "\n" : "");
    std::fflush(stderr);
    open_ = !measured;
  }
  void end() {
    if (open_) fmt::print(stderr, "\n");
    open_ = false;
  }

 private:
  Shell& shell_;
  bool terminal_, open_ = false;
  std::chrono::steady_clock::time_point last_{};
};

/// A checkpoint belongs to its recipe; going on with another would be neither of the two.
void require_same(const Recipe& given, const Recipe& stored, const fs::path& checkpoint) {
  if (recipe_json(given) == recipe_json(stored)) return;
  throw Error(checkpoint.string(), "a checkpoint of the same recipe", "one of a recipe with other numbers",
              "train into another folder (-o), or without --resume to begin anew");
}

void train(Shell& shell, const Options& options) {
  const Recipe recipe = load_recipe(options.recipe);
  const fs::path out = options.out.empty() ? fs::path(recipe.name) : fs::path(options.out);
  const fs::path checkpoint = out / "checkpoint.safetensors";
  std::error_code failure;
  fs::create_directories(out, failure);
  if (failure) throw Error(out.string(), "a folder that can be made", failure.message(), "choose another with -o");
  const bool there = fs::exists(checkpoint, failure);
  if (options.resume && !there)
    throw Error(checkpoint.string(), "a checkpoint to go on from", "none", "leave --resume away to begin");
  if (!options.resume && there)
    throw Error(checkpoint.string(), "a folder without an unfinished training", "one",
                "--resume goes on; delete the file to begin anew");

  Backend& backend = shell.backend();
  std::unique_ptr<Trainer> trainer;
  if (options.resume) {
    const Checkpoint stored = load_checkpoint(checkpoint);
    require_same(recipe, stored.recipe, checkpoint);
    trainer = std::make_unique<Trainer>(stored, backend);
  } else {
    trainer = std::make_unique<Trainer>(recipe, backend);
  }
  shell.say(fmt::format("{}: {} parameters, {} steps of {} × {} tokens; the floor of the held-out loss is {:.4f}",
                        recipe.name, grouped(trainer->learner().parameters().count()), recipe.steps, recipe.batch,
                        recipe.model.context, trainer->progress().floor));
  ProgressLine line(shell);
  try {
    trainer->run(recipe.steps, shell.stop(), [&](const TrainingProgress& p) {
      line.show(p);
      if (p.step % recipe.checkpoint_every == 0 && !p.finished()) save_checkpoint(trainer->checkpoint(), checkpoint);
    });
  } catch (const Cancelled&) {
    line.end();
    save_checkpoint(trainer->checkpoint(), checkpoint);
    shell.say(fmt::format("stopped after step {}; go on with\n  headscope-cli train {} -o {} --resume",
                          trainer->progress().step, options.recipe, out.string()));
    throw;
  }
  line.end();
  trainer->save_model(out);
  fs::remove(checkpoint, failure);
  const TrainingProgress& p = trainer->progress();
  shell.print_line(fmt::format("{}: held-out loss {:.4f} nats per token, {:.4f} above the floor, after {} steps in {}",
                               out.string(), p.held_out, p.held_out - p.floor, p.step, duration_text(p.seconds)));
}
}  // namespace

void add_train(CLI::App& app, Shell& shell) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("train", "Train a model from nothing, as a recipe says");
  command->add_option("recipe", options->recipe, "Recipe, a JSON file such as models/tiny-gpt2/recipe.json")
      ->required()
      ->type_name("RECIPE");
  command->add_option("-o,--out", options->out, "Folder for the model and its checkpoint (default: the recipe's name)")
      ->type_name("DIR");
  command->add_flag("--resume", options->resume, "Go on from the checkpoint in that folder");
  command->callback([options, &shell] { shell.command = [options, &shell] { train(shell, *options); }; });
}

}  // namespace headscope::cli
