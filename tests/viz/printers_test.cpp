#include <doctest/doctest.h>
#include <png.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

#include "core/base/error.h"
#include "core/base/file.h"
#include "tests/support/paths.h"
#include "tests/viz/sample.h"
#include "tests/viz/xml.h"
#include "viz/export/csv.h"
#include "viz/export/png.h"
#include "viz/export/svg.h"
#include "viz/scene/arcs.h"
#include "viz/scene/head_grid.h"
#include "viz/scene/head_map.h"
#include "viz/scene/row_bars.h"
#include "viz/scene/several_heads.h"

namespace headscope::printers_test {

using namespace testing;

TEST_CASE("the numbers of any picture as CSV: cells with their labels, series, and what tooltips say") {
  Scene scene;
  Heatmap map;
  const float cells[] = {0.25f, 1, 2, 3};
  map.values = Tensor::from({2, 2}, cells);
  map.masked = {0, 1, 0, 0};
  scene.add({map, "matrix", ""});
  scene.add({Text{{}, "layer, 1", {}, {}, Anchor::end, 0}, "row.1", "", LabelOf{LabelOf::row, 1}});
  scene.add({Text{{}, "Mrs", {}, {}, Anchor::end, 0}, "label.key.0", "", LabelOf{LabelOf::column, 0}});
  scene.add({Text{{}, "of another", {}, {}, Anchor::end, 0}, "", "", LabelOf{LabelOf::column, 1, "map"}});
  scene.add({map, "colorbar", "", Aside::color_bar});
  scene.add({Box{}, "bar.3", "0.5 … 1: 12 \"heads\""});
  scene.add({Box{}, "", "decoration"});
  scene.series.push_back({"loss", {1, 2}, {0.5, std::nan("")}, {"a", "b"}});
  std::ostringstream out;
  write_scene_csv(out, scene);
  CHECK(out.str() ==
        "part,row,row_label,column,column_label,value,text\n"
        "matrix,0,,0,Mrs,0.25,\n"
        "matrix,0,,1,,,\n"
        "matrix,1,\"layer, 1\",0,Mrs,2,\n"
        "matrix,1,\"layer, 1\",1,,3,\n"
        "bar.3,,,,,,\"0.5 … 1: 12 \"\"heads\"\"\"\n"
        "loss,0,a,1,,0.5,\n"
        "loss,1,b,2,,,\n");
}

namespace {

Image decode_png(const std::string& bytes) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  REQUIRE(png_image_begin_read_from_memory(&png, bytes.data(), bytes.size()));
  png.format = PNG_FORMAT_RGBA;
  Image out{static_cast<int>(png.width), static_cast<int>(png.height), {}};
  out.rgba.resize(PNG_IMAGE_SIZE(png));
  REQUIRE(png_image_finish_read(&png, nullptr, out.rgba.data(), 0, nullptr));
  return out;
}

/// The bytes of the first chunk of this type.
std::string chunk(const std::string& png, const char* type) {
  for (std::size_t at = 8; at + 8 <= png.size();) {
    std::uint32_t size = 0;
    for (std::size_t i = 0; i < 4; ++i) size = size << 8 | static_cast<unsigned char>(png[at + i]);
    if (png.compare(at + 4, 4, type) == 0) return png.substr(at + 8, size);
    at += 12 + size;
  }
  return "";
}

std::uint32_t big_endian(const std::string& bytes, std::size_t at) {
  std::uint32_t out = 0;
  for (std::size_t i = 0; i < 4; ++i) out = out << 8 | static_cast<unsigned char>(bytes[at + i]);
  return out;
}

Scene blank(double w, double h) {
  Scene scene;
  scene.width = w;
  scene.height = h;
  scene.background = rgb(0x102030);
  return scene;
}

Heatmap small_map(Rect rect, double gap) {
  const float values[] = {0, 0.25f, 0.5f, 1, 0.125f, 0.75f};
  const MapCells cells{1, Tensor::from({2, 3}, values), {0, 0, 1, 0, 1, 1}, 2, 3};
  Heatmap map = heatmap_of(cells, rect, ColorNorm{}, theme("dark"));
  map.gap = gap;
  return map;
}

const Heatmap& map_in(const Scene& scene, const std::string& id = "map") {
  const Mark* mark = find(scene, id);
  REQUIRE(mark);
  return std::get<Heatmap>(mark->shape);
}

}  // namespace

