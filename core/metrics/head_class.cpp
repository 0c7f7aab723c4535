#include "core/metrics/head_class.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/metrics/chance_bound.h"
#include "core/metrics/even_head.h"

namespace headscope {

extern const std::string_view embedded_head_classes;  // assets/head_classes.json

namespace {

using nlohmann::json;

constexpr std::size_t evidence_cells = 5;

/// A value of the wrong kind, short: nothing nested is written out.
std::string shown(const json& value) {
  return value.is_structured() ? value.type_name() : value.dump(-1, ' ', true, json::error_handler_t::replace);
}

std::string text(const json& object, const char* key, const std::string& where) {
  const auto found = object.find(key);
  if (found == object.end()) throw Error(where + "." + key, "a text", "nothing");
  if (!found->is_string() || found->get_ref<const std::string&>().empty())
    throw Error(where + "." + key, "a text", shown(*found));
  return found->get<std::string>();
}

double number(const json& object, const char* key, const std::string& where) {
  const auto found = object.find(key);
  if (found == object.end()) throw Error(where + "." + key, "a number", "nothing");
  if (!found->is_number()) throw Error(where + "." + key, "a number", shown(*found));
  return found->get<double>();
}

bool is_color(const std::string& value) {
  return value.size() == 7 && value[0] == '#' &&
         value.find_first_not_of("0123456789abcdefABCDEF", 1) == std::string::npos;
}

ClassRule parse_rule(const json& object, const std::string& where) {
  if (!object.is_object()) throw Error(where, "an object", object.type_name());
  const std::set<std::string> known{"id",           "title", "metric",        "at_least",
                                    "times_chance", "color", "rows_at_least", "p_at_most"};
  for (const auto& [key, value] : object.items())
    if (known.count(key) == 0)
      throw Error(where + "." + key,
                  "one of id, title, metric, at_least, times_chance, rows_at_least, p_at_most, color",
                  "\"" + key + "\"");
  ClassRule rule;
  rule.id = text(object, "id", where);
  rule.title = text(object, "title", where);
  rule.metric = text(object, "metric", where);
  rule.at_least = number(object, "at_least", where);
  if (object.contains("times_chance")) rule.times_chance = number(object, "times_chance", where);
  rule.color = text(object, "color", where);
  const double rows = object.contains("rows_at_least") ? number(object, "rows_at_least", where)
                                                       : static_cast<double>(rule.rows_at_least);
  if (!(rows >= 1 && rows <= 1e6 && rows == std::floor(rows)))
    throw Error(where + ".rows_at_least", "a whole number of rows, 1 or more", object["rows_at_least"].dump());
  rule.rows_at_least = static_cast<Index>(rows);
  if (object.contains("p_at_most")) rule.p_at_most = number(object, "p_at_most", where);
  if (!(rule.p_at_most > 0 && rule.p_at_most <= 1))
    throw Error(where + ".p_at_most", "a probability above 0, 1 = sureness does not matter",
                object["p_at_most"].dump());

  const auto all = metrics();
  const auto scored =
      std::find_if(all.begin(), all.end(), [&](const Metric& entry) { return entry.id == rule.metric; });
  if (scored == all.end()) {
    std::string ids;
    for (const Metric& entry : all) ids += (ids.empty() ? "" : ", ") + std::string(entry.id);
    throw Error(where + ".metric", "one of " + ids, "\"" + rule.metric + "\"");
  }
  if (!(rule.at_least > 0 && rule.at_least <= scored->high))
    throw Error(where + ".at_least",
                "above 0 and at most " + std::to_string(scored->high) + ", the range of " + rule.metric,
                object["at_least"].dump());
  if (!(rule.times_chance >= 0 && std::isfinite(rule.times_chance)))
    throw Error(where + ".times_chance", "0 (chance does not matter) or more", object["times_chance"].dump());
  if (!is_color(rule.color)) throw Error(where + ".color", "a colour like \"#FFB454\"", "\"" + rule.color + "\"");
  return rule;
}

/// What speaks for a class, row by row.
struct Gathered {
  std::vector<std::pair<double, Evidence>> cells;  // strongest first
  RowEvidence all;

