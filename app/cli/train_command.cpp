// headscope-cli train: a recipe becomes a model folder. However it ends, it leaves the model or a checkpoint, and says
// how to go on.

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <utility>

#include "app/cli/commands.h"
#include "app/cli/table_text.h"
#include "core/base/duration.h"
#include "core/base/error.h"
#include "core/base/standard_streams.h"
#include "core/train/training_folder.h"

namespace headscope::cli {

namespace {
namespace fs = std::filesystem;

struct TrainOptions {
  std::string recipe, out;
  bool resume = false, overwrite = false;
};

std::string progress_line(const TrainingProgress& p) {
  std::string held_out = std::isnan(p.held_out) ? "" : fmt::format(", held-out {:.4f}", p.held_out);
  const std::string floor = std::isnan(p.floor) ? "" : fmt::format(" (floor {:.4f})", p.floor);
  const std::string balance = std::isnan(p.balance) ? "" : fmt::format(", balance {:.3f} (even 1)", p.balance);
  return fmt::format("step {}/{}  loss {:.4f}{}{}{}  {} tokens/s  {} left", p.step, p.steps, p.loss, held_out, floor,
                     balance, grouped(static_cast<std::int64_t>(p.tokens_per_second)), duration_text(p.seconds_left));
}

/// On a terminal one line that is written over; elsewhere a line for every held-out loss.
class StepsLine {
 public:
  explicit StepsLine(Console& console) : console_(console), terminal_(isatty(STDERR_FILENO)) {}
  void show(const TrainingProgress& p) {
    const bool measured = p.held_out_step == p.step;
    if (!terminal_) {
      if (measured) console_.say(progress_line(p));
      return;
    }
    const auto now = std::chrono::steady_clock::now();
    if (!measured && now - last_ < std::chrono::milliseconds(200)) return;
    last_ = now;
    write_error(fmt::format("\r\033[K{}{}", progress_line(p), measured ? "\n" : ""));
    open_ = !measured;
  }
  void end() {
    if (open_) write_error("\n");
    open_ = false;
  }

