/* The TensorRT plugin "MaskedPosEnc", version "1", namespace "edged": IPluginV3 of TensorRT 10.3 to 11.
 *
 * inputs   qkv [B, S, 3 * heads * width], past_keys and past_values [B, heads, P, width], first [B] int32,
 *          cosine and sine [positions, width / 2] float32; qkv and cache each float32 or float16
 * outputs  query [B, heads, S, width] of qkv's type, present_keys and present_values like the inputs, and with the
 *          attribute mask = 1 the additive mask [B, 1, S, P] float32, which the other layers share
 *
 * The cache is written in place where the caller binds past and present to one address, as edged does: the new positions
 * only. At two addresses the cache is copied first, so the result is right in every case. TensorRT is not told of the
 * alias: getAliasedInput is a preview feature from 10.3 to 11, for which TensorRT may insert copies, as before a tensor
 * that it does not own, and a network's input is one. Only this layer reads the past, so nobody misses it.
 *
 * It registers when the library is loaded; TensorRT's own threads call the rest, edged's engine thread calls enqueue.
 */
#include <cstring>
#include <new>

#include <NvInfer.h>
#include <cuda_runtime.h>

#include "masked_pos_enc.h"

namespace
{

using namespace nvinfer1;

constexpr char NAME[] = "MaskedPosEnc", VERSION[] = "1", NAMESPACE[] = "edged";

enum Input { QKV, PAST_KEYS, PAST_VALUES, FIRST, COSINE, SINE, INPUTS };
enum Output { QUERY, PRESENT_KEYS, PRESENT_VALUES, MASK, MOST_OUTPUTS };

bool is_floating(DataType type)
{
	return type == DataType::kFLOAT || type == DataType::kHALF;
}

/* A size that is not known yet, -1 at build time, fits any. */
bool fits(int64_t size, int64_t wanted)
{
	return size == wanted || size < 0 || wanted < 0;
}

int64_t times(int64_t size, int64_t by)
{
	return size < 0 ? -1 : size * by;
}

bool consistent(const Dims &qkv, const Dims &keys, const Dims &values, const Dims &first, const Dims &cosine,
                const Dims &sine)
{
	if (qkv.nbDims != 3 || keys.nbDims != 4 || values.nbDims != 4 || first.nbDims != 1 || cosine.nbDims != 2 ||
	    sine.nbDims != 2)
		return false;
	const int64_t heads = keys.d[1], width = keys.d[3];
	if (heads <= 0 || width <= 0 || width % 2 != 0)
		return false;
	for (int n = 0; n < 4; n++)
		if (!fits(values.d[n], keys.d[n]))
			return false;
	return fits(qkv.d[0], keys.d[0]) && fits(first.d[0], keys.d[0]) && fits(qkv.d[2], 3 * heads * width) &&
	       fits(times(cosine.d[1], 2), width) && fits(times(sine.d[1], 2), width) && fits(sine.d[0], cosine.d[0]);
}

size_t bytes(const PluginTensorDesc &tensor)
{
	size_t count = tensor.type == DataType::kHALF ? 2 : 4;
	for (int n = 0; n < tensor.dims.nbDims; n++)
		count *= static_cast<size_t>(tensor.dims.d[n]);
	return count;
}

class MaskedPosEnc : public IPluginV3, public IPluginV3OneCore, public IPluginV3OneBuild, public IPluginV3OneRuntime
{
public:
	explicit MaskedPosEnc(int32_t mask) : mask_(mask)
	{
	}

	/* -- IPluginV3 */

	IPluginCapability *getCapabilityInterface(PluginCapabilityType type) noexcept override
	{
		switch (type) {
		case PluginCapabilityType::kCORE:
			return static_cast<IPluginV3OneCore *>(this);
		case PluginCapabilityType::kBUILD:
			return static_cast<IPluginV3OneBuild *>(this);
		case PluginCapabilityType::kRUNTIME:
			return static_cast<IPluginV3OneRuntime *>(this);
		}
		return nullptr;
	}

