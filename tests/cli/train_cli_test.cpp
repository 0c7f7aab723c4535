// train, eval, card and sample of the real program, on a model small enough to be trained here.

#include <doctest/doctest.h>

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include "core/base/file.h"
#include "core/base/json.h"
#include "core/train/checkpoint.h"
#include "core/train/evaluation.h"
#include "core/train/language.h"
#include "core/train/recipe.h"
#include "core/train/tasks.h"
#include "tests/cli/small_recipe.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace headscope::train_cli_test {

using namespace testing;
using nlohmann::json;
namespace fs = std::filesystem;

TEST_CASE("a training that Ctrl-C stops goes on, and ends with the bits of one that nobody stopped") {
  const fs::path folder = scratch_dir("cli-train");
  const fs::path recipe = written_recipe(folder, small_recipe(400));
  const std::string whole = (folder / "whole").string(), parts = (folder / "parts").string();
  const Finished at_once = run_cli({"train", recipe.string(), "-o", whole});
  CAPTURE(at_once.err);
  REQUIRE(at_once.code == 0);
  CHECK(at_once.out.find("after 400 steps") != std::string::npos);
  CHECK(at_once.err.find("step 50/400") != std::string::npos);
  CHECK(at_once.err.find(" left") != std::string::npos);  // how long it will take

  const Finished stopped = run_cli({"train", recipe.string(), "-o", parts}, {.interrupt = true});
  CAPTURE(stopped.err);
  REQUIRE(stopped.code == 130);
  CHECK(stopped.err.find("stopped after step") != std::string::npos);
  CHECK(stopped.err.find("--resume") != std::string::npos);
  CHECK_FALSE(fs::exists(folder / "parts" / "model.safetensors"));
  REQUIRE(fs::exists(folder / "parts" / "checkpoint.safetensors"));

  // Begun anew by mistake, nothing is lost; with another recipe, nothing is mixed.
  CHECK(run_cli({"train", recipe.string(), "-o", parts}).err.find("unfinished training") != std::string::npos);
  const fs::path other = written_recipe(folder / "other", small_recipe(401));
  const Finished mixed = run_cli({"train", other.string(), "-o", parts, "--resume"});
  CHECK(mixed.code == 1);
  CHECK(mixed.err.find("a checkpoint of the same recipe") != std::string::npos);

  const Finished resumed = run_cli({"train", recipe.string(), "-o", parts, "--resume"});
  CAPTURE(resumed.err);
  REQUIRE(resumed.code == 0);
  CHECK_FALSE(fs::exists(folder / "parts" / "checkpoint.safetensors"));
  CHECK(read_file(folder / "parts" / "model.safetensors") == read_file(folder / "whole" / "model.safetensors"));
}

TEST_CASE("eval says what the library measures, card what eval says") {
  const fs::path folder = scratch_dir("cli-train-eval");
  const fs::path recipe = written_recipe(folder, small_recipe(60));
  const std::string model = (folder / "model").string();
  REQUIRE(run_cli({"train", recipe.string(), "-o", model}).code == 0);
  CHECK(recipe_json(load_recipe(folder / "model" / "recipe.json")) == recipe_json(load_recipe(recipe)));

  const Finished eval = run_cli({"eval", model, "--rows", "12", "--json"});
  CAPTURE(eval.err);
  REQUIRE(eval.code == 0);
  const json measured = json::parse(eval.out);
  const Recipe read = load_recipe(recipe);
  const HeldOut data = make_task(read.task)->held_out(12, read.batch, read.model.context);
  Backend backend(1);
  const double loss = held_out_loss(*Model::load(model, backend), {backend}, data);
  CHECK(measured["rows"] == 12);
  CHECK(measured["loss"].get<double>() == doctest::Approx(loss).epsilon(1e-5));
  CHECK(measured["floor"].get<double>() == doctest::Approx(data.floor).epsilon(1e-9));

  const Finished card = run_cli({"card", model, "--rows", "12", "--texts", "4", "--ablated-rows", "2", "--json"});
  CAPTURE(card.err);
  REQUIRE(card.code == 0);
  const json told = json::parse(card.out);
  CHECK(told["loss"].get<double>() == doctest::Approx(loss).epsilon(1e-5));
  CHECK(told["heads"].size() == 4);

  CHECK(run_cli({"eval", (folder / "nothing").string()}).code == 1);
  CHECK(run_cli({"train", (folder / "no-recipe.json").string()}).code == 1);
}

