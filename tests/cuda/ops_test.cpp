// One list of ops, shapes and ways to lie in memory for every backend: the card's results beside the processor's.

#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "core/tensor/backend.h"
#include "tests/cuda/card.h"
#include "tests/support/largest_difference.h"
#include "tests/support/random_tensor.h"

namespace headscope::ops_test {

using testing::largest_difference;
using testing::random_tensor;

namespace {

struct Op {
  std::string name;
  std::function<Tensor(Backend&, const Tensor& x, const Tensor& y)> run;  // x, y (rows, width)
  double tolerance = 2e-6;
};

const std::vector<Op>& ops() {
  using B = Backend;
  static const std::vector<Op> list{
      {"add", [](B& b, const Tensor& x, const Tensor& y) { return b.add(x, y); }},
      {"multiply", [](B& b, const Tensor& x, const Tensor& y) { return b.multiply(x, y); }},
      {"scale", [](B& b, const Tensor& x, const Tensor&) { return b.scale(x, -1.7f); }},
      {"soft cap", [](B& b, const Tensor& x, const Tensor&) { return b.soft_cap(x, 1.5f); }},
      {"clip", [](B& b, const Tensor& x, const Tensor&) { return b.clip(x, 0.8f); }},
      {"relu", [](B& b, const Tensor& x, const Tensor&) { return b.activate(B::Unary::relu, x); }},
      {"gelu", [](B& b, const Tensor& x, const Tensor&) { return b.activate(B::Unary::gelu, x); }},
      {"gelu, tanh", [](B& b, const Tensor& x, const Tensor&) { return b.activate(B::Unary::gelu_tanh, x); }},
      {"silu", [](B& b, const Tensor& x, const Tensor&) { return b.activate(B::Unary::silu, x); }},
      {"xielu",
       [](B& b, const Tensor& x, const Tensor&) {
         return b.xielu({1.1f, 0.7f, 0.4f, -1e-6f}, x);
       },
       4e-6},
      {"solu", [](B& b, const Tensor& x, const Tensor&) { return b.solu(x); }},
      {"layer norm",
       [](B& b, const Tensor& x, const Tensor& y) {
         const Tensor gain = y.select(0, 0).packed(), bias = y.select(0, y.dim(0) - 1).packed();
         return b.layer_norm(x, gain, bias, 1e-5);
       },
       1e-5},
      {"RMS norm", [](B& b, const Tensor& x, const Tensor& y) { return b.rms_norm(x, y.select(0, 0).packed(), 1e-6); },
       1e-5},
      {"RMS norm, gains in turn",
       [](B& b, const Tensor& x, const Tensor& y) {
         const Index width = x.dim(1) / 2;
         return b.rms_norm(b.copy(x).reshape({x.dim(0), 2, width}), y.select(0, 0).packed(), 1e-6);
       },
       1e-5},
      {"rotate halves",
       [](B& b, const Tensor& x, const Tensor& y) {
         const Index half = x.dim(1) / 4;
         const Tensor angles = y.slice(1, 0, half).copy();
         return b.rotate(x.reshape({x.dim(0), 2, x.dim(1) / 2}), angles, b.scale(angles, 0.5f));
       }},
      {"rotate neighbours, in part",
       [](B& b, const Tensor& x, const Tensor& y) {
         const Index pairs = x.dim(1) / 8;
         const Tensor angles = y.slice(1, 0, pairs).copy();
         return b.rotate(x.reshape({x.dim(0), 2, x.dim(1) / 2}), angles, b.scale(angles, 0.5f), nullptr, true);
       }},
      {"add to heads",
       [](B& b, const Tensor& x, const Tensor& y) {
         return b.add_to_heads(x.reshape({x.dim(0), 2, x.dim(1) / 2}), y.slice(1, 0, x.dim(1) / 4));
       }},
      {"copy", [](B& b, const Tensor& x, const Tensor&) { return b.copy(x.transpose(0, 1)); }, 1e-30},
      {"product",
       [](B& b, const Tensor& x, const Tensor& y) {
         const Tensor w = b.scale(y, 0.3f).packed();
         return b.linear(x, b.linear_weights({w.transpose(0, 1)}, {}));
       },
       2e-5},
      {"products side by side, biases",
       [](B& b, const Tensor& x, const Tensor& y) {
         const Tensor w = random_tensor({x.dim(1), 37}, 5), v = random_tensor({x.dim(1), 24}, 6);
         return b.linear(
             x,
             b.linear_weights({w, v}, {Tensor(), y.select(0, 0).slice(0, 0, std::min<Index>(24, y.dim(1))).packed()}));
       },
       5e-5},
      {"rows of a table",
       [](B& b, const Tensor& x, const Tensor&) {
         const std::vector<std::int32_t> ids{0, static_cast<std::int32_t>(x.dim(0) - 1), 0};
         return b.gather(b.resident(x.packed()), ids);
       },
       1e-30},
  };
  return list;
}

}  // namespace

TEST_CASE("every op on the card gives what it gives on the processor, however its input lies") {
  HEADSCOPE_NEEDS_CARD(card);
  Backend here(2);
  struct Shaped {
    Index rows, width;
  };
  for (const auto& [rows, width] : {Shaped{1, 64}, {2, 24}, {3, 128}, {4, 768}, {5, 96}, {67, 40}, {257, 1000}})
    for (const bool on_card : {false, true})
      for (const bool gaps : {false, true})
        for (const Op& op : ops()) {
          CAPTURE(rows);
          CAPTURE(width);
          CAPTURE(on_card);
          CAPTURE(gaps);
          CAPTURE(op.name);
          if (op.name == "products side by side, biases" && width < 24) continue;
          const Tensor x = random_tensor({rows, width + (gaps ? 8 : 0)}, 1), y = random_tensor({rows, width}, 2);
          const auto cut = [&](const Tensor& t) { return gaps ? t.slice(1, 4, 4 + width) : t; };
          const Tensor there = on_card ? card->scale(x, 1.0f) : x;
          const Tensor expected = op.run(here, cut(x), y), got = op.run(*card, cut(there), y);
          REQUIRE(largest_difference(expected, got) < op.tolerance * (1 + std::sqrt(static_cast<double>(width)) / 4));
        }
}

TEST_CASE("few rows and many give one product") {
  HEADSCOPE_NEEDS_CARD(card);
  const Tensor w = random_tensor({770, 301}, 3), b = random_tensor({301}, 4), x = random_tensor({9, 770}, 5);
  const Linear linear = card->linear_weights({w}, {b});
  const Tensor all = card->linear(x, linear);
  for (const Index rows : {1, 2, 3, 4})
    for (int again = 0; again < 3; ++again)  // what the first call left behind is clean
      CHECK(largest_difference(card->linear(x.slice(0, 2, 2 + rows), linear), all.slice(0, 2, 2 + rows)) < 2e-4);
  const Tensor once = card->linear(x.slice(0, 0, 1), linear), twice = card->linear(x.slice(0, 0, 1), linear);
  CHECK(largest_difference(once, twice) == 0);
}

TEST_CASE("what was written here is what the card goes on with") {
  HEADSCOPE_NEEDS_CARD(card);
  Tensor x = card->scale(Tensor::full({3, 8}, 2.0f), 2.0f);
  CHECK(x.at(1, 1) == 4.0f);
  x.ref(1, 1) = 10.0f;
  const Tensor y = card->scale(x, 0.5f);
  CHECK(y.at(1, 1) == 5.0f);
  CHECK(y.at(0, 1) == 2.0f);
}

TEST_CASE("rows put into a table on the card stay there and come home") {
  HEADSCOPE_NEEDS_CARD(card);
  Tensor all = Tensor::zeros({6, 2, 4});
  card->put_rows(all, 0, Tensor::full({2, 2, 4}, 1.0f));
  CHECK(all.remote() == nullptr);  // nothing of it was the card's
  card->put_rows(all, 2, card->scale(Tensor::full({2, 2, 4}, 1.0f), 2.0f));
  REQUIRE(all.remote() != nullptr);
  CHECK(all.at(1, 1, 3) == 1.0f);
  CHECK(all.at(3, 0, 0) == 2.0f);
  card->put_rows(all, 4, Tensor::full({1, 2, 4}, 3.0f));
  CHECK(all.at(4, 1, 1) == 3.0f);
  CHECK(all.at(3, 1, 1) == 2.0f);
}

TEST_CASE("rows that are held back are there for whoever puts them, while another thread reads those before") {
  HEADSCOPE_NEEDS_CARD(card);
  Tensor all = Tensor::zeros({6, 2, 4});
  card->put_rows(all, 0, card->scale(Tensor::full({5, 2, 4}, 1.0f), 2.0f));
  std::atomic<bool> done = false, wrong = false;
  std::thread reader([&, seen = all] {
    while (!done)
      if (seen.at(1, 1, 3) != 2.0f) wrong = true;
  });
  const auto made = [&](int i) { return card->scale(Tensor::full({1, 2, 4}, 1.0f), static_cast<float>(i)); };
  for (int i = 1; i <= 200; ++i) {
    card->put_rows(all, 5, made(i));
    if (i % 2 == 0) made(-i);  // something else meanwhile
    if (all.at(5, 0, 2) != static_cast<float>(i)) wrong = true;
  }
  done = true;
  reader.join();
  CHECK(!wrong);
}

TEST_CASE("the first number that is not finite is found with its place") {
  HEADSCOPE_NEEDS_CARD(card);
  Backend here(2);
  const Tensor x = random_tensor({300, 70}, 8);
  Tensor bad = x.copy();
  bad.ref(211, 69) = std::numeric_limits<float>::infinity();
  bad.ref(17, 5) = -std::numeric_limits<float>::infinity();
  for (Backend* each : {&here, card.get()}) {
    each->look_through(x);
    each->look_through(bad);
    const auto found = each->not_finite();
    REQUIRE(found.size() == 2);
    CHECK(found[0].row == -1);
    CHECK(found[1].row == 17);
    CHECK(found[1].column == 5);
    CHECK(found[1].value == -std::numeric_limits<float>::infinity());
    CHECK(each->not_finite().empty());
  }
}

TEST_CASE("TF32 and BF16 are as far off as they say") {
  HEADSCOPE_NEEDS_CARD(strict);
  const Tensor x = random_tensor({64, 768}, 1), w = random_tensor({768, 512}, 2);
  const auto product = [&](Backend& b) { return b.linear(x, b.linear_weights({w}, {})); };
  const Tensor exact = product(*strict);
  const double norm = std::sqrt(768.0);  // of a sum of 768 products of N(0, 1)
  const double tf32 = largest_difference(product(*testing::card(Precision::tf32)), exact) / norm,
               bf16 = largest_difference(product(*testing::card(Precision::bf16)), exact) / norm;
  CHECK(tf32 > 1e-5);  // else it was not that
  CHECK(tf32 < 3e-3);
  CHECK(bf16 > 1e-3);
  CHECK(bf16 < 3e-2);
}

}  // namespace headscope::ops_test
