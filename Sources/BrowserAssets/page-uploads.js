// Uploads: their states, and what a person can do with them. page-upload-rows.js shows them.

/**
 * The uploads of this page. Their states are those of the module and
 * - `queued`: not started yet
 * - `exists`: a file with the name exists, and a person has to decide
 * - `interrupted`: begun by an earlier page; `pending` is what the module remembers
 */
const uploads = [];
/** Those in the state `queued`, in the order in which they start. */
const queue = new Set();
/** The uploads that the module has, even if they are paused. */
const active = new Set();
const isRunning = ({ state }) => ["waiting", "hashing", "uploading", "offline"].includes(state);
const isEnded = ({ state }) => state === "completed";
// Whether a person has paused all uploads, including those that are still queued.
let areAllPaused = false;

/**
 * Adds an upload of the file to the list, and starts it as soon as possible.
 * `ifExists`: `ask` (the server refuses an existing name), `replace`, or `keep` (the server chooses a free name).
 */
function addUpload({ file, handle, name, path, ifExists = "ask" }) {
  const item = {
    file, handle, name, path, ifExists, size: file.size, sent: 0, rate: new Rate(), error: null, pending: null,
    transfer: null,
  };
  uploads.push(item);
  enqueue(item);
}

function enqueue(item) {
  item.state = "queued";
  queue.add(item);
}

/** Bytes in each second, averaged over some seconds. It falls while there is no progress. */
class Rate {
  constructor() { this.samples = []; }

  add(bytes, now = performance.now()) {
    this.samples.push({ bytes, now });
    while (this.samples.length > 2 && now - this.samples[0].now > 8000) this.samples.shift();
  }

  reset() { this.samples = []; }

  get value() {
    const [first, last] = [this.samples[0], this.samples.at(-1)];
    const time = first ? performance.now() - first.now : 0;
    return time > 500 ? Math.max(0, last.bytes - first.bytes) / time * 1000 : 0;
  }
}

/** The options for the module. After a revocation all uploads wait for the same dialog. */
function moduleOptions() {
  let used = null;
  const token = ({ isRejected }) => {
    if (isRejected && session.token === used) return askForToken(used === null ? "" : text("tokenExpired"));
    used = session.token;
    return used;
  };
  return { token, retries: Infinity };
}

/** Starts queued uploads. The module performs four at a time, so only a few of thousands are handed to it. */
function startUploads() {
  let free = areAllPaused ? 0 : 6 - Array.from(active).filter(isRunning).length;
  for (const item of queue) {
    if (free <= 0) break;
    queue.delete(item);
    startUpload(item);
    free -= 1;
  }
  showUploadsSoon();
}

/** The fields of a creation: the server refuses a name that exists unless a person has decided. */
const creationHeaders = (item, method) => (item.ifExists === "ask" && method === "PUT" ? { "If-None-Match": "*" } : {});

function startUpload(item) {
  const method = item.ifExists === "keep" ? "POST" : "PUT";
  follow(item, onward.upload(item.file, method === "PUT" ? item.path + encodeURIComponent(item.name) : item.path, {
    ...moduleOptions(), method, name: item.name, handle: item.handle, creationHeaders: creationHeaders(item, method),
  }));
}

/** Shows the progress of an upload of the module, and its result. */
async function follow(item, transfer) {
  Object.assign(item, { transfer, pending: null, error: null, state: transfer.state });
  active.add(item);
  item.rate.reset();
  try {
    for await (const progress of transfer) {
      if (progress.state !== item.state) item.rate.reset();
      const { state, sent, retry } = progress;
      announceInterruption(item, progress);
      Object.assign(item, { state, sent, retry });
      if (state === "uploading") item.rate.add(sent);
      showUploadsSoon();
    }
    const result = await transfer.finished;
    active.delete(item);
    Object.assign(item, { state: "completed", sent: item.size });
    // The server has chosen a name that the page does not know if the response was lost.
    if (result.url) addEntry(new URL(result.url, location).pathname, item.size);
    else if (item.path === folder.path) reloadFolder();
    announceCompletion(item);
    showUsage();
  } catch (error) {
    active.delete(item);
    if (error.code === "canceled") {
      removeItem(item);
    } else {
      const exists = error.status === 412 && item.ifExists === "ask";
      Object.assign(item, { state: exists ? "exists" : "failed", error });
      announce(text(exists ? "announceExists" : "announceFailed", { name: isolated(item.name), reason: reason(error) }));
    }
  }
  startUploads();
}

/** Reads out that an upload waits after a failure, and that it continues; for several uploads at the same time only once. */
function announceInterruption(item, { state, sent, retry }) {
  const isAlone = () => uploads.every((other) => other === item || other.interruptedAt === undefined);
  const name = isolated(item.name);
  if (item.interruptedAt === undefined) {
    // The first attempt after an interruption is made at once, and usually succeeds.
    if (state !== "waiting" || !(retry?.at > Date.now() + 100)) return;
    item.interruptedAt = sent;
    if (isAlone()) announce(text("announceWaiting", { name, reason: reason(retry.error) }));
  } else if (state === "uploading" ? sent !== item.interruptedAt : ["completed", "paused", "failed"].includes(state)) {
    delete item.interruptedAt;
    if (state === "uploading" && isAlone()) announce(text("announceResumed", { name }));
  }
}

let announced = 0;

