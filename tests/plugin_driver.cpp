// Does with the plugin what TensorRT does, on the processor: register, create, ask, configure, serialise, create again,
// enqueue. plugin.cpp is the real one, compiled against TensorRT's headers; the registry and the copy are stand-ins.
#include <cstring>

#include <NvInfer.h>
#include <cuda_runtime.h>

using namespace nvinfer1;

namespace
{

IPluginCreatorV3One *known; // what the plugin's library registered
int copies;                 // whole caches

struct Registry : IPluginRegistry {
	bool registerCreator(IPluginCreatorInterface &creator, const AsciiChar *space) noexcept override
	{
		known = std::strcmp(space, "edged") == 0 ? static_cast<IPluginCreatorV3One *>(&creator) : nullptr;
		return known != nullptr;
	}
#if NV_TENSORRT_MAJOR < 11
	bool registerCreator(IPluginCreator &, const AsciiChar *) noexcept override { return false; }
	IPluginCreator *const *getPluginCreatorList(int32_t *) const noexcept override { return nullptr; }
	IPluginCreator *getPluginCreator(const AsciiChar *, const AsciiChar *, const AsciiChar *) noexcept override
	{
		return nullptr;
	}
	bool deregisterCreator(const IPluginCreator &) noexcept override { return false; }
#endif
	void setErrorRecorder(IErrorRecorder *) noexcept override {}
	IErrorRecorder *getErrorRecorder() const noexcept override { return nullptr; }
	bool isParentSearchEnabled() const override { return false; }
	void setParentSearchEnabled(bool) override {}
	PluginLibraryHandle loadLibrary(const AsciiChar *) noexcept override { return nullptr; }
	void deregisterLibrary(PluginLibraryHandle) noexcept override {}
	IPluginCreatorInterface *const *getAllCreators(int32_t *) const noexcept override { return nullptr; }
	virtual IPluginCreatorInterface *const *getAllCreatorsRecursive(int32_t *) noexcept { return nullptr; }
	IPluginCreatorInterface *getCreator(const AsciiChar *, const AsciiChar *, const AsciiChar *) noexcept override
	{
		return nullptr;
	}
	bool deregisterCreator(const IPluginCreatorInterface &) noexcept override { return false; }
	IPluginResource *acquirePluginResource(const AsciiChar *, IPluginResource *) noexcept override { return nullptr; }
	int32_t releasePluginResource(const AsciiChar *) noexcept override { return 0; }
};

struct Size : IDimensionExpr {}; // told apart by address

struct Sizes : IExprBuilder, private apiv::VExprBuilder {
	Size one;

	Sizes() { mImpl = this; }

private:
	const IDimensionExpr *constant(int64_t value) override { return value == 1 ? &one : nullptr; }
	const IDimensionExpr *operation(DimensionOperation, const IDimensionExpr &, const IDimensionExpr &) override
	{
		return nullptr;
	}
	const IDimensionExpr *declareSizeTensor(int32_t, const IDimensionExpr &, const IDimensionExpr &) override
	{
		return nullptr;
	}
};

} // namespace

extern "C" IPluginRegistry *getPluginRegistry() noexcept
{
	static Registry registry;
	return &registry;
}

extern "C" cudaError_t CUDARTAPI cudaMemcpyAsync(void *to, const void *from, size_t count, cudaMemcpyKind kind,
                                                 cudaStream_t) noexcept
{
	if (kind != cudaMemcpyDeviceToDevice)
		return cudaErrorInvalidValue;
	copies++;
	std::memcpy(to, from, count);
	return cudaSuccess;
}

struct Tensor {
	void *address;
	int32_t type; // of TensorRT
	int32_t rank;
	int64_t sizes[4];
};

