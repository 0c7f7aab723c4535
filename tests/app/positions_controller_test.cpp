#include "app/state/positions_controller.h"

#include <doctest/doctest.h>

#include "core/edits/temperature_edit.h"
#include "tests/app/explorer_controller.h"

using namespace headscope;
using headscope::testing::Controller;

TEST_CASE("the loss past the context is asked anew for a text as long as the one before, and for other edits") {
  Controller controller;
  PositionsController positions(controller.explorer.jobs, controller.explorer.editor, controller.explorer.run);
  positions.view.past_context = true;
  const auto known = [&] {
    controller.settle();
    positions.update();
    controller.settle();
    return positions.long_run();
  };
  controller.explorer.run.open_model(headscope::testing::example());
  controller.explorer.editor.set_text("one two one two");
  const auto first = known();
  REQUIRE(first);
  CHECK(known() == first);
  controller.explorer.editor.set_text("two one two one");
  const auto second = known();
  CHECK(second != first);
  controller.explorer.editor.set_edits({{HeadTarget{}, SetTemperature{2}}});
  CHECK(known() != second);
}
