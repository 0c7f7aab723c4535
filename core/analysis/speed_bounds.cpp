#include "core/analysis/speed_bounds.h"

#include <algorithm>
#include <fstream>

#include "core/base/median.h"
#include "core/tensor/speed_limits.h"

namespace headscope {

namespace {
constexpr double most_bytes = 1 << 30;
}

SpeedBounds::SpeedBounds(ThreadPool& pool, double bytes)
    : pool_(pool),
      numbers_(Tensor::full({std::max<Index>(static_cast<Index>(std::min(bytes, most_bytes) / sizeof(float)), 1)}, 1)) {
  seconds_to_read(numbers_.values(), pool_);
  measure();
}

void SpeedBounds::measure() {
  peaks_.push_back(measured_peak(pool_));
  readings_.push_back(static_cast<double>(numbers_.bytes()) / seconds_to_read(numbers_.values(), pool_));
}

double SpeedBounds::peak() const {
  return median(peaks_);
}

double SpeedBounds::bandwidth() const {
  return median(readings_);
}

double SpeedBounds::seconds(const BareProducts& work) const {
  return std::max(work.operations / peak(), work.bytes / bandwidth());
}

bool SpeedBounds::by_memory(const BareProducts& work) const {
  return work.bytes / bandwidth() > work.operations / peak();
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      if (const std::size_t colon = line.find(": "); colon != std::string::npos) return line.substr(colon + 2);
  return {};
}

}  // namespace headscope
