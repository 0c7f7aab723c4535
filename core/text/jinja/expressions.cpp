#include "core/text/jinja/expressions.h"

#include <fmt/format.h>

#include <charconv>

#include "core/base/excerpt.h"
#include "core/text/jinja/builtins.h"

namespace headscope::jinja {

using Kind = Token::Kind;

namespace {
constexpr int deepest_expression = 100;  // expressions in expressions

/// An object, a list or a name that must be there to look into it.
const Value& present(const Value& value, const std::string& where) {
  if (!value.defined()) throw Error(where, "a value", value.kind());
  return value;
}
}  // namespace

const Value* Scope::find(const std::string& name) const {
  for (const Scope* scope = this; scope; scope = scope->outer.get())
    if (const auto found = scope->names.find(name); found != scope->names.end()) return &found->second;
  return nullptr;
}

ExpressionParser::Deeper::Deeper(ExpressionParser& of) : depth(of.depth_) {
  if (++depth > deepest_expression) of.fail(fmt::format("at most {} expressions in one another", deepest_expression));
}

bool ExpressionParser::is(Kind kind, std::string_view text) const {
  return peek().kind == kind && (text.empty() || peek().text == text);
}

bool ExpressionParser::accept(Kind kind, std::string_view text) {
  if (!is(kind, text)) return false;
  take();
  return true;
}

void ExpressionParser::expect(Kind kind, std::string_view text, const char* what) {
  if (!accept(kind, text)) fail(what);
}

std::string ExpressionParser::name(const char* what) {
  if (peek().kind != Kind::name) fail(what);
  return take().text;
}

std::string ExpressionParser::here() const {
  return fmt::format("{}, line {}", where_, peek().line);
}

void ExpressionParser::fail(const std::string& expected) const {
  const Token& token = peek();
  throw Error(here(), expected,
              token.kind == Kind::end           ? "the end of the template"
              : token.kind == Kind::close_block ? "%}"
              : token.kind == Kind::close_value ? "}}"
              : token.kind == Kind::open_block  ? "{%"
              : token.kind == Kind::open_value  ? "{{"
                                                : "'" + excerpt(token.text, 40) + "'");
}

Expression ExpressionParser::expression() {
  const Deeper deeper(*this);
  Expression value = alternative();
  while (accept(Kind::name, "if")) {
    Expression condition = alternative();
    Expression otherwise = accept(Kind::name, "else") ? expression() : [](Frame&) { return Value(Undefined{"else"}); };
    value = [value, condition, otherwise](Frame& f) { return condition(f).truth() ? value(f) : otherwise(f); };
  }
  return value;
}

Expression ExpressionParser::alternative() {
  Expression left = conjunction();
  while (accept(Kind::name, "or"))
    left = [left, right = conjunction()](Frame& f) {
      Value value = left(f);
      return value.truth() ? value : right(f);
    };
  return left;
}

Expression ExpressionParser::conjunction() {
  Expression left = negation();
  while (accept(Kind::name, "and"))
    left = [left, right = negation()](Frame& f) {
      Value value = left(f);
      return value.truth() ? right(f) : value;
    };
  return left;
}

Expression ExpressionParser::negation() {
  const Deeper deeper(*this);
  if (!accept(Kind::name, "not")) return comparison();
  return [value = negation()](Frame& f) { return Value(!value(f).truth()); };
}

Expression ExpressionParser::comparison() {
  Expression first = chain(0);
  using Holds = std::function<bool(const Value&, const Value&)>;
  std::vector<std::pair<Holds, Expression>> links;
  for (;;) {
    const std::string at = here();
    Holds holds;
    if (accept(Kind::sign, "=="))
      holds = equal;
    else if (accept(Kind::sign, "!="))
      holds = [](const Value& a, const Value& b) { return !equal(a, b); };
    else if (accept(Kind::sign, "<"))
      holds = less;
    else if (accept(Kind::sign, ">"))
      holds = [](const Value& a, const Value& b) { return less(b, a); };
    else if (accept(Kind::sign, "<="))
      holds = [](const Value& a, const Value& b) { return !less(b, a); };
    else if (accept(Kind::sign, ">="))
      holds = [](const Value& a, const Value& b) { return !less(a, b); };
    else if (accept(Kind::name, "in"))
      holds = [at](const Value& a, const Value& b) { return contains(b, a, at); };
    else if (word("not") && tokens_[at_ + 1].kind == Kind::name && tokens_[at_ + 1].text == "in") {
      at_ += 2;
      holds = [at](const Value& a, const Value& b) { return !contains(b, a, at); };
    } else {
      break;
    }
    links.emplace_back(std::move(holds), chain(0));
  }
  if (links.empty()) return first;
  return [first, links](Frame& f) {
    Value left = first(f);
    for (const auto& [holds, next] : links) {
      Value right = next(f);
      if (!holds(left, right)) return Value(false);
      left = std::move(right);
    }
    return Value(true);
  };
}

/// + and -, then ~, then * / // %, then **.
Expression ExpressionParser::chain(int level) {
  static constexpr std::string_view of_level[] = {" + - ", " ~ ", " * / // % ", " ** "};
  if (level == 4) return unary(true);
  Expression left = chain(level + 1);
  while (peek().kind == Kind::sign && of_level[level].find(" " + peek().text + " ") != std::string_view::npos) {
    const std::string at = here(), op = take().text;
    left = [left, right = chain(level + 1), op, at](Frame& f) {
      const Value a = left(f);
      return arithmetic(op, a, right(f), f.budget, at);
    };
  }
  return left;
}

Expression ExpressionParser::unary(bool with_filters) {
  const Deeper deeper(*this);
  Expression value;
  const std::string at = here();
  if (accept(Kind::sign, "-"))
    value = [of = unary(false), at](Frame& f) { return arithmetic("-", std::int64_t{0}, of(f), f.budget, at); };
  else if (accept(Kind::sign, "+"))
    value = unary(false);
  else
    value = primary();
  value = postfix(std::move(value));
  return with_filters ? filtered(std::move(value)) : value;
}

std::vector<Expression> ExpressionParser::several(std::string_view close) {
  std::vector<Expression> out;
  while (!sign(close)) {
    out.push_back(expression());
    if (!accept(Kind::sign, ",")) break;
  }
  expect(Kind::sign, close, close == ")" ? "a closing )" : "a closing ]");
  return out;
}

Expression ExpressionParser::primary() {
  const std::string at = here();
  const Token token = take();
  const auto constant = [](Value value) -> Expression { return [value](Frame&) { return value; }; };
  const auto list = [](std::vector<Expression> parts) -> Expression {
    return [parts](Frame& f) {
      List out;
      for (const Expression& part : parts) out.push_back(part(f));
      f.budget.spend(out.size() * sizeof(Value), "a list");
      return Value(out);
    };
  };
  switch (token.kind) {
    case Kind::string: {
      std::string text = token.text;
      while (peek().kind == Kind::string) text += take().text;
      return constant(text);
    }
    case Kind::integer: {
      std::int64_t value = 0;
      const auto [end, error] = std::from_chars(token.text.data(), token.text.data() + token.text.size(), value);
      if (error != std::errc() || end != token.text.data() + token.text.size())
        throw Error(at, "a whole number below 2^63", token.text);
      return constant(value);
    }
    case Kind::number: {
      double value = 0;
      std::from_chars(token.text.data(), token.text.data() + token.text.size(), value);
      return constant(value);
    }
    case Kind::name:
      if (token.text == "true" || token.text == "True") return constant(true);
      if (token.text == "false" || token.text == "False") return constant(false);
      if (token.text == "none" || token.text == "None") return constant(None{});
      return [name = token.text](Frame& f) {
        const Value* found = f.scope->find(name);
        return found ? *found : Value(Undefined{name});
      };
    case Kind::sign:
      if (token.text == "[") return list(several("]"));
      if (token.text == "(") {
        if (accept(Kind::sign, ")")) return constant(List{});
        Expression first = expression();
        if (accept(Kind::sign, ")")) return first;
        expect(Kind::sign, ",", "a closing )");
        std::vector<Expression> rest = several(")");
        rest.insert(rest.begin(), first);
        return list(std::move(rest));
      }
      if (token.text == "{") {
        std::vector<std::pair<Expression, Expression>> parts;
        while (!sign("}")) {
          Expression key = expression();
          expect(Kind::sign, ":", "a : behind a key");
          parts.emplace_back(std::move(key), expression());
          if (!accept(Kind::sign, ",")) break;
        }
        expect(Kind::sign, "}", "a closing }");
        return [parts, at](Frame& f) {
          Members out;
          for (const auto& [key, value] : parts) {
            const Value name = key(f);
            if (!name.text()) throw Error(at, "a string as the key of an object", name.kind());
            put(out, *name.text(), value(f));
          }
          f.budget.spend(out.size() * 2 * sizeof(Value), at);
          return Value(out);
        };
      }
      [[fallthrough]];
    default:
      --at_;
      fail("an expression");
  }
}

Expression ExpressionParser::postfix(Expression value) {
  for (;;) {
    const std::string at = here();
    if (accept(Kind::sign, ".")) {
      if (peek().kind != Kind::name && peek().kind != Kind::integer) fail("a name behind the point");
      value = [value, name = take().text, at](Frame& f) { return attribute(present(value(f), at), name, true); };
    } else if (accept(Kind::sign, "[")) {
      value = subscript(std::move(value));
    } else if (accept(Kind::sign, "(")) {
      value = [value, call = call(), at](Frame& f) {
        const Value function = value(f);
        if (!function.callable()) throw Error(at, "a function", function.kind());
        Value out = function.callable()->call(call.run(f, at));
        f.budget.spend(1, at);
        return out;
      };
    } else {
      return value;
    }
  }
}

Expression ExpressionParser::subscript(Expression value) {
  const std::string at = here();
  const Expression none = [](Frame&) { return Value(); };
  std::vector<Expression> bounds{none, none, none};
  std::size_t part = 0;
  bool sliced = false;
  while (!sign("]")) {
    if (accept(Kind::sign, ":")) {
      sliced = true;
      if (++part > 2) fail("at most two : in [ ]");
    } else {
      bounds[part] = expression();
      if (!sign(":") && !sign("]")) fail("a closing ]");
    }
  }
  take();
  if (sliced)
    return [value, bounds, at](Frame& f) {
      const Value of = value(f);
      f.budget.spend((of.list() ? of.list()->size() : of.text() ? of.text()->size() : 0) * sizeof(Value), at);
      return slice(of, bounds[0](f), bounds[1](f), bounds[2](f), at);
    };
  return [value, key = bounds[0], at](Frame& f) {
    const Value of = value(f);
    return item(present(of, at), key(f), at);
  };
}

ExpressionParser::Call ExpressionParser::call() {
  Call out;
  while (!sign(")")) {
    if (peek().kind == Kind::name && tokens_[at_ + 1].kind == Kind::sign && tokens_[at_ + 1].text == "=") {
      const std::string name = take().text;
      take();
      out.named.emplace_back(name, expression());
    } else {
      if (!out.named.empty()) fail("arguments with names behind those without");
      out.given.push_back(expression());
    }
    if (!accept(Kind::sign, ",")) break;
  }
  expect(Kind::sign, ")", "a closing )");
  return out;
}

Arguments ExpressionParser::Call::run(Frame& frame, const std::string& where, List first) const {
  Arguments out{where, frame.budget, std::move(first), {}};
  for (const Expression& each : given) out.given.push_back(each(frame));
  for (const auto& [name, value] : named) put(out.named, name, value(frame));
  return out;
}

Expression ExpressionParser::filtered(Expression value) {
  for (;;) {
    const std::string at = here();
    if (accept(Kind::sign, "|")) {
      const std::string which = name("the name of a filter");
      const Function filter = find_filter(which);
      Call arguments;
      if (accept(Kind::sign, "(")) arguments = call();
      value = [value, filter, arguments, at, which](Frame& f) {
        // Only now: templates name filters of other programs in parts that they then do not go through.
        if (!filter) throw Error(at, "a filter that is known", "'" + excerpt(which, 40) + "'");
        Value out = filter(arguments.run(f, at, {value(f)}));
        f.budget.spend(1 + (out.text() ? out.text()->size() : out.list() ? out.list()->size() * sizeof(Value) : 0), at);
        return out;
      };
    } else if (accept(Kind::name, "is")) {
      value = test(std::move(value));
    } else if (sign("(")) {
      value = postfix(std::move(value));
    } else {
      return value;
    }
  }
}

Expression ExpressionParser::test(Expression value) {
  const std::string at = here();
  const bool negated = accept(Kind::name, "not");
  const std::string which = name("the name of a test");
  const Function function = find_test(which);
  if (!function) throw Error(at, "a test that is known", "'" + excerpt(which, 40) + "'");
  Call arguments;
  static constexpr std::string_view words = " else or and is if not in ";
  const bool operand = peek().kind == Kind::string || peek().kind == Kind::integer || peek().kind == Kind::number ||
                       sign("[") || sign("{") ||
                       (peek().kind == Kind::name && words.find(" " + peek().text + " ") == std::string_view::npos);
  if (accept(Kind::sign, "("))
    arguments = call();
  else if (operand)
    arguments.given.push_back(postfix(primary()));
  return [value, function, arguments, negated, at](Frame& f) {
    f.budget.spend(1, at);
    return Value(function(arguments.run(f, at, {value(f)})).truth() != negated);
  };
}

}  // namespace headscope::jinja
