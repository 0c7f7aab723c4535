#include "core/metrics/head_class.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <span>
#include <utility>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/nth.h"
#include "core/base/words.h"
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

/// What speaks for a class, row by row. A metric of whole rows has no cells of its own.
struct Gathered {
  std::vector<std::pair<double, Evidence>> cells;  // strongest first
  RowEvidence all;

  void offer(double strength, Evidence cell) {
    if (cells.size() == evidence_cells && !(strength > cells.back().first)) return;
    const auto place =
        std::find_if(cells.begin(), cells.end(), [&](const auto& kept) { return strength > kept.first; });
    cells.insert(place, {strength, cell});
    if (cells.size() > evidence_cells) cells.pop_back();
  }
};

/// The mean weight at a distance over the rows but one, whose weight there is `own`; 0 where no other row sees it.
double usual_weight(const AttentionMap& map, Index distance, double own) {
  const auto rows = static_cast<double>(rows_at_distance(map, distance));
  return rows > 1 ? std::max(0.0, weight_at_distance(map, distance) * rows - own) / (rows - 1) : 0;
}

/// A row of which every cell counts shows its largest weight; its strength is how many times the even share that is.
void gather_rows(const AttentionMap& map, Gathered& out) {
  for (Index query = 0; query < map.n_query(); ++query) {
    const Index visible = visible_count(map, query);
    if (visible < 2) continue;
    const float weight = nth(map.stats().max_weight, query);
    ++out.all.rows;
    out.offer(static_cast<double>(weight) * static_cast<double>(visible),
              {query, nth(map.stats().max_key, query), weight});
  }
}

/// Of the same keys in every row the sums are known; cells are looked at in the columns that get most. A weight that is
/// no number makes a sum that is none: it says nothing, and its column has no cells to show.
void gather_columns(const AttentionMap& map, std::span<const std::int32_t> columns, Gathered& out) {
  for (const std::int32_t key : columns) out.all.score += nth(column_mass(map), key);
  std::vector<bool> counts(static_cast<std::size_t>(map.n_query()));
  std::vector<Index> seen;
  const bool plain = !map.rule() || map.rule()->plain();
  for (Index query = 0; query < map.n_query(); ++query) {
    const KeyRange range = visible_range(map, query);
    const auto first = std::ranges::lower_bound(columns, range.begin);
    const auto last = std::lower_bound(first, columns.end(), range.end);
    Index sees = last - first;
    if (!plain || sees == 1) {
      seen.assign(first, last);
      keep_visible(map, query, seen);
      sees = static_cast<Index>(seen.size());
    }
    if (sees == 0) continue;
    const Index visible = visible_count(map, query);
    if (visible < 2) {
      out.all.score -= static_cast<double>(map.weight(query, seen.front()));
      continue;
    }
    nth(counts, query) = true;
    ++out.all.rows;
    out.all.chance += static_cast<double>(sees) / static_cast<double>(visible);
  }
  if (out.all.score < 0) out.all.score = 0;
  std::vector<std::int32_t> top(columns.begin(), columns.end());
  std::erase_if(top, [&](std::int32_t key) { return std::isnan(nth(column_mass(map), key)); });
  const auto most = std::min(top.size(), evidence_cells);
  std::ranges::partial_sort(top, top.begin() + static_cast<std::ptrdiff_t>(most), std::greater{},
                            [&](std::int32_t key) { return nth(column_mass(map), key); });
  top.resize(most);
  for (const std::int32_t key : top) {
    const Tensor column = map.tile({0, map.n_query()}, {key, key + 1});
    for (Index query = 0; query < map.n_query(); ++query)
      if (const float weight = column.at(query, 0); weight > 0 && nth(counts, query))
        out.offer(static_cast<double>(weight), {query, key, weight});
  }
}

