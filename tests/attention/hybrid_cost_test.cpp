// The table of parameters and FLOPs against a count of every product, part by part.

#include "core/attention/hybrid_cost.h"

#include <doctest/doctest.h>

namespace headscope::hybrid_cost_test {

using doctest::Approx;

namespace {

struct Counted {
  double parameters = 0, flops = 0;
  /// (rows, inner) × (inner, columns): as many multiplications as additions.
  void product(double rows, double inner, double columns) { flops += 2 * rows * inner * columns; }
  void weight(double rows, double inner, double columns) {
    product(rows, inner, columns);
    parameters += inner * columns;
  }
};

/// Forward, of one text: what both kinds of layer share. g = 8/3 d.
Counted shared(double n, double d) {
  Counted c;
  const double g = 8 * d / 3;
  for (int each = 0; each < 4; ++each) c.weight(n, d, d);  // W_Q, W_K, W_V, W_O
  for (int each = 0; each < 2; ++each) c.weight(n, d, g);  // gate and up
  c.weight(n, g, d);                                       // down
  c.flops += n * g;                                        // gate ⊙ up
  return c;
}

Counted softmax_layer(double n, double d, double h) {
  Counted c = shared(n, d);
  for (int head = 0; head < static_cast<int>(h); ++head) {
    c.product(n, d / h, n);  // Q Kᵀ
    c.product(n, n, d / h);  // P V
  }
  c.flops += 4 * n * d;  // rotary positions of queries and keys
  return c;
}

/// Block by block, of d ÷ h tokens each.
Counted lightning_layer(double n, double d, double h) {
  Counted c = shared(n, d);
  const double wide = d / h, block = d / h;
  for (int head = 0; head < static_cast<int>(h); ++head)
    for (int at = 0; at < static_cast<int>(n / block); ++at) {
      c.product(block, wide, block);  // (Q Kᵀ) of the block
      c.flops += block * block;       // ∘ M
      c.product(block, block, wide);  // times V
      c.product(block, wide, wide);   // Q S
      c.product(wide, block, wide);   // Kᵀ V
      c.flops += wide * wide;         // λᴮ S
      c.flops += block * wide;        // inside + before
    }
  c.weight(n, d, d / h);  // the gate, down …
  c.weight(n, d / h, d);  // … and up
  c.flops += n * d;       // ⊙
  return c;
}

}  // namespace

TEST_CASE("softmax and lightning models against a count of every product of every layer, forward and twice backward") {
  for (const HybridShape& shape :
       {HybridShape{2, 24, 4, 3, 48}, HybridShape{5, 48, 2, 1, 96}, HybridShape{1, 96, 8, 2, 12}}) {
    const auto [l, d, h, b, n] = shape;
    CAPTURE(d);
    const Counted softmax = softmax_layer(n, d, h), lightning = lightning_layer(n, d, h);
    CHECK(softmax_model_cost(shape).parameters == Approx(l * softmax.parameters).epsilon(1e-12));
    CHECK(softmax_model_cost(shape).flops == Approx(3 * b * l * softmax.flops).epsilon(1e-12));
    CHECK(lightning_model_cost(shape).parameters == Approx(l * lightning.parameters).epsilon(1e-12));
    CHECK(lightning_model_cost(shape).flops == Approx(3 * b * l * lightning.flops).epsilon(1e-12));
    // A hybrid has one layer in k of the one kind and the rest of the other.
    for (const int every : {1, 2, 4, 8}) {
      const double kept = 1.0 / every;
      CHECK(hybrid_model_cost(shape, every).flops ==
            Approx(3 * b * l * (kept * softmax.flops + (1 - kept) * lightning.flops)).epsilon(1e-12));
      CHECK(hybrid_model_cost(shape, every).parameters ==
            Approx(l * (kept * softmax.parameters + (1 - kept) * lightning.parameters)).epsilon(1e-12));
    }
  }
}

TEST_CASE("the rows of the published table, formula by formula") {
  const HybridShape s{80, 6144, 64, 1, 1e6};
  const double l = 80, d = 6144, h = 64, n = 1e6, square = 72 * n * l * d * d;
  const auto rows = hybrid_cost_table(s, 8);
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].parameters == 12 * l * d * d);
  CHECK(rows[0].flops == Approx(square * (1 + n / (6 * d) + 5 / (18 * d))));
  CHECK(rows[1].parameters == Approx(12 * l * d * d + 2 * l * d * d / h));
  CHECK(rows[1].flops == Approx(square * (1 + 1 / (2 * h) + 5 / (18 * d))));
  CHECK(rows[2].parameters == Approx(12 * l * d * d + 7 * l * d * d / (4 * h)));
  CHECK(rows[2].flops == Approx(square * (1 + n / (48 * d) + 7 / (16 * h) + 5 / (18 * d))));
  CHECK(rows[2].name == "hybrid 7 : 1");
  CHECK(rows[2].flops_by == "72 b n l d² (1 + n ÷ 48d + 7 ÷ 16h + 5 ÷ 18d)");
  CHECK(rows[2].parameters_by == "12 l d² + 7 l d² ÷ 4h");
  CHECK(hybrid_model_cost(s, 3).flops_by == "72 b n l d² (1 + n ÷ 18d + 1 ÷ 3h + 5 ÷ 18d)");
  CHECK(hybrid_model_cost(s, 1).flops_by == rows[0].flops_by);
}

TEST_CASE("crossing points: there, and a token before, by the costs themselves") {
  for (const int every : {2, 4, 8, 16})
    for (const double share : {1.0, 0.75, 0.5, 0.25}) {
      CAPTURE(every);
      CAPTURE(share);
      HybridShape s{24, 1024, 16, 1, 0};
      const auto found = hybrid_tokens_for_share(s, every, share);
      const auto part = [&](double n) {
        s.tokens = n;
        return hybrid_model_cost(s, every).flops / softmax_model_cost(s).flops;
      };
      if (share <= 1.0 / every) {
        CHECK_FALSE(found);
        CHECK(part(1e12) > share);
        continue;
      }
      REQUIRE(found);
      CHECK(part(*found) == Approx(share).epsilon(1e-9));
      CHECK(part(*found - 1) > share);
      CHECK(part(*found + 1) < share);
    }
  // Lightning and softmax cost the same where n ÷ 6d = 1 ÷ 2h, whatever share of the layers is which.
  CHECK(*hybrid_tokens_for_share({80, 6144, 64}, 8, 1) == Approx(3 * 6144.0 / 64));
}

TEST_CASE("the crossing points in words, rounded up to two digits") {
  // 3 · 96 = 288; 6 · 6144 · (0.5 · (1 + 5 / 110592) + 7 / 1024) / 0.375 = 49 828.6.
  CHECK(hybrid_crossings({80, 6144, 64}, 8) ==
        "The hybrid 7 : 1 needs fewer FLOPs than softmax from 290 tokens on, and half of them from 50 000 tokens on.");
  CHECK(hybrid_crossings({80, 6144, 64}, 2) ==
        "The hybrid 1 : 1 needs fewer FLOPs than softmax from 290 tokens on; half of them at no length: one layer in 2 "
        "grows as softmax does.");
  CHECK(hybrid_crossings({80, 6144, 64}, 1) == "Every layer keeps softmax: nothing is saved.");
}

}  // namespace headscope::hybrid_cost_test
