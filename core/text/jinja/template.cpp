#include "core/text/jinja/template.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/excerpt.h"
#include "core/text/jinja/builtins.h"
#include "core/text/jinja/expressions.h"

namespace headscope::jinja {

using Kind = Token::Kind;

namespace {
constexpr int deepest_blocks = 50;
constexpr std::size_t longest_source = std::size_t{1} << 20;

/// What a name, several, or a member of a namespace is set to.
struct Target {
  std::vector<std::string> names;
  std::string member;  ///< of the namespace names[0]

  void set(Frame& f, const Value& value, const std::string& where) const {
    if (!member.empty()) {
      const Value* space = f.scope->find(names[0]);
      if (!space || !space->changeable())
        throw Error(where, "a namespace to set a member of", space ? space->kind() : "an undefined name");
      return space->changeable()->set(member, value);
    }
    if (names.size() == 1) {
      f.scope->names[names[0]] = value;
      return;
    }
    const List parts = elements(value, where);
    if (parts.size() != names.size())
      throw Error(where, fmt::format("{} values for {} names", names.size(), names.size()),
                  fmt::format("{}", parts.size()));
    for (std::size_t i = 0; i < names.size(); ++i) f.scope->names[names[i]] = parts[i];
  }
};

/// What `loop` is in round i of a list.
Value round_of(const List& list, std::size_t i) {
  const auto n = static_cast<std::int64_t>(list.size()), at = static_cast<std::int64_t>(i);
  Members loop;
  loop.emplace_back("index", at + 1);
  loop.emplace_back("index0", at);
  loop.emplace_back("revindex", n - at);
  loop.emplace_back("revindex0", n - at - 1);
  loop.emplace_back("first", i == 0);
  loop.emplace_back("last", at == n - 1);
  loop.emplace_back("length", n);
  if (i > 0) loop.emplace_back("previtem", list[i - 1]);
  if (at + 1 < n) loop.emplace_back("nextitem", list[i + 1]);
  loop.emplace_back(
      "cycle", Callable{[i](const Arguments& a) { return a.given.empty() ? Value() : a.given[i % a.given.size()]; }});
  return loop;
}
}  // namespace

namespace {
enum class Flow { next, leave, again };
using Statement = Node<Flow>;

class Parser {
 public:
  Parser(const std::vector<Token>& tokens, const std::string& where) : in_(tokens, where) {}

  Statement whole() {
    Statement body = until({});
    if (!in_.is(Kind::end)) in_.fail("the end of the template");
    return body;
  }

 private:
  /// Statements up to a block that begins with one of these words, which is taken up to that word.
  Statement until(const std::vector<std::string_view>& words) {
    if (++depth_ > deepest_blocks) in_.fail(fmt::format("at most {} blocks in one another", deepest_blocks));
    std::vector<Statement> body;
    while (!in_.is(Kind::end)) {
      const std::string at = in_.here();
      if (in_.is(Kind::text)) {
        body.push_back([text = in_.take().text, at](Frame& f) {
          f.budget.spend(text.size() + 1, at);
          *f.out += text;
          return Flow::next;
        });
      } else if (in_.accept(Kind::open_value)) {
        Expression value = in_.expression();
        in_.expect(Kind::close_value, "", "}}");
        body.push_back([value, at](Frame& f) {
          const std::string text = value(f).printed();
          f.budget.spend(text.size() + 1, at);
          *f.out += text;
          return Flow::next;
        });
      } else {
        in_.expect(Kind::open_block, "", "a block");
        if (in_.peek().kind == Kind::name && std::ranges::find(words, in_.peek().text) != words.end()) break;
        body.push_back(statement());
      }
    }
    --depth_;
    if (body.size() == 1) return body[0];
    return [body](Frame& f) {
      for (const Statement& each : body)
        if (const Flow flow = each(f); flow != Flow::next) return flow;
      return Flow::next;
    };
  }

  void closing() { in_.expect(Kind::close_block, "", "%}"); }
  void ending(const char* word) {
    in_.expect(Kind::name, word, word);
    closing();
  }