TEST_CASE(
    "at every scale the middle of each cell has the colour map's colour for its weight, masked cells the neutral") {
  for (const double scale : {0.25, 0.5, 1.0, 1.37, 2.0, 3.125}) {
    for (const double gap : {0.0, 1.0}) {
      CAPTURE(scale);
      CAPTURE(gap);
      Scene scene = blank(100, 60);
      const Heatmap map = small_map({11, 7, 60, 40}, gap);
      scene.add({map, "map", ""});
      const Image image = rasterize(scene, scale);
      CHECK(image.width == std::lround(100 * scale));
      for (Index r = 0; r < 2; ++r)
        for (Index c = 0; c < 3; ++c) {
          const Point middle = map.cell(r, c).center();
          const Color expected =
              map.is_masked(r, c) ? theme("dark").masked : colormap("inferno").at(map.values.at(r, c));
          CHECK(image.at(static_cast<int>(middle.x * scale), static_cast<int>(middle.y * scale)) == expected);
        }
      CHECK(image.at(1, 1) == rgb(0x102030));
    }
  }
}

TEST_CASE("cells meet without blending: every pixel of a map is one of its colours or the ground between") {
  Scene scene = blank(100, 60);
  const Heatmap map = small_map({11, 7, 60, 40}, 1);
  scene.add({map, "map", ""});
  for (const double scale : {1.0, 1.7, 2.0}) {
    const Image image = rasterize(scene, scale);
    for (int y = 0; y < image.height; ++y)
      for (int x = 0; x < image.width; ++x) {
        bool known = image.at(x, y) == rgb(0x102030);
        for (Index i = 0; i < 6; ++i) known |= image.at(x, y) == map.color(i / 3, i % 3);
        if (!known) FAIL_CHECK("a blend at " << x << ", " << y);
      }
  }
  // Two masked neighbours (row 1, columns 1 and 2) grow together; two visible ones are parted.
  const Image image = rasterize(scene, 1);
  CHECK(image.at(50, 35) == theme("dark").masked);  // last pixel column of cell (1, 1)
  CHECK(image.at(30, 15) == rgb(0x102030));         // last pixel column of cell (0, 0)
}

TEST_CASE("cells smaller than a pixel never hide the strongest") {
  Tensor values = Tensor::zeros({500, 500});
  values.ref(123, 457) = 1;
  MapCells cells{1, values, {}, 500, 500};
  Scene scene = blank(50, 50);
  scene.add({heatmap_of(cells, {0, 0, 50, 50}, ColorNorm{}, theme("dark")), "map", ""});
  CHECK(rasterize(scene, 1).at(45, 12) == colormap("inferno").table.back());
  CHECK(rasterize(scene, 0.1).at(4, 1) == colormap("inferno").table.back());
}

TEST_CASE("a peak of a line ends at its value, however sharp it is") {
  Scene scene;
  scene.width = 60, scene.height = 80;
  scene.background = rgb(0xFFFFFF);
  scene.add({Line{{{10, 70}, {14, 40}, {18, 70}}, rgb(0x000000), 2}, "line.a", ""});
  const Image image = rasterize(scene, 1);
  for (int y = 0; y < 38; ++y)
    for (int x = 0; x < 60; ++x) CHECK(image.at(x, y) == rgb(0xFFFFFF));
  CHECK(image.at(14, 41).r < 128);
  CHECK(encode_svg(scene).find("stroke-linejoin=\"round\"") != std::string::npos);
}

