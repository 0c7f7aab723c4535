#include "app/state/step_names.h"

#include <doctest/doctest.h>

#include "app/state/history.h"

namespace headscope::step_names_test {

namespace {
Document edited(std::initializer_list<const char*> edits) {
  Document document;
  for (const char* words : edits) document.edits.push_back(parse_intervention(words, "edit"));
  return document;
}
}  // namespace

TEST_CASE("a step is named after what it did") {
  const Document none;
  CHECK(step_name(none, edited({"1.0: ablate zero"})) == "Edit 1.0: ablate zero");
  CHECK(step_name(edited({"1.0: ablate zero"}), none) == "Removed 1.0: ablate zero");
  CHECK(step_name(edited({"*: temperature 2", "1.0: ablate zero"}), edited({"1.0: ablate zero"})) ==
        "Removed *: temperature 2");
  CHECK(step_name(edited({"*: temperature 2"}), edited({"*: temperature 3"})) == "Changed to *: temperature 3");
  CHECK(step_name(edited({"*: temperature 2", "1.0: ablate zero"}), edited({"1.0: ablate zero", "*: temperature 2"})) ==
        "Edits in another order");
  CHECK(step_name(edited({"*: temperature 2", "1.0: ablate zero"}), none) == "All edits removed");
  CHECK(step_name(none, edited({"*: temperature 2", "1.0: ablate zero"})) == "2 edits added");
  Document off = edited({"*: temperature 2"});
  off.edits[0].enabled = false;
  CHECK(step_name(edited({"*: temperature 2"}), off) == "Switched off *: temperature 2");
  CHECK(step_name(off, edited({"*: temperature 2"})) == "Switched on *: temperature 2");

  Document other;
  other.selected = {2, 3};
  CHECK(step_name(none, other) == "Head 2.3");
  other = none;
  other.query = 4;
  CHECK(step_name(none, other) == "Row 4");
  CHECK(step_name(other, none) == "Unpinned");
  other.text = "Mr and\nMrs";
  CHECK(step_name(none, other) == "Text: Mr and Mrs");
  other.model = "/models/tiny-llama";
  CHECK(step_name(none, other) == "Model tiny-llama");
  std::string umlauts;
  for (int i = 0; i < 40; ++i) umlauts += "xä";
  other = none;
  other.text = umlauts;
  const std::string name = step_name(none, other);
  CHECK(name.ends_with("…"));
  CHECK((name[name.size() - 4] == 'x' || name.substr(name.size() - 5, 2) == "ä"));  // whole characters
}

TEST_CASE("all documents of a history, in the order in which they were made, wherever one stands in it") {
  History history;
  Document now;
  for (int i = 1; i <= 4; ++i) {
    history.record(now, "", i * 10.0);
    now.selected = {i, 0};
  }
  const auto layers = [&] {
    std::vector<int> all;
    for (const Document* each : history.documents(now)) all.push_back(each->selected.layer);
    return all;
  };
  CHECK(layers() == std::vector{0, 1, 2, 3, 4});
  CHECK(history.undoable() == 4);
  history.undo(now);
  history.undo(now);
  CHECK(layers() == std::vector{0, 1, 2, 3, 4});
  CHECK(history.undoable() == 2);
}

TEST_CASE("steps that mask tokens say how many, and which way") {
  Document none, one, two, other;
  one.masked = {{2, {}}};
  two.masked = {{2, {}}, {4, {}}};
  other.masked = {{1, {}}, {3, 7}};
  CHECK(step_name(none, one) == "Masked a token");
  CHECK(step_name(one, two) == "Masked a token");
  CHECK(step_name(none, two) == "Masked 2 tokens");
  CHECK(step_name(two, other) == "Masked 2 tokens");  // drawn anew
  CHECK(step_name(two, one) == "A token shown again");
  CHECK(step_name(two, none) == "Nothing masked");
}

}  // namespace headscope::step_names_test
