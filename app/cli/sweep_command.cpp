// headscope-cli sweep: the same question put to the model many times: every head taken out, every activation patched,
// every temperature, the fewest heads that do, which layers may become linear.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "app/cli/commands.h"
#include "app/cli/input.h"
#include "app/cli/output.h"
#include "app/cli/sweep_report.h"
#include "app/cli/sweep_run.h"
#include "core/attention/mechanism.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/edits/ablate_edit.h"
#include "core/metrics/temperature_curve.h"

namespace headscope::cli {

namespace {

/// --right and --wrong: the two tokens whose logits are compared.
struct AnswerOptions {
  std::string right, wrong;
  /// `otherwise`: what they are when they are not given.
  void add_to(Command& command, const std::string& otherwise) {
    const Option first =
        command.add_option("--right", right, "Token whose logit counts for (␣ or a space in front); " + otherwise)
            .type_name("TOKEN");
    const Option second =
        command.add_option("--wrong", wrong, "Token whose logit counts against").type_name("TOKEN").needs(first);
    first.needs(second);
  }
  std::optional<AnswerPair> in(const LoadedModel& loaded) const {
    if (right.empty()) return std::nullopt;
    return AnswerPair{answer_token(loaded, right, "--right"), answer_token(loaded, wrong, "--wrong")};
  }
};

/// --by, --from, --from-file, --seed: what a head that is taken out leaves behind.
struct AblationOptions {
  std::string by = "mean", from_file;
  std::vector<std::string> from;
  std::uint64_t seed = 1;
  void add_to(Command& command) {
    command
        .add_option(
            "--by", by,
            "What z becomes: zero; its mean over the position and those before it, or over the whole text, later "
            "positions too; that of another position")
        .check(one_of({"zero", "mean", "mean-over-text", "resample"}))
        .type_name("zero|mean|mean-over-text|resample")
        .show_default();
    const Option texts = command.add_option("--from", from, "Mean or resample over this reference text; once for each")
                             .type_name("TEXT")
                             .take_all();
    if (!command.strangers())
      command.add_option("--from-file", from_file, "… or over the lines of a file, each a reference text")
          .excludes(texts)
          .type_name("FILE");
    command.add_option("--seed", seed, "Of the positions that resample draws").show_default();
  }
  /// Throws UsageError or Error on references that make no sense.
  Ablate get() const {
    Ablate out{by == "zero"       ? Ablate::By::zero
               : by == "resample" ? Ablate::By::resample
                                  : Ablate::By::mean,
               seed, by == "mean-over-text", from};
    if (!from_file.empty()) {
      const std::string all = read_file(from_file);
      for (std::size_t at = 0; at < all.size();) {
        const std::size_t end = std::min(all.find('\n', at), all.size());
        std::string line = all.substr(at, end - at);
        if (line.ends_with('\r')) line.pop_back();
        if (!line.empty()) out.from.push_back(std::move(line));
        at = end + 1;
      }
      if (out.from.empty()) throw Error(from_file, "lines, each a reference text", "none");
    }
    if (!out.from.empty() && (out.by == Ablate::By::zero || out.over_text))
      throw UsageError("--from is for --by mean and --by resample");
    check(out, "--from");
    return out;
  }
};

// ---- ablate

void add_ablate(Command& app, Console& console) {
  struct Options {
    Input input;
    AblationOptions ablation;
    AnswerOptions answers;
    Output output;
  };
  auto options = std::make_shared<Options>();
  Command command = app.add_subcommand("ablate", "Take every head out in turn: change of loss, next token, answer");
  options->input.add_to(command);
  options->ablation.add_to(command);
  options->answers.add_to(command, "default: the two most probable next tokens");
  options->output.add_to(command);
  command.does([options, &console] {
    const RunRequest request = options->input.request();
    const LoadedModel loaded = load_model(request.model, console.backend());
    HeadAblationSweep sweep(loaded,
                            {request, options->ablation.get(), options->answers.in(loaded), options->input.stack()});
    const bool whole = go_through(console, sweep, "heads");
    finish(console, options->output, whole, sweep.result(),
           [&](const auto& result) { return ablation_report(loaded, result, whole); });
  });
}

// ---- patch

void add_patch(Command& app, Console& console) {
  struct Options {
    Input input;
    std::string clean, corrupted, site = "resid_pre", align = "tokens";
    AnswerOptions answers;
    Output output;
  };
  auto options = std::make_shared<Options>();
  Command command = app.add_subcommand(
      "patch", "Activation patching from a clean prompt into a corrupted one, by layer and position or head");
  command.add_option("-m,--model", options->input.model, "Model folder, or the name of a bundled one")
      .required()
      .type_name("DIR");
  command.add_option("--clean", options->clean, "Prompt that is answered as it should be").required().type_name("TEXT");
  command.add_option("--corrupted", options->corrupted, "Prompt that is answered otherwise")
      .required()
      .type_name("TEXT");
  command
      .add_option("--target", options->input.text,
                  "Of an encoder-decoder, whose prompts are sources: the target that is read beside both")
      .type_name("TEXT");
  command.add_option("--part", options->input.part, "Of an encoder-decoder: where to patch (default: the decoder)")
      .check(one_of({"enc", "dec", "cross"}))
      .type_name("enc|dec|cross");
  command
      .add_option("--site", options->site,
                  "resid_pre, resid_mid, resid_post, attn_out, mlp_out (by position); z, q, k, v, pattern (by head)")
      .type_name("SITE")
      .show_default();
  command
      .add_option("--align", options->align,
                  "Which clean token stands for a corrupted one; I:J, corrupted position I by clean position J")
      .type_name("tokens|start|end|I:J,…")
      .show_default();
  const Option yes = command.add_flag("--bos", options->input.bos, "Put the beginning-of-sequence token in front");
  command.add_flag("--no-bos", options->input.no_bos, "Put nothing in front").excludes(yes);
  options->answers.add_to(command, "default: those whose probability falls and rises most");
  options->output.add_to(command);
  command.does([options, &console] {
    const auto site = parse_site_kind(options->site);
    if (!site || std::ranges::find(patching_sites(), *site) == patching_sites().end())
      throw UsageError("--site is one of resid_pre, resid_mid, resid_post, attn_out, mlp_out, z, q, k, v, pattern");
    PatchingRequest request;
    request.model = options->input.model_folder();
    request.clean = options->clean;
    request.corrupted = options->corrupted;
    if (options->input.bos || options->input.no_bos) request.add_bos = options->input.bos;
    request.site = *site;
    request.target = options->input.text;
    request.stack = options->input.stack();
    request.align = understood([&] { return parse_pairing(options->align, "--align"); });
    const LoadedModel loaded = load_model(request.model, console.backend());
    request.answers = options->answers.in(loaded);
    PatchingSweep sweep(loaded, request);
    const bool whole = go_through(console, sweep, "cells");
    finish(console, options->output, whole, sweep.result(),
           [&](const auto& result) { return patching_report(loaded, result, whole); });
  });
}

// ---- temperature

void add_temperature(Command& app, Console& console) {
  struct Options {
    Input input;
    double low = 0.1, high = 10;
    int count = 9;
    Output output;
  };
  auto options = std::make_shared<Options>();
  Command command = app.add_subcommand(
      "temperature", "Entropy and loss against the softmax temperature, head by head and all together");
  options->input.add_to(command);
  command.add_option("--low", options->low, "Lowest temperature").check(positive()).show_default();
  command.add_option("--high", options->high, "Highest temperature").check(positive()).show_default();
  command.add_option("--count", options->count, "How many, evenly spaced on a logarithmic axis")
      .check(range(2, 1000))
      .show_default();
  options->output.add_to(command);
  command.does([options, &console] {
    if (!(options->low < options->high)) throw UsageError("--low must be below --high");
    const RunRequest request = options->input.request();
    TemperatureSweeper sweep(
        load_model(request.model, console.backend()),
        {request, temperatures(options->low, options->high, options->count), options->input.stack()});
    const bool whole = go_through(console, sweep, "passes");
    finish(console, options->output, whole, sweep.result(),
           [&](const auto& result) { return temperature_report(result, whole); });
  });
}

// ---- circuit

void add_circuit(Command& app, Console& console) {
  struct Options {
    Input input;
    AblationOptions ablation;
    AnswerOptions answers;
    std::string method = "remove";
    double threshold = 0.9;
    Output output;
  };
  auto options = std::make_shared<Options>();
  Command command = app.add_subcommand("circuit", "A small set of heads that keeps a logit difference, found greedily");
  options->input.add_to(command);
  options->ablation.add_to(command);
  options->answers.add_to(command, "default: the two most probable next tokens");
  command.add_option("--method", options->method, "Take heads out one by one, or put them back")
      .check(one_of({"remove", "add"}))
      .type_name("remove|add")
      .show_default();
  command.add_option("--threshold", options->threshold, "Share of the logit difference that shall be kept")
      .check(range(0.0, 1.0))
      .show_default();
  options->output.add_to(command);
  command.does([options, &console] {
    const RunRequest request = options->input.request();
    const LoadedModel loaded = load_model(request.model, console.backend());
    using Method = HeadCircuitRequest::Method;
    HeadCircuitSearch search(loaded,
                             {request, options->ablation.get(), options->method == "add" ? Method::add : Method::remove,
                              options->answers.in(loaded), options->input.stack()});
    const bool whole = go_through(console, search, "passes");
    finish(console, options->output, whole, search.result(),
           [&](const auto& result) { return circuit_report(loaded, result, options->threshold, whole); });
  });
}

// ---- linear

void add_linear(Command& app, Console& console) {
  struct Options {
    Input input;
    LinearLayersAsked asked;
    std::string method = "restore", by = "loss";
    double allow = 0.1;
    Output output;
    PictureOutput picture;
  };
  auto options = std::make_shared<Options>();
  Command command = app.add_subcommand(
      "linear", "Which layers may become linear: each alone, a greedy search, evenly spaced and random ones beside it");
  options->input.add_to(command);
  command
      .add_option("--with", options->asked.mechanism,
                  fmt::format("What takes softmax's place, with NAME=VALUE for its parameters: {}",
                              fmt::join(linear_mechanisms(), ", ")))
      .type_name("MECHANISM")
      .show_default();
  command.add_option("--method", options->method, "Give softmax back layer by layer, or make linear layer by layer")
      .check(one_of({"restore", "replace"}))
      .type_name("restore|replace")
      .show_default();
  command
      .add_option("--by", options->by,
                  "What is kept low: the loss of the text, or KL(before ‖ after) of the answer after it, as always "
                  "where there is no loss")
      .check(one_of({"loss", "answer"}))
      .type_name("loss|answer")
      .show_default();
  command.add_option("--allow", options->allow, "By how much the loss, or the KL, may rise, nats")
      .check(non_negative())
      .show_default();
  command.add_option("--random", options->asked.draws, "Orders of layers drawn at random beside it")
      .check(range(0, 100))
      .show_default();
  command.add_option("--seed", options->asked.seed, "Of those orders").show_default();
  options->output.add_to(command);
  options->picture.add_to(command, "A picture instead of a table");
  command.does([options, &console] {
    options->picture.check();
    LinearLayersAsked asked = options->asked;
    understood([&] { return parse_mechanism(asked.mechanism, "--with"); });
    asked.run = options->input.request();
    asked.method =
        options->method == "replace" ? LinearLayersAsked::Method::replace : LinearLayersAsked::Method::restore;
    asked.by = options->by == "answer" ? LinearLayersAsked::By::answer : LinearLayersAsked::By::loss;
    asked.stack = options->input.stack();
    const LoadedModel loaded = load_model(asked.run.model, console.backend());
    LinearLayersSearch search(loaded, asked);
    const bool whole = go_through(console, search, "sets of layers");
    const auto result = search.result();
    // Half a search is no picture.
    if (whole && options->picture.wanted())
      options->picture.write(console, linear_layers_report(loaded, *result, options->allow, whole).picture,
                             &options->input, model_note_of(options->input, result->before_trace->model.name));
    if (!options->picture.wanted() || options->output.for_scripts())
      return finish(console, options->output, whole, result,
                    [&](const auto& found) { return linear_layers_report(loaded, found, options->allow, whole); });
    if (!whole) throw Cancelled();
  });
}

}  // namespace

void add_sweep(Command& app, Console& console) {
  Command command = app.add_subcommand(
      "sweep", "Causal evidence from many passes: ablation, patching, temperature, circuits, linear layers");
  add_ablate(command, console);
  add_patch(command, console);
  add_temperature(command, console);
  add_circuit(command, console);
  add_linear(command, console);
}

}  // namespace headscope::cli
