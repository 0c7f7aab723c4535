// headscope: the window. headscope-cli is the command line for everything that needs no display.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <tuple>

#include "app/state/settings.h"
#include "app/widgets/controls.h"
#include "app/widgets/scene_view.h"
#include "app/window/app.h"
#include "viz/scene/head_map.h"

namespace {

using namespace headscope;

/// The selected head's map, kept until the trace, the head, the theme or the room change.
class HeadMapView {
 public:
  void draw(Ui& ui, Explorer& explorer) {
    const Results& results = explorer.results();
    const HeadRef head = explorer.state().document.selected;
    if (!results.run || !results.map(head)) {
      empty_state(ui, "No head is shown yet", "Drop the folder of a model here, or open one with Ctrl O.");
      return;
    }
    const double room = std::floor(static_cast<double>(ImGui::GetContentRegionAvail().y / ui.scale) / 16) * 16;
    const std::tuple key(results.run->trace.get(), head, ui.theme.id, room, ui.scale);
    if (key != key_) {
      key_ = key;
      const double plot = std::clamp(room - 260, 160.0, 1400.0);
      HeadMapOptions options;
      options.layer = head.layer;
      options.head = head.head;
      options.plot = plot;
      view_.show(std::make_shared<Scene>(head_map_scene(*results.run->trace, options, ui.look())));
    }
    view_.draw(ui, "head", camera_, {.largest = 1.2, .zoomable = true});
  }

 private:
  SceneView view_;
  SceneCamera camera_;
  std::tuple<const Trace*, HeadRef, std::string_view, double, float> key_{};
};

void run(const AppOptions& options) {
  App app(options);
  HeadMapView map;
  Columns columns;
  columns.middle = [&](Ui& ui, Workbench& bench) { map.draw(ui, bench.explorer); };
  app.show(columns);
  app.run();
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
  cli.add_option("--workspace", options.workspace, "explore")->check(CLI::IsMember({"explore"}))->type_name("NAME");
  cli.set_version_flag("--version", "headscope " HEADSCOPE_VERSION);
  CLI11_PARSE(cli, argc, argv);
  try {
    if (!size.empty()) std::tie(options.width, options.height) = parse_size(size);
    if (!options.screenshot) options.settings = settings_file();
    run(options);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "headscope: {}\n", error.what());
    return 1;
  }
}
