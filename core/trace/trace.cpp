#include "core/trace/trace.h"

namespace headscope {

std::vector<std::int32_t> Trace::ids() const {
  std::vector<std::int32_t> result;
  result.reserve(tokens.size());
  for (const Token& token : tokens) result.push_back(token.id);
  return result;
}

}  // namespace headscope
