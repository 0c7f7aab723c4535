// The forward pass against tests/reference: six small random models, and what an independent float64 definition says
// they compute (reference_model.py; the files are described in make_models.py).

#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/io/safetensors.h"
#include "core/metrics/metric.h"
#include "core/metrics/next_token.h"
#include "tests/model/parity.h"
#include "tests/support/paths.h"
#include "tests/support/word_metrics.h"
#include "tests/support/worst.h"

namespace headscope::parity_test {

using namespace testing;

namespace {

/// Float32 against float64 at these sizes differs by a few 1e-7 of the largest value; a wrong formula by far more.
constexpr double site_tolerance = 5e-6;

std::vector<std::int32_t> integers(const SafetensorsFile& file, const std::string& name) {
  const TensorEntry& entry = file.entry(name);
  REQUIRE(entry.dtype == DType::i32);
  return entry.items<std::int32_t>();
}

struct Case {
  const char* folder;
  const char* file;
};
constexpr Case cases[] = {
    {"gpt2-random", "expected.safetensors"},     {"gpt2-random", "expected-one.safetensors"},
    {"gpt2-untied-erf", "expected.safetensors"}, {"gpt2-f16", "expected.safetensors"},
    {"llama-gqa", "expected.safetensors"},       {"llama-rope3", "expected.safetensors"},
    {"llama-bias", "expected.safetensors"},
};

/// Runs `check(subject, expected, ids)` for every model and text.
template <class Check>
void for_each_case(Check&& check) {
  for (const Case& one : cases) {
    CAPTURE(one.folder);
    CAPTURE(one.file);
    const SafetensorsFile expected = SafetensorsFile::open(reference(one.folder) / one.file);
    check(Subject(reference(one.folder)), expected, integers(expected, "tokens"));
  }
}

}  // namespace

TEST_CASE("every site of every family holds what the independent definition says") {
  for_each_case([](const Subject& subject, const SafetensorsFile& expected, const std::vector<std::int32_t>& ids) {
    const auto trace = subject.trace(ids, MapStorage::dense, true);
    int compared = 0;
    for (const auto& [label, entry] : expected.tensors()) {
      const std::optional<Site> site = parse_site(label);
      if (!site || site->kind == SiteKind::logits) continue;
      CAPTURE(label);
      const Tensor truth = expected.tensor(label);
      if (site->kind == SiteKind::pattern) {
        for (int head = 0; head < trace->model.dims.heads; ++head) {
          CHECK(absolute(trace->map({site->layer, head}).to_dense(), truth.select(0, head)) < 2e-6);
        }
      } else {
        REQUIRE(trace->sites.count(*site) == 1);
        CHECK(trace->sites.at(*site).shape() == truth.shape());
        CHECK(relative(trace->sites.at(*site), truth) < site_tolerance);
      }
      ++compared;
    }
    // Both ways: whatever the model declares, the reference has.
    int declared = 0;
    for (const SiteKind kind : subject.loaded.model->sites()) {
      if (kind != SiteKind::logits) declared += info(kind).per_layer ? trace->model.dims.layers : 1;
    }
    CHECK(compared == declared);
  });
}

TEST_CASE("logits, losses and the ten likeliest tokens agree in value and order") {
  for_each_case([](const Subject& subject, const SafetensorsFile& expected, const std::vector<std::int32_t>& ids) {
    const auto trace = subject.trace(ids, MapStorage::automatic, false);
    CHECK(relative(trace->logits, expected.tensor("logits")) < site_tolerance);

    const std::vector<double> losses = token_losses(*trace);
    const Tensor truth = expected.tensor("nll");
    REQUIRE(static_cast<Index>(losses.size()) == truth.size());
    for (Index i = 0; i < truth.size(); ++i) {
      CHECK(std::abs(losses[static_cast<std::size_t>(i)] - static_cast<double>(truth.at(i))) < map_tolerance);
    }

    const std::vector<NextToken> top = top_next(*trace, 10);
    const std::vector<std::int32_t> order = integers(expected, "top10_ids");
    const Tensor probabilities = expected.tensor("top10_probs");
    REQUIRE(top.size() == 10);
    for (std::size_t rank = 0; rank < 10; ++rank) {
      CHECK(top[rank].id == order[rank]);
      CHECK(std::abs(top[rank].probability - static_cast<double>(probabilities.at(static_cast<Index>(rank)))) < 1e-6);
    }
  });
}

TEST_CASE("the greedy continuation through the cache is the one computed without a cache") {
  for_each_case([](const Subject& subject, const SafetensorsFile& expected, const std::vector<std::int32_t>& ids) {
    CHECK(subject.greedy(ids, 8) == integers(expected, "greedy"));
  });
}

TEST_CASE("every metric of every head, and its chance level, agrees with the formula written out cell by cell") {
  for_each_case([](const Subject& subject, const SafetensorsFile& expected, const std::vector<std::int32_t>& ids) {
    for (const MapStorage storage : {MapStorage::dense, MapStorage::factored}) {
      const auto trace = subject.trace(ids, storage, false);
      const HeadTable table = head_table(*trace);
      const auto heads = static_cast<std::size_t>(trace->model.dims.layers * trace->model.dims.heads);
      REQUIRE(table.value.size() == heads);
      for (std::size_t column = 0; column < metrics().size(); ++column) {
        const std::string id(metrics()[column].id);
        CAPTURE(id);
        // Numbers are no words, and have no punctuation (tests/metrics/text_marks_test.cpp).
        if (id == "next_token" || id == "separator" || id == "punctuation" || testing::reads_words(id)) {
          for (std::size_t head = 0; head < heads; ++head) CHECK(std::isnan(table.value[head][column]));
          continue;
        }
        REQUIRE(expected.contains("metrics." + id));
        const Tensor truth = expected.tensor("metrics." + id);
        const Tensor chance = expected.tensor("chance." + id);
        for (std::size_t head = 0; head < heads; ++head) {
          CAPTURE(head);
          // Lengths in tokens grow with the text; shares and nats do not.
          const float value = truth.values()[head];
          const double scale = std::max(1.0, std::abs(static_cast<double>(value)));
          const float found = static_cast<float>(table.value[head][column]);
          CHECK(difference({&found, 1}, {&value, 1}) < map_tolerance * scale);
          if (id == "fixed_offset_at") continue;  // all offsets are alike to chance
          const float expected_chance = chance.at(0), found_chance = static_cast<float>(table.chance[head][column]);
          CHECK(difference({&found_chance, 1}, {&expected_chance, 1}) <
                map_tolerance * std::max(1.0, std::abs(static_cast<double>(expected_chance))));
        }
      }
    }
  });
}

TEST_CASE("metrics of words, and their chance, agree with their definitions were the text English") {
  Random random(3);
  int compared = 0;
  for_each_case([&](const Subject& subject, const SafetensorsFile&, const std::vector<std::int32_t>& ids) {
    for (const MapStorage storage : {MapStorage::dense, MapStorage::factored}) {
      Trace trace = *subject.trace(ids, storage, false);
      trace.tokens = testing::english(static_cast<Index>(trace.tokens.size()), random);
      const TextMarks text = TextMarks::of(trace.tokens);
      const HeadTable table = head_table(trace, text);
      for (std::size_t column = 0; column < metrics().size(); ++column) {
        const std::string id(metrics()[column].id);
        if (!testing::reads_words(id)) continue;
        CAPTURE(id);
        for (std::size_t head = 0; head < trace.maps.size(); ++head)
          for (const bool even : {false, true}) {
            const double truth = testing::by_definition(id, trace.maps[head], text, even);
            const double found = (even ? table.chance : table.value)[head][column];
            REQUIRE(std::isnan(found) == std::isnan(truth));
            if (std::isnan(truth)) continue;
            ++compared;
            CHECK(std::abs(found - truth) < 1e-5);
          }
      }
    }
  });
  CHECK(compared > 500);
}

TEST_CASE("factored maps say the same as the definition") {
  for_each_case([](const Subject& subject, const SafetensorsFile& expected, const std::vector<std::int32_t>& ids) {
    const auto trace = subject.trace(ids, MapStorage::factored, false);
    for (int layer = 0; layer < trace->model.dims.layers; ++layer) {
      const Tensor truth = expected.tensor(name({SiteKind::pattern, layer}));
      for (int head = 0; head < trace->model.dims.heads; ++head) {
        REQUIRE(trace->map({layer, head}).is_factored());
        CHECK(absolute(trace->map({layer, head}).to_dense(), truth.select(0, head)) < 2e-6);
      }
    }
  });
}

TEST_CASE("a text in two passes through the cache gives the logits of one pass") {
  for_each_case([](const Subject& subject, const SafetensorsFile& expected, const std::vector<std::int32_t>& ids) {
    if (ids.size() < 4) return;
    const Ctx ctx{*subject.backend};
    KvCache cache(subject.loaded.model->config().dims, static_cast<int>(ids.size()));
    const std::span<const std::int32_t> all(ids);
    const std::size_t cut = ids.size() / 2 - 1;
    const Tensor first = subject.loaded.model->forward(ctx, all.first(cut), &cache).logits;
    const Tensor rest = subject.loaded.model->forward(ctx, all.subspan(cut), &cache).logits;
    const Tensor truth = expected.tensor("logits");
    CHECK(relative(first, truth.slice(0, 0, static_cast<Index>(cut))) < site_tolerance);
    CHECK(relative(rest, truth.slice(0, static_cast<Index>(cut), truth.dim(0))) < site_tolerance);
  });
}

TEST_CASE("the example's heads do what its card says") {
  const Subject subject(source_dir() / "assets" / "examples" / "induction");
  std::vector<std::int32_t> ids{256};
  for (int copy = 0; copy < 2; ++copy) {
    for (std::int32_t token = 0; token < 60; ++token) ids.push_back((token * 37 + 11) % 256);
  }
  const auto trace = subject.trace(ids, MapStorage::dense, false);
  const auto score = [&](const char* id, int layer, int head) {
    return evaluate(metric(id), *trace).at(static_cast<std::size_t>(4 * layer + head));
  };
  CHECK(score("previous_token", 0, 0) >= 0.99);
  CHECK(score("fixed_offset", 0, 1) >= 0.99);
  CHECK(score("fixed_offset_at", 0, 1) == 2);
  CHECK(score("duplicate_token", 0, 2) >= 0.99);
  CHECK(score("prefix_matching", 1, 0) >= 0.99);
  CHECK(score("self_attention", 1, 1) >= 0.99);
  CHECK(score("entropy_normalized", 1, 2) >= 0.999);
  CHECK(score("sink", 1, 3) >= 0.99);
  // Having read the block once, it knows the rest of its repetition.
  const std::vector<double> losses = token_losses(*trace);
  Worst second;
  for (std::size_t i = 62; i < losses.size(); ++i) second.add(losses[i]);
  CHECK(second.value() < 0.1);
}

}  // namespace headscope::parity_test
