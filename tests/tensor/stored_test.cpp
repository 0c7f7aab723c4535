#include "core/tensor/stored.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "core/base/half.h"
#include "core/base/nth.h"
#include "core/base/thread_pool.h"
#include "core/tensor/ahead.h"
#include "core/tensor/backend.h"
#include "core/tensor/stored_matrix.h"
#include "tests/support/largest_difference.h"
#include "tests/support/random_tensor.h"
#include "tests/support/stored_copy.h"
#include "tests/support/worst.h"

namespace headscope::stored_test {

using namespace testing;

namespace {

const std::vector<Stored> kinds = [] {
  std::vector<Stored> all{Stored::f16, Stored::bf16};
  all.insert(all.end(), std::begin(block_kinds), std::end(block_kinds));
  return all;
}();

/// `depth`, or eight times as much where blocks are as much longer: whole ones.
Index deep(Stored kind, Index depth) {
  return stored::layout(kind).numbers > 32 ? 8 * depth : depth;
}

/// (in, out), its columns one behind the other, as torch.nn.Linear stores them.
Tensor matrix(Stored kind, Index in, Index out, std::uint64_t seed) {
  return stored_copy(kind, random_tensor({out, in}, seed)).transpose(0, 1);
}

/// The same, its rows one behind the other, as GPT-2's Conv1D stores them.
Tensor matrix_by_rows(Stored kind, Index in, Index out, std::uint64_t seed) {
  return stored_copy(kind, random_tensor({in, out}, seed));
}

/// What stored_matrix.h says of the error, in the same units.
double stored_product_error(Index depth) {
  return 100 + static_cast<double>(depth) / 32;
}

/// x w in double, each row that is asked for once. Of wide products some columns, of long ones some rows.
class Definition {
 public:
  Definition(const Tensor& x, const Tensor& w) : x_(x.packed()), w_(w.transpose(0, 1).packed()) {}

  /// The largest |found − definition| ÷ Σ |x| |w|, in units of 2⁻²⁴. `y`: of the first rows of x.
  double worst_error(const Tensor& bias, const Tensor& y) {
    Worst worst;
    for (Index i = 0; i<y.dim(0); i += y.dim(0)> 40 ? 7 : 1) {
      const std::vector<Element>& row = row_of(i);
      for (std::size_t c = 0; c < row.size(); ++c) {
        const Index j = nth(columns_, static_cast<Index>(c));
        const double added = bias.defined() ? static_cast<double>(bias.at(j)) : 0;
        worst.add(std::abs(row[c].sum + added - static_cast<double>(y.at(i, j))) / (row[c].size + std::abs(added)) *
                  0x1p24);
      }
    }
    return worst.value();
  }

 private:
  struct Element {
    double sum = 0, size = 0;
  };

  const std::vector<Element>& row_of(Index i) {
    if (columns_.empty())
      for (Index j = 0; j<w_.dim(0); j += w_.dim(0)> 100 && j < w_.dim(0) - 20 ? 11 : 1) columns_.push_back(j);
    std::vector<Element>& row = rows_[i];
    if (!row.empty()) return row;
    const auto width = static_cast<std::size_t>(w_.dim(1));
    const float* const x = &x_.values()[static_cast<std::size_t>(i) * width];
    for (const Index j : columns_) {
      const float* const w = &w_.values()[static_cast<std::size_t>(j) * width];
      Element& element = row.emplace_back();
      for (std::size_t k = 0; k < width; ++k) {
        const double part = static_cast<double>(x[k]) * static_cast<double>(w[k]);
        element.sum += part;
        element.size += std::abs(part);
      }
    }
    return row;
  }

