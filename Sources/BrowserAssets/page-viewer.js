// Pictures, video and audio, shown in place.

/** Shows the file. The person can move to the other pictures, videos and audio files in the table. */
function openViewer(first) {
  const shown = sortedEntries().filter((entry) => media.has(entry.name.split(".").pop().toLowerCase())
    && !entry.isFolder && !entry.row.hidden);
  let index = shown.indexOf(first);
  let loading = new AbortController();
  const stage = element("div", { class: "stage" });
  const title = element("h2", { id: "viewer-title", tabindex: "-1" });
  const place = element("p", { class: "place" });
  const download = element("a", { class: "button", download: "", text: text("downloadShort") });
  const move = (step) => {
    index = (index + step + shown.length) % shown.length;
    show();
    announce(`${title.textContent}, ${place.textContent}`);
  };
  const moving = shown.length > 1 ? [
    element("button", { type: "button", text: text("previous"), onclick: () => move(-1) }),
    element("button", { type: "button", text: text("next"), onclick: () => move(1) }),
  ] : [];
  const dialog = element("dialog", { class: "viewer", "aria-labelledby": "viewer-title" },
    title, place, stage,
    element("div", { class: "buttons" }, ...moving, download,
      element("button", { type: "button", text: text("close"), onclick: () => dialog.close() })));

  /** Ends what is shown or loaded. */
  function clear() {
    loading.abort();
    stage.replaceChildren();
  }

  async function show() {
    clear();
    loading = new AbortController();
    const { signal } = loading;
    const entry = shown[index];
    const path = pathOf(entry);
    const name = visible(entry.name);
    title.textContent = name;
    place.textContent = `${formatSize(entry.size)} · ${text("position", { index: index + 1, count: shown.length })}`;
    download.href = path;
    const fail = (message) => stage.replaceChildren(element("p", { role: "status", text: message }));
    try {
      const { url: src, isLocal } = await loadableURL({ path, size: entry.size, signal });
      if (isLocal) signal.addEventListener("abort", () => URL.revokeObjectURL(src));
      if (signal.aborted) return;
      const onerror = () => fail(text("cannotShow"));
      stage.replaceChildren(entry.kind === "image" ? element("img", { src, alt: name, onerror })
        : element(entry.kind, { src, controls: true, preload: "metadata", "aria-label": name, onerror }));
    } catch (error) {
      if (!signal.aborted) fail(reason(error));
    }
  }

  dialog.addEventListener("keydown", (event) => {
    if (event.target.matches("video, audio") || shown.length < 2) return;
    if (event.key === "ArrowLeft") move(-1);
    if (event.key === "ArrowRight") move(1);
  });
  dialog.addEventListener("close", () => {
    clear();
    dialog.remove();
    shown[index].row?.querySelector("a").focus();
  });
  show();
  document.body.append(dialog);
  dialog.showModal();
}