	IPluginV3 *clone() noexcept override
	{
		return new (std::nothrow) MaskedPosEnc(mask_);
	}

	/* -- core */

	const AsciiChar *getPluginName() const noexcept override
	{
		return NAME;
	}

	const AsciiChar *getPluginVersion() const noexcept override
	{
		return VERSION;
	}

	const AsciiChar *getPluginNamespace() const noexcept override
	{
		return NAMESPACE;
	}

	/* -- build */

	int32_t getNbOutputs() const noexcept override
	{
		return mask_ ? MOST_OUTPUTS : MASK;
	}

	int32_t getOutputDataTypes(DataType *outputs, int32_t count, const DataType *inputs,
	                           int32_t given) const noexcept override
	{
		if (given != INPUTS || count != getNbOutputs())
			return -1;
		outputs[QUERY] = inputs[QKV];
		outputs[PRESENT_KEYS] = inputs[PAST_KEYS];
		outputs[PRESENT_VALUES] = inputs[PAST_VALUES];
		if (mask_)
			outputs[MASK] = DataType::kFLOAT;
		return 0;
	}

	int32_t getOutputShapes(const DimsExprs *inputs, int32_t given, const DimsExprs *, int32_t, DimsExprs *outputs,
	                        int32_t count, IExprBuilder &make) noexcept override
	{
		if (given != INPUTS || count != getNbOutputs() || inputs[QKV].nbDims != 3 || inputs[PAST_KEYS].nbDims != 4)
			return -1;
		const DimsExprs &qkv = inputs[QKV], &keys = inputs[PAST_KEYS];
		outputs[QUERY] = {4, {qkv.d[0], keys.d[1], qkv.d[1], keys.d[3]}};
		outputs[PRESENT_KEYS] = keys;
		outputs[PRESENT_VALUES] = inputs[PAST_VALUES];
		if (mask_)
			outputs[MASK] = {4, {qkv.d[0], make.constant(1), qkv.d[1], keys.d[2]}};
		return 0;
	}

	/* A tensor may look at those before it: types follow the qkv and the keys. */
	bool supportsFormatCombination(int32_t at, const DynamicPluginTensorDesc *tensors, int32_t given,
	                               int32_t count) noexcept override
	{
		if (given != INPUTS || count != getNbOutputs() || tensors[at].desc.format != TensorFormat::kLINEAR)
			return false;
		const DataType type = tensors[at].desc.type;
		switch (at) {
		case QKV:
		case PAST_KEYS:
			return is_floating(type);
		case PAST_VALUES:
		case INPUTS + PRESENT_KEYS:
		case INPUTS + PRESENT_VALUES:
			return type == tensors[PAST_KEYS].desc.type;
		case INPUTS + QUERY:
			return type == tensors[QKV].desc.type;
		case FIRST:
			return type == DataType::kINT32;
		default:
			return type == DataType::kFLOAT;
		}
	}

	int32_t configurePlugin(const DynamicPluginTensorDesc *in, int32_t given, const DynamicPluginTensorDesc *,
	                        int32_t count) noexcept override
	{
		if (given != INPUTS || count != getNbOutputs())
			return -1;
		return consistent(in[QKV].desc.dims, in[PAST_KEYS].desc.dims, in[PAST_VALUES].desc.dims, in[FIRST].desc.dims,
		                  in[COSINE].desc.dims, in[SINE].desc.dims)
		           ? 0
		           : -1;
	}

	/* -- runtime */

	int32_t onShapeChange(const PluginTensorDesc *in, int32_t given, const PluginTensorDesc *,
	                      int32_t count) noexcept override
	{
		if (given != INPUTS || count != getNbOutputs())
			return -1;
		return consistent(in[QKV].dims, in[PAST_KEYS].dims, in[PAST_VALUES].dims, in[FIRST].dims, in[COSINE].dims,
		                  in[SINE].dims)
		           ? 0
		           : -1;
	}

