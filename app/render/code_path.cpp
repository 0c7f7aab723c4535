#include "app/render/code_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/attention/mechanism_math.h"
#include "core/base/words.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

using mechanism::brief;

class CodePathPicture {
 public:
  CodePathPicture(const MechanismPath& path, double width, const Style& style)
      : path_(path), width_(width), style_(style), t_(style.theme), scale_(style.theme.text_scale) {
    scene_.background = t_.background;
    scene_.width = width;
    scene_.title = say("The way to {}", path.leaf);
  }

  Scene made() {
    way();
    clusters();
    costs();
    scene_.height = std::ceil(y_ + 4);
    return std::move(scene_);
  }

 private:
  void write(double x, double y, const std::string& text, const Font& font, Color color, Anchor anchor = Anchor::start,
             std::string id = "", std::string tip = "") {
    scene_.add({Text{{x, y}, text, font, color, anchor, 0}, std::move(id), std::move(tip)});
  }
  void heading(const std::string& text, const std::string& remark) {
    Font strong = t_.body();
    strong.weight = 600;
    y_ += 15 * scale_;
    write(0, y_, text, strong, t_.text);
    const double after = style_.measure.width(text, strong) + 10;
    write(after, y_, elided(remark, t_.caption(), width_ - after, style_.measure), t_.caption(), t_.muted);
    y_ += 8;
  }

  /// The way along a line; what was not taken hangs off it, 0 above and 1 below.
  void way() {
    std::string code;
    for (const auto& turn : path_.turns) code += static_cast<char>('0' + turn.bit);
    heading(say("The way to {}", path_.leaf),
            say("code {} · {} steps · a branch is taken with σ(±w·h)", code, path_.turns.size()));
    const auto turns = path_.turns.size();
    const double leaf = style_.measure.width(path_.leaf, t_.token()) + 16;
    const double least = 74 * scale_, most = 118 * scale_, from = 14;
    const auto in_line = static_cast<std::size_t>(std::max(1.0, std::floor((width_ - from - leaf - 8) / least)));
    const std::size_t longest = std::min(turns, in_line);
    const double pitch =
        std::clamp((width_ - from - leaf - 8) / static_cast<double>(std::max<std::size_t>(longest, 1)), least, most);
    const double up = 44 * scale_, height = 2 * up + 14;
    double x = from, line = y_ + up + 6;
    for (std::size_t i = 0; i < turns; ++i) {
      if (i > 0 && i % in_line == 0) x = from, line += height;
      turn(i, x, line, pitch);
      x += pitch;
    }
    scene_.add({Box{{x, line - 11 * scale_, leaf, 22 * scale_}, mix(t_.background, t_.accent, 0.25), t_.accent, 1.5, 4},
                "leaf",
                say("{}: probability {} by the tree, frequency {}", path_.leaf, brief(path_.product),
                    brief(path_.frequency))});
    write(x + leaf / 2, line + half_capital(t_.token()), path_.leaf, t_.token(), t_.text, Anchor::middle);
    y_ = line + up + 12;
    std::string product;
    for (std::size_t i = 0; i < turns; ++i) product += (i ? " · " : "") + brief(path_.turns[i].probability);
    for (const std::string& each : wrapped(say("p({}) = {} = {}   (it comes with frequency {})", path_.leaf, product,
                                               brief(path_.product), brief(path_.frequency)),
                                           t_.number(), width_, style_.measure)) {
      y_ += 14 * scale_;
      write(0, y_, each, t_.number(), t_.text);
    }
    y_ += 12;
  }

  void turn(std::size_t i, double x, double line, double pitch) {
    const auto& turn = path_.turns[i];
    const Font small = t_.small_token();
    const double up = 30 * scale_, other_y = line + (turn.bit ? -up : up), other_x = x + 0.42 * pitch;
    scene_.add({Line{{{x, line}, {other_x, other_y}}, t_.faint, 1.25}, "", ""});
    const std::string text = elided(turn.other, small, pitch - 8, style_.measure);
    write(std::max(other_x, style_.measure.width(text, small) / 2), turn.bit ? other_y - 4 : other_y + small.size + 1,
          text, small, t_.muted, Anchor::middle, fmt::format("other.{}", i),
          say("not taken: {} {}, probability {}", turn.other_leaves,
              turn.other_leaves == 1 ? said("word") : said("words"), brief(1 - turn.probability)));
    scene_.add({Line{{{x, line}, {x + pitch, line}}, t_.accent, 2}, "", ""});
    Font strong = small;
    strong.weight = 600;
    write(x + 0.66 * pitch, line - 5, std::to_string(turn.bit), strong, t_.accent, Anchor::middle);
    write(x + 0.66 * pitch, line + small.size + 3, brief(turn.probability), small, t_.text, Anchor::middle);
    scene_.add({Box{{x - 4.5, line - 4.5, 9, 9}, i == 0 ? t_.accent : t_.background, t_.accent, 1.75, 4.5},
                fmt::format("node.{}", i),
                say("{}: branch {} with probability {}; words below it are {:.1f} % of all uses",
                    i == 0 ? said("root") : say("node {}", i), turn.bit, brief(turn.probability), 100 * turn.share)});
  }

