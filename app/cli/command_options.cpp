#include "app/cli/command_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <sstream>
#include <type_traits>

namespace headscope::cli {

namespace {
Check made(CLI::Validator validator) {
  return std::make_shared<const CLI::Validator>(std::move(validator));
}

/// A number that is there and `good`; no infinite one is, nor what is no number. `what` it has to be, for the message.
template <class T>
Check number_that(std::function<bool(T)> good, std::string what, std::string description) {
  return made(CLI::Validator(
      [good = std::move(good), what = std::move(what)](std::string& words) {
        T value{};
        const bool fine = CLI::detail::lexical_cast(words, value) && std::isfinite(static_cast<double>(value));
        return fine && good(value) ? std::string() : fmt::format("Value {} {}", words, what);
      },
      std::move(description)));
}

template <class T>
std::string bound_words(T bound) {
  if constexpr (std::is_floating_point_v<T>)
    return fmt::format("{:g}", bound);
  else
    return fmt::format("{}", bound);
}
}  // namespace

template <class T>
Check range(T low, T high) {
  const std::string from = bound_words(low), to = bound_words(high);
  return number_that<T>([low, high](T value) { return value >= low && value <= high; },
                        fmt::format("not in range {} to {}", from, to),
                        fmt::format("{} in [{} - {}]", CLI::detail::type_name<T>(), from, to));
}
template Check range(int, int);
template Check range(std::int64_t, std::int64_t);
template Check range(double, double);

Check positive() {
  return number_that<double>([](double value) { return value > 0; }, "is no finite number above 0", "POSITIVE");
}

Check non_negative() {
  return number_that<double>([](double value) { return value >= 0; }, "is no finite number from 0 on", "NONNEGATIVE");
}

Check one_of(std::vector<std::string> words) {
  return made(CLI::IsMember(std::move(words)));
}

Check one_of(std::initializer_list<int> numbers) {
  return made(CLI::IsMember(numbers));
}

Check words_of(std::function<bool(const std::string&)> good, std::string what) {
  return made(CLI::Validator(
      [good = std::move(good), what](std::string& words) {
        return good(words) ? std::string() : fmt::format("'{}' is not {}", words, what);
      },
      ""));
}

const Option& Option::type_name(const std::string& name) const {
  option_->type_name(name);
  return *this;
}

const Option& Option::check(const Check& check) const {
  option_->check(*check);
  return *this;
}

const Option& Option::required() const {
  option_->required();
  return *this;
}

const Option& Option::show_default() const {
  option_->capture_default_str();
  return *this;
}

const Option& Option::delimiter(char mark) const {
  option_->delimiter(mark);
  return *this;
}

const Option& Option::take_all() const {
  option_->take_all();
  return *this;
}

const Option& Option::excludes(const Option& other) const {
  option_->excludes(other.option_);
  return *this;
}

const Option& Option::needs(const Option& other) const {
  option_->needs(other.option_);
  return *this;
}

namespace {
/// The parser lets numbers without a sign run over, "-1" to the largest of all.
template <class T>
Check whole_number() {
  return made(CLI::Validator(
      [](const std::string& words) {
        T value{};
        const char* const end = words.data() + words.size();
        const auto read = std::from_chars(words.data(), end, value);
        return read.ec == std::errc() && read.ptr == end
                   ? std::string()
                   : fmt::format("Value {} is no whole number from {} to {}", words, std::numeric_limits<T>::min(),
                                 std::numeric_limits<T>::max());
      },
      ""));
}
/// The parser takes an empty word for the number 0.
Check not_empty() {
  return made(CLI::Validator(
      [](const std::string& words) {
        return words.empty() ? std::string("expected a number, found an empty word") : "";
      },
      ""));
}
}  // namespace

template <class T>
Option Command::add_option(const std::string& names, T& value, const std::string& meaning) {
  CLI::Option* const option = app_->add_option(names, value, meaning);
  if constexpr (std::is_same_v<T, std::int64_t> || std::is_same_v<T, std::uint64_t>) option->check(*whole_number<T>());
  constexpr bool words = std::is_same_v<T, std::string> || std::is_same_v<T, std::vector<std::string>> ||
                         std::is_same_v<T, std::optional<std::string>>;
  if constexpr (!words) option->check(*not_empty());
  return Option(*option);
}

Option Command::add_flag(const std::string& names, bool& value, const std::string& meaning) {
  return Option(*app_->add_flag(names, value, meaning));
}

Command Command::add_subcommand(const std::string& name, const std::string& meaning) {
  app_->require_subcommand(1);
  return {*app_->add_subcommand(name, meaning), *chosen_, strangers_};
}

Command Command::add_choice(const std::string& title, const std::string& meaning) {
  CLI::Option_group* group = app_->add_option_group(title, meaning);
  group->require_option(0, 1);
  return {*group, *chosen_, strangers_};
}

namespace {
/// The parser hands a command what those below it do not know, its own options too, which then would say nothing.
void refuse_options(const CLI::App& app, const CLI::App& below) {
  const auto refuse = [&](const CLI::App& where) {
    for (const CLI::Option* option : where.get_options())
      if (option->count() > 0)
        throw UsageError(fmt::format("{} is no option of {} {}", option->get_name(), app.get_name(), below.get_name()));
  };
  refuse(app);
  for (const CLI::App* group : app.get_subcommands([](const CLI::App* each) { return each->get_name().empty(); }))
    refuse(*group);
}
}  // namespace

void Command::does(std::function<void()> work) {
  // A group of options is a subcommand to the parser, without a name.
  if (!app_->get_subcommands([](const CLI::App* each) { return !each->get_name().empty(); }).empty())
    app_->require_subcommand(0, 1);
  app_->callback([app = app_, work = std::move(work), chosen = chosen_] {
    // The parser calls back a command after the one below it that was chosen.
    if (app->get_subcommands().empty())
      *chosen = work;
    else if (app->get_parent())
      refuse_options(*app, *app->get_subcommands().front());
  });
}

struct Program::State {
  CLI::App app;
  Work work;
};

Program::Program(std::unique_ptr<State> state, bool strangers)
    : Command(state->app, state->work, strangers), state_(std::move(state)) {}

Program::Program(const std::string& name, const std::string& meaning, const std::string& version,
                 const std::string& footer, bool strangers)
    : Program(std::unique_ptr<State>(new State{CLI::App(meaning, name), {}}), strangers) {
  state_->app.set_version_flag("--version", version);
  state_->app.fallthrough();
  state_->app.footer(footer);
}

Program::~Program() = default;

std::optional<std::string> Program::parse(std::vector<std::string> words) {
  CLI::App& app = state_->app;
  std::ranges::reverse(words);  // CLI11 takes them from the end
  try {
    app.parse(std::move(words));
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help, --version
      std::ostringstream text;
      app.exit(error, text, text);
      return text.str();
    }
    const auto unknown = app.remaining(true);
    // The parser names it itself where nothing else is wrong; the word behind it, which may be a value, often is.
    const auto option = std::ranges::find_if(unknown, [](const auto& w) { return w.size() > 1 && w.front() == '-'; });
    if (option != unknown.end() && !chosen().empty() && !dynamic_cast<const CLI::ExtrasError*>(&error))
      throw UsageError(fmt::format("there is no option \"{}\" of {}", *option, chosen_path()));
    if (chosen().empty() && !unknown.empty())
      throw UsageError(fmt::format("there is no command or option \"{}\"", unknown.front()));
    throw UsageError(error.what());
  }
}

void Program::run() {
  state_->work();
}

std::string Program::chosen() const {
  const auto met = state_->app.get_subcommands();
  return met.empty() ? "" : met.front()->get_name();
}

std::string Program::chosen_path() const {
  std::string out;
  for (auto met = state_->app.get_subcommands(); !met.empty(); met = met.front()->get_subcommands())
    out += (out.empty() ? "" : " ") + met.front()->get_name();
  return out;
}

// What options are stored in.
template Option Command::add_option(const std::string&, std::string&, const std::string&);
template Option Command::add_option(const std::string&, int&, const std::string&);
template Option Command::add_option(const std::string&, std::int64_t&, const std::string&);
template Option Command::add_option(const std::string&, std::uint64_t&, const std::string&);
template Option Command::add_option(const std::string&, double&, const std::string&);
template Option Command::add_option(const std::string&, std::vector<std::string>&, const std::string&);
template Option Command::add_option(const std::string&, std::vector<int>&, const std::string&);
template Option Command::add_option(const std::string&, std::optional<std::string>&, const std::string&);
template Option Command::add_option(const std::string&, std::optional<int>&, const std::string&);
template Option Command::add_option(const std::string&, std::optional<double>&, const std::string&);

}  // namespace headscope::cli
