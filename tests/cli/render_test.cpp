#include <doctest/doctest.h>

#include <cstdlib>
#include <sstream>

#include "core/base/file.h"
#include "core/run/run_request.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace headscope::render_test {

using namespace testing;

namespace {
std::string model() {
  return reference("gpt2-random").string();
}

std::uint32_t big_endian(const std::string& bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes.at(at + i));
  return value;
}

/// Width of a PNG; fails the test when the file is none.
std::uint32_t png_width(const std::filesystem::path& path) {
  const std::string bytes = read_file(path);
  REQUIRE(bytes.size() > 24);
  CHECK(bytes.substr(0, 8) == "\x89PNG\r\n\x1A\n");
  return big_endian(bytes, 16);
}

void render(std::vector<std::string> arguments, const std::filesystem::path& out) {
  std::vector<std::string> all{"render", "-m", model(), "-t", "Mr Fox <&>", "-o", out.string()};
  all.insert(all.end(), arguments.begin(), arguments.end());
  const Finished finished = run_cli(all);
  CAPTURE(finished.err);
  REQUIRE(finished.code == 0);
  CHECK(finished.out.find(out.string()) == 0);
}
}  // namespace

TEST_CASE("render writes PNG pictures of the asked width: the grid, one head, several, arcs and bars") {
  const auto folder = scratch_dir("cli-render");
  const std::vector<std::vector<std::string>> pictures = {{},
                                                          {"--head", "1.2"},
                                                          {"--head", "0.0,1.3"},
                                                          {"--head", "0.1", "--arcs"},
                                                          {"--head", "0.1", "--bars", "--row", "-1"}};
  int number = 0;
  for (std::vector<std::string> arguments : pictures) {
    CAPTURE(number);
    const auto path = folder / (std::to_string(number++) + ".png");
    arguments.insert(arguments.end(), {"--width", "777", "--theme", number % 2 ? "dark" : "print"});
    render(arguments, path);
    CHECK(png_width(path) == 777);
  }
}

TEST_CASE("dpi doubles the pixels of a picture, not its layout") {
  const auto folder = scratch_dir("cli-dpi");
  render({"--head", "0.0", "--dpi", "96"}, folder / "a.png");
  render({"--head", "0.0", "--dpi", "192"}, folder / "b.png");
  render({"--head", "0.0", "--dpi", "100", "--inches", "5"}, folder / "c.png");
  CHECK(png_width(folder / "b.png") == 2 * png_width(folder / "a.png"));
  CHECK(png_width(folder / "c.png") == 500);
}

TEST_CASE("scales change the picture, themes its ground") {
  const auto folder = scratch_dir("cli-scale");
  for (const char* scale : {"linear", "log", "row"})
    render({"--head", "0.0", "--scale", scale}, folder / (std::string(scale) + ".png"));
  CHECK(read_file(folder / "linear.png") != read_file(folder / "log.png"));
  CHECK(read_file(folder / "linear.png") != read_file(folder / "row.png"));
  for (const char* theme : {"dark", "light", "projector", "print"})
    render({"--head", "0.0", "--theme", theme}, folder / (std::string(theme) + ".svg"));
  CHECK(read_file(folder / "dark.svg") != read_file(folder / "light.svg"));
}

TEST_CASE("an SVG holds the tokens as escaped text") {
  const auto path = scratch_dir("cli-svg") / "map.svg";
  render({"--head", "1.0"}, path);
  const std::string svg = read_file(path);
  CHECK(svg.find("<svg") != std::string::npos);
  CHECK(svg.find("</svg>") != std::string::npos);
  CHECK(svg.find("&lt;") != std::string::npos);
  CHECK(svg.find("&amp;") != std::string::npos);
  CHECK(svg.find(">␣<") != std::string::npos);
}

TEST_CASE("a picture of a trace file is the picture of the run") {
  const auto folder = scratch_dir("cli-trace-picture");
  const std::string trace = (folder / "t.safetensors").string();
  REQUIRE(run_cli({"capture", "-m", model(), "-t", "Mr Fox <&>", "-o", trace, "--storage", "dense"}).code == 0);
  render({"--head", "1.2", "--no-values", "--no-recipe"}, folder / "run.png");
  REQUIRE(run_cli({"render", "--trace", trace, "--head", "1.2", "--no-values", "--no-recipe", "-o",
                   (folder / "trace.png").string()})
              .code == 0);
  CHECK(png_width(folder / "run.png") > 100);
  CHECK(read_file(folder / "run.png") == read_file(folder / "trace.png"));
}

