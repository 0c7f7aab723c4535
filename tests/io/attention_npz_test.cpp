// Attention captured by other programs, opened as traces.
#include <doctest/doctest.h>

#include <fstream>

#include "core/base/error.h"
#include "core/io/imported_maps.h"
#include "core/io/npz.h"
#include "core/io/trace_file.h"
#include "tests/support/paths.h"

namespace headscope::attention_npz_test {

namespace fs = std::filesystem;

namespace {

fs::path fixture(const std::string& name) {
  return testing::reference("npz") / name;
}

}  // namespace

TEST_CASE("layers, heads, causality and tokens come from the arrays") {
  const auto trace = open_trace(fixture("attention.npz"));
  CHECK(trace->model.dims.layers == 2);
  CHECK(trace->model.dims.heads == 3);
  CHECK(trace->model.name == "attention");
  CHECK(trace->source == "imported from attention.npz");
  REQUIRE(trace->maps.size() == 6);
  const AttentionMap& map = trace->map({1, 2});
  CHECK(map.place().kind == MapKind::probability);
  CHECK(map.rule()->describe() == "causal");
  CHECK(map.n_key() == 4);
  // attn[l, h, q, k] = 1 / (q + 1) below the diagonal, but head 2 of layer 1 looks at the previous token.
  CHECK(trace->map({0, 0}).weight(3, 1) == 0.25f);
  CHECK(map.weight(3, 2) == 1.0f);
  CHECK(map.weight(0, 0) == 1.0f);
  CHECK(trace->tokens[1].label == "␣b");
  CHECK(trace->tokens[1].bytes == " b");
  CHECK(trace->ids() == std::vector<std::int32_t>{0, 1, 0, 2});  // "a", " b", "a", "c"
  REQUIRE(map.stats().induction.size() == 4);
  CHECK(map.stats().duplicate[2] == 0.0f);  // token 2 equals token 0; the head looks at 1
  CHECK(map.stats().induction[2] == 1.0f);  // and 1 is what followed token 0
}

TEST_CASE("one layer without tokens is numbered by position, and ids give labels") {
  const auto trace = open_trace(fixture("one_layer.npy"));
  CHECK(trace->model.dims.layers == 1);
  CHECK(trace->model.dims.heads == 2);
  CHECK(trace->tokens[2].label == "2");
  CHECK(trace->tokens[2].id == 2);
  CHECK(trace->map({0, 0}).rule() == nullptr);                   // attends to later keys
  CHECK(trace->map({0, 0}).place().kind == MapKind::effective);  // rows sum to 2
  const auto with_ids = open_trace(fixture("attention_ids.npz"));
  CHECK(with_ids->ids() == std::vector<std::int32_t>{50, 60, 50});
  CHECK(with_ids->tokens[1].label == "#60");
}

TEST_CASE("an imported trace saves as a trace file and opens again") {
  const fs::path path = testing::scratch_dir("npz-save") / "x.safetensors";
  const auto trace = open_trace(fixture("attention.npz"));
  write_trace(*trace, path);
  const auto back = open_trace(path);
  CHECK(back->source == "imported from attention.npz");
  CHECK(back->map({1, 2}).weight(3, 2) == 1.0f);
  CHECK(back->tokens[1].label == "␣b");
}

TEST_CASE("arrays that are not attention are refused with their shape") {
  CHECK_THROWS_WITH_AS(
      open_trace(fixture("alone.npy")),
      doctest::Contains("[layer, head, query, key] or [head, query, key] with nothing empty, found [3, 5]"), Error);
  CHECK_THROWS_WITH_AS(open_trace(fixture("deflated.npz")), doctest::Contains("expected array attn"), Error);
  CHECK(open_trace(fixture("attention_batch.npz"))->maps.size() == 2);  // a batch of one is one text
  CHECK_THROWS_WITH_AS(open_trace(fixture("attention_few_tokens.npz")),
                       doctest::Contains("array tokens: expected 3 tokens, as many as attn has keys, found 2"), Error);
  CHECK_THROWS_WITH_AS(open_trace(fixture("attention_nan.npz")),
                       doctest::Contains("layer 0: expected finite weights, found nan at head 1, query 2, key 0"),
                       Error);
  CHECK_THROWS_WITH_AS(open_trace(fixture("attention_bad_ids.npz")),
                       doctest::Contains("ids from 0 to 2147483647, found -1 at 1"), Error);
}

TEST_CASE("attention of real pretrained models opens as traces") {
  HEADSCOPE_NEEDS_SHARED(folder, "captures-real");
  const auto gpt2 = open_trace(*folder / "te_gpt2_0.npz");
  CHECK(gpt2->maps.size() == 144);
  CHECK(gpt2->map({0, 0}).rule()->describe() == "causal");
  CHECK(gpt2->map({0, 0}).weight(1, 0) == 0.8388098f);  // printed by NumPy
  CHECK(gpt2->tokens[0].label == "#6601");
  const auto bert = open_trace(*folder / "bertviz_bert-base-uncased_b4291bbd_T11.npz");
  CHECK(bert->map({0, 0}).rule() == nullptr);
  CHECK(bert->tokens[0].label == "[CLS]");
  CHECK(bert->tokens[1].id == bert->tokens[6].id);  // "the" twice
  for (const auto& item : fs::directory_iterator(*folder)) {
    if (item.path().extension() != ".npz") continue;
    const auto trace = open_trace(item.path());
    CAPTURE(item.path().filename().string());
    CHECK(trace->map({0, 0}).place().kind == MapKind::probability);
  }
}

TEST_CASE("reference captures open as traces, and a file without attn names what it has") {
  HEADSCOPE_NEEDS_SHARED(folder, "captures/gpt2-byte-d96");
  const auto trace = open_trace(*folder / "capital.npz");
  CHECK(trace->maps.size() == 24);
  CHECK(trace->map({3, 5}).weight(23, 23) == 0.19794202f);
  CHECK_THROWS_WITH_AS(open_trace(*folder / "long.npz"), doctest::Contains("attn_sel"), Error);
}

TEST_CASE("maps are counted before they are made: a file of kilobytes may ask for gigabytes") {
  const auto array = [](const std::string& shape, std::size_t halves) {
    const fs::path path = testing::scratch_dir("npz-maps") / "many.npy";
    const std::string header = "{'descr': '<f2', 'fortran_order': False, 'shape': (" + shape + "), }\n";
    std::string bytes("\x93NUMPY\1\0", 8);
    bytes += static_cast<char>(header.size() % 256);
    bytes += static_cast<char>(header.size() / 256);
    bytes += header;
    for (std::size_t i = 0; i < halves; ++i) bytes += std::string("\0\x3c", 2);  // 1.0
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  };
  CHECK_THROWS_WITH_AS(open_trace(array("4, 1025, 1, 1", 4100)),
                       doctest::Contains("at most 1024 layers and 1024 heads"), Error);
  CHECK_THROWS_WITH_AS(open_trace(array("1025, 4, 1, 1", 4100)), doctest::Contains("found [1025, 4, 1, 1]"), Error);
  const auto all = open_trace(array("64, 64, 1, 1", 4096));
  REQUIRE(all->maps.size() == 4096);

  // What is reckoned is about what is taken; and it is refused with the numbers.
  CHECK_NOTHROW(require_room(4096, 1, 1, 4096 * 1600, "x"));
  CHECK_THROWS_WITH_AS(require_room(4096, 1, 1, 4096 * 1500, "x"),
                       doctest::Contains("fit into 6.1 MB of free memory, found 4096 maps of 1 × 1, which take 6.4 MB"),
                       Error);
  CHECK_NOTHROW(require_room(144, 1024, 1024, std::uint64_t{700} << 20, "x"));
  CHECK_THROWS_AS(require_room(144, 1024, 1024, std::uint64_t{500} << 20, "x"), Error);
  CHECK_THROWS_AS(require_room(1e6, 1, 1, std::uint64_t{1} << 30, "x"), Error);
}

}  // namespace headscope::attention_npz_test
