#include "core/base/user_folders.h"

#include <doctest/doctest.h>

#include "tests/support/variable.h"

namespace headscope::user_folders_test {

TEST_CASE("a path in the home folder is written with a tilde, and read back") {
  const testing::Variable home("HOME", "/home/anna");
  CHECK(with_tilde("/home/anna/models/x") == "~/models/x");
  CHECK(with_tilde("/home/annabel/x") == "/home/annabel/x");
  CHECK(with_tilde("/home/anna") == "/home/anna");
  CHECK(from_tilde("~/models/x") == "/home/anna/models/x");
  CHECK(from_tilde("~") == "/home/anna");
  CHECK(from_tilde("~bob/x") == "~bob/x");
  CHECK(from_tilde("models/~/x") == "models/~/x");
  const testing::Variable none("HOME", "");
  CHECK(with_tilde("/home/anna/x") == "/home/anna/x");
  CHECK(from_tilde("~/x") == "~/x");
}

}  // namespace headscope::user_folders_test
