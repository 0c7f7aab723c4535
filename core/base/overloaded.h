#pragma once
// std::visit with one lambda per alternative.

namespace headscope {

template <class... Arms>
struct Overloaded : Arms... {
  using Arms::operator()...;
};

}  // namespace headscope
