#include "app/render/expert_pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "core/base/nth.h"
#include "core/base/words.h"
#include "viz/scene/compose.h"
#include "viz/scene/map_cells.h"
#include "viz/scene/text.h"

namespace headscope {

Matrix routing_matrix(const RoutingReport& report, const ExpertRouting& routing, std::shared_ptr<const Trace> trace) {
  Matrix out;
  const Index tokens = routing.weights.dim(0), experts = routing.weights.dim(1);
  out.values = Tensor::zeros({experts, tokens});
  out.pending_text = said("did not take the token");
  for (Index e = 0; e < experts; ++e) {
    for (Index i = 0; i < tokens; ++i) {
      out.values.ref(e, i) = routing.weights.at(i, e);
      out.pending.push_back(routing.weights.at(i, e) == 0);
    }
    out.rows.push_back(fmt::format("{}", e));
  }
  out.tokens = std::move(trace);
  out.row_title = said("expert ↓");
  out.column_title = said("token →");
  out.unit = said("weight of the expert's output");
  out.provenance = say("{}: {} of {} experts take each token; grey: did not take it",
                       name(Site{SiteKind::router_weights, routing.layer}), report.per_token, report.experts);
  out.low = 0;
  return out;
}

Matrix load_matrix(const RoutingReport& report) {
  Matrix out;
  out.values = Tensor::zeros({static_cast<Index>(report.layers.size()), report.experts});
  for (std::size_t row = 0; row < report.layers.size(); ++row) {
    for (Index e = 0; e < report.experts; ++e)
      out.values.ref(static_cast<Index>(row), e) = static_cast<float>(nth(report.layers[row].load, e) / report.chance);
    out.rows.push_back(fmt::format("{}", report.layers[row].layer));
  }
  for (int e = 0; e < report.experts; ++e) out.columns.push_back(fmt::format("{}", e));
  out.row_title = said("layer ↓");
  out.column_title = said("expert →");
  out.unit = said("load ÷ even share");
  out.provenance = said("tokens that the expert took ÷ what it would take if all took as many: 1 is chance");
  out.low = 0;
  return out;
}

namespace {
/// The words that an expert took, each once, in the order of the text: "and ×3  was  hungry".
std::string words_of(const ExpertRouting& routing, const Trace& trace, Index expert) {
  std::vector<std::pair<std::string, int>> words;
  for (Index i = 0; i < routing.weights.dim(0); ++i) {
    if (routing.weights.at(i, expert) == 0) continue;
    const std::string word = token_word(trace, i);
    const auto known = std::ranges::find(words, word, &std::pair<std::string, int>::first);
    known == words.end() ? static_cast<void>(words.emplace_back(word, 1)) : static_cast<void>(++known->second);
  }
  std::string out;
  for (const auto& [word, times] : words)
    out += (out.empty() ? "" : "  ") + word + (times > 1 ? fmt::format(" ×{}", times) : "");
  return out;
}
}  // namespace

Scene load_scene(const RoutingReport& report, const ExpertRouting& routing, const Trace& trace, double width,
                 double height, const Style& style) {
  constexpr double lowest = 18, highest = 30, words_at = 216, bars_at = 30;
  constexpr double share_of_bars = 0.3;  // of a narrow picture: the words want the room
  const Theme& theme = style.theme;
  // Where there is no room for all, those that took most.
  std::vector<Index> shown(static_cast<std::size_t>(report.experts));
  std::iota(shown.begin(), shown.end(), Index{0});
  const auto room = static_cast<std::size_t>(std::max((height - lowest) / lowest, 1.0));
  if (shown.size() > room) {
    std::ranges::stable_sort(shown, std::greater{}, [&](Index e) { return nth(routing.tokens, e); });
    shown.resize(room);
  }
  const double pitch = std::clamp((height - lowest) / static_cast<double>(shown.size()), lowest, highest);
  const double most = std::max(report.chance, std::ranges::max(routing.load));
  const double words_x = std::min(words_at, width * share_of_bars), longest = words_x - bars_at - 40;
  const double even = bars_at + longest * report.chance / most, bottom = pitch * static_cast<double>(shown.size());
  const Font number = theme.small_token(), word = theme.token();
  Scene out;
  out.width = width, out.height = bottom + lowest;
  SceneSeries loads{"load", {}, {}, {}};
  for (std::size_t row = 0; row < shown.size(); ++row) {
    const Index e = shown[row];
    const double load = nth(routing.load, e), y = pitch * static_cast<double>(row), middle = y + pitch / 2;
    loads.x.push_back(static_cast<double>(e)), loads.y.push_back(load);
    const auto write = [&](double x, std::string text, const Font& font, Color color, Anchor anchor) {
      out.add({Text{{x, middle + half_capital(font)}, std::move(text), font, color, anchor, 0}, "", ""});
    };
    write(20, std::to_string(e), number, theme.muted, Anchor::end);
    const double thick = std::min(12.0, pitch - 6);
    out.add({Box{{bars_at, middle - thick / 2, std::max(longest * load / most, 1.0), thick}, theme.accent, {}, 0, 2},
             fmt::format("load.{}", e),
             say("expert {}: {} tokens, {:.2f} % of the load (even {:.2f} %), {:.2f} % of the weight", e,
                 nth(routing.tokens, e), 100 * load, 100 * report.chance, 100 * nth(routing.weight, e))});
    write(words_x - 12, std::to_string(nth(routing.tokens, e)), number, theme.text, Anchor::end);
    const std::string words = words_of(routing, trace, e),
                      fitting = elided(words, word, width - words_x - 10, style.measure);
    out.add({Text{{words_x, middle + half_capital(word)}, fitting, word, theme.text, Anchor::start, 0},
             fmt::format("words.{}", e), fitting == words ? "" : say("expert {}: {}", e, words)});
  }
  out.add({Line{{{even, 0}, {even, bottom}}, theme.muted, 1}, "even", say("even share: 1 ÷ {}", report.experts)});
  out.add({Text{{even, bottom + 13},
                shown.size() < static_cast<std::size_t>(report.experts)
                    ? say("even; {} of {} experts", shown.size(), report.experts)
                    : std::string(said("even")),
                number,
                theme.muted,
                Anchor::middle,
                0},
           "", ""});
  out.series.push_back(std::move(loads));
  return out;
}

Scene routing_scene(const RoutingReport& report, const ExpertRouting& routing, std::shared_ptr<const Trace> trace,
                    double width, double height, const Style& style) {
  Matrix matrix = routing_matrix(report, routing, std::move(trace));
  matrix.width = width;
  matrix.height = height * 0.6;
  const Scene parts[] = {matrix_scene(matrix, style),
                         load_scene(report, routing, *matrix.tokens, width, height * 0.4, style)};
  return below(parts, 12);
}

}  // namespace headscope
