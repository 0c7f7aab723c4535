// headscope: the window. headscope-cli is the command line for everything that needs no display.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <exception>
#include <limits>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "app/all_workspaces.h"
#include "app/state/settings.h"
#include "app/window/app.h"
#include "app/window/page_again.h"
#include "core/analysis/certificate.h"
#include "core/base/error.h"
#include "core/base/interrupts.h"
#include "core/base/language.h"
#include "core/base/standard_streams.h"
#include "core/base/version.h"

namespace {

using namespace headscope;

void run(AppOptions options) {
  std::optional<PictureRecipe> recipe;
  if (options.again) recipe = prepare_page_again(options);
  App app(options);
  AllWorkspaces workspaces(app);
  if (recipe) return draw_page_again(app, options, *recipe);
  workspaces.begin_with(options);
  app.run();
}

/// That --workspace takes.
std::vector<std::string> workspace_names() {
  std::vector<std::string> names;
  for (const WorkspaceName& each : workspace_list) names.push_back(workspace_option(each.id));
  return names;
}

enum ExitCode { exit_done = 0, exit_error = 1, exit_usage = 2 };  // as those of headscope-cli; README.md documents them

int usage(const std::string& message) {
  write_error(fmt::format("headscope: {}\n  hint: headscope --help\n", message));
  return exit_usage;
}

/// What goes with --again, which takes all else from its file.
bool is_of_again(const std::string& option) {
  static constexpr std::string_view these[] = {"--again",     "--out",     "--device",
                                               "--precision", "--threads", "--no-recipe"};
  return std::ranges::find(these, option) != std::end(these);
}

}  // namespace

