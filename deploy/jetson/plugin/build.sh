#!/bin/sh
# Builds the plugin on the device that will run it: ./build.sh [sm_87 | sm_110 | ...] [OUTPUT]
# Without an architecture nvcc takes that of the GPU that is there. Needs nvcc and TensorRT's headers, which JetPack
# brings (libnvinfer-dev); elsewhere NVCC names the compiler and TENSORRT a folder with include/ and lib/.
set -eu
case ${1-} in -h | --help) sed -n '2,4s/^# \{0,1\}//p' "$0" && exit ;; esac
here=$(dirname "$0")
arch=${1:-native}
out=${2:-masked_pos_enc.so}
nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}

if ! "$nvcc" --version >/dev/null 2>&1; then
    echo "build.sh: no nvcc: install cuda-nvcc, or set NVCC=/path/to/nvcc" >&2
    exit 1
fi
set --
if [ -n "${TENSORRT:-}" ]; then
    set -- "-I$TENSORRT/include" "-L$TENSORRT/lib"
elif [ ! -e "/usr/include/$(uname -m)-linux-gnu/NvInfer.h" ] && [ ! -e /usr/include/NvInfer.h ]; then
    echo "build.sh: no NvInfer.h: install libnvinfer-dev, or set TENSORRT=/path/to/TensorRT" >&2
    exit 1
fi
# The headers alone do not do: the linker says of a missing library only that it "cannot find -lnvinfer".
if ! printf 'int main() { return 0; }\n' |
    "$nvcc" -x c++ -shared -Xcompiler -fPIC "$@" -o /dev/null - -lnvinfer >/dev/null 2>&1; then
    echo "build.sh: no libnvinfer: install libnvinfer-dev, or set TENSORRT=/path/to/TensorRT, with lib/libnvinfer.so" >&2
    exit 1
fi
"$nvcc" -std=c++17 -O3 "-arch=$arch" -shared -Xcompiler -fPIC,-fvisibility=hidden,-Wno-deprecated-declarations -Xlinker -z,now \
    "$@" -o "$out" "$here/masked_pos_enc.cu" "$here/plugin.cpp" -lnvinfer
echo "$out"
