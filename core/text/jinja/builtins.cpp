#include "core/text/jinja/builtins.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "core/base/utf8.h"
#include "core/text/jinja/text_functions.h"

namespace headscope::jinja {

namespace {

Value at_path(const Value& value, const std::string& path) {
  Value found = value;
  for (std::size_t from = 0; from <= path.size();) {
    const std::size_t dot = std::min(path.find('.', from), path.size());
    found = attribute(found, path.substr(from, dot - from), false);
    from = dot + 1;
  }
  return found;
}

/// What sort, unique, map … look at in each element.
std::function<Value(const Value&)> looked_at(const Arguments& a, std::size_t place) {
  const Value* name = a.find(place, "attribute");
  if (!name || !name->text()) return [](const Value& value) { return value; };
  return [path = *name->text()](const Value& value) { return at_path(value, path); };
}

/// Members as pairs [key, value].
List pairs(const Members& members) {
  List out;
  for (const auto& [key, value] : members) out.emplace_back(List{key, value});
  return out;
}

const Members& object(const Arguments& a) {
  const Members* members = a.at(0, "value").members();
  if (!members) throw Error(a.where, "an object", a.at(0, "value").kind());
  return *members;
}

List items_of(const Arguments& a) {
  return elements(a.at(0, "value"), a.where);
}
/// The same for select, map and their like, which go through nothing where there is nothing.
List items_or_none(const Arguments& a) {
  return a.at(0, "value").truth() ? items_of(a) : List();
}

/// [x for x in value if (test(of(x)) is `keep`)]; `first`: where the test's name stands.
Value chosen(const Arguments& a, bool by_attribute, bool keep) {
  const std::size_t first = by_attribute ? 2 : 1;
  const Value* name = first < a.given.size() ? &a.given[first] : nullptr;
  const Function test = name && name->text() ? find_test(*name->text()) : nullptr;
  if (name && !test) throw Error(a.where, "the name of a test", name->printed());
  List out;
  for (const Value& each : items_or_none(a)) {
    const Value looked = by_attribute ? at_path(each, a.at(1, "attribute").printed()) : each;
    List given{looked};
    for (std::size_t i = first + 1; i < a.given.size(); ++i) given.push_back(a.given[i]);
    const bool holds = test ? test({a.where, a.budget, given, {}}).truth() : looked.truth();
    if (holds == keep) out.push_back(each);
  }
  return out;
}

Value mapped(const Arguments& a) {
  List out;
  if (const Value* path = find(a.named, "attribute")) {
    const Value* fallback = find(a.named, "default");
    for (const Value& each : items_or_none(a)) {
      const Value found = at_path(each, path->printed());
      out.push_back(!found.defined() && fallback ? *fallback : found);
    }
    return out;
  }
  const std::string name = a.at(1, "filter").printed();
  const Function filter = find_filter(name);
  if (!filter) throw Error(a.where, "the name of a filter", name);
  for (const Value& each : items_or_none(a)) {
    List given{each};
    given.insert(given.end(), a.given.begin() + 2, a.given.end());
    out.push_back(filter({a.where, a.budget, std::move(given), a.named}));
  }
  return out;
}

Value sorted(const Arguments& a) {
  List list = items_of(a);
  const auto of = looked_at(a, 3);
  const bool exact = a.flag(2, "case_sensitive", false);
  const auto key = [&](const Value& each) {
    const Value found = of(each);
    return !exact && found.text() ? Value(lower(*found.text())) : found;
  };
  a.budget.spend(list.size() * 64, a.where);
  std::ranges::stable_sort(list, [&](const Value& x, const Value& y) { return less(key(x), key(y)); });
  if (a.flag(1, "reverse", false)) std::ranges::reverse(list);
  return list;
}

Value sorted_pairs(const Arguments& a) {
  List list = pairs(object(a));
  const std::size_t by = a.find(2, "by") && a.find(2, "by")->printed() == "value" ? 1 : 0;
  std::ranges::stable_sort(list,
                           [&](const Value& x, const Value& y) { return less((*x.list())[by], (*y.list())[by]); });
  if (a.flag(3, "reverse", false)) std::ranges::reverse(list);
  return list;
}

Value unique(const Arguments& a) {
  const auto of = looked_at(a, 2);
  List seen, out;
  for (const Value& each : items_of(a)) {
    a.budget.spend(seen.size() + 1, a.where);
    const Value key = of(each);
    if (std::ranges::any_of(seen, [&](const Value& other) { return equal(other, key); })) continue;
    seen.push_back(key);
    out.push_back(each);
  }
  return out;
}

Value length(const Arguments& a) {
  const Value& value = a.at(0, "value");
  if (const std::string* text = value.text()) return static_cast<std::int64_t>(characters(*text).size());
  return static_cast<std::int64_t>(elements(value, a.where).size());
}

Value extreme(const Arguments& a, bool largest) {
  const List list = items_of(a);
  if (list.empty()) return Undefined{"no elements"};
  return largest ? *std::ranges::max_element(list, less) : *std::ranges::min_element(list, less);
}

Value to_number(const Arguments& a, bool whole) {
  const Value& value = a.at(0, "value");
  const Value fallback = a.find(1, "default") ? a.at(1, "default") : whole ? Value(std::int64_t{0}) : Value(0.0);
  if (value.number())
    return !whole                          ? Value(value.real())
           : value.whole()                 ? Value(value.integer())
           : std::abs(value.real()) < 9e18 ? Value(static_cast<std::int64_t>(value.real()))
                                           : fallback;
  if (!value.text()) return fallback;
  try {
    std::size_t used = 0;
    const std::string text = strip(*value.text(), nullptr, true, true);
    const double number = std::stod(text, &used);
    if (used != text.size() || std::abs(number) >= 9e18) return fallback;
    return whole ? Value(static_cast<std::int64_t>(number)) : Value(number);
  } catch (const std::exception&) {  // no number at all: stod says so in its own way
    return fallback;
  }
}

Value rounded(const Arguments& a) {
  const double power = std::pow(10.0, static_cast<double>(a.integer(1, "precision", 0)));
  const std::string method = a.find(2, "method") ? a.at(2, "method").printed() : "common";
  if (!a.at(0, "value").number()) throw Error(a.where, "a number", a.at(0, "value").kind());
  const double scaled = a.at(0, "value").real() * power;
  return (method == "ceil"    ? std::ceil(scaled)
          : method == "floor" ? std::floor(scaled)
                              : std::nearbyint(scaled)) /
         power;
}

Value fallen_back(const Arguments& a) {
  const Value& value = a.at(0, "value");
  const bool absent = !value.defined() || (a.flag(2, "boolean", false) && !value.truth());
  return !absent ? value : a.find(1, "default_value") ? a.at(1, "default_value") : Value("");
}

Value summed(const Arguments& a) {
  Value total = a.find(2, "start") ? a.at(2, "start") : Value(std::int64_t{0});
  const auto of = looked_at(a, 1);
  for (const Value& each : items_of(a)) total = arithmetic("+", total, of(each), a.budget, a.where);
  return total;
}

constexpr Named filters[] = {
    {"abs",
     [](const Arguments& a) {
       const Value& x = a.at(0, "value");
       return x.whole() ? Value(std::abs(x.integer())) : Value(std::abs(to_number(a, false).real()));
     }},
    {"count", length},
    {"d", fallen_back},
    {"default", fallen_back},
    {"dictsort", sorted_pairs},
    {"first",
     [](const Arguments& a) {
       const List list = items_of(a);
       return list.empty() ? Value(Undefined{"first of nothing"}) : list.front();
     }},
    {"float", [](const Arguments& a) { return to_number(a, false); }},
    {"int", [](const Arguments& a) { return to_number(a, true); }},
    {"items", [](const Arguments& a) { return a.at(0, "value").defined() ? Value(pairs(object(a))) : Value(List{}); }},
    {"last",
     [](const Arguments& a) {
       const List list = items_of(a);
       return list.empty() ? Value(Undefined{"last of nothing"}) : list.back();
     }},
    {"length", length},
    {"list", [](const Arguments& a) { return Value(items_of(a)); }},
    {"map", mapped},
    {"max", [](const Arguments& a) { return extreme(a, true); }},
    {"min", [](const Arguments& a) { return extreme(a, false); }},
    {"reject", [](const Arguments& a) { return chosen(a, false, false); }},
    {"rejectattr", [](const Arguments& a) { return chosen(a, true, false); }},
    {"reverse",
     [](const Arguments& a) {
       List list = items_of(a);
       std::ranges::reverse(list);
       if (!a.at(0, "value").text()) return Value(list);
       std::string text;
       for (const Value& each : list) text += *each.text();
       return Value(text);
     }},
    {"round", rounded},
    {"select", [](const Arguments& a) { return chosen(a, false, true); }},
    {"selectattr", [](const Arguments& a) { return chosen(a, true, true); }},
    {"sort", sorted},
    {"string", [](const Arguments& a) { return Value(a.at(0, "value").printed()); }},
    {"sum", summed},
    {"tojson",
     [](const Arguments& a) {
       const std::int64_t indent = a.integer(1, "indent", -1);
       if (indent > 16) throw Error(a.where, "an indent of at most 16", std::to_string(indent));
       return Value(a.at(0, "value").json(static_cast<int>(indent)));
     }},
    {"unique", unique},
};

constexpr Named tests[] = {
    {"boolean", [](const Arguments& a) { return Value(a.at(0, "value").is<bool>()); }},
    {"callable", [](const Arguments& a) { return Value(a.at(0, "value").callable() != nullptr); }},
    {"defined", [](const Arguments& a) { return Value(a.at(0, "value").defined()); }},
    {"divisibleby",
     [](const Arguments& a) {
       const std::int64_t by = a.integer(1, "num", 0);
       if (by == 0) throw Error(a.where, "a number to divide by", "0");
       return Value(a.integer(0, "value", 0) % by == 0);
     }},
    {"eq", [](const Arguments& a) { return Value(equal(a.at(0, "value"), a.at(1, "other"))); }},
    {"equalto", [](const Arguments& a) { return Value(equal(a.at(0, "value"), a.at(1, "other"))); }},
    {"==", [](const Arguments& a) { return Value(equal(a.at(0, "value"), a.at(1, "other"))); }},
    {"even", [](const Arguments& a) { return Value(a.integer(0, "value", 0) % 2 == 0); }},
    {"false", [](const Arguments& a) { return Value(a.at(0, "value").is<bool>() && !a.at(0, "value").truth()); }},
    {"float", [](const Arguments& a) { return Value(a.at(0, "value").is<double>()); }},
    {"ge", [](const Arguments& a) { return Value(!less(a.at(0, "value"), a.at(1, "other"))); }},
    {"gt", [](const Arguments& a) { return Value(less(a.at(1, "other"), a.at(0, "value"))); }},
    {"in", [](const Arguments& a) { return Value(contains(a.at(1, "seq"), a.at(0, "value"), a.where)); }},
    {"integer", [](const Arguments& a) { return Value(a.at(0, "value").is<std::int64_t>()); }},
    {"iterable",
     [](const Arguments& a) {
       const Value& x = a.at(0, "value");
       return Value(!x.defined() || x.text() || x.list() || (x.members() && !x.changeable()));
     }},
    {"le", [](const Arguments& a) { return Value(!less(a.at(1, "other"), a.at(0, "value"))); }},
    {"lower",
     [](const Arguments& a) {
       const std::string text = a.at(0, "value").printed();
       return Value(text == lower(text) && text != upper(text));
     }},
    {"lt", [](const Arguments& a) { return Value(less(a.at(0, "value"), a.at(1, "other"))); }},
    {"mapping", [](const Arguments& a) { return Value(a.at(0, "value").members() && !a.at(0, "value").changeable()); }},
    {"ne", [](const Arguments& a) { return Value(!equal(a.at(0, "value"), a.at(1, "other"))); }},
    {"none", [](const Arguments& a) { return Value(a.at(0, "value").is<None>()); }},
    {"number", [](const Arguments& a) { return Value(a.at(0, "value").number()); }},
    {"odd", [](const Arguments& a) { return Value(a.integer(0, "value", 0) % 2 != 0); }},
    {"sequence",
     [](const Arguments& a) {
       const Value& x = a.at(0, "value");
       return Value(!x.defined() || x.text() || x.list() || (x.members() && !x.changeable()));
     }},
    {"string", [](const Arguments& a) { return Value(a.at(0, "value").text() != nullptr); }},
    {"true", [](const Arguments& a) { return Value(a.at(0, "value").is<bool>() && a.at(0, "value").truth()); }},
    {"undefined", [](const Arguments& a) { return Value(!a.at(0, "value").defined()); }},
    {"upper",
     [](const Arguments& a) {
       const std::string text = a.at(0, "value").printed();
       return Value(text == upper(text) && text != lower(text));
     }},
};

constexpr Named object_methods[] = {
    {"copy", [](const Arguments& a) { return a.at(0, "value"); }},
    {"get",
     [](const Arguments& a) {
       const Value* found = a.at(1, "key").text() ? find(object(a), *a.at(1, "key").text()) : nullptr;
       return found ? *found : a.find(2, "default") ? a.at(2, "default") : Value(None{});
     }},
    {"items", [](const Arguments& a) { return Value(pairs(object(a))); }},
    {"keys", [](const Arguments& a) { return Value(items_of(a)); }},
    {"values",
     [](const Arguments& a) {
       List out;
       for (const auto& member : object(a)) out.push_back(member.second);
       return Value(out);
     }},
};

constexpr Named list_methods[] = {
    {"count",
     [](const Arguments& a) {
       return Value(static_cast<std::int64_t>(
           std::ranges::count_if(items_of(a), [&](const Value& each) { return equal(each, a.at(1, "value")); })));
     }},
    {"index",
     [](const Arguments& a) {
       const List list = items_of(a);
       const auto found = std::ranges::find_if(list, [&](const Value& each) { return equal(each, a.at(1, "value")); });
       if (found == list.end()) throw Error(a.where, "an element of the list", a.at(1, "value").printed());
       return Value(static_cast<std::int64_t>(found - list.begin()));
     }},
};

}  // namespace

Function in_table(std::span<const Named> table, std::string_view name) {
  const auto found = std::ranges::find(table, name, &Named::name);
  return found == table.end() ? nullptr : found->call;
}

Function find_filter(std::string_view name) {
  const Function found = in_table(filters, name);
  return found ? found : find_text_filter(name);
}

Function find_test(std::string_view name) {
  return in_table(tests, name);
}

Value attribute(const Value& object, const std::string& name, bool method_first) {
  const Function method = object.text()         ? find_text_method(name)
                          : object.list()       ? in_table(list_methods, name)
                          : object.changeable() ? nullptr
                          : object.members()    ? in_table(object_methods, name)
                                                : nullptr;
  const Value* member = object.members() ? find(*object.members(), name) : nullptr;
  if (member && !(method && method_first)) return *member;
  if (!method) {
    const bool place = object.list() && !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
    if (place && name.size() < 7) return item(object, static_cast<std::int64_t>(std::stoi(name)), name);
    return Undefined{name};
  }
  return Callable{[object, method](const Arguments& a) {
                    List given{object};
                    given.insert(given.end(), a.given.begin(), a.given.end());
                    return method({a.where, a.budget, std::move(given), a.named});
                  },
                  object.depth() + 1};
}

Value item(const Value& object, const Value& key, const std::string& where) {
  if (key.text()) return attribute(object, *key.text(), false);
  if (!key.whole()) throw Error(where, "a string or a whole number in [ ]", key.kind());
  const auto in = [&](std::size_t size) -> std::optional<std::size_t> {
    const std::int64_t at = key.integer() < 0 ? key.integer() + static_cast<std::int64_t>(size) : key.integer();
    if (at < 0 || at >= static_cast<std::int64_t>(size)) return std::nullopt;
    return static_cast<std::size_t>(at);
  };
  if (const List* list = object.list()) {
    if (const auto at = in(list->size())) return (*list)[*at];
  } else if (const std::string* text = object.text()) {
    const auto all = characters(*text);
    if (const auto at = in(all.size())) return std::string(all[*at]);
  }
  return Undefined{key.printed()};
}

Value slice(const Value& object, const Value& first, const Value& last, const Value& step, const std::string& where) {
  const bool text = object.text() != nullptr;
  if (!text && !object.list()) throw Error(where, "a list or a string to take a part of", object.kind());
  const List all = elements(object, where);
  const auto size = static_cast<std::int64_t>(all.size());
  const auto number = [&](const Value& value, std::int64_t fallback) {
    if (!value.defined() || value.is<None>()) return fallback;
    if (!value.whole()) throw Error(where, "whole numbers in [ : ]", value.kind());
    return value.integer();
  };
  const std::int64_t by = number(step, 1);
  if (by == 0) throw Error(where, "a step other than 0", "0");
  const auto place = [&](const Value& value, std::int64_t fallback) {
    const std::int64_t at = number(value, fallback);
    return !value.defined() || value.is<None>()
               ? at
               : std::clamp(at < 0 ? at + size : at, by > 0 ? std::int64_t{0} : std::int64_t{-1},
                            by > 0 ? size : size - 1);
  };
  const std::int64_t from = place(first, by > 0 ? 0 : size - 1), to = place(last, by > 0 ? size : -1);
  List part;
  for (std::int64_t i = from; by > 0 ? i < to : i > to; i += by) part.push_back(all[static_cast<std::size_t>(i)]);
  if (!text) return part;
  std::string out;
  for (const Value& each : part) out += *each.text();
  return out;
}

bool contains(const Value& container, const Value& element, const std::string& where) {
  if (const std::string* text = container.text()) {
    if (!element.text()) throw Error(where, "a string to look for in a string", element.kind());
    return text->find(*element.text()) != std::string::npos;
  }
  if (const Members* members = container.members()) return element.text() && find(*members, *element.text());
  return std::ranges::any_of(elements(container, where), [&](const Value& each) { return equal(each, element); });
}

Value arithmetic(std::string_view op, const Value& a, const Value& b, Budget& budget, const std::string& where) {
  const auto refuse = [&]() -> Error {
    return Error(where, fmt::format("values that {} can join", op), a.kind() + " and " + b.kind());
  };
  if (op == "~") {
    std::string left = a.printed(), right = b.printed();
    budget.spend(left.size() + right.size(), where);
    return left + right;
  }
  if (op == "+" && a.text() && b.text()) {
    budget.spend(a.text()->size() + b.text()->size(), where);
    return *a.text() + *b.text();
  }
  if (op == "+" && a.list() && b.list()) {
    budget.spend((a.list()->size() + b.list()->size()) * sizeof(Value), where);
    List all = *a.list();
    all.insert(all.end(), b.list()->begin(), b.list()->end());
    return all;
  }
  if (op == "*" && a.text() && b.whole()) {
    const auto times = static_cast<std::uint64_t>(std::clamp(b.integer(), std::int64_t{0}, std::int64_t{1} << 32));
    if (!a.text()->empty()) budget.spend(times * std::min<std::uint64_t>(a.text()->size(), 1 << 30), where);
    std::string out;
    for (std::uint64_t i = 0; i < times && !a.text()->empty(); ++i) out += *a.text();
    return out;
  }
  if (op == "%" && a.text()) throw Error(where, "no formatting by %", "one");
  if (!a.number() || !b.number()) throw refuse();
  const bool whole = a.whole() && b.whole();
  const double x = a.real(), y = b.real();
  if ((op == "/" || op == "//" || op == "%") && y == 0) throw Error(where, "a number to divide by", "0");
  if (op == "/") return x / y;
  if (op == "//" && !whole) return std::floor(x / y);
  if (op == "%" && !whole) return x - std::floor(x / y) * y;
  if (!whole) return op == "+" ? x + y : op == "-" ? x - y : op == "*" ? x * y : std::pow(x, y);
  const std::int64_t i = a.integer(), j = b.integer();
  std::int64_t out = 0;
  bool outside = false;
  if (op == "+") outside = __builtin_add_overflow(i, j, &out);
  if (op == "-") outside = __builtin_sub_overflow(i, j, &out);
  if (op == "*") outside = __builtin_mul_overflow(i, j, &out);
  if (op == "//" || op == "%") {
    if (j == -1) return op == "%" ? Value(std::int64_t{0}) : arithmetic("-", std::int64_t{0}, a, budget, where);
    const std::int64_t remainder = ((i % j) + j) % j;
    out = op == "%" ? remainder : (i - remainder) / j;
  }
  if (op == "**") {
    if (j < 0) return std::pow(x, y);
    out = 1;
    for (std::int64_t n = 0; n < std::min<std::int64_t>(j, 64) && !outside; ++n)
      outside = __builtin_mul_overflow(out, i, &out);
    if (j > 64 && i * i > 1) outside = true;
    if (j > 64 && i == -1) out = j % 2 ? -1 : 1;
  }
  if (outside) throw Error(where, "whole numbers below 2^63", fmt::format("{} {} {}", i, op, j));
  return out;
}

}  // namespace headscope::jinja
