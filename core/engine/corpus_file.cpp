// Corpus results as JSON. Numbers of 64 bits are stored as numbers, longer sums as digits, histograms without their
// empty bins; so a file says exactly what was counted.

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/nth.h"
#include "core/engine/corpus.h"
#include "core/io/strict_json.h"

namespace headscope {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

constexpr const char* corpus_type = "headscope corpus";
// 1: no single values, and even bins for metrics in tokens; 2: no rows.
constexpr int corpus_version = 3;
constexpr std::size_t size_limit = std::size_t{1} << 30;
constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

ordered_json distribution_json(const Distribution& values) {
  const Distribution::Stored stored = values.stored();
  ordered_json bins = ordered_json::array();
  for (std::size_t i = 0; i < stored.histogram.size(); ++i)
    if (stored.histogram[i] > 0) {
      bins.push_back(i);
      bins.push_back(stored.histogram[i]);
    }
  ordered_json out{{"count", stored.count},       {"sum", stored.sum},         {"squares", stored.squares},
                   {"smallest", stored.smallest}, {"largest", stored.largest}, {"bins", std::move(bins)}};
  if (!stored.values.empty()) out["values"] = stored.values;
  return out;
}

ordered_json place_json(const PassagePlace& place) {
  return {place.piece, place.window, place.file, place.begin, place.end};
}

ordered_json examples_json(const std::vector<CorpusExample>& examples) {
  ordered_json out = ordered_json::array();
  for (const CorpusExample& example : examples) {
    ordered_json one = place_json(example.place);
    one.insert(one.begin(), example.value);
    one.push_back(example.query);
    out.push_back(std::move(one));
  }
  return out;
}

/// Reads one file's JSON; every complaint names the file.
class Reader {
 public:
  explicit Reader(const std::string& where) : where_(where) {}

  [[noreturn]] void refuse(const std::string& key, const std::string& expected, const json& found) const {
    throw Error(where_ + ": " + key, expected, json_excerpt(found));
  }
  const json& member(const json& object, const char* key) const {
    if (!object.is_object() || !object.contains(key)) refuse(key, "present", "nothing");
    return object[key];
  }
  std::int64_t number(const json& value, const char* key, std::int64_t low, std::int64_t high = most) const {
    if (!value.is_number_integer() ||
        (value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(most)))
      refuse(key, "a whole number", value);
    const auto out = value.get<std::int64_t>();
    if (out < low || out > high) refuse(key, fmt::format("a whole number from {} to {}", low, high), value);
    return out;
  }
  std::int64_t integer(const json& object, const char* key, std::int64_t low, std::int64_t high = most) const {
    return number(member(object, key), key, low, high);
  }
  int small(const json& object, const char* key, int low, int high = std::numeric_limits<int>::max()) const {
    return static_cast<int>(integer(object, key, low, high));
  }
  bool boolean(const json& object, const char* key) const {
    const json& value = member(object, key);
    if (!value.is_boolean()) refuse(key, "true or false", value);
    return value.get<bool>();
  }
  std::string text(const json& object, const char* key) const {
    const json& value = member(object, key);
    if (!value.is_string()) refuse(key, "a text", value);
    return value.get<std::string>();
  }
  const json& list(const json& object, const char* key, std::size_t least = 0, std::size_t longest = SIZE_MAX) const {
    const json& value = member(object, key);
    if (!value.is_array() || value.size() < least || value.size() > longest)
      refuse(key, least == longest ? fmt::format("a list of {}", least) : "a list", value);
    return value;
  }

