#include "core/metrics/head_class.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/io/json_view.h"
#include "core/io/strict_json.h"
#include "core/metrics/chance_bound.h"
#include "core/metrics/even_head.h"

namespace headscope {

extern const std::string_view embedded_head_classes;  // assets/head_classes.json

namespace {

using nlohmann::json;

constexpr std::size_t evidence_cells = 5;

bool is_color(const std::string& value) {
  return value.size() == 7 && value[0] == '#' &&
         value.find_first_not_of("0123456789abcdefABCDEF", 1) == std::string::npos;
}

ClassRule parse_rule(const JsonView& object) {
  constexpr double any = std::numeric_limits<double>::max();
  JsonFields fields(object);
  ClassRule rule;
  for (const auto& [key, text] :
       {std::pair{"id", &rule.id}, {"title", &rule.title}, {"metric", &rule.metric}, {"color", &rule.color}}) {
    fields.read(key, *text);
    if (text->empty()) object.at(key).refuse("a text");
  }
  fields.find("at_least");
  rule.at_least = object.at("at_least").number();
  fields.read("below", rule.below, rule.at_least, any);
  fields.read("times_chance", rule.times_chance, 0, any);  // 0 = chance does not matter
  fields.read("rows_at_least", rule.rows_at_least, 1, 1'000'000);
  if (fields.read("p_at_most", rule.p_at_most, 0, 1) && rule.p_at_most == 0)
    object.at("p_at_most").refuse("a probability above 0, 1 = sureness does not matter");
  fields.done();

  const auto all = metrics();
  const auto scored =
      std::find_if(all.begin(), all.end(), [&](const Metric& entry) { return entry.id == rule.metric; });
  if (scored == all.end()) {
    std::string ids;
    for (const Metric& entry : all) ids += (ids.empty() ? "" : ", ") + std::string(entry.id);
    object.at("metric").refuse("one of " + ids);
  }
  if (!(rule.at_least > 0 && rule.at_least <= scored->high))
    object.at("at_least").refuse(fmt::format("above 0 and at most {}, the range of {}", scored->high, rule.metric));
  if (!is_color(rule.color)) object.at("color").refuse("a colour like \"#FFB454\"");
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
  const json document = parse_strict_json(source, file);
  std::vector<ClassRule> rules;
  std::set<std::string> ids;
  for (const JsonView& object : JsonView(document, file).at("classes").elements("classes")) {
    rules.push_back(parse_rule(object));
    if (!ids.insert(rules.back().id).second)
      object.at("id").refuse("an id of its own", "\"" + rules.back().id + "\" again");
  }
  return rules;
}

const std::vector<ClassRule>& default_class_rules() {
  static const std::vector<ClassRule> rules = parse_class_rules(embedded_head_classes, "assets/head_classes.json");
  return rules;
}

double class_margin(const ClassRule& rule, double score, double chance) {
  if (score >= rule.below) return 0;
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
