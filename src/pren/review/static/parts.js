// Small parts that the views share: dialogs, the field that completes names, a photograph.
import { html, useEffect, useMemo, useRef, useState } from "./preact-htm.js";
import { large, thumbnail } from "./api.js";

export const percent = (share) => (share === null || share === undefined ? "–" : `${Math.round(100 * share)} %`);
export const many = (count, one, more = `${one}s`) => `${count.toLocaleString("en")} ${count === 1 ? one : more}`;

export function Dialog({ title, onClose, children, wide }) {
  const own = useRef(null);
  useEffect(() => {
    const before = document.activeElement;
    own.current.showModal();
    return () => before && before.isConnected && before.focus();
  }, []);
  const outside = (event) => event.target === own.current && onClose();
  return html`
    <dialog ref=${own} class=${wide ? "wide" : ""} aria-label=${title} onClose=${onClose} onClick=${outside}>
      <div class="inside">
        <header><h2>${title}</h2><button class="plain" onClick=${onClose} aria-label="Close">✕</button></header>
        ${children}
      </div>
    </dialog>`;
}

const found = (classes, text) => {
  const said = text.trim().toLowerCase();
  const rank = (name) => (name.startsWith(said) ? 0 : name.includes(` ${said}`) ? 1 : name.includes(said) ? 2 : 3);
  return classes
    .map((each) => [rank(each.name.toLowerCase()), each])
    .filter(([place]) => place < 3)
    .sort(([a], [b]) => a - b)
    .map(([, each]) => each);
};

// A field that completes the name of a class; `first` are the likeliest names.
export function ClassPicker({ title, classes, first = [], onPick, onClose }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const shown = useMemo(() => {
    const ahead = first.map((name) => classes.find((each) => each.name === name)).filter(Boolean);
    const all = text.trim() ? classes : [...ahead, ...classes.filter((each) => !ahead.includes(each))];
    return found(all, text).slice(0, 60);
  }, [text, classes]);
  const pressed = (event) => {
    const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (move) setAt(Math.max(0, Math.min(shown.length - 1, at + move)));
    else if (event.key === "Enter" && shown[at]) onPick(shown[at].name);
    else return;
    event.preventDefault();
  };
  const list = useRef(null);
  useEffect(() => list.current?.children[at]?.scrollIntoView({ block: "nearest" }), [at]);
  return html`
    <${Dialog} title=${title} onClose=${onClose}>
      <input autofocus type="text" role="combobox" aria-expanded="true" aria-controls="names" aria-label="Name of a class"
        aria-activedescendant=${shown[at] ? `name-${at}` : undefined} autocomplete="off" spellcheck=${false}
        placeholder="Type a name…" value=${text} onKeyDown=${pressed}
        onInput=${(event) => { setText(event.target.value); setAt(0); }} />
      <ul id="names" role="listbox" aria-label="Classes" ref=${list}>
        ${shown.map((each, place) => html`
          <li key=${each.name} id=${`name-${place}`} role="option" aria-selected=${place === at}
            onClick=${() => onPick(each.name)}>
            <span>${each.name}</span><small>${each.seen ? "has labelled photographs" : many(each.count, "photograph")}</small>
          </li>`)}
      </ul>
      ${shown.length ? "" : html`<p class="quiet">No class has this name. The key c describes a new one.</p>`}
    <//>`;
}

export function Zoom({ id, file, onClose }) {
  const [whole, setWhole] = useState(true);
  const [lost, setLost] = useState(false);
  return html`
    <${Dialog} title=${file || "A photograph"} onClose=${onClose} wide>
      ${lost ? html`<p>This photograph cannot be shown.</p>` : html`
        <button class=${`zoom ${whole ? "whole" : ""}`} onClick=${() => setWhole(!whole)}
          aria-label=${whole ? "Show every pixel" : "Show the whole"}>
          <img src=${large(id)} alt=${file || "the photograph"} onError=${() => setLost(true)} />
        </button>`}
    <//>`;
}

export function Photo({ id, file, caption, picked, onPick, onZoom, level = "" }) {
  return html`
    <button class=${`photo ${level}`} aria-pressed=${onPick ? Boolean(picked) : undefined} title=${file || ""}
      onClick=${() => (onPick ? onPick(id) : onZoom(id))} onDblClick=${() => onZoom(id)} data-id=${id}>
      <img loading="lazy" decoding="async" width="112" height="112" src=${thumbnail(id)}
        alt=${caption || file || `photograph ${id}`} />
      ${caption ? html`<span class="caption">${caption}</span>` : ""}
    </button>`;
}
