// What a picture's file remembers of how it was made, in each kind of file.

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/file.h"
#include "tests/support/paths.h"
#include "tests/viz/xml.h"
#include "viz/export/animation.h"
#include "viz/export/csv.h"
#include "viz/export/pdf.h"
#include "viz/export/png.h"
#include "viz/export/recipe_note.h"
#include "viz/export/svg.h"

namespace headscope::recipe_note_test {

using testing::scratch_dir;

namespace {
Scene with_recipe(std::string recipe) {
  Scene scene;
  scene.width = 20, scene.height = 10;
  scene.background = {1, 2, 3, 255};
  scene.title = "A picture";
  scene.description = "of nothing";
  scene.recipe = std::move(recipe);
  return scene;
}

/// Longer than the limit that libpng sets by itself, and with all that XML and JSON give a meaning to.
std::string long_recipe() {
  std::string out = R"({"a": "<&>\"'</metadata> \\u00fc &amp; --> ]]>", "b": ")";
  while (out.size() < 9'000'000) out += "0123456789 <b> & ";
  return out + "\"}";
}
}  // namespace

TEST_CASE("PNG, SVG, PDF and CSV give back the recipe that they were written with, whatever stands in it") {
  const auto folder = scratch_dir("recipe-note");
  for (const std::string& recipe : {std::string("{}"), long_recipe()}) {
    const Scene scene = with_recipe(recipe);
    for (const char* name : {"a.png", "a.svg", "a.pdf", "a.csv", "A.PNG", "A.SVG", "A.PDF"}) {
      CAPTURE(name);
      const auto file = folder / name;
      if (file.extension() == ".csv")
        write_scene_csv(file, scene), write_csv_metadata(file, scene);
      else if (file.extension() == ".svg" || file.extension() == ".SVG")
        write_svg(file, scene);
      else if (file.extension() == ".pdf" || file.extension() == ".PDF")
        write_pdf(file, scene);
      else
        write_png(file, scene);
      CHECK(read_recipe(file) == recipe);
    }
  }
  CHECK_NOTHROW(testing::XmlReader(read_file(folder / "a.svg", std::size_t{1} << 30)).read());
}

TEST_CASE("without a recipe there is none, and pictures of other programs have none") {
  const auto folder = scratch_dir("recipe-none");
  write_png(folder / "a.png", with_recipe(""));
  write_svg(folder / "a.svg", with_recipe(""));
  write_pdf(folder / "a.pdf", with_recipe(""));
  write_file_atomically(folder / "a.csv", "1,2\n");
  write_file_atomically(folder / "b.svg", "<svg><metadata>something else</metadata></svg>");
  for (const char* name : {"a.png", "a.svg", "a.pdf", "a.csv", "b.svg"}) CHECK(read_recipe(folder / name) == "");
}

TEST_CASE("films give back their recipe, of any length, and are the same pictures without it") {
  const auto folder = scratch_dir("recipe-films");
  const std::vector<Image> frames{rasterize(with_recipe(""), 1), rasterize(with_recipe(""), 2)};
  const std::string bare = encode_gif(frames, 0.1);
  for (const std::size_t length :
       {std::size_t{1}, std::size_t{254}, std::size_t{255}, std::size_t{256}, std::size_t{510}, std::size_t{70'000}}) {
    const std::string recipe = long_recipe().substr(0, length);
    const std::string gif = encode_gif(frames, 0.1, recipe);
    CHECK(recipe_in_gif(gif) == recipe);
    CHECK(gif_without_recipe(gif) == bare);
    write_file_atomically(folder / "a.gif", gif);
    CHECK(read_recipe(folder / "a.gif") == recipe);
    const std::string apng = encode_apng(frames, 0.1, {.title = "IDAT", .description = "of nothing", .recipe = recipe});
    write_file_atomically(folder / "a.apng", apng);
    CHECK(read_recipe(folder / "a.apng") == recipe);
    CHECK(png_chunks(apng, "fdAT") == png_chunks(encode_apng(frames, 0.1), "fdAT"));
    for (std::size_t cut = 0; cut < std::min<std::size_t>(gif.size(), 2000); ++cut)
      CHECK_NOTHROW(recipe_in_gif(std::string_view(gif).substr(0, cut)));
  }
  CHECK(recipe_in_gif(bare) == "");
  CHECK(gif_without_recipe(bare) == bare);
  CHECK(recipe_in_gif("GIF89a") == "");
}

TEST_CASE("a CSV's companion says of which file it is; an old one goes, another program's stays") {
  const auto folder = scratch_dir("recipe-csv");
  const auto csv = folder / "n.csv", companion = csv_metadata_path(csv);
  CHECK(companion.filename() == "n.csv-metadata.json");
  write_csv_metadata(csv, with_recipe("{\"x\": 1}"));
  const auto told = nlohmann::json::parse(read_file(companion));
  CHECK(told["@context"] == "http://www.w3.org/ns/csvw");
  CHECK(told["url"] == "n.csv");
  CHECK(told["dc:title"] == "A picture");
  CHECK(told["dc:description"] == "of nothing");
  write_csv_metadata(csv, with_recipe(""));
  CHECK_FALSE(std::filesystem::exists(companion));
  const std::string foreign = "{\"url\": \"n.csv\"}";
  write_file_atomically(companion, foreign);
  for (const char* recipe : {"", "{}"}) {
    write_csv_metadata(csv, with_recipe(recipe));
    CHECK(read_file(companion) == foreign);
  }
}

TEST_CASE("a broken PNG is an error that names the file") {
  const auto folder = scratch_dir("recipe-broken");
  write_png(folder / "a.png", with_recipe("{}"));
  const std::string whole = read_file(folder / "a.png");
  for (const std::size_t length : {std::size_t{0}, std::size_t{7}}) {  // not even the beginning of one
    write_file_atomically(folder / "cut.png", whole.substr(0, length));
    CHECK(read_recipe(folder / "cut.png") == "");
  }
  for (const std::size_t length : {std::size_t{8}, std::size_t{20}, std::size_t{60}, std::size_t{150}}) {
    CAPTURE(length);
    write_file_atomically(folder / "cut.png", whole.substr(0, length));
    CHECK_THROWS_WITH_AS(read_recipe(folder / "cut.png"), doctest::Contains("cut.png"), Error);
  }
  CHECK_THROWS_AS(read_recipe(folder / "absent.png"), Error);
}

}  // namespace headscope::recipe_note_test
