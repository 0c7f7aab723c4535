// Token ids typed into the window: the only prompt of a model without a tokenizer, and a way to say tokens elsewhere.

#include <doctest/doctest.h>

#include "app/state/session.h"
#include "tests/gui/explore.h"
#include "tests/support/paths.h"

namespace headscope::token_ids_test {

using Ids = std::vector<std::int32_t>;
using testing::Driver;
using testing::reference;

namespace {
struct Room {
  App app;
  AllWorkspaces workspaces{app};
  Driver driver;
  explicit Room(const AppOptions& options) : app(options), driver(app.window(), [this] { app.frame(); }) {
    workspaces.begin_with(options);
    settle();
  }
  static AppOptions options(const std::filesystem::path& model) {
    AppOptions out = testing::Explore::options(1280, 720);
    out.model = model;
    return out;
  }
  void settle() {
    int quiet = 0;
    REQUIRE(driver.until([&] { return (quiet = app.settled() ? quiet + 1 : 0) > 8; }, 6000));
  }
  void write(const char* field, std::string_view text) {
    driver.click(field);
    driver.key(ImGuiKey_A, ImGuiMod_Ctrl);
    driver.type(text);
    settle();
  }
  Explorer& explorer() { return app.explorer(); }
  const Document& document() { return explorer().state().document; }
  Ids read() {
    const auto& run = explorer().results().run;
    return run ? run->whole->ids() : Ids();
  }
};
}  // namespace

TEST_CASE("a model without a tokenizer reads ids that are typed; wrong ones are told of, undo and sessions know them") {
  HEADSCOPE_NEEDS_DISPLAY();
  Room room(Room::options(reference("families/mixtral")));
  CHECK_FALSE(room.explorer().jobs.message());  // the example's text is none of its business
  CHECK(room.read().empty());
  CHECK_FALSE(room.driver.shown("##prompt"));
  CHECK_FALSE(room.driver.shown("Token ids"));  // there is no other way to write
  room.write("##ids", "5 17, 3");
  CHECK(room.document().ids == Ids{5, 17, 3});
  CHECK(room.read() == Ids{5, 17, 3});
  room.write("##ids", "5 17 43");
  CHECK(room.driver.shown("43 is no id of this model: its vocabulary has 43 tokens, 0 … 42."));
  CHECK(room.read() == Ids{5, 17, 3});  // what was there before
  room.write("##ids", "7 x");
  CHECK(
      room.driver.shown("“x” is no token id: whole numbers from 0 to 42 stand here, with spaces or commas between "
                        "them."));
  CHECK(room.read() == Ids{5, 17, 3});
  room.write("##ids", "[1, 2, 42]");
  CHECK(room.read() == Ids{1, 2, 42});
  CHECK_FALSE(
      room.driver.shown("“x” is no token id: whole numbers from 0 to 42 stand here, with spaces or commas "
                        "between them."));
  const Session kept = session_from_json(to_json(room.explorer().files.session()), "session");
  CHECK(kept.document.ids == Ids{1, 2, 42});
  room.driver.key(ImGuiKey_Escape);
  room.driver.key(ImGuiKey_Z, ImGuiMod_Ctrl);
  room.settle();
  CHECK(room.read() != Ids{1, 2, 42});
  // Beside it another list of ids, in Compare.
  room.explorer().editor.set_ids({5, 17, 3});
  room.driver.click("Compare");
  room.driver.frames(4);
  room.driver.click("Text B");
  room.settle();
  room.driver.click("Begin with a copy of the prompt");
  room.settle();
  CHECK(room.workspaces.comparison.text() == "5 17 3");
  room.write("##second text", "5 17 3 4");
  REQUIRE(room.workspaces.comparison.result());
  CHECK(room.workspaces.comparison.result()->b.run->ids() == Ids{5, 17, 3, 4});
  room.write("##second text", "99");
  CHECK(room.workspaces.comparison.missing() == "99 is no id of this model: its vocabulary has 43 tokens, 0 … 42.");
}

TEST_CASE("an encoder-decoder without tokenizers has both of its texts as ids, and writes its target as ids") {
  HEADSCOPE_NEEDS_DISPLAY();
  Room room(Room::options(reference("encoder-decoders/bart")));
  CHECK_FALSE(room.explorer().jobs.message());
  room.write("##source ids", "4 9 11");
  REQUIRE(room.explorer().results().run);
  CHECK(room.explorer().results().run->whole->encoder->ids() == Ids{4, 9, 11});
  CHECK(room.read().size() == 1);  // what begins a target
  room.driver.click("Write target");
  room.settle();
  REQUIRE_FALSE(room.document().ids.empty());
  CHECK(room.read().size() == room.document().ids.size() + 1);
  room.write("##ids", "8 6");
  CHECK(room.read() == Ids{room.read().front(), 8, 6});
  const Session kept = session_from_json(to_json(room.explorer().files.session()), "session");
  CHECK(kept.document.source_ids == Ids{4, 9, 11});
}

TEST_CASE("a text is turned into its ids and back; a model with words that comes after one without reads its text") {
  HEADSCOPE_NEEDS_DISPLAY();
  AppOptions options = Room::options(reference("families/bert"));
  options.text = "the cat sat";
  Room room(options);
  const Ids of_text = room.read();
  REQUIRE(of_text.size() >= 3);
  room.driver.click("Token ids");
  room.settle();
  CHECK(room.document().ids == of_text);
  CHECK(room.read() == of_text);  // what stands before and behind a text is among them
  Ids shorter = of_text;
  shorter.pop_back();
  room.write("##ids", token_ids_text(shorter));
  CHECK(room.read() == shorter);
  room.driver.click("Text");
  room.settle();
  CHECK(room.document().text == "the cat sat");
  CHECK(room.read() == of_text);
  room.explorer().run.open_model(reference("families/mixtral"));
  room.settle();
  CHECK(room.read().empty());
  room.write("##ids", "5 17 3");
  room.explorer().run.open_model(reference("families/bert"));
  room.settle();
  CHECK(room.read() == of_text);
}

TEST_CASE("the program begins with ids that it is given, whether or not the model has a tokenizer") {
  HEADSCOPE_NEEDS_DISPLAY();
  for (const std::filesystem::path& model :
       {reference("families/mixtral"), testing::source_dir() / "models/tiny-gpt2"}) {
    AppOptions options = Room::options(model);
    options.ids = {5, 17, 3};
    Room room(options);
    CHECK(room.read() == Ids{5, 17, 3});
    CHECK_FALSE(room.explorer().jobs.message());
  }
}

}  // namespace headscope::token_ids_test
