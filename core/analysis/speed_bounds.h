#pragma once
// What this machine allows, measured beside what is timed: of a pass the larger of its operations ÷ the peak of the
// processor and its bytes of weights ÷ how fast memory gives up so many.

#include <string>
#include <vector>

#include "core/model/model.h"
#include "core/tensor/tensor.h"

namespace headscope {

class SpeedBounds {
 public:
  /// For models of so many bytes of weights: as many (at most a gigabyte) are read, since what stays in a cache is
  /// read sooner. `pool` must outlive this.
  SpeedBounds(ThreadPool& pool, double bytes);

  /// Once more, in turns with what is compared: a busy moment of the machine then hits both.
  void measure();

  double peak() const;       ///< floating-point operations a second; median
  double bandwidth() const;  ///< bytes a second; median
  /// Seconds that this work takes at least.
  double seconds(const BareProducts& work) const;
  bool by_memory(const BareProducts& work) const;  ///< whether its bytes are what takes them

 private:
  ThreadPool& pool_;
  Tensor numbers_;
  std::vector<double> peaks_, readings_;
};

/// "AMD EPYC 9R14": what the system calls the processor; empty where it does not say.
std::string processor_name();

}  // namespace headscope
