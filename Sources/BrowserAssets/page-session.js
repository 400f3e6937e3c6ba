// The token, what it allows, and the cookie with which the browser loads files.

const session = { token: null, principal: null, scopes: [], prefixes: [], hasCookie: false, renewAt: Infinity };
const tokenKey = `onward-token:${page.base}`;
let renewal = null;
/** The maximum size of files that the page itself loads. */
const maxLoadedSize = 500e6;

/** A response that is not successful, or that did not arrive (status 0). */
class Refusal extends Error {
  constructor(status, problem) {
    super(`status ${status}`);
    this.status = status;
    this.code = problem?.code ?? null;
    this.detail = problem?.detail;
  }

  static async from(response) {
    const isProblem = response.headers.get("Content-Type")?.startsWith("application/problem+json");
    return new Refusal(response.status, isProblem ? await response.json().catch(() => null) : null);
  }
}

const reasons = new Map(Object.entries({
  gone: "reasonGone", "offset-lost": "reasonGone", "digest-mismatch": "reasonDigest", "source-changed": "reasonChanged",
  "source-unreadable": "reasonUnreadable", "no-permission": "reasonPermission", "too-large": "reasonTooLarge",
  "quota-exceeded": "reasonQuota", "too-large-to-load": "reasonTooLargeToLoad",
}));

/** A sentence for a person that describes why a request failed: a `Refusal`, or the `UploadError` of the module. */
function reason(error) {
  const key = reasons.get(error.problem?.code) ?? reasons.get(error.code);
  if (key) return text(key);
  if ((error.problem?.code ?? error.code)?.startsWith?.("path-")) return text("reasonName");
  switch (error.status) {
    case 401: return text("reasonToken");
    case 403: return text("reasonForbidden");
    case 404: return text("reasonMissing");
    case 413: return text("reasonTooLarge");
    case 507: return text("reasonFull");
    case undefined: case 0: return text("reasonNetwork");
    default: return error.detail ?? error.problem?.detail ?? text("reasonOther", { status: String(error.status) });
  }
}

