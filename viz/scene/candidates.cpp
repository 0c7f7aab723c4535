#include "viz/scene/candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/words.h"
#include "viz/color/color_norm.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

std::string percent(double share) {
  const double value = 100 * share;
  return value >= 99.95 ? "100" : fmt::format("{:.1f}", value);
}

const char* cut_words(Candidate::Cut cut) {
  switch (cut) {
    case Candidate::Cut::top_k:
      return "top-k";
    case Candidate::Cut::top_p:
      return "top-p";
    case Candidate::Cut::greedy:
      return said("greedy");
    case Candidate::Cut::none:
      break;
  }
  return "";
}

class Painter {
 public:
  Painter(Scene& scene, const CandidatesOptions& options, const Style& style)
      : scene_(scene), o_(options), style_(style), t_(style.theme) {
    row_ = std::round(23 * t_.text_scale);
    rank_width_ = style.measure.width("999", t_.small_token()) + 8;
    for (const Candidate& each : o_.first)
      label_width_ = std::max(label_width_, style.measure.width(printable(each.label), t_.token()));
    label_width_ = std::clamp(label_width_, 34.0, 0.32 * o_.width);
    number_width_ = std::ceil(style.measure.width("100", t_.number()) + style.measure.width(" → ", t_.number()) +
                              style.measure.width("99.9", t_.number()) + 8);
    for (const Candidate& each : o_.first) largest_ = std::max({largest_, each.plain, each.kept});
  }

  double rows(double y) {
    for (std::size_t i = 0; i < o_.first.size(); ++i) y = row(o_.first[i], i, y);
    if (o_.chosen_far) y = row(*o_.chosen_far, o_.chosen_rank, y + 4);
    double shown = 0;
    for (const Candidate& each : o_.first) shown += each.plain;
    if (o_.vocabulary > o_.first.size()) {
      const std::string rest = say("… {} more of {}, together {} %", o_.vocabulary - o_.first.size(), o_.vocabulary,
                                   percent(std::max(0.0, 1 - shown)));
      text({rank_width_, y + row_ / 2 + half_capital(t_.caption())}, rest, t_.caption(), t_.faint);
      y += row_;
    }
    return y;
  }

  /// The unit interval, a stretch for each token that is drawn from, and the number that was drawn.
  double cumulative(double y) {
    const double line = std::round(15 * t_.text_scale), height = std::round(20 * t_.text_scale);
    text({0, y + line - 4}, said("CUMULATIVE DISTRIBUTION"), t_.caption(), t_.muted);
    y += line + 8;
    double sum = 0;
    std::size_t index = 0;
    for (const Candidate& each : o_.first) {
      if (each.kept <= 0) continue;
      const double x = sum * o_.width, w = each.kept * o_.width;
      const bool chosen = o_.chosen == each.id;
      const Color fill = chosen ? t_.accent : mix(t_.masked, t_.muted, index++ % 2 == 0 ? 0.5 : 0.28);
      scene_.add({Box{{x, y, std::max(w - 1, 0.6), height}, fill, {0, 0, 0, 0}, 0, 0},
                  fmt::format("stretch.{}", each.id),
                  fmt::format("{}: {} … {}", each.label, short_number(sum, 4), short_number(sum + each.kept, 4))});
      const std::string label = elided(printable(each.label), t_.small_token(), w - 6, style_.measure);
      if (w > 22 && !label.empty() && label != "…")
        text({x + w / 2, y + height / 2 + half_capital(t_.small_token())}, label, t_.small_token(),
             readable_on(fill, t_.dark_ink, t_.light_ink), Anchor::middle);
      sum += each.kept;
    }
    if (sum < 0.9995)
      scene_.add({Box{{sum * o_.width, y, (1 - sum) * o_.width, height}, t_.masked, {0, 0, 0, 0}, 0, 0}, "stretch.rest",
                  say("{} tokens more: {} … 1", o_.kept - std::min(o_.kept, o_.first.size()), short_number(sum, 4))});
    double bottom = y + height;
    if (o_.random) {
      const double x = *o_.random * o_.width;
      scene_.add({Line{{{x, y - 5}, {x, bottom + 5}}, t_.text, 2}, "random",
                  said("the seed's number for this step: the first token whose cumulative share exceeds it is taken")});
      const std::string said = fmt::format("{:.4f}", *o_.random);
      const double half = style_.measure.width(said, t_.number()) / 2;
      text({std::clamp(x, half, std::max(half, o_.width - half)), bottom + 5 + line}, said, t_.number(), t_.text,
           Anchor::middle);
    }
    const bool low = o_.random && *o_.random < 0.16, high = o_.random && *o_.random > 0.84;
    if (!low) text({0, bottom + 5 + line}, "0", t_.number(), t_.faint);
    if (!high) text({o_.width, bottom + 5 + line}, "1", t_.number(), t_.faint, Anchor::end);
    return bottom + line + 10;
  }