/** Reads out each of a few files, but only the end of many. */
function announceCompletion(item) {
  const open = queue.size > 0 || Array.from(active).some(isRunning);
  announced += 1;
  if (uploads.length <= 5) announce(text("announceCompleted", { name: isolated(item.name) }));
  else if (!open) announce(text("announceAll", { count: announced }));
  if (!open) announced = 0;
}

function removeItem(item) {
  const index = uploads.indexOf(item);
  if (index < 0) return;
  const hadFocus = item.row?.contains(document.activeElement);
  uploads.splice(index, 1);
  queue.delete(item);
  item.row?.remove();
  showUploads();
  if (hadFocus) (uploads.length > 0 ? byID("uploads-title") : byID("title")).focus();
}

/** Offers the uploads that earlier pages began. Removes offers that another tab has resumed. */
async function findInterrupted() {
  let found;
  try { found = await onward.pendingUploads({ server: new URL(filesPath(), location) }); } catch { return; }
  const offered = found.filter(({ isActive }) => !isActive);
  for (const item of uploads.filter(({ pending }) => pending)) {
    if (!offered.some(({ id }) => id === item.pending.id)) removeItem(item);
  }
  const isShown = (pending) => uploads.some((item) => item.id === pending.id
    || (item.file && item.state !== "completed" && matches(pending, item)));
  const added = offered.filter((pending) => !isShown(pending));
  for (const pending of added) {
    const path = new URL(pending.target).pathname;
    uploads.push({
      id: pending.id, name: pending.name, size: pending.size, sent: pending.sent,
      path: normalizedPath(path.slice(0, path.lastIndexOf("/") + 1)), state: "interrupted", ifExists: "ask",
      rate: new Rate(), pending,
    });
  }
  if (added.length > 0) announce(text("interruptedFound", { count: added.length }));
  showUploads();
}

/** Whether the remembered upload is that of the file. */
function matches(pending, { file, name, path }) {
  const target = normalizedPath(new URL(pending.target).pathname);
  return pending.name === name && pending.size === file.size && pending.lastModified === file.lastModified
    && (target === path || target === path + encodeURIComponent(name));
}

/** Resumes what an earlier page began: with one click where the browser kept a handle, otherwise with the file. */
async function resumeInterrupted(item) {
  if (!item.pending.handle) return chooseAgain(item);
  await resumeWith(item, item.pending.handle);
  // The file was moved or changed.
  if (["different-file", "source-unreadable"].includes(item.error?.code)) chooseAgain(item);
}

function chooseAgain(item) {
  const input = byID("again-input");
  input.value = "";
  input.onchange = () => resumeWith(item, input.files[0]);
  input.click();
}

/** Resumes with a file, or with the handle of a file. */
async function resumeWith(item, source) {
  try {
    // If the server has removed the upload, it is created again.
    const options = { ...moduleOptions(), creationHeaders: creationHeaders(item, item.pending.method) };
    const transfer = await item.pending.resume(source, options);
    item.file = source.getFile ? await source.getFile() : source;
    follow(item, transfer);
  } catch (error) {
    item.error = error;
    announce(interruptedReason(item));
  }
  showUploads();
}

/** Why an interrupted upload was not resumed. */
function interruptedReason({ error, pending }) {
  if (error.code !== "different-file") return reason(error);
  const date = new Date(pending.lastModified);
  return text("reasonDifferent", {
    name: isolated(pending.name), size: formatSize(pending.size), date: `${dates.format(date)} ${clocks.format(date)}`,
  });
}

/** Discards the upload on the server, after a question if many bytes would be lost. */
async function cancelUpload(item) {
  if (item.sent > 10e6) {
    const name = isolated(item.name);
    const answer = await ask(text("cancelTitle", { name }),
      [element("p", { text: text("cancelText", { sent: formatSize(item.sent) }) })],
      [{ value: "cancel", label: text("cancelUpload"), style: "danger" }, { value: null, label: text("keepUpload") }]);
    if (answer === null || isEnded(item)) return;
  }
  if (item.pending) await item.pending.cancel(moduleOptions()).catch(() => item.pending.forget());
  else if (item.transfer && item.state !== "failed") await item.transfer.cancel().catch(() => {});
  removeItem(item);
  announce(text("announceDiscarded", { name: isolated(item.name) }));
  startUploads();
}

/** Decides what happens with a file whose name exists. */
function decide(item, ifExists) {
  if (ifExists === "skip") return removeItem(item);
  item.ifExists = ifExists;
  enqueue(item);
  startUploads();
}

function pause(item) {
  item.transfer.pause();
  announce(text("announcePaused", { name: isolated(item.name) }));
}

function resume(item) {
  item.transfer.resume();
  announce(text("announceResumed", { name: isolated(item.name) }));
}

function pauseAll() {
  areAllPaused = true;
  uploads.filter(isRunning).forEach(({ transfer }) => transfer.pause());
  showUploads();
  byID("resume-all").focus();
  announce(text("announceAllPaused"));
}

function resumeAll() {
  areAllPaused = false;
  uploads.filter(({ state }) => state === "paused").forEach(({ transfer }) => transfer.resume());
  startUploads();
  byID("pause-all").focus();
  announce(text("announceAllResumed"));
}

function clearEnded() {
  uploads.splice(0, uploads.length, ...uploads.filter((item) => !isEnded(item)));
  showUploads();
  (uploads.length > 0 ? byID("uploads-title") : byID("title")).focus();
}
