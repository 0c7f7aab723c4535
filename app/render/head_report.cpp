#include "app/render/head_report.h"

#include <fmt/format.h>

#include <cmath>

#include "core/base/words.h"
#include "core/metrics/metric.h"

namespace headscope {

namespace {
const HeadReport* find(const std::vector<HeadReport>& heads, HeadId head) {
  for (const HeadReport& each : heads)
    if (each.map->id() == head) return &each;
  return nullptr;
}

/// A rules file may leave colours to us: a neutral grey then.
Color hue_of(const ClassRule& rule) {
  return parse_color(rule.color).value_or(rgb(0x8E939C));
}
}  // namespace

std::vector<HeadReport> report_heads(const Trace& trace, const std::vector<ClassRule>& rules) {
  const TextMarks text = TextMarks::of(trace.tokens);
  std::vector<HeadClasses> classes = head_classes(trace, text, head_table(trace, text), rules);
  std::vector<HeadReport> heads;
  for (std::size_t i = 0; i < classes.size(); ++i)
    heads.push_back({&trace.maps[i], std::move(classes[i].met), std::move(classes[i].nearest)});
  return heads;
}

std::string verdict_text(const HeadVerdict& verdict) {
  return fmt::format("{} {:.3f} ({})", said(verdict.rule->title), verdict.score, beside_chance(verdict));
}

Badge badge_of(const std::vector<HeadReport>& heads, HeadId head) {
  const HeadReport* report = find(heads, head);
  if (!report || report->verdicts.empty()) return {};
  const HeadVerdict& verdict = report->verdicts.front();
  return {say("{} {:.3f} (chance {})", said(verdict.rule->title), verdict.score, number(verdict.chance)),
          hue_of(*verdict.rule)};
}

std::vector<HeadMark> marks_of(const std::vector<HeadReport>& heads) {
  std::vector<HeadMark> marks;
  for (const HeadReport& each : heads) {
    if (each.verdicts.empty()) continue;
    const ClassRule& rule = *each.verdicts.front().rule;
    marks.push_back({each.map->id(), said(rule.title), hue_of(rule)});
  }
  return marks;
}

std::vector<std::pair<std::string, std::string>> facts_of(const std::vector<HeadReport>& heads, const Trace& trace,
                                                          HeadId head) {
  std::vector<std::pair<std::string, std::string>> facts;
  const HeadReport* report = find(heads, head);
  if (!report) return facts;
  const TextMarks text = TextMarks::of(trace.tokens);
  for (const char* id : {"row_mass", "entropy", "effective_tokens", "sink", "mean_distance"}) {
    if (id == std::string_view("row_mass") && has_probabilities(*report->map)) continue;  // 1, as everybody knows
    const Metric& each = metric(id);
    const double value = each.value({*report->map, text});
    if (std::isnan(value)) continue;  // which this kind of map has not
    const std::string unit = each.unit.empty() ? "" : fmt::format(" {}", said_view(each.unit));
    facts.emplace_back(said_view(each.title), number(value, 2) + unit);
  }
  return facts;
}

std::string number(double value, int decimals) {
  if (std::isnan(value)) return "–";
  return fmt::format("{:.{}f}", value, decimals);
}

std::string nats(double value, int decimals) {
  return std::isnan(value) ? number(value) : say("{} nats", number(value, decimals));
}

}  // namespace headscope
