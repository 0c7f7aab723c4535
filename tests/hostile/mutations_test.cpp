// Everything that reads a file, given thousands of files that are nearly right: each is read, or refused with one Error
// that is fit to be shown. Nothing else comes out, and none takes long. The same files every time.

#include <doctest/doctest.h>

#include <fstream>
#include <string>

#include "app/render/picture.h"
#include "app/state/picture_recipe.h"
#include "app/state/session.h"
#include "app/state/settings.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/corpus/corpus.h"
#include "core/edits/intervention.h"
#include "core/io/npz.h"
#include "core/io/safetensors.h"
#include "core/io/trace_file.h"
#include "core/metrics/cell_rule.h"
#include "core/metrics/head_class.h"
#include "core/model/config.h"
#include "core/text/tokenizer.h"
#include "core/train/checkpoint.h"
#include "core/train/grammar.h"
#include "core/train/recipe.h"
#include "tests/support/mutants.h"
#include "tests/support/paths.h"
#include "viz/export/animation.h"

namespace headscope::mutations_test {

using testing::as_file;
using testing::reference;
using testing::refused;
using testing::scratch_dir;
using testing::source_dir;
namespace fs = std::filesystem;

TEST_CASE("mutants of safetensors files, traces and arrays are read or refused") {
  const auto read_all = as_file("m.safetensors", [](const fs::path& path) {
    const SafetensorsFile file = SafetensorsFile::open(path);
    for (const auto& [name, entry] : file.tensors())
      if (entry.dtype == DType::f32 && entry.shape.size() <= 4) file.tensor(name);
  });
  const std::string mixed = read_file(reference("safetensors/mixed.safetensors"));
  CHECK(refused("safetensors", mixed, 1500, read_all) > 700);

  const fs::path saved = scratch_dir("mutants") / "trace.safetensors";
  write_trace(*open_trace(reference("npz/attention.npz")), saved);
  const std::string trace = read_file(saved);  // before as_file() makes the folder anew
  CHECK(refused("trace", trace, 1500, as_file("t.safetensors", [](const fs::path& path) { open_trace(path); })) > 500);
  for (const char* name : {"attention.npz", "attention_ids.npz"})
    CHECK(refused(name, read_file(reference(std::string("npz/") + name)), 1000,
                  as_file("m.npz", [](const fs::path& path) { open_trace(path); })) > 400);
  CHECK(refused("npz", read_file(reference("npz/deflated.npz")), 300, as_file("d.npz", [](const fs::path& path) {
                  const NpzFile file = NpzFile::open(path);
                  if (!file.names().empty()) file.array(file.names().front());
                })) > 100);
  CHECK(refused("npy", read_file(reference("npz/one_layer.npy")), 1000,
                as_file("m.npy", [](const fs::path& path) { open_trace(path); })) > 300);
}

TEST_CASE("mutants of tokenizer files are read or refused, and what was read reads a text") {
  const auto tokenizer = [](const fs::path& path) {
    if (const auto read = load_tokenizer(path.parent_path()))
      read->encode("It's 12 o'clock, é灯\n  aaaaaaaaaaaaaaaaaaaaaaaaab ");
  };
  for (const char* name : {"gpt2-json", "llama2", "metaspace", "smol"}) {
    const fs::path folder = scratch_dir(std::string("mutants-") + name);
    const auto read = [&](const std::string& bytes) {
      std::ofstream(folder / "tokenizer.json", std::ios::binary | std::ios::trunc) << bytes;
      tokenizer(folder / "tokenizer.json");
    };
    CHECK(refused(name, read_file(reference(std::string("tokenizers/") + name + "/tokenizer.json")), 400, read) > 100);
  }
  for (const char* name : {"bert", "t5", "unigram_bytes", "falcon"}) {
    const fs::path folder = scratch_dir(std::string("mutants-") + name);
    const auto read = [&](const std::string& bytes) {
      std::ofstream(folder / "tokenizer.json", std::ios::binary | std::ios::trunc) << bytes;
      tokenizer(folder / "tokenizer.json");
    };
    const std::string whole = read_file(reference(std::string("tokenizer-families/") + name + "/tokenizer.json"));
    CHECK(refused(name, whole, 400, read) > 100);
  }
  const fs::path folder = scratch_dir("mutants-sentencepiece");
  refused("sentencepiece", read_file(reference("tokenizers/sentencepiece/tokenizer.model")), 400,
          [&](const std::string& bytes) {
            std::ofstream(folder / "tokenizer.model", std::ios::binary | std::ios::trunc) << bytes;
            tokenizer(folder / "tokenizer.model");
          });
}

TEST_CASE("mutants of sessions, settings, recipes, grammars and the other small files are read or refused") {
  const fs::path assets = source_dir() / "assets", model = source_dir() / "models/tiny-gpt2";
  const auto json = [](const auto& parse) {
    return [parse](const std::string& text) { static_cast<void>(parse(text, std::string("file"))); };
  };
  CHECK(refused("session", read_file(assets / "examples/what-if.json"), 2000,
                json([](const auto& text, const auto& where) { return session_from_json(text, where); })) > 1000);
  PictureRecipe drawn;
  drawn.command = {"render", "--text=Anna", "--head", "0.1"};
  drawn.session = session_from_json(read_file(assets / "examples/what-if.json"), "what-if");
  CHECK(refused("picture recipe", to_json(drawn), 1000,
                json([](const auto& text, const auto& where) { return picture_recipe_from_json(text, where); })) > 500);
  Scene scene;
  scene.width = scene.height = 8;
  for (const char* name : {"p.png", "p.svg", "p.pdf"}) {
    const fs::path picture = scratch_dir("mutants-picture") / name;
    write_picture(scene, picture, {}, {.recipe = to_json(drawn)});
    CHECK(refused(name, read_file(picture), 1000,
                  as_file(name, [](const fs::path& path) { read_picture_recipe(path); })) > 300);
  }
  CHECK(refused("p.gif", encode_gif({rasterize(scene, 1)}, 0.1, to_json(drawn)), 1000,
                as_file("p.gif", [](const fs::path& path) { read_picture_recipe(path); })) > 300);
  Settings settings;
  settings.remember_model("/a/model");
  settings.pages = {{"Analyse", "patch"}};
  CHECK(refused("settings", to_json(settings), 2000,
                json([](const auto& text, const auto& where) { return settings_from_json(text, where); })) > 500);
  CHECK(refused("recipe", read_file(model / "recipe.json"), 2000,
                json([](const auto& text, const auto& where) { return parse_recipe(text, where); })) > 1000);
  CHECK(refused("class rules", read_file(assets / "head_classes.json"), 1000,
                json([](const auto& text, const auto& where) { return parse_class_rules(text, where); })) > 300);
  CHECK(refused("grammar", read_file(assets / "stories.grammar"), 300,
                json([](const auto& text, const auto& where) { return Grammar::parse(text, where); })) > 50);
  RunRequest request;
  request.model = "m";
  request.text = "Mr and Mrs Qu";
  request.edits = {parse_intervention("1.0: temperature 0.5", "edit")};
  CHECK(refused("run request", to_json(request), 2000,
                json([](const auto& text, const auto& where) { return run_request_from_json(text, where); })) > 500);
  Backend backend(1);
  CorpusRun corpus(load_model(reference("encoder-decoders/t5"), backend), "t5", drawn_corpus(CorpusKind::pairs, 1, 1));
  while (corpus.step(Ctx{backend})) {
  }
  CHECK(refused("corpus results", to_json(corpus.results()), 500,
                json([](const auto& text, const auto& where) { return corpus_results_from_json(text, where); })) > 200);
  CHECK(refused("training record", read_file(model / "training.json"), 1000,
                as_file("training.json", [](const fs::path& path) { load_training_record(path); })) > 300);
  CHECK(refused("configuration", read_file(model / "config.json"), 1500,
                as_file("config.json", [](const fs::path& path) { load_config(path.parent_path()); })) > 300);
}

TEST_CASE("mutants of edits and rules that are typed are read or refused") {
  for (const char* edit :
       {"1.0: temperature 0.5", "0.*@3..7: mask window 4", "1.0: patch k from \"a text\"", "*: position alibi on top",
        "2.*: singular v 33..=0", "1.1@0..9: pattern previous", "0.0: weight 3 1 0.5"})
    refused(edit, edit, 200, [](const std::string& text) { parse_intervention(text, "--edit"); });
  refused("rule", "token[k-1] == token[q] and k <= q", 1000, [](const std::string& text) { CellRule rule(text); });
}

}  // namespace headscope::mutations_test
