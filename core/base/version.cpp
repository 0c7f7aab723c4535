#include "core/base/version.h"

namespace headscope {

const std::string_view program_version = HEADSCOPE_VERSION;

}  // namespace headscope