  Distribution distribution(const json& object, Distribution::Range range) const {
    Distribution::Stored stored;
    stored.count = static_cast<std::uint64_t>(integer(object, "count", 0));
    stored.sum = text(object, "sum");
    stored.squares = text(object, "squares");
    stored.smallest = integer(object, "smallest", std::numeric_limits<std::int64_t>::min());
    stored.largest = integer(object, "largest", std::numeric_limits<std::int64_t>::min());
    stored.histogram.resize(static_cast<std::size_t>(range.bins()));
    const json& bins = list(object, "bins", 0, std::size_t{2} * stored.histogram.size());
    for (std::size_t i = 0; i + 1 < bins.size(); i += 2)
      nth(stored.histogram, number(bins[i], "bins", 0, range.bins() - 1)) =
          static_cast<std::uint32_t>(number(bins[i + 1], "bins", 1, std::numeric_limits<std::uint32_t>::max()));
    if (object.contains("values"))
      for (const json& each : list(object, "values", 0, Distribution::most_exact))
        stored.values.push_back(number(each, "values", std::numeric_limits<std::int64_t>::min()));
    return Distribution::from(range, stored, where_);
  }
  PassagePlace place(const json& list, std::size_t at) const {
    const auto take = [&](std::size_t i) { return number(list[at + i], "a passage", 0); };
    constexpr std::int64_t most_small = std::numeric_limits<std::int32_t>::max();
    return {take(0), static_cast<std::int32_t>(number(list[at + 1], "a passage", 0, most_small)),
            static_cast<std::int32_t>(number(list[at + 2], "a passage", 0, most_small)), take(3), take(4)};
  }
  std::vector<CorpusExample> examples(const json& object, const char* key) const {
    std::vector<CorpusExample> out;
    for (const json& one : list(object, key, 0, CorpusStatistics::examples)) {
      if (!one.is_array() || one.size() != 7) refuse(key, "examples of seven numbers", one);
      out.push_back({number(one[0], key, std::numeric_limits<std::int64_t>::min()), place(one, 1),
                     static_cast<std::int32_t>(number(one[6], key, -1, std::numeric_limits<std::int32_t>::max()))});
    }
    return out;
  }
  CorpusStatistics::RowSums rows(const json& object) const {
    const json& four = list(object, "rows", 4, 4);
    const auto take = [&](std::size_t i) { return number(four[i], "rows", 0); };
    return {take(0), take(1), take(2), take(3)};
  }

 private:
  const std::string& where_;
};

ordered_json statistics_json(const CorpusStatistics& statistics) {
  const CorpusStatistics::Parts parts = statistics.parts();
  ordered_json out{{"layers", statistics.layers()},
                   {"heads", statistics.heads()},
                   {"passages", parts.passages},
                   {"tokens", parts.tokens},
                   {"fine_tokens", statistics.fine_tokens()},
                   {"metrics", ordered_json::array()},
                   {"chance", ordered_json::array()},
                   {"cells", ordered_json::array()},
                   {"sample", ordered_json::array()}};
  for (const Metric& metric : metrics()) out["metrics"].push_back(metric.id);
  for (const Distribution& chance : parts.chance) out["chance"].push_back(distribution_json(chance));
  for (const CorpusStatistics::Cell& cell : parts.cells)
    out["cells"].push_back({{"values", distribution_json(cell.values)},
                            {"highest", examples_json(cell.highest)},
                            {"lowest", examples_json(cell.lowest)},
                            {"rows", {cell.rows.rows, cell.rows.score, cell.rows.chance, cell.rows.log_candidates}}});
  for (const CorpusStatistics::Sampled& passage : parts.sample)
    out["sample"].push_back({{"hash", passage.hash}, {"place", place_json(passage.place)}, {"values", passage.values}});
  return out;
}

CorpusStatistics statistics_from(const Reader& read, const json& object, int window, std::int64_t version) {
  const auto all = metrics();
  const int layers = read.small(object, "layers", 1, 4096), heads = read.small(object, "heads", 1, 4096);
  const std::size_t cells = static_cast<std::size_t>(layers) * static_cast<std::size_t>(heads) * all.size();
  const json& ids = read.list(object, "metrics");
  for (std::size_t i = 0; i < std::max(ids.size(), all.size()); ++i)
    if (i >= ids.size() || i >= all.size() || ids[i] != all[i].id)
      read.refuse("metrics", "the metrics of this program", ids);
  CorpusStatistics::Parts parts;
  parts.passages = static_cast<std::uint64_t>(read.integer(object, "passages", 0));
  parts.tokens = static_cast<std::uint64_t>(read.integer(object, "tokens", 0));
  const bool fine = version >= 2 && read.boolean(object, "fine_tokens");
  const auto range = [&](std::size_t metric) { return CorpusStatistics::range_of(all[metric], window, fine); };
  const json& chance = read.list(object, "chance", all.size(), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) parts.chance.push_back(read.distribution(chance[i], range(i)));
  const json& stored = read.list(object, "cells", cells, cells);
  for (std::size_t i = 0; i < cells; ++i)
    parts.cells.push_back({read.distribution(read.member(stored[i], "values"), range(i % all.size())),
                           read.examples(stored[i], "highest"), read.examples(stored[i], "lowest"),
                           version >= 3 ? read.rows(stored[i]) : CorpusStatistics::RowSums{}});
  for (const json& passage : read.list(object, "sample", 0, CorpusStatistics::sampled)) {
    CorpusStatistics::Sampled out;
    const json& hash = read.member(passage, "hash");
    if (!hash.is_number_unsigned()) read.refuse("hash", "a whole number", hash);
    out.hash = hash.get<std::uint64_t>();
    out.place = read.place(read.list(passage, "place", 5, 5), 0);
    for (const json& value : read.list(passage, "values", cells, cells))
      out.values.push_back(read.number(value, "values", std::numeric_limits<std::int64_t>::min()));
    parts.sample.push_back(std::move(out));
  }
  return CorpusStatistics::from(layers, heads, window, std::move(parts));
}

}  // namespace

