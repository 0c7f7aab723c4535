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

TEST_CASE("of a state two stay: behind the text, and a few tokens further back; none of tokens that were taken back") {
  ModelDims d = dims();
  d.layers = 1;
  d.d_inner = 4, d.lanes = 2, d.state_groups = 1, d.d_state = 3, d.convolved = 10;
  KvCache cache(d, 40, true);
  const auto take = [&](Index count) {
    cache.append(0, {Tensor::full({count, 10}, 1),
                     Tensor::full({count, 2, 2}, 1),
                     Tensor::full({count, 2}, 1),
                     Tensor::full({count, 1, 3}, static_cast<float>(count)),
                     {},
                     Tensor::full({count, 1, 3}, static_cast<float>(-count))});
  };
  const auto keep = [&](int tokens, float value) { cache.keep_state(0, Tensor::full({2, 3, 2}, value), tokens); };
  const auto is = [&](int tokens, float value) {
    const KvCache::State state = cache.state(0);
    return state.tokens == tokens && (tokens == 0 ? !state.value.defined() : state.value.at(1, 2, 1) == value);
  };
  CHECK(is(0, 0));
  CHECK(KvCache::further_back(20) == 16);
  CHECK(KvCache::further_back(32) == 16);
  CHECK(KvCache::further_back(33) == 32);
  take(20), keep(16, 1), keep(20, 2), cache.advance(20);
  CHECK(is(20, 2));
  cache.truncate(18);
  CHECK(is(16, 1));
  take(2), keep(20, 3);  // a pass that was stopped before it came to the end
  CHECK(is(16, 1));
  take(22), keep(40, 4), cache.advance(22);
  CHECK(is(40, 4));
  cache.truncate(22);  // not behind the 20 tokens that were others
  CHECK(is(16, 1));
  const auto type = [&](int end) {
    for (int tokens = cache.length() + 1; tokens <= end; ++tokens)
      take(1), keep(tokens, static_cast<float>(tokens)), cache.advance(1);
  };
  type(30);
  cache.truncate(20);  // words that are taken back
  CHECK(is(16, 1));
  type(33);
  CHECK(is(33, 33));
  cache.truncate(32);
  CHECK(is(32, 32));  // it was behind the text for one token
  cache.truncate(31);
  CHECK(is(0, 0));  // two stay, no more
  cache.reserve(60);
  const KvCache::Taken all = [&] {
    return cache.append(0, {Tensor::full({20, 10}, 2),
                            Tensor::full({20, 2, 2}, 2),
                            Tensor::full({20, 2}, 2),
                            Tensor::full({20, 1, 3}, 9),
                            {},
                            Tensor::full({20, 1, 3}, 7)});
  }();
  CHECK(all.read.at(30, 9) == 1);  // what was there moved along
  CHECK(all.read.at(31, 0) == 2);
  CHECK(all.b.at(17, 0, 0) == 20);
  CHECK(all.b.at(50, 0, 2) == 9);
  CHECK(all.c.at(17, 0, 0) == -20);
  CHECK(all.c.at(50, 0, 2) == 7);
  CHECK_FALSE(all.beta.defined());
  // Where no map of all rows will be asked for, C is not kept.
  KvCache plain(d, 40);
  CHECK(plain.bytes() + std::size_t{40 * 3 * sizeof(float)} == KvCache(d, 40, true).bytes());
  CHECK_FALSE(plain
                  .append(0, {Tensor::full({2, 10}, 1),
                              Tensor::full({2, 2, 2}, 1),
                              Tensor::full({2, 2}, 1),
                              Tensor::full({2, 1, 3}, 1),
                              {},
                              Tensor::full({2, 1, 3}, 1)})
                  .c.defined());
}

}  // namespace
}  // namespace headscope
