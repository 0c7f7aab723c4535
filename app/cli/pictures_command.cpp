// headscope-cli pictures: what a recipe of the task "shapes" holds out, as files.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <memory>
#include <string>

#include "app/cli/commands.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/train/recipe.h"
#include "core/train/shapes_task.h"
#include "viz/export/png.h"

namespace headscope::cli {

namespace {
struct PicturesOptions {
  std::string recipe, out = ".";
  int count = 6;
};

std::string png_of(const Picture& picture, const std::string& title) {
  Image image{static_cast<int>(picture.width), static_cast<int>(picture.height), {}};
  image.rgba.resize(picture.rgb.size() / 3 * 4);
  for (std::size_t i = 0; i < picture.rgb.size(); i += 3) {
    std::uint8_t* to = image.rgba.data() + i / 3 * 4;
    to[0] = picture.rgb[i], to[1] = picture.rgb[i + 1], to[2] = picture.rgb[i + 2], to[3] = 255;
  }
  return encode_png(image, 96, {.title = title, .description = {}});
}
}  // namespace

void add_pictures(Command& app, Console& console) {
  auto options = std::make_shared<PicturesOptions>();
  Command command =
      app.add_subcommand("pictures", "Pictures that a recipe of the task shapes never learns from, as PNG");
  command.add_option("recipe", options->recipe, "Recipe, such as models/tiny-vit/recipe.json")
      .required()
      .type_name("RECIPE");
  command.add_option("-o,--out", options->out, "Folder to write into").type_name("DIR").show_default();
  command.add_option("--count", options->count, "How many").check(range(1, 10000)).show_default();
  command.does([options, &console] {
    const Recipe recipe = load_recipe(options->recipe);
    if (!recipe.task.draws())
      throw Error(options->recipe, "a recipe of the task \"shapes\"", "\"" + recipe.task.kind + "\"");
    expect_writable_folder(options->out);  // before anything is drawn
    const std::vector<DrawnPicture> pictures = ShapesTask(recipe.task).held_out_pictures(options->count);
    for (std::size_t i = 0; i < pictures.size(); ++i) {
      const std::string& shape = shape_names()[static_cast<std::size_t>(pictures[i].shape)];
      const std::filesystem::path file = std::filesystem::path(options->out) / fmt::format("{}-{}.png", i + 1, shape);
      write_file_atomically(file, png_of(pictures[i].picture, shape));
      console.print_line(fmt::format("{}  {}, patches {}", file.string(), shape, fmt::join(pictures[i].patches, ",")));
    }
  });
}

}  // namespace headscope::cli
