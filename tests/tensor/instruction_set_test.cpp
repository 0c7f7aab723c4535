#include "core/tensor/instruction_set.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include "core/tensor/panels.h"

namespace headscope {

// ctest runs this file under each of them (isa/*).
TEST_CASE("the loops use the instruction set that is told, before and after it is asked for") {
  const Index before = panels::width();
  const std::string told(instruction_set());
  CHECK(panels::width() == before);
  const char* const wanted = std::getenv("HEADSCOPE_ISA");
  const std::string isa = wanted ? wanted : "";
  if (isa == "avx2") CHECK((told == "AVX2" || told == "SSE4"));  // or what the processor has of it
  if (isa == "sse4") CHECK(told == "SSE4");
  if (isa == "none") CHECK(told == "EMU128");
  // Two registers.
  if (told == "AVX-512") CHECK(before == 32);
  if (told == "AVX2") CHECK(before == 16);
  if (told == "SSE4") CHECK(before == 8);
  if (told == "EMU128") CHECK((before == 8 || before == 2));  // GCC before 12.3 has one number at a time instead
}

}  // namespace headscope