TEST_CASE("eval and card leave out texts that are longer than the context, and say how many") {
  // With a small vocabulary texts are long: of the four that its training looked at none was too long, of 400 some are.
  const fs::path folder = scratch_dir("cli-train-long");
  json recipe = small_recipe(2);
  recipe["task"] = {
      {"kind", "stories"}, {"seed", 1}, {"grammar", "everyday"}, {"vocabulary", 300}, {"vocabulary_stories", 200}};
  recipe["model"]["context"] = 64;
  recipe["training"]["evaluate_rows"] = 4;
  const std::string model = (folder / "model").string();
  const Finished trained = run_cli({"train", written_recipe(folder, recipe).string(), "-o", model});
  CAPTURE(trained.err);
  REQUIRE(trained.code == 0);
  const Finished eval = run_cli({"eval", model, "--json"});
  CAPTURE(eval.err);
  REQUIRE(eval.code == 0);
  const json measured = json::parse(eval.out);
  const Recipe read = load_recipe(folder / "model" / "recipe.json");
  const auto task = make_task(read.task);
  const auto long_ones = std::ranges::count_if(held_out_stories(*task, 400), [&](const Story& story) {
    return task->tokenizer()->encode(story.text).size() + 1 > 64;
  });
  REQUIRE(long_ones > 0);
  REQUIRE(long_ones < 200);
  CHECK(measured["left_out"] == long_ones);
  CHECK(measured["rows"] == 400 - long_ones);
  CHECK(measured["loss"] > measured["floor"]);
  const Language language(Grammar::named("everyday", "test"));
  double log_probability = 0, tokens = 0;  // of the texts whose losses they are, and no others
  for (const Story& story : held_out_stories(*task, 400)) {
    const auto size = task->tokenizer()->encode(story.text).size() + 1;
    if (size <= 64) log_probability += language.log_probability(story.text), tokens += static_cast<double>(size);
  }
  CHECK(measured["targets"] == static_cast<std::int64_t>(tokens));
  CHECK(measured["floor"].get<double>() == doctest::Approx(-log_probability / tokens).epsilon(1e-9));
  const std::string said = run_cli({"eval", model}).out;
  CHECK(said.find(fmt::format("Of 400 texts {} are left out: they are longer than its context, 64 tokens. Loss and "
                              "floor are both of the other {}.",
                              long_ones, 400 - long_ones)) != std::string::npos);
  const Finished card = run_cli({"card", model, "--texts", "4", "--ablated-rows", "2", "--json"});
  CAPTURE(card.err);
  REQUIRE(card.code == 0);
  CHECK(json::parse(card.out)["rows"] == 400 - long_ones);
  CHECK(json::parse(card.out)["left_out"] == long_ones);
}

TEST_CASE("a finished model is not written over unless that is asked for, and then nothing else goes") {
  const fs::path folder = scratch_dir("cli-train-overwrite");
  const fs::path recipe = written_recipe(folder, small_recipe(20));
  const fs::path model = folder / "model";
  REQUIRE(run_cli({"train", recipe.string(), "-o", model.string()}).code == 0);
  const std::string first = read_file(model / "model.safetensors");
  write_file_atomically(model / "notes.txt", "mine");
  write_file_atomically(model / "notes.part-2.txt", "mine");
  write_file_atomically(model / "trace.safetensors", "of another day");
  REQUIRE(run_cli({"card", model.string(), "--rows", "8", "--texts", "2", "--ablated-rows", "1"}).code == 0);
  REQUIRE(read_file(model / "README.md").find("20 steps") != std::string::npos);
  REQUIRE(fs::exists(model / "card.json"));

  const fs::path other = written_recipe(folder / "other", small_recipe(30));
  const Finished refused = run_cli({"train", other.string(), "-o", model.string()});
  CHECK(refused.code == 1);
  CHECK(refused.err.find("expected a folder without a model") != std::string::npos);
  CHECK(refused.err.find("--overwrite") != std::string::npos);
  CHECK(read_file(model / "model.safetensors") == first);

  const Finished told = run_cli({"train", other.string(), "-o", model.string(), "--overwrite"});
  CAPTURE(told.err);
  REQUIRE(told.code == 0);
  CHECK(read_file(model / "model.safetensors") != first);
  CHECK(load_recipe(model / "recipe.json").steps == 30);
  CHECK(read_file(model / "notes.txt") == "mine");
  CHECK(fs::exists(model / "notes.part-2.txt"));
  CHECK(read_file(model / "trace.safetensors") == "of another day");
  CHECK_FALSE(fs::exists(model / "checkpoint.safetensors"));
  CHECK_FALSE(fs::exists(model / "training.lock"));
  // What was said of the model that is gone is gone; a README.md that no card stands beside was written by somebody.
  CHECK_FALSE(fs::exists(model / "card.json"));
  CHECK_FALSE(fs::exists(model / "README.md"));
  write_file_atomically(model / "README.md", "mine too");
  REQUIRE(run_cli({"train", recipe.string(), "-o", model.string(), "--overwrite"}).code == 0);
  CHECK(read_file(model / "README.md") == "mine too");

  const Finished here = run_cli({"train", recipe.string(), "-o", "."}, {.folder = folder.string()});
  CHECK(here.code == 1);
  CHECK(here.err.find("the folder this was started in") != std::string::npos);
}

