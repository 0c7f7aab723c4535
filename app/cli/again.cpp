#include "app/cli/again.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "app/cli/command_options.h"
#include "app/cli/input.h"
#include "app/cli/output.h"
#include "app/state/draft_file.h"
#include "app/state/recipe_picture.h"
#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/file.h"
#include "core/base/version.h"
#include "core/io/picture.h"
#include "viz/export/pdf.h"
#include "viz/export/png.h"
#include "viz/export/recipe_note.h"
#include "viz/export/svg.h"

namespace headscope::cli {

namespace fs = std::filesystem;

namespace {
constexpr std::size_t picture_limit = std::size_t{1} << 30;

/// What is drawn in an SVG: without what it says of itself.
std::string drawing(std::string svg) {
  for (const auto& [begin, end] :
       {std::pair<std::string_view, std::string_view>{svg_recipe_begin, "</metadata>"}, {"<desc>", "</desc>"}}) {
    const std::size_t from = svg.find(begin);
    if (from == std::string::npos) continue;
    svg.erase(from, svg.find(end, from) - from);
  }
  return svg;
}

/// In small letters.
std::string ending_of(const fs::path& file) {
  std::string ending = file.extension().string();
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return ending;
}

/// What is shown of an animated PNG: without what it says of itself.
std::string frames(std::string_view apng) {
  std::string out;
  for (const char* type : {"IHDR", "acTL", "fcTL", "IDAT", "fdAT"}) out += png_chunks(apng, type);
  return out;
}

/// "" = nothing. `ending`: of both.
std::string what_differs(const std::string& ending, const std::string& before, const std::string& now) {
  if (ending == ".gif") return gif_without_recipe(before) == gif_without_recipe(now) ? "" : "the film is different";
  if (ending == ".apng") return frames(before) == frames(now) ? "" : "the film is different";
  const FileKind kind = kind_of_file("a" + ending).value_or(FileKind::png);
  if (kind == FileKind::csv) return before == now ? "" : "the numbers are different";
  if (kind == FileKind::pdf) return pdf_drawing(before) == pdf_drawing(now) ? "" : "the drawing is different";
  if (kind == FileKind::svg) return drawing(before) == drawing(now) ? "" : "the drawing is different";
  if (png_chunks(before, "IHDR") == png_chunks(now, "IHDR") && png_chunks(before, "IDAT") == png_chunks(now, "IDAT"))
    return "";
  const Picture a = decode_picture(before, "the picture"), b = decode_picture(now, "the one drawn now");
  if (a.width != b.width || a.height != b.height)
    return fmt::format("{} × {} pixels instead of {} × {}", b.width, b.height, a.width, a.height);
  std::size_t different = 0;
  for (std::size_t i = 0; i < a.rgb.size(); i += 3)
    different += a.rgb[i] != b.rgb[i] || a.rgb[i + 1] != b.rgb[i + 1] || a.rgb[i + 2] != b.rgb[i + 2];
  return different == 0 ? "" : fmt::format("{} of {} pixels are different", different, a.rgb.size() / 3);
}

/// Where relative paths of the command begin; and the console, once its words are a stranger's.
class Aside {
 public:
  Aside(Console& console, const fs::path& folder) : console_(console) {
    std::error_code failed;
    here_ = fs::current_path(failed);
    fs::current_path(folder, failed);
    quiet_ = std::exchange(console_.quiet, true);
    console_.pictures_only = true;
  }
  ~Aside() {
    std::error_code failed;
    fs::current_path(here_, failed);
    console_.quiet = quiet_;
    console_.pictures_only = false;
  }
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;

