#pragma once
// Python's pickle format (pickletools.py is its definition), read as data. A pickle is a program for a stack machine
// that may call anything; here it can build dicts, lists, tuples, strings and numbers, and whatever `PickleRules` make
// of the names they know. Every other name is refused, by its name, before anything is done with it.

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace headscope {

class Pickle;

/// A place among a Pickle's values. Values refer to one another by it, so that lists which hold themselves harm nobody.
using PickleRef = std::uint32_t;

struct PickleValue {
  enum class Kind { none, boolean, integer, real, text, tuple, list, dict, global, special };
  Kind kind = Kind::none;
  std::int64_t integer = 0;  ///< also of a boolean; what a `special` means is its maker's
  double real = 0;
  std::string text = {};              ///< of a global: "module.name"; likewise of an object read as a dict, its class
  std::vector<PickleRef> items = {};  ///< of a dict: key, value, key, value, …
};

/// What is known besides Python's own types.
class PickleRules {
 public:
  virtual ~PickleRules() = default;
  virtual bool knows(const std::string& global) const = 0;
  /// The value of `global(*arguments)`.
  virtual PickleValue call(const Pickle& pickle, const std::string& global, const PickleValue& arguments) = 0;
  /// The value that a persistent id stands for.
  virtual PickleValue persistent(const Pickle& pickle, const PickleValue& id) = 0;
};

class Pickle {
 public:
  /// Reads one pickle from the front of `bytes`, which need not end with it. Throws Error at `where` on a program that
  /// is cut short, malformed, asks for a name that the rules do not know, or makes more values than any file of
  /// tensors.
  Pickle(std::string_view bytes, std::string where, PickleRules& rules);

  const PickleValue& operator[](PickleRef ref) const { return values_[ref]; }
  const PickleValue& result() const { return values_[result_]; }
  std::size_t length() const { return at_; }  ///< bytes that the pickle took
  const std::string& where() const { return where_; }

  /// Parts of a value that must be so; throw Error otherwise, `what` being the words for it.
  std::int64_t integer(PickleRef ref, const char* what) const;
  const std::string& text(PickleRef ref, const char* what) const;
  const std::vector<PickleRef>& items(PickleRef ref, const char* what) const;  ///< of a tuple or list

 private:
  using Kind = PickleValue::Kind;
  void run(PickleRules& rules);
  bool step(unsigned char opcode, PickleRules& rules);
  bool push_constant(unsigned char opcode);
  bool build(unsigned char opcode);
  bool remember(unsigned char opcode);
  bool call(unsigned char opcode, PickleRules& rules);

  [[noreturn]] void fail(const std::string& expected, const std::string& found) const;
  std::string_view take(std::uint64_t count);
  std::string_view line();
  template <class T>
  T number();
  std::int64_t long_integer(std::string_view bytes) const;

  PickleRef add(PickleValue value);
  void push(PickleValue value) { stack_.push_back(add(std::move(value))); }
  void push_integer(std::int64_t value) { push({.kind = Kind::integer, .integer = value}); }
  void push_text(std::string_view value);
  PickleRef pop();
  PickleRef top() const;
  std::vector<PickleRef> pop_to_mark();
  void set_items(const std::vector<PickleRef>& pairs);
  void append(const std::vector<PickleRef>& items);
  void name_global(const std::string& module, const std::string& name, const PickleRules& rules);

  std::string_view bytes_;
  std::string where_;
  std::size_t at_ = 0, opcode_at_ = 0;
  std::deque<PickleValue> values_;
  std::vector<PickleRef> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint32_t, PickleRef> memo_;
  std::size_t held_ = 0;  // references in all lists, tuples and dicts as they were made
  PickleRef result_ = 0;
};

}  // namespace headscope
