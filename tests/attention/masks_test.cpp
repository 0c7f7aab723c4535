#include "core/attention/masks.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/random.h"
#include "tests/support/random_tensor.h"

namespace headscope::masks_test {

namespace {

using Predicate = std::function<bool(Index i, Index j, Index n)>;

struct Case {
  const char* spec;
  Predicate sees;
};

/// Compares keys(), apply() and masked() of a rule with the predicate for every cell of n = 1 … 40.
void agrees(const Case& c) {
  CAPTURE(c.spec);
  const auto rule = parse_mask(c.spec);
  CHECK(rule->describe() == c.spec);
  int wrong_hull = 0, wrong_cells = 0, wrong_plain = 0;
  for (Index n = 1; n <= 40; ++n)
    for (Index i = 0; i < n; ++i) {
      Index first = n, last = -1;
      for (Index j = 0; j < n; ++j)
        if (c.sees(i, j, n)) first = std::min(first, j), last = j;
      const KeyRange keys = rule->keys(i, n);
      wrong_hull += last < 0 ? keys.size() != 0 : keys.begin != first || keys.end != last + 1;
      std::vector<float> scores(static_cast<std::size_t>(keys.size()), 1.0f);
      rule->apply(i, keys.begin, scores);
      for (Index j = 0; j < n; ++j) {
        const bool inside = j >= keys.begin && j < keys.end;
        const float score = inside ? scores[static_cast<std::size_t>(j - keys.begin)] : 0;
        const bool seen = inside && score != -std::numeric_limits<float>::infinity();
        wrong_cells += seen != c.sees(i, j, n) || (seen && score != 1.0f) || masked(*rule, i, j, n) == seen;
        wrong_plain += rule->plain() && inside && !seen;
      }
    }
  CHECK(wrong_hull == 0);
  CHECK(wrong_cells == 0);
  CHECK(wrong_plain == 0);
}

std::string refusal(const char* spec) {
  try {
    parse_mask(spec);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("each mask agrees with its one-line predicate on every cell of n = 1 … 40") {
  const std::vector<Case> cases{
      {"causal", [](Index i, Index j, Index) { return j <= i; }},
      {"full", [](Index, Index, Index) { return true; }},
      {"window 8", [](Index i, Index j, Index) { return j <= i && i - j < 8; }},
      {"window 1", [](Index i, Index j, Index) { return i == j; }},
      {"around 3", [](Index i, Index j, Index) { return i - j < 3 && j - i < 3; }},
      {"chunks 4", [](Index i, Index j, Index) { return j <= i && i / 4 == j / 4; }},
      {"chunks 1", [](Index i, Index j, Index) { return j == i; }},
      {"dilated 8 2", [](Index i, Index j, Index) { return j <= i && i - j < 16 && (i - j) % 2 == 0; }},
      {"dilated 3 5", [](Index i, Index j, Index) { return j <= i && i - j < 15 && (i - j) % 5 == 0; }},
      {"strided 8", [](Index i, Index j, Index) { return j <= i && (i - j < 8 || (i - j) % 8 == 0); }},
      {"global 2 window 8", [](Index i, Index j, Index) { return j < 2 || i < 2 || std::abs(i - j) < 8; }},
      {"global 0 window 3", [](Index i, Index j, Index) { return std::abs(i - j) < 3; }},
      {"global 2 window 8 & causal", [](Index i, Index j, Index) { return j <= i && (j < 2 || i - j < 8); }},
      {"prefix 4", [](Index i, Index j, Index) { return j <= i || j < 4; }},
      {"sink 4 window 16", [](Index i, Index j, Index) { return j <= i && (j < 4 || i - j < 16); }},
      {"sink 0 window 2", [](Index i, Index j, Index) { return j <= i && i - j < 2; }},
      {"padding 3", [](Index, Index j, Index n) { return j < n - 3; }},
      {"padding 3 & causal", [](Index i, Index j, Index n) { return j <= i && j < n - 3; }},
      {"strided 4 & window 9",
       [](Index i, Index j, Index) { return j <= i && i - j < 9 && (i - j < 4 || (i - j) % 4 == 0); }},
      {"window 3 | strided 5", [](Index i, Index j, Index) { return j <= i && (i - j < 5 || (i - j) % 5 == 0); }},
      {"window 2 | global 1 window 1", [](Index i, Index j, Index) { return j < 1 || i < 1 || (j <= i && i - j < 2); }},
      {"not causal", [](Index i, Index j, Index) { return j > i; }},
      {"not full", [](Index, Index, Index) { return false; }},
      {"not not window 3", [](Index i, Index j, Index) { return j <= i && i - j < 3; }},
      {"causal & not (window 3 | sink 2 window 1)", [](Index i, Index j, Index) { return i - j >= 3 && j >= 2; }},
      {"(window 2 | prefix 3) & not dilated 4 2",
       [](Index i, Index j, Index) {
         return ((j <= i && i - j < 2) || j <= i || j < 3) && !(j <= i && i - j < 8 && (i - j) % 2 == 0);
       }},
      {"causal & (window 2 | not strided 3) & padding 2",
       [](Index i, Index j, Index n) {
         const bool strided = j <= i && (i - j < 3 || (i - j) % 3 == 0);
         return j <= i && ((j <= i && i - j < 2) || !strided) && j < n - 2;
       }},
      {"cells 2:5 4:1-3 7-9:0-1 7-9:8",
       [](Index i, Index j, Index) {
         return (i == 2 && j == 5) || (i == 4 && j >= 1 && j <= 3) || (i >= 7 && i <= 9 && (j <= 1 || j == 8));
       }},
      {"causal & not cells 5:0 | cells 0:3",
       [](Index i, Index j, Index) { return (j <= i && !(i == 5 && j == 0)) || (i == 0 && j == 3); }},
      {"chosen 3,7 window 2",
       [](Index i, Index j, Index) { return i == 3 || i == 7 || j == 3 || j == 7 || std::abs(i - j) < 2; }},
      {"chosen 0 window 1 & causal", [](Index i, Index j, Index) { return j <= i && (j == 0 || j == i); }},
      {"documents 5,9", [](Index i, Index j, Index) { return (i >= 5) == (j >= 5) && (i >= 9) == (j >= 9); }},
      {"documents 0,12 & causal", [](Index i, Index j, Index) { return j <= i && (i >= 12) == (j >= 12); }},
      {"not documents 5", [](Index i, Index j, Index) { return (i >= 5) != (j >= 5); }},
      {"bigbird 4 window 2 global 1 random 0 seed 1",
       [](Index i, Index j, Index) { return std::abs(i / 4 - j / 4) < 2 || i < 4 || j < 4; }},
      {"bigbird 3 window 1 global 0 random 0 seed 1", [](Index i, Index j, Index) { return i / 3 == j / 3; }},
      {"hidden 0 seed 1", [](Index, Index, Index) { return true; }},
      {"hidden 1 seed 1", [](Index, Index, Index) { return false; }},
      {"lsh 4 rounds 2 seed 1", [](Index i, Index j, Index) { return j <= i; }},
      {"reformer 4 rounds 2 seed 1", [](Index i, Index j, Index) { return j <= i; }},
      {"dilated 9 2 & dilated 9 3", [](Index i, Index j, Index) { return j <= i && i - j < 18 && (i - j) % 6 == 0; }},
  };
  for (const Case& each : cases) agrees(each);
}

TEST_CASE("a random mask sees itself always, nothing ahead, its share of the rest, and the same cells every time") {
  const auto rule = parse_mask("random 0.3 seed 1"), again = parse_mask("random 0.3 seed 1"),
             other = parse_mask("random 0.3 seed 2");
  int seen = 0, cells = 0, same_as_other = 0;
  for (Index i = 0; i < 200; ++i)
    for (Index j = 0; j < 200; ++j) {
      const bool sees = !masked(*rule, i, j, 200);
      CHECK_MESSAGE(sees == !masked(*again, i, j, 200), i << ' ' << j);
      CHECK_MESSAGE(!(j > i && sees), i << ' ' << j);
      if (i == j) CHECK(sees);
      if (j >= i) continue;
      ++cells;
      seen += sees;
      same_as_other += sees == !masked(*other, i, j, 200);
    }
  // 19,900 draws of 0.3: the standard deviation is 0.0032.
  CHECK(static_cast<double>(seen) / cells == doctest::Approx(0.3).epsilon(0.05));
  CHECK(static_cast<double>(same_as_other) / cells == doctest::Approx(0.58).epsilon(0.05));
  agrees({"random 0 seed 7", [](Index i, Index j, Index) { return i == j; }});
  agrees({"random 1 seed 7", [](Index i, Index j, Index) { return j <= i; }});
  agrees({"random 0.3 seed 1", [&](Index i, Index j, Index) { return !masked(*rule, i, j, 40) && j <= i; }});
}

TEST_CASE("hidden tokens are the same for every query, and their share is what was asked") {
  const auto rule = parse_mask("hidden 0.25 seed 3");
  int hidden = 0;
  for (Index j = 0; j < 2000; ++j) {
    hidden += masked(*rule, 0, j, 2000);
    CHECK(masked(*rule, 0, j, 2000) == masked(*rule, 1999 - j, j, 2000));
  }
  CHECK(hidden / 2000.0 == doctest::Approx(0.25).epsilon(0.12));  // the standard deviation is 0.0097
  agrees({"hidden 0.25 seed 3", [&](Index, Index j, Index) { return !masked(*rule, 0, j, 40); }});
}

namespace {
std::set<Index> visible_blocks(const AttentionRule& rule, Index i, Index block, Index n) {
  std::set<Index> blocks;
  for (Index j = 0; j < n; j += block)
    if (!masked(rule, i, j, n)) blocks.insert(j / block);
  return blocks;
}
}  // namespace

TEST_CASE("random blocks: so many as asked, each once, outside window and globals, others for another seed") {
  const Index window = 2, global = 3;
  for (const Index random : {1, 2, 5}) {
    const auto spec = [&](int seed) {
      return "bigbird 5 window 2 global 3 random " + std::to_string(random) + " seed " + std::to_string(seed);
    };
    const auto rule = parse_mask(spec(9)), other = parse_mask(spec(10));
    int differ = 0;
    for (Index own = global; own < 40; ++own) {
      CAPTURE(own);
      const std::set<Index> seen = visible_blocks(*rule, 5 * own, 5, 200);
      for (Index i = 5 * own; i < 5 * own + 5; ++i) CHECK(visible_blocks(*rule, i, 5, 200) == seen);
      std::set<Index> drawn;
      for (const Index block : seen)
        if (block >= global && std::abs(own - block) >= window) drawn.insert(block);
      // Earlier blocks that are neither global nor neighbours: G … own − W.
      const Index choices = std::max<Index>(own - window + 1 - global, 0);
      CHECK(static_cast<Index>(drawn.size()) == std::min(random, choices));
      if (!drawn.empty()) CHECK(*drawn.rbegin() <= own - window);
      differ += visible_blocks(*other, 5 * own, 5, 200) != seen;
      CHECK(visible_blocks(*rule, 5 * own, 5, 5 * own + 5) ==
            visible_blocks(*parse_mask("causal & (" + spec(9) + ")"), 5 * own, 5, 200));  // whatever the length
    }
    CHECK(differ > 20);
    agrees({spec(9).c_str(), [&](Index i, Index j, Index) { return !masked(*rule, i, j, 200); }});
  }
  // Every choice is as likely: block 12 draws 2 of 0 … 11, over 1,200 seeds each about 200 times.
  std::vector<int> count(12, 0);
  for (int seed = 0; seed < 1200; ++seed)
    for (const Index block :
         visible_blocks(*parse_mask("bigbird 1 window 1 global 0 random 2 seed " + std::to_string(seed)), 12, 1, 13))
      if (block < 12) ++count[static_cast<std::size_t>(block)];
  for (const int times : count) CHECK(std::abs(times - 200) < 60);  // 4.6 standard deviations
}

TEST_CASE("a mask of hashes looks at queries and keys when it has them, also inside others") {
  CHECK(hashes_vectors("lsh 4 rounds 1 seed 1"));
  CHECK(hashes_vectors("window 3 | (lsh 4 rounds 1 seed 1)"));
  CHECK(hashes_vectors("reformer 4 rounds 1 seed 1"));
  CHECK_FALSE(hashes_vectors("window 3 & causal"));
  const Tensor q = headscope::testing::random_tensor({40, 8}, 1), k = headscope::testing::random_tensor({40, 8}, 2);
  const MaskVectors vectors{q, k};
  const auto alone = parse_mask("lsh 8 rounds 1 seed 4", "mask", &vectors);
  const auto with = parse_mask("window 3 | lsh 8 rounds 1 seed 4", "mask", &vectors);
  CHECK(with->describe() == "window 3 | lsh 8 rounds 1 seed 4");
  int hidden = 0;
  for (Index i = 0; i < 40; ++i)
    for (Index j = 0; j < 40; ++j) {
      CHECK(masked(*with, i, j, 40) == (masked(*alone, i, j, 40) && !(j <= i && i - j < 3)));
      hidden += j <= i && masked(*alone, i, j, 40);
    }
  CHECK(hidden > 300);
}

TEST_CASE("numbers of a mask's words: what they are, their bounds, and each written back alone") {
  const auto numbers = mask_numbers("window 8 | (sink 1 window 4 & not random 0.3 seed 7)", 40);
  REQUIRE(numbers.size() == 5);
  CHECK(numbers[0].mask == "window");
  CHECK(numbers[0].name == "width");
  CHECK(numbers[0].value == 8);
  CHECK(numbers[0].low == 1);
  CHECK(numbers[0].high == 40);
  CHECK(numbers[1].name == "sink");
  CHECK(numbers[2].name == "window");
  CHECK(numbers[3].name == "share");
  CHECK(numbers[3].value == 0.3);
  CHECK(numbers[3].high == 1);
  CHECK(numbers[4].name == "seed");
  CHECK(with_mask_number("window 8 | sink 1 window 4", 2, 6.4) == "window 8 | sink 1 window 6");
  CHECK(with_mask_number("window 8 | (sink 1 window 4 & not random 0.3 seed 7)", 3, 0.456) ==
        "window 8 | sink 1 window 4 & not random 0.46 seed 7");
  // Buckets are even; blocks are counted, not tokens.
  CHECK(with_mask_number("lsh 4 rounds 2 seed 1", 0, 7.2) == "lsh 8 rounds 2 seed 1");
  CHECK(mask_numbers("bigbird 4 window 2 global 1 random 1 seed 1", 40)[3].high == 10);
  // Positions of a list stay apart.
  const auto list = mask_numbers("documents 3,6,20", 40);
  REQUIRE(list.size() == 3);
  CHECK(list[1].name == "document at 2");
  CHECK(list[1].low == 4);
  CHECK(list[1].high == 19);
  CHECK(with_mask_number("documents 3,6,20", 1, 12) == "documents 3,12,20");
  CHECK(mask_numbers("chosen 0,5 window 2", 40).size() == 3);
  CHECK(mask_numbers("causal & not cells 5:3", 40).empty());
  // Whatever a slider can say is a mask, and stands there again.
  for (const MaskForm& form : mask_forms()) {
    const std::string spec(form.example);
    CAPTURE(spec);
    const auto all = mask_numbers(spec, 24);
    for (std::size_t i = 0; i < all.size(); ++i)
      for (const double value : {all[i].low, all[i].high}) {
        const std::string with = with_mask_number(spec, i, value);
        REQUIRE(mask_numbers(with, 24).size() == all.size());
        CHECK(mask_numbers(with, 24)[i].value == doctest::Approx(value));
      }
  }
}

TEST_CASE("all masks at the length of a text: widths grow with it, heads and seeds stay") {
  const auto small = masks_for(16), large = masks_for(64);
  CHECK(small.size() == mask_forms().size() - 1);  // all but what is painted
  CHECK(std::ranges::find(small, "window 4") != small.end());
  CHECK(std::ranges::find(large, "window 16") != large.end());
  CHECK(std::ranges::find(large, "random 0.3 seed 1") != large.end());
  CHECK(std::ranges::find(large, "documents 12,24") != large.end());
  for (const std::string& each : large) CHECK(parse_mask(each)->describe() == each);
}

TEST_CASE("a mask may leave a row without any key") {
  const auto rule = parse_mask("padding 3");
  CHECK(rule->keys(2, 3).size() == 0);
  CHECK(rule->keys(0, 2).size() == 0);
  CHECK(parse_mask("window 2 & padding 6")->keys(9, 10).size() == 0);
}

TEST_CASE("every form's example parses, prints itself, and has a form that starts with its name") {
  CHECK(mask_forms().size() == 19);
  for (const MaskForm& form : mask_forms()) {
    CAPTURE(std::string(form.id));
    CHECK(parse_mask(form.example)->describe() == form.example);
    CHECK(form.form.starts_with(form.id));
    CHECK_FALSE(form.predicate.empty());
    CHECK_FALSE(form.meaning.empty());
  }
  CHECK(parse_mask("  window   8 ")->describe() == "window 8");
  CHECK(parse_mask("causal&padding 1")->describe() == "causal & padding 1");
  CHECK(parse_mask("(causal) and ((window 3 or !full))")->describe() == "causal & (window 3 | not full)");
  CHECK(parse_mask("cells 3:1 2:1 3:2 3:2 4:1-2")->describe() == "cells 2:1 3-4:1-2");
}

TEST_CASE("a spec that makes no sense is refused with the form it should have") {
  CHECK(refusal("").find("found nothing") != std::string::npos);
  CHECK(refusal("windwo 8").find("nearest names: window") != std::string::npos);
  CHECK(refusal("window").find("expected \"window W\", found \"window\"") != std::string::npos);
  CHECK(refusal("window 8 9").find("expected \"window W\"") != std::string::npos);
  CHECK(refusal("window 0").find("a whole number from 1 to 1000000000, found \"0\"") != std::string::npos);
  CHECK(refusal("window 2.5").find("a whole number") != std::string::npos);
  CHECK(refusal("window nan").find("a whole number") != std::string::npos);
  CHECK(refusal("window 1e300").find("a whole number") != std::string::npos);
  CHECK(refusal("random 1.5 seed 1").find("a share from 0 to 1, found \"1.5\"") != std::string::npos);
  CHECK(refusal("global 2 widow 8").find("expected \"global G window W\"") != std::string::npos);
  CHECK(refusal("causal &").find("found nothing") != std::string::npos);
  std::string many = "full";
  for (int i = 0; i < 16; ++i) many += "&full";
  CHECK(refusal(many.c_str()).find("at most 16 masks") != std::string::npos);
  CHECK(refusal((std::string(100000, '(') + "full").c_str()).find("at most 16 masks inside") != std::string::npos);
  CHECK(refusal((std::string(100000, '!') + "full").c_str()).find("at most 16 masks inside") != std::string::npos);
  CHECK(refusal("(causal").find("expected \")\", found the end of the mask") != std::string::npos);
  CHECK(refusal("causal)").find("a ( for every )") != std::string::npos);
  CHECK(refusal("| causal").find("found \"| causal\"") != std::string::npos);
  CHECK(refusal("not padding 3").find("padding joined by \"&\" only") != std::string::npos);
  CHECK(refusal("window 2 | causal & padding 3").find("padding joined by") != std::string::npos);
  CHECK(refusal("cells").find("found nothing") != std::string::npos);
  CHECK(refusal("cells 3").find("QUERY:KEY") != std::string::npos);
  CHECK(refusal("cells 3:5-4").find("QUERY:KEY") != std::string::npos);
  CHECK(refusal("cells -1:2").find("QUERY:KEY") != std::string::npos);
  CHECK(refusal("cells 0-1048576:0-1048576").find("at most 1048576 cells") != std::string::npos);
  CHECK(refusal("documents 3,x").find("positions separated by commas") != std::string::npos);
  CHECK(refusal("documents").find("expected \"documents A,B,…\"") != std::string::npos);
  CHECK(refusal("chosen 1,2 window 0").find("a whole number from 1") != std::string::npos);
  CHECK(refusal("lsh 100000 rounds 1 seed 1").find("from 2 to 1024") != std::string::npos);
  CHECK(refusal("lsh 5 rounds 1 seed 1").find("expected an even number of buckets from 2 to 1024, found \"5\"") !=
        std::string::npos);
  CHECK(refusal("window 3 | lsh 7 rounds 1 seed 1").find("even number") != std::string::npos);
  CHECK(parse_mask("chosen 9,3,3 window 2")->describe() == "chosen 3,9 window 2");
  CHECK(parse_mask("dilated 1000000000 1000000000")->keys(5, 9).begin == 5);
}

namespace {
std::string painted(std::string_view spec, MapCell cell, bool visible, Index n) {
  return painted_mask(spec, {&cell, 1}, visible, n);
}
}  // namespace

TEST_CASE("painting opens and closes single cells, and taking a stroke back leaves the mask as it was") {
  std::string spec = "causal";
  spec = painted(spec, {5, 3}, false, 10);
  CHECK(spec == "causal & not cells 5:3");
  spec = painted(spec, {5, 4}, false, 10);
  CHECK(spec == "causal & not cells 5:3-4");
  spec = painted(spec, {2, 4}, true, 10);
  CHECK(spec == "causal & not cells 5:3-4 | cells 2:4");
  CHECK(painted(spec, {1, 0}, true, 10) == spec);   // open already
  CHECK(painted(spec, {1, 9}, false, 10) == spec);  // closed already
  for (Index i = 0; i < 10; ++i)
    for (Index j = 0; j < 10; ++j) {
      const bool expected = (i == 2 && j == 4) || (j <= i && !(i == 5 && (j == 3 || j == 4)));
      CHECK(masked(*parse_mask(spec), i, j, 10) == !expected);
    }
  for (const MapCell cell : {MapCell{5, 3}, MapCell{5, 4}}) spec = painted(spec, cell, true, 10);
  spec = painted(spec, {2, 4}, false, 10);
  CHECK(spec == "causal");

  CHECK(painted("window 2 | prefix 3", {0, 1}, false, 8) == "(window 2 | prefix 3) & not cells 0:1");
  // A cell that the padding of this text hides needs no closing, one that it does not hide does.
  CHECK(painted("causal & padding 2", {7, 6}, false, 8) == "causal & padding 2");
  CHECK(painted("causal & padding 2", {7, 5}, false, 8) == "causal & padding 2 & not cells 7:5");
}

TEST_CASE("the least numbers of every mask are taken, and what lies below is refused") {
  for (const char* least :
       {"window 1", "around 1", "chunks 1", "dilated 1 1", "strided 1", "global 0 window 1", "random 0 seed 0",
        "prefix 0", "sink 0 window 1", "padding 0", "hidden 0 seed 0", "chosen 0 window 1",
        "bigbird 1 window 1 global 0 random 0 seed 0", "random 1 seed 0", "hidden 1 seed 0"}) {
    CAPTURE(least);
    CHECK_NOTHROW(parse_mask(least));
  }
  for (const char* below : {"window 0",
                            "around 0",
                            "chunks 0",
                            "dilated 0 1",
                            "dilated 1 0",
                            "strided 0",
                            "global -1 window 1",
                            "global 0 window 0",
                            "random -0.1 seed 0",
                            "random 0 seed -1",
                            "prefix -1",
                            "sink -1 window 1",
                            "sink 0 window 0",
                            "padding -1",
                            "hidden -0.1 seed 0",
                            "hidden 0 seed -1",
                            "chosen 0 window 0",
                            "bigbird 0 window 1 global 0 random 0 seed 0",
                            "bigbird 1 window 0 global 0 random 0 seed 0",
                            "bigbird 1 window 1 global -1 random 0 seed 0",
                            "bigbird 1 window 1 global 0 random -1 seed 0",
                            "random 1.1 seed 0",
                            "window 1.5"}) {
    CAPTURE(below);
    CHECK_THROWS_AS(parse_mask(below), Error);
  }
}

TEST_CASE("hashes are work, so buckets and rounds end at 1024; a seed is none") {
  CHECK_NOTHROW(parse_mask("lsh 1024 rounds 1024 seed 100000"));
  CHECK_THROWS_AS(parse_mask("lsh 1026 rounds 1 seed 1"), Error);
  CHECK_THROWS_AS(parse_mask("lsh 4 rounds 1025 seed 1"), Error);
  CHECK_THROWS_AS(parse_mask("lsh 3 rounds 1 seed 1"), Error);
}

}  // namespace headscope::masks_test
