// What a cache has lent stays as it is: maps of earlier tokens keep it without a copy.

#include "core/model/kv_cache.h"

#include <doctest/doctest.h>

namespace headscope {
namespace {

ModelDims dims() {
  ModelDims d;
  d.layers = 2;
  d.heads = d.kv_heads = 2;
  d.d_model = 8;
  d.d_head = 4;
  d.vocab = 5;
  return d;
}

Tensor rows(Index count, float value) {
  return Tensor::full({count, 2, 4}, value);
}

TEST_CASE("keys and values that a cache has lent stay as they are, whatever is put there later") {
  Backend backend;
  KvCache cache(dims(), 8);
  const KvCache::Both three = cache.append(0, rows(3, 1), rows(3, -1), backend);
  cache.append(1, rows(3, 1), rows(3, -1), backend);
  cache.advance(3);
  const KvCache::Both four = cache.append(0, rows(1, 2), rows(1, -2), backend);
  CHECK(four.k.data() == three.k.data());  // nothing was copied to go on
  REQUIRE(four.k.shape() == Shape({4, 2, 4}));
  CHECK(four.k.at(2, 1, 3) == 1.0f);
  CHECK(four.k.at(3, 0, 0) == 2.0f);

  cache.truncate(1);
  const KvCache::Both other = cache.append(0, rows(2, 5), rows(2, -5), backend);
  CHECK(other.k.at(0, 0, 0) == 1.0f);
  CHECK(other.k.at(1, 0, 0) == 5.0f);
  CHECK(other.v.at(2, 1, 3) == -5.0f);
  for (Index row = 0; row < 3; ++row) {
    CHECK(three.k.at(row, 1, 2) == 1.0f);
    CHECK(three.v.at(row, 1, 2) == -1.0f);
  }
  CHECK(four.k.at(3, 1, 1) == 2.0f);
  CHECK(four.v.at(3, 1, 1) == -2.0f);

  cache.truncate(0);  // from the beginning
  CHECK(cache.append(0, rows(1, 7), rows(1, -7), backend).k.at(0, 1, 3) == 7.0f);
  CHECK(other.k.at(0, 0, 0) == 1.0f);
}

TEST_CASE("a copy of a cache grows by itself") {
  Backend backend;
  KvCache cache(dims(), 4);
  cache.append(0, rows(2, 1), rows(2, 1), backend);
  cache.append(1, rows(2, 1), rows(2, 1), backend);
  cache.advance(2);
  KvCache copy = cache.copy();
  const KvCache::Both mine = cache.append(0, rows(1, 2), rows(1, 2), backend);
  const KvCache::Both its = copy.append(0, rows(1, 3), rows(1, 3), backend);
  CHECK(mine.k.at(2, 0, 0) == 2.0f);
  CHECK(its.k.at(2, 0, 0) == 3.0f);
  CHECK(its.k.at(1, 0, 0) == 1.0f);
}

}  // namespace
}  // namespace headscope
