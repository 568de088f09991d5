# SPDX-License-Identifier: Apache-2.0
"""States of the lock that the suite keeps on hosts with real chips. Nothing here talks to a host."""

import dataclasses
import enum
import json


class LockStatus(enum.Enum):
    """How a request for cores ended; `exit_code` is that of the command on the host."""

    ALLOCATED = 0
    RELEASED = 10
    NO_CORES = 11
    DRAINING = 12
    DRAINED = 13
    UNDRAINED = 14
    ERROR = 1
    FLOCK_TIMEOUT = 124

    @property
    def exit_code(self):
        return self.value

    @classmethod
    def from_exit_code(cls, code):
        """The status, or None for a code that is none of them."""
        return cls(code) if code in cls._value2member_map_ else None


@dataclasses.dataclass
class LockResult:
    """A status with what belongs to it."""

    status: LockStatus
    cores: list = None
    max_lock_expiry: int = None
    message: str = None

    def to_json(self):
        fields = dataclasses.asdict(self)
        fields["status"] = self.status.name
        return json.dumps(fields)

    @classmethod
    def from_json(cls, text):
        fields = json.loads(text)
        status = LockStatus[fields.pop("status")]
        known = {field.name for field in dataclasses.fields(cls)}
        return cls(status, **{name: value for name, value in fields.items() if name in known})
