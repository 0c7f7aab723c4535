// The command line on attention that other programs captured: between two texts, over a picture, in a watched folder.
#include <doctest/doctest.h>

#include <filesystem>

#include "core/base/file.h"
#include "core/base/json.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace headscope::captures_cli_test {

using namespace testing;
namespace fs = std::filesystem;

namespace {
std::string fixture(const char* name) {
  return (reference("attention") / name).string();
}

Finished cli(const std::vector<std::string>& arguments) {
  const Finished done = run_cli(arguments);
  CAPTURE(done.err);
  CHECK(done.code == 0);
  return done;
}

bool has(const std::string& text, const char* part) {
  if (text.find(part) != std::string::npos) return true;
  MESSAGE("said: " << text);
  return false;
}
}  // namespace

TEST_CASE("a capture remembers how it was made, inspect says it, and it is made again to the byte") {
  const fs::path folder = scratch_dir("capture-again");
  const std::string file = folder / "a.safetensors", anew = folder / "b.safetensors",
                    model = source_dir() / "models/tiny-gpt2";
  cli({"capture", "-m", model, "-t", "Anna sold pies", "--sites", "q,logits", "--edit", "0.1: temperature 2", "-o",
       file});
  const std::string told = cli({"inspect", file}).out;
  CHECK(has(told, ("captured by: headscope-cli capture -m " + model +
                   " -t Anna sold pies --sites q,logits --edit 0.1: "
                   "temperature 2\n")
                      .c_str()));
  CHECK(has(told, ", CPU f32, "));
  CHECK(has(told, ", weights F16\n"));
  const auto json = nlohmann::json::parse(cli({"inspect", file, "--json"}).out).at("recipe");
  CHECK(json.at("command").size() == 9);
  CHECK(json.at("weights") == "F16");
  CHECK(json.at("device").get<std::string>().starts_with("CPU f32, "));
  CHECK(cli({"capture", "--again", file}).out == "the same as " + file + "\n");
  CHECK(cli({"capture", "--again", file, "-o", anew}).out == anew + "\nthe same as " + file + "\n");
  CHECK(nlohmann::json::parse(cli({"inspect", anew, "--json"}).out).at("recipe").at("command") == json.at("command"));

  // One number of the file is another.
  std::string bytes = read_file(file);
  bytes[bytes.size() - 2] = static_cast<char>(bytes[bytes.size() - 2] ^ 1);
  write_file_atomically(file, bytes);
  const Finished other = run_cli({"capture", "--again", file});
  CHECK(other.code == 1);
  CHECK(has(other.err, "1 of "));
  CHECK(has(other.err, "tensors are different"));
  CHECK(has(other.err, "hint: the model's files have changed"));
  const Finished onto = run_cli({"capture", "--again", file, "-o", file});  // which would hide it
  CHECK(onto.code == 1);
  CHECK(has(onto.err, "expected another file than the one that is made again"));
  CHECK(read_file(file) == bytes);
  std::string none_at_all = bytes;
  none_at_all.replace(none_at_all.size() - 4, 4, "\xFF\xFF\xFF\x7F");  // not a number
  write_file_atomically(file, none_at_all);
  CHECK(has(run_cli({"capture", "--again", file}).err, " by more than any number"));
  write_file_atomically(file, bytes);
  // … and so was the device.
  const auto at = bytes.rfind("CPU f32, ");  // of the recipe
  REQUIRE(at != std::string::npos);
  write_file_atomically(file, bytes.replace(at, 7, "GPU f64"));
  CHECK(has(run_cli({"capture", "--again", file}).err, "it was computed by GPU f64, "));
  CHECK(run_cli({"capture", "--again", file, "--sites", "q"}).code == 2);

  cli({"capture", "-m", model, "-t", "Anna sold pies", "--no-recipe", "-o", file});
  CHECK(cli({"inspect", file}).out.find("captured by") == std::string::npos);
  const Finished none = run_cli({"capture", "--again", file});
  CHECK(none.code == 1);
  CHECK(has(none.err, "expected a capture with its recipe, as Headscope writes it, found no recipe"));
}

