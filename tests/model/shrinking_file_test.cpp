// A model file that another program cuts short while it is open: an Error while it is read, and nothing at all after.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "core/base/error.h"
#include "core/io/safetensors.h"
#include "core/model/family.h"
#include "core/model/model.h"
#include "core/model/weights.h"
#include "tests/support/paths.h"

namespace headscope::shrinking_file_test {

namespace fs = std::filesystem;

namespace {

constexpr std::array<std::int32_t, 6> text{1, 5, 2, 5, 1, 3};

fs::path copied(const std::string& name) {
  const fs::path folder = testing::scratch_dir("shrinking");
  fs::copy(testing::reference(name), folder, fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  return folder;
}

void cut_to(const fs::path& folder, std::uintmax_t bytes) {
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".safetensors") fs::resize_file(entry.path(), bytes);
}

/// Cuts the files to nothing when the pass comes to the first layer's output.
class Cutter final : public Tap {
 public:
  explicit Cutter(fs::path folder) : folder_(std::move(folder)) {}
  bool wants(Site site) const override { return site == Site{SiteKind::resid_post, 0}; }
  Tensor at(Site, const Tensor& value) override {
    cut_to(folder_, 0);
    return value;
  }

 private:
  fs::path folder_;
};

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::ranges::equal(a.values(), b.values());
}

}  // namespace

TEST_CASE("a model file cut short between opening and reading is an Error with the file and the place") {
  for (const char* name : {"gpt2-random", "gpt2-f16", "llama-gqa"}) {
    CAPTURE(name);
    const fs::path folder = copied(name);
    const ModelConfig config = load_config(folder);
    const SafetensorsFile file = SafetensorsFile::open(folder);
    cut_to(folder, 4096);
    CHECK_THROWS_WITH_AS(read_weights(file, config), doctest::Contains("its end at byte"), Error);
  }
}

TEST_CASE("a model that was read needs its file no more: cut while a pass runs, it gives the same numbers") {
  for (const char* name : {"gpt2-random", "gpt2-untied-erf", "llama-gqa"}) {
    CAPTURE(name);
    const fs::path folder = copied(name);
    Backend backend(1);
    const auto model = Model::load(folder, backend);
    const Tensor before = model->forward(Ctx{backend}, text).logits;
    Cutter cutter(folder);
    const Tensor during = model->forward(Ctx{backend, &cutter}, text).logits;
    for (const auto& entry : fs::directory_iterator(folder))
      if (entry.path().extension() == ".safetensors") REQUIRE(fs::file_size(entry.path()) == 0);
    CHECK(same_bits(before, during));
    CHECK(same_bits(before, model->forward(Ctx{backend}, text).logits));
    double sum = 0;  // the embedding, and matrices that the pass reads only in their packed form
    for (const Tensor& kept :
         {model->weights().token_embedding.packed(), model->weights().blocks[0].heads[0].q.packed()})
      for (const float x : kept.values()) sum += std::abs(x);
    CHECK(sum > 0);
  }
}

}  // namespace headscope::shrinking_file_test
