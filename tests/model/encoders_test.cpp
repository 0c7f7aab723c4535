// Encoders: what is asked of them and what they answer, beside transformers in float64 (tests/reference/families) and
// the plain definition.

#include <doctest/doctest.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "core/analysis/activation_patching.h"
#include "core/analysis/logit_lens.h"
#include "core/analysis/token_loss.h"
#include "core/analysis/token_path.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/edits/intervention.h"
#include "core/generate/generation.h"
#include "core/io/safetensors.h"
#include "core/io/trace_file.h"
#include "core/metrics/next_token.h"
#include "core/metrics/next_token_change.h"
#include "core/model/config_reader.h"
#include "core/model/family.h"
#include "core/model/formats/model_files.h"
#include "core/model/plain.h"
#include "core/model/weights.h"
#include "core/run/pass_memory.h"
#include "core/train/gradients.h"
#include "tests/model/parity.h"
#include "tests/support/paths.h"

namespace headscope::encoders_test {

using namespace testing;

namespace {

/// The tiny BERT with its tokenizer.
struct Encoder {
  Backend backend{2};
  LoadedModel loaded;
  Encoder() : loaded(load_model(reference("families/bert"), backend)) {}
  RunRequest of(const std::string& text) const {
    RunRequest request;
    request.model = reference("families/bert");
    request.text = text;
    return request;
  }
  std::shared_ptr<const Trace> trace(const RunRequest& request) { return run(loaded, request, Ctx{backend}); }
};

std::vector<std::string> labels(const Trace& trace) {
  std::vector<std::string> out;
  for (const Token& token : trace.tokens) out.push_back(token.label);
  return out;
}

}  // namespace

TEST_CASE("the second of two texts is told by its segment, as transformers does") {
  for (const char* family : {"families/bert",
                             "families/bert-untied",
                             "families/xlm_roberta",
                             "families/xlm_roberta_xl",
                             "families/albert",
                             "families/electra",
                             "families/electra-wide",
                             "families/ernie",
                             "families/nomic_bert",
                             "families/data2vec_text",
                             "families/roberta_prelayernorm",
                             "families/deberta",
                             "families/deberta_v2-apart",
                             "families/longformer",
                             "families/gte",
                             "families/jina_embeddings_v3",
                             "families/layoutlm",
                             "families/luke",
                             "families/big_bird",
                             "families/squeezebert",
                             "families/rembert",
                             "families/rembert-out",
                             "families/deberta_v2-convolution"}) {
    CAPTURE(family);
    Backend backend(2);
    const auto model = Model::load(reference(family), backend);
    const auto expected = SafetensorsFile::open(reference(family) / "expected.safetensors");
    const auto ids = expected.entry("tokens").items<std::int32_t>(),
               segments = expected.entry("segments").items<std::int32_t>();
    const Tensor truth = expected.tensor("logits_of_segments");
    const Tensor found = model->forward(Ctx{.backend = backend, .segments = segments}, ids).logits;
    CHECK(absolute(found, truth) < 1e-4);
    CHECK(absolute(found, expected.tensor("logits")) > 1e-2);  // it matters

    const ModelFiles files = ModelFiles::open(locate_model(reference(family)));
    const ModelConfig config = load_config(reference(family));
    const plain::Pass witness =
        plain::forward(config, read_weights(*files.weights, config), ids, {}, nullptr, segments);
    double worst = 0;
    for (Index i = 0; i < witness.logits.rows; ++i)
      for (Index j = 0; j < witness.logits.columns; ++j)
        worst = std::max(worst, std::abs(witness.logits.at(i, j) - static_cast<double>(truth.at(i, j))));
    CHECK(worst < 1e-5);
    const std::vector<std::int32_t> strange(ids.size(), 7);
    CHECK_THROWS_WITH_AS(model->forward(Ctx{.backend = backend, .segments = strange}, ids),
                         doctest::Contains("segment"), Error);
  }
}

TEST_CASE("a text stands between [CLS] and [SEP], a second one behind it, and [MASK] is read as itself") {
  Encoder e;
  const auto trace = e.trace(e.of("The cat [MASK] on the mat[SEP]it ran"));
  CHECK(fmt::format("{}", fmt::join(labels(*trace), " ")) ==
        "[CLS] ␣the ␣cat [MASK] ␣on ␣the ␣mat [SEP] ␣it ␣ran [SEP]");
  CHECK(trace->segments() == std::vector<std::int32_t>{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1});
  CHECK(trace->model.objective == Objective::masked_token);
  CHECK(trace->tokens[3].masked);
  CHECK(trace->tokens[3].original == -1);
  CHECK(answer_position(*trace) == 3);
  CHECK(targets(*trace).empty());  // nobody knows what stood there
  CHECK(trace->logits.dim(0) == 11);
  // The answer is the row of the mask, whatever else was asked to be kept.
  RunRequest last = e.of("The cat [MASK] on the mat[SEP]it ran");
  last.capture.all_logits = false;
  CHECK(top_next(*e.trace(last), 1).front().id == top_next(*trace, 1, 3).front().id);
}

TEST_CASE("positions that are asked for are masked, shown as something else, or left, and their loss is their own") {
  Encoder e;
  RunRequest request = e.of("the cat sat on the mat");
  request.masked = {{2, {}}, {-2, 9}, {4, 13}};  // cat masked, mat shown as token 9, `on` as it is
  const auto trace = e.trace(request);
  const auto plain = e.trace(e.of("the cat sat on the mat"));
  CHECK(trace->tokens[2].id == 3);
  CHECK(trace->tokens[6].id == 9);
  CHECK(trace->tokens[4].id == plain->tokens[4].id);
  CHECK(trace->tokens[2].original == plain->tokens[2].id);
  const std::vector<Target> asked = targets(*trace);
  REQUIRE(asked.size() == 3);
  const std::vector<double> losses = token_losses(*trace);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    CHECK(asked[i].token == plain->tokens[static_cast<std::size_t>(asked[i].row)].id);
    double sum = 0;
    for (Index v = 0; v < trace->logits.dim(1); ++v)
      sum += std::exp(static_cast<double>(trace->logits.at(asked[i].row, v)));
    CHECK(losses[i] ==
          doctest::Approx(std::log(sum) - static_cast<double>(trace->logits.at(asked[i].row, asked[i].token)))
              .epsilon(1e-5));
  }
  CHECK(read_token_losses(*trace).tokens.size() == 3);
  const std::vector<MaskedAnswer> answers = masked_answers(*trace);
  REQUIRE(answers.size() == 3);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    CHECK(answers[i].position == asked[i].row);
    CHECK(answers[i].original == asked[i].token);
    CHECK(answers[i].original_probability == doctest::Approx(std::exp(-losses[i])).epsilon(1e-6));
    const std::span<const float> row = trace->logits.select(0, asked[i].row).values();
    const auto most = std::ranges::max_element(row) - row.begin();
    CHECK(answers[i].best.id == most);
    CHECK(answers[i].right() == (most == asked[i].token));
  }
  CHECK(masked_answers(*plain).empty());
  CHECK(target_positions(*trace) == std::vector<double>{2, 4, 6});
  // Where nothing is asked, no row is the answer.
  CHECK_FALSE(answer_position(*plain));
  CHECK(top_next(*plain, 3).empty());
  CHECK(top_next(*plain, 3, 2).size() == 3);
  CHECK(std::isnan(logit_difference(*plain, 1, 2)));
  CHECK(std::isnan(next_token_change(*plain, *trace, 3).kl));
  CHECK(next_token_change(*trace, *trace, 3).kl == 0);
  CHECK_THROWS_WITH_AS(most_probable(*plain), doctest::Contains("masked token"), Error);
  CHECK_THROWS_WITH_AS(likely_answers(*plain, *trace), doctest::Contains("masked token"), Error);
  CHECK_THROWS_WITH_AS(likely_answers(*plain), doctest::Contains("masked token"), Error);
  CHECK_THROWS_WITH_AS(read_token_losses(*plain), doctest::Contains("masked"), Error);
  request.masked = {{40, {}}};
  CHECK_THROWS_WITH_AS(e.trace(request), doctest::Contains("position from 0 to 7"), Error);
  CHECK(run_request_from_json(to_json(request), "test") == request);
}

