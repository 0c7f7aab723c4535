// The numbers of every kind of picture, read back from the CSV that is written of it.

#include "viz/export/csv.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "core/attention/softmax_attention.h"
#include "core/base/file.h"
#include "core/io/trace_file.h"
#include "tests/support/paths.h"
#include "tests/support/random_tensor.h"
#include "tests/viz/sample.h"
#include "viz/scene/arcs.h"
#include "viz/scene/beam_tree.h"
#include "viz/scene/box_diagram.h"
#include "viz/scene/candidates.h"
#include "viz/scene/compose.h"
#include "viz/scene/flow_diagram.h"
#include "viz/scene/framed.h"
#include "viz/scene/head_atlas.h"
#include "viz/scene/head_grid.h"
#include "viz/scene/head_map.h"
#include "viz/scene/head_pair.h"
#include "viz/scene/head_rows.h"
#include "viz/scene/histogram.h"
#include "viz/scene/key_sharing.h"
#include "viz/scene/line_chart.h"
#include "viz/scene/matrix_flow.h"
#include "viz/scene/matrix_map.h"
#include "viz/scene/matrix_scene.h"
#include "viz/scene/number_strips.h"
#include "viz/scene/patch_map.h"
#include "viz/scene/rotary_dials.h"
#include "viz/scene/row_bars.h"
#include "viz/scene/scatter.h"
#include "viz/scene/score_split.h"
#include "viz/scene/several_heads.h"
#include "viz/scene/singular_values.h"
#include "viz/scene/sound_map.h"
#include "viz/scene/table.h"
#include "viz/scene/tile_machine.h"
#include "viz/scene/token_bars.h"
#include "viz/scene/token_pairs.h"
#include "viz/scene/worker_ring.h"

