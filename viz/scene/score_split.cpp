#include "viz/scene/score_split.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/trace/hook_names.h"
#include "viz/scene/annotations.h"
#include "viz/scene/part_bars.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

constexpr Index most_steps_tokens = 512;

const AttentionMap& factored_map(const Trace& trace, HeadId head) {
  const AttentionMap& map = map_of(trace, head);
  if (!map.is_factored())
    throw Error(map_name(trace, map.id()), "queries and keys, of which scores are made", "weights alone",
                "imported and edited patterns have no scores");
  return map;
}

double score(const AttentionMap& map, Index query, Index key) {
  double sum = 0;
  for (Index c = 0; c < map.q().dim(1); ++c)
    sum += static_cast<double>(map.q().at(query, c)) * static_cast<double>(map.k().at(key, c));
  return sum * static_cast<double>(map.scale());
}

}  // namespace

std::vector<double> score_parts(const AttentionMap& map, Index query, Index key, bool rotary) {
  const Index d = map.q().dim(1), parts = rotary ? d / 2 : d;
  std::vector<double> out(static_cast<std::size_t>(parts));
  for (Index c = 0; c < d; ++c)
    nth(out, c % parts) += static_cast<double>(map.scale()) * static_cast<double>(map.q().at(query, c)) *
                           static_cast<double>(map.k().at(key, c));
  return out;
}

Scene head_steps_scene(const Trace& trace, const HeadStepsOptions& options, const Style& style) {
  const Theme& theme = style.theme;
  const AttentionMap& map = factored_map(trace, options.head);
  const Index n = map.n_query(), m = map.n_key();
  if (std::max(n, m) > most_steps_tokens)
    throw Error("steps", fmt::format("at most {} tokens", most_steps_tokens), std::to_string(std::max(n, m)),
                "shorten the text, or look at one cell in q·k");

  // The three stages as cells: every score, the scores that the rule leaves (with its bias), the weights.
  MapCells scores, allowed, weights;
  for (MapCells* cells : {&scores, &allowed, &weights}) {
    cells->n_query = n;
    cells->n_key = m;
    cells->values = Tensor::zeros({n, m});
  }
  allowed.masked.assign(static_cast<std::size_t>(n * m), 0);
  weights.masked = allowed.masked;
  const Tensor pattern = map.to_dense();
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < m; ++j) {
      const auto s = static_cast<float>(score(map, i, j));
      scores.values.ref(i, j) = s;
      float left = s;  // a rule may multiply as well as add
      const bool hidden = map.masked(i, j);
      if (!hidden && map.rule() && !map.rule()->plain()) map.rule()->apply(map.place().offset + i, j, {&left, 1});
      allowed.values.ref(i, j) = hidden ? 0.0f : left;
      weights.values.ref(i, j) = pattern.at(i, j);
      nth(allowed.masked, i * m + j) = nth(weights.masked, i * m + j) = hidden;
    }
  float largest = 1e-6f;
  for (const float s : scores.values.values()) largest = std::max(largest, std::abs(s));
  const ColorNorm score_norm{Scale::linear, -largest, largest}, weight_norm{Scale::linear, 0, 1};

  Scene scene;
  scene.background = theme.background;
  scene.width = options.width;
  scene.title = say("Layer {} Head {}: scores, mask, softmax", options.head.layer, options.head.head);
  const double gap = 36, side = std::floor((options.width - 2 * gap) / 3), line = std::round(16 * theme.text_scale);
  const double cell = std::max(1.0, std::floor(side / static_cast<double>(std::max(n, m))));
  struct Stage {
    const char *title, *formula, *id;
    const MapCells* cells;
    ColorNorm norm;
    const char* bar;
  };
  const std::string rule = map.rule() ? map.rule()->describe() : said("no mask known");
  const std::string scale = fmt::format("{} · q·k", short_number(static_cast<double>(map.scale()), 3));
  const std::string masked = say("mask: {}", rule);
  const Stage stages[] = {{said("1  Scores"), scale.c_str(), "scores", &scores, score_norm, said("score")},
                          {said("2  Masked scores"), masked.c_str(), "allowed", &allowed, score_norm, said("score")},
                          {said("3  Softmax of each row"), said("exp(s − max) ÷ sum"), "weights", &weights, weight_norm,
                           said("attention weight")}};
  Font title = theme.body();
  title.weight = 600;
  double bottom = 0;
  for (int s = 0; s < 3; ++s) {
    const Stage& stage = stages[s];
    const double x = s * (side + gap);
    scene.add(
        {Text{{x, line}, stage.title, title, theme.text, Anchor::start, 0}, fmt::format("title.{}", stage.id), ""});
    scene.add({Text{{x, 2 * line},
                    elided(stage.formula, theme.caption(), side, style.measure),
                    theme.caption(),
                    theme.muted,
                    Anchor::start,
                    0},
               "", stage.formula});
    const Rect rect{x, 2 * line + 10, cell * static_cast<double>(m), cell * static_cast<double>(n)};
    Heatmap drawn = heatmap_of(*stage.cells, rect, stage.norm, theme);
    drawn.gap = cell >= 6 ? 1 : 0;
    scene.add({std::move(drawn), stage.id,
               fmt::format("{}[{}]",
                           name(Site{s == 2 ? SiteKind::pattern : SiteKind::attn_scores, options.head.layer},
                                trace.model.stack, HookNames::transformer_lens),
                           options.head.head)});
    const double y = add_color_bar(scene,
                                   {stage.bar, stage.norm, s == 2 ? theme.sequential : theme.diverging,
                                    s == 2 ? 1.0 : static_cast<double>(largest), s > 0, false},
                                   x, rect.bottom() + 14, side, style);
    bottom = std::max(bottom, y);
    if (s < 2)
      scene.add({Text{{x + side + gap / 2, rect.y + rect.h / 2}, "→", theme.title(), theme.faint, Anchor::middle, 0},
                 "", ""});
  }
  scene.height = std::ceil(bottom + 4);
  return scene;
}

