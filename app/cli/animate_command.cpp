// headscope-cli animate: any command that draws a picture, over and over with one thing changed, as a film.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "app/cli/commands.h"
#include "app/cli/output.h"
#include "app/render/picture.h"
#include "app/state/film.h"
#include "app/state/picture_recipe.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "viz/export/recipe_note.h"

namespace headscope::cli {

namespace fs = std::filesystem;

namespace {
constexpr std::string_view place = "{}";

struct AnimateOptions {
  std::string out, over;
  double seconds = 0.1;
  bool logarithmic = false, back = false;
};

std::optional<double> number_in(std::string_view text) {
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

/// "0.2..5:24": 24 numbers from 0.2 to 5; "0..9": whole ones, each; nullopt where it is no range.
std::optional<std::vector<std::string>> range_in(const AnimateOptions& options) {
  const std::string_view over = options.over;
  const std::size_t dots = over.find(".."), colon = std::min(over.find(':'), over.size());
  if (dots == std::string::npos || colon < dots) return std::nullopt;
  const auto from = number_in(over.substr(0, dots)), to = number_in(over.substr(dots + 2, colon - dots - 2));
  if (!from || !to) return std::nullopt;
  const auto count = colon == over.size() ? std::abs(*to - *from) + 1 : number_in(over.substr(colon + 1)).value_or(0);
  if (count < 1 || count > most_film_pictures || count != std::floor(count) ||
      (options.logarithmic && (*from <= 0 || *to <= 0)))
    throw UsageError(fmt::format("--over: expected FROM..TO or FROM..TO:COUNT, of at most {} pictures{}, found \"{}\"",
                                 most_film_pictures, options.logarithmic ? ", and with --log above 0" : "", over));
  return film_values({*from, *to, static_cast<int>(count), options.logarithmic});
}

/// A range, or words between commas.
std::vector<std::string> values_of(const AnimateOptions& options) {
  if (auto range = range_in(options)) return *range;
  const std::string& over = options.over;
  std::vector<std::string> values;
  for (std::size_t at = 0; at <= over.size();) {
    const std::size_t end = std::min(over.find(',', at), over.size());
    values.push_back(over.substr(at, end - at));
    at = end + 1;
  }
  return values;
}

/// How a film is made: what its command says, with the texts that were read, and as state that of its first picture. ""
/// where that has none.
std::string film_recipe(PictureRecipe film, const std::vector<std::string>& command,
                        const std::vector<std::string>& drawn, const std::string& first) {
  if (first.empty()) return "";
  const PictureRecipe picture = picture_recipe_from_json(first, "the first picture");
  film.session = picture.session;
  film.command.erase(std::ranges::find(film.command, "--") + 1, film.command.end());
  for (const std::string& word : as_recorded(command, drawn, picture.command)) film.command.push_back(word);
  return to_json(film);
}

void animate(Console& console, const AnimateOptions& options) {
  const std::vector<std::string> command = console.behind;  // which obeying another one takes the place of
  const bool series = is_film_series(options.out);
  if (!series && !is_film(options.out))
    throw UsageError(
        fmt::format("-o: expected a file ending in .gif or .apng, or in .png, .svg or .pdf, which gives a "
                    "picture each, found \"{}\"",
                    options.out));
  if (series && console.pictures_only) throw UsageError("a picture of a series is drawn by its own recipe");
  if (series && options.back) throw UsageError("--back is for films");
  if (command.empty()) throw UsageError("a command that draws a picture is required, behind --");
  if (command.front() == "animate") throw UsageError("a film of a film is none");
  bool varied = false;
  for (const std::string& word : command) varied |= word.find(place) != std::string::npos;
  if (!varied) throw UsageError(fmt::format("\"{}\" is required somewhere in the command: what changes", place));
  if (std::ranges::find(command, "-") != command.end())
    throw UsageError("standard input can be read once; give the text as --text or --file");
  const std::vector<std::string> values = values_of(options);
  if (!series) expect_writable(options.out);

  const PictureRecipe recipe = recipe_of(console, options.out);
  const bool quiet = console.quiet;
  std::vector<std::string> drawn;  // the words of the picture at hand
  const auto draw = [&](std::size_t i, const fs::path& file) {
    drawn = command;
    for (std::string& word : drawn)
      for (std::size_t at = 0; (at = word.find(place, at)) != std::string::npos; at += values[i].size())
        word.replace(at, place.size(), values[i]);
    std::vector<std::string> words = drawn;
    add_words(words, {"-o", file.string()});
    std::error_code absent;
    fs::remove(file, absent);
    console.quiet = true;
    console.obey(words);
    console.quiet = quiet;
    if (!fs::exists(file, absent))
      throw UsageError(fmt::format("{}: expected a command that draws a picture", command.front()));
  };
  console.print_line(make_film(
      {options.out, options.seconds, options.back}, values.size(), draw,
      [&](const fs::path& first) { return film_recipe(recipe, command, drawn, read_recipe(first)); }, console.stop()));
}
}  // namespace

void add_animate(Command& app, Console& console) {
  auto options = std::make_shared<AnimateOptions>();
  Command command = app.add_subcommand(
      "animate", "A film of any command's pictures: animate -o f.gif --over 0.2..5:24 -- render … --temperature {}");
  command
      .add_option("-o,--out", options->out,
                  ".gif and .apng play by themselves; .png, .svg and .pdf give a numbered picture for each value")
      .required()
      .type_name("FILE");
  command
      .add_option("--over", options->over,
                  "What takes the place of {} in the command, a picture each: FROM..TO (whole steps), FROM..TO:COUNT, "
                  "or words between commas")
      .required()
      .type_name("VALUES");
  command.add_flag("--log", options->logarithmic, "Equal factors between numbers instead of equal steps");
  command.add_flag("--back", options->back, "To the end and back, for a film without a jump");
  command.add_option("--seconds", options->seconds, "How long a picture stands")
      .check(range(shortest_film_picture, longest_film_picture))
      .show_default();
  command.does([options, &console] { animate(console, *options); });
}

}  // namespace headscope::cli