/** Sends a request with the token. Throws a `Refusal` unless the response is successful. */
async function request(url, options = {}) {
  const headers = new Headers(options.headers);
  if (session.token) headers.set("Authorization", `Bearer ${session.token}`);
  let response;
  try {
    response = await fetch(url, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal(0);
  }
  if (!response.ok) throw await Refusal.from(response);
  return response;
}

/**
 * A URL with which the browser itself can load the file. If it has no cookie for the token, because the token is too long or
 * an application verifies it, the content is loaded with the token, and the URL is that of a `Blob` (`isLocal`).
 */
async function loadableURL({ path, size, signal }) {
  if (session.token === null || session.hasCookie) return { url: path, isLocal: false };
  // The application may know the browser by a cookie of its own.
  const isOpen = await fetch(path, { method: "HEAD", signal }).then(({ ok }) => ok, () => false);
  if (isOpen) return { url: path, isLocal: false };
  if (size > maxLoadedSize) throw new Refusal(0, { code: "too-large-to-load" });
  return { url: URL.createObjectURL(await (await request(path, { signal })).blob()), isLocal: true };
}

/** Verifies the token of `session`, and gets the cookie for it. Repeats this before the cookie expires. */
async function openSession() {
  clearTimeout(renewal);
  session.renewAt = Infinity;
  const response = await request(`${page.base}onward/session`, { method: "POST" });
  const { principal, scopes, prefixes, expires } = await response.json();
  Object.assign(session, { principal, scopes, prefixes: prefixes.map(normalizedPath), hasCookie: expires !== null });
  showSession();
  if (expires === null) return;
  session.renewAt = Date.now() + expires * 600;
  renewal = setTimeout(renewSession, expires * 600);
}

/**
 * Renews the cookie, and tries again after 30 seconds if that fails. If the server rejects the token, the page asks the person
 * for a new one.
 */
async function renewSession() {
  try {
    await openSession();
  } catch (error) {
    if (error.status === 401 && session.token) await askForToken(text("tokenExpired"));
    else renewal = setTimeout(renewSession, 30_000);
  }
}

/** Renews the cookie if the time for that has passed: after the computer has slept, the timer is late. */
async function renewIfDue() {
  if (Date.now() > session.renewAt) await renewSession();
}

/** Uses the token of this tab, or the one that was kept on this device. */
async function startSession() {
  session.token = sessionStorage.getItem(tokenKey) ?? localStorage.getItem(tokenKey);
  try {
    await openSession();
  } catch (error) {
    if (error.status === 401 && session.token) {
      forgetToken();
      await openSession().catch(() => {});
    } else if (error.status !== 401) {
      renewal = setTimeout(renewSession, 5_000);
    }
  }
  showSession();
}

function forgetToken() {
  session.token = null;
  sessionStorage.removeItem(tokenKey);
  localStorage.removeItem(tokenKey);
}

async function signOut() {
  forgetToken();
  await fetch(`${page.base}onward/session`, { method: "DELETE" }).catch(() => {});
  location.reload();
}

let question = null;

/** Asks a person for a token until the server accepts one. Returns the token, or null. One dialog serves all callers. */
function askForToken(message) {
  question ??= showTokenDialog(message).finally(() => { question = null; });
  return question;
}

async function showTokenDialog(message) {
  const field = element("input", {
    id: "token", type: "password", autocomplete: "off", spellcheck: "false", required: true,
    "aria-describedby": "token-problem",
  });
  const problem = element("p", { id: "token-problem", class: "problem", role: "alert", text: message ?? "" });
  const keep = element("input", { id: "keep", type: "checkbox", "aria-describedby": "keep-hint" });
  const show = element("input", {
    id: "show-token", type: "checkbox", onchange: () => { field.type = show.checked ? "text" : "password"; },
  });
  const content = [
    element("label", { for: "token", text: text("token") }), field, problem,
    element("p", { class: "choice" }, show, element("label", { for: "show-token", text: text("showToken") })),
    element("p", { class: "choice" }, keep, element("label", { for: "keep", text: text("keepToken") })),
    element("p", { id: "keep-hint", class: "hint", text: text("keepHint") }),
  ];
  const previous = session.token;
  const submit = async () => {
    session.token = field.value.trim();
    try {
      await openSession();
      return true;
    } catch (error) {
      session.token = previous;
      problem.textContent = error.status === 401 ? text("tokenRejected") : reason(error);
      field.focus();
      field.select();
      return false;
    }
  };
  const result = await ask(text("tokenTitle"), content, [
    { value: "continue", label: text("continue"), style: "primary" }, { value: null, label: text("cancel") },
  ], { submit });
  if (result === null) return null;
  const [used, other] = keep.checked ? [localStorage, sessionStorage] : [sessionStorage, localStorage];
  used.setItem(tokenKey, session.token);
  other.removeItem(tokenKey);
  showUsage();
  return session.token;
}

/** Whether the token allows operations of the scope in the folder. */
function allows(scope, path = folder.path) {
  const { scopes, prefixes } = session;
  return (scopes.includes(scope) || (scope === "create" && scopes.includes("write")))
    && (prefixes.length === 0 || prefixes.some((prefix) => path.startsWith(prefix.endsWith("/") ? prefix : `${prefix}/`)));
}

/** Shows only what the token allows. */
function showSession() {
  byID("tools").hidden = false;
  byID("choose-files").hidden = byID("choose-folder").hidden = !allows("create");
  // If the server allows writing without a token, no token is needed.
  byID("sign-in").hidden = session.token !== null || allows("write");
  byID("sign-out").hidden = session.token === null;
  byID("show-usage").hidden = !session.scopes.includes("admin");
  document.body.classList.toggle("may-delete", allows("write"));
}
