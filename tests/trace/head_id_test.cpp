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
  CHECK(grouped.group(0) == 4);
  for (int head = 0; head < 8; ++head) CHECK(grouped.kv_of(head, 0) == (head < 4 ? 0 : 1));
  CHECK(ModelDims{.heads = 3, .kv_heads = 3}.kv_of(2, 0) == 2);
  CHECK(ModelDims{.heads = 3}.kv_of(2, 0) == 2);  // nothing is known of key heads: each has its own
}

TEST_CASE("layers differ in how many query heads share a key head; one that does not attend has no key heads") {
  ModelDims dims{.layers = 3, .heads = 8, .kv_heads = 4, .d_head = 6};
  dims.widths = {{4, 6, 0}, {1, 12, 0}, {8, 6, 0}};
  CHECK(std::vector{dims.group(0), dims.group(1), dims.group(2)} == std::vector{2, 8, 1});
  CHECK(std::vector{dims.kv_of(7, 0), dims.kv_of(7, 1), dims.kv_of(7, 2)} == std::vector{3, 0, 7});
  CHECK(dims.of_layer(1).group(0) == 8);

  ModelDims hybrid{.layers = 2, .heads = 4, .kv_heads = 2, .d_inner = 8};
  hybrid.mixers = {Mixer::state_space, Mixer::attention};
  CHECK(hybrid.group(0) == 1);
  CHECK(hybrid.kv_of(3, 0) == 3);
  CHECK(hybrid.group(1) == 2);
}

}  // namespace headscope::head_id_test
