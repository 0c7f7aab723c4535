#pragma once
// The parts of a parsed rule, between the file that reads rules and the one that answers them.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/metrics/cell_rule.h"

namespace headscope {

struct CellRule::Node {
  enum class Kind {
    number,
    query,
    key,
    length,
    text,
    token,
    negative,
    absolute,
    add,
    subtract,
    multiply,
    divide,
    remainder,
    compare,
    negation,
    conjunction,
    disjunction
  };
  enum class Order { equal, unequal, less, at_most, greater, at_least };
  enum class Type { number, token, truth };

  Kind kind = Kind::number;
  Order order = Order::equal;  ///< compare
  std::int64_t number = 0;
  std::string text;
  std::vector<std::shared_ptr<const Node>> parts;
  std::size_t begin = 0, end = 0;

  Type type() const {
    if (kind == Kind::text || kind == Kind::token) return Type::token;
    return kind >= Kind::compare ? Type::truth : Type::number;
  }
};

/// No number of a rule is larger; sums and products of such numbers do not overflow before they are cut off.
inline constexpr std::int64_t largest_in_rule = std::int64_t{1} << 40;

/// Throws RuleError.
std::shared_ptr<const CellRule::Node> read_rule(std::string_view rule);

}  // namespace headscope
