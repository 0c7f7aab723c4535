// headscope-cli run: next tokens, loss, and what every head does on a text.

#include <fmt/format.h>

#include <cmath>

#include "app/cli/commands.h"
#include "app/cli/input.h"
#include "app/cli/trace_report.h"
#include "core/edits/edit_notes.h"
#include "core/metrics/next_token.h"

namespace headscope::cli {

namespace {
struct RunOptions {
  Input input;
  int top = 10;
  bool json = false;
};

Report run_report(const Trace& trace, const Tokenizer* tokenizer, const RunOptions& options) {
  const double loss = mean_loss(trace);
  Report out;
  describe(out, trace);
  add_next_tokens(out, trace, tokenizer, options.top);
  if (const std::string words = loss_text(trace); !words.empty()) out.line(words);
  out.data("loss", loss);
  out.data("perplexity", std::exp(loss));
  out.data("token_losses", token_losses(trace));
  add_heads(out, report_heads(trace, default_class_rules()), trace,
            options.json ? columns_by_id({"all"}) : usual_columns(), options.json);
  out.data("source", trace.source);
  out.data("notes", edit_notes(options.input.edits(), trace.model, static_cast<int>(trace.tokens.size())));
  out.data("capture", {{"summary", trace.plan.summary}, {"bytes", trace.plan.bytes}});
  out.data("milliseconds", trace.milliseconds);
  return out;
}
}  // namespace

void add_run(Command& app, Console& console) {
  auto options = std::make_shared<RunOptions>();
  Command command = app.add_subcommand("run", "Run a model on a text: next tokens, loss, and a table of all heads");
  options->input.add_to(command);
  command.add_option("--top", options->top, "How many next tokens to list").check(range(1, 1000)).show_default();
  command.add_flag("--json", options->json, "JSON instead of text, with every metric of every head");
  command.does([options, &console] {
    const Opened opened = open_input(console, options->input, {});
    const Report report = run_report(*opened.trace, opened.loaded.tokenizer.get(), *options);
    console.print(report.printed(options->json ? Form::json : Form::text));
  });
}

}  // namespace headscope::cli
