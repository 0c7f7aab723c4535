// headscope-cli detect: how much of its attention every head puts on cells that a rule or a list names.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "app/cli/commands.h"
#include "app/cli/input.h"
#include "app/cli/output.h"
#include "app/cli/report.h"
#include "app/cli/table.h"
#include "core/attention/cell_set.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/metrics/detector.h"

namespace headscope::cli {

namespace {
using nlohmann::ordered_json;

struct Options {
  Input input;
  std::string rule, cells;
  Output output;
  bool list = false;
};

void list_presets(Shell& shell) {
  Table table({{"rule", Table::Align::left}, {"finds", Table::Align::left}});
  for (const DetectorPreset& preset : detector_presets()) table.add({preset.rule, preset.title});
  shell.print(table.text());
}

CellPattern listed_cells(const std::string& text, Index size) {
  CellPattern pattern = no_cells(size);
  for (const MapCell& cell : CellSet::parse(text, "--cells").cells()) {
    if (std::max(cell.query, cell.key) >= size)
      throw Error("--cells", fmt::format("positions from 0 to {}, as the text has {} tokens", size - 1, size),
                  fmt::format("{}:{}", cell.query, cell.key));
    pattern.set(cell.query, cell.key, true);
  }
  return pattern;
}

void print(Shell& shell, const Options& options, const Trace& trace, const CellPattern& pattern,
           const std::vector<Detection>& heads) {
  if (options.output.csv) {
    shell.print_line("layer,head,score,chance,rows");
    const auto exact = [](double v) { return std::isfinite(v) ? fmt::format("{}", v) : std::string(); };
    for (const Detection& d : heads)
      shell.print_line(fmt::format("{},{},{},{},{}", d.layer, d.head, exact(d.score), exact(d.chance), d.rows));
    return;
  }
  if (options.output.json) {
    ordered_json out;
    out["model"] = model_json(trace.model);
    out["tokens"] = tokens_json(trace);
    if (!options.rule.empty()) out["rule"] = options.rule;
    out["cells"] = pattern.count();
    out["heads"] = ordered_json::array();
    for (const Detection& d : heads)
      out["heads"].push_back({{"layer", d.layer},
                              {"head", d.head},
                              {"score", number_json(d.score)},
                              {"chance", number_json(d.chance)},
                              {"rows", d.rows}});
    return shell.print_line(json_text(out));
  }
  shell.print_line(headline(trace));
  const Index rows = heads.empty() ? 0 : heads.front().rows;
  shell.print_line(fmt::format("{} cells match; {} rows have one that they may see\n", pattern.count(), rows));
  if (rows == 0) return;
  std::vector<Detection> order = heads;
  const auto place = [](const Detection& d) { return std::isnan(d.score) ? -1 : d.score; };
  std::ranges::stable_sort(order, [&](const Detection& a, const Detection& b) { return place(a) > place(b); });
  Table table({{"head"}, {"score"}, {"chance"}, {"times chance"}});
  for (const Detection& d : order)
    table.add({to_string(HeadId{d.layer, d.head}), number(d.score), number(d.chance), number(d.score / d.chance, 1)});
  shell.print(table.text());
}
}  // namespace

void add_detect(Command& app, Shell& shell) {
  auto options = std::make_shared<Options>();
  Command command = app.add_subcommand("detect", "Rank all heads by their attention on cells of your choice");
  command
      .add_option("rule", options->rule,
                  "Which cells: q query, k key, n tokens, token[i]; as in \"token[k-1] == token[q] and k <= q\"")
      .type_name("RULE");
  options->input.add_to(command, {.trace = true});
  command.add_option("--cells", options->cells, "The cells themselves, QUERY:KEY with ranges: \"3:1 4-6:2\"")
      .type_name("CELLS");
  command.add_flag("--list", options->list, "List rules for the known classes");
  options->output.add_to(command);
  command.does([options, &shell] {
    if (options->list) return list_presets(shell);
    if (options->rule.empty() == options->cells.empty())
      throw UsageError("give a rule or --cells, one of the two (--list shows rules)");
    std::optional<CellRule> rule;
    try {
      if (!options->rule.empty()) rule.emplace(options->rule);  // before the work, so that a typo costs nothing
    } catch (const RuleError& mistyped) {
      throw UsageError(mistyped.what());
    }
    const Opened opened = open_input(shell, options->input, {.all_logits = false});
    const Trace& trace = *opened.trace;
    if (trace.maps.empty()) throw Error(trace.model.name, "attention maps to look at", "a trace without any");
    const auto size = static_cast<Index>(trace.tokens.size());
    const CellPattern pattern = rule ? cells_of(*rule, trace.tokens, shell.stop()) : listed_cells(options->cells, size);
    print(shell, *options, trace, pattern, detect_all(trace, pattern, shell.stop()));
  });
}

}  // namespace headscope::cli
