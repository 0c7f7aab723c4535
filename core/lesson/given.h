#pragma once
// The arguments of one call of a lesson's term, read as what they stand for: heads, places of the text, sites.

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/lesson/run_terms.h"
#include "core/metrics/next_token.h"

namespace headscope {

/// Every function throws Error, naming the formula, on what is none.
class Given {
 public:
  Given(LessonRun& run, const jinja::Arguments& arguments) : run_(run), of_(arguments) {}
  HeadId head(std::size_t at) const { return run_.head(of_.at(at, "head"), of_.where); }
  Index row(std::size_t at) const { return run_.position(of_.at(at, "row"), run_.trace().queries(), of_.where); }
  Index key(std::size_t at) const { return run_.position(of_.at(at, "key"), run_.trace().tokens, of_.where); }
  Site site(std::size_t at) const {
    const std::string id = text(at, "site");
    const auto kind = parse_site_kind(id);
    if (!kind) throw Error(of_.where, "a site, such as resid_post", "\"" + excerpt(id, 40) + "\"");
    return {*kind, info(*kind).per_layer ? static_cast<int>(number(at + 1, "layer")) : -1};
  }
  /// Where none is given, that of the answer.
  Index row_or_answer(std::size_t at) const {
    if (of_.find(at, "row")) return run_.position(of_.at(at, "row"), run_.whole().queries(), of_.where);
    const auto answer = answer_position(run_.whole());
    if (!answer) throw Error(of_.where, "a token that the model is asked for", "none");
    return *answer;
  }
  std::string text(std::size_t at, std::string_view name) const {
    const jinja::Value& value = of_.at(at, name);
    if (!value.text()) throw Error(of_.where, fmt::format("a text for {}", name), value.kind());
    return *value.text();
  }
  double number(std::size_t at, std::string_view name) const {
    const jinja::Value& value = of_.at(at, name);
    if (!value.number()) throw Error(of_.where, fmt::format("a number for {}", name), value.kind());
    return value.real();
  }
  const std::string& where() const { return of_.where; }

 private:
  LessonRun& run_;
  const jinja::Arguments& of_;
};

}  // namespace headscope
