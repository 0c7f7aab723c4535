#include "core/metrics/cell_rule.h"

#include <fmt/format.h>

#include <cstdlib>
#include <optional>
#include <utility>

#include "core/base/excerpt.h"
#include "core/base/nth.h"
#include "core/metrics/cell_rule_node.h"

namespace headscope {

namespace {

using Node = CellRule::Node;
using Kind = Node::Kind;
using Order = Node::Order;
using Type = Node::Type;
using Whole = std::int64_t;
constexpr Whole largest = largest_in_rule;

/// One cell that a rule is asked about.
struct Cell {
  const std::vector<Token>& tokens;
  Whole query, key;

  /// nullopt: the number does not exist (division by 0).
  std::optional<Whole> number(const Node& node) const {
    switch (node.kind) {
      case Kind::number:
        return node.number;
      case Kind::query:
        return query;
      case Kind::key:
        return key;
      case Kind::length:
        return static_cast<Whole>(tokens.size());
      default:
        break;
    }
    const auto a = number(*node.parts[0]);
    if (!a) return a;
    if (node.kind == Kind::negative) return -*a;
    if (node.kind == Kind::absolute) return std::abs(*a);
    const auto b = number(*node.parts[1]);
    if (!b) return b;
    const auto cut = [](double exact, Whole value) {
      return exact > static_cast<double>(largest) || exact < -static_cast<double>(largest) ? std::nullopt
                                                                                           : std::optional(value);
    };
    const auto x = static_cast<double>(*a), y = static_cast<double>(*b);
    switch (node.kind) {
      case Kind::add:
        return cut(x + y, *a + *b);
      case Kind::subtract:
        return cut(x - y, *a - *b);
      case Kind::multiply:
        if (x * y > static_cast<double>(largest) || x * y < -static_cast<double>(largest)) return std::nullopt;
        return *a * *b;
      case Kind::divide:
        return *b == 0 ? std::nullopt : std::optional(*a / *b);
      case Kind::remainder:
        return *b == 0 ? std::nullopt : std::optional(*a % *b);
      default:
        return std::nullopt;
    }
  }

  const Token* token(const Node& node) const {
    const auto at = number(*node.parts[0]);
    if (!at || *at < 0 || *at >= static_cast<Whole>(tokens.size())) return nullptr;
    return &nth(tokens, *at);
  }

  bool compare_tokens(const Node& node) const {
    const bool wanted = node.order == Order::equal;
    const Node *a = node.parts[0].get(), *b = node.parts[1].get();
    if (a->kind == Kind::text) std::swap(a, b);
    const Token* left = token(*a);
    if (!left) return false;
    if (b->kind == Kind::text)
      return (left->bytes == b->text || (left->bytes.empty() && left->label == b->text)) == wanted;
    const Token* right = token(*b);
    return right && (left->id == right->id) == wanted;
  }

  bool truth(const Node& node) const {
    switch (node.kind) {
      case Kind::negation:
        return !truth(*node.parts[0]);
      case Kind::conjunction:
        return truth(*node.parts[0]) && truth(*node.parts[1]);
      case Kind::disjunction:
        return truth(*node.parts[0]) || truth(*node.parts[1]);
      default:
        break;
    }
    if (node.parts[0]->type() == Type::token) return compare_tokens(node);
    const auto a = number(*node.parts[0]), b = number(*node.parts[1]);
    if (!a || !b) return false;
    switch (node.order) {
      case Order::equal:
        return *a == *b;
      case Order::unequal:
        return *a != *b;
      case Order::less:
        return *a < *b;
      case Order::at_most:
        return *a <= *b;
      case Order::greater:
        return *a > *b;
      case Order::at_least:
        return *a >= *b;
    }
    return false;
  }
};

std::string quoted(std::string_view rule, std::size_t begin) {
  // Characters before the place, so that the mark stands under it whatever their bytes.
  std::size_t column = 0;
  for (std::size_t i = 0; i < begin && i < rule.size(); ++i)
    if ((static_cast<unsigned char>(rule[i]) & 0xC0) != 0x80) ++column;
  return fmt::format("rule \"{}\" at character {}", excerpt(rule), column + 1);
}

}  // namespace

RuleError::RuleError(std::string_view rule, std::size_t from, std::size_t to, const std::string& wanted,
                     const std::string& seen)
    : Error(quoted(rule, from), wanted, seen), begin(from), end(to) {}

CellRule::CellRule(std::string_view text) : text_(text), root_(read_rule(text_)) {}

bool CellRule::matches(const std::vector<Token>& tokens, Index query, Index key) const {
  return Cell{tokens, static_cast<Whole>(query), static_cast<Whole>(key)}.truth(*root_);
}

}  // namespace headscope
