"""The kernels of the calibration workload, as PTX that the driver compiles for the GPU at hand.

`busy*` spins for a number of clock cycles and then touches `words` floats a thread; the copies differ in static shared
memory, as the kernels of a real program do, and `wide` takes a kilobyte of parameters. `stamped` also notes when its
first block began and its last block ended, by the GPU's own timer, so that the time inside kernels and between them can
be told apart with no profiler attached. `tick` appends the GPU's time to a log.
"""

from importlib.resources import files

FUNCTIONS = 4
PADDING_BYTES = 1024
_SHARED_BYTES = (0, 1024, 16384, 32768)

_STAMP_ENTRY = "mov.u64 %rd9, %globaltimer;"
_DEPENDENT_ENTRY = "griddepcontrol.launch_dependents;\n    griddepcontrol.wait;"


def _part(name: str) -> str:
    return (files("bubblefinder.capture") / "ptx" / f"{name}.ptx").read_text("utf-8")


def _entry(name: str, *, shared: int = 0, entry: str = "", leave: str = "", extra: str = "") -> str:
    parameters = ".param .u64 data, .param .u32 cycles, .param .u32 words" + extra
    touch_shared = "mov.u32 %r11, pad;\n    st.shared.u32 [%r11], %r5;" if shared else ""
    declared = f"    .shared .align 4 .b8 pad[{shared}];\n" if shared else ""
    body = _part("body").format(entry=entry, leave=leave, touch_shared=touch_shared)
    return f".visible .entry {name}({parameters})\n{{\n{declared}{body}}}\n"


def plain_module() -> str:
    """Return the PTX of `busy0` to `busy3`, `stamped`, `wide` and `tick`, for any GPU since Pascal."""
    busy = [_entry(f"busy{i}", shared=shared) for i, shared in enumerate(_SHARED_BYTES)]
    stamped = _entry("stamped", entry=_STAMP_ENTRY, leave=_part("leave"), extra=", .param .u64 slot")
    wide = _entry("wide", extra=f", .param .align 8 .b8 padding[{PADDING_BYTES}]")
    return "\n".join([".version 7.0", ".target sm_60", ".address_size 64", *busy, stamped, wide, _part("tick")])


def dependent_module() -> str:
    """Return the PTX of `dependent`, which lets the next kernel start early (PDL, Hopper and later)."""
    return "\n".join([".version 7.8", ".target sm_90", ".address_size 64", _entry("dependent", entry=_DEPENDENT_ENTRY)])