  Statement statement() {
    const std::string at = in_.here();
    const std::string word = in_.name("a statement");
    if (word == "if") return condition();
    if (word == "for") return loop();
    if (word == "set") return assignment();
    if (word == "macro") return macro();
    if (word == "filter") return filter();
    if (word == "break" || word == "continue") {
      if (loops_ == 0) throw Error(at, word + " inside of a loop", "one outside");
      closing();
      return [flow = word == "break" ? Flow::leave : Flow::again](Frame&) { return flow; };
    }
    if (word == "generation") {  // marks what the model wrote, for training on it
      closing();
      Statement body = until({"endgeneration"});
      ending("endgeneration");
      return body;
    }
    throw Error(at, "for, if, set, macro, filter, break, continue or generation", "'" + excerpt(word, 40) + "'");
  }

  Statement condition() {
    std::vector<std::pair<Expression, Statement>> arms;
    Statement otherwise;
    Expression when = in_.expression();
    closing();
    for (;;) {
      arms.emplace_back(std::move(when), until({"elif", "else", "endif"}));
      if (in_.accept(Kind::name, "elif")) {
        when = in_.expression();
        closing();
        continue;
      }
      if (in_.accept(Kind::name, "else")) {
        closing();
        otherwise = until({"endif"});
      }
      ending("endif");
      break;
    }
    return [arms, otherwise](Frame& f) {
      for (const auto& [holds, body] : arms)
        if (holds(f).truth()) return body(f);
      return otherwise ? otherwise(f) : Flow::next;
    };
  }

  Target target() {
    Target out;
    const bool bracket = in_.accept(Kind::sign, "(");
    do out.names.push_back(in_.name("a name"));
    while (in_.accept(Kind::sign, ","));
    if (bracket) in_.expect(Kind::sign, ")", "a closing )");
    if (out.names.size() == 1 && in_.accept(Kind::sign, ".")) out.member = in_.name("a member's name");
    return out;
  }

  Statement loop() {
    const std::string at = in_.here();
    const Target each = target();
    in_.expect(Kind::name, "in", "in");
    const Expression over = in_.alternative();
    Expression only;
    if (in_.accept(Kind::name, "if")) only = in_.expression();
    if (in_.word("recursive")) in_.fail("a loop that is not recursive");
    closing();
    ++loops_;
    const Statement body = until({"else", "endfor"});
    --loops_;
    Statement otherwise;
    if (in_.accept(Kind::name, "else")) {
      closing();
      otherwise = until({"endfor"});
    }
    ending("endfor");
    return [=](Frame& f) {
      List list = elements(over(f), at);
      const std::shared_ptr<Scope> outer = f.scope;
      const auto inside = [&](const Value& value) {
        f.scope = std::make_shared<Scope>(Scope{{}, outer});
        each.set(f, value, at);
      };
      if (only)
        std::erase_if(list, [&](const Value& value) {
          inside(value);
          return !only(f).truth();
        });
      for (std::size_t i = 0; i < list.size(); ++i) {
        f.budget.spend(16, at);
        inside(list[i]);
        f.scope->names["loop"] = round_of(list, i);
        if (body(f) == Flow::leave) break;
      }
      f.scope = outer;
      if (list.empty() && otherwise) return otherwise(f);
      return Flow::next;
    };
  }

  /// What a body prints.
  static std::string printed(const Statement& body, Frame& f) {
    std::string text;
    std::string* const out = std::exchange(f.out, &text);
    body(f);
    f.out = out;
    return text;
  }

  Statement assignment() {
    const std::string at = in_.here();
    const Target what = target();
    Expression value;
    if (in_.accept(Kind::sign, "=")) {
      value = in_.expression();
      if (in_.sign(",")) {
        std::vector<Expression> parts{value};
        while (in_.accept(Kind::sign, ",")) parts.push_back(in_.expression());
        value = [parts](Frame& f) {
          List out;
          for (const Expression& part : parts) out.push_back(part(f));
          return Value(out);
        };
      }
      closing();
    } else {
      const Expression put_in = in_.filtered([](Frame& f) { return f.scope->names["set"]; });
      closing();
      const Statement body = until({"endset"});
      ending("endset");
      value = [body, put_in](Frame& f) {
        Value text = printed(body, f);
        const std::shared_ptr<Scope> outer = f.scope;
        f.scope = std::make_shared<Scope>(Scope{{{"set", text}}, outer});
        text = put_in(f);
        f.scope = outer;
        return text;
      };
    }
    return [what, value, at](Frame& f) {
      f.budget.spend(1, at);
      what.set(f, value(f), at);
      return Flow::next;
    };
  }

