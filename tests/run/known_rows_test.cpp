// A text that goes on or changes further back, read from what the last pass left: the numbers of a whole pass, bit for
// bit, whatever the model, the edits, and what is recorded.

#include "core/run/known_rows.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/run/pass_memory.h"
#include "tests/support/every_edit.h"
#include "tests/support/largest_difference.h"
#include "tests/support/paths.h"

namespace headscope::known_rows_test {

using namespace testing;
using Ids = std::vector<std::int32_t>;

namespace {

struct Typing {
  Backend backend{2};
  LoadedModel loaded;
  RunRequest request;
  PassMemory memory;
  int context = 0;  // 0: the model's own
  explicit Typing(const std::filesystem::path& folder) : loaded{Model::load(folder, backend), nullptr} {
    request.model = folder;
    request.capture.maps = MapStorage::dense;
    request.capture.all_logits = false;
  }
  std::shared_ptr<const Trace> read(const Ids& ids) {
    request.ids = ids;
    return run(loaded, request, ctx(), memory);
  }
  std::shared_ptr<const Trace> whole() { return run(loaded, request, ctx()); }
  Ctx ctx() {
    Ctx own{backend};
    own.context = context;
    return own;
  }
};

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::memcmp(a.packed().data(), b.packed().data(), a.bytes()) == 0;
}

template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {  // NaN equals itself
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

/// `rounding`: what an edit computes its matrices with depends on how many rows there are.
void check_same(const Trace& a, const Trace& b, double rounding = 0) {
  const auto same = [rounding]<class T>(const std::vector<T>& x, const std::vector<T>& y) {
    if (rounding == 0 || x.size() != y.size()) return known_rows_test::same(x, y);
    for (std::size_t i = 0; i < x.size(); ++i)
      if (!(std::abs(x[i] - y[i]) <= 10 * rounding) && std::memcmp(&x[i], &y[i], sizeof(T)) != 0) return false;
    return true;
  };
  const auto same_bits = [rounding](const Tensor& x, const Tensor& y) {
    return rounding > 0 ? x.shape() == y.shape() && largest_difference(x, y) <= rounding
                        : known_rows_test::same_bits(x, y);
  };
  REQUIRE(a.maps.size() == b.maps.size());
  for (std::size_t i = 0; i < a.maps.size(); ++i) {
    const AttentionMap &x = a.maps[i], &y = b.maps[i];
    CHECK(x.id() == y.id());
    CHECK(x.place().offset == y.place().offset);
    CHECK(x.is_factored() == y.is_factored());
    CHECK(x.is_dense() == y.is_dense());
    CHECK(same_bits(x.to_dense(), y.to_dense()));
    const HeadStats &s = x.stats(), &t = y.stats();
    CHECK(same(s.log_sum_exp, t.log_sum_exp));
    CHECK(same(s.entropy, t.entropy));
    CHECK(same(s.entropy_without_first, t.entropy_without_first));
    CHECK(same(s.max_weight, t.max_weight));
    CHECK(same(s.min_weight, t.min_weight));
    CHECK(same(s.max_key, t.max_key));
    CHECK(same(s.first, t.first));
    CHECK(same(s.duplicate, t.duplicate));
    CHECK(same(s.induction, t.induction));
    CHECK(same(s.column_mass, t.column_mass));
    CHECK(same(s.distance_mass, t.distance_mass));
    CHECK(same_bits(s.overview.values, t.overview.values));
  }
  REQUIRE(a.sites.size() == b.sites.size());
  for (const auto& [site, value] : a.sites) {
    CAPTURE(name(site));
    CHECK(same_bits(value, b.sites.at(site)));
  }
  CHECK(same_bits(a.logits, b.logits));
}

/// Edits that multiply by another matrix themselves.
bool own_matrices(const std::string& line) {
  return line.starts_with("quantize") || line.starts_with("singular");
}

const Ids text = {3, 17, 8, 21, 40, 3, 17, 9, 33, 12, 40, 5, 3};

Ids with(Ids ids, std::size_t at, std::int32_t id) {
  ids[at] = id;
  return ids;
}

/// What somebody may do to a text, and how many of its rows then stand.
struct Change {
  const char* what;
  Ids ids;
  Index known;
};
const std::vector<Change> changes = {
    {"one more", {3, 17, 8, 21, 40, 3, 17, 9, 33, 12, 40, 5, 3, 7}, 13},
    {"another last one", with({3, 17, 8, 21, 40, 3, 17, 9, 33, 12, 40, 5, 3, 7}, 13, 21), 13},
    {"taken back", text, 12},
    {"five less", Ids(text.begin(), text.begin() + 8), 7},
    {"all again", text, 8},
    {"one in the middle", with(text, 5, 30), 5},
    {"the first", with(with(text, 5, 30), 0, 1), 0},
    {"half of it", Ids(text.begin(), text.begin() + 6), 0},
};

}  // namespace

TEST_CASE("in every family a text that changes is read from the first changed token on, with a whole pass's numbers") {
  for (const auto& entry : std::filesystem::directory_iterator(reference("families"))) {
    Typing typing(entry.path());
    const Model& model = *typing.loaded.model;
    const ModelConfig& c = model.config();
    if (c.vision || c.cross()) continue;
    CAPTURE(entry.path().filename().string());
    for (const MapStorage maps : {MapStorage::dense, MapStorage::factored}) {
      if (c.state_space && maps == MapStorage::factored) continue;
      typing.request.capture.maps = maps;
      for (const bool all : {false, true}) {
        typing.request.capture.all_logits = all;
        typing.request.capture.sites.clear();
        if (all)
          for (const SiteKind kind : model.sites())
            if (kind != SiteKind::attn_scores && kind != SiteKind::pattern) typing.request.capture.sites.insert(kind);
        typing.memory.forget();
        CHECK(typing.read(text)->known_rows == 0);
        for (const Change& change : changes) {
          CAPTURE(change.what);
          const auto trace = typing.read(change.ids);
          CHECK(trace->known_rows == (c.causal ? change.known : 0));
          check_same(*trace, *typing.whole());
        }
      }
    }
  }
}

TEST_CASE("sums over the rows of a long text go on from whole tiles of it, with a whole pass's bits") {
  for (const char* name : {"tiny-gpt2", "tiny-llama"})
    for (const MapStorage maps : {MapStorage::dense, MapStorage::factored}) {
      CAPTURE(name);
      Typing typing(source_dir() / "models" / name);
      typing.request.capture.maps = maps;
      Ids ids;
      for (int i = 0; i < 249; ++i) ids.push_back((i * i + 3 * i) % 200);
      typing.read(ids);
      const auto check = [&](Index known) {
        const auto trace = typing.read(ids);
        CHECK(trace->known_rows == known);
        check_same(*trace, *typing.whole());
      };
      for (int i = 0; i < 7; ++i) {  // to the end of the context: bins of two, tiles of 64
        ids.push_back(i * 11);
        check(static_cast<Index>(ids.size()) - 1);
      }
      ids.back() = 5;
      check(255);
      ids[191] = 150;  // the last row of a tile whose sums were kept
      check(191);
      ids[192] = 151;
      check(192);
      ids.resize(250);
      check(249);
      ids.resize(190);  // before the last tile
      check(189);
      ids.push_back(3);
      check(190);
      ids.resize(130);
      check(129);
      for (int i = 0; i < 70; ++i) ids.push_back(i);
      check(130);
      ids[20] = 7;
      check(20);
      ids.resize(100);  // bins of one again
      check(99);
      ids.resize(201, 9);
      check(100);
    }
}

TEST_CASE("maps of states go on from those of the last pass, with a whole pass's bits, in texts of any length") {
  // Channels, heads, the delta rule and short convolutions, some beside attention.
  for (const char* name :
       {"mamba", "mamba2", "jamba", "qwen3_next", "lfm2", "olmo_hybrid", "falcon_mamba-wide", "minimax"})
    for (const MapStorage maps : {MapStorage::dense, MapStorage::factored}) {  // in memory, or computed
      CAPTURE(name);
      Typing typing(reference("families") / name);
      typing.context = 300;
      typing.request.capture.maps = maps;
      const auto vocabulary = typing.loaded.model->config().dims.vocab;
      Ids ids;
      const auto type = [&](int count, int by) {
        for (int i = 0; i < count; ++i)
          ids.push_back((static_cast<int>(ids.size()) * by + i * i) % (vocabulary - 4) + 2);
      };
      const auto check = [&](Index known) {
        CAPTURE(ids.size());
        const auto trace = typing.read(ids);
        CHECK(trace->known_rows == known);
        check_same(*trace, *typing.whole());
        if (ids.size() > 192) CHECK_FALSE(trace->maps.front().stats().partial.empty());  // to go on from
      };
      type(190, 3);
      check(0);
      for (Index known = 190; known < 194; ++known) type(1, 5), check(known);  // over the end of a tile
      ids.back() = 2;
      check(193);
      ids[191] = ids[191] == 5 ? 6 : 5;  // the last row of a tile whose sums were kept
      check(191);
      for (const int length : {193, 192, 191, 177, 160}) {  // back over what states are kept for
        ids.resize(static_cast<std::size_t>(length));
        check(length - 1);
      }
      type(97, 7);  // bins of three
      check(160);
      type(1, 1);
      check(257);
      ids[128] = ids[128] == 5 ? 6 : 5;  // the first row of a tile
      check(128);
      ids.resize(40);
      check(39);
      type(120, 11);
      check(40);
      type(130, 13);  // more than there was room for
      check(160);
      ids[0] = ids[0] == 5 ? 6 : 5;
      check(0);
      // What the cache of such a text takes is what it is asked whether it may.
      const KvCache& keys = typing.memory.kept().cache->keys;
      const ModelConfig& c = typing.loaded.model->config();
      if (c.dims.any_attends()) continue;
      CHECK(can_hold(c, 290, keys.bytes()));
      CHECK_FALSE(can_hold(c, 290, keys.bytes() - 1));
    }
}

TEST_CASE("with every edit a text goes on as a whole pass reads it, from the rows that the edit lets stand") {
  int read_on = 0, anew = 0, computed = 0;
  // Beside an edit that each of them has: what is no attention has masks and no temperature.
  const std::pair<const char*, const char*> cases[] = {
      {"gpt2-random", "0.0: temperature 0.5"},       {"llama-gqa", "0.0: temperature 0.5"},
      {"families/mamba2", "0.0: mask window 6"},     {"families/jamba", "0.0: mask window 6"},
      {"families/qwen3_next", "0.0: mask window 6"}, {"families/falcon_h1-heads", "3.4: temperature 0.5"}};
  for (const auto& [name, other] : cases)
    for (const std::string& line : every_edit_line()) {
      if (line.find('"') != std::string::npos) continue;  // needs a tokenizer
      for (const char* where : {"*: ", "1.*: ", "0.1@2..: ", "1@3..9: "}) {
        CAPTURE(name);
        CAPTURE(where + line);
        Typing typing(reference(name));
        typing.request.capture.sites = {SiteKind::z, SiteKind::resid_post};
        // Of layers with states computed maps too, of which an edit makes dense ones.
        if (typing.loaded.model->config().dims.any_state_space() && computed++ % 3 == 0)
          typing.request.capture.maps = MapStorage::factored;
        try {
          typing.request.edits = {parse_intervention(where + line, "test"), parse_intervention(other, "test")};
          typing.request.ids = text;
          typing.whole();
        } catch (const Error&) {
          continue;  // not of this model, or not of one head
        }
        typing.read(text);
        for (const Change& change : {changes[0], changes[1], changes[2]}) {
          const auto trace = typing.read(change.ids);
          CHECK((trace->known_rows == 0 || trace->known_rows == change.known));
          (trace->known_rows > 0 ? read_on : anew)++;
          check_same(*trace, *typing.whole(), own_matrices(line) ? 1e-5 : 0);
        }
      }
    }
  MESSAGE(read_on << " read on, " << anew << " anew");
  CHECK(read_on > 300);
  CHECK(anew > 300);
}

TEST_CASE("an edit that comes, changes or is switched off between two words is seen in every row") {
  Typing typing(reference("llama-gqa"));
  typing.read(text);
  const Intervention first = parse_intervention("0.1: temperature 0.3", "test"),
                     second = parse_intervention("1.*@2..5: ablate zero", "test"),
                     mean = parse_intervention("0.*: ablate mean", "test");
  Intervention off = first;
  off.enabled = false;
  Ids ids = text;
  const auto type = [&](std::vector<Intervention> edits, Index known) {
    typing.request.edits = std::move(edits);
    ids.push_back(static_cast<std::int32_t>(ids.size()));
    const auto trace = typing.read(ids);
    CHECK(trace->known_rows == known);
    check_same(*trace, *typing.whole());
  };
  type({}, 13);
  type({first}, 0);
  type({first}, 15);
  type({first, second}, 0);
  type({first, second}, 17);
  type({second, first}, 0);
  type({off}, 0);
  type({}, 20);  // one that is off is none
  type({mean}, 0);
  type({mean}, 0);  // the mean is of all rows
  type({}, 0);
  // An edit on the text as it is starts at its layer; then nothing is known of rows, nor is a cache filled while an
  // edit of the first layer changes.
  for (const Intervention& edit : {second, first}) {
    typing.request.edits = {edit};
    check_same(*typing.read(ids), *typing.whole());
    CHECK_FALSE(typing.memory.kept().cache);
  }
  type({second}, 0);
  const auto so_far = static_cast<Index>(ids.size());
  type({second}, so_far);
}

TEST_CASE("a text that begins with one token has the logits that were asked for when it grows") {
  for (const bool all : {false, true}) {
    Typing typing(reference("gpt2-random"));
    typing.request.capture.all_logits = all;
    Ids ids;
    for (const std::int32_t id : {3, 17, 8, 21}) {
      CAPTURE(all);
      ids.push_back(id);
      const auto trace = typing.read(ids);
      CHECK(trace->known_rows == static_cast<Index>(ids.size()) - 1);
      CHECK(trace->logits.dim(0) == (all ? static_cast<Index>(ids.size()) : 1));
      check_same(*trace, *typing.whole());
    }
  }
}

TEST_CASE("scores and weights that are recorded are those of all rows") {
  for (const char* name : {"gpt2-random", "llama-gqa"})
    for (const SiteKind kind : {SiteKind::attn_scores, SiteKind::pattern}) {
      CAPTURE(name);
      Typing typing(reference(name));
      typing.request.capture.sites = {kind, SiteKind::z};
      typing.read(text);
      for (const Change& change : changes) {
        CAPTURE(change.what);
        const auto trace = typing.read(change.ids);
        CHECK(trace->known_rows == 0);
        check_same(*trace, *typing.whole());
      }
    }
}

TEST_CASE("what is recorded may change between two words, or with one") {
  Typing typing(reference("llama-gqa"));
  Ids ids = text;
  typing.request.capture.maps = MapStorage::none;
  const CaptureSpec nothing = typing.request.capture;
  CaptureSpec last = nothing, more = nothing;
  last.sites = {SiteKind::final_normalized};
  more.sites = {SiteKind::z, SiteKind::final_normalized};
  const auto read = [&](const CaptureSpec& capture, Index known) {
    typing.request.capture = capture;
    const auto trace = typing.read(ids);
    CHECK(trace->known_rows == known);
    check_same(*trace, *typing.whole());
  };
  const auto type = [&](const CaptureSpec& capture, Index known) {
    ids.push_back(static_cast<std::int32_t>(ids.size()) + 3);
    read(capture, known);
  };
  read(last, 0);
  type(last, 13);
  read(nothing, 0);  // the same text: nothing of a block is computed, and what a word costs stays what it was
  type(nothing, 14);
  read(last, 0);
  type(last, 15);  // its rows up to here were never put one behind the other
  type(more, 0);
  type(more, 17);
  type(nothing, 0);
}

TEST_CASE("traces stay as they were while the text changes, though they share keys and queries with what comes later") {
  struct Case {
    const char* name;
    MapStorage maps;
  };
  for (const auto& [name, maps] : {Case{"gpt2-random", MapStorage::factored},
                                   {"families/jamba", MapStorage::dense},
                                   {"families/jamba", MapStorage::factored},
                                   {"families/qwen3_next", MapStorage::dense},
                                   {"families/qwen3_next", MapStorage::factored}}) {
    CAPTURE(name);
    Typing typing(reference(name));
    if (!typing.loaded.model->config().ends_at_context()) typing.context = 60;
    const ModelDims& dims = typing.loaded.model->config().dims;
    typing.request.capture.maps = maps;
    typing.request.capture.sites = {SiteKind::ln1_normalized, SiteKind::resid_post};
    if (dims.attends()) typing.request.capture.sites.insert(SiteKind::q);
    std::vector<std::pair<RunRequest, std::shared_ptr<const Trace>>> all;
    for (int step = 0; step < 60; ++step) {  // words come and go; the cache grows beyond its first room
      Ids ids(text);
      for (int i = 0; i < (step - step % 3) / 2; ++i) ids.push_back((i * 7 + step % 3 * 5) % 40);
      typing.read(ids);
      all.emplace_back(typing.request, typing.read(ids));
    }
    for (const auto& [request, trace] : all) check_same(*trace, *run(typing.loaded, request, typing.ctx()));
  }
}

TEST_CASE("a pass that was stopped leaves what was known before it") {
  Typing typing(reference("gpt2-random"));
  typing.read(text);
  Ids longer = text;
  longer.push_back(7);
  typing.request.ids = longer;
  std::stop_source stop;
  stop.request_stop();
  CHECK_THROWS_AS(run(typing.loaded, typing.request, Ctx{typing.backend, nullptr, stop.get_token()}, typing.memory),
                  Cancelled);
  longer.push_back(8);
  const auto trace = typing.read(longer);
  CHECK(trace->known_rows == 13);
  check_same(*trace, *typing.whole());
}

TEST_CASE("another model that reads the text of the last one has its own next word at once") {
  Typing typing(reference("gpt2-random"));
  typing.read(text);
  typing.loaded = {Model::load(reference("gpt2-random"), typing.backend), nullptr};
  CHECK(typing.read(text)->known_rows == 0);
  const auto next = typing.read(changes[0].ids);
  CHECK(next->known_rows == 13);
  check_same(*next, *typing.whole());
}

TEST_CASE("what a whole pass takes is said of those that read a part") {
  Typing typing(reference("gpt2-random"));
  const auto first = typing.read(text);
  CHECK(first->whole_milliseconds == first->milliseconds);
  const auto next = typing.read(changes[0].ids);
  CHECK(next->whole_milliseconds == doctest::Approx(first->milliseconds * 14 / 13));
  typing.request.edits = {parse_intervention("1.0: temperature 2", "test")};
  CHECK(typing.read(changes[0].ids)->whole_milliseconds == doctest::Approx(next->whole_milliseconds));  // one layer
}

TEST_CASE("a cache that would take too much memory is not kept, and every pass is whole") {
  Typing typing(reference("gpt2-random"));
  const ModelDims& d = typing.loaded.model->config().dims;
  const std::size_t residuals = sizeof(float) * 13 * static_cast<std::size_t>(d.d_model * d.layers);
  typing.memory = PassMemory(residuals);
  typing.read(text);
  CHECK(typing.memory.trace());
  CHECK(typing.read(changes[4].ids)->known_rows == 0);

  // One that fits at first, and would not any more once it had to grow.
  const auto tokens_that_fit = [&](std::size_t bytes) {
    int tokens = 0;
    while (can_hold(typing.loaded.model->config(), tokens + 1, bytes)) ++tokens;
    return tokens;
  };
  // Queries, keys, values, and the keys once more in panels.
  const std::size_t for_three = sizeof(float) * 4 * static_cast<std::size_t>((3 + 32) * d.layers * d.d_model);
  CHECK(tokens_that_fit(for_three) == 3);
  typing.memory = PassMemory(for_three);
  Ids ids = {1, 2, 3};
  typing.read(ids);
  for (Index known = 3; known < 35; ++known) {  // in the room it has from the beginning
    ids.push_back(5);
    CHECK(typing.read(ids)->known_rows == known);
  }
  ids.push_back(6);
  CHECK(typing.read(ids)->known_rows == 0);
  check_same(*typing.read(ids), *typing.whole());
}

}  // namespace headscope::known_rows_test