TEST_CASE("--resume of a training that is finished says so, and what a longer one takes") {
  const fs::path folder = scratch_dir("cli-train-finished");
  const fs::path recipe = written_recipe(folder, small_recipe(20));
  const fs::path model = folder / "model";
  REQUIRE(run_cli({"train", recipe.string(), "-o", model.string()}).code == 0);
  const std::string first = read_file(model / "model.safetensors");
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--overwrite"}}) {
    std::vector<std::string> command{"train", recipe.string(), "-o", model.string(), "--resume"};
    command.insert(command.end(), more.begin(), more.end());
    const Finished done = run_cli(command);
    CAPTURE(done.err);
    CHECK(done.code == 1);
    CHECK(done.err.find(model.string() +
                        ": expected an unfinished training, found one that is finished: 20 of 20 steps "
                        "are done") != std::string::npos);
    CHECK(done.err.find("set \"steps\" in " + recipe.string()) != std::string::npos);
    CHECK(read_file(model / "model.safetensors") == first);
  }
  // An unfinished one beside the model that it will replace goes on with both words.
  const fs::path longer = written_recipe(folder / "longer", small_recipe(1'000'000));
  REQUIRE(run_cli({"train", longer.string(), "-o", model.string(), "--overwrite"}, {.interrupt = true}).code == 130);
  const Finished half = run_cli({"train", longer.string(), "-o", model.string(), "--resume"});
  CHECK(half.code == 1);
  CHECK(half.err.find("--resume --overwrite goes on") != std::string::npos);
  CHECK(fs::exists(model / "checkpoint.safetensors"));
  // A model from elsewhere is no training.
  fs::remove(model / "checkpoint.safetensors");
  fs::remove(model / "training.json");
  const Finished other = run_cli({"train", recipe.string(), "-o", model.string(), "--resume"});
  CHECK(other.err.find("found a model and no checkpoint") != std::string::npos);
}

TEST_CASE("while one trains into a folder, a second is told who; when it was killed, its place is free") {
  const fs::path folder = scratch_dir("cli-train-lock");
  const fs::path recipe = written_recipe(folder, small_recipe(1'000'000));
  const std::string model = (folder / "model").string();
  // However slow the machine: the second is started when the first holds the folder, which dies when that was seen.
  std::string holder;
  Finished second;
  run_cli({"train", recipe.string(), "-o", model}, {.kill_behind = [&] {
            const fs::path lock = folder / "model" / "training.lock";
            for (int i = 0; i < 24'000 && holder.find('\n') == std::string::npos; ++i) {
              std::this_thread::sleep_for(std::chrono::milliseconds(5));
              if (fs::exists(lock)) holder = read_file(lock);
            }
            second = run_cli({"train", recipe.string(), "-o", model});
          }});
  CHECK(second.code == 1);
  CHECK(second.err.find("expected a folder that nobody else trains into") != std::string::npos);
  CHECK(second.err.find("process " + holder.substr(0, holder.find(' ')) + " on ") != std::string::npos);

  // The dead one's lock and what it left half written are no hindrance.
  REQUIRE(fs::exists(folder / "model" / "training.lock"));
  write_file_atomically(folder / "model" / "checkpoint.safetensors.part-1-0", "half");
  fs::create_directories(folder / "model.part-1-0");
  const fs::path finished = written_recipe(folder / "short", small_recipe(10));
  const Finished third = run_cli({"train", finished.string(), "-o", model, "--overwrite"});
  CAPTURE(third.err);
  CHECK(third.code == 0);
  CHECK_FALSE(fs::exists(folder / "model" / "training.lock"));
  CHECK_FALSE(fs::exists(folder / "model" / "checkpoint.safetensors.part-1-0"));
  CHECK_FALSE(fs::exists(folder / "model.part-1-0"));
}

