// Attention between two texts, over a picture, and in every form that other programs write it; and files that lie.
#include <doctest/doctest.h>

#include "core/base/error.h"
#include "core/io/trace_file.h"
#include "tests/support/paths.h"

namespace headscope::imported_attention_test {

namespace fs = std::filesystem;

namespace {

fs::path fixture(const std::string& name) {
  return testing::reference("attention") / name;
}

std::vector<std::string> labels(const std::vector<Token>& tokens) {
  std::vector<std::string> out;
  for (const Token& token : tokens) out.push_back(token.label);
  return out;
}

/// What make_attention.py wrote: three queries, two keys.
void check_cross(const Trace& trace) {
  REQUIRE(trace.maps.size() == 2);
  CHECK(trace.between_texts());
  CHECK(trace.query_tokens.size() == 3);
  CHECK(trace.tokens.size() == 2);
  const AttentionMap& map = trace.map({0, 0});
  CHECK(map.place().between_texts);
  CHECK(map.place().kind == MapKind::probability);
  CHECK(map.rule() == nullptr);
  CHECK(map.n_query() == 3);
  CHECK(map.n_key() == 2);
  CHECK(map.weight(0, 0) == 1.0f);
  CHECK(map.weight(1, 1) == 0.5f);
  CHECK(map.weight(2, 1) == 0.75f);
  CHECK(trace.map({0, 1}).weight(2, 1) == 1.0f);
}

}  // namespace

TEST_CASE("attention between two texts opens from every format, with the tokens of both") {
  for (const char* name : {"cross.npz", "cross_alias.npz", "cross_bf16.safetensors"}) {
    CAPTURE(name);
    const auto trace = open_trace(fixture(name));
    check_cross(*trace);
    CHECK(labels(trace->queries()) == std::vector<std::string>{"le", "␣chat", "␣dort"});
    CHECK(labels(trace->tokens) == std::vector<std::string>{"the", "␣chat"});
    CHECK(trace->query_tokens[1].id == trace->tokens[1].id);  // equal texts are equal tokens, also across
  }
  const auto trace = open_trace(fixture("cross.npz"));
  CHECK(trace->model.name == "tiny translator");
  CHECK(trace->source == "imported from cross.npz, cross-attention of the decoder");
  const auto ids = open_trace(fixture("cross_ids.npz"));
  check_cross(*ids);
  CHECK(ids->ids() == std::vector<std::int32_t>{5, 7});
  CHECK(ids->query_tokens[2].label == "#9");
  for (const char* name : {"cross_bare.npy", "bf16.npy"}) {
    const auto bare = open_trace(fixture(name));
    check_cross(*bare);
    CHECK(labels(bare->queries()) == std::vector<std::string>{"0", "1", "2"});
    CHECK(labels(bare->tokens) == std::vector<std::string>{"0", "1"});
  }
}

TEST_CASE("a batch axis of one goes, layers may have names of their own, padding of a cache is left out") {
  for (const char* name : {"batch_of_one.npz", "by_name.npz"}) {
    CAPTURE(name);
    const auto trace = open_trace(fixture(name));
    CHECK(trace->model.dims.layers == 2);
    CHECK(trace->model.dims.heads == 3);
    CHECK_FALSE(trace->between_texts());
    CHECK(trace->map({1, 2}).rule()->describe() == "causal");
    CHECK(trace->map({1, 2}).weight(3, 3) == 0.25f);
    CHECK(trace->tokens[1].label == "␣b");
  }
  const auto padded = open_trace(fixture("padded.npz"));
  CHECK(padded->map({0, 1}).n_key() == 4);
  CHECK(padded->map({0, 1}).weight(3, 3) == 0.25f);
  CHECK(padded->map({0, 1}).rule()->describe() == "causal");
}

TEST_CASE("fewer queries than tokens of one text are the last of it") {
  const auto trace = open_trace(fixture("tail.npz"));
  const AttentionMap& map = trace->map({0, 0});
  CHECK_FALSE(trace->between_texts());
  CHECK(map.place().offset == 2);
  CHECK(map.rule()->describe() == "causal");
  CHECK(map.weight(0, 2) == doctest::Approx(1.0 / 3));
  REQUIRE(map.stats().duplicate.size() == 2);
  CHECK(map.stats().duplicate[0] == doctest::Approx(1.0 / 3));  // position 2 is "a" again, as position 0
}

TEST_CASE("keys that are patches know which pixels they lie over") {
  const auto trace = open_trace(fixture("picture.npz"));
  REQUIRE(trace->picture);
  const PatchPicture& picture = *trace->picture;
  CHECK(picture.rows == 2);
  CHECK(picture.columns == 2);
  CHECK(picture.leading == 1);
  CHECK(picture.width == 6);
  CHECK(picture.height == 4);
  CHECK(picture.rgb[3 * (0 * 6 + 3) + 1] == 255);  // green from column 3 on
  CHECK(picture.key_of(1, 0) == 3);
  CHECK(picture.patch_of(0) == std::nullopt);
  CHECK(picture.patch_of(4) == 3);
  CHECK(picture.patch_of(5) == std::nullopt);
  CHECK(picture.box(1, 0) == PixelBox{0, 2, 3, 4});
  CHECK(picture.box(0, 1) == PixelBox{3, 0, 6, 2});
  CHECK(labels(trace->tokens) == std::vector<std::string>{"<0>", "0,0", "0,1", "1,0", "1,1"});
  CHECK(trace->map({0, 0}).rule() == nullptr);  // patches see later ones
  const PatchPicture uneven{.rows = 2, .columns = 4, .leading = 0, .height = 5, .width = 6, .rgb = {}};
  CHECK(uneven.box(1, 1) == PixelBox{1.5, 2.5, 3, 5});

  const auto cross = open_trace(fixture("picture_cross.npz"));
  CHECK(cross->between_texts());
  CHECK(cross->query_tokens[1].label == "dog");
  CHECK(cross->picture->leading == 0);
  const auto alone = open_trace(fixture("grid_alone.npz"));
  CHECK(alone->picture->leading == 1);  // what the patches leave over
  CHECK(alone->picture->rgb.empty());
  CHECK(alone->picture->box(1, 0) == PixelBox{0, 1, 1, 2});
}

TEST_CASE("two texts and pictures come back from a trace file") {
  const fs::path path = testing::scratch_dir("attention-save") / "x.safetensors";
  for (const char* name : {"cross.npz", "picture.npz", "picture_cross.npz", "grid_alone.npz", "tail.npz"}) {
    CAPTURE(name);
    const auto trace = open_trace(fixture(name));
    write_trace(*trace, path);
    const auto back = open_trace(path);
    CHECK(labels(back->tokens) == labels(trace->tokens));
    CHECK(labels(back->query_tokens) == labels(trace->query_tokens));
    CHECK(back->ids() == trace->ids());
    CHECK(back->source == trace->source);
    const AttentionMap &a = trace->maps.back(), &b = back->maps.back();
    CHECK(a.place().between_texts == b.place().between_texts);
    CHECK(a.place().offset == b.place().offset);
    for (Index q = 0; q < a.n_query(); ++q)
      for (Index k = 0; k < a.n_key(); ++k) CHECK(a.weight(q, k) == b.weight(q, k));
    REQUIRE((back->picture != nullptr) == (trace->picture != nullptr));
    if (!trace->picture) continue;
    CHECK(back->picture->rgb == trace->picture->rgb);
    CHECK(back->picture->box(1, 1) == trace->picture->box(1, 1));
    CHECK(back->picture->leading == trace->picture->leading);
  }
}

TEST_CASE("captures that lie are refused with their numbers") {
  const auto refused = [](const char* name, const char* words) {
    CAPTURE(name);
    CHECK_THROWS_WITH_AS(open_trace(fixture(name)), doctest::Contains(words), Error);
  };
  refused("batch_of_two.npz", "one text: a batch axis of 1, found [2, 2, 3, 4, 4], 2 texts");
  refused("bad_key_tokens.npz", "array key_tokens: expected 2 tokens, as many as attn has keys, found 3");
  refused("bad_one_list.npz", "tokens of another text than the queries' are key_tokens");
  refused("bad_grid.npz", "as many patches and leading tokens as attn has keys, 5, found 3 × 3 patches after 1");
  refused("bad_grid_huge.npz",
          "rows, columns and, optionally, leading tokens of 5 keys, found [4611686018427387904, 4, 1]");
  refused("bad_image.npz", "a picture of shape [height, width, 3] in uint8, found shape [4, 6, 3] of '<f8'");
  refused("bad_image_first.npz", "channels last: image.transpose(1, 2, 0)");
  refused("bad_image_alone.npz", "beside it the array grid");
  refused("bad_infinite.npz", "layer 0: expected finite weights, found inf at head 1, query 2, key 0");
  refused("bad_layers.npz", "blocks.1.attn.hook_pattern: expected the shape of layer 0, [3, 4, 4], found [1, 3, 4, 3]");
  refused("bad_f8.safetensors", "tensor attn: expected F16, BF16, F32, F64 or whole numbers, found F8_E4M3");
  refused("bad_tokens.safetensors", "key_tokens");
}

}  // namespace headscope::imported_attention_test
