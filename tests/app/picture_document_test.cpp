// A picture as the document: of a model that reads one, with undo, the brush, sessions; texts and pictures stay apart.

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "app/state/session.h"
#include "tests/app/explorer_controller.h"

namespace headscope::picture_document_test {

using testing::Controller;
using testing::reference;

namespace {
const std::filesystem::path model = reference("vision/vit"), picture = reference("vision/picture.png");

std::vector<std::string> edits_of(const Controller& controller) {
  std::vector<std::string> out;
  for (const Intervention& edit : controller.document().edits) out.push_back(describe(edit));
  return out;
}
}  // namespace

TEST_CASE("a model of pictures waits for one, runs it, and tells its classes before and after the brush") {
  Controller controller;
  controller.explorer.run.open_model(model);
  controller.explorer.editor.set_text("a text, which this model does not read");
  controller.settle();
  CHECK(controller.message() == "");
  CHECK_FALSE(controller.results().run);
  CHECK_FALSE(controller.explorer.run.behind());
  CHECK(reads_pictures(controller.results()));
  controller.explorer.editor.set_image(picture);
  controller.settle();
  CHECK(controller.message() == "");
  REQUIRE(controller.results().run);
  const TracedRun run = *controller.results().run;
  CHECK(run.trace->picture->keys() == 10);
  CHECK(run.next.size() == 5);
  CHECK_FALSE(run.word_tokens);  // patches are no words
  CHECK(run.request.text.empty());

  controller.explorer.editor.hide_patches({4, 5, 2}, true);
  controller.explorer.editor.hide_patches({3}, true);
  CHECK(edits_of(controller) == std::vector<std::string>{"*@2..5: hide patches grey"});
  controller.explorer.editor.hide_patches({4}, false);
  CHECK(edits_of(controller) == std::vector<std::string>{"*@2..3: hide patches grey", "*@5: hide patches grey"});
  controller.settle();
  CHECK(controller.message() == "");
  REQUIRE(controller.results().effect);
  CHECK(controller.results().effect->change.kl > 1e-4);
  controller.explorer.editor.hide_patches({2, 3, 5}, false);
  CHECK(controller.document().edits.empty());
}

TEST_CASE("undo goes back to the picture before; a text and a picture each wait for a model that reads them") {
  Controller controller;
  controller.explorer.run.open_model(model);
  controller.settle();
  controller.explorer.editor.set_image(picture);
  controller.settle();
  const auto first = controller.results().run->trace->logits;
  controller.explorer.editor.set_image(reference("vision/alpha.png"));
  controller.settle();
  CHECK_FALSE(std::ranges::equal(first.values(), controller.results().run->trace->logits.values()));
  CHECK(controller.explorer.editor.steps().back() == "Picture alpha.png");
  controller.explorer.editor.undo();
  controller.settle();
  CHECK(std::ranges::equal(first.values(), controller.results().run->trace->logits.values()));
  controller.explorer.editor.set_text("abc");
  controller.explorer.run.open_model(reference("gpt2-random"));
  controller.settle();
  CHECK(controller.message() == "");
  REQUIRE(controller.results().run);
  CHECK(controller.results().run->trace->text == "abc");
  CHECK(controller.document().image == picture);
}

TEST_CASE("a session keeps the picture, and a file that is none leaves what is on screen with a message") {
  Controller controller;
  controller.explorer.run.open_model(model);
  controller.explorer.editor.set_image(picture);
  controller.settle();
  Session session;
  session.document = controller.document();
  CHECK(session_from_json(to_json(session), "test").document == controller.document());
  const auto run = controller.results().run;
  controller.explorer.editor.set_image(model / "config.json");
  controller.settle();
  CHECK(controller.message().find("PNG or JPEG") != std::string::npos);
  CHECK(controller.results().run == run);
}

}  // namespace headscope::picture_document_test
