// render --again: pictures of every command drawn once more from what their files remember.

#include <doctest/doctest.h>

#include "core/base/file.h"
#include "core/io/picture.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"
#include "viz/export/png.h"
#include "viz/export/recipe_note.h"

namespace headscope::again_test {

using namespace testing;
namespace fs = std::filesystem;

namespace {
using Words = std::vector<std::string>;

std::string model() {
  return (source_dir() / "models/tiny-gpt2").string();
}

Finished draw(Words words, const fs::path& out, const ProcessOptions& options = {}) {
  words.insert(words.end(), {"-o", out.string()});
  Finished done = run_cli(words, options);
  CAPTURE(done.err);
  REQUIRE(done.code == 0);
  return done;
}

Finished again(const fs::path& picture, const Words& more = {}, const ProcessOptions& options = {}) {
  Words words{"render", "--again", picture.string()};
  words.insert(words.end(), more.begin(), more.end());
  return run_cli(words, options);
}

void check_same(const fs::path& picture) {
  const Finished done = again(picture, {}, {.folder = "/"});
  CAPTURE(picture.string());
  CAPTURE(done.err);
  CHECK(done.code == 0);
  CHECK(done.out == "the same as " + picture.string() + "\n");
}
}  // namespace

TEST_CASE("what any command drew is drawn again the same, from another folder") {
  const auto folder = scratch_dir("again");
  const std::string text = "Anna sold pies";
  const Words render{"render", "-m", model(), "-t", text};
  const auto with = [](Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const std::pair<std::string, Words> drawn[] = {
      {"grid.png", render},
      {"map.png", with(render, {"--head", "1.0", "--scale", "log", "--theme", "print", "--dpi", "150"})},
      {"map.csv", with(render, {"--head", "1.0"})},
      {"row.csv", with(render, {"--row", "-1"})},
      {"words.svg", with(render, {"--head", "0.1", "--words", "--renormalize"})},
      {"edit.png", with(render, {"--head", "0.1", "--edit", "0.*: temperature 3", "--mask", "1.0=window 2"})},
      {"bundled.png", {"render", "-m", "tiny-gpt2", "-t", text}},
      {"mechanism.png", {"mechanism", "softmax", "--random", "6"}},
      {"mechanism.svg", {"mechanism", "softmax", "-m", model(), "-t", text, "--head", "0.0"}},
      {"mask.png", {"mask", "window 3", "-n", "9"}},
      {"map.pdf", with(render, {"--head", "1.0", "--dpi", "96", "--inches", "5"})},
      {"mechanism.pdf", {"mechanism", "softmax", "--random", "6"}},
      {"lens.svg", {"read", "lens", "-m", model(), "-t", text}},
      {"beams.png", {"generate", "-m", model(), "-t", text, "--beams", "2", "--tokens", "3"}},
      {"compare.png", {"compare", "-m", model(), "-t", text, "--with-text", "Anna sold milk", "--head", "0.1"}},
  };
  for (const auto& [name, words] : drawn) {
    CAPTURE(name);
    draw(words, folder / name);
    check_same(folder / name);
  }
}

TEST_CASE("a text from a file or from standard input is remembered: it may be gone by then") {
  const auto folder = scratch_dir("again-text");
  write_file_atomically(folder / "text.txt", "Anna sold\n“pies” & <milk>");
  draw({"render", "-m", model(), "--file", "text.txt", "--head", "0.1"}, folder / "file.png",
       {.folder = folder.string()});
  fs::remove(folder / "text.txt");
  check_same(folder / "file.png");
  draw({"render", "-m", model(), "-", "--head", "0.1"}, folder / "input.svg", {.input = "Anna sold milk"});
  check_same(folder / "input.svg");
  const fs::path text = folder / "more.txt";
  const std::pair<std::string, Words> drawn[] = {
      {"short.png", {"render", "-m", model(), "-f", text.string(), "--head", "0.1"}},
      {"joined.png", {"render", "-m", model(), "-f" + text.string(), "--head", "0.1"}},
      {"beams.png", {"generate", "-m", model(), "-f", text.string(), "--beams", "2", "--tokens", "2"}},
      {"lens.png", {"read", "lens", "-m", model(), "--file=" + text.string()}},
      {"mask.png", {"mask", "lsh 4 rounds 2 seed 1", "-m", model(), "-f", text.string(), "--head", "0.1"}},
      {"dashes.png", {"render", "-m", model(), "-t", "-oh no - --out x", "--head", "0.1"}},
  };
  for (const auto& [name, words] : drawn) {
    CAPTURE(name);
    write_file_atomically(text, "Anna sold milk and pies");
    draw(words, folder / name);
    fs::remove(text);
    check_same(folder / name);
  }
  draw({"generate", "-m", model(), "-", "--beams", "2", "--tokens", "2"}, folder / "b.png",
       {.input = "Anna sold milk"});
  check_same(folder / "b.png");
}

TEST_CASE("drawn into another file it is the same picture, with the same recipe; another kind is not compared") {
  const auto folder = scratch_dir("again-out");
  const auto a = folder / "a.png", b = folder / "b.png";
  draw({"render", "-m", model(), "-t", "Anna sold pies", "--head", "0.1"}, a);
  const Finished done = again(a, {"-o", b.string()});
  CHECK(done.code == 0);
  CHECK(done.out == b.string() + "\nthe same as " + a.string() + "\n");
  CHECK(read_picture(a) == read_picture(b));
  check_same(b);
  const Finished svg = again(a, {"-o", (folder / "b.svg").string()});
  CHECK(svg.code == 0);
  CHECK(svg.err.find("not compared") != std::string::npos);
  check_same(folder / "b.svg");
  const Finished over = again(a, {"-o", a.string()});  // over itself
  CHECK(over.code == 0);
  CHECK(over.out.find("the same") != std::string::npos);
}

TEST_CASE("a film is made anew to the byte, its text may be gone by then; what is no film is not made of it") {
  const auto folder = scratch_dir("again-film");
  const fs::path text = folder / "text.txt";
  const auto film = [&](const fs::path& out, const Words& options, const Words& command) {
    Words words{"animate", "-o", out.string()};
    words.insert(words.end(), options.begin(), options.end());
    words.emplace_back("--");
    words.insert(words.end(), command.begin(), command.end());
    write_file_atomically(text, "Anna sold pies");
    const Finished made = run_cli(words);
    CAPTURE(made.err);
    REQUIRE(made.code == 0);
    fs::remove(text);
  };
  const Words softened{"render", "-m", model(), "-f", text.string(), "--head", "0.1", "--temperature", "{}"};
  for (const char* name : {"a.gif", "a.apng"}) {
    const fs::path a = folder / name, b = folder / (std::string("b") + name);
    film(a, {"--over", "0.5..2:3", "--log", "--back", "--seconds", "0.2"}, softened);
    check_same(a);
    const Finished anew = again(a, {"-o", b.string()}, {.folder = "/"});
    CAPTURE(anew.err);
    CHECK(anew.out == b.string() + "\nthe same as " + a.string() + "\n");
    CHECK(read_file(a) == read_file(b));
    std::string other = read_file(a);
    other[other.size() - (a.extension() == ".gif" ? 30 : 60)] ^= 1;  // in the last picture
    write_file_atomically(a, other);
    CHECK(again(a).first_error().find("the film is different") != std::string::npos);
  }
  film(folder / "mask.gif", {"--over", "2..3"}, {"mask", "window {}", "-n", "9"});
  check_same(folder / "mask.gif");
  CHECK(again(folder / "mask.gif", {"-o", (folder / "x.png").string()}).code == 2);
  // A text in each picture: what a recipe may not read.
  write_file_atomically(folder / "1.txt", "Anna");
  film(folder / "texts.gif", {"--over", "1,1"}, {"render", "-m", model(), "-f", (folder / "{}.txt").string()});
  CHECK(again(folder / "texts.gif").first_error().find("were not expected") != std::string::npos);
  const Finished plain = run_cli({"--no-recipe", "animate", "-o", (folder / "plain.gif").string(), "--over", "2..3",
                                  "--", "mask", "window {}", "-n", "9"});
  REQUIRE(plain.code == 0);
  CHECK(read_recipe(folder / "plain.gif") == "");
  // A picture whose recipe makes a series writes none.
  Scene scene;
  scene.width = scene.height = 10;
  scene.recipe = R"({"type": "headscope picture", "version": 1, "folder": "/", "command": )"
                 R"(["animate", "--over", "2..3", "--", "mask", "window {}", "-n", "9"]})";
  write_png(folder / "series.png", scene);
  CHECK(again(folder / "series.png", {"-o", (folder / "s.png").string()}).code == 1);
  CHECK_FALSE(fs::exists(folder / "s-0.png"));
}

TEST_CASE("a picture that is another by now says how much of it, and by which version it was drawn") {
  const auto folder = scratch_dir("again-other");
  const auto a = folder / "a.png";
  draw({"render", "-m", model(), "-t", "Anna sold pies", "--head", "0.1"}, a);
  const Picture seen = read_picture(a);
  Image image{static_cast<int>(seen.width), static_cast<int>(seen.height), {}};
  for (std::size_t i = 0; i < seen.rgb.size(); i += 3)
    image.rgba.insert(image.rgba.end(), {seen.rgb[i], seen.rgb[i + 1], seen.rgb[i + 2], 255});
  image.rgba[4 * 1000] ^= 1;
  image.rgba[4 * 2000 + 2] ^= 1;
  write_file_atomically(a, encode_png(image, 96, {.title = "", .description = "", .recipe = read_recipe(a)}));
  const Finished other = again(a);
  CHECK(other.code == 1);
  CHECK(other.err.find("2 of " + std::to_string(seen.width * seen.height) + " pixels are different") !=
        std::string::npos);
  const Finished kept = again(a, {"-o", (folder / "b.png").string()});
  CHECK(kept.code == 0);
  CHECK(kept.err.find("2 of ") != std::string::npos);

  const auto c = folder / "c.csv";
  draw({"render", "-m", model(), "-t", "Anna sold pies", "--head", "0.1"}, c);
  write_file_atomically(c, read_file(c) + "9,9\n");
  CHECK(again(c).err.find("the numbers are different") != std::string::npos);
}

TEST_CASE("what cannot be drawn again says why") {
  const auto folder = scratch_dir("again-why");
  draw({"render", "-m", model(), "-t", "Anna sold pies", "--no-recipe"}, folder / "plain.png");
  CHECK(read_recipe(folder / "plain.png") == "");
  CHECK(again(folder / "plain.png").first_error().find("no recipe") != std::string::npos);
  CHECK(again(folder / "plain.png").code == 1);
  CHECK(again(folder / "absent.png").code == 1);
  CHECK(again(folder / "a.txt").code == 2);
  draw({"render", "-m", model(), "-t", "Anna sold pies"}, folder / "a.png");
  for (const Words& more : {Words{"--theme", "print"}, Words{"--caption"}, Words{"--head", "0.1"}})
    CHECK(again(folder / "a.png", more).code == 2);
  CHECK(again(folder / "a.png", {"--threads", "1"}).code == 0);
  CHECK(again(folder / "a.png", {"--no-recipe"}).code == 0);
  Scene scene;
  scene.width = scene.height = 10;
  const auto with = [&](const char* recipe) {
    scene.recipe = recipe;
    write_png(folder / "x.png", scene);
    return again(folder / "x.png");
  };
  const std::string session = R"({"type": "headscope session", "version": 3})";
  const Finished page =
      with((R"({"type": "headscope picture", "version": 1, "page": "Sinks", "session": )" + session + "}").c_str());
  CHECK(page.code == 1);
  CHECK(page.err.find("Sinks") != std::string::npos);
  const Finished unknown = with(R"({"type": "headscope picture", "version": 1, "command": ["paint"], "folder": "/"})");
  CHECK(unknown.code == 1);
  CHECK(unknown.err.find("paint") != std::string::npos);
  // A stranger's file draws, and does nothing else.
  for (const char* command :
       {R"(["pull", "a/b"])", R"(["train", "x.json"])", R"(["--threads", "1", "lesson", "list"])",
        R"(["render", "--again", "x.png"])", R"(["--help"])",
        R"(["render", "-m", "tiny-gpt2", "--file", "/etc/hostname"])", R"(["render", "-m", "tiny-gpt2", "-"])"}) {
    CAPTURE(std::string(command));
    const Finished more =
        with((R"({"type": "headscope picture", "version": 1, "folder": "/", "command": )" + std::string(command) + "}")
                 .c_str());
    CHECK(more.code == 1);
    CHECK(more.out == "");
  }
  // One that would write what it likes into the file that it is given.
  const Finished capture = with(
      R"({"type": "headscope picture", "version": 1, "folder": "/", "command": ["capture", "-m", "tiny-gpt2", "-t", "a"]})");
  CHECK(capture.err.find("\"capture\" does more than to draw a picture") != std::string::npos);
  with((R"({"type": "headscope picture", "version": 1, "folder": "/", "command": ["mask", "full", "--out", ")" +
        (folder / "elsewhere.png").string() + "\"]}")
           .c_str());
  CHECK_FALSE(fs::exists(folder / "elsewhere.png"));
  const Finished nothing = with(R"({"type": "headscope picture", "version": 1})");
  CHECK(nothing.code == 1);
  CHECK(nothing.err.find("x.png") != std::string::npos);
}

TEST_CASE("the caption names model, text, head, scale, what became of the first token, and edits") {
  const auto caption = [](const Words& more) {
    Words words{"render", "-m", model(), "-t", "Anna sold pies", "--caption"};
    words.insert(words.end(), more.begin(), more.end());
    const Finished done = run_cli(words);
    CAPTURE(done.err);
    REQUIRE(done.code == 0);
    return done.out;
  };
  const std::string plain = caption({"--head", "1.2"});
  for (const char* words :
       {"Attention weights of head 1.2 (LAYER.HEAD, counted from 0)", "tiny-gpt2 · ", "“Anna sold pies”",
        "Rows are queries, columns keys; colour: attention weight (probability), linear.",
        "Nothing is averaged over heads or layers.", "The first token is shown as any other.",
        "The model is as it was trained.", "Model tiny-gpt2, ", "Drawn by Headscope "})
    CHECK_MESSAGE(plain.find(words) != std::string::npos, words);
  const std::string changed =
      caption({"--head", "0.1", "--renormalize", "--scale", "row", "--words", "--edit", "0.1: temperature 2"});
  for (const char* words : {"÷ largest of its row", "each row is divided by what remains",
                            "the sum over a word's tokens", "The model was changed: ", "2"})
    CHECK_MESSAGE(changed.find(words) != std::string::npos, words);
  CHECK(caption({"--head", "0.1", "--arcs", "--threshold", "0.2"}).find("less than 0.2 are left out") !=
        std::string::npos);
  CHECK(caption({"--head", "0.1", "--bars", "--row", "1", "--skip-first"}).find("rows sum to what remains") !=
        std::string::npos);
  CHECK(caption({"--head", "0.1", "--steps", "--skip-first"}).find("shown as any other") != std::string::npos);
  CHECK(caption({"--skip-first"}).find("shown as any other") != std::string::npos);
  CHECK(caption({"--row", "1", "--skip-first"}).find("rows sum to what remains") != std::string::npos);
  CHECK(caption({}).find("a map each") != std::string::npos);
  CHECK(caption({"--row", "1"}).find("a row each") != std::string::npos);
}

}  // namespace headscope::again_test