namespace headscope::csv_test {

using namespace testing;

namespace {

using Row = std::vector<std::string>;

/// RFC 4180; rows after the header.
std::vector<Row> rows_of(const Scene& scene) {
  std::ostringstream out;
  write_scene_csv(out, scene);
  const std::string text = out.str();
  std::vector<Row> rows(1, Row(1));
  bool inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' && inside && i + 1 < text.size() && text[i + 1] == '"')
      rows.back().back() += text[++i];
    else if (c == '"')
      inside = !inside;
    else if (c == ',' && !inside)
      rows.back().emplace_back();
    else if (c == '\n' && !inside)
      rows.emplace_back(1);
    else
      rows.back().back() += c;
  }
  rows.pop_back();
  rows.erase(rows.begin());
  return rows;
}

std::vector<Row> part(const std::vector<Row>& rows, const std::string& name) {
  std::vector<Row> found;
  for (const Row& row : rows)
    if (row.at(0) == name) found.push_back(row);
  return found;
}

Trace factored_trace() {
  Backend backend(1);
  Trace trace = empty_trace(6);
  trace.model.dims.layers = 1;
  trace.model.dims.heads = 2;
  AttentionInput in;
  in.q = random_tensor({6, 2, 4}, 1);
  in.k = random_tensor({6, 2, 4}, 2);
  in.v = random_tensor({6, 2, 4}, 3);
  in.scale = 0.5f;
  in.rule = causal_rule();
  in.storage = MapStorage::factored;
  trace.maps = softmax_attention(in, backend, nullptr, {}).maps;
  return trace;
}

Tensor numbers(Shape shape) {
  std::vector<float> values;
  for (Index i = 0; i < Tensor::zeros(shape).size(); ++i) values.push_back(static_cast<float>(i) - 1);
  return Tensor::from(shape, values);
}

/// Every maker of viz/scene, with something to draw.
std::map<std::string, std::function<Scene(const Style&)>> makers() {
  static const std::vector<int> partner{0, -1, 2, 3};
  static const std::vector<std::uint32_t> counts{0, 3, 1, 0, 2};
  return {
      {"arcs_scene", [](const Style& style) { return arcs_scene(sample_trace(6, 1, 1), {}, style); }},
      {"candidates_scene",
       [](const Style& style) {
         CandidatesOptions options;
         options.first = {{1, "a", 0.75, 1}, {2, "b", 0.25, 0, Candidate::Cut::top_k}};
         options.vocabulary = 2, options.kept = 1;
         return candidates_scene(options, style);
       }},
      {"box_diagram_scene",
       [](const Style& style) {
         BoxDiagram diagram;
         diagram.boxes = {{"a", DiagramBox::Kind::value, "tokens", "7", "", 0, 0},
                          {"b", DiagramBox::Kind::memory, "memory", "", "", 1, 0}};
         diagram.arrows = {{"in", "a", "b", "asks", "0.5", "", 0, {{"asked", 0.5}}}};
         return box_diagram_scene(diagram, style);
       }},
      {"flow_diagram_scene",
       [](const Style& style) {
         return flow_diagram_scene({{{"one", "", {{FlowStep::Kind::part, "MLP", "3", "", 3.0}}, {}}}}, style);
       }},
      {"head_atlas_scene",
       [](const Style& style) {
         HeadAtlasOptions options;
         options.values = {0.25, std::nan("")};
         options.values_title = "entropy";
         return head_atlas_scene(sample_trace(5, 1, 2), options, style);
       }},
      {"head_grid_scene", [](const Style& style) { return head_grid_scene(sample_trace(5, 1, 2), {}, style); }},
      {"key_sharing_scene",
       [](const Style& style) {
         SharingPicture picture;
         picture.ways = {{"GQA, 2 key heads", 4, 2, 0.5, "4 d"}};
         return key_sharing_scene(picture, style);
       }},
      {"tile_machine_scene",
       [](const Style& style) {
         TileMachine machine;
         machine.slow = {{"Q", rgb(0xff0000), 8, 4, 2, 4, ""}};
         machine.moved = 30;
         machine.levels = {{60, "all"}};
         return tile_machine_scene(machine, style);
       }},
      {"worker_ring_scene",
       [](const Style& style) {
         WorkerRing ring;
         for (int w = 0; w < 3; ++w) ring.workers.push_back({"Q", "K, V", (w + 2) % 3, w != 2, 0.25});
         return worker_ring_scene(ring, style);
       }},
      {"head_map_scene", [](const Style& style) { return head_map_scene(known_trace(), {}, style); }},
      {"head_pair_scene",
       [](const Style& style) {
         HeadPairOptions options;
         options.partner = std::span(partner);
         return head_pair_scene(sample_trace(4, 1, 1), sample_trace(4, 1, 1), options, style);
       }},
      {"head_rows_scene",
       [](const Style& style) {
         HeadRowsOptions options;
         options.heads = 2;
         return head_rows_scene(empty_trace(4), numbers({2, 4}), options, style);
       }},
      {"head_steps_scene", [](const Style& style) { return head_steps_scene(factored_trace(), {}, style); }},
      {"histogram_scene",
       [](const Style& style) {
         Histogram h;
         h.counts = counts;
         h.deciles = {0.25, 0.25, 0.25, 0.25, 0.25, 0.45, 0.85, 0.85, 0.9};
         h.mean = 0.5, h.spread = 0.1;
         return histogram_scene(h, style);
       }},
      {"line_chart_scene",
       [](const Style& style) {
         LineChart chart;
         chart.series = {{"loss", {}, {1, 2}, {3, 4}}};
         return line_chart_scene(chart, style);
       }},
      {"matrix_flow_scene",
       [](const Style& style) {
         MatrixFlow flow;
         FlowMatrix m;
         m.id = "scores", m.title = "Scores", m.values = numbers({2, 3});
         flow.matrices = {m};
         return matrix_flow_scene(flow, style);
       }},
      {"matrix_map_scene",
       [](const Style& style) {
         MatrixMap map;
         map.values = numbers({2, 3});
         return matrix_map_scene(map, style);
       }},
      {"matrix_scene",
       [](const Style& style) {
         Matrix m;
         m.values = numbers({2, 3});
         return matrix_scene(m, style);
       }},
      {"number_strips_scene",
       [](const Style& style) {
         NumberStrips strips;
         strips.strips = {{"x", "3", "", Tensor::from({3}, std::vector<float>{1, -2, 0}), "2.2", "", false}};
         return number_strips_scene(strips, style);
       }},
      {"rotary_dials_scene",
       [](const Style& style) {
         DialsOptions options;
         options.dials.resize(2);
         options.dials[1].wavelength = 63;
         return rotary_dials_scene(options, style);
       }},
      {"row_bars_scene",
       [](const Style& style) {
         RowBarsOptions options;
         options.query = 1;
         return row_bars_scene(known_trace(), options, style);
       }},
      {"scatter_scene",
       [](const Style& style) {
         return scatter_scene({{{0, 0}, "0.0", "", 0.5, 1, 0, 0, {}}}, {}, style);
       }},
      {"score_split_scene",
       [](const Style& style) { return score_split_scene(factored_trace(), {.query = 2, .key = 1}, style); }},
      {"several_heads_scene",
       [](const Style& style) {
         SeveralHeadsOptions options;
         options.heads = {{0, 0, {}}};
         return several_heads_scene(known_trace(), options, style);
       }},
      {"singular_values_scene",
       [](const Style& style) {
         return singular_values_scene({{4, 2}, {1, -0.5}, {}, 400, 240}, style);
       }},
      {"table_scene",
       [](const Style& style) {
         return table_scene({"pairs", {"from", "value"}, {{"a, b", "1.5"}}}, style);
       }},
      {"token_bars_scene",
       [](const Style& style) {
         TokenBars bars;
         bars.tokens = std::make_shared<Trace>(known_trace());
         bars.first = 1;
         bars.values = {0.5, 1.5};
         bars.tooltips = {"half", "more"};
         bars.line = {0.5, 1};
         bars.line_title = "mean so far";
         bars.levels = {{2, "ln V", "knows nothing"}};
         bars.unit = "loss, nats";
         return token_bars_scene(bars, style);
       }},
      {"token_pairs_scene",
       [](const Style& style) {
         static const Trace a = empty_trace(4);
         TokenPairsOptions options;
         options.partner = std::span(partner);
         return token_pairs_scene(a, a, options, style);
       }},
      {"beam_tree_scene",
       [](const Style& style) {
         using Fate = BeamTreeNode::Fate;
         BeamTreeOptions options;
         options.prompt = "a";
         options.nodes = {{.parent = {}, .label = "b", .probability = 0.75, .sum = std::log(0.75), .fate = Fate::kept},
                          {.parent = {}, .label = "c", .probability = 0.25, .sum = std::log(0.25)},
                          {.parent = 0,
                           .step = 2,
                           .label = "d",
                           .probability = 0.5,
                           .sum = std::log(0.375),
                           .fate = Fate::finished,
                           .place = 0,
                           .score = std::log(0.375) / 2}};
         return beam_tree_scene(options, style);
       }},
      {"patch_map_scene",
       [](const Style& style) {
         return patch_map_scene(*open_trace(testing::reference("attention") / "picture.npz"), {.query = 0}, style);
       }},
      {"patch_values_scene",
       [](const Style& style) {
         PatchValues values;
         values.by_key = {0, 0.5, 0.25, 0.25};
         values.name = "received";
         const auto trace = open_trace(testing::reference("attention") / "picture.npz");
         values.by_key.resize(trace->tokens.size(), 0.125);
         return patch_values_scene(*trace, values, {}, style);
       }},
      {"sound_map_scene", [](const Style& style) { return sound_map_scene(heard_trace(), {}, style); }},
      {"sound_values_scene",
       [](const Style& style) {
         SoundValues values;
         values.by_key.assign(20, 0.05);
         values.name = "received";
         return sound_values_scene(heard_trace(), values, {}, style);
       }},
      {"wavelengths_scene",
       [](const Style& style) {
         return wavelengths_scene({{6.3, 63}, {6.3, 99}, 128}, style);
       }},
  };
}

}  // namespace

