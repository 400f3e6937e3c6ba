// The folder that is shown: its entries, their order, the search, and deletion.

const maxEntries = 10_000;
const pageSize = 1000;

/**
 * `entries` are those of the folder, or of the part that is loaded. `isPartial` means that the folder has more entries
 * than the page can sort and search; then they are in the order of the server, and `hasMore` means that more of them follow.
 */
const folder = {
  path: "", entries: [], isPartial: false, hasMore: false, status: 200, query: "", sort: "name", isDescending: false,
};

const decoded = (segment) => {
  try { return decodeURIComponent(segment); } catch { return segment; }
};

/** The path in one spelling: percent-encoded as this page writes it. */
const normalizedPath = (path) => path.split("/").map((segment) => encodeURIComponent(decoded(segment))).join("/");

const filesPath = () => `${page.base}files/`;
const lastSegment = (path) => path.split("/").filter(Boolean).pop() ?? "";
const folderName = (path = folder.path) => (path === filesPath() ? text("files") : visible(decoded(lastSegment(path))));

/** The media that browsers show, by the end of the name. */
const media = new Map(Object.entries({
  image: "png jpg jpeg gif webp avif bmp ico svg", video: "mp4 m4v webm ogv mov mkv",
  audio: "mp3 m4a aac flac ogg oga opus wav weba",
}).flatMap(([kind, ends]) => ends.split(" ").map((end) => [end, kind])));

function makeEntry(name, isFolder, size, modified, row = null) {
  const kind = isFolder ? "folder" : media.get(name.split(".").pop().toLowerCase()) ?? "file";
  return { name, isFolder, kind, size, modified, row, key: name.normalize("NFKC").toLowerCase() };
}

const pathOf = (entry) => folder.path + encodeURIComponent(entry.name) + (entry.isFolder ? "/" : "");

/** The entries that the server has written into the document. */
function readDocument() {
  folder.path = normalizedPath(page.folder);
  folder.status = Number(document.body.dataset.status ?? 200);
  const rows = Array.from(byID("entries").tBodies[0].rows);
  folder.isPartial = rows.at(-1)?.className === "more";
  if (folder.isPartial) rows.pop();
  folder.entries = rows.map((row) =>
    makeEntry(
      decoded(lastSegment(row.cells[0].firstChild.getAttribute("href"))), row.className === "folder",
      Number(row.dataset.size ?? 0), Number(row.dataset.modified) * 1000, row));
}

