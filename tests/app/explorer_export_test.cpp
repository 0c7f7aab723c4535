// What the explorer exports of its view.

#include <doctest/doctest.h>

#include <set>

#include "app/state/exports.h"
#include "core/base/file.h"
#include "tests/app/explorer_controller.h"

namespace headscope::explorer_export_test {

using testing::Controller;
using testing::reference;
using testing::scratch_dir;

TEST_CASE(
    "an export writes the bytes that rendering the same picture writes, and says so; a view that is none says why") {
  const auto folder = scratch_dir("export");
  Controller controller;
  export_view(controller.explorer.jobs, controller.explorer.state(), controller.explorer.results(),
              {folder / "nothing.png"});
  CHECK(controller.message() == "There is nothing to export yet.");
  controller.explorer.run.open_model(reference("gpt2-random"));
  controller.explorer.editor.set_text("to be or not to be");
  controller.explorer.editor.select({1, 2});
  controller.settle();
  controller.explorer.editor.pin(5, 3);
  controller.explorer.editor.view().scale = Scale::log;
  for (const char* name : {"view.svg", "view.png", "view.csv"}) {
    export_view(controller.explorer.jobs, controller.explorer.state(), controller.explorer.results(),
                {folder / name, 96});
    controller.settle();
    CHECK(controller.message().find(std::string("Written: ") + (folder / name).string()) == 0);
    PictureRequest same;
    same.heads = {{1, 2}};
    same.scaling.scale = Scale::log;
    same.query = 5;
    same.key = 3;
    const auto direct = folder / ("direct" + std::filesystem::path(name).extension().string());
    export_picture(*controller.results().run->trace, same, "print", direct, {{}, {}, 96.0});
    CHECK(read_file(folder / name) == read_file(direct));
  }
  controller.explorer.editor.view().head_view = HeadView::arcs;
  export_view(controller.explorer.jobs, controller.explorer.state(), controller.explorer.results(),
              {folder / "arcs.svg"});
  controller.settle();
  controller.explorer.editor.view().head_view = HeadView::row;
  controller.explorer.editor.view().scale = Scale::per_row;
  controller.explorer.editor.pin(std::nullopt);
  export_view(controller.explorer.jobs, controller.explorer.state(), controller.explorer.results(),
              {folder / "row.svg", 96, false});
  controller.settle();
  export_view(controller.explorer.jobs, controller.explorer.state(), controller.explorer.results(),
              {folder / "all.svg", 96, true, true});
  controller.settle();
  for (const char* name : {"arcs.svg", "row.svg", "all.svg"}) {
    CHECK(read_file(folder / name).find("<svg") != std::string::npos);
    CHECK(read_file(folder / name) != read_file(folder / "view.svg"));
  }
  for (const char* bad : {"view.jpg", "no/such/folder/view.png"}) {
    export_view(controller.explorer.jobs, controller.explorer.state(), controller.explorer.results(), {folder / bad});
    controller.settle();
    CHECK(controller.explorer.jobs.message()->level == Message::Level::error);
    CHECK(controller.message().find("view.") != std::string::npos);
  }
  controller.explorer.editor.pin(6);
  for (const HeadView view : {HeadView::steps, HeadView::qk}) {
    controller.explorer.editor.view().head_view = view;
    const auto file = folder / (std::string(name(view)) + ".svg");
    export_view(controller.explorer.jobs, controller.explorer.state(), controller.explorer.results(), {file});
    controller.settle();
    CHECK(controller.message().find("Written: " + file.string()) == 0);
    CHECK(read_file(file).find("<svg") != std::string::npos);
  }
  controller.explorer.editor.view().head_view = HeadView::map;
  controller.explorer.editor.view().scale = Scale::linear;
  std::set<std::string> seen;
  for (const FirstToken mode : {FirstToken::show, FirstToken::hide, FirstToken::renormalize}) {
    controller.explorer.editor.view().first_token = mode;
    export_view(controller.explorer.jobs, controller.explorer.state(), controller.explorer.results(),
                {folder / "first.svg"});
    controller.settle();
    seen.insert(read_file(folder / "first.svg"));
  }
  CHECK(seen.size() == 3);
}

}  // namespace headscope::explorer_export_test