namespace
{

constexpr int INPUTS = 6;

PluginTensorDesc described(const Tensor &tensor)
{
	PluginTensorDesc desc = {};
	desc.type = static_cast<DataType>(tensor.type);
	desc.format = TensorFormat::kLINEAR;
	desc.dims.nbDims = tensor.rank;
	for (int n = 0; n < tensor.rank; n++)
		desc.dims.d[n] = tensor.sizes[n];
	return desc;
}

// The output's sizes are made of the inputs' and of 1, as they are named here: B S, heads P width.
bool shaped(IPluginV3OneBuild &build, int count)
{
	Sizes make;
	Size batch, steps, wide, heads, slots, width, positions, half;
	const DimsExprs cache = {4, {&batch, &heads, &slots, &width}}, table = {2, {&positions, &half}};
	const DimsExprs in[INPUTS] = {{3, {&batch, &steps, &wide}}, cache, cache, {1, {&batch}}, table, table};
	const DimsExprs wanted[4] = {
	    {4, {&batch, &heads, &steps, &width}}, cache, cache, {4, {&batch, &make.one, &steps, &slots}}};
	DimsExprs out[4] = {};
	if (build.getOutputShapes(in, INPUTS, nullptr, 0, out, count, make) != 0)
		return false;
	for (int n = 0; n < count; n++)
		for (int d = 0; d < 4; d++)
			if (out[n].nbDims != 4 || out[n].d[d] != wanted[n].d[d])
				return false;
	return true;
}

} // namespace

// Returns 0, or the number of the step that failed. tensors: six inputs, then the outputs.
extern "C" int drive(const Tensor *tensors, int outputs, int *copied)
{
	if (known == nullptr)
		return 1;
	int32_t mask = outputs == 4;
	PluginField field("mask", &mask, PluginFieldType::kINT32, 1);
	const PluginFieldCollection given = {1, &field};
	if (known->getFieldNames()->nbFields != 1 || std::strcmp(known->getFieldNames()->fields[0].name, "mask") != 0)
		return 2;
	IPluginV3 *built = known->createPlugin("layer", &given, TensorRTPhase::kBUILD);
	auto &build = *static_cast<IPluginV3OneBuild *>(built->getCapabilityInterface(PluginCapabilityType::kBUILD));
	auto &core = *static_cast<IPluginV3OneCore *>(built->getCapabilityInterface(PluginCapabilityType::kCORE));
	if (std::strcmp(core.getPluginName(), "MaskedPosEnc") != 0 || build.getNbOutputs() != outputs)
		return 3;

	DynamicPluginTensorDesc asked[INPUTS + 4] = {};
	PluginTensorDesc at_run[INPUTS + 4] = {};
	DataType types[INPUTS + 4] = {}, made[4] = {};
	const void *inputs[INPUTS];
	void *results[4] = {};
	for (int n = 0; n < INPUTS + outputs; n++) {
		at_run[n] = described(tensors[n]);
		asked[n].desc = at_run[n];
		asked[n].desc.dims.d[0] = n == 4 || n == 5 ? at_run[n].dims.d[0] : -1; // the batch is not known yet
		types[n] = at_run[n].type;
		(n < INPUTS ? inputs[n] : const_cast<const void *&>(results[n - INPUTS])) = tensors[n].address;
	}
	if (build.getOutputDataTypes(made, outputs, types, INPUTS) != 0)
		return 4;
	for (int n = 0; n < outputs; n++)
		if (made[n] != types[INPUTS + n])
			return 5;
	for (int n = 0; n < INPUTS + outputs; n++) {
		if (!build.supportsFormatCombination(n, asked, INPUTS, outputs))
			return 6;
		asked[n].desc.format = TensorFormat::kCHW32;
		const bool any = build.supportsFormatCombination(n, asked, INPUTS, outputs);
		asked[n].desc.format = TensorFormat::kLINEAR;
		if (any)
			return 7;
	}
	if (!shaped(build, outputs))
		return 8;
	if (build.configurePlugin(asked, INPUTS, asked + INPUTS, outputs) != 0)
		return 9;

	auto *kept = static_cast<IPluginV3OneRuntime *>(built->getCapabilityInterface(PluginCapabilityType::kRUNTIME));
	IPluginV3 *loaded = known->createPlugin("layer", kept->getFieldsToSerialize(), TensorRTPhase::kRUNTIME);
	auto *first = static_cast<IPluginV3OneRuntime *>(loaded->getCapabilityInterface(PluginCapabilityType::kRUNTIME));
	IPluginV3 *attached = first->attachToContext(nullptr);
	auto &run = *static_cast<IPluginV3OneRuntime *>(attached->getCapabilityInterface(PluginCapabilityType::kRUNTIME));
	delete built;
	delete loaded; // a context outlives neither, but shares nothing with them
	copies = 0;
	int failed = run.onShapeChange(at_run, INPUTS, at_run + INPUTS, outputs) != 0 ? 10 : 0;
	if (!failed && run.enqueue(at_run, at_run + INPUTS, inputs, results, nullptr, nullptr) != 0)
		failed = 11;
	delete attached;
	*copied = copies;
	return failed;
}
