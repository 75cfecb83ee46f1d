"""A validation in Great Expectations' format -> its page of Data Docs, as one file that loads nothing.

Great Expectations renders it. Its pages would load styles, scripts and a picture that counts readers from other hosts:
all of it is taken out, and browsers are set to load nothing. What scripts would fold or draw is shown as it is.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from html import escape
from types import MappingProxyType
from typing import Any, Final

from nightkeep.causes import one_sentence
from nightkeep.checking.quick_import import quick_import

with quick_import():
    from great_expectations.core.expectation_validation_result import (
        ExpectationSuiteValidationResult,
        ExpectationSuiteValidationResultSchema,
    )
    from great_expectations.core.run_identifier import RunIdentifier
    from great_expectations.expectations.registry import get_expectation_impl
    from great_expectations.render.renderer.page_renderer import ValidationResultsPageRenderer
    from great_expectations.render.view.view import DefaultJinjaPageView

_NO_LINKS: Final[Mapping[str, str]] = MappingProxyType({})


def docs_page(
    validation: Mapping[str, Any], *, run_id: str, started_at: datetime, title: str, back: Mapping[str, str] = _NO_LINKS
) -> str:
    """The page. Expectations that Great Expectations cannot make, which have errored, are listed above its own part.

    `back`: links to what the page is about, by their texts.
    """
    logging.getLogger("great_expectations").setLevel(logging.ERROR)
    loaded, rest = loaded_validation(validation)
    loaded.meta = {**(loaded.meta or {}), "run_id": RunIdentifier(run_name=run_id, run_time=started_at)}
    rendered: Any = ValidationResultsPageRenderer().render(loaded)
    view: Any = DefaultJinjaPageView()
    html: str = view.render(rendered, show_how_to_buttons=False)
    errors = [f"{each['expectation_config']['type']}: {_message(each)}" for each in rest]
    return offline(html, title, errors, back)


def loaded_validation(
    validation: Mapping[str, Any],
) -> tuple[ExpectationSuiteValidationResult, list[Mapping[str, Any]]]:
    """The value of Great Expectations, and the results of expectations that it cannot make, which are not in it."""
    results = [_with_sentences(each) for each in validation.get("results", [])]
    made = [each for each in results if _can_be_made(each["expectation_config"])]
    schema: Any = ExpectationSuiteValidationResultSchema()
    loaded = schema.load({**validation, "results": made})
    if not isinstance(loaded, ExpectationSuiteValidationResult):
        loaded = ExpectationSuiteValidationResult(**loaded)
    return loaded, [each for each in results if each not in made]


def offline(html: str, title: str, errors: Sequence[str] = (), back: Mapping[str, str] = _NO_LINKS) -> str:
    """The page of Great Expectations without anything that a browser would load or run, and without its links, whose
    pages are not there; these errors are at its top."""
    for pattern in _LOADS:
        html = pattern.sub("", html)
    return framed(_LINK.sub(r"\1", html), title, errors, back)


def framed(html: str, title: str, errors: Sequence[str] = (), back: Mapping[str, str] = _NO_LINKS) -> str:
    """The page with a title, styles, links to the index and back, and a policy by which browsers load nothing."""
    name = escape(title)
    links = " ".join(f'<a href="{escape(href)}">{escape(text)}</a>' for text, href in back.items())
    listed = "".join(f"<p>errored: {escape(each)}</p>" for each in errors)
    return html.replace("<head>", f"<head>{_POLICY}<title>{name}</title><style>{_STYLE}</style>", 1).replace(
        "<body>", f'<body><p class="home"><a href="index.html">All results</a> {links} / {name}</p>{listed}', 1
    )


def _can_be_made(config: Mapping[str, Any]) -> bool:
    try:
        kind: Any = get_expectation_impl(config["type"])
        kind(**{name: value for name, value in config["kwargs"].items() if name != "batch_id"})
    except (ValueError, TypeError):
        return False
    return True


def _message(result: Mapping[str, Any]) -> str:
    return str(result["exception_info"].get("exception_message", "no result"))


def _with_sentences(result: Mapping[str, Any]) -> dict[str, Any]:
    """The result with the cause of an error, and an empty text where the renderer wants its traceback."""
    return {**result, "exception_info": _sentences(result.get("exception_info") or {})}


def _sentences(info: Mapping[str, Any]) -> dict[str, Any]:
    if "raised_exception" not in info:
        # Some are stated for each metric.
        return {name: _sentences(each) for name, each in info.items()}
    if not info["raised_exception"]:
        return {**info}
    return {**info, "exception_message": one_sentence(str(info["exception_message"])), "exception_traceback": ""}


_POLICY: Final = (
    '<meta http-equiv="Content-Security-Policy" '
    "content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">"
)
_LOADS: Final = tuple(
    re.compile(pattern, re.DOTALL | re.IGNORECASE)
    for pattern in (
        r"<script\b.*?</script>",
        r"<link\b[^>]*>",
        r"<img\b[^>]*>",
        r"<title\b.*?</title>",
        r"<footer\b.*?</footer>",
        r'<nav class="navbar navbar-expand-md.*?</nav>\s*</div>\s*</nav>',
        r"@font-face\s*\{.*?\}",
        r"@import[^;]*;",
        r"url\([^)]*\)",
        r'\son[a-z]+="[^"]*"',
        # The filter of results, which only scripts can act on.
        r'<div class="card mb-3">\s*<div[^>]*>\s*<strong>Actions</strong>.*?(?=<div class="card d-md-block)',
    )
)
_LINK: Final = re.compile(r'<a\b[^>]*href="(?!#|index\.html)[^"]*"[^>]*>(.*?)</a>', re.DOTALL | re.IGNORECASE)
_STYLE: Final = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1c2430; --rule: #d8dee6; --badge: #e6ebf1; --alert: #eef2f6;
--good: #17663a; --bad: #a31621; --warn: #7a5200; --link: #20567e }
@media (prefers-color-scheme: dark) { :root { --paper: #14181d; --ink: #e3e8ee; --rule: #333b45; --badge: #232a33;
--alert: #232a33; --good: #6cc49a; --bad: #f28b82; --warn: #dfae5a; --link: #86b9df } }
body { font: 15px/1.5 system-ui, sans-serif; margin: 1.5rem; color: var(--ink); background: var(--paper);
overflow-wrap: break-word } a { color: var(--link) }
table { border-collapse: collapse; width: 100% } th, td { text-align: left; vertical-align: top; padding: .3rem .6rem;
border-bottom: 1px solid var(--rule) } code { white-space: pre-wrap } .badge { background: var(--badge);
border-radius: .3rem; padding: 0 .3rem } .alert { background: var(--alert); padding: .5rem .8rem; border-radius: .3rem;
margin: .6rem 0 } .text-success::before { content: "passed "; color: var(--good) }
.fa-times.text-danger::before { content: "failed "; color: var(--bad) }
.text-warning::before { content: "errored "; color: var(--warn) } ul { padding-left: 1rem }
[data-toggle="collapse"] { display: none } i { font-style: normal }
"""
