// train, eval, card and sample of the real program, on a model small enough to be trained here.

#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/file.h"
#include "core/engine/evaluation.h"
#include "core/train/recipe.h"
#include "core/train/tasks.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

using namespace headscope;
using namespace headscope::testing;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

/// A training of a second or so: long enough to be interrupted.
json small_recipe(int steps) {
  return {
      {"name", "small"},
      {"task", {{"kind", "repeated"}, {"seed", 3}, {"shortest_period", 4}, {"longest_period", 8}}},
      {"model",
       {{"family", "llama"}, {"layers", 2}, {"heads", 2}, {"kv_heads", 2}, {"width", 32}, {"mlp", 0}, {"context", 24}}},
      {"training",
       {{"steps", steps},
        {"batch", 8},
        {"seed", 5},
        {"learning_rate", 0.003},
        {"final_learning_rate", 0.0003},
        {"warmup_steps", 10},
        {"weight_decay", 0.01},
        {"beta1", 0.9},
        {"beta2", 0.95},
        {"epsilon", 1e-8},
        {"clip_norm", 1.0},
        {"evaluate_every", 50},
        {"evaluate_rows", 8},
        {"checkpoint_every", 40}}}};
}

fs::path written(const fs::path& folder, const json& recipe) {
  fs::create_directories(folder);
  write_file_atomically(folder / "given.json", recipe.dump());
  return folder / "given.json";
}

}  // namespace

TEST_CASE("a training that Ctrl-C stops goes on, and ends with the bits of one that nobody stopped") {
  const fs::path folder = scratch_dir("cli-train");
  const fs::path recipe = written(folder, small_recipe(400));
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
  const fs::path other = written(folder / "other", small_recipe(401));
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
  const fs::path recipe = written(folder, small_recipe(60));
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
