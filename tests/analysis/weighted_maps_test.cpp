#include "core/analysis/weighted_maps.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/base/error.h"
#include "tests/analysis/subjects.h"

namespace headscope::weighted_maps_test {

using testing::ReadSubject;

TEST_CASE("weighted maps are the norms of what each cell carries") {
  for (const char* folder : {"gpt2-random", "llama-gqa"}) {
    CAPTURE(folder);
    const ReadSubject s(folder);
    const auto heads = weighted_heads(*s.trace, s.weights);
    for (int layer = 0; layer < 2; ++layer)
      for (int head = 0; head < 4; ++head) {
        const AttentionMap& map = s.trace->map({layer, head});
        const AttentionMap value = weighted_map(*s.trace, s.weights, {layer, head}, Weighting::value),
                           output = weighted_map(*s.trace, s.weights, {layer, head}, Weighting::output);
        CHECK(output.place().kind == MapKind::effective);
        CHECK(output.masked(2, 5));
        const Tensor& o = s.weights.blocks[static_cast<std::size_t>(layer)].heads[static_cast<std::size_t>(head)].o;
        double first = 0, all = 0;
        for (Index i = 0; i < 8; ++i)
          for (Index j = 0; j < 8; ++j) {
            // ‖α v‖ and ‖α v W_O‖, the vector first and its norm after.
            std::vector<double> carried;
            double norm = 0;
            for (Index d = 0; d < s.dims().d_head; ++d) {
              carried.push_back(static_cast<double>(map.weight(i, j)) *
                                static_cast<double>(s.site(SiteKind::v, layer).at(j, map.place().kv_head, d)));
              norm += carried.back() * carried.back();
            }
            CHECK(value.weight(i, j) == doctest::Approx(std::sqrt(norm)).epsilon(1e-4));
            double written = 0;
            for (const double x : testing::times(carried, o)) written += x * x;
            CHECK(output.weight(i, j) == doctest::Approx(std::sqrt(written)).epsilon(1e-4));
            if (i > 0) all += std::sqrt(written);
            if (i > 0 && j == 0) first += std::sqrt(written);
          }
        const WeightedHead& line = heads[static_cast<std::size_t>(layer * 4 + head)];
        CHECK(line.id == HeadId{layer, head});
        CHECK(line.first_output == doctest::Approx(first / all).epsilon(1e-4));
        double first_attention = 0, first_value = 0, all_value = 0;
        int same = 0;
        for (Index i = 0; i < 8; ++i) {
          Index by_attention = 0, by_output = 0;
          for (Index j = 0; j < 8; ++j) {
            if (map.weight(i, j) > map.weight(i, by_attention)) by_attention = j;
            if (output.weight(i, j) > output.weight(i, by_output)) by_output = j;
            if (i > 0) all_value += static_cast<double>(value.weight(i, j));
          }
          same += by_attention == by_output;
          if (i > 0) first_attention += static_cast<double>(map.weight(i, 0)) / 7;
          if (i > 0) first_value += static_cast<double>(value.weight(i, 0));
        }
        CHECK(line.first_attention == doctest::Approx(first_attention).epsilon(1e-4));
        CHECK(line.first_value == doctest::Approx(first_value / all_value).epsilon(1e-4));
        CHECK(line.same_top == same / 8.0);
      }
  }
}

TEST_CASE("weighted maps need the values") {
  const ReadSubject s("gpt2-random");
  Trace poor = *s.trace;
  poor.sites.clear();
  CHECK_THROWS_AS(weighted_map(poor, s.weights, {0, 0}, Weighting::value), Error);
  CHECK(weighted_map(poor, s.weights, {0, 1}, Weighting::attention).weight(3, 1) == s.trace->map({0, 1}).weight(3, 1));
}

TEST_CASE("of one token nothing looks back: a share of the first has no rows to be of") {
  const ReadSubject s("gpt2-random", {5});
  for (const WeightedHead& head : weighted_heads(*s.trace, s.weights)) {
    CHECK(std::isnan(head.first_attention));
    CHECK(std::isnan(head.first_value));
    CHECK(head.same_top == 1);
  }
  CHECK(name(Weighting::value) == "value");
  CHECK(formula(Weighting::output, BehindHeads::nothing) == "‖α v W_O‖");
}

}  // namespace headscope::weighted_maps_test