/// The cells that the metric sums. A query that sees one key has no choice.
Gathered gather(const MetricInput& head, const Metric& scored, bool by_distance) {
  const AttentionMap& map = head.map;
  Gathered out;
  const KeysOfRow keys_of_row = scored.cells(head);
  if (scored.columns) {
    gather_columns(map, scored.columns(head), out);
  } else if (!keys_of_row) {
    gather_rows(map, out);
  } else {
    read_cells(map, keys_of_row, [&](Index query, std::span<const Index> keys, std::span<const float> weights) {
      const Index visible = visible_count(map, query);
      if (visible < 2) return;
      ++out.all.rows;
      out.all.chance += static_cast<double>(keys.size()) / static_cast<double>(visible);
      for (std::size_t i = 0; i < keys.size(); ++i) {
        out.all.score += static_cast<double>(weights[i]);
        if (by_distance && !map.place().between_texts)
          out.all.by_distance +=
              usual_weight(map, map.place().offset + query - keys[i], static_cast<double>(weights[i]));
        if (weights[i] > 0) out.offer(static_cast<double>(weights[i]), {query, keys[i], weights[i]});
      }
    });
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

RowEvidence row_evidence(const MetricInput& head, const Metric& scored, bool by_distance) {
  return gather(head, scored, by_distance).all;
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
  if (!std::isnan(verdict.chance))
    text = verdict.weak && !std::isnan(ratio) ? say("weak: {:.1f} × chance {:.3f}, ", ratio, verdict.chance)
                                              : say("chance {:.3f}, ", verdict.chance);
  if (!std::isnan(verdict.by_distance)) text += say("by distance {:.3f}, ", verdict.by_distance);
  text += sureness(verdict);
  // A weak class may well score enough, on too little evidence.
  const bool scores = verdict.weak && verdict.margin >= 1;
  if (scores && verdict.rows < verdict.rule->rows_at_least)
    text += said(": too few rows");
  else if (scores && verdict.p > verdict.rule->p_at_most)
    text += said(": not sure enough");
  return text;
}

Worded sureness(const HeadVerdict& verdict) {
  const Worded rows = std::to_string(verdict.rows) + " " + Worded(verdict.rows == 1 ? to_say("row") : to_say("rows"));
  constexpr double least = 30;  // digits beyond say nothing
  const double digits = std::floor(std::min(-std::log10(verdict.p), least));
  return digits >= 1 ? rows + fmt::format(", p ≤ 1e-{}", digits) : rows;  // NaN: no p
}

namespace {

/// The rules on one head, whose scores and chances are known by metric. The cells of each are looked at once, and not
/// at all where its score says enough.
class Weighing {
 public:
  Weighing(const MetricInput& head, const std::vector<ClassRule>& rules, std::span<const double> scores,
           std::span<const double> chances, const std::stop_token& stop)
      : head_(head), stop_(stop) {
    if (head.map.n_query() == 0) return;
    for (const ClassRule& rule : rules) {
      const Metric& scored = metric(rule.metric);
      const auto column = static_cast<std::size_t>(&scored - metrics().data());
      const double score = scores[column], chance = chances[column];
      if (std::isnan(score)) continue;  // the text holds no evidence
      HeadVerdict& verdict = all_.emplace_back(Weighed{.scored = &scored}).verdict;
      verdict.rule = &rule;
      verdict.score = score;
      verdict.chance = chance;
      verdict.margin = class_margin(rule, score, chance);
    }
  }

  std::vector<HeadVerdict> met() {
    std::vector<Weighed*> found;
    for (Weighed& each : all_)
      if (each.margin() >= 1) {
        look(each);
        if (each.margin() >= 1 && each.enough) found.push_back(&each);
      }
    std::ranges::stable_sort(found, std::greater{}, &Weighed::margin);
    std::vector<HeadVerdict> verdicts;
    for (const Weighed* each : found) verdicts.push_back(each->verdict);
    return verdicts;
  }

  std::optional<HeadVerdict> nearest() {
    std::vector<Weighed*> order;
    for (Weighed& each : all_)
      if (each.margin() > 0 && each.verdict.score > each.verdict.chance) order.push_back(&each);
    // What distance explains can only take from a margin: most promising first.
    std::ranges::stable_sort(order, std::greater{}, &Weighed::margin);
    const Weighed* best = nullptr;
    for (Weighed* each : order) {
      if (best && each->margin() <= best->margin()) continue;
      look(*each);
      // A metric of whole rows has no cells that could be shown, and no chance that it could be weighed against.
      if (!std::isnan(each->verdict.p) && (!best || each->margin() > best->margin())) best = each;
    }
    if (!best) return std::nullopt;
    HeadVerdict verdict = best->verdict;
    verdict.weak = true;
    return verdict;
  }

 private:
  struct Weighed {
    const Metric* scored = nullptr;
    HeadVerdict verdict = {};
    bool looked = false, enough = false;
    double margin() const { return verdict.margin; }  ///< before looking at the cells at most this
  };

  void look(Weighed& each) {
    if (std::exchange(each.looked, true)) return;
    if (stop_.stop_requested()) throw Cancelled();
    HeadVerdict& verdict = each.verdict;
    const bool by_distance = verdict.rule->times_distance > 0;
    const Gathered found = gather(head_, *each.scored, by_distance);
    verdict.rows = found.all.rows;
    verdict.p = found.all.p();
    if (by_distance && found.all.rows > 0) {
      verdict.by_distance = found.all.by_distance / static_cast<double>(found.all.rows);
      verdict.margin = class_margin(*verdict.rule, verdict.score, verdict.chance, verdict.by_distance);
    }
    each.enough = found.all.enough_for(*verdict.rule);
    for (const auto& [strength, cell] : found.cells) verdict.evidence.push_back(cell);
  }

  MetricInput head_;
  std::stop_token stop_;
  std::vector<Weighed> all_;
};

HeadClasses classes_of(Weighing weighing) {
  HeadClasses out{weighing.met(), std::nullopt};
  if (out.met.empty()) out.nearest = weighing.nearest();
  return out;
}

}  // namespace

std::vector<HeadClasses> head_classes(const Trace& trace, const TextMarks& text, const HeadTable& table,
                                      const std::vector<ClassRule>& rules, const std::stop_token& stop) {
  std::vector<HeadClasses> out;
  for (std::size_t head = 0; head < trace.maps.size(); ++head)
    out.push_back(classes_of({{trace.maps[head], text}, rules, table.value[head], table.chance[head], stop}));
  return out;
}

Worded not_measurable(const MetricInput& head, const std::vector<ClassRule>& rules) {
  Worded titles, between_words;
  for (const ClassRule& rule : rules) {
    const Metric& scored = metric(rule.metric);
    if (!std::isnan(scored.value(head))) continue;
    Worded& list = scored.english && !head.text.words.english ? between_words : titles;
    list += std::string(list.empty() ? "" : "; ") + Worded::entry(rule.title);
  }
  if (between_words.empty()) return titles;
  return titles + std::string(titles.empty() ? "" : "; ") +
         say_later("links between words, which are told of English alone ({})", between_words);
}

}  // namespace headscope
