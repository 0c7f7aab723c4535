// The metrics against figures that an independent float64 program computed from the same weights: from the small models
// that are always here, and from captures of trained ones where the reference set stands beside the project.

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/io/npz.h"
#include "core/io/safetensors.h"
#include "core/metrics/head_class.h"
#include "core/metrics/repeated_tokens.h"
#include "tests/metrics/classes.h"
#include "tests/metrics/maps.h"
#include "tests/support/paths.h"
#include "tests/support/word_metrics.h"

namespace headscope::reference_figures_test {

using namespace testing;
using nlohmann::json;

namespace {

constexpr double tolerance = 1e-5;

// The captures' names of figures, and ours.
const std::pair<const char*, const char*> names[] = {
    {"entropy", "entropy"},
    {"sink", "sink"},
    {"prev_token", "previous_token"},
    {"self_attn", "self_attention"},
    {"mean_distance", "mean_distance"},
    {"duplicate_token", "duplicate_token"},
    {"prefix_matching", "prefix_matching"},
};

std::vector<std::int32_t> narrowed(const std::vector<std::int64_t>& values) {
  return {values.begin(), values.end()};
}

json read_json(const std::filesystem::path& path) {
  std::ifstream stream(path);
  return json::parse(stream);
}

double mean(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value);
  return sum / static_cast<double>(values.size());
}

bool close(double found, double expected) {
  return (std::isnan(found) && std::isnan(expected)) || std::abs(found - expected) <= tolerance;
}

// One head's figures, the per-row ones included.
int compare(const NpzFile& file, const Head& head, Index layer, Index h, const json& about, const std::string& where) {
  int figures = 0;
  const auto check = [&](const char* name, double found) {
    if (!file.contains(name)) return;
    ++figures;
    const double expected = static_cast<double>(file.tensor(name).at(layer, h));
    CHECK_MESSAGE(close(found, expected), where << " " << name << ": " << found << ", expected " << expected);
  };
  for (const auto& [theirs, ours] : names) check(theirs, head.value(ours));
  const HeadStats& stats = head.map.stats();
  check("attn0_mean", mean(stats.first));
  if (about.contains("period")) {
    const int period = about["period"], bos = about["bos"];
    check("induction_block", induction_block(head.map, period, bos));
    check("duplicate_block", duplicate_block(head.map, period, bos));
    check("induction_diag", induction_diagonal(head.map, period));
  }
  const Tensor rows = file.tensor("entropy_rows"), first = file.tensor("attn_to_0"), most = file.tensor("attn_max");
  for (std::size_t q = 0; q < stats.entropy.size(); ++q) {
    const auto query = static_cast<Index>(q);
    const auto found = [&](const Tensor& all) { return static_cast<double>(all.at(layer, h, query)); };
    REQUIRE(close(static_cast<double>(stats.entropy[q]), found(rows)));
    REQUIRE(close(static_cast<double>(stats.first[q]), found(first)));
    REQUIRE(close(static_cast<double>(stats.max_weight[q]), found(most)));
  }
  return figures;
}

/// The class a head gets first in a capture, "" for none.
std::string class_in(const std::filesystem::path& npz, Index layer, Index h) {
  const NpzFile file = NpzFile::open(npz);
  const Head head =
      head_of(file.tensor("attn").select(0, layer).select(0, h), narrowed(file.integers("ids")), causal_rule());
  const auto verdicts = classes_of(head.input(), default_class_rules()).met;
  return verdicts.empty() ? "" : verdicts.front().rule->id;
}

}  // namespace

