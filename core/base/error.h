#pragma once
// The one exception type of boundary code (files, user input, devices). A message names the place, what was expected,
// what was found (with numbers), and, where one exists, a way out. Bugs are asserts, never Errors.

#include <stdexcept>
#include <string>

namespace headscope {

struct Error : std::runtime_error {
  /// `where`: file, tensor or option. `expected`/`found`: short phrases with numbers. `hint`: what the user can do, ""
  /// = none.
  Error(std::string where_, std::string expected_, std::string found_, std::string hint_ = "")
      : std::runtime_error(compose(where_, expected_, found_, hint_)),
        where(std::move(where_)),
        expected(std::move(expected_)),
        found(std::move(found_)),
        hint(std::move(hint_)) {}

  const std::string where, expected, found, hint;

 private:
  static std::string compose(const std::string& where_, const std::string& expected_, const std::string& found_,
                             const std::string& hint_) {
    std::string text = where_ + ": expected " + expected_ + ", found " + found_;
    if (!hint_.empty()) text += "\n  hint: " + hint_;
    return text;
  }
};

/// Thrown when a stop was requested; not a failure, so it is not an Error.
struct Cancelled : std::runtime_error {
  Cancelled() : std::runtime_error("cancelled") {}
};

}  // namespace headscope