TEST_CASE("boxes, lines and text are painted where the scene says") {
  Scene scene = blank(100, 60);
  scene.add({Box{{10, 10, 20, 20}, rgb(0xFF0000), {0, 0, 0, 0}, 0, 0}, "", ""});
  scene.add({Box{{40, 10, 20, 20}, {0, 0, 0, 0}, rgb(0x00FF00), 2, 0}, "", ""});
  scene.add({Line{{{10, 50}, {90, 50}}, rgb(0x0000FF), 2}, "", ""});
  const Image image = rasterize(scene, 2);
  CHECK(image.at(40, 40) == rgb(0xFF0000));
  CHECK(image.at(80, 40) == rgb(0x00FF00));   // the edge
  CHECK(image.at(100, 40) == rgb(0x102030));  // the hollow
  CHECK(image.at(100, 100) == rgb(0x0000FF));
  Scene words = blank(200, 60);
  words.add({Text{{100, 40}, "Mary", {FontRole::ui, 20, 400}, rgb(0xFFFFFF), Anchor::end, 0}, "", ""});
  const Image text = rasterize(words, 1);
  int left = 200, right = -1, top = 60, bottom = -1;
  for (int y = 0; y < 60; ++y)
    for (int x = 0; x < 200; ++x)
      if (text.at(x, y) != rgb(0x102030))
        left = std::min(left, x), right = std::max(right, x), top = std::min(top, y), bottom = std::max(bottom, y);
  const TextBox box = PangoText().measure("Mary", {FontRole::ui, 20, 400});
  CHECK(right <= 100);
  CHECK(left == doctest::Approx(100 - box.width + box.ink.x).epsilon(0.03));
  CHECK(top == doctest::Approx(40 + box.ink.y).epsilon(0.06));
  CHECK(bottom <= 40 + box.ink.bottom());
}

TEST_CASE("sizes: pixels, inches and dpi, and clear limits") {
  const Scene scene = blank(480, 240);
  CHECK(pixel_size(scene, {}).width == 480);
  CHECK(pixel_size(scene, {{}, {}, 192.0}).width == 960);
  CHECK(pixel_size(scene, {{}, {}, 192.0}).dpi == 192);
  const PixelSize wide = pixel_size(scene, {1000, {}, {}});
  CHECK(wide.width == 1000);
  CHECK(wide.height == 500);
  const PixelSize paper = pixel_size(scene, {{}, 3.25, 600.0});
  CHECK(paper.width == 1950);
  CHECK(paper.dpi == 600);
  CHECK(pixel_size(scene, {1, {}, {}}).height == 1);
  CHECK_THROWS_WITH_AS(pixel_size(scene, {30001, {}, {}}), doctest::Contains("30001"), Error);
  CHECK_THROWS_WITH_AS(pixel_size(scene, {29000, {}, {}}), doctest::Contains("17320 px wide would fit"), Error);
  CHECK_THROWS_AS(pixel_size(scene, {0, {}, {}}), Error);
  CHECK_THROWS_AS(pixel_size(scene, {-5, {}, {}}), Error);
  CHECK_THROWS_AS(pixel_size(scene, {{}, std::nan(""), {}}), Error);
  CHECK_THROWS_AS(pixel_size(scene, {{}, {}, 0.0}), Error);
  CHECK_THROWS_AS(pixel_size(scene, {{}, {}, 1e9}), Error);
  CHECK_THROWS_AS(pixel_size(scene, {100, 3.0, {}}), Error);
  CHECK_THROWS_AS(pixel_size(Scene{}, {}), Error);
}

TEST_CASE("a PNG says its resolution, its colour space and what it shows, and holds the picture") {
  const Trace trace = known_trace();
  const PangoText measure;
  HeadMapOptions options;
  const Scene scene = head_map_scene(trace, options, {theme("dark"), measure});
  const auto path = scratch_dir("png") / "map.png";
  const PixelSize size = write_png(path, scene, {{}, {}, 300.0});
  const std::string bytes = read_file(path);
  const std::string physical = chunk(bytes, "pHYs");
  REQUIRE(physical.size() == 9);
  CHECK(big_endian(physical, 0) == 11811);  // 300 / 0.0254
  CHECK(big_endian(physical, 4) == 11811);
  CHECK(physical[8] == 1);
  CHECK(chunk(bytes, "sRGB").size() == 1);
  CHECK(chunk(bytes, "iTXt").find("sample layer 0 head 0") != std::string::npos);
  const Image image = decode_png(bytes);
  CHECK(image.width == size.width);
  CHECK(image.height == size.height);
  const Heatmap& map = map_in(scene);
  // Beside the numbers, which stand in the middle of the cells.
  const auto cell_color = [&](Index r, Index c) {
    const Rect cell = map.cell(r, c);
    return image.at(static_cast<int>((cell.x + 3) * size.scale), static_cast<int>((cell.y + 3) * size.scale));
  };
  CHECK(cell_color(0, 0) == colormap("inferno").at(1));
  CHECK(cell_color(1, 0) == colormap("inferno").at(0.25));
  CHECK(cell_color(1, 1) == colormap("inferno").at(0.75));
  CHECK(cell_color(2, 1) == colormap("inferno").at(0));
  CHECK(cell_color(0, 1) == theme("dark").masked);
  CHECK(cell_color(1, 2) == theme("dark").masked);
}

