#pragma once
// Elements by a signed place (a layer, a head, an Index), without a cast at each subscript.

#include <cassert>
#include <cstddef>
#include <iterator>
#include <type_traits>
#include <utility>

namespace headscope {

/// A place or a count as containers have them.
template <class Count>
constexpr std::size_t as_size(Count count) {
  return static_cast<std::size_t>(count);
}

/// elements[place], a vector, array or span. REQUIRES 0 ≤ place < size.
template <class Elements, class Place>
  requires requires(Elements& elements) { std::size(elements); }
constexpr decltype(auto) nth(Elements&& elements, Place place) {
  static_assert(std::is_integral_v<Place> || std::is_enum_v<Place>);
  assert(as_size(place) < std::size(elements));
  return std::forward<Elements>(elements)[as_size(place)];
}

/// The same of what a pointer points to, whose length nobody knows.
template <class Element, class Place>
constexpr Element& nth(Element* elements, Place place) {
  return elements[as_size(place)];
}

}  // namespace headscope
