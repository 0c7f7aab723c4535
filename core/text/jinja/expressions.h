#pragma once
// Expressions of a template, each made a function of the names in sight. Private to core/text.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "core/text/jinja/tokens.h"
#include "core/text/jinja/value.h"

namespace headscope::jinja {

/// Names of a loop's round, of a macro's call or of the whole template, inside of another's.
struct Scope {
  std::map<std::string, Value> names;
  std::shared_ptr<Scope> outer;
  const Value* find(const std::string& name) const;
};

struct Frame {
  std::shared_ptr<Scope> scope;
  std::string* out;
  Budget& budget;
  int depth = 0;  ///< parts of the template inside one another, macros' bodies in their calls
};

/// A part of a template as a function of the names in sight. Cheap to copy.
template <class Result>
class Node {
 public:
  Node() = default;
  template <class F>
    requires(!std::is_same_v<F, Node> && std::is_invocable_r_v<Result, const F&, Frame&>)
  Node(F function) : function_(std::make_shared<const std::function<Result(Frame&)>>(std::move(function))) {}
  explicit operator bool() const { return function_ != nullptr; }
  /// Throws Error when too many are at work inside one another.
  Result operator()(Frame& frame) const {
    const Deeper deeper(frame);
    return (*function_)(frame);
  }

 private:
  struct Deeper {
    explicit Deeper(Frame& frame) : depth(frame.depth) {
      if (++depth > 1000) throw Error("template", "at most 1000 parts at work inside one another", "more");
    }
    ~Deeper() { --depth; }
    int& depth;
  };
  std::shared_ptr<const std::function<Result(Frame&)>> function_;
};
using Expression = Node<Value>;

/// Reads tokens from a place on, which it moves.
class ExpressionParser {
 public:
  ExpressionParser(const std::vector<Token>& tokens, const std::string& where) : tokens_(tokens), where_(where) {}

  const Token& peek() const { return tokens_[at_]; }
  const Token& take() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool is(Token::Kind kind, std::string_view text = "") const;
  bool sign(std::string_view text) const { return is(Token::Kind::sign, text); }
  bool word(std::string_view text) const { return is(Token::Kind::name, text); }
  bool accept(Token::Kind kind, std::string_view text = "");
  void expect(Token::Kind kind, std::string_view text, const char* what);
  std::string name(const char* what);
  [[noreturn]] void fail(const std::string& expected) const;
  std::string here() const;  ///< "where, line 3"

  Expression expression();                ///< with "a if b else c"
  Expression alternative();               ///< without: what stands behind "in" of a loop
  Expression filtered(Expression value);  ///< a chain of | filters and tests

 private:
  struct Call {
    std::vector<Expression> given;
    std::vector<std::pair<std::string, Expression>> named;
    Arguments run(Frame& frame, const std::string& where, List first = {}) const;
  };
  /// Of what holds itself: brackets in brackets, not not not.
  struct Deeper {
    explicit Deeper(ExpressionParser& of);
    ~Deeper() { --depth; }
    int& depth;
  };
  Expression conjunction();
  Expression negation();
  Expression comparison();
  Expression chain(int level);
  Expression unary(bool with_filters);
  Expression primary();
  Expression postfix(Expression value);
  Expression subscript(Expression value);
  Expression test(Expression value);
  Call call();
  std::vector<Expression> several(std::string_view close);

  const std::vector<Token>& tokens_;
  const std::string& where_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace headscope::jinja