  const Tensor x_, w_;
  std::vector<Index> columns_;
  std::map<Index, std::vector<Element>> rows_;
};

double worst_error(const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& y) {
  return Definition(x, w).worst_error(bias, y);
}

Tensor multiplied(const PackedMatrix& w, const Tensor& x, const Tensor& bias, int threads) {
  ThreadPool pool(threads);
  Tensor out = Tensor::full({x.dim(0), w.out()}, std::nanf(""));
  w.multiply(x, bias.defined() ? bias.data() : nullptr, out, pool);
  return out;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  const Tensor x = a.packed(), y = b.packed();
  return x.shape() == y.shape() && std::ranges::equal(x.values(), y.values(), [](float one, float other) {
           return std::bit_cast<std::uint32_t>(one) == std::bit_cast<std::uint32_t>(other);
         });
}

}  // namespace

TEST_CASE("every number of 16 bits is decoded to the bit, wherever a run begins and ends") {
  std::vector<std::uint16_t> bits(65536);
  std::iota(bits.begin(), bits.end(), std::uint16_t{0});
  const auto* const from = reinterpret_cast<const std::byte*>(bits.data());
  for (const Stored kind : {Stored::f16, Stored::bf16}) {
    std::vector<float> all(bits.size());
    stored::decode(kind, from, 0, static_cast<Index>(bits.size()), all.data());
    int wrong = 0;
    for (std::size_t i = 0; i < bits.size(); ++i) {
      const float expected = kind == Stored::f16 ? half_to_float(bits[i]) : bfloat_to_float(bits[i]);
      for (const float found : {all[i], stored::number(kind, from, static_cast<Index>(i))})
        wrong += std::isnan(expected) ? !std::isnan(found)
                                      : std::bit_cast<std::uint32_t>(found) != std::bit_cast<std::uint32_t>(expected);
    }
    CHECK(wrong == 0);
  }
  for (const Stored kind : kinds)
    for (const Index first : {0, 1, 31, 33})
      for (const Index count : {0, 1, 3, 30, 32, 65, 95}) {
        const Tensor numbers = stored_copy(kind, random_tensor({deep(kind, 160)}, 1));
        std::vector<float> run(static_cast<std::size_t>(count));
        stored::decode(kind, numbers.stored(), first, count, run.data());
        for (Index i = 0; i < count; ++i) CHECK(run[static_cast<std::size_t>(i)] == numbers.at(first + i));
      }
}

TEST_CASE("a number of Q8_0 is its whole number times the scale of its block, rounded once") {
  const Tensor numbers = stored_copy(Stored::q8_0, random_tensor({96}, 1));
  for (Index i = 0; i < 96; ++i) {
    const std::byte* const block = numbers.stored() + i / 32 * 34;
    std::uint16_t scale;
    std::memcpy(&scale, block, sizeof scale);
    CHECK(numbers.at(i) == half_to_float(scale) * static_cast<float>(static_cast<std::int8_t>(block[2 + i % 32])));
  }
}

TEST_CASE("a run of numbers in blocks is what the whole is there, wherever it begins and ends") {
  for (const Stored kind : block_kinds) {
    CAPTURE(static_cast<int>(kind));
    const Index all = 3 * stored::layout(kind).numbers;
    const Tensor numbers = stored_copy(kind, random_tensor({all}, 1)), whole = numbers.copy();
    for (const Index first : {Index{0}, Index{1}, Index{40}, all / 3 - 3, all / 3, all / 2})
      for (const Index count : {Index{1}, Index{32}, Index{47}, all - first}) {
        if (first + count > all) continue;
        std::vector<float> run(static_cast<std::size_t>(count));
        stored::decode(kind, numbers.stored(), first, count, run.data());
        CHECK(std::ranges::equal(run, whole.values().subspan(static_cast<std::size_t>(first), run.size())));
      }
  }
}

TEST_CASE("views of stored numbers hold what those of their float32 copies hold") {
  for (const Stored kind : kinds) {
    const Index wide = deep(kind, 96);
    const Tensor numbers = stored_copy(kind, random_tensor({6, 4, wide}, 1)), copy = numbers.copy();
    REQUIRE(copy.kind() == Stored::f32);
    CHECK(numbers.bytes() == static_cast<std::size_t>(stored::bytes_of(kind, 6 * 4 * wide)));
    const auto same = [&](auto view) {
      const Tensor a = view(numbers), b = view(copy);
      CHECK(a.shape() == b.shape());
      CHECK(same_bits(a, b));
      CHECK(same_bits(a.floats(), b));
      CHECK(same_bits(a.copy(), b.copy()));
    };
    same([&](const Tensor& t) { return t; });
    same([&](const Tensor& t) { return t.slice(0, 1, 5).slice(2, 7, 90); });
    same([&](const Tensor& t) { return t.select(1, 2).transpose(0, 1); });
    same([&](const Tensor& t) { return t.transpose(0, 2); });
    same([&](const Tensor& t) { return t.reshape({24, wide}).transpose(0, 1).slice(1, 3, 9); });
    same([&](const Tensor& t) { return t.reshape({24, wide / 32, 32}).select(2, 5); });
    same([&](const Tensor& t) { return t.slice(2, 5, 40).reshape({24, 35}); });
    same([&](const Tensor& t) { return t.reshape({24, wide}).rows(std::vector<Index>{23, 0, 5, 5}); });
    same([&](const Tensor& t) { return t.reshape({24, wide}).slice(1, 3, 40).rows(std::vector<Index>{2, 1}); });
    const Tensor rows = numbers.reshape({24, wide});
    CHECK(rows.rows(std::vector<Index>{3, 1}).kind() == kind);
    CHECK(rows.transpose(0, 1).kind() == kind);
    const Tensor first = rows.slice(0, 2, 5), second = rows.slice(0, 5, 9);
    CHECK(same_bits(Tensor::joined(first, second, 0), copy.reshape({24, wide}).slice(0, 2, 9)));
    CHECK_FALSE(Tensor::joined(second, first, 0).defined());
  }
}

TEST_CASE("a product with numbers as they are stored is within its bound of the definition, with few rows and many") {
  struct Case {
    Index in, out;
  };
  for (const Stored kind : kinds)
    for (const Case c :
         {Case{32, 1}, {64, 65}, {33, 7}, {95, 130}, {608, 300}, {1, 3}, {2080, 40}, {256, 33}, {2304, 140}}) {
      if (!stored::begins_at(kind, c.in)) continue;
      for (const bool by_rows : {false, true}) {
        if (by_rows && !stored::plain(kind)) continue;
        const Tensor w = (by_rows ? matrix_by_rows : matrix)(kind, c.in, c.out, 3), numbers = w.copy(),
                     bias = random_tensor({c.out}, 2);
        REQUIRE(multiplied_as_stored(w));
        const auto packed = pack_stored(std::span(&w, 1));
        REQUIRE(packed->in() == c.in);
        REQUIRE(packed->out() == c.out);
        // Rows with a stride of their own.
        const Tensor all = random_tensor({131, c.in + 3}, 1).slice(1, 1, c.in + 1);
        Definition definition(all, numbers);
        for (const Index rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 40, 64, 131}) {
          CAPTURE(static_cast<int>(kind));
          CAPTURE(by_rows);
          CAPTURE(c.in);
          CAPTURE(c.out);
          CAPTURE(rows);
          const Tensor x = all.slice(0, 0, rows);
          const Tensor with = multiplied(*packed, x, bias, 1), without = multiplied(*packed, x, {}, 2);
          CHECK(definition.worst_error(bias, with) < stored_product_error(c.in));
          CHECK(definition.worst_error({}, without) < stored_product_error(c.in));
          CHECK(same_bits(with, multiplied(*packed, x, bias, 2)));
          CHECK(same_bits(with, multiplied(*packed, x, bias, 3)));
        }
      }
    }
}