TEST_CASE(
    "what a text says of itself stays: its segments under a mask and in a part of it, [MASK] that it was written "
    "with") {
  Encoder e;
  const std::string two = "the cat sat[SEP]it ran";  // [CLS] the cat sat [SEP] it ran [SEP]
  const std::vector<std::int32_t> segments{0, 0, 0, 0, 0, 1, 1, 1};
  RunRequest request = e.of(two);
  CHECK(e.trace(request)->segments() == segments);
  const std::int32_t sep = e.trace(request)->tokens[4].id;
  for (const MaskedPosition& each : {MaskedPosition{4, {}}, MaskedPosition{2, sep}}) {
    request.masked = {each};
    CHECK(e.trace(request)->segments() == segments);
  }
  // The end of a long text is of the second one still.
  RunRequest part = e.of("the cat sat on the mat. the cat sat on the mat. the cat sat on the mat. [SEP]" +
                         std::string("it ran on the mat. it ran on the mat. it ran on the mat. it ran on the mat. ") +
                         "it ran on the mat. it ran on the mat. it ran on the mat. it ran on the mat.");
  part.too_long = RunRequest::TooLong::keep_last;
  const auto end = e.trace(part);
  REQUIRE(end->tokens.size() == 40);
  CHECK(end->tokens[0].segment == 0);
  for (std::size_t i = 1; i < 40; ++i) CHECK(end->tokens[i].segment == 1);

  // Where [MASK] was written nobody knows what stood there, asked for or not.
  RunRequest written = e.of("the [MASK] sat");
  written.masked = {{2, {}}, {3, {}}};
  const auto masked = e.trace(written);
  CHECK(masked->tokens[2].masked);
  CHECK(masked->tokens[2].original == -1);
  REQUIRE(targets(*masked).size() == 1);
  CHECK(targets(*masked)[0].row == 3);
  const std::vector<Token> tokens = tokenize(e.loaded, e.of("the [MASK] sat[SEP]it ran"));
  const std::vector<std::int32_t> marks = marks_of(e.loaded.tokenizer.get());
  CHECK(marks.size() == 3);
  for (std::uint64_t seed = 1; seed <= 60; ++seed)
    for (const MaskedPosition& each : draw_masked(tokens, marks, 40, seed, {.share = 0.5}))
      CHECK(std::ranges::find(marks, tokens[static_cast<std::size_t>(each.position)].id) == marks.end());

  // Ids are whole, unless the request says that something stands before them; then something stands behind, too.
  RunRequest ids;
  ids.ids = {7, 9};
  CHECK(e.trace(ids)->tokens.size() == 2);
  ids.add_bos = true;
  CHECK(fmt::format("{}", fmt::join(e.trace(ids)->ids(), " ")) == fmt::format("{} 7 9 {}", marks[0], marks[1]));
  ids.ids_are_whole = true;
  CHECK(e.trace(ids)->tokens.size() == 2);
  CHECK_THROWS_WITH_AS(run_request_from_json(R"({"model": "m", "text": "a", "masked": [{"shown": 3}]})", "test"),
                       doctest::Contains("position"), Error);
}

