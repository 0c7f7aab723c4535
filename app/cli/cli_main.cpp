// headscope-cli: everything that needs no window.

#include <fmt/format.h>

#include <cstdio>
#include <new>

#include "app/cli/command_options.h"
#include "app/cli/commands.h"
#include "app/cli/console.h"
#include "core/base/error.h"
#include "core/base/standard_streams.h"
#include "core/base/version.h"

namespace {
using namespace headscope;
using namespace headscope::cli;

int report(const std::string& message, int code) {
  std::fflush(stdout);
  say(fmt::format("headscope-cli: {}\n", message));
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  guard_standard_streams();
  Program app("headscope-cli", "See what attention does inside a transformer: every head, from the command line.",
              "headscope-cli " + std::string(program_version),
              "Data goes to standard output, messages to standard error.\n"
              "Exit codes: 0 done, 1 an error in a file or in the data, 2 a mistake in the command, 130 interrupted,\n"
              "141 nobody reads the output any more.");

  Console console;
  app.add_option("--threads", console.threads, "Threads to compute with (default: one per processor)")
      .check(range(1, 1024))
      .type_name("N");
  app.add_option("--device", console.device,
                 "What computes: cpu, cuda (the first NVIDIA card), cuda:1 …; devices lists them (default: cpu)")
      .check(words_of([](const std::string& words) { return parse_device(words).has_value(); }, device_words))
      .type_name("NAME");
  app.add_option("--precision", console.precision,
                 "Of products on a card: f32, tf32 (10 bits behind the point), bf16 (7) (default: f32)")
      .check(one_of({"f32", "tf32", "bf16"}))
      .type_name("NAME");
  for (AddCommand* add : all_commands) add(app, console);

  try {
    if (const auto text = app.parse(argc, argv))
      console.print(*text);  // help is a result like others
    else
      console.carry_out([&] { app.run(); });
    console.flush();
    return exit_ok;
  } catch (const UsageError& error) {
    const std::string command = app.chosen();
    return report(
        fmt::format("{}\n  hint: headscope-cli{}{} --help", error.what(), command.empty() ? "" : " ", command),
        exit_usage);
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
