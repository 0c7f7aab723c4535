// Reads a rule by recursive descent, one function for each line of its grammar.

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <optional>
#include <utility>

#include "core/metrics/cell_rule_node.h"

namespace headscope {

namespace {

using Node = CellRule::Node;
using Kind = Node::Kind;
using Order = Node::Order;
using Type = Node::Type;
constexpr std::size_t longest_rule = 10'000;
constexpr int deepest = 200;
using NodePtr = std::shared_ptr<const Node>;

const char* words_for(Type type) {
  switch (type) {
    case Type::number:
      return "a number";
    case Type::token:
      return "a token";
    case Type::truth:
      return "a condition";
  }
  return "";
}

struct Symbol {
  enum class Kind { end, number, name, text, sign } kind = Kind::end;
  std::string text;  ///< a name or a sign as written; of a text what it stands for
  std::int64_t number = 0;
  std::size_t begin = 0, end = 0;
};

class Reader {
 public:
  explicit Reader(std::string_view rule) : rule_(rule) {
    if (rule.size() > longest_rule)
      throw RuleError(rule.substr(0, 60), 0, 0, fmt::format("at most {} characters", longest_rule),
                      std::to_string(rule.size()));
    advance();
  }

  NodePtr read() {
    NodePtr root = disjunction();
    if (now_.kind != Symbol::Kind::end) fail(now_, "the end, or and, or, an operator", shown(now_));
    require(*root, Type::truth);
    return root;
  }

 private:
  [[noreturn]] void fail(std::size_t begin, std::size_t end, const std::string& expected, const std::string& found) {
    throw RuleError(rule_, begin, end, expected, found);
  }
  [[noreturn]] void fail(const Symbol& at, const std::string& expected, const std::string& found) {
    fail(at.begin, at.end, expected, found);
  }
  static std::string shown(const Symbol& symbol) {
    return symbol.kind == Symbol::Kind::end ? "nothing more" : "\"" + symbol.text + "\"";
  }
  void require(const Node& node, Type type) {
    if (node.type() != type) fail(node.begin, node.end, words_for(type), words_for(node.type()));
  }

  // ---- symbols
  void advance() {
    last_end_ = now_.end;
    std::size_t at = now_.end;
    while (at < rule_.size() && std::isspace(static_cast<unsigned char>(rule_[at]))) ++at;
    now_ = {};
    now_.begin = now_.end = at;
    if (at == rule_.size()) return;
    const char c = rule_[at];
    if (std::isdigit(static_cast<unsigned char>(c))) return number(at);
    if (std::isalpha(static_cast<unsigned char>(c)) || c == '_') {
      std::size_t end = at;
      while (end < rule_.size() && (std::isalnum(static_cast<unsigned char>(rule_[end])) || rule_[end] == '_')) ++end;
      return take(Symbol::Kind::name, at, end);
    }
    if (c == '"' || c == '\'') return text(at);
    for (const std::string_view sign : {"==", "!=", "<=", ">=", "&&", "||"})
      if (rule_.substr(at).starts_with(sign)) return take(Symbol::Kind::sign, at, at + 2);
    if (std::string_view("+-*/%<>()[]!").find(c) != std::string_view::npos) return take(Symbol::Kind::sign, at, at + 1);
    std::size_t end = at + 1;  // a whole character of UTF-8
    while (end < rule_.size() && (static_cast<unsigned char>(rule_[end]) & 0xC0) == 0x80) ++end;
    const std::string found(rule_.substr(at, end - at));
    if (c == '=') fail(at, end, "== to compare", "=");
    fail(at, end, "a number, q, k, n, token[…], a text in quotes, or an operator", "\"" + found + "\"");
  }

  void take(Symbol::Kind kind, std::size_t begin, std::size_t end) {
    now_ = {kind, std::string(rule_.substr(begin, end - begin)), 0, begin, end};
  }