int main(int argc, char** argv) {
  guard_standard_streams();
  CLI::App cli(
      "Headscope: see and change what attention does inside a transformer.\n"
      "headscope-cli does the same without a display.",
      "headscope");
  AppOptions options;
  std::string size;
  cli.add_option("model", options.model,
                 "folder or file of a model, the name of a bundled one, or captured attention (.npz, .npy, "
                 ".safetensors, a folder of them)")
      ->type_name("MODEL");
  cli.add_option("--watch", options.watch,
                 "folder that a script writes captured attention into: the newest is shown as it comes")
      ->type_name("FOLDER");
  CLI::Option* text = cli.add_option("--text", options.text, "prompt to begin with")->type_name("TEXT");
  cli.add_option("--ids", options.ids, "the same as token ids, separated by commas")
      ->delimiter(',')
      ->check(CLI::Range(0, std::numeric_limits<std::int32_t>::max()))
      ->type_name("N,N,…")
      ->excludes(text);
  cli.add_option("--source", options.source, "what an encoder-decoder reads; --text is its target then")
      ->type_name("TEXT");
  cli.add_option("--image", options.image, "picture to begin with (PNG or JPEG), for a model that reads one")
      ->type_name("FILE");
  cli.add_option("--sound", options.sound, "sound to begin with (a file, or builtin:tones), for a model that hears")
      ->type_name("FILE");
  cli.add_option("--session", options.session, "session file to open")->type_name("FILE");
  cli.add_option("--screenshot", options.screenshot, "draw one frame into a PNG and end")->type_name("FILE");
  cli.add_option("--again", options.again,
                 "draw the picture of a page once more from what its file remembers, into --out, and end; needs no "
                 "display")
      ->type_name("FILE");
  cli.add_option("--out", options.out, "what --again writes: .png, .svg, .pdf, .csv, or of a film .gif, .apng")
      ->type_name("FILE");
  std::string device, precision = "f32";
  int threads = 0;
  cli.add_option("--device", device, fmt::format("what computes, of --again: {}", device_words))
      ->check([](const std::string& name) { return parse_device(name) ? "" : "expected " + std::string(device_words); })
      ->type_name("NAME");
  cli.add_option("--precision", precision, "of products on a card, of --again: f32, tf32 or bf16")
      ->check(CLI::IsMember({"f32", "tf32", "bf16"}))
      ->type_name("NAME");
  cli.add_option("--threads", threads, "threads to compute with, of --again")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  cli.add_flag("--no-recipe", options.plain_pictures, "the file of --again does not tell how it was made");
  cli.add_option("--size", size, "of the window or the picture, as in 1600x1000")->type_name("WxH");
  cli.add_option("--scale", options.scale, "pixels in a logical pixel, 0.5 … 8")->check(CLI::Range(0.5, 8.0));
  cli.add_option("--theme", options.theme, "dark, light or projector")
      ->check(CLI::IsMember({"dark", "light", "projector"}))
      ->type_name("NAME");
  cli.add_option("--workspace", options.workspace, fmt::format("{}", fmt::join(workspace_names(), ", ")))
      ->check(CLI::IsMember(workspace_names()))
      ->type_name("NAME");
  cli.add_option("--lesson", options.lesson, "a lesson to take, from a step on: --lesson 01-who-is-she:2")
      ->type_name("ID[:STEP]");
  cli.add_option("--language", options.language,
                 "of the window and of lessons, where they are translated: en, de, zh, pt_BR")
      ->check([](const std::string& words) { return parse_language(words) ? "" : "expected a language, such as de"; })
      ->type_name("LL");
  cli.add_flag("--present", options.present, "one large picture on the whole screen, with the lesson's prose (F11)");
  cli.add_option("--page", options.page, "what that workspace shows, as in --workspace analyse --page ablate")
      ->type_name("ID");
  cli.add_option("--generate-tokens", options.generate_tokens, "what the Generate workspace writes at once")
      ->check(CLI::Range(0, 1'000'000))
      ->type_name("N");
  cli.add_option("--with-model", options.with_model, "what the Compare workspace begins with: another model")
      ->type_name("MODEL");
  cli.add_option("--with-text", options.with_text, "… or another text")->type_name("TEXT");
  cli.add_option("--view", options.view, "how a page of mechanisms is shown")
      ->check(CLI::IsMember({"compare", "steps", "recurrent", "model", "cost"}))
      ->type_name("NAME");
  cli.add_option("--rule", options.rule,
                 "which cells the detector looks for, as in --page detector --rule 'k == q - 1'")
      ->type_name("RULE");
  cli.add_flag("--first-steps", options.first_steps, "begin as for somebody who opens it for the first time");
  cli.add_option("--corpus", options.corpus,
                 "what the Corpus workspace begins with: results (.json) to show, or a file or folder to read")
      ->type_name("FILE");
  cli.add_option("--recipe", options.recipe, "what the Train workspace begins with: a file or a bundled recipe's name")
      ->type_name("RECIPE");
  cli.add_option("--train-steps", options.train_steps, "train that recipe at once, and pause after so many steps")
      ->check(CLI::Range(1, 1'000'000'000))
      ->type_name("N");
  cli.set_version_flag("--version", "headscope " + std::string(program_version));
  cli.footer("Exit codes: 0 done, 1 an error in a file or in the data, 2 a mistake in the command.");
  try {
    cli.parse(argc, argv);
    for (const CLI::Option* given : cli.parse_order())
      if (const bool of_again = is_of_again(given->get_name()); of_again != options.again.has_value())
        throw OptionError(given->get_name(), of_again ? "--again beside it" : "a start without --again",
                          of_again ? "none" : "both");

    if (!options.language.empty()) options.language = *parse_language(options.language);
    if (!size.empty()) std::tie(options.width, options.height) = parse_size(size);
    if (!device.empty()) {
      options.device = *parse_device(device);
      options.device->precision = value_in(precision_names, precision).value_or(Precision::f32);
    }
    if (threads > 0) options.threads = threads;
    if (!options.screenshot && !options.again) {
      options.first_steps = true;
      options.settings = settings_file();
      options.recovery = recovery_folder();
      options.certificates = certificates_folder();
    }
    const Interrupts interrupts;  // before any thread
    options.stop = interrupts.token();
    run(options);
    return interrupts.token().stop_requested() ? interrupted_exit_code : exit_done;
  } catch (const Cancelled&) {
    return interrupted_exit_code;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return cli.exit(error);  // --help, --version
    return usage(error.what());
  } catch (const OptionError& error) {
    return usage(error.what());
  } catch (const std::exception& error) {
    write_error(fmt::format("headscope: {}\n", error.what()));
    return exit_error;
  }
}
