// Trace files that are something else, lie, or are damaged: one clear Error each.
#include <doctest/doctest.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <ostream>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/random.h"
#include "core/io/safetensors.h"
#include "core/io/trace_file.h"
#include "tests/support/paths.h"

namespace headscope::trace_file_broken_test {

using nlohmann::json;
namespace fs = std::filesystem;

namespace {

/// What the file of a one-layer, two-head, three-token trace holds, to be spoilt.
struct Contents {
  json description = json::parse(R"({"format":"headscope-trace","version":1,
    "model":{"name":"m","family":"f","dtype":"F32","parameters":1,"context":8,"layers":1,"heads":2,"kv_heads":2,"d_head":1,"d_model":2,"d_mlp":2,"vocab":5},
    "text":"abc","tokens":[{"bytes":"a","label":"a","begin":0,"end":1},{"bytes":"b","label":"b","begin":1,"end":2},{"bytes":"c","label":"c","begin":2,"end":3}],
    "source":"s","queries":3,"keys":3,"query_offset":0,"map_kind":"probability","rule":"causal",
    "plan":{"maps":"dense","bytes":72,"summary":"x"},"milliseconds":1.5})");
  bool described = true;
  std::map<std::string, Tensor> tensors{{"blocks.0.attn.hook_pattern", causal()}};
  DType ids_type = DType::i32;
  std::vector<std::int32_t> ids{0, 1, 4};

