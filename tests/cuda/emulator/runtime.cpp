// What core/cuda calls of the CUDA runtime and of cuBLASLt, on the emulated card: all that is queued is done at once.
// Memory is full of NaN until somebody writes it, and whoever writes beyond a piece of it is found when that is freed.

#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

namespace {

constexpr std::size_t guard = 256, all_memory = std::size_t{6} << 30;
constexpr unsigned char unwritten = 0xff;

std::mutex lock;
std::map<void*, std::size_t> pieces;
std::size_t taken = 0;

std::size_t whole(std::size_t bytes) {
  return (bytes + guard - 1) / guard * guard;
}

[[noreturn]] void stop(const char* why) {
  std::fprintf(stderr, "emulated card: %s\n", why);
  std::abort();
}

struct Description {
  cublasComputeType_t compute;
  cublasOperation_t a = CUBLAS_OP_N, b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const float* bias = nullptr;
};

struct Layout {
  cudaDataType_t kind;
  std::uint64_t rows, columns;
  std::int64_t stride;
};

float to_11_bits(float x) {
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(x) + 0x1000u) & 0xffffe000u);
}

/// Matrix (rows, columns), column by column, after the operation.
std::vector<float> numbers(const void* data, const Layout& layout, bool turned, bool rounded) {
  const std::uint64_t rows = turned ? layout.columns : layout.rows, columns = turned ? layout.rows : layout.columns;
  std::vector<float> out;
  for (std::uint64_t column = 0; column < columns; ++column)
    for (std::uint64_t row = 0; row < rows; ++row) {
      const std::uint64_t at = turned ? column + row * static_cast<std::uint64_t>(layout.stride)
                                      : row + column * static_cast<std::uint64_t>(layout.stride);
      const float x = layout.kind == CUDA_R_16BF ? __bfloat162float(static_cast<const __nv_bfloat16*>(data)[at])
                                                 : static_cast<const float*>(data)[at];
      out.push_back(rounded ? to_11_bits(x) : x);
    }
  return out;
}

template <class Handle>
auto new_handle(Handle* out) {
  *out = reinterpret_cast<Handle>(new char);
}
template <class Handle>
auto delete_handle(Handle handle) {
  delete reinterpret_cast<char*>(handle);
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** out, std::size_t bytes) {
  const std::lock_guard hold(lock);
  if (taken + bytes > all_memory) return cudaErrorMemoryAllocation;
  auto* const first = static_cast<unsigned char*>(std::aligned_alloc(guard, whole(bytes) + 2 * guard));
  std::memset(first, unwritten, whole(bytes) + 2 * guard);
  *out = first + guard;
  pieces[*out] = bytes;
  taken += bytes;
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  if (!memory) return cudaSuccess;
  const std::lock_guard hold(lock);
  const auto found = pieces.find(memory);
  if (found == pieces.end()) stop("memory was freed that nobody took");
  auto* const first = static_cast<unsigned char*>(memory);
  for (std::size_t i = 0; i < guard; ++i)
    if (first[found->second + i] != unwritten || *(first - 1 - i) != unwritten)
      stop("memory was written beyond its end");
  taken -= found->second;
  pieces.erase(found);
  std::free(first - guard);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** out, std::size_t bytes, unsigned int) {
  *out = std::aligned_alloc(guard, whole(bytes));
  std::memset(*out, unwritten, bytes);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) {
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t) {
  std::memmove(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t) {
  std::memset(to, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *free = all_memory - taken;
  *total = all_memory;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* out, unsigned int) {
  new_handle(out);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete_handle(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) {
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned int) {
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* out, unsigned int) {
  new_handle(out);
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete_handle(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) {
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t) {
  return cudaSuccess;
}

cudaError_t cudaGetLastError() {
  return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t status) {
  return status == cudaSuccess ? "no error" : "an error of the emulated card";
}
cudaError_t cudaGetDevice(int* index) {
  *index = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int index) {
  return index == 0 ? cudaSuccess : cudaErrorInvalidDevice;
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* out, int index) {
  if (index != 0) return cudaErrorInvalidDevice;
  *out = {};
  std::strcpy(out->name, "emulated card");
  out->major = 9;
  out->totalGlobalMem = all_memory;
  out->sharedMemPerBlockOptin = 232448;
  out->multiProcessorCount = 132;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t* out) {
  new_handle(out);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete_handle(handle);
  return CUBLAS_STATUS_SUCCESS;
}
const char* cublasLtGetStatusString(cublasStatus_t) {
  return "a status of the emulated card";
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* out, cublasComputeType_t compute, cudaDataType_t) {
  *out = reinterpret_cast<cublasLtMatmulDesc_t>(new Description{compute});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) {
  delete reinterpret_cast<Description*>(description);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t which,
                                              const void* value, std::size_t bytes) {
  auto& d = *reinterpret_cast<Description*>(description);
  switch (which) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      std::memcpy(&d.a, value, bytes);
      break;
    case CUBLASLT_MATMUL_DESC_TRANSB:
      std::memcpy(&d.b, value, bytes);
      break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      std::memcpy(&d.epilogue, value, bytes);
      break;
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      std::memcpy(&d.bias, value, bytes);
      break;
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
      break;
    default:
      stop("a product with an attribute that is not emulated");
  }
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* out, cudaDataType_t kind, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t stride) {
  *out = reinterpret_cast<cublasLtMatrixLayout_t>(new Layout{kind, rows, columns, stride});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete reinterpret_cast<Layout*>(layout);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* out) {
  new_handle(out);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete_handle(preference);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t,
                                                    const void*, std::size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t, int, cublasLtMatmulHeuristicResult_t*,
                                              int* found) {
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}
/// d = alpha · op(a) · op(b) + beta · c, and the bias of every row; all column by column.
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t description, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                              const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t*, void*, std::size_t,
                              cudaStream_t) {
  const auto& of = *reinterpret_cast<const Description*>(description);
  const auto layout = [](cublasLtMatrixLayout_t x) { return *reinterpret_cast<const Layout*>(x); };
  const Layout la = layout(a_layout), lb = layout(b_layout), lc = layout(c_layout), ld = layout(d_layout);
  const bool turned_a = of.a == CUBLAS_OP_T, turned_b = of.b == CUBLAS_OP_T,
             rounded = of.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  const std::uint64_t inner = turned_a ? la.rows : la.columns;
  if ((turned_a ? la.columns : la.rows) != ld.rows || (turned_b ? lb.rows : lb.columns) != ld.columns ||
      (turned_b ? lb.columns : lb.rows) != inner)
    stop("a product of matrices that do not fit");
  const std::vector<float> left = numbers(a, la, turned_a, rounded), right = numbers(b, lb, turned_b, rounded);
  const float by = *static_cast<const float*>(alpha), kept = *static_cast<const float*>(beta);
  for (std::uint64_t column = 0; column < ld.columns; ++column)
    for (std::uint64_t row = 0; row < ld.rows; ++row) {
      double sum = 0;
      for (std::uint64_t k = 0; k < inner; ++k)
        sum += static_cast<double>(left[row + k * ld.rows]) * static_cast<double>(right[k + column * inner]);
      float value = by * static_cast<float>(sum);
      if (kept != 0) value += kept * static_cast<const float*>(c)[row + column * static_cast<std::uint64_t>(lc.stride)];
      if (of.epilogue == CUBLASLT_EPILOGUE_BIAS) value += of.bias[row];
      static_cast<float*>(d)[row + column * static_cast<std::uint64_t>(ld.stride)] = value;
    }
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
