#pragma once
// What measuring heads needs. Private to core/train.

#include <vector>

#include "core/trace/tap.h"
#include "core/trace/trace.h"
#include "core/train/language.h"

namespace headscope {

/// Where the tokens of a span stand; the word's last comes last. Tokens of BPE may begin with the blank before a word.
std::vector<Index> tokens_of(const std::vector<Token>& tokens, const TextSpan& span);

/// Sets the z of one head to zero.
class WithoutHead final : public Tap {
 public:
  explicit WithoutHead(HeadId head) : head_(head) {}
  bool wants(Site site) const override { return site.kind == SiteKind::z && site.layer == head_.layer; }
  Tensor at(Site site, const Tensor& value) override;

 private:
  HeadId head_;
};

}  // namespace headscope
