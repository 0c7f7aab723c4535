#pragma once
// How transformers can know where a token stands: the list that choosers, the command line and pages read. The methods
// themselves are one file each beside this one (rotary positions: core/attention/rotary.h). A new one is its file and
// one line in position_methods.cpp.

#include <span>
#include <string_view>

namespace headscope {

struct PositionMethod {
  std::string_view id;       ///< "alibi"
  std::string_view title;    ///< "ALiBi"
  std::string_view summary;  ///< one line under the title
  std::string_view formula;
  std::string_view acts_on;     ///< "embeddings", "q and k", "scores", "nothing"
  std::string_view source;      ///< paper
  std::string_view words = "";  ///< further words that find it
};

std::span<const PositionMethod> position_methods();
/// nullptr for an unknown id.
const PositionMethod* find_position_method(std::string_view id);

}  // namespace headscope
