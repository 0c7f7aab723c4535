// The form in which edits are made and changed, used as a person uses it.

#include <doctest/doctest.h>

#include <algorithm>

#include "core/edits/edit.h"
#include "core/edits/edit_grammar.h"
#include "core/edits/patch_edit.h"
#include "tests/gui/explore.h"

namespace headscope::edit_form_test {

using testing::Explore;

namespace {

struct Form : Explore {
  explicit Form(int width = 1280, int height = 720) : Explore(width, height) {
    driver.click("Layer 1 Head 0");
    REQUIRE(settle());
  }
  void add() {
    driver.click("Add an edit");
    driver.frames(3);
    REQUIRE(driver.shown("##edit line"));
  }
  /// Looks for the kind by its letters and takes it with Enter, as the search has the keys when the form opens.
  void kind(std::string_view letters) {
    if (!driver.shown("##edit line")) add();
    driver.click("##search edits");
    driver.key(ImGuiKey_A, ImGuiMod_Ctrl);
    driver.type(letters);
    driver.frames(2);
    driver.key(ImGuiKey_Enter);
    driver.frames(2);
  }
  void fill(std::string_view field, std::string_view value) {
    driver.click(field);
    driver.key(ImGuiKey_A, ImGuiMod_Ctrl);
    driver.type(value);
    driver.frames(2);
  }
  void confirm(const char* button = "Add") {
    driver.click(button);
    REQUIRE(settle());
    CHECK_FALSE(driver.shown("##edit line"));
  }
  std::string edit(std::size_t i) {
    REQUIRE(i < state().document.edits.size());
    return describe(state().document.edits[i]);
  }
};

}  // namespace

TEST_CASE("an edit is made in the form: kind by letters, heads by clicks, positions by dragging over tokens") {
  HEADSCOPE_NEEDS_DISPLAY();
  Form e;
  e.add();
  CHECK(e.driver.shown("edit: ablate"));
  e.kind("temperature");
  e.driver.click("edit head 0.2");
  e.fill("##edit TAU", "0.25");
  e.confirm();
  CHECK(e.edit(0) == "0.2: temperature 0.25");

  e.add();
  e.driver.click("edit layer 1");
  e.driver.click("Some");
  e.driver.frames(2);
  e.driver.drag(e.driver.item("edit token 2").center(), e.driver.item("edit token 4").center());
  e.driver.frames(2);
  e.confirm();
  CHECK(e.edit(1) == "1.*@2..4: ablate zero");

  e.add();
  e.driver.click("edit column 3");
  e.driver.click("resample");
  e.driver.frames(2);
  e.fill("##edit SEED", "7");
  e.confirm();
  CHECK(e.edit(2).starts_with("*.3: ablate resample 7"));
  e.driver.key(ImGuiKey_Z, ImGuiMod_Ctrl);
  CHECK(e.state().document.edits.size() == 2);

  e.add();  // the same of several heads
  e.driver.click("edit head 0.0");
  ImGui::GetIO().AddKeyEvent(ImGuiMod_Ctrl, true);
  e.driver.click("edit head 1.3");
  ImGui::GetIO().AddKeyEvent(ImGuiMod_Ctrl, false);
  e.driver.frames(2);
  e.confirm();
  REQUIRE(e.state().document.edits.size() == 4);
  CHECK(e.edit(2) == "0.0: ablate zero");
  CHECK(e.edit(3) == "1.3: ablate zero");
  e.driver.key(ImGuiKey_Z, ImGuiMod_Ctrl);  // one step
  CHECK(e.state().document.edits.size() == 2);
}

TEST_CASE("form and line follow one another; what is wrong with a line is said beneath it and cannot be added") {
  HEADSCOPE_NEEDS_DISPLAY();
  Form e;
  e.add();
  e.fill("##edit line", "0.*: mask global 2 window 3");
  CHECK_FALSE(e.driver.shown("edit error"));
  CHECK(e.driver.shown("##edit G"));  // the mask's own numbers
  e.fill("##edit W", "5");
  e.confirm();
  CHECK(e.edit(0) == "0.*: mask global 2 window 5");

  e.add();
  for (const char* wrong : {"9.0: ablate zero", "1.0@99: ablate zero", "1.0: abate zero", "1.0: weight -1 0 1.5"}) {
    CAPTURE(wrong);
    e.fill("##edit line", wrong);
    CHECK(e.driver.shown("edit error"));
    e.driver.key(ImGuiKey_Enter);
    CHECK(e.state().document.edits.size() == 1);
    if (!e.driver.shown("##edit line")) e.add();
  }
  e.driver.key(ImGuiKey_Escape);
  e.driver.frames(2);
  CHECK_FALSE(e.driver.shown("##edit line"));
  CHECK(e.state().document.edits.size() == 1);
}

TEST_CASE("an edit of the list opens in the form and is changed there; dragging it to another place opens nothing") {
  HEADSCOPE_NEEDS_DISPLAY();
  Form e;
  e.app.explorer().editor.set_edits({parse_intervention("1.0: temperature 0.5", "edit"),
                                     parse_intervention("*@3..: ablate zero", "edit"),
                                     parse_intervention("0.*: mechanism linear map=elu normalise=sum", "edit")});
  REQUIRE(e.settle());
  e.driver.click("edit 0");
  e.driver.frames(3);
  REQUIRE(e.driver.shown("##edit TAU"));
  e.fill("##edit TAU", "2");
  e.confirm("Change");
  CHECK(e.edit(0) == "1.0: temperature 2");
  CHECK(e.edit(1) == "*@3..: ablate zero");  // in its place still
  e.driver.key(ImGuiKey_Z, ImGuiMod_Ctrl);
  CHECK(e.edit(0) == "1.0: temperature 0.5");

  e.driver.click("edit 2");  // a mechanism, with the parameters of its catalogue
  e.driver.frames(3);
  REQUIRE(e.driver.shown("##edit line"));
  e.driver.click("rms");
  e.confirm("Change");
  CHECK(e.edit(2) == "0.*: mechanism linear map=elu normalise=rms");

  e.driver.click("edit 0 on");
  REQUIRE(e.settle());
  e.driver.click("edit 0");  // one that is switched off stays so
  e.driver.frames(3);
  e.fill("##edit TAU", "3");
  e.confirm("Change");
  CHECK(e.edit(0) == "1.0: temperature 3");
  CHECK_FALSE(e.state().document.edits[0].enabled);

  e.driver.drag(e.driver.item("edit 0").center(), e.driver.item("edit 1").center());
  e.driver.frames(3);
  CHECK(e.edit(1) == "1.0: temperature 3");
  CHECK_FALSE(e.driver.shown("##edit line"));
}

TEST_CASE("a patch gets its text and its pairing in the form; the residual stream belongs to whole layers") {
  HEADSCOPE_NEEDS_DISPLAY();
  Form e;
  e.app.explorer().editor.set_text("Mr Quill kept bees.");
  REQUIRE(e.settle());
  e.kind("patch");
  CHECK(e.driver.shown("edit error"));  // no text yet
  e.driver.click("Begin with this text");
  e.driver.frames(2);
  CHECK_FALSE(e.driver.shown("edit error"));
  e.driver.click("##edit TEXT");
  e.driver.key(ImGuiKey_End, ImGuiMod_Ctrl);
  e.driver.type(" Now.");
  if (!e.driver.shown("resid_pre")) {  // a list, where they do not fit beside one another
    e.driver.click("Activation");
    e.driver.frames(2);
  }
  e.driver.click("resid_pre");
  e.driver.frames(2);
  CHECK_FALSE(e.driver.shown("edit error"));
  e.confirm();
  CHECK(e.edit(0) == "1.*: patch resid_pre from \"Mr Quill kept bees. Now.\" aligned tokens");
  e.driver.click("edit 0");
  e.driver.frames(3);
  e.driver.click("start");
  e.driver.frames(2);
  e.confirm("Change");
  CHECK(e.edit(0) == "1.*: patch resid_pre from \"Mr Quill kept bees. Now.\"");
}

TEST_CASE("every kind of edit can be chosen, is filled in from the start, and only a text has to be written") {
  HEADSCOPE_NEEDS_DISPLAY();
  Form e(1600, 1000);
  e.add();
  for (const EditForm& form : edit_forms()) {
    CAPTURE(form.lead);
    e.kind(form.lead);
    const bool patch = form.usual.as<Patch>() != nullptr;
    CHECK(e.driver.shown("edit error") == patch);
    CHECK(e.driver.shown("edit: " + std::string(form.lead)));
  }
}

}  // namespace headscope::edit_form_test