  static Tensor causal() {
    return Tensor::from({2, 3, 3},
                        std::vector<float>{1, 0, 0, .5f, .5f, 0, .25f, .25f, .5f, 1, 0, 0, 0, 1, 0, 0, 0, 1});
  }
  void write(const fs::path& path) const {
    SafetensorsWriter writer;
    if (described) writer.metadata("headscope", description.dump());
    if (!ids.empty())
      writer.add("tokens", ids_type, {static_cast<std::int64_t>(ids.size() * 4 / dtype_size(ids_type))},
                 [this](std::ostream& out) {
                   out.write(reinterpret_cast<const char*>(ids.data()), static_cast<std::streamsize>(ids.size() * 4));
                 });
    for (const auto& [name, tensor] : tensors) writer.add(name, tensor);
    writer.write(path);
  }
};

std::string refusal(const std::function<void(Contents&)>& spoil) {
  Contents contents;
  spoil(contents);
  const fs::path path = testing::scratch_dir("trace-broken") / "x.safetensors";
  contents.write(path);
  try {
    open_trace(path);
  } catch (const Error& e) {
    return e.what();
  }
  return "opened";
}

bool says(const std::string& message, const std::string& part) {
  if (message.find(part) != std::string::npos && message.find("x.safetensors") != std::string::npos) return true;
  MESSAGE("said: " << message);
  return false;
}

bool opens(const fs::path& path) {
  try {
    const auto trace = open_trace(path);
    double sum = 0;
    for (const AttentionMap& map : trace->maps) sum += static_cast<double>(map.weight(0, 0)) + map.overview(2).bin;
    return sum >= 0 || sum < 0;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

TEST_CASE("the file that the tests below spoil opens whole") {
  CHECK(refusal([](Contents&) {}) == "opened");
  CHECK(refusal([](Contents& c) { c.tensors["probe.weights"] = Tensor::zeros({9}); }) == "opened");  // a notebook's own
  CHECK(refusal([](Contents& c) { c.tensors.clear(); }) == "opened");
}

TEST_CASE("files that are not traces say so") {
  CHECK(refusal([](Contents& c) { c.described = false; }) == "opened");  // patterns by their names, with ids
  CHECK(
      says(refusal([](Contents& c) {
             c.described = false;
             c.tensors = {{"weights", Tensor::zeros({2, 3, 3})}};
           }),
           "expected a trace (headscope-trace: a description in __metadata__), found a safetensors file of 2 tensors"));
  CHECK(says(refusal([](Contents& c) { c.description = json::array(); }), "an object"));
  CHECK(says(refusal([](Contents& c) { c.description["format"] = "other"; }),
             "description.format: expected headscope-trace, found \"other\""));
  CHECK(says(refusal([](Contents& c) { c.description["version"] = 2; }), "description.version: expected 1, found 2"));
}

TEST_CASE("a model folder is not a trace") {
  HEADSCOPE_NEEDS_SHARED(folder, "models/gpt2-byte-d96");
  CHECK_THROWS_WITH_AS(open_trace(*folder), doctest::Contains("is it a model?"), Error);
}

TEST_CASE("descriptions with a value missing, of another type or out of range name the key") {
  CHECK(says(refusal([](Contents& c) { c.description.erase("text"); }), "expected the key 'text', found none"));
  CHECK(says(refusal([](Contents& c) { c.description["model"].erase("heads"); }),
             "description.model: expected the key 'heads'"));
  CHECK(
      says(refusal([](Contents& c) { c.description["model"] = 3; }), "description.model: expected an object, found 3"));
  CHECK(says(refusal([](Contents& c) { c.description["model"]["heads"] = -1; }), "model.heads"));
  CHECK(says(refusal([](Contents& c) { c.description["model"]["heads"] = 2.5; }), "found 2.5"));
  CHECK(says(refusal([](Contents& c) { c.description["model"]["vocab"] = 18446744073709551615ull; }), "model.vocab"));
  CHECK(says(refusal([](Contents& c) { c.description["text"] = {{"hex", "4"}}; }), "description.text"));
  CHECK(says(refusal([](Contents& c) { c.description["text"] = {{"hex", "zz"}}; }), "pairs of the digits"));
  CHECK(says(refusal([](Contents& c) { c.description["tokens"] = "abc"; }), "description.tokens: expected an array"));
  CHECK(says(refusal([](Contents& c) { c.description["tokens"][1]["end"] = 9; }),
             "description.tokens[1].end: expected a whole number from -1 to 3, found 9"));
  CHECK(says(refusal([](Contents& c) { c.description["tokens"][1]["begin"] = 3; }), "tokens[1].begin"));
  CHECK(says(refusal([](Contents& c) { c.description["tokens"][1]["begin"] = -1; }), "tokens[1].begin"));
  CHECK(says(refusal([](Contents& c) { c.description["map_kind"] = "guess"; }),
             "one of probability, effective, sparse, difference, found \"guess\""));
  CHECK(says(refusal([](Contents& c) { c.description["milliseconds"] = "1"; }), "milliseconds: expected a number"));
  CHECK(says(refusal([](Contents& c) { c.description["rule"] = 5; }), "rule: expected a text"));
}

TEST_CASE("tensors that disagree with the description name the tensor and both numbers") {
  CHECK(says(refusal([](Contents& c) { c.description["model"]["heads"] = 3; }),
             "tensor blocks.0.attn.hook_pattern: expected shape [3, 3, 3] (head, query, key), found [2, 3, 3]"));
  CHECK(says(refusal([](Contents& c) { c.tensors["blocks.1.attn.hook_pattern"] = Contents::causal(); }),
             "expected layers below 1, found 1"));
  CHECK(says(refusal([](Contents& c) { c.description["model"]["kv_heads"] = 3; }),
             "expected as many query heads for each of 3 key heads in layer 0, found 2 heads"));
  CHECK(says(refusal([](Contents& c) {
               c.tensors["logits"] = Tensor::zeros({2, 5});
             }),
             "tensor logits: expected shape [3, 5]"));
  CHECK(says(refusal([](Contents& c) { c.ids.pop_back(); }),
             "tensor tokens: expected 3 ids, as many as tokens are described, found 2"));
  CHECK(says(refusal([](Contents& c) { c.ids.clear(); }), "tensor tokens"));
  CHECK(says(refusal([](Contents& c) { c.ids_type = DType::i16; }), "expected I32 with one axis, found I16"));
  CHECK(says(refusal([](Contents& c) { c.description["keys"] = 4; }), "4 keys, 3 tokens"));
  CHECK(
      says(refusal([](Contents& c) { c.description["query_offset"] = 2000000000; }), "after 2000000000 cached tokens"));
  CHECK(says(refusal([](Contents& c) { c.description["queries"] = 0; }), "0 queries"));
  CHECK(says(refusal([](Contents& c) { c.description["tokens"].erase(0); }), "2 tokens"));
}

TEST_CASE("weights that are not finite or contradict the causal rule are refused with their cell") {
  CHECK(says(refusal([](Contents& c) { c.tensors.begin()->second.ref(1, 2, 0) = NAN; }),
             "expected finite weights, found nan at head 1, query 2, key 0"));
  CHECK(says(refusal([](Contents& c) { c.tensors.begin()->second.ref(0, 1, 1) = INFINITY; }),
             "found inf at head 0, query 1, key 1"));
  CHECK(says(refusal([](Contents& c) { c.tensors.begin()->second.ref(0, 0, 1) = 1e-30f; }),
             "no weight on later keys, as its rule is causal"));
  // The same weights under another rule are fine.
  CHECK(refusal([](Contents& c) {
          c.tensors.begin()->second.ref(0, 0, 1) = 1e-30f;
          c.description["rule"] = nullptr;
        }) == "opened");
}

TEST_CASE("a trace file cut at any length is refused, and with any damage opens or is refused") {
  const fs::path path = testing::scratch_dir("trace-fuzz") / "x.safetensors";
  Contents().write(path);
  const std::string whole = read_file(path);
  int opened = 0;
  for (std::size_t length = 0; length < whole.size(); ++length) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << whole.substr(0, length);
    opened += opens(path);
  }
  CHECK(opened == 0);
  Random random(13);
  for (int round = 0; round < 3000; ++round) {
    std::string damaged = whole;
    const auto flips = 1 + random.below(2);
    for (std::uint64_t flip = 0; flip < flips; ++flip)
      damaged[random.below(damaged.size())] =
          round % 2 ? static_cast<char>(random.below(256)) : "0123456789[]{}\",:-"[random.below(18)];
    std::ofstream(path, std::ios::binary | std::ios::trunc) << damaged;
    opened += opens(path);
  }
  CHECK(opened < 3000);
}

}  // namespace headscope::trace_file_broken_test
