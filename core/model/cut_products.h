#pragma once
// Which matrices give what the next step does not read as it is.

#include <fmt/format.h>

#include <string>

#include "core/base/error.h"
#include "core/model/config.h"
#include "core/model/weights.h"

namespace headscope {

/// Throws Error at `where` on a matrix whose products this model cuts (ModelConfig::clip_qkv): of what was cut nothing
/// tells what another matrix in its place had given.
inline void check_uncut(const ModelConfig& config, WeightMatrix matrix, const std::string& where) {
  if (config.clip_qkv <= 0 || matrix > WeightMatrix::v) return;  // q, k and v
  throw Error(where, "a matrix whose products are used as they are",
              fmt::format("{}, whose products {} cuts to ± {}", symbol_of(matrix), config.name, config.clip_qkv));
}

}  // namespace headscope