TEST_CASE("a transparent ground stays transparent in the PNG") {
  Scene scene = blank(10, 10);
  scene.background = {0, 0, 0, 0};
  scene.add({Box{{0, 0, 5, 10}, {255, 0, 0, 128}, {0, 0, 0, 0}, 0, 0}, "", ""});
  const Image image = decode_png(encode_png(rasterize(scene, 1)));
  CHECK(image.at(8, 5).a == 0);
  CHECK(image.at(2, 5).a == 128);
  CHECK(image.at(2, 5).r == 255);
}

TEST_CASE("an SVG is well formed, its labels are text, and its cells lie where the raster has them") {
  Trace trace = known_trace();
  trace.text = "a & b < c \"d\" \x01 \xFF \u202E end";
  trace.tokens[1].label = "<&\">'\n\x02";
  const PangoText measure;
  const Scene scene = head_map_scene(trace, {}, {theme("print"), measure});
  const std::string svg = encode_svg(scene);
  const std::vector<XmlElement> elements = read_xml(svg);
  REQUIRE(elements.size() > 20);
  CHECK(elements[0].name == "svg");
  CHECK(elements[0].attributes.at("xmlns") == "http://www.w3.org/2000/svg");
  std::vector<std::string> texts;
  int cells_found = 0;
  const Image image = rasterize(scene, 4);
  const Heatmap& map = map_in(scene);
  bool masked_path = false;
  for (const XmlElement& e : elements) {
    if (e.name == "text") texts.push_back(e.text);
    if (e.name == "path" && e.attributes.at("fill") == hex(theme("print").masked)) masked_path = true;
    if (e.name != "rect" || e.attributes.contains("rx")) continue;
    const double x = std::stod(e.attributes.at("x")), y = std::stod(e.attributes.at("y"));
    const double w = std::stod(e.attributes.at("width")), h = std::stod(e.attributes.at("height"));
    const auto cell = cell_at(map, {x + 1, y + 1});
    if (!cell || w > 100) continue;
    ++cells_found;
    const Rect place = map.cell(cell->row, cell->column);
    CHECK(x == doctest::Approx(place.x));
    CHECK(y == doctest::Approx(place.y));
    CHECK(w == doctest::Approx(place.w - map.gap));
    CHECK(h == doctest::Approx(place.h - map.gap));
    CHECK(e.attributes.at("fill") == hex(map.color(cell->row, cell->column)));
    CHECK(e.attributes.at("fill") == hex(image.at(static_cast<int>((x + 3) * 4), static_cast<int>((y + 3) * 4))));
  }
  CHECK(cells_found == 6);  // the three masked ones are one path
  CHECK(masked_path);
  const auto count = [&](const std::string& text) { return std::count(texts.begin(), texts.end(), text); };
  CHECK(count("When") == 2);
  CHECK(count("<|endoftext|>") == 2);
  CHECK(count("<&\">'␊␂") == 2);
  CHECK(count(".25") == 1);
  CHECK(count("masked") == 1);
  CHECK(count("Layer 0 · Head 0") == 1);
}

TEST_CASE("a large map becomes one embedded picture of whole cells in the SVG") {
  const Trace trace = sample_trace(100, 1, 1);
  const PangoText measure;
  const Scene scene = head_map_scene(trace, {}, {theme("dark"), measure});
  const std::string svg = encode_svg(scene);
  const std::vector<XmlElement> elements = read_xml(svg);
  const auto image = std::find_if(elements.begin(), elements.end(), [](const XmlElement& e) {
    return e.attributes.contains("id") && e.attributes.at("id") == "map";
  });
  REQUIRE(image != elements.end());
  CHECK(image->name == "image");
  CHECK(image->attributes.at("style") == "image-rendering:pixelated");
  const std::string& data = image->attributes.at("xlink:href");
  REQUIRE(data.starts_with("data:image/png;base64,"));
  std::string png;
  std::uint32_t bits = 0, have = 0;
  for (const char c : data.substr(22)) {
    static const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    if (c == '=') break;
    bits = bits << 6 | static_cast<std::uint32_t>(digits.find(c));
    if ((have += 6) >= 8) png += static_cast<char>(bits >> (have -= 8) & 255);
  }
  const Image cells = decode_png(png);
  const Heatmap& map = map_in(scene);
  CHECK(cells.width % 100 == 0);
  const int k = cells.width / 100;
  for (Index i = 0; i < 100; i += 7)
    for (Index j = 0; j < 100; j += 3)
      CHECK(cells.at(static_cast<int>(j) * k + k / 2, static_cast<int>(i) * k + k / 2) == map.color(i, j));
}

