#pragma once
// An edit of how a model knows where its tokens stand, as a value with words:
//
//   position none                                nothing says where a token stands, but the causal mask
//   position rope [base B] [scaling NAME FACTOR [ramp whole|pairs|turns]]
//                                                rotation with another base, or stretched (core/attention/rotary.h);
//                                                of yarn, what its ramp runs along
//   position sinusoidal                          added to the token embeddings
//   position alibi [on top]                      −slope · distance, instead of what the model has or beside it
//   position t5 MAX bias B0,B1,… [on top]        a number per bucket of distances up to MAX
//   position chunks S                            dual chunk attention: no distance beyond the trained context
//   position shift N                             all tokens stand N later: RoPE does not notice, a table does
//
// All but "shift" and "on top" take the place of the model's own positions: a rotary model's q and k are left as they
// were before rotation, a learned table is left out. Of several such edits the last that reaches a row holds there. A
// shift moves whatever positions there are, a bias on top is added to them, and ALiBi and T5 on top add up: none of
// these is lost to another position edit, whatever their order.

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/attention/rotary.h"
#include "core/edits/edit.h"
#include "core/model/config.h"

namespace headscope {

struct SetPositions {
  enum class Method { none, rope, sinusoidal, alibi, t5, chunks, shift } method = Method::none;
  std::optional<double> base = {};                    ///< rope; absent = the model's own
  std::optional<RotaryConfig::Scaling> scaling = {};  ///< rope; absent = the model's own
  double factor = 1;                                  ///< of the scaling
  /// yarn; absent = the model's own where it has one, else from a whole pair to a whole pair, as transformers has it
  /// where config.json does not say (rope_scaling.truncate).
  std::optional<RotaryConfig::Ramp> ramp = {};
  int shift = 0;
  int chunk = 0;                 ///< chunks: tokens in one
  int max_distance = 128;        ///< t5
  std::vector<float> bias = {};  ///< t5, by bucket
  bool on_top = false;           ///< alibi, t5
  bool operator==(const SetPositions&) const = default;

  /// The model's own positions go.
  bool replaces() const { return method != Method::shift && !on_top; }
  static constexpr double lowest_base = 1.0001, highest_base = 1e12, highest_factor = 1e6;
  static constexpr int most_shift = 1 << 24, most_buckets = 4096, most_distance = 1 << 24;
};

std::shared_ptr<const Edit> edit_of(SetPositions value);

/// "whole", "pairs", "turns": what an edit calls the ramps of YaRN, and what they are.
struct RampInfo {
  RotaryConfig::Ramp ramp;
  std::string_view id, title, formula;
};
std::span<const RampInfo> yarn_ramps();
const RampInfo& info(RotaryConfig::Ramp ramp);

/// The rotation that "position rope …" means in this model; `own` of a model without rotary positions is base 10000.
RotaryConfig rotary_of(const SetPositions& edit, const ModelConfig& model, int layer = 0);

}  // namespace headscope
