#include "core/train/recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <variant>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/nearest_names.h"
#include "core/base/words.h"
#include "core/io/json_view.h"
#include "core/io/strict_json.h"
#include "core/model/config_reader.h"
#include "core/model/family.h"
#include "core/train/shapes_task.h"

namespace headscope {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::size_t largest_recipe = std::size_t{1} << 20;

/// One key of a section and where its value lives: reading, writing and the list of known keys are all this table.
struct Field {
  const char* key;
  std::variant<int*, std::int64_t*, std::uint64_t*, double*, std::string*> value;
};

std::vector<Field> task_fields(Recipe& r) {
  if (r.task.kind == "repeated")
    return {{"kind", &r.task.kind},
            {"seed", &r.task.seed},
            {"shortest_period", &r.task.shortest_period},
            {"longest_period", &r.task.longest_period}};
  if (r.task.kind == "backcopy")
    return {{"kind", &r.task.kind},
            {"seed", &r.task.seed},
            {"letters", &r.task.letters},
            {"mark_share", &r.task.mark_share}};
  if (r.task.draws())
    return {{"kind", &r.task.kind},
            {"seed", &r.task.seed},
            {"side", &r.task.side},
            {"patch", &r.task.patch},
            {"distractors", &r.task.distractors}};
  std::vector<Field> fields{{"kind", &r.task.kind}, {"seed", &r.task.seed}};
  if (r.task.tells_stories()) fields.push_back({"grammar", &r.task.grammar});
  fields.push_back({"vocabulary", &r.task.vocabulary});
  fields.push_back({"vocabulary_stories", &r.task.vocabulary_stories});
  if (r.task.translates()) fields.push_back({"sentences", &r.task.sentences});
  return fields;
}
std::vector<Field> model_fields(Recipe& r) {
  if (r.model.state_space()) {
    std::vector<Field> fields{{"family", &r.model.family}, {"layers", &r.model.layers}};
    if (r.model.family == "mamba2") fields.push_back({"heads", &r.model.heads});
    for (const Field& each :
         {Field{"width", &r.model.width}, Field{"states", &r.model.states}, Field{"expand", &r.model.expand},
          Field{"context", &r.model.context}, Field{"initial_deviation", &r.model.initial_deviation}})
      fields.push_back(each);
    return fields;
  }
  std::vector<Field> fields{{"family", &r.model.family}, {"layers", &r.model.layers},
                            {"heads", &r.model.heads},   {"kv_heads", &r.model.kv_heads},
                            {"width", &r.model.width},   {"d_head", &r.model.d_head},
                            {"mlp", &r.model.mlp}};
  if (r.model.has_experts()) {
    fields.push_back({"experts", &r.model.experts});
    fields.push_back({"experts_per_token", &r.model.experts_per_token});
  }
  fields.push_back({"context", &r.model.context});
  fields.push_back({"initial_deviation", &r.model.initial_deviation});
  fields.push_back({"first_positions", &r.model.first_positions});
  return fields;
}
std::vector<Field> training_fields(Recipe& r) {
  std::vector<Field> fields{{"steps", &r.steps},
                            {"batch", &r.batch},
                            {"seed", &r.seed},
                            {"learning_rate", &r.optimizer.learning_rate},
                            {"final_learning_rate", &r.optimizer.final_learning_rate},
                            {"warmup_steps", &r.optimizer.warmup_steps},
                            {"weight_decay", &r.optimizer.weight_decay},
                            {"beta1", &r.optimizer.beta1},
                            {"beta2", &r.optimizer.beta2},
                            {"epsilon", &r.optimizer.epsilon},
                            {"clip_norm", &r.optimizer.clip_norm},
                            {"attention_entropy", &r.optimizer.attention_entropy},
                            {"attention_entropy_from", &r.optimizer.attention_entropy_from}};
  if (r.model.has_experts()) fields.push_back({"expert_balance", &r.optimizer.expert_balance});
  fields.push_back({"evaluate_every", &r.evaluate_every});
  fields.push_back({"evaluate_rows", &r.evaluate_rows});
  fields.push_back({"checkpoint_every", &r.checkpoint_every});
  return fields;
}

[[noreturn]] void unknown_key(const std::string& where, const std::string& key, const std::vector<std::string>& known) {
  throw Error(where, fmt::format("one of the keys {}", fmt::join(known, ", ")), fmt::format("\"{}\"", key),
              nearest_names_hint(key, known, 1));
}

/// Puts a value where it belongs, as the kind that is there.
struct Assign {
  const JsonView& value;
  void operator()(int* target) const { *target = value.small(); }
  void operator()(std::int64_t* target) const { *target = value.integer(); }
  void operator()(std::uint64_t* target) const { *target = value.natural(); }
  void operator()(double* target) const { *target = value.number(); }
  void operator()(std::string* target) const { *target = value.text(); }
};

void read_section(const JsonView& section, const std::vector<Field>& fields) {
  std::vector<std::string> known;
  for (const Field& field : fields) known.emplace_back(field.key);
  for (const auto& [key, value] : section.members()) {
    const auto field = std::ranges::find_if(fields, [&](const Field& each) { return key == each.key; });
    if (field == fields.end()) unknown_key(section.where(), key, known);
    std::visit(Assign{value}, field->value);
  }
}

ordered_json section_json(const std::vector<Field>& fields) {
  ordered_json out;
  for (const Field& field : fields) std::visit([&](const auto* value) { out[field.key] = *value; }, field.value);
  return out;
}

void check_range(std::int64_t value, std::int64_t low, std::int64_t high, const std::string& where) {
  if (value < low || value > high)
    throw Error(where, fmt::format("a number in {}…{}", low, high), fmt::format("{}", value));
}

/// How the heads of attention share out the width.
void check_heads(const ModelShape& model, const std::string& shape) {
  if (!model.rotary() && model.d_head != 0 && model.d_head * model.heads != model.width)
    throw Error(shape + ": d_head", fmt::format("width / heads (or 0): {}'s heads share out the width", model.family),
                fmt::format("{}", model.d_head));
  if (model.d_head == 0 && model.width % model.heads != 0)
    throw Error(shape + ": heads", fmt::format("a divisor of the width {}", model.width),
                fmt::format("{}", model.heads));
  if (!model.rotary() && model.kv_heads != model.heads)
    throw Error(shape + ": kv_heads",
                fmt::format("{}, as many as heads: {} has no grouped queries", model.heads, model.family),
                fmt::format("{}", model.kv_heads));
  if (model.heads % model.kv_heads != 0)
    throw Error(shape + ": kv_heads", fmt::format("a divisor of the {} heads", model.heads),
                fmt::format("{}", model.kv_heads));
  if (model.rotary() && model.head_width() % 2 != 0)
    throw Error(shape + ": d_head", "an even number of dimensions, since rotary positions turn pairs",
                fmt::format("{}{}", model.head_width(), model.d_head == 0 ? ", which is width / heads" : ""));
}

}  // namespace

