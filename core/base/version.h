#pragma once

#include <string_view>

namespace headscope {

/// "0.1.0": the project's, of CMakeLists.txt.
extern const std::string_view program_version;

}  // namespace headscope
