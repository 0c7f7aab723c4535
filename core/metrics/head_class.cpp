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
#include "core/metrics/mass.h"

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
  fields.read("times_distance", rule.times_distance, 0, any);
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

/// The mean weight at a distance over the rows but one, whose weight there is `own`; 0 where no other row sees it.
double usual_weight(const AttentionMap& map, Index distance, double own) {
  const auto rows = static_cast<double>(rows_at_distance(map, distance));
  return rows > 1 ? std::max(0.0, weight_at_distance(map, distance) * rows - own) / (rows - 1) : 0;
}

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
      if (!map.place().between_texts)
        out.all.by_distance += usual_weight(map, map.place().offset + query - key, static_cast<double>(weight));
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

double class_margin(const ClassRule& rule, double score, double chance, double by_distance) {
  if (score >= rule.below) return 0;
  const double bar = std::max(rule.at_least, rule.times_distance > 0 ? rule.times_distance * by_distance : 0);
  return score / (std::isnan(chance) ? bar : std::max(bar, rule.times_chance * chance));
}

std::string beside_chance(const HeadVerdict& verdict) {
  const double ratio = verdict.chance > 0 ? verdict.score / verdict.chance : std::numeric_limits<double>::quiet_NaN();
  std::string text;
  // A weak class may well score enough, on too few rows.
  const bool few = verdict.weak && class_margin(*verdict.rule, verdict.score, verdict.chance,
                                                std::isnan(verdict.by_distance) ? 0 : verdict.by_distance) >= 1;
  if (!std::isnan(verdict.chance))
    text = verdict.weak && !std::isnan(ratio) ? fmt::format("weak: {:.1f} × chance {:.3f}, ", ratio, verdict.chance)
                                              : fmt::format("chance {:.3f}, ", verdict.chance);
  if (!std::isnan(verdict.by_distance)) text += fmt::format("by distance {:.3f}, ", verdict.by_distance);
  return text + sureness(verdict) + (few ? ": too few to be sure" : "");
}

std::string sureness(const HeadVerdict& verdict) {
  const std::string rows = fmt::format("{} {}", verdict.rows, verdict.rows == 1 ? "row" : "rows");
  if (std::isnan(verdict.p)) return rows;
  constexpr double least = 30;  // digits beyond say nothing
  return fmt::format("{}, p ≤ 1e-{}", rows, std::floor(std::min(-std::log10(verdict.p), least)));
}

namespace {
struct Weighed {
  double margin = 0;
  HeadVerdict verdict;
  bool enough = false;
};

/// A rule on a head; nothing where the text holds no evidence, or where `least_margin` is out of reach without looking
/// at the cells.
std::optional<Weighed> weigh(const MetricInput& head, const ClassRule& rule, double least_margin) {
  const Metric& scored = metric(rule.metric);
  Weighed out;
  HeadVerdict& verdict = out.verdict;
  verdict.rule = &rule;
  verdict.score = scored.value(head);
  if (std::isnan(verdict.score)) return std::nullopt;
  verdict.chance = scored.chance(head);
  out.margin = class_margin(rule, verdict.score, verdict.chance);
  if (out.margin < least_margin) return std::nullopt;
  const Gathered found = gather(head, scored);
  verdict.rows = found.all.rows;
  verdict.p = found.all.p();
  if (rule.times_distance > 0 && found.all.rows > 0) {
    verdict.by_distance = found.all.by_distance / static_cast<double>(found.all.rows);
    out.margin = class_margin(rule, verdict.score, verdict.chance, verdict.by_distance);
  }
  out.enough = found.all.enough_for(rule);
  for (const auto& [strength, cell] : found.cells) verdict.evidence.push_back(cell);
  return out;
}
}  // namespace

std::vector<HeadVerdict> classify(const MetricInput& head, const std::vector<ClassRule>& rules) {
  std::vector<Weighed> met;
  if (head.map.n_query() == 0) return {};
  for (const ClassRule& rule : rules)
    if (auto weighed = weigh(head, rule, 1); weighed && weighed->margin >= 1 && weighed->enough)
      met.push_back(std::move(*weighed));
  std::stable_sort(met.begin(), met.end(), [](const Weighed& a, const Weighed& b) { return a.margin > b.margin; });
  std::vector<HeadVerdict> verdicts;
  for (Weighed& each : met) verdicts.push_back(std::move(each.verdict));
  return verdicts;
}

std::optional<HeadVerdict> nearest_class(const MetricInput& head, const std::vector<ClassRule>& rules) {
  std::optional<Weighed> best;
  if (head.map.n_query() == 0) return std::nullopt;
  for (const ClassRule& rule : rules) {
    auto weighed = weigh(head, rule, best ? best->margin : 0);
    // A metric of whole rows has no cells that could be shown, and no chance that it could be weighed against.
    if (!weighed || std::isnan(weighed->verdict.p) || !(weighed->verdict.score > weighed->verdict.chance)) continue;
    if (!best || weighed->margin > best->margin) best = std::move(weighed);
  }
  if (!best) return std::nullopt;
  best->verdict.weak = true;
  return std::move(best->verdict);
}

std::string not_measurable(const MetricInput& head, const std::vector<ClassRule>& rules) {
  std::string titles;
  for (const ClassRule& rule : rules)
    if (std::isnan(metric(rule.metric).value(head))) titles += (titles.empty() ? "" : "; ") + rule.title;
  return titles;
}

}  // namespace headscope
