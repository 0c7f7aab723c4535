// Text of any script on screen. Run under several sets of fonts (CMakeLists.txt), since what a machine has decides what
// the window has to find: glyphs of its own faces, of others, or none at all.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "app/all_workspaces.h"
#include "app/widgets/controls.h"
#include "app/widgets/prompt_edit.h"
#include "app/widgets/text_draw.h"
#include "core/base/utf8.h"
#include "tests/gui/analyse_page.h"
#include "tests/support/paths.h"
#include "viz/export/glyphs.h"
#include "viz/export/raster.h"

namespace headscope::scripts_test {

using testing::AnalysePage;
using testing::Driver;
using testing::Explore;

namespace {

constexpr const char* chinese = "今天天气很好。東京";
constexpr const char* arabic = "مرحبا بالعالم";
constexpr const char* hebrew = "שלום עולם (ab) 12";
constexpr const char* hindi = "नमस्ते दुनिया";
constexpr const char* emoji = "🙂👍🏽👨‍👩‍👧";
constexpr const char* all =
    "今天天气很好。東京 مرحبا بالعالم שלום עולם नमस्ते दुनिया "
    "🙂👍🏽👨‍👩‍👧";

WindowOptions offscreen() {
  WindowOptions options;
  options.width = 800, options.height = 420;
  options.offscreen = options.name_items = true;
  return options;
}

/// How much ink each column holds, from the first to the last with any; 1 = a column of one full pixel.
std::vector<double> profile(const Image& image, Color ground) {
  std::vector<double> columns(static_cast<std::size_t>(image.width), 0);
  for (int y = 0; y < image.height; ++y)
    for (int x = 0; x < image.width; ++x) {
      const Color c = image.at(x, y);
      columns[static_cast<std::size_t>(x)] +=
          std::max({std::abs(c.r - ground.r), std::abs(c.g - ground.g), std::abs(c.b - ground.b)}) / 255.0;
    }
  const auto any = [](double ink) { return ink > 0.2; };
  const auto first = std::ranges::find_if(columns, any);
  const auto last = std::find_if(columns.rbegin(), columns.rend(), any).base();
  return first < last ? std::vector<double>(first, last) : std::vector<double>{};
}

/// Correlation of two profiles, stretched to the same length.
double alike(const std::vector<double>& a, const std::vector<double>& b) {
  constexpr int bins = 60;
  const auto bin = [](const std::vector<double>& v, int i) {
    const double from = static_cast<double>(v.size()) * i / bins, to = static_cast<double>(v.size()) * (i + 1) / bins;
    double sum = 0;
    for (auto k = static_cast<std::size_t>(from); static_cast<double>(k) < to && k < v.size(); ++k)
      sum += v[k] * (std::min(to, static_cast<double>(k) + 1) - std::max(from, static_cast<double>(k)));
    return sum;
  };
  double ma = 0, mb = 0;
  for (int i = 0; i < bins; ++i) ma += bin(a, i) / bins, mb += bin(b, i) / bins;
  double ab = 0, aa = 0, bb = 0;
  for (int i = 0; i < bins; ++i) {
    const double da = bin(a, i) - ma, db = bin(b, i) - mb;
    ab += da * db, aa += da * da, bb += db * db;
  }
  return ab / std::sqrt(aa * bb);
}

Image on_screen(const Text& text) {
  Window window(offscreen());
  Driver driver(window, [&](Ui& ui) { draw_text(ui, *ImGui::GetBackgroundDrawList(), text, {0, 0}); });
  driver.frames(3);
  return window.capture();
}

Image in_a_file(const Text& text) {
  Scene scene;
  scene.width = 800, scene.height = 420;
  scene.background = theme("dark").background;
  scene.add({text, "", ""});
  return rasterize(scene, 1);
}

}  // namespace

TEST_SUITE_BEGIN("scripts");

TEST_CASE("every script looks on screen as in an exported picture, whatever fonts there are") {
  HEADSCOPE_NEEDS_DISPLAY();
  for (const char* words :
       {"Effective tokens", "naïve Ωж e\u0301", chinese, arabic, hebrew, hindi, emoji, "a\u0378b?", all})
    for (const FontRole role : {FontRole::ui, FontRole::mono}) {
      CAPTURE(std::string(words));
      const Text text{{20, 60}, words, {role, 26, 400}, rgb(0xFFFFFF), Anchor::start, 0};
      const Color ground = theme("dark").background;
      const std::vector<double> shown = profile(on_screen(text), ground), wanted = profile(in_a_file(text), ground);
      REQUIRE(shown.size() > 20);
      // Characters that stand alone are set on whole pixels.
      CHECK(std::abs(static_cast<double>(shown.size()) - static_cast<double>(wanted.size())) <
            3 + 0.03 * static_cast<double>(wanted.size()));
      const double ink = std::accumulate(shown.begin(), shown.end(), 0.0),
                   wanted_ink = std::accumulate(wanted.begin(), wanted.end(), 0.0);
      CHECK(ink == doctest::Approx(wanted_ink).epsilon(0.1));
      CHECK(alike(shown, wanted) > 0.75);
    }
}

TEST_CASE("emoji have their colours where a font has them; what no font has is a box, not a question mark") {
  HEADSCOPE_NEEDS_DISPLAY();
  const auto shown = [](const char* words) {
    return on_screen({{20, 60}, words, {FontRole::ui, 26, 400}, rgb(0xFFFFFF), Anchor::start, 0});
  };
  Glyphs glyphs;
  const std::vector<Cluster> smile = glyphs.line("🙂", {FontRole::ui, 1, 400});
  REQUIRE(smile.size() == 1);
  if (glyphs.image(smile[0].glyph, 26).colored) {
    const Image image = shown("🙂");
    int yellow = 0;
    for (int y = 20; y < 80; ++y)
      for (int x = 0; x < 80; ++x) yellow += image.at(x, y).r > image.at(x, y).b + 80;
    CHECK(yellow > 150);
  } else {
    MESSAGE("skipped: no font with coloured emoji");
  }
  REQUIRE_FALSE(glyphs.has(0x378, {FontRole::ui, 1, 400}));  // no character has that number
  const Color ground = theme("dark").background;
  const std::vector<double> box = profile(shown("\u0378"), ground), question = profile(shown("?"), ground);
  REQUIRE(box.size() > 8);
  // Its sides stand upright over most of the em.
  CHECK(*std::max_element(box.begin(), box.begin() + 3) > 10);
  CHECK(*std::max_element(box.end() - 3, box.end()) > 10);
  CHECK(std::abs(static_cast<double>(box.size()) - static_cast<double>(question.size())) > 2);
}

TEST_CASE("a proportional face stays one after text that only another font has") {
  HEADSCOPE_NEEDS_DISPLAY();
  Window window(offscreen());
  std::vector<double> widths;
  const char* words = "";
  Driver driver(window, [&](Ui& ui) {
    const UseFont font(ui, ui.body());
    ImGui::TextUnformatted(words);
    widths = {ui.fonts.width("iiii", ui.body()), ui.fonts.width("mmmm", ui.body()), ui.fonts.width("iiii", ui.token()),
              ui.fonts.width("mmmm", ui.token())};
  });
  driver.frames(3);
  const std::vector<double> before = widths;
  CHECK(before[0] < 0.5 * before[1]);
  CHECK(before[2] == doctest::Approx(before[3]));
  for (const char* each : {"⏎ ␣", chinese, arabic, hebrew, hindi, emoji, "한국어 ไทย \u0378 \U000F0000 \U00040001"}) {
    words = each;
    driver.frames(4);
    CHECK(widths == before);
  }
}

TEST_CASE("the prompt is edited in every script: what is seen is under the pointer and the caret") {
  HEADSCOPE_NEEDS_DISPLAY();
  Window window(offscreen());
  PromptEdit edit;
  PromptTouch touch;
  std::string text;
  std::vector<TextMark> marks;
  Driver driver(window, [&](Ui& ui) {
    ImGui::SetNextWindowPos({0, 0});
    ImGui::SetNextWindowSize({600, 400});
    ImGui::Begin("page", nullptr, ImGuiWindowFlags_NoDecoration);
    touch = edit.draw(ui, "##prompt", text, marks, 8, "");
    text = edit.text();
    ImGui::End();
  });
  const Item field = driver.item("##prompt");
  // A paragraph that runs from right to left stands at the right edge; its first letter is hovered there.
  text = arabic;
  driver.move_to({field.max.x - 15, field.min.y + 17});
  REQUIRE(touch.hovered);
  CHECK(*touch.hovered <= 2);
  driver.move_to({field.min.x + 20, field.min.y + 17});
  CHECK_FALSE(touch.hovered);
  // A click there puts the caret at its beginning, the left arrow goes on, and what is typed stands between.
  driver.click_at({field.max.x - 12, field.min.y + 17});
  driver.key(ImGuiKey_LeftArrow);
  driver.type("ب");
  CHECK(text == "مبرحبا بالعالم");
  driver.key(ImGuiKey_Backspace);
  CHECK(text == arabic);
  driver.key(ImGuiKey_End);
  driver.key(ImGuiKey_Backspace);
  CHECK(text == "مرحبا بالعال");

  // Emoji of several characters are one step, and go at one stroke.
  driver.key(ImGuiKey_A, ImGuiMod_Ctrl);
  driver.type(std::string("a") + emoji);
  CHECK(text == std::string("a") + emoji);
  driver.key(ImGuiKey_Backspace);
  driver.key(ImGuiKey_LeftArrow);
  driver.key(ImGuiKey_Delete);
  CHECK(text == "a🙂");

  // A token that ends inside a character marks all of it: something is drawn.
  driver.key(ImGuiKey_A, ImGuiMod_Ctrl);
  driver.type("今天");
  marks = {{1, 2, rgb(0xFF0000), {0, 0, 0, 0}}};
  driver.frames(2);
  const Image image = window.capture();
  int red = 0;
  for (int y = 0; y < 60; ++y)
    for (int x = 0; x < 100; ++x) red += image.at(x, y).r > 200 && image.at(x, y).g < 60;
  CHECK(red > 60);
}

TEST_CASE("a field of one line shows every script as it is read, and holds what is typed") {
  HEADSCOPE_NEEDS_DISPLAY();
  for (const char* words : {"Effective tokens", arabic, hebrew, hindi, chinese})
    for (const bool as_hint : {false, true}) {
      CAPTURE(std::string(words));
      CAPTURE(as_hint);
      const Font font{FontRole::ui, 26, 400};
      Window window(offscreen());
      std::string text = as_hint ? "" : words;
      Driver driver(window, [&](Ui& ui) {
        ImGui::SetNextWindowPos({0, 0});
        ImGui::SetNextWindowSize({600, 400});
        ImGui::PushStyleVar(ImGuiStyleVar_FrameBorderSize, 0);
        for (const ImGuiCol bare : {ImGuiCol_FrameBg, ImGuiCol_FrameBgHovered, ImGuiCol_WindowBg, ImGuiCol_Border})
          ImGui::PushStyleColor(bare, 0);
        for (const ImGuiCol ink : {ImGuiCol_Text, ImGuiCol_TextDisabled}) ImGui::PushStyleColor(ink, IM_COL32_WHITE);
        ImGui::Begin("page", nullptr, ImGuiWindowFlags_NoDecoration);
        {
          const UseFont use(ui, font);
          ImGui::SetNextItemWidth(500);
          input_line(ui, "##line", words, text);
          ui.name("##line", ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
        }
        ImGui::End();
        ImGui::PopStyleColor(6);
        ImGui::PopStyleVar();
      });
      driver.frames(3);
      const Color ground = window.capture().at(700, 410);
      const std::vector<double> shown = profile(window.capture(), ground),
                                wanted = profile(in_a_file({{20, 60}, words, font, rgb(0xFFFFFF), Anchor::start, 0}),
                                                 theme("dark").background);
      CHECK(std::abs(static_cast<double>(shown.size()) - static_cast<double>(wanted.size())) <
            3 + 0.03 * static_cast<double>(wanted.size()));
      CHECK(alike(shown, wanted) > 0.75);
      driver.click("##line");
      driver.key(ImGuiKey_End);
      driver.type("م");
      driver.click_at({700, 300});
      CHECK(text == (as_hint ? "" : std::string(words)) + "م");
    }
}

TEST_CASE("every workspace and page lives with text of every script") {
  HEADSCOPE_NEEDS_DISPLAY();
  AppOptions options = Explore::options(900, 640);
  options.example = "tiny-gpt2";
  options.text = all;
  App app(options);
  AllWorkspaces workspaces(app);
  Driver driver(app.window(), [&] { app.frame(); });
  REQUIRE(driver.until([&] { return app.settled() && app.explorer().results().run; }, 3000));
  workspaces.generation.write_at_once(2);
  REQUIRE(app.explorer().results().run->trace->text == all);
  const double proportional = app.window().fonts().width("iiii", {FontRole::ui, 13, 400});
  const auto page = [&](int workspace) {
    app.requests().workspace = workspace;
    driver.frames(2);
    driver.until([&] { return app.settled(); }, 12);  // what takes longer shows its text another time
    driver.frames(1);
  };
  for (int workspace = 0; workspace < static_cast<int>(workspace_list.size()); ++workspace) page(workspace);
  for (const auto& each : std::vector(app.requests().pages)) {
    app.settings().pages[each.of] = each.id;
    page(each.workspace);
  }
  CHECK(app.window().fonts().width("iiii", {FontRole::ui, 13, 400}) == proportional);
  CHECK(proportional < app.window().fonts().width("mmmm", {FontRole::ui, 13, 400}) / 2);
}

TEST_CASE("Generate shows line breaks, and characters that two tokens share, under every set of fonts") {
  HEADSCOPE_NEEDS_DISPLAY();
  AppOptions options = Explore::options(900, 640);
  options.example = "tiny-gpt2";
  options.text = std::string(arabic) + "\n" + chinese + "\n\n" + hindi + "\r\n🙂\t\n" + arabic;
  App app(options);
  AllWorkspaces workspaces(app);
  Driver driver(app.window(), [&] { app.frame(); });
  REQUIRE(driver.until([&] { return app.settled() && app.explorer().results().run; }, 3000));
  driver.click("Generate");
  GenerationController& controller = workspaces.generation;
  controller.settings().past_end = true;
  REQUIRE(driver.until([&] { return controller.next().has_value(); }, 3000));
  controller.write_at_once(3);
  REQUIRE(driver.until([&] { return controller.branch().steps.size() >= 3 && app.settled(); }, 3000));
  const Trace& text = *controller.text();
  int shared = 0, breaks = 0;
  const Color ground = app.window().theme().background;
  // The text is scrolled through from its end to its beginning: every chip is drawn once.
  driver.hover("tape next");
  for (const float wheel : {2.f, 2.f, 2.f, 2.f, 2.f, 2.f, 2.f, 50.f}) {
    driver.wheel(wheel);
    driver.frames(3);
  }
  for (std::size_t i = 0; i < text.tokens.size(); ++i) {
    const Token& token = text.tokens[i];
    shared += first_invalid_utf8(token.bytes).has_value();
    breaks += token.bytes.find('\n') != std::string::npos;
    // What stands on the chip is UTF-8 that one line holds; half a character is seen to be one.
    CHECK_FALSE(first_invalid_utf8(token.label));
    CHECK(token.label.find('\n') == std::string::npos);
    CHECK_FALSE(token.label.empty());
  }
  CHECK(shared > 4);
  CHECK(breaks >= 4);
  // Beside one another in the order of the text, in whole lines: a break stays a chip among others.
  const Item first = driver.item("tape 0");
  CHECK(first.max.x > first.min.x);
  const Image image = app.window().capture();
  int ink = 0;
  for (int y = static_cast<int>(first.min.y); y < static_cast<int>(first.max.y); ++y)
    for (int x = static_cast<int>(first.min.x); x < static_cast<int>(first.max.x); ++x)
      ink += !(image.at(x, y) == ground);
  CHECK(ink > 20);
}

TEST_SUITE_END();

}  // namespace headscope::scripts_test
