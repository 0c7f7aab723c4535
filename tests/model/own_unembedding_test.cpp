// A file that has a matrix to logits of its own although its configuration calls the embeddings tied: transformers 5
// does not tie them then, and neither does this.

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/analysis/model_facts.h"
#include "core/base/file.h"
#include "core/io/safetensors.h"
#include "core/train/parameters.h"
#include "tests/model/parity.h"
#include "tests/support/paths.h"

namespace headscope::own_unembedding_test {

using namespace testing;
namespace fs = std::filesystem;

namespace {
/// The model whose configuration says that its embeddings are tied.
fs::path called_tied(const std::string& model) {
  fs::path folder = scratch_dir("called-tied");
  fs::copy(reference(model), folder, fs::copy_options::recursive);
  std::string text = read_file(folder / "config.json");
  const std::string untied = "\"tie_word_embeddings\": false";
  REQUIRE(text.find(untied) != std::string::npos);
  for (std::size_t at = 0; (at = text.find(untied, at)) != std::string::npos;)
    text.replace(at, untied.size(), "\"tie_word_embeddings\": true");
  std::ofstream(folder / "config.json") << text;
  return folder;
}

/// The numbers of the last token's logits.
Tensor logits(const fs::path& folder) {
  const Subject subject(folder);
  RunRequest request;
  request.ids = {3, 5, 7, 4};
  if (subject.loaded.model->encoder()) request.source_ids = {3, 5, 4};
  return run(subject.loaded, request, Ctx{*subject.backend})->logits;
}
}  // namespace

TEST_CASE("an unembedding that the file has is used, though the configuration ties it to the embedding") {
  for (const std::string model : {"gpt2-untied-erf", "llama-gqa", "families/bert-untied", "families/roformer-same",
                                  "families/luke", "families/mistral3-ministral3", "encoder-decoders/mt5"}) {
    CAPTURE(model);
    const fs::path folder = called_tied(model);
    CHECK(load_config(folder).tied_embeddings == (model != "encoder-decoders/mt5"));
    CHECK(absolute(logits(folder), logits(reference(model))) == 0);
    CHECK_FALSE(Subject(folder).loaded.model->config().tied_embeddings);
    const ModelFacts facts = model_facts(folder), own = model_facts(reference(model));
    CHECK_FALSE(facts.config.tied_embeddings);
    CHECK(facts.untied == load_config(folder).tied_embeddings);
    CHECK_FALSE(own.untied);
    CHECK(facts.parameters == own.parameters);
  }
}

TEST_CASE("it is trained as a matrix of its own") {
  Backend backend(2);
  const fs::path folder = called_tied("gpt2-untied-erf");
  const Parameters all = Parameters::load(folder);
  CHECK(all.count() == Parameters::load(reference("gpt2-untied-erf")).count());
  LoadedModel loaded;
  loaded.model = all.trainable_model(backend);
  RunRequest request;
  request.ids = {3, 5, 7, 4};
  CHECK(absolute(run(loaded, request, Ctx{backend})->logits, logits(reference("gpt2-untied-erf"))) == 0);
}

TEST_CASE("one with the numbers of the embedding is the embedding") {
  const fs::path folder = called_tied("gpt2-untied-erf");
  {
    const SafetensorsFile file = SafetensorsFile::open(reference("gpt2-untied-erf") / "model.safetensors");
    SafetensorsWriter writer;
    for (const auto& [name, entry] : file.tensors())
      writer.add(name, file.tensor(name == "lm_head.weight" ? "transformer.wte.weight" : name));
    writer.write(folder / "model.safetensors");
  }
  const ModelFacts facts = model_facts(folder);
  CHECK(facts.config.tied_embeddings);
  CHECK_FALSE(facts.untied);
  CHECK(facts.unused.empty());
  CHECK(facts.parameters == model_facts(reference("gpt2-untied-erf")).parameters - 61 * 24);
  CHECK(Subject(folder).loaded.model->config().tied_embeddings);
}

}  // namespace headscope::own_unembedding_test
