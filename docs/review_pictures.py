"""Make the pictures of the review page: ``python docs/review_pictures.py FOLDER``.

FOLDER gets the embedded numbers as photographs, and a run on them. Needs the extras `photos`, `review` and `browser`,
and Chromium.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import uvicorn
from PIL import Image
from playwright.sync_api import Page, sync_playwright

import pren
from pren.foundation.files import write_csv
from pren.review.guard import Access
from pren.review.reviewing import make_review
from pren.review.running import address, listen
from pren.review.session import Session

IMAGES = Path(__file__).parent / "images"
OF_SEEN, OF_POOL = 6, 240
ZOOM = 8


def write_photographs(folder: Path) -> None:
    """The embedded numbers as a folder of photographs."""
    problem, _ = pren.load("numbers", shift={"slant": 0.0, "blur": 0.0, "noise": 0.0})
    table = problem.classes

    def save(levels: np.ndarray, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = 255 - (255 * np.clip(levels[0], 0, 1)).astype(np.uint8)
        image = Image.fromarray(pixels)
        square = Image.new("L", (image.width, image.width), 255)
        square.paste(image, (0, (image.width - image.height) // 2))
        square.resize((ZOOM * image.width, ZOOM * image.width), Image.Resampling.BICUBIC).save(path)

    for row in np.unique(problem.labels).tolist():
        for place in np.flatnonzero(problem.labels == row)[:OF_SEEN].tolist():
            levels = problem.train[np.array([place])][0].numpy()
            save(levels, folder / "images" / table.names[row] / f"{place}.png")
    for place in range(OF_POOL):
        save(problem.pool[np.array([place])][0].numpy(), folder / "unlabelled" / f"scan_{place:03d}.png")
    attributes = table.attributes or tuple(f"a{column}" for column in range(table.signatures.shape[1]))
    rows = [[name, *map(float, values)] for name, values in zip(table.names, table.signatures, strict=True)]
    write_csv(folder / "signatures.csv", ("class", *attributes), rows)


def shoot(page: Page, name: str) -> None:
    """Keep a picture of the page as WebP."""
    image = Image.open(io.BytesIO(page.screenshot()))
    image.save(IMAGES / f"{name}.webp", quality=80, method=6)


def main(folder: Path) -> None:
    """Fit, serve, and take pictures."""
    if not (folder / "run").exists():
        write_photographs(folder / "numbers")
        pren.fit(folder / "numbers", out=folder / "run", backbone="tf_efficientnet_lite0", report=False)
    access = Access.at("127.0.0.1")
    with closing(listen("127.0.0.1", 0)) as listening, closing(Session(folder / "run")) as session:
        server = uvicorn.Server(uvicorn.Config(make_review(session, access), log_config=None, lifespan="on"))
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        with sync_playwright() as driver:
            path = os.environ.get("CHROMIUM") or shutil.which("chromium")
            browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            page.goto(f"{address(listening)}/?token={access.token}")
            page.wait_for_selector(".beside .said")
            page.wait_for_load_state("networkidle")
            page.keyboard.press("Enter")
            page.locator(".spin").wait_for()
            page.locator(".spin").wait_for(state="detached", timeout=120_000)
            page.wait_for_selector(".beside .said")
            time.sleep(1)
            shoot(page, "review-group")
            phone = browser.new_page(viewport={"width": 390, "height": 780}, color_scheme="dark")
            phone.goto(f"{address(listening)}/?token={access.token}")
            phone.wait_for_selector(".group h1")
            phone.keyboard.press("p")
            phone.wait_for_selector(".one h1, .photographs .note")
            phone.wait_for_load_state("networkidle")
            shoot(phone, "review-phone")
            browser.close()
        server.should_exit = True
        thread.join()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
