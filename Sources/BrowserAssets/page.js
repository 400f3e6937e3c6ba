// The start of the page and its events. The server joins onward.js (as `onward`), texts.js and the parts of this script
// (page-*.js, in the order of BrowserAssets.swift) into one module, so they share their declarations.

/** Shows a message above the files, which screen readers read at once. */
function showProblem(message) {
  const banner = byID("banner");
  banner.textContent = message;
  banner.hidden = message === "";
}

/** Hides a message about an earlier action, but not that there is no connection. */
function hideProblem() {
  if (byID("banner").textContent !== text("offlineBanner")) showProblem("");
}

async function enterToken() {
  const token = await askForToken();
  if (token === null) return;
  await reloadFolder();
  leaveForbiddenFolder();
  byID("title").focus();
  resumeAfterRefusal();
}

/** If the token allows only another folder, that folder is shown. */
function leaveForbiddenFolder() {
  const [prefix] = session.prefixes;
  if (prefix && !allows("create") && !allows("read")) openFolder(prefix.replace(/\/?$/, "/"));
}

/** Uploads that failed because of the token can continue with another one. */
function resumeAfterRefusal() {
  for (const item of uploads) if (item.state === "failed" && item.error.status === 401) enqueue(item);
  startUploads();
}

/** A server on this machine can be reached without a network. */
const isReachable = () => fetch(`${page.base}healthz`, { cache: "no-store", signal: AbortSignal.timeout(3000) })
  .then(({ ok }) => ok, () => false);

async function showConnection() {
  // The network can be back before the request has failed.
  if (navigator.onLine || await isReachable() || navigator.onLine) {
    if (!byID("banner").hidden) announce(text("online"));
    showProblem("");
    renewIfDue();
    if (folder.status === 0) reloadFolder();
  } else {
    showProblem(text("offlineBanner"));
  }
}

/** The folder of the address; at `/`, the folder that the server chose. */
function folderOfAddress() {
  const path = normalizedPath(location.pathname);
  return path.startsWith(filesPath()) && path.endsWith("/") ? path : normalizedPath(page.folder);
}

/** Follows a link to a folder, and shows media, within this document. */
function handleClick(event) {
  if (event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  const deletion = event.target.closest("[data-delete]");
  if (deletion) return deleteEntry(deletion.closest("tr").entry);
  const link = event.target.closest("a");
  if (!link) return;
  const entry = link.closest("tr")?.entry ?? folder.entries.find((one) => pathOf(one) === link.getAttribute("href"));
  if (link.dataset.folder !== undefined || entry?.isFolder) {
    event.preventDefault();
    openFolder(normalizedPath(new URL(link.href).pathname));
  } else if (entry && entry.kind !== "file" && !link.hasAttribute("download")) {
    event.preventDefault();
    openViewer(entry);
  } else if (entry && session.token !== null && !session.hasCookie) {
    event.preventDefault();
    downloadEntry(entry);
  }
}

/** The arrow keys move between the rows. */
function handleArrow(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const row = event.target.closest("tr");
  if (!step || !row) return;
  let next = row;
  do next = step > 0 ? next.nextElementSibling : next.previousElementSibling; while (next?.hidden);
  if (!next) return;
  event.preventDefault();
  next.querySelector("a").focus();
}

const hasFiles = (event) => event.dataTransfer?.types.includes("Files");

function listenForDrops() {
  const target = byID("drop-target");
  let depth = 0;
  const show = (isShown) => {
    target.hidden = !isShown;
    if (isShown) target.firstElementChild.textContent = text("dropInto", { folder: isolated(folderName()) });
    else depth = 0;
  };
  addEventListener("dragenter", (event) => { if (hasFiles(event) && allows("create")) { depth += 1; show(true); } });
  addEventListener("dragleave", () => { depth -= 1; if (depth <= 0) show(false); });
  addEventListener("dragover", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = allows("create") ? "copy" : "none";
  });
  addEventListener("drop", async (event) => {
    show(false);
    if (!hasFiles(event)) return;
    event.preventDefault();
    uploadFiles(await droppedFiles(event.dataTransfer));
  });
  addEventListener("paste", (event) => {
    if (event.clipboardData.files.length > 0 && !document.querySelector("dialog")) {
      event.preventDefault();
      uploadFiles(listedFiles(event.clipboardData.files));
    }
  });
}

function listen() {
  byID("choose-files").addEventListener("click", chooseFiles);
  byID("choose-folder").addEventListener("click", chooseFolder);
  for (const id of ["files-input", "folder-input"]) {
    byID(id).addEventListener("change", async ({ target }) => {
      await uploadFiles(listedFiles(target.files));
      target.value = "";
    });
  }
  byID("sign-in").addEventListener("click", enterToken);
  byID("sign-out").addEventListener("click", signOut);
  byID("show-usage").addEventListener("click", openUsage);
  byID("more").addEventListener("click", showMore);
  let delay = 0;
  byID("search").addEventListener("input", ({ target }) => {
    clearTimeout(delay);
    delay = setTimeout(search, folder.isPartial ? 250 : 50, target.value.trim());
  });
  addEventListener("click", handleClick);
  byID("entries").addEventListener("keydown", handleArrow);
  addEventListener("popstate", () => openFolder(folderOfAddress(), { isHistory: true }));
  addEventListener("online", showConnection);
  addEventListener("offline", showConnection);
  addEventListener("focus", () => { renewIfDue(); findInterrupted(); });
  addEventListener("beforeunload", (event) => {
    if (uploads.some((item) => isRunning(item) || ["queued", "paused"].includes(item.state))) event.preventDefault();
  });
  listenForDrops();
}

/** Waits until the browser has painted the rows of the server, before this script changes them. */
const firstPaint = () => new Promise((resolve) => {
  requestAnimationFrame(() => setTimeout(resolve));
  setTimeout(resolve, 200);
});

async function startPage() {
  translateDocument();
  makeUploadsTools();
  await firstPaint();
  readDocument();
  byID("actions").hidden = false;
  listen();
  showFolder();
  await startSession();
  // The document lacks the entries if the cookie had expired, and their order and end if there are too many.
  if (folder.status !== 200 && session.scopes.length > 0 || folder.isPartial) await reloadFolder();
  else showCount();
  leaveForbiddenFolder();
  showUsage();
  if (!navigator.onLine) showConnection();
  await findInterrupted();
  document.body.dataset.isReady = "true";
}

startPage();
