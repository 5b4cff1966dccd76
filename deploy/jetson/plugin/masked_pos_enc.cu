/* The kernel: one launch a layer, on the caller's stream, without memory of its own.
 *
 * A block is a token's share of pairs of channels; the blocks of a token also write its row of the mask. A decoder step
 * is a few blocks, so what counts is the number of launches, not the width of a load. Without plugin.cpp this file makes
 * a library that needs no TensorRT.
 */
#include <cuda_runtime.h>

#include "masked_pos_enc.h"

namespace
{

constexpr int THREADS = 128;

template <typename T, typename Cache>
__global__ void __launch_bounds__(THREADS) masked_pos_enc_kernel(const edged::Call call)
{
	const int32_t row = blockIdx.x / call.steps, step = blockIdx.x % call.steps;
	const int32_t thread = blockIdx.y * THREADS + threadIdx.x;
	if (thread < call.heads * (call.width / 2))
		edged::place<T, Cache>(call, row, step, thread);
	if (call.mask != nullptr)
		for (int32_t slot = thread; slot < call.slots; slot += gridDim.y * THREADS)
			edged::hide(call, row, step, slot);
}

template <typename T, typename Cache>
void launch(const edged::Call &call, cudaStream_t stream)
{
	const int pairs = call.heads * (call.width / 2);
	const dim3 grid(call.rows * call.steps, (pairs + THREADS - 1) / THREADS);
	masked_pos_enc_kernel<T, Cache><<<grid, THREADS, 0, stream>>>(call);
}

} // namespace

int masked_pos_enc(const edged::Call *call, void *stream)
{
	if (call->rows <= 0 || call->steps <= 0)
		return cudaSuccess;
	if (call->heads <= 0 || call->width <= 0 || call->width % 2 != 0)
		return cudaErrorInvalidValue;
	const auto on = static_cast<cudaStream_t>(stream);
	if (call->half_qkv)
		call->half_cache ? launch<__half, __half>(*call, on) : launch<__half, float>(*call, on);
	else
		call->half_cache ? launch<float, __half>(*call, on) : launch<float, float>(*call, on);
	return cudaGetLastError();
}
