// Models of speech beside transformers in float64 (tests/reference/speech) and beside the plain definition: what they
// hear, three stacks, edits, what a pass remembers, what they write.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numbers>
#include <string>
#include <vector>

#include "core/analysis/saliency.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/edits/intervention.h"
#include "core/generate/generation.h"
#include "core/io/safetensors.h"
#include "core/io/trace_file.h"
#include "core/metrics/token_times.h"
#include "core/model/config_reader.h"
#include "core/model/family.h"
#include "core/model/formats/model_files.h"
#include "core/model/parameter_parts.h"
#include "core/model/plain.h"
#include "core/model/sound_input.h"
#include "core/run/pass_memory.h"
#include "core/run/target_rules.h"
#include "tests/model/parity.h"
#include "tests/support/paths.h"

namespace headscope::speech_test {

using namespace testing;

namespace {
namespace fs = std::filesystem;

struct Listener {
  fs::path folder;
  Backend backend{2};
  LoadedModel loaded;
  SafetensorsFile expected;
  RunRequest request;

  explicit Listener(const std::string& name)
      : folder(reference("speech") / name),
        loaded(load_model(folder, backend)),
        expected(SafetensorsFile::open(folder / "expected.safetensors")) {
    request.model = folder;
    request.sound = reference("speech/sound.wav");
    request.ids = ids("target");
    request.ids_are_whole = true;
  }

