// Steps with a cache against whole passes; forks against texts forced to the same beginning; edits on the way.

#include "core/generate/generation.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/generate/generation_cost.h"
#include "core/tensor/panels.h"
#include "tests/support/largest_difference.h"
#include "tests/support/paths.h"
#include "tests/support/worst.h"

namespace headscope::generation_test {

using testing::largest_difference;
using testing::reference;
using testing::Worst;

namespace {

const std::vector<std::int32_t> prompt = {3, 14, 15, 9, 2, 6};

struct Bench {
  explicit Bench(const char* name) : loaded(load_model(reference(name), backend)) {}
  Transcript write(std::vector<const char*> edits, int count, const Generator::Choice& choice,
                   Transcript transcript = {prompt, {}}) {
    RunRequest like;
    like.edits = parsed(edits);
    Generator generator(loaded, like);
    for (int i = 0; i < count; ++i) transcript.steps.push_back(generator.step(ctx, transcript, choice));
    return transcript;
  }
  /// The whole prefix with the edits, no cache.
  std::shared_ptr<const Trace> whole(std::vector<const char*> edits, const std::vector<std::int32_t>& ids) {
    RunRequest request;
    request.ids = ids;
    request.add_bos = false;
    request.edits = parsed(edits);
    request.capture.maps = MapStorage::dense;
    return run(loaded, request, ctx);
  }
  static std::vector<Intervention> parsed(const std::vector<const char*>& edits) {
    std::vector<Intervention> out;
    for (const char* edit : edits) out.push_back(parse_intervention(edit, "test"));
    return out;
  }
  Backend backend{1};
  LoadedModel loaded;
  Ctx ctx{backend};
};

/// Every step of the transcript against a whole pass over its prefix: token, logits, rows of the heads.
void compare(Bench& bench, std::vector<const char*> edits, const Transcript& transcript) {
  for (std::size_t i = 0; i < transcript.steps.size(); ++i) {
    const GenerationStep& step = *transcript.steps[i];
    const auto trace = bench.whole(edits, transcript.ids(i));
    const Index last = trace->logits.dim(0) - 1;
    CHECK(largest_difference(step.logits, trace->logits.select(0, last)) < 1e-5);
    REQUIRE(step.rows.dim(0) == static_cast<Index>(trace->maps.size()));
    REQUIRE(step.rows.dim(1) == static_cast<Index>(transcript.ids(i).size()));
    Worst worst_row;
    for (Index map = 0; map < step.rows.dim(0); ++map)
      for (Index key = 0; key < step.rows.dim(1); ++key)
        worst_row.add(std::abs(static_cast<double>(step.rows.at(map, key)) -
                               trace->maps[static_cast<std::size_t>(map)].weight(last, key)));
    CHECK(worst_row.value() < 1e-5);
    const TokenDistribution d = token_distribution(trace->logits.select(0, last), step.settings);
    if (step.by == GenerationStep::By::greedy) CHECK(step.token == d.ids[0]);
    if (step.by == GenerationStep::By::sampled) CHECK(step.token == d.ids[place_of(d, step.random)]);
  }
}

std::vector<std::int32_t> written(const Transcript& transcript) {
  std::vector<std::int32_t> out;
  for (const auto& step : transcript.steps) out.push_back(step->token);
  return out;
}

}  // namespace

TEST_CASE("generation with a cache equals recomputation, in tokens and logits") {
  for (const char* name : {"gpt2-random", "llama-gqa"}) {
    CAPTURE(name);
    Bench bench(name);
    compare(bench, {}, bench.write({}, 8, {{.temperature = 0}, 1}));
    const Transcript transcript = bench.write({}, 8, {{.temperature = 1.3, .top_k = 20, .top_p = 0.9}, 5});
    compare(bench, {}, transcript);
    CHECK(transcript.steps[0]->computed == 6);
    CHECK(transcript.steps[1]->computed == 1);
    const ModelDims& dims = bench.loaded.model->config().dims;
    CHECK(transcript.steps[3]->cache_bytes ==
          static_cast<std::size_t>(2 * dims.layers * 9 * dims.kv_heads * dims.d_head * 4));
    // Keys stand there once more, in whole panels.
    const auto panels_of = [&](Index tokens) {
      return static_cast<std::size_t>(dims.layers * panels::padded(tokens) * dims.kv_heads * dims.d_head * 4);
    };
    for (std::size_t i = 0; i < 8; ++i) CHECK(transcript.steps[i]->panel_bytes == panels_of(6 + static_cast<Index>(i)));
    CHECK(panel_bytes(dims, 9) == panels_of(9));
    CHECK(panel_bytes(dims, 65) == panels_of(65));
    CHECK(transcript.steps[3]->source_bytes == 0);
    CHECK(transcript.steps[3]->held_bytes() == transcript.steps[3]->cache_bytes + panels_of(9));
  }
}

TEST_CASE("an encoder-decoder's cache holds the source as well, and a state space no panels") {
  Bench bench("encoder-decoders/bart");
  RunRequest like;
  like.source_ids = {3, 17, 8, 21, 40, 2};
  Generator generator(bench.loaded, like);
  const ModelDims cross = bench.loaded.model->info().cross->dims;
  const auto one = static_cast<std::size_t>(cross.layers * cross.kv_heads * 4);
  const auto source = one * (6 * static_cast<std::size_t>(cross.d_head + cross.value_width()) +
                             static_cast<std::size_t>(panels::padded(6) * cross.d_head));
  std::vector<std::int32_t> text{2, 7};
  for (int i = 0; i < 3; ++i) {  // as much, however long the target is
    const auto step = generator.step(bench.ctx, text, 0, {{.temperature = 0}, 1});
    CHECK(step->source_bytes == source);
    CHECK(step->held_bytes() == step->cache_bytes + step->panel_bytes + source);
    text.push_back(step->token);
  }
  ModelDims state;
  state.layers = state.d_state = state.d_inner = 2;
  REQUIRE(state.state_space());
  CHECK(panel_bytes(state, 7) == 0);
}

TEST_CASE("a step's logits and rows have a whole pass's bits, also after the text went back") {
  for (const char* name : {"gpt2-random", "llama-gqa"}) {
    CAPTURE(name);
    Bench bench(name);
    Generator generator(bench.loaded);
    std::vector<std::int32_t> text = prompt;
    for (int i = 0; i < 40; ++i) {
      if (i == 20) {
        text.resize(9);
        text.push_back(11);
      }
      const auto step = generator.step(bench.ctx, text, 0, {{.temperature = 0}, 1});
      const auto trace = bench.whole({}, text);
      const Index last = trace->logits.dim(0) - 1;
      CHECK(largest_difference(step->logits, trace->logits.select(0, last)) == 0);
      for (std::size_t map = 0; map < trace->maps.size(); ++map)
        CHECK(largest_difference(step->rows.select(0, static_cast<Index>(map)),
                                 trace->maps[map].tile({last, last + 1}, {0, last + 1}).select(0, 0)) == 0);
      text.push_back(i % 3 == 0 ? 17 : step->token);
    }
  }
}

TEST_CASE("the same seed writes the same text, another seed another one") {
  Bench bench("gpt2-random");
  const Generator::Choice hot{{.temperature = 2}, 1};
  CHECK(written(bench.write({}, 12, hot)) == written(bench.write({}, 12, hot)));
  CHECK(written(bench.write({}, 12, hot)) != written(bench.write({}, 12, {{.temperature = 2}, 2})));
}

TEST_CASE("a fork shares its steps and equals a text forced to the same beginning") {
  Bench bench("llama-gqa");
  const Generator::Choice choice{{.temperature = 1.5}, 3};
  Generator generator(bench.loaded);
  Transcript transcript{prompt, {}};
  for (int i = 0; i < 10; ++i) transcript.steps.push_back(generator.step(bench.ctx, transcript, choice));

  Transcript fork = transcript.until(4);
  CHECK(fork.steps[3] == transcript.steps[3]);
  Generator::Choice other = choice;
  other.given = 7;
  fork.steps.push_back(generator.step(bench.ctx, fork, other));
  CHECK(fork.steps[4]->by == GenerationStep::By::given);
  CHECK(fork.steps[4]->token == 7);
  CHECK(fork.steps[4]->computed <= 1);  // the cache goes back, nothing is read twice but the newest token
  for (int i = 0; i < 5; ++i) fork.steps.push_back(generator.step(bench.ctx, fork, choice));
  compare(bench, {}, fork);

  Transcript fresh{prompt, {}};
  Generator anew(bench.loaded);
  for (std::size_t i = 0; i < 10; ++i) {
    Generator::Choice forced = choice;
    if (i < 5) forced.given = fork.steps[i]->token;
    fresh.steps.push_back(anew.step(bench.ctx, fresh, forced));
  }
  CHECK(written(fresh) == written(fork));
  // The first text again, after the fork: the cache went elsewhere and comes back.
  CHECK(generator.step(bench.ctx, transcript.until(9), choice)->token == transcript.steps[9]->token);
}

TEST_CASE("edits act during generation") {
  for (const char* name : {"gpt2-random", "llama-gqa"}) {
    CAPTURE(name);
    Bench bench(name);
    const Generator::Choice choice{{.temperature = 1}, 4};
    const std::vector<std::vector<const char*>> with_cache = {
        {"0.*: ablate zero"},
        {"*: mask window 3"},
        {"1.0: temperature 0.3", "0.*@2..: pattern previous"},
        {"0.1: weight 4 2 0.8"},
        {"*: drop first 1"},
        {"*@0..3: mask window 2", "*@4..: mask window 4"},
        {"*@0..4: temperature 0.3", "*@5..: temperature 3", "*: scale by length 16", "*@3..: mask window 3"},
        {"1.*: switch off ln2", "0.*@5..: switch off mlp"},
        {"*: singular v 1=0", "1.*@3..: singular o 2..=0.5"}};
    const std::vector<std::vector<const char*>> whole = {
        {"0.*: ablate mean"},
        {"0.*: ablate mean over text"},
        {"*@-1: ablate zero"},
        {"0.*: mask full"},
        {"*@0..3: position alibi on top", "*@4..: position t5 8 bias 0,3 on top", "*: position shift 2"}};
    const auto plain = bench.write({}, 6, choice);
    for (const auto& edits : with_cache) {
      CAPTURE(edits.front());
      const Transcript transcript = bench.write(edits, 6, choice);
      CHECK(transcript.steps.back()->computed == 1);
      compare(bench, edits, transcript);
      CHECK(transcript.steps[0]->logits.at(0) != plain.steps[0]->logits.at(0));
    }
    for (const auto& edits : whole) {
      CAPTURE(edits.front());
      const Transcript transcript = bench.write(edits, 6, choice);
      CHECK(transcript.steps.back()->computed == transcript.steps.back()->length);
      compare(bench, edits, transcript);
    }
  }
}

TEST_CASE("texts that edits take from are read as the prompt was: with the tokenizer's BOS, without it, as asked") {
  for (const char* name : {"tiny-gpt2", "tiny-llama"}) {
    CAPTURE(name);
    Backend backend{1};
    const Ctx ctx{backend};
    const LoadedModel loaded = load_model(headscope::testing::source_dir() / "models" / name, backend);
    REQUIRE(loaded.tokenizer->adds_bos());
    for (const std::optional<bool> add_bos : {std::optional<bool>(), std::optional<bool>(false)})
      for (const char* edit : {R"(0.*: patch resid_post from "Ben had a dog and a cat.")",
                               R"(1.*: freeze pattern from "Ben had a dog and a cat." aligned end)",
                               R"(*: patch k from "Ben had a dog." aligned tokens)"}) {
        CAPTURE(edit);
        RunRequest request;
        request.text = "Anna had a cow. Every";
        request.add_bos = add_bos;
        request.edits = {parse_intervention(edit, "test")};
        const auto by_run = run(loaded, request, ctx);
        const auto last = [](const Trace& trace) { return trace.logits.select(0, trace.logits.dim(0) - 1).packed(); };
        RunRequest other = request;
        other.add_bos = add_bos.has_value();
        REQUIRE(largest_difference(last(*by_run), last(*run(loaded, other, ctx))) > 1e-3);

        Generator generator(loaded, request);
        Transcript transcript{by_run->ids(), {}};
        transcript.steps.push_back(generator.step(ctx, transcript, {}));
        CHECK(largest_difference(transcript.steps[0]->logits.reshape({1, transcript.steps[0]->logits.size()}),
                                 last(*by_run).reshape({1, last(*by_run).size()})) < 1e-4);
        // By its ids the same text is the same run, whoever says that they are whole.
        RunRequest by_ids = request;
        by_ids.text.clear();
        by_ids.ids = by_run->ids();
        by_ids.ids_are_whole = true;
        CHECK(largest_difference(run(loaded, by_ids, ctx)->logits, by_run->logits) == 0);
        by_ids.ids_are_whole = false;
        CHECK(largest_difference(run(loaded, by_ids, ctx)->logits, by_run->logits) == 0);
      }
  }
}

TEST_CASE("a tape ends where the context does, and refuses what is no token") {
  Bench bench("gpt2-random");
  const int context = bench.loaded.model->config().context;
  std::vector<std::int32_t> full(static_cast<std::size_t>(context), 5);
  Generator generator(bench.loaded);
  CHECK_NOTHROW(generator.step(bench.ctx, full, 0, {{}, 1}));
  full.push_back(5);
  CHECK_THROWS_AS(generator.step(bench.ctx, full, 0, {{}, 1}), Error);
  CHECK_THROWS_AS(generator.step(bench.ctx, prompt, 0, {{}, 1, 1 << 20}), Error);
  CHECK_THROWS_AS(generator.step(bench.ctx, {}, 0, {{}, 1}), Error);
  CHECK_THROWS_AS(generator.step(bench.ctx, prompt, 0, {{.top_p = 2}, 1}), Error);
}

TEST_CASE("costs are measured at lengths that rise to the whole text") {
  Bench bench("llama-gqa");
  const std::vector<std::int32_t> ids = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  const auto costs = measure_generation(*bench.loaded.model, ids, 5, bench.ctx);
  REQUIRE(costs.size() == 5);
  CHECK(costs.front().length == 2);
  CHECK(costs.back().length == 10);
  for (const GenerationCost& cost : costs) {
    CHECK(cost.cached_ms > 0);
    CHECK(cost.recomputed_ms > 0);
    CHECK(cost.cache_bytes == cache_bytes(bench.loaded.model->config().dims, cost.length));
    CHECK(cost.panel_bytes == panel_bytes(bench.loaded.model->config().dims, cost.length));
  }
}

namespace {
/// Rows that go through weight matrices, and the scores that are turned into weights.
struct Counted final : Backend, Tap {
  Counted() : Backend(1) {}
  Tensor linear(const Tensor& x, const Linear& w, RowQueue* later) override {
    rows += x.dim(0);
    return Backend::linear(x, w, later);
  }
  bool wants(Site site) const override { return site.kind == SiteKind::pattern; }
  Tensor at(Site, const Tensor& value) override {
    scores += value.size();
    return value;
  }
  Index rows = 0, scores = 0;
};
}  // namespace

TEST_CASE(
    "a token behind a cache takes the products of one row and t scores, recomputed those of t rows and t² scores") {
  for (const char* name : {"llama-gqa", "gpt2-random"}) {
    CAPTURE(name);
    Counted counted;
    const LoadedModel loaded = load_model(reference(name), counted);
    const ModelDims& dims = loaded.model->config().dims;
    const Ctx ctx{counted, &counted};
    const std::vector<std::int32_t> ids = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    Index products = 0;  // matrices that a row goes through
    for (const Index t : {1, 2, 3, 6, 12}) {
      CAPTURE(t);
      const auto prefix = std::span(ids).first(static_cast<std::size_t>(t));
      KvCache cache(dims, static_cast<int>(t));
      if (t > 1) loaded.model->forward(ctx, prefix.first(prefix.size() - 1), &cache, {}, false);
      counted.rows = counted.scores = 0;
      loaded.model->forward(ctx, prefix.last(1), &cache, {}, false);
      if (products == 0) products = counted.rows;
      CHECK(products > 4 * dims.layers);
      CHECK(counted.rows == products);
      CHECK(counted.scores == dims.layers * dims.heads * t);
      counted.rows = counted.scores = 0;
      loaded.model->forward(ctx, prefix, nullptr, {}, false);
      CHECK(counted.rows == (products - 1) * t + 1);  // what comes next is asked of the last row alone
      CHECK(counted.scores == dims.layers * dims.heads * t * t);
    }
  }
}

}  // namespace headscope::generation_test
