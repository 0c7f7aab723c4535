// What a model says of itself adds up, whatever it is made of.

#include "core/analysis/model_facts.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <limits>
#include <memory>
#include <string>

#include "core/model/parameter_parts.h"
#include "tests/support/paths.h"

namespace headscope::model_facts_test {

namespace fs = std::filesystem;

TEST_CASE("the parts of every family are all of its parameters") {
  int models = 0;
  for (const char* folder : {"families", "vision", "encoder-decoders"})
    for (const auto& entry : fs::directory_iterator(testing::reference(folder))) {
      if (!fs::exists(entry.path() / "config.json")) continue;
      CAPTURE(entry.path().string());
      const ModelFacts facts = model_facts(entry.path());
      std::int64_t sum = 0;
      for (const ModelFacts::Part& part : facts.parts) sum += part.parameters;
      CHECK(sum == facts.parameters);
      ++models;
    }
  CHECK(models > 50);
}

TEST_CASE("of a state space the mixers are counted, with their gated norms among the norms") {
  for (const char* name : {"mamba", "mamba2"}) {
    CAPTURE(name);
    const ModelFacts facts = model_facts(testing::reference("families") / name);
    const ParameterParts counted = parameter_parts(facts.config);
    for (const ModelFacts::Part& part : facts.parts) {
      if (part.name == "state space") CHECK(part.parameters == counted.attention);
      if (part.name == "norms") CHECK(part.parameters == counted.norms);
      CHECK(part.name != "attention");
    }
  }
}

namespace {
/// What is said of a plain model in which something was changed.
template <class Change>
std::string said(Change change) {
  ModelConfig c;
  c.family = "gpt2";
  c.dims = {.layers = 4, .heads = 2, .kv_heads = 2, .d_head = 8, .d_model = 16, .d_mlp = 32, .vocab = 50};
  change(c);
  return switches(c);
}
}  // namespace

TEST_CASE("what a model does that GPT-2 and Llama do not is said in words, each where it holds and nowhere else") {
  CHECK(said([](ModelConfig&) {}).empty());
  CHECK(said([](ModelConfig& c) { c.family = "other"; }).empty());
  CHECK(said([](ModelConfig& c) { c.dims.parallel = true; }) == "attention and MLP in parallel behind a norm each");
  CHECK(said([](ModelConfig& c) { c.dims.parallel = c.shared_norm = true; }) ==
        "attention and MLP in parallel behind one norm");
  CHECK(said([](ModelConfig& c) { c.norm_place = NormPlace::both; }) == "norms before and behind attention and MLP");
  CHECK(said([](ModelConfig& c) { c.norm_place = NormPlace::behind; }) == "norms behind attention and MLP only");
  CHECK(said([](ModelConfig& c) { c.norm_place = NormPlace::after_sum; }) ==
        "norms of the stream itself, behind attention and MLP");
  CHECK(said([](ModelConfig& c) { c.norm_weights = false; }) == "norms without weights");
  CHECK(said([](ModelConfig& c) { c.norm_weights = false, c.norm = NormKind::none; }).empty());
  CHECK(said([](ModelConfig& c) { c.final_rms = true; }) == "the last norm an RMSNorm");
  CHECK(said([](ModelConfig& c) { c.final_rms = true, c.norm = NormKind::rms_norm; }).empty());
  CHECK(said([](ModelConfig& c) { c.mlp_norm = c.norm_gain_plus_one = c.embedding_norm = true; }) ==
        "a norm behind the activation, norm gains added to 1, a norm behind the embedding");
  CHECK(said([](ModelConfig& c) { c.embedding_width = 1; }) ==
        "embeddings of 1 numbers, widened to the stream's by a matrix");
  CHECK(said([](ModelConfig& c) { c.causal = false; }) ==
        "every token sees the later ones too, and logits say what stands at a position");
  CHECK(said([](ModelConfig& c) { c.causal = false, c.stack = Stack::encoder; }) ==
        "every token sees the later ones too");
  CHECK(said([](ModelConfig& c) { c.predicts = false; }) == "no logits: the file ends with the last block");
  CHECK(said([](ModelConfig& c) { c.predicts = false, c.causal = false, c.stack = Stack::encoder; }) ==
        "every token sees the later ones too");
  CHECK(said([](ModelConfig& c) { c.segments = 1; }).empty());
  CHECK(said([](ModelConfig& c) { c.segments = 2, c.head_layer = true; }) ==
        "2 kinds of segments, a layer of its own before the logits");
  CHECK(said([](ModelConfig& c) { c.position = PositionKind::buckets; }) == "32 buckets of distances up to 128");
  CHECK(said([](ModelConfig& c) {
          c.encoder = std::make_shared<ModelConfig>(c);
          c.decoder_start = 7;
        }) == "attention to a source, which an encoder of 4 layers reads; targets begin with token 7");
}

TEST_CASE("pictures, state spaces, rotations, windows and experts in words") {
  const auto seen = [&](int leading, int heads, bool predicts) {
    return said([&](ModelConfig& c) {
      c.causal = false, c.predicts = predicts;
      c.vision.emplace();
      c.vision->height = 32, c.vision->width = 64, c.vision->leading = leading, c.vision->class_heads = heads;
    });
  };
  CHECK(seen(1, 1, true) == "reads pictures of 64 × 32 pixels as 4 × 2 patches behind CLS, classes read at CLS");
  CHECK(seen(2, 1, true) ==
        "reads pictures of 64 × 32 pixels as 4 × 2 patches behind CLS and a distillation token, "
        "classes read at CLS");
  CHECK(seen(2, 2, true).ends_with(", classes: the mean of what both tokens say"));
  CHECK(seen(1, 1, false) ==
        "reads pictures of 64 × 32 pixels as 4 × 2 patches behind CLS, no logits: the file ends "
        "with the last block");

  const auto behind = [&](int leading, int registers, int stored_side) {
    const std::string words = said([&](ModelConfig& c) {
      c.causal = c.predicts = false;
      c.vision.emplace();
      c.vision->height = c.vision->width = 32;
      c.vision->leading = leading, c.vision->registers = registers, c.vision->stored_side = stored_side;
    });
    const std::size_t at = words.find("behind ") + 7;
    return words.substr(at, words.find(',') - at);
  };
  CHECK(behind(0, 0, 0) == "no other token");
  CHECK(behind(5, 4, 2) == "CLS and 4 registers");
  CHECK(behind(2, 0, 2) == "2 CLS tokens");
  CHECK(behind(8, 0, 2) == "8 CLS tokens");
  CHECK(said([](ModelConfig& c) {
          c.causal = c.predicts = false;
          c.bare_end = true;
          c.vision.emplace().place_biases = true;
          c.position_buckets = 732;
        })
            .ends_with(
                "behind CLS, scores gain one of 732 learned numbers, by the way from patch to patch, no norm behind "
                "the last block, no logits: the file ends with the last block"));
  CHECK(said([](ModelConfig& c) { c.block_size = 64, c.context = 704; }) ==
        "texts of up to 704 tokens, which every token sees whole; of longer ones it would see blocks");
  CHECK(said([](ModelConfig& c) { c.groups.v = 2; }) == "products in groups of inputs and outputs");
  CHECK(said([](ModelConfig& c) { c.tasks = 3; }) == "the first of the tasks' embeddings with every position");
  CHECK(said([](ModelConfig& c) { c.tasks = 3, c.task_tables = 4; }) ==
        "no places on a page are read: every token stands in a box of size 0 in its corner");

  using Lane = StateSpaceConfig::Lane;
  const auto mixed = [&](Lane lane, int groups, double least, double most) {
    return said([&](ModelConfig& c) {
      c.dims.d_inner = 16, c.dims.d_state = 4, c.dims.state_groups = groups;
      c.state_space = StateSpaceConfig{.lane = lane, .convolution = 3, .least_step = least, .most_step = most};
    });
  };
  const double endless = std::numeric_limits<double>::infinity();
  const std::string channels =
      "no attention: a state space of 16 channels, 4 states each, behind a convolution of 3 tokens, shown as 2 heads "
      "of "
      "8 neighbouring channels";
  const std::string heads = "no attention: a state space of 2 heads, 4 states each, behind a convolution of 3 tokens";
  CHECK(mixed(Lane::channel, 2, 0, endless) == channels);
  CHECK(mixed(Lane::head, 1, 0, endless) == heads);
  CHECK(mixed(Lane::head, 2, 0, endless) == heads + ", B and C of 2 groups");
  CHECK(mixed(Lane::head, 1, 0.5, endless) == heads + ", steps from 0.5 to inf");
  CHECK(mixed(Lane::head, 1, 0, 2) == heads + ", steps from 0 to 2");
  CHECK(said([](ModelConfig& c) {
          c.dims.d_inner = 16, c.dims.d_state = 4, c.dims.state_groups = 2;
          c.state_space = StateSpaceConfig{.lane = Lane::head, .convolution = 1, .steady = true};
        }).ends_with(" layers linear attention of 2 heads that decays at each one's own pace"));

  CHECK(said([](ModelConfig& c) { c.dims.kv_latent = 6, c.dims.d_value = 5; }) ==
        "keys and values of 5 dimensions made of a latent of 6 numbers per token");
  CHECK(said([](ModelConfig& c) { c.dims.kv_latent = 6, c.dims.q_latent = 1; }) ==
        "keys and values of 8 dimensions made of a latent of 6 numbers per token, queries of one of 1");
  CHECK(said([](ModelConfig& c) { c.qk_norm = QkNorm::per_head; }) == "queries and keys normalised by head");
  CHECK(said([](ModelConfig& c) { c.qk_norm = QkNorm::full_width; }) == "queries and keys normalised over all heads");
  CHECK(said([](ModelConfig& c) { c.clip_qkv = 0.5; }) == "queries, keys and values cut to ± 0.5");
  // YaRN: √(1/t) = 0.1 ln 4 + 1 = 1.1386
  CHECK(said([](ModelConfig& c) {
          c.position = PositionKind::rotary;
          c.rotary.scaling = RotaryConfig::Scaling::yarn, c.rotary.factor = 4, c.rotary.original_context = 64;
          c.rotary.width = 4, c.rotary.layout = RotaryLayout::interleaved;
          c.layer_rotary.assign(4, c.rotary);
          c.layer_turns = {true, false, true, false};
        }) ==
        "rotations stretched 4-fold (YaRN), queries and keys times 1.139, 4 of 8 dimensions of a head rotated, "
        "adjacent pairs rotated, layers with a window rotated by another base, 2 of 4 layers not rotated");
  CHECK(said([](ModelConfig& c) {
          c.position = PositionKind::rotary;
          c.windows = {0, 4, 4, 4};
          c.layer_rotary.assign(4, c.rotary);
          c.layer_rotary[2].base = 60;
        }) == "layers rotated by bases of their own, 3 of 4 layers see a window of 4 tokens");
  CHECK(said([](ModelConfig& c) {
          c.position = PositionKind::rotary;
          c.rotary.scaling = RotaryConfig::Scaling::longrope, c.rotary.original_context = 64;
        }) == "rotations searched for (LongRoPE), others in texts of more than 64 tokens");
  CHECK(said([](ModelConfig& c) { c.windows = {0, 1, 0, 9}; }) == "2 of 4 layers see a window of 9 tokens");

  const std::string experts = "each token through 2 of 8 experts of width 12";
  CHECK(said([](ModelConfig& c) { c.experts = {.count = 8, .per_token = 2, .width = 12}; }) ==
        "in 4 of 4 layers " + experts);
  CHECK(said([](ModelConfig& c) {
          c.experts = {.count = 8, .per_token = 2, .width = 12, .shared_width = 1, .layers = {false, true, true, true}};
          c.experts.scale = 2.5, c.experts.groups = 4, c.experts.groups_kept = 3;
        }) == "in 3 of 4 layers " + experts +
                  ", and one of width 1 for all, of the best 3 of 4 groups, their weights times 2.5");

  CHECK(
      said([](ModelConfig& c) { c.gate_limit = 7, c.score_scale = 0.25, c.score_cap = 30, c.learned_sinks = true; }) ==
      "gates cut at 7, scores times 0.25, scores bent by a soft cap of 30, a learned sink in the softmax of every "
      "head");
  CHECK(said([](ModelConfig& c) { c.family = "t5", c.scale_by_inverse_sqrt_d = false; }) ==
        "scores not divided by √d_head");
  CHECK(said([](ModelConfig& c) { c.family = "t5", c.scale_by_inverse_sqrt_d = false, c.score_scale = 1; }) ==
        "scores times 1");
  CHECK(said([](ModelConfig& c) {
          c.logit_cap = 50, c.embedding_scale = 4, c.residual_scale = 2, c.logit_scale = 3;
        }) == "logits bent by a soft cap of 50, embeddings times 4, what blocks add times 2, logits times 3");
}

TEST_CASE("what a file of tensors holds: bytes and tensors of each type") {
  const ModelFacts facts = model_facts(testing::reference("gpt2-f16"));
  std::uint64_t bytes = 0;
  int count = 0;
  for (const auto& [name, entry] : facts.tensors->tensors()) bytes += entry.size, ++count;
  CHECK(facts.stored.bytes == bytes);
  CHECK(facts.stored.count == static_cast<std::size_t>(count));
  int by_type = 0;
  for (const auto& [type, held] : facts.stored.types) by_type += held;
  CHECK(by_type == count);
  StoredTensors two;
  two.types = {{"F32", 28}, {"Q4_K", 3}};
  CHECK(two.in_words() == "28 F32, 3 Q4_K");
}

}  // namespace headscope::model_facts_test
