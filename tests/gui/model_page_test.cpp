// The badge beside the model's name, and the page behind it.

#include <doctest/doctest.h>

#include <imgui_internal.h>

#include "tests/gui/explore.h"

namespace headscope::model_page_test {

using testing::Explore;
using State = CertificateController::State;

namespace {
AppOptions checked(int width, int height) {
  AppOptions out = Explore::options(width, height);
  out.check_models = true;
  return out;
}
}  // namespace

TEST_CASE("beside its name a small model is soon said to be checked; a click opens its page, in every part") {
  HEADSCOPE_NEEDS_DISPLAY();
  for (const auto& [width, height] : {std::pair{1280, 720}, std::pair{1600, 1000}}) {
    Explore e(checked(width, height));
    REQUIRE(e.app.explorer().certificates.state() == State::checked);
    REQUIRE(e.driver.shown("model check"));
    CHECK_FALSE(e.driver.shown("more ▾"));  // all tabs beside it
    CHECK(e.driver.item("model check").min.x > e.driver.item("Model").max.x);
    e.driver.hover("model check");
    e.driver.frames(40);
    CHECK(e.driver.until([&] { return e.driver.told("Agrees with its plain float64 definition"); }));
    e.driver.click("model check");
    e.driver.frames(4);
    CHECK(e.driver.shown("Check again"));
    const Item close = e.driver.item("Close");
    CHECK(close.max.y <= static_cast<float>(height));
    for (const char* part : {"What it is", "Parameters and files", "Configuration", "Check"}) {
      e.driver.click(part);
      e.driver.frames(4);
      CHECK(e.driver.item("Close").max.y == close.max.y);
    }
    CHECK(e.driver.until([&] { return e.app.explorer().certificates.want_facts().current() != nullptr; }));
    e.driver.click("Close");
    e.driver.frames(3);
    CHECK_FALSE(e.driver.shown("Check again"));
  }
}

TEST_CASE("the page opens with Ctrl+I, from the palette and by Tab and Enter, and Escape closes it") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore e(1280, 720);
  const auto open = [&] { return e.driver.shown("Check now"); };
  e.driver.key(ImGuiKey_I, ImGuiMod_Ctrl);
  e.driver.frames(3);
  CHECK(open());
  e.driver.key(ImGuiKey_Escape);
  e.driver.frames(3);
  CHECK_FALSE(open());
  e.driver.key(ImGuiKey_K, ImGuiMod_Ctrl);
  e.driver.type("about this model");
  e.driver.key(ImGuiKey_Enter);
  e.driver.frames(3);
  CHECK(open());
  e.driver.key(ImGuiKey_Escape);
  e.driver.frames(3);
  const auto at_badge = [&] {
    const ImGuiContext& g = *ImGui::GetCurrentContext();
    for (const Item& item : e.app.window().items().items())
      if (item.id == g.NavId && g.NavCursorVisible) return item.label == "model check";
    return false;
  };
  for (int tab = 0; tab < 400 && !at_badge(); ++tab) e.driver.key(ImGuiKey_Tab);
  REQUIRE(at_badge());
  e.driver.key(ImGuiKey_Enter);
  e.driver.frames(3);
  CHECK(open());
}

TEST_CASE("asked for on the page, a check runs aside, and the badge says what it found") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore e(1280, 720);
  CertificateController& certificates = e.app.explorer().certificates;
  CHECK(certificates.state() == State::not_checked);
  e.driver.click("model check");
  e.driver.frames(3);
  e.driver.click("Check now");
  CHECK(e.driver.until([&] { return certificates.state() == State::checked; }, 6000));
  CHECK_FALSE(e.app.explorer().jobs.busy());
  e.driver.frames(2);
  CHECK(e.driver.shown("Check again"));
  CHECK(certificates.certificate()->agrees());
}

}  // namespace headscope::model_page_test