TEST_CASE("masked positions are of one text, and a pass that is known is of one choice of them") {
  Encoder e;
  RunRequest request = e.of("the cat sat on the mat");
  request.masked = {{5, {}}};
  request.edits = {parse_intervention("0.0: patch z from \"it ran\"", "test")};
  PassMemory memory;
  const auto compare = [&] {
    const auto known = run(e.loaded, request, Ctx{e.backend}, memory), anew = e.trace(request);
    CHECK(known->ids() == anew->ids());
    CHECK(absolute(known->logits, anew->logits) == 0);
  };
  compare();
  for (const int position : {3, 2, 6}) {
    request.masked = {{position, {}}};
    compare();
  }
  request.text = "the cat sat[SEP]it ran";
  request.masked = {{4, {}}};
  compare();
  request.text = "the cat sat[MASK]it ran";  // the same ids, other segments
  request.masked.clear();
  compare();
}

TEST_CASE("another model is asked for the same masked tokens where it reads the same tokens, else for none") {
  Encoder e;
  RunRequest request = e.of("the cat sat on the mat");
  request.masked = {{2, {}}, {5, 9}};
  CHECK(masks_for(e.loaded, e.loaded, request) == request.masked);
  LoadedModel other = load_model(source_dir() / "models" / "tiny-bert", e.backend);  // an encoder with other tokens
  CHECK(masks_for(other, e.loaded, request).empty());
  other = load_model(source_dir() / "models" / "tiny-gpt2", e.backend);
  CHECK(masks_for(other, e.loaded, request).empty());
}

