#include "app/cli/again.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "app/cli/command_options.h"
#include "app/cli/input.h"
#include "app/cli/output.h"
#include "app/cli/window_program.h"
#include "app/state/draft_file.h"
#include "app/state/page_drawer.h"
#include "app/state/recipe_picture.h"
#include "app/state/window_words.h"
#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/file.h"
#include "core/base/version.h"
#include "core/base/words.h"
#include "core/io/picture.h"
#include "core/io/safetensors.h"
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
  Aside(Console& console, const fs::path& folder, std::string_view but_for) : console_(console) {
    std::error_code failed;
    here_ = fs::current_path(failed);
    fs::current_path(folder, failed);
    quiet_ = std::exchange(console_.quiet, true);
    console_.pictures_only = true;
    console_.but_for = but_for;
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

/// The words that a picture is drawn with, which the command line has not got itself.
class SpokenAs {
 public:
  SpokenAs(const PictureRecipe& recipe, const fs::path& picture) {
    speak_as_in(recipe.language, picture.string() + ": recipe");
  }
  ~SpokenAs() { use_words({}); }
  SpokenAs(const SpokenAs&) = delete;
  SpokenAs& operator=(const SpokenAs&) = delete;
};

/// By the command line that drew it, where that was given, or beside the picture where that folder is not there.
/// `but_for`: a command that does more than to draw, and may be obeyed.
void draw_by_command(Console& console, const PictureRecipe& recipe, const fs::path& picture, const fs::path& out,
                     std::string_view but_for = {}) {
  std::vector<std::string> words = recipe.command;
  add_words(words, {"-o", out.string()});
  std::error_code failed;
  const Aside aside(console, fs::is_directory(recipe.folder, failed) ? recipe.folder : picture.parent_path(), but_for);
  try {
    console.obey(words);
  } catch (const UsageError& error) {
    throw Error(picture.string() + ": recipe", "a command that draws a picture, and that this version knows",
                excerpt(error.what(), 300), "it is of headscope-cli " + excerpt(recipe.program, 20));
  }
}

/// As the window drew its view of a head or a picture of a page, or a film of either.
void draw_by_session(Console& console, PictureRecipe recipe, const std::string& where, const fs::path& out) {
  recipe.program = program_version;
  recipe.device = console.backend().name();
  if (recipe.picture) {
    Explorer::Options options;
    options.threads = console.threads;
    options.device = console.device_choice();
    options.devices = console.devices;
    return console.with_progress(
        "page", [&](const Ctx& ctx) { draw_page(recipe, where, out, !console.plain_pictures, options, ctx); });
  }
  const LoadedModel loaded = load_model(recipe.session->document.model, console.backend());
  if (recipe.film)
    return console.with_progress("film",
                                 [&](const Ctx& ctx) { draw_film(recipe, loaded, out, !console.plain_pictures, ctx); });
  const Opened opened = run_request(console, loaded, request_of(recipe));
  recipe.weights = opened.trace->model.dtype;
  draw_recipe(recipe, opened.loaded, opened.trace, out, note_of(console, recipe, recipe.session->model_note));
}

/// Why it may not be what it was. `did`: what the program did to make it, "drew"; `changed`: what may be another now.
std::string why_other(const Console& console, const PictureRecipe& before, const char* did, const char* changed) {
  PictureRecipe now;
  now.device = console.computed_on();
  if (!before.weights.empty()) now.weights = console.weights.empty() ? before.weights : console.weights;
  if (before.program != program_version)
    return fmt::format("Headscope {} {} it, this is {}", excerpt(before.program, 20), did, program_version);
  if (!before.device.empty() && !now.device.empty() && computed_by(before) != computed_by(now))
    return fmt::format("it was computed by {}, now by {}", excerpt(computed_by(before), 80), computed_by(now));
  return fmt::format("{} have changed{}", changed, before.device.empty() ? ", or another device computes" : "");
}

/// What two files of tensors differ in; "" = nothing.
std::string what_differs(const fs::path& before, const fs::path& now) {
  const SafetensorsFile a = SafetensorsFile::open(before), b = SafetensorsFile::open(now);
  std::size_t different = 0;
  std::string worst;
  double most = -1;
  for (const auto& [name, entry] : a.tensors()) {
    if (!b.contains(name)) return fmt::format("no tensor {}", excerpt(name));
    const TensorEntry& other = b.entry(name);
    if (entry.dtype != other.dtype || entry.shape != other.shape)
      return fmt::format("{} is {} [{}] instead of {} [{}]", excerpt(name), dtype_name(other.dtype),
                         fmt::join(other.shape, ", "), dtype_name(entry.dtype), fmt::join(entry.shape, ", "));
    if (entry.items<std::byte>() == other.items<std::byte>()) continue;
    ++different;
    if (entry.dtype != DType::f32) {
      worst = excerpt(name), most = std::numeric_limits<double>::infinity();
      continue;
    }
    const std::vector<float> x = entry.items<float>(), y = other.items<float>();
    for (std::size_t i = 0; i < x.size(); ++i)
      if (std::bit_cast<std::uint32_t>(x[i]) != std::bit_cast<std::uint32_t>(y[i])) {
        const double gap = std::abs(static_cast<double>(x[i]) - static_cast<double>(y[i]));
        if (const double far = std::isfinite(gap) ? gap : std::numeric_limits<double>::infinity(); far > most)
          most = far, worst = excerpt(name);
      }
  }
  for (const auto& [name, entry] : b.tensors())
    if (!a.contains(name)) return fmt::format("a tensor {} more", excerpt(name));
  if (different == 0) return "";
  return fmt::format("{} of {} tensors are different, {} {}", different, a.tensors().size(), worst,
                     std::isfinite(most) ? fmt::format("by up to {:.2g}", most) : "by more than any number");
}

/// Whether the command line has no option of this command but these two.
bool asked_alone(const Console& console, const std::string& picture, const std::string& out,
                 const std::string& command = "render") {
  const auto asked = without_option(console.words, "", "--again", picture);
  const auto rest = out.empty() ? asked : without_option(asked, "-o", "--out", out);
  static constexpr std::string_view of_program[] = {"--threads", "--device", "--precision"};
  for (std::size_t i = 0; i < rest.size(); ++i) {
    const std::string name = rest[i].substr(0, rest[i].find('='));
    const bool known = std::ranges::find(of_program, name) != std::end(of_program);
    if (!known && name != command && name != "--no-recipe") return false;
    if (known && name == rest[i]) ++i;  // its value is the next word
  }
  return true;
}
}  // namespace

