#include "core/trace/tap.h"

#include <doctest/doctest.h>

#include "core/base/error.h"

namespace headscope::tap_test {

namespace {
struct Add final : Tap {
  SiteKind kind;
  float amount;
  float seen = 0;
  Add(SiteKind k, float a) : kind(k), amount(a) {}
  bool wants(Site site) const override { return site.kind == kind; }
  Tensor at(Site, const Tensor& value) override {
    seen = value.at(0);
    return Tensor::full(value.shape(), value.at(0) + amount);
  }
};
struct Reshape final : Tap {
  bool wants(Site) const override { return true; }
  Tensor at(Site, const Tensor&) override { return Tensor::zeros({3}); }
};
}  // namespace

TEST_CASE("taps in a chain each see what the one before them returned, and only the sites they want") {
  Add first(SiteKind::z, 1), other(SiteKind::embed, 100), second(SiteKind::z, 10);
  TapChain chain({&first, &other, &second});
  CHECK(chain.wants({SiteKind::z, 0}));
  CHECK(chain.wants({SiteKind::embed}));
  CHECK(!chain.wants({SiteKind::q, 0}));
  const Tensor out = chain.at({SiteKind::z, 0}, Tensor::full({2}, 5));
  CHECK(out.at(1) == 16);
  CHECK(second.seen == 6);
  CHECK(other.seen == 0);
}

TEST_CASE("a tap that returns another shape is an error that names the site and both shapes") {
  Reshape wrong;
  TapChain chain({&wrong});
  try {
    chain.at({SiteKind::z, 4}, Tensor::zeros({2}));
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.where == "blocks.4.attn.hook_z");
    CHECK(std::string(error.what()).find("[2]") != std::string::npos);
    CHECK(error.found == "[3]");
  }
}

}  // namespace headscope::tap_test