TEST_CASE("a product with numbers as they are stored has the bits of one with their float32 copy, for any rows") {
  // Across panels, blocks of 128 columns and 256 or 2048 rows, few rows and many; columns that no panel holds whole.
  struct Case {
    Index in, out;
  };
  ThreadPool pool(2);
  for (const Stored kind : kinds)
    for (const bool by_rows : {false, true}) {
      if (by_rows && !stored::plain(kind)) continue;
      for (const Case c : {Case{32, 1}, {288, 33}, {800, 700}, {2336, 150}, {256, 33}, {768, 700}, {2304, 150}}) {
        if (!stored::begins_at(kind, c.in)) continue;
        const Tensor w = (by_rows ? matrix_by_rows : matrix)(kind, c.in, c.out, 3), copy = w.copy(),
                     bias = random_tensor({c.out}, 2), x = random_tensor({200, c.in}, 1);
        const auto stored = pack_stored(std::span(&w, 1)), floats = pack_large(std::span(&copy, 1), pool);
        const Tensor expected = multiplied(*floats, x, bias, 2);
        for (const Index rows : {1, 2, 7, 8, 9, 24, 64, 65, 200})
          for (const int threads : {1, 3}) {
            CAPTURE(static_cast<int>(kind));
            CAPTURE(by_rows);
            CAPTURE(c.in);
            CAPTURE(rows);
            CAPTURE(threads);
            CHECK(same_bits(multiplied(*stored, x.slice(0, 200 - rows, 200), bias, threads),
                            expected.slice(0, 200 - rows, 200)));
          }
      }
    }
}

