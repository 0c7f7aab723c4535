// headscope-cli verify: the model's pass beside its plain float64 definition, or beside a capture made elsewhere.

#include <fmt/format.h>

#include "app/cli/commands.h"
#include "app/cli/input.h"
#include "app/cli/output.h"
#include "core/analysis/certificate.h"
#include "core/base/error.h"

namespace headscope::cli {

namespace {
struct VerifyOptions {
  Input input;
  std::string reference;
  std::vector<std::string> texts;
  Output output;
};

void add(Report::Table& table, const Certificate::Check& check) {
  const auto row = [&](const char* what, const Gap& gap) {
    table.add({check.text, check.witness, what, gap.layer < 0 ? Cell() : Cell(gap.layer), gap.value, gap.bound,
               gap.agrees() ? "yes" : "no", place_of(gap)});
  };
  for (const Gap& gap : check.found.patterns) row("patterns", gap);
  if (check.found.logits) row("logits", *check.found.logits);
  if (check.found.losses) row("losses", *check.found.losses);
}

Report verify_report(const Certificate& found) {
  Report out;
  out.data("model", found.model);
  out.data("agrees", found.agrees());
  out.line(fmt::format("{} ({}): {}", found.model, found.family, found.agrees() ? "agrees" : "DISAGREES"));
  for (const Certificate::Check& each : found.checks) {
    out.line(fmt::format("  {} of {} tokens beside {}", each.text, each.tokens, each.witness));
    if (each.untried_window > 0)
      out.line(fmt::format("    shorter than the window (or chunk) of {} tokens, which is not tried by it",
                           each.untried_window));
  }
  auto& table = out.table("checks", {{"text", "text"},
                                     {"beside", "beside"},
                                     {"what", "largest |Δ| of"},
                                     {"layer", "layer"},
                                     {"difference", "difference", "{:.2e}"},
                                     {"bound", "bound", "{:.2e}"},
                                     {"agrees", "agrees"},
                                     {"where", "where"}});
  for (const Certificate::Check& each : found.checks) add(table, each);
  out.data("certificate", Cell::parse(to_json(found)));
  return out;
}

void verify_model(Console& console, const VerifyOptions& options) {
  const LoadedModel loaded = load_model(options.input.model_folder(), console.backend());
  Certificate found;
  console.with_progress("verifying", [&](const Ctx& ctx) {
    found = certify(loaded, {options.input.model_folder(), options.texts, options.reference}, ctx);
  });
  console.print(verify_report(found).printed(options.output.form()));
  try {
    Certificate kept = found;
    std::erase_if(kept.checks, [](const auto& check) { return check.witness != float64_definition; });
    CertificateStore(certificates_folder()).keep(kept);
  } catch (const Error& failed) {  // what was found is printed above
    console.say(fmt::format("note: not remembered: {}", failed.what()));
  }
  const Certificate::Check* wrong = found.wrong();
  if (!wrong) return;
  console.flush();
  throw Error(found.model + ", " + wrong->text, "numbers within the bounds of " + wrong->witness,
              "differences beyond them (the rows above that say no)");
}
}  // namespace

void add_verify(Command& app, Console& console) {
  auto options = std::make_shared<VerifyOptions>();
  Command command =
      app.add_subcommand("verify", "A model's pass beside its plain float64 definition, or a capture made elsewhere");
  command.add_option("model", options->input.model, "Model, or the name of a bundled one")
      .required()
      .type_name("MODEL");
  options->input.add_adapter_to(command);
  command.add_option("text", options->texts, "Texts to check besides the built-in one").type_name("TEXT");
  command
      .add_option("--reference", options->reference,
                  "Also beside this safetensors file: tokens, and blocks.{i}.attn.hook_pattern or logits")
      .type_name("FILE");
  options->output.add_to(command);
  command.does([options, &console] { verify_model(console, *options); });
}

}  // namespace headscope::cli