void capture_again(Console& console, const fs::path& file, const fs::path& out) {
  if (!asked_alone(console, file.string(), out.string(), "capture"))
    throw UsageError("--again does what the file says: of capture's options only -o goes with it");
  const PictureRecipe recipe = read_picture_recipe(file);
  if (recipe.command.empty()) throw Error(file.string() + ": recipe", "the command that captured it", "none");
  std::error_code failed;
  if (!out.empty() && fs::equivalent(file, out, failed))
    throw Error("-o", "another file than the one that is made again", file.string(), "it would be lost");
  if (!out.empty()) expect_writable(out);
  std::optional<DraftFile> draft;
  if (out.empty()) draft.emplace(file.extension().string());
  const fs::path target = draft ? draft->path() : fs::absolute(out);
  if (std::ranges::find(recipe.command, "capture") == recipe.command.end())
    throw Error(file.string() + ": recipe", "the command capture", "another");
  draw_by_command(console, recipe, fs::absolute(file), target, "capture");
  if (!out.empty()) console.print_line(out.string());
  const std::string different = what_differs(file, target);
  if (different.empty()) return console.print_line("the same as " + file.string());
  const std::string why = why_other(console, recipe, "made", "the model's files");
  if (out.empty()) throw Error(file.string(), "the same numbers again", different, why);
  console.say(fmt::format("note: not as in {}: {}; {}", file.string(), different, why));
}

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
  if (!out.empty()) expect_writable(out);
  const PictureRecipe recipe = read_picture_recipe(picture);
  if (!recipe.page.empty() && !recipe.picture && !recipe.shown)
    throw Error(
        picture.string(), "of a picture of a page, which one it is and of how large a window",
        fmt::format("“{}” of an older version, Headscope {}", excerpt(recipe.page, 100), excerpt(recipe.program, 20)),
        "drop it on the window, or: headscope " + picture.string());
  if (recipe.film && !film) throw Error(picture.string(), "a picture's recipe", "one of a film");
  const std::string before = read_file(picture, picture_limit);
  std::optional<DraftFile> draft;
  if (out.empty()) draft.emplace(picture.extension().string());
  const fs::path target = draft ? draft->path() : fs::absolute(out);
  std::optional<SpokenAs> words(std::in_place, recipe, picture);
  if (!recipe.page.empty() && !recipe.picture)
    run_window_program(console, picture.string(), {"--again=" + picture.string(), "--out=" + target.string()});
  else if (recipe.command.empty())
    draw_by_session(console, recipe, picture.string(), target);
  else
    draw_by_command(console, recipe, fs::absolute(picture), target);
  words.reset();
  if (!out.empty()) console.print_line(out.string());
  const std::string ending = ending_of(picture);
  if (ending_of(target) != ending) return console.say("note: of another kind of file, so not compared");
  const std::string different = what_differs(ending, before, read_file(target, picture_limit));
  if (different.empty()) return console.print_line("the same as " + picture.string());
  const std::string versions = why_other(console, recipe, "drew", "the model's files or the fonts");
  if (out.empty()) throw Error(picture.string(), "the same picture again", different, versions);
  console.say(fmt::format("note: not as in {}: {}; {}", picture.string(), different, versions));
}

}  // namespace headscope::cli
