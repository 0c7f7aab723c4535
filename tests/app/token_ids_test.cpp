#include "app/state/token_ids.h"

#include <doctest/doctest.h>

namespace headscope::written_ids_test {

using Ids = std::vector<std::int32_t>;

TEST_CASE("ids are read with whatever stands between them, up to the first that is none") {
  CHECK(read_token_ids("5 17 3", 43).ids == Ids{5, 17, 3});
  CHECK(read_token_ids(" [5,17,\n 3] ", 43).ids == Ids{5, 17, 3});
  CHECK(read_token_ids("", 43).error.empty());
  CHECK(read_token_ids("42", 43).error.empty());
  const WrittenIds bound = read_token_ids("0 43 1", 43);
  CHECK(bound.ids == Ids{0});
  CHECK(bound.error == "43 is no id of this model: its vocabulary has 43 tokens, 0 … 42.");
  CHECK(read_token_ids("-1", 43).error == "-1 is no id of this model: its vocabulary has 43 tokens, 0 … 42.");
  CHECK(read_token_ids("99999999999999999999", 43).error ==
        "99999999999999999999 is no id of this model: its vocabulary has 43 tokens, 0 … 42.");
  for (const char* word : {"1.5", "0x3", "five", "3-4"})
    CHECK(read_token_ids(word, 43).error.starts_with("“" + std::string(word) + "” is no token id"));
  const WrittenIds placed = read_token_ids("5, 17", 43);
  REQUIRE(placed.stretches.size() == 2);
  CHECK(placed.stretches[1].begin == 3);
  CHECK(placed.stretches[1].end == 5);
  CHECK(token_ids_text(Ids{5, 17, 3}) == "5 17 3");
}

}  // namespace headscope::written_ids_test
