from __future__ import annotations

from bubblefinder.causes.places import frame_chain, nvtx_stack
from tests.judged import drawn

READ = """
    nvtx    | [step                  ][step                  ][step                  ]
    nvtx    | ....[resolve   ]............[resolve   ]............[resolve   ]........
    api     | ..G.CCCCCCCCCC.....H......G.CCCCCCCCCC.....H......G.CCCCCCCCCC.....H....
    gpu0 s7 | ...ggggggggC........h......ggggggggC........h......ggggggggC........h...
    G = graph 5 g
    H = graph 6 h
    C = copy DtoH 8 pageable at cudaMemcpyAsync at at::native::copy_ at resolve(self) at run_batch(self)
"""


def test_the_innermost_range_on_the_waiting_thread_names_the_place() -> None:
    assert drawn(READ).waits("nvtx") == ["resolve"] * 3


def test_the_whole_stack_of_ranges_is_known() -> None:
    judged = drawn(READ)
    (thread, start), *_ = judged.waits("thread", "start_ns")
    assert nvtx_stack(judged.timeline, thread, start) == ("step", "resolve")


def test_the_frame_is_the_first_that_is_neither_cudas_nor_the_frameworks() -> None:
    judged = drawn(READ)
    assert judged.waits("frame") == ["resolve(self)"] * 3
    assert frame_chain(judged.timeline, judged.waits("call_index")[0])[-1] == "run_batch(self)"


def test_roles_before_and_after_are_those_launched() -> None:
    roles = drawn(READ).waits("after_role", "before_role")
    assert len(set(roles)) == 1
    assert None not in roles[0]
    assert roles[0][0] != roles[0][1]


def test_a_wait_belongs_to_the_step_of_the_work_launched_before_it() -> None:
    windows = drawn(READ).waits("window_index")
    assert windows == sorted(set(windows))


def test_without_call_chains_and_ranges_both_are_unknown() -> None:
    judged = drawn("""
        api     | ACCCC..B.
        gpu0 s7 | .AAC....B
        C = copy DtoH 8 pageable
    """)
    assert judged.waits("nvtx", "frame") == [(None, None)]


def test_where_all_frames_are_the_frameworks_the_one_that_python_called_is_told() -> None:
    """As a capture of SGLang with native call chains has them."""
    chain = "at cudaMemcpyAsync at at::native::copy_ at torch::autograd::THPVariable_cpu(_object*) at _PyEval_Eval"
    judged = drawn(READ.replace("at cudaMemcpyAsync at at::native::copy_ at resolve(self) at run_batch(self)", chain))
    assert judged.waits("frame") == ["THPVariable_cpu"] * 3
