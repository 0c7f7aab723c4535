#pragma once
// The one exception type of boundary code (files, user input, devices). A message names the place, what was expected,
// what was found (with numbers), and, where one exists, a way out. Bugs are asserts, never Errors. Whatever a file put
// into it, a message is safe to show: control characters are spelled out, and `found` is at most 200 characters long.
// Names that come from files go into the other phrases through excerpt() (core/base/excerpt.h).

#include <stdexcept>
#include <string>

namespace headscope {

struct Error : std::runtime_error {
  /// `where`: file, tensor or option. `expected`/`found`: short phrases with numbers. `hint`: what the user can do, ""
  /// = none.
  Error(const std::string& where, const std::string& expected, const std::string& found, const std::string& hint = "");

  const std::string where, expected, found, hint;
};

/// Thrown when a stop was requested; not a failure, so it is not an Error.
struct Cancelled : std::runtime_error {
  Cancelled() : std::runtime_error("cancelled") {}
};

}  // namespace headscope