/** Entries in the order of the server; `hasMore` if they are not all. */
async function fetchEntries(path, { limit, after, prefix, signal }) {
  const query = new URLSearchParams({ limit });
  if (after !== undefined) query.set("after", after);
  if (prefix) query.set("prefix", prefix);
  const response = await request(`${path}?${query}`, { headers: { Accept: "application/json" }, signal });
  const entries = (await response.json()).map(({ name, type, size, modified }) =>
    makeEntry(name, type === "directory", size ?? 0, Date.parse(modified)));
  return { entries, hasMore: /rel="?next/.test(response.headers.get("Link") ?? "") };
}

let loading = new AbortController();

/** Loads the folder of `folder.path` again. */
async function reloadFolder() {
  loading.abort();
  loading = new AbortController();
  const { signal } = loading;
  try {
    const { entries, hasMore } = await fetchEntries(folder.path, { limit: maxEntries, signal });
    if (hasMore) entries.length = pageSize;
    Object.assign(folder, { entries, hasMore, isPartial: hasMore, status: 200 });
  } catch (error) {
    if (error.name === "AbortError") return;
    Object.assign(folder, { entries: [], hasMore: false, isPartial: false, status: error.status ?? 0 });
  }
  showFolder();
}

/** Shows another folder without a new document, so that uploads continue. */
async function openFolder(path, { isHistory = false } = {}) {
  const previous = folder.path;
  Object.assign(folder, { path, query: "" });
  if (!isHistory) history.pushState(null, "", path);
  byID("search").value = "";
  hideProblem();
  document.body.classList.add("loading");
  const timer = setTimeout(() => announce(text("loading")), 1000);
  await reloadFolder();
  clearTimeout(timer);
  document.body.classList.remove("loading");
  if (folder.path !== path) return;
  // In a parent folder the focus returns to the folder from which the person came.
  const child = previous.startsWith(path)
    ? folder.entries.find((entry) => entry.isFolder && previous.startsWith(pathOf(entry))) : undefined;
  const target = child?.row?.querySelector("a") ?? byID("title");
  target.focus();
  if (!child) window.scrollTo(0, 0);
  announce(text("opened", { folder: folderName() }) + " " + byID("count").textContent);
}

const orders = {
  name: (one, other) => collator.compare(one.name, other.name),
  size: (one, other) => one.size - other.size,
  modified: (one, other) => one.modified - other.modified,
};

function sortedEntries() {
  if (folder.isPartial) return folder.entries;
  const order = orders[folder.sort];
  const sign = folder.isDescending ? -1 : 1;
  return folder.entries.sort((one, other) =>
    other.isFolder - one.isFolder || sign * order(one, other) || orders.name(one, other));
}

/** Shows everything about the folder. */
function showFolder() {
  showPath();
  for (const heading of byID("entries").querySelectorAll("[data-sort]")) showSorting(heading);
  byID("entries").setAttribute("aria-label", text("tableOf", { folder: folderName() }));
  arrange(byID("entries").tBodies[0], sortedEntries().map(rowOf));
  const search = byID("search");
  search.placeholder = text(folder.isPartial ? "filterPrefix" : "filter");
  search.setAttribute("aria-label", search.placeholder);
  if (!folder.isPartial) filterRows();
  showCount();
  showSession();
}

function showPath() {
  const segments = folder.path.slice(filesPath().length).split("/").filter(Boolean);
  const ancestors = segments.map((_, index) => filesPath() + segments.slice(0, index).map((one) => `${one}/`).join(""));
  byID("path").hidden = ancestors.length === 0;
  document.querySelector("#path ol").replaceChildren(...ancestors.map((path) =>
    element("li", {}, element("a", { href: path, "data-folder": "", text: folderName(path) }))));
  setText(byID("title"), folderName());
  showTitle();
}

/** The title of the window; `progress` is that of the uploads. */
function showTitle(progress = "") {
  document.title = progress + text("pageTitle", { folder: folderName(), host: location.host });
}

/** Makes the heading of a column a button that sorts, unless the folder is too large. */
function showSorting(heading) {
  const { sort } = heading.dataset;
  const isSorted = !folder.isPartial && folder.sort === sort;
  if (isSorted) heading.setAttribute("aria-sort", folder.isDescending ? "descending" : "ascending");
  else heading.removeAttribute("aria-sort");
  if (folder.isPartial) {
    setText(heading, text(sort));
  } else if (!heading.querySelector("button")) {
    heading.replaceChildren(element("button", { type: "button", text: text(sort), onclick: () => sortBy(sort) }));
  }
}

function sortBy(sort) {
  folder.isDescending = folder.sort === sort ? !folder.isDescending : sort !== "name";
  folder.sort = sort;
  showFolder();
}

/** The row of the entry: the one that the server has written, or a new one. */
function rowOf(entry) {
  if (entry.isDressed) return entry.row;
  const path = pathOf(entry);
  const row = entry.row ?? element("tr", {},
    element("td", {}, element("a")), element("td"), element("td", {}, element("time")));
  const [nameCell, sizeCell, timeCell] = row.cells;
  const link = nameCell.firstChild;
  const time = timeCell.firstChild;
  row.className = entry.kind;
  link.href = path;
  setText(link, visible(entry.name));
  if (entry.kind === "file") link.download = "";
  if (!entry.isFolder) {
    sizeCell.textContent = formatSize(entry.size);
    sizeCell.title = numbers.format(entry.size);
  }
  const date = new Date(entry.modified);
  if (time && !Number.isNaN(entry.modified)) {
    time.dateTime = date.toISOString();
    time.replaceChildren(dates.format(date), element("span", { text: ` ${clocks.format(date)}` }));
  }
  row.append(actionsOf(entry, path));
  Object.assign(entry, { row, isDressed: true });
  row.entry = entry;
  return row;
}

function actionsOf(entry, path) {
  const cell = element("td");
  const name = isolated(entry.name);
  if (!entry.isFolder) {
    const label = text("download", { name });
    if (entry.kind !== "file") {
      const properties = { href: path, download: "", class: "button quiet", "aria-label": label, title: label };
      cell.append(element("a", properties, icon("download")));
    }
    const button = iconButton("delete", text("deleteName", { name }));
    button.dataset.delete = "";
    cell.append(button);
  }
  return cell;
}

/** Shows only the rows whose name contains all words of the search. */
function filterRows() {
  const words = folder.query.normalize("NFKC").toLowerCase().split(/\s+/).filter(Boolean);
  for (const { key, row } of folder.entries) {
    const isHidden = !words.every((word) => key.includes(word));
    if (row.hidden !== isHidden) row.hidden = isHidden;
  }
}

async function search(query) {
  folder.query = query;
  if (!folder.isPartial) {
    filterRows();
    showCount();
    return;
  }
  loading.abort();
  loading = new AbortController();
  try {
    Object.assign(folder, await fetchEntries(folder.path, { limit: pageSize, prefix: query, signal: loading.signal }));
    showFolder();
  } catch (error) {
    if (error.name !== "AbortError") announce(reason(error));
  }
}

/** Appends the next entries of a large folder. */
async function showMore() {
  const { path, query } = folder;
  const last = folder.entries.at(-1).name;
  try {
    const { entries, hasMore } = await fetchEntries(path, { limit: pageSize, after: last, prefix: query });
    if (folder.path !== path || folder.query !== query) return;
    folder.entries.push(...entries);
    folder.hasMore = hasMore;
    byID("entries").tBodies[0].append(...entries.map(rowOf));
    showCount();
    entries[0]?.row.querySelector("a").focus();
  } catch (error) {
    announce(reason(error));
  }
}

/** Shows how many entries there are, and a notice if there are none. */
function showCount() {
  const { entries, query, isPartial, status } = folder;
  const shown = isPartial || !query ? entries : entries.filter(({ row }) => !row.hidden);
  const folders = shown.filter((entry) => entry.isFolder).length;
  const files = shown.length - folders;
  const parts = [];
  if (folders) parts.push(text("folders", { count: folders }));
  const size = shown.reduce((sum, entry) => sum + entry.size, 0);
  if (files) parts.push(text("filesCount", { count: files }), formatSize(size));
  setText(byID("count"), isPartial ? text(query ? "partialMatches" : "partial", { count: shown.length })
    : query ? text("shown", { shown: shown.length, count: entries.length }) : parts.join(" · "));
  byID("filter").hidden = entries.length === 0 && !query;
  byID("entries").hidden = shown.length === 0;
  byID("more").hidden = !folder.hasMore;
  showNotice(shown.length > 0 ? null : status === 200 && query ? "search" : status);
}

/** What a person can do if the folder shows nothing. */
function showNotice(kind) {
  const mayUpload = allows("create");
  const signIn = () => element("button", { type: "button", class: "primary", text: text("signIn"), onclick: enterToken });
  const notices = {
    search: () => ["", text(folder.isPartial ? "nothingBegins" : "nothingFound", { query: folder.query })],
    200: () => [text("emptyTitle"), mayUpload ? text("dropHint") : ""],
    401: () => [text("unauthorizedTitle"), text("unauthorizedHint"), signIn()],
    403: () => [text("forbiddenTitle"), mayUpload ? text("uploadOnlyHint") : "", ...(session.token ? [] : [signIn()])],
    404: () => [text("missingTitle"), mayUpload ? text("missingHint") : ""],
  };
  const [title, hint, ...more] = kind === null ? [] : (notices[kind] ?? (() => [
    text("failedTitle"), reason({ status: folder.status }),
    element("button", { type: "button", text: text("tryAgain"), onclick: reloadFolder }),
  ]))();
  const notice = byID("notice");
  const nodes = [...(title ? [element("h2", { text: title })] : []), ...(hint ? [element("p", { text: hint })] : []), ...more];
  notice.hidden = kind === null;
  // A button that is replaced loses the focus.
  if (notice.textContent !== nodes.map(({ textContent }) => textContent).join("")) notice.replaceChildren(...nodes);
}

/** Shows a file that was uploaded, without loading the folder again. */
function addEntry(path, size) {
  const target = normalizedPath(path);
  if (!target.startsWith(folder.path) || folder.isPartial || folder.status === 403) return;
  const [segment, ...deeper] = target.slice(folder.path.length).split("/");
  const entry = makeEntry(decoded(segment), deeper.length > 0, deeper.length > 0 ? 0 : size, Date.now());
  const index = folder.entries.findIndex(({ name }) => name === entry.name);
  if (index >= 0 && entry.isFolder) return;
  if (index >= 0) folder.entries.splice(index, 1);
  // A search needs the row before the table shows it.
  rowOf(entry);
  folder.entries.push(entry);
  folder.status = 200;
  scheduleFolder();
}

let scheduled = 0;

/** Shows the folder soon, because many uploads can end at the same time. It takes longer if the folder is large. */
function scheduleFolder() {
  scheduled ||= setTimeout(() => {
    scheduled = 0;
    showFolder();
  }, 200 + folder.entries.length / 5);
}

/** Downloads a file if the browser has no cookie for the token. */
async function downloadEntry(entry) {
  const name = isolated(entry.name);
  hideProblem();
  announce(text("downloading", { name }));
  try {
    const { url, isLocal } = await loadableURL({ path: pathOf(entry), size: entry.size });
    element("a", { href: url, download: entry.name }).click();
    // The browser has begun to save the content then.
    if (isLocal) setTimeout(() => URL.revokeObjectURL(url), 60_000);
  } catch (error) {
    showProblem(text("downloadFailed", { name, reason: reason(error) }));
  }
}

async function deleteEntry(entry) {
  const name = isolated(entry.name);
  const path = pathOf(entry);
  const answer = await ask(text("deleteTitle", { name }), [element("p", { text: text("deleteText") })], [
    { value: "delete", label: text("delete"), style: "danger" }, { value: null, label: text("cancel") },
  ]);
  if (answer === null) return;
  hideProblem();
  try {
    await request(path, { method: "DELETE" });
  } catch (error) {
    if (error.status !== 404) return showProblem(text("deleteFailed", { name, reason: reason(error) }));
  }
  const rows = Array.from(byID("entries").tBodies[0].rows).filter((row) => !row.hidden);
  const index = rows.indexOf(entry.row);
  const neighbor = rows[index + 1] ?? rows[index - 1];
  folder.entries = folder.entries.filter((one) => one !== entry);
  entry.row.remove();
  showCount();
  (neighbor?.querySelector("a") ?? byID("title")).focus();
  announce(text("deleted", { name }));
  showUsage();
}