TEST_CASE("of ten thousand drawn tokens 80 % are masked, 10 % another, 10 % as they are; what frames a text is never") {
  std::vector<Token> tokens(202);
  for (std::size_t i = 1; i + 1 < tokens.size(); ++i) tokens[i] = {static_cast<std::int32_t>(i), "", "", 0, 1};
  int all = 0, masked = 0, other = 0, same = 0;
  for (std::uint64_t seed = 1; all < 10000; ++seed) {
    const auto drawn = draw_masked(tokens, {}, 100000, seed);
    CHECK(drawn.size() == 30);  // 15 % of 200
    CHECK(std::ranges::is_sorted(drawn));
    CHECK(std::ranges::adjacent_find(drawn, {}, &MaskedPosition::position) == drawn.end());
    for (const MaskedPosition& each : drawn) {
      CHECK(each.position > 0);
      CHECK(each.position < 201);
      ++all;
      if (!each.shown)
        ++masked;
      else
        ++(*each.shown == tokens[static_cast<std::size_t>(each.position)].id ? same : other);
    }
  }
  const auto share = [&](int count) { return static_cast<double>(count) / all; };
  CHECK(std::abs(share(masked) - 0.8) < 4 * std::sqrt(0.8 * 0.2 / all));  // four standard deviations
  CHECK(std::abs(share(other) - 0.1) < 4 * std::sqrt(0.1 * 0.9 / all));
  CHECK(std::abs(share(same) - 0.1) < 4 * std::sqrt(0.1 * 0.9 / all));
  CHECK(draw_masked(tokens, {}, 100000, 5) == draw_masked(tokens, {}, 100000, 5));
  CHECK(draw_masked({}, {}, 10, 1).empty());
}

TEST_CASE("a long text keeps what stands behind it") {
  Encoder e;
  std::string text;
  for (int i = 0; i < 60; ++i) text += i % 2 ? "cat " : "the ";
  RunRequest request = e.of(text);
  CHECK_THROWS_AS(e.trace(request), TextTooLong);
  request.too_long = RunRequest::TooLong::keep_first;
  const auto first = e.trace(request);
  CHECK(first->tokens.size() == 40);
  CHECK(first->tokens.front().label == "[CLS]");
  CHECK(first->tokens.back().label == "[SEP]");
  request.too_long = RunRequest::TooLong::keep_last;
  const auto last = e.trace(request);
  CHECK(last->tokens.size() == 40);
  CHECK(last->tokens.front().label == "[CLS]");
  CHECK(last->tokens.back().label == "[SEP]");
}

TEST_CASE("an encoder does not continue texts, and a decoder is not asked for masked tokens") {
  Encoder e;
  CHECK_THROWS_WITH_AS(Generator(e.loaded), doctest::Contains("encoder"), Error);
  Subject decoder(reference("families/qwen2"));
  RunRequest request;
  request.ids = {3, 5, 7};
  request.masked = {{1, {}}};
  CHECK_THROWS_WITH_AS(run(decoder.loaded, request, Ctx{*decoder.backend}), doctest::Contains("decoder"), Error);
}

