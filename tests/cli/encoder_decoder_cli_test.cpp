// An encoder-decoder on the command line: a source beside the target, each part of a run by its name, every tool with
// an answer or with one sentence why not.

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/base/json.h"
#include "core/generate/beam_search.h"
#include "core/io/trace_file.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace headscope::encoder_decoder_cli_test {

using namespace testing;
using nlohmann::json;

namespace {
const std::string source = "the old man sees a dog", target = "a small dog";

Finished with(std::vector<std::string> words, const std::string& model = "t5") {
  words.insert(words.end(), {"-m", (reference("encoder-decoders") / model).string(), "--source", source});
  return run_cli(words);
}

json answer(std::vector<std::string> words, const std::string& model = "t5") {
  words.emplace_back("--json");
  const Finished done = with(std::move(words), model);
  CAPTURE(done.err);
  REQUIRE(done.code == 0);
  return json::parse(done.out);
}

/// One sentence: what was expected, what was found.
bool one_sentence(const Finished& done) {
  return done.code != 0 && done.out.empty() && std::ranges::count(done.err, '\n') <= 2 &&
         done.err.find("expected") != std::string::npos;
}
}  // namespace

TEST_CASE("run: the decoder answers, and each part of the run is named") {
  const json whole = answer({"run", "-t", target});
  CHECK(whole["model"]["stack"] == "dec");
  CHECK(whole["tokens"].size() == 4);  // the first token of every target, then three words
  CHECK(whole["tokens"][0]["id"] == 0);
  CHECK(whole["source_tokens"].back()["label"] == "</s>");
  CHECK(whole["next"].size() == 10);
  const json encoder = answer({"run", "-t", target, "--part", "enc"});
  CHECK(encoder["model"]["layers"] == 2);
  CHECK(encoder["model"]["stack"] == "enc");
  CHECK(encoder["next"].empty());
  const json cross = answer({"run", "-t", target, "--part", "cross"});
  CHECK(cross["query_tokens"].size() == 4);
  CHECK(cross["tokens"].size() == whole["source_tokens"].size());
  CHECK(with({"run", "-t", target, "--part", "cross"}).out.find("cross-attention, 3 layers") != std::string::npos);
  // A target need not be there: then the model says how it begins.
  CHECK(answer({"run"})["tokens"].size() == 1);
  // An edit of a stack by its address.
  CHECK(answer({"run", "-t", target, "--edit", "enc.1.0: ablate zero"})["next"] != whole["next"]);
}

TEST_CASE("a source where there is no encoder, and none where there is one, are refused in a sentence") {
  const std::string t5 = (reference("encoder-decoders") / "t5").string();
  CHECK(run_cli({"run", "-m", t5, "-t", target}).err.find("--source") != std::string::npos);
  CHECK(one_sentence(run_cli({"run", "-m", t5, "-t", target})));
  CHECK(one_sentence(run_cli({"run", "-m", "tiny-gpt2", "-t", target, "--source", source})));
  CHECK(one_sentence(run_cli({"run", "-m", "tiny-gpt2", "-t", target, "--part", "cross"})));
  CHECK(one_sentence(run_cli({"run", "-m", "tiny-gpt2", "-t", target, "--edit", "enc.0.0: ablate zero"})));
}

TEST_CASE("every reading tool answers for every part, or says in a sentence why not") {
  for (const std::string model : {"t5", "marian"})
    for (const std::string part : {"enc", "dec", "cross"})
      for (const std::string tool :
           {"lens",        "attribution", "weighted", "circuits", "rollout", "flow",         "gradients",
            "composition", "singular",    "few-bits", "sinks",    "massive", "alternatives", "residual",
            "norms",       "ffn",         "experts",  "path",     "loss",    "alignment"}) {
        CAPTURE(model);
        CAPTURE(part);
        CAPTURE(tool);
        std::vector<std::string> words{"read", tool, "-t", target, "--part", part, "--json"};
        if (tool == "circuits" || tool == "alternatives") words.insert(words.end(), {"--head", "0.1"});
        if (tool == "massive") words.insert(words.end(), {"--threshold", "2"});
        const Finished done = with(words, model);
        CAPTURE(done.err);
        if (done.code == 0)
          CHECK_FALSE(json::parse(done.out)["rows"].empty());
        else
          CHECK(one_sentence(done));
        // What is about maps alone answers everywhere that it can.
        const bool of_maps = part == "cross" ? tool == "weighted" || tool == "alignment"
                                             : tool == "weighted" || tool == "rollout" || tool == "flow" ||
                                                   tool == "sinks" || tool == "residual" || tool == "massive";
        if (of_maps) CHECK(done.code == 0);
      }
}