TEST_CASE("an element of a product has the same bits whatever rows and columns it is computed with") {
  for (const Stored kind : kinds)
    for (const bool by_rows : {false, true}) {
      if (by_rows && !stored::plain(kind)) continue;
      const Index in = deep(kind, 96);
      const Tensor w = (by_rows ? matrix_by_rows : matrix)(kind, in, 151, 1), x = random_tensor({90, in}, 2),
                   bias = random_tensor({151}, 3);
      const Tensor whole = multiplied(*pack_stored(std::span(&w, 1)), x, bias, 1);
      for (const Index rows : {1, 3, 8, 9, 64, 65})
        for (const auto& [begin, end] : {std::pair<Index, Index>{0, 150}, {1, 2}, {5, 70}, {128, 151}}) {
          const Tensor some = w.slice(1, begin, end);
          CHECK(same_bits(
              multiplied(*pack_stored(std::span(&some, 1)), x.slice(0, 0, rows), bias.slice(0, begin, end).copy(), 1),
              whole.slice(0, 0, rows).slice(1, begin, end)));
        }
    }
}

TEST_CASE("the parts of what is read next are all of it, once each") {
  const std::byte* const at = reinterpret_cast<const std::byte*>(1 << 20);
  for (const Index runs : {1, 5, 16, 128})
    for (const Index of : {1, 3, 16, 40}) {
      const Ahead ahead{at, runs, 512, 1536};
      Index next = 0;
      for (Index i = 0; i < of; ++i) {
        const Ahead part = ahead.part(i, i + 1, of);
        CHECK(part.data == at + next * 1536);
        CHECK(part.length == 512);
        CHECK(part.stride == 1536);
        next += part.runs;
      }
      CHECK(next == runs);
      std::vector<int> asked(static_cast<std::size_t>(runs * 1536), 0);
      for (Index i = 0; i < of; ++i) {
        const Ahead share = ahead.share(i, i + 1, of);
        for (Index run = 0; run < share.runs; ++run)
          for (Index byte = 0; byte < share.length; ++byte)
            ++asked.at(static_cast<std::size_t>(share.data - at + run * share.stride + byte));
      }
      for (Index i = 0; i < runs * 1536; ++i) REQUIRE(asked[static_cast<std::size_t>(i)] == (i % 1536 < 512 ? 1 : 0));
    }
}

TEST_CASE("the smallest and the largest numbers, and those that are none, go through a product as they are") {
  // One row of ones on the diagonal: what comes out is the stored number itself, whatever kernel decoded it.
  const std::vector<std::uint16_t> bits{0x0000, 0x8000, 0x0001, 0x83ff, 0x0400, 0x7bff, 0xfbff, 0x7c00,
                                        0xfc00, 0x7e00, 0x007f, 0x0080, 0x7f7f, 0x7f80, 0xff80, 0x7fc0};
  const auto count = static_cast<Index>(bits.size()), wide = Index{37};
  for (const Stored kind : {Stored::f16, Stored::bf16})
    for (const bool by_rows : {false, true}) {
      Tensor numbers = Tensor::uninitialized(kind, {count, wide});
      auto* const to = reinterpret_cast<std::uint16_t*>(numbers.mutable_stored());
      for (Index i = 0; i < count * wide; ++i)
        to[i] = bits[static_cast<std::size_t>(i / wide + i % wide) % bits.size()];
      const Tensor w = by_rows ? numbers : numbers.transpose(0, 1);
      for (const Index rows : {1, 5, 8, 24}) {
        // Each row alone, since 0 · infinity is no number: of a matrix of one row.
        for (Index k = 0; k < w.dim(0); ++k) {
          const Tensor one = w.slice(0, k, k + 1), x = Tensor::full({rows, 1}, 1.0f);
          const Tensor y = multiplied(*pack_stored(std::span(&one, 1)), x, {}, 1);
          for (Index i = 0; i < rows; ++i)
            for (Index j = 0; j < w.dim(1); ++j) {
              const float expected = w.at(k, j), found = y.at(i, j);
              CHECK((std::isnan(expected) ? std::isnan(found) : found == expected));
            }
        }
      }
    }
}

