#include "core/text/jinja/formula.h"

#include "core/text/jinja/builtins.h"
#include "core/text/jinja/expressions.h"

namespace headscope::jinja {

struct Formula::Body {
  Expression expression;
};

Formula::Formula(const std::string& source, const std::string& where) : source_(source), where_(where) {
  const std::vector<Token> tokens = tokens_of("{{ " + source + " }}", where_);
  ExpressionParser in(tokens, where_);
  in.expect(Token::Kind::open_value, "", "an expression");
  body_ = std::make_shared<const Body>(Body{in.expression()});
  in.expect(Token::Kind::close_value, "", "the end, or an operator");
  in.expect(Token::Kind::end, "", "one expression");
}

Value Formula::value(const Members& names) const {
  std::string out;
  Budget budget;
  Frame frame{std::make_shared<Scope>(), &out, budget};
  for (const auto& [name, value] : globals(0)) frame.scope->names[name] = value;
  for (const auto& [name, value] : names) frame.scope->names[name] = value;
  try {
    return body_->expression(frame);
  } catch (const Error& error) {  // of a function that does not know where it was called
    if (error.where.starts_with(where_)) throw;
    throw Error(where_ + ": " + error.where, error.expected, error.found, error.hint);
  }
}

}  // namespace headscope::jinja
