#pragma once
// What templates may call: filters (x | f), tests (x is t), methods (x.m()), global functions. Private to core/text.

#include <ctime>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "core/text/jinja/value.h"

namespace headscope::jinja {

/// The value that is filtered or tested is the first argument. Null where there is no such function.
using Function = Value (*)(const Arguments&);
struct Named {
  std::string_view name;
  Function call;
};
Function in_table(std::span<const Named> table, std::string_view name);
Function find_filter(std::string_view name);
Function find_test(std::string_view name);
/// x.name or x[name]; `method`: before members (x.items), else after them. Undefined when there is neither.
Value attribute(const Value& object, const std::string& name, bool method_first);
/// x[key], with negative places from the end. Undefined when there is none.
Value item(const Value& object, const Value& key, const std::string& where);
/// x[first:last:step]; undefined bounds reach to the ends.
Value slice(const Value& object, const Value& first, const Value& last, const Value& step, const std::string& where);

/// a `op` b: + - * / // % ** ~
Value arithmetic(std::string_view op, const Value& a, const Value& b, Budget& budget, const std::string& where);
bool contains(const Value& container, const Value& element, const std::string& where);

/// range, namespace, dict, raise_exception, strftime_now (`now`: as the clock stands when a template is rendered).
Members globals(std::time_t now);

}  // namespace headscope::jinja