 private:
  double row(const Candidate& each, std::size_t rank, double y) {
    const bool cut = each.kept <= 0, chosen = o_.chosen == each.id;
    const double middle = y + row_ / 2;
    const Color ground = chosen ? mix(t_.background, t_.accent, 0.22) : t_.background;
    scene_.add({Box{{0, y + 0.5, o_.width, row_ - 1}, ground, {0, 0, 0, 0}, 0, 4}, fmt::format("candidate.{}", each.id),
                say("{} (token {}), rank {}\nprobability {}: softmax of the logits over all {} tokens\n{}\n"
                    "click to go on with it in a new branch",
                    each.label, each.id, rank + 1, short_number(each.plain, 5), o_.vocabulary,
                    cut ? say("cut by {}", cut_words(each.cut))
                        : say("drawn with {}: after temperature and cuts, divided by what is left",
                              short_number(each.kept, 5))),
                VocabularyToken{each.id}});
    const Color ink = cut ? t_.faint : t_.text;
    text({rank_width_ - 8, middle + half_capital(t_.small_token())}, std::to_string(rank + 1), t_.small_token(),
         t_.faint, Anchor::end);
    text({rank_width_, middle + half_capital(t_.token())},
         elided(printable(each.label), t_.token(), label_width_, style_.measure), t_.token(), ink);
    const double x = rank_width_ + label_width_ + 10, end = std::max(x + 20, o_.width - number_width_ - 8);
    const auto length = [&](double share) { return std::max((end - x) * share / std::max(largest_, 1e-9), 1.0); };
    const double thick = std::round(6 * t_.text_scale);
    scene_.add({Box{{x, middle - thick, length(each.plain), thick - 1}, t_.faint, {0, 0, 0, 0}, 0, 1.5}, "", ""});
    if (!cut) scene_.add({Box{{x, middle, length(each.kept), thick - 1}, t_.accent, {0, 0, 0, 0}, 0, 1.5}, "", ""});
    const double baseline = middle + half_capital(t_.number());
    const double last = style_.measure.width("99.9", t_.number());
    const double arrow = style_.measure.width(" → ", t_.number());
    text({o_.width - 4 - last - arrow, baseline}, percent(each.plain), t_.number(), cut ? t_.faint : t_.muted,
         Anchor::end);
    text({o_.width - 4 - last - arrow / 2, baseline}, "→", t_.number(), t_.faint, Anchor::middle);
    if (cut)
      text({o_.width - 4, middle + half_capital(t_.caption())}, cut_words(each.cut), t_.caption(), t_.faint,
           Anchor::end);
    else
      text({o_.width - 4, baseline}, percent(each.kept), t_.number(), t_.text, Anchor::end);
    return y + row_;
  }

  void text(Point at, std::string words, const Font& font, Color color, Anchor anchor = Anchor::start) {
    scene_.add({Text{at, std::move(words), font, color, anchor, 0}, "", ""});
  }

  Scene& scene_;
  const CandidatesOptions& o_;
  const Style& style_;
  const Theme& t_;
  double row_ = 22, rank_width_ = 0, label_width_ = 0, number_width_ = 0, largest_ = 0;
};

}  // namespace

Scene candidates_scene(const CandidatesOptions& options, const Style& style) {
  Scene scene;
  scene.background = style.theme.background;
  scene.width = options.width;
  scene.title = said("how the next token is chosen");
  Painter painter(scene, options, style);
  const double line = std::round(15 * style.theme.text_scale);
  scene.add({Text{{options.width - 4, line - 4},
                  said("model → drawn from, %"),
                  style.theme.caption(),
                  style.theme.faint,
                  Anchor::end,
                  0},
             "", ""});
  SceneSeries plain{"probability by rank", {}, {}, {}}, kept{"drawn with, by rank", {}, {}, {}};
  const auto tell = [&](const Candidate& each, std::size_t rank) {
    plain.x.push_back(static_cast<double>(rank + 1));
    plain.y.push_back(each.plain);
    plain.labels.push_back(each.label);
    kept.y.push_back(each.kept);
  };
  for (std::size_t i = 0; i < options.first.size(); ++i) tell(options.first[i], i);
  if (options.chosen_far) tell(*options.chosen_far, options.chosen_rank);
  kept.x = plain.x;
  kept.labels = plain.labels;
  scene.series = {std::move(plain), std::move(kept)};
  const double y = painter.rows(line + 2);
  scene.height = std::ceil(painter.cumulative(y + 8));
  return scene;
}

}  // namespace headscope
