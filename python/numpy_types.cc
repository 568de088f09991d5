// SPDX-License-Identifier: Apache-2.0
// The packed x4 types as dtypes of NumPy: names, sizes, copies. There is no arithmetic, and no cast to or from other
// types (NumPy raises TypeError); sterna.x4 packs and unpacks.
//
// NumPy takes a new dtype through its C interface only. The two records below are its ABI, the same in NumPy 1.x and
// 2.x (documented as PyArray_DescrProto and PyArray_ArrFuncs in the NumPy C API reference), so building needs no NumPy.
#include <cstring>
#include <utility>

#include "binding.h"
#include "sterna/base/text.h"

namespace sterna::python {
namespace {

using Pointer = void*;

/// PyArray_ArrFuncs. Only what is not null is named.
struct NumpyFunctions {
  Pointer cast[21];
  PyObject* (*getitem)(void* data, void* array);
  int (*setitem)(PyObject* item, void* data, void* array);
  void (*copyswapn)(void* to, Py_ssize_t to_stride, void* from, Py_ssize_t from_stride, Py_ssize_t n, int swap,
                    void* array);
  void (*copyswap)(void* to, void* from, int swap, void* array);
  Pointer compare, argmax, dotfunc, scanfunc, fromstr;
  unsigned char (*nonzero)(void* data, void* array);
  Pointer fill, fillwithscalar, sort[3], argsort[3];
  PyObject* castdict;
  Pointer scalarkind, cancastscalarkindto, cancastto, unused[3], argmin;
};

/// PyArray_DescrProto.
struct NumpyDtype {
  PyObject_HEAD PyTypeObject* scalar;
  char kind, type, byteorder, flags;
  int type_num, elsize, alignment;
  Pointer subarray;
  PyObject *fields, *names;
  NumpyFunctions* functions;
  PyObject* metadata;
  Pointer c_metadata;
  Py_hash_t hash;
};

// Places in NumPy's table of functions, which never change.
constexpr int kDtypeType = 3, kDescrFromType = 45, kRegisterDataType = 192, kRegisterLoop = 2;
constexpr char kNeedsPython = 0x10, kUseGetitem = 0x20, kUseSetitem = 0x40;

/// An element outside of an array: its bits.
struct ElementObject {
  PyObject_HEAD uint32_t bits;
};

/// One packed type: what it is to Python and to NumPy.
struct PackedType {
  DType dtype;
  char letter;  ///< NumPy's one-letter code, which only has to be given
  PyTypeObject* scalar = nullptr;
  PyObject* made = nullptr;  ///< the dtype
  int number = 0;            ///< NumPy's
  NumpyFunctions functions{};
  NumpyDtype proto{};
  std::string qualified{};
};
PackedType packed_types[] = {{DType::kFloat8E4M3FNx4, 'x'}, {DType::kFloat8E5M2x4, 'y'}, {DType::kFloat4E2M1FNx4, 'z'}};

const PackedType* type_of(PyObject* element) {
  for (const PackedType& t : packed_types)
    if (Py_TYPE(element) == t.scalar) return &t;
  return nullptr;
}
uint32_t bits_of(PyObject* element) { return reinterpret_cast<ElementObject*>(element)->bits; }

PyObject* new_element(PyTypeObject* type, uint32_t bits) {
  PyObject* made = type->tp_alloc(type, 0);
  if (made != nullptr) reinterpret_cast<ElementObject*>(made)->bits = bits;
  return made;
}

// --- elements

/// name(bits=0)
PyObject* element_new(PyTypeObject* type, PyObject* args, PyObject*) {
  unsigned int bits = 0;
  if (!PyArg_ParseTuple(args, "|I", &bits)) return nullptr;
  return new_element(type, bits);
}
PyObject* element_repr(PyObject* element) {
  char text[64];
  std::snprintf(text, sizeof text, "%s(0x%0*x)", Py_TYPE(element)->tp_name, 2 * size_of(type_of(element)->dtype),
                bits_of(element));
  const char* dot = std::strrchr(text, '.');
  return PyUnicode_FromString(dot ? dot + 1 : text);
}
PyObject* element_int(PyObject* element) { return PyLong_FromUnsignedLong(bits_of(element)); }
Py_hash_t element_hash(PyObject* element) { return static_cast<Py_hash_t>(bits_of(element)); }
PyObject* element_compare(PyObject* a, PyObject* b, int op) {
  if ((op != Py_EQ && op != Py_NE) || Py_TYPE(a) != Py_TYPE(b)) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((bits_of(a) == bits_of(b)) == (op == Py_EQ));
}
PyType_Slot element_slots[] = {{Py_tp_new, reinterpret_cast<void*>(element_new)},
                               {Py_tp_repr, reinterpret_cast<void*>(element_repr)},
                               {Py_tp_str, reinterpret_cast<void*>(element_repr)},
                               {Py_tp_hash, reinterpret_cast<void*>(element_hash)},
                               {Py_tp_richcompare, reinterpret_cast<void*>(element_compare)},
                               {Py_nb_int, reinterpret_cast<void*>(element_int)},
                               {0, nullptr}};

// --- what NumPy calls. It passes no type, so each has its own functions.

template <int which>
PyObject* get_item(void* data, void*) {
  const PackedType& t = packed_types[which];
  uint32_t bits = 0;
  std::memcpy(&bits, data, static_cast<size_t>(size_of(t.dtype)));
  return new_element(t.scalar, bits);
}
template <int which>
int set_item(PyObject* item, void* data, void*) {
  const PackedType& t = packed_types[which];
  uint32_t bits = 0;
  if (Py_TYPE(item) == t.scalar) {
    bits = bits_of(item);
  } else if (!PyLong_Check(item) || PyLong_AsLong(item) != 0) {
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError,
                 "an element of %s is made of 0 or of its own kind; sterna.x4.static_cast packs numbers",
                 std::string(name(t.dtype)).c_str());
    return -1;
  }
  std::memcpy(data, &bits, static_cast<size_t>(size_of(t.dtype)));
  return 0;
}
/// Bytes have one order in packed elements, so nothing is ever swapped.
template <int which>
void copy_one(void* to, void* from, int, void*) {
  if (from != nullptr) std::memcpy(to, from, static_cast<size_t>(size_of(packed_types[which].dtype)));
}
template <int which>
void copy_many(void* to, Py_ssize_t to_stride, void* from, Py_ssize_t from_stride, Py_ssize_t n, int, void*) {
  if (from == nullptr) return;
  for (Py_ssize_t i = 0; i < n; ++i)
    std::memcpy(static_cast<char*>(to) + i * to_stride, static_cast<char*>(from) + i * from_stride,
                static_cast<size_t>(size_of(packed_types[which].dtype)));
}
template <int which>
unsigned char is_nonzero(void* data, void*) {
  uint32_t bits = 0;
  std::memcpy(&bits, data, static_cast<size_t>(size_of(packed_types[which].dtype)));
  return bits != 0;
}
template <int which>
void set_functions() {
  NumpyFunctions& f = packed_types[which].functions;
  f.getitem = get_item<which>;
  f.setitem = set_item<which>;
  f.copyswap = copy_one<which>;
  f.copyswapn = copy_many<which>;
  f.nonzero = is_nonzero<which>;
}

/// The loop of equal (bits are equal) and not_equal.
template <int size, bool equal>
void compare_loop(char** args, const Py_ssize_t* n, const Py_ssize_t* steps, void*) {
  for (Py_ssize_t i = 0; i < *n; ++i)
    args[2][i * steps[2]] = (std::memcmp(args[0] + i * steps[0], args[1] + i * steps[1], size) == 0) == equal;
}
using Loop = void (*)(char**, const Py_ssize_t*, const Py_ssize_t*, void*);

/// One of NumPy's tables of functions; null with an exception where it is not there.
Pointer* numpy_api(const char* table) {
  PyObject* module = PyImport_ImportModule("numpy._core._multiarray_umath");
  if (module == nullptr) {
    PyErr_Clear();
    module = PyImport_ImportModule("numpy.core._multiarray_umath");
  }
  PyObject* capsule = module ? PyObject_GetAttrString(module, table) : nullptr;
  Py_XDECREF(module);
  auto* api = capsule ? static_cast<Pointer*>(PyCapsule_GetPointer(capsule, nullptr)) : nullptr;
  Py_XDECREF(capsule);
  return api;
}

/// np.dtype(name) looks names up here, as for the small floats of ml_dtypes.
bool register_name(const std::string& text, PyObject* scalar, PyObject* numpy) {
  PyObject* names = PyObject_GetAttrString(numpy, "sctypeDict");
  const bool good = names != nullptr && PyDict_SetItemString(names, text.c_str(), scalar) == 0;
  Py_XDECREF(names);
  return good;
}

bool register_type(PackedType& t, Pointer* api, PyObject* generic, PyObject* numpy, PyObject* module) {
  t.qualified = cat("sterna._core.", name(t.dtype));
  PyType_Spec spec{t.qualified.c_str(), sizeof(ElementObject), 0, Py_TPFLAGS_DEFAULT, element_slots};
  t.scalar = reinterpret_cast<PyTypeObject*>(PyType_FromSpecWithBases(&spec, generic));
  if (t.scalar == nullptr) return false;
  NumpyDtype& d = t.proto;
  Py_SET_REFCNT(reinterpret_cast<PyObject*>(&d), 1);
  Py_SET_TYPE(reinterpret_cast<PyObject*>(&d), static_cast<PyTypeObject*>(api[kDtypeType]));
  d.scalar = t.scalar;
  d.kind = 'V';
  d.type = t.letter;
  d.byteorder = '=';
  d.flags = kNeedsPython | kUseGetitem | kUseSetitem;
  d.elsize = d.alignment = size_of(t.dtype);
  d.functions = &t.functions;
  d.hash = -1;
  t.number = reinterpret_cast<int (*)(NumpyDtype*)>(api[kRegisterDataType])(&d);
  if (t.number < 0) return false;
  t.made = reinterpret_cast<PyObject* (*)(int)>(api[kDescrFromType])(t.number);
  // np.dtype(scalar type) finds the dtype by its attribute; a pickled dtype finds the scalar type by its name here.
  auto* scalar = reinterpret_cast<PyObject*>(t.scalar);
  return t.made != nullptr && PyObject_SetAttrString(scalar, "dtype", t.made) == 0 &&
         PyObject_SetAttrString(module, std::string(name(t.dtype)).c_str(), scalar) == 0 &&
         register_name(std::string(name(t.dtype)), scalar, numpy);
}

bool register_comparisons(const PackedType& t, Pointer* api, PyObject* numpy) {
  const bool wide = size_of(t.dtype) == 4;
  const std::pair<const char*, Loop> loops[] = {{"equal", wide ? compare_loop<4, true> : compare_loop<2, true>},
                                                {"not_equal", wide ? compare_loop<4, false> : compare_loop<2, false>}};
  auto* add = reinterpret_cast<int (*)(PyObject*, int, Loop, const int*, void*)>(api[kRegisterLoop]);
  for (const auto& [ufunc_name, loop] : loops) {
    PyObject* ufunc = PyObject_GetAttrString(numpy, ufunc_name);
    const int types[] = {t.number, t.number, 0};  // 0: bool
    const bool good = ufunc != nullptr && add(ufunc, t.number, loop, types, nullptr) == 0;
    Py_XDECREF(ufunc);
    if (!good) return false;
  }
  return true;
}

bool register_all(PyObject* module) {
  Pointer *api = numpy_api("_ARRAY_API"), *ufunc_api = numpy_api("_UFUNC_API");
  if (api == nullptr || ufunc_api == nullptr) return false;
  set_functions<0>(), set_functions<1>(), set_functions<2>();
  PyObject* numpy = PyImport_ImportModule("numpy");
  PyObject* generic = numpy ? PyObject_GetAttrString(numpy, "generic") : nullptr;
  bool good = generic != nullptr;
  for (PackedType& t : packed_types)
    good = good && register_type(t, api, generic, numpy, module) && register_comparisons(t, ufunc_api, numpy);
  Py_XDECREF(generic);
  Py_XDECREF(numpy);
  return good;
}

/// packed_dtype(name): the dtype, registered with NumPy when first asked for.
PyObject* packed_dtype(PyObject* module, PyObject* args) {
  const char* text;
  if (!PyArg_ParseTuple(args, "s", &text)) return nullptr;
  if (packed_types[2].made == nullptr && !register_all(module)) return nullptr;
  for (const PackedType& t : packed_types)
    if (name(t.dtype) == text) return Py_NewRef(t.made);
  return PyErr_Format(PyExc_KeyError, "no packed type '%s'", text);
}

PyMethodDef methods[] = {
    {"packed_dtype", packed_dtype, METH_VARARGS, "packed_dtype(name): NumPy's dtype of an x4 type."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool add_numpy_types(PyObject* module) { return PyModule_AddFunctions(module, methods) == 0; }

}  // namespace sterna::python
