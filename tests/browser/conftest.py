"""A headless Chromium, and pages that must log nothing and fetch nothing."""

import shutil

import pytest

CHROMIUM = next(
    (
        path
        for name in ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
        if (path := shutil.which(name))
    ),
    None,
)

PHONE = {"width": 390, "height": 844}
DESKTOP = {"width": 1280, "height": 720}


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no chromium on the path")
    with sync_api.sync_playwright() as play:
        found = play.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        yield found
        found.close()


@pytest.fixture
def open_page(browser):
    """open_page(path, ...) -> page; on leaving, nothing was logged and nothing was fetched."""
    problems, contexts = [], []

    def go(path, anchor="", **options):
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda m: problems.append(f"{m.type}: {m.text}"))
        page.on("pageerror", lambda error: problems.append(f"error: {error}"))
        page.on("dialog", lambda d: (problems.append(f"dialog: {d.message}"), d.dismiss()))
        page.on(
            "request",
            lambda r: (
                None
                if r.url.startswith(("data:", "blob:", path.as_uri()))
                else problems.append(f"request: {r.url}")
            ),
        )
        page.goto(path.as_uri() + anchor)
        return page

    yield go
    for context in contexts:
        context.close()
    assert problems == []
