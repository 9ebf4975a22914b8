// The page: what every view shares, and the state that comes from the program.
import { html, render, useCallback, useEffect, useRef, useState } from "./preact-htm.js";
import { get, post, WINDOW } from "./api.js";
import { Groups } from "./groups.js";
import { keyCard, useKeys } from "./keys.js";
import { Dialog, many, Zoom } from "./parts.js";
import { Photographs } from "./photographs.js";
import { NewClass, WaysOut } from "./places.js";

const BUSY = 700; // milliseconds between two questions while the program fits, and when it rests
const RESTING = 3000;
const DOING = { labels: "Fitting with your answers…", forecast: "Working out the forecast…" };

const range = (forecast) => (forecast ? `${forecast[0]} to ${forecast[1]} %` : "");

function Forecast({ forecast }) {
  const { first, now } = forecast;
  if (!first && !now) return "";
  const changed = first && now && String(first) !== String(now);
  return html`<p class="forecast" title=${forecast.sentence}>Expect <b>${range(first || now)}</b>
    ${changed ? html` → <b class=${now[0] >= first[0] ? "good" : ""}>${range(now)}</b>` : ""} right</p>`;
}

function changes({ moved, groups, settled }) {
  const parts = [];
  if (moved) parts.push(`${many(moved, "label")} moved`);
  if (groups.length) parts.push(groups.slice(0, 3).map(([name, before, after]) => `${name} ${before} → ${after}`).join(", "));
  if (settled) parts.push(`${many(settled, "question")} answered ${settled === 1 ? "itself" : "themselves"}`);
  return parts.join(" · ");
}

function App() {
  const [state, setState] = useState(null);
  const [lost, setLost] = useState("");
  const [told, setTold] = useState("");
  const [view, setView] = useState({ name: "groups" });
  const [over, setOver] = useState(null); // the dialog over the view
  const known = useRef(-1);

  const complain = useCallback((fault) => {
    if (fault.lost) setLost(fault.message);
    else setTold(fault.message);
  }, []);
  const refresh = useCallback(async () => {
    try {
      const found = await get("/api/state", { since: known.current });
      setLost("");
      if (found.groups) {
        known.current = found.revision;
        setState(found);
      }
    } catch (fault) {
      if (fault.lost || fault.code === "token") setLost(fault.message);
      else complain(fault);
    }
  }, []);
  const busy = state && state.doing !== "nothing" && state.doing !== "failed";
  useEffect(() => {
    refresh();
    const clock = setInterval(refresh, busy || lost ? BUSY : RESTING);
    return () => clearInterval(clock);
  }, [busy, Boolean(lost)]);
  useEffect(() => {
    if (!told) return undefined;
    const clock = setTimeout(() => setTold(""), 8000);
    return () => clearTimeout(clock);
  }, [told]);

  const goTo = (name, more = {}) => (["out", "new", "keys"].includes(name) ? setOver({ name }) : setView({ name, ...more }));
  const zoom = (id, file = "") => id !== undefined && setOver({ name: "zoom", id, file });
  const undo = async () => {
    try {
      const { undone } = await post("/api/undo", { window: WINDOW });
      setTold(!undone ? "There is nothing to take back."
        : `Taken back: ${undone.groups.length ? undone.groups.join(", ") : many(undone.ids.length, "photograph")}.`);
    } catch (fault) {
      complain(fault);
    }
    await refresh();
  };
  useKeys({
    g: () => goTo("groups"), p: () => goTo("photographs"), c: () => goTo("new"), o: () => goTo("out"), u: undo,
    "?": () => goTo("keys"),
  });

  if (!state) return html`<main class="note"><h1>pren review</h1>
    <p role="status">${lost || told || "Loading the review…"}</p></main>`;
  const shared = { state, refresh, complain, zoom, goTo };
  const open = state.groups.filter((group) => group.open).length;
  const close = () => setOver(null);
  return html`
    <header class="top">
      <div class="line">
        <p class="title"><b>${state.title}</b> <span class="quiet">${many(state.photographs, "photograph")}</span></p>
        <nav aria-label="Views">
          <button aria-current=${view.name === "groups" ? "page" : undefined} onClick=${() => goTo("groups")}>Groups${open ? html` <span class="count">${open}</span>` : ""}</button>
          <button aria-current=${view.name === "photographs" ? "page" : undefined} onClick=${() => goTo("photographs")}>Photographs${state.doubtful ? html` <span class="count">${state.doubtful}</span>` : ""}</button>
          <button onClick=${() => goTo("new")}>New class</button>
          <button onClick=${() => goTo("out")}>Take the labels</button>
          <button onClick=${undo}>Undo <kbd>u</kbd></button>
          <button onClick=${() => goTo("keys")} aria-label="Keys"><kbd>?</kbd></button>
        </nav>
      </div>
      <div class="line second">
        <${Forecast} forecast=${state.forecast} />
        <p class="quiet" role="status">${busy ? html`<span class="spin" aria-hidden="true"></span>${DOING[state.doing]}` : changes(state.change)}</p>
        ${state.enough ? html`<p class="good">${state.enough}</p>` : ""}
      </div>
    </header>
    ${lost ? html`<p class="banner bad" role="alert">${lost} Your answers so far are kept. Trying again…</p>` : ""}
    ${state.doing === "failed" ? html`<p class="banner warn" role="alert">${state.failure} Your answers are kept.</p>` : ""}
    ${view.name === "groups" ? html`<${Groups} ...${shared} />` : html`<${Photographs} key=${`${view.show}|${view.name}`} view=${view.show ? { show: view.show, name: view.of } : {}} ...${shared} />`}
    <p class=${`told ${told ? "" : "hidden"}`} role="status">${told}</p>
    ${over?.name === "keys" ? html`<${Dialog} title="Keys" onClose=${close}>${keyCard()}<//>` : ""}
    ${over?.name === "zoom" ? html`<${Zoom} id=${over.id} file=${over.file} onClose=${close} />` : ""}
    ${over?.name === "new" ? html`<${NewClass} onClose=${close} zoom=${zoom} onKept=${({ name }) => { close(); setTold(`${name} is a class now. Fitting again.`); refresh(); }} />` : ""}
    ${over?.name === "out" ? html`<${WaysOut} state=${state} onClose=${close} />` : ""}`;
}

const place = document.getElementById("app");
place.replaceChildren();
render(html`<${App} />`, place);
