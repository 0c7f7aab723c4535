#pragma once
// The one exception type of boundary code (files, user input, devices). A message names the place, what was expected,
// what was found (with numbers), and, where one exists, a way out. Bugs are asserts, never Errors.

#include <stdexcept>
#include <string>

namespace headscope {

struct Error : std::runtime_error {
  /// `where`: file, tensor or option. `expected`/`found`: short phrases with numbers. `hint`: what the user can do (""
  /// = none).
  Error(std::string where, std::string expected, std::string found, std::string hint = "")
      : std::runtime_error(compose(where, expected, found, hint)),
        where(std::move(where)),
        expected(std::move(expected)),
        found(std::move(found)),
        hint(std::move(hint)) {}

  const std::string where, expected, found, hint;

 private:
  static std::string compose(const std::string& where, const std::string& expected, const std::string& found,
                             const std::string& hint) {
    std::string text = where + ": expected " + expected + ", found " + found;
    if (!hint.empty()) text += "\n  hint: " + hint;
    return text;
  }
};

/// Thrown when a stop was requested; not a failure, so it is not an Error.
struct Cancelled : std::runtime_error {
  Cancelled() : std::runtime_error("cancelled") {}
};

}  // namespace headscope