TEST_CASE("a capture of windows with soft caps, learned sinks or edits has the chances of the run itself") {
  const std::string file = (scratch_dir("capture-windows") / "a.safetensors").string();
  const std::vector<std::vector<std::string>> runs{{"-m", reference("families/gemma2").string()},
                                                   {"-m", reference("families/gpt_oss").string()},
                                                   {"-m", reference("families/gpt_oss").string(), "--edit",
                                                    "0.0@5..: temperature 0.5", "--edit", "1.1: drop first 2"}};
  for (std::vector<std::string> run : runs) {
    CAPTURE(run[1]);
    CAPTURE(run.size());
    for (const char* more : {"--no-bos", "--ids", "3,17,8,21,3,17,9,3,17,8,21,4,3,17"}) run.emplace_back(more);
    std::vector<std::string> capture{"capture", "-o", file}, metrics{"metrics", "--json", "--metric", "all"};
    capture.insert(capture.end(), run.begin(), run.end());
    metrics.insert(metrics.end(), run.begin(), run.end());
    cli(capture);
    const auto own = nlohmann::json::parse(cli(metrics).out).at("heads"),
               read = nlohmann::json::parse(cli({"metrics", "--trace", file, "--json", "--metric", "all"}).out)
                          .at("heads");
    REQUIRE(own.size() == read.size());
    int seen = 0;
    for (std::size_t head = 0; head < own.size(); ++head)
      for (const char* part : {"values", "chance"})
        for (const auto& [id, value] : own[head].at(part).items()) {
          CAPTURE(id);
          const auto& other = read[head].at(part).at(id);
          REQUIRE(value.is_null() == other.is_null());
          if (value.is_null()) continue;
          CHECK(other.get<double>() == doctest::Approx(value.get<double>()).epsilon(1e-4));
          ++seen;
        }
    CHECK(seen > 100);
  }
}

TEST_CASE("metrics between two texts, and why some have none") {
  const std::string text = cli({"metrics", "--trace", fixture("cross.npz")}).out;
  CHECK(has(text, "tiny translator: imported, 1 layers × 2 heads, 3 query tokens × 2 key tokens"));
  CHECK(has(text, "note: Mean distance compares places within one text; queries and keys of this map are of two."));
  const auto json = nlohmann::json::parse(cli({"metrics", "--trace", fixture("cross.npz"), "--json"}).out);
  CHECK(json["query_tokens"].size() == 3);
  CHECK(json["tokens"].size() == 2);
  CHECK(json["heads"][0]["values"]["sink"].get<double>() == doctest::Approx((1 + 0.5 + 0.25) / 3));
  CHECK(json["heads"][0]["values"]["previous_token"].is_null());
}

TEST_CASE("every picture of a rectangle, with the tokens of both texts") {
  const fs::path folder = scratch_dir("cli-cross");
  const std::vector<std::vector<std::string>> pictures = {{},
                                                          {"--head", "0.0"},
                                                          {"--head", "0.0,0.1"},
                                                          {"--head", "0.0", "--arcs"},
                                                          {"--head", "0.0", "--bars", "--row", "2"},
                                                          {"--head", "0.0", "--row", "-1", "--key", "1"},
                                                          {"--head", "0.0", "--skip-first"},
                                                          {"--row", "1"}};
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    CAPTURE(i);
    const std::string out = (folder / (std::to_string(i) + ".svg")).string();
    std::vector<std::string> arguments{"render", "--trace", fixture("cross.npz"), "-o", out};
    arguments.insert(arguments.end(), pictures[i].begin(), pictures[i].end());
    cli(arguments);
    if (i == 1 || i == 3) CHECK(has(read_file(out), "dort"));
  }
  cli({"render", "--trace", fixture("cross.npz"), "--head", "0.0", "-o", (folder / "x.csv").string()});
  CHECK(read_file(folder / "x.csv") == "query,token,0 the,1 ␣chat\n0,le,1,0\n1,␣chat,0.5,0.5\n2,␣dort,0.25,0.75\n");
  const Finished words =
      run_cli({"render", "--trace", fixture("cross.npz"), "--words", "-o", (folder / "w.svg").string()});
  CHECK(words.code == 1);
  CHECK(has(words.err, "found queries and keys of two texts"));
  const Finished rule = run_cli({"detect", "k == q", "--trace", fixture("cross.npz")});
  CHECK(rule.code == 1);
  CHECK(has(rule.err, "whose tokens and places a rule compares"));
}

