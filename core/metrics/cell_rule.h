#pragma once
// A rule that says which cells of an attention map are meant, in words close to how one would say them:
//
//   k == q - 1                                    the token before
//   token[k - 1] == token[q] and k <= q           what followed the same token earlier: induction
//   k < 4 and q - k > 8                           far back, at the beginning
//   token[k] == "," or token[k] == "␣and"         (␣ or a space)
//
// Names: q the query's position, k the key's, n the number of tokens; positions count from 0. token[i] is the token at
// position i. Numbers are whole; + - * / % round as C does, and dividing by 0 matches nothing. Comparisons == != < <= >
// >= may be chained (0 < q - k <= 4); tokens compare with == and != only, with another token (the same id) or with a
// text in quotes (what the token stands for; ␣ and a space are the same, \n \t \" \\ as usual). A comparison with a
// token outside the text is false. not binds tighter than and, and tighter than or; && || ! mean the same. abs(x) too.
//
// Thread rule: a parsed rule is an immutable value.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/trace/trace.h"

namespace headscope {

/// What is wrong with a rule, and where: `what()` quotes the rule and points at the place.
struct RuleError : Error {
  RuleError(std::string_view rule, std::size_t from, std::size_t to, const std::string& wanted,
            const std::string& seen);
  std::size_t begin = 0, end = 0;  ///< bytes of the rule
};

class CellRule {
 public:
  /// Throws RuleError.
  explicit CellRule(std::string_view text);

  const std::string& text() const { return text_; }
  /// Whether the cell is meant.
  bool matches(const std::vector<Token>& tokens, Index query, Index key) const;

  struct Node;

 private:
  std::string text_;
  std::shared_ptr<const Node> root_;
};

}  // namespace headscope
