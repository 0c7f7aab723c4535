// Every op against its definition in float64: what it computes, and its gradients against central differences.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

#include "core/tensor/backend.h"
#include "tests/support/gradient_check.h"
#include "tests/support/random_tensor.h"

namespace headscope::gradients_test {

using namespace testing;

namespace {

using Inputs = std::vector<Numbers>;

std::size_t at(Index i) {
  return static_cast<std::size_t>(i);
}

/// a (rows, depth) · b (depth, columns), added to `sum`.
void add_product(const Numbers& a, const Numbers& b, Index rows, Index depth, Index columns, Numbers& sum) {
  sum.resize(at(rows * columns));
  for (Index i = 0; i < rows; ++i)
    for (Index k = 0; k < depth; ++k)
      for (Index j = 0; j < columns; ++j) sum[at(i * columns + j)] += a[at(i * depth + k)] * b[at(k * columns + j)];
}

Numbers each(const Numbers& x, double (*f)(double)) {
  Numbers y = x;
  std::ranges::transform(y, y.begin(), f);
  return y;
}

double normal_share(double x) {
  return 0.5 * (1 + std::erf(x / std::numbers::sqrt2));
}

}  // namespace

TEST_CASE("gradients: products with weights, fixed and changing, stored either way round") {
  std::uint64_t seed = 1;
  for (const auto& [rows, in, out] : {std::tuple<Index, Index, Index>{1, 3, 5}, {7, 20, 33}, {40, 6, 3}}) {
    for (const bool changing : {false, true})
      for (const bool transposed : {false, true}) {
        CAPTURE(rows);
        CAPTURE(changing);
        CAPTURE(transposed);
        const Tensor x = random_tensor({rows, in}, ++seed), bias = random_tensor({out}, ++seed);
        const Tensor w =
            transposed ? random_tensor({out, in}, ++seed).transpose(0, 1) : random_tensor({in, out}, ++seed);
        GradientCheck check;
        check.inputs = {x, w, bias};
        check.op = [=](Backend& b) { return b.linear(x, b.linear_weights({w}, {bias}, changing)); };
        check.definition = [=](const Inputs& v) {
          Numbers y;
          for (Index i = 0; i < rows; ++i) y.insert(y.end(), v[2].begin(), v[2].end());
          add_product(v[0], v[1], rows, in, out, y);
          return y;
        };
        check_gradients(check, ++seed);
      }
  }
}

TEST_CASE("gradients: matrices side by side, slices of one or apart, some without bias") {
  const Index rows = 9, in = 6, a = 4, b = 3;
  std::uint64_t seed = 100;
  for (const bool changing : {false, true})
    for (const bool slices : {false, true}) {
      CAPTURE(changing);
      CAPTURE(slices);
      const Tensor x = random_tensor({rows, in}, ++seed), whole = random_tensor({in, a + b}, ++seed),
                   biases = random_tensor({a + b}, ++seed);
      const Tensor left = slices ? whole.slice(1, 0, a) : random_tensor({a, in}, ++seed).transpose(0, 1);
      const Tensor right = slices ? whole.slice(1, a, a + b) : random_tensor({b, in}, ++seed).transpose(0, 1);
      const Tensor left_bias = biases.slice(0, 0, a), right_bias = slices ? biases.slice(0, a, a + b) : Tensor();
      GradientCheck check;
      check.inputs = {x, left, right, left_bias};
      if (slices) check.inputs.push_back(right_bias);
      check.op = [=](Backend& backend) {
        const Linear w = backend.linear_weights({left, right}, {left_bias, right_bias}, changing);
        CHECK(w.parts.size() == (changing && slices ? 1u : 2u));
        return backend.linear(x, w);
      };
      check.definition = [=](const Inputs& v) {
        Numbers first, second, y;
        for (Index i = 0; i < rows; ++i) first.insert(first.end(), v[3].begin(), v[3].end());
        for (Index i = 0; slices && i < rows; ++i) second.insert(second.end(), v[4].begin(), v[4].end());
        add_product(v[0], v[1], rows, in, a, first);
        add_product(v[0], v[2], rows, in, b, second);
        for (Index i = 0; i < rows; ++i) {
          y.insert(y.end(), first.begin() + i * a, first.begin() + (i + 1) * a);
          y.insert(y.end(), second.begin() + i * b, second.begin() + (i + 1) * b);
        }
        return y;
      };
      check_gradients(check, ++seed);
    }
}

TEST_CASE("gradients: a table whose rows are picked, and which multiplies too (tied embeddings)") {
  const Index vocab = 7, width = 5;
  const std::vector<std::int32_t> ids{3, 0, 3, 6, 3};
  const Tensor table = random_tensor({vocab, width}, 5);
  GradientCheck check;
  check.inputs = {table};
  check.op = [=](Backend& b) {
    return b.linear(b.gather(table, ids), b.linear_weights({table.transpose(0, 1)}, {}, true));
  };
  check.definition = [=](const Inputs& v) {
    Numbers y(ids.size() * at(vocab));
    for (std::size_t i = 0; i < ids.size(); ++i)
      for (Index j = 0; j < vocab; ++j)
        for (Index k = 0; k < width; ++k)
          y[i * at(vocab) + at(j)] += v[0][at(ids[i] * width + k)] * v[0][at(j * width + k)];
    return y;
  };
  check_gradients(check, 6);
}

TEST_CASE("gradients: sums that share and reuse their parts") {
  const Tensor a = random_tensor({4, 21}, 1), b = random_tensor({4, 21}, 2), wide = random_tensor({4, 40}, 3);
  const Tensor part = wide.slice(1, 5, 26);
  GradientCheck check;
  check.inputs = {a, b, part};
  check.op = [=](Backend& k) {
    const Tensor sum = k.add(a, b), twice = k.add(sum, sum);  // each gradient is asked for by two
    return k.multiply(k.add(twice, part), k.add(sum, a));
  };
  check.definition = [](const Inputs& v) {
    Numbers y(v[0].size());
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = (2 * (v[0][i] + v[1][i]) + v[2][i]) * (2 * v[0][i] + v[1][i]);
    return y;
  };
  check_gradients(check, 4);
}

TEST_CASE("gradients: norms") {
  std::uint64_t seed = 50;
  for (const auto& [rows, width] : {std::pair<Index, Index>{1, 2}, {3, 16}, {70, 37}}) {
    const Tensor x = random_tensor({rows, width}, ++seed), gain = random_tensor({width}, ++seed),
                 bias = random_tensor({width}, ++seed);
    for (const bool center : {true, false}) {
      CAPTURE(rows);
      CAPTURE(width);
      CAPTURE(center);
      const double epsilon = 1e-2;
      GradientCheck check;
      check.inputs = {x, gain};
      if (center) check.inputs.push_back(bias);
      check.op = [=](Backend& b) {
        return center ? b.layer_norm(x, gain, bias, epsilon) : b.rms_norm(x, gain, epsilon);
      };
      check.definition = [=](const Inputs& v) {
        Numbers y;
        for (Index r = 0; r < rows; ++r) {
          const double* const row = v[0].data() + r * width;
          double mean = 0, square = 0;
          for (Index j = 0; center && j < width; ++j) mean += row[j] / static_cast<double>(width);
          for (Index j = 0; j < width; ++j) square += (row[j] - mean) * (row[j] - mean) / static_cast<double>(width);
          for (Index j = 0; j < width; ++j)
            y.push_back((row[j] - mean) / std::sqrt(square + epsilon) * v[1][at(j)] + (center ? v[2][at(j)] : 0.0));
        }
        return y;
      };
      check_gradients(check, ++seed);
    }
  }
}

TEST_CASE("gradients: activations") {
  const std::pair<Backend::Unary, double (*)(double)> known[] = {
      {Backend::Unary::relu, [](double x) { return std::max(x, 0.0); }},
      {Backend::Unary::gelu, [](double x) { return x * normal_share(x); }},
      {Backend::Unary::gelu_tanh,
       [](double x) {
         return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
       }},
      {Backend::Unary::silu, [](double x) { return x / (1 + std::exp(-x)); }}};
  for (const auto& [f, definition] : known) {
    CAPTURE(static_cast<int>(f));
    Tensor x = random_tensor({5, 23}, 8);
    for (float& value : x.mutable_values()) value *= 3;
    GradientCheck check;
    check.inputs = {x};
    check.op = [=, f = f](Backend& b) { return b.activate(f, x); };
    check.definition = [definition = definition](const Inputs& v) { return each(v[0], definition); };
    check_gradients(check, 9);
  }
}

TEST_CASE("gradients: xIELU on both sides of 0") {
  const Backend::Xielu f{.positive = 0.7f, .negative = 1.1f, .beta = 0.4f, .epsilon = -1e-3f};
  Tensor x = random_tensor({5, 23}, 31);
  for (float& value : x.mutable_values()) value = 3 * value + (value > 0 ? 0.1f : -0.1f);  // none near the bend
  GradientCheck check;
  check.inputs = {x};
  check.op = [=](Backend& b) { return b.xielu(f, x); };
  check.definition = [](const Inputs& v) {
    return each(v[0], [](double a) {
      const double p = 0.7f, n = 1.1f, beta = 0.4f, epsilon = -1e-3f;
      return beta * a + (a > 0 ? p * a * a : n * (std::exp(std::min(a, epsilon)) - 1 - a));
    });
  };
  check_gradients(check, 32);
}

TEST_CASE("gradients: what all heads share, added to the first numbers of each") {
  const Index rows = 4, heads = 3, width = 5, shared = 2;
  const Tensor wide = random_tensor({rows, heads * width + 7}, 33);
  const Tensor x = wide.slice(1, 0, heads * width), part = wide.slice(1, heads * width + 3, heads * width + 3 + shared);
  GradientCheck check;
  check.inputs = {x, part};
  check.op = [=](Backend& b) { return b.add_to_heads(x.reshape({rows, heads, width}), part); };
  check.definition = [=](const Inputs& v) {
    Numbers y = v[0];
    for (Index r = 0; r < rows; ++r)
      for (Index h = 0; h < heads; ++h)
        for (Index i = 0; i < shared; ++i) y[at((r * heads + h) * width + i)] += v[1][at(r * shared + i)];
    return y;
  };
  check_gradients(check, 34);
}

TEST_CASE("gradients: rotation of slices") {
  const Index rows = 5, heads = 3, width = 6;
  const Tensor wide = random_tensor({rows, 2 * heads * width}, 1), angle = random_tensor({rows, width / 2}, 2);
  Tensor cosine = angle.copy(), sine = angle.copy();
  for (float& a : cosine.mutable_values()) a = std::cos(a);
  for (float& a : sine.mutable_values()) a = std::sin(a);
  for (const Tensor& x : {wide.slice(1, 0, heads * width), random_tensor({rows, heads * width}, 3)}) {
    GradientCheck check;
    check.inputs = {x};
    check.op = [=](Backend& b) { return b.rotate(x.reshape({rows, heads, width}), cosine, sine); };
    check.definition = [=](const Inputs& v) {
      Numbers y(v[0].size());
      for (Index r = 0; r < rows; ++r)
        for (Index h = 0; h < heads; ++h)
          for (Index i = 0; i < width / 2; ++i) {
            const std::size_t low = at((r * heads + h) * width + i), high = low + at(width / 2);
            const double c = cosine.at(r, i), s = sine.at(r, i);
            y[low] = v[0][low] * c - v[0][high] * s;
            y[high] = v[0][high] * c + v[0][low] * s;
          }
      return y;
    };
    check_gradients(check, 4);
  }
}

TEST_CASE("gradients: rotation of a part of a head, by halves and by neighbours") {
  const Index rows = 4, heads = 2, width = 7, pairs = 2;
  const Tensor angle = random_tensor({rows, pairs}, 2);
  Tensor cosine = angle.copy(), sine = angle.copy();
  for (float& a : cosine.mutable_values()) a = std::cos(a);
  for (float& a : sine.mutable_values()) a = std::sin(a);
  for (const bool adjacent : {false, true}) {
    const Tensor x = random_tensor({rows, heads * width}, 3);
    GradientCheck check;
    check.inputs = {x};
    check.op = [=](Backend& b) { return b.rotate(x.reshape({rows, heads, width}), cosine, sine, nullptr, adjacent); };
    check.definition = [=](const Inputs& v) {
      Numbers y = v[0];
      for (Index r = 0; r < rows; ++r)
        for (Index h = 0; h < heads; ++h)
          for (Index i = 0; i < pairs; ++i) {
            const Index row = (r * heads + h) * width;
            const std::size_t low = at(row + (adjacent ? 2 * i : i)),
                              high = at(row + (adjacent ? 2 * i + 1 : i + pairs));
            const double c = cosine.at(r, i), s = sine.at(r, i);
            y[low] = v[0][low] * c - v[0][high] * s;
            y[high] = v[0][high] * c + v[0][low] * s;
          }
      return y;
    };
    check_gradients(check, 4);
  }
}

TEST_CASE("gradients: a factor, a soft cap, a cut") {
  const Tensor x = random_tensor({5, 23}, 8);
  using Op = std::function<Tensor(Backend&)>;
  const std::pair<Op, double (*)(double)> ops[] = {
      {[=](Backend& b) { return b.scale(x, -1.7f); }, [](double v) { return -1.7 * v; }},
      {[=](Backend& b) { return b.soft_cap(x, 0.6f); }, [](double v) { return 0.6 * std::tanh(v / 0.6); }},
      {[=](Backend& b) { return b.clip(x, 0.6f); }, [](double v) { return std::clamp(v, -0.6, 0.6); }}};
  for (const auto& [op, definition] : ops) {
    GradientCheck check;
    check.inputs = {x};
    check.op = op;
    check.definition = [definition = definition](const Inputs& v) { return each(v[0], definition); };
    check_gradients(check, 9);
  }
}

TEST_CASE("gradients: norms whose rows take gains in turn") {
  const Index rows = 70, heads = 3, width = 5;  // more rows than are summed together
  const Tensor x = random_tensor({rows, heads, width}, 1), gain = random_tensor({heads * width}, 2),
               bias = random_tensor({heads * width}, 3);
  GradientCheck check;
  check.inputs = {x, gain, bias};
  check.op = [=](Backend& b) { return b.layer_norm(x, gain, bias, 1e-5); };
  check.definition = [=](const Inputs& v) {
    Numbers y(v[0].size());
    for (Index r = 0; r < rows * heads; ++r) {
      double mean = 0, variance = 0;
      for (Index j = 0; j < width; ++j) mean += v[0][at(r * width + j)] / width;
      for (Index j = 0; j < width; ++j) variance += std::pow(v[0][at(r * width + j)] - mean, 2) / width;
      for (Index j = 0; j < width; ++j) {
        const std::size_t own = at(r % heads * width + j);
        y[at(r * width + j)] = (v[0][at(r * width + j)] - mean) / std::sqrt(variance + 1e-5) * v[1][own] + v[2][own];
      }
    }
    return y;
  };
  check_gradients(check, 5);
}

TEST_CASE("gradients: cross-entropy counts the targets that are there") {
  const Index vocab = 19;
  const Tensor logits = random_tensor({6, vocab}, 11);
  const std::vector<std::int32_t> targets{3, -1, 0, 18, -1, 3};
  GradientCheck check;
  check.inputs = {logits};
  check.op = [=](Backend& b) { return b.cross_entropy(logits, targets).mean; };
  check.definition = [=](const Inputs& v) {
    double sum = 0;
    for (Index r = 0; r < 6; ++r) {
      if (targets[at(r)] < 0) continue;
      double z = 0;
      for (Index j = 0; j < vocab; ++j) z += std::exp(v[0][at(r * vocab + j)]);
      sum += std::log(z) - v[0][at(r * vocab + targets[at(r)])];
    }
    return Numbers{sum / 4};
  };
  check_gradients(check, 12);
}

TEST_CASE("a tape keeps to what is watched") {
  Backend backend(1);
  const Tensor x = random_tensor({3, 4}, 1), w = random_tensor({4, 5}, 2);
  Tape tape(backend);
  tape.watch(x);
  Tensor y, other;
  {
    const Backend::Recording recording(backend, &tape);
    y = backend.linear(x, backend.linear_weights({w}, {}, true));
    other = backend.activate(Backend::Unary::relu, w);
  }
  CHECK(tape.active(y));
  CHECK_FALSE(tape.active(w));
  CHECK_FALSE(tape.active(other));
  CHECK(backend.tape() == nullptr);
  // One logit: its gradient is a column of W.
  Tensor weight = Tensor::zeros({3, 5});
  weight.ref(2, 4) = 1;
  tape.backward(y, weight);
  const Tensor dx = tape.gradient(x);
  for (Index j = 0; j < 4; ++j) {
    CHECK(dx.at(0, j) == 0.0f);
    CHECK(dx.at(2, j) == w.at(j, 4));
  }
}

}  // namespace headscope::gradients_test