  const SoundConfig& sound() const { return *loaded.model->encoder()->config().sound; }
  std::vector<std::int32_t> ids(const char* name) const { return expected.entry(name).items<std::int32_t>(); }
  std::shared_ptr<const Trace> trace(const std::vector<std::string>& edits = {}) {
    RunRequest edited = request;
    for (const std::string& each : edits) edited.edits.push_back(parse_intervention(each, "edit"));
    return run(loaded, edited, Ctx{backend});
  }
  std::vector<std::int32_t> read(const std::string& text) {
    RunRequest asked;
    asked.text = text;
    asked.sound = request.sound;
    std::vector<std::int32_t> out;
    for (const Token& token : tokenize(loaded, asked)) out.push_back(token.id);
    return out;
  }
};

/// What an Error says; "" where there is none.
template <class Act>
std::string error_text(Act&& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// Adds to one row of the embeddings.
struct Nudge final : Tap {
  Tensor by;  // (d_model)
  Index row = 0;
  bool wants(Site site) const override { return site.kind == SiteKind::embed; }
  Tensor at(Site, const Tensor& value) override {
    Tensor out = value.copy();
    for (Index i = 0; i < by.size(); ++i) out.ref(row, i) += by.at(i);
    return out;
  }
};

constexpr const char* all_names[] = {"whisper", "whisper-english"};

bool same_bits(const Tensor& a, const Tensor& b) {
  const Tensor x = a.packed(), y = b.packed();
  return x.shape() == y.shape() && std::memcmp(x.data(), y.data(), x.bytes()) == 0;
}

double apart(const Trace& a, const Trace& b) {
  double gap = 0;
  for (std::size_t i = 0; i < a.maps.size(); ++i)
    gap = std::max(gap, absolute(a.maps[i].to_dense(), b.maps[i].to_dense()));
  return gap;
}

const Trace& part_of(const Trace& trace, const std::string& name) {
  return *trace.part(name == "encoder" ? Stack::encoder : name == "cross" ? Stack::cross : Stack::decoder);
}
}  // namespace

TEST_CASE("what is heard is the log-mel spectrogram of transformers' feature extractor") {
  for (const char* name : all_names) {
    CAPTURE(name);
    const Listener listener(name);
    const SoundConfig& s = listener.sound();
    CHECK(absolute(mel_filters(s), listener.expected.tensor("mel_filters")) < 1e-7);
    const SoundFrames frames = heard(read_sound(listener.request.sound), s);
    const double gap = absolute(frames.log_mel, listener.expected.tensor("log_mel"));
    MESSAGE(std::string(name), ": log-mel ", gap);
    CHECK(gap < 2e-5);  // theirs is computed in float32
    CHECK(frames.seconds == doctest::Approx(0.5));
    CHECK(frames.frames() == s.frames());
    CHECK(frames.key_seconds() == doctest::Approx(2.0 * s.hop / s.rate));
    // Longer than is read: the end is mirrored where it is cut.
    std::vector<float> wave;
    for (int i = 0; i < static_cast<int>(2.3 * s.rate); ++i) {
      const double t = static_cast<double>(i) / s.rate;
      wave.push_back(static_cast<float>(std::sin(2 * std::numbers::pi * 700 * t) * (0.2 + 0.3 * t)));
    }
    CHECK(absolute(log_mel(wave, s), listener.expected.tensor("long_log_mel")) < 2e-5);
  }
}

TEST_CASE("patterns of all three stacks, streams and logits are what transformers says in float64") {
  for (const char* name : all_names) {
    CAPTURE(name);
    Listener listener(name);
    double worst = 0, logits = 0;
    for (const MapStorage storage : {MapStorage::dense, MapStorage::factored}) {
      listener.request.capture.maps = storage;
      listener.request.capture.sites = {SiteKind::resid_post};
      const auto trace = listener.trace();
      int patterns = 0;
      for (const auto& [label, entry] : listener.expected.tensors()) {
        const std::size_t dot = label.find('.');
        if (dot == std::string::npos) continue;
        CAPTURE(label);
        const Trace& part = part_of(*trace, label.substr(0, dot));
        const int layer = std::stoi(label.substr(dot + 1));
        const Tensor truth = listener.expected.tensor(label);
        if (label.ends_with("resid_post")) {
          CHECK(relative(part.sites.at({SiteKind::resid_post, layer}), truth) < 1e-4);
          continue;
        }
        for (int head = 0; head < part.model.dims.heads; ++head) {
          const double gap = absolute(part.map({layer, head}).to_dense(), truth.select(0, head));
          CHECK(gap < map_tolerance);
          worst = std::max(worst, gap);
          ++patterns;
        }
      }
      CHECK(patterns > 10);
      logits = std::max(logits, absolute(trace->logits, listener.expected.tensor("logits")));
      CHECK(logits < 1e-4);
      CHECK(trace->encoder->tokens.size() == static_cast<std::size_t>(listener.sound().rows));
      CHECK(trace->cross->ids() == trace->encoder->ids());
      CHECK(trace->cross->sound == trace->encoder->sound);
    }
    CHECK(absolute(encode(listener.loaded, listener.request, Ctx{listener.backend}).memory,
                   listener.expected.tensor("memory")) < 1e-4);
    MESSAGE(std::string(name), ": pattern ", worst, ", logits ", logits);
  }
}

TEST_CASE("the plain definition gives the same patterns and logits") {
  for (const char* name : all_names) {
    CAPTURE(name);
    Listener listener(name);
    const ModelConfig& c = listener.loaded.model->config();
    const ModelFiles files = ModelFiles::open(locate_model(listener.folder));
    const auto trace = listener.trace();
    const plain::Pass pass = plain::forward(c, read_weights(*files.weights, c), listener.request.ids, {}, nullptr, {},
                                            trace->encoder->ids(), listener.expected.tensor("log_mel"));
    double gap = 0;
    for (const auto& [label, entry] : listener.expected.tensors()) {
      if (!label.ends_with("pattern")) continue;
      const auto layer = static_cast<std::size_t>(std::stoi(label.substr(label.find('.') + 1)));
      const auto& heads = label.starts_with("encoder") ? pass.encoder->patterns[layer]
                          : label.starts_with("cross") ? pass.cross_patterns[layer]
                                                       : pass.patterns[layer];
      const Tensor truth = listener.expected.tensor(label);
      for (Index head = 0; head < truth.dim(0); ++head)
        for (Index i = 0; i < truth.dim(1); ++i)
          for (Index j = 0; j < truth.dim(2); ++j)
            gap = std::max(gap, std::abs(heads[static_cast<std::size_t>(head)].at(i, j) -
                                         static_cast<double>(truth.at(head, i, j))));
    }
    CHECK(gap < 1e-6);
    const Tensor truth = listener.expected.tensor("logits");
    double logits = 0;
    for (Index i = 0; i < truth.dim(0); ++i)
      for (Index j = 0; j < truth.dim(1); ++j)
        logits = std::max(logits, std::abs(pass.logits.at(i, j) - static_cast<double>(truth.at(i, j))));
    CHECK(logits < 1e-5);
  }
}

TEST_CASE("parameters add up from the configuration alone, which is written as it is read") {
  for (const char* name : all_names) {
    CAPTURE(name);
    const Listener listener(name);
    const ModelConfig& c = listener.loaded.model->config();
    CHECK(parameter_parts(c).total() == listener.loaded.model->info().parameters);
    const std::string written = write_config(c);
    ModelConfig again = family(c.family, "written").read_config(ConfigReader::parse(written, "written"));
    again.family = c.family;
    CHECK(write_config(again) == written);
    CHECK(again.embedding_scale == c.embedding_scale);
    CHECK(again.encoder->sound->mels == listener.sound().mels);
    CHECK(again.encoder->sound->rows == listener.sound().rows);
    const fs::path folder = scratch_dir("speech");
    write_file_atomically(folder / "preprocessor_config.json", write_feature_extraction(listener.sound()));
    SoundConfig read = *again.encoder->sound;
    read_feature_extraction(folder, read);
    CHECK(read == listener.sound());
  }
}

TEST_CASE("targets begin with language and task, or with those that the text names") {
  Listener several("whisper"), english("whisper-english");
  const auto prompt = several.ids("prompt");
  REQUIRE(prompt.size() == 4);
  CHECK(several.read("") == prompt);
  CHECK(english.read("") == english.ids("prompt"));
  const auto with = [](std::vector<std::int32_t> ids, const std::vector<std::int32_t>& more) {
    ids.insert(ids.end(), more.begin(), more.end());
    return ids;
  };
  CHECK(several.read(" hell") == with(prompt, {32, 258}));
  const std::int32_t german = 263, translate = 264, no_times = 269;
  CHECK(several.read("<|de|><|translate|><|notimestamps|> hell") ==
        std::vector{prompt[0], german, translate, no_times, 32, 258});
  // Written down in the file: another language, another task.
  const auto rules_with = [&](const std::string& key, const std::string& value) {
    const fs::path folder = scratch_dir("speech");
    nlohmann::json json = nlohmann::json::parse(read_file(several.folder / "generation_config.json"));
    json[key] = value;
    for (const char* name : {"config.json", "model.safetensors"}) fs::copy_file(several.folder / name, folder / name);
    write_file_atomically(folder / "generation_config.json", json.dump());
    return load_target_rules(folder, several.loaded.model->config())->prompt;
  };
  CHECK(rules_with("language", "de") == std::vector{german, prompt[2], no_times});
  CHECK(rules_with("language", "<|de|>") == std::vector{german, prompt[2], no_times});
  CHECK(several.loaded.target->never.size() == 1);
  CHECK(several.loaded.target->never_first.size() == 1);
}

TEST_CASE("what is written is what transformers' generate() writes, step by step as in one pass") {
  for (const char* name : all_names) {
    CAPTURE(name);
    Listener listener(name);
    const auto expected = listener.ids("written");
    listener.request.ids = listener.ids("prompt");
    Generator generator(listener.loaded, listener.request);
    Transcript tape{listener.request.ids, {}};
    SamplingSettings greedy;
    greedy.temperature = 0;
    while (tape.ids().size() < expected.size()) {
      tape.steps.push_back(generator.step(Ctx{listener.backend}, tape, {greedy}));
      CHECK(tape.steps.back()->computed == (tape.steps.size() == 1 ? static_cast<int>(tape.prompt.size()) : 1));
    }
    CHECK(tape.ids() == expected);
    const TargetRules& rules = *listener.loaded.target;
    CHECK(std::isinf(tape.steps[0]->logits.at(rules.never_first[0])));
    CHECK(std::isfinite(tape.steps[1]->logits.at(rules.never_first[0])));
    CHECK(std::isinf(tape.steps[1]->logits.at(rules.never[0])));
    // The whole text in one pass: the same logits, but for what is suppressed, and the same rows of cross-attention.
    listener.request.ids = tape.ids(tape.steps.size() - 1);
    const auto whole = listener.trace();
    const Index last = whole->logits.dim(0) - 1;
    double gap = 0;
    for (Index i = 0; i < whole->logits.dim(1); ++i)
      if (const float logit = tape.steps.back()->logits.at(i); std::isfinite(logit))
        gap = std::max(gap, std::abs(static_cast<double>(logit - whole->logits.at(last, i))));
    CHECK(gap < 1e-5);
    for (std::size_t map = 0; map < whole->cross->maps.size(); ++map)
      CHECK(absolute(tape.steps.back()->source_rows.select(0, static_cast<Index>(map)),
                     whole->cross->maps[map].to_dense().select(0, last)) < map_tolerance);
  }
}

TEST_CASE("each token has the time that transformers gives it by the heads that the file names") {
  for (const char* name : all_names) {
    CAPTURE(name);
    Listener listener(name);
    const auto prompt = listener.ids("prompt");
    listener.request.ids = listener.ids("written");
    const auto trace = listener.trace();
    const TargetRules& rules = *listener.loaded.target;
    CHECK(rules.alignment_heads.size() == (std::string(name) == "whisper" ? 3 : 0));
    const auto heads = alignment_heads_or_upper_half(rules.alignment_heads, trace->model.dims);
    const std::vector<double> times =
        token_times(*trace->cross, heads, static_cast<Index>(prompt.size()), rules.smoothing);
    const Tensor truth = listener.expected.tensor("times");
    REQUIRE(static_cast<Index>(times.size()) == truth.size());
    for (std::size_t i = 0; i < times.size(); ++i)
      CHECK(times[i] == doctest::Approx(static_cast<double>(truth.at(static_cast<Index>(i)))).epsilon(1e-5));
  }
}

TEST_CASE("edits act on each stack of a model of speech") {
  Listener listener("whisper");
  const auto plain = listener.trace();
  const auto cross = listener.trace({"cross.0.1: ablate zero"});
  CHECK(apart(*cross->encoder, *plain->encoder) == 0);
  CHECK_FALSE(same_bits(cross->logits, plain->logits));
  const auto encoder = listener.trace({"enc.1.0: temperature 0.5"});
  CHECK(apart(*encoder->encoder, *plain->encoder) > 1e-3);
  CHECK(apart(*encoder->cross, *plain->cross) > 1e-6);
  const auto cell = listener.trace({"cross.1.2: weight 4 17 0.75"});
  CHECK(cell->cross->map({1, 2}).weight(4, 17) == doctest::Approx(0.75));
  const auto hidden = listener.trace({"cross.*: mask full & not cells 0-9:25-49"});
  CHECK(hidden->cross->map({0, 0}).weight(5, 24) > 0);
  CHECK(hidden->cross->map({0, 0}).weight(5, 30) == 0);
}

TEST_CASE("a head takes from another sound") {
  Listener listener("whisper");
  RunRequest other = listener.request;
  other.sound = built_in_sound;
  other.capture.sites = {SiteKind::z};
  const auto there = run(listener.loaded, other, Ctx{listener.backend}), here = listener.trace();
  CHECK(apart(*there->cross, *here->cross) > 1e-4);
}

TEST_CASE("a pass that remembers the last one gives the same bits, and a sound that was changed is heard anew") {
  Listener listener("whisper");
  const fs::path folder = scratch_dir("speech");
  const fs::path file = folder / "a.wav";
  fs::copy_file(listener.request.sound, file);
  listener.request.sound = file;
  PassMemory memory;
  const Ctx ctx{listener.backend};
  const auto first = run(listener.loaded, listener.request, ctx, memory);
  RunRequest longer = listener.request;
  longer.ids.push_back(44);
  const auto second = run(listener.loaded, longer, ctx, memory), fresh = run(listener.loaded, longer, ctx);
  CHECK(second->encoder->sound == first->encoder->sound);  // not read again
  CHECK(same_bits(second->logits, fresh->logits));
  CHECK(apart(*second->cross, *fresh->cross) == 0);
  // Half as loud, and later.
  std::string bytes = read_file(file);
  for (std::size_t i = 45; i < bytes.size(); i += 2) bytes[i] = static_cast<char>(bytes[i] / 4);
  write_file_atomically(file, bytes);
  fs::last_write_time(file, fs::last_write_time(file) + std::chrono::seconds(2));
  const auto third = run(listener.loaded, longer, ctx, memory);
  CHECK(third->encoder->sound != first->encoder->sound);
  CHECK(same_bits(third->logits, run(listener.loaded, longer, ctx)->logits));
  CHECK_FALSE(same_bits(third->logits, second->logits));
}

TEST_CASE("a trace file keeps what was heard, of the encoder and of cross-attention") {
  Listener listener("whisper");
  const auto trace = listener.trace();
  const fs::path folder = scratch_dir("speech");
  for (const auto& part : {trace->encoder, trace->cross}) {
    write_trace(*part, folder / "t.safetensors");
    const auto read = open_trace_file(folder / "t.safetensors");
    REQUIRE(read->sound);
    CHECK(same_bits(read->sound->log_mel, trace->encoder->sound->log_mel));
    CHECK(read->sound->keys == 50);
    CHECK(read->sound->frame_seconds == trace->encoder->sound->frame_seconds);
    CHECK(read->sound->seconds == doctest::Approx(0.5));
    CHECK(read->sound->from == 0);
    CHECK(read->tokens[7].label == "0.14 s");
  }
  // From a second on: the same as of a sound that begins there, with the times of the file.
  listener.request.sound = reference("speech/sound.wav").string() + "#t=0.2";
  const auto later = listener.trace();
  CHECK(later->encoder->tokens[7].label == "0.34 s");
  write_trace(*later->cross, folder / "t.safetensors");
  const auto read = open_trace_file(folder / "t.safetensors");
  CHECK(read->sound->from == doctest::Approx(0.2));
  CHECK(read->sound->seconds == doctest::Approx(0.3));
  Sound cut = read_sound(reference("speech/sound.wav"));
  cut.samples.erase(cut.samples.begin(), cut.samples.begin() + cut.rate / 5);
  CHECK(same_bits(later->encoder->sound->log_mel, heard(cut, listener.sound()).log_mel));
}

TEST_CASE("gradients reach the rows of a sound") {
  Listener listener("whisper");
  listener.request.capture.maps = MapStorage::dense;
  const auto trace = listener.trace();
  const Saliency of = read_saliency(listener.loaded, listener.request, Ctx{listener.backend}, *trace,
                                    {.kind = GradientOf::Kind::logit, .token = 72});
  CHECK(of.cross_importance.dim(0) == 2);
  const Tensor& gradient = of.gradients.source.embedding;
  REQUIRE(gradient.dim(0) == 50);
  // A step along the gradient of one row changes the logit by the square of its length.
  const Index row = 13;
  Nudge nudge;
  nudge.row = row;
  double square = 0;
  constexpr double step = 1e-2;
  nudge.by = Tensor::zeros({gradient.dim(1)});
  for (Index i = 0; i < gradient.dim(1); ++i) {
    const auto g = static_cast<double>(gradient.at(row, i));
    square += g * g;
  }
  for (Index i = 0; i < gradient.dim(1); ++i)
    nudge.by.ref(i) = static_cast<float>(step * static_cast<double>(gradient.at(row, i)) / std::sqrt(square));
  const Model& model = *listener.loaded.model;
  const auto logit = [&](Tap* tap) {
    const std::vector<std::int32_t> rows = trace->encoder->ids();
    SourceMemory source;
    source.memory = model.encoder()
                        ->forward({.backend = listener.backend, .tap = tap, .patches = trace->encoder->patches}, rows)
                        .memory;
    const Ctx ctx{.backend = listener.backend, .source = &source};
    const Tensor logits = model.forward(ctx, listener.request.ids).logits;
    return static_cast<double>(logits.at(logits.dim(0) - 1, 72));
  };
  REQUIRE(square > 1e-8);
  CHECK((logit(&nudge) - logit(nullptr)) / step == doctest::Approx(std::sqrt(square)).epsilon(0.01));
}

TEST_CASE("what a model of speech cannot read is refused by name") {
  Listener listener("whisper");
  const auto error_of = [&](const RunRequest& request) {
    return error_text([&] { run(listener.loaded, request, Ctx{listener.backend}); });
  };
  RunRequest none = listener.request;
  none.sound.clear();
  CHECK(error_of(none).find("a sound, which its encoder reads") != std::string::npos);
  none.source = "words";
  CHECK(error_of(none).find("a text as the source") != std::string::npos);
  // A sound for a model of texts.
  Backend backend{1};
  const fs::path bart = reference("encoder-decoders/bart");
  const LoadedModel other = load_model(bart, backend);
  RunRequest sound;
  sound.model = bart;
  sound.sound = built_in_sound;
  sound.ids = {1};
  CHECK(error_text([&] { run(other, sound, Ctx{backend}); }).find("models of speech") != std::string::npos);
  // Files that do not fit the model.
  const auto refused = [&](const std::string& key, int value) {
    const fs::path folder = scratch_dir("speech");
    nlohmann::json json = nlohmann::json::parse(read_file(listener.folder / "preprocessor_config.json"));
    json[key] = value;
    write_file_atomically(folder / "preprocessor_config.json", json.dump());
    SoundConfig s = listener.sound();
    return error_text([&] { read_feature_extraction(folder, s); });
  };
  CHECK(refused("feature_size", 80).find("20, as the model has it") != std::string::npos);
  CHECK(refused("chunk_length", 30).find("a sound of 100 frames") != std::string::npos);
  CHECK(refused("hop_length", 0).find("hop_length") != std::string::npos);
  CHECK(refused("dither", 1).find("dither") != std::string::npos);
  // Nested, as newer files have it.
  const fs::path folder = scratch_dir("speech");
  nlohmann::json nested;
  nested["feature_extractor"] = nlohmann::json::parse(read_file(listener.folder / "preprocessor_config.json"));
  write_file_atomically(folder / "processor_config.json", nested.dump());
  SoundConfig s{.mels = 20, .rows = 50};
  read_feature_extraction(folder, s);
  CHECK(s == listener.sound());
}

TEST_CASE("a request with a sound is written and read as JSON") {
  RunRequest request;
  request.model = "m";
  request.sound = "a/b.wav";
  const RunRequest again = run_request_from_json(to_json(request), "request");
  CHECK(again == request);
  RunRequest other = request;
  other.sound = "a/c.wav";
  CHECK(hash(other) != hash(request));
}

}  // namespace headscope::speech_test
