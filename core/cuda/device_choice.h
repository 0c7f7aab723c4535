#pragma once
// Which device computes: how the command line and the settings name it, and the Backend that comes of it. Where a card
// cannot be used the processor computes and one sentence says why, so that nobody who asks has to know whether this
// program was built with CUDA.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/words.h"
#include "core/cuda/cuda_backend.h"

namespace headscope {

struct DeviceChoice {
  bool cuda = false;  ///< else the processor, which knows neither of the following
  int index = 0;      ///< of the card, as cuda_devices() counts
  Precision precision = Precision::f32;
  bool operator==(const DeviceChoice& other) const {
    return cuda == other.cuda && (!cuda || (index == other.index && precision == other.precision));
  }
};

/// "cpu", "cuda" (the first card) or "cuda:N"; nothing where the words are none of these. The precision is not theirs.
std::optional<DeviceChoice> parse_device(std::string_view words);
inline constexpr const char* device_words = "cpu, cuda or cuda:N";
/// "cpu", "cuda:0"
std::string device_text(const DeviceChoice& choice);

/// What make_backend() can choose from.
struct Cards {
  std::vector<CudaDevice> found;
  std::string why_none;  ///< "this program was built without CUDA"; "" when there are some
};
/// `with_free` as for cuda_devices().
Cards find_cards(bool with_free = false);

/// `threads` as for ThreadPool. The processor where the card cannot be used: `why_cpu` then says so in a sentence, and
/// is "" elsewhere.
std::unique_ptr<Backend> make_backend(const DeviceChoice& choice, int threads, Worded& why_cpu);

/// Both, as one thing that tests put something else in place of.
struct Devices {
  std::function<Cards(bool with_free)> cards = find_cards;
  std::function<std::unique_ptr<Backend>(const DeviceChoice&, int, Worded&)> make = make_backend;
};

/// What is said of a card that failed at work.
Worded processor_goes_on(const CardError& failure);

}  // namespace headscope
