// The right column's end: what the model says next, and what the edits changed about it.

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/next_panel.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/metrics/next_token.h"
#include "core/text/tokenizer.h"
#include "viz/scene/line_chart.h"

namespace headscope {

namespace {

std::string label_of(const Results& results, std::int32_t id) {
  return results.model.tokenizer && id < results.model.tokenizer->vocab_size()
             ? results.model.tokenizer->token(id).label
             : std::to_string(id);
}

/// "1.24", or "1.24 → 0.87" once there is something to compare with.
std::string before_after(const EditEffect* effect, double before, double now) {
  return effect ? fmt::format("{:.3f} → {:.3f}", before, now) : fmt::format("{:.3f}", now);
}

}  // namespace

const NextPanel::Asked& NextPanel::asked(const PageContext& c, const EditEffect* effect) {
  constexpr int listed = 20;
  const TracedRun& run = *c.results().run;
  const auto before = effect ? effect->whole_before : nullptr, after = effect ? effect->whole_after : nullptr;
  const auto tokens = static_cast<Index>(run.whole->tokens.size());
  const Index usual = answer_position(*run.whole).value_or(tokens - 1);
  const Index pinned = run.trace == run.whole ? c.state().document.query.value_or(usual) : usual;
  const bool masked = pinned < tokens && nth(run.whole->tokens, pinned).masked;
  const Index at = masked ? pinned : usual;
  if (asked_.of == run.whole && asked_.before == before && asked_.after == after && asked_.at == at) return asked_;
  const int row = static_cast<int>(at);
  asked_ = {run.whole, before, after, at, at == usual ? run.next : top_next(*run.trace, listed, row), {}};
  if (effect) asked_.change = at == usual ? effect->change : next_token_change(*before, *after, listed, row, row);
  return asked_;
}

std::optional<std::pair<std::int32_t, std::int32_t>> NextPanel::contrasted(const PageContext& c,
                                                                           const EditEffect* effect) {
  const Asked& answer = asked(c, effect);
  if (c.state().view.contrast || answer.at == answer_position(*answer.of)) return contrast_of(c.state(), c.results());
  // Of another masked token: the two most probable ones there.
  if (answer.next.size() < 2) return std::nullopt;
  return std::pair{answer.next[0].id, answer.next[1].id};
}

void NextPanel::tokens(const PageContext& c, const EditEffect* effect) {
  const Asked& answer = asked(c, effect);
  const Trace& trace = *answer.of;
  const Index at = answer.at;
  const Token& answered = nth(trace.tokens, at);
  switch (trace.model.objective) {
    case Objective::next_token:
      section(c.ui, said("NEXT TOKEN"), effect ? said("before → after, %") : said("after the last token"));
      break;
    case Objective::masked_token:
      section(
          c.ui, said("MASKED TOKEN"),
          !answered.masked
              ? ""
              : fmt::format("{}{}{}", at, answered.original < 0 ? "" : " " + label_of(c.results(), answered.original),
                            effect ? fmt::format(" · {}", said("before → after, %")) : ""));
      if (answered.masked) break;
      return note(c.ui,
                  c.results().model.tokenizer && c.results().model.tokenizer->mask()
                      ? say("No token is masked. Right click one in the prompt, or pin it and press K; or write {} in "
                            "the text.",
                            label_of(c.results(), *c.results().model.tokenizer->mask()))
                      : said("No token is masked. Right click one in the prompt, or pin it and press K."));
    case Objective::image_class:
      section(c.ui, said("CLASS"), effect ? said("before → after, %") : said("of the picture"));
      break;
    case Objective::nothing:
      section(c.ui, said("NO LOGITS"));
      return note(c.ui, trace.picture ? said("This file ends with the last block: it tells no classes.")
                                      : said("This file ends with the last block: it tells no tokens."));
  }
  const char* const of = trace.picture ? said("class") : said("token");
  std::vector<Bar> bars;
  std::vector<std::int32_t> ids;
  if (effect) {
    double largest = 1e-9;
    for (const auto& token : answer.change.tokens) largest = std::max({largest, token.before, token.after});
    for (const auto& token : answer.change.tokens) {
      if (bars.size() == 6) break;
      ids.push_back(token.id);
      bars.push_back({label_of(c.results(), token.id), token.after / largest, token.before / largest,
                      fmt::format("{:.1f} → {:.1f}", 100 * token.before, 100 * token.after),
                      say("{} {}: probability {:.5f} → {:.5f}; click, right click: the first and second of "
                          "the logit difference",
                          of, token.id, token.before, token.after)});
    }
  } else {
    const double largest = answer.next.empty() ? 1 : answer.next.front().probability;
    for (const NextToken& token : answer.next) {
      if (bars.size() == 6) break;
      ids.push_back(token.id);
      bars.push_back({label_of(c.results(), token.id), token.probability / largest, -1,
                      fmt::format("{:.1f} %", 100 * token.probability),
                      say("{} {}: softmax of the logits over the full vocabulary, logit {:.3f}; click, "
                          "right click: the first and second of the logit difference",
                          of, token.id, token.logit)});
    }
  }
  const BarClick click = bar_list(c.ui, "next tokens", bars);
  if (const int which = std::max(click.left, click.right); which >= 0) {
    auto pair = contrasted(c, effect).value_or(std::pair{ids.front(), ids.back()});
    (click.left >= 0 ? pair.first : pair.second) = nth(ids, which);
    c.editor.view().contrast = pair;
  }
  if (effect)
    fact(c.ui, said("KL(before ‖ after)"), say("{:.4f} nats", answer.change.kl), nullptr,
         {said("KL divergence of these distributions"), said("Σ p ln(p / q) over the full vocabulary")});
}

void NextPanel::masked(const PageContext& c, const EditEffect* effect) {
  const std::vector<MaskedAnswer>& all = c.results().run->masked;
  if (all.size() < 2) return;
  const auto known = std::ranges::count_if(all, [](const MaskedAnswer& each) { return each.original >= 0; });
  section(c.ui, said("ALL MASKED TOKENS"),
          known > 0 ? say("{} of {} told right", std::ranges::count_if(all, &MaskedAnswer::right), known)
                    : fmt::format("{}", all.size()));
  const bool same =
      effect && std::ranges::equal(effect->masked_before, all, {}, &MaskedAnswer::position, &MaskedAnswer::position);
  constexpr std::size_t most = 12;
  std::vector<Bar> bars;
  for (std::size_t i = 0; i < std::min(all.size(), most); ++i) {
    const MaskedAnswer& each = all[i];
    const bool both = same && each.original >= 0;  // what is unknown has no probability to follow
    const std::string best = label_of(c.results(), each.best.id);
    const auto share = [&](const MaskedAnswer& of) {
      return of.original >= 0 ? of.original_probability : of.best.probability;
    };
    const double now = share(each), before = both ? share(nth(effect->masked_before, i)) : -1;
    const std::string was = each.original >= 0 ? label_of(c.results(), each.original) : "";
    bars.push_back(
        {each.right() || each.original < 0 ? fmt::format("{} {}", each.position, best)
                                           : fmt::format("{} {} ≠ {}", each.position, best, was),
         now, before,
         both ? fmt::format("{:.1f} → {:.1f}", 100 * before, 100 * now) : fmt::format("{:.1f} %", 100 * now),
         say("position {}: most probable {} ({:.5f}){}; softmax of logits[{}] over the full vocabulary; click "
             "pins the token",
             each.position, best, each.best.probability,
             each.original >= 0 ? say(", {} stood there ({:.5f}{})", was, both ? before : each.original_probability,
                                      both ? fmt::format(" → {:.5f}", now) : "")
                                : "",
             each.position)});
  }
  if (const BarClick click = bar_list(c.ui, "masked tokens", bars); click.left >= 0)
    c.editor.pin(nth(all, click.left).position);
  if (all.size() > most) note(c.ui, say("… and {} more; pin one in the prompt.", all.size() - most));
}

void NextPanel::contrast(const PageContext& c, const EditEffect* effect) {
  const auto pair = contrasted(c, effect);
  if (!pair) return;
  const Index at = asked(c, effect).at;
  const Trace& trace = *c.whole();
  if (trace.model.objective == Objective::masked_token && !nth(trace.tokens, at).masked) return;
  const bool decoder = trace.model.objective == Objective::next_token;
  const auto of = [&](const Trace& run) {
    return logit_difference(run, pair->first, pair->second, static_cast<int>(at));
  };
  fact(c.ui, fmt::format("{} − {}", label_of(c.results(), pair->first), label_of(c.results(), pair->second)),
       before_after(effect, effect ? of(*effect->whole_before) : 0, of(trace)), nullptr,
       {say("difference of two logits {}", decoder         ? said("after the last token")
                                           : trace.picture ? said("of the picture's classes")
                                                           : said("of the masked token")),
        fmt::format("logits[{0}, {1}] − logits[{0}, {2}], F32", decoder ? "−1" : std::to_string(at), pair->first,
                    pair->second),
        said("click a token above for the first of the two, right click for the second")});
}

void NextPanel::losses(const PageContext& c, const EditEffect* effect) {
  // Those of a moment ago stay while a slider moves; not those of another text.
  const std::shared_ptr<const TextLosses> losses = c.results().losses;
  const Trace& shown = *c.whole();
  if (!losses || losses->now.empty() || losses->trace->text != shown.text ||
      losses->trace->tokens.size() != shown.tokens.size() || losses->trace->model.name != shown.model.name)
    return;
  const bool both = effect && losses->before.size() == losses->now.size();
  const double now = mean_loss(losses->now);
  fact(c.ui, said("Loss on this text"),
       before_after(both ? effect : nullptr, both ? mean_loss(losses->before) : 0, now), nullptr,
       {say("{}, nats", said(prediction_words(shown.model.objective).loss)),
        say("from logits, F32; perplexity {:.2f}", std::exp(now))});
  if (losses->now.size() < 2) return;
  const double width = std::floor(c.room());
  slot_.want(c.jobs, c.ui, losses, fmt::format("{} {}", width, both), [losses, both, width](const Style& style) {
    LineChart chart;
    chart.width = width;
    chart.height = 104;
    chart.y_title = both ? said("loss per token, nats: before, after") : said("loss per token, nats");
    chart.y_low = 0;
    const auto series = [&](Color color, const std::vector<double>& y) {
      return ChartSeries{"", color, target_positions(*losses->trace), y};
    };
    if (both) chart.series.push_back(series(style.theme.faint, losses->before));
    chart.series.push_back(series(style.theme.accent, losses->now));
    return line_chart_scene(chart, style);
  });
  slot_.draw(c.ui, "loss", {}, width, 104);
}

void NextPanel::moved_heads(const PageContext& c, const EditEffect& effect) {
  std::vector<std::size_t> order(effect.moved.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::erase_if(order, [&](std::size_t i) { return !(effect.moved[i] >= 0.0005); });
  std::ranges::stable_sort(order, std::ranges::greater{}, [&](std::size_t i) { return effect.moved[i]; });
  section(c.ui, said("HEADS THAT MOVED"), order.empty() ? said("none") : said("share of their weight; click selects"));
  std::vector<Bar> bars;
  for (const std::size_t i : order) {
    if (bars.size() == 5) break;
    const AttentionMap& map = effect.before->maps[i];
    bars.push_back({fmt::format("L{} H{}", map.layer(), map.head()), effect.moved[i], -1,
                    fmt::format("{:.3f}", effect.moved[i]),
                    said("mean over queries of ½ Σ |after − before|: 0 the same pattern, 1 no weight in common")});
  }
  const BarClick click = bar_list(c.ui, "moved heads", bars);
  if (click.left < 0) return;
  const AttentionMap& map = effect.before->maps[nth(order, click.left)];
  c.editor.select({map.layer(), map.head()});
}

void NextPanel::draw(const PageContext& c) {
  answer(c);
  details(c);
}

void NextPanel::answer(const PageContext& c) {
  if (c.results().run) tokens(c, compared(c));
}

void NextPanel::details(const PageContext& c) {
  if (!c.results().run) return;
  const EditEffect* effect = compared(c);
  masked(c, effect);
  contrast(c, effect);
  if (effect) moved_heads(c, *effect);
  losses(c, effect);
}

}  // namespace headscope