TEST_CASE("sweeps reach the heads of every stack") {
  for (const std::string part : {"enc", "dec", "cross"}) {
    CAPTURE(part);
    const json heads = answer({"sweep", "ablate", "-t", target, "--part", part, "--by", "zero"})["heads"];
    CHECK(heads.size() == (part == "enc" ? 6 : 9));
    CHECK(std::ranges::any_of(heads, [](const json& head) { return head["loss_change"] != 0; }));
    CHECK(with({"sweep", "temperature", "-t", target, "--part", part, "--count", "2"}).code == 0);
    CHECK(with({"sweep", "circuit", "-t", target, "--part", part, "--by", "zero"}).code == 0);
    const Finished patch =
        run_cli({"sweep", "patch", "-m", (reference("encoder-decoders") / "t5").string(), "--clean", source,
                 "--corrupted", "the small man sees a dog", "--target", target, "--part", part, "--site", "z"});
    CAPTURE(patch.err);
    CHECK(patch.code == 0);
  }
}

TEST_CASE(
    "patching by position: of the encoder its source's tokens, of the decoder and of cross-attention the target's") {
  for (const std::string part : {"enc", "dec", "cross"}) {
    CAPTURE(part);
    const std::vector<std::string> words{
        "sweep",    "patch",    "-m",          (reference("encoder-decoders") / "t5").string(),
        "--clean",  source,     "--corrupted", "the small man sees a dog",
        "--target", target,     "--part",      part,
        "--site",   "resid_pre"};
    std::vector<std::string> as_json = words;
    as_json.emplace_back("--json");
    const Finished text = run_cli(words), finished = run_cli(as_json);
    CAPTURE(finished.err);
    REQUIRE(text.code == 0);
    REQUIRE(finished.code == 0);
    const json out = json::parse(finished.out);
    const std::size_t columns = out["recovered"][0].size();
    CHECK(columns == out["corrupted"].size());
    CHECK(columns == out["partner"].size());
    CHECK(out["corrupted"].back()["label"] == (part == "enc" ? "</s>" : "␣dog"));
    if (part != "enc") continue;
    // The adjective's embedding is where the sources differ: there the clean answer comes back in the first layer.
    CHECK(out["recovered"][0][1].get<double>() == doctest::Approx(1).epsilon(1e-3));
    CHECK(out["recovered"][0][0].get<double>() == doctest::Approx(0));
    CHECK(text.out.find("small") != std::string::npos);
  }
}

TEST_CASE("pictures name the stack that they are of") {
  const auto folder = scratch_dir("cli-stacks");
  const std::pair<const char*, const char*> names[] = {{"enc", "encoder.blocks.1.attn.hook_pattern[2]"},
                                                       {"dec", "decoder.blocks.1.attn.hook_pattern[2]"},
                                                       {"cross", "decoder.blocks.1.cross_attn.hook_pattern[2]"}};
  for (const auto& [part, name] : names)
    for (const char* kind : {"", "--bars", "--arcs"}) {
      CAPTURE(part);
      CAPTURE(kind);
      std::vector<std::string> words{
          "render", "-t", target, "--part", part, "--head", "1.2", "-o", (folder / "head.svg").string()};
      if (*kind) words.emplace_back(kind);
      if (std::string(kind) == "--bars") words.insert(words.end(), {"--row", "1"});
      const Finished done = with(words);
      CAPTURE(done.err);
      REQUIRE(done.code == 0);
      const std::string svg = read_file(folder / "head.svg");
      CHECK(svg.find(name) != std::string::npos);
      CHECK(svg.find("· blocks.1") == std::string::npos);
    }
}

