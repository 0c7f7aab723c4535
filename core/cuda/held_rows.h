#pragma once
// Ops on few rows (generation), where starting a kernel takes as long as its work: each is held back until the next one
// says whether it goes along. A norm goes with the product that reads it, a product takes what is added to it or the
// activation of it, rows put into a cache go with the attention that reads the cache. Whoever looks at numbers that are
// held back starts what makes them. Private to core/cuda.

#include <memory>
#include <optional>
#include <vector>

#include "core/cuda/card_tensors.h"
#include "core/cuda/rows_product.h"

namespace headscope::cuda {

class HeldRows final : public Starter {
 public:
  explicit HeldRows(CardTensors card) : card_(std::move(card)) {}
  ~HeldRows() override { forget(); }

  /// The norm of x (rows, width); `shift` undefined: RMSNorm. REQUIRES rows ≤ few_rows.
  Tensor norm(const Tensor& x, const Tensor& gain, const Tensor& shift, float epsilon);
  /// x (rows, in) · w (as of RowsProduct) + bias (may be undefined). REQUIRES rows ≤ few_rows.
  Tensor product(const Tensor& x, const void* w, bool half, Index columns, Index w_stride, const Tensor& bias);
  /// a + b, where one of them is the product that is held back; else undefined, and nothing done.
  Tensor sum(const Tensor& a, const Tensor& b);
  /// The same of an activation.
  Tensor curved(Curve f, const Tensor& x);
  /// `rows` over those of `all`, one of ours, from `at` on.
  void put(const Tensor& all, Index at, const Tensor& rows);

  /// Rows still to be put behind those that keys and values have.
  struct Fresh {
    Operand k, v;       ///< (rows, kv_head, width)
    Tensor to_k, to_v;  ///< where they belong; whoever puts them there says so: written_on_card()
    int rows;
  };
  /// The last rows of k and v (key, kv_head, width), where they are held back; whoever takes them puts them there.
  std::optional<Fresh> take(const Tensor& k, const Tensor& v);

  /// Starts what is held back.
  void start() override;
  void forget();

 private:
  enum class Held { nothing, norm, product, rows };
  struct Put {
    Tensor all;
    Index at;
    Operand rows;
  };
  Tensor made(Shape shape);
  const float* read(const Tensor& x);
  void put(const Put& put);

  const CardTensors card_;
  Held held_ = Held::nothing;
  RowsProduct task_;
  Tensor normed_, product_;
  std::vector<Tensor> made_, keeps_;  // what will be written, and what is read for it
  std::vector<Put> puts_;
};

}  // namespace headscope::cuda
