#pragma once
// A pass on an NVIDIA card. One header, two bodies chosen by CMake (HEADSCOPE_CUDA): the .cpp and .cu files here, or
// no_cuda.cpp. Tensors that the card makes stay there and come home when they are looked at (core/tensor/remote.h), so
// taps, edits and analyses need not know. Training runs here too: what a decoder's ops record is differentiated on the
// card, where weights and moments stay from step to step, in the same order always. The processor, which the base class
// is, computes attention whose scores or patterns somebody wants to see on their way, on a tape also what few models
// have (learned sinks, rules that are no ranges of keys, some activations, cuts and caps), and what is written for it
// alone (state spaces, the choice of experts).

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/named_values.h"
#include "core/tensor/backend.h"

namespace headscope {

/// What products on the card multiply: numbers of 32 bits, the same cut to 10 bits behind the point (TF32), or to 7
/// (BF16). Sums are of 32 bits always.
enum class Precision { f32, tf32, bf16 };
inline constexpr NamedValue<Precision> precision_names[] = {
    {"f32", Precision::f32}, {"tf32", Precision::tf32}, {"bf16", Precision::bf16}};

/// The card failed under the work: its driver, its libraries, its memory. The processor may do what was asked, so it is
/// no Error that says what is wrong with it, and passes whoever catches these.
struct CardError : std::runtime_error {
  explicit CardError(const Error& error) : std::runtime_error(error.what()), why(error) {}
  CardError(const std::string& where, const std::string& expected, const std::string& found,
            const std::string& hint = "")
      : CardError(Error(where, expected, found, hint)) {}
  const Error why;
};

struct CudaDevice {
  int index = 0;
  std::string name;          ///< "NVIDIA H100 80GB HBM3"
  std::uint64_t memory = 0;  ///< bytes
  std::uint64_t free = 0;    ///< bytes at present, where that was asked for
  int major = 0, minor = 0;  ///< compute capability
  std::string unusable;      ///< why it cannot be used, or ""
};
/// All cards there are; empty with why_no_cuda() where there are none. To know what is free each is opened, which takes
/// time and some of its memory.
std::vector<CudaDevice> cuda_devices(bool with_free = false);
/// "" when a card can be used, else why not: not built in, no driver, an old one, no card.
std::string why_no_cuda();
/// "CUDA 13.0, driver 13.0", or "" in a program built without.
std::string cuda_versions();

/// Throws CardError when card `index` cannot be opened. What cuda_devices() calls unusable is not looked at again.
std::unique_ptr<Backend> make_cuda_backend(int threads = 0, int index = 0, Precision precision = Precision::f32);

}  // namespace headscope
