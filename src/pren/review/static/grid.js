// A grid that holds any number of photographs, of which only those on the screen exist.
import { html, useEffect, useRef, useState } from "./preact-htm.js";
import { get } from "./api.js";
import { percent, Photo } from "./parts.js";

const TILE = { width: 128, height: 156 };
const PAGE = 120;

export function Grid({ show, name, revision, picked, onPick, onZoom, onTotal, complain }) {
  const own = useRef(null);
  const pages = useRef(new Map());
  const [, redraw] = useState(0);
  const [total, setTotal] = useState(null);
  const [view, setView] = useState({ top: 0, height: 800, width: 800 });

  useEffect(() => {
    const look = () => {
      const box = own.current.getBoundingClientRect();
      setView({ top: Math.max(0, -box.top), height: innerHeight, width: box.width });
    };
    look();
    addEventListener("scroll", look, { passive: true });
    addEventListener("resize", look);
    return () => { removeEventListener("scroll", look); removeEventListener("resize", look); };
  }, []);

  const key = `${show}|${name}|${revision}`;
  const wanted = useRef(key);
  if (wanted.current !== key) {
    const same = wanted.current.startsWith(`${show}|${name}|`);
    wanted.current = key;
    for (const page of pages.current.values()) page.old = true; // shown until the new one is there
    if (!same) pages.current.clear();
  }

  const columns = Math.max(2, Math.floor(view.width / (view.width < 600 ? 112 : TILE.width))); // three on a phone
  const rows = Math.ceil((total ?? 0) / columns);
  const from = Math.max(0, Math.floor(view.top / TILE.height) - 1) * columns;
  const to = Math.min(total ?? PAGE, (Math.ceil((view.top + view.height) / TILE.height) + 1) * columns);
  const firstPage = Math.floor(from / PAGE);
  const lastPage = Math.floor(Math.max(from, to - 1) / PAGE);

  useEffect(() => {
    for (let number = firstPage; number <= lastPage; number++) {
      const known = pages.current.get(number);
      if (known && !known.old) continue;
      const page = { old: false, items: known?.items ?? [] };
      pages.current.set(number, page);
      get("/api/photographs", { show, name, start: number * PAGE, count: PAGE }).then((found) => {
        if (wanted.current !== key) return;
        page.items = found.photographs;
        setTotal(found.total);
        onTotal?.(found.total);
        redraw((count) => count + 1);
      }, (fault) => { pages.current.delete(number); complain(fault); });
    }
  }, [key, firstPage, lastPage]);

  const shown = [];
  for (let at = from; at < to; at++) {
    const item = pages.current.get(Math.floor(at / PAGE))?.items[at % PAGE];
    if (!item) continue;
    const said = item.said?.name || (item.said?.mark === "stranger" ? "stranger" : "");
    const style = { top: `${Math.floor(at / columns) * TILE.height}px`, left: `${(at % columns) * (100 / columns)}%`, width: `${100 / columns}%` };
    shown.push(html`<div class="cell" key=${item.id} style=${style}>
      <${Photo} id=${item.id} file=${item.file} picked=${picked.has(item.id)} onPick=${onPick} onZoom=${onZoom}
        level=${said ? "said" : ""} caption=${said ? `✓ ${said}` : `${item.label || "no label"} ${percent(item.confidence)}`} /></div>`);
  }
  return html`
    <div class="grid" ref=${own} style=${{ height: `${Math.max(1, rows) * TILE.height}px` }}>${shown}
      ${total === 0 ? html`<p class="quiet">There are no photographs here.</p>` : total === null ? html`<p class="quiet" role="status">Loading…</p>` : ""}
    </div>`;
}
