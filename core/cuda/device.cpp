#include "core/cuda/device.h"

#include <fmt/format.h>

#include <utility>

#include "core/base/error.h"
#include "core/base/memory.h"

namespace headscope::cuda {
namespace {

thread_local int chosen = -1;  // of this thread: to ask the driver costs as much as an op

constexpr std::size_t largest_pinned = std::size_t{1} << 30;  // to pin pages takes time, and few look at so many
constexpr std::size_t workspace_bytes = std::size_t{32} << 20;

float* card_memory(std::size_t bytes) {
  void* data = nullptr;
  if (cudaMalloc(&data, bytes) != cudaSuccess) {
    cudaGetLastError();  // forgotten: whoever asked says it
    return nullptr;
  }
  return static_cast<float*>(data);
}
void free_card_memory(float* data, std::size_t) {
  cudaFree(data);
}

float* pinned_memory(std::size_t bytes) {
  void* data = nullptr;
  if (cudaHostAlloc(&data, bytes, cudaHostAllocPortable) != cudaSuccess) {
    cudaGetLastError();
    return nullptr;
  }
  return static_cast<float*>(data);
}
void free_pinned_memory(float* data, std::size_t) {
  cudaFreeHost(data);
}

constexpr BufferPool::Source on_card{card_memory, free_card_memory, 0, std::size_t{4} << 30};
constexpr BufferPool::Source in_reach{pinned_memory, free_pinned_memory, 0, std::size_t{2} << 30};

}  // namespace

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // forgotten: this says it
  throw CardError("CUDA", fmt::format("{} to succeed", what), cudaGetErrorString(status),
                  "--device cpu, or the processor in the settings");
}

void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw CardError("cuBLAS", fmt::format("{} to succeed", what), cublasLtGetStatusString(status));
}

Device::Plan::~Plan() {
  if (product) cublasLtMatmulDescDestroy(product);
  for (const cublasLtMatrixLayout_t layout : {a, b, c})
    if (layout) cublasLtMatrixLayoutDestroy(layout);
}

std::shared_ptr<Device> Device::open(int index) {
  static std::mutex lock;
  static std::map<int, std::weak_ptr<Device>> open;
  const std::lock_guard hold(lock);
  if (auto known = open[index].lock()) return known;
  std::shared_ptr<Device> device(new Device(index));
  open[index] = device;
  return device;
}

Device::Device(int index) : index_(index), memory_(BufferPool::create(on_card)), pinned_(BufferPool::create(in_reach)) {
  choose();
  check(cudaGetDeviceProperties(&properties_, index), "reading the card's properties");
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
  check(cudaStreamCreateWithFlags(&homeward_, cudaStreamNonBlocking), "making a stream");
  check(cublasLtCreate(&lt_), "starting cuBLASLt");
  check(cudaMalloc(&workspace_, workspace_bytes), "making room for products");
}

Device::~Device() {
  cudaSetDevice(index_);
  chosen = index_;
  cudaStreamSynchronize(stream_);
  plans_.clear();
  cudaFree(workspace_);
  cublasLtDestroy(lt_);
  cudaStreamDestroy(homeward_);
  cudaStreamDestroy(stream_);
}

void Device::choose() const {
  if (chosen == index_) return;
  check(cudaSetDevice(index_), "choosing the card");
  chosen = index_;
}

void Device::synchronize() {
  check(cudaStreamSynchronize(stream_), "waiting for the card");
}

void Device::send(void* to, const void* from, std::size_t bytes) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_), "copying numbers to the card");
}

std::shared_ptr<float> Device::take(std::size_t bytes) {
  std::shared_ptr<float> memory = memory_->take(std::max<std::size_t>(bytes, 16));
  if (memory) return memory;
  std::size_t free = 0, total = 0;
  cudaMemGetInfo(&free, &total);
  throw CardError(
      fmt::format("CUDA, {}", properties_.name),
      fmt::format("{} of its memory", memory_text(static_cast<double>(bytes))),
      fmt::format("{} free of {}", memory_text(static_cast<double>(free)), memory_text(static_cast<double>(total))),
      "a smaller model, a shorter text, fewer captured tensors, or --device cpu");
}

Tensor Device::mirror(Shape shape) {
  const std::size_t bytes = static_cast<std::size_t>(shape.size()) * sizeof(float);
  std::shared_ptr<float> memory = bytes <= largest_pinned ? pinned_->take(bytes) : nullptr;
  if (!memory) return Tensor::uninitialized(shape);
  const float* const first = memory.get();
  return Tensor::borrow(first, shape, std::move(memory));
}

std::shared_ptr<float> Device::pinned(std::size_t bytes) {
  std::shared_ptr<float> memory = pinned_->take(bytes);
  if (!memory)
    throw CardError("CUDA, memory of this machine",
                    fmt::format("{} that the card can copy to", memory_text(static_cast<double>(bytes))), "less");
  return memory;
}

std::shared_ptr<float> Device::upload(const void* from, std::size_t bytes) {
  std::shared_ptr<float> to = take(bytes);
  send(to.get(), from, bytes);
  return to;
}

namespace {
/// The largest power of two up to 256 that the place is a multiple of.
std::uint32_t alignment_of(const void* place) {
  std::uint32_t bytes = 256;
  while (reinterpret_cast<std::uintptr_t>(place) % bytes != 0) bytes /= 2;
  return bytes;
}
}  // namespace

