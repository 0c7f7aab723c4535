#include "app/workspaces/explore/token_strip.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/widgets/controls.h"
#include "app/workspaces/shown_run.h"
#include "core/base/words.h"
#include "core/run/masked_tokens.h"
#include "viz/scene/map_cells.h"

namespace headscope {

namespace {

/// How much attention each key of the selected head receives, 0 … 1 of the largest.
std::vector<double> attention_received(const PageContext& c) {
  const Trace* trace = c.trace();
  std::vector<double> shades(c.positions().tokens.size(), -1);
  const HeadId head = c.state().document.selected;
  for (const AttentionMap& map : trace->maps) {
    if (map.layer() != head.layer || map.head() != head.head) continue;
    const std::vector<double>& mass = map.stats().column_mass;
    std::vector<double> received(shades.size(), 0);
    for (std::size_t i = 0; i < mass.size(); ++i)
      if (const auto at = static_cast<std::size_t>(c.shown(static_cast<Index>(i))); at < received.size())
        received[at] += mass[i];
    const double largest = received.empty() ? 0 : *std::ranges::max_element(received);
    for (std::size_t i = 0; i < shades.size(); ++i) shades[i] = largest > 0 ? received[i] / largest : 0;
  }
  return shades;
}

/// Where the pinned token looks in the selected head: its row, as strong as the map's cells. Below 0: masked.
std::vector<double> row_of_pinned(const PageContext& c, const AttentionMap& map, Index query) {
  const WordGroups* words = c.words();
  const std::size_t count = c.positions().tokens.size();
  std::vector<float> weights(words ? count : static_cast<std::size_t>(map.n_key()));
  if (words)
    for (std::size_t k = 0; k < count; ++k)
      weights[k] = weight_in_words(map, *words, c.shown(query), static_cast<Index>(k));
  else
    map.row(query, weights);
  std::vector<double> row;
  double largest = 0;
  for (std::size_t k = 0; k < count; ++k) {
    const bool masked = std::isnan(weights[k]) || (!words && map.masked(query, static_cast<Index>(k)));
    row.push_back(masked ? -1 : std::abs(static_cast<double>(weights[k])));
    largest = std::max(largest, row.back());
  }
  // Weights that are no shares of 1 are shown beside their largest.
  if (map.place().kind == MapKind::effective && largest > 0)
    for (double& weight : row) weight = weight < 0 ? weight : weight / largest;
  return row;
}

std::shared_ptr<const Trace> source_of(const PageContext& c) {
  return c.words() ? c.results().run->word_tokens : c.results().run->trace;
}

}  // namespace

std::optional<Index> TokenStrip::pinned_row(const PageContext& c, const AttentionMap* map) {
  const auto query = c.state().document.query;
  return map && query && *query < map->n_query() ? query : std::nullopt;
}

const std::vector<double>& TokenStrip::shades(const PageContext& c, const AttentionMap* map,
                                              std::optional<Index> pinned) {
  Shaded wanted{c.results().run, c.words() != nullptr, c.state().document.selected, pinned};
  if (shaded_ != wanted) {
    shades_ = pinned ? row_of_pinned(c, *map, *pinned) : attention_received(c);
    shaded_ = std::move(wanted);
  }
  return shades_;
}

/// The queries of another text: a click pins one.
void TokenStrip::queries(const PageContext& c) {
  const std::vector<Token>& tokens = c.trace()->query_tokens;
  queries_.draw(c.ui, "queries", c.results().run->trace, tokens, [&](std::size_t i) {
    const auto position = static_cast<Index>(i);
    ChipOptions chip;
    chip.shade = -1;
    chip.selected = c.state().document.query == position;
    chip.hovered = c.state().hover.query == position;
    const Touch touch = token_chip(c.ui, tokens[i].label, "query token " + std::to_string(i), chip);
    if (touch.hovered) c.hovered.query = position;
    if (touch.clicked) c.editor.pin(chip.selected ? std::nullopt : std::optional(position));
  });
}

void TokenStrip::draw(const PageContext& c) {
  const WordGroups* words = c.words();
  const Trace& trace = c.positions();
  const AttentionMap* map = selected_map(c);
  const std::optional<Index> pinned = pinned_row(c, map);
  const std::vector<double>& shaded = shades(c, map, pinned);
  const Document& document = c.state().document;
  tokens_.draw(c.ui, "tokens", source_of(c), trace.tokens, [&](std::size_t i) {
    const auto position = static_cast<Index>(i);
    // What is pinned and hovered are tokens: of a word its last, where the model has read all of it.
    const Index token = words ? words->tokens_of(position).end - 1 : position;
    const auto here = [&](std::optional<Index> other) { return other && c.shown(*other) == position; };
    ChipOptions chip;
    chip.shade = shaded[i];
    chip.faint = pinned && shaded[i] < 0;
    chip.asked = trace.tokens[i].masked;
    const bool both = !trace.between_texts();  // the strip is of the queries, too
    chip.selected = both && here(document.query);
    chip.hovered = here(c.state().hover.key) || (both && here(c.state().hover.query));
    const Touch touch = token_chip(c.ui, trace.tokens[i].label, "token " + std::to_string(i), chip);
    if (touch.hovered) {
      c.hovered.key = token;
      if (const auto says = pinned ? cell_words(c, *pinned, token) : std::nullopt)
        tooltip(c.ui, {says->words, says->provenance, says->source});
    }
    if (touch.clicked && !trace.between_texts())
      c.editor.pin(here(document.query) ? std::nullopt : std::optional(token));
    const Index first = words ? words->tokens_of(position).begin : position;
    if (touch.right_clicked && can_mask(document, c.results(), first))
      c.editor.toggle_masked(static_cast<int>(first), static_cast<int>(token - first + 1));
  });
}

void TokenStrip::draw_capture(const PageContext& c) {
  const Trace& trace = *c.trace();
  const auto pinned = pinned_row(c, selected_map(c));
  const std::string shaded = pinned ? say("shaded by where {} looks", query_word(c.positions(), c.shown(*pinned)))
                                    : said("shaded by attention received");
  if (trace.between_texts()) {
    section(c.ui, said("QUERIES"), say("{} · click to pin", trace.query_tokens.size()));
    queries(c);
    if (trace.sound) return;  // the keys are its stretches
  }
  section(c.ui,
          trace.between_texts() ? said("KEYS")
          : trace.picture       ? said("PATCHES")
          : c.words()           ? said("WORDS")
                                : said("TOKENS"),
          fmt::format("{} · {}", c.positions().tokens.size(), shaded));
  draw(c);
}

}  // namespace headscope
