#pragma once
// Elements by a signed place (a layer, a head, an Index), without a cast at each subscript.

#include <cassert>
#include <cstddef>
#include <iterator>
#include <type_traits>
#include <utility>

namespace headscope {

/// elements[place], a vector, array or span. REQUIRES 0 ≤ place < size.
template <class Elements, class Place>
  requires requires(Elements& elements) { std::size(elements); }
constexpr decltype(auto) nth(Elements&& elements, Place place) {
  static_assert(std::is_integral_v<Place> || std::is_enum_v<Place>);
  assert(static_cast<std::size_t>(place) < std::size(elements));
  return std::forward<Elements>(elements)[static_cast<std::size_t>(place)];
}

/// The same of what a pointer points to, whose length nobody knows.
template <class Element, class Place>
constexpr Element& nth(Element* elements, Place place) {
  return elements[static_cast<std::size_t>(place)];
}

}  // namespace headscope
