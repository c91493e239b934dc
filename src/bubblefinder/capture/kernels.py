"""The kernels of the calibration workload, as PTX that the driver compiles for the GPU at hand.

`busy*` spins for a number of clock cycles and then touches `words` floats a thread; the copies differ in static shared
memory, as the kernels of a real program do, and `wide` takes a kilobyte of parameters. `stamped` also notes when its
first block began and its last block ended, by the GPU's own timer, so that the time inside kernels and between them can
be told apart with no profiler attached. `tick` appends the GPU's time to a log.
"""

FUNCTIONS = 4
PADDING_BYTES = 1024
_SHARED_BYTES = (0, 1024, 16384, 32768)

_BODY = """
    .reg .pred %p<4>;
    .reg .b32 %r<12>;
    .reg .b64 %rd<16>;
    .reg .f32 %f<3>;
    {entry}
    mov.u64 %rd1, %clock64;
    ld.param.u64 %rd2, [data];
    ld.param.u32 %r1, [cycles];
    ld.param.u32 %r2, [words];
    cvt.u64.u32 %rd3, %r1;
    cvta.to.global.u64 %rd4, %rd2;
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x;
    mov.u32 %r5, %tid.x;
    mov.u32 %r6, %nctaid.x;
    mad.lo.u32 %r7, %r3, %r4, %r5;
    mul.lo.u32 %r8, %r4, %r6;
    {touch_shared}
spin:
    mov.u64 %rd5, %clock64;
    sub.u64 %rd6, %rd5, %rd1;
    setp.lt.u64 %p1, %rd6, %rd3;
    @%p1 bra spin;
    mov.u32 %r9, 0;
touch:
    mad.lo.u32 %r10, %r9, %r8, %r7;
    mul.wide.u32 %rd7, %r10, 4;
    add.u64 %rd8, %rd4, %rd7;
    ld.global.f32 %f1, [%rd8];
    add.f32 %f2, %f1, 0f3F800000;
    st.global.f32 [%rd8], %f2;
    add.u32 %r9, %r9, 1;
    setp.lt.u32 %p2, %r9, %r2;
    @%p2 bra touch;
    {leave}
    ret;
"""

_STAMP_ENTRY = "mov.u64 %rd9, %globaltimer;"
_STAMP_LEAVE = """
    setp.ne.u32 %p3, %r5, 0;
    @%p3 bra done;
    ld.param.u64 %rd10, [slot];
    cvta.to.global.u64 %rd11, %rd10;
    red.global.min.u64 [%rd11], %rd9;
    mov.u64 %rd12, %globaltimer;
    red.global.max.u64 [%rd11+8], %rd12;
done:
"""

_TICK = """
.visible .entry tick(.param .u64 log, .param .u32 capacity)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<10>;
    ld.param.u64 %rd1, [log];
    ld.param.u32 %r1, [capacity];
    cvt.u64.u32 %rd2, %r1;
    cvta.to.global.u64 %rd3, %rd1;
    atom.global.add.u64 %rd4, [%rd3], 1;
    rem.u64 %rd5, %rd4, %rd2;
    shl.b64 %rd6, %rd5, 3;
    add.u64 %rd7, %rd3, %rd6;
    mov.u64 %rd8, %globaltimer;
    st.global.u64 [%rd7+8], %rd8;
    ret;
}
"""

_DEPENDENT_ENTRY = "griddepcontrol.launch_dependents;\n    griddepcontrol.wait;"


def _entry(name: str, *, shared: int = 0, entry: str = "", leave: str = "", extra: str = "") -> str:
    parameters = ".param .u64 data, .param .u32 cycles, .param .u32 words" + extra
    touch_shared = "mov.u32 %r11, pad;\n    st.shared.u32 [%r11], %r5;" if shared else ""
    declared = f"    .shared .align 4 .b8 pad[{shared}];\n" if shared else ""
    body = _BODY.format(entry=entry, leave=leave, touch_shared=touch_shared)
    return f".visible .entry {name}({parameters})\n{{\n{declared}{body}}}\n"


def plain_module() -> str:
    """Return the PTX of `busy0` to `busy3`, `stamped`, `wide` and `tick`, for any GPU since Pascal."""
    busy = [_entry(f"busy{i}", shared=shared) for i, shared in enumerate(_SHARED_BYTES)]
    stamped = _entry("stamped", entry=_STAMP_ENTRY, leave=_STAMP_LEAVE, extra=", .param .u64 slot")
    wide = _entry("wide", extra=f", .param .align 8 .b8 padding[{PADDING_BYTES}]")
    return "\n".join([".version 7.0", ".target sm_60", ".address_size 64", *busy, stamped, wide, _TICK])


def dependent_module() -> str:
    """Return the PTX of `dependent`, which lets the next kernel start early (PDL, Hopper and later)."""
    return "\n".join([".version 7.8", ".target sm_90", ".address_size 64", _entry("dependent", entry=_DEPENDENT_ENTRY)])
