// headscope-cli: everything that needs no window.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <new>
#include <string>
#include <vector>

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
  write_error(fmt::format("headscope-cli: {}\n", message));
  return code;
}

/// One that says where help is.
struct HintedError : UsageError {
  using UsageError::UsageError;
};

/// Throws UsageError, which says where help is, and what the command throws.
void obey(Console& console, std::vector<std::string> words) {
  Program app(
      "headscope-cli", "See what attention does inside a transformer: every head, from the command line.",
      "headscope-cli " + std::string(program_version),
      "headscope-cli COMMAND --help says what a command takes; tour shows what it is about, models which are here.\n"
      "Data goes to standard output, messages to standard error.\n"
      "Exit codes: 0 done, 1 an error in a file or in the data, 2 a mistake in the command, 130 interrupted,\n"
      "141 nobody reads the output any more.",
      console.pictures_only);

  if (!words.empty() && words.front() == "help") {  // as many programs have it
    words.erase(words.begin());
    words.push_back("--help");
  }
  console.words = words;
  // The command that a film is made of stays as it was typed: CLI11 takes "[CLS] a, b [SEP]" for a list.
  console.behind.clear();
  if (const auto bar = std::ranges::find(words, "--"); std::find(words.begin(), bar, "animate") != bar) {
    console.behind.assign(bar == words.end() ? bar : bar + 1, words.end());
    words.erase(bar, words.end());
  }
  app.add_option("--threads", console.threads, "Threads to compute with (default: one per processor)")
      .check(range(1, 1024))
      .type_name("N");
  app.add_option("--device", console.device,
                 "What computes: cpu, cuda (the first NVIDIA card), cuda:1 …; devices lists them (default: cpu)")
      .check(words_of([](const std::string& name) { return parse_device(name).has_value(); }, device_words))
      .type_name("NAME");
  app.add_option("--precision", console.precision,
                 "Of products on a card: f32, tf32 (10 bits behind the point), bf16 (7) (default: f32)")
      .check(one_of({"f32", "tf32", "bf16"}))
      .type_name("NAME");
  app.add_flag(
      "--no-recipe", console.plain_pictures,
      "Pictures and captures do not tell in their files how they were made (--again): no command, folder or text");
  for (AddCommand* add : all_commands) add(app, console);
  try {
    const auto text = app.parse(words);
    if (console.pictures_only && app.chosen() != console.but_for &&
        std::ranges::find(picture_commands, app.chosen()) == std::end(picture_commands))
      throw UsageError(fmt::format("\"{}\" does more than to draw a picture", app.chosen()));
    if (!console.behind.empty() && app.chosen() != "animate")
      throw UsageError("words behind \"--\" are the command of a film: animate alone takes them");
    if (text)
      console.print(*text);  // help is a result like others
    else
      console.carry_out([&] { app.run(); });
  } catch (const HintedError&) {
    throw;
  } catch (const UsageError& error) {
    const std::string command = app.chosen_path();
    throw HintedError(
        fmt::format("{}\n  hint: headscope-cli{}{} --help", error.what(), command.empty() ? "" : " ", command));
  }
}

}  // namespace

int main(int argc, char** argv) {
  guard_standard_streams();
  Console console;
  console.obey = [&console](const std::vector<std::string>& words) { obey(console, words); };
  try {
    obey(console, {argv + std::min(argc, 1), argv + argc});
    console.flush();
    return exit_ok;
  } catch (const UsageError& error) {
    return report(error.what(), exit_usage);
  } catch (const ReaderGone&) {
    return exit_reader_gone;
  } catch (const Ended& other) {
    return other.code;
  } catch (const Cancelled&) {
    return report("interrupted", exit_interrupted);
  } catch (const std::bad_alloc&) {
    return report("out of memory", exit_error);
  } catch (const std::exception& error) {
    return report(error.what(), exit_error);
  }
}
