// What files of encoders call their tensors: names of other libraries and of older ones.

#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/io/safetensors.h"
#include "core/model/family.h"
#include "tests/model/parity.h"
#include "tests/support/paths.h"

namespace headscope::encoder_files_test {

using namespace testing;

TEST_CASE("DPR's encoders are BERTs under a name of their own, without logits") {
  Backend backend(2);
  const LoadedModel bert = load_model(reference("families/bert"), backend);
  RunRequest request;
  request.ids = {7, 9, 30, 9, 12};
  request.capture.sites = {SiteKind::resid_post};
  const auto all = run(bert, request, Ctx{backend});
  for (const std::string prefix :
       {"question_encoder.bert_model.", "ctx_encoder.bert_model.", "span_predictor.encoder.bert_model."}) {
    CAPTURE(prefix);
    const std::filesystem::path folder = scratch_dir("dpr");
    const SafetensorsFile file = SafetensorsFile::open(reference("families/bert") / "model.safetensors");
    SafetensorsWriter writer;
    for (const auto& [tensor, entry] : file.tensors())
      if (tensor.starts_with("bert.")) writer.add(prefix + tensor.substr(5), file.tensor(tensor));
    writer.write(folder / "model.safetensors");
    std::string config = read_file(reference("families/bert") / "config.json");
    const std::string type = "\"model_type\": \"bert\"";
    config.replace(config.find(type), type.size(), "\"model_type\": \"dpr\"");
    write_file_atomically(folder / "config.json", config);
    const LoadedModel dpr = load_model(folder, backend);
    CHECK(dpr.model->info().objective == Objective::nothing);
    const auto found = run(dpr, request, Ctx{backend});
    const Site last{SiteKind::resid_post, bert.model->config().dims.layers - 1};
    CHECK(absolute(found->sites.at(last), all->sites.at(last)) == 0);
    CHECK(absolute(found->map({1, 2}).to_dense(), all->map({1, 2}).to_dense()) == 0);
  }
}

TEST_CASE("a DeBERTa's layer before the logits is found by either of its names") {
  // transformers' first head, and the one of the makers' own files, which config.json does not tell.
  CHECK(read_file(reference("families/deberta") / "config.json").find("\"legacy\": true") != std::string::npos);
  const std::filesystem::path folder = scratch_dir("deberta-head");
  const SafetensorsFile file = SafetensorsFile::open(reference("families/deberta") / "model.safetensors");
  SafetensorsWriter writer;
  for (const auto& [tensor, entry] : file.tensors()) {
    std::string name = tensor;
    if (const std::string old = "cls.predictions.transform."; name.starts_with(old))
      name.replace(0, old.size(), "lm_predictions.lm_head.");
    if (name == "cls.predictions.bias") name = "lm_predictions.lm_head.bias";
    writer.add(name, file.tensor(tensor));
  }
  writer.write(folder / "model.safetensors");
  std::filesystem::copy_file(reference("families/deberta") / "config.json", folder / "config.json");
  Backend backend(2);
  const std::vector<std::int32_t> ids{1, 7, 9, 2};
  const auto model = Model::load(folder, backend), plain = Model::load(reference("families/deberta"), backend);
  CHECK(absolute(model->forward(Ctx{backend}, ids).logits, plain->forward(Ctx{backend}, ids).logits) == 0);
}

TEST_CASE("a file whose norms have gamma and beta, as older ones do, is the same model") {
  const std::filesystem::path folder = scratch_dir("old-names");
  std::string bytes = read_file(reference("families/bert") / "model.safetensors");
  std::uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  std::string names = bytes.substr(8, header);
  const std::string data = bytes.substr(8 + header);
  for (const auto& [now, old] : {std::pair<std::string, std::string>{"LayerNorm.weight", "LayerNorm.gamma"},
                                 {"LayerNorm.bias", "LayerNorm.beta"}})
    for (std::size_t at = 0; (at = names.find(now, at)) != std::string::npos; at += old.size())
      names.replace(at, now.size(), old);
  while (names.size() % 8 != 0) names += ' ';
  header = names.size();
  std::string out(sizeof header, '\0');
  std::memcpy(out.data(), &header, sizeof header);
  write_file_atomically(folder / "model.safetensors", out + names + data);
  std::filesystem::copy_file(reference("families/bert") / "config.json", folder / "config.json");
  Backend backend(2);
  const std::vector<std::int32_t> ids{1, 7, 9, 2};
  const auto model = Model::load(folder, backend), plain = Model::load(reference("families/bert"), backend);
  CHECK(absolute(model->forward(Ctx{backend}, ids).logits, plain->forward(Ctx{backend}, ids).logits) == 0);
}

}  // namespace headscope::encoder_files_test
