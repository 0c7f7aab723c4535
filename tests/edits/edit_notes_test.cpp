#include "core/edits/edit_notes.h"

#include <doctest/doctest.h>

namespace headscope::edit_notes_test {

namespace {
std::vector<std::string> notes(std::vector<const char*> edits, int heads = 4, int kv_heads = 2) {
  std::vector<Intervention> all;
  for (const char* edit : edits) all.push_back(parse_intervention(edit, "test"));
  ModelInfo model;
  model.dims.layers = 2;
  model.dims.heads = heads;
  model.dims.kv_heads = kv_heads;
  return edit_notes(all, model, 10);
}
bool says(const std::vector<std::string>& all, std::size_t i, const char* words) {
  return i < all.size() && all[i].find(words) != std::string::npos;
}
}  // namespace

TEST_CASE("masks that open the future say so, with the rows that they open it for") {
  CHECK(notes({"*: mask window 4", "*: mask sink 1 window 3", "0.1: mask lsh 4 rounds 1 seed 1"}).empty());
  const auto full = notes({"1.0: mask full"});
  REQUIRE(full.size() == 1);
  CHECK(says(full, 0, "1.0: mask full: 9 of 10 rows see later tokens"));
  CHECK(says(notes({"*: mask prefix 4"}), 0, "3 of 10 rows"));
  CHECK(notes({"*: mask prefix 4 & causal"}).empty());
  CHECK(notes({"*@-1: mask full"}).empty());  // the last row has no future
  CHECK(says(notes({"*@2..3: mask full", "*: mask window 2"}), 0, "2 of 10 rows"));
  CHECK(notes({"1.0: weight 5 5 0.5", "1.0: weight -1 0 0.5"}).empty());
  CHECK(says(notes({"1.0: weight 5 6 0.5"}), 0, "sees a later token"));
  Intervention off = parse_intervention("*: mask full", "test");
  off.enabled = false;
  ModelInfo model;
  model.dims = {.layers = 2, .heads = 4, .kv_heads = 2};
  CHECK(edit_notes({off}, model, 10).empty());
}

TEST_CASE("ablations that take from later positions say so") {
  CHECK(notes({"0.0: ablate zero", "0.0: ablate mean", "0.0: ablate mean from \"a\"",
               "0.0: ablate resample 1 from \"a\""})
            .empty());
  const auto found = notes({"0.0: ablate mean over text", "0.1: ablate resample 4"});
  REQUIRE(found.size() == 2);
  CHECK(found[0] == "0.0: ablate mean over text: takes from later positions of the text too");
  CHECK(found[1] == "0.1: ablate resample 4: takes from later positions of the text too");
}

TEST_CASE("few bits say which matrices they leave as they are") {
  const auto found = notes({"*: quantize 4 weights tensor 0"});
  REQUIRE(found.size() == 1);
  for (const char* words : {"queries, keys, values and outputs and of MLPs", "gates of heads",
                            "projections into a latent or a state", "the output matrix alone"})
    CHECK(says(found, 0, words));
}

TEST_CASE("a patch of a shared key head says whom it also reaches") {
  CHECK(notes({"1.0: patch k from \"x\""}) ==
        std::vector<std::string>{"1.0: patch k: the key head is shared, so that it also reaches 1.1"});
  CHECK(notes({"1.6: patch v from \"x\""}, 8, 2) ==
        std::vector<std::string>{"1.6: patch v: the key head is shared, so that it also reaches 1.4, 1.5, 1.7"});
  CHECK(says(notes({"*.3: patch k from \"x\""}), 0, "reaches *.2"));
  CHECK(notes({"1.0: patch q from \"x\"", "1.*: patch k from \"x\"", "1.0: patch z from \"x\""}).empty());
  CHECK(notes({"1.0: patch k from \"x\""}, 4, 4).empty());
}

TEST_CASE("where layers differ in key heads, a patch of one says whom it reaches there") {
  ModelInfo model;
  model.dims = {.layers = 2, .heads = 4, .kv_heads = 2};
  model.dims.widths = {{2, 6, 0}, {1, 12, 0}};
  const auto note = [&](const char* edit) { return edit_notes({parse_intervention(edit, "test")}, model, 10); };
  CHECK(note("0.0: patch k from \"x\"") ==
        std::vector<std::string>{"0.0: patch k: the key head is shared, so that it also reaches 0.1"});
  CHECK(note("1.0: patch k from \"x\"") ==
        std::vector<std::string>{"1.0: patch k: the key head is shared, so that it also reaches 1.1, 1.2, 1.3"});
  CHECK(
      note("*.0: patch k from \"x\"") ==
      std::vector<std::string>{"*.0: patch k: the key head is shared, so that it also reaches *.1, *.2, *.3 (fewer of "
                               "them in layers with more key heads)"});
}

}  // namespace headscope::edit_notes_test
