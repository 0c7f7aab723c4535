#include "app/state/positions_desk.h"

#include <doctest/doctest.h>

#include "core/edits/temperature_edit.h"
#include "tests/app/explorer_desk.h"

using namespace headscope;
using headscope::testing::Desk;

TEST_CASE("the loss past the context is asked anew for a text as long as the one before, and for other edits") {
  Desk desk;
  PositionsDesk positions(desk.explorer.jobs, desk.explorer.editor, desk.explorer.run);
  positions.view.past_context = true;
  const auto known = [&] {
    desk.settle();
    positions.update();
    desk.settle();
    return positions.long_run();
  };
  desk.explorer.run.open_model(headscope::testing::example());
  desk.explorer.editor.set_text("one two one two");
  const auto first = known();
  REQUIRE(first);
  CHECK(known() == first);
  desk.explorer.editor.set_text("two one two one");
  const auto second = known();
  CHECK(second != first);
  desk.explorer.editor.set_edits({{HeadTarget{}, SetTemperature{2}}});
  CHECK(known() != second);
}