  void offer(double strength, Evidence cell) {
    const auto place =
        std::find_if(cells.begin(), cells.end(), [&](const auto& kept) { return strength > kept.first; });
    if (place == cells.end() && cells.size() == evidence_cells) return;
    cells.insert(place, {strength, cell});
    if (cells.size() > evidence_cells) cells.pop_back();
  }
};

/// The cells that the metric sums. A metric of whole rows (entropy) has no cells of its own: then each row shows its
/// largest weight, and strength is how many times the even share that is. A query that sees one key has no choice.
Gathered gather(const MetricInput& head, const Metric& scored) {
  const AttentionMap& map = head.map;
  Gathered out;
  const KeysOfRow keys_of_row = scored.cells(head);
  // Rows in blocks, each read as one tile around the cells in question: of a factored map, cells one by one cost far
  // more.
  constexpr Index block_rows = 64;
  std::vector<std::pair<Index, Index>> wanted;  // (query, key)
  std::vector<Index> keys;
  for (Index first = 0; first < map.n_query(); first += block_rows) {
    wanted.clear();
    KeyRange span{map.n_key(), 0};
    for (Index query = first; query < std::min(first + block_rows, map.n_query()); ++query) {
      const Index visible = visible_count(map, query);
      if (visible < 2) continue;
      if (!keys_of_row) {
        const auto at = static_cast<std::size_t>(query);
        const float weight = map.stats().max_weight[at];
        ++out.all.rows;
        out.offer(static_cast<double>(weight) * static_cast<double>(visible), {query, map.stats().max_key[at], weight});
        continue;
      }
      keys.clear();
      keys_of_row(query, keys);
      std::erase_if(keys, [&](Index key) { return map.masked(query, key); });
      if (keys.empty()) continue;
      ++out.all.rows;
      out.all.chance += static_cast<double>(keys.size()) / static_cast<double>(visible);
      for (const Index key : keys) {
        wanted.emplace_back(query, key);
        span = {std::min(span.begin, key), std::max(span.end, key + 1)};
      }
    }
    if (wanted.empty()) continue;
    const Tensor weights = map.tile({first, std::min(first + block_rows, map.n_query())}, span);
    for (const auto& [query, key] : wanted) {
      const float weight = weights.at(query - first, key - span.begin);
      out.all.score += static_cast<double>(weight);
      if (weight > 0) out.offer(static_cast<double>(weight), {query, key, weight});
    }
  }
  if (scored.best_of) out.all.log_candidates = std::log(static_cast<double>(scored.best_of(head)));
  return out;
}

}  // namespace

double RowEvidence::p() const {
  if (!(chance > 0)) return std::numeric_limits<double>::quiet_NaN();
  // Rows of probabilities: rounding apart, their sums lie within 0 … 1, as the bound requires.
  const auto count = static_cast<double>(rows);
  const double bound = log_chance_bound(std::clamp(score / count, 0.0, 1.0), std::min(chance / count, 1.0), rows);
  return std::exp(std::min(0.0, bound + log_candidates));
}

bool RowEvidence::enough_for(const ClassRule& rule) const {
  return rows >= rule.rows_at_least && !(p() > rule.p_at_most);
}

RowEvidence row_evidence(const MetricInput& head, const Metric& scored) {
  return gather(head, scored).all;
}

std::vector<ClassRule> parse_class_rules(std::string_view source, std::string_view where) {
  const std::string file(where);
  json document;
  try {
    document = json::parse(source);
  } catch (const json::exception& failure) {     // also numbers too large to hold
    const std::string message = failure.what();  // "[json.exception.…] parse error at line 1, column 3: …"
    const auto close = message.find("] ");
    throw Error(file, "JSON", message.substr(close == std::string::npos ? 0 : close + 2));
  }
  if (!document.is_object() || !document.contains("classes") || !document["classes"].is_array())
    throw Error(file, "an object with a list named \"classes\"", document.type_name());
  std::vector<ClassRule> rules;
  std::set<std::string> ids;
  for (const json& object : document["classes"]) {
    const std::string place = file + ": classes[" + std::to_string(rules.size()) + "]";
    rules.push_back(parse_rule(object, place));
    if (!ids.insert(rules.back().id).second)
      throw Error(place + ".id", "an id of its own", "\"" + rules.back().id + "\" again");
  }
  return rules;
}

const std::vector<ClassRule>& default_class_rules() {
  static const std::vector<ClassRule> rules = parse_class_rules(embedded_head_classes, "assets/head_classes.json");
  return rules;
}

double class_margin(const ClassRule& rule, double score, double chance) {
  return score / (std::isnan(chance) ? rule.at_least : std::max(rule.at_least, rule.times_chance * chance));
}

std::string sureness(const HeadVerdict& verdict) {
  const std::string rows = fmt::format("{} {}", verdict.rows, verdict.rows == 1 ? "row" : "rows");
  if (std::isnan(verdict.p)) return rows;
  constexpr double least = 30;  // digits beyond say nothing
  return fmt::format("{}, p ≤ 1e-{}", rows, std::floor(std::min(-std::log10(verdict.p), least)));
}

std::vector<HeadVerdict> classify(const MetricInput& head, const std::vector<ClassRule>& rules) {
  std::vector<std::pair<double, HeadVerdict>> met;
  if (head.map.n_query() == 0) return {};
  for (const ClassRule& rule : rules) {
    const Metric& scored = metric(rule.metric);
    HeadVerdict verdict;
    verdict.rule = &rule;
    verdict.score = scored.value(head);
    if (!(verdict.score >= rule.at_least)) continue;  // NaN, too: no evidence, no class
    verdict.chance = scored.chance(head);
    const double margin = class_margin(rule, verdict.score, verdict.chance);
    if (margin < 1) continue;
    const Gathered found = gather(head, scored);
    if (!found.all.enough_for(rule)) continue;
    verdict.rows = found.all.rows;
    verdict.p = found.all.p();
    for (const auto& [strength, cell] : found.cells) verdict.evidence.push_back(cell);
    met.emplace_back(margin, std::move(verdict));
  }
  std::stable_sort(met.begin(), met.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<HeadVerdict> verdicts;
  for (auto& [margin, verdict] : met) verdicts.push_back(std::move(verdict));
  return verdicts;
}

}  // namespace headscope
