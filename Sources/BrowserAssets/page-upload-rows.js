// The rows of the uploads, and the progress of all of them.

// The maximum number of rows in the document; the list can be much longer.
const maxRows = 60;

/** The actions of a person for the state: icon, text and function. */
function actionsFor(item) {
  const { state } = item;
  const discard = ["close", "discard", cancelUpload];
  if (isRunning(item)) {
    return [...(item.retry ? [["resume", "retry", resume]] : []), ["pause", "pause", pause], discard];
  }
  switch (state) {
    case "paused": return [["resume", "resume", resume], discard];
    case "interrupted": return [["", "resume", resumeInterrupted], ["", "discard", cancelUpload]];
    case "failed": return [["resume", "retry", (one) => { enqueue(one); startUploads(); }], discard];
    case "exists": return [
      ...(allows("write", item.path) ? [["", "replace", (one) => decide(one, "replace")]] : []),
      ["", "keepBoth", (one) => decide(one, "keep")], ["", "skipFile", (one) => decide(one, "skip")],
    ];
    case "completed": return [["close", "remove", removeItem]];
    default: return [discard];
  }
}

/** The sentence below the name. */
function statusOf(item) {
  const values = { sent: formatSize(item.sent), total: formatSize(item.size) };
  const { state, rate: { value: rate } } = item;
  switch (state) {
    case "queued": return text("waiting", values);
    case "waiting":
      return item.retry ? text("retrying", {
        ...values, reason: reason(item.retry.error), time: formatDuration(Math.max(0, item.retry.at - Date.now()) / 1000),
      })
        : text("waiting", values);
    case "hashing": return text("checking", values);
    case "uploading":
      if (rate < 1) return text("progress", values);
      return text("progressLeft", {
        ...values, rate: formatSize(rate), time: formatDuration((item.size - item.sent) / rate),
      });
    case "failed": return reason(item.error);
    case "interrupted":
      if (item.error) return interruptedReason(item);
      return text(item.pending.handle ? "interrupted" : "interruptedChoose", values);
    default: return text(state, values);
  }
}

/** Writes the upload into its row. Buttons are replaced only if the actions change, so that they keep the focus. */
function showRow(item) {
  item.row ??= makeRow(item);
  const { row, nodes } = item;
  const actions = actionsFor(item);
  const kind = actions.map(([, key]) => key).join();
  row.className = item.state;
  if (item.error && item.state === "interrupted") row.classList.add("failed");
  setText(nodes.status, statusOf(item));
  nodes.progress.hidden = ["exists", "completed", "failed", "queued"].includes(item.state);
  nodes.progress.value = item.size > 0 ? item.sent / item.size : 0;
  if (kind === row.dataset.kind) return row;
  const hadFocus = nodes.buttons.contains(document.activeElement);
  row.dataset.kind = kind;
  nodes.buttons.replaceChildren(...actions.map(([symbol, key, action]) => {
    const label = text("labelOf", { action: text(key), name: isolated(item.name) });
    const onclick = () => action(item);
    return symbol ? iconButton(symbol, label, onclick)
      : element("button", { type: "button", "aria-label": label, text: text(key), onclick });
  }));
  if (hadFocus) nodes.buttons.querySelector("button")?.focus();
  return row;
}

function makeRow(item) {
  const name = visible(item.name);
  const where = element("span", {
    class: "where", text: item.path === folder.path ? "" : text("into", { folder: folderName(item.path) }),
  });
  item.nodes = {
    status: element("p", { class: "status" }),
    progress: element("progress", { max: 1, "aria-label": text("progressOf", { name: isolated(item.name) }) }),
    buttons: element("div", { class: "buttons" }),
  };
  return element("li", {},
    element("p", { class: "name" }, element("bdi", { text: name }), " ", where), item.nodes.buttons,
    item.nodes.progress, item.nodes.status);
}

let shownAt = 0;
let showTimer = 0;

/** Shows the uploads at most four times in a second. */
function showUploadsSoon() {
  showTimer ||= setTimeout(showUploads, Math.max(0, shownAt + 250 - performance.now()));
}

function showUploads() {
  clearTimeout(showTimer);
  showTimer = 0;
  shownAt = performance.now();
  const section = byID("uploads");
  section.hidden = uploads.length === 0;
  document.body.classList.toggle("has-uploads", uploads.length > 0);
  if (uploads.length === 0) {
    byID("upload-rows").replaceChildren();
    showTitle();
    return;
  }
  const rank = (item) => ["exists", "failed", "interrupted"].includes(item.state) ? 0
    : isRunning(item) || item.state === "paused" ? 1 : item.state === "queued" ? 2 : 3;
  const shown = uploads.length <= maxRows ? uploads
    : uploads.toSorted((one, other) => rank(one) - rank(other)).slice(0, maxRows);
  arrange(byID("upload-rows"), shown.map(showRow));
  const hiddenCount = uploads.length - shown.length;
  byID("uploads-hidden").hidden = hiddenCount === 0;
  setText(byID("uploads-hidden"), text("moreUploads", { count: hiddenCount }));
  showSummary();
}

/** The progress of all uploads, in the list and in the title of the window. */
function showSummary() {
  const counted = uploads.filter(({ state }) => state !== "interrupted" && state !== "exists");
  const running = uploads.filter((item) => isRunning(item) || item.state === "queued");
  const done = counted.filter(isEnded).length;
  const rate = running.reduce((sum, item) => sum + item.rate.value, 0);
  const left = running.reduce((sum, item) => sum + item.size - item.sent, 0);
  setText(byID("uploads-summary"), counted.length === 0 ? ""
    : rate > 1 && running.length > 1 ? text("summaryLeft", { done, count: counted.length, time: formatDuration(left / rate) })
      : text("summary", { done, count: counted.length }));
  const total = running.reduce((sum, { size }) => sum + size, 0);
  const percent = total > 0 ? Math.floor((1 - left / total) * 100) : 0;
  showTitle(running.length > 0 ? `${percent} % ` : "");
  byID("pause-all").hidden = areAllPaused || running.length === 0;
  byID("resume-all").hidden = !areAllPaused && !uploads.some(({ state }) => state === "paused");
  byID("clear").hidden = done === 0;
}

function makeUploadsTools() {
  const tool = (id, key, onclick) => element("button", { type: "button", id, text: text(key), onclick });
  // The time until the next attempt, and the rate of an upload without progress.
  setInterval(() => { if (uploads.some(({ state, retry }) => state === "uploading" || retry)) showUploadsSoon(); }, 1000);
  byID("uploads-tools").append(
    tool("pause-all", "pauseAll", pauseAll), tool("resume-all", "resumeAll", resumeAll),
    tool("clear", "clear", clearEnded));
}
