#pragma once
// What a chat template computes with: Python's values, as far as templates use them. Strings are UTF-8 and count in
// characters; objects keep the order of their keys. For core/text and core/lesson.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/error.h"

namespace headscope::jinja {

class Value;
using List = std::vector<Value>;
using Members = std::vector<std::pair<std::string, Value>>;

/// A name that nobody gave a value: prints as nothing, counts as false, has nothing in it.
struct Undefined {
  std::string name;
};
struct None {};
/// What `namespace()` makes: the one value that can be changed.
struct Namespace {
  Members members;
  /// Throws Error on a value that holds a namespace, or too many others.
  void set(const std::string& name, const Value& value);
};
struct Arguments;
/// A macro or a function.
struct Callable {
  std::function<Value(const Arguments&)> call;
  int depth = 0;  ///< of what it holds on to
};

class Value {
 public:
  using Variant = std::variant<Undefined, None, bool, std::int64_t, double, std::shared_ptr<const std::string>,
                               std::shared_ptr<const List>, std::shared_ptr<const Members>, std::shared_ptr<Namespace>,
                               std::shared_ptr<const Callable>>;
  Value() = default;
  Value(Undefined value) : variant_(std::move(value)) {}
  Value(None value) : variant_(value) {}
  Value(bool value) : variant_(value) {}
  Value(std::int64_t value) : variant_(value) {}
  Value(double value) : variant_(value) {}
  Value(std::string value) : variant_(std::make_shared<const std::string>(std::move(value))) {}
  Value(const char* value) : Value(std::string(value)) {}
  /// Throw Error on values in values in values, so that printing and forgetting them always ends.
  Value(List value);
  Value(Members value);
  Value(std::shared_ptr<Namespace> value);
  Value(Callable value);

  template <class T>
  bool is() const {
    return std::holds_alternative<T>(variant_);
  }
  bool defined() const { return !is<Undefined>(); }
  const std::string* text() const;
  const List* list() const;
  const Members* members() const;  ///< of an object or a namespace
  Namespace* changeable() const;
  const Callable* callable() const;
  bool number() const { return is<std::int64_t>() || is<double>() || is<bool>(); }
  bool whole() const { return is<std::int64_t>() || is<bool>(); }
  std::int64_t integer() const;  ///< REQUIRES whole()
  double real() const;           ///< REQUIRES number()

  bool truth() const;
  /// "a string", "a list of 3": for errors.
  std::string kind() const;
  /// As Python's str() and repr() write it.
  std::string printed() const;
  std::string spelled() const;
  /// As json.dumps writes it, with `indent` spaces a level; < 0 = on one line.
  std::string json(int indent = -1, int level = 0) const;

  int depth() const { return depth_; }  ///< of values inside of one another
  /// Whether a namespace is in it, which then goes into no other: none is in itself.
  bool holds_namespace() const { return holds_namespace_; }

 private:
  void contain(const Value& inner);

  Variant variant_;
  int depth_ = 0;
  bool holds_namespace_ = false;
};

bool equal(const Value& a, const Value& b);
/// a < b. Throws Error on values that have no order.
bool less(const Value& a, const Value& b);
const Value* find(const Members& members, std::string_view key);
void put(Members& members, const std::string& key, Value value);

/// How much a template may do and make, so that one that never ends, or grows without bound, ends with an Error.
struct Budget {
  std::int64_t left = std::int64_t{64} << 20;  ///< steps and bytes together
  void spend(std::uint64_t amount, const std::string& where);
};

/// What a call is given. `where` is for Errors.
struct Arguments {
  const std::string& where;
  Budget& budget;
  List given;
  Members named;
  /// The argument at `place` or called `name`, else null.
  const Value* find(std::size_t place, std::string_view name) const;
  const Value& at(std::size_t place, std::string_view name) const;  ///< throws Error when it is absent
  std::int64_t integer(std::size_t place, std::string_view name, std::int64_t fallback) const;
  bool flag(std::size_t place, std::string_view name, bool fallback) const;
};

/// A text's characters, so that places in it count as Python's do.
std::vector<std::string_view> characters(const std::string& text);
/// What a loop goes through: elements, keys, characters; nothing of an undefined value. Throws Error of others.
List elements(const Value& value, const std::string& where);

}  // namespace headscope::jinja
