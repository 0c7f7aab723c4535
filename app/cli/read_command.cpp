// headscope-cli read: the reading tools as tables, CSV, JSON and pictures.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/cli/commands.h"
#include "app/cli/input.h"
#include "app/cli/output.h"
#include "app/cli/reading.h"
#include "app/cli/report.h"
#include "app/cli/table.h"
#include "app/render/picture.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/overloaded.h"
#include "viz/export/pango_text.h"
#include "viz/scene/theme.h"

namespace headscope::cli {

namespace {
using nlohmann::ordered_json;

std::string words(const ReadingCell& cell) {
  return std::visit(Overloaded{[](const std::string& text) { return text; },
                               [](double v) { return std::isnan(v) ? std::string("–") : fmt::format("{:.4g}", v); },
                               [](std::int64_t v) { return std::to_string(v); }},
                    cell);
}

std::string csv_field(const ReadingCell& cell) {
  return std::visit(Overloaded{[](const std::string& text) {
                                 if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
                                 std::string quoted = "\"";
                                 for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
                                 return quoted + '"';
                               },
                               [](double v) { return std::isnan(v) ? std::string() : fmt::format("{}", v); },
                               [](std::int64_t v) { return std::to_string(v); }},
                    cell);
}

ordered_json json_of(const ReadingCell& cell) {
  return std::visit(Overloaded{[](const std::string& text) { return ordered_json(text); },
                               [](double v) { return number_json(v); }, [](std::int64_t v) { return ordered_json(v); }},
                    cell);
}

/// What every tool is asked for.
struct Options {
  Input input;
  Output output;
  std::string out, theme = "dark";
  std::optional<int> width;
};

void print(Shell& shell, const Output& output, const Trace& trace, const ReadTool& tool, const Reading& reading) {
  if (output.json) {
    ordered_json out;
    out["tool"] = tool.id;
    out["model"] = model_json(trace.model);
    out["tokens"] = tokens_json(trace);
    for (const Reading::Fact& fact : reading.facts) out["facts"][fact.id] = json_of(fact.value);
    out["rows"] = ordered_json::array();
    for (const auto& row : reading.rows) {
      ordered_json line;
      for (std::size_t i = 0; i < row.size(); ++i) line[reading.columns[i]] = json_of(row[i]);
      out["rows"].push_back(std::move(line));
    }
    out["source"] = trace.source;
    return shell.print_line(out.dump(2, ' ', false, ordered_json::error_handler_t::replace));
  }
  if (output.csv) {
    shell.print_line(fmt::format("{}", fmt::join(reading.columns, ",")));
    for (const auto& row : reading.rows) {
      std::string line;
      for (const ReadingCell& cell : row) line += (line.empty() && &cell == row.data() ? "" : ",") + csv_field(cell);
      shell.print_line(line);
    }
    return;
  }
  shell.print_line(headline(trace));
  for (const Reading::Fact& fact : reading.facts) shell.print_line(fmt::format("{}: {}", fact.text, words(fact.value)));
  if (reading.rows.empty()) return;
  shell.print_line();
  std::vector<Table::Column> columns;
  for (std::size_t i = 0; i < reading.columns.size(); ++i) {
    const bool text =
        std::ranges::any_of(reading.rows, [&](const auto& row) { return std::holds_alternative<std::string>(row[i]); });
    columns.push_back({reading.columns[i], text ? Table::Align::left : Table::Align::right});
  }
  Table table(std::move(columns));
  for (const auto& row : reading.rows) {
    std::vector<std::string> cells;
    for (const ReadingCell& cell : row) cells.push_back(words(cell));
    table.add(std::move(cells));
  }
  shell.print(table.text(1));
}

void read(Shell& shell, const Options& options, const ReadTool& tool) {
  if (!options.out.empty()) {
    const auto kind = kind_of_file(options.out);
    if (kind != FileKind::png && kind != FileKind::svg)
      throw UsageError(fmt::format("-o: expected a file ending in .png or .svg, found \"{}\"", options.out));
  }
  RunRequest request = options.input.request();
  LoadedModel loaded = load_model(request.model, shell.backend());
  request.capture = tool.capture(*loaded.model);
  const Opened opened = run_request(shell, std::move(loaded), request);
  const Reading reading =
      tool.read({shell, opened.loaded, request, opened.trace, options.output.for_scripts(), !options.out.empty()});
  if (options.out.empty()) return print(shell, options.output, *opened.trace, tool, reading);
  if (!reading.picture) throw UsageError(fmt::format("read {} has no picture; leave -o away", tool.id));
  const PangoText measure;
  const Scene scene = reading.picture({theme(options.theme), measure});
  OutputSize size;
  size.width_px = options.width;
  shell.print_line(write_picture(scene, options.out, size));
}

void add_tool(Command& app, Shell& shell, std::shared_ptr<ReadTool> tool) {
  auto options = std::make_shared<Options>();
  Command command = app.add_subcommand(tool->id, tool->meaning);
  options->input.add_to(command);
  tool->add_options(command);
  options->output.add_to(command);
  command.add_option("-o,--out", options->out, "A picture instead of a table").type_name("FILE.png|.svg");
  command.add_option("--theme", options->theme, "dark, light, projector or print")
      .check(one_of({"dark", "light", "projector", "print"}))
      .show_default();
  command.add_option("--width", options->width, "Width of the picture in pixels")
      .check(range(1, 30000))
      .type_name("PX");
  command.does([options, tool = std::move(tool), &shell] { read(shell, *options, *tool); });
}
}  // namespace

void add_read(Command& app, Shell& shell) {
  Command command = app.add_subcommand("read", "Reading tools: logit lens, attribution, circuits, rollout, sinks, …");
  for (const ReadTools& some : {writing_tools(), layers_tools(), sink_tools(), block_tools()})
    for (const auto& tool : some) add_tool(command, shell, tool);
}

}  // namespace headscope::cli