TEST_CASE("stored matrices side by side, and a range of one's columns, are multiplied where they are") {
  // By rows: as queries, keys and values are ranges of the columns of GPT-2's c_attn.
  for (const auto& [kind, by_rows] : {std::pair{Stored::f16, false},
                                      {Stored::bf16, false},
                                      {Stored::q8_0, false},
                                      {Stored::q5_1, false},
                                      {Stored::q4_k, false},
                                      {Stored::f16, true},
                                      {Stored::bf16, true}}) {
    const Index in = deep(kind, 96);
    const Tensor wide = (by_rows ? matrix_by_rows : matrix)(kind, in, 70, 1);
    const std::vector<Tensor> parts{wide.slice(1, 3, 40), matrix(kind, in, 9, 2), wide.slice(1, 40, 70)};
    const auto packed = pack_stored(parts);
    REQUIRE(packed->out() == 76);
    const Tensor bias = random_tensor({76}, 5);
    for (const Index rows : {1, 5, 40}) {
      const Tensor x = random_tensor({rows, in}, 4), y = multiplied(*packed, x, bias, 2);
      Index column = 0;
      for (const Tensor& part : parts) {
        const Index end = column + part.dim(1);
        CHECK(worst_error(x, part, bias.slice(0, column, end), y.slice(1, column, end)) < stored_product_error(in));
        column = end;
      }
    }
  }
}

TEST_CASE("matrices that are not multiplied as stored are made float32") {
  const Tensor pairs = stored_copy(Stored::bf16, random_tensor({64, 40, 2}, 1)), plain = pairs.select(2, 1),
               q8_rows = stored_copy(Stored::q8_0, random_tensor({40, 64}, 1)),
               q8 = stored_copy(Stored::q8_0, random_tensor({40, 64}, 1)).transpose(0, 1),
               q4_k = stored_copy(Stored::q4_k, random_tensor({40, 768}, 1)).transpose(0, 1);
  CHECK_FALSE(multiplied_as_stored(plain));                // every second number
  CHECK_FALSE(multiplied_as_stored(q8_rows));              // blocks across what is summed
  CHECK_FALSE(multiplied_as_stored(q8.slice(0, 16, 48)));  // begins inside a block
  CHECK(multiplied_as_stored(q8.slice(0, 32, 64)));
  CHECK_FALSE(multiplied_as_stored(q4_k.slice(0, 32, 544)));  // between groups of a block
  CHECK_FALSE(multiplied_as_stored(q4_k.slice(0, 256, 544)));
  CHECK(multiplied_as_stored(q4_k.slice(0, 256, 768)));
  CHECK_FALSE(multiplied_as_stored(random_tensor({40, 64}, 1).transpose(0, 1)));
  ThreadPool pool(2);
  for (const Tensor& w : {plain, q8_rows, q8.slice(0, 16, 48), q4_k.slice(0, 32, 544)})
    for (const Index rows : {1, 30}) {
      const Tensor x = random_tensor({rows, w.dim(0)}, 2);
      CHECK(worst_error(x, w, {}, multiplied(*PackedMatrix::pack(std::span(&w, 1), pool), x, {}, 2)) < 40);
    }
  // Large ones, by blocks.
  const Tensor large = stored_copy(Stored::f16, random_tensor({600, 500, 2}, 1)).select(2, 0),
               x = random_tensor({3, 600}, 2);
  CHECK(worst_error(x, large, {}, multiplied(*PackedMatrix::pack(std::span(&large, 1), pool), x, {}, 2)) < 80);
}

TEST_CASE("ops read stored numbers as their float32 copies: rows of a table, products that change, gradients") {
  Backend backend(2);
  for (const Stored kind : kinds) {
    const Index in = deep(kind, 64);
    const Tensor w = matrix(kind, in, 90, 1), table = w.transpose(0, 1);
    const std::vector<std::int32_t> ids{3, 89, 0, 3};
    CHECK(same_bits(backend.gather(table, ids), backend.gather(table.copy(), ids)));
    const Tensor x = random_tensor({7, in}, 2);
    const Linear as_stored = backend.linear_weights({w}, {}, true),
                 copied = backend.linear_weights({w.copy()}, {}, true);
    CHECK(largest_difference(backend.linear(x, as_stored), backend.linear(x, copied)) < 1e-4);
    CHECK(largest_difference(backend.linear(x.slice(1, 0, in), backend.linear_weights({w}, {})),
                             backend.linear(x, copied)) < 1e-4);
    const auto gradient = [&](const Tensor& weight) {
      Tape tape(backend);
      tape.watch(x);
      Tensor y;
      {
        const Backend::Recording recording(backend, &tape);
        y = backend.linear(x, backend.linear_weights({weight}, {}));
      }
      tape.backward(y, random_tensor({7, 90}, 3));
      return tape.gradient(x);
    };
    CHECK(largest_difference(gradient(w), gradient(w.copy())) < 1e-4);
  }
}