std::string to_json(const CorpusResults& results) {
  ordered_json out{{"type", corpus_type}, {"version", corpus_version}};
  out["model"] = {{"name", results.model}, {"parameters", results.parameters}};
  ordered_json files = ordered_json::array();
  for (const CorpusFile& file : results.source.files) files.push_back({{"path", file.path}, {"bytes", file.bytes}});
  out["source"] = {{"files", std::move(files)},
                   {"lines", results.source.lines},
                   {"stories", results.source.stories},
                   {"seed", results.source.seed}};
  out["window"] = results.window;
  out["bos"] = results.bos;
  out["shard"] = results.shard;
  out["shards"] = results.shards;
  out["next_piece"] = results.next_piece;
  out["next_window"] = results.next_window;
  out["finished"] = results.finished;
  out["skipped"] = results.skipped;
  out["statistics"] = statistics_json(results.statistics);
  // A path of other bytes than UTF-8 would not find its file again either way.
  return out.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

CorpusResults corpus_results_from_json(const std::string& text, const std::string& where) {
  const json parsed = parse_strict_json(text, where);
  const Reader read(where);
  if (!parsed.is_object() || !parsed.contains("type") || parsed["type"] != corpus_type)
    throw Error(where, fmt::format("corpus results, \"type\": \"{}\"", corpus_type), "another file");
  const std::int64_t version = read.integer(parsed, "version", 1);
  if (version > corpus_version)
    throw Error(where, fmt::format("corpus results of version {} or older", corpus_version),
                fmt::format("version {}", version), "a newer Headscope wrote it; use that one");
  CorpusResults out;
  out.model = read.text(read.member(parsed, "model"), "name");
  out.parameters = read.integer(read.member(parsed, "model"), "parameters", 0);
  const json& source = read.member(parsed, "source");
  for (const json& file : read.list(source, "files"))
    out.source.files.push_back({read.text(file, "path"), read.integer(file, "bytes", 0)});
  out.source.lines = read.boolean(source, "lines");
  out.source.stories = read.integer(source, "stories", 0, 1'000'000'000);
  const json& seed = read.member(source, "seed");
  if (!seed.is_number_unsigned()) read.refuse("seed", "a whole number", seed);
  out.source.seed = seed.get<std::uint64_t>();
  out.window = read.small(parsed, "window", 2, 1 << 24);
  out.bos = read.boolean(parsed, "bos");
  out.shards = read.small(parsed, "shards", 1, 1 << 20);
  out.shard = read.small(parsed, "shard", 0, out.shards - 1);
  out.next_piece = read.integer(parsed, "next_piece", 0);
  out.next_window = read.small(parsed, "next_window", 0);
  out.finished = read.boolean(parsed, "finished");
  out.skipped = read.small(parsed, "skipped", 0);
  out.statistics = statistics_from(read, read.member(parsed, "statistics"), out.window, version);
  return out;
}

CorpusResults load_corpus_results(const std::filesystem::path& file) {
  return corpus_results_from_json(read_file(file, size_limit), file.string());
}

void save_corpus_results(const CorpusResults& results, const std::filesystem::path& file) {
  write_file_atomically(file, to_json(results));
}

}  // namespace headscope
