#include "app/render/memory_picture.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "core/attention/mechanism_math.h"
#include "core/base/words.h"

namespace headscope {

namespace {

using Kind = DiagramBox::Kind;
using mechanism::text;

/// "2 · 0.12": how many there are, and what attention gives them together.
std::string count_and_share(Index count, double share) {
  return fmt::format("{} · {:.2f}", count, share);
}

/// The same two as numbers of their own.
void add_count_and_share(std::vector<DiagramNumber>& numbers, const std::string& kind, Index count, double share) {
  numbers.push_back({kind + " tokens", static_cast<double>(count)});
  numbers.push_back({"share of " + kind + " tokens", share});
}

class MemoryPicture {
 public:
  explicit MemoryPicture(const MemoryPaths& paths) : p_(paths) {}

  BoxDiagram made() {
    if (!p_.form) return alone();
    switch (*p_.form) {
      case TitansForm::context:
        return context();
      case TitansForm::gate:
        return gate();
      case TitansForm::layer:
        return layer();
    }
    return alone();
  }

 private:
  void box(std::string id, Kind kind, std::string words, std::string number, std::string tooltip, double column,
           double row, double rows = 1) {
    d_.boxes.push_back(
        {std::move(id), kind, std::move(words), std::move(number), std::move(tooltip), column, row, rows});
  }
  void arrow(std::string id, std::string from, std::string to, std::string words, std::string number,
             std::string tooltip, std::vector<DiagramNumber> numbers, double lane = 0) {
    d_.arrows.push_back({std::move(id), std::move(from), std::move(to), std::move(words), std::move(number),
                         std::move(tooltip), lane, std::move(numbers)});
  }
  void tokens(double row, double rows) {
    const std::string number =
        p_.persistent > 0 && p_.form ? fmt::format("{} + {}", p_.persistent, p_.tokens) : std::to_string(p_.tokens);
    box("tokens", Kind::value, said("tokens"), number,
        say("{} tokens of the text{}", p_.tokens, p_.form ? say(", behind {} persistent ones", p_.persistent) : ""), 0,
        row, rows);
  }
  void memory() {
    box("memory", Kind::memory, said("memory M"), fmt::format("α {}", text(p_.forgetting)),
        say("α: mean of what is lost of it at each token. Surprise ‖∇ loss‖, mean: {}", text(p_.surprise)), 1, 0);
  }
  void attention(const char* reads) { box("attention", Kind::attention, said("attention"), "", reads, 1, 2); }
  void taught() {
    arrow("taught", "tokens", "memory", said("k → v taught, q asks"), say("surprise {}", text(p_.surprise)),
          p_.form ? said("mean ‖∇ loss‖ over the tokens; the persistent ones are taught first")
                  : said("mean ‖∇ loss‖ over the tokens"),
          {{"surprise", p_.surprise}});
  }
  void seen(const char* kind) {
    const std::string own = count_and_share(p_.seen, p_.to_tokens);
    const bool persistent = p_.persistent > 0;  // above the arrow, the others below it
    std::vector<DiagramNumber> numbers;
    if (persistent) add_count_and_share(numbers, "persistent", p_.persistent, p_.to_persistent);
    add_count_and_share(numbers, kind, p_.seen, p_.to_tokens);
    arrow("seen", "tokens", "attention",
          persistent ? say("persistent {}", count_and_share(p_.persistent, p_.to_persistent)) : std::string(said(kind)),
          persistent ? fmt::format("{} {}", said(kind), own) : own,
          said("how many the last token sees · what attention gives them, mean over the tokens"), std::move(numbers));
  }
  void gated(const std::string& asked) {
    box("gate", Kind::gate, said("⊙ gate"), "", said("each number of y times its own between 0 and 1"), 1.85, 1);
    given(2.4, 1);
    arrow("y", "attention", "gate", "y", fmt::format("‖y‖ {}", text(p_.y)), said("mean length of what attention reads"),
          {{"‖y‖", p_.y}});
    arrow("gate", "memory", "gate", fmt::format("σ(N(M({})))", asked), say("mean {:.2f}", p_.gate),
          said("between 0 and 1, a number for each of y"), {{"gate", p_.gate}});
    output("gate");
  }
  void given(double column, double row) {
    box("output", Kind::value, said("output"), fmt::format("‖o‖ {}", text(p_.output)),
        said("what the head gives: mean length"), column, row);
  }
  void output(const char* from) {
    arrow("output", from, "output", "o", "", said("what the head gives"), {{"‖o‖", p_.output}});
  }

  BoxDiagram alone() {
    d_.title = said("Where memory enters: alone");
    d_.remark = said("The head gives what memory answers; attention has no part in it.");
    d_.height = 100;
    tokens(0, 1);
    memory();
    box("output", Kind::value, said("output"), "", said("what the head gives"), 2, 0);
    taught();
    arrow("output", "memory", "output", "M(q)", fmt::format("‖M(q)‖ {}", text(p_.says)), said("mean length"),
          {{"‖M(q)‖", p_.says}});
    return std::move(d_);
  }
  BoxDiagram context() {
    d_.title = said("Where memory enters: as context (MAC)");
    d_.remark = said("Attention reads what memory recalls among its tokens; memory is taught what comes of it.");
    tokens(1, 3);
    memory();
    attention(said("reads persistent tokens, what was recalled, and its own segment"));
    arrow("asked", "tokens", "memory", said("q asks"), fmt::format("‖M(q)‖ {}", text(p_.says)),
          said("mean length of what is recalled of the segments before"), {{"‖M(q)‖", p_.says}});
    seen(to_say("segment"));
    std::vector<DiagramNumber> recalled;
    add_count_and_share(recalled, "recalled", p_.recalled, p_.to_recalled);
    arrow("recalled", "memory", "attention", said("recalled"), count_and_share(p_.recalled, p_.to_recalled),
          said("how many the last token sees · what attention gives them, mean over the tokens"), std::move(recalled),
          -1);
    arrow("taught", "attention", "memory", p_.taught_output ? said("y → y is taught") : said("k → y is taught"),
          say("surprise {}", text(p_.surprise)), said("mean ‖∇ loss‖ over the tokens"), {{"surprise", p_.surprise}}, 1);
    gated(p_.taught_output ? "y" : "q");
    return std::move(d_);
  }
  BoxDiagram gate() {
    d_.title = said("Where memory enters: as gate (MAG)");
    d_.remark = said("Attention reads a window, memory everything; memory's answer lets through or holds back.");
    tokens(1, 3);
    memory();
    attention(said("reads persistent tokens and a window"));
    taught();
    seen(to_say("window"));
    gated("q");
    return std::move(d_);
  }
  BoxDiagram layer() {
    d_.title = said("Where memory enters: as layer (MAL)");
    d_.remark = said("Memory reads first; attention reads, in a window, what memory says in place of the values.");
    tokens(1, 3);
    memory();
    attention(said("reads what memory says, under the tokens' own keys"));
    given(2, 2);
    taught();
    seen(to_say("window"));
    arrow("said", "memory", "attention", said("in place of the values"), fmt::format("‖M(q)‖ {}", text(p_.says)),
          said("mean length of what memory says"), {{"‖M(q)‖", p_.says}});
    output("attention");
    return std::move(d_);
  }

  const MemoryPaths& p_;
  BoxDiagram d_;
};

}  // namespace

BoxDiagram memory_diagram(const MemoryPaths& paths) {
  return MemoryPicture(paths).made();
}

}  // namespace headscope
