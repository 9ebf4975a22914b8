// Then photographs in doubt, one at a time or in a grid.
import { html, useEffect, useRef, useState } from "./preact-htm.js";
import { get, large, post, WINDOW } from "./api.js";
import { Grid } from "./grid.js";
import { useKeys } from "./keys.js";
import { ClassPicker, many, percent } from "./parts.js";

const SHOWN = [["doubt", "In doubt"], ["answered", "Answered"], ["strangers", "Strangers"], ["all", "All"]];

function One({ photo, left, onAnswer, onSkip, onBack, onAsk, onZoom, complain }) {
  const [broken, setBroken] = useState(null);
  if (!photo) return "";
  return html`
    <div class="one">
      <button class="picture" onClick=${() => onZoom(photo.id, photo.file)} aria-label="Look closely">
        ${broken === photo.id ? html`<span>This photograph cannot be shown.</span>`
          : html`<img key=${photo.id} src=${large(photo.id)} alt=${photo.file} onError=${() => setBroken(photo.id)} />`}
      </button>
      <div class="answers">
        <p class="quiet file">${photo.file}</p>
        <h1>${photo.label || "No label"}?</h1>
        <p class="quiet">${percent(photo.confidence)} sure${photo.strange ? " · it is like none of the classes" : ""}
          ${photo.said ? html` · you said <b>${photo.said.name || photo.said.mark}</b>` : ""}</p>
        <div class="actions column">
          ${photo.likely.map((name, place) => html`
            <button key=${name} class=${place ? "" : "main"} onClick=${() => onAnswer({ name })}>${name} <kbd>${place ? place + 1 : "Enter"}</kbd></button>`)}
          <button onClick=${onAsk}>Another name… <kbd>t</kbd></button>
          <button onClick=${() => onAnswer({ mark: "stranger" })}>A stranger <kbd>s</kbd></button>
          <button onClick=${onSkip}>Skip <kbd>→</kbd></button>
          <button onClick=${() => onAnswer({ mark: "later" })}>Later <kbd>l</kbd></button>
          <button onClick=${onBack}>Back <kbd>←</kbd></button>
        </div>
        <p class="quiet">${many(left, "photograph")} in doubt</p>
      </div>
    </div>`;
}

