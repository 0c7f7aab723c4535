// headscope-cli verify: the model's pass beside its plain float64 definition, or beside a capture made elsewhere.

#include <fmt/format.h>

#include <algorithm>

#include "app/cli/commands.h"
#include "app/cli/input.h"
#include "app/cli/output.h"
#include "core/analysis/verification.h"
#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/model/formats/model_files.h"

namespace headscope::cli {

namespace {
struct Options {
  Input input;
  std::string reference;
  std::vector<std::string> texts;
  Output output;
};

// Repeats itself, so that heads that look back have something to find; holds digits, marks and more than one script.
constexpr const char* built_in_text =
    "When Mary and John went to the store, John gave 12 apples (and 3 pears) to Mary.\n"
    "Über Nacht: naïve café, Привет, 你好. When Mary and John went to the store";
constexpr int ids_without_tokenizer = 48;

struct Checked {
  std::string text, witness;
  std::shared_ptr<const Trace> trace;
  Verification found;
};

/// For a model without a tokenizer: ids spread over the vocabulary, and the first half again.
std::vector<std::int32_t> spread_ids(const ModelConfig& c) {
  std::vector<std::int32_t> ids;
  const int count = std::min(ids_without_tokenizer, c.context);
  for (int i = 0; i < count; ++i) ids.push_back(((i % (ids_without_tokenizer / 2)) * 7919 + 1) % c.dims.vocab);
  return ids;
}

std::string where(const Gap& gap) {
  if (gap.query < 0) return "";
  if (gap.layer >= 0) return fmt::format("head {}.{}, query {}, key {}", gap.layer, gap.head, gap.query, gap.key);
  return gap.key >= 0 ? fmt::format("query {}, token {}", gap.query, gap.key) : fmt::format("query {}", gap.query);
}

void add(Report::Table& table, const Checked& checked) {
  const auto row = [&](const char* what, const Gap& gap) {
    table.add({checked.text, checked.witness, what, gap.layer < 0 ? Cell() : Cell(gap.layer), gap.value, gap.bound,
               gap.agrees() ? "yes" : "no", where(gap)});
  };
  for (const Gap& gap : checked.found.patterns) row("patterns", gap);
  if (checked.found.logits) row("logits", *checked.found.logits);
  if (checked.found.losses) row("losses", *checked.found.losses);
}

Report verify_report(const ModelConfig& c, const std::vector<Checked>& all, bool agrees) {
  Report out;
  out.data("model", c.name);
  out.data("agrees", agrees);
  out.line(fmt::format("{} ({}): {}", c.name, c.family, agrees ? "agrees" : "DISAGREES"));
  for (const Checked& each : all) {
    const auto n = each.trace->tokens.size();
    out.line(fmt::format("  {} of {} tokens beside {}", each.text, n, each.witness));
    const int widest = c.windows.empty() ? 0 : std::ranges::max(c.windows);
    if (static_cast<std::size_t>(widest) > n)
      out.line(fmt::format("    shorter than the window of {} tokens, which is not tried by it", widest));
  }
  auto& table = out.table("checks", {{"text", "text"},
                                     {"beside", "beside"},
                                     {"what", "largest |Δ| of"},
                                     {"layer", "layer"},
                                     {"difference", "difference", "{:.2e}"},
                                     {"bound", "bound", "{:.2e}"},
                                     {"agrees", "agrees"},
                                     {"where", "where"}});
  for (const Checked& each : all) add(table, each);
  return out;
}

std::vector<Checked> check_all(Console& console, const Options& options, const LoadedModel& loaded) {
  const ModelConfig& c = loaded.model->config();
  // Read a second time: what the engine made of them is part of what is checked.
  const ModelFiles files = ModelFiles::open(locate_model(options.input.model_folder()));
  const RawWeights weights = read_weights(*files.weights, c);
  std::vector<Checked> out;
  const auto check = [&](const std::string& label, RunRequest request, const ReferenceCapture* reference) {
    console.with_progress("verifying", [&](const Ctx& ctx) {
      const auto trace = run(loaded, request, ctx);
      const plain::Pass witness = plain::forward(c, weights, trace->ids(), ctx.stop, ctx.progress);
      out.push_back({label, "its float64 definition", trace, verify(*trace, witness)});
      if (reference)
        out.push_back({label, std::filesystem::path(options.reference).filename().string(), trace,
                       verify(*trace, reference->values)});
    });
  };
  RunRequest built_in;
  if (loaded.tokenizer)
    built_in.text = built_in_text;
  else
    built_in.ids = spread_ids(c);
  built_in.too_long = RunRequest::TooLong::keep_first;
  check("built-in text", built_in, nullptr);
  for (const std::string& text : options.texts) {
    RunRequest request;
    request.text = text;
    check("\"" + excerpt(text, 30) + "\"", request, nullptr);
  }
  if (!options.reference.empty()) {
    const ReferenceCapture reference = read_reference(options.reference, c);
    RunRequest request;
    request.ids = reference.ids;
    request.ids_are_whole = true;
    check("its tokens", request, &reference);
  }
  return out;
}

void verify_model(Console& console, const Options& options) {
  const LoadedModel loaded = load_model(options.input.model_folder(), console.backend());
  const std::vector<Checked> all = check_all(console, options, loaded);
  const auto wrong = std::ranges::find_if(all, [](const Checked& each) { return !each.found.agrees(); });
  const ModelConfig& c = loaded.model->config();
  console.print(verify_report(c, all, wrong == all.end()).printed(options.output.form()));
  if (wrong == all.end()) return;
  console.flush();
  throw Error(c.name + ", " + wrong->text, "numbers within the bounds of " + wrong->witness,
              "differences beyond them (the rows above that say no)");
}
}  // namespace

void add_verify(Command& app, Console& console) {
  auto options = std::make_shared<Options>();
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
