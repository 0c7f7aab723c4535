#pragma once
// What a program's command line says: commands, their options, and what is checked of a value before any work.
// The parser behind it is CLI11, which only options.cpp knows: its templates take seconds in every file that sees them.
// Command and Option are handles, copied freely; what they stand for belongs to the Program and lives as long.

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace CLI {
class App;
class Option;
class Validator;
}  // namespace CLI

namespace headscope::cli {

/// The words do not make sense, alone or together: one line, exit code 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What `read` makes of words of the command. Those that mean nothing to it are a mistake in the command.
template <class Read>
auto understood(const Read& read) {
  try {
    return read();
  } catch (const Error& mistyped) {
    throw UsageError(mistyped.what());
  }
}

/// What a value must be. The help says it beside the option, the message when it is not.
using Check = std::shared_ptr<const CLI::Validator>;
/// low … high, both included; of int, std::int64_t and double. Neither this nor the next two take what is infinite or
/// no number.
template <class T>
Check range(T low, T high);
Check positive();
Check non_negative();
Check one_of(std::vector<std::string> words);
Check one_of(std::initializer_list<int> numbers);
/// Words that `good` takes; `what` they have to be, for the message.
Check words_of(std::function<bool(const std::string&)> good, std::string what);

/// An option or a positional word, to be described further.
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(&option) {}
  const Option& type_name(const std::string& name) const;  ///< how the help calls the value
  const Option& check(const Check& check) const;           ///< of every value
  const Option& required() const;
  const Option& show_default() const;        ///< the help says what the variable holds now
  const Option& delimiter(char mark) const;  ///< also between values: 1,2,3
  const Option& take_all() const;            ///< may be given again; the values add up
  const Option& excludes(const Option& other) const;
  const Option& needs(const Option& other) const;

 private:
  CLI::Option* option_;
};

class Command {
 public:
  /// The words are a stranger's (render --again): no option is offered that shows what lies on this machine.
  bool strangers() const { return strangers_; }
  /// `names` as in "-o,--out", or "path" of a positional word. `value` takes what is given, keeps what it holds
  /// otherwise, and lives as long as the program. T: a string, number, vector or optional of those listed at the end of
  /// options.cpp.
  template <class T>
  Option add_option(const std::string& names, T& value, const std::string& meaning);
  Option add_flag(const std::string& names, bool& value, const std::string& meaning);
  /// A command with subcommands needs one of them, unless it does something itself.
  Command add_subcommand(const std::string& name, const std::string& meaning);
  /// Options under a title of their own, at most one of which may be given.
  Command add_choice(const std::string& title, const std::string& meaning);
  /// What the program does when this command was chosen. Of one with subcommands after these were added.
  void does(std::function<void()> work);

 protected:
  using Work = std::function<void()>;
  Command(CLI::App& app, Work& chosen, bool strangers) : app_(&app), chosen_(&chosen), strangers_(strangers) {}

 private:
  CLI::App* app_;
  Work* chosen_;  ///< the program's
  bool strangers_;
};

/// The command line as a whole; the options that are its own may follow any command.
class Program : public Command {
 public:
  Program(const std::string& name, const std::string& meaning, const std::string& version, const std::string& footer,
          bool strangers = false);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// The text that --help or --version ask for; nothing when there is work. Throws UsageError.
  std::optional<std::string> parse(std::vector<std::string> words);
  /// What the chosen command does; after parse().
  void run();
  /// The command that parse() met, "run" of "headscope-cli run --top", also when it threw; "" when it met none.
  std::string chosen() const;
  /// With those below it: "expert tasks".
  std::string chosen_path() const;

 private:
  struct State;
  Program(std::unique_ptr<State> state, bool strangers);
  std::unique_ptr<State> state_;
};

}  // namespace headscope::cli