export function Photographs({ state, view, refresh, complain, zoom, goTo }) {
  const [show, setShow] = useState(view.show || "doubt");
  const [name, setName] = useState(view.name || "");
  const [grid, setGrid] = useState(Boolean(view.show));
  const [queue, setQueue] = useState(null);
  const [picked, setPicked] = useState(new Set());
  const [asking, setAsking] = useState(null);
  const [total, setTotal] = useState(null);
  const passed = useRef(new Set());
  const past = useRef([]);
  const current = useRef(null);

  useEffect(() => {
    let fresh = true;
    if (!grid) get("/api/photographs", { show: "doubt", count: 200 }).then((found) => {
      if (!fresh) return;
      const open = found.photographs.filter((photo) => !passed.current.has(photo.id));
      const at = open.findIndex((photo) => photo.id === current.current);
      if (at > 0) open.unshift(...open.splice(at, 1)); // a new fit does not take away what one is looking at
      if (!open.length && passed.current.size) passed.current.clear();
      setQueue(open.length ? open : found.photographs);
      setTotal(found.total);
    }, complain);
    return () => { fresh = false; };
  }, [grid, state.revision]);

  const photo = queue?.[0] ?? null;
  current.current = photo?.id ?? null;
  useEffect(() => { if (queue?.[1]) new Image().src = large(queue[1].id); }, [queue?.[1]?.id]);

  const pass = () => {
    if (!photo) return;
    passed.current.add(photo.id);
    past.current.push(photo);
    setQueue(queue.slice(1).length ? queue.slice(1) : []);
  };
  const back = () => {
    const last = past.current.pop();
    if (!last) return;
    passed.current.delete(last.id);
    setQueue([last, ...queue.filter((each) => each.id !== last.id)]);
  };
  const say = async (ids, verdict) => {
    setAsking(null);
    try {
      await post("/api/answers", { window: WINDOW, since: state.position, labels: [{ ids, ...verdict }], groups: {} });
      setPicked(new Set());
    } catch (fault) {
      complain(fault);
    }
    await refresh();
  };
  const answer = (verdict) => { if (photo) { pass(); say([photo.id], verdict); } };
  const toggle = (id) => {
    const next = new Set(picked);
    if (!next.delete(id)) next.add(id);
    setPicked(next);
  };

  const bulk = () => (picked.size ? setAsking("bulk") : complain(new Error("Mark photographs first: click on them.")));
  const keys = { v: () => setGrid(!grid) };
  if (grid) Object.assign(keys, {
    t: bulk, x: bulk, s: () => picked.size && say([...picked], { mark: "stranger" }), z: () => picked.size && zoom([...picked][0]),
    Escape: () => setPicked(new Set()),
  });
  else if (photo) {
    Object.assign(keys, {
      Enter: () => photo.likely[0] && answer({ name: photo.likely[0] }), t: () => setAsking("one"),
      s: () => answer({ mark: "stranger" }), l: () => answer({ mark: "later" }),
      ArrowRight: pass, ArrowLeft: back, z: () => zoom(photo.id, photo.file),
    });
    photo.likely.forEach((other, place) => { keys[place + 1] = () => answer({ name: other }); });
  } else keys.ArrowLeft = back;
  useKeys(keys);

  const choose = (event) => {
    const [what, of] = JSON.parse(event.target.value);
    setShow(what); setName(of); setPicked(new Set()); scrollTo(0, 0);
  };
  return html`
    <main class="photographs">
      <div class="bar">
        <div class="switch" role="group" aria-label="How to show photographs">
          <button aria-pressed=${!grid} onClick=${() => setGrid(false)}>One at a time</button>
          <button aria-pressed=${grid} onClick=${() => setGrid(true)}>Grid <kbd>v</kbd></button>
        </div>
        ${grid ? html`
          <select aria-label="Which photographs" value=${JSON.stringify([show, name])} onChange=${choose}>
            ${SHOWN.map(([what, title]) => html`<option key=${what} value=${JSON.stringify([what, ""])}>${title}</option>`)}
            <optgroup label="Groups">${state.groups.map((group) => html`
              <option key=${group.name} value=${JSON.stringify(["class", group.name])}>${group.name} (${group.count})</option>`)}</optgroup>
          </select>
          <span class="quiet">${total === null ? "" : many(total, "photograph")}</span>
          ${picked.size ? html`
            <button class="main" onClick=${bulk}>${many(picked.size, "photograph")}: name… <kbd>t</kbd></button>
            <button onClick=${() => say([...picked], { mark: "stranger" })}>Strangers <kbd>s</kbd></button>
            <button class="plain" onClick=${() => setPicked(new Set())}>Unmark</button>` : ""}` : ""}
      </div>
      ${grid ? html`<${Grid} show=${show} name=${name} revision=${state.revision} picked=${picked} onPick=${toggle}
          onZoom=${zoom} onTotal=${setTotal} complain=${complain} />`
        : queue === null ? html`<p class="quiet" role="status">Loading…</p>`
        : photo ? html`<${One} photo=${photo} left=${total ?? queue.length} onAnswer=${answer} onSkip=${pass} onBack=${back}
            onAsk=${() => setAsking("one")} onZoom=${zoom} />`
        : html`<div class="note"><h1>No photograph is in doubt</h1><p>${state.enough || "Every label is sure, or has your answer."}</p>
            <p><button class="main" onClick=${() => goTo("out")}>Take the labels <kbd>o</kbd></button></p></div>`}
    </main>
    ${asking ? html`<${ClassPicker} title=${asking === "one" ? "What is this?" : `${many(picked.size, "photograph")} are`}
      classes=${state.classes} first=${asking === "one" && photo ? photo.likely : []} onClose=${() => setAsking(null)}
      onPick=${(other) => (asking === "one" ? (setAsking(null), answer({ name: other })) : say([...picked], { name: other }))} />` : ""}`;
}
