#include "app/state/positions_controller.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "app/state/controller_controls.h"
#include "app/state/controls_record.h"
#include "core/edits/position_edit.h"
#include "core/edits/temperature_edit.h"
#include "tests/app/explorer_controller.h"

namespace headscope::positions_controller_test {

using testing::Controller;

TEST_CASE("the loss past the context is asked anew for other edits, and for another text that reaches past it") {
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
  CHECK(known() == first);  // shorter than the trained length: the same stories are read
  controller.explorer.editor.set_edits({{HeadTarget{}, SetTemperature{2}}});
  const auto second = known();
  CHECK(second != first);

  controller.explorer.run.open_model(headscope::testing::reference("llama-gqa"));
  std::vector<std::int32_t> ids(70, 3);
  controller.explorer.editor.set_ids(ids);
  controller.settle();
  REQUIRE(controller.results().model.model->config().context == 64);
  controller.explorer.editor.set_edits({{HeadTarget{}, SetPositions{}}});  // which reads on
  const auto third = known();
  CHECK(controller.message() == "");
  REQUIRE(controller.results().run->trace->tokens.size() == 70);
  CHECK(third != second);
  CHECK(known() == third);
  ids.back() = 4;  // as long as the one before
  controller.explorer.editor.set_ids(ids);
  CHECK(known() != third);
}

TEST_CASE("without positions an encoder's tokens are the same in both orders, masks and segments or not") {
  for (const char* folder : {"models/tiny-bert", "tests/reference/families/bert"}) {
    CAPTURE(folder);
    Controller controller;
    PositionsController positions(controller.explorer.jobs, controller.explorer.editor, controller.explorer.run);
    positions.view.method = "none";
    controller.explorer.run.open_model(headscope::testing::source_dir() / folder);
    controller.explorer.editor.set_text("the cat sat on the mat");
    controller.settle();
    controller.explorer.editor.set_masked({{2, {}}, {5, 9}});
    controller.settle();
    for (int turn = 0; turn < 3 && !positions.permuted(); ++turn) {
      positions.update();
      controller.settle();
    }
    CHECK(controller.message() == "");
    REQUIRE(positions.permuted());
    const PermutedRun& found = *positions.permuted();
    REQUIRE(found.open.size() == found.labels.size());
    for (const double difference : found.open) CHECK(difference < 1e-4 * found.size);
    CHECK(*std::ranges::max_element(found.placed) > 1e-3 * found.size);  // positions matter
    CHECK(*std::ranges::max_element(found.causal) > 1e-3 * found.size);  // and so does a mask that looks back
  }
}

TEST_CASE("beside cross-attention, whose keys are the source's, positions are of the target alone") {
  Controller controller;
  PositionsController positions(controller.explorer.jobs, controller.explorer.editor, controller.explorer.run);
  controller.explorer.run.open_model(headscope::testing::source_dir() / "models/tiny-translate");
  controller.explorer.editor.set_source("Anna");
  controller.explorer.editor.set_ids({3, 17, 8, 21, 40, 3, 17, 9, 33, 12});
  controller.explorer.editor.look_at(Stack::cross);
  for (int turn = 0; turn < 3 && !positions.vectors(); ++turn) {
    controller.settle();
    positions.update();
    controller.settle();
  }
  CHECK(controller.message() == "");
  REQUIRE(positions.vectors());
  const Trace& cross = *controller.results().run->trace;
  REQUIRE(cross.between_texts());
  REQUIRE(positions.vectors()->tokens() > static_cast<Index>(cross.tokens.size()));
  CHECK(positions.query() == positions.vectors()->tokens() - 1);
  CHECK(positions.key() == positions.query() - 4);  // no weight of the source's tokens tells one
}

TEST_CASE("numbers of a session that do not go together are brought together, as the sliders do") {
  Controller controller;
  PositionsController positions(controller.explorer.jobs, controller.explorer.editor, controller.explorer.run);
  const auto read = [&](int buckets, int largest, int dimensions) {
    ControlsRecord record(
        fmt::format(R"({{"sinusoidal": {{"dimensions": {}}}, "t5": {{"buckets": {}, "max_distance": {}}}}})",
                    dimensions, buckets, largest));
    controls_of(positions, record);
    const PositionsView& v = positions.view;
    return fmt::format("{} {} {}", v.buckets, v.max_distance, v.dimensions);
  };
  CHECK(read(8, 4, 7) == "8 5 6");
  CHECK(read(6, 3, 4) == "4 3 4");
  CHECK(read(64, 32, 64) == "64 33 64");
  CHECK(read(32, 128, 32) == "32 128 32");
}

}  // namespace headscope::positions_controller_test
