#include "app/state/film.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <utility>

#include "app/render/picture.h"
#include "app/state/draft_file.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/io/picture.h"
#include "viz/export/animation.h"

namespace headscope {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

std::vector<std::string> film_values(const FilmRange& range) {
  const auto& [from, to, pictures, logarithmic, whole] = range;
  std::vector<std::string> values;
  for (int i = 0; i < pictures; ++i) {
    const double t = pictures == 1 ? 0 : static_cast<double>(i) / (pictures - 1);
    const double exact = logarithmic ? from * std::pow(to / from, t) : from + t * (to - from);
    const double value = whole ? std::round(exact) : exact;
    std::string words = fmt::format("{}", std::stod(fmt::format("{:.6g}", value)));
    if (!whole || values.empty() || values.back() != words) values.push_back(std::move(words));
  }
  return values;
}

bool is_film_series(const fs::path& file) {
  const auto kind = kind_of_file(file);
  return kind && kind != FileKind::csv;
}

fs::path numbered(const fs::path& file, std::size_t number, std::size_t count) {
  const auto digits = std::to_string(count - 1).size();
  fs::path one = file;
  one.replace_filename(fmt::format("{}-{:0{}}{}", file.stem().string(), number, digits, file.extension().string()));
  return one;
}

namespace {
Image opaque(const Picture& picture) {
  Image image{static_cast<int>(picture.width), static_cast<int>(picture.height), {}};
  for (std::size_t i = 0; i < picture.rgb.size(); i += 3)
    image.rgba.insert(image.rgba.end(), {picture.rgb[i], picture.rgb[i + 1], picture.rgb[i + 2], 255});
  return image;
}
}  // namespace

std::string make_film(const FilmFile& out, std::size_t count,
                      const std::function<void(std::size_t, const fs::path&)>& draw,
                      const std::function<std::string(const fs::path&)>& recipe, const std::stop_token& stop) {
  const bool series = is_film_series(out.file);
  const DraftFile draft(".png");
  FileNote note;
  std::vector<Image> frames;
  for (std::size_t i = 0; i < count; ++i) {
    if (stop.stop_requested()) throw Cancelled();
    const fs::path file = series ? numbered(out.file, i, count) : draft.path();
    draw(i, file);
    if (series) continue;
    if (i == 0) note.recipe = recipe(file);
    frames.push_back(opaque(read_picture(file)));
  }
  if (series) return numbered(out.file, 0, count).string() + " … " + numbered(out.file, count - 1, count).string();
  if (out.back)
    for (std::size_t i = count; i-- > 2;) frames.push_back(frames[i - 1]);
  const std::size_t shown = frames.size();
  std::string ending = out.file.extension().string();
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const std::string bytes = ending == ".gif" ? encode_gif(std::move(frames), out.seconds, note.recipe)
                                             : encode_apng(std::move(frames), out.seconds, note);
  if (stop.stop_requested()) throw Cancelled();
  write_file_atomically(out.file, bytes);
  return fmt::format("{}  {} pictures, {:.3g} s", out.file.string(), shown, out.seconds * static_cast<double>(shown));
}

namespace {
using Pointer = ordered_json::json_pointer;

std::string in_words(std::string key) {
  for (char& c : key)
    if (c == '_') c = ' ';
  return key;
}

/// Every number below `at`, named by the way to it.
void add_numbers(std::vector<FilmNumber>& all, const ordered_json& at, const Pointer& place, const std::string& name) {
  if (at.is_number())
    all.push_back({name, place.to_string(), "{}", at.get<double>(), at.is_number_integer()});
  else if (at.is_object())
    for (const auto& [key, value] : at.items())
      add_numbers(all, value, place / key, (name.empty() ? "" : name + " › ") + in_words(key));
}

/// Every number of an edit's words: "temperature 0.5".
void add_edit(std::vector<FilmNumber>& all, const ordered_json& edit, const Pointer& place) {
  if (!edit.value("enabled", true)) return;
  const std::string action = edit.at("action").get<std::string>();
  for (std::size_t at = 0; at < action.size();) {
    const std::size_t end = std::min(action.find(' ', at), action.size());
    double value = 0;
    const auto [after, failure] = std::from_chars(action.data() + at, action.data() + end, value);
    if (failure == std::errc() && after == action.data() + end) {
      const std::string before = action.substr(0, at), behind = action.substr(end);
      const bool whole = value == std::floor(value) && !before.starts_with("temperature");
      all.push_back({edit.at("target").get<std::string>() + ": " + before.substr(0, before.find_last_not_of(' ') + 1),
                     (place / "action").to_string(), ordered_json(before + "{}" + behind).dump(), value, whole});
    }
    at = end + 1;
  }
}
}  // namespace

std::vector<FilmNumber> numbers_of(const PictureRecipe& picture) {
  std::vector<FilmNumber> all;
  const std::string json = to_json(picture);
  if (json.empty() || !picture.session) return all;
  const ordered_json recipe = ordered_json::parse(json);
  const ordered_json& session = recipe.at("session");
  if (!picture.page.empty()) {
    const Pointer place = Pointer("/session/window/controls") / picture.session->window.workspace;
    if (recipe.contains(place)) add_numbers(all, recipe.at(place), place, "");
    return all;
  }
  const Pointer document("/session/document");
  const ordered_json& edits = session.at("document").at("edits");
  for (std::size_t i = 0; i < edits.size(); ++i) add_edit(all, edits[i], document / "edits" / i);
  for (const auto& [key, name] : {std::pair{"selected", "selected"}, {"query", "pinned query"}, {"key", "pinned key"}})
    add_numbers(all, session.at("document").at(key), document / key, name);
  if (picture.session->view.head_view == HeadView::arcs)
    add_numbers(all, session.at("view").at("arcs_threshold"), Pointer("/session/view/arcs_threshold"),
                "threshold of arcs");
  return all;
}

PictureRecipe film_of(PictureRecipe picture, const FilmNumber& number, const std::vector<std::string>& values,
                      const FilmFile& played) {
  picture.film = {.place = number.place, .values = {}, .seconds = played.seconds, .back = played.back};
  for (const std::string& value : values) {
    std::string& json = picture.film->values.emplace_back(number.around);
    json.replace(json.find("{}"), 2, value);
  }
  for (std::size_t i = 0; i < values.size(); ++i) picture_of_film(picture, i);
  const PictureRecipe first = picture_of_film(picture, 0);  // whose state a dropped film opens
  picture.session = first.session;
  return picture;
}

PictureRecipe picture_of_film(const PictureRecipe& recipe, std::size_t i) {
  PictureRecipe picture = recipe;
  picture.film.reset();
  const std::string where = "picture " + std::to_string(i + 1) + " of the film";
  try {
    ordered_json json = ordered_json::parse(to_json(picture));
    json.at(Pointer(recipe.film->place)) = ordered_json::parse(recipe.film->values[i]);
    return picture_recipe_from_json(json.dump(), where);
  } catch (const nlohmann::json::exception&) {
    throw Error(where, "a recipe in which " + recipe.film->place + " can be " + recipe.film->values[i], "another");
  }
}

}  // namespace headscope
