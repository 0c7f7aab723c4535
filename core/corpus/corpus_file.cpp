// Corpus results as JSON. Numbers of 64 bits are stored as numbers, longer sums as digits, histograms without their
// empty bins; so a file says exactly what was counted.

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/nth.h"
#include "core/corpus/corpus.h"
#include "core/io/json_view.h"
#include "core/io/strict_json.h"
#include "core/train/grammar.h"

namespace headscope {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

constexpr const char* corpus_type = "headscope corpus";
// 1: no single values, and even bins for metrics in tokens; 2: no rows.
// 4: says of what kind its passages are; written of other kinds than texts alone, so that files of texts stay what they
// were to older programs.
constexpr int corpus_version = 4;
constexpr std::size_t size_limit = std::size_t{1} << 30;

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

Distribution distribution_from(const JsonView& object, Distribution::Range range) {
  Distribution::Stored stored;
  stored.count = static_cast<std::uint64_t>(object.at("count").integer(0));
  stored.sum = object.at("sum").text();
  stored.squares = object.at("squares").text();
  stored.smallest = object.at("smallest").integer();
  stored.largest = object.at("largest").integer();
  stored.histogram.resize(static_cast<std::size_t>(range.bins()));
  const std::vector<JsonView> bins = object.at("bins").elements("bins", 0, 2 * stored.histogram.size());
  for (std::size_t i = 0; i + 1 < bins.size(); i += 2)
    nth(stored.histogram, bins[i].integer(0, range.bins() - 1)) =
        static_cast<std::uint32_t>(bins[i + 1].integer(1, std::numeric_limits<std::uint32_t>::max()));
  if (const auto values = object.find("values"))
    for (const JsonView& each : values->elements("values", 0, Distribution::most_exact))
      stored.values.push_back(each.integer());
  return Distribution::from(range, stored, object.where());
}

/// `from` … `from` + 4 of the numbers.
PassagePlace place_from(const std::vector<JsonView>& numbers, std::size_t from) {
  return {numbers[from].integer(0), numbers[from + 1].small(0), numbers[from + 2].small(0),
          numbers[from + 3].integer(0), numbers[from + 4].integer(0)};
}

std::vector<CorpusExample> examples_from(const JsonView& list) {
  std::vector<CorpusExample> out;
  for (const JsonView& one : list.elements("examples", 0, CorpusStatistics::examples)) {
    const std::vector<JsonView> numbers = one.elements("numbers", 7, 7);
    out.push_back({numbers[0].integer(), place_from(numbers, 1), numbers[6].small(-1)});
  }
  return out;
}

CorpusStatistics::RowSums rows_from(const JsonView& list) {
  const std::vector<JsonView> four = list.elements("numbers", 4, 4);
  return {four[0].integer(0), four[1].integer(), four[2].integer(0),
          four[3].integer(0)};  // signed maps have signed sums
}

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

CorpusStatistics statistics_from(const JsonView& object, int window, std::int64_t version) {
  const auto all = metrics();
  const int layers = object.at("layers").small(1, 4096), heads = object.at("heads").small(1, 4096);
  const std::size_t cells = static_cast<std::size_t>(layers) * static_cast<std::size_t>(heads) * all.size();
  // Of an older version the file has fewer metrics: the others have no values. `in_file`: where each of ours stands.
  const std::vector<JsonView> ids = object.at("metrics").elements("names", 1, all.size());
  std::vector<std::optional<std::size_t>> in_file(all.size());
  std::size_t known = 0;
  for (std::size_t m = 0; m < all.size(); ++m)
    if (known < ids.size() && ids[known].text() == all[m].id) in_file[m] = known++;
  if (known < ids.size()) object.at("metrics").refuse("metrics of this program, in its order");
  const std::size_t cells_in_file = static_cast<std::size_t>(layers) * static_cast<std::size_t>(heads) * ids.size();
  CorpusStatistics::Parts parts;
  parts.passages = static_cast<std::uint64_t>(object.at("passages").integer(0));
  parts.tokens = static_cast<std::uint64_t>(object.at("tokens").integer(0));
  const bool fine = version >= 2 && object.at("fine_tokens").flag();
  const auto range = [&](std::size_t metric) { return CorpusStatistics::range_of(all[metric], window, fine); };
  const std::vector<JsonView> chance = object.at("chance").elements("distributions", ids.size(), ids.size());
  for (std::size_t m = 0; m < all.size(); ++m)
    parts.chance.push_back(in_file[m] ? distribution_from(chance[*in_file[m]], range(m)) : Distribution(range(m)));
  const std::vector<JsonView> stored = object.at("cells").elements("cells", cells_in_file, cells_in_file);
  const auto place = [&](std::size_t i) { return i / all.size() * ids.size() + *in_file[i % all.size()]; };
  for (std::size_t i = 0; i < cells; ++i) {
    if (!in_file[i % all.size()]) {
      parts.cells.push_back({Distribution(range(i % all.size())), {}, {}, {}});
      continue;
    }
    const JsonView& cell = stored[place(i)];
    parts.cells.push_back({distribution_from(cell.at("values"), range(i % all.size())),
                           examples_from(cell.at("highest")), examples_from(cell.at("lowest")),
                           version >= 3 ? rows_from(cell.at("rows")) : CorpusStatistics::RowSums{}});
  }
  for (const JsonView& passage : object.at("sample").elements("passages", 0, CorpusStatistics::sampled)) {
    CorpusStatistics::Sampled out;
    out.hash = passage.at("hash").natural();
    out.place = place_from(passage.at("place").elements("numbers", 5, 5), 0);
    const std::vector<JsonView> values = passage.at("values").elements("values", cells_in_file, cells_in_file);
    for (std::size_t i = 0; i < cells; ++i)
      out.values.push_back(in_file[i % all.size()] ? values[place(i)].integer() : CorpusStatistics::no_value);
    parts.sample.push_back(std::move(out));
  }
  return CorpusStatistics::from(layers, heads, window, std::move(parts));
}

}  // namespace

