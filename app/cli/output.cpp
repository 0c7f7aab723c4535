#include "app/cli/output.h"

#include <fmt/format.h>

#include "app/render/picture.h"
#include "viz/export/pango_text.h"

namespace headscope::cli {

void Output::add_to(Command& command, const std::string& as_json, const std::string& as_csv) {
  const Option first = command.add_flag("--json", json, as_json);
  command.add_flag("--csv", csv, as_csv).excludes(first);
}

void PictureOutput::add_to(Command& command, const std::string& meaning) {
  command.add_option("-o,--out", out, meaning).type_name("FILE.png|.svg");
  command.add_option("--theme", theme, "dark, light, projector or print")
      .check(one_of({"dark", "light", "projector", "print"}))
      .type_name("THEME")
      .show_default();
}

void PictureOutput::check() const {
  if (wanted() && kind_of_file(out).value_or(FileKind::csv) == FileKind::csv)
    throw UsageError(fmt::format("-o: expected a file ending in .png or .svg, found \"{}\"", out));
}

void PictureOutput::write(Console& console, const std::function<Scene(const Style&)>& picture,
                          const std::string& model_note) const {
  if (!wanted()) return;
  const PangoText measure;
  OutputSize size;
  size.width_px = width;
  console.print_line(write_picture(picture({headscope::theme(theme), measure}), out, size, model_note));
}

}  // namespace headscope::cli
