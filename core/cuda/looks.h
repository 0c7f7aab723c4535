#pragma once
// Whether all numbers of a pass are finite: many tensors are looked through at once, since to start a kernel takes
// longer than to look. Private to core/cuda.

#include <memory>
#include <vector>

#include "core/cuda/card_tensors.h"
#include "core/tensor/backend.h"

namespace headscope::cuda {

class Looks {
 public:
  explicit Looks(CardTensors card) : card_(std::move(card)) {}
  /// x (row, column)
  void add(const Tensor& x);
  /// Has what was found sent home; read() after the card has been waited for.
  void send();
  void read();
  bool under_way() const { return !columns_.empty(); }
  /// Of every tensor since the last call, in order.
  std::vector<Backend::NotFinite> take();
  void forget();

 private:
  void look();

  static constexpr std::size_t most = 256;
  const CardTensors card_;
  std::vector<Operand> waiting_;         // for a kernel
  std::vector<Index> columns_;           // of those and of all that were looked through, not yet read
  std::shared_ptr<float> found_, here_;  // a number for each
  std::vector<Backend::NotFinite> findings_;
};

}  // namespace headscope::cuda