  /// Two bars cut at the same places of the ranking: by words, and by how often they come.
  void clusters() {
    if (path_.clusters.empty()) return;
    Index leaves = 0;
    for (const auto& each : path_.clusters) leaves += each.leaves;
    heading(said("Adaptive softmax: clusters by frequency"), said("above their share of the words, below of all uses"));
    const Font font = t_.caption();
    const double side = 44 * scale_, room = width_ - side, high = 20 * scale_;
    const Color colors[] = {t_.accent, t_.value, t_.key};
    for (const bool uses : {false, true}) {
      write(0, y_ + high / 2 + half_capital(font), uses ? said("uses") : said("words"), font, t_.muted);
      double x = side;
      for (std::size_t i = 0; i < path_.clusters.size(); ++i) {
        const auto& each = path_.clusters[i];
        const double share = uses ? each.share : static_cast<double>(each.leaves) / static_cast<double>(leaves);
        const double wide = room * share;
        const Color fill = mix(t_.background, colors[i % std::size(colors)], 0.62);
        scene_.add({Box{{x, y_, std::max(wide - 1, 1.0), high}, fill, {0, 0, 0, 0}, 0, 2},
                    fmt::format("{}.{}", uses ? "cluster.uses" : "cluster", i),
                    say("{}: {} words, {:.1f} % of all uses, scores from {} numbers", each.name, each.leaves,
                        100 * each.share, each.width)});
        const std::string text = uses ? fmt::format("{:.1f} %", 100 * each.share) : fmt::format("{}", each.leaves);
        if (style_.measure.width(text, t_.small_token()) < wide - 6)
          write(x + wide / 2, y_ + high / 2 + half_capital(t_.small_token()), text, t_.small_token(),
                readable_on(fill, t_.dark_ink, t_.light_ink), Anchor::middle);
        x += wide;
      }
      y_ += high + 3;
    }
    double x = side;
    y_ += 12 * scale_;
    for (std::size_t i = 0; i < path_.clusters.size(); ++i) {
      const auto& each = path_.clusters[i];
      scene_.add({Box{{x, y_ - 8, 8, 8}, mix(t_.background, colors[i % std::size(colors)], 0.62), {0, 0, 0, 0}, 0, 2},
                  "", ""});
      const std::string text = say("{}, {} wide", each.name, each.width);
      write(x + 13, y_, text, font, t_.muted);
      x += style_.measure.width(text, font) + 30;
    }
    y_ += 14;
  }

  void costs() {
    if (path_.costs.empty()) return;
    heading(said("Multiply-adds for one token"), said("of the vocabulary above"));
    const Font font = t_.caption();
    double side = 0, most = 1;
    for (const auto& each : path_.costs) {
      side = std::max(side, style_.measure.width(each.name, font) + 12);
      most = std::max(most, each.multiply_adds);
    }
    const double high = 14 * scale_, room = width_ - side - 150 * scale_, plain = path_.costs.front().multiply_adds;
    for (std::size_t i = 0; i < path_.costs.size(); ++i) {
      const auto& each = path_.costs[i];
      const double wide = std::max(1.5, room * each.multiply_adds / most);
      write(0, y_ + high / 2 + half_capital(font), each.name, font, t_.muted);
      scene_.add({Box{{side, y_, wide, high}, i == 0 ? t_.muted : t_.accent, {0, 0, 0, 0}, 0, 2},
                  fmt::format("cost.{}", i), say("{}: {:.0f} multiply-adds", each.name, each.multiply_adds)});
      write(side + wide + 8, y_ + high / 2 + half_capital(t_.number()),
            i == 0 ? fmt::format("{:.0f}", plain)
                   : fmt::format("{:.0f}, ÷ {}", each.multiply_adds, brief(plain / each.multiply_adds)),
            t_.number(), t_.text);
      y_ += high + 5;
    }
    y_ += 8;
  }

  const MechanismPath& path_;
  double width_;
  const Style& style_;
  const Theme& t_;
  double scale_, y_ = 0;
  Scene scene_;
};

}  // namespace

Scene code_path_scene(const MechanismPath& path, double width, const Style& style) {
  return CodePathPicture(path, width, style).made();
}

}  // namespace headscope
