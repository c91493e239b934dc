from __future__ import annotations

from tests.judged import drawn

LOOP = """
    nvtx    | {nvtx}
    api     | {api}
    gpu0 s7 | {gpu}
"""


def steps(api: str, gpu: str, nvtx: str, times: int = 4) -> str:
    """The same step several times over."""
    assert len(api) == len(gpu) == len(nvtx)
    return LOOP.format(api=api * times, gpu=gpu * times, nvtx=nvtx * times)


CPU = (
    steps(
        "..G.CCCCCCCSS........",
        "...gggggg.C..........",
        "[step               ]",
    )
    + "G = graph 5 g\nC = copy DtoH 8 pageable\nS = cudaStreamSynchronize s7\n"
)


def test_the_synchronisation_behind_a_blocking_copy_joins_its_site() -> None:
    judged = drawn(CPU)
    assert judged.waits("joined") == [False, True] * 4
    assert judged.waits("site") == [0] * 8
    assert judged.causes.sites["api"].cast(str).to_list() == ["cudaMemcpyAsync"]


def test_the_synchronisation_joins_even_if_the_gpu_stayed_fed() -> None:
    judged = drawn("""
        api     | A.BCCCCSS.D...
        gpu0 s7 | .AA.....BBBDDD
        gpu0 s9 | .....C........
        C = copy DtoH 8 pageable
        S = cudaStreamSynchronize s9
    """)
    assert judged.waits("drained", "joined", "site") == [(False, False, 0), (False, True, 0)]


def test_a_synchronisation_after_another_launch_is_a_site_of_its_own() -> None:
    judged = drawn("""
        api     | ACCCC.B.SSSS....D.
        gpu0 s7 | .AAC...BBBB......D
        C = copy DtoH 8 pageable
        S = cudaStreamSynchronize s7
    """)
    assert judged.waits("joined", "site") == [(False, 0), (False, 1)]


PLAN = (
    steps(
        "..G.CCCCCCC.DDD.EEE.H....",
        "...gggggg.C...D...E..H...",
        "...[plan          ]......",
    )
    + """
    G = graph 5 g
    C = copy DtoH 68 pageable
    D = copy DtoH 68 pageable
    E = copy DtoH 64 pageable
    H = copy HtoD 200 pageable
"""
)


def test_reads_of_one_range_are_sites_of_one_group_told_apart_by_their_order() -> None:
    judged = drawn(PLAN)
    assert judged.waits("site") == [0, 1, 2] * 4
    assert set(judged.waits("group")) == {0}
    assert judged.causes.sites["order"].to_list() == [0, 1, 0]


def test_without_ranges_the_seam_makes_the_group() -> None:
    judged = drawn("\n".join(line for line in PLAN.splitlines() if "nvtx" not in line))
    assert judged.waits("site") == [0, 1, 2] * 4
    assert set(judged.waits("group")) == {0}


def test_a_range_around_the_whole_step_groups_nothing_that_its_seams_part() -> None:
    judged = drawn(
        steps(
            "..G.CCCCCCC....H.DDDDDDDDDDDDDDDDDDDDDD......",
            "...ggg.ff.C.....hhhhhhhhhhhhhhhhhhh..D.......",
            "[step                                       ]",
        )
        + "G = graph 5 g f\nH = graph 6 h\nC = copy DtoH 8 pageable\nD = copy DtoH 8 pageable\n"
    )
    assert judged.causes.sites["nvtx"].to_list() == ["step", "step"]
    assert judged.causes.sites["group"].n_unique() == 2


def test_numbers_in_a_range_dont_make_another_site() -> None:
    names = iter(range(1, 5))
    step = "..G.CCCCCCC.........."
    nvtx = "".join(f"[step {next(names)}             ]" for _ in range(4))
    judged = drawn(
        LOOP.format(api=step * 4, gpu="...gggggg.C.........." * 4, nvtx=nvtx)
        + "G = graph 5 g\nC = copy DtoH 8 pageable\n"
    )
    assert judged.waits("nvtx") == ["step 1", "step 2", "step 3", "step 4"]
    assert judged.waits("site") == [0] * 4


def test_size_and_memory_and_api_make_another_site() -> None:
    judged = drawn("""
        api     | ACCCC.DDDD.EEEE.FFFF
        gpu0 s7 | .AAC....D....E....F.
        C = copy DtoH 8 pageable
        D = copy DtoH 80 pageable
        E = copy HtoD 8 pageable
        F = copy DtoH 8 pageable via cudaMemcpy
    """)
    assert judged.waits("site") == [0, 1, 2, 3]
    assert judged.causes.sites["size_class"].to_list() == [8, 1024, 8, 8]
