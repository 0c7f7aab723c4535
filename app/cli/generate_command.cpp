// headscope-cli generate: text that a model writes, with every step's choice. `sample` is the short way to the text
// alone.

#include <fmt/format.h>

#include <cmath>

#include "app/cli/beam_report.h"
#include "app/cli/commands.h"
#include "app/cli/input.h"
#include "app/cli/output.h"
#include "app/cli/table_text.h"
#include "app/cli/trace_report.h"
#include "core/base/error.h"
#include "core/generate/generation.h"

namespace headscope::cli {

namespace {
struct GenerateOptions {
  Input input;
  Generator::Choice choice;
  int tokens = 256, texts = 1, candidates = 5;
  bool steps = false, json = false, past_end = false;
  BeamSettings beams{.width = 0};  ///< 0: no beams, one text is drawn
  std::string stopping = "false";
  bool csv = false;
  PictureOutput picture;
};

/// The text to go on from; the token that begins texts where nothing was given.
RunRequest prompt_of(const LoadedModel& loaded, const Input& input) {
  Input given = input;
  if (loaded.model->encoder() || input.has_source()) return given.request();  // its first token is known
  if (!input.has_text()) {
    const auto bos = loaded.tokenizer ? loaded.tokenizer->bos() : loaded.model->config().bos;
    if (!bos) throw UsageError("a text to continue is needed: this model has no token that begins a text");
    given.ids = {*bos};
  }
  RunRequest request = given.request();
  request.ids_are_whole = !input.has_text();
  return request;
}

/// What a step says about its choice.
struct Told {
  TokenDistribution distribution;
  std::size_t rank = 0;  ///< of the token, from 0
};
Told told(const GenerationStep& step) {
  Told out{token_distribution(step.logits, step.settings)};
  while (out.distribution.ids[out.rank] != step.token) ++out.rank;
  return out;
}

Cell step_json(const GenerationStep& step, const Tokenizer* tokenizer, int candidates) {
  const Told t = told(step);
  const TokenDistribution& d = t.distribution;
  Cell out{{"token", step.token},
           {"label", label_of(tokenizer, step.token)},
           {"by", step.by == GenerationStep::By::greedy ? "greedy" : "sampled"},
           {"rank", t.rank + 1},
           {"probability", d.plain[t.rank]},
           {"tempered", d.tempered[t.rank]},
           {"kept", d.kept[t.rank]},
           {"random", step.random},
           {"tokens_kept", d.count},
           {"entropy", entropy_of(d.plain)},
           {"entropy_kept", entropy_of(d.kept)},
           {"length", step.length},
           {"computed", step.computed},
           {"milliseconds", step.milliseconds},
           {"cache_bytes", step.cache_bytes},
           {"held_bytes", step.held_bytes()}};
  auto& first = out["candidates"] = Cell::array();
  for (std::size_t i = 0; i < std::min(d.ids.size(), static_cast<std::size_t>(candidates)); ++i)
    first.push_back({{"token", d.ids[i]},
                     {"label", label_of(tokenizer, d.ids[i])},
                     {"probability", d.plain[i]},
                     {"kept", d.kept[i]}});
  return out;
}

Report steps_report(const Transcript& transcript, const Tokenizer* tokenizer) {
  Report out;
  auto& rows = out.table("", {"step",
                              "token",
                              {"", "probability", "{:.4f}"},
                              "rank",
                              for_people("drawn from"),
                              {"", "share", "{:.4f}"},
                              {"", "random", "{:.4f}"},
                              {"", "entropy", "{:.3f}"},
                              {"", "ms", "{:.2f}"},
                              for_people("cache")});
  for (std::size_t i = 0; i < transcript.steps.size(); ++i) {
    const GenerationStep& step = *transcript.steps[i];
    const Told t = told(step);
    rows.add({i + 1, label_of(tokenizer, step.token), t.distribution.plain[t.rank], t.rank + 1,
              grouped(static_cast<std::int64_t>(t.distribution.count)), t.distribution.kept[t.rank],
              std::isnan(step.random) ? Cell() : Cell(step.random), entropy_of(t.distribution.plain), step.milliseconds,
              byte_size(step.held_bytes())});
  }
  return out;
}

/// The token that ends a text.
std::optional<std::int32_t> end_of(const LoadedModel& loaded) {
  return loaded.tokenizer          ? loaded.tokenizer->eos()
         : loaded.model->encoder() ? loaded.model->config().eos
                                   : std::nullopt;
}

void search(Console& console, const GenerateOptions& options, const LoadedModel& loaded, const RunRequest& request) {
  BeamSettings settings = options.beams;
  settings.tokens = options.tokens;
  settings.stopping = *value_in(stopping_names, options.stopping);
  if (!options.past_end) settings.end = end_of(loaded);
  check(settings, "generate");
  std::vector<std::int32_t> prompt;
  for (const Token& token : tokenize(loaded, request, console.stop())) prompt.push_back(token.id);
  settings = inside_context(settings, *loaded.model, prompt.size());
  BeamTree tree;
  console.with_progress("searching",
                        [&](const Ctx& ctx) { tree = beam_search(loaded, prompt, settings, request, ctx); });
  const Report report = beam_report(loaded, tree, settings, request.edits);
  if (options.picture.wanted()) {
    options.picture.write(console, report.picture, &options.input,
                          model_note_of(options.input, loaded.model->config().name));
    if (!options.json && !options.csv) return;
  }
  console.print(report.printed(options.json ? Form::json : options.csv ? Form::csv : Form::text));
}

void generate(Console& console, const GenerateOptions& options) {
  check(options.choice.settings, "generate");
  options.picture.check();
  if (options.picture.wanted() && options.beams.width == 0) throw UsageError("-o is a picture of beams: --beams N");
  const LoadedModel loaded = load_model(options.input.model_folder(), console.backend());
  const Tokenizer* tokenizer = loaded.tokenizer.get();
  if (options.beams.width > 0) return search(console, options, loaded, prompt_of(loaded, options.input));
  if (!tokenizer && !options.json && !options.steps)
    throw Error(options.input.model, "a tokenizer beside the model", "none",
                "without one there is no text to write; --steps and --json list ids");
  const RunRequest request = prompt_of(loaded, options.input);
  const std::vector<Token> prompt = tokenize(loaded, request, console.stop());
  const int room = loaded.model->config().context - static_cast<int>(prompt.size()) + 1;
  const auto end = end_of(loaded);
  auto texts = Cell::array();
  for (int text = 0; text < options.texts; ++text) {
    Generator generator(loaded, request, false);
    Generator::Choice choice = options.choice;
    choice.seed += static_cast<std::uint64_t>(text);
    Transcript transcript;
    for (const Token& token : prompt) transcript.prompt.push_back(token.id);
    bool ended = false;
    console.with_progress("writing", [&](const Ctx& ctx) {
      const Ctx quiet{ctx.backend, nullptr, ctx.stop, nullptr};
      const int count = std::min(options.tokens, room);
      for (int i = 0; i < count && !ended; ++i) {
        auto step = generator.step(quiet, transcript, choice);
        ended = !options.past_end && step->token == end;
        transcript.steps.push_back(std::move(step));
        if (ctx.progress) *ctx.progress = static_cast<float>(i + 1) / static_cast<float>(count);
      }
    });
    std::vector<std::int32_t> ids = transcript.ids();
    if (ended) ids.pop_back();
    if (options.json) {
      auto steps = Cell::array();
      for (const auto& step : transcript.steps) steps.push_back(step_json(*step, tokenizer, options.candidates));
      texts.push_back({{"seed", choice.seed},
                       {"text", tokenizer ? Cell(tokenizer->decode(ids)) : nullptr},
                       {"ids", transcript.ids()},
                       {"ended", ended},
                       {"steps", steps}});
      continue;
    }
    if (tokenizer) console.print_line(tokenizer->decode(ids));
    if (options.steps) console.print((tokenizer ? "\n" : "") + steps_report(transcript, tokenizer).printed(Form::text));
  }
  if (!options.json) return;
  Cell out{{"model", model_json(loaded.model->info())},
           {"prompt", Cell::array()},
           {"temperature", options.choice.settings.temperature},
           {"top_k", options.choice.settings.top_k},
           {"top_p", options.choice.settings.top_p},
           {"texts", texts}};
  for (const Token& token : prompt) out["prompt"].push_back({{"id", token.id}, {"label", token.label}});
  console.print_line(json_text(out));
}

/// Returns what chooses a text that is drawn, and so means nothing to beams.
std::vector<Option> add_choice(Command& command, GenerateOptions& options) {
  std::vector<Option> drawing;
  drawing.push_back(command
                        .add_option("--temperature", options.choice.settings.temperature,
                                    "0 takes the most probable token every time")
                        .check(range(0.0, 1000.0))
                        .show_default());
  drawing.push_back(
      command.add_option("--top-k", options.choice.settings.top_k, "Only the k most probable tokens (0: all)")
          .check(range(0, 1 << 24))
          .show_default());
  drawing.push_back(
      command
          .add_option("--top-p", options.choice.settings.top_p, "Then the fewest tokens whose shares reach p (1: all)")
          .check(range(1e-9, 1.0))
          .show_default());
  command.add_option("--tokens", options.tokens, "At most this many tokens, and no more than the context")
      .check(range(1, 1 << 20))
      .show_default();
  drawing.push_back(command.add_option("--texts", options.texts, "How many texts, each with the next seed")
                        .check(range(1, 10000))
                        .show_default());
  drawing.push_back(command.add_option("--seed", options.choice.seed, "Seed of the draws").show_default());
  command.add_flag("--past-end", options.past_end, "Go on after the token that ends texts");
  return drawing;
}

/// `drawing`: what beams leave no room for.
void add_beams(Command& command, GenerateOptions& options, const std::vector<Option>& drawing, const Option& json) {
  const Option beams =
      command
          .add_option("--beams", options.beams.width,
                      "Beam search: so many texts are kept at each step, and the best finished ones listed")
          .check(range(1, most_beams));
  for (const Option& each : drawing) each.excludes(beams);
  command
      .add_option("--length-penalty", options.beams.length_penalty,
                  "Beams score Σ ln p / tokens^P: above 0 longer ones gain, below 0 shorter ones")
      .check(range<double>(-most_length_penalty, most_length_penalty))
      .type_name("P")
      .needs(beams)
      .show_default();
  std::vector<std::string> words;
  for (const auto& [word, stopping] : stopping_names) words.emplace_back(word);
  command
      .add_option("--early-stopping", options.stopping,
                  "Once so many are finished: when the best kept one scores less (false), at once (true), or when none "
                  "could become better (never)")
      .check(one_of(words))
      .needs(beams)
      .show_default();
  command.add_flag("--csv", options.csv, "CSV of the beams instead of a table").needs(beams).excludes(json);
  options.picture.add_to(command, "A picture of the tree of beams instead");
}
}  // namespace

void add_generate(Command& app, Console& console) {
  auto options = std::make_shared<GenerateOptions>();
  Command command = app.add_subcommand("generate", "Continue a text, step by step, and say how each token was chosen");
  options->input.add_to(command, {.short_edits = false, .part = false});
  std::vector<Option> drawing = add_choice(command, *options);
  drawing.push_back(
      command.add_flag("--steps", options->steps,
                       "A table: every token with its probability, rank, random number, entropy, time and cache"));
  const Option json =
      command.add_flag("--json", options->json, "JSON, with the most probable candidates of every step");
  drawing.push_back(command.add_option("--candidates", options->candidates, "How many candidates --json lists")
                        .check(range(0, 1 << 20))
                        .show_default());
  add_beams(command, *options, drawing, json);
  command.does([options, &console] { generate(console, *options); });
}

void add_sample(Command& app, Console& console) {
  auto options = std::make_shared<GenerateOptions>();
  Command command = app.add_subcommand("sample", "Let a model write: generate, with nothing but the text");
  options->input.add_adapter_to(command);
  options->input.add_source_to(command);
  command.add_option("model", options->input.model, "Model folder, or the name of a bundled model")
      .required()
      .type_name("DIR");
  command.add_option("-p,--prompt", options->input.text, "How the text begins").type_name("TEXT");
  add_choice(command, *options);
  command.does([options, &console] { generate(console, *options); });
}

}  // namespace headscope::cli
