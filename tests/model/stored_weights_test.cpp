// Models whose weights stay as their files store them beside the same numbers in float32: what a pass computes, what
// tools read of the weights, and how much memory they take.

#include <doctest/doctest.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/analysis/circuits.h"
#include "core/analysis/composition.h"
#include "core/analysis/feed_forward.h"
#include "core/analysis/logit_attribution.h"
#include "core/analysis/verification.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/io/gguf.h"
#include "core/io/safetensors.h"
#include "core/model/formats/model_files.h"
#include "core/model/formats/renamed_weights.h"
#include "core/model/weights.h"
#include "core/tensor/singular.h"
#include "tests/model/parity.h"
#include "tests/support/every_edit.h"
#include "tests/support/largest_difference.h"
#include "tests/support/paths.h"
#include "tests/support/random_tensor.h"
#include "tests/support/stored_copy.h"

namespace headscope::stored_weights_test {

using namespace testing;
namespace fs = std::filesystem;

namespace {

const std::vector<std::int32_t> text{3, 17, 8, 21, 40, 3, 17, 9, 33, 12, 40, 5, 3};

/// A copy of a small model whose F32 tensors are rounded to BF16 or F16: stored so, or as the same numbers in F32.
fs::path rounded(const fs::path& from, Stored kind, bool as_stored) {
  const fs::path folder = scratch_dir("stored-" + from.filename().string());
  for (const auto& entry : fs::directory_iterator(from))
    if (entry.path().extension() == ".json" && !entry.path().stem().has_extension())
      fs::copy_file(entry.path(), folder / entry.path().filename());
  const SafetensorsFile file = SafetensorsFile::open(from);
  SafetensorsWriter writer;
  for (const auto& [name, entry] : file.tensors()) {
    if (entry.dtype != DType::f32 || entry.shape.size() > Shape::max_rank) {  // of a half that sees: nobody reads it
      writer.add(name, entry.dtype, entry.shape, [bytes = entry.items<char>()](std::ostream& out) {
        out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
      });
      continue;
    }
    const Tensor numbers = stored_copy(kind, file.tensor(name));
    if (!as_stored)
      writer.add(name, numbers.copy());
    else
      writer.add(name, kind == Stored::bf16 ? DType::bf16 : DType::f16, entry.shape, [numbers](std::ostream& out) {
        out.write(reinterpret_cast<const char*>(numbers.stored()), static_cast<std::streamsize>(numbers.bytes()));
      });
  }
  writer.write(folder / "model.safetensors");
  return folder;
}

/// Multiplies even by small matrices as they are stored: the models here have no others.
class AsStored final : public Backend {
 public:
  using Backend::Backend;

 protected:
  std::shared_ptr<const PackedMatrix> pack(std::span<const Tensor> weights) override {
    return PackedMatrix::pack(weights, pool(), 0);
  }
};

/// A model as it is stored, and the same numbers in F32.
struct Twins {
  Subject stored, floats;
  explicit Twins(const fs::path& folder, Stored kind = Stored::bf16)
      : stored(rounded(folder, kind, true), std::make_unique<AsStored>(2)), floats(rounded(folder, kind, false)) {}
  const Model& a() const { return *stored.loaded.model; }
  const Model& b() const { return *floats.loaded.model; }
};

bool same_numbers(const Tensor& a, const Tensor& b) {
  if (a.defined() != b.defined()) return false;
  if (!a.defined()) return true;
  const Tensor x = a.packed(), y = b.packed();
  return x.shape() == y.shape() && std::ranges::equal(x.values(), y.values());
}

/// A model's weights by their names: matrices of this kind, or the same numbers in F32.
class RandomWeights final : public WeightSource {
 public:
  RandomWeights(Stored kind, bool floats) : kind_(kind), floats_(floats) {}
  std::string where() const override { return "random weights"; }
  std::vector<std::string> names() const override { return {}; }
  bool contains(const std::string&) const override { return true; }
  std::string dtype(const std::string&) const override { return "BF16"; }
  Tensor take(const std::string& name, const Shape& shape) const override {
    // Drawn once for all kinds, which takes longer than to multiply by it.
    static std::map<std::pair<std::string, std::string>, Tensor> drawn;
    Tensor& once = drawn[{name, shape.str()}];
    if (!once.defined()) once = random_tensor(shape, std::hash<std::string>()(name));
    Tensor t = once.copy();
    const bool gain = shape.rank() == 1;
    for (float& v : t.mutable_values()) v = gain ? 1 + 0.1f * v : 0.04f * v;
    if (gain) return t;
    const Tensor numbers = stored_copy(kind_, t);
    return floats_ ? numbers.copy() : numbers;
  }

