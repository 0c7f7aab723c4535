#pragma once
// Row-wise work noted down, then done together: a tile of rows goes through all the steps while it is in one core's
// cache, and the threads meet once instead of once for every step. Private to a pass; not thread-safe.

#include <functional>
#include <vector>

#include "core/tensor/tensor.h"

namespace headscope {

class ThreadPool;

class RowQueue {
 public:
  explicit RowQueue(ThreadPool& pool) : pool_(pool) {}
  RowQueue(const RowQueue&) = delete;
  RowQueue& operator=(const RowQueue&) = delete;

  /// What is done with rows [begin, end): reads only these rows of what earlier steps write, and does not throw.
  using Step = std::function<void(Index begin, Index end)>;
  /// Whether dividing so many rows keeps all threads busy; fewer are better shared by columns.
  bool pays(Index rows) const;
  /// `work`: about how many multiply-adds a row takes. A step over another number of rows than those before runs them
  /// first.
  void add(Index rows, Index work, Step step);
  /// Does all that was noted down.
  void run();

 private:
  ThreadPool& pool_;
  Index rows_ = 0, work_ = 0;
  std::vector<Step> steps_;
};

}  // namespace headscope