namespace {
void check_family(const std::string& family, const std::string& shape) {
  const std::vector<std::string> families{"gpt2", "llama", "mixtral", "bert", "bart", "vit", "mamba", "mamba2"};
  if (std::ranges::find(families, family) == families.end())
    throw Error(shape + ": family", fmt::format("one of {}", fmt::join(families, ", ")), fmt::format("\"{}\"", family));
}
}  // namespace

void Recipe::check(const std::string& where) const {
  const bool good_name =
      !name.empty() && name.size() <= 100 && name.front() != '.' && std::ranges::all_of(name, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
               c == '.';
      });
  if (!good_name) throw Error(where + ": name", "1 to 100 letters, digits, - _ .", fmt::format("\"{}\"", name));
  task.check(where + ": task");
  const std::string shape = where + ": model", training = where + ": training";
  check_family(model.family, shape);
  check_range(model.layers, 1, 128, shape + ": layers");
  check_range(model.heads, 1, 128, shape + ": heads");
  check_range(model.kv_heads, 1, model.heads, shape + ": kv_heads");
  check_range(model.width, 1, 1 << 14, shape + ": width");
  check_range(model.mlp, 0, 1 << 16, shape + ": mlp");
  // Two tokens stand around a masked text, and one has to be left to ask for.
  check_range(model.context, task.kind == "masked" ? 3 : 2, 1 << 16, shape + ": context");
  if (task.kind == "repeated" && 2 * task.longest_period >= model.context)
    throw Error(
        shape + ": context",
        fmt::format("more than {}, so that what is said with the longest period fits twice", 2 * task.longest_period),
        fmt::format("{}", model.context));
  const bool encoder = model.family == "bert", both = model.family == "bart";
  const bool sees = model.family == "vit";
  if (sees && task.draws() && model.context != ShapesTask::vision(task).tokens())
    throw Error(shape + ": context",
                fmt::format("{}, CLS and the patches of a picture", ShapesTask::vision(task).tokens()),
                fmt::format("{}", model.context));
  if (encoder != (task.kind == "masked") || both != task.translates() || sees != task.draws())
    throw Error(
        shape + ": family",
        task.kind == "masked" ? "\"bert\", which tells masked tokens"
        : task.translates()   ? "\"bart\", which reads a source"
        : task.draws()
            ? "\"vit\", which sees pictures"
            : "\"gpt2\" or \"llama\", with experts \"mixtral\", or \"mamba\" or \"mamba2\", which say what comes next",
        fmt::format("\"{}\"", model.family), "or another task");
  if (model.needs_mlp() && model.mlp == 0)
    throw Error(shape + ": mlp",
                fmt::format("a hidden layer, as every {} has", encoder ? "BERT"
                                                               : sees  ? "ViT"
                                                               : both  ? "BART"
                                                                       : "expert"),
                "0");
  if (model.has_experts()) {
    check_range(model.experts, 1, 256, shape + ": experts");
    check_range(model.experts_per_token, 1, model.experts, shape + ": experts_per_token");
  }
  check_range(model.states, 1, 1 << 10, shape + ": states");
  check_range(model.expand, 1, 16, shape + ": expand");
  if (model.family == "mamba2" && model.expand * model.width % model.heads != 0)
    throw Error(shape + ": heads", fmt::format("a divisor of the {} channels", model.expand * model.width),
                fmt::format("{}", model.heads));
  if (model.state_space() && optimizer.attention_entropy > 0)
    throw Error(training + ": attention_entropy", "0, since a state space has no softmax whose entropy could cost",
                fmt::format("{}", optimizer.attention_entropy));
  check_range(model.d_head, 0, 1 << 10, shape + ": d_head");
  if (!model.state_space()) check_heads(model, shape);
  if (!(model.initial_deviation > 0 && model.initial_deviation <= 1))
    throw Error(shape + ": initial_deviation", "a number above 0, at most 1",
                fmt::format("{}", model.initial_deviation));
  if (model.first_positions != "random" && (model.first_positions != "sinusoids" || model.rotary()))
    throw Error(shape + ": first_positions", "\"random\", or with learned positions \"sinusoids\"",
                fmt::format("\"{}\"", model.first_positions));
  check_range(steps, 1, 1 << 24, training + ": steps");
  check_range(batch, 1, 1 << 16, training + ": batch");
  check_range(evaluate_every, 1, 1 << 24, training + ": evaluate_every");
  check_range(evaluate_rows, 1, 1 << 16, training + ": evaluate_rows");
  check_range(checkpoint_every, 1, 1 << 24, training + ": checkpoint_every");
  check_range(optimizer.warmup_steps, 0, steps, training + ": warmup_steps");
  optimizer.check(training);
}