TEST_CASE("a number that is not finite is found wherever it lies") {
  Backend backend(2);
  for (const Stored kind : kinds) {
    CAPTURE(static_cast<int>(kind));
    const Index wide = deep(kind, 96);
    const stored::Layout of = stored::layout(kind);
    const Tensor good = stored_copy(kind, random_tensor({64, wide}, 1));
    CHECK(backend.finite(good));
    CHECK(backend.finite(good.transpose(0, 1)));
    for (const Index at : {Index{0}, Index{31}, 31 * wide + 24, 64 * wide - 1})
      for (const bool nan : {false, true})
        for (const Index half : of.halves) {
          Tensor bad = stored_copy(kind, random_tensor({64, wide}, 1));
          std::byte* const block = bad.mutable_stored() + at / of.numbers * of.bytes;
          if (kind == Stored::iq1_m) {
            put_scale_apart(block, static_cast<std::uint16_t>(0x7c00 + nan));
          } else if (kind == Stored::mxfp4) {
            block[0] = std::byte{254};  // twelve halves of 2¹²⁷ are more than float32 has
          } else if (half >= 0 || stored::plain(kind)) {
            const std::uint16_t bits = (kind == Stored::bf16 ? 0x7f80 : 0x7c00) + nan;
            std::memcpy(block + std::max<Index>(half, 0), &bits, sizeof bits);
          } else {
            continue;
          }
          CHECK_FALSE(backend.finite(bad));
          CHECK_FALSE(backend.finite(bad.transpose(0, 1)));
          if (at / wide == 31) {
            CHECK_FALSE(backend.finite(bad.slice(0, 31, 33)));
            CHECK(backend.finite(bad.slice(0, 0, 31)));
          }
        }
  }
}

TEST_CASE("MXFP4 is finite as its numbers are: large scales before small numbers, and none of E8M0's is no number") {
  Backend backend(1);
  Tensor numbers = Tensor::uninitialized(Stored::mxfp4, {1, 32});
  for (int exponent = 0; exponent < 256; ++exponent)
    for (const int place : {0, 1, 5, 7, 15}) {
      numbers.mutable_stored()[0] = static_cast<std::byte>(exponent);
      std::fill(numbers.mutable_stored() + 1, numbers.mutable_stored() + 17, static_cast<std::byte>(place * 17));
      CHECK(backend.finite(numbers) == std::isfinite(numbers.at(0, 3)));
    }
}

TEST_CASE("all scales of NVFP4 are finite, and so are those of IQ1_M below infinity") {
  Backend backend(1);
  Tensor numbers = Tensor::uninitialized(Stored::nvfp4, {1, 64});
  std::fill(numbers.mutable_stored(), numbers.mutable_stored() + 36, std::byte{0x77});
  for (int scale = 0; scale < 256; ++scale) {
    numbers.mutable_stored()[0] = static_cast<std::byte>(scale);
    CHECK(std::isfinite(numbers.at(0, 3)));
    CHECK(backend.finite(numbers));
  }
  Tensor apart = Tensor::uninitialized(Stored::iq1_m, {1, 256});
  std::fill(apart.mutable_stored(), apart.mutable_stored() + 56, std::byte{0xff});
  for (const std::uint16_t half : {0x0000, 0x3bff, 0x7bff, 0xfbff, 0x77ff, 0x6fff, 0x7c00, 0xfc00, 0x7fff}) {
    put_scale_apart(apart.mutable_stored(), half);
    CHECK(backend.finite(apart) == std::isfinite(apart.at(0, 200)));
    CHECK(backend.finite(apart) == ((half & 0x7c00) != 0x7c00));
  }
}

}  // namespace headscope::stored_test
