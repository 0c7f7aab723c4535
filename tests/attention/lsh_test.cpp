#include "core/attention/lsh.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/random_tensor.h"

namespace headscope::lsh_test {

using testing::random_tensor;

TEST_CASE("vectors in one direction share a bucket, opposite ones do not, and lengths do not matter") {
  Tensor x = random_tensor({1, 16}, 1);
  Tensor all = Tensor::uninitialized({3, 16});
  for (Index c = 0; c < 16; ++c) {
    all.ref(0, c) = x.at(0, c);
    all.ref(1, c) = 7.5f * x.at(0, c);
    all.ref(2, c) = -x.at(0, c);
  }
  const auto buckets = lsh_buckets(all, {.buckets = 8, .rounds = 20, .seed = 3});
  for (int round = 0; round < 20; ++round) {
    const auto at = static_cast<std::size_t>(3 * round);
    CHECK(buckets[at] == buckets[at + 1]);
    CHECK(buckets[at + 2] == (buckets[at] + 4) % 8);
    CHECK(buckets[at] >= 0);
    CHECK(buckets[at] < 8);
  }
}

TEST_CASE("the rule is its predicate on every cell of n = 1 … 40") {
  const LshSettings settings{.buckets = 6, .rounds = 2, .seed = 5};
  int wrong = 0, hull = 0;
  for (Index n = 1; n <= 40; ++n) {
    const Tensor q = random_tensor({n, 8}, 1), k = random_tensor({n, 8}, 2);
    const auto bq = lsh_buckets(q, settings), bk = lsh_buckets(k, settings);
    const RulePtr rule = lsh_rule(q, k, settings, "lsh");
    for (Index i = 0; i < n; ++i) {
      Index first = -1;
      for (Index j = 0; j < n; ++j) {
        bool sees = i == j;
        for (Index r = 0; r < 2; ++r)
          sees |= j < i && bq[static_cast<std::size_t>(r * n + i)] == bk[static_cast<std::size_t>(r * n + j)];
        wrong += sees == masked(*rule, i, j, n);
        if (sees && first < 0) first = j;
      }
      hull += rule->keys(i, n).begin != first || rule->keys(i, n).end != i + 1;
    }
  }
  CHECK(wrong == 0);
  CHECK(hull == 0);
}

TEST_CASE("shared queries and keys: earlier queries of the same bucket, and itself only where there is none") {
  const LshSettings settings{.buckets = 4, .rounds = 2, .seed = 5};
  const Tensor q = random_tensor({30, 8}, 1);
  const auto buckets = lsh_buckets(q, settings);
  const RulePtr rule = shared_lsh_rule(q, settings, "reformer");
  int alone = 0, together = 0;
  for (Index i = 0; i < 30; ++i) {
    bool other = false;
    for (Index j = 0; j < 30; ++j) {
      bool meets = false;
      for (Index r = 0; r < 2; ++r)
        meets |=
            j < i && buckets[static_cast<std::size_t>(r * 30 + i)] == buckets[static_cast<std::size_t>(r * 30 + j)];
      other |= meets;
      if (i != j) CHECK(masked(*rule, i, j, 30) == !meets);
    }
    CHECK(masked(*rule, i, i, 30) == other);
    ++(other ? together : alone);
    CHECK(rule->keys(i, 30).size() > 0);
  }
  CHECK(alone > 0);
  CHECK(together > 15);
}

TEST_CASE("recall: all with one bucket, more with more rounds, and near vectors are found") {
  const Tensor x = random_tensor({120, 16}, 7);
  const auto recall = [&](int buckets, int rounds) {
    const LshSettings settings{.buckets = buckets, .rounds = rounds, .seed = 1};
    return recall_of_top(x, x, *lsh_rule(x, x, settings, "lsh"), 4);
  };
  CHECK(recall_of_top(x, x, *causal_rule(), 4) == 1);
  double last = 0;
  for (const int rounds : {1, 2, 4, 8, 32}) {
    CHECK(recall(16, rounds) >= last);
    last = recall(16, rounds);
  }
  CHECK(last > 0.9);
  CHECK(recall(2, 1) > recall(32, 1));
}

}  // namespace headscope::lsh_test
