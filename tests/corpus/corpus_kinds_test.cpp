// Corpora of pairs and of pictures, and those of encoders: what is measured is what separate runs give.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <vector>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/corpus/corpus.h"
#include "core/io/picture.h"
#include "core/io/shapes.h"
#include "tests/support/paths.h"

namespace headscope::corpus_kinds_test {

using testing::reference;
using testing::scratch_dir;
using testing::source_dir;
namespace fs = std::filesystem;

namespace {

const std::string three_pairs =
    "the dogs saw a cat\tkor velor ma mira sekur\n"
    "\n"
    "the kind mice saw this white king behind these old wolves\tkar lipar dular so orbo belo sor zuror yenor ud "
    "sekur\r\n"
    "the boy sees a cat\tko raso ma mira seki";

fs::path written(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
  return file;
}

struct Bench {
  explicit Bench(const fs::path& folder) : name(folder.filename().string()), model(load_model(folder, backend)) {}
  Backend backend{1};
  std::string name;
  LoadedModel model;

  CorpusResults run(const CorpusSource& source, int window = 0, int shard = 0, int shards = 1) {
    CorpusRun run(model, name, source, window, shard, shards);
    while (run.step(Ctx{backend})) {
    }
    return run.results();
  }
  std::shared_ptr<const Trace> trace(const RunRequest& request) { return headscope::run(model, request, Ctx{backend}); }
};

RunRequest pair_of(const std::string& source, const std::string& target) {
  RunRequest request;
  request.source = source;
  request.text = target;
  return request;
}

/// Mean and spread of what is a number among `values`.
struct Summary {
  std::uint64_t count = 0;
  double mean = NAN, spread = NAN;
  explicit Summary(const std::vector<double>& values) {
    double sum = 0, squares = 0;
    for (const double value : values)
      if (!std::isnan(value)) ++count, sum += value;
    if (count == 0) return;
    mean = sum / static_cast<double>(count);
    for (const double value : values)
      if (!std::isnan(value)) squares += (value - mean) * (value - mean);
    spread = std::sqrt(squares / static_cast<double>(count));
  }
};

void check_same(const Distribution& found, const std::vector<double>& values) {
  const Summary direct(values);
  REQUIRE(found.count() == direct.count);
  if (direct.count == 0) return;
  CHECK(found.mean() == doctest::Approx(direct.mean).epsilon(1e-7));
  CHECK(found.spread() == doctest::Approx(direct.spread).scale(1).epsilon(1e-7));
}

/// The statistics of every stack against the metrics of those runs; returns how many cells had a number.
std::size_t check_against(const CorpusResults& results, const std::vector<std::shared_ptr<const Trace>>& traces) {
  std::size_t numbers = 0;
  for (const Stack stack : results.stacks()) {
    CAPTURE(name_in(stack_names, stack));
    const CorpusStatistics& all = results.part(stack);
    std::vector<HeadTable> tables;
    for (const auto& trace : traces) {
      REQUIRE(trace->part(stack));
      tables.push_back(head_table(*trace->part(stack)));
    }
    REQUIRE(all.passages() == traces.size());
    REQUIRE(static_cast<std::size_t>(all.layers() * all.heads()) == tables.front().value.size());
    for (std::size_t m = 0; m < metrics().size(); ++m) {
      CAPTURE(metrics()[m].id);
      std::vector<double> values;
      for (std::size_t head = 0; head < tables.front().value.size(); ++head) {
        CAPTURE(head);
        values.clear();
        for (const HeadTable& table : tables) values.push_back(table.value[head][m]);
        check_same(all.of(static_cast<int>(head), m), values);
        numbers += Summary(values).count > 0 ? 1 : 0;
      }
      values.clear();
      for (const HeadTable& table : tables) values.push_back(table.chance.front()[m]);
      check_same(all.chance(m), values);
    }
  }
  return numbers;
}

std::size_t column(std::string_view id) {
  return static_cast<std::size_t>(&metric(id) - metrics().data());
}

}  // namespace

TEST_CASE("a corpus of three pairs is the mean and spread of three runs, in all three stacks") {
  Bench bench(source_dir() / "models/tiny-translate");
  const CorpusSource source =
      corpus_of_files({written(scratch_dir("corpus-pairs") / "three.tsv", three_pairs)}, false, CorpusKind::pairs);
  const CorpusResults results = bench.run(source);
  CHECK(results.finished);
  CHECK(results.left_out == 0);
  CHECK(results.window == 32);
  CHECK(results.stacks() == std::vector{Stack::encoder, Stack::decoder, Stack::cross});
  std::vector<std::shared_ptr<const Trace>> traces{
      bench.trace(pair_of("the dogs saw a cat", "kor velor ma mira sekur")),
      bench.trace(pair_of("the kind mice saw this white king behind these old wolves",
                          "kar lipar dular so orbo belo sor zuror yenor ud sekur")),
      bench.trace(pair_of("the boy sees a cat", "ko raso ma mira seki"))};
  CHECK(check_against(results, traces) > 100);
  std::size_t sources = 0, targets = 0;
  for (const auto& trace : traces) sources += trace->encoder->tokens.size(), targets += trace->tokens.size();
  CHECK(results.encoder->tokens() == sources);
  CHECK(results.statistics.tokens() == targets);
  CHECK(results.tokens() == sources + targets);
  // Places of two texts cannot be compared; the sharpest row is one of the target's.
  CHECK(results.cross->of(0, column("previous_token")).count() == 0);
  CHECK(results.cross->of(0, column("prefix_matching")).count() == 0);
  const CorpusExample& sharpest = results.cross->highest(5, column("max_weight")).front();
  const auto& maps = traces[static_cast<std::size_t>(sharpest.place.piece)]->cross->maps;
  const auto& most = maps[5].stats().max_weight;
  REQUIRE(sharpest.query >= 0);
  CHECK(most[static_cast<std::size_t>(sharpest.query)] == *std::ranges::max_element(most));
  // An example is the very pair, CRLF left away.
  const auto begin = static_cast<std::int64_t>(three_pairs.find("the kind")),
             end = static_cast<std::int64_t>(three_pairs.find('\r'));
  const RunRequest again = passage_request(CorpusKind::pairs, passage_text(source, {1, 0, 0, begin, end}));
  CHECK(results.statistics.highest(0, column("entropy")).size() == 3);
  CHECK(std::ranges::count(results.statistics.highest(0, column("entropy")), PassagePlace{1, 0, 0, begin, end},
                           &CorpusExample::place) == 1);
  CHECK(again.source == traces[1]->encoder->text);
  CHECK(again.text == traces[1]->text);
}

TEST_CASE("pairs and drawn pictures measure as separate runs do, in other families") {
  for (const char* family : {"marian", "t5"}) {
    CAPTURE(family);
    Bench bench(reference(std::string("encoder-decoders/") + family));
    const CorpusSource source =
        corpus_of_files({written(scratch_dir("corpus-families") / "two.tsv", "a dog\tma velo\nthe cat sat\tko mira\n")},
                        false, CorpusKind::pairs);
    const std::vector<std::shared_ptr<const Trace>> traces{bench.trace(pair_of("a dog", "ma velo")),
                                                           bench.trace(pair_of("the cat sat", "ko mira"))};
    CHECK(check_against(bench.run(source), traces) > 50);
  }
  for (const char* family : {"vit", "deit", "clip_vision_model"}) {
    CAPTURE(family);
    Bench bench(reference(std::string("vision/") + family));
    const CorpusSource source = drawn_corpus(CorpusKind::pictures, 2, 3);
    std::vector<std::shared_ptr<const Trace>> traces;
    for (const int number : {0, 1}) {
      RunRequest request;
      request.image = name_of_shapes(3, number);
      traces.push_back(bench.trace(request));
    }
    const CorpusResults results = bench.run(source);
    CHECK(check_against(results, traces) > 20);
    CHECK(results.window == bench.model.model->config().vision->tokens());
    CHECK(results.stacks() == std::vector{Stack::only});
  }
}

TEST_CASE("drawn pairs and pictures are the same for the same seed and number, and others for others") {
  const auto passages = [](const CorpusSource& source) {
    std::vector<std::string> out;
    CorpusReader reader(source);
    while (const auto piece = reader.next()) {
      const auto size = static_cast<std::int64_t>(piece->text.size());
      CHECK(passage_text(source, {piece->number, 0, 0, 0, size}) == piece->text);
      out.push_back(piece->text);
    }
    CHECK(reader.progress() == 1);
    return out;
  };
  const auto pairs = passages(drawn_corpus(CorpusKind::pairs, 4, 7));
  CHECK(pairs.size() == 4);
  CHECK(pairs[0] != pairs[1]);
  CHECK(passages(drawn_corpus(CorpusKind::pairs, 4, 7)) == pairs);
  CHECK(passages(drawn_corpus(CorpusKind::pairs, 1, 8))[0] != pairs[0]);
  CHECK(std::ranges::count(pairs[0], '\t') == 1);
  CHECK(passages(drawn_corpus(CorpusKind::pictures, 2, 7)) ==
        std::vector<std::string>{"builtin:shapes-7-0", "builtin:shapes-7-1"});
  CHECK(read_picture("builtin:shapes-7-1") == drawn_shapes(7, 1).picture);
  CHECK(read_picture("builtin:shapes-7-1") != read_picture("builtin:shapes-7-0"));
  CHECK(read_picture("builtin:shapes-7-1") != read_picture("builtin:shapes-8-1"));
  for (const char* no : {"builtin:shapes-", "builtin:shapes-7", "builtin:shapes-7-", "builtin:shapes-7-x",
                         "builtin:shapes--7-1", "builtin:shapes-7--1", "builtin:shapes-7-1.png"})
    CHECK_THROWS_AS(read_picture(no), Error);
}

TEST_CASE("shards of pairs and pictures merge to one run bit for bit, and what was stopped goes on") {
  for (const bool pictures : {false, true}) {
    Bench bench(source_dir() / (pictures ? "models/tiny-vit" : "models/tiny-translate"));
    const CorpusSource source = drawn_corpus(pictures ? CorpusKind::pictures : CorpusKind::pairs, 9, 5);
    const int window = pictures ? 0 : 10;  // longer pairs are left out
    const CorpusResults whole = bench.run(source, window);
    CHECK((whole.left_out > 0) == !pictures);
    CHECK(whole.statistics.passages() + static_cast<std::uint64_t>(whole.left_out) == 9);
    std::vector<CorpusResults> parts;
    for (const int shard : {2, 0, 1})
      parts.push_back(corpus_results_from_json(to_json(bench.run(source, window, shard, 3)), "part"));
    CHECK(merge(parts, {"a", "b", "c"}) == whole);
    CHECK(to_json(merge(parts, {"a", "b", "c"})) == to_json(whole));
    CHECK(corpus_results_from_json(to_json(whole), "whole") == whole);
    CHECK_THROWS_WITH_AS(merge({parts[0], parts[0], parts[1]}, {"a", "b", "c"}), doctest::Contains("as in a"), Error);
    Backend wide(4);
    CorpusRun beside(bench.model, bench.name, source, window);
    while (beside.step(Ctx{wide})) {
    }
    CHECK(beside.results() == whole);
    CorpusRun first(bench.model, bench.name, source, window);
    for (int i = 0; i < 4; ++i) REQUIRE(first.step(Ctx{bench.backend}));
    std::stop_source stop;
    stop.request_stop();
    if (pictures) CHECK_THROWS_AS(first.step(Ctx{bench.backend, nullptr, stop.get_token()}), Cancelled);
    CorpusRun second(bench.model, bench.name, corpus_results_from_json(to_json(first.results()), "stopped"));
    while (second.step(Ctx{bench.backend})) {
    }
    CHECK(second.results() == whole);
  }
}

TEST_CASE("a pair longer than asked is left out and counted, in either text") {
  Bench bench(source_dir() / "models/tiny-translate");
  const CorpusSource source =
      corpus_of_files({written(scratch_dir("corpus-long-pairs") / "three.tsv", three_pairs)}, false, CorpusKind::pairs);
  const auto lengths = [&](const std::string& from, const std::string& to) {
    const auto trace = bench.trace(pair_of(from, to));
    return static_cast<int>(std::max(trace->encoder->tokens.size(), trace->tokens.size()));
  };
  const int first = lengths("the dogs saw a cat", "kor velor ma mira sekur"),
            longest = lengths("the kind mice saw this white king behind these old wolves",
                              "kar lipar dular so orbo belo sor zuror yenor ud sekur"),
            last = lengths("the boy sees a cat", "ko raso ma mira seki");
  REQUIRE(longest > std::max(first, last));
  const CorpusResults all = bench.run(source, longest), some = bench.run(source, longest - 1),
                      none = bench.run(source, std::min(first, last) - 1);
  CHECK(all.left_out == 0);
  CHECK(some.left_out == 1);
  CHECK(some.statistics.passages() == 2);
  CHECK(left_out_words(some) == fmt::format("1 pair left out: longer than {} tokens", longest - 1));
  CHECK(none.left_out == 3);
  CHECK(none.finished);
  // Of the context, too, where a text has more tokens than the model could read.
  const CorpusSource endless =
      corpus_of_files({written(
                          scratch_dir("corpus-endless") / "one.tsv", "the dogs saw a cat\t" +
                                                                         [] {
                                                                           std::string out;
                                                                           for (int i = 0; i < 60; ++i) out += "sekur ";
                                                                           return out;
                                                                         }())},
                      false, CorpusKind::pairs);
  CHECK(bench.run(endless).left_out == 1);
}

TEST_CASE("a broken line of a file of pairs is named by file and number") {
  Bench bench(source_dir() / "models/tiny-translate");
  const fs::path folder = scratch_dir("corpus-broken-pairs");
  const auto refused = [&](const std::string& text, const std::string& said) {
    CAPTURE(said);
    const CorpusSource source = corpus_of_files({written(folder / "some.tsv", text)}, false, CorpusKind::pairs);
    CHECK_THROWS_WITH_AS(bench.run(source), doctest::Contains(said.c_str()), Error);
  };
  refused("a cat\tma mira\n\na dog\n",
          "some.tsv, line 3: expected source<TAB>target, a pair in each line, found no tab");
  refused("a cat\tma mira\ta\n", "some.tsv, line 1: expected source<TAB>target, a pair in each line, found 2 tabs");
  refused("a cat\tma\n\tma mira\n", "line 2: expected source<TAB>target, a pair in each line, found an empty source");
  refused("a cat\t \r\n", "line 1: expected source<TAB>target, a pair in each line, found an empty target");
  refused("a cat\t" + std::string(20000, 'x') + "\nb\tc\n", "found more than 16384 bytes");
  // Far down in the file, past what is read at once.
  std::string many;
  for (int i = 0; i < 200000; ++i) many += "\n";
  std::string far = "a\tb\n" + many;
  while (far.size() < (std::size_t{3} << 20)) far += many;
  const auto lines = std::ranges::count(far, '\n');
  refused(far + "no pair", fmt::format("line {}:", lines + 1));
}

TEST_CASE("pictures are those of a folder; what cannot be read is left out and counted, what is none refused") {
  Bench bench(source_dir() / "models/tiny-vit");
  const fs::path folder = scratch_dir("corpus-pictures");
  fs::create_directories(folder / "deep");
  fs::copy_file(reference("vision/picture.png"), folder / "a.png");
  fs::copy_file(reference("vision/picture.jpg"), folder / "deep" / "b.JPG");
  written(folder / "notes.txt", "no picture");
  written(folder / ".hidden" / "c.png", "never read");
  const CorpusSource source = corpus_of_files({folder}, false, CorpusKind::pictures);
  REQUIRE(source.files.size() == 2);
  std::vector<std::shared_ptr<const Trace>> traces;
  for (const fs::path& file : {folder / "a.png", folder / "deep" / "b.JPG"}) {
    RunRequest request;
    request.image = file;
    traces.push_back(bench.trace(request));
  }
  const CorpusResults results = bench.run(source);
  check_against(results, traces);
  CHECK(passage_text(source, {1, 0, 1, 0, 0}) == (folder / "deep" / "b.JPG").generic_string());
  written(folder / "z.png", read_file(reference("vision/picture.png")).substr(0, 60));
  const CorpusResults with_broken = bench.run(corpus_of_files({folder}, false, CorpusKind::pictures));
  CHECK(with_broken.left_out == 1);
  CHECK(with_broken.statistics == results.statistics);
  CHECK(left_out_words(with_broken) == "1 picture left out: cannot be read");

  written(folder / "a.png", "grown meanwhile");
  CHECK_THROWS_WITH_AS(bench.run(source), doctest::Contains("a.png"), Error);
  CHECK_THROWS_WITH_AS(passage_text(source, {0, 0, 0, 0, 0}), doctest::Contains("a.png"), Error);
  CHECK_THROWS_WITH_AS(corpus_of_files({folder / "notes.txt"}, false, CorpusKind::pictures),
                       doctest::Contains("notes.txt: expected a picture"), Error);
  CHECK_THROWS_WITH_AS(corpus_of_files({written(scratch_dir("corpus-no-pictures") / "x.txt", "x").parent_path()}, false,
                                       CorpusKind::pictures),
                       doctest::Contains("at least one picture"), Error);
}

TEST_CASE("a model refuses what it does not read, and says what it reads") {
  Bench texts(source_dir() / "assets/examples/induction"), pairs(reference("encoder-decoders/t5")),
      pictures(reference("vision/vit"));
  const auto refused = [](Bench& bench, CorpusKind kind, const char* said) {
    CHECK_THROWS_WITH_AS(bench.run(drawn_corpus(kind, 2, 1)), doctest::Contains(said), Error);
  };
  refused(texts, CorpusKind::pairs, "expected texts, since this model is of one stack");
  refused(texts, CorpusKind::pictures, "expected texts");
  refused(pairs, CorpusKind::texts, "expected pairs of a source and a target");
  refused(pairs, CorpusKind::pictures, "expected pairs");
  refused(pictures, CorpusKind::texts, "expected pictures");
  refused(pictures, CorpusKind::pairs, "expected pictures");
  CHECK_THROWS_WITH_AS(pictures.run(drawn_corpus(CorpusKind::pictures, 2, 1), 3), doctest::Contains("window"), Error);
  // What one has measured another cannot go on with.
  const CorpusResults results = pairs.run(drawn_corpus(CorpusKind::pairs, 2, 1));
  CHECK_THROWS_AS(CorpusRun(texts.model, "t5", results), Error);
}

TEST_CASE("an encoder reads passages of its whole context, with the tokens that stand around a text") {
  Bench bench(source_dir() / "models/tiny-bert");
  const int context = bench.model.model->config().context;
  const CorpusSource source = corpus_of_files({source_dir() / "docs/building.md"}, false);
  const CorpusResults results = bench.run(source);
  CHECK(results.window == context);
  CHECK(results.statistics.passages() > 3);
  CHECK_THROWS_WITH_AS(bench.run(source, 2), doctest::Contains("3 to"), Error);
  const CorpusSource stories = corpus_of_stories(2, 4);
  CorpusRun run(bench.model, "tiny-bert", stories, 40);
  std::vector<std::shared_ptr<const Trace>> traces;
  std::vector<PassagePlace> places;
  while (run.step(Ctx{bench.backend})) {
  }
  // Every passage is in the sample while they are few.
  for (const auto& passage : run.results().statistics.parts().sample) places.push_back(passage.place);
  std::ranges::sort(places);
  for (const PassagePlace& place : places) {
    traces.push_back(bench.trace(passage_request(CorpusKind::texts, passage_text(stories, place))));
    CHECK(traces.back()->tokens.size() <= 40);
  }
  CHECK(traces.size() > 3);
  check_against(run.results(), traces);
}

TEST_CASE("files of texts stay what they were, those of other kinds say their kind and are newer") {
  Bench texts(source_dir() / "assets/examples/induction"), pairs(reference("encoder-decoders/t5"));
  const std::string old = to_json(texts.run(corpus_of_stories(2, 1), 16));
  CHECK(old.find("\"version\":3,") != std::string::npos);
  CHECK(old.find("\"kind\"") == std::string::npos);
  CHECK(old.find("\"left_out\"") == std::string::npos);
  CHECK(corpus_results_from_json(old, "old.json").source == corpus_of_stories(2, 1));
  // So do those of the first grammar; another is named, and has to be one that there is.
  CHECK(old.find("\"grammar\"") == std::string::npos);
  CorpusSource everyday = corpus_of_stories(2, 1);
  everyday.grammar = "everyday";
  std::string named = to_json(texts.run(everyday, 16));
  CHECK(corpus_results_from_json(named, "named.json").source == everyday);
  named.replace(named.find("\"everyday\""), 10, "\"everydays\"");
  CHECK_THROWS_WITH_AS(corpus_results_from_json(named, "named.json"), doctest::Contains("nearest names: everyday"),
                       Error);
  const std::string json = to_json(pairs.run(drawn_corpus(CorpusKind::pairs, 2, 1)));
  CHECK(json.find("\"version\":4,") != std::string::npos);
  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string bad = json;
    const auto at = bad.find(from);
    REQUIRE(at != std::string::npos);
    bad.replace(at, from.size(), to);
    CAPTURE(from);
    CHECK_THROWS_WITH_AS(corpus_results_from_json(bad, "bad.json"), doctest::Contains("bad.json"), Error);
  };
  refused("\"version\":4", "\"version\":5");
  refused("\"version\":4", "\"version\":3");
  refused("\"kind\":\"pairs\"", "\"kind\":\"triples\"");
  refused("\"kind\":\"pairs\"", "\"kind\":\"texts\"");
  refused("\"encoder\":{", "\"coder\":{");
  refused("\"cross\":{", "\"across\":{");
  refused("\"left_out\":0", "\"left_out\":-1");
}

}  // namespace headscope::corpus_kinds_test
