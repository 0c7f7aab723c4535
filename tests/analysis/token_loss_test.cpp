#include "core/analysis/token_loss.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/base/error.h"
#include "tests/analysis/subjects.h"

namespace headscope::token_loss_test {

using testing::ReadSubject;

TEST_CASE("losses, ranks and running means by their definitions") {
  for (const char* folder : {"gpt2-random", "llama-gqa"}) {
    CAPTURE(folder);
    const ReadSubject s(folder);
    const LossReport report = read_token_losses(*s.trace);
    const std::vector<std::int32_t> ids = s.trace->ids();
    REQUIRE(report.tokens.size() == ids.size() - 1);
    double sum = 0;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      const TokenLoss& t = report.tokens[i];
      const auto row = testing::row(s.trace->logits, static_cast<Index>(i));
      double total = 0;
      Index rank = 1;
      for (std::size_t id = 0; id < row.size(); ++id) {
        total += std::exp(row[id]);
        rank += row[id] > row[static_cast<std::size_t>(ids[i + 1])];
      }
      const double p = std::exp(row[static_cast<std::size_t>(ids[i + 1])]) / total;
      sum += -std::log(p);
      CHECK(t.target == ids[i + 1]);
      CHECK(t.probability == doctest::Approx(p));
      CHECK(t.loss == doctest::Approx(-std::log(p)));
      CHECK(t.rank == rank);
      CHECK((t.rank == 1) == (t.best == t.target));
      CHECK(t.running_mean == doctest::Approx(sum / static_cast<double>(i + 1)));
    }
    CHECK(report.mean == doctest::Approx(sum / static_cast<double>(ids.size() - 1)));
    CHECK(report.uniform == doctest::Approx(std::log(static_cast<double>(s.dims().vocab))));
  }
}

TEST_CASE("baselines of the text: the entropy of its own token counts") {
  Trace trace;
  trace.model.dims.vocab = 4;
  for (const std::int32_t id : {3, 1, 1, 2, 1}) trace.tokens.push_back({id, "", ""});
  trace.logits = Tensor::zeros({5, 4});
  const LossReport report = read_token_losses(trace);
  // Targets 1 1 2 1: three of one, one of another.
  CHECK(report.unigram == doctest::Approx(-(0.75 * std::log(0.75) + 0.25 * std::log(0.25))));
  CHECK(report.tokens[2].unigram == doctest::Approx(std::log(4.0)));
  CHECK(report.mean == doctest::Approx(std::log(4.0)));  // equal logits know nothing
  CHECK(report.uniform == doctest::Approx(std::log(4.0)));
  trace.tokens.resize(1);
  trace.logits = Tensor::zeros({1, 4});
  CHECK_THROWS_AS(read_token_losses(trace), Error);
}

TEST_CASE("beginnings of the text alone predict what the one pass predicts, unless it looks ahead") {
  for (const char* folder : {"gpt2-random", "llama-gqa"}) {
    CAPTURE(folder);
    ReadSubject s(folder);
    const PrefixCheck causal = check_prefixes(s.loaded, s.request, s.ctx(), *s.trace);
    REQUIRE(causal.prefixes.size() == 7);
    CHECK(causal.prefixes.front().length == 1);
    CHECK(causal.prefixes.back().length == 7);
    CHECK(causal.largest < 1e-4 * causal.magnitude);
    const LossReport report = read_token_losses(*s.trace);
    for (const PrefixCheck::Prefix& p : causal.prefixes)
      CHECK(p.loss == doctest::Approx(report.tokens[static_cast<std::size_t>(p.length - 1)].loss).epsilon(1e-4));

    ReadSubject ahead(folder, {5, 9, 5, 30, 9, 5, 17, 2}, {parse_intervention("*: mask full", "edit")});
    const PrefixCheck sees = check_prefixes(ahead.loaded, ahead.request, ahead.ctx(), *ahead.trace, 3);
    CHECK(sees.prefixes.size() == 3);
    CHECK(sees.largest > 1e-2 * sees.magnitude);
  }
}

TEST_CASE("beginnings are as long as edits of some positions need") {
  const auto subject = [](const char* edit) {
    return ReadSubject("gpt2-random", {5, 9, 5, 30, 9, 5, 17, 2}, {parse_intervention(edit, "edit")});
  };
  for (const auto& [edit, least] :
       {std::pair{"0.0@2..4: ablate zero", 5}, {"0.1: weight 3 1 0.7", 4}, {"1.*@6: temperature 2", 7}}) {
    CAPTURE(edit);
    ReadSubject s = subject(edit);
    const PrefixCheck found = check_prefixes(s.loaded, s.request, s.ctx(), *s.trace);
    REQUIRE(static_cast<int>(found.prefixes.size()) == 8 - least);
    CHECK(found.prefixes.front().length == least);
    CHECK(found.prefixes.back().length == 7);
    CHECK(found.largest < 1e-4 * found.magnitude);
  }
  ReadSubject last = subject("0.0@7: ablate zero");
  CHECK_THROWS_WITH_AS(check_prefixes(last.loaded, last.request, last.ctx(), *last.trace),
                       doctest::Contains("expected edits of positions that a beginning of the text has"), Error);
}

TEST_CASE("two tokens are the least that have a loss, and their one beginning is the first alone") {
  ReadSubject s("gpt2-random", {5, 9});
  const LossReport report = read_token_losses(*s.trace);
  REQUIRE(report.tokens.size() == 1);
  CHECK(report.mean == report.tokens[0].loss);
  CHECK(report.tokens[0].running_mean == report.mean);
  const PrefixCheck check = check_prefixes(s.loaded, s.request, s.ctx(), *s.trace);
  REQUIRE(check.prefixes.size() == 1);
  CHECK(check.prefixes[0].length == 1);
  CHECK(check.prefixes[0].loss == doctest::Approx(report.mean).epsilon(1e-4));
  ReadSubject longer("gpt2-random", {5, 9, 5, 30});
  for (const int most : {0, 1}) {  // at least one
    const PrefixCheck first = check_prefixes(longer.loaded, longer.request, longer.ctx(), *longer.trace, most);
    REQUIRE(first.prefixes.size() == 1);
    CHECK(first.prefixes[0].length == 1);
  }
  ReadSubject one("gpt2-random", {5});
  CHECK_THROWS_WITH_AS(read_token_losses(*one.trace), doctest::Contains("a text of two tokens or more, found 1"),
                       Error);
}

TEST_CASE("equal logits: of tokens that are as likely, those of a smaller id come first") {
  Trace trace;
  trace.model.dims.vocab = 4;
  for (const std::int32_t id : {0, 2}) trace.tokens.push_back({id, "", ""});
  trace.logits = Tensor::zeros({2, 4});
  CHECK(read_token_losses(trace).tokens[0].rank == 3);
  CHECK(read_token_losses(trace).tokens[0].best == 0);
  trace.logits.ref(0, 3) = 1;
  CHECK(read_token_losses(trace).tokens[0].rank == 4);
  CHECK(read_token_losses(trace).tokens[0].best == 3);
}

}  // namespace headscope::token_loss_test
