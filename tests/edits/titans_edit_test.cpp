// Titans in heads of a model: memory alone, as context, gate and layer, on both families, and while text is generated.

#include <doctest/doctest.h>

#include <cmath>

#include "core/attention/mechanism.h"
#include "core/generate/generation.h"
#include "core/metrics/next_token.h"
#include "tests/edits/edit_bench.h"
#include "tests/support/largest_difference.h"

namespace headscope::titans_edit_test {

using namespace testing;

namespace {

constexpr const char* outputs[] = {"output=memory", "output=joined form=context span=5", "output=joined form=gate",
                                   "output=joined form=layer"};
constexpr const char* memories[] = {"", " hidden=6 learning=0.02", " hidden=6 depth=2 learning=0.02", " adaptive=on"};

}  // namespace

TEST_CASE("every form, deep and linear, changes the logits of both families and leaves a loss") {
  for (const char* name : testing::families) {
    CAPTURE(name);
    Bench bench(name);
    const auto plain = bench({});
    std::vector<std::shared_ptr<const Trace>> seen;
    for (const char* output : outputs)
      for (const char* memory : memories) {
        const std::string spec = std::string("1.2: mechanism titans ") + output + memory;
        CAPTURE(spec);
        const SiteKind q_kind = bench.rotary() ? SiteKind::rot_q : SiteKind::q,
                       k_kind = bench.rotary() ? SiteKind::rot_k : SiteKind::k;
        const auto trace = bench({spec}, {SiteKind::z, q_kind, k_kind, SiteKind::v});
        CHECK(largest_difference(trace->logits, plain->logits) > 1e-4);
        CHECK(std::isfinite(mean_loss(*trace)));
        for (const auto& before : seen) CHECK(largest_difference(trace->logits, before->logits) > 1e-6);
        seen.push_back(trace);
        // z of the head is what the catalogue gives for its queries, keys and values; other heads keep theirs.
        const Tensor &q = trace->sites.at({q_kind, 1}), &k = trace->sites.at({k_kind, 1}),
                     &v = trace->sites.at({SiteKind::v, 1});
        MechanismInput in = input_of_head(heads_of_layer(q, k, v, 1, bench.dims().layers), 2);
        in.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(q.dim(2))));
        in.rule = causal_rule();
        const MechanismChoice choice = parse_mechanism(spec.substr(spec.find("titans")));
        const Tensor given = output_of(*choice.mechanism, in, choice.values);
        CHECK(largest_difference(trace->sites.at({SiteKind::z, 1}).select(1, 2).packed(), given) < 2e-5);
      }
  }
}

TEST_CASE("on the models that come with it every form leaves a finite loss, and another than softmax's") {
  for (const char* name : {"tiny-gpt2", "tiny-llama"}) {
    CAPTURE(name);
    Backend backend{1};
    const LoadedModel loaded = load_model(source_dir() / "models" / name, backend);
    RunRequest request;
    request.model = source_dir() / "models" / name;
    request.text = "In the village of Zoziford there lived Anna and her cousin Ben. Every morning, she sold";
    const double plain = mean_loss(*run(loaded, request, Ctx{backend}));
    for (const char* output : outputs)
      for (const char* memory : {"", " hidden=6 learning=0.01", " hidden=6 depth=2 learning=0.01"}) {
        RunRequest edited = request;
        edited.edits = {parse_intervention(std::string("0.2: mechanism titans ") + output + memory, "test")};
        CAPTURE(std::string(output) + memory);
        const double loss = mean_loss(*run(loaded, edited, Ctx{backend}));
        CHECK(std::isfinite(loss));
        CHECK(std::abs(loss - plain) > 1e-4);
      }
  }
}

TEST_CASE("token by token a model with Titans inside writes what one pass over the whole text says") {
  for (const char* name : testing::families)
    for (const char* output : outputs) {
      CAPTURE(name);
      CAPTURE(output);
      Bench bench(name);
      RunRequest like;
      like.edits = {parse_intervention(std::string("*: mechanism titans ") + output, "test")};
      Generator generator(bench.loaded, like);
      Transcript transcript{{3, 14, 15, 9, 2, 6}, {}};
      for (int i = 0; i < 6; ++i)
        transcript.steps.push_back(generator.step(Ctx{bench.backend}, transcript, {{.temperature = 0}, 1}));
      RunRequest whole = bench.plain;
      whole.ids = transcript.ids(transcript.steps.size());
      whole.add_bos = false;
      whole.edits = like.edits;
      const auto trace = run(bench.loaded, whole, Ctx{bench.backend});
      for (std::size_t i = 0; i < 6; ++i)
        CHECK(largest_difference(transcript.steps[i]->logits, trace->logits.select(0, static_cast<Index>(i) + 5)) <
              1e-5);
    }
}

TEST_CASE("one pass over a text that goes on gives the same logits at its beginning") {
  for (const char* name : testing::families)
    for (const char* output : outputs)
      for (const char* memory : memories) {
        CAPTURE(output);
        CAPTURE(memory);
        Bench bench(name);
        const std::string edit = std::string("*: mechanism titans ") + output + memory;
        const auto whole = bench({edit});
        bench.plain.ids.resize(7);
        const auto part = bench({edit});
        CHECK(largest_difference(part->logits, whole->logits.slice(0, 0, 7)) < 1e-5);
      }
}

}  // namespace headscope::titans_edit_test