TEST_CASE("the CSV of a head holds every weight") {
  const auto path = scratch_dir("cli-csv") / "map.csv";
  render({"--head", "0.3"}, path);
  Backend backend(1);
  RunRequest request;
  request.text = "Mr Fox <&>";
  const auto trace = run(load_model(model(), backend), request, {backend});
  std::istringstream lines(read_file(path));
  std::string line;
  std::getline(lines, line);
  for (Index query = 0; query < 10; ++query) {
    REQUIRE(std::getline(lines, line));
    std::istringstream cells(line + ",");
    std::string cell;
    for (int skipped = 0; skipped < 2; ++skipped) std::getline(cells, cell, ',');  // position and token
    for (Index key = 0; key < 10; ++key) {
      REQUIRE(std::getline(cells, cell, ','));
      CHECK(cell.empty() == (key > query));
      if (key <= query) CHECK(std::stof(cell) == doctest::Approx(trace->map({0, 3}).weight(query, key)).epsilon(1e-5));
    }
  }
}

TEST_CASE("render draws the steps of a head and the parts of one score, with a title and where the numbers come from") {
  const auto folder = scratch_dir("cli-steps");
  render({"--head", "1.2", "--steps"}, folder / "steps.svg");
  render({"--head", "1.2", "--split", "--row", "4", "--key", "1"}, folder / "split.svg");
  for (const char* name : {"steps.svg", "split.svg"}) {
    const std::string svg = read_file(folder / name);
    CHECK(svg.find("Layer 1 · Head 2") != std::string::npos);
    CHECK(svg.find("blocks.1.attn.hook_pattern[2]") != std::string::npos);
  }
  const Finished finished =
      run_cli({"render", "-m", model(), "-t", "abc", "--head", "0.0", "--split", "-o", (folder / "no.svg").string()});
  CHECK(finished.code == 2);
  CHECK(finished.err.find("--split needs --row and --key") != std::string::npos);
}

TEST_CASE("a picture drawn after an edit says so, and shows other weights than the model's own") {
  const auto folder = scratch_dir("cli-edits");
  const std::vector<std::vector<std::string>> ways{
      {}, {"--temperature", "0.1"}, {"--mask", "0.1=window 2"}, {"--edit", "0.1: pattern self"}};
  std::vector<std::string> numbers;
  for (std::vector<std::string> arguments : ways) {
    arguments.insert(arguments.end(), {"--head", "0.1"});
    const auto name = std::to_string(numbers.size());
    render(arguments, folder / (name + ".csv"));
    numbers.push_back(read_file(folder / (name + ".csv")));
    render(arguments, folder / (name + ".svg"));
    const bool said = read_file(folder / (name + ".svg")).find("edited ") != std::string::npos;
    CHECK(said == (arguments.size() > 2));
  }
  CHECK(numbers[0] != numbers[1]);
  CHECK(numbers[0] != numbers[2]);
  CHECK(numbers[1] != numbers[2]);
}

TEST_CASE("an edit that cannot be meant is a mistyped option; one that the model cannot follow is an error") {
  const auto refused = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"run", "-m", model(), "-t", "abc"});
    return run_cli(arguments);
  };
  CHECK(refused({"--mask", "widow 3"}).code == 2);
  CHECK(refused({"--mask", "widow 3"}).err.find("nearest names: window") != std::string::npos);
  CHECK(refused({"--temperature", "0"}).code == 2);
  CHECK(refused({"--edit", "0.1: ablate"}).code == 2);
  CHECK(refused({"--edit", "0.1: ablate"}).err.find("ablate zero | mean | mean over text") != std::string::npos);
  CHECK(refused({"--temperature", "9.9=2"}).code == 1);
  CHECK(refused({"--temperature", "9.9=2"}).err.find("a layer from 0 to 1 and a head from 0 to 3") !=
        std::string::npos);
}

