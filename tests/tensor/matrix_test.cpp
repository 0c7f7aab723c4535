#include "core/tensor/matrix.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/thread_pool.h"
#include "core/tensor/panels.h"
#include "tests/support/random_tensor.h"
#include "tests/support/worst.h"

namespace headscope::matrix_test {

using testing::random_tensor;
using testing::Worst;

namespace {

/// The definition, in double.
double product(const Tensor& x, const Tensor& w, const Tensor& bias, Index i, Index j) {
  double sum = bias.defined() ? bias.at(j) : 0;
  for (Index k = 0; k < w.dim(0); ++k) sum += static_cast<double>(x.at(i, k)) * w.at(k, j);
  return sum;
}

/// Of wide products every seventh column and the last of them, where panels are cut short.
double worst_error(const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& y) {
  Worst worst;
  for (Index i = 0; i < y.dim(0); ++i)
    for (Index j = 0; j<y.dim(1); j += y.dim(1)> 200 && j < y.dim(1) - 40 ? 7 : 1)
      worst.add(std::abs(product(x, w, bias, i, j) - y.at(i, j)));
  return worst.value();
}
/// What a product is to write over: NaN, so that an element left out shows.
Tensor unwritten(Index rows, Index columns) {
  return Tensor::full({rows, columns}, std::nanf(""));
}
bool all_written(const Tensor& y) {
  return std::ranges::none_of(y.values(), [](float each) { return std::isnan(each); });
}

}  // namespace

TEST_CASE("packed products equal the definition for small and large matrices, any strides, any number of rows") {
  ThreadPool pool(2);
  struct Case {
    Index rows, in, out;
  };
  for (const Case c : {Case{1, 1, 1},
                       {5, 3, 7},
                       {64, 128, 384},
                       {17, 48, 3},
                       {9, 33, 65},
                       {1, 96, 257},
                       {3, 600, 600},
                       {130, 513, 770},
                       {1, 700, 1000},
                       {300, 300, 1200}}) {
    CAPTURE(c.rows);
    CAPTURE(c.in);
    CAPTURE(c.out);
    const Tensor x = random_tensor({c.rows, c.in}, 1), bias = random_tensor({c.out}, 2);
    const Tensor plain = random_tensor({c.in, c.out}, 3), transposed = random_tensor({c.out, c.in}, 4).transpose(0, 1);
    for (const Tensor& w : {plain, transposed}) {
      const auto packed = PackedMatrix::pack(std::span(&w, 1), pool);
      REQUIRE(packed->in() == c.in);
      REQUIRE(packed->out() == c.out);
      Tensor with = unwritten(c.rows, c.out), without = unwritten(c.rows, c.out);
      packed->multiply(x, bias.data(), with, pool);
      CHECK(all_written(with));
      CHECK(worst_error(x, w, bias, with) < 2e-4);
      packed->multiply(x, nullptr, without, pool);
      CHECK(all_written(without));
      CHECK(worst_error(x, w, Tensor(), without) < 2e-4);
    }
  }
}

TEST_CASE("an element of a large product has the same bits whatever rows and threads it is computed with") {
  const Index in = 700, out = 1000, rows = 410;
  const Tensor x = random_tensor({rows, in}, 1), w = random_tensor({in, out}, 2), bias = random_tensor({out}, 3);
  ThreadPool two(2);
  const auto packed = PackedMatrix::pack(std::span(&w, 1), two);
  REQUIRE(packed->bytes() == static_cast<std::size_t>(in * panels::padded(out)) * sizeof(float));
  Tensor whole = unwritten(rows, out);
  packed->multiply(x, bias.data(), whole, two);
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    for (const Index some : {1, 2, 3, 7, 16, 24, 25, 100, 205}) {
      CAPTURE(threads);
      CAPTURE(some);
      Tensor part = unwritten(some, out);
      packed->multiply(x.slice(0, rows - some, rows), bias.data(), part, pool);
      CHECK(std::ranges::equal(part.values(), whole.slice(0, rows - some, rows).values()));
    }
  }
}

