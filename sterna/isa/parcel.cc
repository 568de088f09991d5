// SPDX-License-Identifier: Apache-2.0
#include "sterna/isa/parcel.h"

namespace sterna {

Status Parcel::pack(const View& view, Machine& machine, const char* what) {
  STERNA_ASSIGN(tile_, machine.read_any(view, what));
  states_ = machine.element_states_if_partial(view);
  bytes_.copy(tile_);
  return {};
}

Status Parcel::deliver(const View& view, Machine& machine, const char* what) const {
  STERNA_ASSIGN(const Operand to, machine.open(view, what));
  STERNA_TRY(copy_elements(machine, to, tile_));
  if (states_.empty())
    machine.mark_defined(view);
  else
    machine.mark_elements(view, states_);
  return {};
}

}  // namespace sterna
