#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>

#include "core/base/file.h"
#include "tests/gui/explore.h"
#include "tests/support/paths.h"
#include "viz/export/png.h"

namespace headscope::chat_test {

using testing::Explore;
namespace fs = std::filesystem;

namespace {

fs::path model_that_chats() {
  const fs::path folder = testing::scratch_dir("chat-window");
  for (const char* name : {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"})
    fs::copy_file(testing::source_dir() / "models/tiny-llama" / name, folder / name,
                  fs::copy_options::overwrite_existing);
  write_file_atomically(
      folder / "chat_template.jinja",
      "{{ bos_token }}{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('No system here.') }}"
      "{% endif %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant:");
  return folder;
}

/// Where somebody wants to see it, a picture of the window.
void picture(Explore& e, const std::string& name) {
  if (const char* folder = std::getenv("HEADSCOPE_TEST_PICTURES")) {
    e.driver.frames(3);
    write_file_atomically(fs::path(folder) / (name + ".png"),
                          encode_png(e.app.window().capture(), 96, {.title = "Headscope", .description = ""}));
  }
}

}  // namespace

TEST_CASE("what a user says goes into the prompt between the marks of the model's template") {
  HEADSCOPE_NEEDS_DISPLAY();
  AppOptions options = Explore::options(1280, 720);
  options.model = model_that_chats();
  options.text = "Anna sold";
  Explore e(options);
  CHECK_FALSE(e.driver.shown("Read as plain text"));
  e.driver.click("Chat…");
  REQUIRE(e.driver.until([&] { return e.driver.shown("Put into the prompt"); }));
  e.driver.click("##chat system");
  e.driver.type("Be kind");
  e.driver.click("##chat user");
  e.driver.type("Hi");
  picture(e, "chat-1280x720");
  e.driver.click("Put into the prompt");
  e.driver.frames(3);
  // The template has no place for a system's words, and says so; the form stays.
  CHECK(e.state().document.text == "Anna sold");
  REQUIRE(e.driver.shown("Put into the prompt"));
  picture(e, "chat-refused-1280x720");
  e.driver.click("##chat system");
  e.driver.key(ImGuiKey_A, ImGuiMod_Ctrl);
  e.driver.key(ImGuiKey_Delete);
  e.driver.click("Put into the prompt");
  REQUIRE(e.driver.until([&] { return e.state().document.text == "<|endoftext|>user: Hi\nassistant:"; }));
  REQUIRE(e.settle());
  CHECK(e.results().run->trace->tokens.front().label == "<|endoftext|>");
  CHECK(e.results().run->trace->tokens[1].label != "<");
  picture(e, "chat-prompt-1280x720");
  e.driver.click("Read as plain text");
  REQUIRE(e.driver.until([&] { return !e.state().document.parse_special; }));
  REQUIRE(e.settle());
  CHECK(e.results().run->trace->tokens[1].label == "<");
}

}  // namespace headscope::chat_test
