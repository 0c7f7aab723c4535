// Beams against those of `transformers`, a bigram worked out by hand, every sequence there is, and whole passes.

#include "core/generate/beam_search.h"

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <set>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/metrics/next_token.h"
#include "tests/support/paths.h"

namespace headscope::beam_search_test {

using headscope::testing::reference;
using Fate = BeamNode::Fate;
using Ids = std::vector<std::int32_t>;

namespace {

const Ids prompt = {3, 14, 15, 9, 2, 6};

struct Bench {
  explicit Bench(const std::string& name) : loaded(load_model(reference(name), backend)) {}
  BeamTree beams(const BeamSettings& settings, const RunRequest& like = {}, const Ids& from = prompt) {
    return beam_search(loaded, from, settings, like, ctx);
  }
  /// Σ ln p of `written` behind `from`, by one whole pass without a cache.
  double sum(const Ids& from, const Ids& written, RunRequest request) {
    request.ids = from;
    request.ids.insert(request.ids.end(), written.begin(), written.end());
    request.ids_are_whole = true;
    const auto trace = run(loaded, request, ctx);
    double total = 0;
    for (std::size_t i = 0; i < written.size(); ++i)
      total -= next_token_loss(trace->logits.select(0, static_cast<Index>(from.size() + i) - 1), written[i]);
    return total;
  }
  Backend backend{1};
  LoadedModel loaded;
  Ctx ctx{backend};
};

RunRequest edited(std::initializer_list<const char*> edits) {
  RunRequest like;
  for (const char* edit : edits) like.edits.push_back(parse_intervention(edit, "test"));
  return like;
}

/// Logits of the probabilities of a bigram: what comes next depends on the last token alone.
Tensor row(std::initializer_list<double> probabilities) {
  Tensor logits = Tensor::uninitialized({static_cast<Index>(probabilities.size())});
  Index i = 0;
  for (const double p : probabilities) logits.ref(i++) = static_cast<float>(std::log(p));
  return logits;
}
const Tensor bigram[] = {row({0.1, 0.5, 0.4}), row({0.2, 0.45, 0.35}), row({0.9, 0.04, 0.06})};

BeamTree search(BeamSettings settings) {
  BeamSearch search({0}, settings);
  while (!search.done()) {
    std::vector<Tensor> logits;
    for (const auto& live : search.live())
      logits.push_back(bigram[live ? search.tree().nodes[*live].token : search.tree().prompt.back()]);
    search.advance(logits);
  }
  return search.tree();
}

}  // namespace

TEST_CASE("beam search: a bigram by hand") {
  // Tokens 0 (ends), 1, 2. From 0: 1 with 0.5, 2 with 0.4. From 1: 0.2, 0.45, 0.35. From 2: it ends with 0.9.
  const BeamTree tree = search({.width = 2, .tokens = 3, .end = 0});
  struct Row {
    std::optional<std::size_t> parent;
    std::int32_t token;
    double p;
    Fate fate;
  };
  const Row expected[] = {
      // step 1: all three tokens; 0 is third, so that it is not finished
      {{}, 1, 0.5, Fate::kept},
      {{}, 2, 0.4, Fate::kept},
      {{}, 0, 0.1, Fate::dropped},
      // step 2: "2 0" 0.4 · 0.9, "1 1" 0.5 · 0.45, "1 2" 0.5 · 0.35, "1 0" 0.5 · 0.2; "2 2" 0.024 and "2 1" are past
      // four
      {1, 0, 0.36, Fate::finished},
      {0, 1, 0.225, Fate::kept},
      {0, 2, 0.175, Fate::kept},
      {0, 0, 0.1, Fate::dropped},
      // step 3, the last: "1 2 0" 0.175 · 0.9, "1 1 1" 0.225 · 0.45; nothing is kept
      {5, 0, 0.1575, Fate::finished},
      {4, 1, 0.10125, Fate::finished},
      {4, 2, 0.07875, Fate::dropped},
      {4, 0, 0.045, Fate::dropped},
  };
  REQUIRE(tree.nodes.size() == std::size(expected));
  for (std::size_t i = 0; i < std::size(expected); ++i) {
    CAPTURE(i);
    CHECK(tree.nodes[i].parent == expected[i].parent);
    CHECK(tree.nodes[i].token == expected[i].token);
    CHECK(std::exp(tree.nodes[i].sum) == doctest::Approx(expected[i].p));
    CHECK(tree.nodes[i].fate == expected[i].fate);
    CHECK(tree.nodes[i].step == static_cast<int>(tree.path(i).size()));
  }
  // ln 0.1575 / 3 = −0.616, ln 0.36 / 2 = −0.511, ln 0.10125 / 3 = −0.763: the worst of three is not among two.
  REQUIRE(tree.beams.size() == 2);
  CHECK(tree.tokens(tree.beams[0].node) == Ids{2, 0});
  CHECK(tree.beams[0].score == doctest::Approx(std::log(0.36) / 2));
  CHECK(tree.beams[0].ended);
  CHECK(tree.tokens(tree.beams[1].node) == Ids{1, 2, 0});
  CHECK(tree.beams[1].score == doctest::Approx(std::log(0.1575) / 3));

  // The longer text wins where length is favoured: −1.849 / 9 = −0.205 against −1.022 / 4 = −0.255.
  const BeamTree longer = search({.width = 2, .length_penalty = 2, .tokens = 3, .end = 0});
  CHECK(longer.tokens(longer.beams[0].node) == Ids{1, 2, 0});
  // Greedy takes 1 (0.5), then 1 (0.45) and 1 again: 0.10125, worse than either beam.
  const BeamTree greedy = search({.width = 1, .tokens = 3, .end = 0});
  REQUIRE(greedy.beams.size() == 1);
  CHECK(greedy.tokens(greedy.beams[0].node) == Ids{1, 1, 1});
  CHECK_FALSE(greedy.beams[0].ended);
}

TEST_CASE("beam search ends when nothing can become better, at once when full, or when nothing ever could") {
  // From 0 the best is 1; with width 1 nothing is finished until the last step unless 0 is the best: from 2 it is.
  using Stopping = BeamSettings::Stopping;
  const auto steps = [](const BeamTree& tree) { return tree.nodes.back().step; };
  // Step 2 finishes "2 0", step 3 "1 2 0": two of two. ln 0.10125 / 3 = −0.763 < −0.616: likely ends there, and so does
  // full; never, with ten steps to come, goes on until ln p / 10 of the best kept text is below −0.616.
  const BeamSettings ten{.width = 2, .tokens = 10, .end = 0};
  BeamSettings other = ten;
  CHECK(steps(search(ten)) == 3);
  other.stopping = Stopping::full;
  CHECK(steps(search(other)) == 3);
  other.stopping = Stopping::never;
  // Each step keeps "1 … 1", 0.5 · 0.45^(n − 1), which is better than −0.616 · 10 up to 0.00212: n = 7 is 0.00415.
  CHECK(steps(search(other)) == 8);
  other.length_penalty = 0;  // −0.80 from step 2 is never reached by what only falls
  CHECK(steps(search(other)) == 3);
}

TEST_CASE("beams and scores are those of transformers, by every penalty and way to stop") {
  std::ifstream file(reference("beams.json"));
  const auto cases = nlohmann::json::parse(file);
  REQUIRE(cases.size() == 70);
  std::map<std::string, std::unique_ptr<Bench>> benches;
  std::set<std::size_t> lengths;
  for (const auto& each : cases) {
    const auto name = each["model"].get<std::string>();
    auto& bench = benches[name];
    if (!bench) bench = std::make_unique<Bench>(name);
    BeamSettings settings{each["width"], each["length_penalty"]};
    settings.tokens = each["tokens"];
    if (!each["end"].is_null()) settings.end = each["end"].get<std::int32_t>();
    const auto& stopping = each["early_stopping"];
    settings.stopping = stopping == true    ? BeamSettings::Stopping::full
                        : stopping == false ? BeamSettings::Stopping::likely
                                            : BeamSettings::Stopping::never;
    RunRequest like;
    if (!each["source"].is_null()) like.source_ids = each["source"].get<Ids>();
    CAPTURE(each.dump());
    const BeamTree tree = bench->beams(settings, like, each["prompt"].get<Ids>());
    REQUIRE(tree.beams.size() == each["beams"].size());
    for (std::size_t i = 0; i < tree.beams.size(); ++i) {
      const auto& expected = each["beams"][i];
      CHECK(tree.tokens(tree.beams[i].node) == expected["tokens"].get<Ids>());
      CHECK(tree.beams[i].score == doctest::Approx(expected["score"].get<double>()).epsilon(1e-5));
      lengths.insert(expected["tokens"].size());
    }
  }
  CHECK(lengths.size() > 5);  // the fixture says something of texts of unequal length
}

TEST_CASE("one beam is greedy decoding, with the end and without") {
  for (const char* name : {"gpt2-random", "llama-gqa", "families/mamba"}) {
    Bench bench(name);
    Generator generator(bench.loaded, {}, false);
    Transcript greedy{prompt, {}};
    for (int i = 0; i < 12; ++i) greedy.steps.push_back(generator.step(bench.ctx, greedy, {{.temperature = 0}, 1}));
    const Ids whole = greedy.ids();
    Ids written(whole.begin() + static_cast<std::ptrdiff_t>(prompt.size()), whole.end());
    const BeamTree tree = bench.beams({.width = 1, .tokens = 12});
    REQUIRE(tree.beams.size() == 1);
    CHECK(tree.tokens(tree.beams[0].node) == written);
    const BeamTree ended = bench.beams({.width = 1, .tokens = 12, .end = written[5]});
    written.resize(static_cast<std::size_t>(std::ranges::find(written, written[5]) - written.begin()) + 1);
    CHECK(ended.tokens(ended.beams[0].node) == written);
    CHECK(ended.beams[0].ended);
  }
}

TEST_CASE("beams as many as there are texts find the best of all texts") {
  Bench bench("encoder-decoders/bart");
  const Ids from{2, 7};
  RunRequest like;
  like.source_ids = {3, 17, 8, 21, 40, 2};
  // 43 tokens, two steps: 43² texts, of which a beam of 43 and its twice as many candidates see the first step whole.
  Generator generator(bench.loaded, like, false);
  std::vector<std::pair<double, Ids>> all;
  const auto ln = [](const Tensor& logits, std::int32_t id) { return -next_token_loss(logits, id); };
  const Tensor first = generator.read(bench.ctx, from)->logits;
  for (std::int32_t a = 0; a < 43; ++a) {
    if (a == 5) {
      all.emplace_back(ln(first, a), Ids{a});
      continue;
    }
    const Tensor second = generator.read(bench.ctx, Ids{2, 7, a})->logits;
    for (std::int32_t b = 0; b < 43; ++b) all.emplace_back((ln(first, a) + ln(second, b)) / 2, Ids{a, b});
  }
  std::ranges::sort(all, std::ranges::greater{}, &std::pair<double, Ids>::first);
  const BeamTree tree = bench.beams({.width = 43, .tokens = 2, .end = 5}, like, from);
  REQUIRE(tree.beams.size() == 43);
  for (std::size_t i = 0; i < tree.beams.size(); ++i) {
    CHECK(tree.tokens(tree.beams[i].node) == all[i].second);
    CHECK(tree.beams[i].score == doctest::Approx(all[i].first).epsilon(1e-5));
  }
}

TEST_CASE("beams under edits are those of the edited model: sums by whole passes, nothing better is missed") {
  for (const char* name : {"gpt2-random", "llama-gqa"})
    for (const char* edit : {"0.1: ablate zero", "*: drop first 2", "1.*: temperature 0.3", "*@4..: mask window 2",
                             "0.*: ablate mean", "*@-1: ablate zero"}) {
      CAPTURE(name);
      CAPTURE(edit);
      Bench bench(name);
      const RunRequest like = edited({edit});
      const BeamSettings settings{.width = 3, .tokens = 5};
      const BeamTree tree = bench.beams(settings, like);
      const BeamTree plain = bench.beams(settings);
      CHECK(std::abs(tree.nodes[0].sum - plain.nodes[0].sum) > 1e-6);
      for (std::size_t i = 0; i < tree.nodes.size(); ++i)
        if (looks_ahead(like.edits[0], bench.loaded.model->config().context)) {
          // Such an edit is another one in every prefix: each token's own pass ends before it.
          Ids before = prompt;
          const Ids written = tree.tokens(i);
          before.insert(before.end(), written.begin(), written.end() - 1);
          RunRequest request = like;
          request.ids = before;
          request.ids_are_whole = true;
          const auto trace = run(bench.loaded, request, bench.ctx);
          const Tensor last = trace->logits.select(0, trace->logits.dim(0) - 1);
          CHECK(tree.nodes[i].log_probability == doctest::Approx(-next_token_loss(last, written.back())).epsilon(1e-4));
        } else {
          CHECK(tree.nodes[i].sum == doctest::Approx(bench.sum(prompt, tree.tokens(i), like)).epsilon(1e-4));
        }
      // What was kept at each step is better than everything else one token on from what was kept before.
      Generator generator(bench.loaded, like, false);
      for (int step = 2; step <= settings.tokens; ++step) {
        std::vector<double> every;
        double worst = std::numeric_limits<double>::infinity();
        for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
          const BeamNode& node = tree.nodes[i];
          if (node.step == step && node.fate != Fate::dropped) worst = std::min(worst, node.sum);
          if (node.step != step - 1 || node.fate != Fate::kept) continue;
          Ids ids = prompt;
          std::ranges::copy(tree.tokens(i), std::back_inserter(ids));
          const Tensor logits = generator.read(bench.ctx, ids)->logits;
          for (std::int32_t id = 0; id < bench.loaded.model->config().dims.vocab; ++id)
            every.push_back(node.sum - next_token_loss(logits, id));
        }
        std::ranges::sort(every, std::ranges::greater{});
        CHECK(worst == doctest::Approx(every[2]).epsilon(1e-5));
      }
    }
}

TEST_CASE("beams end with the context, stop when told, and refuse what makes no sense") {
  Bench bench("gpt2-random");
  const Ids nearly(static_cast<std::size_t>(bench.loaded.model->config().context) - 2, 5);
  const BeamTree tree = bench.beams({.width = 2, .tokens = 20}, {}, nearly);
  CHECK(tree.nodes.back().step == 3);  // the last token is not read
  const Ids full(nearly.size() + 3, 5);
  CHECK_THROWS_AS(bench.beams({}, {}, full), Error);
  CHECK_THROWS_AS(bench.beams({.width = 0}), Error);
  CHECK_THROWS_AS(bench.beams({.width = most_beams + 1}), Error);
  CHECK_THROWS_AS(bench.beams({.length_penalty = std::nan("")}), Error);
  CHECK_THROWS_AS(bench.beams({.tokens = 0}), Error);
  std::stop_source stop;
  stop.request_stop();
  CHECK_THROWS_AS(beam_search(bench.loaded, prompt, {}, {}, Ctx{bench.backend, nullptr, stop.get_token()}), Cancelled);
}

}  // namespace headscope::beam_search_test