TEST_CASE("the CLS token over the picture, flat and smooth") {
  const fs::path folder = scratch_dir("cli-picture");
  const std::string flat = (folder / "flat.svg").string(), smooth = (folder / "smooth.png").string();
  cli({"render", "--trace", fixture("picture.npz"), "--head", "0.0", "--patches", "-o", flat});
  CHECK(has(read_file(flat), "id=\"patch.1.1\""));
  CHECK(has(read_file(flat), "0.875 on the picture"));
  cli({"render", "--trace", fixture("picture.npz"), "--head", "0.0", "--patches", "--smooth", "--row", "3", "-o",
       smooth});
  CHECK(fs::file_size(smooth) > 1000);
  const Finished text =
      run_cli({"render", "--trace", fixture("cross.npz"), "--head", "0.0", "--patches", "--row", "0", "-o", flat});
  CHECK(text.code == 1);
  CHECK(has(text.err, "a trace whose keys are patches"));
}

TEST_CASE("two captures are compared head by head") {
  const std::string text =
      cli({"compare", "--trace", fixture("cross.npz"), "--with-trace", fixture("cross_bf16.safetensors")}).out;
  CHECK(has(text, "2 of 2 and 2 tokens paired"));
  CHECK(has(text, "0.000"));
  const Finished apart =
      run_cli({"compare", "--trace", fixture("cross.npz"), "--with-trace", fixture("batch_of_one.npz")});
  CHECK(apart.code == 1);
  CHECK(has(apart.err, "between two texts in both"));
  CHECK(run_cli({"compare", "--trace", fixture("cross.npz")}).code == 2);
}

TEST_CASE("a watched folder is told capture by capture") {
  const fs::path folder = scratch_dir("cli-watch"), pictures = folder / "pictures";
  fs::copy_file(fixture("cross.npz"), folder / "a.npz");
  fs::copy_file(fixture("picture.npz"), folder / "b.npz");
  const std::string text =
      cli({"watch", folder.string(), "--once", "--every", "0.05", "--pictures", pictures.string()}).out;
  CHECK(has(text, "a.npz: 1 layer × 2 heads, 3 × 2 tokens"));
  CHECK(has(text, "b.npz: 1 layer × 1 head, 2 × 2 patches"));
  CHECK(fs::exists(pictures / "a.png"));
  CHECK(fs::exists(pictures / "b.png"));
  fs::copy_file(fixture("bad_grid.npz"), folder / "c.npz");
  const Finished broken = run_cli({"watch", folder.string(), "--once", "--every", "0.5"});
  CHECK(broken.code == 0);
  CHECK(has(broken.err, "as many patches and leading tokens as attn has keys"));
  CHECK(run_cli({"watch", (folder / "absent").string()}).code == 1);
}

TEST_CASE("a capture of a model whose layers differ in their heads is read with those of each layer") {
  const fs::path folder = scratch_dir("capture-heads");
  const std::string file = folder / "a.safetensors", model = reference("families") / "falcon_h1-heads";
  const std::vector<std::string> text{"-m", model, "--ids", "3,17,8,21,40,3"};
  const auto with = [&](std::vector<std::string> arguments, const std::vector<std::string>& more) {
    arguments.insert(arguments.end(), text.begin(), text.end());
    arguments.insert(arguments.end(), more.begin(), more.end());
    return cli(arguments).out;
  };
  with({"capture"}, {"--sites", "z", "--edit", "*.7: ablate zero", "-o", file});
  CHECK(has(with({"run"}, {}), "4 layers × 5–8 heads"));
  const auto told =
      nlohmann::json::parse(cli({"metrics", "--trace", file, "--metric", "row_mass", "--json"}).out).at("heads");
  REQUIRE(told.size() == 26);  // 8 + 5 + 8 + 5
  CHECK(told.at(7).at("head") == 7);
  CHECK(told.at(8).at("layer") == 1);
  CHECK(told.at(25).at("layer") == 3);
  CHECK(told.at(25).at("head") == 4);
  CHECK(cli({"capture", "--again", file}).out == "the same as " + file + "\n");
  CHECK(nlohmann::json::parse(with({"sweep", "ablate"}, {"--json"})).at("heads").size() == 26);
  for (const char* tool : {"rollout", "attribution", "gradients"}) with({"read", tool}, {"--json"});
  for (const char* picture : {"all.svg", "row.svg"}) {
    std::vector<std::string> drawn{"-o", folder / picture};
    if (std::string(picture) == "row.svg") drawn.insert(drawn.end(), {"--row", "5"});
    with({"render"}, drawn);
    CHECK(fs::file_size(folder / picture) > 1000);
  }
  CHECK(has(run_cli({"render", "--trace", file, "--head", "1.5", "-o", folder / "none.svg"}).err, "1.5"));
}

}  // namespace headscope::captures_cli_test
