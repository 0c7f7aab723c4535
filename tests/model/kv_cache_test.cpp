// What a cache has lent stays as it is: maps of earlier tokens keep it without a copy.

#include "core/model/kv_cache.h"

#include <doctest/doctest.h>

#include "core/tensor/panels.h"

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

TEST_CASE("panels of keys follow what a cache holds: cut back, written again after a pass that was stopped, copied") {
  Backend backend;
  KvCache cache(dims(), 8);
  // Key `key` of head 1: panels of few rows are one.
  const auto at = [](KvCache& of, Index key, Index i) { return of.panels(0).of(1)[i * panels::width() + key]; };
  const auto put = [&](KvCache& into, Index count, float value) {
    into.panels(0).put(into.append(0, rows(count, value), rows(count, -value), backend).k, 8, backend.pool());
  };
  CHECK(cache.bytes() == 2 * 8 * 2 * 2 * 4 * sizeof(float));  // no panels before somebody asks for them
  put(cache, 3, 1);
  cache.advance(3);
  CHECK(cache.bytes() > 2 * 8 * 2 * 2 * 4 * sizeof(float));
  const std::size_t panel = static_cast<std::size_t>(panels::width()) * 4 * 2 * sizeof(float);  // of both heads
  CHECK(cache.panel_bytes() == panel);  // of the one layer whose keys somebody asked for
  CHECK(cache.source_bytes() == 0);
  put(cache, 2, 2);  // of a pass that is stopped
  put(cache, 1, 3);
  cache.advance(1);
  CHECK(at(cache, 2, 3) == 1.0f);
  CHECK(at(cache, 3, 3) == 3.0f);
  KvCache copy = cache.copy();
  cache.truncate(1);
  put(cache, 2, 4);
  CHECK(at(cache, 0, 0) == 1.0f);
  CHECK(at(cache, 1, 0) == 4.0f);
  CHECK(at(cache, 2, 0) == 4.0f);
  put(copy, 1, 5);
  CHECK(at(copy, 2, 0) == 1.0f);
  CHECK(at(copy, 3, 0) == 3.0f);
  CHECK(at(copy, 4, 0) == 5.0f);

  cache.keep_source(0, {rows(2, 6), rows(2, 6)});
  cache.panels(0, true).put(cache.source(0)->k, 2, backend.pool());
  cache.keep_source(0, {rows(2, 7), rows(2, 7)});
  cache.panels(0, true).put(cache.source(0)->k, 2, backend.pool());
  CHECK(cache.panels(0, true).of(0)[1] == 7.0f);
  CHECK(cache.panel_bytes() == panel);
  CHECK(cache.source_bytes() == panel + 2 * 2 * 2 * 4 * sizeof(float));

  KvCache longer(dims(), 200);  // room is for all, what is used is counted
  longer.panels(1).put(longer.append(1, rows(70, 1), rows(70, 1), backend).k, 200, backend.pool());
  CHECK(longer.panel_bytes() == static_cast<std::size_t>(panels::padded(70)) * 4 * 2 * sizeof(float));
  CHECK(at(cache, 1, 0) == 4.0f);  // those of the text are others
}

}  // namespace
}  // namespace headscope
