// Groups first: is the name right?
import { html, useEffect, useState } from "./preact-htm.js";
import { example, get, post, WINDOW } from "./api.js";
import { useKeys } from "./keys.js";
import { ClassPicker, many, percent, Photo } from "./parts.js";

const KINDS = [["surest", "Surest"], ["typical", "Typical"], ["doubtful", "Least sure"]];

function Names({ groups, chosen, onChoose }) {
  const [text, setText] = useState("");
  const said = text.trim().toLowerCase();
  const shown = groups.filter((group) => group.name.toLowerCase().includes(said));
  return html`
    <nav class="names" aria-label="Groups">
      ${groups.length > 12 ? html`<input type="search" placeholder="Find a group…" aria-label="Find a group" value=${text}
        onInput=${(event) => setText(event.target.value)} />` : ""}
      <ul>${shown.map((group) => html`
        <li key=${group.name}>
          <button aria-current=${group.name === chosen ? "true" : undefined} onClick=${() => onChoose(group.name)}>
            <span class=${`dot ${!group.open ? "sure" : group.unsure ? "open" : ""}`} aria-hidden="true"></span>
            <span class="name">${group.name}${group.said?.name && group.said.name !== group.name
              ? html` <em>→ ${group.said.name}</em>` : ""}</span>
            <small>${group.count}<span class="hidden">${!group.open ? ", settled" : group.unsure ? ", its name is doubtful" : ""}</span></small>
          </button>
        </li>`)}</ul>
      ${shown.length ? "" : html`<p class="quiet">No group has this name.</p>`}
    </nav>`;
}

function Beside({ name }) {
  const [known, setKnown] = useState(null);
  useEffect(() => {
    let current = true;
    get("/api/beside", { name }).then((found) => current && setKnown(found), () => current && setKnown(null));
    return () => { current = false; };
  }, [name]);
  if (!known) return html`<aside class="beside"></aside>`;
  return html`
    <aside class="beside" aria-label="What the class is said to be">
      <h3>${known.name} is said to be</h3>
      ${known.description.length
        ? html`<ul class="said">${known.description.map((text) => html`<li>${text}</li>`)}</ul>`
        : html`<p class="quiet">The data have no words for it.</p>`}
      ${known.nearest.map((near) => html`
        <h3>Like ${near.name} <small>which has labelled photographs</small></h3>
        <div class="row">${Array.from({ length: near.photographs }, (_, number) => html`
          <img key=${number} width="72" height="72" loading="lazy" src=${example(near.name, number)} alt=${near.name} />`)}</div>`)}
    </aside>`;
}