 private:
  Stored kind_;
  bool floats_;
};

/// Large enough that its matrices are no small ones (of keys and values they are, and weigh more beside fewer bits),
/// with odd widths where blocks allow it.
ModelConfig middling(const char* like, Stored kind, bool tied) {
  ModelConfig c = load_config(reference(like));
  c.dims = {2, 17, c.family == "gpt2" ? 17 : 1, 32, 544, 832, 704};
  if (!stored::plain(kind) && kind != Stored::q8_0) c.dims = {2, 24, 1, 32, 768, 2048, 704};
  c.context = 512;
  c.tied_embeddings = tied;
  return c;
}

// Of a GPT-2 the rows of most matrices lie one behind the other, of a Llama the columns.
constexpr std::pair<const char*, Stored> middling_kinds[] = {
    {"llama-gqa", Stored::f16},   {"llama-gqa", Stored::bf16},  {"llama-gqa", Stored::q8_0},
    {"llama-gqa", Stored::q5_0},  {"llama-gqa", Stored::q4_k},  {"llama-gqa", Stored::q6_k},
    {"gpt2-random", Stored::f16}, {"gpt2-random", Stored::bf16}};

std::shared_ptr<const Model> random_model(const char* like, Stored kind, bool floats, bool tied, Backend& backend) {
  const ModelConfig config = middling(like, kind, tied);
  return Model::build(config, read_weights(RandomWeights(kind, floats), config), "random", backend);
}

std::vector<std::int32_t> ids(int n, int vocab) {
  std::vector<std::int32_t> out;
  for (int i = 0; i < n; ++i) out.push_back(static_cast<std::int32_t>(i * 7919 % vocab));
  return out;
}

}  // namespace

TEST_CASE("weights as they are stored give the logits of the same numbers in float32, whatever the rows and threads") {
  Backend one(1), two(2);
  for (const auto& [like, kind] : middling_kinds)
    for (const bool tied : {false, true}) {
      CAPTURE(like);
      CAPTURE(static_cast<int>(kind));
      CAPTURE(tied);
      const auto stored = random_model(like, kind, false, tied, two),
                 floats = random_model(like, kind, true, tied, two);
      CHECK(stored->weights().unembedding.kind() == kind);
      CHECK(stored->projection(1, WeightMatrix::mlp_out).weight.kind() == kind);
      CHECK(floats->weights().unembedding.kind() == Stored::f32);
      for (const int n : {1, 2, 7, 8, 9, 40, 150}) {
        CAPTURE(n);
        const auto tokens = ids(n, 704);
        const Tensor found = stored->forward(Ctx{two}, tokens).logits;
        CHECK(relative(found, floats->forward(Ctx{two}, tokens).logits) < 2e-6);
        CHECK(largest_difference(found, stored->forward(Ctx{one}, tokens).logits) == 0);
      }
      // Token by token through the cache, as text is continued.
      KvCache cache(stored->config().dims, 12);
      const auto tokens = ids(12, 704);
      Tensor last;
      for (std::size_t i = 0; i < tokens.size(); ++i)
        last = stored->forward(Ctx{two}, std::span(&tokens[i], 1), &cache, {}, false).logits;
      CHECK(relative(last, floats->forward(Ctx{two}, tokens, nullptr, {}, false).logits) < 2e-6);
    }
}

TEST_CASE("a model of stored weights takes at most 1.1 times their bytes") {
  Backend backend(2);
  const auto held = [] {
    const auto info = mallinfo2();
    return static_cast<double>(info.uordblks) + static_cast<double>(info.hblkhd);
  };
  for (const auto& [like, kind] : middling_kinds) {
    CAPTURE(like);
    CAPTURE(static_cast<int>(kind));
    const double before = held();
    if (before == 0) return;  // a sanitizer's allocator, which does not count so
    const ModelConfig config = middling(like, kind, false);
    const auto model = random_model(like, kind, false, false, backend);
    // Small matrices (of keys and values here) are float32 beside what is stored: in large models they are few.
    const auto matrices = static_cast<Index>(model->info().parameters);
    const double stored = static_cast<double>(stored::layout(kind).bytes) * static_cast<double>(matrices) /
                          static_cast<double>(stored::layout(kind).numbers);
    CHECK(held() - before < 1.1 * stored);
    CHECK(held() - before > 0.9 * stored);
  }
}

TEST_CASE("every family computes the same with its weights in BF16 and F16 as with these numbers in float32") {
  for (const auto& entry : fs::directory_iterator(reference("families"))) {
    const std::string family = entry.path().filename().string();
    CAPTURE(family);
    for (const Stored kind : {Stored::bf16, Stored::f16}) {
      const Twins twins(entry.path(), kind);
      const auto a = twins.stored.trace(text, MapStorage::dense, true),
                 b = twins.floats.trace(text, MapStorage::dense, true);
      CHECK(relative(a->logits, b->logits) < 1e-6);
      REQUIRE(a->sites.size() == b->sites.size());
      for (const auto& [site, tensor] : a->sites) CHECK(relative(tensor, b->sites.at(site)) < 1e-6);
      if (kind == Stored::f16) continue;
      // What is read of the weights are the same numbers, matrix by matrix and head by head.
      const ModelWeights x = twins.a().weights(), y = twins.b().weights();
      CHECK(same_numbers(x.token_embedding, y.token_embedding));
      CHECK(same_numbers(x.position_embedding, y.position_embedding));
      CHECK(same_numbers(x.unembedding, y.unembedding));
      for (std::size_t layer = 0; layer < x.blocks.size(); ++layer) {
        const BlockWeights &p = x.blocks[layer], &q = y.blocks[layer];
        for (const auto part : {&BlockWeights::gate, &BlockWeights::up, &BlockWeights::down, &BlockWeights::router,
                                &BlockWeights::o_bias, &BlockWeights::up_bias})
          CHECK(same_numbers(p.*part, q.*part));
        for (std::size_t head = 0; head < p.heads.size(); ++head)
          for (const auto part : {&HeadWeights::q, &HeadWeights::k, &HeadWeights::v, &HeadWeights::o,
                                  &HeadWeights::q_bias, &HeadWeights::k_bias, &HeadWeights::v_bias})
            CHECK(same_numbers(p.heads[head].*part, q.heads[head].*part));
        for (int m = 0; m < weight_matrix_count; ++m) {
          const auto matrix = static_cast<WeightMatrix>(m);
          const int at = static_cast<int>(layer);
          CHECK(same_numbers(twins.a().projection(at, matrix).weight, twins.b().projection(at, matrix).weight));
          const auto s = twins.a().singular(at, matrix), t = twins.b().singular(at, matrix);
          REQUIRE((s == nullptr) == (t == nullptr));
          if (s) CHECK(s->values == t->values);
        }
      }
    }
  }
}

TEST_CASE("every edit and every tool does the same with weights as they are stored") {
  for (const char* name : {"llama-gqa", "gpt2-random"}) {
    CAPTURE(name);
    const Twins twins(reference(name));
    RunRequest request;
    request.ids = text;
    for (const SiteKind kind : twins.a().sites()) request.capture.sites.insert(kind);
    for (const std::string& line : every_edit_line()) {
      CAPTURE(line);
      RunRequest edited = request;
      const auto traced = [&](const Subject& subject) -> std::shared_ptr<const Trace> {
        try {
          edited.edits = {parse_intervention("*: " + line, "test")};
          return run(subject.loaded, edited, Ctx{*subject.backend});
        } catch (const Error&) {  // not for this model, or one that needs another text
          return nullptr;
        }
      };
      const auto a = traced(twins.stored), b = traced(twins.floats);
      REQUIRE((a == nullptr) == (b == nullptr));
      if (a) CHECK(relative(a->logits, b->logits) < 1e-4);
    }
    const auto a = run(twins.stored.loaded, request, Ctx{*twins.stored.backend}),
               b = run(twins.floats.loaded, request, Ctx{*twins.floats.backend});
    const std::vector<Intervention> edits{parse_intervention("*: singular o 1=0.5", "test")};
    const AttributionOf of{.token = 7};
    const auto parts = logit_attribution(twins.a(), *a, of, edits).parts,
               same = logit_attribution(twins.b(), *b, of, edits).parts;
    REQUIRE(parts.size() == same.size());
    for (std::size_t i = 0; i < parts.size(); ++i)
      CHECK(parts[i].value == doctest::Approx(same[i].value).epsilon(1e-4));
    Backend& backend = *twins.stored.backend;
    const CircuitOf circuit{{1, 1}, 0};
    const TokenCircuits pairs = token_circuits(twins.a(), backend, circuit, text, 3),
                        others = token_circuits(twins.b(), backend, circuit, text, 3);
    CHECK(largest_difference(pairs.qk, others.qk) < 1e-4);
    CHECK(largest_difference(pairs.ov, others.ov) < 1e-4);
    CHECK(copying_score(twins.a(), backend, {0, 1}).copying ==
          doctest::Approx(copying_score(twins.b(), backend, {0, 1}).copying));
    const Composition mixed = head_composition(twins.a(), Ctx{backend}, 1),
                      plain = head_composition(twins.b(), Ctx{backend}, 1);
    CHECK(largest_difference(mixed.q.slice(0, 0, 2).slice(1, 4, 8), plain.q.slice(0, 0, 2).slice(1, 4, 8)) < 1e-6);
    const FeedForward mlp = read_feed_forward(twins.a(), backend, *a, 1, of),
                      twin = read_feed_forward(twins.b(), backend, *b, 1, of);
    CHECK(mlp.logit == doctest::Approx(twin.logit).epsilon(1e-4));
    CHECK(mlp.half == doctest::Approx(twin.half));
    // And the witness that a certificate tells of reads the same file.
    const fs::path folder = rounded(reference(name), Stored::bf16, true);
    const ModelFiles files = ModelFiles::open(locate_model(folder));
    const ModelConfig config = load_config(folder);
    CHECK(verify(*twins.stored.trace(text, MapStorage::dense, false),
                 plain::forward(config, read_weights(*files.weights, config), text))
              .agrees());
  }
}

TEST_CASE("rows that a format keeps in another order stay as they are stored") {
  for (const Stored kind : {Stored::f16, Stored::bf16, Stored::q8_0, Stored::q5_1, Stored::q4_k}) {
    const Tensor rows = stored_copy(kind, random_tensor({24, 512}, 1));
    const Tensor turned = halves_from_pairs(rows, 3), grouped = groups_from_kinds(rows, 4, 1);
    CHECK(turned.kind() == kind);
    CHECK(grouped.kind() == kind);
    CHECK(same_numbers(turned, halves_from_pairs(rows.copy(), 3)));
    CHECK(same_numbers(grouped, groups_from_kinds(rows.copy(), 4, 1)));
  }
}

TEST_CASE("a GGUF file in Q8_0, multiplied as it is stored, gives the trace of its numbers in float32") {
  const fs::path file = reference("formats/gguf/llama-q8_0.gguf");
  const Subject stored(file, std::make_unique<AsStored>(2)), floats(file);
  for (const WeightMatrix which : {WeightMatrix::q, WeightMatrix::k, WeightMatrix::v, WeightMatrix::o,
                                   WeightMatrix::mlp_gate, WeightMatrix::mlp_in, WeightMatrix::mlp_out})
    CHECK(stored.loaded.model->projection(1, which).weight.kind() == Stored::q8_0);
  const auto a = stored.trace(text, MapStorage::dense, true), b = floats.trace(text, MapStorage::dense, true);
  CHECK(relative(a->logits, b->logits) < 2e-6);
  for (const auto& [site, tensor] : b->sites) CHECK(relative(a->sites.at(site), tensor) < 5e-6);
  for (const AttentionMap& map : b->maps) CHECK(largest_difference(a->map(map.id()).to_dense(), map.to_dense()) < 2e-6);
}

TEST_CASE("GGUF files with a matrix in every block type are computed to the bits of what they decode to") {
  /// Multiplies by the float32 copies of all matrices, in the same blocks.
  class Decoded final : public Backend {
   public:
    using Backend::Backend;

   protected:
    std::shared_ptr<const PackedMatrix> pack(std::span<const Tensor> weights) override {
      std::vector<Tensor> floats;
      for (const Tensor& weight : weights) floats.push_back(weight.floats());
      return PackedMatrix::pack(floats, pool(), 0);
    }
  };
  std::set<Stored> seen;
  for (const char* name : {"llama-blocks.gguf", "llama-grids.gguf"}) {
    CAPTURE(name);
    const fs::path file = reference("formats") / name;
    const Subject stored(file, std::make_unique<AsStored>(2)), floats(file, std::make_unique<Decoded>(2));
    seen.insert(stored.loaded.model->weights().unembedding.kind());
    seen.insert(stored.loaded.model->weights().token_embedding.kind());
    for (const int layer : {0, 1})
      for (const WeightMatrix which : {WeightMatrix::q, WeightMatrix::k, WeightMatrix::v, WeightMatrix::o,
                                       WeightMatrix::mlp_gate, WeightMatrix::mlp_in, WeightMatrix::mlp_out})
        seen.insert(stored.loaded.model->projection(layer, which).weight.kind());
    for (const std::size_t length : {std::size_t{1}, std::size_t{2}, text.size()}) {
      const std::vector<std::int32_t> some(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(length));
      const auto a = stored.trace(some, MapStorage::dense, true), b = floats.trace(some, MapStorage::dense, true);
      CHECK(std::ranges::all_of(b->logits.packed().values(), [](float logit) { return std::isfinite(logit); }));
      CHECK(same_numbers(a->logits, b->logits));
      for (const auto& [site, tensor] : b->sites) CHECK(same_numbers(a->sites.at(site), tensor));
      for (const AttentionMap& map : b->maps)
        CHECK(largest_difference(a->map(map.id()).to_dense(), map.to_dense()) == 0);
    }
    CHECK(stored.greedy(text, 8) == floats.greedy(text, 8));
  }
  for (const Stored kind : block_kinds)
    CHECK(seen.contains(kind) == (kind != Stored::q8_0));  // which has a file of its own
}

TEST_CASE("a GGUF file in IQ types and NVFP4 gives transformers' logits, as it is and with an adapter on it") {
  const fs::path file = reference("formats/llama-grids.gguf"), adapter = reference("formats/llama-grids");
  const SafetensorsFile expected = SafetensorsFile::open(adapter / "expected.safetensors");
  const Subject plain(file, std::make_unique<AsStored>(2)),
      adapted(with_adapter(file, adapter), std::make_unique<AsStored>(2));
  CHECK(plain.loaded.model->projection(0, WeightMatrix::q).weight.kind() == Stored::iq2_xxs);
  CHECK(plain.loaded.model->projection(0, WeightMatrix::o).weight.kind() == Stored::nvfp4);
  CHECK(plain.loaded.model->projection(1, WeightMatrix::o).weight.kind() == Stored::f32);    // a number multiplies it
  CHECK(adapted.loaded.model->projection(0, WeightMatrix::q).weight.kind() == Stored::f32);  // which it changed
  CHECK(adapted.loaded.model->projection(0, WeightMatrix::k).weight.kind() == Stored::iq2_xs);
  const Tensor logits = expected.tensor("logits"), changed = expected.tensor("adapted");
  CHECK(relative(plain.trace(text, MapStorage::none, false)->logits, logits) < 2e-6);
  CHECK(relative(adapted.trace(text, MapStorage::none, false)->logits, changed) < 2e-6);
  CHECK(relative(logits, changed) > 1e-2);
}

TEST_CASE("a number beside a matrix multiplies it, one for all experts or each expert's own") {
  const fs::path path = scratch_dir("factors") / "model.safetensors";
  const Tensor numbers = random_tensor({3, 4, 5}, 1), each = random_tensor({3}, 2), one = random_tensor({1}, 3);
  SafetensorsWriter writer;
  writer.add("w", numbers);
  writer.add("each", each);
  writer.add("one", one);
  writer.add("two", random_tensor({2}, 4));
  writer.write(path);
  const auto file = std::make_shared<const TensorFile>(SafetensorsFile::open(path));
  const auto taken = [&](int expert, const char* factor) {
    const RenamedWeights weights(file, {{"a", {.name = "w", .expert = expert, .factor = factor}}});
    return expert < 0 ? weights.take("a", {3, 4, 5}) : weights.take("a", {4, 5});
  };
  for (int expert = 0; expert < 3; ++expert) {
    const Tensor own = taken(expert, "each"), shared = taken(expert, "one");
    for (Index i = 0; i < 4; ++i)
      for (Index j = 0; j < 5; ++j) {
        CHECK(own.at(i, j) == numbers.at(expert, i, j) * each.at(expert));
        CHECK(shared.at(i, j) == numbers.at(expert, i, j) * one.at(0));
      }
  }
  CHECK(taken(-1, "one").at(2, 3, 4) == numbers.at(2, 3, 4) * one.at(0));
  CHECK_THROWS_WITH_AS(taken(1, "two"),
                       doctest::Contains("tensor two: expected one number, or one of each of 3 experts, found 2"),
                       Error);
  CHECK_THROWS_WITH_AS(taken(-1, "each"), doctest::Contains("tensor each: expected one number, found 3"), Error);
}

TEST_CASE("a number beside no NVFP4 matrix is a tensor without a place") {
  std::string bytes = read_file(reference("formats/llama-grids.gguf"));
  const std::string name = "blk.1.attn_output.scale";
  const std::size_t at = bytes.find(name);
  REQUIRE(at != std::string::npos);
  bytes.replace(at, 5, "blk.2");
  const fs::path path = scratch_dir("factors") / "m.gguf";
  write_file_atomically(path, bytes);
  CHECK_THROWS_WITH_AS(ModelFiles::open(locate_model(path)),
                       doctest::Contains("expected only tensors that a llama has, found blk.2.attn_output.scale"),
                       Error);
}

TEST_CASE("a file's weights: matrices of every type that products read as they lie, everything else float32") {
  std::set<Stored> as_stored;
  for (const auto& entry : fs::recursive_directory_iterator(reference("formats"))) {
    if (entry.path().extension() != ".gguf") continue;
    const GgufFile file = GgufFile::open(entry.path());
    for (const auto& [name, of] : file.tensors()) {
      if (!dtype_info(of.dtype).decode) continue;
      const Tensor weight = file.weight(name);
      const auto kind = stored_type(of.dtype);
      CHECK(weight.kind() == (kind && of.shape.size() > 1 ? *kind : Stored::f32));
      CHECK(same_numbers(weight, file.tensor(name)));
      as_stored.insert(weight.kind());
    }
  }
  for (const Stored kind : block_kinds) CHECK(as_stored.contains(kind));
  CHECK(as_stored.contains(Stored::bf16));
}

}  // namespace headscope::stored_weights_test
