// The Positions workspace, used as a person uses it: query, key and shift dragged, base and scaling changed, kept as an
// edit, taken back.

#include <algorithm>
#include <cmath>

#include "tests/gui/explore.h"
#include "tests/gui/with_letters.h"
#include "tests/support/paths.h"

namespace headscope::positions_test {

using testing::Explore;

namespace {

struct Positions : Explore {
  PositionsController controller;
  PositionsWorkspace workspace;

  Positions()
      : Explore(rotary()),
        controller(app.explorer().jobs, app.explorer().editor, app.explorer().run),
        workspace(controller) {
    app.add(workspace);
    driver.frames(2);
    driver.click("Positions");
    REQUIRE(still());
  }
  static AppOptions rotary() {
    AppOptions out = options(1600, 1000);
    out.example = "tiny-llama";
    return out;
  }
  /// Until nothing runs and the page has its vectors.
  bool still() {
    int quiet = 0;
    return driver.until([&] { return (quiet = app.settled() && controller.vectors() ? quiet + 1 : 0) > 10; }, 20'000);
  }
  /// Drags a slider's grab to a share of its line.
  void slide(const char* name, double share) {
    const Item line = driver.item(name);
    driver.drag(line.center(), {line.min.x + static_cast<float>(share) * (line.max.x - line.min.x), line.center().y});
  }
  double loss_after() {
    double sum = 0;
    REQUIRE(controller.effect());
    for (const double each : controller.effect()->after)
      sum += each / static_cast<double>(controller.effect()->after.size());
    return sum;
  }
};

double score_at(const PositionsController& controller, Index m, Index n) {
  const auto& v = *controller.vectors();
  const auto theta = rotary_frequencies(controller.rotary(), static_cast<int>(v.q.dim(1)));
  const auto q = rotated(row_of(v.q, controller.query()), static_cast<double>(m), theta),
             k = rotated(row_of(v.k, controller.key()), static_cast<double>(n), theta);
  double sum = 0;
  for (std::size_t i = 0; i < q.size(); ++i) sum += q[i] * k[i];
  return v.scale * sum;
}

}  // namespace

TEST_CASE("query, key and shift are dragged: the score follows the distance and nothing else") {
  HEADSCOPE_NEEDS_DISPLAY();
  Positions p;
  p.slide("query m", 0.8);
  const Index m = p.controller.query();
  CHECK(m > p.controller.vectors()->tokens() / 2);
  p.slide("key n", 0.2);
  const Index n = p.controller.key();
  CHECK(n < m);
  const double before = score_at(p.controller, m, n);
  p.slide("shift both", 0.9);
  const int shift = p.controller.view.shift;
  CHECK(shift > 1000);
  CHECK(p.controller.query() == m);
  CHECK(score_at(p.controller, m + shift, n + shift) == doctest::Approx(before).epsilon(1e-9));
  CHECK(std::abs(score_at(p.controller, m + shift, n) - before) > 1e-6);
  // It is the trace's own score.
  const auto& v = *p.controller.vectors();
  double traced = 0;
  for (Index c = 0; c < v.q.dim(1); ++c)
    traced += static_cast<double>(v.turned_q.at(m, c)) * static_cast<double>(v.turned_k.at(n, c));
  CHECK(v.scale * traced == doctest::Approx(before).epsilon(1e-4));
}

TEST_CASE("another base costs loss, is kept as an edit, and one undo takes it back") {
  HEADSCOPE_NEEDS_DISPLAY();
  Positions p;
  const double own = mean_loss(p.results().losses->now);
  CHECK_FALSE(p.controller.effect());
  p.slide("θ base", 0.2);
  REQUIRE(p.still());
  CHECK(p.controller.view.base < 500);
  CHECK(p.loss_after() > own + 0.05);
  CHECK(p.controller.effect()->kl > 0);
  const double measured = p.loss_after();
  p.driver.click("Keep among the edits");
  REQUIRE(p.still());
  REQUIRE(p.state().document.edits.size() == 1);
  CHECK(describe(p.state().document.edits[0]).starts_with("*: position rope base "));
  const double kept = mean_loss(p.results().losses->now);
  CHECK(kept == doctest::Approx(measured).epsilon(1e-5));
  p.driver.key(ImGuiKey_Z, ImGuiMod_Ctrl);
  REQUIRE(p.still());
  CHECK(p.state().document.edits.empty());
}

TEST_CASE("a scaling and its factor are chosen; the edit says so; views change the picture") {
  HEADSCOPE_NEEDS_DISPLAY();
  Positions p;
  p.driver.click("YaRN");
  p.slide("factor", 0.5);
  REQUIRE(p.still());
  CHECK(p.controller.view.scaling == RotaryConfig::Scaling::yarn);
  CHECK(p.controller.view.factor == doctest::Approx(4).epsilon(0.2));
  REQUIRE(p.controller.effect());
  CHECK(p.controller.effect()->words.starts_with("position rope scaling yarn"));
  const std::pair<const char*, const char*> views[] = {
      {"Score map", "score maps/0.colorbar"}, {"Wavelengths", "wavelengths/pair.0"}, {"Dials", "dials/dial.0"}};
  for (const auto& [view, picture] : views) {
    CAPTURE(view);
    p.driver.click(view);
    REQUIRE(p.still());
    for (const auto& [other, its] : views) CHECK_MESSAGE(p.driver.shown(its) == (its == picture), its);
  }
  CHECK_FALSE(p.app.explorer().jobs.message());
}

TEST_CASE("texts past the trained length: unstretched RoPE loses the thread, re-mapped distances lose least") {
  HEADSCOPE_NEEDS_DISPLAY();
  Positions p;
  p.driver.click("texts past the trained length");
  REQUIRE(p.driver.until([&] { return p.controller.long_run() != nullptr; }, 60'000));
  const LongRun& run = *p.controller.long_run();
  CHECK(run.refusal == "");
  CHECK(run.context == 256);
  CHECK(run.tokens == 1024);
  REQUIRE(run.lines.size() == 8);
  const auto mean = [&](std::size_t line, int from, int to) {
    double sum = 0;
    for (int b = from / run.bin; b < to / run.bin; ++b)
      sum += run.lines[line].loss[static_cast<std::size_t>(b)] * run.bin / (to - from);
    return sum;
  };
  CHECK(run.lines[0].title == "none");
  CHECK(run.lines[5].title == "chunks");
  CHECK(mean(0, 0, 192) == doctest::Approx(mean(5, 0, 192)).epsilon(1e-3));  // one chunk: the same model
  // Inside 0.73 nats; far beyond 2.46 unstretched, 1.38 in chunks, and the stretched ones between.
  CHECK(mean(0, 512, 992) > mean(0, 0, 192) + 1);
  CHECK(mean(5, 512, 992) < mean(0, 512, 992) - 0.8);
  for (std::size_t stretched = 1; stretched < 5; ++stretched) CHECK(mean(5, 512, 992) < mean(stretched, 512, 992));
  CHECK_FALSE(p.app.explorer().jobs.message());
}

TEST_CASE("positions open on the distances that a model's own scores know, else on rotations") {
  HEADSCOPE_NEEDS_DISPLAY();
  for (const auto& [family, method] : {std::pair("bloom", "alibi"), {"deberta_v2", "deberta"}, {"granite", "rope"}}) {
    CAPTURE(family);
    AppOptions options = Explore::options(1280, 720);
    options.model = testing::with_letters(family);
    options.text = "who took what";
    Explore s(options);
    PositionsController controller(s.app.explorer().jobs, s.app.explorer().editor, s.app.explorer().run);
    PositionsWorkspace workspace(controller);
    s.app.add(workspace);
    s.driver.frames(2);
    s.driver.click("Positions");
    REQUIRE(s.settle());
    CHECK(controller.view.method == method);
    s.app.settings().pages["Positions"] = "none";  // what was chosen stays
    s.driver.frames(3);
    CHECK(controller.view.method == "none");
  }
}

TEST_CASE("where scores are not told by distances alone the page says why, and nothing complains") {
  HEADSCOPE_NEEDS_DISPLAY();
  AppOptions options = Explore::options(1600, 1200);
  options.model = testing::reference("families/llama4_text");  // queries and keys are normed behind the rotation
  options.ids = {3, 17, 8, 21, 40};
  Explore s(options);
  PositionsController controller(s.app.explorer().jobs, s.app.explorer().editor, s.app.explorer().run);
  PositionsWorkspace workspace(controller);
  s.app.add(workspace);
  s.driver.frames(2);
  s.driver.click("Positions");
  REQUIRE(s.settle());
  const auto written = [&](const char* words) {
    return std::ranges::any_of(s.driver.window().items().texts(),
                               [&](const std::string& text) { return text.find(words) != std::string::npos; });
  };
  CHECK(written("Its scores are not told by distances alone"));
  CHECK_FALSE(s.app.explorer().jobs.message());
  s.driver.click("Random");
  REQUIRE(s.settle());
  CHECK_FALSE(written("Its scores are not told by distances alone"));
  CHECK(controller.vectors());
}

TEST_CASE("every method's page opens without complaint") {
  HEADSCOPE_NEEDS_DISPLAY();
  Positions p;
  for (const char* method : {"none", "learned", "sinusoidal", "binary", "shaw", "transformer-xl", "deberta", "t5",
                             "alibi", "chunks", "rope"}) {
    CAPTURE(method);
    p.driver.click(std::string("position ") + method);
    REQUIRE(p.still());
    CHECK(p.controller.view.method == method);
    if (p.app.explorer().jobs.message()) FAIL_CHECK(p.app.explorer().jobs.message()->text);
  }
  p.driver.click("Random");
  REQUIRE(p.still());
  CHECK(p.controller.vectors()->source.find("N(0, 1)") != std::string::npos);
  p.driver.click("Typed");
  REQUIRE(p.still());
  CHECK(p.controller.vectors()->q.dim(1) == 8);
}

}  // namespace headscope::positions_test
