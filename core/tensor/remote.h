#pragma once
// Numbers that another device made. A tensor of them has its place in this machine's memory at once, so that views are
// pointers as ever, but the numbers come there only when somebody looks (Tensor::data() and all that reads): a pass
// whose tensors nobody looks at never waits.

#include <atomic>
#include <mutex>

namespace headscope {

class Remote {
 public:
  virtual ~Remote() = default;
  Remote(const Remote&) = delete;
  Remote& operator=(const Remote&) = delete;

  const float* mirror() const { return mirror_; }  ///< where the numbers come to
  /// Waits until they are there. From any thread. Throws when the device is lost.
  void arrive() {
    if (!arrived_.load(std::memory_order_acquire)) wait();
  }
  /// The same for somebody who will write there; the device then takes its numbers from here.
  void arrive_to_be_written() {
    arrive();
    ahead_.store(true, std::memory_order_release);
  }
  /// Has the numbers sent while the device goes on. May do nothing.
  virtual void send() {}

 protected:
  Remote(const float* mirror, bool arrived) : mirror_(mirror), arrived_(arrived) {}
  /// Copies all numbers to mirror(). One thread at a time.
  virtual void fetch() = 0;
  bool ahead() const { return ahead_.load(std::memory_order_acquire); }  ///< written to here, not yet there
  void level() { ahead_.store(false, std::memory_order_release); }
  void left_behind() {  ///< the device wrote again; what others are fetching meanwhile need not have that
    const std::lock_guard hold(lock_);
    arrived_.store(false, std::memory_order_release);
  }
  /// Before fetch(), and before anybody waits for another's.
  virtual void begin() {}
  std::mutex lock_;

 private:
  void wait() {
    begin();
    const std::lock_guard hold(lock_);
    if (arrived_.load(std::memory_order_acquire)) return;
    fetch();
    arrived_.store(true, std::memory_order_release);
  }
  const float* const mirror_;
  std::atomic<bool> arrived_, ahead_{false};
};

}  // namespace headscope