TEST_CASE("the SVG of every kind of picture is well formed, no id comes twice") {
  const PangoText measure;
  const Style style{theme("dark"), measure};
  const Trace trace = sample_trace(14, 3, 4);
  HeadGridOptions grid;
  grid.classes = {
      {0, 1, "a <b> & \"c\"", rgb(0x6FD0B0)}, {1, 1, "a <b> & \"c\"", rgb(0x6FD0B0)}, {2, 0, "sink", rgb(0x808080)}};
  grid.selected = HeadId{0, 1};
  SeveralHeadsOptions several;
  several.heads = {{0, 0, {}}, {1, 1, {"sink 0.9", rgb(0x808080)}}, {0, 0, {}}, {2, 3, {}}, {2, 2, {}}, {1, 0, {}}};
  ArcsOptions arcs;
  arcs.query = 13;
  RowBarsOptions row;
  row.query = 13;
  HeadMapOptions map;
  map.query = 13;
  map.key = 2;
  map.facts = {{"Entropy", "1"}, {"Entropy", "2"}};
  map.badge = {"<sink>", rgb(0x808080)};
  for (const Scene& scene :
       {head_grid_scene(trace, grid, style), several_heads_scene(trace, several, style), arcs_scene(trace, arcs, style),
        row_bars_scene(trace, row, style), head_map_scene(trace, map, style)}) {
    const std::vector<XmlElement> elements = read_xml(encode_svg(scene));
    CHECK(elements.size() > 30);
    CHECK(std::count_if(elements.begin(), elements.end(), [](const XmlElement& e) { return e.name == "text"; }) > 10);
  }
}

TEST_CASE("the size of an SVG is as asked") {
  const Scene scene = blank(200, 100);
  CHECK(read_xml(encode_svg(scene))[0].attributes.at("width") == "200");
  CHECK(read_xml(encode_svg(scene, {500, {}, {}}))[0].attributes.at("height") == "250");
  CHECK(read_xml(encode_svg(scene, {{}, 3.25, {}}))[0].attributes.at("width") == "3.25in");
  CHECK(read_xml(encode_svg(scene, {500, {}, {}}))[0].attributes.at("viewBox") == "0 0 200 100");
}

TEST_CASE("a failed write leaves no file behind") {
  const auto dir = scratch_dir("failed");
  CHECK_THROWS_AS(write_png(dir / "no" / "where.png", blank(10, 10)), Error);
  CHECK_THROWS_AS(write_svg(dir / "no" / "where.svg", blank(10, 10)), Error);
  CHECK_THROWS_AS(write_png(dir / "big.png", blank(10, 10), {99999, {}, {}}), Error);
  CHECK(std::filesystem::is_empty(dir));
}

TEST_CASE("CSV holds every visible weight exactly, masked cells empty, labels quoted") {
  Trace trace = known_trace();
  trace.tokens[1].label = "a,\"b\"";
  const auto path = scratch_dir("csv") / "map.csv";
  write_map_csv(path, trace, {0, 0});
  CHECK(read_file(path) ==
        "query,token,0 When,\"1 a,\"\"b\"\"\",2 <|endoftext|>\n"
        "0,When,1,,\n"
        "1,\"a,\"\"b\"\"\",0.25,0.75,\n"
        "2,<|endoftext|>,0.2,0,0.8\n");
  CHECK_THROWS_AS(write_map_csv(path, trace, {3, 0}), Error);
}

TEST_CASE("pictures can be made on several threads at once, all alike") {
  const Trace trace = sample_trace(12, 1, 1);
  std::vector<std::string> results(4);
  {
    std::vector<std::jthread> threads;
    for (std::string& result : results)
      threads.emplace_back([&trace, &result] {
        const PangoText measure;
        const Scene scene = head_map_scene(trace, {}, {theme("light"), measure});
        result = encode_png(rasterize(scene, 1)) + encode_svg(scene);
      });
  }
  for (const std::string& result : results) CHECK(result == results[0]);
}

}  // namespace headscope::printers_test
