// Recipes: what is read, what is refused, and that every key survives being written.

#include "core/train/recipe.h"

#include <doctest/doctest.h>

#include <string>

#include "core/base/error.h"

namespace headscope::recipe_test {

namespace {
const std::string whole = R"({
  "name": "tiny",
  "task": {"kind": "stories", "seed": 7, "vocabulary": 300, "vocabulary_stories": 50},
  "model": {"family": "llama", "layers": 2, "heads": 8, "kv_heads": 2, "width": 64, "mlp": 96, "context": 32},
  "training": {"steps": 40, "batch": 3, "seed": 18446744073709551615, "learning_rate": 0.003, "warmup_steps": 4,
               "weight_decay": 0.05, "clip_norm": 0.5, "evaluate_every": 10, "checkpoint_every": 20}
})";

std::string with(const std::string& from, const std::string& to) {
  std::string text = whole;
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}
std::string fault(const std::string& text) {
  try {
    parse_recipe(text, "r.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}
}  // namespace

TEST_CASE("recipe: read, written and read again") {
  const Recipe recipe = parse_recipe(whole, "r.json");
  CHECK(recipe.name == "tiny");
  CHECK(recipe.task.seed == 7);
  CHECK(recipe.model.kv_heads == 2);
  CHECK(recipe.seed == 18446744073709551615ull);
  CHECK(recipe.optimizer.learning_rate == 0.003);
  CHECK(recipe.optimizer.warmup_steps == 4);
  CHECK(recipe.optimizer.schedule_steps == 40);
  const std::string text = recipe_json(recipe);
  CHECK(recipe_json(parse_recipe(text, "again")) == text);
  CHECK(parse_recipe(text, "again").model == recipe.model);
  CHECK(parse_recipe(text, "again").task == recipe.task);

  const Recipe small = parse_recipe(R"({"name": "a", "task": {"kind": "repeated", "longest_period": 9},
                                        "model": {"family": "gpt2", "heads": 2, "width": 32}})",
                                    "r.json");
  CHECK(small.task.longest_period == 9);
  CHECK(small.model.kv_heads == 2);
  CHECK(small.model.mlp == 128);

  // Heads may be wider than their share of the width, in a family whose config can say so.
  CHECK(recipe.model.head_width() == 8);
  const Recipe wide = parse_recipe(with("\"mlp\": 96", "\"mlp\": 96, \"d_head\": 12"), "r.json");
  CHECK(wide.model.head_width() == 12);
  CHECK(parse_recipe(recipe_json(wide), "again").model == wide.model);
  const TrainedBpe vocabulary = make_task(wide.task)->vocabulary();
  CHECK(model_config(wide, vocabulary).dims.d_head == 12);
  CHECK(model_config(recipe, vocabulary).dims.d_head == 8);
}

TEST_CASE("recipe: every fault names its place") {
  CHECK(fault(with("\"layers\"", "\"layer\"")).find("r.json: model: expected one of the keys") == 0);
  CHECK(fault(with("\"layers\"", "\"layer\"")).find("nearest names: layers") != std::string::npos);
  CHECK(fault(with("\"layers\": 2", "\"layers\": 0")) == "r.json: model: layers: expected a number in 1…128, found 0");
  CHECK(fault(with("\"layers\": 2", "\"layers\": 2.5")) ==
        "r.json: model.layers: expected a whole number of 32 bits, found 2.5");
  CHECK(fault(with("\"layers\": 2", "\"layers\": 4294967298")).find("expected a whole number") != std::string::npos);
  CHECK(fault(with("\"seed\": 7", "\"seed\": -7")).find("r.json: task.seed: expected a whole number of at least 0") ==
        0);
  CHECK(fault(with("\"width\": 64", "\"width\": 65")).find("a divisor of the width 65, found 8") != std::string::npos);
  CHECK(fault(with("stories\", ", "poems\", "))
            .find("\"stories\", \"masked\", \"repeated\", \"backcopy\", \"translate\" or \"shapes\"") !=
        std::string::npos);
  CHECK(fault(with("\"vocabulary\"", "\"longest_period\"")).find("r.json: task") == 0);
  CHECK(fault(with("\"width\"", "\"d_head\": -2, \"width\"")).find("d_head: expected a number in 0…1024") !=
        std::string::npos);
  CHECK(fault(R"({"name": "a", "task": {"kind": "repeated"}, "model": {"family": "gpt2", "d_head": 7}})") ==
        "r.json: model: d_head: expected width / heads (or 0): gpt2's heads share out the width, found 7");
  CHECK(fault(with("llama", "bert")).find("\"gpt2\" or \"llama\"") != std::string::npos);
  CHECK(fault(with("llama", "gpt2")).find("no grouped queries") != std::string::npos);
  CHECK(fault(with("\"mlp\": 96", "\"mlp\": -1")).find("model: mlp") != std::string::npos);
  CHECK(fault(with("\"tiny\"", "\"../tiny\"")).find("r.json: name") == 0);
  CHECK(fault(with("0.003", "\"fast\"")).find("learning_rate: expected a number") != std::string::npos);
  CHECK(fault(with("0.003", "-1")).find("learning_rate") != std::string::npos);
  CHECK(fault(with("\"warmup_steps\": 4", "\"warmup_steps\": 41")).find("warmup_steps") != std::string::npos);
  CHECK(fault(with("\"name\": \"tiny\",", "")).find("the key 'name'") != std::string::npos);
  CHECK(fault(with("\"batch\": 3", "\"batch\": 3, \"batch\": 4")).find("twice") != std::string::npos);
  CHECK(fault("[]").find("an object") != std::string::npos);
  CHECK(fault("{").find("valid JSON") != std::string::npos);
  CHECK(fault("").find("valid JSON") != std::string::npos);
}

TEST_CASE(
    "recipe: a setting of the optimizer and the shape of heads are told with the file, in the recipe's own words") {
  CHECK(fault(with("0.003", "1000")) == "r.json: training: learning_rate: expected a number in [0, 1000), found 1000");
  CHECK(fault(with("0.003", "-1")) == "r.json: training: learning_rate: expected a number in [0, 1000), found -1");
  CHECK(fault(with("\"width\"", "\"d_head\": 7, \"width\"")) ==
        "r.json: model: d_head: expected an even number of dimensions, since rotary positions turn pairs, found 7");
  CHECK(fault(with("\"width\": 64", "\"width\": 24")) ==
        "r.json: model: d_head: expected an even number of dimensions, since rotary positions turn pairs, found 3, "
        "which is width / heads");
  const std::string experts =
      R"({"name": "a", "task": {"kind": "repeated"}, "model": {"family": "mixtral", "heads": 6, "kv_heads": 4, "width": 48},
          "training": {"expert_balance": -1}})";
  CHECK(fault(experts) == "r.json: model: kv_heads: expected a divisor of the 6 heads, found 4");
  std::string shared = experts;
  shared.replace(shared.find("\"kv_heads\": 4"), 13, "\"kv_heads\": 3");
  CHECK(fault(shared) == "r.json: training: expert_balance: expected a number in 0…10, found -1");
}

}  // namespace headscope::recipe_test
