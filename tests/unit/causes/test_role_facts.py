from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bubblefinder.causes.launches import PHASE_LAUNCHES
from tests.judged import drawn
from tests.unit.causes.test_sites import steps

if TYPE_CHECKING:
    from bubblefinder.causes.facts import StepFacts
    from bubblefinder.causes.step_parts import RoleFacts, SeamFacts


def step_facts(picture: str) -> StepFacts:
    judged = drawn(picture)
    (facts,) = judged.facts.steps
    return facts


def roles(picture: str) -> dict[str, RoleFacts]:
    return {role.role: role for role in step_facts(picture).roles}


NODES = (
    steps(
        "G.......H................",
        ".aa..bb..ccccccccccccccc.",
        "[step                   ]",
        times=5,
    )
    + "G = graph 5 a b\nH = graph 6 c\n"
)


def test_the_inside_of_a_replay_is_measured_node_by_node() -> None:
    role = next(iter(roles(NODES).values()))
    assert (role.per_step_count, role.nodes, role.eager, role.siblings_replay) == (1, 2, False, True)
    assert (role.span_p50_ns, role.idle_p50_ns, role.gap_p50_ns, role.kernel_p50_ns) == (6_000, 2_000, 2_000, 2_000)
    assert role.idle_share == pytest.approx(2 / 25)
    assert (role.small_share, role.pdl_overlap_share) == (1, 0)
    assert role.launch_p50_ns == 1_000
    assert role.small_runs == ("a x 1", "b x 1")
    assert (role.pdl_pairs, role.pdl_breaks) == ((), ())


def test_kernels_that_begin_before_their_predecessor_ends_are_early_launches() -> None:
    picture = """
        nvtx    | [step      ][step      ][step      ][step      ]
        api     | G...........G...........G...........G...........
        gpu0 s7 | .aaaa..cccc..aaaa..cccc..aaaa..cccc..aaaa..cccc.
        gpu0 s7 | ...bbbb........bbbb........bbbb........bbbb.....
        G = graph 5 a b c
    """
    (role,) = roles(picture).values()
    assert role.pdl_overlap_share == pytest.approx(1 / 2)
    assert (role.pdl_pairs, role.pdl_breaks) == (("a and b x 1",), ("c x 1",))
    assert role.gap_p50_ns == 0


def test_a_kernel_that_waits_beside_another_is_as_long_as_what_it_adds() -> None:
    """Launched early, b runs for 39 us, of which it works for one: less than 2 % of the 63 us."""
    a, b, c = "." + "a" * 40 + "." * 29, "..." + "b" * 39 + "." * 28, "." * 42 + "c" * 22 + "." * 6
    picture = f"""
        nvtx    | {("[step" + " " * 64 + "]") * 4}
        api     | {("G" + "." * 69) * 4}
        gpu0 s7 | {a * 4}
        gpu0 s7 | {b * 4}
        gpu0 s7 | {c * 4}
        G = graph 5 a b c
    """
    (role,) = roles(picture).values()
    assert role.long_kernels == ("a", "c")


def test_the_inside_of_a_replay_recorded_as_one_block_is_unknown() -> None:
    picture = NODES.replace("G = graph 5 a b", "a = graph 5").replace("H = graph 6 c", "c = graph 6")
    picture = picture.replace("G......", "a......").replace("H......", "c......").replace("aa..bb", "aaaaaa")
    role = next(iter(roles(picture).values()))
    assert role.span_p50_ns == 6_000
    assert (role.nodes, role.idle_p50_ns, role.gap_p50_ns, role.pdl_overlap_share) == (None, None, None, None)


def test_an_eager_phase_beside_replays_is_a_role() -> None:
    count = PHASE_LAUNCHES + 4
    calls = "".join("pq"[n % 2] for n in range(count))
    gpu = "." + calls[:-1].lower()
    found = roles(
        steps(f"G....{calls}...", f".aa..{gpu}{calls[-1]}..", f"[{'step'.ljust(count + 6)}]", times=5)
        + "G = graph 5 a\n",
    )
    phase = found["eager after step"]
    assert (phase.eager, phase.siblings_replay, phase.nodes) == (True, True, count)
    assert phase.launch_p50_ns == count * 1_000
    assert phase.gap_p50_ns == 0


GLUE = (
    steps(
        "G...x.y.....H................",
        ".aaa.xx.y....ccccccccccccccc.",
        "[step                       ]",
        times=5,
    )
    + "G = graph 5 a\nH = graph 6 c\nx = kernel gather\ny = kernel scatter\n"
)


def seams(picture: str) -> list[SeamFacts]:
    return list(step_facts(picture).seams)


def test_short_eager_kernels_between_two_roles_are_the_glue_of_a_seam() -> None:
    first = seams(GLUE)[0]
    assert first.glue_kernels == 2
    assert set(first.glue_names) == {"gather", "scatter"}
    assert first.idle_p50_ns == 1_000
    assert len(first.evidence) == min(20, 2 * 5)


def test_the_gaps_around_a_chain_are_not_the_chains() -> None:
    """What the host did before the first kernel stays when the chain is fused; the gap behind it is the launch's."""
    wide = GLUE.replace("G...x.y.....H", "G.......x.y.....H").replace(".aaa.xx.y....c", ".aaa.....xx.y....c")
    for picture in (GLUE, wide):
        assert seams(picture)[0].idle_p50_ns == 1_000


def test_idle_that_a_wait_is_charged_with_is_not_the_seams() -> None:
    chain = steps(
        "G...xCCC...y....H................",
        ".aaa.xC.....y....ccccccccccccccc.",
        "[step                           ]",
        times=5,
    )
    legend = "G = graph 5 a\nH = graph 6 c\nx = kernel gather\ny = kernel scatter\n"
    waited = seams(chain + legend + "C = copy DtoH 8 pageable\n")[0]
    assert (waited.glue_kernels, waited.idle_p50_ns) == (2, 0)
    free = seams(chain.replace("C", ".") + legend)[0]
    assert (free.glue_kernels, free.idle_p50_ns) == (2, 6_000)


def test_a_phase_in_some_steps_stands_for_the_graph_that_these_lack() -> None:
    count = PHASE_LAUNCHES + 4
    body = "ab" * (count // 2)
    eager = "pq" * (count // 2)
    usual = ("[step".ljust(count + 7) + "]", f"D.V{'.' * (count + 5)}", f"dddd{body}....")
    single = ("[step".ljust(2 * count + 7) + "]", f"D.{eager}".ljust(2 * count + 8, "."), f"dddd{'.'.join(eager)}.....")
    rows = ["".join(parts) for parts in zip(*[usual, usual, usual, single] * 3, strict=True)]
    picture = "\n".join(f"{name} | {row}" for name, row in zip(("nvtx", "api", "gpu0 s7"), rows, strict=True))
    legend = f"D = graph 1 d\nV = graph 2 {' '.join(body)}\np = kernel a\nq = kernel b\n"
    phase = roles(f"{picture}\n{legend}")["eager after decode"]
    assert (phase.steps, phase.steps_affected, phase.nodes) == (12, 3, count)
    assert phase.steps_share == pytest.approx(2 / 11)
    assert phase.instead_of == ("decode",)
    assert (phase.step_with_p50_ns, phase.step_without_p50_ns) == (56_000, 32_000)
