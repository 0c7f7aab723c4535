#include "core/base/nearest_names.h"

#include <doctest/doctest.h>

namespace headscope::nearest_names_test {

TEST_CASE("edit distance counts insertions, deletions and replacements") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("abc", "") == 3);
  CHECK(edit_distance("kitten", "sitting") == 3);  // k→s, e→i, +g
  CHECK(edit_distance("flaw", "lawn") == 2);       // −f, +n
}

TEST_CASE("the hint lists the nearest names first and is empty without names") {
  const std::vector<std::string> names{"attn", "logits", "attn_sel", "ids"};
  // 1, 3, 5 and 5 edits: of the equals, the first given.
  CHECK(nearest_names_hint("atn", names) == "nearest names: attn, ids, logits");
  CHECK(nearest_names_hint("logit", names, 1) == "nearest names: logits");
  // 4 edits and 3: the longer name of the same thing comes first.
  CHECK(nearest_names_hint("attn", std::vector<std::string>{"atlas", "attn_sel"}, 1) == "nearest names: attn_sel");
  CHECK(nearest_names_hint("a.w", std::vector<std::string>{"b.w", "model.a.w"}, 1) == "nearest names: model.a.w");
  CHECK(nearest_names_hint("x", std::vector<std::string>{}).empty());
}

}  // namespace headscope::nearest_names_test
