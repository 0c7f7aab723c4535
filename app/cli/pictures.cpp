#include "app/cli/pictures.h"

#include <fmt/format.h>

#include "app/cli/shell.h"
#include "app/cli/table.h"
#include "core/base/error.h"
#include "viz/export/png.h"
#include "viz/export/svg.h"

namespace headscope::cli {

namespace {
const HeadReport* find(const std::vector<HeadReport>& heads, int layer, int head) {
  for (const HeadReport& each : heads)
    if (each.map->layer() == layer && each.map->head() == head) return &each;
  return nullptr;
}

/// A rules file may leave colours to us: a neutral grey then.
Color hue_of(const ClassRule& rule) {
  return parse_color(rule.color).value_or(rgb(0x8E939C));
}
}  // namespace

Badge badge_of(const std::vector<HeadReport>& heads, int layer, int head) {
  const HeadReport* report = find(heads, layer, head);
  if (!report || report->verdicts.empty()) return {};
  const HeadVerdict& verdict = report->verdicts.front();
  return {verdict_text(verdict), hue_of(*verdict.rule)};
}

std::vector<HeadMark> marks_of(const std::vector<HeadReport>& heads) {
  std::vector<HeadMark> marks;
  for (const HeadReport& each : heads) {
    if (each.verdicts.empty()) continue;
    const ClassRule& rule = *each.verdicts.front().rule;
    marks.push_back({each.map->layer(), each.map->head(), rule.title, hue_of(rule)});
  }
  return marks;
}

std::vector<std::pair<std::string, std::string>> facts_of(const std::vector<HeadReport>& heads, const Trace& trace,
                                                          int layer, int head) {
  std::vector<std::pair<std::string, std::string>> facts;
  const HeadReport* report = find(heads, layer, head);
  if (!report) return facts;
  const TokenLinks links = TokenLinks::of(trace.ids());
  for (const char* id : {"entropy", "effective_tokens", "sink", "mean_distance"}) {
    const Metric& each = metric(id);
    const std::string unit = each.unit.empty() ? "" : " " + std::string(each.unit);
    facts.emplace_back(each.title, number(each.value({*report->map, links}), 2) + unit);
  }
  return facts;
}

FileKind kind_of_file(const std::filesystem::path& path) {
  const std::string ending = path.extension().string();
  if (ending == ".png" || ending == ".PNG") return FileKind::png;
  if (ending == ".svg" || ending == ".SVG") return FileKind::svg;
  if (ending == ".csv" || ending == ".CSV") return FileKind::csv;
  throw UsageError(fmt::format("-o: expected a file ending in .png, .svg or .csv, found \"{}\"", path.string()));
}

std::string write_picture(const Scene& scene, const std::filesystem::path& path, const OutputSize& size) {
  if (kind_of_file(path) == FileKind::svg) {
    write_svg(path, scene, size);
    return fmt::format("{}  {:.0f} × {:.0f}", path.string(), scene.width, scene.height);
  }
  const PixelSize written = write_png(path, scene, size);
  return fmt::format("{}  {} × {} pixels, {:.0f} dpi", path.string(), written.width, written.height, written.dpi);
}

}  // namespace headscope::cli