TEST_CASE("a file of a bare encoder gives maps and streams, and no logits") {
  const std::filesystem::path folder = scratch_dir("bare-encoder");
  for (const char* file : {"model.safetensors", "tokenizer.json"})
    std::filesystem::copy_file(reference("families/bert") / file, folder / file);
  std::string config = read_file(reference("families/bert") / "config.json");
  config.replace(config.find('{'), 1, "{\"architectures\": [\"BertModel\"],");
  write_file_atomically(folder / "config.json", config);
  Backend backend(2);
  const LoadedModel loaded = load_model(folder, backend);
  CHECK_FALSE(loaded.model->config().predicts);
  RunRequest request;
  request.text = "the cat sat";
  request.capture.sites = {SiteKind::resid_post};
  const auto trace = run(loaded, request, Ctx{backend});
  CHECK_FALSE(trace->logits.defined());
  CHECK(trace->model.objective == Objective::nothing);
  CHECK(trace->maps.size() == 9);
  CHECK(top_next(*trace, 5).empty());
  CHECK(token_losses(*trace).empty());
  request.capture.sites = {SiteKind::final_normalized};
  CHECK_THROWS_AS(run(loaded, request, Ctx{backend}), Error);

  // What asks for a token says so; what does not works.
  const Ctx ctx{backend};
  const Model& model = *loaded.model;
  request.capture.sites = logit_lens_sites(model);
  const auto recorded = run(loaded, request, ctx);
  const auto refused = [](auto&& what) { CHECK_THROWS_WITH_AS(what(), doctest::Contains("without the head"), Error); };
  refused([&] { most_probable(*trace); });
  refused([&] { logit_lens(model, ctx, *recorded, {}, 3); });
  refused([&] { input_gradients(model, ctx, trace->ids(), {}); });
  refused([&] { likely_answers(*trace, *trace); });
  CHECK(model.bare_products(backend, 5, 5).operations > 0);
  RunRequest path = request;
  path.capture = {.maps = MapStorage::none, .sites = token_path_sites(model)};
  const TokenPath read = read_token_path(model, *run(loaded, path, ctx), 1);
  CHECK(read.stages.size() > 3);
  CHECK(read.answers.empty());
}

namespace {
/// The fixture of this family with a config.json that begins with `keys`, and without the tensors of that prefix.
std::filesystem::path without(const std::string& family, const std::string& prefix, const std::string& keys) {
  std::string name = family + prefix;
  std::ranges::replace(name, '.', '-');
  const std::filesystem::path from = reference("families") / family, folder = scratch_dir("without-" + name);
  const SafetensorsFile file = SafetensorsFile::open(from / "model.safetensors");
  SafetensorsWriter writer;
  for (const auto& [tensor, entry] : file.tensors())
    if (!tensor.starts_with(prefix)) writer.add(tensor, file.tensor(tensor));
  writer.write(folder / "model.safetensors");
  std::string config = read_file(from / "config.json");
  config.replace(config.find('{'), 1, "{" + keys);
  write_file_atomically(folder / "config.json", config);
  return folder;
}
}  // namespace