Scene score_split_scene(const Trace& trace, const ScoreSplitOptions& options, const Style& style) {
  const Theme& theme = style.theme;
  const AttentionMap& map = factored_map(trace, options.head);
  if (options.query < 0 || options.query >= map.n_query() || options.key < 0 || options.key >= map.n_key())
    throw Error("q·k of a cell", fmt::format("a query below {} and a key below {}", map.n_query(), map.n_key()),
                fmt::format("{}, {}", options.query, options.key));
  const std::vector<double> parts = score_parts(map, options.query, options.key, options.rotary);
  double total = 0, q_norm = 0, k_norm = 0;
  for (const double part : parts) total += part;
  for (Index c = 0; c < map.q().dim(1); ++c) {
    q_norm += std::pow(static_cast<double>(map.q().at(options.query, c)), 2);
    k_norm += std::pow(static_cast<double>(map.k().at(options.key, c)), 2);
  }
  q_norm = std::sqrt(q_norm);
  k_norm = std::sqrt(k_norm);
  const double raw = total / static_cast<double>(map.scale());

  Scene scene;
  scene.background = theme.background;
  scene.width = options.width;
  scene.title = said("q·k by dimension");
  Font title = theme.body();
  title.weight = 600;
  const double line = std::round(16 * theme.text_scale);
  scene.add({Text{{0, line},
                  say("Why {} looks at {}", token_label(trace, options.query), token_label(trace, options.key)),
                  title,
                  theme.text,
                  Anchor::start,
                  0},
             "title", ""});
  // What distance adds, where it meets queries and keys; the product of contents is a part of the score then.
  const auto distances = map.rule() && !map.masked(options.query, options.key)
                             ? map.rule()->distance_terms(map.place().offset + options.query, options.key)
                             : std::nullopt;
  const std::string cosine = short_number(q_norm * k_norm > 0 ? raw / (q_norm * k_norm) : 0, 3),
                    factor = short_number(static_cast<double>(map.scale()), 3);
  const std::string sum = distances ? say("c→c {} = {} · ‖q‖ {} · ‖k‖ {} · cos θ {}", short_number(total, 4), factor,
                                          short_number(q_norm, 3), short_number(k_norm, 3), cosine)
                                    : say("score {} = {} · ‖q‖ {} · ‖k‖ {} · cos θ {}", short_number(total, 4), factor,
                                          short_number(q_norm, 3), short_number(k_norm, 3), cosine);
  scene.add({Text{{0, 2 * line},
                  elided(sum, theme.number(), options.width, style.measure),
                  theme.number(),
                  theme.muted,
                  Anchor::start,
                  0},
             "sum", ""});
  double below = 3 * line;
  if (distances) {
    const std::string terms =
        say("score {} = c→c {} + c→p {} + p→c {}",
            short_number(total + distances->content_to_position + distances->position_to_content, 4),
            short_number(total, 4), short_number(distances->content_to_position, 4),
            short_number(distances->position_to_content, 4));
    scene.add({Text{{0, below},
                    elided(terms, theme.number(), options.width, style.measure),
                    theme.number(),
                    theme.text,
                    Anchor::start,
                    0},
               "distances", terms});
    below += line;
  }
  scene.add(
      {Text{{0, below},
            distances
                ? say("c: content, p: vectors of the distance, row {}; below c→c by dimension, sorted", distances->row)
            : options.rotary ? said("the part of every rotary pair, sorted; all parts add up to the score")
                             : said("the part of every dimension of the head, sorted; all parts add up to the score"),
            theme.caption(),
            theme.faint,
            Anchor::start,
            0},
       "", ""});
  add_part_bars(scene, {parts, options.rotary ? "p" : "", options.rotary ? to_say("pair") : to_say("dimension")},
                {0, below + 22, options.width, options.height - below - 44}, style);
  scene.height = options.height;
  return scene;
}

}  // namespace headscope