Recipe parse_recipe(std::string_view text, const std::string& where) {
  const json parsed = parse_strict_json(text, where);
  const JsonView document(parsed, where);
  const std::vector<std::string> sections = {"name", "task", "model", "training"};
  for (const auto& [key, value] : document.members())
    if (std::ranges::find(sections, key) == sections.end()) unknown_key(where, key, sections);
  Recipe recipe;
  recipe.name = document.at("name").text();
  const JsonView task = document.at("task"), model = document.at("model");
  recipe.task.kind = task.at("kind").text();  // which decides what other keys there are
  read_section(task, task_fields(recipe));
  recipe.model.family = model.at("family").text();  // likewise
  check_family(recipe.model.family, where + ": model");
  read_section(model, model_fields(recipe));
  if (!model.find("kv_heads")) recipe.model.kv_heads = recipe.model.heads;
  if (!model.find("mlp")) recipe.model.mlp = recipe.model.state_space() ? 0 : 4 * recipe.model.width;
  if (!model.find("context") && recipe.task.draws() && recipe.task.patch > 0)
    recipe.model.context = ShapesTask::vision(recipe.task).tokens();
  if (const auto training = document.find("training")) read_section(*training, training_fields(recipe));
  recipe.optimizer.schedule_steps = recipe.steps;
  recipe.check(where);
  return recipe;
}

Recipe load_recipe(const std::filesystem::path& file) {
  return parse_recipe(read_file(file, largest_recipe), file.string());
}

std::string recipe_json(const Recipe& recipe) {
  Recipe copy = recipe;  // fields point into it
  ordered_json out;
  out["name"] = recipe.name;
  out["task"] = section_json(task_fields(copy));
  // Left out where it is the first one: recipes older than the choice stay the same to the letter.
  if (recipe.task.grammar == TaskSettings{}.grammar) out["task"].erase("grammar");
  if (recipe.task.sentences == TaskSettings{}.sentences) out["task"].erase("sentences");
  out["model"] = section_json(model_fields(copy));
  out["training"] = section_json(training_fields(copy));
  return out.dump(2) + "\n";
}