export function Groups({ state, refresh, complain, zoom, goTo }) {
  const { groups, classes } = state;
  const [chosen, setChosen] = useState(null);
  const [picked, setPicked] = useState(new Set());
  const [asking, setAsking] = useState(null); // which question the field for names answers
  const group = groups.find((each) => each.name === chosen) || groups.find((each) => each.open) || null;
  const name = group?.name ?? null;

  const choose = (other) => { setChosen(other); setPicked(new Set()); };
  const step = (by) => {
    if (!groups.length) return;
    const at = groups.findIndex((each) => each.name === name);
    choose(groups[(at + by + groups.length) % groups.length].name);
  };
  const after = () => groups.find((each) => each.open && each.name !== name)?.name ?? null;

  const say = async (labels, about, next = after()) => {
    setAsking(null);
    try {
      await post("/api/answers", { window: WINDOW, since: state.position, labels, groups: about });
      choose(next);
      scrollTo(0, 0);
    } catch (fault) {
      complain(fault);
    }
    await refresh();
  };
  const give = (other) => say([{ ids: group.surest, name: other }], { [name]: { name: other } });
  const swap = (other) => {
    const partner = groups.find((each) => each.name === other);
    if (!partner) return give(other);
    const next = groups.find((each) => each.open && each.name !== name && each.name !== other)?.name ?? null;
    return say(
      [{ ids: group.surest, name: other }, { ids: partner.surest, name }],
      { [name]: { name: other }, [other]: { name } },
      next,
    );
  };
  const none = () => say([{ group: name, mark: "stranger" }], { [name]: { mark: "stranger" } });
  const later = () => choose(after() ?? name);
  const split = (other) => say([{ ids: [...picked], name: other }], {}, name);
  const toggle = (id) => {
    const next = new Set(picked);
    if (!next.delete(id)) next.add(id);
    setPicked(next);
  };

  const keys = { ArrowRight: () => step(1), ArrowDown: () => step(1), ArrowLeft: () => step(-1), ArrowUp: () => step(-1) };
  if (group) {
    Object.assign(keys, {
      Enter: () => give(name), t: () => setAsking("name"), s: () => setAsking("swap"), n: none, l: later,
      x: () => (picked.size ? setAsking("split") : complain(new Error("Mark photographs first: click on them."))),
      z: () => zoom([...picked][0] ?? group.surest[0]),
    });
    group.others.slice(0, 3).forEach(([other], place) => { keys[place + 1] = () => give(other); });
  }
  useKeys(keys);

  if (!groups.length) return html`<main class="note"><h1>No groups</h1><p>No photograph has a label yet.</p></main>`;
  const likely = group ? group.others.map(([other]) => other) : [];
  const questions = {
    name: ["What is this group?", give], swap: ["Swap names with", swap], split: [`${many(picked.size, "photograph")} are`, split],
  };
  return html`
    <div class="groups">
      <${Names} groups=${groups} chosen=${name} onChoose=${choose} />
      ${group ? html`
        <main class="group" key=${name}>
          <header>
            <h1>${name}</h1>
            <p class="quiet">${many(group.count, "photograph")} ·
              ${group.open ? html` the name is <b class=${group.unsure ? "warn" : ""}>${percent(group.certainty)} sure</b>`
                : html` <b class="good">settled</b>`}
              ${group.said?.name && group.said.name !== name ? html` · you said <b>${group.said.name}</b>` : ""}
              ${group.said?.mark ? html` · you said <b>none of these classes</b>` : ""}</p>
          </header>
          <div class="actions">
            <button class="main" onClick=${() => give(name)}>Yes, ${name} <kbd>Enter</kbd></button>
            ${group.others.slice(0, 3).map(([other, share], place) => html`
              <button key=${other} onClick=${() => give(other)}>${other}${share === null ? "" : ` ${percent(share)}`} <kbd>${place + 1}</kbd></button>`)}
            <button onClick=${() => setAsking("name")}>Another name… <kbd>t</kbd></button>
            <button onClick=${() => setAsking("swap")}>Swap with… <kbd>s</kbd></button>
            <button onClick=${none}>None of these classes <kbd>n</kbd></button>
            ${picked.size ? html`<button class="main" onClick=${() => setAsking("split")}>${many(picked.size, "marked photograph")}: name… <kbd>x</kbd></button>` : ""}
          </div>
          <div class="columns">
            <div>${KINDS.filter(([kind]) => group[kind].length).map(([kind, title]) => html`
              <section key=${kind}><h2>${title}</h2>
                <div class="row">${group[kind].map((id) => html`
                  <${Photo} key=${id} id=${id} picked=${picked.has(id)} onPick=${toggle} onZoom=${zoom} />`)}</div>
              </section>`)}
              <p><button class="plain" onClick=${() => goTo("photographs", { show: "class", of: name })}>See all ${group.count}</button></p>
            </div>
            <${Beside} name=${name} />
          </div>
        </main>` : html`
        <main class="note"><h1>Every name is settled</h1>
          <p>${state.doubtful ? `${many(state.doubtful, "photograph")} are still in doubt.` : "No photograph is in doubt either."}
          ${" "}${state.enough}</p>
          <p>${state.doubtful ? html`<button class="main" onClick=${() => goTo("photographs")}>Go on with photographs <kbd>p</kbd></button>` : ""}
          ${" "}<button onClick=${() => goTo("out")}>Take the labels <kbd>o</kbd></button></p></main>`}
    </div>
    ${asking ? html`<${ClassPicker} title=${questions[asking][0]} classes=${classes} first=${likely}
      onPick=${questions[asking][1]} onClose=${() => setAsking(null)} />` : ""}`;
}
