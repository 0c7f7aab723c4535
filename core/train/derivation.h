#pragma once
// One derivation of a Grammar on its way: what has been written, what is still to be expanded, and the memory of who
// was named. A plain value: a search copies it at every choice. Used by language.cpp and language_fit.cpp only.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/train/language.h"

namespace headscope {

class Derivation {
 public:
  /// `target`: the text that must come out, or null when any may. Both must outlive the derivation.
  Derivation(const Grammar& grammar, int start, const std::string_view* target);

  /// Writes until a rule must be chosen for; false when the derivation is complete or has left the target.
  bool advance();
  /// Probability of every alternative of the rule that advance() stopped at; 0 where a condition does not hold.
  std::vector<double> options() const;
  void choose(std::size_t alternative, double probability);
  /// The rule that advance() stopped at.
  const Grammar::Rule& choice() const { return *choice_; }

  /// Everything is expanded and the target, if any, is reached exactly.
  bool complete() const;
  /// How many bytes of the target have come out, in order; all of them where more would follow.
  std::size_t matched() const { return story_.text.size() - (lost_ ? 1 : 0); }
  const Story& story() const { return story_; }
  /// Puts the links into their final order.
  Story take();

 private:
  using Names = std::array<std::int8_t, Grammar::slots>;  // what a letter inside a rule stands for
  struct Marks {
    bool noun = false;
    int subject = 0, verb = 0;  // clause, 0 = none
  };
  struct Frame {
    const Grammar::Alternative* body = nullptr;
    std::size_t at = 0;
    Names names{};
    int draws = -1;    // slot that is being drawn
    Marks marks = {};  // that wait for the whole of what is drawn
  };
  struct Slot {
    std::string text;  // "" = nothing drawn yet
    char feature = 0;
    std::vector<TextSpan> mentions, names;  // names: those that spell the text, whole
  };

  void write(std::string_view text);
  void mark(TextSpan span);
  void mention(int slot, TextSpan span, bool named);
  void finish_draw(const Frame& frame);
  std::size_t append(char c);
  TextSpan first_word(std::size_t from) const;
  std::vector<TextSpan> words_of(TextSpan span) const;
  void link(LinkKind kind, TextSpan from, TextSpan to) { story_.links.push_back({kind, from, to}); }
  bool holds(const Grammar::Condition& condition, const Names& names) const;
  bool taken(const std::string& plain) const;

  const Grammar* grammar_;
  const std::string_view* target_;
  Story story_;
  bool lost_ = false;  // left the target
  std::vector<Frame> stack_;
  const Grammar::Rule* choice_ = nullptr;  // what advance() stopped at
  Names choice_names_{};
  int choice_draws_ = -1;

  std::array<Slot, Grammar::slots> memory_;
  std::array<int, 26> last_;  // by feature: the slot mentioned last, −1 = none
  std::string drawn_;         // text of the draw in progress
  std::optional<std::size_t> drawn_from_;
  bool drawing_ = false;
  char drawn_feature_ = 0;

  Marks marks_;
  std::optional<TextSpan> determiner_;
  std::array<std::optional<TextSpan>, 10> subjects_;
  bool article_ = false, capital_ = false;  // wanted before, or as, the next letter
  bool sentence_start_ = true, in_quotes_ = false;
};

}  // namespace headscope
