// headscope-cli run: next tokens, loss, and what every head does on a text.

#include <fmt/format.h>

#include <cmath>

#include "app/cli/commands.h"
#include "app/cli/input.h"
#include "app/cli/report.h"
#include "core/base/json.h"
#include "core/edits/edit_notes.h"
#include "core/metrics/next_token.h"

namespace headscope::cli {

namespace {
struct Options {
  Input input;
  int top = 10;
  bool json = false;
};

void print_json(Shell& shell, const Trace& trace, const Tokenizer* tokenizer, const Options& options) {
  const auto heads = report_heads(trace, default_class_rules());
  const double loss = mean_loss(trace);
  nlohmann::ordered_json out;
  out["model"] = model_json(trace.model);
  out["tokens"] = tokens_json(trace);
  out["next"] = next_tokens_json(trace, tokenizer, options.top);
  out["loss"] = number_json(loss);
  out["perplexity"] = number_json(std::exp(loss));
  out["token_losses"] = token_losses(trace);
  out["heads"] = heads_json(heads, trace, columns_by_id({"all"}));
  out["source"] = trace.source;
  out["notes"] = edit_notes(options.input.edits(), trace.model.dims, static_cast<int>(trace.tokens.size()));
  out["capture"] = {{"summary", trace.plan.summary}, {"bytes", trace.plan.bytes}};
  out["milliseconds"] = trace.milliseconds;
  shell.print_line(json_text(out));
}

void print_text(Shell& shell, const Trace& trace, const Tokenizer* tokenizer, const Options& options) {
  shell.print_line(headline(trace));
  shell.print_line();
  shell.print_line(next_tokens_text(trace, tokenizer, options.top));
  if (const std::string loss = loss_text(trace); !loss.empty()) shell.print_line(loss + "\n");
  shell.print(heads_text(report_heads(trace, default_class_rules()), trace, usual_columns()));
}
}  // namespace

void add_run(Command& app, Shell& shell) {
  auto options = std::make_shared<Options>();
  Command command = app.add_subcommand("run", "Run a model on a text: next tokens, loss, and a table of all heads");
  options->input.add_to(command);
  command.add_option("--top", options->top, "How many next tokens to list").check(range(1, 1000)).show_default();
  command.add_flag("--json", options->json, "JSON instead of text, with every metric of every head");
  command.does([options, &shell] {
    const Opened opened = open_input(shell, options->input, {});
    const Tokenizer* tokenizer = opened.loaded.tokenizer.get();
    (options->json ? print_json : print_text)(shell, *opened.trace, tokenizer, *options);
  });
}

}  // namespace headscope::cli
