//===- TorchShim.cpp - PyTorch's stable C interface -----------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "TorchShim.h"

#include <dlfcn.h>
#include <iterator>

using namespace bastile;
using namespace bastile::python::torch;
using bastile::runtime::ElementType;

namespace {
/// Finds functions in the libraries that the process has loaded.
class Resolver {
public:
  explicit Resolver(void *library) : library(library) {}

  template <typename FunctionPointer>
  void operator()(FunctionPointer &target, const char *name) {
    target = reinterpret_cast<FunctionPointer>(dlsym(library, name));
    complete &= target != nullptr;
  }

  /// The value of a function without arguments.
  void value(int32_t &target, const char *name) {
    int32_t (*function)() = nullptr;
    (*this)(function, name);
    if (function)
      target = function();
  }

  bool isComplete() const { return complete; }

private:
  void *library;
  bool complete = true;
};
} // namespace

static void *openLoaded(const char *library) {
  // Only what is there already: opening PyTorch is for Python to do.
  return dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
}

static void resolveTypes(Resolver &resolve, Shim &shim) {
  auto number = [&](ElementType type) -> int32_t & {
    return shim.typeNumbers[static_cast<unsigned>(type)];
  };
  resolve.value(number(ElementType::F64), "aoti_torch_dtype_float64");
  resolve.value(number(ElementType::F32), "aoti_torch_dtype_float32");
  resolve.value(number(ElementType::F16), "aoti_torch_dtype_float16");
  resolve.value(number(ElementType::BF16), "aoti_torch_dtype_bfloat16");
  resolve.value(number(ElementType::F8E4M3FN),
                "aoti_torch_dtype_float8_e4m3fn");
  resolve.value(number(ElementType::F8E5M2), "aoti_torch_dtype_float8_e5m2");
  resolve.value(number(ElementType::I1), "aoti_torch_dtype_bool");
  resolve.value(number(ElementType::I8), "aoti_torch_dtype_int8");
  resolve.value(number(ElementType::I32), "aoti_torch_dtype_int32");
  resolve.value(number(ElementType::I64), "aoti_torch_dtype_int64");
}

static const Shim *resolveShim() {
  void *library = openLoaded("libtorch_cpu.so");
  if (!library)
    return nullptr;
  static Shim shim = {};
  Resolver resolve(library);
  resolve(shim.createLibrary, "aoti_torch_library_init_impl");
  resolve(shim.implement, "aoti_torch_library_impl");
  resolve(shim.listSize, "torch_list_size");
  resolve(shim.listItem, "torch_list_get_item");
  resolve(shim.createList, "torch_new_list_reserve_size");
  resolve(shim.listAppend, "torch_list_push_back");
  resolve(shim.deleteList, "torch_delete_list");
  resolve(shim.stringText, "torch_string_c_str");
  resolve(shim.stringLength, "torch_string_length");
  resolve(shim.deleteString, "torch_delete_string");
  resolve(shim.deleteTensor, "aoti_torch_delete_tensor_object");
  resolve(shim.data, "aoti_torch_get_data_ptr");
  resolve(shim.rank, "aoti_torch_get_dim");
  resolve(shim.sizes, "aoti_torch_get_sizes");
  resolve(shim.strides, "aoti_torch_get_strides");
  resolve(shim.type, "aoti_torch_get_dtype");
  resolve(shim.deviceType, "aoti_torch_get_device_type");
  resolve(shim.deviceIndex, "aoti_torch_get_device_index");
  resolve(shim.createTensor, "aoti_torch_empty_strided");
  resolve(shim.copyTensor, "aoti_torch_copy_");
  resolve.value(shim.cudaDevice, "aoti_torch_device_type_cuda");
  resolveTypes(resolve, shim);
  resolve(shim.expect, "aoti_torch_check");
  if (!resolve.isComplete())
    return nullptr;
  // A handle points to the tensor's object of C++, and this function takes it.
  if (void *python = openLoaded("libtorch_python.so"))
    Resolver{python}(shim.wrap, "_Z16THPVariable_WrapRKN2at10TensorBaseE");
  if (void *cuda = openLoaded("libtorch_cuda.so"))
    Resolver{cuda}(shim.currentStream, "aoti_torch_get_current_cuda_stream");
  return &shim;
}

const Shim *Shim::get() {
  static const Shim *const shim = resolveShim();
  return shim;
}

std::optional<ElementType> Shim::getElementType(int32_t number) const {
  for (unsigned i = 0; i != std::size(typeNumbers); ++i)
    if (typeNumbers[i] == number)
      return static_cast<ElementType>(i);
  return std::nullopt;
}

Tensor Shim::allocate(std::optional<int> device,
                      runtime::TensorView &view) const {
  Tensor tensor = nullptr;
  if (createTensor(view.rank(), view.sizes.begin(), view.strides.begin(),
                   getTypeNumber(view.type), device ? cudaDevice : 0,
                   device.value_or(0), &tensor) != 0)
    return nullptr;
  if (data(tensor, &view.data) == 0)
    return tensor;
  deleteTensor(tensor);
  return nullptr;
}