TEST_CASE("killed at any moment, a training leaves a folder that loads") {
  const fs::path folder = scratch_dir("cli-train-killed");
  const fs::path recipe = written_recipe(folder, small_recipe(2)),
                 other = written_recipe(folder / "b", small_recipe(3));
  const fs::path model = folder / "model";
  const auto begin = std::chrono::steady_clock::now();
  REQUIRE(run_cli({"train", recipe.string(), "-o", model.string()}).code == 0);
  const double whole = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  Backend backend(1);
  int killed = 0, done = 0;
  constexpr int times = 40;
  for (int i = 0; i < times; ++i) {  // most of them while the model is written; the first for certain
    const double when = i == 0 ? 1e-3 : whole * (0.5 + 0.6 * i / times);
    const Finished finished = run_cli({"train", (i % 2 ? recipe : other).string(), "-o", model.string(), "--overwrite"},
                                      {.kill_after = when});
    ++(finished.code == 0 ? done : killed);
    CAPTURE(i);
    REQUIRE_NOTHROW(Model::load(model, backend));
    const TrainingRecord record = load_training_record(model / "training.json");
    CHECK(record.steps == load_recipe(model / "recipe.json").steps);  // all of one model
  }
  CHECK(killed > 0);
  MESSAGE(killed, " of ", times, " were killed");
}

TEST_CASE("a training that cannot write its model keeps a checkpoint, and a hang-up too") {
  const fs::path folder = scratch_dir("cli-train-ways-out");
  // So long that no machine is through before the signal comes.
  const fs::path recipe = written_recipe(folder, small_recipe(100'000));
  const fs::path model = folder / "model";
  // A session that ends sends both at once, timeout(1) the same one twice.
  for (const auto& [signal, next] : {std::pair{SIGTERM, 0}, {SIGHUP, 0}, {SIGTERM, SIGHUP}, {SIGTERM, SIGTERM}}) {
    const fs::path out = folder / fmt::format("signal{}-{}", signal, next);
    const Finished ended = run_cli({"train", recipe.string(), "-o", out.string()},
                                   {.interrupt = true, .signal = signal, .next_signal = next});
    CHECK(ended.code == 130);
    CHECK(fs::exists(out / "checkpoint.safetensors"));
    CHECK_FALSE(fs::exists(out / "training.lock"));
  }
  // A step that cannot be taken: the loss is no number any more.
  nlohmann::json wild = small_recipe(400);
  for (const char* key : {"learning_rate", "final_learning_rate", "weight_decay"}) wild["training"][key] = 999;
  for (const char* key : {"warmup_steps", "clip_norm"}) wild["training"][key] = 0;
  const fs::path away = folder / "away";
  const Finished lost = run_cli({"train", written_recipe(folder / "wild", wild).string(), "-o", away.string()});
  CAPTURE(lost.err);
  CHECK(lost.code == 1);
  CHECK(fs::exists(away / "checkpoint.safetensors"));
  CHECK(lost.err.find("stopped after step") != std::string::npos);
  // A disk on which nothing large has room: said, not a crash; what lay there lies there.
  const fs::path brief = written_recipe(folder / "brief", small_recipe(600));  // past the first checkpoint, at 500
  const Finished full = run_cli({"train", brief.string(), "-o", model.string()}, {.file_limit = 20'000});
  CAPTURE(full.err);
  CHECK(full.code == 1);
  CHECK(full.err.find("The training goes on.") != std::string::npos);
  CHECK(full.err.find("no checkpoint could be written") != std::string::npos);
  CHECK_FALSE(fs::exists(model / "config.json"));
  const fs::path blind = folder / "blind";
  const Finished piped =
      run_cli({"train", recipe.string(), "-o", blind.string()}, {.interrupt = true, .err = Stream::one_line});
  CHECK(piped.code == 130);
  CHECK(fs::exists(blind / "checkpoint.safetensors"));
}

}  // namespace headscope::train_cli_test
