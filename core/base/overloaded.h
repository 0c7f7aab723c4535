#pragma once
// std::visit with one lambda per alternative.

namespace headscope {

template <class... Arms>
struct Overloaded : Arms... {
  using Arms::operator()...;
};
template <class... Arms>
Overloaded(Arms...) -> Overloaded<Arms...>;  // Clang 16 does not deduce it for an aggregate with bases

}  // namespace headscope
