#include "core/tensor/instruction_set.h"

#include <cstdint>
#include <cstdlib>
#include <string>

#include "core/base/error.h"
#include "hwy/highway.h"

namespace headscope {
namespace {

std::string_view wanted() {
  const char* const value = std::getenv("HEADSCOPE_ISA");
  return value ? value : "";
}

/// Highway numbers its targets from the best on: those below a target's bit are better than it. What is left out is
/// left out of every loop, so this comes before any of them runs; a word that means nothing is told when it is asked
/// what is used.
bool limit() {
  const std::string_view isa = wanted();
#if HWY_ARCH_X86
  if (isa == "avx2") hwy::DisableTargets(HWY_AVX2 - 1);
  if (isa == "sse4") hwy::DisableTargets(HWY_SSE4 - 1);
  if (isa == "none") hwy::DisableTargets(HWY_EMU128 - 1);
  return isa.empty() || isa == "avx512" || isa == "avx2" || isa == "sse4" || isa == "none";
#else
  if (isa == "none") hwy::DisableTargets(HWY_EMU128 - 1);
  return isa.empty() || isa == "none";
#endif
}

const bool understood = limit();

/// Asked once, before any loop runs: Highway looks at the processor anew each time it is asked, and chooses the best
/// that it finds there, whatever was left out, until it is told otherwise.
const std::int64_t supported = [] {
  const std::int64_t targets = hwy::SupportedTargets();
  hwy::GetChosenTarget().Update(targets);
  return targets;
}();

}  // namespace

std::string_view instruction_set() {
  if (!understood) throw Error("HEADSCOPE_ISA", "avx512, avx2, sse4 or none", std::string(wanted()));
  const std::int64_t best = supported & -supported;
#if HWY_ARCH_X86
  if (best <= HWY_AVX3) return "AVX-512";
#endif
  return hwy::TargetName(best);
}

}  // namespace headscope