TEST_CASE("metrics of the small random models equal the reference figures, and so do their levels of chance") {
  int figures = 0;
  for (const auto& folder : std::filesystem::directory_iterator(reference("")))
    for (const char* name : {"expected.safetensors", "expected-one.safetensors"}) {
      if (!std::filesystem::exists(folder.path() / name)) continue;
      const SafetensorsFile file = SafetensorsFile::open(folder.path() / name);
      if (!file.contains("tokens")) continue;  // steps of training, which have another test
      const auto tokens = file.entry("tokens").items<std::int32_t>();
      const auto compare_one = [&](const std::string& what, double found, float expected) {
        CHECK_MESSAGE(close(found, static_cast<double>(expected)),
                      file.path() << " " << what << ": " << found << ", expected " << expected);
        ++figures;
      };
      for (const Metric& entry : metrics()) {
        const std::string id(entry.id);
        // Of a decoder's text of numbers what looks ahead, for punctuation, or for words, says nothing
        // (text_marks_test.cpp, word_classes_test.cpp).
        const bool silent = id == "next_token" || id == "separator" || id == "punctuation" || reads_words(id);
        if (silent) {
          const Tensor pattern = file.tensor("blocks.0.attn.hook_pattern");
          CHECK(std::isnan(head_of(pattern.select(0, 0), tokens, causal_rule()).value(id)));
          continue;
        }
        const Tensor expected = file.tensor("metrics." + id);
        for (Index layer = 0; layer < expected.dim(0); ++layer) {
          const Tensor pattern = file.tensor("blocks." + std::to_string(layer) + ".attn.hook_pattern");
          for (Index h = 0; h < expected.dim(1); ++h) {
            const Head head = head_of(pattern.select(0, h), tokens, causal_rule());
            compare_one(id, head.value(id), expected.at(layer, h));
            if (id != "fixed_offset_at")  // where an even head looks most is no level of chance
              compare_one("chance of " + id, head.chance(id), file.tensor("chance." + id).at(0));
          }
        }
      }
    }
  MESSAGE(figures << " figures compared");
  CHECK(figures > 1000);
}

TEST_CASE("metrics of captured models equal the reference figures") {
  HEADSCOPE_NEEDS_SHARED(captures, "captures");
  int figures = 0;
  for (const char* model : {"gpt-nano-sort", "gpt2-bpe-d64", "gpt2-byte-d96", "stories260k"})
    for (const json& about : read_json(*captures / model / "meta.json")) {
      const std::string prompt = about["name"];
      const NpzFile file = NpzFile::open(*captures / model / (prompt + ".npz"));
      const auto ids = narrowed(file.integers("ids"));
      const auto compare_one = [&](const Tensor& weights, Index layer, Index h) {
        const std::string where =
            std::string(model) + " " + prompt + " " + std::to_string(layer) + "." + std::to_string(h);
        figures += compare(file, head_of(weights, ids, causal_rule()), layer, h, about, where);
      };
      if (file.contains("attn")) {
        const Tensor attn = file.tensor("attn");
        for (Index layer = 0; layer < attn.dim(0); ++layer)
          for (Index h = 0; h < attn.dim(1); ++h) compare_one(attn.select(0, layer).select(0, h), layer, h);
      } else {
        const Tensor attn = file.tensor("attn_sel");
        const auto heads = file.integers("attn_sel_heads");
        for (Index i = 0; i < attn.dim(0); ++i) {
          const auto at = static_cast<std::size_t>(2 * i);
          compare_one(attn.select(0, i), heads[at], heads[at + 1]);
        }
      }
    }
  MESSAGE(figures << " figures compared");
  CHECK(figures > 4000);
}

TEST_CASE("metrics of real pretrained models' attention equal the reference figures") {
  HEADSCOPE_NEEDS_SHARED(folder, "captures-real");
  int figures = 0;
  for (const json& about : read_json(*folder / "index.json")) {
    const std::string name = about["file"];
    Tensor attn = NpzFile::open(*folder / name).tensor("attn");
    if (attn.rank() == 3) attn = attn.reshape({1, attn.dim(0), attn.dim(1), attn.dim(2)});
    std::vector<std::int32_t> tokens;
    if (about.contains("token_groups")) {
      tokens = about["token_groups"].get<std::vector<std::int32_t>>();
    } else {
      tokens = about["ids"].get<std::vector<std::int32_t>>();
    }
    const auto rule = about["model"] == "bert-base-uncased" ? full_rule() : causal_rule();
    for (Index layer = 0; layer < attn.dim(0); ++layer)
      for (Index h = 0; h < attn.dim(1); ++h) {
        const Head head = head_of(attn.select(0, layer).select(0, h), tokens, rule);
        for (const auto& [theirs, ours] : names) {
          if (!about["metrics"].contains(theirs)) continue;
          const json& all = about["metrics"][theirs];
          const json& expected = all[0].is_array() ? all[static_cast<std::size_t>(layer)][static_cast<std::size_t>(h)]
                                                   : all[static_cast<std::size_t>(h)];
          const double found = head.value(ours);
          CHECK_MESSAGE(close(found, expected.get<double>()), name << " " << theirs << " " << layer << "." << h << ": "
                                                                   << found << ", expected " << expected.dump());
          ++figures;
        }
      }
  }
  MESSAGE(figures << " figures compared");
  CHECK(figures > 2000);
}

