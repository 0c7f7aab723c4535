#include "core/trace/head_id.h"

#include <doctest/doctest.h>

#include "core/trace/model_info.h"

namespace headscope::head_id_test {

TEST_CASE("a head is written layer, point, head, and read back from nothing else") {
  for (const HeadId head : {HeadId{0, 0}, HeadId{1, 0}, HeadId{11, 127}}) CHECK(parse_head_id(to_string(head)) == head);
  CHECK(to_string(HeadId{3, 12}) == "3.12");
  CHECK(parse_head_id("07.1") == HeadId{7, 1});
  for (const char* other : {"", ".", "1", "1.", ".1", "1.2.3", "1,2", "-1.0", "1.-0", " 1.0", "1.0 ", "a.b", "1.0x",
                            "99999999999.0", "0.99999999999"}) {
    CAPTURE(other);
    CHECK_FALSE(parse_head_id(other));
  }
}

TEST_CASE("query heads share key heads in groups") {
  const ModelDims grouped{.layers = 1, .heads = 8, .kv_heads = 2};
  CHECK(grouped.group() == 4);
  for (int head = 0; head < 8; ++head) CHECK(grouped.kv_of(head) == (head < 4 ? 0 : 1));
  CHECK(ModelDims{.heads = 3, .kv_heads = 3}.kv_of(2) == 2);
  CHECK(ModelDims{.heads = 3}.kv_of(2) == 2);  // nothing is known of key heads: each has its own
}

}  // namespace headscope::head_id_test
