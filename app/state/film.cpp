#include "app/state/film.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <utility>

#include "app/render/picture.h"
#include "app/state/draft_file.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/io/picture.h"
#include "core/trace/model_heads.h"
#include "core/trace/words.h"
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
    frames.push_back(opaque(read_picture(file)));
    if (i > 0) continue;
    note.recipe = recipe(file);
    const double all = static_cast<double>(frames[0].rgba.size()) * static_cast<double>(out.back ? 2 * count : count);
    if (all > most_film_bytes)
      throw Error(
          out.file.string(),
          fmt::format("at most {:.1f} GB of pictures, which are put together in memory: fewer of them, or fewer "
                      "dots per inch",
                      most_film_bytes / 1e9),
          fmt::format("{} of {} × {}, {:.1f} GB", count, frames[0].width, frames[0].height, all / 1e9));
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
  return say("{}  {} pictures, {:.3g} s", out.file.string(), shown, out.seconds * static_cast<double>(shown));
}

namespace {
using Pointer = ordered_json::json_pointer;

std::string in_words(std::string key) {
  std::ranges::replace(key, '_', ' ');
  return key;
}

/// From what it is now on to twice that: where a number may go, only its control knows.
FilmRange around(double now, bool whole) {
  const double to = now == 0 ? 1 : 2 * now;
  return {now, to, 24, false, whole};
}

/// All that a control takes, where that is no more than a film can show; else from what it is now on, whole numbers
/// one by one.
FilmRange range_of(const ControlsRecord::Number& number) {
  const auto& [place, now, low, high, whole, by_factors] = number;
  const bool factors = by_factors && low > 0;
  if (high - low <= 20 * std::max(std::abs(now), 1.0) || (whole && high - low < 48) || (factors && high <= 1e4 * low))
    return {low, high, whole ? static_cast<int>(std::min(high - low + 1, 48.0)) : 24, factors, whole};
  FilmRange range = whole ? FilmRange{now, now + 23, 24, false, true} : around(now, false);
  range.to = std::min(range.to, high);
  range.logarithmic = factors;
  return range;
}

/// Whether an edit takes fractions where it says a number now.
bool takes_fractions(const Intervention& edit, const std::string& before, double now, const std::string& behind) {
  try {
    const std::string words = describe(edit);
    const std::string target = words.substr(0, words.find(": ") + 2);
    parse_intervention(target + before + fmt::format("{}", std::floor(now) + 0.5) + behind, "");
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// Every number of an edit's words: "temperature 0.5".
void add_edit(std::vector<FilmChoice>& all, const PictureRecipe& picture, const Intervention& edit,
              const Pointer& place) {
  const std::string words = describe(edit), target = words.substr(0, words.find(": ") + 2);
  const std::string action = words.substr(target.size());
  for (std::size_t at = 0; at < action.size();) {
    const std::size_t end = std::min(action.find(' ', at), action.size());
    double now = 0;
    const auto [after, failure] = std::from_chars(action.data() + at, action.data() + end, now);
    if (failure == std::errc() && after == action.data() + end) {
      const std::string before = action.substr(0, at), behind = action.substr(end);
      all.push_back({picture, target + before + "…" + behind, (place / "action").to_string(),
                     ordered_json(before + "{}" + behind).dump(),
                     around(now, !takes_fractions(edit, before, now, behind))});
    }
    at = end + 1;
  }
}

void add_temperature(std::vector<FilmChoice>& all, PictureRecipe picture, EditScope scope, const std::string& name) {
  Document& document = picture.session->document;
  set_temperature(document.edits, target_of(scope, document.selected, document.stack), 2);  // 1 would be no edit
  const Pointer place = Pointer("/session/document/edits") / (document.edits.size() - 1) / "action";
  all.push_back({picture, name, place.to_string(), "\"temperature {}\"", {0.2, 5, 24, true, false}});
}

/// Of texts that a film's recipe holds, each longer by a word than the one before it.
constexpr std::size_t most_growing_bytes = std::size_t{1} << 20;

/// The text as it grows word by word.
void add_growing_text(std::vector<FilmChoice>& all, const PictureRecipe& picture, const Trace& trace) {
  const Document& document = picture.session->document;
  if (!document.ids.empty() || document.text != trace.text) return;
  const std::vector<Token>& tokens = trace.queries();
  std::vector<std::string> texts;
  std::size_t until = 0, bytes = 0;
  const WordGroups words = word_groups(tokens);
  for (Index word = 0; word < words.words() && bytes < most_growing_bytes; ++word) {
    const int end = nth(tokens, words.tokens_of(word).end - 1).end;  // −1: a special token
    if (end <= static_cast<int>(until)) continue;
    until = static_cast<std::size_t>(end);
    texts.push_back(ordered_json(document.text.substr(0, until)).dump());
    bytes += until;
  }
  if (texts.size() < 2 || texts.size() > most_film_pictures) return;
  const auto count = static_cast<double>(texts.size());
  FilmChoice& choice = all.emplace_back();
  choice = {picture,
            said("Words of the text"),
            "/session/document/text",
            "",
            {1, count, static_cast<int>(count), false, true},
            1,
            count,
            std::move(texts),
            0.5};
}
}  // namespace

std::vector<FilmChoice> film_choices(const PictureRecipe& picture, const Trace* trace,
                                     const std::vector<ControlsRecord::Number>& numbers) {
  std::vector<FilmChoice> all;
  if (!picture.session) return all;
  if (!picture.page.empty()) {
    const Pointer controls = Pointer("/session/window/controls") / picture.session->window.workspace;
    for (const ControlsRecord::Number& number : numbers) {
      const Pointer place = controls / Pointer(number.place);
      all.push_back(
          {picture, in_words(place.back()), place.to_string(), "{}", range_of(number), number.low, number.high});
    }
    return all;
  }
  const auto& [document, view, transcript, window, note] = *picture.session;
  const std::string layer = std::to_string(document.selected.layer), head = std::to_string(document.selected.head);
  add_temperature(all, picture, EditScope::head, say("Temperature of head {}.{}", layer, head));
  add_temperature(all, picture, EditScope::layer, say("Temperature of layer {}", layer));
  add_temperature(all, picture, EditScope::all, said("Temperature of all heads"));
  const Pointer place("/session/document");
  for (std::size_t i = 0; i < document.edits.size(); ++i)
    if (document.edits[i].enabled) add_edit(all, picture, document.edits[i], place / "edits" / i);
  if (trace) add_growing_text(all, picture, *trace);
  const auto one_of = [&](const char* name, const char* where, Index count) {
    const double last = static_cast<double>(count - 1);
    if (count > 1)
      all.push_back({picture,
                     name,
                     std::string("/session/document/") + where,
                     "{}",
                     {0, last, static_cast<int>(std::min<Index>(count, most_film_pictures)), false, true}});
  };
  if (trace) {
    const ModelDims& dims = trace->model.dims;
    // Of a head that every layer has.
    if (document.selected.head < std::min(dims.heads, dims.heads_of_states()))
      one_of(said("Layer"), "selected/layer", dims.layers);
    one_of(said("Head"), "selected/head", dims.heads_of(nearest_head(dims, document.selected).layer));
    if (const Index rows = static_cast<Index>(trace->queries().size());
        document.query || view.head_view == HeadView::row)
      one_of(said("Row: the query"), "query", rows);
  }
  if (view.head_view == HeadView::arcs)
    all.push_back(
        {picture, said("Threshold of the arcs"), "/session/view/arcs_threshold", "{}", {0, 0.5, 24, false, false}});
  return all;
}

PictureRecipe film_of(const FilmChoice& choice, const std::vector<std::string>& values, double seconds, bool back) {
  PictureRecipe film = choice.picture;
  film.film = {.place = choice.place, .values = {}, .seconds = seconds, .back = back};
  for (const std::string& value : values) {
    std::string& json = film.film->values.emplace_back(choice.around);
    if (choice.instead.empty())
      json.replace(json.find("{}"), 2, value);
    else
      json = nth(choice.instead, std::stoi(value) - 1);
  }
  for (std::size_t i = values.size(); i-- > 1;) picture_of_film(film, i);
  film.session = picture_of_film(film, 0).session;  // whose state a dropped film opens
  return film;
}

PictureRecipe picture_of_film(const PictureRecipe& recipe, std::size_t i) {
  PictureRecipe picture = recipe;
  picture.film.reset();
  const std::string where = "picture " + std::to_string(i + 1) + " of the film";
  try {
    ordered_json json = ordered_json::parse(to_json(picture));
    json[Pointer(recipe.film->place)] = ordered_json::parse(recipe.film->values[i]);
    return picture_recipe_from_json(json.dump(), where);
  } catch (const nlohmann::json::exception&) {
    throw Error(where, "a recipe in which " + recipe.film->place + " can be " + recipe.film->values[i], "another");
  }
}

bool shows_picture_of(const PictureRecipe& film, std::size_t i, const Session& session) {
  PictureRecipe now = film;
  now.film.reset();
  now.session = session;
  const ordered_json json = ordered_json::parse(to_json(now));
  const Pointer place(film.film->place);
  return json.contains(place) && json.at(place) == ordered_json::parse(film.film->values[i]);
}

}  // namespace headscope
