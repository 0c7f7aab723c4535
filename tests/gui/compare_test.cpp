// The Compare workspace, used as a person uses it.

#include <algorithm>
#include <cmath>

#include "tests/gui/explore.h"

namespace headscope::compare_test {

using testing::Explore;

namespace {

struct Compare : Explore {
  CompareController controller{app.explorer().jobs, app.explorer().editor, app.explorer().run, nullptr};
  CompareWorkspace compare{controller};
  explicit Compare(int width = 1280, int height = 720) : Explore(width, height) {
    app.add(compare);
    driver.frames(2);
    driver.click("Compare");
    driver.frames(2);
  }
  bool arrives(const std::function<bool(const Comparison&)>& good) {
    return driver.until([&] { return controller.result() && good(*controller.result()) && app.settled(); }, 3000);
  }
};

}  // namespace

TEST_CASE("before and after the edits: the head that moved most is clicked") {
  HEADSCOPE_NEEDS_DISPLAY();
  Compare c;
  CHECK(c.controller.with() == CompareController::With::edits);
  CHECK_FALSE(c.controller.missing().empty());  // nothing is edited yet: the middle says what to do
  c.app.explorer().editor.set_edits({parse_intervention("0.0: ablate zero", "test")});
  REQUIRE(c.arrives([](const Comparison& r) { return r.a.name == "before"; }));
  const Comparison& result = *c.controller.result();
  const HeadDifference& first = result.heads[result.ranked[0]];
  CHECK(first.total_variation > 0.1);
  CHECK(first.id.layer == 1);  // only what reads layer 0 can look elsewhere
  CHECK(result.difference({0, 0})->total_variation == 0);
  c.driver.click("difference rank 1");
  CHECK(c.state().document.selected == first.id);
  REQUIRE(c.settle());
  CHECK(c.driver.shown("pair/map.difference"));
}

TEST_CASE("a second text is written, its tokens are paired by hand and set back") {
  HEADSCOPE_NEEDS_DISPLAY();
  Compare c;
  c.app.explorer().editor.set_text("Mr Quill kept bees.");
  REQUIRE(c.settle());
  c.driver.click("Text B");
  c.driver.click("##second text");
  c.driver.type("Mr Quill sold bees.");
  REQUIRE(c.arrives([](const Comparison& r) { return r.b.trace->text == "Mr Quill sold bees."; }));
  const std::vector<int> aligned = c.controller.result()->aligned;
  CHECK(c.controller.result()->partner == aligned);
  REQUIRE(aligned[3] == 3);
  const double before = c.controller.result()->heads[0].total_variation;

  c.driver.click("pairs/a.3");
  c.driver.click("pairs/b.4");
  REQUIRE(c.arrives([](const Comparison& r) { return r.partner[3] == 4; }));
  CHECK(c.controller.result()->partner[4] == -1);  // who was its partner before stands alone
  CHECK(c.controller.result()->heads[0].total_variation != before);
  CHECK(c.driver.shown("Reset pairs"));
  c.driver.click("Reset pairs");
  REQUIRE(c.arrives([&](const Comparison& r) { return r.partner == aligned; }));
  CHECK(c.controller.result()->heads[0].total_variation == before);

  // In words, "Quill" and "bees" are one each; back in tokens all is as it was.
  c.driver.click("words");
  REQUIRE(c.arrives([](const Comparison& r) { return r.unit == TextUnit::words; }));
  CHECK(c.controller.result()->a.trace->tokens.size() < c.controller.result()->a.run->tokens.size());
  CHECK(c.controller.result()->partner.size() == c.controller.result()->a.trace->tokens.size());
  CHECK(c.driver.shown("pair/map.difference"));
  c.driver.click("tokens");
  REQUIRE(c.arrives([&](const Comparison& r) { return r.unit == TextUnit::tokens && r.partner == aligned; }));

  // Pairs made by hand are kept while words are looked at; the pointer may rest on a cell that words do not have.
  c.driver.click("pairs/a.3");
  c.driver.click("pairs/b.4");
  REQUIRE(c.arrives([](const Comparison& r) { return r.partner[3] == 4; }));
  const Item map = c.driver.item("pair/map.a");
  c.driver.move_to({map.max.x - 3, map.max.y - 3});
  for (const TextUnit unit : {TextUnit::words, TextUnit::tokens}) {
    c.driver.key(ImGuiKey_W);
    REQUIRE(c.arrives([&](const Comparison& r) { return r.unit == unit; }));
    c.driver.frames(3);
  }
  CHECK(c.controller.result()->partner[3] == 4);
}

TEST_CASE("another model reads the same text; the pointer is followed in both maps") {
  HEADSCOPE_NEEDS_DISPLAY();
  Compare c;
  c.app.explorer().editor.select({0, 3});  // the second model has no such head
  c.driver.click("Model B");
  c.driver.click("Second model");
  c.driver.frames(2);
  c.driver.click("induction-2l");
  REQUIRE(c.arrives([](const Comparison& r) { return r.b.trace->model.dims.heads == 2; }));
  const Comparison& result = *c.controller.result();
  CHECK(result.a.trace->model.dims.heads == 4);
  CHECK(result.heads.size() == 4);  // heads that both have
  CHECK(result.difference(c.state().document.selected));
  c.driver.click("difference rank 1");
  REQUIRE(c.settle());
  c.driver.hover("pair/map.a");
  c.driver.frames(3);
  CHECK(c.driver.shown("compare row"));
}

TEST_CASE("two moments of a training run: scrubbed apart, ranked, and the same moment differs in nothing") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore e;
  TrainingController training(e.app.explorer().jobs, e.app.explorer().editor, e.app.explorer().run);
  TrialController trials(e.app.explorer().jobs);
  TrainWorkspace train(training, trials);
  CompareController controller(e.app.explorer().jobs, e.app.explorer().editor, e.app.explorer().run, &training);
  CompareWorkspace compare(controller);
  e.app.add(compare);
  e.app.add(train);
  e.driver.frames(2);
  e.driver.click("Compare");
  e.driver.click("Training");
  e.driver.frames(2);
  CHECK(controller.with() == CompareController::With::training);
  CHECK_FALSE(controller.missing().empty());  // nothing was trained: the middle says what to do

