#pragma once
// Products of matrices that both change from one to the next (training): the right one is packed into panels a piece at
// a time, by the thread that multiplies with it, in a buffer that stays in its first-level cache.

#include <span>

#include "core/tensor/tensor.h"

namespace headscope {

class ThreadPool;

/// c (rows, columns) = a (rows, depth) · b (depth, columns) + bias, or that added to what c holds. a and b have any
/// strides, b any kind of numbers, c unit inner stride; `bias` (columns, unit stride) may be undefined.
struct Product {
  Tensor a, b, bias, c;
  bool add = false;
};

/// Runs several products, none of which writes what another reads or writes, side by side. The result does not depend
/// on the number of threads.
void multiply(std::span<const Product> products, ThreadPool& pool);

}  // namespace headscope
