"""What axe finds in a page: every rule once, and of what the colours decide one cell of each look.

Most of axe's time goes into the contrast of each cell of each table, and cells that look alike have the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from axe_playwright_python.sync_playwright import Axe

if TYPE_CHECKING:
    from playwright.sync_api import Page

COLOURS = ["color-contrast", "link-in-text-block"]
HIDE = """() => {
  const looks = new Map(), known = new Set(), again = [];
  const look = (one) => {
    if (!one) return "";
    if (!looks.has(one)) {
      const { color, backgroundColor, backgroundImage, opacity, fontSize, fontWeight } = getComputedStyle(one);
      const own = [one.tagName, color, backgroundColor, backgroundImage, opacity, fontSize, fontWeight].join();
      looks.set(one, own + look(one.parentElement));
    }
    return looks.get(one);
  };
  for (const cell of document.querySelectorAll("td, th")) {
    const parts = [cell, ...cell.querySelectorAll("*")];  // axe takes a single letter for no text
    const all = parts.map((part) => (part.textContent.trim().length > 1) + look(part)).join(";");
    if (known.has(all)) again.push(cell);
    known.add(all);
  }
  for (const cell of again) cell.style.visibility = "hidden";
}"""
"""Hides each cell that looks, with all in it and around it, as one before it does; nothing moves."""
SHOW = "() => { for (const cell of document.querySelectorAll('td, th')) cell.style.visibility = ''; }"


def faults(page: Page, *, colours_alone: bool = False) -> list[tuple[str, list[str]]]:
    """Return the rules that a page breaks, each with the first elements that do; `colours_alone` is for a second theme.

    axe is put into the page by the debugger, which no policy of the page stops.
    """
    page.evaluate(HIDE)
    found = _violations(page, {"runOnly": COLOURS})
    page.evaluate(SHOW)
    if not colours_alone:
        found += _violations(page, {"rules": {"color-contrast": {"enabled": False}}})
    return [(one["id"], [node["html"][:200] for node in one["nodes"]][:3]) for one in found]


def _violations(page: Page, options: dict[str, Any]) -> list[Any]:
    found: list[Any] = Axe().run(page, options={"resultTypes": ["violations"]} | options).response["violations"]
    return found