 private:
  Console& console_;
  fs::path here_;
  bool quiet_ = false;
};

/// By the command line that drew it, where that was given, or beside the picture where that folder is not there.
void draw_by_command(Console& console, const PictureRecipe& recipe, const fs::path& picture, const fs::path& out) {
  std::vector<std::string> words = recipe.command;
  add_words(words, {"-o", out.string()});
  std::error_code failed;
  const Aside aside(console, fs::is_directory(recipe.folder, failed) ? recipe.folder : picture.parent_path());
  try {
    console.obey(words);
  } catch (const UsageError& error) {
    throw Error(picture.string() + ": recipe", "a command that draws a picture, and that this version knows",
                excerpt(error.what(), 300), "it is of headscope-cli " + excerpt(recipe.program, 20));
  }
}

/// As the window drew its view of a head, or a film of that.
void draw_by_session(Console& console, PictureRecipe recipe, const fs::path& out) {
  recipe.program = program_version;
  const LoadedModel loaded = load_model(recipe.session->document.model, console.backend());
  if (recipe.film)
    return console.with_progress("film",
                                 [&](const Ctx& ctx) { draw_film(recipe, loaded, out, !console.plain_pictures, ctx); });
  const Opened opened = run_request(console, loaded, request_of(recipe));
  draw_recipe(recipe, opened.loaded, opened.trace, out, note_of(console, recipe, recipe.session->model_note));
}

/// Whether the command line has no option of `render` but these two.
bool asked_alone(const Console& console, const std::string& picture, const std::string& out) {
  const auto asked = without_option(console.words, "", "--again", picture);
  const auto rest = out.empty() ? asked : without_option(asked, "-o", "--out", out);
  static constexpr std::string_view of_program[] = {"--threads", "--device", "--precision"};
  for (std::size_t i = 0; i < rest.size(); ++i) {
    const std::string name = rest[i].substr(0, rest[i].find('='));
    const bool known = std::ranges::find(of_program, name) != std::end(of_program);
    if (!known && name != "render" && name != "--no-recipe") return false;
    if (known && name == rest[i]) ++i;  // its value is the next word
  }
  return true;
}
}  // namespace

void draw_again(Console& console, const fs::path& picture, const fs::path& out) {
  const bool film = is_film(picture);
  if (!film && !kind_of_file(picture))
    throw UsageError(fmt::format("--again: expected a .png, .svg, .pdf or .csv, or a film, .gif or .apng, found \"{}\"",
                                 picture.string()));
  if (film && !out.empty() && !is_film(out))
    throw UsageError(fmt::format("-o: expected a file ending in .gif or .apng, found \"{}\"", out.string()));
  if (!film && !out.empty() && !kind_of_file(out))
    throw UsageError(fmt::format("-o: expected a file ending in .png, .svg, .pdf or .csv, found \"{}\"", out.string()));
  if (!asked_alone(console, picture.string(), out.string()))
    throw UsageError("--again draws what the file says: of render's options only -o goes with it");
  const PictureRecipe recipe = read_picture_recipe(picture);
  if (!recipe.page.empty())
    throw Error(picture.string(), "a picture of the command line or of a head",
                fmt::format("“{}”, drawn by the window's workspace {}", recipe.page,
                            recipe.session ? recipe.session->window.workspace : ""),
                "drop it on the window, or: headscope " + picture.string());
  if (recipe.film && !film) throw Error(picture.string(), "a picture's recipe", "one of a film");
  const std::string before = read_file(picture, picture_limit);
  std::optional<DraftFile> draft;
  if (out.empty()) draft.emplace(picture.extension().string());
  const fs::path target = draft ? draft->path() : fs::absolute(out);
  if (recipe.command.empty())
    draw_by_session(console, recipe, target);
  else
    draw_by_command(console, recipe, fs::absolute(picture), target);
  if (!out.empty()) console.print_line(out.string());
  const std::string ending = ending_of(picture);
  if (ending_of(target) != ending) return console.say("note: of another kind of file, so not compared");
  const std::string different = what_differs(ending, before, read_file(target, picture_limit));
  if (different.empty()) return console.print_line("the same as " + picture.string());
  const std::string versions =
      recipe.program == program_version
          ? "the model's files or the fonts have changed, or another device computes"
          : fmt::format("Headscope {} drew it, this is {}", excerpt(recipe.program, 20), program_version);
  if (out.empty()) throw Error(picture.string(), "the same picture again", different, versions);
  console.say(fmt::format("note: not as in {}: {}; {}", picture.string(), different, versions));
}

}  // namespace headscope::cli
