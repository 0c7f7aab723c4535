#include "core/io/pickle.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

#include "core/base/error.h"
#include "core/base/excerpt.h"

namespace headscope {

namespace {

// The largest state dicts have a few hundred thousand values; a byte can make one of a hundred bytes.
constexpr std::size_t most_values = std::size_t{1} << 21;
// References in lists and dicts and on the stack, of which two bytes make one.
constexpr std::size_t most_stacked = std::size_t{1} << 22;

const char* name_of(PickleValue::Kind kind) {
  switch (kind) {
    case PickleValue::Kind::none:
      return "None";
    case PickleValue::Kind::boolean:
      return "a truth value";
    case PickleValue::Kind::integer:
      return "an integer";
    case PickleValue::Kind::real:
      return "a number";
    case PickleValue::Kind::text:
      return "a string";
    case PickleValue::Kind::tuple:
      return "a tuple";
    case PickleValue::Kind::list:
      return "a list";
    case PickleValue::Kind::dict:
      return "a dict";
    case PickleValue::Kind::global:
      return "a class";
    case PickleValue::Kind::special:
      break;
  }
  return "an object";
}

}  // namespace

Pickle::Pickle(std::string_view bytes, std::string where, PickleRules& rules)
    : bytes_(bytes), where_(std::move(where)) {
  run(rules);
}

void Pickle::fail(const std::string& expected, const std::string& found) const {
  throw Error(where_, expected, fmt::format("{} at byte {}", found, opcode_at_));
}

std::string_view Pickle::take(std::uint64_t count) {
  if (count > bytes_.size() - at_)
    fail(fmt::format("{} bytes more", count), fmt::format("the end after {}", bytes_.size() - at_));
  const std::string_view taken = bytes_.substr(at_, static_cast<std::size_t>(count));
  at_ += static_cast<std::size_t>(count);
  return taken;
}

std::string_view Pickle::line() {
  const std::size_t end = bytes_.find('\n', at_);
  if (end == std::string_view::npos) fail("a line", "the end");
  const std::string_view taken = bytes_.substr(at_, end - at_);
  at_ = end + 1;
  return taken;
}

template <class T>
T Pickle::number() {
  T value;
  const std::string_view bytes = take(sizeof value);
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

/// Two's complement, little-endian, as short as can be.
std::int64_t Pickle::long_integer(std::string_view bytes) const {
  if (bytes.size() > 8) fail("an integer of at most 8 bytes", fmt::format("{} bytes", bytes.size()));
  if (bytes.empty()) return 0;
  std::uint64_t value = bytes.back() < 0 ? ~std::uint64_t{0} : 0;
  std::memcpy(&value, bytes.data(), bytes.size());
  return std::bit_cast<std::int64_t>(value);
}

PickleRef Pickle::add(PickleValue value) {
  if (values_.size() == most_values) fail(fmt::format("at most {} values", most_values), "more");
  held_ += value.items.size();
  if (held_ > most_stacked) fail(fmt::format("at most {} values in lists", most_stacked), "more");
  values_.push_back(std::move(value));
  return static_cast<PickleRef>(values_.size() - 1);
}

void Pickle::push_text(std::string_view value) {
  push({.kind = Kind::text, .text = std::string(value)});
}

PickleRef Pickle::top() const {
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) fail("a value on the stack", "none");
  return stack_.back();
}

PickleRef Pickle::pop() {
  const PickleRef value = top();
  stack_.pop_back();
  return value;
}

std::vector<PickleRef> Pickle::pop_to_mark() {
  if (marks_.empty()) fail("a mark on the stack", "none");
  const auto mark = static_cast<std::ptrdiff_t>(marks_.back());
  marks_.pop_back();
  std::vector<PickleRef> items(stack_.begin() + mark, stack_.end());
  stack_.erase(stack_.begin() + mark, stack_.end());
  return items;
}

void Pickle::set_items(const std::vector<PickleRef>& pairs) {
  PickleValue& dict = values_[top()];
  if (dict.kind != Kind::dict || pairs.size() % 2 != 0) fail("keys and values for a dict", name_of(dict.kind));
  dict.items.insert(dict.items.end(), pairs.begin(), pairs.end());
}

void Pickle::append(const std::vector<PickleRef>& items) {
  PickleValue& list = values_[top()];
  if (list.kind != Kind::list) fail("a list to append to", name_of(list.kind));
  list.items.insert(list.items.end(), items.begin(), items.end());
}

void Pickle::name_global(const std::string& module, const std::string& name, const PickleRules& rules) {
  std::string global = module + "." + name;
  if (!rules.knows(global))
    throw Error(where_, "tensors, dicts, lists, strings and numbers only",
                fmt::format("this file runs code: {}", excerpt(global, 120)),
                "have the program that wrote it save the state dict alone, best as safetensors");
  push({.kind = Kind::global, .text = std::move(global)});
}

void Pickle::run(PickleRules& rules) {
  while (true) {
    opcode_at_ = at_;
    const auto opcode = static_cast<unsigned char>(take(1).front());
    if (opcode == '.') break;
    if (!step(opcode, rules)) fail("an instruction of pickle that makes data", fmt::format("opcode 0x{:02x}", opcode));
    if (stack_.size() + marks_.size() > most_stacked)
      fail(fmt::format("at most {} values on the stack", most_stacked), "more");
  }
  result_ = pop();
}

bool Pickle::step(unsigned char opcode, PickleRules& rules) {
  return push_constant(opcode) || build(opcode) || remember(opcode) || call(opcode, rules);
}

bool Pickle::push_constant(unsigned char opcode) {
  switch (opcode) {
    case 0x80:  // PROTO
      if (const int protocol = number<std::uint8_t>(); protocol > 5)
        fail("a pickle of protocol 5 or older", fmt::format("protocol {}", protocol));
      return true;
    case 0x95:  // FRAME: how far the next instructions reach, for those who read streams
      take(8);
      return true;
    case 'N':
      push({});
      return true;
    case 0x88:
    case 0x89:
      push({.kind = Kind::boolean, .integer = opcode == 0x88});
      return true;
    case 'K':
      push_integer(number<std::uint8_t>());
      return true;
    case 'M':
      push_integer(number<std::uint16_t>());
      return true;
    case 'J':
      push_integer(number<std::int32_t>());
      return true;
    case 'I':  // digits; "00" and "01" are False and True
    case 'L': {
      std::string_view digits = line();
      if (opcode == 'L' && digits.ends_with('L')) digits.remove_suffix(1);
      std::int64_t value = 0;
      const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
      if (problem != std::errc{} || end != digits.data() + digits.size()) fail("an integer", excerpt(digits, 40));
      if (opcode == 'I' && (digits == "00" || digits == "01"))
        push({.kind = Kind::boolean, .integer = value});
      else
        push_integer(value);
      return true;
    }
    case 0x8a:
      push_integer(long_integer(take(number<std::uint8_t>())));
      return true;
    case 0x8b:
      push_integer(long_integer(take(number<std::uint32_t>())));
      return true;
    case 'G': {  // big-endian
      std::uint64_t bits = 0;
      for (const char c : take(8)) bits = bits << 8 | static_cast<unsigned char>(c);
      push({.kind = Kind::real, .real = std::bit_cast<double>(bits)});
      return true;
    }
    case 'F': {
      const std::string_view digits = line();
      double value = 0;
      const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
      if (problem != std::errc{} || end != digits.data() + digits.size()) fail("a number", excerpt(digits, 40));
      push({.kind = Kind::real, .real = value});
      return true;
    }
    case 0x8c:  // strings of one, four and eight bytes of length; 'U', 'C', 'T', 'B' are byte strings
    case 'U':
    case 'C':
      push_text(take(number<std::uint8_t>()));
      return true;
    case 'X':
    case 'T':
    case 'B':
      push_text(take(number<std::uint32_t>()));
      return true;
    case 0x8d:
    case 0x8e:
      push_text(take(number<std::uint64_t>()));
      return true;
    case 'V':
      push_text(line());
      return true;
    default:
      return false;
  }
}

bool Pickle::build(unsigned char opcode) {
  switch (opcode) {
    case '(':
      marks_.push_back(stack_.size());
      return true;
    case '0':
      pop();
      return true;
    case '1':
      pop_to_mark();
      return true;
    case '2':
      stack_.push_back(top());
      return true;
    case ')':
      push({.kind = Kind::tuple});
      return true;
    case ']':
      push({.kind = Kind::list});
      return true;
    case '}':
      push({.kind = Kind::dict});
      return true;
    case 't':
      push({.kind = Kind::tuple, .items = pop_to_mark()});
      return true;
    case 'l':
      push({.kind = Kind::list, .items = pop_to_mark()});
      return true;
    case 'd': {
      const std::vector<PickleRef> pairs = pop_to_mark();
      push({.kind = Kind::dict});
      set_items(pairs);
      return true;
    }
    case 0x85:
    case 0x86:
    case 0x87: {  // tuples of one, two, three
      std::vector<PickleRef> items(static_cast<std::size_t>(opcode - 0x84));
      for (auto item = items.rbegin(); item != items.rend(); ++item) *item = pop();
      push({.kind = Kind::tuple, .items = std::move(items)});
      return true;
    }
    case 'a': {
      const PickleRef item = pop();
      append({item});
      return true;
    }
    case 'e':
      append(pop_to_mark());
      return true;
    case 's': {
      const PickleRef value = pop(), key = pop();
      set_items({key, value});
      return true;
    }
    case 'u':
      set_items(pop_to_mark());
      return true;
    default:
      return false;
  }
}

bool Pickle::remember(unsigned char opcode) {
  const auto decimal = [&] {
    const std::string_view digits = line();
    std::uint32_t value = 0;
    const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (problem != std::errc{} || end != digits.data() + digits.size()) fail("a number", excerpt(digits, 40));
    return value;
  };
  const auto recall = [&](std::uint32_t place) {
    const auto known = memo_.find(place);
    if (known == memo_.end()) fail(fmt::format("a value remembered as {}", place), "none");
    stack_.push_back(known->second);
    return true;
  };
  const auto keep = [&](std::uint32_t place) {
    memo_[place] = top();
    return true;
  };
  switch (opcode) {
    case 'p':
      return keep(decimal());
    case 'q':
      return keep(number<std::uint8_t>());
    case 'r':
      return keep(number<std::uint32_t>());
    case 0x94:
      return keep(static_cast<std::uint32_t>(memo_.size()));
    case 'g':
      return recall(decimal());
    case 'h':
      return recall(number<std::uint8_t>());
    case 'j':
      return recall(number<std::uint32_t>());
    default:
      return false;
  }
}

bool Pickle::call(unsigned char opcode, PickleRules& rules) {
  switch (opcode) {
    case 'c':
    case 'i': {  // GLOBAL; INST, which also calls it
      const std::string module(line()), name(line());
      name_global(module, name, rules);
      if (opcode == 'c') return true;
      fail("a call of one argument list", "an older form of it");
    }
    case 0x93: {  // STACK_GLOBAL
      const PickleRef name = pop(), module = pop();
      name_global(text(module, "a module's name"), text(name, "a name in it"), rules);
      return true;
    }
    case 'R':     // a call
    case 0x81: {  // NEWOBJ: a new object of a class, which is as good
      const PickleRef arguments = pop(), callee = pop();
      if (values_[callee].kind != Kind::global || values_[arguments].kind != Kind::tuple)
        fail("a class and a tuple of arguments", name_of(values_[callee].kind));
      push(rules.call(*this, values_[callee].text, values_[arguments]));
      return true;
    }
    case 'b': {  // BUILD: attributes, such as the versions of modules that a state dict carries; nobody needs them
      const PickleRef state = pop();
      PickleValue& built = values_[top()];
      if (built.kind != Kind::dict && built.kind != Kind::special)
        fail("attributes of a dict or tensor", name_of(built.kind));
      // Of an object that is read as the dict of its attributes, they are all.
      if (built.kind == Kind::dict && !built.text.empty() && values_[state].kind == Kind::dict && state != top()) {
        held_ += values_[state].items.size();
        if (held_ > most_stacked) fail(fmt::format("at most {} values in lists", most_stacked), "more");
        built.items = values_[state].items;
      }
      return true;
    }
    case 'Q': {
      const PickleRef id = pop();
      push(rules.persistent(*this, values_[id]));
      return true;
    }
    default:
      return false;
  }
}

std::int64_t Pickle::integer(PickleRef ref, const char* what) const {
  const PickleValue& value = values_[ref];
  if (value.kind != Kind::integer) fail(fmt::format("{} (an integer)", what), name_of(value.kind));
  return value.integer;
}

const std::string& Pickle::text(PickleRef ref, const char* what) const {
  const PickleValue& value = values_[ref];
  if (value.kind != Kind::text) fail(fmt::format("{} (a string)", what), name_of(value.kind));
  return value.text;
}

const std::vector<PickleRef>& Pickle::items(PickleRef ref, const char* what) const {
  const PickleValue& value = values_[ref];
  if (value.kind != Kind::tuple && value.kind != Kind::list)
    fail(fmt::format("{} (a tuple)", what), name_of(value.kind));
  return value.items;
}

}  // namespace headscope