TEST_CASE("--row without --head draws one token in all heads, and writes its numbers") {
  const auto folder = scratch_dir("cli-one-token");
  render({"--row", "-2"}, folder / "rows.png");
  render({"--row", "3", "--theme", "print", "--scale", "log"}, folder / "rows.svg");
  CHECK(read_file(folder / "rows.svg").find("All heads · query 3") != std::string::npos);
  render({"--row", "3"}, folder / "rows.csv");
  render({"--head", "1.2"}, folder / "head.csv");
  // The weight of key 1 in head 1.2 is the same number in both files.
  std::istringstream head(read_file(folder / "head.csv"));
  std::string line;
  for (int row = 0; row <= 4; ++row) std::getline(head, line);  // the title, then queries 0 … 3
  REQUIRE(line.starts_with("3,"));
  std::size_t at = 0;
  for (int comma = 0; comma < 3; ++comma) at = line.find(',', at) + 1;
  const std::string weight = line.substr(at, line.find(',', at) - at);
  REQUIRE(weight.size() > 4);
  const std::string rows = read_file(folder / "rows.csv");
  const std::size_t found = rows.find("\nrows.1,2,2,1,");
  REQUIRE(found != std::string::npos);
  CHECK(rows.substr(found, rows.find('\n', found + 1) - found).find("," + weight + ",") != std::string::npos);
  const auto refused = [&](std::vector<std::string> arguments) {
    std::vector<std::string> all{"render", "-m", model(), "-t", "Mr Fox", "-o", (folder / "no.png").string()};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return run_cli(all);
  };
  CHECK(refused({"--row", "1", "--scale", "row"}).code == 2);
  CHECK(refused({"--row", "1", "--head", "0.0,0.1"}).code == 2);
  CHECK(refused({"--row", "99"}).code == 1);
}

TEST_CASE("a picture narrower than its layout is laid out anew, with fewer labels, not shrunk") {
  const auto folder = scratch_dir("cli-narrow");
  const std::string text(63, 'x');
  const auto svg = [&](const char* width) {
    const auto path = folder / (std::string(width) + ".svg");
    const Finished finished =
        run_cli({"render", "-m", "induction", "-t", text, "--head", "0.0", "--width", width, "-o", path.string()});
    CAPTURE(finished.err);
    REQUIRE(finished.code == 0);
    return read_file(path);
  };
  const auto number_after = [](const std::string& file, const std::string& key) {
    return std::stod(file.substr(file.find(key) + key.size()));
  };
  const auto labels = [](const std::string& file) {
    int n = 0;
    for (std::size_t at = 0; (at = file.find(">x<", at)) != std::string::npos; ++at) ++n;
    return n;
  };
  const std::string narrow = svg("500"), wide = svg("1200");
  CHECK(number_after(narrow, "width=\"") == doctest::Approx(500).epsilon(0.01));
  CHECK(number_after(narrow, "viewBox=\"0 0 ") <= 505);  // one logical pixel is one pixel: type of 11 stays 11
  CHECK(labels(narrow) < labels(wide));
  CHECK(labels(narrow) > 8);
}

TEST_CASE("without a font there is no picture of boxes but an error; the numbers need none") {
  const auto folder = scratch_dir("cli-render-no-fonts");
  const auto none = folder / "fonts.conf";
  write_file_atomically(
      none, "<?xml version=\"1.0\"?><fontconfig><cachedir>" + (folder / "cache").string() + "</cachedir></fontconfig>");
  const char* const before = std::getenv("FONTCONFIG_FILE");
  const std::string kept = before ? before : "";
  setenv("FONTCONFIG_FILE", none.c_str(), 1);
  for (const char* ending : {"png", "svg", "pdf", "csv"}) {
    CAPTURE(ending);
    const auto out = folder / (std::string("head.") + ending);
    const Finished finished = run_cli({"render", "-m", model(), "-t", "Mr Fox", "--head", "0.0", "-o", out.string()});
    const bool numbers = std::string(ending) == "csv";
    CHECK(finished.code == (numbers ? 0 : 1));
    CHECK(std::filesystem::exists(out) == numbers);
    CHECK((finished.err.find("fonts: expected a scalable font") == std::string::npos) == numbers);
  }
  before ? setenv("FONTCONFIG_FILE", kept.c_str(), 1) : unsetenv("FONTCONFIG_FILE");
}

TEST_CASE("a byte order mark is told: nobody sees it, and the model reads it") {
  const auto folder = scratch_dir("cli-mark");
  write_file_atomically(folder / "mark.txt", "\xEF\xBB\xBFMr Fox");
  write_file_atomically(folder / "plain.txt", "Mr Fox");
  const Finished marked = run_cli({"run", "-m", model(), "-f", (folder / "mark.txt").string()});
  CHECK(marked.code == 0);
  CHECK(marked.err.find("mark.txt begins with a byte order mark (U+FEFF), which is read as text") != std::string::npos);
  CHECK(run_cli({"run", "-m", model(), "-f", (folder / "plain.txt").string()}).err == "");
}

}  // namespace headscope::render_test
