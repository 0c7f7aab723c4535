#include "core/cuda/device.h"

#include <fmt/format.h>

#include <utility>

#include "core/base/error.h"
#include "core/base/memory.h"

namespace headscope::cuda {
namespace {

constexpr std::size_t largest_pinned = std::size_t{1} << 30;  // to pin pages takes time, and few look at so many
constexpr std::size_t workspace_bytes = std::size_t{32} << 20;
constexpr std::uint32_t aligned = Device::aligned;

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
  cudaStreamSynchronize(stream_);
  plans_.clear();
  cudaFree(workspace_);
  cublasLtDestroy(lt_);
  cudaStreamDestroy(homeward_);
  cudaStreamDestroy(stream_);
}

void Device::choose() const {
  check(cudaSetDevice(index_), "choosing the card");  // cheap where it is chosen already
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

// Row-major c = a w is column-major cᵀ = wᵀ aᵀ: w stands first, and what is a row here is a column there.
const Device::Plan& Device::plan(const PlanKey& key, cudaDataType_t kind, cublasComputeType_t compute, Index a_stride,
                                 Index rows, Index in, Index out, bool bias) {
  if (const auto known = plans_.find(key); known != plans_.end()) return known->second;
  Plan made;
  const auto u = [](Index n) { return static_cast<std::uint64_t>(n); };
  check(cublasLtMatmulDescCreate(&made.product, compute, CUDA_R_32F), "describing a product");
  const cublasLtEpilogue_t epilogue = bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
  check(cublasLtMatmulDescSetAttribute(made.product, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue),
        "describing a product");
  if (bias) {
    const cudaDataType_t of_bias = CUDA_R_32F;
    check(cublasLtMatmulDescSetAttribute(made.product, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &of_bias, sizeof of_bias),
          "describing a product");
  }
  check(cublasLtMatrixLayoutCreate(&made.a, kind, u(out), u(in), out), "describing a matrix");
  check(cublasLtMatrixLayoutCreate(&made.b, kind, u(in), u(rows), a_stride), "describing a matrix");
  check(cublasLtMatrixLayoutCreate(&made.c, CUDA_R_32F, u(out), u(rows), out), "describing a matrix");
  cublasLtMatmulPreference_t preference = nullptr;
  check(cublasLtMatmulPreferenceCreate(&preference), "choosing an algorithm");
  cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_bytes,
                                       sizeof workspace_bytes);
  for (const auto attribute : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                               CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    cublasLtMatmulPreferenceSetAttribute(preference, attribute, &aligned, sizeof aligned);
  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(lt_, made.product, made.a, made.b, made.c, made.c, preference, 1, &best, &found);
  cublasLtMatmulPreferenceDestroy(preference);
  if (status != CUBLAS_STATUS_SUCCESS || found == 0)
    throw CardError("cuBLASLt", fmt::format("an algorithm for ({}, {}) · ({}, {})", rows, in, in, out),
                    cublasLtGetStatusString(status));
  made.algorithm = best.algo;
  return plans_.emplace(key, std::move(made)).first->second;
}

void Device::multiply(cudaDataType_t kind, cublasComputeType_t compute, const void* a, Index a_stride, Index rows,
                      Index in, const void* w, Index out, const float* bias, float* c) {
  const std::lock_guard hold(plans_lock_);
  const Plan& p = plan({static_cast<int>(kind), static_cast<int>(compute), rows, in, out, a_stride, bias != nullptr},
                       kind, compute, a_stride, rows, in, out, bias != nullptr);
  if (bias)
    check(cublasLtMatmulDescSetAttribute(p.product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias),
          "describing a product");
  const float one = 1, zero = 0;
  check(cublasLtMatmul(lt_, p.product, &one, w, p.a, a, p.b, &zero, c, p.c, c, p.c, &p.algorithm, workspace_,
                       workspace_bytes, stream_),
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
  if (sent_) return check(cudaEventSynchronize(sent_), "copying numbers from the card");
  device_->choose();
  copy_home(device_->stream());
  device_->synchronize();
}

}  // namespace headscope::cuda
