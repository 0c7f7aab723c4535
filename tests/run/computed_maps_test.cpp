// Maps of layers with states whose weights do not stand in memory: the same numbers as those that do, bit for bit.

#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/run/pass_memory.h"
#include "tests/support/every_edit.h"
#include "tests/support/paths.h"

namespace headscope::computed_maps_test {

using namespace testing;

namespace {

// Channels, heads of one pace, two groups of them, the delta rule and short convolutions, some beside attention.
const std::vector<const char*> names = {"mamba",      "mamba2", "falcon_h1",   "falcon_h1-heads", "jamba",
                                        "qwen3_next", "lfm2",   "olmo_hybrid", "minimax"};

bool same(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::memcmp(a.packed().data(), b.packed().data(), a.bytes()) == 0;
}
template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {  // NaN equals itself
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}
bool same(const HeadStats& s, const HeadStats& t) {
  return same(s.entropy, t.entropy) && same(s.entropy_without_first, t.entropy_without_first) &&
         same(s.max_weight, t.max_weight) && same(s.min_weight, t.min_weight) && same(s.max_key, t.max_key) &&
         same(s.first, t.first) && same(s.duplicate, t.duplicate) && same(s.induction, t.induction) &&
         same(s.column_mass, t.column_mass) && same(s.distance_mass, t.distance_mass) &&
         same(s.overview.values, t.overview.values);
}

struct Model {
  Backend backend{2};
  LoadedModel loaded;
  RunRequest request;
  explicit Model(const char* name) : loaded{headscope::Model::load(reference("families") / name, backend), nullptr} {
    request.model = reference("families") / name;
    request.capture.all_logits = false;
  }
  void text(int length) {
    const int words = loaded.model->config().dims.vocab - 4;
    request.ids.clear();
    for (int i = 0; i < length; ++i) request.ids.push_back((i * 7 + i * i / 3) % words + 2);
  }
  std::shared_ptr<const Trace> run(MapStorage maps) {
    request.capture.maps = maps;
    Ctx ctx{backend};
    ctx.context = 400;
    return headscope::run(loaded, request, ctx);
  }
  std::shared_ptr<const Trace> run(PassMemory& memory) {
    Ctx ctx{backend};
    ctx.context = 400;
    return headscope::run(loaded, request, ctx, memory);
  }
  bool attends(const AttentionMap& map) const { return loaded.model->config().dims.attends(map.layer()); }
};

}  // namespace

TEST_CASE("computed maps: every way to look at one gives the bits of a dense one") {
  for (const char* name : names)
    for (const int length : {1, 2, 63, 130, 290}) {
      CAPTURE(name);
      CAPTURE(length);
      Model model(name);
      model.text(length);
      const auto dense = model.run(MapStorage::dense), computed = model.run(MapStorage::factored);
      CHECK(same(dense->logits, computed->logits));
      REQUIRE(dense->maps.size() == computed->maps.size());
      int found = 0;
      for (std::size_t i = 0; i < dense->maps.size(); ++i) {
        const AttentionMap &x = dense->maps[i], &y = computed->maps[i];
        if (model.attends(x)) continue;
        ++found;
        CHECK(x.is_dense());
        CHECK_FALSE((y.is_dense() || y.is_factored()));
        CHECK(y.place().kind == MapKind::effective);
        const Index n = x.n_query();
        REQUIRE(y.n_query() == n);
        REQUIRE(y.n_key() == n);
        CHECK(same(x.stats(), y.stats()));
        CHECK(same(x.to_dense(), y.to_dense()));
        std::vector<float> row(static_cast<std::size_t>(n)), other = row;
        for (const Index query : {n - 1, Index{0}, n / 2, std::min(n / 2 + 1, n - 1), std::min<Index>(64, n - 1)}) {
          x.row(query, row), y.row(query, other);
          CHECK(same(row, other));
          CHECK(x.weight(query, query / 2) == y.weight(query, query / 2));
          CHECK(y.weight(query, n - 1) == x.weight(query, n - 1));
        }
        for (const KeyRange rows : {KeyRange{0, n / 3}, KeyRange{n / 3, n}, KeyRange{n / 2, std::min(n / 2 + 70, n)}})
          for (const KeyRange keys : {KeyRange{0, n}, KeyRange{n / 4, n / 2}, KeyRange{n - 1, n}}) {
            CHECK(same(x.tile(rows, keys), y.tile(rows, keys)));
            CHECK(same(x.pooled(rows, keys, 3), y.pooled(rows, keys, 3)));
          }
        CHECK(x.strongest({0, n}, {0, n})->weight == y.strongest({0, n}, {0, n})->weight);
        CHECK(same(x.overview(n).values, y.overview(n).values));
        CHECK(y.bytes() < x.bytes() + 1000);
        if (length == 290) CHECK(y.overview(145).bin == 3);  // the one that was stored, not a finer one of n² weights
      }
      CHECK(found > 0);
    }
}

TEST_CASE("computed maps: of every text of several, as of each alone") {
  for (const char* name : names) {
    CAPTURE(name);
    Model model(name);
    model.text(150);
    const std::vector<Index> lengths{40, 1, 109};
    MapRequest maps{MapStorage::factored};
    maps.text = -1;
    const auto forward = [&](MapStorage storage) {
      maps.storage = storage;
      Ctx ctx{model.backend};
      ctx.context = 400;
      return model.loaded.model->forward(ctx, model.request.ids, nullptr, maps, true, {}, lengths);
    };
    const auto dense = forward(MapStorage::dense), computed = forward(MapStorage::factored);
    REQUIRE(dense.maps.size() == computed.maps.size());
    for (std::size_t i = 0; i < dense.maps.size(); ++i)
      if (!model.attends(dense.maps[i])) {
        CHECK(same(dense.maps[i].to_dense(), computed.maps[i].to_dense()));
        CHECK(same(dense.maps[i].stats(), computed.maps[i].stats()));
      }
  }
}

TEST_CASE("computed maps: what an edit makes of a pattern stands in memory, the other layers' does not") {
  for (const char* name : names)
    for (const std::string& line : every_edit_line()) {
      if (line.find('"') != std::string::npos) continue;  // needs a tokenizer
      for (const char* where : {"*: ", "1.0: "}) {
        CAPTURE(name);
        CAPTURE(where + line);
        Model model(name);
        model.text(70);
        std::shared_ptr<const Trace> dense;
        try {
          model.request.edits = {parse_intervention(where + line, "test")};
          dense = model.run(MapStorage::dense);
        } catch (const Error&) {
          continue;  // not of this model
        }
        const auto computed = model.run(MapStorage::factored);
        CHECK(same(dense->logits, computed->logits));
        for (std::size_t i = 0; i < dense->maps.size(); ++i)
          if (!model.attends(dense->maps[i])) {
            CHECK(same(dense->maps[i].to_dense(), computed->maps[i].to_dense()));
            CHECK(same(dense->maps[i].stats(), computed->maps[i].stats()));
          }
      }
    }
}

TEST_CASE("computed maps: a text that grows beyond the budget of dense ones, and back, is read on") {
  for (const char* name : {"mamba2", "jamba", "lfm2"}) {
    CAPTURE(name);
    Model model(name);
    model.request.capture.maps = MapStorage::automatic;
    const ModelDims& dims = model.loaded.model->config().dims;
    CaptureSpec dense = model.request.capture;
    dense.maps = MapStorage::dense;
    model.request.capture.byte_budget = plan_capture(dense, dims, 300, 300).bytes;
    PassMemory memory;
    struct Step {
      int length;
      Index known;
    };
    for (const auto& [length, known] :
         {Step{299, 0}, {300, 299}, {301, 300}, {302, 301}, {300, 299}, {299, 298}, {301, 299}}) {
      CAPTURE(length);
      model.text(length);
      const auto trace = model.run(memory);
      CHECK(trace->plan.maps == (length > 300 ? MapStorage::factored : MapStorage::dense));
      CHECK(trace->plan.bytes <= model.request.capture.byte_budget);
      CHECK(trace->known_rows == known);
      RunRequest whole = model.request;
      Ctx ctx{model.backend};
      ctx.context = 400;
      const auto anew = run(model.loaded, whole, ctx);
      for (std::size_t i = 0; i < trace->maps.size(); ++i) {
        CHECK(trace->maps[i].is_dense() == anew->maps[i].is_dense());
        CHECK(same(trace->maps[i].to_dense(), anew->maps[i].to_dense()));
        CHECK(same(trace->maps[i].stats(), anew->maps[i].stats()));
      }
      CHECK(same(trace->logits, anew->logits));
    }
  }
}

TEST_CASE("computed maps: rows that a mask hides keys from stay so while the text goes on behind them") {
  for (const char* name : {"mamba2", "jamba", "qwen3_next", "lfm2"})
    // Of some rows, which the text leaves behind; of all from one on; and of a window that a short text fits.
    for (const char* edit : {"*@3..5: mask window 2", "*@60..: mask window 3", "*: mask window 68"}) {
      CAPTURE(name);
      CAPTURE(edit);
      Model model(name);
      model.request.capture.maps = MapStorage::factored;
      model.request.edits = {parse_intervention(edit, "test")};
      PassMemory memory;
      for (const int length : {64, 65, 66, 67, 68, 69, 70, 66, 140, 68, 70}) {
        CAPTURE(length);
        model.text(length);
        const auto trace = model.run(memory);
        CHECK((trace->known_rows > 0) == (length != 64));
        const auto anew = model.run(MapStorage::factored);
        CHECK(same(trace->logits, anew->logits));
        for (std::size_t i = 0; i < trace->maps.size(); ++i) {
          CHECK(trace->maps[i].is_dense() == anew->maps[i].is_dense());
          CHECK(same(trace->maps[i].to_dense(), anew->maps[i].to_dense()));
          CHECK(same(trace->maps[i].stats(), anew->maps[i].stats()));
        }
      }
    }
}

}  // namespace headscope::computed_maps_test
