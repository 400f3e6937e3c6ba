// The files that a person drops, pastes or chooses, and the question about names that exist.

/** The files of a drop, with those in folders: `{file, handle, path}`, where `path` is relative and decoded. */
async function droppedFiles(transfer) {
  // The items are only valid until the first await.
  const items = Array.from(transfer.items).filter(({ kind }) => kind === "file").map((item) => ({
    handle: item.getAsFileSystemHandle?.(), entry: item.webkitGetAsEntry?.(), file: item.getAsFile(),
  }));
  const found = { files: [], unreadable: 0 };
  for (const { handle, entry, file } of items) {
    try {
      const opened = await Promise.resolve(handle).catch(() => null);
      if (opened) await collectHandle(opened, "", found);
      else if (entry) await collectEntry(entry, "", found);
      else if (file) found.files.push({ file, path: file.name });
    } catch {
      found.unreadable += 1;
    }
  }
  return found;
}

/** Chromium: a handle can be kept, so that the upload can be resumed without choosing the file again. */
async function collectHandle(handle, folderPath, found) {
  const path = folderPath + handle.name;
  if (handle.kind === "file") {
    found.files.push({ file: await handle.getFile(), handle, path });
  } else {
    for await (const child of handle.values()) {
      await collectHandle(child, `${path}/`, found).catch(() => { found.unreadable += 1; });
    }
  }
}

async function collectEntry(entry, folderPath, found) {
  const path = folderPath + entry.name;
  if (entry.isFile) {
    found.files.push({ file: await new Promise((resolve, reject) => entry.file(resolve, reject)), path });
    return;
  }
  const reader = entry.createReader();
  for (;;) {
    const children = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (children.length === 0) return;
    for (const child of children) await collectEntry(child, `${path}/`, found).catch(() => { found.unreadable += 1; });
  }
}

const listedFiles = (list) => ({
  files: Array.from(list, (file) => ({ file, path: file.webkitRelativePath || file.name })), unreadable: 0,
});

/** Lets a person choose files. The pickers of Chromium give handles; other browsers have only the input element. */
async function chooseFiles() {
  if (!window.showOpenFilePicker) return byID("files-input").click();
  const found = { files: [], unreadable: 0 };
  const handles = await window.showOpenFilePicker({ multiple: true }).catch(() => []);
  for (const handle of handles) await collectHandle(handle, "", found).catch(() => { found.unreadable += 1; });
  await uploadFiles(found);
}

async function chooseFolder() {
  if (!window.showDirectoryPicker) return byID("folder-input").click();
  const found = { files: [], unreadable: 0 };
  const handle = await window.showDirectoryPicker().catch(() => null);
  if (handle) await collectHandle(handle, "", found).catch(() => { found.unreadable += 1; });
  await uploadFiles(found);
}

/** Uploads the files into the folder that is shown, after the question about names that exist. */
async function uploadFiles({ files, unreadable }) {
  hideProblem();
  if (unreadable > 0) showProblem(text("unreadable", { count: unreadable }));
  const target = folder.path;
  if (!allows("create", target)) {
    if (files.length === 0) return;
    if (session.token === null) await enterToken();
    if (session.token === null) return;
    if (!allows("create", target)) return showProblem(text("reasonForbidden"));
  }
  const chosen = files.map(({ file, handle, path }) => {
    const segments = path.split("/");
    const name = segments.pop();
    return { file, handle, name, path: target + segments.map((segment) => `${encodeURIComponent(segment)}/`).join("") };
  });
  const offered = uploads.filter(({ pending }) => pending);
  const interrupted = new Map(chosen.map((one) => [one, offered.find(({ pending }) => matches(pending, one))]));
  const added = chosen.filter((one) => !interrupted.get(one));
  const existing = await existingFiles(added);
  let decision = null;
  let remaining = existing.size;
  for (const [one, entry] of existing) {
    remaining -= 1;
    if (!decision?.isForAll) decision = await askAboutName(one, entry, remaining);
    if (decision === null) return;
    one.ifExists = decision.ifExists;
  }
  for (const [one, item] of interrupted) if (item) resumeWith(item, one.handle ?? one.file);
  const accepted = added.filter(({ ifExists }) => ifExists !== "skip");
  accepted.forEach(addUpload);
  if (accepted.length > 0) announce(text("announceStarted", { count: accepted.length }));
  startUploads();
}

/** The chosen files whose name exists on the server, with the entries. Other tests are left to the server. */
async function existingFiles(chosen) {
  const existing = new Map();
  if (!allows("read")) return existing;
  for (const [path, files] of Map.groupBy(chosen, ({ path }) => path)) {
    const entries = await listedNames(path);
    for (const one of files) {
      const entry = entries.get(one.name);
      if (entry && !entry.isFolder) existing.set(one, entry);
    }
  }
  return existing;
}

async function listedNames(path) {
  const isShown = path === folder.path && !folder.isPartial && folder.status === 200;
  try {
    const { entries } = isShown ? folder : await fetchEntries(path, { limit: maxEntries });
    return new Map(entries.map((entry) => [entry.name, entry]));
  } catch {
    return new Map();
  }
}

async function askAboutName({ file, name, path }, entry, remaining) {
  const describe = (size, date) => `${formatSize(size)}, ${dates.format(date)} ${clocks.format(date)}`;
  const forAll = element("input", { id: "for-all", type: "checkbox" });
  const answer = await ask(text("existsTitle", { name: isolated(name) }), [
    element("p", { text: text("existsText", { folder: isolated(folderName(path)) }) }),
    element("dl", {},
      element("dt", { text: text("existing") }), element("dd", { text: describe(entry.size, entry.modified) }),
      element("dt", { text: text("chosen") }), element("dd", { text: describe(file.size, file.lastModified) })),
    ...(remaining > 0 ? [element("p", { class: "choice" }, forAll,
      element("label", { for: "for-all", text: text("forAll", { count: remaining }) }))] : []),
  ], [
    { value: "keep", label: text("keepBoth"), style: "primary" },
    ...(allows("write", path) ? [{ value: "replace", label: text("replace") }] : []),
    { value: "skip", label: text("skipFile") }, { value: null, label: text("cancel") },
  ]);
  return answer && { ifExists: answer, isForAll: forAll.checked };
}