TEST_CASE("several matrices packed side by side give their outputs side by side") {
  ThreadPool pool(2);
  for (const Index width : {Index{32}, Index{520}}) {
    const Tensor x = random_tensor({6, width}, 1);
    const std::vector<Tensor> parts{random_tensor({width, width}, 2), random_tensor({width, width / 4}, 3),
                                    random_tensor({width / 4, width}, 4).transpose(0, 1)};
    const auto packed = PackedMatrix::pack(parts, pool);
    Tensor y = unwritten(6, packed->out());
    packed->multiply(x, nullptr, y, pool);
    Index column = 0;
    for (const Tensor& part : parts) {
      CHECK(worst_error(x, part, Tensor(), y.slice(1, column, column + part.dim(1))) < 2e-4);
      column += part.dim(1);
    }
    CHECK(column == packed->out());
    CHECK(all_written(y));
  }
}

TEST_CASE("a panel product reads strided rows and a range of the depth, and writes nothing beyond its columns") {
  const Tensor wide = random_tensor({5, 40}, 1), w = random_tensor({20, 37}, 2);
  Tensor packed = Tensor::uninitialized({panels::packed_size(20, 37)});
  panels::pack(w, packed.mutable_data());
  Tensor y = Tensor::full({5, 50}, 7.0f);
  const Index from = 3, depth = 11;
  panels::multiply(wide.data(), 40, 5, depth, packed.data() + from * panels::width(), 20 * panels::width(), 37, 0.5f,
                   nullptr, y.mutable_data(), 50);
  const Tensor part = w.slice(0, from, from + depth);
  for (Index i = 0; i < 5; ++i) {
    for (Index j = 0; j < 37; ++j)
      CHECK(y.at(i, j) == doctest::Approx(0.5 * product(wide, part, Tensor(), i, j)).epsilon(1e-4));
    for (Index j = 37; j < 50; ++j) CHECK(y.at(i, j) == 7.0f);
  }
}

TEST_CASE("a panel product over no depth is what is added to it") {
  const Tensor bias = random_tensor({40}, 1);
  for (const Index rows : {1, 5, 9}) {
    Tensor y = unwritten(rows, 40);
    panels::multiply(bias.data(), 0, rows, 0, bias.data(), 0, 40, 1.0f, bias.data(), y.mutable_data(), 40);
    for (Index i = 0; i < rows; ++i) CHECK(std::ranges::equal(y.slice(0, i, i + 1).values(), bias.values()));
  }
}

TEST_CASE("an element of a panel product has the same bits whatever rows it is computed with") {
  const Tensor x = random_tensor({13, 50}, 1), w = random_tensor({50, 200}, 2);
  Tensor packed = Tensor::uninitialized({panels::packed_size(50, 200)}), together = Tensor::zeros({13, 200}),
         alone = Tensor::zeros({13, 200});
  panels::pack(w, packed.mutable_data());
  const auto multiply = [&](Index row, Index rows, Tensor& y) {
    panels::multiply(x.data() + row * 50, 50, rows, 50, packed.data(), 50 * panels::width(), 200, 0.3f, nullptr,
                     &y.ref(row, 0), 200);
  };
  multiply(0, 13, together);
  for (Index row = 0; row < 13; ++row) multiply(row, 1, alone);
  CHECK(std::ranges::equal(together.values(), alone.values()));
}

TEST_CASE("a row times a matrix where it lies has the bits of the product with its panels") {
  for (const Index panels : {1, 2, 4, 7})
    for (const Index depth : {0, 1, 31, 33, 128, 300}) {
      const Index columns = panels * panels::width(), stride = columns + 5;
      CAPTURE(columns);
      CAPTURE(depth);
      const Tensor
          x = random_tensor({std::max<Index>(depth, 1)}, 1),
          w = random_tensor({std::max<Index>(depth, 1), stride}, 2).slice(0, 0, depth).slice(1, 3, 3 + columns);
      Tensor packed = Tensor::uninitialized({panels::packed_size(depth, columns)}), a = unwritten(1, columns),
             b = unwritten(1, columns);
      panels::pack(w, packed.mutable_data());
      panels::multiply(x.data(), 0, 1, depth, packed.data(), depth * panels::width(), columns, 1.0f, nullptr,
                       a.mutable_data(), columns);
      panels::multiply_in_place(x.data(), depth, w.data(), stride, columns, b.mutable_data());
      CHECK(std::ranges::equal(a.values(), b.values()));
    }
}

}  // namespace headscope::matrix_test
