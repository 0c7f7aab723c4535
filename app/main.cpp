// headscope: the window. headscope-cli is the command line for everything that needs no display.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <tuple>

#include "app/widgets/controls.h"
#include "app/window/options.h"
#include "app/window/shell.h"
#include "app/window/window.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "viz/export/png.h"

namespace {

using namespace headscope;

/// Frames until layout, fonts and delayed glyphs have settled.
constexpr int warm_up_frames = 5;

ShellContent explore() {
  ShellContent content;
  content.workspaces = {{"Explore", true, ""}};
  content.left = [](Ui& ui) {
    empty_state(ui, "No prompt yet", "Open a model, then write the text that its heads shall read.");
  };
  content.middle = [](Ui& ui) {
    empty_state(ui, "No model is open",
                "Drop the folder of a model here, or name it on the command line: headscope FOLDER");
  };
  content.right = [](Ui& ui) {
    empty_state(ui, "No head is chosen", "Numbers about the chosen head and the next tokens will stand here.");
  };
  return content;
}

int show(const AppOptions& options) {
  WindowOptions wanted;
  if (options.width > 0) wanted.width = options.width, wanted.height = options.height;
  if (!options.theme.empty()) wanted.theme = options.theme;
  wanted.scale = options.scale;
  wanted.offscreen = options.screenshot.has_value();
  Window window(wanted);
  ShellLayout layout;
  const ShellContent content = explore();
  const auto draw = [&](Ui& ui) { draw_shell(ui, content, layout); };
  if (options.screenshot) {
    for (int i = 0; i < warm_up_frames; ++i) window.frame(draw);
    write_file_atomically(*options.screenshot,
                          encode_png(window.capture(), 96 * (options.scale > 0 ? options.scale : 1)));
    return 0;
  }
  while (!window.closing()) {
    window.wait();
    window.frame(draw);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App cli(
      "Headscope: see and change what attention does inside a transformer.\n"
      "headscope-cli does the same without a display.",
      "headscope");
  AppOptions options;
  std::string size;
  cli.add_option("model", options.model, "folder of a model to open")->type_name("FOLDER");
  cli.add_option("--text", options.text, "prompt to begin with")->type_name("TEXT");
  cli.add_option("--session", options.session, "session file to open")->type_name("FILE");
  cli.add_option("--screenshot", options.screenshot, "draw one frame into a PNG and end")->type_name("FILE");
  cli.add_option("--size", size, "of the window or the picture, as in 1600x1000")->type_name("WxH");
  cli.add_option("--scale", options.scale, "pixels in a logical pixel, 0.5 … 8")->check(CLI::Range(0.5, 8.0));
  cli.add_option("--theme", options.theme, "dark, light or projector")->type_name("NAME");
  cli.add_option("--workspace", options.workspace, "explore")->type_name("NAME");
  cli.set_version_flag("--version", "headscope " HEADSCOPE_VERSION);
  CLI11_PARSE(cli, argc, argv);
  try {
    if (!size.empty()) std::tie(options.width, options.height) = parse_size(size);
    return show(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "headscope: {}\n", error.what());
    return 1;
  }
}