  void number(std::size_t at) {
    std::size_t end = at;
    while (end < rule_.size() && std::isdigit(static_cast<unsigned char>(rule_[end]))) ++end;
    take(Symbol::Kind::number, at, end);
    const char *first = rule_.data() + at, *last = rule_.data() + end;
    if (std::from_chars(first, last, now_.number).ec != std::errc() || now_.number > largest_in_rule)
      fail(now_, fmt::format("a number up to {}", largest_in_rule), now_.text);
    if (end < rule_.size() && rule_[end] == '.') fail(at, end + 1, "a whole number", "a fraction");
  }

  void text(std::size_t at) {
    const char quote = rule_[at];
    std::string value;
    std::size_t end = at + 1;
    for (; end < rule_.size() && rule_[end] != quote; ++end) {
      if (rule_[end] != '\\') {
        value += rule_[end];
        continue;
      }
      if (++end == rule_.size()) break;
      switch (rule_[end]) {
        case 'n':
          value += '\n';
          break;
        case 't':
          value += '\t';
          break;
        case '\\':
        case '"':
        case '\'':
          value += rule_[end];
          break;
        default:
          fail(end - 1, end + 1, "\\n, \\t, \\\" or \\\\", std::string(rule_.substr(end - 1, 2)));
      }
    }
    if (end >= rule_.size()) fail(at, rule_.size(), std::string("a closing ") + quote, "the end");
    constexpr std::string_view space = "␣";
    for (std::size_t i = value.find(space); i != std::string::npos; i = value.find(space, i))
      value.replace(i, space.size(), " ");
    now_ = {Symbol::Kind::text, std::move(value), 0, at, end + 1};
  }

  bool is(std::string_view sign) const {
    return (now_.kind == Symbol::Kind::sign || now_.kind == Symbol::Kind::name) && now_.text == sign;
  }
  bool accept(std::string_view sign) {
    if (!is(sign)) return false;
    advance();
    return true;
  }
  void expect(std::string_view sign, const std::string& what) {
    if (!accept(sign)) fail(now_, what, shown(now_));
  }

  // ---- grammar
  struct Deeper {
    explicit Deeper(Reader& reader) : reader_(reader) {
      if (++reader.depth_ > deepest) reader.fail(reader.now_, "less nesting", fmt::format("{} levels", deepest));
    }
    ~Deeper() { --reader_.depth_; }
    Reader& reader_;
  };

  NodePtr make(Kind kind, std::vector<NodePtr> parts, std::size_t begin) {
    auto node = std::make_shared<Node>();
    node->kind = kind;
    node->parts = std::move(parts);
    node->begin = begin;
    node->end = last_end_;
    return node;
  }
  NodePtr pair(Kind kind, NodePtr a, NodePtr b) {
    const std::size_t begin = a->begin;
    return make(kind, {std::move(a), std::move(b)}, begin);
  }

  NodePtr disjunction() {
    NodePtr left = conjunction();
    while (accept("or") || accept("||")) {
      require(*left, Type::truth);
      NodePtr right = conjunction();
      require(*right, Type::truth);
      left = pair(Kind::disjunction, std::move(left), std::move(right));
    }
    return left;
  }
  NodePtr conjunction() {
    NodePtr left = negation();
    while (accept("and") || accept("&&")) {
      require(*left, Type::truth);
      NodePtr right = negation();
      require(*right, Type::truth);
      left = pair(Kind::conjunction, std::move(left), std::move(right));
    }
    return left;
  }
  NodePtr negation() {
    const Deeper deeper(*this);
    const std::size_t begin = now_.begin;
    if (!accept("not") && !accept("!")) return comparison();
    NodePtr part = negation();
    require(*part, Type::truth);
    return make(Kind::negation, {std::move(part)}, begin);
  }

  std::optional<Order> order() {
    static constexpr std::pair<std::string_view, Order> signs[] = {{"==", Order::equal},  {"!=", Order::unequal},
                                                                   {"<", Order::less},    {"<=", Order::at_most},
                                                                   {">", Order::greater}, {">=", Order::at_least}};
    if (now_.kind != Symbol::Kind::sign) return std::nullopt;
    for (const auto& [sign, order] : signs)
      if (accept(sign)) return order;
    return std::nullopt;
  }

