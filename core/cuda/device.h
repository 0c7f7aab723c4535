#pragma once
// One NVIDIA card as everything in this folder sees it: a stream on which all work stands in order, a second one that
// carries numbers home meanwhile, memory that is used again, cuBLASLt. Private to core/cuda.

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <cassert>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/cuda/cuda_backend.h"
#include "core/tensor/buffer_pool.h"
#include "core/tensor/remote.h"
#include "core/tensor/tensor.h"

namespace headscope::cuda {

/// Throws CardError naming what was tried and what the driver says.
void check(cudaError_t status, const char* what);
void check(cublasStatus_t status, const char* what);

/// What numbers are multiplied as, and how exactly, in a precision.
inline cudaDataType_t kind_of(Precision precision) {
  return precision == Precision::bf16 ? CUDA_R_16BF : CUDA_R_32F;
}
inline cublasComputeType_t compute_of(Precision precision) {
  return precision == Precision::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

class Device {
 public:
  /// The card of that number; the same object as long as anybody uses it.
  static std::shared_ptr<Device> open(int index);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  void choose() const;  ///< this card for this thread; every entry from outside begins with it
  void synchronize();   ///< waits until all that is queued is done
  /// To the card; `from` may go when this returns, unless it is memory that the card reads by itself (mirror()).
  void send(void* to, const void* from, std::size_t bytes);

  cudaStream_t stream() const { return stream_; }
  cudaStream_t homeward() const { return homeward_; }
  const cudaDeviceProp& properties() const { return properties_; }
  /// Whether a kernel can be started while the one before still runs (launch() of instructions.cuh).
  bool starts_early() const { return properties_.major >= 9; }

  /// Memory of the card, not cleared. Handed back, it may be written to by what is queued later: all stands in one
  /// stream, and what the second one still reads waits in ~Storage. Throws CardError with what is free and what was
  /// wanted.
  std::shared_ptr<float> take(std::size_t bytes);
  /// A place here that the card copies to without the processor's help.
  Tensor mirror(Shape shape);
  std::shared_ptr<float> pinned(std::size_t bytes);
  /// Memory of the card with these bytes.
  std::shared_ptr<float> upload(const void* from, std::size_t bytes);

  /// A matrix in memory: rows `stride` numbers apart or, transposed, columns.
  struct Laid {
    const void* first;
    Index stride;
    bool transposed = false;
  };
  /// c (rows, out) = a (rows, in) · b (in, out) + bias, or that product added to c.
  struct Product {
    cudaDataType_t kind;  ///< of a and b; c is float32
    cublasComputeType_t compute;
    Laid a, b;
    Index rows, in, out;
    float* c;
    Index c_stride;               ///< rows of c so far apart
    const float* bias = nullptr;  ///< may be null; not with `add`
    bool add = false;
  };
  void multiply(const Product& product);
  static constexpr std::uint32_t aligned = 16;  ///< bytes that kernels read at once

 private:
  explicit Device(int index);
  struct Plan {
    cublasLtMatmulDesc_t product = nullptr;
    cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
    cublasLtMatmulAlgo_t algorithm{};
    Plan() = default;
    Plan(Plan&& other) noexcept
        : product(std::exchange(other.product, nullptr)),
          a(std::exchange(other.a, nullptr)),
          b(std::exchange(other.b, nullptr)),
          c(std::exchange(other.c, nullptr)),
          algorithm(other.algorithm) {}
    ~Plan();
  };
  /// All that an algorithm is chosen by: kinds, extents, strides, flags, how places are aligned.
  using PlanKey = std::array<Index, 13>;
  const Plan& plan(const Product& product);

  int index_;
  cudaDeviceProp properties_{};
  cudaStream_t stream_ = nullptr, homeward_ = nullptr;
  cublasLtHandle_t lt_ = nullptr;
  void* workspace_ = nullptr;
  std::shared_ptr<BufferPool> memory_, pinned_;
  std::mutex plans_lock_;
  std::map<PlanKey, Plan> plans_;
};

/// Whoever has yet to start what makes a tensor's numbers, on the thread that runs the pass.
class Starter {
 public:
  virtual ~Starter() = default;
  virtual void start() = 0;
  bool mine() const { return thread_.load() == std::this_thread::get_id(); }

 protected:
  std::atomic<std::thread::id> thread_;
};

/// A tensor's numbers on a card.
class Storage final : public Remote {
 public:
  /// Room for what a kernel will write.
  Storage(std::shared_ptr<Device> device, Index size);
  /// What `here` (contiguous, f32) has, copied over.
  Storage(std::shared_ptr<Device> device, Tensor here);
  ~Storage() override;
  const std::shared_ptr<Device>& device() const { return device_; }
  /// Where they are over there; starts first what makes them, sends what was written here.
  float* on_card();
  /// Where they will be, whatever has to happen before.
  float* room() const { return memory_.get(); }
  /// Null: it has started, or will be queued before anything that this thread asks for.
  void wait_for(Starter* starter) { starter_ = starter; }
  bool waits() const { return starter_ != nullptr; }
  /// Nobody will ask for numbers behind the first so many.
  void cut_to(Index numbers) { mirror_ = mirror_.slice(0, 0, numbers); }
  /// The card writes there again.
  void written_on_card() {
    assert(!sent_);  // nobody sends what will be written again
    left_behind();
  }
  void send() override;

 private:
  Storage(std::shared_ptr<Device> device, Tensor mirror, bool arrived);
  void begin() override {
    if (Starter* const starter = starter_; starter && starter->mine()) starter->start();
  }
  void fetch() override;
  void copy_home(cudaStream_t stream);
  std::shared_ptr<Device> device_;
  Tensor mirror_;
  std::shared_ptr<float> memory_;
  std::atomic<Starter*> starter_ = nullptr;
  cudaEvent_t sent_ = nullptr;
};

}  // namespace headscope::cuda
