#include "app/state/picture_recipe.h"

#include <algorithm>

#include "app/state/file_kind.h"
#include "app/state/film.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/version.h"
#include "core/io/json_view.h"
#include "core/io/strict_json.h"
#include "core/io/trace_file.h"
#include "viz/export/recipe_note.h"

namespace headscope {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace {
constexpr const char* recipe_type = "headscope picture";
constexpr std::int64_t recipe_version = 1;

ordered_json film_json(const RecipeFilm& film) {
  ordered_json out{{"place", film.place}, {"values", ordered_json::array()}};
  for (const std::string& value : film.values) out["values"].push_back(ordered_json::parse(value));
  out["seconds"] = film.seconds;
  out["back"] = film.back;
  return out;
}

RecipeFilm film_from(const JsonView& value) {
  JsonFields fields(value);
  RecipeFilm film;
  fields.read("place", film.place);
  if (const auto values = fields.find("values"))
    for (const JsonView& each : values->elements("values", 1, most_film_pictures))
      film.values.push_back(each.json().dump());
  fields.read("seconds", film.seconds, shortest_film_picture, longest_film_picture);
  fields.read("back", film.back);
  fields.done();
  if (film.values.empty()) value.refuse("values, one for each picture");
  return film;
}

constexpr double widest_room = 1e5;

RecipePicture picture_from(const JsonView& value) {
  JsonFields fields(value);
  RecipePicture picture;
  fields.read("id", picture.id);
  fields.read("width", picture.width, 0, widest_room);
  fields.read("height", picture.height, 0, widest_room);
  fields.done();
  return picture;
}

constexpr int largest_window = 1 << 15;

ordered_json shown_json(const RecipeShown& shown) {
  ordered_json out{{"id", shown.id}, {"width", shown.width}, {"height", shown.height}, {"scale", shown.scale}};
  if (shown.lesson) out["lesson"] = true;
  if (shown.present) out["present"] = true;
  if (shown.started) out["started"] = true;
  if (!shown.passing.empty()) out["passing"] = shown.passing;
  return out;
}

RecipeShown shown_from(const JsonView& value) {
  JsonFields fields(value);
  RecipeShown shown;
  fields.read("id", shown.id);
  fields.read("width", shown.width, 1, largest_window);
  fields.read("height", shown.height, 1, largest_window);
  fields.read("scale", shown.scale, 0.1, 32);
  fields.read("lesson", shown.lesson);
  fields.read("present", shown.present);
  fields.read("started", shown.started);
  fields.read("passing", shown.passing);
  fields.done();
  if (shown.width == 0 || shown.height == 0) value.refuse("the window's width and height");
  return shown;
}
}  // namespace

std::string to_json(const PictureRecipe& recipe) {
  ordered_json out{{"type", recipe_type}, {"version", recipe_version}, {"program", recipe.program}};
  if (!recipe.device.empty()) out["device"] = recipe.device;
  if (!recipe.weights.empty()) out["weights"] = recipe.weights;
  if (!recipe.language.empty()) out["language"] = recipe.language;
  if (!recipe.command.empty()) {
    out["command"] = recipe.command;
    out["folder"] = recipe.folder.generic_string();
  } else {
    out["dpi"] = recipe.dpi;
    out["all_heads"] = recipe.all_heads;
    out["for_print"] = recipe.for_print;
    if (!recipe.page.empty()) out["page"] = recipe.page;
    if (const auto& of = recipe.picture)
      out["picture"] = ordered_json{{"id", of->id}, {"width", of->width}, {"height", of->height}};
  }
  try {
    if (recipe.shown) out["shown"] = shown_json(*recipe.shown);
    if (recipe.film) out["film"] = film_json(*recipe.film);
    if (recipe.session) out["session"] = ordered_json::parse(to_json(*recipe.session));
    return out.dump(-1, ' ', true);
  } catch (const nlohmann::json::exception&) {
    return "";
  } catch (const Error&) {
    return "";
  }
}

std::string computed_by(const PictureRecipe& recipe) {
  std::string words = recipe.device;
  if (!recipe.weights.empty()) words += (words.empty() ? "weights " : ", weights ") + recipe.weights;
  return words;
}

PictureRecipe picture_recipe_from_json(const std::string& json, const std::string& where) {
  const nlohmann::json parsed = parse_strict_json(json, where, 32);
  JsonFields fields(parsed, where);
  expect_kind(fields, where, "a picture's recipe", recipe_type, recipe_version);
  PictureRecipe recipe;
  fields.read("program", recipe.program);
  fields.read("device", recipe.device);
  fields.read("weights", recipe.weights);
  fields.read("language", recipe.language);
  if (const auto words = fields.find("command"))
    for (const JsonView& word : words->elements("words")) recipe.command.push_back(word.text());
  fields.read("folder", recipe.folder);
  fields.read("dpi", recipe.dpi, 1, 1e6);
  fields.read("all_heads", recipe.all_heads);
  fields.read("for_print", recipe.for_print);
  fields.read("page", recipe.page);
  if (const auto picture = fields.find("picture")) recipe.picture = picture_from(*picture);
  if (const auto shown = fields.find("shown")) recipe.shown = shown_from(*shown);
  if (const auto film = fields.find("film")) recipe.film = film_from(*film);
  if (const auto session = fields.find("session"))
    recipe.session = session_from_json(session->json().dump(), session->where());
  fields.done();
  if (recipe.command.empty() && !recipe.session) throw Error(where, "a command or a session", "neither");
  return recipe;
}

PictureRecipe read_picture_recipe(const fs::path& file) {
  const bool capture = file.extension() == ".safetensors";
  const std::string json = capture ? recipe_of_trace(file) : read_recipe(file);
  if (json.empty())
    throw Error(
        file.string(), std::string(capture ? "a capture" : "a picture") + " with its recipe, as Headscope writes it",
        "no recipe",
        capture ? "those of older versions have none, and none do that were written with --no-recipe"
                : "programs that change a picture drop what they do not know; the file as it was written has it");
  PictureRecipe recipe = picture_recipe_from_json(json, file.string() + ": recipe");
  if (recipe.session) {
    Document& document = recipe.session->document;
    document.model = find_model(document.model, file);
    document.image = find_image(document.image, file);
    document.sound = find_sound(document.sound, file);
    if (recipe.session->transcript) recipe.session->transcript->prompt.model = document.model;
  }
  return recipe;
}

std::vector<std::string> without_option(std::vector<std::string> words, const std::string& brief,
                                        const std::string& full, const std::string& value) {
  const auto end = std::ranges::find(words, "--");
  for (auto at = end; at != words.begin();) {
    --at;
    const bool alone = *at == full + "=" + value || (!brief.empty() && *at == brief + value);
    const bool apart = (*at == full || *at == brief) && at + 1 != end && *(at + 1) == value;
    if (!alone && !apart) continue;
    words.erase(at, at + (apart ? 2 : 1));
    break;
  }
  return words;
}

std::vector<std::string> without_word(std::vector<std::string> words, const std::string& word) {
  for (auto at = std::ranges::find(words, "--"); at != words.begin();)
    if (*--at == word) {
      words.erase(at);
      break;
    }
  return words;
}

std::vector<std::string> as_recorded(const std::vector<std::string>& words, const std::vector<std::string>& drawn,
                                     const std::vector<std::string>& recorded) {
  std::vector<std::string> out;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < std::min(words.size(), drawn.size()); ++i) {
    if (kept < recorded.size() && recorded[kept] == drawn[i])
      out.push_back(words[i]), ++kept;
    else if (words[i] != drawn[i])
      return words;
  }
  if (kept == recorded.size()) return out;
  if (kept + 1 != recorded.size() || !recorded[kept].starts_with("--text=")) return words;
  out.push_back(recorded[kept]);
  return out;
}

void add_words(std::vector<std::string>& words, const std::vector<std::string>& more) {
  words.insert(std::ranges::find(words, "--"), more.begin(), more.end());
}

}  // namespace headscope