	int32_t enqueue(const PluginTensorDesc *in, const PluginTensorDesc *, const void *const *inputs,
	                void *const *outputs, void *, cudaStream_t stream) noexcept override
	{
		for (int n = 0; n < 2; n++) {
			const void *past = inputs[PAST_KEYS + n];
			void *present = outputs[PRESENT_KEYS + n];
			if (past != present && cudaMemcpyAsync(present, past, bytes(in[PAST_KEYS + n]), cudaMemcpyDeviceToDevice,
			                                       stream) != cudaSuccess)
				return -1;
		}
		const Dims &qkv = in[QKV].dims, &keys = in[PAST_KEYS].dims;
		edged::Call call = {};
		call.qkv = inputs[QKV];
		call.keys = outputs[PRESENT_KEYS];
		call.values = outputs[PRESENT_VALUES];
		call.first = static_cast<const int32_t *>(inputs[FIRST]);
		call.cosine = static_cast<const float *>(inputs[COSINE]);
		call.sine = static_cast<const float *>(inputs[SINE]);
		call.query = outputs[QUERY];
		call.mask = mask_ ? static_cast<float *>(outputs[MASK]) : nullptr;
		call.rows = static_cast<int32_t>(qkv.d[0]);
		call.steps = static_cast<int32_t>(qkv.d[1]);
		call.heads = static_cast<int32_t>(keys.d[1]);
		call.width = static_cast<int32_t>(keys.d[3]);
		call.slots = static_cast<int32_t>(keys.d[2]);
		call.positions = static_cast<int32_t>(in[COSINE].dims.d[0]);
		call.half_qkv = in[QKV].type == DataType::kHALF;
		call.half_cache = in[PAST_KEYS].type == DataType::kHALF;
		return masked_pos_enc(&call, stream) == 0 ? 0 : -1;
	}

	IPluginV3 *attachToContext(IPluginResourceContext *) noexcept override
	{
		return clone();
	}

	const PluginFieldCollection *getFieldsToSerialize() noexcept override
	{
		field_ = PluginField("mask", &mask_, PluginFieldType::kINT32, 1);
		fields_ = {1, &field_};
		return &fields_;
	}

private:
	const int32_t mask_; /* 1: the mask is an output */
	PluginField field_;
	PluginFieldCollection fields_ = {};
};

class Creator : public IPluginCreatorV3One
{
public:
	/* The same at build time, from the node's attributes, and at run time, from the plan. */
	IPluginV3 *createPlugin(const AsciiChar *, const PluginFieldCollection *given, TensorRTPhase) noexcept override
	{
		int32_t mask = 0;
		for (int n = 0; n < given->nbFields; n++) {
			const PluginField &field = given->fields[n];
			if (std::strcmp(field.name, "mask") == 0 && field.type == PluginFieldType::kINT32 && field.length == 1)
				std::memcpy(&mask, field.data, sizeof mask);
		}
		return new (std::nothrow) MaskedPosEnc(mask != 0);
	}

	const PluginFieldCollection *getFieldNames() noexcept override
	{
		return &fields_;
	}

	const AsciiChar *getPluginName() const noexcept override
	{
		return NAME;
	}

	const AsciiChar *getPluginVersion() const noexcept override
	{
		return VERSION;
	}

	const AsciiChar *getPluginNamespace() const noexcept override
	{
		return NAMESPACE;
	}

private:
	PluginField field_ = {"mask", nullptr, PluginFieldType::kINT32, 1};
	PluginFieldCollection fields_ = {1, &field_};
};

/* The registry keeps the address: the creator lives as long as the library, which edged never unloads. */
Creator creator;
const bool registered = getPluginRegistry()->registerCreator(creator, NAMESPACE);

} // namespace

/* Version of the nodes that it runs, negative where TensorRT's registry did not take it, as when it has one already.
 * edged asks after loading. */
extern "C" __attribute__((visibility("default"))) int edged_plugin_version()
{
	constexpr int version = 1;
	return registered ? version : -version;
}
