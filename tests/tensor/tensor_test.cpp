#include "core/tensor/tensor.h"

#include <doctest/doctest.h>

#include <vector>

namespace headscope::tensor_test {

namespace {
Tensor counting(Shape shape) {
  Tensor t = Tensor::uninitialized(shape);
  float next = 0;
  for (float& v : t.mutable_values()) v = next++;
  return t;
}
}  // namespace

TEST_CASE("views share storage and keep their strides") {
  const Tensor t = counting({3, 4});
  const Tensor columns = t.slice(1, 1, 3);
  CHECK(columns.shape() == Shape{3, 2});
  CHECK_FALSE(columns.contiguous());
  CHECK(columns.at(2, 1) == 10);
  CHECK(columns.data() == t.data() + 1);
  CHECK(t.transpose(0, 1).at(3, 1) == 7);
  CHECK(t.select(0, 1).at(2) == 6);
  CHECK(t.select(1, 2).at(2) == 10);
}

TEST_CASE("copy makes any view contiguous in row-major order") {
  const Tensor t = counting({2, 3, 4});
  const Tensor c = t.transpose(0, 2).copy();
  CHECK(c.shape() == Shape{4, 3, 2});
  for (Index i = 0; i < 4; ++i)
    for (Index j = 0; j < 3; ++j)
      for (Index k = 0; k < 2; ++k) CHECK(c.at(i, j, k) == t.at(k, j, i));
  CHECK(c.contiguous());
}

TEST_CASE("reshape splits and merges the last axis of a strided view without copying") {
  const Tensor t = counting({3, 8});
  const Tensor part = t.slice(1, 2, 8);  // (3, 6), row stride 8
  const Tensor split = part.reshape({3, 2, 3});
  CHECK(split.data() == part.data());
  CHECK(split.at(2, 1, 2) == part.at(2, 5));
  const Tensor merged = split.reshape({3, 6});
  CHECK(merged.data() == part.data());
  CHECK(merged.at(1, 4) == part.at(1, 4));
  const Tensor flat = part.reshape({18});  // cannot be a view
  CHECK(flat.data() != part.data());
  CHECK(flat.at(7) == part.at(1, 1));
}

TEST_CASE("shapes print as people write them") {
  CHECK(Shape{12, 64}.str() == "[12, 64]");
  CHECK(Shape{}.str() == "[]");
  CHECK(Shape{}.size() == 1);
}

}  // namespace headscope::tensor_test
