// headscope-cli detect: how much of its attention every head puts on cells that a rule or a list names.

#include <fmt/format.h>

#include <algorithm>

#include "app/cli/commands.h"
#include "app/cli/input.h"
#include "app/cli/output.h"
#include "app/cli/trace_report.h"
#include "core/attention/cell_set.h"
#include "core/base/error.h"
#include "core/metrics/detector.h"
#include "core/trace/mixer_words.h"

namespace headscope::cli {

namespace {
struct DetectOptions {
  Input input;
  std::string rule, cells;
  Output output;
  bool list = false;
};

Report presets_report() {
  Report out;
  auto& rows = out.table("", {"rule", "finds"});
  for (const DetectorPreset& preset : detector_presets()) rows.add({preset.rule, preset.title});
  return out;
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

Report detect_report(const std::string& rule, const Trace& trace, const CellPattern& pattern,
                     const std::vector<Detection>& heads) {
  const Index rows = heads.empty() ? 0 : heads.front().rows;
  Report out;
  describe(out, trace);
  if (!rule.empty()) out.data("rule", rule);
  out.data("cells", pattern.count());
  out.line(fmt::format("{} cells match; {} rows have one that they may see", pattern.count(), rows));
  if (!trace.model.dims.attends())
    out.line(trace.model.dims.hybrid()
                 ? "note: a score is a share of a row, and the rows of layers that do not attend are signed: no "
                   "head there has one"
                 : fmt::format("note: a score is a share of a row, and the rows of {} are signed: no head has one",
                               state_words(trace.model.dims)));
  auto& table = out.table("heads",
                          by_head({{"score", "score", "{:.3f}"},
                                   {"chance", "chance", "{:.3f}"},
                                   only_in(Form::scripts, "rows"),
                                   for_people("times chance", "{:.1f}")}),
                          rows == 0 ? Form::scripts : Form::all);
  table.largest_first = "score";
  for (const Detection& d : heads)
    table.add({to_string(d.id), d.id.layer, d.id.head, d.score, d.chance, d.rows, d.score / d.chance});
  return out;
}
}  // namespace

void add_detect(Command& app, Console& console) {
  auto options = std::make_shared<DetectOptions>();
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
  command.does([options, &console] {
    if (options->list) return console.print(presets_report().printed(options->output.form()));
    if (options->rule.empty() == options->cells.empty())
      throw UsageError("give a rule or --cells, one of the two (--list shows rules)");
    std::optional<CellRule> rule;
    try {
      if (!options->rule.empty()) rule.emplace(options->rule);  // before the work, so that a typo costs nothing
    } catch (const RuleError& mistyped) {
      throw UsageError(mistyped.what());
    }
    const Opened opened = open_input(console, options->input, {.all_logits = false});
    const Trace& trace = *opened.trace;
    if (trace.maps.empty()) throw Error(trace.model.name, "attention maps to look at", "a trace without any");
    const auto size = static_cast<Index>(trace.tokens.size());
    const CellPattern pattern =
        rule ? cells_of(*rule, trace.tokens, console.stop()) : listed_cells(options->cells, size);
    const Report report = detect_report(options->rule, trace, pattern, detect_all(trace, pattern, console.stop()));
    console.print(report.printed(options->output.form()));
  });
}

}  // namespace headscope::cli
