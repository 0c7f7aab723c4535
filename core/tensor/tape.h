#pragma once
// Reverse-mode differentiation (Griewank & Walther, Evaluating Derivatives, 2008). While a Backend records on a tape,
// every op that depends on a watched tensor leaves behind what its backward needs; backward() runs these in reverse
// order. Without a tape nothing is kept and nothing costs more.
//
// A gradient belongs to a tensor's *storage*: it is a buffer of the same size, so the gradient of a view (slice,
// reshape, transpose, select) is the same view of that buffer. Views need no recording, and a weight used twice (tied
// embeddings) gathers both its gradients by itself. A tensor that a tap put in another's place has other storage: no
// gradient flows past it. One thread at a time; one backward() per tape.

#include <functional>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/tensor/tensor.h"

namespace headscope {

class Backend;

class Tape {
 public:
  explicit Tape(Backend& backend);
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  /// Asks for the gradient of this tensor's storage: a weight, or an activation just made. Any number of times.
  void watch(const Tensor& x);
  bool watched(const Tensor& x) const;
  /// Whether anything watched is in, or went into, this tensor's storage: only then do ops record.
  bool active(const Tensor& x) const { return x.defined() && active_.contains(x.storage().first); }

  /// d (Σ weight · output) for everything watched. `weight` has output's shape; for a loss of one element it is {1}.
  void backward(const Tensor& output, const Tensor& weight);
  /// After backward(): the gradient of a watched tensor or of a view of one; zeros where nothing depended on it.
  Tensor gradient(const Tensor& x);

  // For ops.

  using Backward = std::function<void(const Tensor& d_output)>;
  /// `backward` adds to the gradients of the op's inputs, given that of its output, which is whole storage just made.
  void record(const Tensor& output, Backward backward);

  /// Where an op writes the gradient of its input x (of x's shape and strides).
  struct Slot {
    Tensor values;
    bool add;  ///< true: add to what is there. False: nothing is there yet, write every element.
  };
  Slot into(const Tensor& x);
  /// The gradient of x is that of the running op's output, unchanged: shared, not copied, until one of them changes.
  /// False, and nothing done, where x is part of its storage or has a gradient already.
  bool pass_on(const Tensor& x);
  /// The gradient of x is `values`, whole storage that nobody else writes to. Or false, as above.
  bool adopt(const Tensor& x, const Tensor& values);

 private:
  struct Gradient {
    Tensor storage;                  // keeps the memory, and so the key, alive
    std::shared_ptr<Tensor> buffer;  // flat; shared by the inputs of a sum
  };
  struct Record {
    Tensor output;
    Backward backward;
  };
  bool give(const Tensor& x, std::shared_ptr<Tensor> buffer);
  Tensor view(const Tensor& x, const Gradient& gradient) const { return x.same_view_of(*gradient.buffer); }

  Backend& backend_;
  std::vector<Record> records_;
  std::unordered_set<const float*> active_;
  std::unordered_map<const float*, Tensor> watched_;
  std::unordered_map<const float*, Gradient> gradients_;
  Gradient running_;  // of the output of the op whose backward runs
};

}  // namespace headscope
