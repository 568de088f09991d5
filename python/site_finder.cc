// SPDX-License-Identifier: Apache-2.0
#include "binding.h"

namespace sterna::python {
namespace {

std::vector<std::string>& internal_prefixes() {
  static std::vector<std::string> prefixes;
  return prefixes;
}

int last_instruction(PyFrameObject* frame) {
#if PY_VERSION_HEX >= 0x030B0000
  return PyFrame_GetLasti(frame);
#else
  return frame->f_lasti;
#endif
}

}  // namespace

void add_internal_prefix(const std::string& prefix) { internal_prefixes().push_back(prefix); }

bool is_internal_file(const std::string& file) {
  for (const std::string& prefix : internal_prefixes())
    if (file.rfind(prefix, 0) == 0) return true;
  return false;
}

SiteFinder::~SiteFinder() { forget(); }

void SiteFinder::forget() {
  Py_CLEAR(last_frame_);
  for (auto& [code, known] : codes_) Py_XDECREF(known.code);
  codes_.clear();
  sites_.clear();
  last_info_ = nullptr;
}

const SiteFinder::CodeInfo& SiteFinder::info(Program& program, PyCodeObject* code) {
  auto [at, fresh] = codes_.try_emplace(code);
  if (!fresh) return at->second;
  CodeInfo& made = at->second;
  made.code = Py_NewRef(reinterpret_cast<PyObject*>(code));
  const char* file = PyUnicode_AsUTF8(code->co_filename);
  const char* function = PyUnicode_AsUTF8(code->co_name);
  if (file == nullptr || function == nullptr) PyErr_Clear();
  const std::string path = file ? file : "?";
  made.internal = is_internal_file(path);
  made.file = program.names.intern(path);
  made.function = program.names.intern(function ? function : "?");
  return made;
}

uint32_t SiteFinder::site_of(Program& program, PyFrameObject* frame, int depth) {
  // From the kernel outwards up to the front end's runner; once for each activation of the innermost frame.
  if (frame == nullptr || depth > 64) return 0;
  PyCodeObject* code = PyFrame_GetCode(frame);
  const bool entry = reinterpret_cast<PyObject*>(code) == state().entry_code;
  const CodeInfo& known = info(program, code);
  Py_DECREF(code);
  if (entry) return 0;
  PyFrameObject* back = PyFrame_GetBack(frame);
  const uint32_t parent = site_of(program, back, depth + 1);
  Py_XDECREF(back);
  if (known.internal) return parent;  // a front end's own frame, or a kernel called from a kernel
  return program.sites.intern(known.file, known.function, PyFrame_GetLineNumber(frame), parent);
}

uint32_t SiteFinder::here(Program& program) {
  PyFrameObject* frame = PyEval_GetFrame();  // borrowed
  if (frame == nullptr) return 0;
  PyFrameObject* owned = nullptr;
  while (frame != last_frame_) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    const CodeInfo& known = info(program, code);
    Py_DECREF(code);
    if (!known.internal) {
      // Another activation: walk its callers once, then remember it.
      PyFrameObject* back = PyFrame_GetBack(frame);
      last_parent_ = site_of(program, back, 1);
      Py_XDECREF(back);
      Py_INCREF(reinterpret_cast<PyObject*>(frame));
      Py_XDECREF(last_frame_);
      last_frame_ = frame;
      last_info_ = &known;
      break;
    }
    PyFrameObject* back = PyFrame_GetBack(frame);
    Py_XDECREF(owned);
    owned = frame = back;
    if (frame == nullptr) return 0;
  }
  const int lasti = last_instruction(frame);
  auto [at, fresh] = sites_.try_emplace(Key{last_info_, last_parent_, lasti}, 0);
  if (fresh)
    at->second =
        program.sites.intern(last_info_->file, last_info_->function, PyFrame_GetLineNumber(frame), last_parent_);
  Py_XDECREF(owned);
  return at->second;
}

}  // namespace sterna::python
