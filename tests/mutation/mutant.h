#pragma once
// What tests/mutation/mutate.py puts into its copies of the sources: operators and numbers of which HEADSCOPE_MUTANT (a
// number from 1) changes one. A binary operator is split in two, `a + b` into `a + plus<7>{} + b`: what stands on its
// sides needs no parsing, and precedence stays. The signs of `!x` and `−x` become `->*`, which binds as tightly but for
// them. Which of them a run came across is written to the file HEADSCOPE_MUTANT_HITS as it ends, one byte each.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <type_traits>
#include <utility>

namespace mutant {

constexpr int most = 8192;
inline unsigned char hit[most] = {};
inline const int active = [] {
  const char* const text = std::getenv("HEADSCOPE_MUTANT");
  return text ? std::atoi(text) : 0;
}();
inline struct Writer {
  ~Writer() {
    const char* const path = std::getenv("HEADSCOPE_MUTANT_HITS");
    if (std::FILE* const file = path ? std::fopen(path, "wb") : nullptr) {
      std::fwrite(hit, 1, sizeof hit, file);
      std::fclose(file);
    }
  }
} writer;

inline bool on(int id) {
  hit[id] = 1;
  return active == id;
}

/// The left side of an operator that waits for its right.
template <int id, class A>
struct Left {
  const A& a;
};

// One operator and what takes its place. Both must be there, with one type.
#define HEADSCOPE_MUTANT_OPERATOR(name, op, other)                                             \
  template <int id>                                                                            \
  struct name {};                                                                              \
  template <int id, class A>                                                                   \
  struct name##_left : Left<id, A> {};                                                         \
  template <class A, int id>                                                                   \
  name##_left<id, A> operator op(const A& a, name<id>) {                                       \
    return {{a}};                                                                              \
  }                                                                                            \
  template <int id, class A, class B>                                                          \
    requires std::is_same_v<decltype(std::declval<const A&>() op std::declval<const B&>()),    \
                            decltype(std::declval<const A&>() other std::declval<const B&>())> \
  auto operator op(name##_left<id, A> left, const B& b) {                                      \
    return on(id) ? left.a other b : left.a op b;                                              \
  }
HEADSCOPE_MUTANT_OPERATOR(plus_minus, +, -)
HEADSCOPE_MUTANT_OPERATOR(minus_plus, -, +)
HEADSCOPE_MUTANT_OPERATOR(times_over, *, /)
HEADSCOPE_MUTANT_OPERATOR(over_times, /, *)
HEADSCOPE_MUTANT_OPERATOR(less_up_to, <, <=)
HEADSCOPE_MUTANT_OPERATOR(less_from, <, >=)
HEADSCOPE_MUTANT_OPERATOR(up_to_less, <=, <)
HEADSCOPE_MUTANT_OPERATOR(up_to_more, <=, >)
HEADSCOPE_MUTANT_OPERATOR(more_from, >, >=)
HEADSCOPE_MUTANT_OPERATOR(more_up_to, >, <=)
HEADSCOPE_MUTANT_OPERATOR(from_more, >=, >)
HEADSCOPE_MUTANT_OPERATOR(from_less, >=, <)
HEADSCOPE_MUTANT_OPERATOR(same_other, ==, !=)
HEADSCOPE_MUTANT_OPERATOR(other_same, !=, ==)
#undef HEADSCOPE_MUTANT_OPERATOR

/// `a && b` → `a && true_or<7>{} | b`, which may leave b out; `a || b` → `a || false_and<7>{} & b`.
template <int id>
struct true_or {};
template <int id, class B>
bool operator|(true_or<id>, const B& b) {
  return on(id) || static_cast<bool>(b);
}
template <int id>
struct false_and {};
template <int id, class B>
bool operator&(false_and<id>, const B& b) {
  return !on(id) && static_cast<bool>(b);
}

/// `!x` → `no<7>{} ->* x`, `-x` → `minus<7>{} ->* x`.
template <int id>
struct no {};
template <int id, class A>
bool operator->*(no<id>, const A& a) {
  return on(id) == static_cast<bool>(a);
}
template <int id>
struct minus {};
template <int id, class A>
auto operator->*(minus<id>, const A& a) {
  return on(id) ? static_cast<decltype(-a)>(a) : -a;
}

/// `x += y` → `x += turned<7>{} += y`: −y; `x *= y` → `x *= kept<7>{} *= y`: 1.
template <int id>
struct turned {
  template <class A>
    requires std::is_arithmetic_v<A>
  auto operator+=(const A& a) const {
    return on(id) ? -a : +a;
  }
  template <class A>
    requires std::is_arithmetic_v<A>
  auto operator-=(const A& a) const {
    return *this += a;
  }
};
template <int id>
struct kept {
  template <class A>
    requires std::is_arithmetic_v<A>
  A operator*=(const A& a) const {
    return on(id) ? A{1} : a;
  }
  template <class A>
    requires std::is_arithmetic_v<A>
  A operator/=(const A& a) const {
    return *this *= a;
  }
};

template <int id, class A>
A number(A right, A wrong) {
  return on(id) ? wrong : right;
}
template <int id, class A>
A min(const A& a, const A& b) {
  return on(id) ? std::max(a, b) : std::min(a, b);
}
template <int id, class A>
A max(const A& a, const A& b) {
  return on(id) ? std::min(a, b) : std::max(a, b);
}
// Functions that may be left out.
template <int id, class A>
auto sqrt(A a) {
  return on(id) ? static_cast<decltype(std::sqrt(a))>(a) : std::sqrt(a);
}
template <int id, class A>
auto exp(A a) {
  return on(id) ? static_cast<decltype(std::exp(a))>(a) : std::exp(a);
}
template <int id, class A>
auto log(A a) {
  return on(id) ? static_cast<decltype(std::log(a))>(a) : std::log(a);
}
template <int id, class A>
auto abs(A a) {
  return on(id) ? static_cast<decltype(std::abs(a))>(a) : std::abs(a);
}

}  // namespace mutant
