#pragma once
// Where the memory of Titans enters what a head gives, with the numbers of one run, for a picture
// (app/render/memory_picture.h).

#include <optional>

#include "core/attention/neural_memory.h"

namespace headscope {

struct MemoryPaths {
  std::optional<TitansForm> form;  ///< nullopt: memory alone
  bool taught_output = true;       ///< MAC: memory is taught y → y; false: k → y
  Index tokens = 0;                ///< of the text
  Index persistent = 0;            ///< tokens in front of it
  Index seen = 0, recalled = 0;    ///< tokens of the text, and recalled ones, that attention of the last token sees
  /// Mean over the tokens of what attention gives each kind: they sum to 1. 0 for memory alone.
  double to_persistent = 0, to_recalled = 0, to_tokens = 0;
  double y = 0;           ///< mean ‖y‖ of what attention reads
  double says = 0;        ///< mean of ‖M(q)‖: what was recalled, or what memory says
  double gate = 0;        ///< mean of all its numbers; 0 for a form without one
  double output = 0;      ///< mean ‖o‖
  double surprise = 0;    ///< mean ‖∇ loss‖
  double forgetting = 0;  ///< mean αₜ
};

}  // namespace headscope
