// Any two kinds of edits together: on rows of their own neither hears of the other, on the same rows none is lost.

#include <doctest/doctest.h>

#include <map>
#include <set>

#include "tests/edits/edit_bench.h"
#include "tests/support/largest_difference.h"

namespace headscope::any_two_edits_test {

using namespace testing;

namespace {

/// Rows [first, last] of two matrices of logits.
double rows_gap(const Trace& a, const Trace& b, Index first, Index last) {
  return largest_difference(a.logits.slice(0, first, last + 1).packed(), b.logits.slice(0, first, last + 1).packed());
}

}  // namespace

TEST_CASE("edits of any two kinds on different rows: each row is as its own edit alone makes it") {
  // Of the last layer and of what a row reads, so that no row hears of another.
  const std::vector<std::string> kinds{"temperature 0.3",
                                       "mask window 2",
                                       "scale by length 4096",
                                       "drop first 1",
                                       "drop first 1 and its weight",
                                       "pattern previous",
                                       "pattern uniform",
                                       "ablate zero",
                                       "switch off attention",
                                       "switch off mlp",
                                       "switch off ln2",
                                       "singular q 1=0",
                                       "singular o 1=0",
                                       "singular mlp_out 1..4=0",
                                       "position alibi on top",
                                       "position t5 8 bias 0,3 on top",
                                       "mechanism entmax alpha=2",
                                       "mechanism linear"};
  for (const char* name : families) {
    CAPTURE(name);
    Bench bench(name);
    bench.plain.capture.maps = MapStorage::none;
    const auto plain = bench({});
    for (const std::string& a : kinds)
      for (const std::string& b : kinds) {
        CAPTURE(a);
        CAPTURE(b);
        const auto both = bench({"1.*@0..5: " + a, "1.*@6..11: " + b}), first = bench({"1.*: " + a}),
                   second = bench({"1.*: " + b});
        CHECK(rows_gap(*both, *first, 0, 5) < 1e-4);
        CHECK(rows_gap(*both, *second, 6, 11) < 1e-4);
        CHECK(rows_gap(*first, *plain, 1, 5) > 1e-5);
      }
  }
}

TEST_CASE("edits of any two kinds on the same rows: none is lost but where one replaces what the other makes") {
  const std::vector<std::string> kinds{"temperature 0.3",
                                       "mask window 3",
                                       "scale by length 4096",
                                       "drop first 2",
                                       "ablate zero",
                                       "drop first 1 and its weight",
                                       "switch off mlp",
                                       "switch off ln1",
                                       "switch off ln2",
                                       "singular q 1=0",
                                       "singular k 1=0",
                                       "singular v 1=0",
                                       "singular o 1=0",
                                       "position alibi on top",
                                       "position t5 8 bias 0,3 on top",
                                       "weight 9 4 0.6",
                                       "share keys 1",
                                       "latent keys 4",
                                       "post norm",
                                       "pattern uniform",
                                       "pattern previous",
                                       "mechanism entmax alpha=2"};
  // Whatever the order: nothing that `edit` changes is read any more.
  const auto hides = [](const std::string& by, const std::string& edit) {
    const auto one_of = [&](const std::set<std::string>& all) { return all.contains(edit); };
    if (by == "ablate zero") return !one_of({"ablate zero", "switch off mlp", "switch off ln2", "post norm"});
    if (by == "switch off mlp") return one_of({"switch off ln2"});
    const bool scores = one_of({"temperature 0.3", "scale by length 4096", "singular q 1=0", "singular k 1=0",
                                "position alibi on top", "position t5 8 bias 0,3 on top", "mechanism entmax alpha=2"});
    if (by == "pattern uniform") return scores;
    if (by == "pattern previous") return scores || one_of({"mask window 3"});
    return false;
  };
  // As the later one: of one kind, or made of the model's own weights, or what writes a row's weights whatever its
  // scores.
  const auto replaces = [](const std::string& later, const std::string& earlier) {
    const auto pair = [&](const char* a, const char* b) { return later == a && earlier == b; };
    return pair("drop first 2", "drop first 1 and its weight") || pair("drop first 1 and its weight", "drop first 2") ||
           pair("pattern uniform", "pattern previous") || pair("pattern previous", "pattern uniform") ||
           pair("latent keys 4", "singular k 1=0") || pair("latent keys 4", "singular v 1=0") ||
           pair("mechanism entmax alpha=2", "weight 9 4 0.6");
  };
  for (const char* name : families) {
    CAPTURE(name);
    Bench bench(name);
    bench.plain.capture.maps = MapStorage::none;
    std::map<std::string, std::shared_ptr<const Trace>> alone;
    for (const std::string& a : kinds) alone[a] = bench({"1.*: " + a});
    for (const std::string& a : kinds)
      for (const std::string& b : kinds) {
        if (a == b) continue;
        CAPTURE(a);
        CAPTURE(b);
        const auto both = bench({"1.*: " + a, "1.*: " + b});
        CHECK((rows_gap(*both, *alone[b], 0, 11) < 1e-6) == (hides(b, a) || replaces(b, a)));
        CHECK((rows_gap(*both, *alone[a], 0, 11) < 1e-6) == hides(a, b));
      }
  }
}

}  // namespace headscope::any_two_edits_test
