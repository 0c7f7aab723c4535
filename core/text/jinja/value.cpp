#include "core/text/jinja/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/json.h"
#include "core/base/utf8.h"

namespace headscope::jinja {

namespace {
constexpr int deepest_value = 100;
}

void Value::contain(const Value& inner) {
  depth_ = std::max(depth_, inner.depth_ + 1);
  holds_namespace_ = holds_namespace_ || inner.holds_namespace_;
  if (depth_ > deepest_value)
    throw Error("template", fmt::format("at most {} values in one another", deepest_value), "more");
}

Value::Value(List value) {
  for (const Value& each : value) contain(each);
  variant_ = std::make_shared<const List>(std::move(value));
}

Value::Value(Members value) {
  for (const auto& each : value) contain(each.second);
  variant_ = std::make_shared<const Members>(std::move(value));
}

Value::Value(std::shared_ptr<Namespace> value)
    : variant_(std::move(value)), depth_(deepest_value / 2), holds_namespace_(true) {}

Value::Value(Callable value) : depth_(value.depth) {
  if (depth_ > deepest_value)
    throw Error("template", fmt::format("at most {} values in one another", deepest_value), "more");
  variant_ = std::make_shared<const Callable>(std::move(value));
}

const std::string* Value::text() const {
  const auto* found = std::get_if<std::shared_ptr<const std::string>>(&variant_);
  return found ? found->get() : nullptr;
}

const List* Value::list() const {
  const auto* found = std::get_if<std::shared_ptr<const List>>(&variant_);
  return found ? found->get() : nullptr;
}

const Members* Value::members() const {
  if (const auto* found = std::get_if<std::shared_ptr<const Members>>(&variant_)) return found->get();
  const Namespace* space = changeable();
  return space ? &space->members : nullptr;
}

Namespace* Value::changeable() const {
  const auto* found = std::get_if<std::shared_ptr<Namespace>>(&variant_);
  return found ? found->get() : nullptr;
}

const Callable* Value::callable() const {
  const auto* found = std::get_if<std::shared_ptr<const Callable>>(&variant_);
  return found ? found->get() : nullptr;
}

std::int64_t Value::integer() const {
  return is<bool>() ? std::get<bool>(variant_) : std::get<std::int64_t>(variant_);
}

double Value::real() const {
  return is<double>() ? std::get<double>(variant_) : static_cast<double>(integer());
}

bool Value::truth() const {
  if (const auto* flag = std::get_if<bool>(&variant_)) return *flag;
  if (number()) return real() != 0;
  if (text()) return !text()->empty();
  if (list()) return !list()->empty();
  if (changeable() || callable()) return true;
  return members() && !members()->empty();
}

std::string Value::kind() const {
  if (is<None>()) return "none";
  if (is<bool>()) return "a truth value";
  if (number()) return "the number " + printed();
  if (text()) return "a string";
  if (list()) return fmt::format("a list of {}", list()->size());
  if (changeable()) return "a namespace";
  if (members()) return fmt::format("an object of {}", members()->size());
  if (callable()) return "a function";
  return "the undefined name '" + std::get<Undefined>(variant_).name + "'";
}

namespace {
std::string python_float(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", value);  // the shortest that reads back, as Python's
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string python_string(const std::string& text) {
  const char quote = text.find('\'') != std::string::npos && text.find('"') == std::string::npos ? '"' : '\'';
  std::string out(1, quote);
  for (const char c : text) {
    if (c == quote || c == '\\')
      out += '\\', out += c;
    else if (c == '\n')
      out += "\\n";
    else if (c == '\r')
      out += "\\r";
    else if (c == '\t')
      out += "\\t";
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out + quote;
}

template <class Range, class Print>
std::string joined(const char* open, const Range& range, const char* close, Print print) {
  std::string out = open;
  for (std::size_t i = 0; i < range.size(); ++i) out += (i ? ", " : "") + print(range[i]);
  return out + close;
}
}  // namespace

std::string Value::printed() const {
  if (text()) return *text();
  return defined() ? spelled() : "";
}

std::string Value::spelled() const {
  if (is<None>()) return "None";
  if (is<bool>()) return std::get<bool>(variant_) ? "True" : "False";
  if (is<std::int64_t>()) return std::to_string(std::get<std::int64_t>(variant_));
  if (is<double>()) return python_float(std::get<double>(variant_));
  if (text()) return python_string(*text());
  if (list()) return joined("[", *list(), "]", [](const Value& each) { return each.spelled(); });
  if (members())
    return joined("{", *members(), "}",
                  [](const auto& each) { return python_string(each.first) + ": " + each.second.spelled(); });
  return callable() ? "<function>" : "Undefined";
}

std::string Value::json(int indent, int level) const {
  const auto quoted = [](const std::string& text) { return nlohmann::json(text).dump(); };
  const auto wrapped = [&](const char* open, std::size_t count, const char* close, const auto& print) {
    if (count == 0) return std::string(open) + close;
    const auto line = [&](int depth) {
      return indent < 0 ? std::string() : "\n" + std::string(static_cast<std::size_t>(indent * depth), ' ');
    };
    std::string out = open;
    for (std::size_t i = 0; i < count; ++i) out += (i == 0 ? "" : indent < 0 ? ", " : ",") + line(level + 1) + print(i);
    return out + line(level) + close;
  };
  if (is<None>()) return "null";
  if (is<bool>()) return std::get<bool>(variant_) ? "true" : "false";
  if (number()) return spelled();
  if (text()) return quoted(*text());
  if (list())
    return wrapped("[", list()->size(), "]", [&](std::size_t i) { return (*list())[i].json(indent, level + 1); });
  if (members() && !changeable())
    return wrapped("{", members()->size(), "}", [&](std::size_t i) {
      const auto& [key, value] = (*members())[i];
      return quoted(key) + ": " + value.json(indent, level + 1);
    });
  throw Error("tojson", "a value that JSON can hold", kind());
}

bool equal(const Value& a, const Value& b) {
  if (a.number() && b.number()) return a.whole() && b.whole() ? a.integer() == b.integer() : a.real() == b.real();
  if (a.text() && b.text()) return *a.text() == *b.text();
  if (a.list() && b.list()) return std::ranges::equal(*a.list(), *b.list(), equal);
  if (a.changeable() || b.changeable()) return a.changeable() == b.changeable();
  if (a.members() && b.members())
    return a.members()->size() == b.members()->size() && std::ranges::all_of(*a.members(), [&](const auto& each) {
             const Value* other = find(*b.members(), each.first);
             return other && equal(each.second, *other);
           });
  if (a.callable() || b.callable()) return a.callable() == b.callable();
  return (a.is<None>() && b.is<None>()) || (!a.defined() && !b.defined());
}

bool less(const Value& a, const Value& b) {
  if (a.number() && b.number()) return a.whole() && b.whole() ? a.integer() < b.integer() : a.real() < b.real();
  if (a.text() && b.text()) return *a.text() < *b.text();  // UTF-8 is in the order of its characters
  if (a.list() && b.list()) return std::ranges::lexicographical_compare(*a.list(), *b.list(), less);
  throw Error("comparison", "two numbers or two strings", a.kind() + " and " + b.kind());
}

const Value* find(const Members& members, std::string_view key) {
  const auto found = std::ranges::find(members, key, &Members::value_type::first);
  return found == members.end() ? nullptr : &found->second;
}

void put(Members& members, const std::string& key, Value value) {
  const auto found = std::ranges::find(members, key, &Members::value_type::first);
  if (found == members.end())
    members.emplace_back(key, std::move(value));
  else
    found->second = std::move(value);
}

void Namespace::set(const std::string& name, const Value& value) {
  if (value.holds_namespace() || value.depth() > deepest_value / 2)
    throw Error("template",
                fmt::format("a value without namespaces, at most {} in one another, as a namespace's member",
                            deepest_value / 2),
                value.kind());
  put(members, name, value);
}

void Budget::spend(std::uint64_t amount, const std::string& where) {
  if (amount > static_cast<std::uint64_t>(left))
    throw Error(where, "a template that ends", "one that goes on and on, or makes ever longer texts");
  left -= static_cast<std::int64_t>(amount);
}

const Value* Arguments::find(std::size_t place, std::string_view name) const {
  return place < given.size() ? &given[place] : jinja::find(named, name);
}

const Value& Arguments::at(std::size_t place, std::string_view name) const {
  const Value* found = find(place, name);
  if (!found) throw Error(where, fmt::format("the argument {}", name), "none");
  return *found;
}

std::int64_t Arguments::integer(std::size_t place, std::string_view name, std::int64_t fallback) const {
  const Value* found = find(place, name);
  if (!found || found->is<None>()) return fallback;
  if (!found->whole()) throw Error(where, fmt::format("a whole number for {}", name), found->kind());
  return found->integer();
}

bool Arguments::flag(std::size_t place, std::string_view name, bool fallback) const {
  const Value* found = find(place, name);
  return found ? found->truth() : fallback;
}

std::vector<std::string_view> characters(const std::string& text) {
  std::vector<std::string_view> out;
  for (std::size_t at = 0; at < text.size();) {
    const auto length = std::min(static_cast<std::size_t>(utf8_length(text[at])), text.size() - at);
    out.push_back(std::string_view(text).substr(at, length));
    at += length;
  }
  return out;
}

List elements(const Value& value, const std::string& where) {
  List out;
  if (const List* list = value.list()) return *list;
  if (const std::string* text = value.text()) {
    for (const std::string_view each : characters(*text)) out.emplace_back(std::string(each));
  } else if (const Members* members = value.members()) {
    for (const auto& [key, member] : *members) out.emplace_back(key);
  } else if (value.defined()) {
    throw Error(where, "something to go through: a list, an object, a string", value.kind());
  }
  return out;
}

}  // namespace headscope::jinja