// Row-major c = a b is column-major cᵀ = bᵀ aᵀ: b stands first, and what is a row here is a column there.
const Device::Plan& Device::plan(const Product& p) {
  const std::uint32_t first = alignment_of(p.b.first), second = alignment_of(p.a.first), sum = alignment_of(p.c);
  const PlanKey key{p.kind,
                    p.compute,
                    p.rows,
                    p.in,
                    p.out,
                    p.a.stride,
                    p.b.stride,
                    p.c_stride,
                    p.a.transposed,
                    p.b.transposed,
                    Index{first} << 20 | Index{second} << 10 | sum,
                    p.add,
                    p.bias != nullptr};
  if (const auto known = plans_.find(key); known != plans_.end()) return known->second;
  Plan made;
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    check(cublasLtMatmulDescSetAttribute(made.product, attribute, &value, sizeof value), "describing a product");
  };
  check(cublasLtMatmulDescCreate(&made.product, p.compute, CUDA_R_32F), "describing a product");
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, p.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT);
  if (p.bias) set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, CUDA_R_32F);
  if (p.b.transposed) set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
  if (p.a.transposed) set(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_T);
  const auto matrix = [](cublasLtMatrixLayout_t& layout, cudaDataType_t kind, Index rows, Index columns,
                         const Laid& x) {
    if (x.transposed) std::swap(rows, columns);
    check(cublasLtMatrixLayoutCreate(&layout, kind, static_cast<std::uint64_t>(columns),
                                     static_cast<std::uint64_t>(rows), x.stride),
          "describing a matrix");
  };
  matrix(made.a, p.kind, p.in, p.out, p.b);
  matrix(made.b, p.kind, p.rows, p.in, p.a);
  matrix(made.c, CUDA_R_32F, p.rows, p.out, {p.c, p.c_stride});
  cublasLtMatmulPreference_t preference = nullptr;
  check(cublasLtMatmulPreferenceCreate(&preference), "choosing an algorithm");
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value);
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, first);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, second);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, sum);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, sum);
  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(lt_, made.product, made.a, made.b, made.c, made.c, preference, 1, &best, &found);
  cublasLtMatmulPreferenceDestroy(preference);
  if (status != CUBLAS_STATUS_SUCCESS || found == 0)
    throw CardError("cuBLASLt", fmt::format("an algorithm for ({}, {}) · ({}, {})", p.rows, p.in, p.in, p.out),
                    cublasLtGetStatusString(status));
  made.algorithm = best.algo;
  return plans_.emplace(key, std::move(made)).first->second;
}

void Device::multiply(const Product& product) {
  assert(!(product.add && product.bias));
  const std::lock_guard hold(plans_lock_);
  const Plan& p = plan(product);
  if (product.bias)
    check(cublasLtMatmulDescSetAttribute(p.product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &product.bias,
                                         sizeof product.bias),
          "describing a product");
  const float one = 1, kept = product.add ? 1 : 0;
  check(cublasLtMatmul(lt_, p.product, &one, product.b.first, p.a, product.a.first, p.b, &kept, product.c, p.c,
                       product.c, p.c, &p.algorithm, workspace_, workspace_bytes, stream_),
        "cublasLtMatmul");
}

Storage::Storage(std::shared_ptr<Device> device, Tensor mirror, bool arrived)
    : Remote(mirror.data(), arrived), device_(std::move(device)), mirror_(std::move(mirror)) {
  memory_ = device_->take(mirror_.bytes());
}

Storage::Storage(std::shared_ptr<Device> device, Index size) : Storage(device, device->mirror({size}), false) {}

Storage::Storage(std::shared_ptr<Device> device, Tensor here) : Storage(std::move(device), std::move(here), true) {
  device_->send(memory_.get(), mirror(), mirror_.bytes());
}

Storage::~Storage() {
  if (!sent_) return;
  cudaEventSynchronize(sent_);  // nobody may use either memory again before
  cudaEventDestroy(sent_);
}

float* Storage::on_card() {
  begin();
  if (ahead()) {
    const std::lock_guard hold(lock_);
    device_->send(memory_.get(), mirror(), mirror_.bytes());
    device_->synchronize();  // what was written here may be written again
    level();
  }
  return memory_.get();
}

void Storage::copy_home(cudaStream_t stream) {
  check(cudaMemcpyAsync(const_cast<float*>(mirror()), memory_.get(), mirror_.bytes(), cudaMemcpyDeviceToHost, stream),
        "copying numbers from the card");
}

void Storage::send() {
  begin();
  const std::lock_guard hold(lock_);
  if (sent_) return;
  device_->choose();
  check(cudaEventCreateWithFlags(&sent_, cudaEventDisableTiming), "making an event");
  check(cudaEventRecord(sent_, device_->stream()), "marking a place in the stream");
  check(cudaStreamWaitEvent(device_->homeward(), sent_, 0), "waiting for numbers");
  copy_home(device_->homeward());
  check(cudaEventRecord(sent_, device_->homeward()), "marking a place in the stream");
}

void Storage::fetch() {
  while (starter_) {  // of another thread, which starts it soon, and may have to say first that it will write
    lock_.unlock();
    std::this_thread::yield();
    lock_.lock();
  }
  if (sent_) return check(cudaEventSynchronize(sent_), "copying numbers from the card");
  device_->choose();
  copy_home(device_->stream());
  device_->synchronize();
}

}  // namespace headscope::cuda