std::string step_text(const Recipe& recipe) {
  if (recipe.task.draws()) return say("{} pictures", recipe.batch);
  if (recipe.task.translates())
    return recipe.task.sentences > 1 ? say("{} texts", recipe.batch) : say("{} sentences", recipe.batch);
  return say("{} × {} tokens", recipe.batch, recipe.model.context);
}

namespace {
/// In the words of config.json, as model_config() has it.
ModelConfig vit_config(const Recipe& recipe) {
  const ModelShape& shape = recipe.model;
  const VisionConfig vision = ShapesTask::vision(recipe.task);
  json config = {{"num_hidden_layers", shape.layers}, {"num_attention_heads", shape.heads},
                 {"hidden_size", shape.width},        {"intermediate_size", shape.mlp},
                 {"image_size", recipe.task.side},    {"patch_size", recipe.task.patch}};
  for (std::size_t i = 0; i < vision.labels.size(); ++i) config["id2label"][std::to_string(i)] = vision.labels[i];
  ModelConfig out =
      family("vit", "recipe: model: family").read_config(ConfigReader::parse(config.dump(), "recipe: model"));
  out.family = "vit";
  out.name = recipe.name;
  out.vision->preparation = vision.preparation;
  return out;
}

json state_space_keys(const ModelShape& shape) {
  json keys = {{"num_hidden_layers", shape.layers},
               {"hidden_size", shape.width},
               {"state_size", shape.states},
               {"expand", shape.expand},
               {"conv_kernel", 4},
               {"max_position_embeddings", shape.context}};
  if (shape.family == "mamba2")
    keys.update({{"num_heads", shape.heads}, {"head_dim", shape.expand * shape.width / shape.heads}, {"n_groups", 1}});
  return keys;
}
}  // namespace

ModelConfig model_config(const Recipe& recipe, const TrainedBpe& vocabulary) {
  const ModelShape& shape = recipe.model;
  const Family& kind = family(shape.family, "recipe: model: family");
  const std::size_t vocab = vocabulary.tokens.size();
  const std::int32_t end = vocabulary.end_of_text_id();
  // In the words of the family's own config.json, so that its reader checks the shape as it would a file's.
  json config = {{"vocab_size", vocab}, {"bos_token_id", end}, {"eos_token_id", end}, {"tie_word_embeddings", true}};
  if (shape.family == "gpt2")
    config.update({{"n_layer", shape.layers},
                   {"n_head", shape.heads},
                   {"n_embd", shape.width},
                   {"n_inner", shape.mlp},
                   {"n_positions", shape.context}});
  else if (shape.family == "vit")
    return vit_config(recipe);
  else if (shape.family == "bert")
    config.update({{"num_hidden_layers", shape.layers},
                   {"num_attention_heads", shape.heads},
                   {"hidden_size", shape.width},
                   {"intermediate_size", shape.mlp},
                   {"max_position_embeddings", shape.context},
                   {"type_vocab_size", 1}});
  else if (shape.family == "bart")
    config.update({{"is_encoder_decoder", true},
                   {"decoder_start_token_id", end},
                   {"encoder_layers", shape.layers},
                   {"decoder_layers", shape.layers},
                   {"encoder_attention_heads", shape.heads},
                   {"decoder_attention_heads", shape.heads},
                   {"d_model", shape.width},
                   {"encoder_ffn_dim", shape.mlp},
                   {"decoder_ffn_dim", shape.mlp},
                   {"max_position_embeddings", shape.context}});
  else if (shape.state_space())
    config.update(state_space_keys(shape));
  else
    config.update({{"num_hidden_layers", shape.layers},
                   {"num_attention_heads", shape.heads},
                   {"num_key_value_heads", shape.kv_heads},
                   {"hidden_size", shape.width},
                   {"intermediate_size", shape.mlp},
                   {"head_dim", shape.head_width()},
                   {"max_position_embeddings", shape.context}});
  if (shape.has_experts())
    config.update({{"num_local_experts", shape.experts},
                   {"num_experts_per_tok", shape.experts_per_token},
                   {"rope_theta", 10000.0}});
  ModelConfig out = kind.read_config(ConfigReader::parse(config.dump(), "recipe: model"));
  out.family = shape.family;
  out.name = recipe.name;
  if (out.encoder) {
    ModelConfig reader = *out.encoder;
    reader.family = out.family, reader.name = out.name;
    out.encoder = std::make_shared<const ModelConfig>(reader);
  }
  return out;
}

}  // namespace headscope