TEST_CASE("known heads of trained models get the class they are known for") {
  HEADSCOPE_NEEDS_SHARED(captures, "captures");
  // The byte model was trained to have a previous-token head and a set of induction heads (its meta.json names them).
  const auto byte_model = *captures / "gpt2-byte-d96";
  for (const char* text : {"repeat.npz", "story.npz", "essay.npz"})
    CHECK(class_in(byte_model / text, 1, 3) == "previous_token");
  for (const auto& [layer, h] : {std::pair{2, 1}, {2, 4}, {3, 0}, {3, 2}, {3, 3}, {3, 4}, {3, 5}})
    CHECK_MESSAGE(class_in(byte_model / "repeat.npz", layer, h) == "induction", layer << "." << h);
  CHECK(class_in(byte_model / "repeat.npz", 2, 5) == "duplicate_token");
  CHECK(class_in(byte_model / "repeat.npz", 0, 1) == "uniform");
  // On prose nothing repeats for long enough: the induction heads have nothing to do, and are not called by that name.
  for (const auto& [layer, h] : {std::pair{2, 1}, {2, 4}, {3, 2}})
    CHECK_MESSAGE(class_in(byte_model / "story.npz", layer, h) != "induction", layer << "." << h);
  for (const auto& [layer, h] : {std::pair{2, 0}, {3, 1}})
    CHECK_MESSAGE(class_in(*captures / "gpt2-bpe-d64" / "repeat.npz", layer, h) == "induction", layer << "." << h);
}

TEST_CASE("known heads of GPT-2 small get the class they are known for") {
  HEADSCOPE_NEEDS_SHARED(folder, "captures-real");
  const auto first_class = [](const Tensor& weights, const std::vector<std::int32_t>& tokens) {
    const Head head = head_of(weights, tokens, causal_rule());
    const auto verdicts = classes_of(head.input(), default_class_rules()).met;
    return verdicts.empty() ? std::string() : verdicts.front().rule->id;
  };
  int whole_models = 0, single_previous = 0, single_induction = 0;
  for (const json& about : read_json(*folder / "index.json")) {
    const std::string name = about["file"];
    if (!about.contains("token_groups")) continue;
    const auto tokens = about["token_groups"].get<std::vector<std::int32_t>>();
    const Tensor attn = NpzFile::open(*folder / name).tensor("attn");
    if (name.starts_with("bertviz_gpt2")) {
      ++whole_models;
      CHECK(first_class(attn.select(0, 4).select(0, 11), tokens) == "previous_token");
      CHECK(first_class(attn.select(0, 0).select(0, 1), tokens) == "self");
      CHECK(first_class(attn.select(0, 5).select(0, 1), tokens) == "sink");  // induction heads rest on the first token
      CHECK(first_class(attn.select(0, 7).select(0, 10), tokens) == "sink");
    } else if (name.starts_with("tl_gpt2_Head_D_c26")) {
      ++single_previous;
      CHECK(first_class(attn.select(0, 11), tokens) == "previous_token");
    } else if (name.starts_with("tl_gpt2_Main_D_c48")) {
      ++single_induction;
      CHECK(first_class(attn.select(0, 0), tokens) == "induction");  // head 5.5 on twenty random tokens said twice
    }
  }
  CHECK(whole_models == 1);
  CHECK(single_previous == 1);
  CHECK(single_induction == 2);
}

}  // namespace headscope::reference_figures_test
