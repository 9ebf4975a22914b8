// The keyboard: a view says what its keys do, and the card lists them.
import { html, useEffect, useRef } from "./preact-htm.js";

const typing = (element) => element.closest("input, textarea, select, dialog[open]") !== null;

// `keys` maps a key, as the browser names it, to a function. A focused button keeps Enter and the space bar.
export function useKeys(keys) {
  const latest = useRef(keys);
  latest.current = keys;
  useEffect(() => {
    const pressed = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || typing(event.target)) return;
      if (document.querySelector("dialog[open]")) return;
      const own = event.target.closest("button, a, summary") && (event.key === "Enter" || event.key === " ");
      const act = latest.current[event.key];
      if (act && !own) {
        event.preventDefault();
        act();
      }
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, []);
}

const CARD = [
  ["Everywhere", [["g", "groups"], ["p", "photographs"], ["c", "a new class"], ["o", "out: labels, folders, a run"],
    ["u", "take back the last answer, without end"], ["?", "this card"]]],
  ["A group", [["Enter", "the name is right"], ["1 – 3", "it is this other class"], ["t", "type another name"],
    ["s", "swap names with another group"], ["n", "none of these classes"], ["x", "give the marked photographs a name"],
    ["l", "later"], ["→ ←", "next, previous"], ["z", "look closely"]]],
  ["A photograph", [["Enter", "the label is right"], ["1 – 5", "it is this class"], ["t", "type a name"],
    ["s", "a stranger: none of the classes"], ["→", "skip: say nothing"], ["←", "back"], ["l", "later"],
    ["z", "look closely"], ["v", "one at a time, or a grid"]]],
];

export const keyCard = () => CARD.map(([title, rows]) => html`
  <h3>${title}</h3>
  <dl class="keys">${rows.map(([key, what]) => html`<div><dt><kbd>${key}</kbd></dt><dd>${what}</dd></div>`)}</dl>`);
