// headscope-cli: everything that needs no window.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <new>
#include <sstream>

#include "app/cli/commands.h"
#include "app/cli/shell.h"
#include "core/base/error.h"
#include "core/base/standard_streams.h"

namespace {
using namespace headscope;
using namespace headscope::cli;

int report(const std::string& message, int code) {
  std::fflush(stdout);
  say(fmt::format("headscope-cli: {}\n", message));
  return code;
}

/// "run" of "headscope-cli run", for the hint under a usage error.
std::string chosen(const CLI::App& app) {
  const auto subcommands = app.get_subcommands();
  return subcommands.empty() ? "" : " " + subcommands.front()->get_name();
}

int usage(const CLI::App& app, const std::string& message) {
  return report(fmt::format("{}\n  hint: headscope-cli{} --help", message, chosen(app)), exit_usage);
}

/// Parses and runs the command. What --help and --version print is a result like others.
void run(CLI::App& app, Shell& shell, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    shell.command();
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) throw;
    std::ostringstream text;
    app.exit(error, text, text);
    shell.print(text.str());
  }
  shell.flush();
}
}  // namespace

int main(int argc, char** argv) {
  guard_standard_streams();
  CLI::App app("See what attention does inside a transformer: every head, from the command line.", "headscope-cli");
  app.set_version_flag("--version", "headscope-cli " HEADSCOPE_VERSION);
  app.require_subcommand(1);
  app.fallthrough();
  app.footer(
      "Data goes to standard output, messages to standard error.\n"
      "Exit codes: 0 done, 1 an error in a file or in the data, 2 a mistake in the command, 130 interrupted,\n"
      "141 nobody reads the output any more.");

  Shell shell;
  app.add_option("--threads", shell.threads, "Threads to compute with (default: one per processor)")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  app.add_flag("--cuda", shell.cuda, "Multiply matrices on an NVIDIA card (needs a build of the preset cuda)");
  add_run(app, shell);
  add_capture(app, shell);
  add_metrics(app, shell);
  add_render(app, shell);
  add_mechanism(app, shell);
  add_read(app, shell);
  add_inspect(app, shell);
  add_positions(app, shell);
  add_mask(app, shell);
  add_bench(app, shell);
  add_corpus(app, shell);
  add_train(app, shell);
  add_generate(app, shell);
  add_sample(app, shell);
  add_compare(app, shell);
  add_eval(app, shell);
  add_card(app, shell);
  add_sweep(app, shell);
  add_detect(app, shell);
  add_tour(app, shell);

  try {
    run(app, shell, argc, argv);
    return exit_ok;
  } catch (const CLI::ParseError& error) {
    const auto unknown = app.remaining();
    if (app.get_subcommands().empty() && !unknown.empty())
      return usage(app, fmt::format("there is no command or option \"{}\"", unknown.front()));
    return usage(app, error.what());
  } catch (const UsageError& error) {
    return usage(app, error.what());
  } catch (const ReaderGone&) {
    return exit_reader_gone;
  } catch (const Cancelled&) {
    return report("interrupted", exit_interrupted);
  } catch (const std::bad_alloc&) {
    return report("out of memory", exit_error);
  } catch (const std::exception& error) {
    return report(error.what(), exit_error);
  }
}
