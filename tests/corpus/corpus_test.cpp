#include "core/corpus/corpus.h"
#include "core/base/json.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "core/base/error.h"
#include "core/base/utf8.h"
#include "tests/support/paths.h"
#include "tests/support/word_metrics.h"

namespace headscope::corpus_test {

using testing::scratch_dir;

namespace {

std::filesystem::path bundled() {
  return headscope::testing::source_dir() / "assets/examples/induction";
}

struct Bench {
  Backend backend{1};
  LoadedModel model = load_model(bundled(), backend);

  /// Until `most` passages are done, or all.
  CorpusResults run(CorpusSource source, int window = 0, int shard = 0, int shards = 1) {
    CorpusRun run(model, "induction", std::move(source), window, shard, shards);
    while (run.step(Ctx{backend})) {
    }
    return run.results();
  }
};

void write(const std::filesystem::path& file, std::string_view text) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

}  // namespace

TEST_CASE("a corpus is read in pieces, by files, by lines and by stories") {
  const std::filesystem::path folder = scratch_dir("corpus-pieces");
  write(folder / "b.txt", "second\n");
  write(folder / "a" / "deep.txt", "one\r\n\n  \nthree\nlast");
  write(folder / ".hidden" / "no.txt", "never read");
  write(folder / "broken.bin", "\xFF\xFE\xFF");
  const auto pieces_of = [](const CorpusSource& source, int* skipped = nullptr) {
    CorpusReader reader(source);
    std::vector<std::string> texts;
    while (const auto piece = reader.next()) {
      CHECK(piece->number == static_cast<std::int64_t>(texts.size()));
      if (source.drawn == 0)
        CHECK(passage_text(source, {piece->number, 0, piece->file, piece->begin,
                                    piece->begin + static_cast<std::int64_t>(piece->text.size())}) == piece->text);
      texts.push_back(piece->text);
    }
    CHECK(reader.progress() == 1);
    if (skipped) *skipped = reader.skipped();
    return texts;
  };
  int skipped = 0;
  const CorpusSource whole = corpus_of_files({folder}, false);
  CHECK(pieces_of(whole, &skipped) == std::vector<std::string>{"one\r\n\n  \nthree\nlast", "second\n"});
  CHECK(skipped == 1);
  CHECK(pieces_of(corpus_of_files({folder}, true)) == std::vector<std::string>{"one", "three", "last", "second"});
  const auto stories = pieces_of(corpus_of_stories(3, 5));
  REQUIRE(stories.size() == 3);
  CHECK(stories[0] != stories[1]);
  CHECK(pieces_of(corpus_of_stories(3, 5)) == stories);
  CHECK(pieces_of(corpus_of_stories(2, 6))[0] != stories[0]);
  CHECK(passage_text(corpus_of_stories(3, 5), {2, 0, 0, 0, 10}) == stories[2].substr(0, 10));
  CorpusSource everyday = corpus_of_stories(3, 5);
  everyday.grammar = "everyday";
  for (const std::string& text : pieces_of(everyday))
    CHECK(std::isfinite(Language(Grammar::named("everyday", "test")).log_probability(text)));
  everyday.grammar = "evryday";
  CHECK_THROWS_AS(pieces_of(everyday), Error);
  CHECK_THROWS_AS(corpus_of_files({folder / "absent"}, false), Error);
  CHECK_THROWS_AS(corpus_of_files({}, false), Error);
  CHECK_THROWS_AS(corpus_of_stories(0, 1), Error);
  write(folder / "b.txt", "grown meanwhile");
  CHECK_THROWS_AS(passage_text(whole, {1, 0, 2, 0, 3}), Error);
}

TEST_CASE("long files are read in stretches that lose nothing") {
  const std::filesystem::path folder = scratch_dir("corpus-long");
  std::string text;
  for (int i = 0; text.size() < 60000; ++i) text += fmt::format("line {} of a long file{}", i, i % 3 ? "\n" : " ");
  const std::string one_line = std::string(40000, 'x'), wide = [] {
    std::string out;
    while (out.size() < 40000) out += "日本";
    return out;
  }();
  for (const std::string& each : {text, one_line, wide}) {
    write(folder / "long.txt", each);
    CorpusReader reader(corpus_of_files({folder / "long.txt"}, false));
    std::string joined;
    int pieces = 0;
    while (const auto piece = reader.next()) {
      CHECK(piece->text.size() <= 16384);
      CHECK(piece->begin == static_cast<std::int64_t>(joined.size()));
      CHECK_FALSE(first_invalid_utf8(piece->text));
      joined += piece->text;
      ++pieces;
    }
    CHECK(pieces >= 3);
    CHECK(joined == each);
  }
}

TEST_CASE("a file keeps results of signed maps, whose sums may be negative") {
  Backend backend{1};
  const LoadedModel model = load_model(testing::source_dir() / "models/tiny-mamba", backend);
  CorpusRun run(model, "tiny-mamba", corpus_of_stories(2, 5), 64, 0, 1);
  while (run.step(Ctx{backend})) {
  }
  bool negative = false;
  for (const CorpusStatistics::Cell& cell : run.results().statistics.parts().cells) negative |= cell.rows.score < 0;
  CHECK(negative);
  const std::filesystem::path file = scratch_dir("corpus-signed") / "results.json";
  save_corpus_results(run.results(), file);
  CHECK(load_corpus_results(file).statistics == run.results().statistics);
}

TEST_CASE("statistics of a corpus are those of its passages, and every example can be run again") {
  Bench bench;
  const CorpusSource source = corpus_of_stories(7, 3);
  const CorpusResults results = bench.run(source, 24);
  CHECK(results.finished);
  CHECK(results.next_piece == 7);
  const CorpusStatistics& all = results.statistics;
  CHECK(all.passages() > 14);
  const auto value_of = [&](const PassagePlace& place, int head, const Metric& metric) {
    RunRequest request;
    request.text = passage_text(source, place);
    request.add_bos = results.bos;
    const auto trace = run(bench.model, request, Ctx{bench.backend});
    CHECK(trace->tokens.size() <= 24);
    return std::pair(trace, evaluate(metric, *trace)[static_cast<std::size_t>(head)]);
  };
  for (const char* id : {"prefix_matching", "entropy", "sink"})
    for (const int head : {1, 4}) {
      const Metric& shown = metric(id);
      const auto column = static_cast<std::size_t>(&shown - metrics().data());
      const auto highest = all.highest(head, column), lowest = all.lowest(head, column);
      REQUIRE_FALSE(highest.empty());
      CHECK(Distribution::value(highest.front().value) == all.of(head, column).largest());
      CHECK(Distribution::value(lowest.front().value) == all.of(head, column).smallest());
      for (std::size_t i = 1; i < highest.size(); ++i) CHECK(highest[i - 1].value >= highest[i].value);
      const auto [trace, value] = value_of(highest.front().place, head, shown);
      CHECK(value == doctest::Approx(Distribution::value(highest.front().value)).epsilon(1e-8));
      // The row it names has the largest value of the metric taken of one row; for the sink that is its first weight.
      REQUIRE(highest.front().query >= 0);
      if (shown.id == "sink") {
        const auto& first = trace->maps[static_cast<std::size_t>(head)].stats().first;
        CHECK(first[static_cast<std::size_t>(highest.front().query)] ==
              *std::max_element(first.begin() + 1, first.end()));
      }
      const auto typical = all.typical(head, column);
      REQUIRE_FALSE(typical.empty());
      const double median = all.of(head, column).quantile(0.5);
      CHECK(value_of(typical.front().place, head, shown).second ==
            doctest::Approx(Distribution::value(typical.front().value)).epsilon(1e-8));
      for (std::size_t i = 1; i < typical.size(); ++i)
        CHECK(std::abs(Distribution::value(typical[i - 1].value) - median) <=
              std::abs(Distribution::value(typical[i].value) - median) + 1e-8);
    }
  // Head 1.0 was made to be an induction head, 0.0 to look at the previous token.
  CHECK(all.class_of(4, default_class_rules())->id == "induction");
  CHECK(all.class_of(0, default_class_rules())->id == "previous_token");
}

TEST_CASE("shards, merged in any order and after a stay in files, equal one run bit for bit") {
  Bench bench;
  const CorpusSource source = corpus_of_stories(11, 9);
  const CorpusResults whole = bench.run(source, 32);
  Backend wide(4);  // with more threads, too
  CorpusRun beside(bench.model, "induction", source, 32);
  while (beside.step(Ctx{wide})) {
  }
  CHECK(beside.results() == whole);
  std::vector<CorpusResults> parts;
  for (const int shard : {2, 0, 1})
    parts.push_back(corpus_results_from_json(to_json(bench.run(source, 32, shard, 3)), "part"));
  const CorpusResults merged = merge(parts, {"a", "b", "c"});
  CHECK(merged == whole);
  CHECK(to_json(merged) == to_json(whole));

  CHECK_THROWS_WITH_AS(merge({parts[0], parts[1]}, {"a", "b"}), doctest::Contains("none of 1/3"), Error);
  CHECK_THROWS_WITH_AS(merge({parts[0], parts[0], parts[1]}, {"a", "b", "c"}), doctest::Contains("shard 2/3 as in a"),
                       Error);
  std::vector<CorpusResults> other = parts;
  other[1] = bench.run(corpus_of_stories(11, 8), 32, 0, 3);
  CHECK_THROWS_AS(merge(other, {"a", "b", "c"}), Error);
  other[1] = parts[1];
  other[1].finished = false;
  CHECK_THROWS_WITH_AS(merge(other, {"a", "b", "c"}), doctest::Contains("finished"), Error);
}

TEST_CASE("a run that was stopped goes on as if it never had been") {
  Bench bench;
  const CorpusSource source = corpus_of_stories(6, 4);
  const CorpusResults whole = bench.run(source, 20);
  CorpusRun first(bench.model, "induction", source, 20);
  for (int i = 0; i < 5; ++i) REQUIRE(first.step(Ctx{bench.backend}));  // in the middle of a piece
  std::stop_source stop;
  stop.request_stop();
  CHECK_THROWS_AS(first.step(Ctx{bench.backend, nullptr, stop.get_token()}), Cancelled);
  CorpusRun second(bench.model, "induction", corpus_results_from_json(to_json(first.results()), "stopped"));
  while (second.step(Ctx{bench.backend})) {
  }
  CHECK(second.results() == whole);
  CHECK_THROWS_AS(CorpusRun(bench.model, "another", whole), Error);
  CHECK_THROWS_AS(CorpusRun(bench.model, "induction", source, 1), Error);
  CHECK_THROWS_AS(CorpusRun(bench.model, "induction", source, 20, 3, 3), Error);
}

TEST_CASE("results of the first version are read, go on, and do not mix with finer ones") {
  Bench bench;
  const CorpusResults now = bench.run(corpus_of_stories(4, 2), 16, 0, 2);
  auto old = nlohmann::json::parse(to_json(now));
  old["version"] = 1;
  old["statistics"].erase("fine_tokens");
  const auto coarse = [](nlohmann::json& values) {
    values.erase("values");
    std::int64_t count = 0;  // of metrics in tokens the bins were others: any do here
    for (std::size_t i = 1; i < values["bins"].size(); i += 2) count += values["bins"][i].get<std::int64_t>();
    values["bins"] = count > 0 ? nlohmann::json{0, count} : nlohmann::json::array();
  };
  for (auto& values : old["statistics"]["chance"]) coarse(values);
  for (auto& cell : old["statistics"]["cells"]) coarse(cell["values"]);
  const CorpusResults read = corpus_results_from_json(old.dump(), "old.json");
  CHECK_FALSE(read.statistics.fine_tokens());
  CHECK(now.statistics.fine_tokens());
  CHECK(read.statistics.of(0, 0).mean() == now.statistics.of(0, 0).mean());
  CHECK_FALSE(read.statistics.of(0, 0).exact());
  CHECK(corpus_results_from_json(to_json(read), "again.json") == read);
  CorpusResults other = bench.run(corpus_of_stories(4, 2), 16, 1, 2);
  CHECK_THROWS_AS(merge({read, other}, {"old.json", "new.json"}), Error);
}

TEST_CASE("a file of before metrics were added is read, and merged counts of each metric the passages that have it") {
  Bench bench;
  const CorpusSource source = corpus_of_stories(4, 6);
  const CorpusResults first = bench.run(source, 32, 0, 2), second = bench.run(source, 32, 1, 2);
  const std::size_t all = metrics().size();
  const auto is_new = [](std::size_t m) { return testing::reads_words(metrics()[m].id); };
  auto old = nlohmann::json::parse(to_json(first));
  const auto drop = [&](nlohmann::json& list) {
    nlohmann::json kept = nlohmann::json::array();
    for (std::size_t i = 0; i < list.size(); ++i)
      if (!is_new(i % all)) kept.push_back(list[i]);
    list = std::move(kept);
  };
  auto& statistics = old["statistics"];
  for (const char* part : {"metrics", "chance", "cells"}) drop(statistics[part]);
  for (auto& passage : statistics["sample"]) drop(passage["values"]);
  const CorpusResults read = corpus_results_from_json(old.dump(), "old.json");
  CHECK(corpus_results_from_json(to_json(read), "again.json") == read);
  const CorpusResults both = merge({read, second}, {"old.json", "new.json"});
  const CorpusResults whole = merge({first, second}, {"first.json", "second.json"});
  CHECK(both.statistics.passages() == first.statistics.passages() + second.statistics.passages());
  int told = 0;
  for (std::size_t m = 0; m < all; ++m) {
    CAPTURE(metrics()[m].id);
    CHECK(read.statistics.chance(m).count() == (is_new(m) ? 0 : first.statistics.chance(m).count()));
    CHECK(both.statistics.chance(m) == (is_new(m) ? second : whole).statistics.chance(m));
    for (int head = 0; head < first.statistics.layers() * first.statistics.heads(); ++head) {
      if (is_new(m)) CHECK(read.statistics.of(head, m).count() == 0);
      const CorpusStatistics& truth = (is_new(m) ? second : whole).statistics;
      CHECK(both.statistics.of(head, m) == truth.of(head, m));
      CHECK(std::ranges::equal(both.statistics.highest(head, m), truth.highest(head, m)));
      if (is_new(m) && truth.of(head, m).count() > 0) {
        ++told;
        CHECK(truth.of(head, m).count() < both.statistics.passages());
      }
    }
  }
  CHECK(told > 20);
}

TEST_CASE("broken corpus results are refused with the file's name") {
  Bench bench;
  const std::string good = to_json(bench.run(corpus_of_stories(1, 1), 16));
  CHECK(corpus_results_from_json(good, "good").finished);
  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string bad = good;
    const auto at = bad.find(from);
    REQUIRE(at != std::string::npos);
    bad.replace(at, from.size(), to);
    CAPTURE(from);
    CHECK_THROWS_WITH_AS(corpus_results_from_json(bad, "bad.json"), doctest::Contains("bad.json"), Error);
  };
  refused("headscope corpus", "headscope session");
  refused("\"version\":3", "\"version\":4");
  refused("\"window\":16", "\"window\":-1");
  refused("\"shard\":0", "\"shard\":1");
  refused("\"layers\":2", "\"layers\":3");
  refused("\"entropy\"", "\"astrology\"");
  refused("\"count\":", "\"count\":9");
  refused("\"sample\":[{\"hash\":", "\"sample\":[{\"hash\":-");
  CHECK_THROWS_AS(corpus_results_from_json(good.substr(0, good.size() / 2), "bad.json"), Error);
}

}  // namespace headscope::corpus_test
