// headscope-cli scan: what is most worth telling of a model on a text, in sentences that were tested by running it
// again.

#include <fmt/format.h>

#include "app/cli/commands.h"
#include "app/cli/input.h"
#include "app/cli/output.h"
#include "app/cli/sweep_run.h"
#include "app/cli/trace_report.h"
#include "core/analysis/findings.h"
#include "core/base/named_values.h"

namespace headscope::cli {

namespace {
constexpr NamedValue<Finding::Kind> kind_names[] = {{"cause", Finding::Kind::cause},
                                                    {"pattern", Finding::Kind::pattern},
                                                    {"copy", Finding::Kind::copy},
                                                    {"sink", Finding::Kind::sink},
                                                    {"token", Finding::Kind::token}};

std::string told(const Finding& finding) {
  return finding.looks.empty() ? finding.sentence : finding.sentence + " " + finding.looks;
}

Report findings_report(const Findings& found, bool whole) {
  Report out;
  describe(out, *found.trace);
  out.data("complete", whole);
  auto& table = out.table("findings", {"kind", "head", "token", "effect", "sentence", "provenance"}, Form::scripts);
  for (const Finding& each : found.all) {
    Cell head, token;
    if (each.head) head = to_string(*each.head);
    if (each.token) token = *each.token;
    table.add(
        {std::string(name_in(kind_names, each.kind)), head, token, each.effect, told(each), each.provenance.text()});
  }
  for (const Finding& each : found.all) {
    out.line();
    out.line(each.title);
    out.line("  " + told(each));
    out.line("  by: " + each.provenance.text());
  }
  if (found.all.empty()) out.line("nothing to tell: no head has a class, and the model is asked for no token");
  return out;
}
}  // namespace

void add_scan(Command& app, Console& console) {
  struct Options {
    Input input;
    Output output;
  };
  auto options = std::make_shared<Options>();
  Command command = app.add_subcommand("scan", "What is here? The most telling findings as sentences, each tested");
  options->input.add_to(command, {.part = false});
  options->output.add_to(command);
  command.does([options, &console] {
    const RunRequest request = options->input.request();
    FindingsSweep sweep(load_model(request.model, console.backend()), {.run = request});
    const bool whole = go_through(console, sweep, "passes");
    finish(console, options->output, whole, sweep.result(),
           [&](const Findings& found) { return findings_report(found, whole); });
  });
}

}  // namespace headscope::cli