  /// a < b <= c means a < b and b <= c.
  NodePtr comparison() {
    NodePtr left = sum(), all;
    for (Symbol sign = now_; const auto found = order(); sign = now_) {
      NodePtr right = sum();
      compare_types(*left, *right, *found, sign);
      auto next = std::make_shared<Node>();
      next->kind = Kind::compare;
      next->order = *found;
      next->begin = left->begin, next->end = right->end;
      next->parts = {left, right};
      all = all ? pair(Kind::conjunction, std::move(all), std::move(next)) : NodePtr(std::move(next));
      left = std::move(right);
    }
    return all ? all : left;
  }
  void compare_types(const Node& a, const Node& b, Order order, const Symbol& sign) {
    for (const Node* node : {&a, &b})
      if (node->type() == Type::truth) fail(node->begin, node->end, "a number or a token to compare", "a condition");
    if (a.type() != b.type())
      fail(b.begin, b.end, fmt::format("{} to compare with {}", words_for(a.type()), words_for(a.type())),
           words_for(b.type()));
    if (a.type() == Type::token && order != Order::equal && order != Order::unequal)
      fail(sign, "== or != between tokens", "\"" + sign.text + "\"");
    if (a.kind == Kind::text && b.kind == Kind::text) fail(b.begin, b.end, "token[…] on one side", "two texts");
  }

  NodePtr sum() {
    NodePtr left = product();
    while (is("+") || is("-")) {
      const Kind kind = is("+") ? Kind::add : Kind::subtract;
      advance();
      left = arithmetic(kind, std::move(left), product());
    }
    return left;
  }
  NodePtr product() {
    NodePtr left = unary();
    while (is("*") || is("/") || is("%")) {
      const Kind kind = is("*") ? Kind::multiply : is("/") ? Kind::divide : Kind::remainder;
      advance();
      left = arithmetic(kind, std::move(left), unary());
    }
    return left;
  }
  NodePtr arithmetic(Kind kind, NodePtr left, NodePtr right) {
    require(*left, Type::number);
    require(*right, Type::number);
    return pair(kind, std::move(left), std::move(right));
  }
  NodePtr unary() {
    const Deeper deeper(*this);
    const std::size_t begin = now_.begin;
    if (!accept("-")) return atom();
    NodePtr part = unary();
    require(*part, Type::number);
    return make(Kind::negative, {std::move(part)}, begin);
  }

  NodePtr atom() {
    const Symbol here = now_;
    if (accept("(")) {
      NodePtr inner = disjunction();
      expect(")", "a closing )");
      return inner;
    }
    if (here.kind == Symbol::Kind::number || here.kind == Symbol::Kind::text) {
      advance();
      auto node = std::make_shared<Node>();
      node->kind = here.kind == Symbol::Kind::number ? Kind::number : Kind::text;
      node->number = here.number;
      node->text = here.text;
      node->begin = here.begin, node->end = here.end;
      return node;
    }
    if (here.kind == Symbol::Kind::name) {
      if (here.text == "q" || here.text == "k" || here.text == "n") {
        advance();
        return make(here.text == "q" ? Kind::query : here.text == "k" ? Kind::key : Kind::length, {}, here.begin);
      }
      const bool token = here.text == "token";
      if (token || here.text == "abs") {
        advance();
        expect(token ? "[" : "(", token ? "[ after token" : "( after abs");
        NodePtr part = sum();
        require(*part, Type::number);
        expect(token ? "]" : ")", token ? "a closing ]" : "a closing )");
        return make(token ? Kind::token : Kind::absolute, {std::move(part)}, here.begin);
      }
    }
    fail(here, "a number, q, k, n, token[…] or a text in quotes", shown(here));
  }

  std::string_view rule_;
  Symbol now_;
  std::size_t last_end_ = 0;
  int depth_ = 0;
};

}  // namespace

std::shared_ptr<const CellRule::Node> read_rule(std::string_view rule) {
  return Reader(rule).read();
}

}  // namespace headscope