 private:
  Console& console_;
  bool terminal_, open_ = false;
  std::chrono::steady_clock::time_point last_{};
};

/// A checkpoint belongs to its recipe; going on with another would be neither of the two.
void require_same(const Recipe& given, const Recipe& stored, const fs::path& checkpoint) {
  if (recipe_json(given) == recipe_json(stored)) return;
  throw Error(checkpoint.string(), "a checkpoint of the same recipe", "one of a recipe with other numbers",
              "train into another folder (-o), or without --resume to begin anew");
}

/// The checkpoint of a run that ends before its time, and how to go on from it. Never throws: what ended the run is
/// what has to be told.
void keep(Console& console, const Trainer& trainer, const TrainingFolder& folder, const TrainOptions& options) {
  try {
    save_checkpoint(trainer.checkpoint(), folder.checkpoint());
    console.say(fmt::format("stopped after step {}; go on with\n  headscope-cli train {} -o {} --resume{}",
                            trainer.progress().step, options.recipe, folder.checkpoint().parent_path().string(),
                            options.overwrite ? " --overwrite" : ""));
  } catch (const std::exception& failed) {
    console.say(fmt::format("stopped after step {}, and no checkpoint could be written: {}", trainer.progress().step,
                            failed.what()));
  }
}

std::unique_ptr<Trainer> begin(Console& console, const Recipe& recipe, const TrainingFolder& folder,
                               const TrainOptions& options) {
  const fs::path checkpoint = folder.checkpoint();
  if (options.resume && !folder.has_checkpoint())
    throw Error(checkpoint.string(), "a checkpoint to go on from", "none", "leave --resume away to begin");
  if (!options.resume && !options.overwrite && folder.has_checkpoint())
    throw Error(checkpoint.string(), "a folder without an unfinished training", "one",
                "--resume goes on; --overwrite begins anew");
  if (!options.resume) return std::make_unique<Trainer>(recipe, console.backend());
  const Checkpoint stored = load_checkpoint(checkpoint);
  require_same(recipe, stored.recipe, checkpoint);
  return std::make_unique<Trainer>(stored, console.backend());
}

/// What --resume finds in a folder with a model: whoever says it wants to go on, not to be told of a model in the way.
void require_unfinished(const fs::path& out, const TrainOptions& options) {
  std::error_code failed;
  if (!holds_model(out)) return;
  if (fs::exists(out / TrainingFolder::checkpoint_name, failed)) {
    if (options.overwrite) return;
    throw Error(out.string(), "--overwrite beside --resume, since a model lies there", "none",
                "--resume --overwrite goes on from the checkpoint, and replaces the model when the new one is done");
  }
  std::string found = "a model and no checkpoint";
  if (const fs::path record = out / "training.json"; fs::exists(record, failed)) {
    const std::int64_t steps = load_training_record(record).steps;
    found = fmt::format("one that is finished: {} of {} steps are done", steps, steps);
  }
  throw Error(out.string(), "an unfinished training", found,
              fmt::format("a finished model is without the state of its optimiser, so that nothing can go on from it; "
                          "for a longer training set \"steps\" in {} and begin anew, with -o in another folder or with "
                          "--overwrite here",
                          options.recipe));
}

void train(Console& console, const TrainOptions& options) {
  const Recipe recipe = load_recipe(options.recipe);
  const fs::path out = options.out.empty() ? fs::path(recipe.name) : fs::path(options.out);
  if (options.resume)
    require_unfinished(out, options);
  else if (!options.overwrite && holds_model(out))
    throw Error(out.string(), "a folder without a model", "one with a model in it",
                "-o names another; --overwrite replaces the model when the new one is done");
  console.stop();  // from here on a signal ends it in order: with a checkpoint, without the lock
  TrainingFolder folder(out, options.overwrite);
  const std::unique_ptr<Trainer> trainer = begin(console, recipe, folder, options);
  const double floor = trainer->progress().floor;  // NaN: nobody knows it
  console.say(fmt::format("{}: {} parameters, {} steps of {}{}", recipe.name,
                          grouped(trainer->learner().snapshot()->info().parameters), recipe.steps, step_text(recipe),
                          std::isnan(floor) ? "" : fmt::format("; the floor of the held-out loss is {:.4f}", floor)));
  StepsLine line(console);
  bool checkpoints_fail = false;
  try {
    trainer->run(recipe.steps, console.stop(), [&](const TrainingProgress& p) {
      line.show(p);
      if (p.step % recipe.checkpoint_every != 0 || p.finished()) return;
      try {
        save_checkpoint(trainer->checkpoint(), folder.checkpoint());
        checkpoints_fail = false;
      } catch (const Error& failed) {  // a disk that is full now may have room at the end
        if (std::exchange(checkpoints_fail, true)) return;
        line.end();
        console.say(fmt::format("no checkpoint of step {}: {}\nThe training goes on.", p.step, failed.what()));
      }
    });
    line.end();
    folder.publish(*trainer);
  } catch (...) {
    line.end();
    keep(console, *trainer, folder, options);
    throw;
  }
  const TrainingProgress& p = trainer->progress();
  console.print_line(fmt::format("{}: held-out loss {:.4f} nats per {}{}, after {} steps in {}", out.string(),
                                 p.held_out, recipe.task.draws() ? "picture" : "token",
                                 std::isnan(floor) ? "" : fmt::format(", {:.4f} above the floor", p.held_out - floor),
                                 p.step, duration_text(p.seconds)));
}
}  // namespace

void add_train(Command& app, Console& console) {
  auto options = std::make_shared<TrainOptions>();
  Command command = app.add_subcommand("train", "Train a model from nothing, as a recipe says");
  command.add_option("recipe", options->recipe, "Recipe, a JSON file such as models/tiny-gpt2/recipe.json")
      .required()
      .type_name("RECIPE");
  command.add_option("-o,--out", options->out, "Folder for the model and its checkpoint (default: the recipe's name)")
      .type_name("DIR");
  command.add_flag("--resume", options->resume, "Go on from the checkpoint in that folder");
  command.add_flag("--overwrite", options->overwrite,
                   "Replace the model in that folder and its card, once the new one is done; begin anew where one is "
                   "unfinished");
  command.does([options, &console] { train(console, *options); });
}

}  // namespace headscope::cli
