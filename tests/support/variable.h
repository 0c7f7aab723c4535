#pragma once
// An environment variable for a while, of a test alone.

#include <cstdlib>
#include <optional>
#include <string>

namespace headscope::testing {

struct Variable {
  std::string name;
  std::optional<std::string> before;
  Variable(const char* name_, const std::string& value) : name(name_) {
    if (const char* old = std::getenv(name_)) before = old;
    setenv(name_, value.c_str(), 1);
  }
  ~Variable() { before ? setenv(name.c_str(), before->c_str(), 1) : unsetenv(name.c_str()); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
};

}  // namespace headscope::testing