  Recipe& draft = training.draft();
  draft.task.kind = "repeated";
  draft.task.shortest_period = 4;
  draft.task.longest_period = 8;
  draft.model = {.family = "gpt2", .layers = 2, .heads = 2, .kv_heads = 2, .width = 16, .mlp = 0, .context = 24};
  draft.batch = 4;
  draft.evaluate_rows = 8;
  draft.steps = draft.optimizer.schedule_steps = 1'000'000;
  training.start();
  REQUIRE(e.driver.until([&] { return training.moments().size() >= 4; }, 20'000));
  training.pause();
  int quiet = 0;
  const auto calm = [&] {
    quiet = 0;
    return e.driver.until([&] { return (quiet = e.app.settled() ? quiet + 1 : 0) > 8; }, 20'000);
  };
  REQUIRE(calm());
  const auto ends = [&](const char* slider, bool right) {
    const Item item = e.driver.item(slider);
    e.driver.drag(item.center(), {right ? item.max.x - 2 : item.min.x + 2, item.center().y});
    REQUIRE(calm());
  };
  ends("##moment a", false);
  ends("##moment b", true);
  REQUIRE(controller.result());
  const auto& moments = training.moments();
  CHECK(controller.result()->a.trace == moments.front().view->facts->trace);
  CHECK(controller.result()->b.trace == moments.back().view->facts->trace);
  CHECK(controller.result()->a.name == "step 0");
  const Comparison& result = *controller.result();
  REQUIRE(result.heads.size() == 4);
  double largest = 0;
  for (const HeadDifference& head : result.heads) largest = std::max(largest, head.total_variation);
  CHECK(largest > 0);
  CHECK(result.heads[result.ranked[0]].total_variation == largest);
  // Half the sum of what differs, by hand, of the first head's last row.
  const AttentionMap &a = result.a.trace->maps[0], &b = result.b.trace->maps[0];
  double sum = 0;
  for (Index q = 0; q < a.n_query(); ++q)
    for (Index k = 0; k < a.n_key(); ++k) sum += std::abs(static_cast<double>(a.weight(q, k)) - b.weight(q, k)) / 2;
  CHECK(result.heads[0].total_variation == doctest::Approx(sum / static_cast<double>(a.n_query())).epsilon(1e-4));
  e.driver.click("difference rank 1");
  REQUIRE(calm());
  CHECK(e.driver.shown("pair/map.difference"));

  ends("##moment b", false);  // the first moment with itself
  for (const HeadDifference& head : controller.result()->heads) CHECK(head.total_variation == 0);
  training.stop();
}

TEST_CASE("maps of long texts keep labels that can be read; the wheel shows a part of all three with its axes") {
  HEADSCOPE_NEEDS_DISPLAY();
  for (const auto& [width, height] : {std::pair{1280, 720}, {1600, 1000}}) {
    CAPTURE(width);
    Compare c(width, height);
    std::string text;
    for (int i = 0; i < 100; ++i) text += static_cast<char>('a' + (i * 7) % 26);
    c.app.explorer().editor.set_text("It was " + text);
    REQUIRE(c.settle());
    c.controller.set_with(CompareController::With::text);
    c.controller.text() = "It then was " + text;
    REQUIRE(c.arrives([&](const Comparison& r) { return r.b.trace->text == c.controller.text(); }));
    const auto labels = [&](const std::string& axis) {
      c.driver.frames(3);
      std::vector<Item> out;
      for (const Item& item : c.app.window().items().items())
        if (item.label.starts_with("pair/label." + axis + ".")) out.push_back(item);
      return out;
    };
    const auto readable = [&] {
      for (const char* axis : {"a.query", "b.query", "difference.query"}) {
        const auto all = labels(axis);
        CHECK(all.size() >= 3);
        for (const Item& label : all) CHECK(label.max.y - label.min.y >= 13.5f);  // the line of a face of 11 pixels
      }
    };
    readable();
    CHECK_FALSE(c.driver.shown("Whole maps"));
    const Item whole = c.driver.item("pair/map.a");
    for (int i = 0; i < 14; ++i) {
      c.driver.move_to(c.driver.item("pair/map.a").center());
      c.driver.wheel(1);
      REQUIRE(c.settle());
    }
    readable();
    // The pictures are not enlarged: they show less.
    CHECK(c.driver.item("pair/map.a").max.x - c.driver.item("pair/map.a").min.x < 1.4f * (whole.max.x - whole.min.x));
    const auto rows = labels("a.query"), partners = labels("b.query");
    CHECK(rows.size() < 20);
    CHECK(rows.size() == partners.size());
    // B shows the same place of its own text: an inserted token further on.
    const auto position = [](const Item& item) {
      return std::atoi(item.label.substr(item.label.rfind('.') + 1).c_str());
    };
    CHECK(c.controller.result()->partner[static_cast<std::size_t>(position(rows[0]))] == position(partners[0]));
    c.driver.click("Whole maps");
    REQUIRE(c.settle());
    CHECK(labels("a.query").front().label == "pair/label.a.query.0");
    c.driver.move_to(c.driver.item("pair/map.b").center());
    c.driver.wheel(3);
    REQUIRE(c.settle());
    CHECK(c.driver.shown("Whole maps"));
    c.driver.key(ImGuiKey_0);
    CHECK_FALSE(c.driver.shown("Whole maps"));
  }
}

}  // namespace headscope::compare_test