TEST_CASE("every kind of picture has its numbers in its CSV") {
  const PangoText measure;
  const Style style{theme("dark"), measure};
  const auto all = makers();
  // A new maker takes its line above.
  const std::regex maker("Scene (\\w+_scene)\\(");
  for (const auto& entry : std::filesystem::directory_iterator(source_dir() / "viz" / "scene")) {
    if (entry.path().extension() != ".h") continue;
    const std::string header = read_file(entry.path(), std::size_t{1} << 20);
    for (std::sregex_iterator at(header.begin(), header.end(), maker), end; at != end; ++at)
      CHECK_MESSAGE(all.contains((*at)[1]), "no picture of ", (*at)[1].str());
  }
  for (const auto& [name, make] : all) {
    CAPTURE(name);
    const Scene scene = make(style);
    int told = 0;
    for (const Row& row : rows_of(scene)) {
      if (scene.table) {
        told += row.size() == scene.table->columns.size();
        continue;
      }
      REQUIRE(row.size() == 7);
      CHECK(row[0].find("colorbar") == std::string::npos);
      told += !row[5].empty();
    }
    CHECK(told > 0);
    // The frame of a picture for a file takes nothing away.
    CHECK(rows_of(framed(scene, {}, style)).size() == rows_of(scene).size());
    CHECK(rows_of(framed(scene, {}, style, "a source")).size() == rows_of(scene).size());
  }
}