TEST_CASE("generate --beams: the table, CSV, JSON with every candidate, and the tree as a picture") {
  const json out = answer({"generate", "--beams", "3", "--tokens", "5", "--length-penalty", "0.5"});
  REQUIRE(out["beams"].size() == 3);
  Backend backend(1);
  const LoadedModel model = load_model(reference("encoder-decoders") / "t5", backend);
  RunRequest like;
  like.source = source;
  const BeamTree tree =
      beam_search(model, std::vector<std::int32_t>{0},
                  {.width = 3, .length_penalty = 0.5, .tokens = 5, .end = model.tokenizer->eos()}, like, Ctx{backend});
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(out["beams"][i]["score"].get<double>() == doctest::Approx(tree.beams[i].score).epsilon(1e-6));
    CHECK(out["beams"][i]["sum"].get<double>() == doctest::Approx(tree.nodes[tree.beams[i].node].sum).epsilon(1e-6));
    CHECK(out["beams"][i]["tokens"] == tree.tokens(tree.beams[i].node).size());
  }
  REQUIRE(out["candidates"].size() == tree.nodes.size());
  for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
    CHECK(out["candidates"][i]["token"] == tree.nodes[i].token);
    CHECK(out["candidates"][i]["parent"].is_null() == !tree.nodes[i].parent);
  }
  const Finished csv = with({"generate", "--beams", "2", "--tokens", "3", "--csv"});
  REQUIRE(csv.code == 0);
  CHECK(csv.out.starts_with("beam,score,sum,probability,tokens,ends,ids,text\n"));
  CHECK(std::ranges::count(csv.out, '\n') == 3);
  const Finished table = with({"generate", "--beams", "2", "--tokens", "3"});
  CHECK(table.out.find("2 beams, at most 3 tokens, score Σ ln p / tokens^1") != std::string::npos);
  const auto picture = scratch_dir("cli-beams") / "tree.svg";
  REQUIRE(with({"generate", "--beams", "2", "--tokens", "3", "-o", picture.string()}).code == 0);
  CHECK(read_file(picture).find("finished, with its place") != std::string::npos);
  CHECK(with({"generate", "--beams", "2", "--temperature", "0.5"}).code == 2);
  CHECK(with({"generate", "--beams", "0"}).code == 2);
  CHECK(with({"generate", "--length-penalty", "2"}).code == 2);
  CHECK(with({"generate", "-o", picture.string()}).code == 2);
  // One beam writes what greedy decoding does.
  const json one = answer({"generate", "--beams", "1", "--tokens", "6"}),
             greedy = answer({"generate", "--temperature", "0", "--tokens", "6"});
  std::string ids;
  for (const json& step : greedy["texts"][0]["steps"]) ids += (ids.empty() ? "" : " ") + step["token"].dump();
  CHECK(one["beams"][0]["ids"] == ids);
}

TEST_CASE("read alignment: by head, one head's pairs, and against what is known") {
  const json heads = answer({"read", "alignment", "-t", target, "--truth", "4-1 5-3 0?2"});
  CHECK(heads["rows"].size() == 9);
  for (const json& head : heads["rows"]) {
    CHECK(head["error_rate"].get<double>() >= 0);
    CHECK(head["error_rate"].get<double>() <= 1);
  }
  const json pairs = answer({"read", "alignment", "-t", target, "--head", "1.2"});
  CHECK(pairs["rows"].size() == 4);  // each target token has its source
  CHECK(answer({"read", "alignment", "-t", target, "--head", "1.2", "--threshold", "0"})["rows"].size() == 28);
  CHECK(one_sentence(with({"read", "alignment", "-t", target, "--truth", "9-0"})));
  CHECK(one_sentence(run_cli({"read", "alignment", "-m", "tiny-gpt2", "-t", target})));
}

TEST_CASE("generate: from a source alone, and from what was written so far") {
  const json alone = answer({"generate", "--temperature", "0", "--tokens", "4"});
  CHECK(alone["prompt"].size() == 1);
  CHECK(alone["texts"][0]["steps"].size() <= 4);
  const json further = answer({"generate", "-t", target, "--temperature", "0", "--tokens", "2"});
  CHECK(further["prompt"].size() == 4);
  CHECK(with({"generate", "--tokens", "3"}, "marian").code == 0);
}

TEST_CASE("capture: each part in a file of its own, whose tensors are named after it") {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / "headscope-encoder-decoder";
  fs::create_directories(folder);
  for (const std::string part : {"enc", "dec", "cross"}) {
    const std::string file = (folder / (part + ".safetensors")).string();
    const Finished done =
        with({"capture", "-t", target, "--part", part, "--sites", "all", "--names", "bridge", "-o", file});
    CAPTURE(done.err);
    REQUIRE(done.code == 0);
    const auto trace = open_trace(file);
    CHECK(trace->part(value_in(stack_names, part).value()) == trace.get());
    CHECK(trace->between_texts() == (part == "cross"));
    CHECK(trace->maps.size() == (part == "enc" ? 6u : 9u));
    CHECK(trace->sites.contains({SiteKind::k, 1}));
    CHECK(run_cli({"metrics", "--trace", file}).code == 0);
  }
  fs::remove_all(folder);
}

TEST_CASE("inspect and verify tell of both stacks") {
  const std::string folder = (reference("encoder-decoders") / "bart").string();
  const Finished text = run_cli({"inspect", folder});
  CHECK(text.out.find("decoder: 2 layers, 3 heads") != std::string::npos);
  CHECK(text.out.find("encoder: 3 layers, 2 heads") != std::string::npos);
  const json found = json::parse(run_cli({"inspect", folder, "--json"}).out);
  std::int64_t sum = 0;
  for (const auto& [name, count] : found["parameters"]["parts"].items()) sum += count.get<std::int64_t>();
  CHECK(sum == found["parameters"]["total"]);
  for (const std::string model : {"t5", "t5-gated", "bart", "marian-apart"}) {
    const Finished verified = run_cli({"verify", (reference("encoder-decoders") / model).string()});
    CAPTURE(verified.out);
    CHECK(verified.code == 0);
  }
}

}  // namespace headscope::encoder_decoder_cli_test
