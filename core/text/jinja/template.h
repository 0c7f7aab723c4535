#pragma once
// A Jinja 2 template (jinja.palletsprojects.com), as far as models' chat templates go: for, if, set, macro, filters,
// tests; no files, no changing of values but a namespace's. Templates come with models, so they are trusted with
// nothing: work, depth and output are bounded. Private to core/text.

#include <ctime>
#include <memory>
#include <string>

#include "core/text/jinja/value.h"

namespace headscope::jinja {

class Template {
 public:
  /// Throws Error at `where`, naming the line, on what cannot be read as a template.
  Template(const std::string& source, const std::string& where);
  /// Throws Error when it asks for what is not there, when it raises one itself, or goes on without end.
  std::string render(const Members& variables, std::time_t now) const;

 private:
  struct Body;
  std::shared_ptr<const Body> body_;
  std::string where_;
};

}  // namespace headscope::jinja
