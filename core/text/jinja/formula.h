#pragma once
// One expression of the template language by itself: "weight('0.2', 'sold', 'Anna') > 2 * even('0.2', 'sold')".

#include <memory>
#include <string>

#include "core/text/jinja/value.h"

namespace headscope::jinja {

class Formula {
 public:
  /// Throws Error at `where` on what is no expression.
  Formula(const std::string& source, const std::string& where);
  const std::string& source() const { return source_; }
  const std::string& where() const { return where_; }
  /// Of these names and the language's own. Throws Error where it asks for what is not there, or goes on without end.
  Value value(const Members& names) const;

 private:
  struct Body;
  std::string source_, where_;
  std::shared_ptr<const Body> body_;
};

}  // namespace headscope::jinja
