// headscope-cli sample: text that a model writes.

#include <fmt/format.h>

#include "app/cli/commands.h"
#include "app/cli/input.h"
#include "core/base/error.h"
#include "core/engine/sampling.h"

namespace headscope::cli {

namespace {
struct Options {
  std::string model, prompt;
  SamplingSettings sampling;
  int tokens = 256, texts = 1;
  std::uint64_t seed = 1;
};

/// One text as it grows: whole characters only.
void sample(Shell& shell, const Options& options) {
  Input input;
  input.model = options.model;
  const LoadedModel loaded = load_model(input.model_folder(), shell.backend());
  if (!loaded.tokenizer)
    throw Error(options.model, "a tokenizer beside the model", "none", "without one there is no text to write");
  const Tokenizer& tokenizer = *loaded.tokenizer;
  std::vector<std::int32_t> prompt;
  // With nothing else to go on from, every text begins with the token that begins texts.
  if (tokenizer.bos() && (tokenizer.adds_bos() || options.prompt.empty())) prompt.push_back(*tokenizer.bos());
  for (const Token& token : tokenizer.encode(options.prompt)) prompt.push_back(token.id);
  if (prompt.empty()) throw UsageError("a --prompt is needed: this tokenizer has no token that begins a text");
  Random random(options.seed);
  const Ctx ctx{shell.backend(), nullptr, shell.stop(), nullptr};
  for (int text = 0; text < options.texts; ++text) {
    std::vector<std::int32_t> ids(prompt.begin(), prompt.end());
    sample_text(*loaded.model, ctx, prompt, options.tokens, options.sampling, random, [&](std::int32_t id) {
      if (id == tokenizer.eos()) return false;
      ids.push_back(id);
      return true;
    });
    shell.print_line(tokenizer.decode(ids));
  }
}
}  // namespace

void add_sample(CLI::App& app, Shell& shell) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("sample", "Let a model write");
  command->add_option("model", options->model, "Model folder, or the name of a bundled model")
      ->required()
      ->type_name("DIR");
  command->add_option("-p,--prompt", options->prompt, "How the text begins")->type_name("TEXT");
  command->add_option("--temperature", options->sampling.temperature, "0 takes the most probable token every time")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  command->add_option("--top-k", options->sampling.top_k, "Only the k most probable tokens (0: all)")
      ->check(CLI::Range(0, 1 << 24))
      ->capture_default_str();
  command->add_option("--tokens", options->tokens, "At most this many tokens, and no more than the context")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command->add_option("--texts", options->texts, "How many texts")->check(CLI::Range(1, 10000))->capture_default_str();
  command->add_option("--seed", options->seed, "Seed of the draws")->capture_default_str();
  command->callback([options, &shell] { shell.command = [options, &shell] { sample(shell, *options); }; });
}

}  // namespace headscope::cli
