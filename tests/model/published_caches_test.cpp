#include "core/model/published_caches.h"

#include <doctest/doctest.h>

#include <set>
#include <string>

namespace headscope::published_caches_test {

namespace {
const PublishedCache& row(std::string_view model) {
  for (const PublishedCache& each : published_caches())
    if (each.model == model) return each;
  FAIL("no row for " << std::string(model));
  throw 0;
}
}  // namespace

TEST_CASE("rows of published caches, by hand") {
  // 32 layers of keys and values, 8 heads of 128 numbers, two bytes each: 32 · 2 · 8 · 128 · 2 = 128 KiB per token.
  CHECK(row("Llama 3 8B").bytes(1, 2) == 131'072);
  CHECK(row("Llama 3 8B").bytes(8192, 2) == std::uint64_t{1} << 30);  // a context of 8192 is 1 GiB
  // The same model size of an earlier generation with a pair for each of its 32 heads: four times as much.
  CHECK(row("Llama 2 7B").bytes(1, 2) == 524'288);
  // A latent of 512 and a rotary key of 64 in each of 60 layers: 60 · 576 · 2 bytes.
  CHECK(row("DeepSeek-V2").bytes(1, 2) == 69'120);
  CHECK(row("DeepSeek-V2").bytes(1000, 1) == 34'560'000);
}

TEST_CASE("every row is of one kind, with a source, once") {
  std::set<std::string_view> names;
  for (const PublishedCache& each : published_caches()) {
    CAPTURE(std::string(each.model));
    CHECK(names.insert(each.model).second);
    CHECK_FALSE(each.source.empty());
    CHECK(each.layers > 0);
    CHECK(each.bytes(1, 1) > 0);
    if (each.sharing == "MLA") {
      CHECK(each.latent > 0);
      CHECK(each.kv_heads == 0);
      continue;
    }
    CHECK(each.latent == 0);
    REQUIRE(each.kv_heads > 0);
    CHECK(each.heads % each.kv_heads == 0);
    CHECK(each.sharing == (each.kv_heads == each.heads ? "MHA" : each.kv_heads == 1 ? "MQA" : "GQA"));
  }
  CHECK(names.size() == 14);
}

}  // namespace headscope::published_caches_test
