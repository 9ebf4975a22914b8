// What the page asks the program, and how it says that something went wrong.

export class Fault extends Error {
  constructor(code, message, lost = false) {
    super(message);
    this.code = code;
    this.lost = lost;
  }
}

// Two windows are told apart, so that neither overwrites what the other has just said.
export const WINDOW = (() => {
  const known = sessionStorage.getItem("window");
  const made = known || crypto.getRandomValues(new Uint32Array(2)).join("-");
  sessionStorage.setItem("window", made);
  return made;
})();

async function ask(path, options) {
  let answer;
  try {
    answer = await fetch(path, { credentials: "same-origin", cache: "no-store", ...options });
  } catch {
    throw new Fault("lost", "The connection is lost: is pren review still running?", true);
  }
  const content = await answer.json().catch(() => ({ code: "answer", message: `The answer is odd (${answer.status}).` }));
  if (!answer.ok) throw new Fault(content.code, content.message);
  return content;
}

export const get = (path, params = {}) => ask(`${path}?${new URLSearchParams(params)}`);

export const post = (path, body) =>
  ask(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });

export const thumbnail = (id) => `/api/thumbnails/${id}`;
export const large = (id) => `/api/large/${id}`;
export const example = (name, number) => `/api/examples/${number}?${new URLSearchParams({ name })}`;
