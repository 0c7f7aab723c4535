#include "core/analysis/certificate.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "core/analysis/model_facts.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/io/safetensors.h"
#include "core/model/formats/model_files.h"
#include "tests/model/parity.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"
#include "tests/viz/xml.h"

namespace headscope::certificate_test {

using namespace testing;

namespace {
namespace fs = std::filesystem;

/// A copy of a small model, whose files can be changed.
fs::path copy_of(const fs::path& model, const std::string& name) {
  const fs::path folder = scratch_dir("certificate-" + name) / name;
  fs::copy(model, folder, fs::copy_options::recursive);
  return folder;
}

Certificate certificate_of(const fs::path& folder) {
  Backend backend(1);
  return certify(load_model(folder, backend), {folder, {}, {}}, Ctx{backend});
}

/// The model of these files with one weight of the second layer's queries moved.
LoadedModel disturbed(const fs::path& folder, Backend& backend, float by) {
  const ModelConfig config = load_config(folder);
  const ModelFiles files = ModelFiles::open(locate_model(folder));
  RawWeights weights = read_weights(*files.weights, config);
  Tensor& moved = weights.layers.at(1).q_weight;
  moved = moved.copy();
  moved.ref(3, 5) += by;
  return {Model::build(config, weights, "disturbed", backend), load_tokenizer(folder)};
}

bool holds(const std::string& bytes, std::string_view words) {
  return bytes.find(words) != std::string::npos;
}
}  // namespace

TEST_CASE(
    "a certificate has every layer, and a model that computes otherwise than its files say differs where it does") {
  const fs::path folder = reference("gpt2-random");
  Backend backend(1);
  const LoadedModel loaded = load_model(folder, backend);
  const Certificate good = certify(loaded, {folder, {"Anna and Ben, Anna and"}, {}}, Ctx{backend});
  REQUIRE(good.checks.size() == 2);
  CHECK(good.agrees());
  CHECK(good.checks[0].found.patterns.size() == static_cast<std::size_t>(loaded.model->config().dims.layers));
  CHECK(good.checks[1].text == "\"Anna and Ben, Anna and\"");
  CHECK(good.patterns() > 0);
  CHECK(good.patterns() < 2e-6);
  CHECK(in_words(good) == "checked, max |Δ| " + difference_text(good.patterns()));
  CHECK(good.family == "gpt2");
  CHECK(good.date.size() == 20);

  // Inside the engine alone: what the files hold is what the definition reads.
  const Certificate bad = certify(disturbed(folder, backend, 0.5f), {folder, {}, {}}, Ctx{backend});
  CHECK_FALSE(bad.agrees());
  const std::vector<Gap>& layers = bad.checks[0].found.patterns;
  CHECK(layers[0].agrees());
  CHECK_FALSE(layers[1].agrees());
  CHECK(layers[1].head == 5 / loaded.model->config().dims.d_head);
  CHECK(in_words(bad).starts_with("differs: "));
  CHECK(model_note("m", &bad).find("differs from its float64 definition") != std::string::npos);
}

TEST_CASE("a configuration that is not the files' own is told as well") {
  const fs::path folder = reference("gpt2-random");
  Backend backend(1);
  ModelConfig config = load_config(folder);
  const ModelFiles files = ModelFiles::open(locate_model(folder));
  const RawWeights weights = read_weights(*files.weights, config);
  const std::string before = write_config(config);
  LoadedModel loaded{Model::build(config, weights, "same", backend), load_tokenizer(folder)};
  CHECK(certify(loaded, {folder, {}, {}}, Ctx{backend}).agrees());
  // Here model and definition share the configuration, so a capture of the right one has to tell.
  config.activation = Activation::relu;
  loaded.model = Model::build(config, weights, "other", backend);
  const Certificate other = certify(loaded, {folder, {}, folder / "expected.safetensors"}, Ctx{backend});
  REQUIRE(other.checks.size() == 3);
  CHECK(other.checks[1].found.agrees());
  REQUIRE(other.wrong());
  CHECK(other.wrong()->witness == "expected.safetensors");
}

TEST_CASE("a certificate reads back as it was written, a NaN too, and what is none is refused") {
  Certificate made = certificate_of(reference("families") / "gemma2");
  made.checks.push_back(made.checks[0]);
  made.checks[1].found.logits->value = std::nan("");
  const Certificate read = certificate_from_json(to_json(made), "c.json");
  CHECK(read.files == made.files);
  CHECK(read.place == made.place);
  CHECK(read.date == made.date);
  CHECK(read.engine == made.engine);
  REQUIRE(read.checks.size() == 2);
  CHECK(read.checks[0].tokens == made.checks[0].tokens);
  CHECK(read.checks[0].found.patterns.size() == made.checks[0].found.patterns.size());
  for (std::size_t i = 0; i < read.checks[0].found.patterns.size(); ++i) {
    const Gap &a = read.checks[0].found.patterns[i], &b = made.checks[0].found.patterns[i];
    CHECK(std::tuple(a.value, a.bound, a.layer, a.head, a.query, a.key) ==
          std::tuple(b.value, b.bound, b.layer, b.head, b.query, b.key));
  }
  CHECK(read.checks[0].found.losses->value == made.checks[0].found.losses->value);
  CHECK(std::isnan(read.logits()));
  CHECK(in_words(read) == "differs: logits by NaN");
  CHECK_THROWS_WITH_AS(certificate_from_json("{}", "c.json"), doctest::Contains("a certificate"), Error);
  CHECK_THROWS_WITH_AS(certificate_from_json(R"({"type": "headscope certificate", "version": 2})", "c.json"),
                       doctest::Contains("of version 2"), Error);
  CHECK_THROWS_WITH_AS(
      certificate_from_json(R"({"type": "headscope certificate", "version": 1, "files": [{"name": "a"}]})", "c.json"),
      doctest::Contains("a file's name"), Error);
}

TEST_CASE("what is remembered holds for these weights, these files and this version alone") {
  const fs::path first = copy_of(reference("gpt2-random"), "first"), second = copy_of(reference("llama-gqa"), "second");
  const fs::path folder = scratch_dir("certificate-store") / "made" / "on" / "demand";
  const CertificateStore store(folder);
  CHECK_FALSE(store.find(first));
  const Certificate made = certificate_of(first);
  store.keep(made);
  REQUIRE(store.find(first));
  CHECK(store.find(first)->patterns() == made.patterns());
  CHECK(store.find(first / "model.safetensors"));  // the same weights, named otherwise
  CHECK_FALSE(store.find(second));
  store.keep(certificate_of(second));
  REQUIRE(store.find(second));
  CHECK(store.find(second)->family == "llama");
  CHECK(store.find(first)->family == "gpt2");
  CHECK(CertificateStore(fs::path()).find(first) == std::nullopt);

  const fs::path shard = second / "model-00002-of-00002.safetensors";
  fs::last_write_time(shard, fs::last_write_time(shard) + std::chrono::seconds(1));
  CHECK_FALSE(store.find(second));
  Certificate older = made;
  older.program = "0.0.1";
  store.keep(older);
  CHECK_FALSE(store.find(first));
  store.keep(made);
  CHECK(store.find(first));
  for (const auto& file : fs::directory_iterator(folder)) std::ofstream(file.path()) << "{\"type\":";
  CHECK_FALSE(store.find(first));
}

TEST_CASE("files that have changed since the model was opened are not compared with it") {
  const fs::path folder = copy_of(reference("gpt2-random"), "changing");
  Backend backend(1);
  const LoadedModel loaded = load_model(folder, backend);
  const FilesStamp opened = stamp_of(locate_model(folder));
  CHECK(certify(loaded, {folder, {}, {}, opened}, Ctx{backend}).agrees());
  std::ofstream(folder / "config.json", std::ios::app) << "\n";
  CHECK_THROWS_WITH_AS(certify(loaded, {folder, {}, {}, opened}, Ctx{backend}),
                       doctest::Contains("they have changed since"), Error);
}

TEST_CASE("the work of a check is counted by hand") {
  // 4 tokens of context; a layer of 4·8² + 4·8 biases, an MLP of 2·8·32 + 32 + 8, 8·10 of unembedding; 4²·2·8 of pairs.
  ModelConfig c;
  c.dims = {.layers = 2, .heads = 2, .kv_heads = 2, .d_head = 4, .d_model = 8, .d_mlp = 32, .vocab = 10};
  c.context = 4;
  CHECK(certificate_work(c) == 4 * (2 * (4 * 64 + 32 + 2 * 256 + 32 + 8) + 80) + 16 * 2 * 8);
}

TEST_CASE("keys of a configuration are told as used or as changing nothing, those of objects in it one by one") {
  std::vector<ConfigKey> keys;
  load_config(reference("llama-rope3"), keys);
  const auto find = [&](const std::string& name) {
    const auto at = std::ranges::find(keys, name, &ConfigKey::key);
    return at == keys.end() ? ConfigKey{} : *at;
  };
  CHECK(find("num_hidden_layers").used);
  CHECK(find("rope_scaling.factor").used);
  CHECK(find("rope_scaling.factor").value != "");
  CHECK(find("rope_scaling").key == "");
  const ConfigReader json = ConfigReader::parse(R"({"a": 1, "b": {"c": 2, "d": 3}, "e": [1]})", "x");
  json.integer("a", 0, 9);
  json.object("b")->integer("c", 0, 9);
  json.object("b")->integer("d", 0, 9);  // by another reader
  CHECK(json.keys() == std::vector<ConfigKey>{{"a", "1", true}, {"b.c", "2", true}, {"b.d", "3", true}, {"e", "[1]"}});
}

TEST_CASE("pictures of positions, mechanisms and comparisons say what is known of the model") {
  const fs::path folder = copy_of(reference("gpt2-random"), "drawn"), out = scratch_dir("pictures-of-commands");
  const std::string ids = "1,5,2,5";
  const std::vector<std::vector<std::string>> commands{{"positions", "rope", "--head", "0.1"},
                                                       {"positions", "learned"},
                                                       {"mechanism", "linear", "--head", "0.1"},
                                                       {"compare", "--edit", "*: position none", "--head", "0.1"}};
  for (std::vector<std::string> words : commands) {
    CAPTURE(words[0]);
    const fs::path file = out / "drawn.svg";
    words.insert(words.end(), {"-m", folder.string(), "--ids", ids, "-o", file.string()});
    const Finished done = run_cli(words);
    REQUIRE_MESSAGE(done.code == 0, done.err);
    CHECK(holds(read_file(file), "model drawn, not checked beside its float64 definition"));
  }
}

TEST_CASE("verify remembers, and render writes into PNG and SVG what is remembered of the model") {
  const fs::path folder = copy_of(reference("gpt2-random"), "pictures"), out = scratch_dir("certificate-out");
  const auto render = [&](const char* ending) {
    const fs::path file = out / (std::string("map") + ending);
    const Finished done =
        run_cli({"render", "-m", folder.string(), "--ids", "1,5,2,5", "--head", "0.1", "-o", file.string()});
    REQUIRE_MESSAGE(done.code == 0, done.err);
    return read_file(file);
  };
  for (const char* ending : {".png", ".svg"})
    CHECK(holds(render(ending), "model pictures, not checked beside its float64 definition"));
  const Finished verified = run_cli({"verify", folder.string(), "--json"});
  REQUIRE(verified.code == 0);
  const auto json = nlohmann::json::parse(verified.out);
  CHECK(json["certificate"]["model"] == "pictures");
  CHECK(json["certificate"]["files"].size() == stamp_of(locate_model(folder)).files().size());
  const std::string date = json["certificate"]["date"].get<std::string>().substr(0, 10);
  const std::string note = "model pictures, checked beside its float64 definition on " + date + ": max |Δ| ";
  const std::string svg = render(".svg");
  CHECK(holds(render(".png"), note));
  CHECK(holds(svg, note));
  const auto elements = XmlReader(svg).read();
  const auto description = std::ranges::find(elements, "desc", &XmlElement::name);
  REQUIRE(description != elements.end());
  CHECK(description->text.find(note) != std::string::npos);
  CHECK(description->text.find("hook_pattern") != std::string::npos);  // and where the numbers come from, as before
  fs::last_write_time(folder / "config.json", fs::last_write_time(folder / "config.json") + std::chrono::seconds(2));
  CHECK(holds(render(".svg"), "model pictures, not checked"));
  // A disagreement with a capture, which may itself be wrong, is no certificate of the model.
  SafetensorsWriter writer;
  const std::vector<std::int32_t> ids{1, 5, 2};
  writer.add("tokens", DType::i32, {3}, [ids](std::ostream& to) {
    to.write(reinterpret_cast<const char*>(ids.data()), static_cast<std::streamsize>(4 * ids.size()));
  });
  writer.add("logits", Tensor::full({1, 257}, 0.5f));
  writer.write(out / "wrong.safetensors");
  CHECK(run_cli({"verify", folder.string(), "--reference", (out / "wrong.safetensors").string()}).code == 1);
  CHECK(holds(render(".svg"), note));
}

TEST_CASE("inspect says which keys were used, with their values, and which change nothing") {
  const Finished done = run_cli({"inspect", reference("gpt2-random").string(), "--json"});
  REQUIRE(done.code == 0);
  const auto json = nlohmann::json::parse(done.out);
  const auto& keys = json["config_keys"];
  const auto layers = std::ranges::find_if(keys, [](const auto& each) { return each["key"] == "n_layer"; });
  REQUIRE(layers != keys.end());
  CHECK((*layers)["value"] == std::to_string(json["config"]["layers"].get<int>()));
  for (const auto& each : keys) CHECK_FALSE(json["ignored_config_keys"].contains(each["key"].get<std::string>()));
  const ModelFacts facts = model_facts(reference("gpt2-random"));
  CHECK(facts.keys.size() == keys.size() + json["ignored_config_keys"].size());
  CHECK(facts.parameters == json["parameters"]["total"]);
  CHECK(facts.stored.types.at("F32") == json["stored"]["F32"]);
}

TEST_CASE("differences in two digits: as they are from 0.01 to 99, else with an exponent of as many digits as it has") {
  CHECK(difference_text(0) == "0");
  CHECK(difference_text(0.25) == "0.25");
  CHECK(difference_text(0.01) == "0.01");
  CHECK(difference_text(42.4) == "42");
  CHECK(difference_text(0.0099) == "9.9e-3");
  CHECK(difference_text(3.4e-6) == "3.4e-6");
  CHECK(difference_text(2e-10) == "2.0e-10");
  CHECK(difference_text(123) == "1.2e+2");
  CHECK(difference_text(1234) == "1.2e+3");
  CHECK(difference_text(5.5e20) == "5.5e+20");
  CHECK(difference_text(std::nan("")) == "NaN");
}

TEST_CASE("the line about a model in files: not checked, checked on a day, or what differs by how much") {
  CHECK(model_note("m", nullptr) == "model m, not checked beside its float64 definition");
  Certificate c;
  c.date = "2026-11-24T19:43:28Z";
  CHECK(model_note("m", &c) == "model m, not checked beside its float64 definition");
  CHECK_FALSE(c.agrees());
  Certificate::Check check{"built-in text", float64_definition, 9, 0, {}};
  check.found.patterns = {{.value = 3.4e-6, .bound = 1e-5, .layer = 0}, {.value = 1.2e-6, .bound = 1e-5, .layer = 1}};
  check.found.logits = Gap{.value = 0.25, .bound = 0.5};
  c.checks = {check};
  CHECK(c.agrees());
  CHECK(model_note("m", &c) ==
        "model m, checked beside its float64 definition on 2026-11-24: max |Δ| 3.4e-6 (patterns), 0.25 (logits)");
  // The one furthest beyond its own bound, not the largest.
  c.checks[0].found.patterns[1] = {.value = 3e-5, .bound = 1e-5, .layer = 1, .stack = Stack::encoder};
  c.checks[0].found.logits->value = 0.6;
  CHECK(in_words(c) == "differs: patterns of layer enc.1 by 3.0e-5");
  CHECK(model_note("m", &c) ==
        "model m, differs from its float64 definition (2026-11-24): patterns of layer enc.1 by 3.0e-5");
  c.checks[0].found.losses = Gap{.value = 1, .bound = 0.1};
  CHECK(in_words(c) == "differs: losses by 1");
  CHECK(place_of({.layer = 1, .head = 2, .query = 7, .key = 4, .stack = Stack::cross}) ==
        "head cross.1.2, query 7, key 4");
  CHECK(place_of({.layer = 0, .head = 2, .query = 0, .key = 0}) == "head 0.2, query 0, key 0");
  CHECK(place_of({.query = 5, .key = 0}) == "query 5, token 0");
  CHECK(place_of({.query = 0}) == "query 0");
  CHECK(place_of({.layer = 0}).empty());
}

TEST_CASE("a model without a tokenizer is read on 48 ids, or as many as fit, of which the second half repeats") {
  const fs::path folder = reference("gpt2-random");
  Backend backend(1);
  LoadedModel loaded = load_model(folder, backend);
  const int context = loaded.model->config().context;
  loaded.tokenizer = nullptr;
  const Certificate made = certify(loaded, {folder, {}, {}}, Ctx{backend});
  REQUIRE(made.checks.size() == 1);
  CHECK(made.checks[0].tokens == std::min(48, context));
  CHECK(made.checks[0].text == "built-in text");
  CHECK(made.agrees());
}

TEST_CASE("the stack of a difference is kept, and what a file leaves out is nowhere") {
  const fs::path folder = reference("encoder-decoders") / "t5";
  const Certificate made = certificate_of(folder);
  const std::string json = to_json(made);
  const Certificate read = certificate_from_json(json, "c.json");
  std::vector<Stack> stacks;
  for (const Gap& gap : read.checks[0].found.patterns) stacks.push_back(gap.stack);
  std::vector<Stack> expected;
  for (const Gap& gap : made.checks[0].found.patterns) expected.push_back(gap.stack);
  CHECK(stacks == expected);
  CHECK(std::ranges::count(stacks, Stack::encoder) > 0);
  CHECK(std::ranges::count(stacks, Stack::cross) > 0);
  CHECK(to_json(certificate_of(reference("gpt2-random"))).find("\"stack\"") == std::string::npos);
  const Certificate bare = certificate_from_json(
      R"({"type": "headscope certificate", "version": 1, "checks": [{"logits": {"difference": 0.5}}]})", "c.json");
  REQUIRE(bare.checks[0].found.logits);
  const Gap& gap = *bare.checks[0].found.logits;
  CHECK(gap.value == 0.5);
  CHECK(std::tuple(gap.layer, gap.head, gap.query, gap.key, gap.stack) == std::tuple(-1, -1, -1, -1, Stack::only));
  for (const char* half : {R"("bytes": 1)", R"("written": 1)"})
    CHECK_THROWS_WITH_AS(
        certificate_from_json(
            R"({"type": "headscope certificate", "version": 1, "files": [{"name": "a", )" + std::string(half) + "}]}",
            "c.json"),
        doctest::Contains("a file's name, bytes and time"), Error);
  CHECK_THROWS_WITH_AS(certificate_from_json(R"({"type": "headscope certificate", "version": 0})", "c.json"),
                       doctest::Contains("\"headscope certificate\" of version 0"), Error);
  CHECK_THROWS_WITH_AS(certificate_from_json(R"({"type": "headscope certificate", "version": -1})", "c.json"),
                       doctest::Contains("version"), Error);
}

TEST_CASE("512 certificates are kept: the oldest go, and nothing that is none") {
  const fs::path folder = scratch_dir("certificate-many");
  const auto now = fs::file_time_type::clock::now();
  for (int i = 0; i < 514; ++i) {
    const fs::path file = folder / (std::to_string(i) + ".json");
    std::ofstream(file) << "{}";
    fs::last_write_time(file, now - std::chrono::hours(1000 - i));
  }
  std::ofstream(folder / "notes.txt") << "mine";
  fs::last_write_time(folder / "notes.txt", now - std::chrono::hours(2000));
  Certificate made;
  made.place = "/some/model";
  CertificateStore(folder).keep(made);
  for (int i = 0; i < 514; ++i) {
    CAPTURE(i);
    CHECK(fs::exists(folder / (std::to_string(i) + ".json")) == (i >= 3));
  }
  CHECK(fs::exists(folder / "notes.txt"));
  CHECK(std::distance(fs::directory_iterator(folder), fs::directory_iterator()) == 513);
}

}  // namespace headscope::certificate_test
