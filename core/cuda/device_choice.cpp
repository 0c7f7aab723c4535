#include "core/cuda/device_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/base/words.h"

namespace headscope {

std::optional<DeviceChoice> parse_device(std::string_view words) {
  if (words == "cpu") return DeviceChoice{};
  constexpr std::string_view card = "cuda";
  if (!words.starts_with(card)) return std::nullopt;
  DeviceChoice choice{.cuda = true};
  words.remove_prefix(card.size());
  if (words.empty()) return choice;
  const char* const end = words.data() + words.size();
  if (words.size() < 2 || words[0] != ':' || words[1] < '0' || words[1] > '9') return std::nullopt;
  const auto [read, wrong] = std::from_chars(words.data() + 1, end, choice.index);
  if (wrong != std::errc() || read != end) return std::nullopt;
  return choice;
}

std::string device_text(const DeviceChoice& choice) {
  return choice.cuda ? fmt::format("cuda:{}", choice.index) : "cpu";
}

namespace {
std::string phrase(const Error& error) {
  return fmt::format("{}: expected {}, found {}", error.where, error.expected, error.found);
}
}  // namespace

Cards find_cards(bool with_free) {
  Cards out{cuda_devices(with_free), why_no_cuda()};
  if (out.found.empty() && out.why_none.empty()) out.why_none = "no NVIDIA card was found";
  return out;
}

std::unique_ptr<Backend> make_backend(const DeviceChoice& choice, int threads, Worded& why_cpu) {
  why_cpu = Worded();
  if (choice.cuda) {
    const Cards cards = find_cards();
    const auto card = std::ranges::find(cards.found, choice.index, &CudaDevice::index);
    std::string why = cards.why_none;
    if (why.empty())
      why = card != cards.found.end() ? card->unusable
                                      : fmt::format("the last card is cuda:{}", cards.found.back().index);
    try {
      if (why.empty()) return make_cuda_backend(threads, choice.index, choice.precision);
    } catch (const CardError& failed) {
      why = phrase(failed.why);
    }
    why_cpu = say_later("The processor computes, as {} cannot be used: {}.", device_text(choice), why);
  }
  return std::make_unique<Backend>(threads);
}

Worded processor_goes_on(const CardError& failure) {
  return say_later("The card failed, the processor goes on. {}.", phrase(failure.why));
}

}  // namespace headscope
