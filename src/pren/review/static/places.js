// A class that is missing, and the ways out.
import { html, useState } from "./preact-htm.js";
import { post } from "./api.js";
import { Dialog, many, Photo } from "./parts.js";

// "striped=1, legs=4" as {striped: 1, legs: 4}
const numbers = (text) => Object.fromEntries(text.split(",").map((part) => part.split("=")).filter((part) => part.length === 2)
  .map(([key, value]) => [key.trim(), Number(value)]).filter(([key, value]) => key && Number.isFinite(value)));

export function NewClass({ onClose, onKept, zoom }) {
  const [said, setSaid] = useState({ name: "", text: "", attributes: "" });
  const [caught, setCaught] = useState(null);
  const [working, setWorking] = useState(false);
  const [fault, setFault] = useState("");
  const field = (key) => ({ value: said[key], onInput: (event) => setSaid({ ...said, [key]: event.target.value }) });
  const send = async (path, done) => {
    setWorking(true);
    setFault("");
    try {
      done(await post(path, { name: said.name, text: said.text, attributes: numbers(said.attributes) }));
    } catch (wrong) {
      setFault(wrong.message);
    }
    setWorking(false);
  };
  const look = (event) => { event.preventDefault(); send("/api/classes/try", setCaught); };
  return html`
    <${Dialog} title="A new class" onClose=${onClose} wide>
      <form onSubmit=${look}>
        <label>Name <input required autofocus maxlength="200" ...${field("name")} /></label>
        <label>A sentence that says how it looks <textarea rows="2" ...${field("text")}></textarea></label>
        <label>Or its attributes <input placeholder="striped=1, hooves=0" ...${field("attributes")} /></label>
        <p><button class="main" disabled=${working || !said.name.trim()}>See what it would catch</button></p>
      </form>
      <p class="bad" role="alert">${fault}</p>
      ${caught ? html`
        <h3>It would catch ${many(caught.count, "photograph")}</h3>
        <p class="quiet">${caught.from.slice(0, 8).map(([name, count]) => `${count} from ${name}`).join(", ")}</p>
        <div class="row">${caught.photographs.map((id) => html`<${Photo} key=${id} id=${id} onZoom=${zoom} />`)}</div>
        <p><button class="main" disabled=${working} onClick=${() => send("/api/classes", onKept)}>Keep this class</button></p>` : ""}
    <//>`;
}

const FORMATS = [["csv", "Table (CSV)"], ["jsonl", "JSON lines"], ["label-studio", "Label Studio"], ["fiftyone", "FiftyOne"]];

export function WaysOut({ state, onClose }) {
  const [done, setDone] = useState(null);
  const [working, setWorking] = useState(false);
  const [sort, setSort] = useState(true);
  const [fault, setFault] = useState("");
  const write = async () => {
    setWorking(true);
    setFault("");
    try {
      setDone(await post("/api/runs", { sort }));
    } catch (wrong) {
      setFault(wrong.message);
    }
    setWorking(false);
  };
  return html`
    <${Dialog} title="Take the labels" onClose=${onClose}>
      <p>${state.enough || `${many(state.doubtful, "photograph")} are still in doubt.`} Your answers are in labels.csv already.</p>
      <h3>As a file</h3>
      <p class="actions">${FORMATS.map(([form, title]) => html`<a class="button" key=${form} href=${`/api/labels/${form}`} download>${title}</a>`)}</p>
      <h3>As a run</h3>
      <p><label class="check"><input type="checkbox" checked=${sort} onChange=${(event) => setSort(event.target.checked)} />
        Also sort the photographs into a folder per class</label></p>
      <p><button class="main" disabled=${working} onClick=${write}>${working ? "Fitting…" : "Write a new run, with its report"}</button></p>
      <p class="bad" role="alert">${fault}</p>
      ${done ? html`<dl class="places" role="status"><dt>Run</dt><dd>${done.run}</dd><dt>Labels</dt><dd>${done.labels}</dd>
        ${done.report ? html`<dt>Report</dt><dd>${done.report}</dd>` : ""}
        ${done.sorted ? html`<dt>Sorted</dt><dd>${done.sorted}</dd>` : ""}</dl>` : ""}
    <//>`;
}