TEST_CASE("cells of a matrix keep their labels beside its colour bar, alone and as a part of a page") {
  const PangoText measure;
  const Style style{theme("dark"), measure};
  Matrix m;
  m.values = numbers({2, 3});
  m.rows = {"layer 0", "layer 1"};
  m.columns = {"q", "k", "v"};
  const Scene one = matrix_scene(m, style);
  const std::vector<Row> rows = rows_of(one);
  REQUIRE(rows.size() == 6);
  CHECK(rows[5] == Row{"matrix", "1", "layer 1", "2", "v", "4", ""});
  CHECK(rows[0] == Row{"matrix", "0", "layer 0", "0", "q", "-1", ""});
  m.rows = {"first", "second"};
  const std::vector<Scene> both{one, matrix_scene(m, style)};
  const std::vector<Row> page = rows_of(below(both, 8));
  REQUIRE(page.size() == 12);
  CHECK(page[5] == Row{"0.matrix", "1", "layer 1", "2", "v", "4", ""});
  CHECK(page[9] == Row{"1.matrix", "1", "second", "0", "q", "2", ""});
}

TEST_CASE("pooled cells are named by the positions that they begin with; tiles share the labels of their keys") {
  const PangoText measure;
  const Style style{theme("dark"), measure};
  HeadMapOptions options;
  options.plot = 64;
  const Trace trace = sample_trace(200, 1, 1);
  const std::vector<Row> rows = part(rows_of(head_map_scene(trace, options, style)), "map");
  REQUIRE(rows.size() < 200 * 200);
  const int bin = std::stoi(rows[1][3]);
  CHECK(bin > 1);
  CHECK(std::stoi(rows.back()[1]) >= 200 - bin);
  int labelled = 0;
  for (const Row& row : rows)
    if (!row[2].empty()) {
      ++labelled;
      CHECK(row[2].starts_with(trace.tokens[std::stoul(row[1])].label.substr(0, 4)));
    }
  CHECK(labelled > 0);

  HeadPairOptions pair;
  static const std::vector<int> same{0, 1, 2};
  pair.partner = std::span(same);
  const std::vector<Row> tiles = rows_of(head_pair_scene(known_trace(), known_trace(), pair, style));
  CHECK(part(tiles, "map.a").at(3) == Row{"map.a", "1", "␣John", "0", "When", "0.25", ""});
  CHECK(part(tiles, "map.b").at(3)[4] == "When");
}

TEST_CASE("bars, singular values and counts are numbers, and what a bar and its place say is said once") {
  const PangoText measure;
  const Style style{theme("dark"), measure};
  const auto all = makers();
  const std::vector<Row> bars = rows_of(all.at("token_bars_scene")(style));
  CHECK(part(bars, "loss, nats").at(1) == Row{"loss, nats", "1", "<|endoftext|>", "2", "", "1.5", ""});
  CHECK(part(bars, "mean so far").at(1)[5] == "1");
  CHECK(part(bars, "loss, nats, levels").at(0) == Row{"loss, nats, levels", "0", "ln V", "", "", "2", ""});
  int halves = 0;
  for (const Row& row : bars) halves += row[6] == "half";
  CHECK(halves == 1);

  const std::vector<Row> singular = rows_of(all.at("singular_values_scene")(style));
  CHECK(part(singular, "σ").at(1)[5] == "2");
  CHECK(part(singular, "z").at(1)[5] == "-0.5");
  CHECK(part(singular, "z σ").at(1) == Row{"z σ", "1", "", "2", "", "-1", ""});

  double counted = 0;
  for (const Row& row : part(rows_of(all.at("histogram_scene")(style)), "passages from x on"))
    counted += std::stod(row[5]);
  CHECK(counted == 6);
}

TEST_CASE("lines with tabs: quotes go, what would break a line or a cell becomes a blank") {
  CHECK(tab_separated("a,b\n1,\"x, y\"\n") == "a\tb\n1\tx, y\n");
  CHECK(tab_separated("\"he said \"\"no\"\"\",\"two\nlines\tand a tab\"\r\n,\n") ==
        "he said \"no\"\ttwo lines and a tab\n\t\n");
  CHECK(tab_separated("").empty());
}

}  // namespace headscope::csv_test
