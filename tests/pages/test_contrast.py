"""Texts of pages and of Data Docs are legible, light and dark: every pair of a text and a background."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import nightkeep.pages

ROOT = Path(nightkeep.pages.__file__).parent
LEAST = 4.5
"""WCAG 2.2, 1.4.3 Contrast (Minimum), level AA."""
STYLES = {
    "pages": (ROOT / "templates" / "style.css").read_text()
    + "".join(each.read_text() for each in (ROOT / "templates").glob("*.j2")),
    # Read as text: the module itself needs Great Expectations.
    "Data Docs": (ROOT.parent / "checking" / "data_docs.py").read_text().partition('_STYLE: Final = """')[2],
}
SCHEME = re.compile(r"@media \(prefers-color-scheme: dark\) \{\s*:root \{(.*?)\}\s*\}", re.DOTALL)


def palette(css: str, scheme: str) -> dict[str, str]:
    """The colours by the names of their variables."""
    dark = SCHEME.search(css)
    assert dark is not None
    light = re.search(r":root \{(.*?)\}", css, re.DOTALL)
    assert light is not None
    parts = [light[1], dark[1]] if scheme == "dark" else [light[1]]
    return {name: value for part in parts for name, value in re.findall(r"--([\w-]+): (#[0-9a-f]{3,6})", part)}


def used(css: str, properties: str) -> set[str]:
    return set(re.findall(rf"(?<![\w-])(?:{properties}):[^;}}]*?var\(--([\w-]+)\)", css))


def luminance(colour: str) -> float:
    """WCAG 2.2, relative luminance."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_contrast_is_that_of_the_guideline() -> None:
    assert contrast("#000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#fff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("style", STYLES)
def test_every_text_is_legible_on_every_background(style: str, scheme: str) -> None:
    css = STYLES[style]
    colours = palette(css, scheme)
    texts, grounds = used(css, "color"), used(css, "background(?:-color)?")
    assert {"ink", "good", "bad", "warn", "link"} <= texts and "paper" in grounds
    assert palette(css, "light").keys() == palette(css, "dark").keys()
    low = {
        f"{text} on {ground}": round(found, 2)
        for text in sorted(texts - grounds)
        for ground in sorted(grounds)
        if (found := contrast(colours[text], colours[ground])) < LEAST
    }
    assert low == {}


@pytest.mark.parametrize("style", STYLES)
def test_colours_have_names_so_that_each_has_a_dark_one(style: str) -> None:
    rules = re.sub(r":root \{.*?\}", "", STYLES[style], flags=re.DOTALL)
    assert re.findall(r"(?:color|background|fill|stroke|border[\w-]*):[^;}]*#[0-9a-fA-F]{3,6}\b", rules) == []
