#pragma once
// A probabilistic grammar with a memory, read from a text (assets/*.grammar): who was drawn, as what, and who was
// spoken of last. It says only what may follow with which probability; language.h draws texts from it, and finds the
// derivations of a given text.
//
// Form of the file
//   # comment                      a line of its own
//   determiners = a an the         the words that nouns marked with # belong to
//   rule x y = alternative | …     begins in column one; indented lines continue it. x, y: parameters, single letters
//   (3) [x=m] [last x] body        weight (1 if absent), conditions that must all hold, then text and tags:
//     <rule x y>   expands a rule; single letters are names of people and things ("slots")
//     <x:rule>     expands a rule and remembers its text and feature as x; what any slot already holds is not drawn
//     <x>          the text of x again
//     <pro x he>   the word "he", meaning x
//     <an>         "a " or "an ", by the first letter of what follows (and swallows a blank after it)
//     <cap>        the next letter is a capital
//     {m}          the feature of what is being drawn: one lower-case letter
//     #word        a noun: belongs to the last determiner before it in its sentence
//     @word $word  a subject and its verb; @2, $2 (up to 9) for those of clauses inside
//     ^            nothing; _ a space
//   Conditions: [x=m] x has the feature m; [x is dog dogs] x is one of these words; [last x] of all with x's feature, x
//   was mentioned last.
// Blanks are joined into one and dropped at both ends of an alternative. The first letter of a sentence becomes a
// capital by itself, in quotations too.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace headscope {

class Grammar {
 public:
  static constexpr int slots = 26;  ///< a to z
  enum class ItemKind { literal, call, draw, repeat, pronoun, article, capital, feature, noun, subject, verb };
  struct Item {
    ItemKind kind = ItemKind::literal;
    std::string text = {};            ///< literal, pronoun
    int rule = -1;                    ///< call, draw
    int slot = -1;                    ///< draw, repeat, pronoun
    std::vector<int> arguments = {};  ///< slots, for call and draw
    int clause = 1;                   ///< subject, verb: 1 = @, $
    char feature = 0;
  };
  /// [x=m], [x is dog dogs]; with neither feature nor words, [last x].
  struct Condition {
    int slot = 0;
    char feature = 0;
    std::vector<std::string> words = {};  ///< the slot's text is one of them
  };
  struct Alternative {
    double weight = 1;
    std::vector<Condition> conditions;
    std::vector<Item> items;
    std::string plain;  ///< the text when the body is nothing but text (and a feature), else ""
  };
  struct Rule {
    std::string name;
    std::vector<int> parameters;
    std::vector<Alternative> alternatives;
  };

  /// Throws Error naming `where`, line and rule on anything that is not of this form: unknown rules, wrong numbers of
  /// arguments, weights that are not positive, rules that call themselves, a draw inside a draw.
  static Grammar parse(std::string_view text, const std::string& where);
  /// assets/stories.grammar, built in.
  static const Grammar& stories();
  /// The grammars that are built in, by name: "stories", "everyday" (assets/<name>.grammar).
  static const std::vector<std::string>& names();
  /// Throws Error at `where` when none is called so.
  static const Grammar& named(std::string_view name, const std::string& where);

  const std::vector<Rule>& rules() const { return rules_; }
  /// Throws Error when there is no such rule.
  int rule(std::string_view name) const;
  bool determiner(std::string_view word) const { return determiners_.contains(std::string(word)); }

 private:
  std::vector<Rule> rules_;
  std::unordered_set<std::string> determiners_;
};

}  // namespace headscope
