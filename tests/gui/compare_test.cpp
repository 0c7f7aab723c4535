// The Compare workspace, used as a person uses it.

#include "tests/gui/explore.h"

using namespace headscope;
using headscope::testing::Explore;

namespace {

struct Compare : Explore {
  CompareDesk desk{app.explorer(), nullptr};
  CompareWorkspace compare{desk};
  Compare() {
    app.add(workspace_of(compare));
    driver.frames(2);
    driver.click("Compare");
    driver.frames(2);
  }
  bool arrives(const std::function<bool(const Comparison&)>& good) {
    return driver.until([&] { return desk.result() && good(*desk.result()) && app.settled(); }, 3000);
  }
};

}  // namespace

TEST_CASE("before and after the edits: the head that moved most is clicked") {
  HEADSCOPE_NEEDS_DISPLAY();
  Compare c;
  CHECK(c.desk.with() == CompareDesk::With::edits);
  CHECK_FALSE(c.desk.missing().empty());  // nothing is edited yet: the middle says what to do
  c.app.explorer().set_edits({parse_intervention("0.0: ablate zero", "test")});
  REQUIRE(c.arrives([](const Comparison& r) { return r.a.name == "before"; }));
  const Comparison& result = *c.desk.result();
  const HeadDifference& first = result.heads[result.ranked[0]];
  CHECK(first.total_variation > 0.1);
  CHECK(first.layer == 1);  // only what reads layer 0 can look elsewhere
  CHECK(result.difference({0, 0})->total_variation == 0);
  c.driver.click("difference rank 1");
  CHECK(c.state().document.selected == HeadRef{first.layer, first.head});
  REQUIRE(c.settle());
  CHECK(c.driver.shown("pair/map.difference"));
}

TEST_CASE("a second text is written, its tokens are paired by hand and set back") {
  HEADSCOPE_NEEDS_DISPLAY();
  Compare c;
  c.app.explorer().set_text("Mr Quill kept bees.");
  REQUIRE(c.settle());
  c.driver.click("Text B");
  c.driver.click("##second text");
  c.driver.type("Mr Quill sold bees.");
  REQUIRE(c.arrives([](const Comparison& r) { return r.b.trace->text == "Mr Quill sold bees."; }));
  const std::vector<int> aligned = c.desk.result()->aligned;
  CHECK(c.desk.result()->partner == aligned);
  REQUIRE(aligned[3] == 3);
  const double before = c.desk.result()->heads[0].total_variation;

  c.driver.click("pairs/a.3");
  c.driver.click("pairs/b.4");
  REQUIRE(c.arrives([](const Comparison& r) { return r.partner[3] == 4; }));
  CHECK(c.desk.result()->partner[4] == -1);  // who was its partner before stands alone
  CHECK(c.desk.result()->heads[0].total_variation != before);
  CHECK(c.driver.shown("Reset pairs"));
  c.driver.click("Reset pairs");
  REQUIRE(c.arrives([&](const Comparison& r) { return r.partner == aligned; }));
  CHECK(c.desk.result()->heads[0].total_variation == before);
}

TEST_CASE("another model reads the same text; the pointer is followed in both maps") {
  HEADSCOPE_NEEDS_DISPLAY();
  Compare c;
  c.driver.click("Model B");
  c.driver.click("Second model");
  c.driver.frames(2);
  c.driver.click("induction-2l");
  REQUIRE(c.arrives([](const Comparison& r) { return r.b.trace->model.dims.heads == 2; }));
  const Comparison& result = *c.desk.result();
  CHECK(result.a.trace->model.dims.heads == 4);
  CHECK(result.heads.size() == 4);  // heads that both have
  c.driver.click("difference rank 1");
  REQUIRE(c.settle());
  c.driver.hover("pair/map.a");
  c.driver.frames(3);
  CHECK(c.driver.shown("compare row"));
}