  Statement filter() {
    const Expression put_in = [&] {
      const std::string at = in_.here();
      const std::string which = in_.name("the name of a filter");
      const Function function = find_filter(which);
      if (!function) throw Error(at, "a filter that is known", "'" + excerpt(which, 40) + "'");
      return in_.filtered([function, at](Frame& f) {
        return function({at, f.budget, {f.scope->names["filter"]}, {}});
      });
    }();
    closing();
    const Statement body = until({"endfilter"});
    ending("endfilter");
    return [body, put_in](Frame& f) {
      const std::string text = printed(body, f);
      const std::shared_ptr<Scope> outer = f.scope;
      f.scope = std::make_shared<Scope>(Scope{{{"filter", text}}, outer});
      *f.out += put_in(f).printed();
      f.scope = outer;
      return Flow::next;
    };
  }

  Statement macro() {
    const std::string name = in_.name("a macro's name");
    struct Parameter {
      std::string name;
      Expression fallback;
    };
    std::vector<Parameter> parameters;
    in_.expect(Kind::sign, "(", "a (");
    while (!in_.sign(")")) {
      Parameter& made = parameters.emplace_back(Parameter{in_.name("a parameter"), {}});
      if (in_.accept(Kind::sign, "=")) made.fallback = in_.expression();
      if (!in_.accept(Kind::sign, ",")) break;
    }
    in_.expect(Kind::sign, ")", "a closing )");
    closing();
    const int loops = std::exchange(loops_, 0);
    const Statement body = until({"endmacro"});
    loops_ = loops;
    ending("endmacro");
    return [=](Frame& f) {
      // A scope holds its macros, so a macro holds its scope only by a thread that does not keep it alive.
      const std::weak_ptr<Scope> home = f.scope;
      f.scope->names[name] = Callable{[=, &f](const Arguments& a) -> Value {
        if (a.given.size() > parameters.size())
          throw Error(a.where, fmt::format("at most {} arguments for {}", parameters.size(), name),
                      fmt::format("{}", a.given.size()));
        a.budget.spend(16, a.where);
        const std::shared_ptr<Scope> caller = f.scope;
        f.scope = std::make_shared<Scope>(Scope{{}, home.lock()});
        for (std::size_t i = 0; i < parameters.size(); ++i) {
          const Value* given = a.find(i, parameters[i].name);
          f.scope->names[parameters[i].name] = given                    ? *given
                                               : parameters[i].fallback ? parameters[i].fallback(f)
                                                                        : Value(Undefined{parameters[i].name});
        }
        std::string text = printed(body, f);
        f.scope = caller;
        return text;
      }};
      return Flow::next;
    };
  }

  ExpressionParser in_;
  int depth_ = 0, loops_ = 0;
};
}  // namespace

struct Template::Body {
  Statement statement;
};

Template::Template(const std::string& source, const std::string& where) : where_(where) {
  if (source.size() > longest_source)
    throw Error(where, fmt::format("a template of at most {} bytes", longest_source), fmt::format("{}", source.size()));
  const std::vector<Token> tokens = tokens_of(source, where_);
  body_ = std::make_shared<const Body>(Body{Parser(tokens, where_).whole()});
}

std::string Template::render(const Members& variables, std::time_t now) const {
  std::string out;
  Budget budget;
  Frame frame{std::make_shared<Scope>(), &out, budget};
  for (const auto& [name, value] : globals(now)) frame.scope->names[name] = value;
  for (const auto& [name, value] : variables) frame.scope->names[name] = value;
  try {
    body_->statement(frame);
  } catch (const Error& error) {  // of a function that does not know where it was called
    if (error.where.starts_with(where_)) throw;
    throw Error(where_ + ": " + error.where, error.expected, error.found, error.hint);
  }
  return out;
}

}  // namespace headscope::jinja