std::string to_json(const CorpusResults& results) {
  const bool texts = results.source.kind == CorpusKind::texts;
  ordered_json out{{"type", corpus_type}, {"version", texts ? corpus_version - 1 : corpus_version}};
  out["model"] = {{"name", results.model}, {"parameters", results.parameters}};
  ordered_json files = ordered_json::array();
  for (const CorpusFile& file : results.source.files) files.push_back({{"path", file.path}, {"bytes", file.bytes}});
  out["source"] = {{"files", std::move(files)}, {"lines", results.source.lines}};
  if (!texts) out["source"]["kind"] = name_in(corpus_kind_names, results.source.kind);
  out["source"][texts ? "stories" : "drawn"] = results.source.drawn;
  out["source"]["seed"] = results.source.seed;
  // Left out where it is the first one, as in files that are older than the choice.
  if (results.source.grammar != CorpusSource{}.grammar) out["source"]["grammar"] = results.source.grammar;
  out["window"] = results.window;
  out["bos"] = results.bos;
  out["shard"] = results.shard;
  out["shards"] = results.shards;
  out["next_piece"] = results.next_piece;
  out["next_window"] = results.next_window;
  out["finished"] = results.finished;
  out["skipped"] = results.skipped;
  if (!texts) out["left_out"] = results.left_out;
  out["statistics"] = statistics_json(results.statistics);
  if (results.encoder) out["encoder"] = statistics_json(*results.encoder);
  if (results.cross) out["cross"] = statistics_json(*results.cross);
  // A path of other bytes than UTF-8 would not find its file again either way.
  return out.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

CorpusResults corpus_results_from_json(const std::string& text, const std::string& where) {
  const json parsed = parse_strict_json(text, where);
  const JsonView root(parsed, where);
  if (!parsed.is_object() || !parsed.contains("type") || parsed["type"] != corpus_type)
    throw Error(where, fmt::format("corpus results, \"type\": \"{}\"", corpus_type), "another file");
  const std::int64_t version = root.at("version").integer(1);
  if (version > corpus_version)
    throw Error(where, fmt::format("corpus results of version {} or older", corpus_version),
                fmt::format("version {}", version), "a newer Headscope wrote it; use that one");
  CorpusResults out;
  out.model = root.at("model").at("name").text();
  out.parameters = root.at("model").at("parameters").integer(0);
  const JsonView source = root.at("source");
  for (const JsonView& file : source.at("files").elements("files"))
    out.source.files.push_back({file.at("path").text(), file.at("bytes").integer(0)});
  out.source.lines = source.at("lines").flag();
  if (version >= 4) out.source.kind = source.at("kind").choice(corpus_kind_names);
  const bool texts = out.source.kind == CorpusKind::texts;
  out.source.drawn = source.at(texts ? "stories" : "drawn").integer(0, 1'000'000'000);
  out.source.seed = source.at("seed").natural();
  if (const auto grammar = source.find("grammar")) {
    out.source.grammar = grammar->text();
    Grammar::named(out.source.grammar, where + ": source: grammar");
  }
  out.window = root.at("window").small(2, 1 << 24);
  out.bos = root.at("bos").flag();
  out.shards = root.at("shards").small(1, 1 << 20);
  out.shard = root.at("shard").small(0, out.shards - 1);
  out.next_piece = root.at("next_piece").integer(0);
  out.next_window = root.at("next_window").small(0);
  out.finished = root.at("finished").flag();
  out.skipped = root.at("skipped").small(0);
  if (!texts) out.left_out = root.at("left_out").integer(0);
  const auto statistics = [&](const char* part) { return statistics_from(root.at(part), out.window, version); };
  out.statistics = statistics("statistics");
  if (out.source.kind == CorpusKind::pairs) {
    out.encoder = statistics("encoder");
    out.cross = statistics("cross");
  }
  return out;
}

CorpusResults load_corpus_results(const std::filesystem::path& file) {
  return corpus_results_from_json(read_file(file, size_limit), file.string());
}

void save_corpus_results(const CorpusResults& results, const std::filesystem::path& file) {
  write_file_atomically(file, to_json(results));
}

}  // namespace headscope