TEST_CASE("files without a head open as bare encoders, whatever their config.json calls them") {
  struct Bare {
    const char *family, *head, *keys;
  };
  // Sentence encoders say nothing, or that they tell masked tokens; the discriminator of ELECTRA says what it is.
  for (const auto& [family, head, keys] :
       {Bare{"bert", "cls.", ""},
        Bare{"bert", "cls.", R"("architectures": ["BertForMaskedLM"],)"},
        Bare{"mpnet", "lm_head.", R"("architectures": ["MPNetForMaskedLM"],)"},
        Bare{"xlm_roberta", "lm_head.", R"("architectures": ["XLMRobertaModel"],)"},
        Bare{"electra", "generator_", R"("architectures": ["ElectraForPreTraining"],)"},
        Bare{"albert", "predictions.", ""},
        Bare{"distilbert", "vocab_", R"("architectures": ["DistilBertForMaskedLM"],)"},
        Bare{"roberta", "lm_head.", R"("architectures": ["RobertaForMaskedLM"],)"},
        Bare{"nomic_bert", "cls.", R"("architectures": ["NomicBertModel"],)"},
        Bare{"deberta", "cls.", R"("architectures": ["DebertaModel"],)"},
        Bare{"deberta_v2", "lm_predictions.", ""},
        Bare{"deberta_v2-apart", "cls.", R"("architectures": ["DebertaV2ForMaskedLM"],)"},
        Bare{"gte", "lm_head.", ""},
        Bare{"jina_embeddings_v3", "lm_head.", ""},
        Bare{"new", "lm_head.", R"("is_decoder": false,)"},
        Bare{"layoutlm", "cls.", R"("architectures": ["LayoutLMModel"],)"},
        Bare{"luke", "lm_head.", R"("architectures": ["LukeModel"],)"},
        Bare{"squeezebert", "cls.", ""},
        Bare{"rembert", "cls.", R"("architectures": ["RemBertForMaskedLM"],)"},
        Bare{"deberta_v2-convolution", "cls.", ""},
        Bare{"big_bird-sparse", "cls.", R"("architectures": ["BigBirdForPreTraining"],)"}}) {
    CAPTURE(std::string(family) + " " + keys);
    const std::filesystem::path folder = without(family, head, keys);
    Backend backend(2);
    const LoadedModel bare = load_model(folder, backend), whole = load_model(reference("families") / family, backend);
    CHECK(bare.model->info().objective == Objective::nothing);
    CHECK(whole.model->info().objective == Objective::masked_token);
    RunRequest request;
    request.ids = {7, 9, 30, 9, 12};
    request.capture.sites = {SiteKind::resid_post};
    const auto found = run(bare, request, Ctx{backend}), all = run(whole, request, Ctx{backend});
    CHECK_FALSE(found->logits.defined());
    const Site last{SiteKind::resid_post, whole.model->config().dims.layers - 1};
    CHECK(absolute(found->sites.at(last), all->sites.at(last)) == 0);
    CHECK(absolute(found->map({1, 2}).to_dense(), all->map({1, 2}).to_dense()) == 0);
  }
  // What else is missing is said, as before.
  Backend backend(1);
  CHECK_THROWS_WITH_AS(load_model(without("mpnet", "mpnet.encoder.rel", ""), backend),
                       doctest::Contains("mpnet.encoder.relative_attention_bias.weight"), Error);
  CHECK_THROWS_WITH_AS(load_model(without("bert", "cls.predictions.bias", ""), backend),
                       doctest::Contains("cls.predictions.bias"), Error);
}

TEST_CASE("a trace of embeddings of a width of their own is written and read, and its plan counts them") {
  for (const char* family : {"families/albert", "families/electra-wide"}) {
    Backend backend(2);
    const LoadedModel loaded = load_model(reference(family), backend);
    const Index width = loaded.model->config().embedding_width;
    RunRequest request;
    request.ids = {7, 9, 30, 9, 12};
    request.capture.sites = {SiteKind::embed, SiteKind::final_normalized};
    const auto trace = run(loaded, request, Ctx{backend});
    CHECK(trace->sites.at({SiteKind::embed}).shape() == Shape{5, width});
    CHECK(trace->sites.at({SiteKind::final_normalized}).shape() == Shape{5, width});
    const ModelDims dims = loaded.model->info().dims;
    const auto bytes = static_cast<std::size_t>(5 * 4 * width);
    CHECK(site_bytes(SiteKind::embed, dims, 5, 5) == bytes);
    CHECK(site_bytes(SiteKind::final_normalized, dims, 5, 5) == bytes);
    CHECK(site_bytes(SiteKind::resid_pre, dims, 5, 5) == 5 * 4 * 18);
    const std::filesystem::path file = scratch_dir("narrow-trace") / "trace.safetensors";
    write_trace(*trace, file, {.sites = request.capture.sites});
    const auto again = open_trace(file);
    CHECK(again->model.dims.d_embed == width);
    for (const SiteKind kind : {SiteKind::embed, SiteKind::final_normalized})
      CHECK(absolute(again->sites.at({kind}), trace->sites.at({kind})) == 0);
  }
}

}  // namespace headscope::encoders_test
