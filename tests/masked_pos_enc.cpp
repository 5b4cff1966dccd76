// The plugin's functions on the processor: the loops that the device's grid stands for.
#include "masked_pos_enc.h"

namespace
{

template <typename T, typename Cache>
void all(const edged::Call &call)
{
	for (int32_t row = 0; row < call.rows; row++)
		for (int32_t step = 0; step < call.steps; step++) {
			for (int32_t pair = 0; pair < call.heads * (call.width / 2); pair++)
				edged::place<T, Cache>(call, row, step, pair);
			for (int32_t slot = 0; call.mask != nullptr && slot < call.slots; slot++)
				edged::hide(call, row, step, slot);
		}
}

} // namespace

int masked_pos_enc(const edged::Call *call, void *)
{
	using edged::float16;
	if (call->half_qkv)
		call->half_cache ? all<float16, float16>(*call) : all<float16, float>(*call);
	else
		call->half_cache ? all<float, float16>(*call) : all<float, float>(*call);
	return 0;
}
