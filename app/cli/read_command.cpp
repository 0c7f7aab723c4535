// headscope-cli read: the reading tools as tables, CSV, JSON and pictures.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/cli/commands.h"
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

void print(Shell& shell, const ReadOptions& options, const Trace& trace, const ReadTool& tool, const Reading& reading) {
  if (options.json) {
    ordered_json out;
    out["tool"] = tool.name;
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
  if (options.csv) {
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

void read(Shell& shell, const ReadOptions& options, const ReadTool& tool) {
  if (!options.out.empty()) {
    const auto kind = kind_of_file(options.out);
    if (kind != FileKind::png && kind != FileKind::svg)
      throw UsageError(fmt::format("-o: expected a file ending in .png or .svg, found \"{}\"", options.out));
  }
  RunRequest request = options.input.request();
  LoadedModel loaded = load_model(request.model, shell.backend());
  request.capture = tool.capture(*loaded.model);
  const Opened opened = run_request(shell, std::move(loaded), request);
  const Reading reading = tool.read(shell, options, opened.loaded, request, opened.trace);
  if (options.out.empty()) return print(shell, options, *opened.trace, tool, reading);
  if (!reading.picture) throw UsageError(fmt::format("read {} has no picture; leave -o away", tool.name));
  const PangoText measure;
  const Scene scene = reading.picture({theme(options.theme), measure});
  OutputSize size;
  size.width_px = options.width;
  shell.print_line(write_picture(scene, options.out, size));
}
}  // namespace

void add_read(CLI::App& app, Shell& shell) {
  CLI::App* command = app.add_subcommand("read", "Reading tools: logit lens, attribution, circuits, rollout, sinks, …");
  command->require_subcommand(1);
  for (const ReadTool& tool : read_tools()) {
    auto options = std::make_shared<ReadOptions>();
    CLI::App* one = command->add_subcommand(tool.name, tool.meaning);
    const std::string name = tool.name;
    const auto is = [&](std::initializer_list<const char*> names) {
      return std::ranges::find(names, name) != names.end();
    };
    options->input.add_options(*one, false);
    if (is({"weighted", "circuits", "alternatives", "attribution"}))
      one->add_option("--head", options->head, "One head, as LAYER.HEAD")->type_name("L.H");
    if (is({"lens", "attribution", "flow", "gradients", "alternatives", "residual", "norms", "ffn", "path"}))
      one->add_option("--position", options->position,
                      "A position, counted from 0 (negative: from the end; default: the last)")
          ->type_name("N");
    if (is({"lens", "attribution", "gradients", "ffn"}))
      one->add_option("--token", options->token,
                      name == "lens" ? "The token to follow (default: the one the text goes on with)"
                                     : "Whose logit (default: the most probable next token); ␣ is a space")
          ->type_name("TOKEN");
    if (is({"attribution", "gradients"}))
      one->add_option("--against", options->against, "Take the logit of this token away")->type_name("TOKEN");
    if (is({"lens", "circuits", "attribution", "massive", "ffn"}))
      one->add_option("--top", options->top, "How many to list")->check(CLI::Range(1, 100000))->capture_default_str();
    if (is({"weighted"}))
      one->add_option("--by", options->weighting, "attention (α), value (α ‖v‖) or output (‖α v W_O‖)")
          ->check(CLI::IsMember({"attention", "value", "output"}))
          ->capture_default_str();
    if (is({"circuits"})) {
      one->add_option("--circuit", options->circuit, "Of the picture: ov or qk")
          ->check(CLI::IsMember({"ov", "qk"}))
          ->capture_default_str();
      one->add_option("--distance", options->distance, "Tokens from key to query, for rotary positions")
          ->capture_default_str();
      one->add_flag("--full", options->full,
                    "The strongest pairs of the whole vocabulary instead of the text's tokens");
    }
    if (is({"singular"})) one->add_flag("--full", options->full, "Every value, a line each");
    if (is({"composition"})) {
      one->add_option("--kind", options->kind, "Of the picture: q, k or v")
          ->check(CLI::IsMember({"q", "k", "v"}))
          ->capture_default_str();
      one->add_option("--seed", options->seed, "Of the random matrices that chance is measured on")
          ->capture_default_str();
    }
    if (is({"rollout", "flow"})) {
      one->add_option("--residual", options->residual, "Share of the residual stream in each layer")
          ->check(CLI::Range(0.0, 1.0))
          ->capture_default_str();
      one->add_flag("--relative", options->relative,
                    "Divided by what heads that spread their weight evenly would give");
    }
    if (is({"massive"})) {
      auto* threshold =
          one->add_option("--threshold", options->threshold, "At least so many times the median magnitude of the layer")
              ->check(CLI::PositiveNumber)
              ->capture_default_str();
      auto* magnitude = one->add_option("--magnitude", options->magnitude, "… and above this")
                            ->check(CLI::NonNegativeNumber)
                            ->capture_default_str();
      one->add_flag("--paper", options->paper, "The rule of Sun et al. 2024: --threshold 1000 --magnitude 100")
          ->excludes(threshold)
          ->excludes(magnitude);
      one->add_flag("--zero", options->zero,
                    "Run again with all of them set to 0, listed or not: sinks, loss and answer before and after");
    }
    if (is({"alternatives"})) {
      one->add_option("--key", options->key, "The key that loses its weight (default: the strongest)")->type_name("N");
      one->add_option("--share", options->share, "How far to go, 0 … 1")
          ->check(CLI::Range(0.0, 1.0))
          ->capture_default_str();
      one->add_option("--tolerance", options->tolerance, "Singular values below this share of the largest count as 0")
          ->check(CLI::Range(0.0, 1.0))
          ->capture_default_str();
    }
    if (is({"norms", "ffn"})) one->add_option("--layer", options->layer, "Of which block")->capture_default_str();
    if (is({"residual"})) {
      one->add_flag("--placement", options->placement,
                    "The same weights with every norm moved behind its sum: loss, KL, norms by depth");
      one->add_flag("--stack", options->stack, "Blocks with random weights, both ways: norms and gradients by depth");
      one->add_option("--layers", options->layers, "Of the random blocks")->capture_default_str();
      one->add_option("--stack-width", options->stack_width, "Width of the random blocks")->capture_default_str();
      one->add_option("--seed", options->seed, "Of the random weights and tokens")->capture_default_str();
    }
    if (is({"norms"})) {
      one->add_option("--row", options->rows, "A row of numbers instead of the model's own; once for each")
          ->type_name("\"4 6 0 0\"");
      one->add_option("--epsilon", options->epsilon, "Of the norms of such rows")
          ->check(CLI::Range(0.0, 1.0))
          ->capture_default_str();
      one->add_option("--norm", options->norm, "ln1 (before attention), ln2 (before the MLP) or last")
          ->check(CLI::IsMember({"ln1", "ln2", "last"}))
          ->capture_default_str();
    }
    if (is({"ffn"})) {
      one->add_flag("--parameters", options->parameters, "Where the model's parameters sit, instead");
      one->add_option("--shape", options->shape, "Where those of another model would, given by its shape")
          ->type_name("\"gpt2 layers=12 width=768 heads=12 vocab=50257 context=1024\"");
    }
    if (is({"loss"}))
      one->add_flag("--prefixes", options->prefixes,
                    "Beginnings of the text run alone: do they predict the same as the one pass?");
    auto* json = one->add_flag("--json", options->json, "JSON instead of a table");
    one->add_flag("--csv", options->csv, "CSV instead of a table")->excludes(json);
    one->add_option("-o,--out", options->out, "A picture instead of a table")->type_name("FILE.png|.svg");
    one->add_option("--theme", options->theme, "dark, light, projector or print")
        ->check(CLI::IsMember({"dark", "light", "projector", "print"}))
        ->capture_default_str();
    one->add_option("--width", options->width, "Width of the picture in pixels")
        ->check(CLI::Range(1, 30000))
        ->type_name("PX");
    one->callback(
        [options, &tool, &shell] { shell.command = [options, &tool, &shell] { read(shell, *options, tool); }; });
  }
}

}  // namespace headscope::cli
