// Vision transformers beside transformers in float64 (tests/reference/vision, made by make_vision.py) and the plain
// definition: preparation, patches, every pattern, stream and score; what is asked of them and what they refuse.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "core/analysis/certificate.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/generate/generation.h"
#include "core/io/safetensors.h"
#include "core/metrics/next_token.h"
#include "core/metrics/next_token_change.h"
#include "core/model/config_reader.h"
#include "core/model/family.h"
#include "core/model/formats/model_files.h"
#include "core/model/parameter_parts.h"
#include "core/model/picture_input.h"
#include "core/model/plain.h"
#include "core/model/weights.h"
#include "core/run/pass_memory.h"
#include "tests/model/seer.h"

namespace headscope::vision_test {

using namespace testing;
namespace fs = std::filesystem;

namespace {

const std::vector<std::string> all{"vit",
                                   "vit-wide",
                                   "vit-bare",
                                   "deit",
                                   "deit-teacher",
                                   "clip_vision_model",
                                   "metaclip_2_vision_model",
                                   "dinov2",
                                   "dinov2-interpolated",
                                   "dinov2_with_registers",
                                   "dinov2_with_registers-interpolated",
                                   "dinov2_with_registers-larger",
                                   "dinov3_vit",
                                   "dinov3_vit-gated",
                                   "vit_mae",
                                   "ijepa",
                                   "vit_msn",
                                   "vit_msn-bare",
                                   "pixio",
                                   "pixio-interpolated",
                                   "beit",
                                   "beit-shared",
                                   "data2vec_vision",
                                   "siglip_vision_model",
                                   "siglip_vision_model-rest"};

}  // namespace

TEST_CASE("a picture is prepared and cut into patches as transformers does it") {
  for (const std::string& name : all) {
    CAPTURE(name);
    Seer s(name);
    const Picture found = prepared(read_picture(picture_file), *s.config().vision);
    const auto truth = s.expected.entry("image").items<std::int32_t>();
    REQUIRE(found.rgb.size() == truth.size());
    int most = 0;
    for (std::size_t i = 0; i < truth.size(); ++i) most = std::max(most, std::abs(truth[i] - int{found.rgb[i]}));
    CHECK(most == 0);
    CHECK(absolute(patches_of(found, *s.config().vision), s.expected.tensor("patches")) < 1e-5);
  }
}

TEST_CASE("every pattern, stream and score of a picture is what transformers says in float64") {
  for (const std::string& name : all) {
    CAPTURE(name);
    Seer s(name);
    double pattern = 0;
    for (const MapStorage storage : {MapStorage::dense, MapStorage::factored}) {
      RunRequest request = with_sites(s.request(), {SiteKind::resid_pre, SiteKind::embed});
      if (s.config().position == PositionKind::learned) request.capture.sites.insert(SiteKind::pos_embed);
      request.capture.maps = storage;
      const auto trace = s.trace(request);
      CHECK(static_cast<int>(trace->tokens.size()) == s.config().vision->tokens());
      CHECK(trace->picture->keys() == s.config().vision->tokens());
      for (const auto& [label, entry] : s.expected.tensors()) {
        const std::optional<Site> site = parse_site(label);
        if (!site || site->kind == SiteKind::logits) continue;
        CAPTURE(label);
        const Tensor truth = s.expected.tensor(label);
        if (site->kind == SiteKind::pattern)
          for (int head = 0; head < trace->model.dims.heads; ++head) {
            const double gap = absolute(trace->map({site->layer, head}).to_dense(), truth.select(0, head));
            CHECK(gap < 1e-5);
            pattern = std::max(pattern, gap);
          }
        else
          CHECK(relative(trace->sites.at(*site), truth) < 1e-5);
      }
      if (!s.config().predicts) {
        CHECK_FALSE(trace->logits.defined());
        CHECK(trace->model.objective == Objective::nothing);
        continue;
      }
      CHECK(trace->model.objective == Objective::image_class);
      CHECK(absolute(trace->logits, s.expected.tensor("logits")) < 1e-4);
    }
    MESSAGE(name, ": pattern ", pattern);
  }
}

TEST_CASE("the plain definition gives the same in float64, and verify says so") {
  for (const std::string& name : all) {
    CAPTURE(name);
    Seer s(name);
    const auto trace = s.trace(s.request());
    const ModelFiles files = ModelFiles::open(locate_model(s.folder));
    const RawWeights weights = read_weights(*files.weights, s.config());
    CHECK(weights.parameters == parameter_parts(s.config()).total());
    const plain::Pass witness = plain::forward(s.config(), weights, trace->ids(), {}, nullptr, {}, {}, trace->patches);
    double worst = 0;
    const auto against = [&](const plain::Table& found, const Tensor& truth) {
      for (Index i = 0; i < found.rows; ++i)
        for (Index j = 0; j < found.columns; ++j)
          worst = std::max(worst, std::abs(found.at(i, j) - static_cast<double>(truth.at(i, j))));
    };
    for (int layer = 0; layer < s.config().dims.layers; ++layer) {
      const Tensor truth = s.expected.tensor(headscope::name(Site{SiteKind::pattern, layer}));
      for (Index head = 0; head < s.config().dims.heads; ++head)
        against(witness.patterns[static_cast<std::size_t>(layer)][static_cast<std::size_t>(head)],
                truth.select(0, head));
    }
    CHECK(worst < 2e-7);
    if (s.config().predicts) against(witness.logits, s.expected.tensor("logits"));
    CHECK(worst < 1e-5);  // expected numbers are rounded to float32
    const Certificate found = certify(s.loaded, {s.folder, {picture_file.string()}, {}}, Ctx{s.backend});
    CHECK(found.agrees());
    CHECK(found.checks.size() == 2);
    CHECK(found.checks.front().text == "built-in picture");
  }
}

TEST_CASE("a configuration of a vision transformer is written as it is read, its preparation too") {
  for (const std::string& name : all) {
    CAPTURE(name);
    Seer s(name);
    const fs::path folder = scratch_dir("vision-" + name);
    fs::copy_file(s.folder / "model.safetensors", folder / "model.safetensors");
    write_file_atomically(folder / "config.json", write_config(s.config()));
    write_file_atomically(folder / "preprocessor_config.json", write_preparation(*s.config().vision));
    const ModelConfig again = load_config(folder);
    CHECK(*again.vision == *s.config().vision);
    CHECK(again.dims.vocab == s.config().dims.vocab);
    CHECK(again.context == s.config().context);
    CHECK(again.activation == s.config().activation);
    CHECK(again.predicts == s.config().predicts);
    Backend backend(1);
    CHECK(Model::load(folder, backend)->info().parameters == s.loaded.model->info().parameters);
  }
}

TEST_CASE("a whole CLIP, and MetaCLIP 2, opens as the half of it that sees") {
  for (const char* whole : {"clip", "metaclip_2"}) {
    CAPTURE(whole);
    Seer s(std::string(whole) + "_vision_model");
    const fs::path folder = scratch_dir(whole);
    fs::copy_file(s.folder / "model.safetensors", folder / "model.safetensors");
    fs::copy_file(s.folder / "preprocessor_config.json", folder / "preprocessor_config.json");
    write_file_atomically(folder / "config.json", std::string("{\"model_type\": \"") + whole +
                                                      "\", \"text_config\": {}, \"vision_config\": " +
                                                      read_file(s.folder / "config.json") + "}");
    Backend backend(2);
    const LoadedModel loaded = load_model(folder, backend);
    CHECK(loaded.model->config().family == whole);
    RunRequest request = s.request();
    request.model = folder;
    const auto trace = run(loaded, request, Ctx{backend});
    CHECK(absolute(trace->map({1, 2}).to_dense(), s.trace(s.request())->map({1, 2}).to_dense()) == 0);
  }
}

TEST_CASE("a whole SigLIP opens as the half of it that sees, whose first token is a patch") {
  Seer s("siglip_vision_model");
  const fs::path folder = scratch_dir("siglip");
  fs::copy_file(s.folder / "model.safetensors", folder / "model.safetensors");
  fs::copy_file(s.folder / "preprocessor_config.json", folder / "preprocessor_config.json");
  write_file_atomically(folder / "config.json",
                        "{\"model_type\": \"siglip\", \"vision_config\": " + read_file(s.folder / "config.json") + "}");
  Backend backend(2);
  const LoadedModel loaded = load_model(folder, backend);
  CHECK(loaded.model->config().family == "siglip");
  RunRequest request = s.request();
  request.model = folder;
  const auto trace = run(loaded, request, Ctx{backend});
  CHECK(trace->tokens.front().label == "r0c0");
  CHECK(trace->tokens.size() == 9);
  CHECK(absolute(trace->map({1, 2}).to_dense(), s.trace(s.request())->map({1, 2}).to_dense()) == 0);
}

TEST_CASE("pixels that are no whole patch are neither read nor shown") {
  Seer s("siglip_vision_model-rest");  // 15 × 15 pixels, 3 × 3 patches of 4
  const auto trace = s.trace(s.request());
  CHECK(trace->picture->width == 12);
  CHECK(trace->picture->height == 12);
  CHECK(trace->picture->box(2, 2) == PixelBox{8, 8, 12, 12});
  const Picture whole = prepared(read_picture(picture_file), *s.config().vision);
  CHECK(whole.width == 15);
  CHECK(trace->picture->rgb[3 * 12] == whole.rgb[3 * 15]);
}

TEST_CASE("positions of a grid of patches are read for another by bicubic interpolation") {
  VisionConfig v;
  v.patch = 4, v.stored_side = 2, v.height = 8, v.width = 16;  // 2 × 2 patches for 2 × 4
  Tensor stored = Tensor::zeros({5, 1});
  for (Index i = 0; i < 5; ++i)
    stored.ref(i, 0) = std::array{9.0f, 1.0f, 2.0f, 5.0f, 8.0f}.at(static_cast<std::size_t>(i));
  const Tensor found = interpolated_positions(stored, v);
  REQUIRE(found.dim(0) == 9);
  CHECK(found.at(0, 0) == 9);
  // Columns stand at −0.25, 0.25, 0.75 and 1.25 of the two. With a = −0.75 the weights of four neighbours at t = 0.75
  // are −0.0351562, 0.2617188, 0.8789062 and −0.1054688; those outside are the edge again, so that −0.25 gives
  // 1.1054688 and −0.1054688, and 0.25 gives 0.7734375 and 0.2265625.
  for (Index row = 0; row < 2; ++row) {
    const double a = row == 0 ? 1 : 5, b = row == 0 ? 2 : 8;
    const double expected[] = {1.1054688 * a - 0.1054688 * b, 0.7734375 * a + 0.2265625 * b,
                               0.2265625 * a + 0.7734375 * b, -0.1054688 * a + 1.1054688 * b};
    for (Index column = 0; column < 4; ++column)
      CHECK(static_cast<double>(found.at(1 + 4 * row + column, 0)) == doctest::Approx(expected[column]).epsilon(1e-6));
  }
  // Files of other models keep their size; what is no whole patch is not read.
  Seer s("dinov2-interpolated");
  CHECK(s.config().vision->stored_side == 5);
  CHECK(s.config().context == 13);
  const fs::path folder = scratch_dir("dinov2-size");
  fs::copy_file(s.folder / "config.json", folder / "config.json");
  write_file_atomically(folder / "preprocessor_config.json", R"({"crop_size": {"height": 12, "width": 18}})");
  CHECK(load_config(folder).context == 13);
  write_file_atomically(folder / "preprocessor_config.json", R"({"crop_size": {"height": 12, "width": 3}})");
  CHECK_THROWS_WITH_AS(load_config(folder), doctest::Contains("patch_size = 4 or more"), Error);
  fs::remove(folder / "preprocessor_config.json");
  CHECK(load_config(folder).context == 26);
}

TEST_CASE("tokens are CLS and patches by row and column, classes have names, the answer stands at CLS") {
  Seer s("vit-wide");
  const auto trace = s.trace(s.request());
  CHECK(trace->tokens.front().label == "[CLS]");
  CHECK(trace->tokens[1].label == "r0c0");
  CHECK(trace->tokens[12].label == "r2c3");
  CHECK(trace->text.empty());
  CHECK(answer_position(*trace) == 0);
  CHECK(usual_query(*trace, trace->map({0, 0})) == 0);
  CHECK(targets(*trace).empty());
  CHECK(std::isnan(mean_loss(*trace)));
  const std::vector<NextToken> top = top_next(*trace, 2);
  REQUIRE(top.size() == 2);
  CHECK(top[0].probability + top[1].probability == doctest::Approx(1));
  CHECK(top[0].probability > top[1].probability);
  CHECK(s.loaded.tokenizer->token(top[0].id).label == (top[0].id == 0 ? "day" : "night"));
  CHECK_THROWS_WITH_AS(top_next(*trace, 1, 3), doctest::Contains("CLS"), Error);
  Seer deit("deit");
  CHECK(deit.trace(deit.request())->tokens[1].label == "[DIST]");
  Seer pixio("pixio");
  const auto several = pixio.trace(pixio.request());
  for (const auto& [at, label] : {std::pair(0, "[CLS0]"), {2, "[CLS2]"}, {3, "r0c0"}})
    CHECK(several->tokens[static_cast<std::size_t>(at)].label == label);
  Seer registers("dinov2_with_registers");
  const auto kept = registers.trace(registers.request());
  for (const auto& [at, label] : {std::pair(0, "[CLS]"), {1, "[REG0]"}, {3, "[REG2]"}, {4, "r0c0"}, {12, "r2c2"}})
    CHECK(kept->tokens[static_cast<std::size_t>(at)].label == label);
  Seer vit("vit");
  CHECK(vit.loaded.tokenizer->encode("tabby").front().id == 0);
  CHECK(vit.loaded.tokenizer->encode("boat").front().id == 3);
  CHECK_THROWS_WITH_AS(vit.loaded.tokenizer->encode("a whole text"), doctest::Contains("reads pictures"), Error);
}

TEST_CASE("a model of pictures refuses texts, a model of texts pictures; files that are none are named") {
  Seer s("vit");
  RunRequest text;
  text.model = s.folder;
  text.text = "a cat";
  CHECK_THROWS_WITH_AS(run(s.loaded, text, Ctx{s.backend}), doctest::Contains("a picture"), Error);
  RunRequest masked = s.request();
  masked.masked = {{1, {}}};
  CHECK_THROWS_WITH_AS(run(s.loaded, masked, Ctx{s.backend}), doctest::Contains("hide patches"), Error);
  RunRequest nowhere = s.request();
  nowhere.image = s.folder / "config.json";
  CHECK_THROWS_WITH_AS(run(s.loaded, nowhere, Ctx{s.backend}), doctest::Contains("PNG or JPEG"), Error);
  Subject decoder(reference("families/qwen2"));
  RunRequest picture = s.request();
  CHECK_THROWS_WITH_AS(run(decoder.loaded, picture, Ctx{*decoder.backend}),
                       doctest::Contains("a text, which this model reads"), Error);
  CHECK_THROWS_WITH_AS(s.loaded.model->forward(Ctx{s.backend}, std::vector<std::int32_t>(10, 0)),
                       doctest::Contains("9 patches of 48 numbers"), Error);
}

TEST_CASE("an image of a request is kept in its JSON, and left out where there is none") {
  Seer s("vit");
  const RunRequest request = s.request({"*@3: hide patches noise 5"});
  CHECK(run_request_from_json(to_json(request), "test") == request);
  RunRequest text;
  text.model = "m", text.text = "t";
  CHECK(to_json(text).find("image") == std::string::npos);
  RunRequest other = request;
  other.image = "other.png";
  CHECK(hash(other) != hash(request));
}

TEST_CASE("hidden patches are embedded as what stands in their place") {
  Seer s("vit");
  const ModelWeights w = s.loaded.model->weights();
  const auto embedded = [&](const std::vector<std::string>& edits) {
    return s.trace(with_sites(s.request(edits), {SiteKind::embed}))->sites.at({SiteKind::embed});
  };
  const Tensor before = embedded({});
  const Tensor grey = embedded({"*@2..3: hide patches grey"});
  CHECK(absolute(grey.slice(0, 4, 10), before.slice(0, 4, 10)) == 0);
  for (Index i = 0; i < 18; ++i) CHECK(grey.at(2, i) == w.token_embedding.at(1, i));  // the bias alone
  // The mean patch, embedded: E (mean of p) + b.
  const auto trace = s.trace(s.request());
  const Tensor mean = embedded({"*@-1: hide patches mean"});
  for (Index i = 0; i < 18; ++i) {
    double sum = static_cast<double>(w.token_embedding.at(1, i));
    for (Index patch = 0; patch < 9; ++patch)
      for (Index k = 0; k < 48; ++k)
        sum += static_cast<double>(trace->patches.at(patch, k)) / 9 * static_cast<double>(w.patch_embedding.at(k, i));
    CHECK(mean.at(9, i) == doctest::Approx(sum).epsilon(1e-4).scale(1));
  }
  // CLS is no patch; noise is the same for the same seed, and another for another patch.
  CHECK(absolute(embedded({"*: hide patches grey"}).slice(0, 0, 1), before.slice(0, 0, 1)) == 0);
  const Tensor noise = embedded({"*: hide patches noise 1"});
  CHECK(absolute(noise, embedded({"*: hide patches noise 1"})) == 0);
  CHECK(absolute(noise, embedded({"*: hide patches noise 2"})) > 0.1);
  CHECK(absolute(noise.slice(0, 1, 2), noise.slice(0, 2, 3)) > 0.1);
  // It changes what is seen, and says where it cannot.
  const auto after = s.trace(s.request({"*: hide patches grey"}));
  CHECK(next_token_change(*trace, *after, 2).kl > 1e-4);
  CHECK_THROWS_WITH_AS(s.trace(s.request({"1: hide patches grey"})), doctest::Contains("all layers"), Error);
  Subject decoder(reference("families/qwen2"));
  RunRequest text;
  text.ids = {3, 4};
  text.edits = s.request({"*: hide patches grey"}).edits;
  CHECK_THROWS_WITH_AS(run(decoder.loaded, text, Ctx{*decoder.backend}), doctest::Contains("a model of pictures"),
                       Error);
}

TEST_CASE("a remembered pass is used again for the same picture alone") {
  Seer s("vit");
  PassMemory memory;
  const auto first = run(s.loaded, s.request(), Ctx{s.backend}, memory);
  const RunRequest edited = s.request({"1.0: ablate zero"});
  CHECK(memory.first_changed(*s.loaded.model, first->tokens, edited.edits, first->patches) == 1);
  CHECK(absolute(run(s.loaded, edited, Ctx{s.backend}, memory)->logits, s.trace(edited)->logits) < 1e-6);
  RunRequest other = edited;
  other.image = built_in_picture;
  const auto fresh = s.trace(other), known = run(s.loaded, other, Ctx{s.backend}, memory);
  CHECK(absolute(fresh->logits, known->logits) < 1e-6);
  CHECK(absolute(fresh->logits, first->logits) > 1e-3);
  // From another picture: by its path, in place of a text.
  const RunRequest patched = s.request({"0: patch resid_pre from \"builtin:waves\""});
  CHECK(absolute(s.trace(patched)->logits, s.trace([&] {
                                              RunRequest plain = s.request();
                                              plain.image = built_in_picture;
                                              return plain;
                                            }())
                                               ->logits) < 1e-5);
}

TEST_CASE("a preparation that gives another size than the model reads is an error that names its key") {
  Seer s("vit");
  const fs::path folder = scratch_dir("vision-size");
  for (const char* file : {"model.safetensors", "config.json"}) fs::copy_file(s.folder / file, folder / file);
  const auto with = [&](const std::string& json) {
    write_file_atomically(folder / "preprocessor_config.json", json);
    return [folder] { return load_config(folder); };
  };
  CHECK_THROWS_WITH_AS(with(R"({"size": {"height": 16, "width": 12}})")(), doctest::Contains("size"), Error);
  CHECK_THROWS_WITH_AS(with(R"({"resample": 1})")(), doctest::Contains("bicubic"), Error);
  CHECK_THROWS_WITH_AS(with(R"({"image_mean": [0.5]})")(), doctest::Contains("3 channels"), Error);
  CHECK(with(R"({"size": 12, "do_normalize": false})")().vision->preparation.std.empty());
  fs::remove(folder / "preprocessor_config.json");
  CHECK(load_config(folder).vision->preparation.resize_height == 12);
}

TEST_CASE("classes that are read off the mean of all patches are left out, and ways between patches need a square") {
  Seer s("beit");
  const fs::path folder = scratch_dir("beit-mean");
  const auto with = [&](const std::string& keys) {
    std::string config = read_file(s.folder / "config.json");
    config.replace(config.find("\"architectures\""), 0, keys + ",");
    write_file_atomically(folder / "config.json", config);
    return load_config(folder);
  };
  CHECK(with(R"("a": 1)").bare_end);
  CHECK_FALSE(with(R"("a": 1)").predicts);
  Seer shared("beit-shared");
  CHECK(shared.config().predicts);
  CHECK_FALSE(shared.config().bare_end);
  CHECK_FALSE(shared.config().layer_scales);
  std::string config = read_file(s.folder / "config.json");
  const auto put = [&](const std::string& was, const std::string& is) {
    std::string changed = config;
    REQUIRE(changed.find(was) != std::string::npos);
    changed.replace(changed.find(was), was.size(), is);
    write_file_atomically(folder / "config.json", changed);
  };
  put("\"use_shared_relative_position_bias\": false", "\"use_shared_relative_position_bias\": true");
  CHECK_THROWS_WITH_AS(load_config(folder), doctest::Contains("use_shared_relative_position_bias"), Error);
  put("\"image_size\": 12", "\"image_size\": [12, 16]");
  CHECK_THROWS_WITH_AS(load_config(folder), doctest::Contains("image_size"), Error);
}

}  // namespace headscope::vision_test
