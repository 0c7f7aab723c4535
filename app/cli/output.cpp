#include "app/cli/output.h"

#include <fmt/format.h>

#include "core/base/file.h"
#include "core/base/version.h"
#include "core/io/sound.h"
#include "viz/export/pango_text.h"

namespace headscope::cli {

namespace fs = std::filesystem;

void Output::add_to(Command& command, const std::string& as_json, const std::string& as_csv) {
  const Option first = command.add_flag("--json", json, as_json);
  command.add_flag("--csv", csv, as_csv).excludes(first);
}

void PictureOutput::add_to(Command& command, const std::string& meaning) {
  command.add_option("-o,--out", out, meaning).type_name("FILE.png|.svg|.pdf");
  command.add_option("--theme", theme, "dark, light, projector or print")
      .check(one_of({"dark", "light", "projector", "print"}))
      .type_name("THEME")
      .show_default();
}

void PictureOutput::check() const {
  if (wanted() && kind_of_file(out).value_or(FileKind::csv) == FileKind::csv)
    throw UsageError(fmt::format("-o: expected a file ending in .png, .svg or .pdf, found \"{}\"", out));
  if (wanted()) expect_writable(out);
}

void PictureOutput::write(Console& console, const std::function<Scene(const Style&)>& picture, const Input* input,
                          const std::string& model_note) const {
  if (!wanted()) return;
  const PangoText measure;
  OutputSize size;
  size.width_px = width;
  console.print_line(write_picture(picture({headscope::theme(theme), measure}), out, size,
                                   note_of(console, recipe_of(console, out, input), model_note)));
}

PictureRecipe recipe_of(const Console& console, const std::string& out, const Input* input) {
  PictureRecipe recipe;
  recipe.program = program_version;
  recipe.device = console.computed_on();
  recipe.weights = console.weights;
  recipe.command = without_option(console.words, "-o", "--out", out);
  std::error_code nowhere;
  recipe.folder = fs::current_path(nowhere);
  if (!input || !input->asked->request) return recipe;
  const RunRequest& request = *input->asked->request;
  if (!input->asked->read.empty()) {  // the file may hold something else by then
    recipe.command = input->dash.empty() ? without_option(recipe.command, "-f", "--file", input->file)
                                         : without_word(recipe.command, input->dash);
    add_words(recipe.command, {"--text=" + input->asked->read});
  }
  if (!request.source_ids.empty()) return recipe;  // of which a session knows nothing
  Session session;
  session.document = document_of(request);
  session.document.model = fs::absolute(request.model, nowhere);
  if (fs::exists(request.image, nowhere)) session.document.image = fs::absolute(request.image, nowhere);
  if (fs::exists(sound_place(request.sound).file, nowhere))
    session.document.sound = fs::absolute(request.sound, nowhere);
  session.document.stack = input->stack();
  session.window.workspace = "Explore";
  recipe.session = session;
  return recipe;
}

PictureNote note_of(const Console& console, const PictureRecipe& recipe, const std::string& model_note) {
  return {model_note, console.plain_pictures ? "" : to_json(recipe)};
}

}  // namespace headscope::cli
