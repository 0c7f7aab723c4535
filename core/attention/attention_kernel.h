#pragma once
// Attention on a device with kernels of its own (Backend::attention()). softmax_attention() asks it where nobody wants
// to see scores or patterns on their way; what it gives are the same sums by the same formulas, in other orders.

#include <span>
#include <vector>

#include "core/attention/softmax_attention.h"

namespace headscope {

class AttentionKernel {
 public:
  virtual ~AttentionKernel() = default;
  /// One head's rule: `whole`, that says all, and what it is made of where that is ranges of keys and numbers.
  struct Head {
    HeadRule whole;  ///< rule and scale
    HeadRule parts;  ///< as HeadRule says, before own_scores()
  };
  /// Whether it can: room for the biases of rules that are no plain ranges.
  virtual bool takes(const AttentionInput& in, std::span<const Head> heads) const = 0;
  /// Room for z that attend() may write to.
  virtual Tensor room(Shape shape) = 0;
  /// Whether attend() can do all texts of `in` at once: rules that are ranges of keys.
  virtual bool takes_together(const AttentionInput& in, std::span<const Head> heads) const = 0;
  /// One text or, without maps, all of in.lengths; writes z (query, head, d_value). Statistics of the maps hold from
  /// Backend::finish() on.
  virtual std::vector<AttentionMap> attend(const AttentionInput& in, std::span<const Head> heads, Tensor z) = 0;
  /// Whether record() can.
  virtual bool records(const Tape& tape, const AttentionInput& in, std::span<const Head> heads) const = 0;
  /// Records z, which attend() wrote, on the tape: of all texts of `in`, where anything of it is active.
  virtual void record(Tape& tape, const AttentionInput& in, std::span<const Head> heads, const Tensor& z) = 0;
};

}  // namespace headscope
